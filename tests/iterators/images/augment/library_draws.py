"""What torchvision and timm draw: which operations, how strong, how many, in numbers.

``python tests/iterators/images/augment/library_draws.py`` draws 100,000 images of each
configuration with the libraries themselves and stores what came out in
``tests/golden/draws.json``; with the word ``warps`` or ``crops`` behind it, those alone.  The
libraries' own code runs; only their operations on pixels are replaced by notes.
"""

import json
import random
import sys
from collections import Counter
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).parents[3] / "golden" / "draws.json"
SIZE = 224, 160  # width, height
COUNT = 100_000
MOST_VALUES = 64  # beyond that an operation's values are told by quantiles
QUANTILES = 101

#: Keywords of ours for every configuration of theirs.
TORCHVISION = {
    "RandAugment()": {"auto_augment": "randaugment"},
    "RandAugment(3, 14)": {"auto_augment": "randaugment", "num_ops": 3, "magnitude": 14},
    "TrivialAugmentWide()": {"auto_augment": "trivialaugment"},
    "AutoAugment(AutoAugmentPolicy.IMAGENET)": {"auto_augment": "autoaugment"},
    "AutoAugment(AutoAugmentPolicy.CIFAR10)": {"auto_augment": "autoaugment-cifar10"},
    "AutoAugment(AutoAugmentPolicy.SVHN)": {"auto_augment": "autoaugment-svhn"},
    "AugMix()": {"auto_augment": "augmix"},
    "AugMix(5)": {"auto_augment": "augmix", "magnitude": 5},
}
TIMM = (
    "rand-m9-mstd0.5-inc1",
    "rand-m9-mstd0.5",
    "rand-m7-n3-p0.8-mstd101-inc1",
    "rand-m12-mmax15-mstd1-inc1",
    "rand-m9-n3-mstd0.5-tweights",
    "rand-m9-t3a-inc1",
    "original-mstd0.5",
    "originalr",
    "v0",
    "v0r-mstd0.5",
    "3a",
    "augmix-m5-w4-d2",
    "augmix-m3-mstd0.5",
)

#: Keywords of ours for every warp of torchvision, with its size (width, height); see `WARP_SIZE`.
WARPS = {
    "RandomRotation((-30, 75))": {"rotation": (-30, 75)},
    "RandomAffine((-10, 50), (0.1, 0.3), (0.5, 1.5), (-5, 20, 3, 9))": {
        "affine": {
            "degrees": (-10, 50),
            "translate": (0.1, 0.3),
            "scale": (0.5, 1.5),
            "shear": (-5, 20, 3, 9),
        }
    },
    "RandomAffine(20, shear=15)": {"affine": {"degrees": 20, "shear": 15}},
    "RandomPerspective(0.4, 0.3)": {"perspective": 0.4, "perspective_p": 0.3},
    "RandomHorizontalFlip(0.2)": {"rand_mirror": True, "mirror_p": 0.2},
    "RandomVerticalFlip(0.7)": {"flip_p": 0.7},
}
#: Few enough that every shift of an image and every corner comes often.
WARP_SIZE = 48, 31

#: Random crops of torchvision, as keywords; `CROP_SIZE` is (width, height).
_PILLOW = {"resample": "pillow", "interpolation": "bilinear"}
_AREA = {**_PILLOW, "random_resized_crop": True, "log_aspect_ratio": True}
CROPS = {
    "RandomResizedCrop(224)": {
        **_AREA, "data_shape": (3, 224, 224), "min_random_area": 0.08, "max_random_area": 1.0,
        "min_aspect_ratio": 3 / 4, "max_aspect_ratio": 4 / 3,
    },
    "RandomResizedCrop(96, (0.3, 0.9), (0.5, 3))": {
        **_AREA, "data_shape": (3, 96, 96), "min_random_area": 0.3, "max_random_area": 0.9,
        "min_aspect_ratio": 0.5, "max_aspect_ratio": 3.0,
    },
    "RandomCrop((224, 300))": {**_PILLOW, "data_shape": (3, 224, 300), "rand_crop": True},
}  # fmt: skip
CROP_SIZE = 500, 333
BINS = 40

