"""Names of images and labels in containers: one list of each, and warnings about others.

Names are compared without regard to case, and the first of the list that is there counts.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from ..errors import LabelError, RecordIOError
from ..formats.table import kind_of
from ..notes import Notes

#: Names of the image and of the label, the most likely one first.
IMAGES = (
    "image/encoded", "image", "img", "jpg", "jpeg", "png", "webp", "picture", "photo",
    "image_bytes", "image_raw", "images", "x",
)  # fmt: skip
LABELS = (
    "image/class/label", "label", "labels", "cls", "class", "class_id", "class_label",
    "class_index", "target", "targets", "y", "fine_label", "coarse_label", "category",
    "category_id",
)  # fmt: skip
#: Names of the sides of an image, which are no labels and tell raw pixels.
HEIGHTS = ("height", "image/height", "h", "rows")
WIDTHS = ("width", "image/width", "w", "cols")
CHANNELS = ("depth", "channels", "image/channels", "image/depth", "c")
SIDES = frozenset((*HEIGHTS, *WIDTHS, *CHANNELS))
#: Raw pixels have at least one side of so many.
LEAST_SIDE = 8


def first_named(names: Collection[str], usual: Sequence[str]) -> str | None:
    """Return the name that comes first in a list of known ones; None if none is known.

    >>> first_named(["Target", "class", "label_2"], LABELS), first_named(["width"], LABELS)
    ('class', None)
    """
    folded: dict[str, str] = {}
    for name in names:
        folded.setdefault(name.lower(), name)
    matches = (name if name in names else folded.get(name) for name in usual)
    return next((name for name in matches if name is not None), None)


def note_numbers(notes: Notes, names: Iterable[str], count: int, what: str) -> None:
    """Note that samples without a label have numbers under names that no list has.

    >>> notes = Notes()
    >>> note_numbers(notes, ["style", "width"], 3, "column")
    >>> notes.lines()[0].partition(":")[0]
    '3 samples have no label under a usual name and get the label 0'
    """
    candidates = [name for name in names if name.rpartition(":")[2].lower() not in SIDES]
    if candidates and count:
        kind = (
            f"samples have no label under a usual name and get the label 0: label_field= chooses "
            f"a {what} with one number each"
        )
        for name in candidates:
            notes.add(kind, name, 0)
        notes.add(kind, count=count)


def note_folders(notes: Notes, names: Sequence[str]) -> None:
    """Note that samples without a label lie in folders, which may have been their classes.

    >>> notes = Notes()
    >>> note_folders(notes, ["cat/1.jpg", "dog/2.jpg"])
    >>> notes.lines()[0].partition(":")[0]
    '2 samples have no label and get the label 0, and they lie in several folders'
    """
    if len({name.rpartition("/")[0] for name in names}) > 1:
        kind = (
            "samples have no label and get the label 0, and they lie in several folders: as a "
            "folder or a zip archive, where folders are classes, they have labels"
        )
        for name in names:
            notes.add(kind, name)


def check_finite(value: float, name: str = "label") -> None:
    """Raise LabelError for a label that is no finite number.

    >>> check_finite(float("nan"))
    Traceback (most recent call last):
    recordio.errors.LabelError: its label is nan, which is no finite number
    """
    if not math.isfinite(value):
        raise LabelError(f"its {name} is {value}, which is no finite number")


def raw_values_in(content: Any, sides: Sequence[int] = ()) -> str:
    """Say that content of no known kind has the size of raw values, such as CIFAR's; or nothing.

    `sides` are those that stand beside the content; without them it must be a square.

    >>> raw_values_in(bytes(3072))
    ': its 3,072 bytes are as many as 32 x 32 x 3 values take, so this may be raw pixels; encode ...
    >>> raw_values_in(bytes(3071))
    ''
    """
    size = len(content)
    squares = ((math.isqrt(size // channels), channels) for channels in (3, 1, 4))
    for shape in (sides or [0], *((side, side, channels) for side, channels in squares)):
        if min(shape) > 0 and max(shape) >= LEAST_SIDE and math.prod(shape) == size:
            shown = " x ".join(map(str, shape))
            return (
                f": its {size:,} bytes are as many as {shown} values take, so this may be raw "
                "pixels; encode them first, with recordio.encode_image or `recordio from-numpy`"
            )
    return ""


def check_not_pixels(content: Any, name: str, sides: Sequence[int] = ()) -> None:
    """Raise RecordIOError for bytes that seem to be raw pixels, and no encoded image.

    >>> check_not_pixels(bytes(3072), "image")
    Traceback (most recent call last):
    recordio.errors.RecordIOError: its image is no encoded image: its 3,072 bytes are as many as ...
    """
    if kind_of(content) == "other":
        raw = raw_values_in(content, sides)
        if raw:
            raise RecordIOError(f"its {name} is no encoded image{raw}")
