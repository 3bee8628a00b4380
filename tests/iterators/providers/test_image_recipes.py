"""Recipes of today through the providers: the same bytes with any threads, and resumed."""

import json

import numpy as np
import pytest

from iterators import ImageIter, ImageRecordIter, MixBatches, NamedRecipe
from iterators.images.augment.augmenter import Augmenter
from iterators.testing import assert_same, copies, same, write_pack

RECIPES = {
    "randaugment": {"auto_augment": "randaugment", "random_erasing": 0.5},
    "trivialaugment": {"auto_augment": "trivialaugment"},
    "autoaugment": {"auto_augment": "autoaugment-svhn"},
    "timm": {
        "auto_augment": "rand-m9-mstd0.5-inc1", "random_erasing": 0.5, "erasing_value": "pixel",
        "random_resized_crop": True, "min_random_area": 0.08, "min_aspect_ratio": 0.75,
        "max_aspect_ratio": 4 / 3, "log_aspect_ratio": True,
    },
    "augmix": {"auto_augment": "augmix"},
    "timm's augmix": {"auto_augment": "augmix-m5-w4-d2-b1"},
    "dino": {
        "color_jitter": (0.4, 0.4, 0.2, 0.1), "color_jitter_prob": 0.8, "random_grayscale": 0.2,
        "gaussian_blur": 0.5, "solarize_p": 0.2,
    },
    "deit3": {"three_augment": True, "color_jitter": 0.3},
    "warps": {
        "rotation": (-20, 30), "perspective": 0.3, "warp_interpolation": "bicubic",
        "affine": {"degrees": 10, "translate": (0.1, 0.2), "scale": (0.8, 1.2), "shear": 5},
        "fill_value": 0, "pad": 4, "padding_mode": "reflect", "mirror_p": 0.3, "flip_p": 0.5,
    },
    "faces": {"crop_on_fill": 0.5, "low_resolution": 0.5, "color_jitter": 0.5},
}  # fmt: skip


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    rng = np.random.default_rng(0)
    images = [
        rng.integers(0, 256, (6, 8, 3), dtype=np.uint8).repeat(6, 0).repeat(6, 1) for _ in range(22)
    ]
    return write_pack(tmp_path_factory.mktemp("packs") / "a.rec", images, lambda i: i % 10)


def provider(pack, **more):
    keywords = {
        "path_imgrec": pack, "data_shape": (3, 32, 32), "batch_size": 4, "shuffle": True,
        "seed": 5, "rand_crop": not more.get("random_resized_crop"), "rand_mirror": True,
        "mean_r": 124, "std_r": 58, "preprocess_threads": 2,
    }  # fmt: skip
    return ImageRecordIter(**keywords | more)


@pytest.mark.parametrize("name", RECIPES)
def test_batches_depend_on_the_seed_and_not_on_threads_or_interruptions(pack, name):
    recipe = RECIPES[name]
    with provider(pack, **recipe) as whole:
        epochs = [copies(whole) for _ in range(2)]
    with provider(pack, **recipe, preprocess_threads=5, prefetch_buffer=1) as other:
        assert_same(epochs[0], copies(other))
    with provider(pack, **recipe, seed_aug=6) as seeded:
        changed = copies(seeded)
    assert any(not same(*pair) for pair in zip(epochs[0], changed, strict=True))
    with provider(pack, **recipe) as first:
        list(first)
        first.reset()
        for _ in range(2):
            first.next()
        state = json.loads(json.dumps(first.state_dict()))
    with provider(pack, **recipe, preprocess_threads=1) as second:
        second.load_state_dict(state)
        assert_same(epochs[1][2:], copies(second))
    plain = {"seed_aug": 5}
    with provider(pack, **plain) as without, pytest.raises(ValueError, match="="):
        without.load_state_dict(state)


def test_records_of_one_epoch_and_epochs_of_one_record_differ(pack):
    with provider(pack, auto_augment="trivialaugment", shuffle=False, rand_crop=False) as images:
        first, second = ([batch.data[0].copy() for batch in images] for _ in range(2))
    differ = [not np.array_equal(a, b) for a, b in zip(first, second, strict=True)]
    assert all(differ)


def test_a_cache_changes_no_byte(pack):
    keywords = RECIPES["timm"] | {"resize": 40}
    with provider(pack, **keywords) as plain:
        wanted = copies(plain)
    with provider(pack, **keywords, cache="ram") as cached:
        assert_same(wanted, copies(cached))
        cached.reset()


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "float16"])
def test_every_form_of_batches_goes_through_the_recipe(pack, layout, dtype):
    keywords = {"auto_augment": "randaugment", "random_erasing": 1.0, "erasing_value": 7.0}
    keywords |= {"layout": layout, "dtype": dtype, "mean_r": 0, "std_r": 1}
    with provider(pack, **keywords) as images:
        batch = images.next().data[0]
    if layout == "NHWC":
        batch = batch.transpose(0, 3, 1, 2)
    assert ((batch == 7).all(1).sum((1, 2)) > 10).all()


def test_image_iter_takes_an_augmenter_with_these_keywords(pack):
    augmenter = Augmenter(
        data_shape=(3, 32, 32), auto_augment="randaugment", random_erasing=1.0, brightness=0.2
    )
    with ImageIter(4, (3, 32, 32), path_imgrec=str(pack), aug_list=augmenter) as images:
        erased = [(image == 0).all(0).sum() > 10 for image in images.next().data[0]]
    assert all(erased)


@pytest.mark.parametrize("name", ["timm/deit-s", "adaface"])
def test_a_named_recipe_is_its_keywords_and_part_of_the_state(pack, name):
    recipe = NamedRecipe.named(name)
    common = {"path_imgrec": pack, "batch_size": 4, "seed": 3}
    with ImageRecordIter(**common, recipe=name, data_shape=(3, 32, 32)) as images:
        found, state = copies(images), images.state_dict()
    with ImageRecordIter(**common, **recipe.keywords | {"data_shape": (3, 32, 32)}) as images:
        assert_same(found, copies(images))
    assert NamedRecipe.of(state["settings"]["recipe"]) == recipe
    other = NamedRecipe("mine", "", recipe.keywords)
    with ImageRecordIter(**common, recipe=other, data_shape=(3, 32, 32)) as images:
        with pytest.raises(ValueError, match="recipe"):
            images.load_state_dict(state)


def test_mixing_record_images_resumes_exactly(pack):
    def mixed():
        inside = provider(pack, **RECIPES["timm"])
        return MixBatches(inside, mixup=0.8, cutmix=1.0, classes=10, seed=3)

    with mixed() as whole:
        wanted = [copies(whole) for _ in range(2)][1]
    with mixed() as first:
        list(first)
        first.reset()
        first.next()
        state = json.loads(json.dumps(first.state_dict()))
    with mixed() as second:
        second.load_state_dict(state)
        assert_same(wanted[1:], copies(second))


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        (
            {"random_erasing": 0.5, "erasing_value": 3.0, "mean_img": "mean.bin"},
            "means of channels",
        ),
        ({"num_ops": 3}, "has no effect without auto_augment"),
        ({"auto_augment": "rand-m9", "num_ops": 3}, "contains all settings"),
        ({"log_aspect_ratio": True}, "has no effect without random_resized_crop"),
    ],
)
def test_what_does_nothing_is_refused(pack, keywords, text):
    with pytest.raises(ValueError, match=text):
        provider(pack, mean_r=0, **keywords)