#: Pipelines of torchvision, and the same as `steps` of ours.
_JITTER = {
    "op": "color_jitter", "brightness": (0.6, 1.4), "contrast": (0.6, 1.4),
    "saturation": (0.8, 1.2), "hue": (-0.1, 0.1),
}  # fmt: skip
PIPELINES = {
    "Compose([RandomApply([ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8), RandomGrayscale(p=0.2), "
    "RandomApply([GaussianBlur(23, (0.1, 2.0))], p=0.5), RandomSolarize(99, p=0.2)])": [
        {**_JITTER, "p": 0.8},
        {"op": "grayscale", "p": 0.2},
        {"op": "gaussian_blur", "kernel_size": 23, "sigma": (0.1, 2.0), "p": 0.5},
        {"op": "solarize", "threshold": 99, "p": 0.2},
    ],
    "RandomAffine((-15, 30), translate=(0.1, 0.3), scale=(0.8, 1.1), shear=(-5, 5, 2, 9))": [
        {"op": "affine", "degrees": (-15, 30), "translate": (0.1, 0.3), "scale": (0.8, 1.1),
         "shear": (-5, 5, 2, 9)},
    ],
    "RandomPerspective(0.4, p=0.7)": [
        {"op": "perspective", "distortion_scale": 0.4, "p": 0.7},
    ],
    "RandomChoice([RandomRotation(20), RandomOrder([RandomInvert(0.3), RandomEqualize(0.6), "
    "RandomPosterize(3, p=1.0)]), RandomAutocontrast(0.5)], p=[0.5, 0.3, 0.2])": [
        {
            "op": "choice",
            "weights": [5, 3, 2],
            "of": [
                {"op": "rotate", "degrees": (-20, 20)},
                {"op": "order", "of": [
                    {"op": "invert", "p": 0.3}, {"op": "equalize", "p": 0.6},
                    {"op": "posterize", "bits": 3},
                ]},
                {"op": "autocontrast", "p": 0.5},
            ],
        },
    ],
}  # fmt: skip

#: Their names of operations, and how their arguments become the values of ours.
_FACTORS = {"Brightness": "brightness", "Color": "colour", "Contrast": "contrast"}
_FACTORS["Sharpness"] = "sharpness"


def _of_torchvision(name, magnitude):
    width, height = SIZE
    if name in _FACTORS:
        return _FACTORS[name], 1 + magnitude
    if name in ("TranslateX", "TranslateY"):
        magnitude = int(magnitude)
    if name == "Solarize":
        magnitude *= 255
    names = {"ShearX": "shear_x", "ShearY": "shear_y", "TranslateX": "translate_x"}
    names["TranslateY"] = "translate_y"
    return names.get(name, name.lower()), magnitude


def of_torchvision(text, count=COUNT):
    """The operations of `count` images, as a list of (name, value) for each."""
    import torch
    from PIL import Image
    from torchvision.transforms import v2
    from torchvision.transforms.v2 import _auto_augment

    name, _, rest = text.partition("(")
    arguments = [argument.strip() for argument in rest.strip("()").split(",") if argument.strip()]
    values = [
        v2.AutoAugmentPolicy[argument.partition(".")[2]] if "." in argument else int(argument)
        for argument in arguments
    ]
    notes = []

    class Noting(getattr(v2, name)):
        def _apply_image_or_video_transform(self, image, transform_id, magnitude, **more):
            notes.append(_of_torchvision(transform_id, magnitude))
            return image

    torch.manual_seed(5)
    transform = Noting(*values)
    # AugMix adds real pixels: few of them, and the size that the magnitudes depend on.
    image, get_size = Image.new("RGB", (2, 2)), _auto_augment.get_size
    _auto_augment.get_size = lambda image: [SIZE[1], SIZE[0]]
    try:
        return [_noted(transform, image, notes) for _ in range(count)]
    finally:
        _auto_augment.get_size = get_size


def _noted(transform, image, notes):
    notes.clear()
    transform(image)
    return list(notes)


def _flat(values):
    """Numbers in nested sequences, as one list."""
    if isinstance(values, (tuple, list)):
        return [number for value in values for number in _flat(value)]
    return [float(values)]


