"""Pipelines of torchvision: the keywords of each transform, and errors that name it."""

import pickle

import pytest

from iterators import ImageRecordIter, MixBatches, NamedRecipe, PipelineError
from iterators.images.augment.recipe import Recipe

from .library_classes import IMAGENET, NORMALISED, Interpolation, compose, fake, tv

PILLOW = {"orient": False, "resample": "pillow"}
SQUARE = tv("Resize", size=(64, 64))
SQUARED = {
    "data_shape": (3, 64, 64), "orient": False, "resample": "pillow", "resize": (64, 64),
    "interpolation": "bilinear",
}  # fmt: skip
CROP = tv("RandomResizedCrop", size=(24, 32))
CROPPED = {
    "data_shape": (3, 24, 32), "orient": False, "resample": "pillow", "random_resized_crop": True,
    "min_random_area": 0.08, "max_random_area": 1.0, "min_aspect_ratio": 0.75,
    "max_aspect_ratio": 1.25, "log_aspect_ratio": True, "interpolation": "bilinear",
}  # fmt: skip
TENSOR = tv("ToTensor")
FLIP, UPSIDE = tv("RandomHorizontalFlip"), tv("RandomVerticalFlip", p=0.2)
MIRRORED = tv("RandomApply", transforms=[tv("RandomHorizontalFlip", p=1.0)], p=0.5)
BYTES = {"dtype": "uint8"}
TURN = tv("RandomRotation", degrees=[-20.0, 20.0])


def keywords(*transforms, **more):
    return NamedRecipe.from_torchvision(compose(*transforms), **more).keywords


def size(name="CenterCrop", side=24, **more):
    return tv(name, size=(side, side), **more)


