"""Common transforms of albumentations as keywords, read by class name and attributes.

Images there are resized by OpenCV, so that the keywords name OpenCV's interpolation.
"""

from __future__ import annotations

from typing import Any

from .assembly import NOTHING, Assembly, assemble
from .parts import Given, Known, Part, Translated, flat, number, read
from .torchvision import translation

CONTAINERS = ("Compose", "Sequential", "ReplayCompose")
#: OpenCV's interpolations with the numbers of `inter_method`, and names for those of warps.
_METHODS = {0: "nearest", 1: "bilinear", 2: "bicubic", 3: "area", 4: "lanczos"}
_LIBRARIES = ("albumentations",)
_BASE = {"scaled_decode": False}
_CONSTANT = 0  # cv2.BORDER_CONSTANT


def translated(transform: Any, tail: bool = False) -> Translated:
    """Return what a pipeline of albumentations is in keywords."""
    translate = translation(_TRANSFORMS, _LIBRARIES)
    pipeline = assemble(flat(transform, CONTAINERS), translate, _BASE, tail, Given())
    return Translated(pipeline.keywords, pipeline.mixing, pipeline.notes, pipeline.tail, "array")


def _always(part: Part) -> None:
    if number(read(part, "p")) != 1:
        raise part.error(f"is done with probability {part.transform.p}: only 1 is supported")


def _chance(part: Part) -> float:
    return number(read(part, "p"))


def _resampling(part: Part) -> dict[str, int]:
    value = int(read(part, "interpolation"))
    if value not in _METHODS:
        raise part.error(f"has the interpolation {value}: only OpenCV's 0 to 4 are supported")
    return {"inter_method": value}


def _size(part: Part) -> tuple[int, int]:
    if getattr(part.transform, "size", None) is not None:
        height, width = part.transform.size
    else:
        height, width = read(part, "height"), read(part, "width")
    return int(height), int(width)


def _fill(assembly: Assembly, part: Part) -> Any:
    """Return the grey level, or one for each channel, of what a warp or a border leaves empty."""
    value = getattr(part.transform, "fill", getattr(part.transform, "value", None)) or 0
    levels = value if isinstance(value, (list, tuple)) else (value,)
    numbers = tuple(assembly.level(part, level) for level in levels)
    return numbers[0] if len(set(numbers)) == 1 else numbers


# Geometry


def _resize(assembly: Assembly, part: Part) -> None:
    _always(part)
    assembly.resize(part, _size(part), _resampling(part))


def _smallest(assembly: Assembly, part: Part) -> None:
    _always(part)
    size = read(part, "max_size")
    size = size[0] if isinstance(size, (list, tuple)) and len(size) == 1 else size
    if not isinstance(size, int) or getattr(part.transform, "max_size_hw", None) is not None:
        raise part.error(f"draws its size from {size!r}: give one number")
    assembly.resize(part, size, _resampling(part))
    assembly.note("The long side is cut to a whole number, where albumentations rounds it.")


def _longest(assembly: Assembly, part: Part) -> None:
    """Resize to the long side; what follows has to pad."""
    _always(part)
    size = read(part, "max_size")
    if isinstance(size, (list, tuple)) and len(size) == 1:
        (size,) = size
    if not isinstance(size, int):
        raise part.error(f"draws its size from {size!r}: give one number")
    assembly.resize_long(part, size, _resampling(part))


def _pad_if_needed(assembly: Assembly, part: Part) -> None:
    """Pad what LongestMaxSize has made."""
    _always(part)
    position = getattr(read(part, "position"), "value", part.transform.position)
    fill = _fill(assembly, part)
    if read(part, "border_mode") != _CONSTANT or position != "center" or not isinstance(fill, int):
        raise part.error("pads in another way than by one grey level on both sides: give "
                         'border_mode=0, position="center" and a single fill')  # fmt: skip
    size = int(read(part, "min_height") or 0), int(read(part, "min_width") or 0)
    if not assembly.letterbox(part, size, fill):
        raise part.error(
            "has a counterpart behind LongestMaxSize alone, which together are "
            'resize="contain": put that in front'
        )


def _small(part: Part) -> dict[str, Any]:
    """Return what happens to images that are smaller than a crop."""
    if not getattr(part.transform, "pad_if_needed", False):
        return {}
    if getattr(part.transform, "border_mode", _CONSTANT) != _CONSTANT:
        raise part.error("fills with a mirrored border: give border_mode=0")
    raise part.error("pads images that are smaller: resize them first, and drop pad_if_needed")


def _center_crop(assembly: Assembly, part: Part) -> None:
    _always(part)
    # Smaller images are an error there.
    assembly.center_crop(part, _size(part), pads=False, **_small(part))


