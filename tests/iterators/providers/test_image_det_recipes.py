"""Today's recipes in `ImageDetRecordIter`: shears, shifts and turns move the boxes."""

import numpy as np
import pytest

from faces.draws import drawn_operations, drawn_rectangles
from iterators import ImageDetRecordIter
from iterators.core.random import derive_key
from iterators.images.augment.det_recipe import MOVING, DetRecipe
from iterators.images.view_plans import AUGMENT_KEY
from iterators.testing import box_label, copies, encode, maker, same, samples, write_rows
from recordio.errors import ImageDecodeError
from recordio.kernels.operations import operate

COUNT = 40
POLICIES = [
    "randaugment", "trivialaugment", "autoaugment", "autoaugment-cifar10", "autoaugment-svhn",
    "augmix", "rand-m9-mstd0.5-inc1", "augmix-m5-w4-d2", "augmix-b1", "original-mstd0.5", "v0",
    "3a",
]  # fmt: skip
#: Of what is drawn with the default seed.
KEY = derive_key(0, AUGMENT_KEY)
#: Boxes that are moved, and dropped only if little of them is left.
MOVES = {"auto_augment": "rand-m9-n3", "crop_emit_mode": "overlap", "emit_overlap_thresh": 0.1}


def record(number):
    """A white rectangle on black, sometimes at an edge."""
    rng = np.random.default_rng(number)
    width, height = rng.integers(40, 90, 2)
    left, top = rng.integers(0, 25, 2) * (rng.random(2) > 0.2)
    right = rng.integers(left + 12, width + 1)
    bottom = rng.integers(top + 12, height + 1)
    image = np.zeros((height, width, 3), np.uint8)
    image[top:bottom, left:right] = 255
    box = [left / width, top / height, right / width, bottom / height]
    return number, [2, 5, number, *box], encode(image)


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return write_rows(
        tmp_path_factory.mktemp("recipes") / "a.rec", [record(i) for i in range(COUNT)]
    )


provider_of = maker(
    ImageDetRecordIter, data_shape=(3, 48, 64), batch_size=8, preprocess_threads=2, dtype="uint8",
    layout="NHWC",
)  # fmt: skip


def boxes_of(row):
    """Boxes in pixels of the image."""
    found = row[6 : 4 + int(row[3])].reshape(-1, int(row[5]))[:, 1:5]
    return found * (row[2], row[1], row[2], row[1])


# -- boxes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["force", "fit", "shrink"])
@pytest.mark.parametrize("mirror", [0, 1])
@pytest.mark.parametrize("text", ["randaugment", "trivialaugment", "rand-m9-n3", "augmix-m9-w2-d1"])
def test_boxes_lie_around_the_white_pixels(pack, mode, mirror, text):
    """Through the whole stage: sizes other than `data_shape`, mirrored, moved more than once."""
    common = {
        "resize_mode": mode, "rand_mirror_prob": mirror, "inter_method": 0,
        "data_shape": (3, 96, 96) if mode == "shrink" else (3, 48, 64),
    }  # fmt: skip
    policy = {
        "auto_augment": text, "augment_fill": 0, "augment_interpolation": "nearest",
        "crop_emit_mode": "overlap", "emit_overlap_thresh": 0.1,
    }  # fmt: skip
    with provider_of(pack, **common) as provider:
        plain = {own: boxes_of(label) for _, label, own in samples(provider)}
    seen = moved = 0
    recipe = DetRecipe(**common, **policy)
    with provider_of(pack, **common, **policy) as provider:
        for epoch in range(5):
            for image, label, own in samples(provider):
                done, mix = drawn_operations(recipe, KEY, epoch, own)
                if {name for name, *_ in done} - {"identity", *MOVING}:
                    continue  # colours were changed, too
                if mix and min(*mix["weights"], 1 - mix["share"]) * mix["share"] < 0.02:
                    continue  # too faint to be seen
                boxes = boxes_of(label)
                if not len(boxes):
                    continue
                rows, columns = np.nonzero(image.max(2))
                around = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
                np.testing.assert_allclose(boxes[0], around, atol=1.6 + 1.5 * len(done))
                seen += 1
                moved += not np.allclose(boxes[0], plain[own][0], atol=2)
    assert seen > 10 and moved > 5


