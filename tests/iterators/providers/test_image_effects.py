"""Parameters of the image providers that do nothing in a combination: refused, or warned of."""

import re
import warnings
from dataclasses import fields
from pathlib import Path

import cv2
import numpy as np
import pytest

from iterators import CSVIter, ImageDetRecordIter, ImageIter, ImageRecordIter
from iterators.images.augment.augmenter import Augmenter
from iterators.images.augment.det_recipe import DetRecipe
from iterators.images.augment.recipe import Recipe
from iterators.providers.image_options import ImageDetOptions, ImageRecordOptions
from iterators.testing import box_label, write_pack

PAGES = Path(__file__).parents[3] / "docs" / "reference"


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return str(write_pack(tmp_path_factory.mktemp("effects") / "noise.rec", 4, size=(30, 40)))


@pytest.fixture(scope="module")
def boxes(tmp_path_factory):
    path = tmp_path_factory.mktemp("effects") / "boxes.rec"
    return write_pack(path, 1, [box_label((0, 0.1, 0.1, 0.5, 0.5))], size=(9, 9))


def warnings_of(pack, kind=ImageRecordIter, **keywords):
    keywords = {"data_shape": (3, 16, 16), "batch_size": 2} | keywords
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        with kind(path_imgrec=pack, **keywords) as provider:
            batches = [np.array(batch.data[0]) for batch in provider]
    assert all(warning.filename == __file__ for warning in found)
    return [str(warning.message) for warning in found], batches


def plain(pack, **keywords):
    keywords = {"data_shape": (3, 16, 16), "batch_size": 2} | keywords
    with ImageRecordIter(path_imgrec=pack, **keywords) as provider:
        return [np.array(batch.data[0]) for batch in provider]


@pytest.mark.parametrize(
    ("keywords", "message", "same"),
    [
        ({"random_resized_crop": True}, "random_resized_crop=True cannot vary", {}),
        ({"min_random_area": 0.1}, "min_random_area=0.1 has no effect without", {}),
        ({"max_random_area": 0.5}, "max_random_area=0.5 has no effect without", {}),
        ({"mirror": True, "rand_mirror": True}, "rand_mirror=True has no", {"mirror": True}),
        ({"rotate": 0}, "rotate=0 has no effect", {}),
        ({"rotate": 9, "max_rotate_angle": 5}, "max_rotate_angle=5 has no", {"rotate": 9}),
        ({"rotate_list": (9,), "rotate": 5}, "rotate=5 has no effect", {"rotate_list": (9,)}),
        ({"rotate_list": (9,), "max_rotate_angle": 5}, "max_rotate_angle=5", {"rotate_list": (9,)}),
        (
            {"crop_x_start": 1, "crop_y_start": 2, "rand_crop": True},
            "rand_crop=True has no effect with crop_x_start",
            {"crop_x_start": 1, "crop_y_start": 2},
        ),
        ({"mean_a": 3}, "mean_a=3.0 has no effect", {}),
        ({"std_a": 3}, "std_a=3.0 has no effect", {}),
        ({"fill_value": 3}, "fill_value=3 has no effect without pad", {}),
        ({"shuffle_chunk_seed": 3}, "shuffle_chunk_seed=3 has no effect without", {}),
        ({"ctx": "cpu"}, "ctx='cpu' has no effect", {}),
        ({"device_id": 1}, "device_id=1 has no effect", {}),
    ],
)
def test_what_has_no_effect_is_told_once_and_changes_nothing(pack, keywords, message, same):
    found, batches = warnings_of(pack, **keywords)
    assert len(found) == 1
    assert found[0].startswith(message)
    for batch, expected in zip(batches, plain(pack, **same), strict=True):
        assert np.array_equal(batch, expected)


def test_channels_that_an_image_does_not_have(pack):
    found, _ = warnings_of(pack, data_shape=(1, 16, 16), mean_r=1, mean_g=2, std_b=3)
    assert [text.split()[0] for text in found] == ["mean_g=2.0", "std_b=3.0"]


def test_means_beside_a_mean_image(pack, tmp_path):
    found, _ = warnings_of(pack, mean_img=tmp_path / "mean.bin", mean_r=3, mean_b=4)
    assert found == [f"mean_{c} has no effect with mean_img" for c in ("r=3.0", "b=4.0")]


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"crop_x_start": 1, "max_crop_size": 9, "min_crop_size": 9}, "contradicts max_crop_size"),
        ({"random_resized_crop": True, "max_random_scale": 2}, "contradicts random_resized_crop"),
        ({"std_r": -1}, "std_r=-1: expected a number above 0"),
        ({"std_g": 0}, "std_g=0: expected a number above 0"),
        ({"scale": 0}, "scale=0: every value of a batch would be 0"),
        ({"dtype": "uint8", "mean_r": 3}, "mean_r=3.0 has no effect on uint8 and uint16 pixels"),
        ({"dtype": "int8", "scale": 3}, "scale=3.0 has no effect on integer pixels"),
        ({"data_shape": (1, 8, 8), "random_h": 3}, "random_h=3 needs RGB"),
        ({"max_aspect_ratio": 1}, "max_aspect_ratio must be below 1"),
        ({"data_shape": (64, 64, 3)}, r"\(channels, height, width\).* mean \(3, 64, 64\)"),
    ],
)
def test_contradictions_and_senseless_values_are_refused(pack, keywords, message):
    with pytest.raises(ValueError, match=message):
        warnings_of(pack, **keywords)