def _random_crop(assembly: Assembly, part: Part) -> None:
    _always(part)
    assembly.random_crop(part, _size(part), **_small(part))


def _random_resized_crop(assembly: Assembly, part: Part) -> None:
    _always(part)
    area, ratio = read(part, "scale"), read(part, "ratio")
    assembly.random_resized_crop(part, _size(part), area, ratio, _resampling(part))


def _hflip(assembly: Assembly, part: Part) -> None:
    assembly.flip(part, "hflip", _chance(part))


def _vflip(assembly: Assembly, part: Part) -> None:
    assembly.flip(part, "vflip", _chance(part))


def _rotate(assembly: Assembly, part: Part) -> None:
    transform = part.transform
    if read(part, "border_mode") != _CONSTANT:
        raise part.error("fills with a mirrored border: give border_mode=0")
    if getattr(transform, "crop_border", False) or getattr(transform, "rotate_method", "") not in (
        "",
        "largest_box",
    ):
        raise part.error("turns in a way of its own: drop crop_border and rotate_method")
    name = _METHODS.get(int(read(part, "interpolation")), "")
    if name not in ("nearest", "bilinear", "bicubic"):
        raise part.error("has another interpolation than OpenCV's 0, 1 and 2: give one of them")
    degrees = tuple(map(number, read(part, "limit")))
    values = {"degrees": degrees, "interpolation": name, "fill": _fill(assembly, part)}
    p = _chance(part)
    if p == 1 or not any(degrees):
        assembly.warp(part, "rotate", values)
    else:
        assembly.step(part, {"op": "rotate", **values}, p)
    assembly.note("Rotations are Pillow's: other pixels, the same angles.")


# Colours


def _color_jitter(assembly: Assembly, part: Part) -> None:
    ranges: dict[str, Any] = {}
    for name in ("brightness", "contrast", "saturation", "hue"):
        low, high = map(number, read(part, name))
        if (low, high) != ((0, 0) if name == "hue" else (1, 1)):
            ranges[name] = low, high
    assembly.jitter(part, ranges, _chance(part))
    if ranges:
        assembly.note("Colours change by torchvision's arithmetic: the same factors.")


def _to_gray(assembly: Assembly, part: Part) -> None:
    if getattr(part.transform, "method", "weighted_average") != "weighted_average":
        raise part.error(f"has the method {part.transform.method!r}: give 'weighted_average'")
    if getattr(part.transform, "num_output_channels", 3) != 3:
        raise part.error("makes one channel: let it make 3, or give data_shape=(1, height, width)")
    assembly.step(part, {"op": "grayscale"}, _chance(part))


def _gaussian_blur(assembly: Assembly, part: Part) -> None:
    low, high = (int(side) for side in read(part, "blur_limit"))
    if low != high or not low % 2:
        raise part.error(f"draws the kernel from {(low, high)}: give one odd size twice")
    sigma = tuple(map(number, read(part, "sigma_limit")))
    if sigma[0] <= 0:
        raise part.error("derives sigma from the kernel: give a sigma_limit above 0")
    step = {"op": "gaussian_blur", "kernel_size": low, "sigma": sigma}
    assembly.step(part, step, _chance(part))


def _solarize(assembly: Assembly, part: Part) -> None:
    shares = getattr(part.transform, "threshold_range", None)
    if shares is None:
        low, high = map(number, read(part, "threshold"))
    else:
        low, high = (number(share) * 255 for share in shares)
    if low != high:
        raise part.error(f"draws its threshold from {(low, high)}: give one number twice")
    assembly.step(part, {"op": "solarize", "threshold": low}, _chance(part))


def _posterize(assembly: Assembly, part: Part) -> None:
    bits = read(part, "num_bits")
    every = set(bits) if isinstance(bits, (list, tuple)) else {bits}
    if len(every) != 1 or not isinstance(next(iter(every)), int):
        raise part.error(f"draws or varies its bits, {bits!r}: give one number twice")
    assembly.step(part, {"op": "posterize", "bits": every.pop()}, _chance(part))


def _equalize(assembly: Assembly, part: Part) -> None:
    if not read(part, "by_channels") or getattr(part.transform, "mask", None) is not None:
        raise part.error("equalises the luminance, or a part: give by_channels=True alone")
    if getattr(part.transform, "mode", "cv") != "pil":
        raise part.error("equalises as OpenCV does, up to 144 levels apart: give mode='pil'")
    assembly.step(part, {"op": "equalize"}, _chance(part))
    assembly.note("Equalize is Pillow's; mode='pil' of albumentations 2 makes other levels.")


def _autocontrast(assembly: Assembly, part: Part) -> None:
    if getattr(part.transform, "cutoff", 0) or getattr(part.transform, "method", "pil") != "pil":
        raise part.error("stretches by a rule of its own: give cutoff=0 and method='pil'")
    assembly.step(part, {"op": "autocontrast"}, _chance(part))


