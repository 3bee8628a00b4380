"""Labels of a pack as a CSV table; the rest of the records is not read."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Iterable, Sequence

from recordio.bytes.storage import AtomicOutput

from ..payloads import number_text
from ..record_pack import RecordPack
from .csv import one_file
from .format import Export

HEADER = ("key", "id", "labels")


def table_line(fields: Iterable[object], labels: Sequence[float]) -> bytes:
    """Make one line of a table: some fields, then the labels."""
    line = io.StringIO()
    fields = [*fields, *(number_text(label) for label in labels)]
    csv.writer(line, lineterminator="\n").writerow(fields)
    return line.getvalue().encode("utf-8", "surrogateescape")


def write_labels(pack: RecordPack, paths: Sequence[str], settings: argparse.Namespace) -> int:
    """Write key, id and labels of each record; lines are as long as there are labels."""
    count = 0
    with AtomicOutput(paths[0]) as output:
        output.write(table_line(HEADER, []))
        for record in pack:
            output.write(table_line([record.key, record.header.id], record.labels))
            count += 1
    return count


TO_LABELS = Export(
    "labels",
    "a table of keys, ids and labels; TARGET is a CSV file",
    one_file,
    write_labels,
    suffix=".csv",
)
