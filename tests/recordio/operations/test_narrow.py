"""Packs whose image headers have 32 bytes."""

import struct

import numpy as np
import pytest

from recordio import (
    LabelError,
    RecordHeaderError,
    RecordIOError,
    RecordWriter,
    narrow,
    pack,
    stats,
    unpack,
)
from recordio import filter as filter_pack
from recordio.packs.open_pack import OpenPack
from recordio.packs.scanned_pack import ScannedPack
from recordio.payload import has_wide_header, read_payload
from recordio.tools.info import collect_info

IMAGE = b"\xff\xd8\xff\xe0 an image"


def wide(label, number, content):
    """A record as scripts write it that use the format IdQQ."""
    if np.ndim(label):
        labels = np.asarray(label, np.float64)
        return struct.pack("IdQQ", labels.size, 0, number, 0) + labels.tobytes() + content
    return struct.pack("IdQQ", 0, label, number, 0) + content


def wide_faces(path, first, counts):
    """The end of a large face-recognition pack."""
    ends = first - sum(counts) + np.cumsum(counts)
    spans = np.stack([ends - counts, ends], -1).tolist()
    with RecordWriter(path, path.with_suffix(".idx")) as writer:
        writer.write(wide([first, first + len(counts)], 0, b""), 0)
        for number, span in enumerate(spans):
            for key in range(*span):
                writer.write(wide(number, key, IMAGE), key)
        for key, span in enumerate(spans, first):
            writer.write(wide(span, key, b""), key)
    return spans


@pytest.mark.parametrize("first", [40, 17_091_657, 42_474_557])
def test_a_face_pack_becomes_a_usual_one(packs, first):
    spans = wide_faces(packs.path("a"), first, [5, 1, 4])
    report = narrow(packs.path("a"), packs.path("b"))
    assert (report.records, report.skipped) == (14, 0)
    with ScannedPack(packs.path("b")) as source:
        assert source.identities == 3 and source.keys.tolist() == list(range(first - 10, first))
        assert source.labels.values.tolist() == [0] * 5 + [1] + [2] * 4
        assert bytes(source.record(0)).endswith(IMAGE)
    with OpenPack(packs.path("b"), packs.path("b").with_suffix(".idx")) as opened:
        assert opened.faces.ranges().tolist() == spans


def test_errors_name_such_headers(packs):
    wide_faces(packs.path("a"), 17_091_657, [5, 5])
    for read in (collect_info, stats, ScannedPack):
        with pytest.raises(RecordHeaderError, match=r"a\.rec.*key 0 .*32 bytes.*recordio narrow"):
            read(str(packs.path("a")))
    rows = [wide(number % 3, number, IMAGE) for number in range(1, 9)]
    path = packs.raw("b", rows)
    with ScannedPack(path) as source:
        with pytest.raises(RecordHeaderError, match="record 0: .*32 bytes.*recordio narrow"):
            source.need_labels()
    with pytest.raises(RecordIOError):
        filter_pack(path, packs.path("c"), "label == 0")  # all of them would seem to be 0


@pytest.mark.parametrize("label", [3.0, [1.0], [1.0, 2.0, 3.0]])
def test_one_record(label):
    record = wide(label, 7, IMAGE)
    header, content = unpack(record, label_dtype="float64")
    assert np.array_equal(header.label, label) and (header.id, content) == (7, IMAGE)
    assert has_wide_header(record) and read_payload(record).header is None
    for usual in (pack((0, label, 7, 0), IMAGE), pack((0, label, 7, 3), b"unknown")):
        assert not has_wide_header(usual) and read_payload(usual).header.id == 7
    for size in range(len(record) - len(IMAGE)):
        with pytest.raises(RecordHeaderError):
            unpack(record[:size], label_dtype="float64")
    with pytest.raises(ValueError, match="label_dtype='float16'"):
        unpack(record, label_dtype="float16")


def test_what_has_no_such_header(packs):
    rows = [wide(0, 1, IMAGE), pack((0, 5, 2, 0), IMAGE), wide(1e300, 3, IMAGE), wide(2, 4, b"")]
    path = packs.raw("a", rows)
    with pytest.raises(RecordHeaderError, match=r"a\.rec, offset \d+, record 1: .*not stored"):
        narrow(path, packs.path("b"))
    report = narrow(path, packs.path("b"), skip_errors=True)
    assert (report.records, report.skipped) == (2, 2)
    assert [key for key in packs.read(packs.path("b"))] == [0, 3]
    path = packs.raw("a", rows[2:])
    with pytest.raises(LabelError, match="1e.300"):
        narrow(path, packs.path("b"))
    with pytest.raises(RecordIOError, match="overwritten"):
        narrow(path, path)
    with pytest.raises(RecordIOError, match="no record has"):
        narrow(packs.raw("a", rows[1:2]), packs.path("b"), skip_errors=True)


def test_it_can_be_stopped(packs):
    path = packs.raw("a", [wide(0, 1, IMAGE)])
    with pytest.raises(KeyboardInterrupt):
        narrow(path, packs.path("b"), cancelled=lambda: True)
    assert packs.names() == ["a.idx", "a.rec"]
