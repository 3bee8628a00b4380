"""Transforms of torchvision, `transforms` and `transforms.v2`, as keywords.

They are read by class name and attributes; nothing of torchvision is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .assembly import NOTHING, Assembly, assemble
from .parts import Given, Known, Part, Translated, flat, number, pair, read

CONTAINERS = ("Compose", "Sequential")
#: Of Pillow's numbers.
_METHODS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
_SAME = {"nearest-exact": "nearest", "nearest_exact": "nearest"}
#: Names of modules whose classes mean what is written here.
_LIBRARIES = ("torchvision", "torch")
#: What reads the transforms of other libraries.
_READERS = {"timm": "from_timm", "albumentations": "from_albumentations"}
#: Pillow opens images as they are stored.
PILLOW = {"orient": False, "resample": "pillow"}
OTHERWISE = (
    'here: drop it, or put it behind all others and give python="tail", which calls it for '
    "every image"
)


def translated(transform: Any, tail: bool, source: Given) -> Translated:
    """Return what a pipeline of torchvision's is in keywords, for images of a source."""
    translate = translation(TRANSFORMS, _LIBRARIES)
    return assemble(flat(transform, CONTAINERS), translate, PILLOW, tail, source)


def translation(
    table: Mapping[str, Known],
    libraries: tuple[str, ...],
    otherwise: str = OTHERWISE,
) -> Callable[[Assembly, Part], None]:
    """Return the function that looks a transform up in a table; what else can be done is said."""

    def translate(assembly: Assembly, part: Part) -> None:
        if part.library not in libraries and part.library in _READERS:
            raise part.error(
                f"is of {part.library}: give the pipeline to NamedRecipe.{_READERS[part.library]}"
            )
        if part.library not in libraries or part.name not in table:
            raise part.error(f"has no counterpart {otherwise}")
        counterpart = table[part.name]
        counterpart.check(part)
        counterpart.translate(assembly, part)

    return translate


def method(part: Part, value: Any) -> str:
    """Return Pillow's name of an interpolation."""
    value = getattr(value, "value", value)
    if isinstance(value, int) and 0 <= value < len(_METHODS):
        return _METHODS[value]
    name = _SAME.get(value, value)
    if name not in _METHODS:
        raise part.error(f"has the interpolation {value!r}: give one of {', '.join(_METHODS)}")
    return str(name)


def _resampling(assembly: Assembly, part: Part) -> dict[str, str]:
    """Return the interpolation, which smooths as images shrink."""
    name = method(part, read(part, "interpolation"))
    assembly.resamples(part, name, getattr(part.transform, "antialias", True))
    return {"interpolation": name}


def _fill(assembly: Assembly, part: Part) -> int | tuple[int, ...]:
    """Return the grey level of a border, or one for each channel."""
    value = part.transform.fill if hasattr(part.transform, "fill") else 0
    if isinstance(value, Mapping):
        if len(value) != 1:
            raise part.error("fills by type: give one fill")
        (value,) = value.values()
    levels = value if isinstance(value, (list, tuple)) else (value,)
    numbers = tuple(assembly.level(part, level) for level in levels)
    return numbers[0] if len(set(numbers)) == 1 else numbers


def _chance(part: Part) -> float:
    return number(read(part, "p"))


# Geometry


def _resize(assembly: Assembly, part: Part) -> None:
    size, most = read(part, "size"), getattr(part.transform, "max_size", None)
    target = _side_or_pair(part, most if size is None else size)
    assembly.resize(part, target, _resampling(assembly, part), most)


def _side_or_pair(part: Part, size: Any) -> int | tuple[int, int]:
    """Return the short side, or (height, width)."""
    sides = pair(part, size)
    return sides[0] if isinstance(size, int) or len(size) == 1 else sides


def _center_crop(assembly: Assembly, part: Part) -> None:
    assembly.center_crop(part, pair(part, read(part, "size")), fill=0)


