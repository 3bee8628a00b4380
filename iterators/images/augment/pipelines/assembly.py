"""Keywords assembled from the transforms of a pipeline, in their order.

`Assembly` knows the order in which a recipe works, and refuses what another order would change.
It knows no library: the files beside it say what each of their transforms means.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .parts import Given, Part, PipelineError, Translated, flat, number
from .values import IN_FRONT, Values

#: A step that leaves all images as they are.
NOTHING: dict[str, Any] = {"op": "invert", "p": 0.0}

#: Operations on single pixels, which may as well be done before a crop that resamples nothing.
_POINTWISE = ("grayscale", "invert", "posterize", "solarize")
_FLIPS = ("hflip", "vflip")
#: Interpolations whose results are never outside of the values that they are made of.
_BLENDS = frozenset(("nearest", "bilinear", "box", "hamming", 0, 1, 3))
#: Operations for which a tensor has other arithmetic than an image of Pillow.
_MOVES = ("rotate", "affine", "perspective", "auto_augment")
#: Strengths with which a warp moves nothing.
_STILL = {"degrees": 0, "translate": 0, "scale": 1, "shear": 0, "distortion_scale": 0}


class Assembly(Values):
    """Keywords so far, and what of an image is known at this point of the pipeline.

    Each method stands for a transform, whose `Part` comes first.  One that refuses may have changed
    something: try it on a copy, `apart`.
    """

    def __init__(self, base: Mapping[str, Any], source: Given = Given()) -> None:  # noqa: B008
        super().__init__(source.channels)
        self.keywords |= base
        self.mixing: dict[str, Any] = {}
        self.notes: list[str] = []
        self.steps: list[dict[str, Any]] = []
        self._source = source
        self._size = source.size  # of all images from here on
        # Side that all images have at least.
        self._short: int | None = None if source.size is None else min(source.size)
        self._long: tuple[int, Part] | None = None  # to which images were resized, and no more yet
        self._cropped: Part | None = None
        self._colours: Part | None = None  # first operation before any crop
        self._flips: dict[str, tuple[float, Part]] = {}  # before any crop
        self._warped: Part | None = None
        self._views: list[dict[str, Any]] = []
        self._inside = False  # a transform that draws among others

    def apart(self) -> Assembly:
        """Return a copy, for a transform that may be refused halfway."""
        other = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, (dict, list)):
                setattr(other, name, value.copy())
        return other

    def inside(self, part: Part) -> Assembly:
        """Return one without steps in which every transform has to be a step."""
        other = self.apart()
        other.steps, other._flips, other._views, other._inside = [], {}, [], True
        other._cropped, other._size = part, self._size or (0, 0)
        return other

    def inner_steps(
        self,
        part: Part,
        transforms: Iterable[Any],
        containers: Sequence[str],
        translate: Callable[[Assembly, Part], None],
    ) -> list[dict[str, Any]]:
        """Return one step for each of the transforms inside one that draws among them."""
        all_steps: list[dict[str, Any]] = []
        for index, transform in enumerate(transforms):
            trial = self.inside(part)
            for one in flat(transform, containers, (*part.position, index)):
                translate(trial, one)
            steps = trial.steps or [NOTHING]
            all_steps.append(steps[0] if len(steps) == 1 else {"op": "apply", "of": steps})
            self.notes = trial.notes
        return all_steps

    @property
    def has_final_size(self) -> bool:
        """True once images need no further change of their size."""
        return self._size is not None or (self.is_tensor and "resize" not in self.keywords)

    def note(self, text: str) -> None:
        """Say once what differs."""
        if text not in self.notes:
            self.notes.append(text)

    # Geometry

    def resize(
        self,
        part: Part,
        size: int | tuple[int, int],
        resampling: Mapping[str, Any],
        most: int | None = None,
    ) -> None:
        """Resize to a short side, with at `most` so long a side, or to (height, width)."""
        self._before_resampling(part)
        if self._cropped is not None:
            self._resize_crop(part, size)
        elif "resize" in self.keywords:
            raise part.error("is the second of its kind: keep one")
        elif self._warped is not None or "pad" in self.keywords:
            raise part.error("stands behind a rotation or a border: move it in front of them")
        else:
            self.keywords["resize"] = size
            if not isinstance(size, int):
                self._size = size
            elif self._size is not None:  # sides are cut to whole numbers
                self._size = _resized(self._size, size, most)
            self._short = size if isinstance(size, int) else min(size)
            if most is not None:
                self.keywords["max_side"] = most
                self._short = None if self._size is None else min(self._size)
        self._resampled(part, resampling)

    def resize_long(self, part: Part, size: int, resampling: Mapping[str, Any]) -> None:
        """Resize to a long side, and round the short one; what pads then is a `letterbox`."""
        self._before_resampling(part)
        if (
            self._size is not None
            or self._short is not None
            or self._flips
            or self._warped is not None
            or self.keywords.keys() & {"resize", "pad"}
        ):
            raise part.error('stands behind other changes: give resize="contain" as a keyword')
        self._resampled(part, resampling)
        self._long = size, part

    def _settle_long(self) -> None:
        """Take a resize to the long side that nothing pads; keywords cut the short one."""
        if self._long is None:
            return
        (side, part), self._long = self._long, None
        self.keywords |= {"resize": side, "max_side": side}
        self.note(f"{part.name} rounds the short side, which is cut to a whole number here.")

    def letterbox(self, part: Part, size: tuple[int, int], fill: int) -> bool:
        """Pad to a size what was resized to its long side; False if nothing was."""
        if self._long is None:
            return False
        (side, _), self._long = self._long, None
        self._may_change(part)
        if size != (side, side):
            raise part.error(f"pads to {size}, and images were resized to {side}: give both one")
        self.keywords |= {"resize": "contain", "fill_value": fill}
        self._crop(part, size)
        return True

    def _resize_crop(self, part: Part, size: int | tuple[int, int]) -> None:
        """Resize the crop: of MXNet's keywords for a square one."""
        assert self._size is not None
        height, width = self._size
        new_size = (size, size) if isinstance(size, int) else size
        if height != width or new_size[0] != new_size[1] or "resize" in self.keywords or self.steps:
            raise part.error(
                "stands behind a crop, which is possible for squares alone, without a first "
                "resize and without steps in between: crop last, or use RandomResizedCrop"
            )
        if "random_resized_crop" in self.keywords or self._views:
            raise part.error("resizes twice: drop it, and give the crop this size")
        self.keywords |= {"min_crop_size": height, "max_crop_size": height}
        self._size = new_size

    def _resampled(self, part: Part, resampling: Mapping[str, Any]) -> None:
        if any(self.keywords.get(name, value) != value for name, value in resampling.items()):
            raise part.error("resamples in another way than what is before it: interpolate alike")
        if self.is_tensor and not _BLENDS.issuperset(resampling.values()):
            raise part.error(
                f"resamples floats by {', '.join(map(str, resampling.values()))}, whose results "
                "leave the range of the pixels: put it in front of what makes floats"
            )
        if self._is_mirrored and not {"nearest", 0}.isdisjoint(resampling.values()):
            raise part.error(
                "stands behind a flip, and takes other nearest pixels of what is mirrored: move "
                "the flip behind it"
            )
        self.keywords |= resampling

    @property
    def _is_mirrored(self) -> bool:
        return bool(self._flips) or any(step["op"] in _FLIPS for step in self.steps)

    def center_crop(
        self,
        part: Part,
        size: tuple[int, int],
        position: str = "",
        *,
        pads: bool = True,
        **border: Any,
    ) -> None:
        """Crop at the centre, or at that position; `border` is for images that are smaller."""
        if self._size == size:
            return
        constant = pads and border.get("padding_mode", "constant") == "constant"
        if self._long is not None and constant and size == (self._long[0],) * 2:
            self.letterbox(part, size, border.get("fill", 0))
            return
        self._before_crop(part)
        if pads and self._may_be_smaller(size):
            self._fill(part, border)
        if self._is_mirrored:
            position = position or "center"
        if position:
            self.keywords["crop_position"] = position
        self._crop(part, size)

    def random_crop(self, part: Part, size: tuple[int, int], **border: Any) -> None:
        """Crop anywhere; `border` says what is added before, and where images are smaller."""
        if self._size == size and not border.get("pad"):
            return
        self._before_crop(part)
        if border.get("pad"):
            self.pad(part, **{name: border[name] for name in border if name != "pad_if_needed"})
        if border.get("pad_if_needed") and self._may_be_smaller(size):
            self._fill(part, border)
            self.keywords["pad_if_needed"] = True
        self.keywords["rand_crop"] = True
        self._crop(part, size)

    def _may_be_smaller(self, size: tuple[int, int]) -> bool:
        if self._size is not None:
            return self._size[0] < size[0] or self._size[1] < size[1]
        return self._short is None or self._short < max(size)

    def _fill(self, part: Part, border: Mapping[str, Any]) -> None:
        """Take the content of a border, which must be that of others."""
        fill, mode = border.get("fill", 0), border.get("padding_mode", "constant")
        if not isinstance(fill, int):
            raise part.error(f"fills with {fill!r}: only one grey level is supported")
        if self._normal is not None:
            raise part.error("stands behind Normalize: move it in front of that")
        if not all(_keeps(step, fill) for step in self.steps):
            raise part.error("pads behind a change of colours: move it in front of that")
        if mode != "constant" and not border.get("pad"):
            raise part.error(f"fills with {mode!r} what is missing: that needs the constant mode")
        fills = {"fill_value": fill} if mode == "constant" else {"padding_mode": mode}
        others = ("fill_value", "padding_mode")
        if any(fills.get(name) != self.keywords[name] for name in others if name in self.keywords):
            raise part.error("fills with something else than the transforms before it: fill alike")
        self.keywords |= fills

    def random_resized_crop(
        self,
        part: Part,
        size: tuple[int, int],
        area: Sequence[Any],
        ratio: Sequence[Any],
        resampling: Mapping[str, Any],
    ) -> None:
        """Crop a random share of the area and resize it."""
        self._before_crop(part)
        self._before_resampling(part)
        self.keywords |= {
            "random_resized_crop": True,
            "min_random_area": number(area[0]),
            "max_random_area": number(area[1]),
            "min_aspect_ratio": number(ratio[0]),
            "max_aspect_ratio": number(ratio[1]),
            "log_aspect_ratio": True,
        }
        self._resampled(part, resampling)
        self._crop(part, size)

    def many_crops(self, part: Part, size: tuple[int, int], flipped: str | None) -> None:
        """Crop four corners and the centre; and once more, ``flipped`` "mirror" or "flip_p"."""
        self._before_crop(part)
        if self._flips:
            raise part.error("stands behind a flip: move the flip behind it")
        positions = ("top_left", "top_right", "bottom_left", "bottom_right", "center")
        self._views = [{"crop_position": position} for position in positions]
        if flipped:
            more = {"mirror": True} if flipped == "mirror" else {"flip_p": 1.0}
            self._views += [{**view, **more} for view in self._views]
        self._crop(part, size)

    def _crop(self, part: Part, size: tuple[int, int]) -> None:
        self._cropped, self._size, self._short = part, size, min(size)

    def _before_crop(self, part: Part) -> None:
        if self._long is not None and "resample" not in self.keywords:
            side, resize = self._long
            raise resize.error(
                f"makes images that may be smaller than {part}: pad them to ({side}, {side}) "
                'behind it, which is resize="contain"'
            )
        self._settle_long()
        if self._cropped is not None:
            raise part.error(f"is a second crop, behind {self._cropped}: keep one")
        self._before_change(part)
        if self._colours is not None:
            raise self._colours.error(f"stands in front of {part}: move it behind that")

    def _before_resampling(self, part: Part) -> None:
        self._before_border(part)
        if self._normal is not None:
            raise part.error("stands behind Normalize: move it in front of that")

    def _before_border(self, part: Part) -> None:
        self._settle_long()
        if self._cropped is None and any(step["op"] not in _FLIPS for step in self.steps):
            raise part.error("stands behind a change of colours: move it in front of that")
        self._before_change(part)

    def _before_change(self, part: Part) -> None:
        """Refuse what is done behind erasing, which comes last here."""
        if self._erased is not None:
            raise self._erased.error(f"stands in front of {part}: move it behind that")

    def pad(self, part: Part, pad: int, **border: Any) -> None:
        """Add a border to every image."""
        self._before_border(part)
        if self._cropped is not None or "pad" in self.keywords:
            raise part.error("stands behind a crop or another border: move it in front of the crop")
        self._fill(part, {**border, "pad": pad})
        self.keywords["pad"] = pad
        if self._size is not None:
            self._size = self._size[0] + 2 * pad, self._size[1] + 2 * pad
        if self._short is not None:
            self._short += 2 * pad

    def flip(self, part: Part, op: str, p: float) -> None:
        """Mirror ("hflip") or turn upside down ("vflip") with a probability."""
        if p == 0:
            return
        if self._cropped is None and not self.steps:
            if op in self._flips:
                raise part.error("is the second of its kind: keep one")
            self._flips[op] = p, part
        else:
            self.steps.append(_chance({"op": op}, p))

    def warp(self, part: Part, op: str, values: Mapping[str, Any], p: float = 1.0) -> None:
        """Rotate, move or see in perspective: before the crop by keywords, then by a step."""
        if p == 0 or _is_still(values):
            return
        if self._normal is not None:
            raise part.error("stands behind Normalize: move it in front of that")
        self._refuse_tensors(part, {"op": op})
        reason = self._not_before_crop({"op": op, **values})
        if reason and self._size is not None:
            self.step(part, {"op": op, **values}, p)
            return
        self._before_border(part)
        if reason:
            raise part.error(reason)
        self._fill(part, {"fill": values["fill"]})
        keywords: dict[str, Any] = {"warp_interpolation": values["interpolation"]}
        if op == "rotate":
            keywords["rotation"] = values["degrees"]
        elif op == "perspective":
            keywords |= {"perspective": values["distortion_scale"], "perspective_p": p}
        else:
            parts = ("degrees", "translate", "scale", "shear")
            keywords["affine"] = {name: values[name] for name in parts if name in values}
        self.keywords |= keywords
        self._warped = part

    def _not_before_crop(self, step: Mapping[str, Any]) -> str:
        """Return why a warp cannot be done between resize and crop; "" if it can."""
        if self._cropped is not None or self.steps:
            return "stands behind other changes: move it in front of them"
        if self._warped is not None:
            return f"is a second warp before the crop, behind {self._warped}: keep one"
        if self._flips and not _symmetric(step):
            return "stands behind a flip and is not symmetric: move the flip behind it"
        if "pad" in self.keywords:
            return "stands behind a border: move it in front of that"
        if not isinstance(step["fill"], int):
            return f"fills with {step['fill']!r}: before a crop it takes one grey level"
        return ""

    # Colours

    def step(self, part: Part, step: Mapping[str, Any], p: float = 1.0) -> None:
        """Add an operation of `steps`."""
        if p == 0:
            return
        self._may_change(part)
        self._refuse_tensors(part, step)
        if self.is_tensor:
            self.note("What changes tensors of floats is done before they are made, in 8 bits.")
        if self._cropped is None and step["op"] not in _POINTWISE:
            self._colours = self._colours or part
        self.steps.append(_chance(step, p))

    def _refuse_tensors(self, part: Part, step: Mapping[str, Any]) -> None:
        """Refuse an operation that Pillow carries out in another way than torch."""
        if self._tensor and step["op"] in _MOVES:
            raise part.error(f"moves pixels of tensors, where torch picks others: {IN_FRONT}")
        if self._tensor and "hue" in step:
            raise part.error(f"turns hues of tensors, in floats, up to 12 levels apart: {IN_FRONT}")

    def _may_change(self, part: Part) -> None:
        self._settle_long()
        if self._normal is not None:
            raise part.error("stands behind Normalize: move it in front of that")
        self._before_change(part)

    def grey(self, part: Part, channels: int | None = None, p: float = 1.0) -> None:
        """Make images grey, of one channel or three, or of as many as they have."""
        if channels is None or channels == self._channels:
            if self._channels != 1:
                self.step(part, {"op": "grayscale"}, p)
            return
        if channels not in (1, 3) or self._inside:
            raise part.error(f"makes {channels} channels: let it make {self._channels}")
        self._may_change(part)
        if channels == 3:
            self.colour(part)
            return
        if self.steps:
            raise part.error("stands behind changes of colours: let it make 3 channels")
        self._channels = 1

    def colour(self, part: Part) -> None:
        """Make three channels of one, all alike."""
        if self._channels == 3:
            return
        if self._inside:
            raise part.error("makes 3 channels of 1 among others: move it out")
        self._may_change(part)
        if self._source.channels == 3:  # made grey before
            self.steps.insert(0, {"op": "grayscale"})
        self._channels = 3

    def jitter(self, part: Part, ranges: Mapping[str, Any], p: float = 1.0) -> None:
        """Change brightness, contrast, saturation and hue, of which grey images have the first."""
        if self._channels == 1:
            ranges = {name: ranges[name] for name in ranges if name not in ("saturation", "hue")}
        if ranges:
            self.step(part, {"op": "color_jitter", **ranges}, p)

    # The end

    def finish(self, rest: Sequence[Any] = ()) -> Translated:
        """Return the keywords of everything so far."""
        self._settle_long()
        keywords = self.keywords
        if self.mixing and self._cropped is None and self._size is None and not self.steps:
            return Translated({}, self.mixing)
        if self._size is not None:
            keywords = {"data_shape": (self._channels, *self._size), **keywords}
        else:
            one = f"({self._channels}, height, width)"
            self.note(
                f"Images have sizes of their own: give data_shape={one}, or for a list of them "
                f"data_shape=({self._channels}, None, None) and orient=True."
            )
        keywords |= self._flip_keywords()
        if self._views:
            keywords["views"] = tuple(self._views)
        keywords |= self._program()
        if self._unit is None:
            keywords["dtype"] = "uint8"
        else:
            keywords |= self.normalisation()
        kind = "tensor" if self.is_tensor else "image"
        return Translated(keywords, self.mixing, tuple(self.notes), tuple(rest), kind)

    def _flip_keywords(self) -> dict[str, Any]:
        """Take flips out of the steps where their position makes no difference."""
        free = all(map(_symmetric, self.steps))
        keywords: dict[str, Any] = {}
        for op in _FLIPS:
            steps = [step for step in self.steps if step["op"] == op]
            if op in self._flips:
                p, part = self._flips[op]
                if not free and "crop_position" in self.keywords:
                    raise part.error("stands in front of a crop and of a warp: move it behind them")
                if not free:
                    self.steps.insert(0, _chance({"op": op}, p))
                    continue
            elif free and len(steps) == 1 and not self._views:
                self.steps.remove(steps[0])
                p = steps[0].get("p", 1.0)
            else:
                continue
            if op == "vflip":
                keywords["flip_p"] = p
            elif p == 1:
                keywords["mirror"] = True
            else:
                keywords |= {"rand_mirror": True} | ({"mirror_p": p} if p != 0.5 else {})
        return keywords

    def _program(self) -> dict[str, Any]:
        """Return what changes colours: a policy that is alone by keywords, the rest as steps."""
        if len(self.steps) != 1 or self.steps[0]["op"] != "auto_augment" or "p" in self.steps[0]:
            return {"steps": tuple(self.steps)} if self.steps else {}
        values = {name: value for name, value in self.steps[0].items() if name != "op"}
        return {"auto_augment": values.pop("policy"), **values}


