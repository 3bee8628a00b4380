"""Images by the row source of one codec alone; each thread keeps its decoders, as programs do."""

import os
from threading import local

from libc.stdint cimport int64_t

from recordio.formats.codec_rows cimport CodecRows
from recordio.formats.jpeg.entry_store cimport EntryStore

from recordio.errors import ImageDecodeError
from recordio.formats.codec_rows import decode
from recordio.formats.headers import read_webp
from recordio.formats.jpeg import jpeg
from recordio.formats.png.png import PngRows
from recordio.formats.webp.webp import WebpRows
from recordio.kernels.orient import orient

_thread = local()


cdef CodecRows _rows(make, channels, tuple possible, dict settings):
    if channels not in possible:
        raise ValueError(f"channels must be one of {possible}, not {channels}")
    variables = os.environ.get("ITERATORS_JPEG"), jpeg._kernels
    key = make, channels, *settings.items(), *variables
    rows = _thread.__dict__.get(key)
    if rows is None:
        rows = _thread.__dict__[key] = make(channels, **settings)
    return rows


def decode_jpeg(data, channels=3, region=None, denominator=1, *, EntryStore entries=None,
                int64_t record=0, **limits):
    """Decode a JPEG image as it is stored.

    A region is one of the scaled image.  `entries` has what is known of this image as its `record`,
    and keeps what is found out.
    """
    if denominator not in (1, 2, 4, 8):
        raise ValueError(f"denominator must be 1, 2, 4 or 8, not {denominator}")
    cdef CodecRows rows = _rows(jpeg.JpegRows, channels, (1, 3), limits)
    rows.source.kept = NULL if entries is None else entries.store
    rows.source.record = record
    try:
        pixels = decode(rows, data, region, denominator)
    finally:
        _thread.outcome = rows.outcome
    if pixels is None:
        raise ImageDecodeError("not a JPEG image, or a kind that is not decoded here, such as CMYK")
    return pixels


def last_jpeg():
    """This thread's last one: 0 the library's, 1 ours, 2 given back to it; number of warnings."""
    return _thread.outcome


def decode_png(data, channels=3, region=None, **settings):
    """Decode a PNG image by `PngRows` with such settings; None if it leaves it to another."""
    return decode(_rows(PngRows, channels, (1, 3, 4), settings), data, region)


def decode_webp(data, channels=3, region=None, *, upright=False, **settings):
    """Decode a WebP image; None if it is left to another."""
    pixels = decode(_rows(WebpRows, channels, (1, 3, 4), settings), data, region)
    return orient(pixels, read_webp(memoryview(data)).orientation) if upright else pixels