def _random_crop(assembly: Assembly, part: Part) -> None:
    padding = getattr(part.transform, "padding", None)
    assembly.random_crop(
        part,
        pair(part, read(part, "size")),
        pad=_padding(part, padding) if padding is not None else 0,
        pad_if_needed=bool(getattr(part.transform, "pad_if_needed", False)),
        **_border(assembly, part),
    )


def _padding(part: Part, value: Any) -> int:
    widths = set(value) if isinstance(value, (list, tuple)) else {value}
    if len(widths) != 1:
        raise part.error(f"has the padding {value!r}: give one number for all four sides")
    return int(widths.pop())


def _border(assembly: Assembly, part: Part) -> dict[str, Any]:
    return {"fill": _fill(assembly, part), "padding_mode": read(part, "padding_mode")}


def _pad(assembly: Assembly, part: Part) -> None:
    assembly.pad(part, _padding(part, read(part, "padding")), **_border(assembly, part))


def _random_resized_crop(assembly: Assembly, part: Part) -> None:
    size = pair(part, read(part, "size"))
    area, ratio = read(part, "scale"), read(part, "ratio")
    assembly.random_resized_crop(part, size, area, ratio, _resampling(assembly, part))


def _five_crop(assembly: Assembly, part: Part) -> None:
    assembly.many_crops(part, pair(part, read(part, "size")), None)


def _ten_crop(assembly: Assembly, part: Part) -> None:
    flipped = "flip_p" if read(part, "vertical_flip") else "mirror"
    assembly.many_crops(part, pair(part, read(part, "size")), flipped)