def warps_of_torchvision(text, count=COUNT):
    """The numbers of `count` images, as a list for each; an empty one stays as it is."""
    import torch
    from torchvision import transforms

    transform = eval(text, vars(transforms))
    width, height = WARP_SIZE
    torch.manual_seed(5)
    drawn = []
    for _ in range(count):
        if text.startswith("RandomRotation"):
            drawn.append([transform.get_params(transform.degrees)])
        elif text.startswith("RandomAffine"):
            ranges = transform.degrees, transform.translate, transform.scale, transform.shear
            drawn.append(_flat(transform.get_params(*ranges, [width, height])))
        elif not torch.rand(1) < transform.p:
            drawn.append([])
        elif text.startswith("RandomPerspective"):
            _, ends = transform.get_params(width, height, transform.distortion_scale)
            drawn.append(_flat(ends))
        else:
            drawn.append([1.0])
    return drawn


def warp_statistics(images):
    """How many images change, and of each of their numbers the values or the quantiles."""
    changed = np.array([numbers for numbers in images if numbers])
    told = []
    for column in changed.T:
        values, counts = np.unique(column, return_counts=True)
        if len(values) <= MOST_VALUES:
            told.append({"values": list(zip(values.tolist(), counts.tolist()))})
        else:
            quantiles = np.quantile(column, np.linspace(0, 1, QUANTILES))
            told.append({"quantiles": quantiles.round(5).tolist()})
    return {"images": len(images), "changed": len(changed), "numbers": told}


def crops_of_torchvision(text, count=COUNT):
    """The boxes of `count` images: left, top, width and height."""
    import torch
    from PIL import Image
    from torchvision import transforms

    transform, image = eval(text, vars(transforms)), Image.new("L", CROP_SIZE)
    ranges = (transform.size,)
    if "Resized" in text:
        ranges = transform.scale, transform.ratio
    torch.manual_seed(5)
    boxes = np.array([transform.get_params(image, *ranges) for _ in range(count)])
    return boxes[:, [1, 0, 3, 2]]


def box_numbers(boxes):
    """Left, top, width, height, area and ratio of boxes, one row for each."""
    _, _, width, height = boxes.T
    return np.vstack([boxes.T, width * height, width / height])


def crop_statistics(boxes):
    """How many values of each number lie below each of some edges, between them and above."""
    told = []
    for numbers in box_numbers(boxes):
        edges = np.unique(np.quantile(numbers, np.linspace(0, 1, BINS + 1)[1:-1]))
        counts = np.bincount(np.searchsorted(edges, numbers, side="right"))
        told.append({"edges": edges.tolist(), "counts": counts.tolist()})
    return {"images": len(boxes), "numbers": told}


def _of_timm(name, arguments):
    operation, scale = {
        "AutoContrast": ("autocontrast", 1), "Desaturate": ("colour", 1),
        "TranslateXRel": ("translate_x", SIZE[0]), "TranslateYRel": ("translate_y", SIZE[1]),
        "ShearX": ("shear_x", 1), "ShearY": ("shear_y", 1), "SolarizeAdd": ("solarize_add", 1),
    }.get(name.replace("Increasing", "").replace("Original", ""), ("", 1))  # fmt: skip
    if not operation:
        plain = name.replace("Increasing", "").replace("Original", "").replace("Rand", "")
        operation = _FACTORS.get(plain, plain.lower().replace("gaussianblur", "blur"))
    value = arguments[0] * scale if arguments else 0.0
    if name == "Desaturate":
        value = min(1.0, max(0.0, 1.0 - value))
    if operation == "posterize":
        value = max(value, 0)  # beyond a magnitude of 10 bits would be negative, and are black too
    if name == "GaussianBlurRand":
        value = random.uniform(0.1, 2.0 * value)
    return operation, value


def of_timm(text, count=COUNT):
    """As `of_torchvision`."""
    from PIL import Image
    from timm.data import auto_augment

    random.seed(5)
    np.random.seed(5)
    kind = {"rand": "rand_augment_transform", "augm": "augment_and_mix_transform"}
    make = getattr(auto_augment, kind.get(text[:4], "auto_augment_transform"))
    transform = make(text, {"translate_const": 250, "img_mean": (128, 128, 128)})
    notes = []
    ops = getattr(transform, "ops", None) or [op for chain in transform.policy for op in chain]
    for op in ops:

        def note(img, *arguments, name=op.name, **more):
            notes.append(_of_timm(name, arguments))
            return img

        op.aug_fn = note
    # The size is said by what the operations note.
    image = Image.new("RGB", (2, 2))
    return [_noted(transform, image, notes) for _ in range(count)]


