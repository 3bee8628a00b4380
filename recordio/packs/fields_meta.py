"""The description of the fields of a pack, kept beside it: ``PREFIX.fields.json``.

The file names each field with its kind and what its values mean; docs/formats/fields.md has all of
it.  Where it exists, it alone says which ``PREFIX.NAME.rec`` are fields.  No record is read here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from ..bytes.files import StoredFile
from ..bytes.remote.objects import redacted_url
from ..bytes.remote.settings import RemoteSettings
from ..errors import FieldError
from ..frames.companions import FIELDS

SUFFIX = FIELDS.ending
#: What the file calls itself, and the version that is written and read.
FORMAT, VERSION = "recordio fields", 1
#: It is read as a whole: no honest one is larger.
LARGEST_FILE = 1 << 24


class StoredKind(NamedTuple):
    """Kind of field: its records hold "pixels", "objects", "text", "json" or any "bytes"."""

    content: str
    #: What the file may say of it beside the kind.
    facts: tuple[str, ...] = ()


KINDS: Mapping[str, StoredKind] = {
    "mask": StoredKind("pixels", ("dtype", "ignore", "classes", "swap")),
    "image": StoredKind("pixels", ("dtype",)),
    "keypoints": StoredKind("objects", ("points", "skeleton", "swap")),
    "boxes": StoredKind("objects", ("format", "classes")),
    "text": StoredKind("text"),
    "json": StoredKind("json"),
    "bytes": StoredKind("bytes"),
}
DTYPES = ("uint8", "uint16")
#: The one order of coordinates that is stored.
CORNERS = "xyxy"
#: Values of masks, labels of objects and numbers of points lie below it.
LARGEST_NUMBER = 1 << 24
WHOLE = re.compile(r"-?(0|[1-9]\d{0,8})")


def check_name(name: str) -> str:
    """Return the name of a field; one that no file and no keyword can have is a ValueError.

    >>> check_name("mask")
    'mask'
    """
    if not (isinstance(name, str) and name.isascii() and name.isidentifier()):
        raise ValueError(
            f"{name!r} names no field: letters, digits and underscores, no digit in front"
        )
    return name


@dataclass(frozen=True, kw_only=True)
class FieldMeta:
    """The description of one field of a pack.

    `kind` is one of `KINDS`: "bytes" is content of no other kind.  `dtype` is the type of the
    values of a mask or an image, "uint8" or "uint16"; `ignore` the value of the pixels of a mask
    that count for nothing; `classes` names values of a mask or classes of boxes.  `points` names
    the key points of an object; `skeleton` has the pairs of points, from 0 on, that are joined by a
    line, and `swap` those that change places in a mirror, or the values of a mask that do.  The
    `format` of boxes is "xyxy".

    >>> FieldMeta(kind="mask", ignore=255, classes={0: "ground", 1: "tree"}).entry()
    {'kind': 'mask', 'ignore': 255, 'classes': {'0': 'ground', '1': 'tree'}}
    """

    kind: str
    dtype: str | None = None
    ignore: int | None = None
    classes: Mapping[int, str] = field(default_factory=dict)
    points: tuple[str, ...] = ()
    skeleton: tuple[tuple[int, int], ...] = ()
    swap: tuple[tuple[int, int], ...] = ()
    format: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind {self.kind!r:.60}: expected {', '.join(KINDS)}")
        for name, value in self.details().items():
            if name not in KINDS[self.kind].facts:
                raise ValueError(f"{name} is nothing that a field of kind {self.kind} has")
            object.__setattr__(self, name, _CHECKS[name](name, value))
        for name in ("skeleton", "swap"):
            far = [end for pair in getattr(self, name) for end in pair if end >= len(self.points)]
            if far and self.points:
                raise ValueError(f"{name} has the point {far[0]}, and there are {len(self.points)}")
        if len({end for pair in self.swap for end in pair}) < 2 * len(self.swap):
            raise ValueError(
                f"swap has a {'value' if self.kind == 'mask' else 'point'} in two pairs"
            )
        if self.ignore is not None and self.ignore in {end for pair in self.swap for end in pair}:
            raise ValueError(f"swap has {self.ignore}, which is the value to ignore")

    @property
    def content(self) -> str:
        """The content of its records, as in `KINDS`."""
        return KINDS[self.kind].content

    def details(self) -> dict[str, Any]:
        """Return what is known beside the kind, by name."""
        values = {item.name: getattr(self, item.name) for item in fields(self)[1:]}
        return {name: value for name, value in values.items() if value or value == 0}

    def facts(self) -> dict[str, Any]:
        """Return the kind and what is known beside it, by name."""
        return {"kind": self.kind, **self.details()}

    def entry(self) -> dict[str, Any]:
        """Return it as it stands in the file."""
        entry = self.facts()
        if self.classes:
            entry["classes"] = {str(value): self.classes[value] for value in sorted(self.classes)}
        return entry


def _number(name: str, value: Any) -> int:
    if type(value) is not int or abs(value) >= LARGEST_NUMBER:
        raise ValueError(f"{name} {value!r:.60} is no whole number below {LARGEST_NUMBER}")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError(f"{name} {value!r:.60} is no text of one line")
    return value


def _among(*allowed: str) -> Any:
    def check(name: str, value: Any) -> str:
        if value not in allowed:
            raise ValueError(f"{name} {value!r:.60}: expected {' or '.join(allowed)}")
        return str(value)

    return check


def _classes(name: str, value: Any) -> dict[int, str]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} {value!r:.60} is no mapping of numbers to names")
    classes = {}
    for key, text in value.items():
        if isinstance(key, str) and WHOLE.fullmatch(key):
            key = int(key)
        classes[_number(f"{name}: the class", key)] = _text(f"{name}: the name", text)
    return classes


def _names(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{name} {value!r:.60} is no list of names")
    return tuple(_text(f"{name}: the name", text) for text in value)


def _pairs(name: str, value: Any) -> tuple[tuple[int, int], ...]:
    pairs = []
    for pair in value if isinstance(value, (list, tuple)) else [None]:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise ValueError(f"{name} {value!r:.60} is no list of pairs of points")
        first, second = (_number(f"{name}: the point", point) for point in pair)
        if min(first, second) < 0 or first == second:
            raise ValueError(f"{name}: {pair!r:.60} is no pair of points, counted from 0")
        pairs.append((first, second))
    return tuple(pairs)


_CHECKS = {
    "dtype": _among(*DTYPES),
    "ignore": _number,
    "classes": _classes,
    "points": _names,
    "skeleton": _pairs,
    "swap": _pairs,
    "format": _among(CORNERS),
}


def mirrored_points(points: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Find the pairs of points whose names tell left from right.

    >>> mirrored_points(["nose", "left_eye", "right_eye", "tail"])
    ((1, 2),)
    """
    places = {name: number for number, name in enumerate(points)}
    pairs = [(i, places.get(name.replace("left", "right"), i)) for name, i in places.items()]
    return tuple((left, right) for left, right in pairs if left != right)


