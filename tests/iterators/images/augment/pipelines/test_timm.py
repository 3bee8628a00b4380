"""What timm's create_transform returns, and its configurations, as keywords."""

import math

import pytest

from iterators import NamedRecipe, PipelineError
from iterators.images.augment.policies import timm_policy
from iterators.images.augment.policy_tables import AUTO_POLICIES, TIMM_SETS
from iterators.images.augment.recipe import Recipe

from .library_classes import NORMALISED, Interpolation, compose, fake, tv

CONFIG = {
    "input_size": (3, 224, 224), "interpolation": "bicubic", "mean": (0.485, 0.456, 0.406),
    "std": (0.229, 0.224, 0.225), "crop_pct": 0.9, "crop_mode": "center",
}  # fmt: skip


def timm(name, /, **attributes):
    return fake("timm", name, **attributes)


def keywords(*transforms):
    return NamedRecipe.from_timm(compose(*transforms)).keywords


CROP = timm(
    "RandomResizedCropAndInterpolation",
    size=(24, 32), scale=(0.08, 1.0), ratio=(0.75, 1.25), interpolation=Interpolation.BICUBIC,
)  # fmt: skip
CROPPED = {
    "data_shape": (3, 24, 32), "orient": False, "resample": "pillow", "random_resized_crop": True,
    "min_random_area": 0.08, "max_random_area": 1.0, "min_aspect_ratio": 0.75,
    "max_aspect_ratio": 1.25, "log_aspect_ratio": True, "interpolation": "bicubic",
}  # fmt: skip
SQUARE = tv("Resize", size=(64, 64))
ENDS = (math.log(0.3), math.log(1 / 0.3))


def erasing(**more):
    usual = {
        "probability": 0.25, "min_area": 0.02, "max_area": 1 / 3, "log_aspect_ratio": ENDS,
        "min_count": 1, "max_count": 1, "num_splits": 0, "rand_color": False, "per_pixel": False,
    }  # fmt: skip
    return timm("RandomErasing", **usual | more)


class Tensor32:
    """A tensor of float32, as far as numbers are read from one."""

    dtype = "torch.float32"

    def __init__(self, values):
        self.values = values

    def item(self):
        return self.values

    def __iter__(self):
        if isinstance(self.values, float):
            raise TypeError
        return iter(map(Tensor32, self.values))


def test_training():
    mean = Tensor32([0.48500001430511475, 0.4560000002384186, 0.4059999883174896])
    std = Tensor32([0.2290000021457672, 0.2240000069141388, 0.22499999403953552])
    transforms = [timm("MaybeToTensor"), tv("Normalize", mean=mean, std=std), erasing()]
    found = keywords(CROP, tv("RandomHorizontalFlip"), *transforms)
    assert found == {
        **CROPPED, **NORMALISED, "rand_mirror": True, "random_erasing": 0.25,
        "erasing_value": "mean", "erasing_area": (0.02, 1 / 3),
        "erasing_ratio": (0.3, pytest.approx(1 / 0.3)),
    }  # fmt: skip
    many = keywords(SQUARE, timm("MaybeToTensor"), erasing(per_pixel=True, max_count=3))
    assert (many["erasing_value"], many["erasing_count"]) == ("pixel", (1, 3))
    coloured = keywords(SQUARE, timm("MaybeToTensor"), erasing(rand_color=True))
    assert coloured["erasing_value"] == "colour"


@pytest.mark.parametrize("name", ["MaybePILToTensor", "ToNumpy"])
def test_integers_for_a_prefetcher(name):
    assert keywords(CROP, timm(name)) == {**CROPPED, "dtype": "uint8"}


def test_its_own_tensors_are_grey_levels():
    own = timm("ToTensor", dtype="torch.float32")
    assert keywords(CROP, own) == CROPPED
    assert keywords(CROP, tv("ToTensor")) == {**CROPPED, "scale": 1 / 255}


def test_three_stages_are_one_pipeline():
    stages = compose(CROP), compose(tv("RandomInvert", p=1)), compose(timm("MaybeToTensor"))
    found = NamedRecipe.from_timm(stages).keywords
    assert found == {**CROPPED, "steps": ({"op": "invert"},), "scale": 1 / 255}


FILL = (124, 116, 104)


