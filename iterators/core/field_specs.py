"""Fields of a sample beside its image and label, as they are asked for: plain descriptions.

`iterators.images.fields` makes them; users have the names from `iterators.fields`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from recordio.keywords.checks import boolean, choice, integer
from recordio.keywords.options import Options, accepts, option, optional

__all__ = ["FieldKind", "Image", "Mask", "checked_fields"]

INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos")
VALUE_TYPES = ("uint8", "uint16", "int32", "int64", "float32")
#: Whole numbers that each of them holds exactly.
LARGEST = dict(zip(VALUE_TYPES, (255, 65535, (1 << 31) - 1, 1 << 53, 1 << 24), strict=True))


@dataclass(frozen=True, kw_only=True)
class FieldKind(Options):
    """Base class of the kinds of fields."""

    #: Whether a field comes from the pack beside the pack that has its name.
    stored: ClassVar[bool] = True
    #: Whether it is an array of a batch; else a list.
    is_array: ClassVar[bool] = True


@accepts()
@dataclass(frozen=True, kw_only=True)
class Mask(FieldKind):
    """A mask: the number of a class, or of an object, for every pixel of the image.

    The pixels of the batch are picked from those of the mask by every step that was drawn for the
    image, each by the nearest neighbour.  Masks are PNG, or other lossless images with one value
    for each pixel; the numbers of colours in a palette count, not the colours.

    Parameters
    ----------
    {parameters}

    Raises
    ------
    ValueError
        If `dtype` does not hold `ignore`.

    Examples
    --------
    >>> from iterators.fields import Mask
    >>> Mask(ignore=-100, dtype="int64")
    Mask(ignore=-100, dtype='int64')
    """

    ignore: int = option(
        255,
        "int",
        "Value of pixels that lie outside the mask, behind a border or a turned edge.",
        integer,
    )
    dtype: str = option(
        "uint8",
        '{"uint8", "uint16", "int32", "int64", "float32"}',
        "Type of the values in the batch; uint8 refuses masks with larger ones.",
        partial(choice, allowed=VALUE_TYPES),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        low = 0 if self.dtype.startswith("u") else -LARGEST[self.dtype]
        if not low <= self.ignore <= LARGEST[self.dtype]:
            raise ValueError(f"ignore={self.ignore} is no {self.dtype}: give dtype another type")


@accepts()
@dataclass(frozen=True, kw_only=True)
class Image(FieldKind):
    """A further image of the sample, of the size of the image, with the same geometry.

    Parameters
    ----------
    {parameters}

    Raises
    ------
    ValueError
        For values that contradict one another.

    Examples
    --------
    >>> from iterators.fields import Image
    >>> depth, after = Image(dtype="uint16"), Image(colour=True)
    >>> depth.channels, after.channels
    (1, None)
    """

    dtype: str | None = option(
        None,
        '{"uint8", "uint16"}, optional',
        """"uint16" for images of one value of at most 16 bits for each pixel, such as depths, as
        they are stored; "uint8" for pixels as they are; by default it is normalised as the image
        is, and has the same type.""",
        optional(partial(choice, allowed=("uint8", "uint16"))),
    )
    channels: int | None = option(
        None,
        "{1, 3, 4}, optional",
        "As many as the image has, by default; 1 with uint16.",
        optional(partial(choice, allowed=(1, 3, 4))),
    )
    interpolation: str | None = option(
        None,
        '{"nearest", "bilinear", "bicubic", "lanczos"}, optional',
        """How pixels are resampled; that of the image by default, and "nearest" with uint16, where
        "bilinear" is possible too.""",
        optional(partial(choice, allowed=INTERPOLATIONS)),
    )
    colour: bool = option(
        False,
        "bool",
        """Whether the changes of colours that are drawn for the image are made here as well.  What
        is erased of the image is not erased here.""",
        boolean,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dtype == "uint16":
            if self.channels not in (None, 1):
                raise ValueError(f"channels={self.channels}: an image of uint16 values has one")
            if self.colour:
                raise ValueError("colour=True: uint16 values have no colours; drop it")
            if self.interpolation not in (None, "nearest", "bilinear"):
                raise ValueError(
                    f"interpolation={self.interpolation!r}: uint16 values have nearest and bilinear"
                )
            object.__setattr__(self, "channels", 1)
        elif self.dtype is None and self.channels is not None:
            raise ValueError(
                f"channels={self.channels}: an image that is normalised as the image is has its "
                'channels; drop it, or give dtype="uint8"'
            )


KINDS: tuple[type[FieldKind], ...] = (Image, Mask)


def checked_fields(name: str, value: Any) -> Mapping[str, FieldKind]:
    """Check the fields that are asked for: descriptions by name."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}={value!r:.60}: expected a dict of names and fields")
    for key, field in value.items():
        if not isinstance(key, str) or not key or not all(c.isalnum() or c in "_-" for c in key):
            raise ValueError(f"{name}: {key!r} is no name of a field: letters, digits, _ and -")
        if not isinstance(field, KINDS):
            kinds = ", ".join(kind.__name__ for kind in KINDS)
            raise TypeError(
                f"{name}: {key}={field!r:.60}: expected one of iterators.fields: {kinds}"
            )
    return dict(value)
