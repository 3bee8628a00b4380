"""The table of image formats: the rest of the package uses only their rows.

A new format is a module that decodes it and a row here.  Nothing is decoded in this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recordio.formats.avif import avif_frames, avif_orientation, avif_size
from recordio.formats.headers import (
    Facts,
    check_chunks,
    check_jpeg_end,
    jpeg_facts,
    jxl_orientation,
    jxl_size,
    png_facts,
    png_orientation,
    png_size,
    tiff_size,
    tiff_tiles,
    webp_orientation,
    webp_size,
)
from recordio.formats.image_header import ImageHeader, jpeg_header, png_header, pnm_header
from recordio.formats.jpeg.jpeg import JpegRows
from recordio.formats.jpeg_markers import jpeg_orientation, jpeg_size, tiff_orientation
from recordio.formats.png.deep import decode_deep
from recordio.formats.png.png import PngRows
from recordio.formats.pnm import RawRows
from recordio.formats.row_source import RowDecoder
from recordio.formats.webp.webp import WebpRows

__all__ = [
    "FORMATS",
    "IMAGE_KINDS",
    "OTHER",
    "Format",
    "is_read_everywhere",
    "kind_of",
    "row_of",
    "suffixes_of",
]

Size = tuple[int, int]
#: Bytes at their offsets, all of which must be there.
Marks = tuple[tuple[int, bytes], ...]


def _unknown(data: Any) -> None:
    return None


def _none(view: memoryview) -> Iterable[Size]:
    return ()


def _no_orientation(view: memoryview) -> int:
    return 0


def _no_values(view: memoryview, channels: int, *, max_pixels: int) -> None:
    return None


def _raw_facts(view: memoryview) -> Facts:
    found = pnm_header(view)
    return found and (found.bits, found.channels, False)


class Format(NamedTuple):
    """A format of images, and where its functions are; most get the file as a view of bytes."""

    kind: str
    #: The usual one first, which new files get.
    suffixes: tuple[str, ...]
    #: How content begins that is believed to be of this kind: in one of these ways.
    signatures: tuple[Marks, ...]
    #: What is enough for decoders, as one mark or another; by default the first of each signature.
    enough: Marks = ()
    #: Width and height as stored; None where Pillow has to be asked.
    size: Callable[[memoryview], Size | None] = _unknown
    #: Sizes of frames and tiles, for which decoders take memory: they may exceed the picture.
    parts: Callable[[memoryview], Iterable[Size]] = _none
    #: Refuses what OpenCV must not get.
    check_for_opencv: Callable[[memoryview], None] = _unknown
    #: Refuses what is cut off, where a decoder would make up the rest.
    check_end: Callable[[memoryview], None] = _unknown
    #: EXIF orientation, 1 to 8; 0 if the file names none.
    orientation: Callable[[memoryview], int] = _no_orientation
    #: Bits of a stored value, channels, and whether it comes in passes; None: Pillow may know.
    facts: Callable[[memoryview], Facts] = _unknown
    #: Decodes values of more than 8 bits without the GIL; None where it cannot.
    deep: Callable[..., Any] = _no_values
    #: Facts of a file that is whole, which is refused otherwise; None: only a decoder can tell.
    header: Callable[[bytes], ImageHeader | None] = _unknown
    #: It never has more than 8 bits.
    has_eight_bits: bool = False
    #: The codec that gives its rows without the GIL.
    rows: type[RowDecoder] | None = None
    #: An image of one pixel, or of two and to be turned by a quarter, in base 64, to find out
    #: whether OpenCV reads the format; empty if each does.
    sample: str = ""
    #: What decodes it, whole and as stored, where OpenCV does not: grey, RGB or RGBA.
    pixels: Callable[[memoryview], NDArray[np.uint8]] | None = None
    #: What `PIL.Image.open` calls it, and what has Pillow decode it: module, and what installs it.
    pillow: str = ""
    module: str = "PIL"
    install: str = "pillow"
    #: OpenCV's parameter for the quality of a new file, and the best.
    quality: tuple[str, int] | None = None

    @property
    def name(self) -> str:
        """The name in errors and reports."""
        return {"webp": "WebP", "jxl": "JPEG XL"}.get(self.kind, self.kind.upper())


FORMATS = (
    Format(
        "jpeg",
        (".jpg", ".jpeg", ".jpe"),
        (((0, b"\xff\xd8\xff"),),),
        enough=((0, b"\xff\xd8"),),
        size=jpeg_size,
        check_end=check_jpeg_end,
        orientation=jpeg_orientation,
        facts=jpeg_facts,
        header=jpeg_header,
        has_eight_bits=True,
        rows=JpegRows,
        pillow="JPEG",
        quality=("IMWRITE_JPEG_QUALITY", 100),
    ),
    Format(
        "png",
        (".png",),
        (((0, b"\x89PNG\r\n\x1a\n"),),),
        size=png_size,
        check_for_opencv=check_chunks,
        orientation=png_orientation,
        facts=png_facts,
        deep=decode_deep,
        header=png_header,
        rows=PngRows,
        pillow="PNG",
        quality=("IMWRITE_PNG_COMPRESSION", 9),
    ),
    Format(
        "gif",
        (".gif",),
        (((0, b"GIF8"),),),
        has_eight_bits=True,
        sample="R0lGODdhAgABAIAAAAAAAAAAACwAAAAAAgABAAAIBQABAAgIADs=",
        pillow="GIF",
    ),
    Format(
        "webp",
        (".webp",),
        (((0, b"RIFF"), (8, b"WEBP")),),
        enough=((8, b"WEBP"),),
        size=webp_size,
        orientation=webp_orientation,
        has_eight_bits=True,
        rows=WebpRows,
        sample="UklGRk4AAABXRUJQVlA4WAoAAAAIAAAAAQAAAAAAVlA4TA4AAAAvAQAAAAcQEf0PRET/A0VYSUYaAAAATU0AKg"
        "AAAAgAAQESAAMAAAABAAYAAAAAAAA=",
        pillow="WEBP",
        module="PIL._webp",
    ),
    Format(
        "avif",
        (".avif",),
        (((0, b"\0\0\0"), (4, b"ftypavif")),),
        enough=((4, b"ftypavi"),),
        size=avif_size,
        parts=avif_frames,
        orientation=avif_orientation,
        sample="AAAAHGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZgAAAPNtZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAA"
        "AAAAAAAAAAAAAAAA5waXRtAAAAAAABAAAAHmlsb2MAAAAARAAAAQABAAAAAQAAARcAAAAcAAAAKGlpbmYAAAAA"
        "AAEAAAAaaW5mZQIAAAAAAQAAYXYwMUNvbG9yAAAAAHJpcHJwAAAAUmlwY28AAAAUaXNwZQAAAAAAAAACAAAAAQ"
        "AAAA5waXhpAAAAAAEIAAAADGF2MUOBABwAAAAAE2NvbHJuY2x4AAEADQAGgAAAAAlpcm90AwAAABhpcG1hAAAA"
        "AAAAAAEAAQUBAoMEhQAAACRtZGF0EgAKBxgAJtgIaDUyDxTGZQAB5QAASFrZn1cDjQ==",
        pillow="AVIF",
        module="PIL._avif",
        install="'pillow>=11.3'",
    ),
    Format(
        "jxl",
        (".jxl",),
        (((0, b"\xff\x0a"),), ((0, b"\0\0\0\x0cJXL \r\n\x87\n"),)),
        size=jxl_size,
        orientation=jxl_orientation,
        sample="/woAEBAJCAABACwASxiLFcJJluUMieI=",
        pillow="JXL",
        module="pillow_jxl",
        install="pillow-jxl-plugin",
    ),
    Format("bmp", (".bmp",), (((0, b"BM"), (6, b"\0\0\0\0")),), has_eight_bits=True, pillow="BMP"),
    Format(
        "tiff",
        (".tif", ".tiff"),
        (((0, b"II*\0"),), ((0, b"MM\0*"),)),
        size=tiff_size,
        parts=tiff_tiles,
        orientation=tiff_orientation,
        pillow="TIFF",
    ),
    Format(
        "ppm",
        (".ppm", ".pnm"),
        (((0, b"P6\n"),),),
        enough=((0, b"P6"),),
        header=pnm_header,
        facts=_raw_facts,
        rows=RawRows,
        pillow="PPM",
    ),
    Format(
        "pgm",
        (".pgm", ".pnm"),
        (((0, b"P5\n"),),),
        enough=((0, b"P5"),),
        header=pnm_header,
        facts=_raw_facts,
        rows=RawRows,
    ),
    Format("jpeg2000", (".jp2",), (((0, b"\0\0\0\x0cjP  \r\n"),),), pillow="JPEG2000"),
)
#: What stands for every other content, and for formats that only OpenCV knows.
OTHER = Format("other", (".bin",), ())

IMAGE_KINDS = tuple(row.kind for row in FORMATS)
#: Kind, suffixes and signatures of content, be it an image or an array.
_KINDS = (
    *((row.kind, row.suffixes, row.signatures) for row in FORMATS),
    ("npy", (".npy",), (((0, b"\x93NUMPY"),),)),
)
_SUFFIXES = {kind: suffixes for kind, suffixes, _ in _KINDS}
_BY_FIRST_BYTE: dict[int, list[tuple[str, Marks]]] = {}
for _kind, _suffixes, _signatures in _KINDS:
    for _marks in _signatures:
        _BY_FIRST_BYTE.setdefault(_marks[0][1][0], []).append((_kind, _marks))
#: Offset and bytes that are enough for decoders, and the row.
_ENOUGH = tuple(
    (offset, mark, row)
    for row in FORMATS
    for offset, mark in row.enough or (marks[0] for marks in row.signatures)
)


def kind_of(content: Any) -> str:
    r"""Tell the kind of some bytes by how they begin; ``"empty"`` and ``"other"`` are kinds, too.

    >>> kind_of(b"\xff\xd8\xff\xe0"), kind_of(b"text"), kind_of(b"")
    ('jpeg', 'other', 'empty')
    """
    if not len(content):
        return "empty"
    start = bytes(content[:16])
    for kind, marks in _BY_FIRST_BYTE.get(start[0], ()):
        if all(start[offset : offset + len(mark)] == mark for offset, mark in marks):
            return kind
    return "other"


def row_of(content: Any) -> Format:
    """Find the row of content that somebody takes for an image: decoders look at less of it.

    What `kind_of` calls other may be decoded, and the same limits are for it.
    """
    start = bytes(content[:16])
    for offset, mark, row in _ENOUGH:
        if start.startswith(mark, offset):
            return row
    return OTHER


def suffixes_of(kind: str) -> tuple[str, ...]:
    """Return the suffixes of files of some kind, the usual one first.

    >>> suffixes_of("jpeg"), suffixes_of("other")
    (('.jpg', '.jpeg', '.jpe'), ('.bin',))
    """
    return _SUFFIXES.get(kind, OTHER.suffixes)


def is_read_everywhere(row: Format) -> bool:
    """Return True for a format that needs neither a certain OpenCV nor a plugin."""
    return not row.sample or row.pixels is not None or row.install == "pillow"
