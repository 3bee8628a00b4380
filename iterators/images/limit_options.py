"""The keywords that limit what is decoded: how many pixels and scans an image may have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from recordio.formats.jpeg import jpeg
from recordio.keywords.checks import integer
from recordio.keywords.options import Options, option

#: No image has more pixels: both sides fit into 31 bits.
MOST_PIXELS = (1 << 62) - 1
MOST_SCANS = (1 << 31) - 1


@dataclass(frozen=True, kw_only=True)
class LimitOptions(Options):
    """Images that exceed these are refused before anything is decoded."""

    max_pixels: int = option(
        jpeg.DEFAULT_MAX_PIXELS,
        "int",
        """Images with more pixels (2**26 by default) are refused as bad records. So are JPEG
        images with more scans (256), or with more pixels in all scans together (2**31; each
        component of a scan counts). Only files made to keep a decoder busy exceed the last two.""",
        partial(integer, low=1, high=MOST_PIXELS),
    )
    max_scans: int = option(
        jpeg.DEFAULT_MAX_SCANS, "int", ..., partial(integer, low=1, high=MOST_SCANS)
    )
    max_scan_pixels: int = option(
        jpeg.DEFAULT_MAX_SCAN_PIXELS, "int", ..., partial(integer, low=1, high=MOST_PIXELS)
    )

    @property
    def limits(self) -> dict[str, int]:
        """All of them by their names."""
        return self.values("max_pixels", "max_scans", "max_scan_pixels")
