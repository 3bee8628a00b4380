"""Pipelines of albumentations as keywords."""

import pytest

from iterators import NamedRecipe, PipelineError

from .library_classes import IMAGENET, NORMALISED, compose, fake

DEFAULTS = {
    "Resize": {"interpolation": 1},
    "SmallestMaxSize": {"interpolation": 1, "max_size_hw": None},
    "CenterCrop": {"pad_if_needed": False},
    "RandomCrop": {"pad_if_needed": False},
    "RandomResizedCrop": {"interpolation": 1, "scale": (0.08, 1.0), "ratio": (0.75, 1.25)},
    "Normalize": {**IMAGENET, "max_pixel_value": 255.0, "normalization": "standard"},
    "Rotate": {"interpolation": 1, "border_mode": 0, "fill": 0, "crop_border": False},
    "ColorJitter": {
        "brightness": (0.8, 1.2), "contrast": (1, 1), "saturation": (1, 1), "hue": (0, 0),
    },
    "ToGray": {"num_output_channels": 3, "method": "weighted_average"},
    "Equalize": {"by_channels": True, "mode": "pil", "mask": None},
    "AutoContrast": {"cutoff": 0, "method": "pil"},
}  # fmt: skip


def alb(name, **attributes):
    return fake("albumentations", name, **{"p": 1} | DEFAULTS.get(name, {}) | attributes)


def keywords(*transforms):
    pipeline = compose(*transforms, library="albumentations")
    found = NamedRecipe.from_albumentations(pipeline).keywords
    assert found.pop("scaled_decode") is False
    return found


SQUARE = alb("Resize", height=64, width=48)
SQUARED = {"data_shape": (3, 64, 48), "resize": (64, 48), "inter_method": 1}
CROP = alb("RandomResizedCrop", size=(24, 32))
CROPPED = {
    "data_shape": (3, 24, 32), "random_resized_crop": True, "min_random_area": 0.08,
    "max_random_area": 1.0, "min_aspect_ratio": 0.75, "max_aspect_ratio": 1.25,
    "log_aspect_ratio": True, "inter_method": 1,
}  # fmt: skip
BYTES = {"dtype": "uint8"}


@pytest.mark.parametrize(
    ("transforms", "expected"),
    [
        ([SQUARE], {**SQUARED, **BYTES}),
        ([SQUARE, alb("ToTensorV2")], {**SQUARED, **BYTES}),
        ([alb("SmallestMaxSize", max_size=256, interpolation=3),
          alb("CenterCrop", height=224, width=200)],
         {"data_shape": (3, 224, 200), "resize": 256, "inter_method": 3, **BYTES}),
        ([alb("RandomCrop", height=32, width=32), alb("HorizontalFlip", p=0.5)],
         {"data_shape": (3, 32, 32), "rand_crop": True, "rand_mirror": True, **BYTES}),
        ([CROP, alb("VerticalFlip", p=0.5)], {**CROPPED, "flip_p": 0.5, **BYTES}),
        ([alb("RandomResizedCrop", height=24, width=32)], {**CROPPED, **BYTES}),
        ([SQUARE, alb("Normalize"), alb("ToTensorV2")], {**SQUARED, **NORMALISED}),
        ([SQUARE, alb("Normalize", mean=0.5, std=0.25, max_pixel_value=100.0)],
         {**SQUARED, **{f"mean_{c}": 50 for c in "rgb"}, **{f"std_{c}": 25 for c in "rgb"}}),
        ([SQUARE, alb("ToFloat", max_value=None)], {**SQUARED, "scale": 1 / 255}),
        ([SQUARE, alb("Rotate", limit=(-9, 9), fill=(3, 3))],
         {**SQUARED, "rotation": (-9, 9), "warp_interpolation": "bilinear", "fill_value": 3,
          **BYTES}),
    ],
)  # fmt: skip
def test_geometry_and_values(transforms, expected):
    assert keywords(*transforms) == expected


