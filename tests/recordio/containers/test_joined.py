"""The files of a container, read as one."""

import numpy as np
import pytest
from fake_containers import write_container

from recordio import unpack
from recordio.bytes.files import StoredFile
from recordio.containers.joined import JoinedRecords, open_contained
from recordio.containers.table import container_of
from recordio.errors import KeyNotFoundError, RecordIOError

pytestmark = pytest.mark.usefixtures("fake_containers")
FIRST = [([1.0], "a.txt", b"one"), ([2.0, 5.0], "", b"")]
SECOND = [([3.0], "b.txt", b"three"), ([], "c.txt", "it is lost"), ([4.0], "d.txt", b"five")]


@pytest.fixture(params=[".spans", ".packed"])
def records(tmp_path, request):
    names = [
        write_container(tmp_path / f"{number}{request.param}", rows, {number: f"class {number}"})
        for number, rows in enumerate([FIRST, SECOND])
    ]
    files = [StoredFile(str(name)) for name in names]
    with JoinedRecords(open_contained(files, container_of(files[0])), "both") as joined:
        yield joined


def test_ids_labels_and_names_go_on_from_file_to_file(records):
    assert len(records) == 5 and records.keys.tolist() == records.ids.tolist() == [0, 1, 2, 3, 4]
    headers = [unpack(records[row])[0] for row in (0, 1, 2, 4)]
    assert [header.id for header in headers] == [0, 1, 2, 4]
    assert [np.atleast_1d(header.label).tolist() for header in headers] == [[1], [2, 5], [3], [4]]
    samples = records.samples
    assert [samples.name_of(row) for row in range(5)] == ["a.txt", "", "b.txt", "c.txt", "d.txt"]
    assert [samples.labels_of(row).tolist() for row in range(5)] == [[1], [2, 5], [3], [0], [4]]
    assert samples.classes == {0: "class 0", 1: "class 1"}
    assert samples.faults == {3: "it is lost"}


def test_contents_are_those_of_the_files(records):
    assert [bytes(records.content(row)) for row in (0, 1, 2, 4)] == [b"one", b"", b"three", b"five"]
    assert [unpack(record)[1] for record in records.read_many([4, 0])] == [b"five", b"one"]
    assert unpack(records.read_at(2)[0])[1] == b"three" and records.read_at(4)[1] == 5
    with pytest.raises(KeyNotFoundError):
        records.by_key(5)


def test_a_fault_names_the_file_and_the_number_there(records):
    with pytest.raises(RecordIOError, match=r"1\.(spans|packed).*record 1: it is lost") as raised:
        records[3]
    assert raised.value.record == 1


def test_sizes_are_known_where_contents_are_spans(records):
    sizes, faults = records.content_sizes()
    assert faults == {3: "it is lost"}
    known = [3, 0, 5, 4] if records.container.rows is None else [-1] * 4
    assert sizes[[0, 1, 2, 4]].tolist() == known


def test_names_of_classes_that_contradict_each_other_are_refused(tmp_path):
    paths = [
        write_container(tmp_path / f"{name}.spans", FIRST, {1: name}) for name in ("cat", "dog")
    ]
    files = [StoredFile(str(path)) for path in paths]
    with pytest.raises(RecordIOError, match=r"dog\.spans.*class 1 is 'dog' here and 'cat' in"):
        JoinedRecords(open_contained(files, container_of(files[0])), "both")