GEOMETRY = [
    ([tv("Resize", size=256), size(side=224)], {"data_shape": (3, 224, 224), "resize": 256}),
    ([tv("Resize", size=[40]), size()], {"data_shape": (3, 24, 24), "resize": 40}),
    ([tv("Resize", size=40, max_size=60), size()],
     {"data_shape": (3, 24, 24), "resize": 40, "max_side": 60, "fill_value": 0}),
    ([tv("Resize", size=None, max_size=60), size(side=60)],
     {"data_shape": (3, 60, 60), "resize": 60, "max_side": 60, "fill_value": 0}),
    ([tv("Resize", size=20), size()],
     {"data_shape": (3, 24, 24), "resize": 20, "fill_value": 0}),
    ([size(side=224)], {"data_shape": (3, 224, 224), "fill_value": 0}),
    ([tv("Resize", size=9, interpolation=Interpolation.EXACT), size(side=9)],
     {"data_shape": (3, 9, 9), "resize": 9, "interpolation": "nearest"}),
    ([tv("Resize", size=9, interpolation=3), size(side=9)],
     {"data_shape": (3, 9, 9), "resize": 9, "interpolation": "bicubic"}),
    ([SQUARE], SQUARED),
    ([SQUARE, size(side=64)], SQUARED),
    ([tv("Resize", size=40), size("RandomCrop")],
     {"data_shape": (3, 24, 24), "resize": 40, "rand_crop": True}),
    ([size("RandomCrop", padding=4)],
     {"data_shape": (3, 24, 24), "pad": 4, "fill_value": 0, "rand_crop": True}),
    ([size("RandomCrop", padding=[4, 4], padding_mode="reflect")],
     {"data_shape": (3, 24, 24), "pad": 4, "padding_mode": "reflect", "rand_crop": True}),
    ([size("RandomCrop", pad_if_needed=True, fill=(7, 7, 7))],
     {"data_shape": (3, 24, 24), "pad_if_needed": True, "fill_value": 7, "rand_crop": True}),
    ([tv("Pad", padding=[3], fill=9), size("RandomCrop")],
     {"data_shape": (3, 24, 24), "pad": 3, "fill_value": 9, "rand_crop": True}),
    ([SQUARE, tv("Pad", padding=2, padding_mode="edge")],
     {**SQUARED, "data_shape": (3, 68, 68), "pad": 2, "padding_mode": "edge"}),
    ([CROP], CROPPED),
    ([size(side=17), tv("Resize", size=12)],
     {"data_shape": (3, 12, 12), "min_crop_size": 17, "max_crop_size": 17, "fill_value": 0}),
    ([size("RandomCrop", side=17, padding=2), tv("Resize", size=12)],
     {"data_shape": (3, 12, 12), "pad": 2, "fill_value": 0, "rand_crop": True,
      "min_crop_size": 17, "max_crop_size": 17}),
    ([CROP, FLIP], {**CROPPED, "rand_mirror": True}),
    ([CROP, tv("RandomHorizontalFlip", p=0.3), UPSIDE],
     {**CROPPED, "rand_mirror": True, "mirror_p": 0.3, "flip_p": 0.2}),
    ([CROP, tv("RandomHorizontalFlip", p=1.0)], {**CROPPED, "mirror": True}),
    ([CROP, tv("RandomHorizontalFlip", p=0)], CROPPED),
    ([FLIP, size("RandomCrop")],
     {"data_shape": (3, 24, 24), "rand_crop": True, "rand_mirror": True}),
    ([FLIP, tv("Resize", size=40), size()],
     {"data_shape": (3, 24, 24), "resize": 40, "crop_position": "center", "rand_mirror": True}),
    ([CROP, FLIP, FLIP], {**CROPPED, "steps": ({"op": "hflip", "p": 0.5},) * 2}),
    ([tv("Resize", size=40), TURN, FLIP, size()],
     {"data_shape": (3, 24, 24), "resize": 40, "rotation": (-20, 20), "fill_value": 0,
      "warp_interpolation": "nearest", "crop_position": "center", "rand_mirror": True}),
    ([tv("RandomAffine", degrees=(5, 6), translate=(0.1, 0.2), scale=(0.5, 2), shear=(-3, 3)),
      size("RandomCrop")],
     {"data_shape": (3, 24, 24), "warp_interpolation": "nearest", "fill_value": 0,
      "affine": {"degrees": (5, 6), "translate": (0.1, 0.2), "scale": (0.5, 2),
                 "shear": (-3, 3, 0, 0)}, "rand_crop": True}),
    ([tv("RandomPerspective", distortion_scale=0.4, p=0.3, fill=5), size("RandomCrop")],
     {"data_shape": (3, 24, 24), "warp_interpolation": "bilinear", "fill_value": 5,
      "perspective": 0.4, "perspective_p": 0.3, "rand_crop": True}),
    ([CROP, tv("RandomRotation", degrees=(10, 30), fill=(1, 2, 3)), FLIP],
     {**CROPPED, "steps": (
         {"op": "rotate", "degrees": (10, 30), "interpolation": "nearest", "fill": (1, 2, 3)},
         {"op": "hflip", "p": 0.5})}),
    ([SQUARE, FLIP, tv("RandomRotation", degrees=(10, 30))],
     {**SQUARED, "steps": (
         {"op": "hflip", "p": 0.5},
         {"op": "rotate", "degrees": (10, 30), "interpolation": "nearest", "fill": 0})}),
]  # fmt: skip


@pytest.mark.parametrize(("transforms", "expected"), GEOMETRY)
def test_geometry(transforms, expected):
    usual = {"interpolation": "bilinear"} if "resize" in expected else {}
    usual |= {"interpolation": "bilinear"} if "max_crop_size" in expected else {}
    assert keywords(*transforms) == {**PILLOW, **usual, **BYTES, **expected}


