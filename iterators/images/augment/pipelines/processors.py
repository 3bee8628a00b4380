"""Image processors of Hugging Face as keywords: their ``preprocessor_config.json``.

A processor is read by its `to_dict`; nothing of transformers is imported.
"""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .assembly import Assembly
from .parts import Part, PipelineError, Translated
from .torchvision import PILLOW, method

FILE = "preprocessor_config.json"
_HALVES = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
_IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
_OPENAI = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
_BILINEAR, _BICUBIC = {"resample": 2}, {"resample": 3}
_USUAL = {"do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True}


def _square(side: int) -> dict[str, Any]:
    return {"size": {"height": side, "width": side}, "default_to_square": True}


def _short(side: int, crop: int) -> dict[str, Any]:
    return {
        "size": {"shortest_edge": side},
        "default_to_square": False,
        "do_center_crop": True,
        "crop_size": {"height": crop, "width": crop},
    }


_CLIP = {**_USUAL, **_short(224, 224), **_BICUBIC, **_OPENAI}
#: Values of the keys that a file lacks, of every class that works by them alone, as transformers 5
#: has them.  `default_to_square` says what a size of one number is.
CLASSES: dict[str, dict[str, Any]] = {
    "Beit": {**_USUAL, **_square(224), **_BICUBIC, **_HALVES,
             "crop_size": {"height": 224, "width": 224}},
    "Bit": _CLIP,
    "Blip": {**_USUAL, **_square(384), **_BICUBIC, **_OPENAI},
    "ChineseCLIP": _CLIP,
    "CLIP": _CLIP,
    "ConvNext": {**_USUAL, "size": {"shortest_edge": 384}, "default_to_square": False,
                 "crop_pct": 224 / 256, **_BICUBIC, **_HALVES},
    "DeiT": {**_USUAL, **_square(256), **_BICUBIC, **_HALVES, "do_center_crop": True,
             "crop_size": {"height": 224, "width": 224}},
    "DPT": {**_USUAL, **_square(384), **_BICUBIC, **_HALVES, "ensure_multiple_of": 1},
    "Levit": {**_USUAL, **_short(224, 224), **_BICUBIC, **_IMAGENET},
    "Llava": _CLIP,
    "MobileNetV1": {**_USUAL, **_short(256, 224), **_BILINEAR, **_HALVES},
    "MobileNetV2": {**_USUAL, **_short(256, 224), **_BILINEAR, **_HALVES},
    "MobileViT": {**_USUAL, **_short(224, 256), **_BICUBIC, **_HALVES, "do_normalize": False,
                  "do_flip_channel_order": True},
    "OwlViT": {**_USUAL, **_square(768), **_BICUBIC, **_OPENAI,
               "crop_size": {"height": 768, "width": 768}},
    "PoolFormer": {**_USUAL, **_short(224, 224), **_BICUBIC, **_IMAGENET, "crop_pct": 0.9},
    "Pvt": {**_USUAL, **_square(224), **_BICUBIC, **_IMAGENET},
    "Segformer": {**_USUAL, **_square(512), **_BILINEAR, **_IMAGENET},
    "Siglip": {**_USUAL, **_square(224), **_BICUBIC, **_HALVES, "default_to_square": False},
    "ViT": {**_USUAL, **_square(224), **_BILINEAR, **_HALVES},
}  # fmt: skip
#: Endings of the names of classes, of today and of older releases.
_ENDINGS = ("Fast", "Pil", "ImageProcessor", "FeatureExtractor")
#: Keys that are read.
_READ = frozenset(
    (
        *("do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_convert_grayscale"),
        *("do_grayscale", "size", "crop_size", "default_to_square", "max_size", "crop_pct"),
        *("resample", "rescale_factor", "image_mean", "image_std", "use_square_size"),
    )
)
#: Keys that change no pixel of an RGB image.
IDLE = frozenset(
    (
        *("image_processor_type", "feature_extractor_type", "processor_class", "_processor_class"),
        *("_valid_processor_keys", "auto_map", "transformers_version", "model_input_names"),
        *("return_tensors", "data_format", "input_data_format", "device", "disable_grouping"),
        *("do_convert_rgb", "do_reduce_labels", "reduce_labels", "num_labels", "backend"),
        *("image_seq_length", "image_token_length", "pad_size"),  # where do_pad is off
    )
)
#: Keys that change images when they are set, what they do, and values beside false that do nothing.
_REFUSED: dict[str, tuple[str, tuple[Any, ...]]] = {
    "keep_aspect_ratio": ("keeps the aspect ratio in a way of its own", ()),
    "ensure_multiple_of": ("rounds sizes to multiples", (1,)),
    "size_divisor": ("rounds sizes to multiples", (1,)),
    "rescale_offset": ("shifts values", ()),
    "include_top": ("normalises twice", ()),
    "do_flip_channel_order": ("exchanges the channels", ()),
    "max_image_size": ("makes images of different sizes", ()),
}
#: Classes of transformers 5 with code of their own that were compared: their files say all.
_COMPARED = ("DINOv3ViT", "SegGpt", "SuperPoint", "VideoLlava", "VideoMAE")
#: Classes that do more than their files say.
_OTHERWISE = {
    "Perceiver": "crops before it resizes, by a share of the image",
    "EfficientNet": "normalises twice and shifts values by keys that files need not have",
}
_KNOWN = frozenset((*CLASSES, *_OTHERWISE, *_COMPARED))
#: Names of methods that change no pixel.
_HARMLESS = re.compile("__(?!call)|to_|from_|save_|push_to_|register_|.*post_process")


def translated(processor: Any) -> Translated:
    """Return what a processor is in keywords: a path, a dictionary or an object with `to_dict`."""
    settings = {key: value for key, value in config_of(processor).items() if value is not None}
    name = name_of(processor, settings)
    part = _Named(settings, (), name or "the image processor")
    short = short_name(name)
    if short in _OTHERWISE:
        raise part.error(_OTHERWISE[short])
    defaults = CLASSES.get(short)
    if defaults is None:
        _refuse_gaps(part, settings)
    config = {**(defaults or {}), **settings}
    _refuse_unknown(part, config)
    assembly = Assembly(PILLOW)
    _geometry(assembly, part, config, short)
    _values(assembly, part, config)
    return assembly.finish()


def _refuse_gaps(part: Part, settings: Mapping[str, Any]) -> None:
    """Refuse a class without a name here whose file leaves things to its constructor."""
    needed = {
        "size": ("do_resize",),
        "crop_size": ("do_center_crop",),
        "do_resize": ("size", "resample"),
        "do_center_crop": ("crop_size",),
        "do_normalize": ("image_mean", "image_std"),
    }
    for key, others in needed.items():
        for other in others:
            if settings.get(key) and other not in settings:
                raise part.error(f"says {key}, but no {other}, whose default is not known: add it")
    if settings.get("do_resize") and not isinstance(settings["size"], Mapping):
        raise part.error(
            f"size={settings['size']!r} may be the short side or a square: give shortest_edge, or "
            "height and width"
        )


def _refuse_unknown(part: Part, config: Mapping[str, Any]) -> None:
    """Refuse keys that are set and have no counterpart, or no known meaning."""
    for key, value in config.items():
        what, nothing = _REFUSED.get(key, ("has no counterpart here", ()))
        if key in _READ or key in IDLE or not value or value in nothing:
            continue
        if key in _REFUSED or key.startswith("do_"):
            raise part.error(f"{key}={value!r} {what}: set it to false if you can")
        raise part.error(f"{key}={value!r:.60} is not known here: drop it if it changes no pixel")


class _Named(Part):
    """A part whose name is that of the processor."""

    def __init__(self, transform: Any, position: tuple[int, ...], kind: str) -> None:
        super().__init__(transform, position)
        object.__setattr__(self, "_kind", kind)

    @property
    def name(self) -> str:
        """The name of the processor."""
        return str(self.__dict__["_kind"])


def name_of(processor: Any, config: Mapping[str, Any], families: Iterable[str] = ()) -> str:
    """Return the name of the class of a processor; an empty one if nothing says it.

    A class derived from one that is known here has the name of that, and may not process images
    in a way of its own, which no setting tells.
    """
    name = str(config.get("image_processor_type") or config.get("feature_extractor_type") or "")
    if isinstance(processor, (str, os.PathLike, Mapping)):
        return name
    kind = type(_inside(processor))
    name = name or kind.__name__
    own: list[str] = []
    for number, base in enumerate(kind.__mro__):
        library, _, module = base.__module__.partition(".")
        short = short_name(base.__name__)
        known = short in _KNOWN.union(families)
        if library == "transformers" and (known or not module.startswith("models.")):
            if own:
                raise PipelineError(
                    f"has {', '.join(own)} of its own, which may make other pixels: give the "
                    "keywords, or the processor's to_dict() if they do not",
                    kind.__name__,
                )
            return base.__name__ if known and short_name(name) != short else name
        later = {key for one in kind.__mro__[number + 1 :] for key in vars(one)}
        own += [
            key
            for key, value in vars(base).items()
            if inspect.isroutine(value) and key in later and not _HARMLESS.match(key)
        ]
    return name


def short_name(name: str) -> str:
    """Return the name of a class without the words that all of them end with."""
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return name


def config_of(processor: Any) -> Mapping[str, Any]:
    """Return the configuration as a dictionary."""
    if isinstance(processor, (str, os.PathLike)):
        path = Path(processor)
        path = path / FILE if path.is_dir() else path
        processor = json.loads(path.read_text(encoding="utf-8"))
    inside = _inside(processor)
    config = inside.to_dict() if hasattr(inside, "to_dict") else inside
    if not isinstance(config, Mapping):
        raise TypeError(
            f"processor={processor!r:.80}: expected the path of a {FILE}, what is in it, or an "
            "image processor"
        )
    return config.get("image_processor", config)


def _inside(processor: Any) -> Any:
    """Return the image processor in a processor for several things."""
    return getattr(processor, "image_processor", processor)


def _geometry(assembly: Assembly, part: Part, config: Mapping[str, Any], short: str) -> None:
    crop = None
    if config.get("do_center_crop", False):
        crop = _sizes(part, "crop_size", config.get("crop_size"), square=True)
    if config.get("do_resize", False):
        square = bool(config.get("default_to_square", True))
        size = _sizes(part, "size", config.get("size"), square)
        if isinstance(config.get("size"), int) and config.get("max_size"):
            raise part.error(
                f"max_size={config['max_size']!r} limits the long side: drop it, or give size with "
                "height and width"
            )
        if config.get("use_square_size"):
            size = _kosmos(part, size, short)
        share = config.get("crop_pct")
        if short == "Levit" and isinstance(size, int):
            size = int(256 / 224 * size)
        elif short == "ConvNext":
            if not isinstance(size, int) or crop is not None:
                raise part.error("needs shortest_edge as its size, and crops by crop_pct alone")
            if size >= 384:
                size = size, size
            else:
                crop, size = (size, size), int(size / float(config["crop_pct"]))
        elif share is not None:
            raise part.error(f"crop_pct={share!r} belongs to a rule that is not known here")
        assembly.resize(part, size, {"interpolation": method(part, config["resample"])})
        smaller = min(size) if isinstance(size, tuple) else size
        if crop is not None and smaller < max(crop):
            raise part.error(
                f"crops {crop} of images that it makes as small as {smaller}, and pads them by "
                "rules that differ between releases: give crop_size at most that"
            )
    if crop is not None:
        assembly.center_crop(part, crop, "center_floor", fill=0)


def _kosmos(part: Part, size: int | tuple[int, int], short: str) -> tuple[int, int]:
    """Return the size that CLIP's processor takes in place of a short side."""
    if short != "CLIP" or size != 224:
        raise part.error(
            f"use_square_size=True makes squares of 224 pixels, whatever size is ({size}): give "
            "size with height and width"
        )
    return 224, 224


def _sizes(part: Part, key: str, size: Any, square: bool) -> Any:
    """Return the short side or (height, width)."""
    if size is None:
        raise part.error(f"says no {key}: give {key}")
    if isinstance(size, Mapping):
        sides = {name: value for name, value in size.items() if value is not None}
        if sides.keys() == {"height", "width"}:
            return int(sides["height"]), int(sides["width"])
        if sides.keys() == {"shortest_edge"} and key == "size":
            return int(sides["shortest_edge"])
        raise part.error(
            f"{key}={dict(size)!r}: only height and width, or shortest_edge, are supported"
        )
    if isinstance(size, (list, tuple)):
        return int(size[0]), int(size[1])
    return (int(size), int(size)) if square else int(size)


def _values(assembly: Assembly, part: Part, config: Mapping[str, Any]) -> None:
    if config.get("do_convert_grayscale") or config.get("do_grayscale"):
        assembly.grey(part, 1)
    rescales = config.get("do_rescale", config.get("do_normalize", False))
    factor = float(config.get("rescale_factor") or 1 / 255)
    normalises = bool(config.get("do_normalize", False))
    if rescales or normalises:
        assembly.to_unit(1 / factor if rescales else 1.0)
    if normalises:
        assembly.normalise(part, config["image_mean"], config["image_std"])