def _invert(assembly: Assembly, part: Part) -> None:
    assembly.step(part, {"op": "invert"}, _chance(part))


def _one_of(assembly: Assembly, part: Part) -> None:
    """Choose by the probabilities of the transforms, each of which is certain then."""
    translate = translation(_INSIDE, _LIBRARIES, f"inside {part.name}: move it out, or drop it")
    steps = assembly.inner_steps(part, read(part, "transforms"), CONTAINERS, translate)
    steps = [
        step if step is NOTHING else {name: step[name] for name in step if name != "p"}
        for step in steps
    ]
    weights = [number(share) for share in read(part, "transforms_ps")]
    choice: dict[str, Any] = {"op": "choice", "of": steps}
    if len(set(weights)) > 1:
        choice["weights"] = weights
    p = _chance(part)
    assembly.step(part, choice if p == 1 else {"op": "apply", "of": [choice]}, p)


# Values


def _normalize(assembly: Assembly, part: Part) -> None:
    _always(part)
    if getattr(part.transform, "normalization", "standard") != "standard":
        raise part.error("normalises each image by itself: give normalization='standard'")
    unit = number(read(part, "max_pixel_value"))
    assembly.normalise(part, read(part, "mean"), read(part, "std"), unit)


def _to_float(assembly: Assembly, part: Part) -> None:
    _always(part)
    value = read(part, "max_value")
    assembly.to_unit(255.0 if value is None else number(value))


def _nothing(assembly: Assembly, part: Part) -> None:
    pass


_WEIGHTED = "num_output_channels method p"
_RESIZED = "interpolation p"
#: Parameters that say how else images may be made smaller, or masks.
_SHRINKS = {"area_for_downscale": None}
_MASKS = "mask_interpolation"

#: What each class means, and its parameters, also those of older releases.
_TRANSFORMS: dict[str, Known] = {
    "Resize": Known(_resize, f"height width {_RESIZED}", _MASKS, _SHRINKS),
    "SmallestMaxSize": Known(_smallest, f"max_size max_size_hw {_RESIZED}", _MASKS, _SHRINKS),
    "LongestMaxSize": Known(
        _longest, f"max_size {_RESIZED}", _MASKS, {"max_size_hw": None, **_SHRINKS}
    ),
    "PadIfNeeded": Known(
        _pad_if_needed,
        "min_height min_width position border_mode fill value p",
        "fill_mask mask_value",
        {"pad_height_divisor": None, "pad_width_divisor": None},
    ),
    "CenterCrop": Known(
        _center_crop, "height width pad_if_needed border_mode p", "pad_position fill fill_mask"
    ),
    "RandomCrop": Known(
        _random_crop, "height width pad_if_needed border_mode p", "pad_position fill fill_mask"
    ),
    "RandomResizedCrop": Known(
        _random_resized_crop, f"size height width scale ratio {_RESIZED}", _MASKS, _SHRINKS
    ),
    "HorizontalFlip": Known(_hflip, "p"),
    "VerticalFlip": Known(_vflip, "p"),
    "Rotate": Known(
        _rotate,
        "limit border_mode interpolation rotate_method crop_border fill value p",
        f"{_MASKS} fill_mask mask_value",
    ),
    "ColorJitter": Known(_color_jitter, "brightness contrast saturation hue p"),
    "ToGray": Known(_to_gray, _WEIGHTED),
    "GaussianBlur": Known(_gaussian_blur, "blur_limit sigma_limit p"),
    "Solarize": Known(_solarize, "threshold threshold_range p"),
    "Posterize": Known(_posterize, "num_bits p"),
    "Equalize": Known(_equalize, "mode by_channels mask p", "mask_params"),
    "AutoContrast": Known(_autocontrast, "cutoff method p", only={"ignore": None}),
    "InvertImg": Known(_invert, "p"),
    "OneOf": Known(_one_of, "transforms p"),
    "Normalize": Known(_normalize, "mean std max_pixel_value normalization p"),
    "ToFloat": Known(_to_float, "max_value p"),
    "ToTensorV2": Known(_nothing, "p", "transpose_mask"),
    "NoOp": Known(_nothing, "p"),
}

#: Those that may be inside a choice: what is a step.
_INSIDE = {
    name: _TRANSFORMS[name]
    for name in (
        "HorizontalFlip",
        "VerticalFlip",
        "Rotate",
        "ColorJitter",
        "ToGray",
        "GaussianBlur",
        "Solarize",
        "Posterize",
        "Equalize",
        "AutoContrast",
        "InvertImg",
        "OneOf",
        "NoOp",
    )
}