STEPS = [
    (tv("ColorJitter", brightness=(0.6, 1.4), hue=[-0.1, 0.1]),
     {"op": "color_jitter", "brightness": (0.6, 1.4), "hue": (-0.1, 0.1)}),
    (tv("ColorJitter"), None),
    (tv("Grayscale", num_output_channels=3), {"op": "grayscale"}),
    (tv("RandomGrayscale", p=0.2), {"op": "grayscale", "p": 0.2}),
    (tv("RandomGrayscale", p=0), None),
    (tv("GaussianBlur", kernel_size=(23, 23)),
     {"op": "gaussian_blur", "kernel_size": 23, "sigma": (0.1, 2.0)}),
    (tv("GaussianBlur", kernel_size=(3, 5), sigma=[1, 1]),
     {"op": "gaussian_blur", "kernel_size": (3, 5), "sigma": (1.0, 1.0)}),
    (tv("RandomSolarize", threshold=100, p=0.2), {"op": "solarize", "threshold": 100, "p": 0.2}),
    (tv("RandomPosterize", bits=3, p=1), {"op": "posterize", "bits": 3}),
    (tv("RandomEqualize", p=0.5), {"op": "equalize", "p": 0.5}),
    (tv("RandomAutocontrast", p=0.5), {"op": "autocontrast", "p": 0.5}),
    (tv("RandomInvert", p=0.5), {"op": "invert", "p": 0.5}),
    (tv("RandomAdjustSharpness", sharpness_factor=2, p=0.5),
     {"op": "sharpness", "factor": 2.0, "p": 0.5}),
    (TURN, {"op": "rotate", "degrees": (-20, 20), "interpolation": "nearest", "fill": 0}),
    (tv("RandomAffine", degrees=(0, 0), scale=(0.9, 1.1)),
     {"op": "affine", "degrees": (0, 0), "scale": (0.9, 1.1), "interpolation": "nearest",
      "fill": 0}),
    (tv("RandomPerspective", distortion_scale=0.5),
     {"op": "perspective", "distortion_scale": 0.5, "interpolation": "bilinear", "fill": 0,
      "p": 0.5}),
]  # fmt: skip


@pytest.mark.parametrize(("transform", "step"), STEPS, ids=str)
def test_a_step(transform, step):
    expected = {} if step is None else {"steps": (step,)}
    assert keywords(CROP, transform) == {**CROPPED, **BYTES, **expected}


POLICIES = [
    (tv("RandAugment", magnitude=5, interpolation=Interpolation.BILINEAR),
     {"auto_augment": "randaugment", "num_ops": 2, "magnitude": 5,
      "augment_interpolation": "bilinear", "augment_fill": 0}),
    (tv("RandAugment", magnitude=5, num_magnitude_bins=11),
     {"auto_augment": "randaugment", "num_ops": 2, "magnitude": 15,
      "augment_interpolation": "nearest", "augment_fill": 0}),
    (tv("TrivialAugmentWide", fill=[128]),
     {"auto_augment": "trivialaugment", "augment_interpolation": "nearest", "augment_fill": 128}),
    (tv("AutoAugment", policy=fake("torchvision", "AutoAugmentPolicy", value="imagenet")),
     {"auto_augment": "autoaugment", "augment_interpolation": "nearest", "augment_fill": 0}),
    (tv("AutoAugment", policy=fake("torchvision", "AutoAugmentPolicy", value="svhn")),
     {"auto_augment": "autoaugment-svhn", "augment_interpolation": "nearest", "augment_fill": 0}),
    (tv("AugMix", severity=4),
     {"auto_augment": "augmix", "magnitude": 4, "augment_interpolation": "bilinear",
      "augment_fill": 0}),
]  # fmt: skip


@pytest.mark.parametrize(("transform", "expected"), POLICIES)
def test_a_policy_alone_is_keywords_that_exist_and_beside_others_a_step(transform, expected):
    assert keywords(CROP, transform) == {**CROPPED, **BYTES, **expected}
    Recipe(data_shape=(3, 9, 9), **expected)
    found = keywords(CROP, transform, tv("RandomInvert", p=1))["steps"]
    step = {"op": "auto_augment", "policy": expected["auto_augment"], **expected}
    del step["auto_augment"]
    assert found == (step, {"op": "invert"})


