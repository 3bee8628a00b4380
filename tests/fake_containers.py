"""Containers made up for tests: contents that are spans of a file, and contents that a class reads.

A file begins with a line of JSON that has its samples; contents follow, in the second kind
compressed one by one.
"""

import json
import re
import zlib

from recordio.containers import table
from recordio.containers.container import USUAL, Container
from recordio.containers.samples import NO_CONTENT, ContainedSamples
from recordio.errors import CorruptRecordError

__all__ = ["register", "write_container"]


def write_container(path, samples, classes=None):
    """Write samples, each labels, name and content; a content that is a text is a fault."""
    packed = path.suffix == ".packed"
    stored = [b"" if isinstance(c, str) else zlib.compress(c) if packed else c for *_, c in samples]
    rows = [
        [len(data), labels, name, content if isinstance(content, str) else ""]
        for data, (labels, name, content) in zip(stored, samples, strict=True)
    ]
    head = {"classes": list((classes or {}).items()), "rows": rows}
    path.write_bytes(json.dumps(head).encode() + b"\n" + b"".join(stored))
    return path


def _scan(file, settings=None, choice=USUAL):
    data = bytes(file.map(settings))
    begin = data.index(b"\n") + 1
    head = json.loads(data[:begin])
    offsets, sizes, faults = [], [], {}
    for number, (size, _, _, fault) in enumerate(head["rows"]):
        offsets.append(begin)
        sizes.append(NO_CONTENT if fault else size)
        begin += size
        if fault:
            faults[number] = fault
    columns = [[row[i] for row in head["rows"]] for i in (1, 2)]
    return ContainedSamples.of(
        offsets, sizes, *columns, classes=dict(head["classes"]), faults=faults
    )


def _scan_packed(file, settings=None, choice=USUAL):
    samples = _scan(file, settings)
    Rows.spans[file.name] = list(zip(samples.offsets.tolist(), samples.sizes.tolist(), strict=True))
    samples.sizes[samples.sizes != NO_CONTENT] = 0
    samples.offsets[:] = range(len(samples))
    return samples


class Rows:
    """Contents that are unpacked when they are asked for."""

    spans = {}

    def __init__(self, file, samples, choice=USUAL):
        self.data, self.mine = file.map(), self.spans[file.name]

    def read(self, number):
        begin, size = self.mine[number]
        try:
            return zlib.decompress(self.data[begin : begin + size])
        except zlib.error:
            raise CorruptRecordError("it cannot be unpacked") from None

    def edges(self):
        return range(len(self.mine) + 1)

    def close(self):
        pass


SPANS = Container("a file of spans", _scan, re.compile(r"\.spans$"), is_listed_each_time=True)
PACKED = Container(
    "a packed file",
    _scan_packed,
    re.compile(r"\.packed$"),
    rows=Rows,
    is_listed_each_time=True,
)


def register(monkeypatch):
    """Let the package know them, until the test ends."""
    monkeypatch.setattr(table, "CONTAINERS", (*table.CONTAINERS, SPANS, PACKED))
