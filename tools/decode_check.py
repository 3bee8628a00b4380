"""`recordio check --decode`: every image of a pack is decoded, and warnings count.

The frames of the records are `recordio.verify`'s; this looks at what is in them and never writes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from recordio.errors import RecordIOError
from recordio.formats import by_opencv
from recordio.formats.image_header import DEFAULT_MAX_PIXELS
from recordio.formats.table import IMAGE_KINDS
from recordio.frames.check import Report
from recordio.ordered import map_in_order
from recordio.packs.check import SoundRecords
from recordio.packs.identities import label_pair
from recordio.packs.open_pack import OpenPack
from recordio.payload import read_payload

from .console import progress_bar
from .images import check_decodes, one_opencv_thread
from .npy import decode_npy


def check_contents(
    report: Report,
    pack: OpenPack | None = None,
    *,
    max_pixels: int = DEFAULT_MAX_PIXELS,
    threads: int,
    progress: bool | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    tell: Callable[[int, int], object] = lambda done, total: None,
) -> None:
    """Decode the contents of all whole records, and add to a report what cannot be decoded.

    The report gets `images` and more `problems`, in the order of the file, whatever the number of
    threads.  ``tell(done, total)`` is called with the number of records that were looked at.
    """
    report.images = 0
    pack = pack or OpenPack(report.path)  # what a report of a record file says is enough
    with (
        SoundRecords(pack, report) as records,
        one_opencv_thread(),
        progress_bar(len(records), os.path.basename(report.path), "records", progress) as advance,
    ):
        framed = pack.container is None and len(records) > 0
        identities = framed and label_pair(records.read(0)) is not None

        def examine(position: int) -> tuple[bool, str]:
            """Return whether a record holds an image, and the fault of its content."""
            kind = ""
            try:
                record = records.read(position, copy=True)
                if identities and label_pair(record) is not None:
                    return False, ""
                _, content, kind = read_payload(record)
                if kind in IMAGE_KINDS:
                    check_decodes(content, max_pixels)
                elif kind == "npy":
                    decode_npy(content)
                else:
                    return False, f"its content is {kind}, no image of a known format"
            except RecordIOError as error:
                return kind in IMAGE_KINDS, error.reason
            except by_opencv.errors() + (MemoryError,) as error:
                return kind in IMAGE_KINDS, str(error) or "not enough memory"
            return kind in IMAGE_KINDS, ""

        rows = range(len(records))
        with contextlib.closing(map_in_order(examine, rows, threads, cancelled=cancelled)) as pairs:
            for position, (is_image, reason) in enumerate(pairs):
                report.images += is_image and not reason
                if reason:
                    report.problems.append(records.problem(position, "content", reason))
                advance(1)
                tell(position + 1, len(records))