def test_combinators():
    invert, blur = tv("RandomInvert", p=1), tv("GaussianBlur", kernel_size=(3, 3))
    blurred = {"op": "gaussian_blur", "kernel_size": 3, "sigma": (0.1, 2.0)}
    both = {"op": "apply", "of": [{"op": "invert"}, blurred]}
    found = keywords(
        CROP,
        tv("RandomApply", transforms=[blur], p=0.8),
        tv("RandomApply", transforms=[invert, blur], p=0.3),
        tv("RandomApply", transforms=[tv("RandomInvert", p=0.5)], p=0.5),
        tv("RandomApply", transforms=[FLIP, TURN], p=1),
        tv("RandomChoice", transforms=[compose(invert, blur), blur], p=[0.2, 0.8]),
        tv("RandomChoice", transforms=[invert, blur], p=[0.5, 0.5]),
        tv("RandomOrder", transforms=[blur, tv("RandomChoice", transforms=[invert], p=None)]),
    )["steps"]
    turn = {"op": "rotate", "degrees": (-20, 20), "interpolation": "nearest", "fill": 0}
    assert found == (
        {**blurred, "p": 0.8},
        {**both, "p": 0.3},
        {"op": "apply", "of": [{"op": "invert", "p": 0.5}], "p": 0.5},
        {"op": "apply", "of": [{"op": "hflip", "p": 0.5}, turn]},
        {"op": "choice", "of": [both, blurred], "weights": [0.2, 0.8]},
        {"op": "choice", "of": [{"op": "invert"}, blurred]},
        {"op": "order", "of": [blurred, {"op": "choice", "of": [{"op": "invert"}]}]},
    )


@pytest.mark.parametrize(
    ("more", "flipped"), [({}, {"mirror": True}), ({"vertical_flip": True}, {"flip_p": 1.0})]
)
def test_five_and_ten_crops_are_views(more, flipped):
    places = ["top_left", "top_right", "bottom_left", "bottom_right", "center"]
    five = tuple({"crop_position": place} for place in places)
    assert keywords(tv("Resize", size=40), size("FiveCrop"))["views"] == five
    found = keywords(tv("Resize", size=40), size("TenCrop", **more))
    assert found["views"] == (*five, *({**view, **flipped} for view in five))
    assert found["data_shape"] == (3, 24, 24)


NORMALIZE = tv("Normalize")
FLOAT = tv("ToDtype", dtype="torch.float32", scale=True)
VALUES = [
    ([TENSOR], {"scale": 1 / 255}),
    ([TENSOR, NORMALIZE], NORMALISED),
    ([tv("PILToTensor")], BYTES),
    ([tv("ToImage"), tv("ToPureTensor"), tv("Identity"), tv("RGB")], BYTES),
    ([tv("PILToTensor"), tv("ConvertImageDtype", dtype="torch.float32"), NORMALIZE], NORMALISED),
    ([tv("ToImage"), FLOAT, NORMALIZE], NORMALISED),
    ([tv("ToImage"), tv("ToDtype", dtype="torch.float16", scale=False)], {"dtype": "float16"}),
    ([tv("ToImage"), tv("ToDtype", dtype="torch.float32", scale=False),
      tv("Normalize", mean=[128], std=[64])],
     {f"mean_{c}": 128 for c in "rgb"} | {f"std_{c}": 64 for c in "rgb"}),
    ([tv("ToImage"), tv("ToDtype", dtype={"others": "torch.bfloat16"}, scale=True)],
     {"dtype": "bfloat16", "scale": 1 / 255}),
    ([TENSOR, tv("ToPILImage")], BYTES),
    ([TENSOR, tv("Normalize", mean=(0, 0, 0), std=(1 / 255,) * 3)], {}),
    ([TENSOR, tv("RandomErasing", p=0.1)],
     {"scale": 1 / 255, "random_erasing": 0.1, "erasing_value": 0, "erasing_area": (0.02, 0.33),
      "erasing_ratio": (0.3, 3.3)}),
    ([TENSOR, NORMALIZE, tv("RandomErasing", value=(0, 0, 0))],
     {**NORMALISED, "random_erasing": 0.5, "erasing_value": "mean", "erasing_area": (0.02, 0.33),
      "erasing_ratio": (0.3, 3.3)}),
    ([TENSOR, NORMALIZE, tv("RandomErasing", value="random"), FLIP],
     {**NORMALISED, "random_erasing": 0.5, "erasing_value": "pixel", "erasing_area": (0.02, 0.33),
      "erasing_ratio": (0.3, 3.3), "rand_mirror": True}),
    ([TENSOR, tv("RandomErasing", value=0.2)],
     {"scale": 1 / 255, "random_erasing": 0.5, "erasing_value": 51, "erasing_area": (0.02, 0.33),
      "erasing_ratio": (0.3, 3.3)}),
    ([TENSOR, tv("RandomSolarize", threshold=0.2, p=1)],
     {"scale": 1 / 255, "steps": ({"op": "solarize", "threshold": 51},)}),
]  # fmt: skip


