"""Kinds of content, told apart by their first bytes, and the suffixes of their files."""

from __future__ import annotations

from typing import Any

__all__ = ["IMAGE_KINDS", "kind_of", "suffixes_of"]

#: Kind, suffixes (the first is given to new files), and where which bytes must stand.
SIGNATURES: tuple[tuple[str, tuple[str, ...], tuple[tuple[int, bytes], ...]], ...] = (
    ("jpeg", (".jpg", ".jpeg", ".jpe"), ((0, b"\xff\xd8\xff"),)),
    ("png", (".png",), ((0, b"\x89PNG\r\n\x1a\n"),)),
    ("gif", (".gif",), ((0, b"GIF8"),)),
    ("webp", (".webp",), ((0, b"RIFF"), (8, b"WEBP"))),
    ("avif", (".avif",), ((0, b"\0\0\0"), (4, b"ftypavif"))),
    ("jxl", (".jxl",), ((0, b"\xff\x0a"),)),
    ("jxl", (".jxl",), ((0, b"\0\0\0\x0cJXL \r\n\x87\n"),)),
    ("bmp", (".bmp",), ((0, b"BM"), (6, b"\0\0\0\0"))),
    ("tiff", (".tif", ".tiff"), ((0, b"II*\0"),)),
    ("tiff", (".tif", ".tiff"), ((0, b"MM\0*"),)),
    ("ppm", (".ppm", ".pnm"), ((0, b"P6\n"),)),
    ("pgm", (".pgm", ".pnm"), ((0, b"P5\n"),)),
    ("jpeg2000", (".jp2",), ((0, b"\0\0\0\x0cjP  \r\n"),)),
    ("npy", (".npy",), ((0, b"\x93NUMPY"),)),
)
IMAGE_KINDS = tuple(dict.fromkeys(kind for kind, _, _ in SIGNATURES if kind != "npy"))

BY_FIRST_BYTE = {
    first: [signature for signature in SIGNATURES if signature[2][0][1][0] == first]
    for first in {signature[2][0][1][0] for signature in SIGNATURES}
}


def kind_of(content: Any) -> str:
    r"""The kind of some bytes, by how they begin.

    Examples
    --------
    >>> kind_of(b"\xff\xd8\xff\xe0"), kind_of(b"text"), kind_of(b"")
    ('jpeg', 'other', 'empty')
    """
    if not len(content):
        return "empty"
    start = bytes(content[:16])
    for kind, _, marks in BY_FIRST_BYTE.get(start[0], ()):
        if all(start[place : place + len(mark)] == mark for place, mark in marks):
            return kind
    return "other"


def suffixes_of(kind: str) -> tuple[str, ...]:
    """The suffixes of files of some kind, the usual one first.

    Examples
    --------
    >>> suffixes_of("jpeg"), suffixes_of("other")
    (('.jpg', '.jpeg', '.jpe'), ('.bin',))
    """
    for known, suffixes, _ in SIGNATURES:
        if known == kind:
            return suffixes
    return (".bin",)