# -- the file -------------------------------------------------------------------------------------


def fields_file(file: StoredFile) -> StoredFile:
    """Name the file beside a record file.

    >>> fields_file(StoredFile("data/a.rec")).name
    'data/a.fields.json'
    """
    return file.beside(SUFFIX)


def format_fields(described: Mapping[str, FieldMeta]) -> bytes:
    r"""Write the content of the file.

    >>> len(format_fields({"text": FieldMeta(kind="text")}).splitlines())
    9
    """
    entries = {check_name(name): described[name].entry() for name in sorted(described)}
    words = {"format": FORMAT, "version": VERSION, "fields": entries}
    return json.dumps(words, indent=1, ensure_ascii=False).encode() + b"\n"


def read_fields(
    file: StoredFile, settings: RemoteSettings | None = None
) -> dict[str, FieldMeta] | None:
    """Read the file beside a record file, names in order; None where there is none.

    One that is damaged, or of a later version, is a FieldError.
    """
    beside = fields_file(file)
    if not beside.exists(settings):
        return None
    if not beside.is_local:
        beside = StoredFile(beside.name, beside.mirrored(settings))
    name = redacted_url(beside.name)
    if beside.size() > LARGEST_FILE:
        raise FieldError(
            f"it has more than {LARGEST_FILE} bytes: it describes no fields", path=name
        )
    try:
        words = json.loads(bytes(beside.map(settings)), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise FieldError(f"it is no JSON: {error!s:.80}; {_REMEDY}", path=name) from None
    if not isinstance(words, dict) or words.get("format") != FORMAT:
        raise FieldError(f"it does not say what fields there are; {_REMEDY}", path=name)
    if words.get("version") != VERSION:
        raise FieldError(
            f"it has version {words.get('version')!r:.40}, and this package reads version "
            f"{VERSION}: install a later one",
            path=name,
        )
    entries = words.get("fields")
    if not isinstance(entries, dict):
        raise FieldError(f"it has no object called fields; {_REMEDY}", path=name)
    metas = {}
    for field_name in sorted(entries):
        try:
            metas[check_name(field_name)] = _meta_of(entries[field_name])
        except ValueError as error:
            raise FieldError(f"field {field_name!s:.60}: {error}; {_REMEDY}", path=name) from None
    return metas


_REMEDY = "put it right, or remove it, after which every PREFIX.NAME.rec is a field"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of JSON; a name that is there twice is a ValueError."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name is there twice in one object")
    return members