@pytest.mark.parametrize(("transforms", "expected"), VALUES)
def test_values(transforms, expected):
    assert keywords(SQUARE, *transforms) == {**SQUARED, **expected}


def test_grey_images():
    grey = tv("Grayscale")
    found = keywords(grey, SQUARE, TENSOR, tv("Normalize", mean=(0.5,), std=(0.25,)))
    expected = {**SQUARED, "data_shape": (1, 64, 64), "mean_r": 127.5, "std_r": 63.75}
    assert found == expected
    with pytest.raises(PipelineError, match="3 means and 3 deviations for 1 channels"):
        keywords(grey, SQUARE, TENSOR, NORMALIZE)


def test_images_that_stay_as_they_are_need_a_shape():
    found = NamedRecipe.from_torchvision([FLIP, TENSOR])
    assert found.keywords == {**PILLOW, "rand_mirror": True, "scale": 1 / 255}
    assert "give data_shape" in str(found)


def test_a_short_side_alone_needs_a_shape():
    found = NamedRecipe.from_torchvision([tv("Resize", size=256), TENSOR])
    assert found.keywords["resize"] == 256 and "data_shape" not in found.keywords
    assert "for a list of them data_shape=(3, None, None) and orient=True" in str(found)


def test_the_images_that_a_pipeline_is_given():
    digits, photos = (1, 28, 28), (3, 32, 32)

    def shape(images, *transforms):
        found = NamedRecipe.from_torchvision(transforms, images=images).keywords
        return found["data_shape"], len(found.get("steps", ()))

    grey, three = tv("Grayscale"), tv("Grayscale", num_output_channels=3)
    assert shape(digits, TENSOR) == (digits, 0)
    assert shape((3, 30, 41), tv("Resize", size=20), TENSOR) == ((3, 20, 27), 0)
    assert shape((3, 30, 41), tv("Resize", size=20, max_size=25), TENSOR) == ((3, 18, 25), 0)
    assert shape((3, 30, 41), tv("Resize", size=None, max_size=25), TENSOR) == ((3, 18, 25), 0)
    assert shape(photos, tv("Pad", padding=2), TENSOR) == ((3, 36, 36), 0)
    assert shape(photos, grey) == ((1, 32, 32), 0) and shape(digits, grey) == (digits, 0)
    assert shape(digits, three) == shape(digits, tv("RGB")) == ((3, 28, 28), 0)
    assert shape(photos, three) == shape(photos, grey, tv("RGB")) == ((3, 32, 32), 1)
    assert shape(digits, tv("RandomGrayscale", p=0.5)) == (digits, 0)
    jitter = tv("ColorJitter", brightness=(1, 2), saturation=(1, 2), hue=(0, 0.1))
    found = NamedRecipe.from_torchvision([jitter], images=digits).keywords["steps"]
    assert found == ({"op": "color_jitter", "brightness": (1, 2)},)
    with pytest.raises(PipelineError, match="3 means and 3 deviations for 1 channels"):
        shape(digits, TENSOR, NORMALIZE)
    with pytest.raises(ValueError, match="expected 1 or 3 channels"):
        shape((4, 8, 8), TENSOR)


def test_fills_of_floats_have_their_unit():
    found = keywords(TENSOR, size("RandomCrop", padding=2, fill=1.0))
    assert found["fill_value"] == 255
    with pytest.raises(PipelineError, match=r"fills with 0\.5, which is no grey level"):
        keywords(TENSOR, tv("Pad", padding=2, fill=0.5), size())


