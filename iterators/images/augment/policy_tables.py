"""The operations and magnitudes of RandAugment, AutoAugment, TrivialAugment and AugMix.

Tables alone: those of torchvision and those of timm, which differ, each under its own names.
`recordio.kernels.operations` defines the meaning of a name for pixels.
"""

from __future__ import annotations

from typing import NamedTuple


class Scale(NamedTuple):
    """Value of an operation at a level of 0 to 1, or a little beyond."""

    #: A name of `kernels.operations`.
    operation: str
    #: The value at level 0.
    low: float = 0
    #: The amount that a level of 1 adds.
    span: float = 0
    #: `span` is subtracted half of the time.
    signed: bool = False
    #: Rounding of the added amount: "" none, "cut" towards 0, "even" nearest, halves to even.
    rounding: str = ""
    #: The value is cut to a whole number in the end.
    whole: bool = False
    #: Limits of the value.
    least: float = -1e9
    most: float = 1e9
    #: The value is a share of the "width" or "height"; "" for neither.
    of: str = ""


def _factors(span: float) -> dict[str, Scale]:
    """Enhancements, whose factor is 1 plus or minus a part of `span`."""
    operations = {"Brightness": "brightness", "Color": "colour", "Contrast": "contrast"}
    operations["Sharpness"] = "sharpness"
    return {name: Scale(operation, 1, span, True) for name, operation in operations.items()}


_UNMEASURED = {
    "Identity": Scale("identity"),
    "AutoContrast": Scale("autocontrast"),
    "Equalize": Scale("equalize"),
    "Invert": Scale("invert"),
}


def _torchvision(
    shear: float, shift: float, relative: bool, turn: float, factor: float, bits: tuple[int, int]
) -> dict[str, Scale]:
    first, lost = bits
    return {
        "Identity": _UNMEASURED["Identity"],
        "ShearX": Scale("shear_x", 0, shear, True),
        "ShearY": Scale("shear_y", 0, shear, True),
        "TranslateX": Scale("translate_x", 0, shift, True, "", True, of="width" * relative),
        "TranslateY": Scale("translate_y", 0, shift, True, "", True, of="height" * relative),
        "Rotate": Scale("rotate", 0, turn, True),
        **_factors(factor),
        "Posterize": Scale("posterize", first, -lost, False, "even"),
        "Solarize": Scale("solarize", 255, -255),
        "AutoContrast": _UNMEASURED["AutoContrast"],
        "Equalize": _UNMEASURED["Equalize"],
    }


_RAND = _torchvision(0.3, 150 / 331, True, 30, 0.9, (8, 4))
_AUGMIX = _torchvision(0.3, 1 / 3, True, 30, 0.9, (4, 4))

#: torchvision's: the operations among which each of its classes draws.
TORCHVISION_SETS = {
    "randaugment": _RAND,
    "trivialaugment": _torchvision(0.99, 32, False, 135, 0.99, (8, 6)),
    "autoaugment": _RAND | {"Invert": _UNMEASURED["Invert"]},
    "augmix": {name: scale for name, scale in _AUGMIX.items() if name != "Identity"},
}

#: timm's: every operation under its name there.
TIMM_SCALES = {
    **_UNMEASURED,
    "Rotate": Scale("rotate", 0, 30, True),
    "Posterize": Scale("posterize", 0, 4, False, "cut", most=8),
    "PosterizeIncreasing": Scale("posterize", 4, -4, False, "cut", least=0),
    "PosterizeOriginal": Scale("posterize", 4, 4, False, "cut", most=8),
    "Solarize": Scale("solarize", 0, 256, False, "cut", most=256),
    "SolarizeIncreasing": Scale("solarize", 256, -256, False, "cut", least=0),
    "SolarizeAdd": Scale("solarize_add", 0, 110, False, "cut", most=128),
    **{name: Scale(scale.operation, 0.1, 1.8) for name, scale in _factors(1).items()},
    **{
        f"{name}Increasing": Scale(scale.operation, 1, 0.9, True, least=0.1)
        for name, scale in _factors(1).items()
    },
    "ShearX": Scale("shear_x", 0, 0.3, True),
    "ShearY": Scale("shear_y", 0, 0.3, True),
    "TranslateXRel": Scale("translate_x", 0, 0.45, True, of="width"),
    "TranslateYRel": Scale("translate_y", 0, 0.45, True, of="height"),
    # A factor of 1 minus a part between 0.5 and 1.
    "Desaturate": Scale("colour", 0.5, -0.5, least=0, most=0.5),
    "GaussianBlur": Scale("blur", 0.1, 1.9, most=2),
    # The standard deviation is drawn from 0.1 to twice the level: see `policies`.
    "GaussianBlurRand": Scale("blur", 0, 1, least=0, most=1),
}