def op(name, p=0.5, magnitude=10, std=0, most=None, resample=3):
    return timm(
        "AugmentOp", name=name, prob=p, magnitude=magnitude, magnitude_std=std,
        magnitude_max=most, kwargs={"fillcolor": FILL, "resample": resample},
    )  # fmt: skip


def weights(table):
    even = len(set(table.values())) == 1
    return None if even else [weight / sum(table.values()) for weight in table.values()]


@pytest.mark.parametrize(
    ("text", "key", "values"),
    [
        ("rand-m9-mstd0.5-inc1", "inc", {"magnitude": 9, "std": 0.5}),
        ("rand-m10", "", {}),
        ("rand-m7-n3-p0.3-mstd101-mmax12-tweights", "weights",
         {"magnitude": 7, "p": 0.3, "std": math.inf, "most": 12}),
        ("rand-m10-t3a", "3a", {}),
        ("rand-m10-t3aw", "3aw", {}),
    ],
)  # fmt: skip
def test_randaugment(text, key, values):
    ops = [op(name, **values) for name in TIMM_SETS[key]]
    layers = 3 if "n3" in text else 2
    policy = timm("RandAugment", ops=ops, num_layers=layers, choice_weights=weights(TIMM_SETS[key]))
    found = keywords(SQUARE, policy)
    assert timm_policy(found["auto_augment"]) == timm_policy(text)
    assert (found["augment_interpolation"], found["augment_fill"]) == ("bicubic", FILL)
    Recipe(data_shape=(3, 9, 9), auto_augment=found["auto_augment"], augment_fill=FILL)


@pytest.mark.parametrize("text", ["augmix-m5-w4-d2", "augmix-m3-w3-a0.5-b1-mstd0.5"])
def test_augmix(text):
    simple = text.startswith("augmix-m5")
    ops = [
        op(name, 1.0, 5 if simple else 3, math.inf if simple else 0.5, resample=(2, 3))
        for name in TIMM_SETS["augmix"]
    ]
    values = {"width": 4, "depth": 2, "alpha": 1.0, "blended": False}
    values = values if simple else {"width": 3, "depth": -1, "alpha": 0.5, "blended": True}
    found = keywords(SQUARE, timm("AugMixAugment", ops=ops, **values))
    assert timm_policy(found["auto_augment"]) == timm_policy(text)
    assert found["augment_interpolation"] == "random"


@pytest.mark.parametrize(
    ("text", "table", "posterize"),
    [
        ("original-mstd0.5", "imagenet", "PosterizeOriginal"),
        ("originalr", "imagenet", "PosterizeIncreasing"),
        ("v0", "v0", "Posterize"),
        ("v0r", "v0", "PosterizeIncreasing"),
        ("3a", "3a", "Posterize"),
    ],
)
def test_autoaugment(text, table, posterize):
    std = 0.5 if "mstd" in text else 0
    policy = [
        [op(posterize if name == "Posterize" else name, p, level, std) for name, p, level in chain]
        for chain in AUTO_POLICIES[table]
    ]
    found = keywords(SQUARE, timm("AutoAugment", policy=policy))
    assert found["auto_augment"] == text
    with pytest.raises(PipelineError, match="has a policy that timm does not name"):
        keywords(SQUARE, timm("AutoAugment", policy=policy[1:]))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, {"resize": 248}),
        ({"crop_pct": None, "crop_mode": None, "interpolation": ""},
         {"resize": 256, "interpolation": "bilinear"}),
        ({"crop_pct": 1.0}, {"resize": 224}),
        ({"crop_mode": "squash"}, {"resize": (248, 248)}),
        ({"crop_mode": "squash", "input_size": (3, 90, 180)},
         {"resize": (100, 200), "data_shape": (3, 90, 180)}),
    ],
)  # fmt: skip
def test_a_configuration_is_the_transform_of_evaluation(change, expected):
    usual = {"data_shape": (3, 224, 224), "orient": False, "resample": "pillow"}
    usual |= {"interpolation": "bicubic"}
    assert NamedRecipe.from_timm(CONFIG | change).keywords == {**usual, **NORMALISED, **expected}
    config = timm("PretrainedCfg")
    vars(config).update(CONFIG | change)
    assert NamedRecipe.from_timm(config) == NamedRecipe.from_timm(CONFIG | change)