def test_integer_tensors_begin_in_python_as_images():
    lambd, image = tv("Lambda"), tv("ToImage")
    found = NamedRecipe.from_torchvision([SQUARE, image, lambd], python="tail")
    assert (found.tail, found.tail_of) == ((image, lambd), "image")


def test_presets():
    preset = {**IMAGENET, "interpolation": Interpolation.BILINEAR, "antialias": True}
    classes = fake("torchvision", "ImageClassification", resize_size=[40], crop_size=[24], **preset)
    expected = {"data_shape": (3, 24, 24), "resize": 40, "interpolation": "bilinear"}
    assert keywords(classes) == {**PILLOW, **expected, **NORMALISED}
    masks = fake("torchvision", "SemanticSegmentation", resize_size=[40], **preset)
    found = NamedRecipe.from_torchvision(masks).keywords
    assert found["resize"] == 40 and found["mean_r"] == 123.675
    boxes = fake("torchvision", "ObjectDetection")
    assert NamedRecipe.from_torchvision(boxes).keywords["scale"] == 1 / 255


def test_pixels_before_a_crop_that_resamples_nothing():
    invert = tv("RandomInvert", p=0.5)
    found = keywords(invert, size("RandomCrop"))
    assert found["steps"] == ({"op": "invert", "p": 0.5},)
    with pytest.raises(PipelineError, match=r"transform \[1\], RandomResizedCrop: stands behind a"):
        keywords(invert, CROP)


@pytest.mark.parametrize(
    "change",
    [
        tv("Grayscale", num_output_channels=3),
        tv("RandomPosterize", bits=4, p=1),
        tv("RandomSolarize", threshold=1, p=1),
        FLIP,
    ],
)
def test_a_border_that_a_change_of_colours_leaves_as_it_is(change):
    assert keywords(change, size())["fill_value"] == 0


@pytest.mark.parametrize("first", [[], [CROP]])
@pytest.mark.parametrize(
    "warp",
    [
        tv("RandomRotation", degrees=[0.0, 0.0]),
        tv("RandomAffine", degrees=[0.0, 0.0]),
        tv("RandomAffine", degrees=[0, 0], translate=(0, 0), scale=(1, 1), shear=[0, 0]),
        tv("RandomPerspective", distortion_scale=0.0),
    ],
)
def test_a_warp_without_strength_is_nothing(warp, first):
    rest = first or [size()]
    assert keywords(*first, warp, *rest[len(first) :]) == keywords(*rest)


MIXUP, CUTMIX = tv("MixUp", alpha=0.2, num_classes=10), tv("CutMix", alpha=1.0, num_classes=10)


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (MIXUP, {"mixup": 0.2, "classes": 10}),
        (tv("CutMix", alpha=1.0, num_classes=None), {"cutmix": 1.0}),
        (tv("RandomChoice", transforms=[MIXUP, CUTMIX], p=[0.25, 0.75]),
         {"mixup": 0.2, "cutmix": 1.0, "switch": 0.75, "classes": 10}),
    ],
)  # fmt: skip
def test_mixing(transform, expected):
    found = NamedRecipe.from_torchvision(transform)
    assert (found.keywords, found.mixing) == ({}, expected)
    assert str(found).splitlines()[1] == "MixBatches:"
    assert set(expected) <= set(MixBatches.__init__.__annotations__) | {
        "mixup", "cutmix", "switch", "classes"
    }  # fmt: skip


def test_a_recipe_prints_itself_as_keywords():
    found = NamedRecipe.from_torchvision(compose(SQUARE, FLIP, TENSOR, NORMALIZE))
    assert str(found).splitlines() == [
        "torchvision",
        "ImageRecordIter:",
        *(
            f"    {name}={value!r}"
            for name, value in {**SQUARED, "rand_mirror": True, **NORMALISED}.items()
        ),
    ]
    assert NamedRecipe.from_json(found.to_json()) == found