_MOVES = ["ShearX", "ShearY", "TranslateXRel", "TranslateYRel"]
_FIXED = ["AutoContrast", "Equalize", "Invert", "Rotate"]
_ENHANCED = ["Color", "Contrast", "Brightness", "Sharpness"]
_GROWING = [f"{name}Increasing" for name in _ENHANCED]
_LIGHT = ["PosterizeIncreasing", "SolarizeIncreasing"]


def _even(*groups: list[str]) -> dict[str, float]:
    return dict.fromkeys([name for group in groups for name in group], 1.0)


#: timm's: the sets among which RandAugment and AugMix draw, with weights.
TIMM_SETS: dict[str, dict[str, float]] = {
    "": _even(_FIXED, ["Posterize", "Solarize", "SolarizeAdd"], _ENHANCED, _MOVES),
    "inc": _even(_FIXED, _LIGHT, ["SolarizeAdd"], _GROWING, _MOVES),
    "3a": _even(["SolarizeIncreasing", "Desaturate", "GaussianBlur"]),
    "augmix": _even(["AutoContrast", "Equalize", "Rotate"], _GROWING, _LIGHT, _MOVES),
    "weights": {
        "Rotate": 3, "ShearX": 2, "ShearY": 2, "TranslateXRel": 1, "TranslateYRel": 1,
        "ColorIncreasing": 0.25, "SharpnessIncreasing": 0.25, "AutoContrast": 0.25,
        "SolarizeIncreasing": 0.05, "SolarizeAdd": 0.05, "ContrastIncreasing": 0.05,
        "BrightnessIncreasing": 0.05, "Equalize": 0.05, "PosterizeIncreasing": 0.05,
        "Invert": 0.05,
    },
    "3aw": {
        "SolarizeIncreasing": 6, "Desaturate": 6, "GaussianBlur": 6, "Rotate": 3, "ShearX": 2,
        "ShearY": 2, "PosterizeIncreasing": 1, "AutoContrast": 1, "ColorIncreasing": 1,
        "SharpnessIncreasing": 1, "ContrastIncreasing": 1, "BrightnessIncreasing": 1,
        "Equalize": 1, "Invert": 1,
    },
}  # fmt: skip