def test_crop_or_pad():
    crop = timm("CenterCropOrPad", size=(24, 24), fill=[7, 7, 7], padding_mode="constant")
    assert keywords(crop, timm("ToNumpy")) == {
        "data_shape": (3, 24, 24), "orient": False, "resample": "pillow", "fill_value": 7,
        "dtype": "uint8",
    }  # fmt: skip


def test_mixup():
    mix = timm(
        "Mixup", mixup_alpha=0.8, cutmix_alpha=1.0, cutmix_minmax=None, mix_prob=0.9,
        switch_prob=0.4, label_smoothing=0.1, num_classes=100, mode="batch",
    )  # fmt: skip
    assert NamedRecipe.from_timm(mix).mixing == {
        "mixup": 0.8, "cutmix": 1.0, "switch": 0.4, "prob": 0.9, "label_smoothing": 0.1,
        "classes": 100,
    }  # fmt: skip


def ratio(**more):
    usual = {
        "size": (40, 40), "longest": 0.0, "random_scale_prob": 0.0, "random_aspect_prob": 0.0,
        "interpolation": Interpolation.BILINEAR,
    }  # fmt: skip
    return timm("ResizeKeepRatio", **usual | more)


def test_an_interpolation_that_is_drawn():
    drawn = (Interpolation.BILINEAR, Interpolation.BICUBIC)
    crop = timm(
        "RandomResizedCropAndInterpolation",
        size=(24, 32), scale=(0.08, 1.0), ratio=(0.75, 1.25), interpolation=drawn,
    )  # fmt: skip
    assert keywords(crop)["interpolation"] == "random"


def test_resize_keep_ratio_to_the_long_side():
    pad = {"fill": (7, 7, 7), "padding_mode": "constant"}
    found = keywords(ratio(longest=1.0), timm("CenterCropOrPad", size=(40, 40), **pad))
    assert (found["resize"], found["data_shape"]) == ("contain", (3, 40, 40))
    assert found["fill_value"] == 7
    found = keywords(ratio(longest=1.0), timm("CenterCropOrPad", size=(24, 24), **pad))
    assert (found["resize"], found["max_side"], found["data_shape"]) == (40, 40, (3, 24, 24))


def test_resize_keep_ratio_says_that_it_rounds():
    found = NamedRecipe.from_timm([ratio(), tv("CenterCrop", size=(24, 24))])
    assert (found.keywords["resize"], "rounds the long side" in str(found)) == (40, True)


@pytest.mark.parametrize(
    ("transform", "text"),
    [
        (ratio(longest=0.5), "resizes to a side between"),
        (ratio(random_scale_prob=0.5), "draws a scale: use train_crop_mode='rrc'"),
        (timm("TrimBorder", border_size=4), "has no counterpart"),
        (timm("RandomResizedCropAndInterpolation", size=(2, 2), scale=(1, 1), ratio=(1, 1),
              interpolation=(Interpolation.BILINEAR, "lanczos")),
         "draws one of bilinear, lanczos"),
        (timm("CenterCropOrPad", size=2, fill=(1, 2, 3), padding_mode="constant"), "fills with"),
        (timm("CenterCropOrPad", size=2, fill=0, padding_mode="reflect"), "constant mode"),
        (erasing(num_splits=2), "leaves a part of the batch alone"),
        (timm("RandAugment", ops=[op("Invert")], num_layers=2, choice_weights=None),
         "does not name"),
        (timm("RandAugment", num_layers=2, choice_weights=None,
              ops=[op(name, magnitude=len(name)) for name in TIMM_SETS[""]]),
         "differ in magnitude"),
        (timm("Mixup", mode="elem", cutmix_minmax=None), "mixes samples apart"),
    ],
)  # fmt: skip
def test_what_has_no_counterpart(transform, text):
    with pytest.raises(PipelineError, match=text) as caught:
        NamedRecipe.from_timm([transform])
    assert (caught.value.position, caught.value.transform) == ((0,), type(transform).__name__)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"crop_mode": "border"}, "crop_mode"),
        ({"input_size": (3, 90, 180)}, "crop_mode"),
        ({"input_size": (1, 90, 90)}, "input_size"),
    ],
)
def test_a_configuration_that_has_no_counterpart(change, name):
    with pytest.raises(PipelineError) as caught:
        NamedRecipe.from_timm(CONFIG | change)
    assert caught.value.transform == name