def test_boxes_that_are_not_moved_are_the_same_to_the_bit(pack):
    with provider_of(pack, auto_augment="3a", augment_fill=0, random_erasing=1) as provider:
        found = [label for _, label, _ in samples(provider)]
    with provider_of(pack) as provider:
        expected = [label for _, label, _ in samples(provider)]
    assert np.array_equal(found, expected)


def test_rows_keep_their_width_and_padding(pack):
    with provider_of(pack, **MOVES, label_pad_value=-7) as provider:
        assert provider.provide_label[0].shape == (8, 4 + 7)
        rows = np.array([label for _ in range(5) for _, label, _ in samples(provider)])
    dropped = rows[rows[:, 3] == 2]
    assert 0 < len(dropped) < len(rows) and (dropped[:, 6:] == -7).all()
    assert (rows[:, 4:6] == (2, 5)).all()


def test_records_without_objects_go_through(tmp_path):
    flat = [2, 5, 1, 0.5, 0.5, 0.5, 0.9]
    path = write_rows(tmp_path / "flat.rec", [(i, flat, record(i)[2]) for i in range(4)])
    with provider_of(path, auto_augment="randaugment", augment_fill=0) as provider:
        for _, label, _ in samples(provider):
            assert label[3:6].tolist() == [2, 2, 5] and (label[6:] == -1).all()


# -- pixels ----------------------------------------------------------------------------------------


def test_the_operations_are_those_of_the_recipe(pack):
    """On the finished image, whose size is that of the canvas, in their order."""
    keywords = {"auto_augment": "randaugment", "augment_fill": 9, "data_shape": (3, 48, 64)}
    with provider_of(pack) as provider:
        plain = list(samples(provider))
    with provider_of(pack, **keywords) as provider:
        changed = list(samples(provider))
    for (image, _, own), (found, _, _) in zip(plain, changed, strict=True):
        for name, value, method in drawn_operations(DetRecipe(**keywords), KEY, 0, own)[0]:
            image = operate(image, name, value, method=method, fill=9)
        assert np.array_equal(found, image)


def test_the_border_is_not_jittered_by_mxnets_colours_but_by_todays(pack):
    """MXNet's come before the border, as they always did; the finished image is greyed whole."""
    border = {"rand_pad_prob": 1, "max_pad_scale": 3, "fill_value": 90, "inter_method": 0}
    with provider_of(pack, **border, max_random_illumination=60, random_illumination_prob=1) as it:
        for image, label, _ in samples(it):
            assert (image[0, -1] == 90).all() or len(boxes_of(label))
    with provider_of(pack, **border, solarize_p=1, solarize_threshold=80) as it:
        levels = {tuple(np.unique(image)) for image, _, _ in samples(it)}
    assert any(165 in found for found in levels) and not any(90 in found for found in levels)


def test_erased_rectangles_lie_on_the_image_and_not_beside_it(pack):
    with provider_of(
        pack, resize_mode="fit", random_erasing=1, erasing_value=77, erasing_area=0.2,
        rand_mirror_prob=0.5,
    ) as provider:  # fmt: skip
        for image, label, _ in samples(provider):
            high, wide = label[1:3].astype(int)
            assert not image[high:].any() and not image[:, wide:].any()
            share = (image[:high, :wide] == 77).all(2).mean()
            assert abs(share - 0.2) < 0.06
    whole = DetRecipe(data_shape=(3, 48, 64), random_erasing=1)
    assert len(drawn_rectangles(whole, 0, 0, 0)) == 1