ERRORS = [
    ([SQUARE, tv("ElasticTransform")], (1,), "has no counterpart here: drop it, or put it behind"),
    ([SQUARE, fake("mine", "Resize", size=3)], (1,), "has no counterpart here"),
    ([SQUARE, fake("timm", "ToNumpy")], (1,), "give the pipeline to NamedRecipe.from_timm"),
    ([SQUARE, compose(TENSOR, tv("Lambda"))], (1, 1), "has no counterpart here"),
    ([SQUARE, tv("RandomApply", transforms=[FLIP, SQUARE], p=1)], (1, 1), "inside RandomApply"),
    ([SQUARE, TENSOR, tv("RandomErasing", value="random"), NORMALIZE], (2,), "numbers that Normal"),
    ([SQUARE, tv("RandomErasing", value="random")], (1,), "draws normal numbers among integers"),
    ([tv("ToImage"), tv("Resize", size=(8, 8), antialias=False)], (1,), "has antialias=False"),
    ([TENSOR, tv("Resize", size=(8, 8), interpolation=0)], (1,), "resamples tensors by 'nearest'"),
    ([TENSOR, tv("Resize", size=(8, 8), interpolation=3)], (1,), "resamples floats by bicubic"),
    ([SQUARE, TENSOR, TURN], (2,), "moves pixels of tensors"),
    ([SQUARE, TENSOR, tv("ColorJitter", hue=(0, 0.1))], (2,), "turns hues of tensors"),
    ([SQUARE, tv("ToPILImage", mode="L")], (1,), "has mode='L', and only None has"),
    ([tv("Resize", size=9, interpolation="cubic")], (0,), "has the interpolation 'cubic'"),
    ([SQUARE, CROP, SQUARE], (2,), "stands behind a crop"),
    ([SQUARE, SQUARE], (1,), "is the second of its kind"),
    ([tv("Resize", size=40, interpolation=3), CROP], (1,), "resamples in another way"),
    ([CROP, size()], (1,), "is a second crop, behind RandomResizedCrop [0]"),
    ([tv("ColorJitter", hue=(0, 0.1)), CROP], (0,), "stands in front of RandomResizedCrop [1]"),
    ([size("RandomCrop", padding=(1, 2))], (0,), "one number for all four sides"),
    ([size("RandomCrop", padding=1, fill=(1, 2, 3))], (0,), "fills with (1, 2, 3)"),
    ([size("RandomCrop", pad_if_needed=True, padding_mode="edge")], (0,), "the constant mode"),
    ([tv("Pad", padding=1, fill=7), size()], (1,), "fills with something else"),
    ([CROP, tv("Pad", padding=1)], (1,), "stands behind a crop"),
    ([tv("RandomRotation", degrees=(1, 2), expand=True)], (0,), "drop expand"),
    ([tv("RandomRotation", degrees=(1, 2), center=(3, 3))], (0,), "drop center"),
    ([TURN, tv("Resize", size=40), size()], (1,), "stands behind a rotation"),
    ([TURN, TURN, size()], (1,), "is a second warp before the crop"),
    ([FLIP, tv("RandomRotation", degrees=(1, 2)), size()], (1,), "is not symmetric"),
    ([FLIP, size("FiveCrop")], (1,), "stands behind a flip"),
    ([SQUARE, TENSOR, NORMALIZE, NORMALIZE], (3,), "is the second of its kind"),
    ([SQUARE, NORMALIZE], (1,), "gets integers"),
    ([SQUARE, TENSOR, NORMALIZE, tv("RandomInvert", p=1)], (3,), "stands behind Normalize"),
    ([SQUARE, TENSOR, tv("RandomErasing"), tv("RandomInvert", p=1)], (2,), "stands in front of"),
    ([SQUARE, TENSOR, NORMALIZE, tv("RandomErasing", value=0.5)], (3,), "different levels"),
    ([SQUARE, TENSOR, tv("Normalize", mean=(0,), std=(0,))], (2,), "divides by 0"),
    ([SQUARE, tv("ToDtype", dtype="torch.int64", scale=True)], (1,), "makes int64"),
    ([SQUARE, TENSOR, NORMALIZE, tv("ToDtype", dtype="torch.uint8", scale=True)], (3,), "normalis"),
    ([SQUARE, tv("TrivialAugmentWide", num_magnitude_bins=5)], (1,), "num_magnitude_bins=31"),
    ([SQUARE, tv("AugMix", mixture_width=2)], (1,), "has mixture_width=2, and only 3 has"),
    ([SQUARE, tv("Grayscale", num_output_channels=2)], (1,), "makes 2 channels"),
    ([SQUARE, tv("GaussianBlur", sigma=(1, 2))], (1,), "has no attribute 'kernel_size'"),
    ([MIXUP, CUTMIX], (1,), "is a second mixing"),
    *(([TENSOR, tv("RandomErasing"), crop], (1,), "stands in front of")
      for crop in (size(), size("RandomCrop"), size("FiveCrop"), size("TenCrop"))),
    *(([TENSOR, NORMALIZE, crop], (2,), "stands behind Normalize")
      for crop in (size(), size("RandomCrop", pad_if_needed=True), size("RandomCrop", padding=1))),
    *(([change, crop], (1,), "pads behind a change of colours")
      for change in (tv("RandomInvert", p=1), tv("RandomSolarize", threshold=0, p=1))
      for crop in (size(), size("RandomCrop", pad_if_needed=True))),
    ([tv("RandomPosterize", bits=4, p=1), size("RandomCrop", pad_if_needed=True, fill=7)], (1,),
     "pads behind a change of colours"),
    *(([flip, tv("Resize", size=(9, 9), interpolation=0)], (1,), "nearest pixels of what")
      for flip in (FLIP, UPSIDE, MIRRORED)),
    ([FLIP, tv("RandomResizedCrop", size=9, interpolation=0)], (1,), "nearest pixels of what"),
]  # fmt: skip


