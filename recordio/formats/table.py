"""The table of image formats: the rest of the package uses only their rows.

A new format is a module that decodes it and a row here.  Nothing is decoded in this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from numpy.typing import NDArray

from recordio.formats.avif import avif_frames
from recordio.formats.headers import (
    ImageHeader,
    describe_tiff,
    read_avif,
    read_exr,
    read_hdr,
    read_jpeg,
    read_jpeg2000,
    read_jxl,
    read_pfm,
    read_png,
    read_pnm,
    read_tiff,
    read_webp,
    tiff_tiles,
    without_empty_blocks,
)
from recordio.formats.jpeg.jpeg import JpegRows
from recordio.formats.jpeg_markers import is_jpeg_whole
from recordio.formats.png.deep import decode_deep
from recordio.formats.png.png import PngRows, check_png
from recordio.formats.pnm import RawRows, decode_pnm
from recordio.formats.row_source import RowDecoder
from recordio.formats.webp.webp import WebpRows

Size = tuple[int, int]
#: Bytes at their offsets, all of which must be there.
Marks = tuple[tuple[int, bytes], ...]


def _no_values(view: memoryview, channels: int, *, max_pixels: int) -> None:
    return None


def _not_turned(image: Any, header: ImageHeader) -> int:
    return 1


def _as_tagged(image: Any, header: ImageHeader) -> int:
    orientation = image.getexif().get(274, 1)
    return int(orientation) if orientation in range(2, 9) else 1


def _as_in_stream(image: Any, header: ImageHeader) -> int:
    return 1 if getattr(image, "jpeg", False) else header.orientation  # as stored if it was JPEG


def _none(view: memoryview) -> Iterable[Size]:
    return ()


def _unsure(data: Any) -> bool:
    return False


def _no_text(view: memoryview) -> str:
    return ""


#: Weights of grey in formats whose decoders in OpenCV leave it to ``cvtColor``.
GREY_OF_CVTCOLOR = (9798, 19235, 3735)


class Format(NamedTuple):
    """A format of images, and where its functions are; they get the file as a view of bytes.

    Its decoders are asked in this order: `rows` or `values`, which are our own; Pillow; and OpenCV,
    where `opencv` says what only OpenCV reads.
    """

    kind: str
    #: The usual one first, which new files get.
    suffixes: tuple[str, ...]
    #: How content begins that is believed to be of this kind: in one of these ways.
    signatures: tuple[Marks, ...]
    #: What is enough for decoders, as one mark or another; by default the first of each signature.
    enough: Marks = ()
    #: Reads the header, None for one that is damaged; without it Pillow is asked.
    header: Callable[[memoryview], ImageHeader | None] | None = None
    #: Sizes of frames and tiles, for which decoders take memory: they may exceed the picture.
    parts: Callable[[memoryview], Iterable[Size]] = _none
    #: Returns True for a file whose pixels are all there, as far as that shows without decoding.
    is_whole: Callable[[memoryview], bool] = _unsure
    #: What more an error should say of a file that cannot be decoded.
    describe: Callable[[memoryview], str] = _no_text
    #: The codec that gives its rows without the GIL.
    rows: type[RowDecoder] | None = None
    #: Decodes the stored values, of more than 8 bits too; None for a file that it leaves to others.
    values: Callable[..., NDArray[Any] | None] = _no_values
    #: What `PIL.Image.open` calls it, and what has Pillow decode it: module, and what installs it.
    pillow: str = ""
    module: str = "PIL"
    install: str = "pillow"
    #: The file as Pillow reads it.
    mended: Callable[[memoryview], bytes | memoryview] = memoryview
    #: The orientation as which Pillow turns an image that it has opened.
    pillow_turns: Callable[[Any, ImageHeader], int] = _not_turned
    #: What OpenCV is asked for, which Pillow does not read.
    opencv: str = ""
    #: Weights of red, green and blue with which OpenCV makes grey of its colours.
    grey: tuple[int, int, int] = (4899, 9617, 1868)
    #: OpenCV's parameter for the quality of a new file, and the best.
    quality: tuple[str, int] | None = None

    @property
    def is_always_turned(self) -> bool:
        """True where an orientation belongs to the format: Pillow turns what it opens."""
        return self.pillow_turns is not _not_turned

    @property
    def name(self) -> str:
        """The name in errors and reports."""
        return _NAMES.get(self.kind, self.kind.upper())


_NAMES = {
    "webp": "WebP",
    "jxl": "JPEG XL",
    "jpeg2000": "JPEG 2000",
    "hdr": "Radiance HDR",
    "exr": "OpenEXR",
    "other": "unknown",
}

FORMATS = (
    Format(
        "jpeg",
        (".jpg", ".jpeg", ".jpe", ".jfif"),
        (((0, b"\xff\xd8\xff"),),),
        enough=((0, b"\xff\xd8"),),
        header=read_jpeg,
        is_whole=is_jpeg_whole,
        rows=JpegRows,
        pillow="JPEG",
        quality=("IMWRITE_JPEG_QUALITY", 100),
    ),
    Format(
        "png",
        (".png",),
        (((0, b"\x89PNG\r\n\x1a\n"),),),
        header=read_png,
        is_whole=check_png,
        rows=PngRows,
        values=decode_deep,
        pillow="PNG",
        quality=("IMWRITE_PNG_COMPRESSION", 9),
    ),
    Format(
        "gif",
        (".gif",),
        (((0, b"GIF8"),),),
        mended=without_empty_blocks,
        pillow="GIF",
        grey=GREY_OF_CVTCOLOR,
    ),
    Format(
        "webp",
        (".webp",),
        (((0, b"RIFF"), (8, b"WEBP")),),
        enough=((8, b"WEBP"),),
        header=read_webp,
        rows=WebpRows,
        pillow="WEBP",
        module="PIL._webp",
        grey=GREY_OF_CVTCOLOR,
    ),
    Format(
        "avif",
        (".avif",),
        (((0, b"\0\0\0"), (4, b"ftypavif")), ((0, b"\0\0\0"), (4, b"ftypavis"))),
        enough=((4, b"ftypavi"),),
        header=read_avif,
        parts=avif_frames,
        pillow="AVIF",
        module="PIL._avif",
        install="'pillow>=11.3'",
        grey=GREY_OF_CVTCOLOR,
    ),
    Format(
        "jxl",
        (".jxl",),
        (((0, b"\xff\x0a"),), ((0, b"\0\0\0\x0cJXL \r\n\x87\n"),)),
        header=read_jxl,
        pillow="JXL",
        module="pillow_jxl",
        install="pillow-jxl-plugin",
        pillow_turns=_as_in_stream,
    ),
    Format("bmp", (".bmp",), (((0, b"BM"), (6, b"\0\0\0\0")),), enough=((0, b"BM"),), pillow="BMP"),
    Format(
        "tiff",
        (".tif", ".tiff"),
        (
            ((0, b"II*\0"),),
            ((0, b"MM\0*"),),
            ((0, b"II+\0\x08\0\0\0"),),
            ((0, b"MM\0+\0\x08\0\0"),),
        ),
        header=read_tiff,
        parts=tiff_tiles,
        describe=describe_tiff,
        pillow="TIFF",
        pillow_turns=_as_tagged,
        opencv="colours of more than 8 bits, and 10 or 14 bits",
    ),
    Format(
        "ppm",
        (".ppm", ".pnm"),
        (((0, b"P6\n"),),),
        enough=((0, b"P6"),),
        header=read_pnm,
        rows=RawRows,
        values=decode_pnm,
        pillow="PPM",
    ),
    Format(
        "pgm",
        (".pgm", ".pnm"),
        (((0, b"P5\n"),),),
        enough=((0, b"P5"),),
        header=read_pnm,
        rows=RawRows,
        values=decode_pnm,
        pillow="PPM",
    ),
    Format(
        "pfm",
        (".pfm",),
        (((0, b"Pf\n"),), ((0, b"PF\n"),)),
        header=read_pfm,
        pillow="PPM",
        opencv="colours",
    ),
    Format(
        "jpeg2000",
        (".jp2", ".j2k"),
        (((0, b"\0\0\0\x0cjP  \r\n"),), ((0, b"\xff\x4f\xff\x51"),)),
        header=read_jpeg2000,
        pillow="JPEG2000",
        opencv="colours of more than 8 bits",
        grey=GREY_OF_CVTCOLOR,
    ),
    Format(
        "hdr",
        (".hdr",),
        (((0, b"#?RADIANCE"),), ((0, b"#?RGBE"),)),
        header=read_hdr,
        opencv="all",
    ),
    Format("exr", (".exr",), (((0, b"\x76\x2f\x31\x01"),),), header=read_exr, opencv="all"),
)
#: What stands for every other content, which Pillow may know.
OTHER = Format("other", (".bin",), ())

IMAGE_KINDS = tuple(row.kind for row in FORMATS)
#: Endings that are those of images wherever files are looked for; errors say what decoders need.
IMAGE_SUFFIXES = frozenset(suffix for row in FORMATS for suffix in row.suffixes)
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
#: Bytes that are enough for decoders, and the row.
_ENOUGH: tuple[tuple[Marks, Format], ...] = tuple(
    (marks, row)
    for row in FORMATS
    for marks in ([(mark,) for mark in row.enough] or row.signatures)
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


def format_of(content: Any) -> Format:
    """Find the row of content that somebody takes for an image: decoders look at less of it.

    What `kind_of` calls other may be decoded, and the same limits are for it.
    """
    start = bytes(content[:16])
    for marks, row in _ENOUGH:
        if all(start.startswith(mark, offset) for offset, mark in marks):
            return row
    return OTHER


def suffixes_of(kind: str) -> tuple[str, ...]:
    """Return the suffixes of files of some kind, the usual one first.

    >>> suffixes_of("jpeg"), suffixes_of("other")
    (('.jpg', '.jpeg', '.jpe', '.jfif'), ('.bin',))
    """
    return _SUFFIXES.get(kind, OTHER.suffixes)


def is_read_everywhere(row: Format) -> bool:
    """Return True for a format that needs neither OpenCV nor a plugin."""
    return row.rows is not None or (bool(row.pillow) and row.install == "pillow")