_PIPELINE = {
    "adjust_brightness": "brightness", "adjust_contrast": "contrast", "adjust_hue": "hue",
    "adjust_saturation": "colour", "adjust_sharpness": "sharpness", "rgb_to_grayscale": "grey",
}  # fmt: skip
_STEPS = (
    *_PIPELINE, "rotate", "affine", "perspective", "gaussian_blur", "solarize", "posterize",
    "equalize", "autocontrast", "invert", "hflip", "vflip",
)  # fmt: skip


def _of_step(function, arguments):
    """The numbers that a step of ours draws, from the arguments of torchvision's function."""
    name = _PIPELINE.get(function, function)
    if name in ("grey", "equalize", "autocontrast", "invert", "hflip", "vflip"):
        return name, [0]
    if name == "hue":
        return name, [int(255 * arguments[0])]
    if name == "gaussian_blur":
        return name, [arguments[1][0]]
    if name == "affine":
        angle, shifts, scale, shears = arguments[:4]
        return name, [angle, *shifts, scale, *shears]
    if name == "perspective":
        return name, [number for corner in arguments[1] for number in corner]
    return name, arguments[:1]


def numbered(images):
    """Steps with several numbers as one pair of name and number for each."""
    return [
        [
            (f"{name} {i}" if i else name, value)
            for name, *values in image
            for i, value in enumerate(values)
        ]
        for image in images
    ]


def of_pipeline(text, count=COUNT):
    """As `of_torchvision`, of a pipeline written in the words of its module."""
    from unittest.mock import patch

    import torch
    from torchvision import transforms
    from torchvision.transforms import functional

    notes = []

    def noting(name):
        def note(image, *arguments, **more):
            found, numbers = _of_step(name, [*arguments, *more.values()])
            notes.append((found, *numbers))
            return image

        return note

    torch.manual_seed(5)
    random.seed(5)
    transform = eval(text, vars(transforms))
    notes_of = {name: noting(name) for name in _STEPS}
    sizes = {
        "get_dimensions": lambda image: (3, SIZE[1], SIZE[0]),
        "get_image_num_channels": lambda image: 3,
    }
    with patch.multiple(functional, **notes_of, **sizes):
        return numbered([_noted(transform, object(), notes) for _ in range(count)])


def statistics(images):
    """How many operations images have, how often each comes, and its values."""
    values = {}
    for image in images:
        for name, value in image:
            values.setdefault(name, []).append(round(float(value), 3))
    told = {}
    for name, numbers in sorted(values.items()):
        counts = Counter(numbers)
        if len(counts) <= MOST_VALUES:
            told[name] = {"count": len(numbers), "values": sorted(counts.items())}
        else:
            quantiles = np.quantile(numbers, np.linspace(0, 1, QUANTILES)).round(3).tolist()
            told[name] = {"count": len(numbers), "quantiles": quantiles}
    first = Counter(image[0][0] for image in images if image)
    return {
        "images": len(images),
        "lengths": sorted(Counter(map(len, images)).items()),
        "first": sorted(first.items()),
        "operations": told,
    }


def main():
    part = sys.argv[1] if sys.argv[1:] else ""
    told = json.loads(GOLDEN.read_text()) if part else operations()
    if part != "crops":
        told |= {text: warp_statistics(warps_of_torchvision(text)) for text in WARPS}
    if part != "warps":
        told |= {text: crop_statistics(crops_of_torchvision(text)) for text in CROPS}
    GOLDEN.write_text(json.dumps(told, separators=(",", ":")) + "\n")


def operations():
    """Return the statistics of all policies and pipelines."""
    told = {text: statistics(of_torchvision(text)) for text in TORCHVISION}
    told |= {text: statistics(of_timm(text)) for text in TIMM}
    return told | {text: statistics(of_pipeline(text)) for text in PIPELINES}


if __name__ == "__main__":
    main()