@pytest.mark.parametrize(("transforms", "position", "text"), ERRORS)
def test_an_error_names_the_transform_its_position_and_what_to_do(transforms, position, text):
    with pytest.raises(PipelineError) as caught:
        keywords(*transforms)
    error = caught.value
    assert (error.position, text in error.reason) == (position, True), error
    assert f"{error.transform}: {error.reason}" in str(error)
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.position) == (str(error), position)


def test_the_tail():
    double, lambd = tv("Lambda"), tv("Lambda")
    found = NamedRecipe.from_torchvision([SQUARE, TENSOR, double, NORMALIZE], python="tail")
    assert found.keywords == {**SQUARED, "scale": 1 / 255}
    assert (found.tail, found.tail_of) == ((double, NORMALIZE), "tensor")
    assert str(found).splitlines()[-3:] == ["in Python:", "    Lambda", "    Normalize"]
    with pytest.raises(TypeError, match="calls Lambda, Normalize, and JSON has no functions"):
        found.to_json()
    found = NamedRecipe.from_torchvision([SQUARE, lambd, TENSOR], python="tail")
    assert found.keywords == {**SQUARED, "dtype": "uint8", "layout": "NHWC"}
    assert (found.tail, found.tail_of) == ((lambd, TENSOR), "image")
    with pytest.raises(PipelineError, match=r'\[0\], Lambda: .*python="tail" cannot help'):
        NamedRecipe.from_torchvision([lambd, SQUARE], python="tail")
    with pytest.raises(ValueError, match="python='yes': expected None or \"tail\""):
        NamedRecipe.from_torchvision([SQUARE], python="yes")
    assert NamedRecipe.from_torchvision([SQUARE], python="tail").tail == ()


def test_all_keywords_of_today_are_accepted_by_the_iterator():
    found = keywords(FLIP, size("RandomCrop", padding=4), POLICIES[0][0], TENSOR, NORMALIZE)
    known = ImageRecordIter.__signature__.parameters
    assert set(found) - {"resample", "orient"} <= set(known)
    assert IMAGENET["mean"][0] * 255 == pytest.approx(found["mean_r"])