STEPS = [
    (alb("ColorJitter", p=0.8), {"op": "color_jitter", "brightness": (0.8, 1.2), "p": 0.8}),
    (alb("ColorJitter", brightness=(1, 1), hue=(-0.1, 0.1)),
     {"op": "color_jitter", "hue": (-0.1, 0.1)}),
    (alb("ToGray", p=0.2), {"op": "grayscale", "p": 0.2}),
    (alb("GaussianBlur", blur_limit=(3, 3), sigma_limit=(0.1, 2)),
     {"op": "gaussian_blur", "kernel_size": 3, "sigma": (0.1, 2)}),
    (alb("Solarize", threshold_range=(0.2, 0.2)), {"op": "solarize", "threshold": 51}),
    (alb("Solarize", threshold=(51, 51)), {"op": "solarize", "threshold": 51}),
    (alb("Posterize", num_bits=(4, 4)), {"op": "posterize", "bits": 4}),
    (alb("Equalize"), {"op": "equalize"}),
    (alb("AutoContrast"), {"op": "autocontrast"}),
    (alb("InvertImg", p=0.5), {"op": "invert", "p": 0.5}),
    (alb("Rotate", limit=(-9, 9), p=0.5),
     {"op": "rotate", "degrees": (-9, 9), "interpolation": "bilinear", "fill": 0, "p": 0.5}),
    (alb("OneOf", transforms=[alb("InvertImg", p=0.2), alb("Equalize", p=0.6)],
         transforms_ps=[0.25, 0.75]),
     {"op": "choice", "of": [{"op": "invert"}, {"op": "equalize"}], "weights": [0.25, 0.75]}),
    (alb("OneOf", transforms=[alb("InvertImg"), alb("NoOp")], transforms_ps=[0.5, 0.5], p=0.4),
     {"op": "apply", "p": 0.4,
      "of": [{"op": "choice", "of": [{"op": "invert"}, {"op": "invert", "p": 0.0}]}]}),
]  # fmt: skip


@pytest.mark.parametrize(("transform", "step"), STEPS)
def test_a_step(transform, step):
    assert keywords(CROP, transform) == {**CROPPED, **BYTES, "steps": (step,)}


def test_equalize_says_that_it_is_pillows():
    assert "Equalize is Pillow's" in str(NamedRecipe.from_albumentations([CROP, alb("Equalize")]))


def test_a_crop_takes_the_fill_of_a_warp():
    turn = alb("Rotate", limit=(-9, 9), fill=3)
    found = keywords(SQUARE, turn, alb("CenterCrop", height=9, width=9))
    assert found["fill_value"] == 3


def test_a_fill_of_floats_has_their_unit():
    unit = alb("ToFloat", max_value=None)
    assert keywords(SQUARE, unit, alb("Rotate", limit=(-9, 9), fill=1.0))["fill_value"] == 255


@pytest.mark.parametrize(
    ("transform", "text"),
    [
        (alb("CLAHE"), "has no counterpart here"),
        (fake("mine", "HorizontalFlip", p=1), "has no counterpart here"),
        (alb("Sequential", transforms=[], p=0.5), "is done with p=0.5"),
        (alb("OneOf", transforms=[alb("CLAHE")], transforms_ps=[1]), "inside OneOf: move it out"),
        (alb("Rotate", limit=(-9, 9), border_mode=4), "give border_mode=0"),
        (alb("Rotate", limit=(-9, 9), interpolation=4), "OpenCV's 0, 1 and 2"),
        (alb("Rotate", limit=(-9, 9), crop_border=True), "drop crop_border"),
        (alb("GaussianBlur", blur_limit=(3, 7), sigma_limit=(1, 2)), "draws the kernel"),
        (alb("GaussianBlur", blur_limit=(3, 3), sigma_limit=(0, 0)), "derives sigma"),
        (alb("Solarize", threshold_range=(0.2, 0.5)), "draws its threshold"),
        (alb("Posterize", num_bits=(3, 4)), "draws or varies its bits"),
        (alb("Equalize", by_channels=False), "by_channels=True"),
        (alb("Equalize", mode="cv"), "mode='pil'"),
        (alb("AutoContrast", method="cdf"), "method='pil'"),
        (alb("ToGray", method="desaturation"), "give 'weighted_average'"),
        (alb("ToGray", num_output_channels=1), "makes one channel"),
        (alb("Normalize", normalization="image"), "normalises each image by itself"),
    ],
)
def test_what_has_no_counterpart(transform, text):
    with pytest.raises(PipelineError, match=text) as caught:
        keywords(SQUARE, transform)
    assert caught.value.position[0] == 1


