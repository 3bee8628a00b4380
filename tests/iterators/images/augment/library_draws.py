"""What torchvision and timm draw: which operations, how strong, how many, in numbers.

``python tests/iterators/images/augment/library_draws.py`` draws 100,000 images of each
configuration with the libraries themselves and stores what came out in
``tests/golden/draws.json``.  The libraries' own code runs; only their operations on pixels are
replaced by notes.
"""

import json
import random
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
    told = {text: statistics(of_torchvision(text)) for text in TORCHVISION}
    told |= {text: statistics(of_timm(text)) for text in TIMM}
    GOLDEN.write_text(json.dumps(told, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