def _turns(part: Part, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the ranges of a warp, of those that it has."""
    ranges: dict[str, Any] = {}
    for name in names:
        value = read(part, name)
        if value is not None:
            ranges[name] = tuple(map(number, value))
    return ranges


def _warp(assembly: Assembly, part: Part) -> dict[str, Any]:
    name = method(part, read(part, "interpolation"))
    if name not in ("nearest", "bilinear", "bicubic"):
        raise part.error(f"has the interpolation {name!r}: give nearest, bilinear or bicubic")
    return {"interpolation": name, "fill": _fill(assembly, part)}


def _rotation(assembly: Assembly, part: Part) -> None:
    assembly.warp(part, "rotate", _turns(part, ("degrees",)) | _warp(assembly, part))


def _affine(assembly: Assembly, part: Part) -> None:
    values = _turns(part, ("degrees", "translate", "scale", "shear"))
    if len(values.get("shear", ())) == 2:
        values["shear"] += (0.0, 0.0)
    assembly.warp(part, "affine", values | _warp(assembly, part))


def _perspective(assembly: Assembly, part: Part) -> None:
    values = {"distortion_scale": number(read(part, "distortion_scale"))}
    assembly.warp(part, "perspective", values | _warp(assembly, part), _chance(part))


def _hflip(assembly: Assembly, part: Part) -> None:
    assembly.flip(part, "hflip", _chance(part))


def _vflip(assembly: Assembly, part: Part) -> None:
    assembly.flip(part, "vflip", _chance(part))


# Colours


def _color_jitter(assembly: Assembly, part: Part) -> None:
    ranges: dict[str, Any] = {}
    for name in ("brightness", "contrast", "saturation", "hue"):
        value = read(part, name)
        if value is not None:
            low, high = value if isinstance(value, (list, tuple)) else (value, value)
            ranges[name] = number(low), number(high)
    assembly.jitter(part, ranges)


def _grayscale(assembly: Assembly, part: Part) -> None:
    assembly.grey(part, int(read(part, "num_output_channels")))


def _random_grayscale(assembly: Assembly, part: Part) -> None:
    assembly.grey(part, p=_chance(part))


def _rgb(assembly: Assembly, part: Part) -> None:
    assembly.colour(part)


def _gaussian_blur(assembly: Assembly, part: Part) -> None:
    width, height = (int(side) for side in read(part, "kernel_size"))
    sigma = tuple(map(number, read(part, "sigma")))
    size = width if width == height else (width, height)
    assembly.step(part, {"op": "gaussian_blur", "kernel_size": size, "sigma": sigma})


def _solarize(assembly: Assembly, part: Part) -> None:
    threshold = assembly.threshold(read(part, "threshold"))
    assembly.step(part, {"op": "solarize", "threshold": threshold}, _chance(part))


def _posterize(assembly: Assembly, part: Part) -> None:
    assembly.step(part, {"op": "posterize", "bits": int(read(part, "bits"))}, _chance(part))


def _sharpness(assembly: Assembly, part: Part) -> None:
    factor = number(read(part, "sharpness_factor"))
    assembly.step(part, {"op": "sharpness", "factor": factor}, _chance(part))


def _with_chance(op: str) -> Callable[[Assembly, Part], None]:
    return lambda assembly, part: assembly.step(part, {"op": op}, _chance(part))


def _policy(assembly: Assembly, part: Part, policy: str, **values: Any) -> None:
    name = method(part, read(part, "interpolation"))
    step = {"op": "auto_augment", "policy": policy, **values, "augment_interpolation": name}
    assembly.step(part, {**step, "augment_fill": _fill(assembly, part)})


def _rand_augment(assembly: Assembly, part: Part) -> None:
    bins = int(read(part, "num_magnitude_bins"))
    if bins < 2:
        raise part.error("has no strengths to choose from: give num_magnitude_bins=31")
    magnitude = number(read(part, "magnitude")) * 30 / (bins - 1)
    count = int(read(part, "num_ops"))
    _policy(assembly, part, "randaugment", num_ops=count, magnitude=magnitude)


def _trivial_augment(assembly: Assembly, part: Part) -> None:
    if read(part, "num_magnitude_bins") != 31:
        raise part.error("has other strengths than the usual: give num_magnitude_bins=31")
    _policy(assembly, part, "trivialaugment")


def _auto_augment(assembly: Assembly, part: Part) -> None:
    name = getattr(read(part, "policy"), "value", part.transform.policy)
    names = {"imagenet": "autoaugment"}
    _policy(assembly, part, names.get(name, f"autoaugment-{name}"))


def _augmix(assembly: Assembly, part: Part) -> None:
    _policy(assembly, part, "augmix", magnitude=int(read(part, "severity")))


# Combinators


def _steps(assembly: Assembly, part: Part, transforms: Any) -> list[dict[str, Any]]:
    """Return the operations of transforms inside one, as steps."""
    translate = translation(_INSIDE, _LIBRARIES, f"inside {part.name}: move it out, or drop it")
    return assembly.inner_steps(part, transforms, CONTAINERS, translate)


def _apply(assembly: Assembly, part: Part) -> None:
    steps, p = _steps(assembly, part, read(part, "transforms")), _chance(part)
    steps = [one for step in steps for one in (step["of"] if _plain(step) else [step])]
    steps = [step for step in steps if step is not NOTHING]
    if len(steps) == 1 and "p" not in steps[0] and "of" not in steps[0]:
        assembly.step(part, steps[0], p)
    elif steps:
        assembly.step(part, {"op": "apply", "of": steps}, p)


def _plain(step: Mapping[str, Any]) -> bool:
    """Return whether a step is a mere sequence."""
    return step["op"] == "apply" and "p" not in step


def _choice(assembly: Assembly, part: Part) -> None:
    weights = getattr(part.transform, "p", None)
    step: dict[str, Any] = {"op": "choice", "of": _steps(assembly, part, part.transform.transforms)}
    if weights is not None and len(set(weights)) > 1:
        step["weights"] = [number(weight) for weight in weights]
    assembly.step(part, step)


def _order(assembly: Assembly, part: Part) -> None:
    steps = _steps(assembly, part, read(part, "transforms"))
    assembly.step(part, {"op": "order", "of": steps})


# Values


def _to_unit(assembly: Assembly, part: Part) -> None:
    assembly.to_tensor()
    assembly.to_unit()


def _to_tensor(assembly: Assembly, part: Part) -> None:
    assembly.to_tensor()


def _nothing(assembly: Assembly, part: Part) -> None:
    pass


def _to_dtype(assembly: Assembly, part: Part) -> None:
    dtype = read(part, "dtype")
    if isinstance(dtype, Mapping):
        kinds = {getattr(key, "__name__", key): value for key, value in dtype.items()}
        dtype = kinds.get("Image", kinds.get("Tensor", kinds.get("others")))
    if dtype is None:
        return
    name = str(dtype).rpartition(".")[2]
    scaled = getattr(part.transform, "scale", True)  # ConvertImageDtype scales always
    if name == "uint8":
        if assembly.is_tensor and not scaled:
            raise part.error("cuts values off: give scale=True")
        assembly.to_integers(part)
        return
    assembly.element_type(part, name)
    assembly.to_unit(255.0 if scaled else 1.0)


def _to_image(assembly: Assembly, part: Part) -> None:
    assembly.to_integers(part, image=True)


def _normalize(assembly: Assembly, part: Part) -> None:
    assembly.normalise(part, read(part, "mean"), read(part, "std"))


def _erasing(assembly: Assembly, part: Part) -> None:
    value = read(part, "value")
    value = "pixel" if value == "random" or value is None else value
    area, ratio = (tuple(map(number, read(part, name))) for name in ("scale", "ratio"))
    assembly.erase(part, _chance(part), value, erasing_area=area, erasing_ratio=ratio)


def _mixed(kind: str) -> Callable[[Assembly, Part], None]:
    def translate(assembly: Assembly, part: Part) -> None:
        if assembly.mixing:
            raise part.error("is a second mixing: put both in RandomChoice")
        assembly.mixing = {kind: number(read(part, "alpha"))}
        if getattr(part.transform, "num_classes", None) is not None:
            assembly.mixing["classes"] = int(part.transform.num_classes)

    return translate


def _choice_of_any(assembly: Assembly, part: Part) -> None:
    """Choose one of some steps, or of mixup and cutmix."""
    names = {type(one).__name__ for one in read(part, "transforms")}
    if names != {"MixUp", "CutMix"}:
        _choice(assembly, part)
        return
    mixed = Assembly({})
    share: dict[str, float] = {}
    weights = getattr(part.transform, "p", None) or [1.0] * len(part.transform.transforms)
    mixing: dict[str, Any] = {}
    for index, one in enumerate(part.transform.transforms):
        mixed.mixing = {}
        inner = Part(one, (*part.position, index))
        TRANSFORMS[inner.name].translate(mixed, inner)
        mixing |= mixed.mixing
        share[inner.name] = share.get(inner.name, 0.0) + number(weights[index])
    if assembly.mixing or len(part.transform.transforms) != 2:
        raise part.error("is a second mixing: keep one MixUp and one CutMix")
    switch = share["CutMix"] / sum(share.values())
    assembly.mixing = {**mixing, "switch": switch}


# Presets of weights


def _classification(assembly: Assembly, part: Part) -> None:
    """Resize, crop and normalise: ``weights.transforms()``."""
    _preset_resize(assembly, part)
    assembly.center_crop(part, pair(part, read(part, "crop_size")), fill=0)
    _detection(assembly, part)
    _normalize(assembly, part)


def _segmentation(assembly: Assembly, part: Part) -> None:
    if read(part, "resize_size") is not None:
        _preset_resize(assembly, part)
    _detection(assembly, part)
    _normalize(assembly, part)


def _preset_resize(assembly: Assembly, part: Part) -> None:
    target = _side_or_pair(part, read(part, "resize_size"))
    assembly.resize(part, target, _resampling(assembly, part))


def _detection(assembly: Assembly, part: Part) -> None:
    assembly.to_tensor()
    assembly.to_unit()


_P = "p"
_POLICY = "interpolation fill"
_PRESET = "resize_size mean std interpolation antialias"
#: What each class means, and its parameters.
TRANSFORMS: dict[str, Known] = {
    "Resize": Known(_resize, "size interpolation max_size antialias"),
    "CenterCrop": Known(_center_crop, "size"),
    "RandomCrop": Known(_random_crop, "size padding pad_if_needed fill padding_mode"),
    "RandomResizedCrop": Known(_random_resized_crop, "size scale ratio interpolation antialias"),
    "FiveCrop": Known(_five_crop, "size"),
    "TenCrop": Known(_ten_crop, "size vertical_flip"),
    "Pad": Known(_pad, "padding fill padding_mode"),
    "RandomHorizontalFlip": Known(_hflip, _P),
    "RandomVerticalFlip": Known(_vflip, _P),
    "RandomRotation": Known(
        _rotation, "degrees interpolation fill", only={"expand": False, "center": None}
    ),
    "RandomAffine": Known(
        _affine, "degrees translate scale shear interpolation fill", only={"center": None}
    ),
    "RandomPerspective": Known(_perspective, "distortion_scale p interpolation fill"),
    "ColorJitter": Known(_color_jitter, "brightness contrast saturation hue"),
    "Grayscale": Known(_grayscale, "num_output_channels"),
    "RandomGrayscale": Known(_random_grayscale, _P),
    "GaussianBlur": Known(_gaussian_blur, "kernel_size sigma"),
    "RandomSolarize": Known(_solarize, "threshold p"),
    "RandomPosterize": Known(_posterize, "bits p"),
    "RandomEqualize": Known(_with_chance("equalize"), _P),
    "RandomAutocontrast": Known(_with_chance("autocontrast"), _P),
    "RandomInvert": Known(_with_chance("invert"), _P),
    "RandomAdjustSharpness": Known(_sharpness, "sharpness_factor p"),
    "RandAugment": Known(_rand_augment, f"num_ops magnitude num_magnitude_bins {_POLICY}"),
    "TrivialAugmentWide": Known(_trivial_augment, f"num_magnitude_bins {_POLICY}"),
    "AutoAugment": Known(_auto_augment, f"policy {_POLICY}"),
    "AugMix": Known(
        _augmix,
        f"severity {_POLICY}",
        only={"mixture_width": 3, "chain_depth": -1, "alpha": 1.0, "all_ops": True},
    ),
    "RandomApply": Known(_apply, "transforms p"),
    "RandomChoice": Known(_choice_of_any, "transforms p"),
    "RandomOrder": Known(_order, "transforms"),
    "ToTensor": Known(_to_unit),
    "PILToTensor": Known(_to_tensor),
    "ToImage": Known(_to_tensor),
    "ToPureTensor": Known(_nothing),
    "ToPILImage": Known(_to_image, only={"mode": None}),
    "ToDtype": Known(_to_dtype, "dtype scale"),
    "ConvertImageDtype": Known(_to_dtype, "dtype"),
    "Normalize": Known(_normalize, "mean std", "inplace"),
    "RandomErasing": Known(_erasing, "p scale ratio value", "inplace"),
    "Identity": Known(_nothing),
    "RGB": Known(_rgb),
    "MixUp": Known(_mixed("mixup"), "alpha num_classes", "labels_getter"),
    "CutMix": Known(_mixed("cutmix"), "alpha num_classes", "labels_getter"),
    "ImageClassification": Known(_classification, f"crop_size {_PRESET}"),
    "SemanticSegmentation": Known(_segmentation, _PRESET),
    "ObjectDetection": Known(_detection),
}

#: Those that may be inside a combinator: what is a step.
_INSIDE = {
    name: TRANSFORMS[name]
    for name in (
        "RandomHorizontalFlip",
        "RandomVerticalFlip",
        "RandomRotation",
        "RandomAffine",
        "RandomPerspective",
        "ColorJitter",
        "Grayscale",
        "RandomGrayscale",
        "GaussianBlur",
        "RandomSolarize",
        "RandomPosterize",
        "RandomEqualize",
        "RandomAutocontrast",
        "RandomInvert",
        "RandomAdjustSharpness",
        "RandAugment",
        "TrivialAugmentWide",
        "AutoAugment",
        "AugMix",
        "RandomApply",
        "RandomChoice",
        "RandomOrder",
        "Identity",
    )
}