_ORIGINAL = """
    Posterize 0.4 8, Rotate 0.6 9; Solarize 0.6 5, AutoContrast 0.6 5;
    Equalize 0.8 8, Equalize 0.6 3; Posterize 0.6 7, Posterize 0.6 6;
    Equalize 0.4 7, Solarize 0.2 4; Equalize 0.4 4, Rotate 0.8 8;
    Solarize 0.6 3, Equalize 0.6 7; Posterize 0.8 5, Equalize 1.0 2;
    Rotate 0.2 3, Solarize 0.6 8; Equalize 0.6 8, Posterize 0.4 6;
    Rotate 0.8 8, Color 0.4 0; Rotate 0.4 9, Equalize 0.6 2;
    Equalize 0.0 7, Equalize 0.8 8; Invert 0.6 4, Equalize 1.0 8;
    Color 0.6 4, Contrast 1.0 8; Rotate 0.8 8, Color 1.0 2;
    Color 0.8 8, Solarize 0.8 7; Sharpness 0.4 7, Invert 0.6 8;
    ShearX 0.6 5, Equalize 1.0 9; Color 0.4 0, Equalize 0.6 3;
    Equalize 0.4 7, Solarize 0.2 4; Solarize 0.6 5, AutoContrast 0.6 5;
    Invert 0.6 4, Equalize 1.0 8; Color 0.6 4, Contrast 1.0 8;
    Equalize 0.8 8, Equalize 0.6 3
"""
_CIFAR10 = """
    Invert 0.1 7, Contrast 0.2 6; Rotate 0.7 2, TranslateX 0.3 9;
    Sharpness 0.8 1, Sharpness 0.9 3; ShearY 0.5 8, TranslateY 0.7 9;
    AutoContrast 0.5 8, Equalize 0.9 2; ShearY 0.2 7, Posterize 0.3 7;
    Color 0.4 3, Brightness 0.6 7; Sharpness 0.3 9, Brightness 0.7 9;
    Equalize 0.6 5, Equalize 0.5 1; Contrast 0.6 7, Sharpness 0.6 5;
    Color 0.7 7, TranslateX 0.5 8; Equalize 0.3 7, AutoContrast 0.4 8;
    TranslateY 0.4 3, Sharpness 0.2 6; Brightness 0.9 6, Color 0.2 8;
    Solarize 0.5 2, Invert 0.0 3; Equalize 0.2 0, AutoContrast 0.6 0;
    Equalize 0.2 8, Equalize 0.6 4; Color 0.9 9, Equalize 0.6 6;
    AutoContrast 0.8 4, Solarize 0.2 8; Brightness 0.1 3, Color 0.7 0;
    Solarize 0.4 5, AutoContrast 0.9 3; TranslateY 0.9 9, TranslateY 0.7 9;
    AutoContrast 0.9 2, Solarize 0.8 3; Equalize 0.8 8, Invert 0.1 3;
    TranslateY 0.7 9, AutoContrast 0.9 1
"""
_SVHN = """
    ShearX 0.9 4, Invert 0.2 3; ShearY 0.9 8, Invert 0.7 5;
    Equalize 0.6 5, Solarize 0.6 6; Invert 0.9 3, Equalize 0.6 3;
    Equalize 0.6 1, Rotate 0.9 3; ShearX 0.9 4, AutoContrast 0.8 3;
    ShearY 0.9 8, Invert 0.4 5; ShearY 0.9 5, Solarize 0.2 6;
    Invert 0.9 6, AutoContrast 0.8 1; Equalize 0.6 3, Rotate 0.9 3;
    ShearX 0.9 4, Solarize 0.3 3; ShearY 0.8 8, Invert 0.7 4;
    Equalize 0.9 5, TranslateY 0.6 6; Invert 0.9 4, Equalize 0.6 7;
    Contrast 0.3 3, Rotate 0.8 4; Invert 0.8 5, TranslateY 0.0 2;
    ShearY 0.7 6, Solarize 0.4 8; Invert 0.6 4, Rotate 0.8 4;
    ShearY 0.3 7, TranslateX 0.9 3; ShearX 0.1 6, Invert 0.6 5;
    Solarize 0.7 2, TranslateY 0.6 7; ShearY 0.8 4, Invert 0.8 8;
    ShearX 0.7 9, TranslateY 0.8 3; ShearY 0.8 5, AutoContrast 0.7 3;
    ShearX 0.7 2, Invert 0.1 5
"""
_V0 = """
    Equalize 0.8 1, ShearY 0.8 4; Color 0.4 9, Equalize 0.6 3;
    Color 0.4 1, Rotate 0.6 8; Solarize 0.8 3, Equalize 0.4 7;
    Solarize 0.4 2, Solarize 0.6 2; Color 0.2 0, Equalize 0.8 8;
    Equalize 0.4 8, SolarizeAdd 0.8 3; ShearX 0.2 9, Rotate 0.6 8;
    Color 0.6 1, Equalize 1.0 2; Invert 0.4 9, Rotate 0.6 0;
    Equalize 1.0 9, ShearY 0.6 3; Color 0.4 7, Equalize 0.6 0;
    Posterize 0.4 6, AutoContrast 0.4 7; Solarize 0.6 8, Color 0.6 9;
    Solarize 0.2 4, Rotate 0.8 9; Rotate 1.0 7, TranslateYRel 0.8 9;
    ShearX 0.0 0, Solarize 0.8 4; ShearY 0.8 0, Color 0.6 4;
    Color 1.0 0, Rotate 0.6 2; Equalize 0.8 4, Equalize 0.0 8;
    Equalize 1.0 4, AutoContrast 0.6 2; ShearY 0.4 7, SolarizeAdd 0.6 7;
    Posterize 0.8 2, Solarize 0.6 10; Solarize 0.6 8, Equalize 0.6 1;
    Color 0.8 6, Rotate 0.4 5
"""


def _parsed(text: str) -> tuple[tuple[tuple[str, float, float], ...], ...]:
    chains = []
    for chain in text.split(";"):
        steps = (step.split() for step in chain.split(","))
        chains.append(tuple((name, float(chance), float(level)) for name, chance, level in steps))
    return tuple(chains)


#: Sub-policies, one of which is drawn: (operation, probability, level of 10) one after the other.
#: torchvision's names; timm calls some operations otherwise.
AUTO_POLICIES = {
    "imagenet": _parsed(_ORIGINAL),
    "cifar10": _parsed(_CIFAR10),
    "svhn": _parsed(_SVHN),
    "v0": _parsed(_V0),
    "3a": _parsed("Solarize 1 5; Desaturate 1 10; GaussianBlurRand 1 10"),
}
