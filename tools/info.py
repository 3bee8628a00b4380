"""`recordio info`: the contents of a record file, in numbers.

Every record is looked at, in damaged files every whole one; no pixel is decoded.  Classes and
pixels are left to `recordio stats`.
"""

from __future__ import annotations

import collections
import contextlib
import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from recordio.errors import RecordIOError
from recordio.frames.check import Report
from recordio.operations.statistics import RecordCounts, in_words
from recordio.packs.check import SoundRecords, check_pack
from recordio.packs.open_pack import OpenPack, open_pack
from recordio.payload import read_payload

from .console import progress_bar
from .payloads import describe, labels_of

SHOWN_SHAPES = 5
SHOWN_PROBLEMS = 5
MANY_LABELS = 1000
#: Records that are counted at a time.
STEP = 1024


@dataclass
class PackInfo:
    """Numbers about a pack."""

    path: str
    container: str | None = None  # its kind, with an article; None of a record file
    files: int = 1  # of a container
    #: Files and parts of samples that no record has.
    left_out: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    records: int = 0  # whole ones
    multipart: int = 0  # those of them that are stored in several parts
    payload_bytes: int = 0
    lost_bytes: int = 0  # those in no whole record
    index: str | None = None
    index_lines: int | None = None
    problems: list[str] = field(default_factory=list)
    #: ``min``, ``median`` and ``max`` bytes of a record.
    sizes: dict[str, float] = field(default_factory=dict)
    headers: int = 0  # records that begin with an image header
    ids_are_keys: bool | None = None  # of every header; None without index or headers
    #: Records by number of labels.
    label_widths: dict[str, int] = field(default_factory=dict)
    #: ``min`` and ``max`` of first labels (None: not finite); ``distinct`` (None: too many).
    labels: dict[str, Any] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)
    #: The most frequent sizes of images and shapes of arrays, and ``others``.
    shapes: dict[str, int] = field(default_factory=dict)
    damaged_contents: int = 0  # as far as damage shows without decoding
    identities: int | None = None  # of a face-recognition pack
    listing: int = 0  # records that list these; their labels are keys and not among the others
    #: Records in each of its fields.
    fields: dict[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """True if no damage was found."""
        return not self.problems and not self.damaged_contents

    def as_dict(self) -> dict[str, Any]:
        """Return everything, for JSON."""
        return asdict(self)


def collect_info(
    path: str, progress: bool | None = None, cancelled: Callable[[], bool] = lambda: False
) -> PackInfo:
    """Look at every record of a file; ``PREFIX.idx`` is compared if it is there."""
    pack = open_pack(path, skip_errors=True)
    index = None if pack.index is None else pack.index.name
    report = check_pack(pack)
    info = PackInfo(
        path=report.path,
        container=None if pack.container is None else pack.container.name,
        files=1 if pack.container is None else len(pack.files),
        left_out={} if pack.samples is None else dict(pack.samples.left_out),
        bytes=report.size,
        records=report.records,
        multipart=report.multipart,
        payload_bytes=report.payload_bytes,
        lost_bytes=report.lost_bytes,
        index=index,
        index_lines=report.index_lines,
        problems=[str(problem) for problem in report.problems],
    )
    _look_at_records(info, pack, report, progress, cancelled)
    with contextlib.suppress(RecordIOError):  # a problem already
        for name in pack.field_names:
            with contextlib.suppress(RecordIOError):
                field_pack = pack.field(name)
                info.fields[name] = len(field_pack) - len(field_pack.missing)
    if report.ok:
        info.identities = None if pack.faces is None else len(pack.faces)
    return info


def _look_at_records(
    info: PackInfo,
    pack: OpenPack,
    report: Report,
    progress: bool | None,
    cancelled: Callable[[], bool],
) -> None:
    faces = None
    with contextlib.suppress(RecordIOError):  # said elsewhere
        faces = pack.faces if report.ok else None
    listing: set[int] = set()  # offsets of records that list identities
    if faces is not None:
        listing = set(pack.all_offsets[~faces.are_images(pack.all_keys)].tolist())
    counts = RecordCounts(MANY_LABELS)
    shapes: collections.Counter[str] = collections.Counter()
    compared = agree = pack.container is None and report.index_lines is not None

    def look(row: int) -> tuple[str, int, list[float]]:
        """Return kind, size and labels of a record; count the rest."""
        nonlocal agree
        if cancelled():
            raise KeyboardInterrupt
        record = records.read(row)
        advance(1)
        header, content, kind = read_payload(record)
        try:
            if shape := describe(content, kind):
                shapes[shape] += 1
        except RecordIOError:
            info.damaged_contents += 1
        if header is None:
            return kind, len(record), []
        info.headers += 1
        agree = agree and records.key(row) == header.id
        if int(records.offsets[row]) in listing:
            info.listing += 1
            return kind, len(record), []
        return kind, len(record), labels_of(header)

    with (
        SoundRecords(pack, report) as records,
        progress_bar(info.records, os.path.basename(info.path), "records", progress) as advance,
    ):
        for first in range(0, len(records), STEP):
            triples = [look(row) for row in range(first, min(first + STEP, len(records)))]
            kinds, sizes, labels = zip(*triples, strict=True)
            widths = [len(mine) for mine in labels if mine]
            counts.add(kinds, sizes, widths, [mine[0] for mine in labels if mine])
    info.sizes = counts.sizes_in_short()
    info.kinds = dict(counts.kinds.most_common())
    info.shapes = dict(shapes.most_common(SHOWN_SHAPES))
    if other_shapes := sum(shapes.values()) - sum(info.shapes.values()):
        info.shapes["others"] = other_shapes
    if info.headers:
        info.label_widths = {str(width): count for width, count in sorted(counts.widths.items())}
        info.labels = {
            "min": counts.least if math.isfinite(counts.least) else None,
            "max": counts.greatest if math.isfinite(counts.greatest) else None,
            "distinct": None if counts.more_labels else len(counts.labels),
        }
        info.ids_are_keys = agree if compared else None


def format_info(info: PackInfo) -> str:
    """Return the numbers as text, a line for each topic."""
    lines = [("file", f"{info.path}, {info.bytes} bytes")]
    if info.container is not None:
        several = f", {info.files} files" if info.files > 1 else ""
        lines.append(("container", f"{info.container}{several}; records are made of its samples"))
    several = f", {info.multipart} stored in several parts" if info.multipart else ""
    lines.append(("records", f"{info.records}, {info.payload_bytes} bytes in all{several}"))
    if info.sizes:
        low, middle, high = (info.sizes[name] for name in ("min", "median", "max"))
        lines.append(("sizes", f"{low} to {high} bytes, median {middle:.0f}"))
    if info.container is not None:
        if info.left_out:
            lines.append(("left out", in_words(info.left_out)))
    elif info.index is None:
        lines.append(("index", "none beside it"))
    else:
        count = "unreadable" if info.index_lines is None else f"{info.index_lines} lines"
        same = {True: ", keys are the ids", False: ", keys are not the ids", None: ""}
        lines.append(("index", f"{info.index}, {count}{same[info.ids_are_keys]}"))
    if info.kinds:
        lines.append(("content", in_words(info.kinds)))
    if info.shapes:
        lines.append(("shapes", in_words(info.shapes)))
    if info.headers:
        few = "" if info.headers == info.records else f" in {info.headers} headers"
        widths = in_words({f"{width} each": count for width, count in info.label_widths.items()})
        lines.append(("labels", f"{widths}{few}"))
        low, high = info.labels["min"], info.labels["max"]
        distinct = info.labels["distinct"]
        count = f"more than {MANY_LABELS}" if distinct is None else str(distinct)
        bounds = "not finite" if None in (low, high) else f"from {low:g} to {high:g}"
        lines.append(("", f"the first {bounds}, {count} distinct"))
    elif info.records:
        lines.append(("labels", "none: no record begins with an image header"))
    if info.fields:
        lines.append(("fields", ", ".join(f"{n}: {count}" for n, count in info.fields.items())))
    if info.identities is not None:
        lines.append(
            ("identities", f"{info.identities}, listed by {info.listing} records: a face pack")
        )
    problems = list(info.problems[:SHOWN_PROBLEMS])
    if len(info.problems) > SHOWN_PROBLEMS:
        problems.append(f"and {len(info.problems) - SHOWN_PROBLEMS} more")
    if info.damaged_contents:
        problems.append(f"{info.damaged_contents} images or arrays are truncated or damaged")
    topics = ["problems"] + [""] * len(problems)
    lines += zip(topics, problems or ["none"], strict=False)
    return "\n".join(f"{topic:<12}{text}".rstrip() for topic, text in lines)