def assemble(
    parts: Iterable[Part],
    translate: Callable[[Assembly, Part], None],
    base: Mapping[str, Any],
    tail: bool,
    source: Given,
) -> Translated:
    """Translate transforms one after the other; the rest stays in Python if `tail` allows it."""
    assembly, listed = Assembly(base, source), list(parts)
    before = assembly, 0  # where images were still images
    for index, part in enumerate(listed):
        trial = assembly.apart()
        if not assembly.has_tensors:
            before = assembly, index
        try:
            translate(trial, part)
        except PipelineError as error:
            if not tail:
                raise
            if assembly.has_tensors and not assembly.is_tensor:
                assembly, index = before
            if not assembly.has_final_size:
                raise part.error(
                    f'{error.reason} (python="tail" cannot help: what stays in Python begins once '
                    "all images have one size, behind the crop)"
                ) from None
            return assembly.finish([one.transform for one in listed[index:]])
        assembly = trial
    return assembly.finish()


def _resized(size: tuple[int, int], short: int, most: int | None) -> tuple[int, int]:
    """Return the height and width that an image gets by a resize to a short side."""
    if most is not None and most <= short:
        return _scaled(size, most, max(size))
    sides = _scaled(size, short, min(size))
    return sides if most is None or max(sides) <= most else _scaled(sides, most, max(sides))


