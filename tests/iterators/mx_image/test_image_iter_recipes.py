"""Recipes of today through `ImageIter`: the bytes of `ImageRecordIter`, and what is its own."""

import json
import pickle
from dataclasses import fields
from functools import partial

import cv2
import numpy as np
import pytest

from iterators import CreateAugmenter, ImageDetIter, ImageIter, ImageRecordIter, NamedRecipe, Pack
from iterators.images.augment.augmenter import Augmenter, augmenter_of
from iterators.images.augment.named_recipes import NAMED_RECIPES
from iterators.images.augment.policy_options import PolicyOptions
from iterators.images.augment.recipe import Recipe
from iterators.testing import assert_same, copies, write_images, write_list, write_pack

SIZE = (3, 36, 36)
KEYWORDS = [
    {"auto_augment": "randaugment", "num_ops": 3, "magnitude": 12, "random_erasing": 0.7},
    {"auto_augment": "rand-m9-mstd0.5-inc1", "augment_fill": (9, 8, 7)},
    {"auto_augment": "augmix", "augment_interpolation": "bicubic"},
    {"three_augment": True, "color_jitter": 0.3, "color_jitter_prob": 0.5},
    {"random_grayscale": 0.5, "gaussian_blur": 0.5, "blur_sigma": (1, 3), "solarize_p": 0.5},
    {"crop_on_fill": 0.6, "low_resolution": 0.6, "low_resolution_side": (0.1, 0.5)},
    {"random_erasing": 1.0, "erasing_value": "pixel", "erasing_count": (1, 3), "rand_mirror": True},
]
DINO = [
    {"gaussian_blur": 1.0, "rand_mirror": True},
    {"solarize_p": 0.5, "hue": 0.3},
    {"data_shape": (3, 20, 24), "rand_crop": True, "rand_resize": True, "mean": 100},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    pixels = []
    for i in range(11):
        image = rng.integers(0, 256, (9, 11, 3), dtype=np.uint8)
        pixels.append(cv2.resize(image, (50 + 2 * i, 48), interpolation=cv2.INTER_CUBIC))
    labels = np.arange(11) % 4
    write_pack(path / "a.rec", pixels, labels, kind=".jpg")
    files = write_images(path, pixels, kind=".jpg")
    write_list(path / "a.lst", [file.name for file in files], labels)
    return path


def images(folder, kind=ImageIter, **more):
    keywords = {"batch_size": 4, "path_imgrec": folder / "a.rec", "seed": 5, "verbose": False}
    if "recipe" not in more:
        keywords["data_shape"] = SIZE
    return kind(**keywords | more)


records = partial(images, kind=ImageRecordIter)


@pytest.mark.parametrize("keywords", KEYWORDS, ids=lambda keywords: " ".join(keywords))
@pytest.mark.parametrize("threads", [1, 8])
def test_the_bytes_are_those_of_image_record_iter(folder, keywords, threads):
    with records(folder, shuffle=True, **keywords, preprocess_threads=4) as wanted:
        expected = [copies(wanted) for _ in range(2)]
    with images(folder, shuffle=True, **keywords, preprocess_threads=threads) as found:
        for epoch in expected:
            assert_same(epoch, copies(found))
    with images(folder, shuffle=True) as plain:
        assert not np.array_equal(copies(plain)[0].data[0], expected[0][0].data[0])


@pytest.mark.parametrize("recipe", NAMED_RECIPES, ids=lambda recipe: recipe.name)
def test_named_recipes_are_those_of_image_record_iter(folder, recipe):
    small = {"data_shape": (3, 32, 32)}
    if "views" in recipe.keywords:
        small = {}
    with (
        records(folder, recipe=recipe.name, batch_size=3, **small) as wanted,
        images(folder, recipe=recipe, batch_size=3, **small) as found,
    ):
        assert_same(copies([wanted.next()]), copies([found.next()]))
        assert NamedRecipe.of(found.state_dict()["settings"]["recipe"]) == recipe


def test_a_list_of_files_has_them_as_well(folder):
    keywords = KEYWORDS[0] | {"shuffle": True}
    listed = {"path_imgrec": None, "path_imglist": folder / "a.lst", "path_root": folder}
    with images(folder, **keywords) as record, images(folder, **keywords, **listed) as files:
        assert_same(copies(record), copies(files))


def test_mxnets_colours_come_after_the_steps_of_a_recipe(folder):
    """Greying leaves three equal channels, of which noise makes different ones."""
    with images(folder, random_grayscale=1.0) as grey:
        batch = grey.next().data[0]
    np.testing.assert_array_equal(batch[:, 0], batch[:, 2])
    with images(folder, random_grayscale=1.0, pca_noise=0.2) as noisy:
        found = noisy.next().data[0]
    spread = (found - batch).reshape(4, 3, -1)
    assert (np.abs(spread).max((1, 2)) > 0.5).any()
    assert np.ptp(spread, 2).max() < 1e-3
    with images(folder, rand_gray=1.0, solarize_p=1.0) as both:
        weights = both.next().data[0]
    with images(folder, solarize_p=1.0) as solarized:
        before = solarized.next().data[0]
    wanted = np.einsum("nchw,c->nhw", before, np.array([0.21, 0.72, 0.07], np.float32))
    np.testing.assert_allclose(weights[:, 1], wanted, atol=1e-3)


def test_keywords_beside_a_recipe_win(folder):
    recipe = {"random_resized_crop": True, "min_random_area": 0.3, "mean_g": 7, "gaussian_blur": 1}
    recipe |= {"data_shape": SIZE}
    with (
        images(folder, recipe=recipe, rand_crop=False, mean=None, gaussian_blur=0) as found,
        images(folder, inter_method=1) as plain,
    ):
        assert_same(copies(found), copies(plain))
    with images(folder, recipe={"batch_size": 2, "data_shape": SIZE}, batch_size=3) as found:
        assert found.batch_size == 3
    with ImageIter(recipe={"batch_size": 2, "data_shape": SIZE}, path_imgrec=folder / "a.rec") as i:
        assert i.provide_data[0].shape == (2, *SIZE)


@pytest.mark.parametrize("name", ["rand_crop", "mean", "resize", "hue", "min_random_area"])
def test_an_augmenter_is_changed_by_the_words_of_both(name):
    value = {"rand_crop": True, "mean": 5, "resize": 9, "hue": 0.5, "min_random_area": 0.5}[name]
    base = augmenter_of({}, {"data_shape": SIZE, "rand_crop": True, "rand_resize": True})
    changed = augmenter_of(base.changed(), {name: value})
    assert changed != base
    assert augmenter_of(changed.changed(), {}) == changed
    assert pickle.loads(pickle.dumps(changed)) == changed


def test_views_are_made_of_one_image_each_as_if_alone(folder):
    common = {"shuffle": True, "scaled_decode": False, "random_erasing": 0.5}
    with images(folder, **common, views=DINO) as views:
        shapes = [desc.shape for desc in views.provide_data]
        found = copies(views)
    assert shapes == [(4, *SIZE), (4, *SIZE), (4, 3, 20, 24)]
    with images(folder, **common, **DINO[0]) as alone:
        for several, one in zip(found, copies(alone), strict=True):
            assert_same([several.data[0], several.label[0]], [one.data[0], one.label[0]])
    assert found[0].data[2].mean() < found[0].data[0].mean() - 50  # its own mean
    with images(folder, **common, views=DINO, preprocess_threads=8) as other:
        assert_same(found, copies(other))


def test_views_of_an_augmenter(folder):
    augmenter = CreateAugmenter(SIZE, scaled_decode=False, gaussian_blur=0.5)
    with (
        images(folder, aug_list=augmenter, views=DINO) as given,
        images(folder, scaled_decode=False, gaussian_blur=0.5, views=DINO) as named,
    ):
        assert_same(copies(given), copies(named))


def test_views_resume_and_belong_to_the_state(folder):
    def made(**more):
        return images(folder, **{"shuffle": True, "views": DINO, "auto_augment": "augmix"} | more)

    with made() as whole:
        wanted = [copies(whole) for _ in range(2)][1]
    with made() as first:
        list(first)
        first.reset()
        first.next()
        state = json.loads(json.dumps(first.state_dict()))
    with made(preprocess_threads=1) as second:
        second.load_state_dict(state)
        assert_same(wanted[1:], copies(second))
    for other in ({"views": DINO[:2]}, {"auto_augment": "augmix-m5"}):
        with made(**other) as different, pytest.raises(ValueError, match=next(iter(other))):
            different.load_state_dict(state)


def test_packs_change_every_view(folder):
    views = [{}, {"rand_mirror": True}]
    packs = [Pack(folder / "a.rec"), Pack(folder / "a.rec", solarize_p=1.0, mean=(1, 2, 3))]
    with images(folder, path_imgrec=packs, views=views, batch_size=22, seed=1) as both:
        data = both.next().data
    for number in range(2):
        normal, changed = data[number][:11], data[number][11:]
        if number == 0:
            wanted = np.where(normal >= 128, 255 - normal, normal)
            np.testing.assert_array_equal(
                changed, wanted - np.array([1, 2, 3], np.float32)[:, None, None]
            )
        assert changed.max() <= 127


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({"recipe": "timm/deit"}, ValueError, "did you mean 'timm/deit-s'"),
        ({"recipe": {"gausian_blur": 1}}, TypeError, r"recipe\(\).*did you mean 'gaussian_blur'"),
        ({"auto_augmnt": "augmix"}, TypeError, "did you mean 'auto_augment'"),
        ({"num_ops": 3}, ValueError, "has no effect without auto_augment"),
        ({"erasing_count": 3}, ValueError, "has no effect without random_erasing"),
        ({"random_grayscale": 1.0, "data_shape": (1, 8, 8)}, ValueError, "needs RGB images"),
        ({"log_aspect_ratio": True}, TypeError, "no parameter 'log_aspect_ratio'"),
        ({"recipe": {"random_h": 9}}, ValueError, "random_h=9 is a step of ImageRecordIter"),
        ({"views": [{}]}, ValueError, "expected 2 to 16"),
        ({"views": [{}, {"gausian_blur": 1}]}, TypeError, "did you mean 'gaussian_blur'"),
        ({"views": [{}, {"rand_resize": True}]}, ValueError, "needs rand_crop"),
        ({"views": [{}, {"data_shape": (1, 8, 8)}]}, ValueError, "same number of channels"),
        ({"views": [{}, {"batch_size": 8}]}, TypeError, "no parameter 'batch_size'"),
        ({"views": [{}, {}], "cache": "ram"}, ValueError, "drop cache"),
        ({"aug_list": [np.flipud], "views": [{}, {}]}, ValueError, "CreateAugmenter describes"),
        ({"aug_list": [np.flipud], "auto_augment": "augmix"}, ValueError, "drop auto_augment"),
        ({"aug_list": [np.flipud], "recipe": "adaface"}, ValueError, "drop recipe"),
    ],
)
def test_what_cannot_make_sense_is_refused(folder, keywords, error, text):
    with pytest.raises(error, match=text):
        images(folder, **{"data_shape": SIZE} | keywords)


@pytest.mark.parametrize("name", ["auto_augment", "recipe", "views"])
def test_image_det_iter_which_changes_boxes_in_python_refuses_them(folder, name):
    with pytest.raises(TypeError, match=f"no parameter {name!r}"):
        ImageDetIter(1, SIZE, path_imgrec=folder / "a.rec", **{name: "x"})


def test_steps_of_the_stage_are_not_lost_in_a_list():
    steps = CreateAugmenter(SIZE, auto_augment="randaugment")
    with pytest.raises(ValueError, match="auto_augment is a step of the image stage"):
        [*steps, np.flipud]
    assert isinstance(steps, Augmenter)


def test_every_keyword_of_a_policy_is_one_of_all_recipes():
    names, recipe, augmenter = (
        {item.name for item in fields(family)} for family in (PolicyOptions, Recipe, Augmenter)
    )
    assert names <= recipe & augmenter
    assert names <= set(ImageIter.__signature__.parameters)
    assert {"recipe", "views"} <= set(ImageIter.__signature__.parameters)
