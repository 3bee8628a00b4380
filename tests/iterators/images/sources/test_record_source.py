"""Labels of all records at once, judged by looking at them one by one."""

import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recordio
from iterators.images.sources.record_source import RecordSource
from iterators.testing import write_records
from recordio.errors import RecordIOError
from recordio.frames.encoder import MAGIC

vectors = st.lists(st.integers(-9, 9), min_size=1, max_size=3)
payloads = st.sampled_from([b"", b"x", b"four", MAGIC, b"some" + MAGIC + b"more" + MAGIC])
records = st.one_of(
    st.builds(
        lambda label, number, payload: recordio.pack(
            recordio.IRHeader(0, label[0] if len(label) == 1 else label, number, 0), payload
        ),
        vectors,
        st.integers(0, 5),
        payloads,
    ),
    st.binary(max_size=23),
)


def test_a_header_that_announces_more_labels_than_follow_has_none(tmp_path):
    announced = struct.pack("<IfQQ2f", 3, 0, 1, 0, 1, 2)
    path = write_records(tmp_path / "labels.rec", [announced, announced + bytes(4)])
    for listed in [None, (np.array([1], np.uint64), np.ones((1, 1), np.float32))]:
        labels, errors = RecordSource.open(path).labels(listed, "skip")
        assert list(errors) == [0] and np.isnan(labels[0]) and labels[1] == 1
        assert str(errors[0]) == (
            f"{path}, offset 0, record 0, id 1: the header announces 3 labels, but 8 bytes follow"
        )


@pytest.mark.parametrize("by_list", [False, True])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(records, min_size=1, max_size=8), st.data())
def test_labels_are_those_of_the_records_one_by_one(tmp_path, by_list, records, data):
    path = tmp_path / "labels.rec"
    with recordio.RecordWriter(path) as writer:
        offsets = [writer.write(record) for record in records]
    source = RecordSource.open(path)
    known = {i: 10.0 * i for i in range(5)}
    listed = None
    if by_list:
        listed = (
            np.array(list(known), np.uint64),
            np.array(list(known.values()), np.float32)[:, None],
        )
    if data.draw(st.booleans()):  # a frame or a header is damaged after the file was opened
        place = data.draw(st.sampled_from(offsets)) + data.draw(st.integers(0, 31))
        with open(path, "r+b") as file:
            file.seek(min(place, path.stat().st_size - 1))
            file.write(b"\xff")
    labels, errors = source.labels(listed, "skip")
    reader = recordio.RecordReader(path, None)
    for i, offset in enumerate(source.offsets.tolist()):
        try:
            record = reader.read_at(offset)[0]
            header, _ = recordio.unpack(bytes(record))
            wanted = known[header.id] if by_list else np.atleast_1d(header.label)[0]
        except (RecordIOError, ValueError, KeyError, IndexError):
            wanted = None
        assert (i in errors) == (wanted is None)
        # A damaged label may be NaN itself.
        wanted = np.float32(np.nan if wanted is None else wanted)
        assert np.array_equal(labels[i], wanted, equal_nan=True)
