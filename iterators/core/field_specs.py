"""Fields of a sample beside its image and label, as they are requested: plain descriptions.

`iterators.images.fields` makes them; users have the names from `iterators.fields`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from recordio.errors import FieldError
from recordio.keywords.checks import boolean, choice, integer, real
from recordio.keywords.options import Options, accepts, option, optional
from recordio.packs.fields_meta import FieldMeta

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
    #: Whether it is the same for all views of an image.
    same_for_views: ClassVar[bool] = False
    #: The name of the kind on pages.
    word: ClassVar[str] = ""

    @property
    def is_values(self) -> bool:
        """True if it has one number for each pixel, as it is stored."""
        return False

    @property
    def is_like_image(self) -> bool:
        """True if it is normalised as the image is, and has its type."""
        return False

    @classmethod
    def of_meta(cls, meta: FieldMeta) -> FieldKind:
        """Return the field that a pack describes."""
        return cls()

    def not_mixed(self, added: bool) -> str:
        """Say why two samples are not mixed, cut or `added` with weights; "" if they are."""
        return f"two samples have no {type(self).__name__} together: drop the field"


class PixelValues(FieldKind):
    """Base class of fields with one number for each pixel, which `dtype` holds."""

    #: Axes of a batch.
    layout: ClassVar[str] = "NHW"

    @property
    def is_values(self) -> bool:
        """True if it has one number for each pixel, as it is stored."""
        return True

    @property
    def padding(self) -> int:
        """The value of pixels that lie outside the stored ones."""
        return 0

    @property
    def blends(self) -> bool:
        """True if values between four pixels are computed; otherwise the nearest is picked."""
        return False

    @property
    def exchanged(self) -> tuple[tuple[int, int], ...]:
        """The pairs of values that change places in a mirrored image."""
        return ()

    def not_mixed(self, added: bool) -> str:
        """Say why two samples are not mixed, cut or `added` with weights; "" if they are."""
        return "integers cannot be added with weights: use cutmix alone" if added else ""


def _pairs(name: str, value: Any, of: str = "point") -> tuple[tuple[int, int], ...]:
    """Pairs of points or values, each in one of them."""
    try:
        pairs = tuple((integer(name, a, low=0), integer(name, b, low=0)) for a, b in value)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={value!r:.60}: expected pairs of numbers of {of}s") from None
    every = [number for pair in pairs for number in pair]
    if len(set(every)) < len(every):
        raise ValueError(f"{name}={value!r:.60}: a {of} is in one pair at most")
    return pairs


@accepts()
@dataclass(frozen=True, kw_only=True)
class Mask(PixelValues):
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
    Mask(ignore=-100, dtype='int64', swap=())
    """

    word: ClassVar[str] = "mask"

    ignore: int = option(
        255,
        "int",
        "Value of pixels that lie outside the mask, in a border or beyond a turned edge.",
        integer,
    )
    dtype: str = option(
        "uint8",
        '{"uint8", "uint16", "int32", "int64", "float32"}',
        "Type of the values in the batch; uint8 refuses masks with larger ones.",
        partial(choice, allowed=VALUE_TYPES),
    )
    swap: Any = option(
        (),
        "sequence of pairs of int",
        """Values that are exchanged when the image is mirrored, such as those of left and right of
        the same thing; as for `Keypoints`.""",
        partial(_pairs, of="value"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        low = 0 if self.dtype.startswith("u") else -LARGEST[self.dtype]
        if not low <= self.ignore <= LARGEST[self.dtype]:
            raise ValueError(f"ignore={self.ignore} does not fit dtype={self.dtype!r}: change one")
        for value in (value for pair in self.swap for value in pair):
            if value == self.ignore:
                raise ValueError(f"swap has {value}, which is the value to ignore: change one")
            if value > min(LARGEST[self.dtype], LARGEST["uint16"]):
                raise ValueError(f"swap has {value}, which no mask of {self.dtype} has: drop it")

    @property
    def padding(self) -> int:
        """The value to ignore."""
        return self.ignore

    @property
    def exchanged(self) -> tuple[tuple[int, int], ...]:
        """The pairs of values that change places in a mirrored image."""
        return self.swap

    @classmethod
    def of_meta(cls, meta: FieldMeta) -> FieldKind:
        """Return the mask that a pack describes, of a type that holds the value to ignore."""
        ignore, dtype = 255 if meta.ignore is None else meta.ignore, meta.dtype or "uint8"
        fits = 0 <= ignore <= LARGEST[dtype]
        return cls(ignore=ignore, dtype=dtype if fits else "int32", swap=meta.swap)

    def not_mixed(self, added: bool) -> str:
        """Masks are cut as their images are."""
        return "a sum of two masks is none: use cutmix alone, which cuts masks as images" * added


@accepts()
@dataclass(frozen=True, kw_only=True)
class Image(PixelValues):
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

    layout: ClassVar[str] = "NCHW"
    word: ClassVar[str] = "image"

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
        """Whether the changes of colours that are drawn for the image are made here as well.
        Rectangles that are erased in the image are not erased here.""",
        boolean,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dtype == "uint16":
            if self.channels not in (None, 1):
                raise ValueError(f"channels={self.channels}: a uint16 image has one channel")
            if self.colour:
                raise ValueError("colour=True: uint16 values have no colours; drop it")
            if self.interpolation not in (None, "nearest", "bilinear"):
                raise ValueError(
                    f"interpolation={self.interpolation!r}: uint16 needs nearest or bilinear"
                )
            object.__setattr__(self, "channels", 1)
        elif self.dtype is None and self.channels is not None:
            raise ValueError(
                f"channels={self.channels}: an image that is normalised as the image is has its "
                'channels; drop it, or give dtype="uint8"'
            )

    @property
    def is_values(self) -> bool:
        """True if it has one number for each pixel, as it is stored."""
        return self.dtype == "uint16"

    @property
    def is_like_image(self) -> bool:
        """True if it is normalised as the image is, and has its type."""
        return self.dtype is None

    @property
    def blends(self) -> bool:
        """True if values between four pixels are computed; otherwise the nearest is picked."""
        return self.interpolation == "bilinear"

    @classmethod
    def of_meta(cls, meta: FieldMeta) -> FieldKind:
        """Return the image that a pack describes."""
        return cls(dtype="uint16" if meta.dtype == "uint16" else None)

    def not_mixed(self, added: bool) -> str:
        """Images that are normalised are mixed as the image is."""
        return super().not_mixed(added and not self.is_like_image)


@dataclass(frozen=True, kw_only=True)
class Objects(FieldKind):
    """Base class of fields with several objects for a sample, which differ in number."""

    most: int | None = option(
        None,
        "int, optional",
        """Largest number of objects of a sample, for which a batch has room; by default that of all
        records, whose headers are read once.  A sample with more is a bad record.""",
        optional(partial(integer, low=1, high=1 << 20)),
    )
    packed: bool = option(
        False,
        "bool",
        """Deliver the objects of all samples one after the other, instead of an array that is
        filled up with -1; ``batch["name_offsets"]``, int64 (batch + 1,), has the positions at which
        those of each sample begin and the last ones end.""",
        boolean,
    )


@accepts()
@dataclass(frozen=True, kw_only=True)
class Keypoints(Objects):
    """Key points of the persons or things in an image: x, y and v, in pixels of the batch.

    v is 0 for a point that was not labelled or is out of sight, 1 for one that is hidden and 2 for
    one that is seen, as in COCO.  x and y of one out of sight are where it would be; they are 0 if
    it was not labelled.  Padding is -1.

    Parameters
    ----------
    {parameters}

    Raises
    ------
    ValueError
        If a point is in two pairs.

    Examples
    --------
    >>> from iterators.fields import Keypoints
    >>> Keypoints(swap=[(1, 2), (3, 4)], packed=True)
    Keypoints(most=None, packed=True, swap=((1, 2), (3, 4)))
    """

    word: ClassVar[str] = "key points"

    swap: Any = option(
        (),
        "sequence of pairs of int",
        """Numbers of the points, from 0 on, that are exchanged when the image is mirrored: left and
        right of the same thing.  They are not exchanged when it is mirrored in both directions,
        which is a half turn.""",
        _pairs,
    )

    @classmethod
    def of_meta(cls, meta: FieldMeta) -> FieldKind:
        """Return the key points that a pack describes."""
        return cls(swap=meta.swap)


@accepts()
@dataclass(frozen=True, kw_only=True)
class Boxes(Objects):
    """Boxes of the objects in an image: rows of class, four coordinates and any further values.

    Coordinates are float32, in pixels of the batch.  A box that is cut off keeps its rest; one that
    is turned becomes the upright box around it.  Padding is -1.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> from iterators.fields import Boxes
    >>> Boxes(format="cxcywh").emit
    'overlap'
    """

    word: ClassVar[str] = "boxes"

    format: str = option(
        "xyxy",
        '{"xyxy", "xywh", "cxcywh"}',
        """The coordinates: two corners; the upper left corner and the size; or centre and size.""",
        partial(choice, allowed=("xyxy", "xywh", "cxcywh")),
    )
    emit: str = option(
        "overlap",
        '{"overlap", "center"}',
        """Which boxes stay: those of which more than `min_overlap` is seen, or those whose centre
        is.  `ImageDetRecordIter` has keywords for its own boxes.""",
        partial(choice, allowed=("overlap", "center")),
    )
    min_overlap: float = option(
        0.0,
        "float",
        "Share of the area of a box, 0 to 1.",
        partial(real, low=0, high=1),
    )


@accepts()
@dataclass(frozen=True, kw_only=True)
class Text(FieldKind):
    """A text, such as a caption: ``batch["name"]`` is a list with a str for each sample.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> from iterators.fields import Text
    >>> Text(line="random")
    Text(line='random')
    """

    is_array: ClassVar[bool] = False
    same_for_views: ClassVar[bool] = True
    word: ClassVar[str] = "text"

    line: str = option(
        "all",
        '{"all", "first", "random"}',
        """The whole text; or, for captions of a line each, the first one, or a random one in every
        epoch.""",
        partial(choice, allowed=("all", "first", "random")),
    )


@dataclass(frozen=True, kw_only=True)
class Json(FieldKind):
    """A JSON value: ``batch["name"]`` is a list with the value of each sample.

    Examples
    --------
    >>> from iterators.fields import Json
    >>> Json()
    Json()
    """

    is_array: ClassVar[bool] = False
    same_for_views: ClassVar[bool] = True
    word: ClassVar[str] = "JSON"


@dataclass(frozen=True, kw_only=True)
class Crop(FieldKind):
    """The part of the image in the batch: x, y, width and height in its pixels, float32 (batch, 4).

    It is the rectangle around the part of the stored image, upright, that fills the slot in the
    batch; for models that are conditioned on it.

    Examples
    --------
    >>> from iterators.fields import Crop
    >>> Crop().stored
    False
    """

    stored: ClassVar[bool] = False
    place: ClassVar[str] = "crop"


@dataclass(frozen=True, kw_only=True)
class Mirrored(FieldKind):
    """A mark of mirrored images: bool (batch,), True for a mirror image of the stored one.

    Left to right and upside down are reflections, by keywords or by `steps`; two of them are a half
    turn, and give False.

    Examples
    --------
    >>> from iterators.fields import Mirrored
    >>> Mirrored()
    Mirrored()
    """

    stored: ClassVar[bool] = False
    place: ClassVar[str] = "mirrored"


@dataclass(frozen=True, kw_only=True)
class Size(FieldKind):
    """Width and height of the stored image, upright, in pixels: int32 (batch, 2).

    Examples
    --------
    >>> from iterators.fields import Size
    >>> Size()
    Size()
    """

    stored: ClassVar[bool] = False
    same_for_views: ClassVar[bool] = True
    place: ClassVar[str] = "size"


KINDS: tuple[type[FieldKind], ...] = (
    Image,
    Mask,
    Keypoints,
    Boxes,
    Text,
    Json,
    Crop,
    Mirrored,
    Size,
)


def field_of(name: str, meta: FieldMeta | None) -> FieldKind:
    """Return the field that a pack describes; FieldError if it does not.

    >>> field_of("mask", FieldMeta(kind="mask", ignore=0))
    Mask(ignore=0, dtype='uint8', swap=())
    """
    if meta is None or meta.kind == "bytes":
        what = "is of no kind that a batch has" if meta else "is not described by the pack"
        kinds = [kind.__name__ for kind in KINDS if kind.stored]
        alike = [kind for kind in kinds if kind.lower() in name.lower()]
        *calls, last = [f"{kind}()" for kind in alike[:1] or kinds]
        remedy = f"kind}} with one of {', '.join(calls)} and {last}" if calls else f"{last}}}"
        raise FieldError(f"field {name} {what}: give its kind, fields={{{name!r}: {remedy}")
    return next(kind for kind in KINDS if kind.__name__.lower() == meta.kind).of_meta(meta)


def checked_fields(name: str, value: Any) -> Mapping[str, FieldKind | None]:
    """Check the fields that are asked for: kinds by name, None for those that the pack says."""
    if isinstance(value, (list, tuple)):
        value = dict.fromkeys(value)
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}={value!r:.60}: expected a dict of names and fields, or names")
    for key, field in value.items():
        if not isinstance(key, str) or not key or not all(c.isalnum() or c in "_-" for c in key):
            raise ValueError(f"{name}: {key!r} is not a name: use letters, digits, _ and -")
        if field is not None and not isinstance(field, KINDS):
            kinds = ", ".join(kind.__name__ for kind in KINDS)
            raise TypeError(
                f"{name}: {key}={field!r:.60}: expected one of iterators.fields: {kinds}"
            )
    return dict(value)


@dataclass(frozen=True, kw_only=True)
class FieldOptions(Options):
    """The keyword of what reads packs with fields."""

    fields: Any = option(
        None,
        "dict of str to fields, or list of str, optional",
        """Parts of a sample beside its image and label, by name: ``{"mask": Mask()}`` of
        `iterators.fields`. For a name alone, or None in place of a field, ``PREFIX.fields.json``
        gives the kind, the value to ignore and the points that change places in a mirrored image.
        A field is stored in ``PREFIX.name.rec`` beside ``PREFIX.rec``, in records with the keys of
        the images; it is delivered as ``batch[name]``, cropped and mirrored like the image.""",
        optional(checked_fields),
    )