@pytest.mark.parametrize(
    ("transform", "text"),
    [
        (alb("Resize", height=9, width=9, p=0.5), "is done with probability 0.5"),
        (alb("Resize", height=9, width=9, interpolation=7), "has the interpolation 7"),
        (alb("SmallestMaxSize", max_size=[9, 12]), "draws its size"),
        (alb("RandomCrop", height=9, width=9, pad_if_needed=True), "pads images that are smaller"),
    ],
)
def test_geometry_without_counterpart(transform, text):
    with pytest.raises(PipelineError, match=text):
        keywords(transform)


def test_the_tail_gets_arrays():
    clahe = alb("CLAHE")
    found = NamedRecipe.from_albumentations([SQUARE, clahe], python="tail")
    assert (found.tail, found.tail_of) == ((clahe,), "array")
    assert (found.keywords["dtype"], found.keywords["layout"]) == ("uint8", "NHWC")


BOX = {"p": 1, "interpolation": 1, "max_size": 48, "max_size_hw": None}
PADDED = {
    "p": 1, "min_height": 48, "min_width": 48, "border_mode": 0, "position": "center", "fill": 7,
}  # fmt: skip


def test_a_letterbox():
    found = keywords(fake("albumentations", "LongestMaxSize", **BOX),
                     fake("albumentations", "PadIfNeeded", **PADDED))  # fmt: skip
    expected = {"data_shape": (3, 48, 48), "resize": "contain", "fill_value": 7, "inter_method": 1}
    assert expected.items() <= found.items()


@pytest.mark.parametrize(
    ("box", "pad", "text"),
    [
        ({}, {"border_mode": 4}, "give border_mode=0"),
        ({}, {"position": "top_left"}, 'position="center"'),
        ({}, {"min_width": 50}, "give both one"),
        ({"max_size_hw": (9, 9)}, {}, "has max_size_hw=.9, 9., and only None"),
        ({"area_for_downscale": "image"}, {}, "area_for_downscale='image'"),
        ({"max_size": (9, 8)}, {}, "draws its size"),
        ({}, {"pad_height_divisor": 32}, "pad_height_divisor=32"),
    ],
)
def test_what_is_no_letterbox(box, pad, text):
    parts = [fake("albumentations", "LongestMaxSize", **BOX | box)]
    parts.append(fake("albumentations", "PadIfNeeded", **PADDED | pad))
    with pytest.raises(PipelineError, match=text):
        keywords(*parts)


LONGEST, PAD = (
    fake("albumentations", "LongestMaxSize", **BOX),
    fake("albumentations", "PadIfNeeded", **PADDED),
)
BLACK = fake("albumentations", "PadIfNeeded", **PADDED | {"fill": 0})


@pytest.mark.parametrize(
    ("transforms", "text"),
    [
        ([LONGEST, alb("Normalize"), BLACK], "PadIfNeeded: stands behind Normalize"),
        ([alb("Rotate", limit=(-9, 9), fill=7), LONGEST, PAD], "stands behind other changes"),
        ([LONGEST, LONGEST, PAD], "stands behind other changes"),
        ([LONGEST, alb("CenterCrop", height=48, width=48)], 'resize="contain"'),
    ],
)
def test_what_is_done_in_another_order_than_a_letterbox(transforms, text):
    with pytest.raises(PipelineError, match=text):
        keywords(*transforms)


def test_the_long_side_alone():
    longest = LONGEST
    found = NamedRecipe.from_albumentations([longest])
    assert {"resize": 48, "max_side": 48}.items() <= found.keywords.items()
    assert "rounds the short side" in str(found)
    with pytest.raises(PipelineError, match='smaller than CenterCrop.*resize="contain"'):
        keywords(longest, alb("CenterCrop", height=24, width=24))
