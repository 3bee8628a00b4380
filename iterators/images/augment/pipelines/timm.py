"""Transforms of `timm.data.create_transform`, and configurations of data, as keywords.

Transforms are read by class name and attributes; nothing of timm is imported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..policy_tables import AUTO_POLICIES, TIMM_SETS
from .assembly import Assembly, assemble
from .parts import Given, Known, Part, PipelineError, Translated, flat, number, pair, read
from .torchvision import CONTAINERS, PILLOW, TRANSFORMS, method, translation

_LIBRARIES = ("timm", "torchvision", "torch")
#: Policies of timm, and what stands for "Posterize" in their tables.
_POLICIES = {
    "original": ("imagenet", "PosterizeOriginal"),
    "originalr": ("imagenet", "PosterizeIncreasing"),
    "v0": ("v0", "Posterize"),
    "v0r": ("v0", "PosterizeIncreasing"),
    "3a": ("3a", "Posterize"),
}


def translated(transform: Any, tail: bool, source: Given) -> Translated:
    """Return what a transform is in keywords, or the configuration of data of a model."""
    config = transform if isinstance(transform, Mapping) else getattr(transform, "__dict__", {})
    if "input_size" in config and "mean" in config:
        return _of_config(config)
    return assemble(flat(transform, CONTAINERS), _translate, PILLOW, tail, source)


def _of_config(config: Mapping[str, Any]) -> Translated:
    """Return the transform for evaluation of a configuration of data."""
    part = Part(config, ())
    channels, height, width = config["input_size"]
    crop = config.get("crop_pct") or 0.875
    scaled = tuple(math.floor(side / crop) for side in (height, width))
    mode = config.get("crop_mode") or "center"
    if channels != 3:
        raise PipelineError(f"has {channels} channels: only 3 are supported", "input_size")
    if mode not in ("center", "squash") or (mode == "center" and height != width):
        raise PipelineError(
            f"is {mode!r} for {height} x {width} pixels, which resizes to the long side: "
            'use "squash", or "center" with as much height as width',
            "crop_mode",
        )
    assembly = Assembly(PILLOW)
    name = method(part, config.get("interpolation") or "bilinear")
    size = scaled if mode == "squash" else scaled[0]
    assembly.resize(part, size, {"interpolation": name})
    assembly.center_crop(part, (height, width))
    assembly.to_unit()
    assembly.normalise(part, config["mean"], config["std"])
    return assembly.finish()


def _resampling(assembly: Assembly, part: Part) -> dict[str, str]:
    value = read(part, "interpolation")
    if not isinstance(value, (list, tuple)):
        name = method(part, value)
        assembly.resamples(part, name, True)
        return {"interpolation": name}
    names = [method(part, one) for one in value]
    if sorted(names) != ["bicubic", "bilinear"]:
        raise part.error(
            f"draws one of {', '.join(names)}: only bilinear and bicubic are supported"
        )
    assembly.resamples(part, "random", True)
    return {"interpolation": "random"}


def _random_resized_crop(assembly: Assembly, part: Part) -> None:
    size, area, ratio = (read(part, name) for name in ("size", "scale", "ratio"))
    assembly.random_resized_crop(part, pair(part, size), area, ratio, _resampling(assembly, part))


def _resize(assembly: Assembly, part: Part) -> None:
    """Resize to the short side, or to the long one, without drawing a scale."""
    size, longest = pair(part, read(part, "size")), number(read(part, "longest"))
    if read(part, "random_scale_prob") or read(part, "random_aspect_prob"):
        raise part.error("draws a scale: use train_crop_mode='rrc'")
    if longest not in (0, 1) or size[0] != size[1]:
        raise part.error(
            "resizes to a side between: use crop_mode='squash', or as much height as width"
        )
    if longest:
        assembly.resize_long(part, size[0], _resampling(assembly, part))
        return
    assembly.resize(part, size[0], _resampling(assembly, part))
    assembly.note("timm's ResizeKeepRatio rounds the long side, which is cut off here.")


def _crop_or_pad(assembly: Assembly, part: Part) -> None:
    fill, mode = read(part, "fill"), read(part, "padding_mode")
    levels = set(fill) if isinstance(fill, Sequence) else {fill}
    if len(levels) != 1:
        raise part.error(f"fills with {fill!r}: only one grey level is supported")
    size = pair(part, read(part, "size"))
    assembly.center_crop(part, size, fill=assembly.level(part, levels.pop()), padding_mode=mode)


def _tensor(assembly: Assembly, part: Part) -> None:
    assembly.to_tensor()
    assembly.to_unit()


def _integers(assembly: Assembly, part: Part) -> None:
    assembly.to_tensor()


def _own_tensor(assembly: Assembly, part: Part) -> None:
    """Make floats of grey levels."""
    assembly.to_tensor()
    assembly.element_type(part, str(read(part, "dtype")).rpartition(".")[2])
    assembly.to_unit(1.0)


def _erasing(assembly: Assembly, part: Part) -> None:
    if read(part, "num_splits") > 1:
        raise part.error("leaves a part of the batch alone: give num_splits=0")
    value = "pixel" if read(part, "per_pixel") else "colour" if read(part, "rand_color") else 0.0
    low, high = read(part, "log_aspect_ratio")
    values: dict[str, Any] = {
        "erasing_area": (number(read(part, "min_area")), number(read(part, "max_area"))),
        "erasing_ratio": (_short(math.exp(low)), _short(math.exp(high))),
    }
    counts = int(read(part, "min_count")), int(read(part, "max_count"))
    if counts != (1, 1):
        values["erasing_count"] = counts
    assembly.erase(part, number(read(part, "probability")), value, **values)


def _short(value: float) -> float:
    return float(f"{value:.12g}")


# Policies


def _policy(assembly: Assembly, part: Part, text: str, ops: Sequence[Any]) -> None:
    kwargs = [op.kwargs for op in ops]
    step: dict[str, Any] = {"op": "auto_augment", "policy": text}
    resample = kwargs[0]["resample"]
    drawn = isinstance(resample, (list, tuple))
    step["augment_interpolation"] = "random" if drawn else method(part, resample)
    step["augment_fill"] = tuple(int(level) for level in kwargs[0]["fillcolor"])
    assembly.step(part, step)


def _same(part: Part, ops: Sequence[Any], name: str) -> Any:
    """Return an attribute that all operations have in common."""
    values = {getattr(op, name) for op in ops}
    if len(values) != 1:
        raise part.error(f"has operations that differ in {name}: make it by its string")
    return values.pop()


def _number(value: float) -> str:
    return f"{number(value):g}"


def _spread(deviation: float) -> str:
    """Return the part of a string for the deviation of the magnitude."""
    return "" if not deviation else f"-mstd{'101' if math.isinf(deviation) else _number(deviation)}"


def _rand_augment(assembly: Assembly, part: Part) -> None:
    ops, weights = read(part, "ops"), read(part, "choice_weights")
    names = [op.name for op in ops]
    chosen = None
    for key, table in TIMM_SETS.items():
        even = len(set(table.values())) == 1
        if key != "augmix" and set(table) == set(names) and even == (weights is None):
            chosen = key
    if chosen is None:
        raise part.error("has a set of operations that timm does not name: make it by its string")
    text = f"rand-m{_number(_same(part, ops, 'magnitude'))}-n{int(read(part, 'num_layers'))}"
    p, most = _same(part, ops, "prob"), _same(part, ops, "magnitude_max")
    text += f"-p{_number(p)}" if p != 0.5 else ""
    text += _spread(_same(part, ops, "magnitude_std"))
    text += f"-mmax{most}" if most else ""
    text += {"": "", "inc": "-inc1"}.get(chosen, f"-t{chosen}")
    _policy(assembly, part, text, ops)


def _augmix(assembly: Assembly, part: Part) -> None:
    ops = read(part, "ops")
    if {op.name for op in ops} != set(TIMM_SETS["augmix"]):
        raise part.error("has other operations than timm's: make it by its string")
    text = f"augmix-m{_number(_same(part, ops, 'magnitude'))}-w{read(part, 'width')}"
    text += f"-d{part.transform.depth}" if read(part, "depth") > 0 else ""
    text += f"-a{_number(part.transform.alpha)}" if read(part, "alpha") != 1 else ""
    text += "-b1" if read(part, "blended") else ""
    deviation = _same(part, ops, "magnitude_std")
    text += "" if math.isinf(deviation) else f"-mstd{_number(deviation)}"
    _policy(assembly, part, text, ops)


def _auto_augment(assembly: Assembly, part: Part) -> None:
    policy = read(part, "policy")
    own_chains = [[(op.name, op.prob, op.magnitude) for op in chain] for chain in policy]
    ops = [op for chain in policy for op in chain]
    for text, (table, instead) in _POLICIES.items():
        chains = [
            [(instead if name == "Posterize" else name, p, level) for name, p, level in chain]
            for chain in AUTO_POLICIES[table]
        ]
        if chains == own_chains:
            _policy(assembly, part, text + _spread(_same(part, ops, "magnitude_std")), ops)
            return
    raise part.error("has a policy that timm does not name: make it by its string")


def _mixup(assembly: Assembly, part: Part) -> None:
    if read(part, "mode") != "batch" or read(part, "cutmix_minmax") is not None:
        raise part.error("mixes samples apart or by cutmix_minmax: give mode='batch' alone")
    assembly.mixing = {
        "mixup": number(read(part, "mixup_alpha")),
        "cutmix": number(read(part, "cutmix_alpha")),
        "switch": number(read(part, "switch_prob")),
        "prob": number(read(part, "mix_prob")),
        "label_smoothing": number(read(part, "label_smoothing")),
        "classes": int(read(part, "num_classes")),
    }


_OWN = {
    "RandomResizedCropAndInterpolation": Known(
        _random_resized_crop, "size scale ratio interpolation"
    ),
    "ResizeKeepRatio": Known(
        _resize,
        "size longest interpolation random_scale_prob random_aspect_prob",
        # Of what is drawn, which is refused, and of the old name of the last.
        "random_scale_range random_scale_area random_aspect_range fill",
    ),
    "CenterCropOrPad": Known(_crop_or_pad, "size fill padding_mode"),
    "ToNumpy": Known(_integers),
    "MaybePILToTensor": Known(_integers),
    "MaybeToTensor": Known(_tensor),
    "ToTensor": Known(_own_tensor, "dtype"),
    "RandomErasing": Known(
        _erasing,
        "probability min_area max_area min_aspect max_aspect mode min_count max_count num_splits",
        "device",
    ),
    "RandAugment": Known(_rand_augment, "ops num_layers choice_weights"),
    "AugMixAugment": Known(_augmix, "ops alpha width depth blended"),
    "AutoAugment": Known(_auto_augment, "policy"),
    "Mixup": Known(
        _mixup,
        "mixup_alpha cutmix_alpha cutmix_minmax prob switch_prob mode label_smoothing num_classes",
        only={"correct_lam": True, "multi_label": False},
    ),
}


def _translate(assembly: Assembly, part: Part) -> None:
    """Look a transform up among timm's, or torchvision's where it is of that library."""
    table = _OWN if part.library == "timm" else TRANSFORMS
    translation(table, _LIBRARIES)(assembly, part)
