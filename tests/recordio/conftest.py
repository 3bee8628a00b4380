"""Record files that many tests need, packs of every kind, and how to look into them."""

import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from iterators import testing
from iterators.testing import check_pack, write_faces, write_rows
from recordio import IRHeader, RecordReader, RecordWriter, pack, unpack
from recordio.frames.encoder import encode
from recordio.operations import copying, output
from recordio.packs.open_pack import OpenPack
from recordio.packs.scanned_pack import ScannedPack

# Other work on the machine must not fail a test.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

GOLDEN = Path(__file__).parent.parent / "golden"
MAGIC = b"\x0a\x23\xd7\xce"


@pytest.fixture
def golden():
    """Files written by MXNet: payloads in hex, one a line, the record file and its index."""
    return GOLDEN


@pytest.fixture
def golden_payloads():
    return [bytes.fromhex(line) for line in (GOLDEN / "frames.hex").read_text().split("\n")[:-1]]


@pytest.fixture
def write_records(tmp_path):
    """Write payloads to a record file, and an index if keys are given; returns the path or both."""

    def write(payloads, keys=None, name="some.rec"):
        path = tmp_path / name
        frames = [encode(payload) for payload in payloads]
        path.write_bytes(b"".join(frames))
        if keys is None:
            return path
        offset, lines = 0, []
        for key, frame in zip(keys, frames, strict=True):
            lines.append(f"{key}\t{offset}\n")
            offset += len(frame)
        index = path.with_suffix(".idx")
        index.write_text("".join(lines))
        return path, index

    return write


@dataclass
class Packs:
    """Makes packs in a folder and reads them back."""

    folder: Path
    made: list = field(default_factory=list)

    def path(self, name):
        return self.folder / f"{name}.rec"

    def raw(self, name, payloads, index=True):
        return testing.write_records(self.path(name), payloads, index=index)

    def plain(self, name, labels, index=True, first_id=0):
        """Records with one label (a number) or several (a list) each."""
        rows = [
            (first_id + number, label, self.content(name, number))
            for number, label in enumerate(labels)
        ]
        return write_rows(self.path(name), rows, index=index)

    def content(self, name, number):
        """Of every length and, sometimes, with the magic word at a whole word."""
        return f"{name}{number}".encode() * (number % 4) + MAGIC * (number % 5 == 4)

    def detection(self, name, objects, index=True):
        """A list of object ids for each record."""
        labels = [
            np.concatenate([[4, 5, 7, 7], *([cls, 0.1, 0.2, 0.8, 0.9] for cls in classes)])
            for classes in objects
        ]
        return self.plain(name, labels, index)

    def faces(self, name, counts, index=True):
        """A face-recognition pack: a number of images for each identity."""
        contents = [b"face" + self.content(name, key) for key in range(1, sum(counts) + 1)]
        return write_faces(self.path(name), counts, contents, index=index)

    def large_faces(self, name, first, counts, keys=None, number=lambda identity: identity):
        """The end of a large face-recognition pack: its last identities, up to some key.

        `keys` are those of the images that are there, by default all; `number` is the label of
        the images of an identity.
        """
        begin = first - sum(counts)
        ends = (begin + np.cumsum(counts)).tolist()
        labels = np.repeat(np.arange(len(counts)), counts).tolist()
        path = self.path(name)
        with RecordWriter(path, path.with_suffix(".idx")) as writer:
            writer.write(pack(IRHeader(2, [first, first + len(counts)], 0, 0), b""), 0)
            for key, label in enumerate(labels, begin):
                if keys is None or key in keys:
                    writer.write(pack(IRHeader(0, number(label), key, 0), b"face"), key)
            for key, (end, count) in enumerate(zip(ends, counts, strict=True), first):
                writer.write(pack(IRHeader(2, [end - count, end], key, 0), b""), key)
        return path

    def read(self, path):
        """Labels, id and content of each record, in the order of the file, by key."""
        check_pack(path)
        with RecordReader(path, Path(path).with_suffix(".idx")) as reader:
            found = {}
            for key, record in zip(reader.keys.tolist(), reader, strict=True):
                header, content = unpack(record)
                labels = np.atleast_1d(header.label).tolist()
                found[key] = (labels, header.id, bytes(content))
            return found

    def contents(self, path):
        return [content for _, _, content in self.read(path).values()]

    def ids(self, path):
        """Of all records but those that list identities."""
        with ScannedPack(path) as source:
            return source.ids.tolist()

    def labels(self, path):
        """Class labels, those of objects too."""
        with ScannedPack(path) as source:
            table = source.labels
            pairs = zip(table.starts[:-1].tolist(), table.starts[1:].tolist(), strict=True)
            return [table.values[first:end].tolist() for first, end in pairs]

    def identities(self, path):
        """The images' labels that every identity record lists; None for an ordinary pack."""
        with OpenPack(path, Path(path).with_suffix(".idx")) as opened:
            if opened.faces is None:
                return None
            return [
                [unpack(opened.reader.by_key(key))[0].label for key in range(first, end)]
                for first, end in opened.faces.ranges().tolist()
            ]

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())


@pytest.fixture
def packs(tmp_path):
    return Packs(tmp_path)


@pytest.fixture
def small_blocks(monkeypatch):
    """Copy and note little at a time, so that small packs take many steps."""
    monkeypatch.setattr(copying, "BLOCK", 64)
    monkeypatch.setattr(copying, "CHUNK", 7)
    monkeypatch.setattr(output, "STEP", 64)


@pytest.fixture
def killed_after(small_blocks):
    """Run ``job(progress)`` in a child that kills itself when so many records are written."""

    def run(records, job):
        child = os.fork()
        if child == 0:
            try:
                job(lambda done, total: done >= records and os.kill(os.getpid(), signal.SIGKILL))
            finally:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL

    return run


@pytest.fixture
def parts(tmp_path):
    """A folder for shards."""
    folder = tmp_path / "parts"
    folder.mkdir()
    return folder
