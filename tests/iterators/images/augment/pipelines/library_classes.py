"""Stand-ins for other libraries' classes: their names and attributes, and nothing that works."""

from enum import Enum
from typing import Any

__all__ = ["IMAGENET", "NORMALISED", "Interpolation", "compose", "fake", "tv"]

#: torchvision's usual normalisation, and the keywords for it.
IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
NORMALISED = {
    "mean_r": 123.675, "mean_g": 116.28, "mean_b": 103.53,
    "std_r": 58.395, "std_g": 57.12, "std_b": 57.375,
}  # fmt: skip


class Interpolation(Enum):
    NEAREST = "nearest"
    EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"


def fake(library: str, name: str, /, **attributes: Any) -> Any:
    """Make an object of a class with this name in a library."""
    # Names of tests contain it: no address.
    members = {"__module__": f"{library}.transforms", "__repr__": lambda self: name}
    return type(name, (), members | attributes)()


#: Attributes that torchvision's classes have unless something else is given.
DEFAULTS: dict[str, dict[str, Any]] = {
    "Resize": {"interpolation": Interpolation.BILINEAR, "max_size": None, "antialias": True},
    "RandomCrop": {"padding": None, "pad_if_needed": False, "fill": 0, "padding_mode": "constant"},
    "RandomResizedCrop": {
        "scale": (0.08, 1.0), "ratio": (0.75, 1.25), "interpolation": Interpolation.BILINEAR,
    },
    "TenCrop": {"vertical_flip": False},
    "Pad": {"fill": 0, "padding_mode": "constant"},
    "RandomHorizontalFlip": {"p": 0.5},
    "RandomVerticalFlip": {"p": 0.5},
    "RandomRotation": {
        "interpolation": Interpolation.NEAREST, "expand": False, "center": None, "fill": 0,
    },
    "RandomAffine": {
        "translate": None, "scale": None, "shear": None, "interpolation": Interpolation.NEAREST,
        "center": None, "fill": 0,
    },
    "RandomPerspective": {"p": 0.5, "interpolation": Interpolation.BILINEAR, "fill": 0},
    "ColorJitter": dict.fromkeys(("brightness", "contrast", "saturation", "hue")),
    "Grayscale": {"num_output_channels": 1},
    "GaussianBlur": {"sigma": (0.1, 2.0)},
    "RandAugment": {
        "num_ops": 2, "magnitude": 9, "num_magnitude_bins": 31,
        "interpolation": Interpolation.NEAREST, "fill": None,
    },
    "TrivialAugmentWide": {
        "num_magnitude_bins": 31, "interpolation": Interpolation.NEAREST, "fill": None,
    },
    "AutoAugment": {"interpolation": Interpolation.NEAREST, "fill": None},
    "AugMix": {
        "severity": 3, "mixture_width": 3, "chain_depth": -1, "alpha": 1.0, "all_ops": True,
        "interpolation": Interpolation.BILINEAR, "fill": None,
    },
    "RandomErasing": {"p": 0.5, "scale": (0.02, 0.33), "ratio": (0.3, 3.3), "value": 0},
    "Normalize": IMAGENET,
}  # fmt: skip


def tv(name: str, /, **attributes: Any) -> Any:
    """Make a transform of torchvision."""
    return fake("torchvision", name, **DEFAULTS.get(name, {}) | attributes)


def compose(*transforms: Any, library: str = "torchvision") -> Any:
    """Make a Compose."""
    return fake(library, "Compose", transforms=list(transforms))
