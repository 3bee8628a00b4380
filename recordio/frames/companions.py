"""The files of a pack: those that may lie beside a record file, a row for each ending.

A new kind of file beside packs is a row here, and what reads and writes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from recordio.bytes.files import StoredFile
from recordio.bytes.remote.settings import RemoteSettings


@dataclass(frozen=True)
class Companion:
    """One file of a pack; NAME in its ending stands for the name of a field.

    `magic` are the bytes with which a file begins that is made of the bytes of the records: beside
    other records it is of no use, and whoever writes the records removes it.  One that is
    `believed` says something about the records and is read beside whatever records there are: it
    is removed with the pack of which it spoke.  One that is `kept` is copied byte by byte where
    keys, ids and labels of the records stay, and left where they do not: it may be what the records
    were chosen by.
    """

    ending: str
    content: str
    written_by: str
    new_packs: str
    magic: bytes = b""
    believed: bool = False
    kept: bool = False


RECORDS = Companion(".rec", "records", "every writer", "made anew")
INDEX = Companion(".idx", "keys and offsets", "every writer, `recordio index`", "made anew")
CHECKSUMS = Companion(
    ".crc",
    "checksums of the records",
    "`--checksums`, `recordio check`",
    "made anew by `check --repair`",
    magic=b"\x89RECCRC\n",
)
SIZES = Companion(
    ".sizes",
    "sizes of the images",
    "`recordio index --sizes`, readers",
    "made when needed",
    magic=b"recordio sizes 1",
)
ENTRY_POINTS = Companion(
    ".entry",
    "entry points of JPEG images",
    'iterators with `entry_points="pack"`',
    "made when needed",
    magic=b"recordio entry 1",
)
LIST = Companion(
    ".lst",
    "ids, labels and file names",
    "`im2rec`, `recordio pack`, `from-...`",
    "copied by `optimize`, `narrow` and `check --repair`",
    believed=True,
    kept=True,
)
CLASSES = Companion(
    ".classes.txt",
    "names of the classes",
    "`im2rec`, `recordio pack`, `from-...`",
    "made from those of the sources",
    believed=True,
)
FIELDS = Companion(
    ".fields.json",
    "description of the fields",
    "every writer of fields",
    "made from those of the sources",
    believed=True,
)
FIELD_RECORDS = Companion(
    ".NAME.rec", "records of a field", "every writer of fields", "made from those of the sources"
)
FIELD_INDEX = Companion(".NAME.idx", "their index", "every writer of fields", "made anew")
MANIFEST = Companion(
    ".shards.json",
    "shards, with sizes and checksums",
    "`recordio shard`",
    "made from the new shards",
)
PROPERTY = Companion(
    "property", "people and size of faces, for a folder", "`from-faces`", "left as it is"
)

COMPANIONS: tuple[Companion, ...] = (
    RECORDS,
    INDEX,
    CHECKSUMS,
    SIZES,
    ENTRY_POINTS,
    LIST,
    CLASSES,
    FIELDS,
    FIELD_RECORDS,
    FIELD_INDEX,
    MANIFEST,
    PROPERTY,
)


def set_paths(prefix: str, fields: Iterable[str], checksums: bool = False) -> list[str]:
    """Return the record files and indexes of the fields of a pack, and their checksums.

    >>> set_paths("a", ["mask"])
    ['a.mask.rec', 'a.mask.idx']
    """
    ends = [row.ending for row in (RECORDS, INDEX, CHECKSUMS)[: 2 + checksums]]
    return [f"{prefix}.{name}{end}" for name in fields for end in ends]


def pack_paths(prefix: str, fields: Iterable[str] = (), kept: bool = True) -> list[str]:
    """Return the files of a new pack that somebody may keep: its records and what is said of them.

    Without `kept` those are left out that only some writers replace.

    >>> pack_paths("a", ["mask"])[:4]
    ['a.rec', 'a.idx', 'a.lst', 'a.classes.txt']
    """
    companions = [row for row in COMPANIONS if row.believed and kept >= row.kept]
    own = [prefix + row.ending for row in (RECORDS, INDEX, *companions)]
    return own + set_paths(prefix, fields)


def stale_files(
    path: str,
    new: Iterable[str] = (),
    settings: RemoteSettings | None = None,
    believed: bool = False,
    kept: bool = False,
) -> list[str]:
    """List what stands beside a record file and is void when the file is replaced, except `new`.

    These are files that were made of the bytes of its records, and with `believed`, if the record
    file is there, those that say something about them, lists and their like only with `kept`.  On
    a server, files that readers check without an error stay.
    """
    file, keep = StoredFile.at(path), set(new)
    old = believed and file.exists(settings)
    names = []
    for row in COMPANIONS:
        beside = file.beside(row.ending)
        if beside.name in keep or not (row.magic or row.believed):
            continue
        if row.magic:
            asked = file.is_local or row is CHECKSUMS
            void = asked and beside.first_bytes(len(row.magic), settings) == row.magic
        else:
            void = old and kept >= row.kept and beside.exists(settings)
        if void:
            names.append(beside.name)
    return names