def test_the_defaults_of_every_parameter_can_be_named(pack):
    options = {
        item.name: item.default
        for family in (ImageRecordOptions, Recipe)
        for item in fields(family)
        if item.name not in ("path_imgrec", "data_shape", "batch_size")
    }
    assert warnings_of(pack, **options)[0] == []


def test_a_script_for_mxnet_is_told_of_nothing(pack):
    """What the examples of MXNet pass for ImageNet, on the command line of which nothing is set."""
    found, _ = warnings_of(
        pack,
        rand_crop=True,
        rand_mirror=True,
        random_resized_crop=False,
        min_random_area=1,
        max_random_area=1,
        max_aspect_ratio=0,
        min_aspect_ratio=None,
        max_rotate_angle=0,
        max_shear_ratio=0,
        brightness=0,
        pca_noise=0,
        pad=0,
        mean_r=123.68,
        mean_g=116.779,
        mean_b=103.939,
        preprocess_threads=4,
        num_parts=1,
        part_index=0,
    )
    assert found == []


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"min_crop_scales": 0.3}, "min_crop_scales=(0.3,) has no effect without rand_crop_prob"),
        ({"max_random_hue": 9}, "max_random_hue=9 has no effect without random_hue_prob"),
        ({"random_contrast_prob": 0.5}, "random_contrast_prob=0.5 has no effect without max_r"),
        ({"rand_pad_prob": 0.5}, "rand_pad_prob=0.5 has no effect without max_pad_scale above 1"),
        ({"fill_value": 5}, "fill_value=5 has no effect without a border"),
        ({"rand_crop_prob": 1, "num_crop_sampler": 0}, "rand_crop_prob=1.0 has no effect"),
        ({"rand_crop_prob": 1, "emit_overlap_thresh": 0.5}, "emit_overlap_thresh=0.5 has no"),
    ],
)
def test_detection(boxes, keywords, message):
    found, _ = warnings_of(boxes, ImageDetRecordIter, batch_size=1, **keywords)
    assert len(found) == 1
    assert found[0].startswith(message)


def test_the_lists_of_several_samplers_keep_their_defaults(boxes):
    keywords = {"rand_crop_prob": 0.5, "num_crop_sampler": 3, "batch_size": 1}
    assert warnings_of(boxes, ImageDetRecordIter, **keywords)[0] == []


def test_what_mxnet_image_iterators_are_given_is_theirs(tmp_path):
    cv2.imwrite(str(tmp_path / "a.png"), np.zeros((9, 9), np.uint8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        images = [[0, "a.png"]]
        ImageIter(1, (1, 8, 8), imglist=images, path_root=tmp_path, mean=True, std=True).close()


def test_labels_of_a_certain_shape_need_a_file(tmp_path):
    (tmp_path / "a.csv").write_text("1\n")
    with pytest.warns(UserWarning, match=r"label_shape=\(2,\) needs label_csv"):
        CSVIter(data_csv=tmp_path / "a.csv", data_shape=(1,), label_shape=(2,), batch_size=1)


def names_of_rules(*families):
    return {name for family in families for rule in family.rules for name in rule.names.split()}


def test_the_table_of_rules_is_made_of_all_of_them():
    text = (PAGES / "image-record-iter.md").read_text()
    (directive,) = re.findall(r"^\.\. rules:: (.*)$", text, re.M)
    families = ImageRecordOptions, Recipe
    assert directive.split() == [f"{one.__module__}:{one.__name__}" for one in families]


def test_the_page_on_boxes_names_every_parameter_of_the_rules_of_its_own():
    text = (PAGES / "image-det-record-iter.md").read_text()
    section = text[text.index("## Parameters without effect") :]
    names = names_of_rules(ImageDetOptions, DetRecipe) - names_of_rules(ImageRecordOptions, Recipe)
    assert names and not [name for name in sorted(names) if f"`{name}`" not in section]


def test_every_rule_names_parameters_that_exist():
    for families in (
        (ImageRecordOptions, Recipe),
        (ImageRecordOptions, Augmenter),
        (ImageDetOptions, DetRecipe),
    ):
        known = {item.name for family in families for item in fields(family)}
        for family in families:
            assert {name for rule in family.rules for name in rule.names.split()} <= known