@pytest.mark.parametrize("keywords", [
    {"random_grayscale": 1}, {"gaussian_blur": 1, "blur_sigma": 2}, {"solarize_p": 1},
    {"color_jitter": (0.4, 0.4, 0.4, 0.1)}, {"three_augment": True},
    {"random_erasing": 1, "erasing_value": "pixel"},
])  # fmt: skip
def test_photometric_changes_leave_the_boxes(pack, keywords):
    photo = np.random.default_rng(0).integers(0, 256, (50, 70, 3), np.uint8)
    label = box_label((1, 0.1, 0.2, 0.8, 0.9))
    path = write_rows(pack.parent / "photo.rec", [(i, label, photo) for i in range(8)])
    for mode in ("force", "fit"):
        with provider_of(path, resize_mode=mode) as provider:
            plain = copies(provider)
        with provider_of(path, resize_mode=mode, **keywords) as provider:
            changed = copies(provider)
        assert np.array_equal(plain[0].label[0], changed[0].label[0])
        assert not np.array_equal(plain[0].data[0], changed[0].data[0])


# -- the same whoever makes it ---------------------------------------------------------------------


@pytest.mark.parametrize("text", POLICIES)
def test_batches_depend_on_seed_epoch_and_record_alone(pack, text):
    keywords = {"auto_augment": text, "random_erasing": 0.3, "color_jitter": 0.4, "shuffle": True,
                "gaussian_blur": 0.3, "rand_crop_prob": 0.5, "min_crop_scales": 0.5,
                "rand_mirror_prob": 0.5, "resize_mode": "fit"}  # fmt: skip
    with provider_of(pack, **keywords, preprocess_threads=1) as provider:
        expected = copies(provider) + copies(provider)
    with provider_of(pack, **keywords, preprocess_threads=4, prefetch_buffer=1) as provider:
        provider.next()
        provider.next()
        state = provider.state_dict()
    with provider_of(pack, **keywords, preprocess_threads=3) as provider:
        provider.load_state_dict(state)
        assert same(copies(provider), expected[2:5])
        assert same(copies(provider), expected[5:])
    with provider_of(pack, **keywords, seed_aug=1) as provider:
        assert not same(copies(provider), expected[:5])


def test_a_bad_record_is_named(tmp_path):
    records = [record(i) for i in range(4)]
    records[2] = (2, records[2][1], b"\x89PNG\r\n\x1a\n" + bytes(30))
    path = write_rows(tmp_path / "bad.rec", records)
    with provider_of(path, **MOVES) as provider, pytest.raises(ImageDecodeError) as caught:
        provider.next()
    assert caught.value.record_id == 2


# -- keywords --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"magnitude": 3}, "has no effect without auto_augment"),
        ({"erasing_value": 3}, "has no effect without random_erasing"),
        ({"auto_augment": "randaugmnt"}, "auto_augment="),
        ({"random_grayscale": 1, "data_shape": (1, 9, 9)}, "needs RGB"),
    ],
)
def test_wrong_keywords_are_refused(pack, keywords, text):
    with pytest.raises(ValueError, match=text):
        provider_of(pack, **keywords)


@pytest.mark.parametrize("name", ["views", "low_resolution", "crop_on_fill", "log_aspect_ratio"])
def test_what_makes_no_sense_for_boxes_is_no_keyword(pack, name):
    with pytest.raises(TypeError, match=f"no parameter {name!r}"):
        provider_of(pack, **{name: 1})


def test_the_rule_for_cut_objects_counts_without_crops(pack):
    with provider_of(pack, **MOVES):
        pass  # no warning
    with pytest.warns(UserWarning, match="crop_emit_mode='overlap' has no effect without"):
        with provider_of(pack, auto_augment="3a", crop_emit_mode="overlap", augment_fill=0):
            pass


def test_erasing_beside_a_mean_image_needs_means(pack, tmp_path):
    keywords = {"mean_img": tmp_path / "mean.bin", "dtype": "float32", "random_erasing": 1}
    with pytest.raises(ValueError, match="needs means of channels"):
        provider_of(pack, **keywords, erasing_value=3)
    with provider_of(pack, **keywords, erasing_value="pixel") as provider:
        provider.next()