def _meta_of(entry: Any) -> FieldMeta:
    if not isinstance(entry, dict) or not isinstance(entry.get("kind"), str):
        raise ValueError("it is no object with a kind")
    kind = KINDS.get(entry["kind"])
    allowed = ("kind", *(kind.facts if kind else ()))
    for name in entry:
        if name not in allowed and kind:
            raise ValueError(f"{name!r:.60} is nothing that it has: expected {', '.join(allowed)}")
    facts = {name: value for name, value in entry.items() if name in _CHECKS}
    return FieldMeta(kind=entry["kind"], **{n: _CHECKS[n](n, v) for n, v in facts.items()})


# -- several packs --------------------------------------------------------------------------------


def agreed(
    names: Iterable[str], described: Iterable[tuple[str, Mapping[str, FieldMeta]]]
) -> dict[str, FieldMeta]:
    """Describe the fields of a pack that is made of others, each given with its name.

    A pack without a description agrees with all.  Names of classes are put together; everything
    else has to be the same, or is a FieldError.

    >>> cat, dog = (FieldMeta(kind="mask", classes={i: n}) for i, n in ((1, "cat"), (2, "dog")))
    >>> agreed(["mask"], [("a.rec", {"mask": cat}), ("b.rec", {"mask": dog})])["mask"].classes
    {1: 'cat', 2: 'dog'}
    """
    metas: dict[str, tuple[str, FieldMeta]] = {}
    names = list(names)
    for path, table in described:
        for name in names:
            if name not in table:
                continue
            first, before = metas.setdefault(name, (path, table[name]))
            metas[name] = first, _together(name, (first, before), (path, table[name]))
    return {name: metas[name][1] for name in metas}


def _together(name: str, earlier: tuple[str, FieldMeta], later: tuple[str, FieldMeta]) -> FieldMeta:
    (first, before), (path, meta) = earlier, later
    for item in fields(FieldMeta):
        a, b = getattr(before, item.name), getattr(meta, item.name)
        if item.name == "classes":
            a, b = ({k: v for k, v in x.items() if k in a and k in b} for x in (a, b))
        if a != b:
            raise FieldError(
                f"its field {name} has {item.name} {b!r:.80}, and that of {first} {a!r:.80}: make "
                f"them alike in their files {SUFFIX}, or name the fields to keep, fields=[...]",
                path=path,
            )
    return replace(before, classes={**before.classes, **meta.classes})