def _scaled(size: tuple[int, int], side: int, now: int) -> tuple[int, int]:
    return side * size[0] // now, side * size[1] // now


def _chance(step: Mapping[str, Any], p: float) -> dict[str, Any]:
    return dict(step) if p == 1 else {**step, "p": p}


def _keeps(step: Mapping[str, Any], level: int) -> bool:
    """Return whether a change of single pixels leaves a grey level, that of a border, as it is."""
    if step["op"] == "solarize":
        return bool(level < step["threshold"])
    if step["op"] == "posterize":
        return level % (1 << 8 - step["bits"]) == 0
    return bool(step["op"] != "invert")


def _is_still(values: Mapping[str, Any]) -> bool:
    """Return whether a warp moves nothing, whatever is drawn."""
    return all(
        {still}.issuperset(values[name] if isinstance(values[name], tuple) else (values[name],))
        for name, still in _STILL.items()
        if name in values
    )


def _symmetric(step: Mapping[str, Any]) -> bool:
    """Return whether mirroring before a step is as likely as mirroring behind it."""
    if "of" in step:
        return all(map(_symmetric, step["of"]))
    ranges = [step.get("degrees") or (0, 0)]
    shear = step.get("shear") or ()
    ranges += [shear[:2] or (0, 0), shear[2:] or (0, 0)]
    return all(low == -high for low, high in ranges)
