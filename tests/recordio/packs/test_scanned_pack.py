"""Packs that are scanned: tables of their records, and indices that do not fit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators.testing import write_rows
from recordio import RecordIOError, build_index, pack, unpack
from recordio.errors import CorruptRecordError, IndexFileError, RecordHeaderError
from recordio.packs.scanned_pack import ScannedPack

MAGIC_ID = 0xCED7230A


def test_tables_say_what_the_records_say(packs):
    path = packs.plain("a", [3, [1, 2, 5], 7.5, 0, 2, [4, 5]], first_id=MAGIC_ID - 2)
    with ScannedPack(path) as source:
        rows = [unpack(source.record(number)) for number in range(len(source))]
        assert source.ids.tolist() == [header.id for header, _ in rows]
        assert source.flags.tolist() == [header.flag for header, _ in rows]
        assert source.sizes.tolist() == [len(source.record(number)) for number in range(6)]
        assert source.labels.values.tolist() == [3, 1, 7.5, 0, 2, 4]
        assert not source.whole.all() and source.headed.all() and not source.is_detection
        assert source.labels.first_of(np.array([4, 1])).tolist() == [2, 1]
        assert source.distinct().tolist() == [0, 1, 2, 3, 4, 7.5]


@pytest.mark.parametrize("name", [str, lambda path: str(path)[:-4]])
def test_a_name_without_suffix_and_one_without_index(packs, name):
    path = packs.plain("a", [1, 2], index=False)
    with ScannedPack(name(path)) as source:
        assert source.index_path is None and source.keys.tolist() == [0, 1]


@pytest.mark.parametrize("chosen", [[1, 3], [0, 1], [1, 2, 3], []])
def test_the_index_has_to_list_every_record(packs, chosen):
    path = packs.plain("a", [0, 1, 2, 3])
    lines = path.with_suffix(".idx").read_text().splitlines(True)
    path.with_suffix(".idx").write_text("".join(lines[line] for line in chosen))
    with pytest.raises(IndexFileError, match=rf"not list {4 - len(chosen)} .*recordio index .*a"):
        ScannedPack(path)


def test_the_index_has_to_list_a_record_once(packs):
    path = packs.plain("a", [0, 1])
    with open(path.with_suffix(".idx"), "a") as file:
        file.write("2\t0\n")
    with pytest.raises(IndexFileError, match="lists 1 records more than once"):
        ScannedPack(path)
    with ScannedPack(path, skip_errors=True) as source:
        assert source.labels.values.tolist() == [0, 0, 1]
        assert [problem.kind for problem in source.problems] == ["listed_twice"]


def test_the_index_says_which_records_exist(packs):
    path = packs.plain("a", [0, 1, 2, 3])
    lines = path.with_suffix(".idx").read_text().splitlines()
    path.with_suffix(".idx").write_text("\n".join([lines[3].replace("3", "9", 1), lines[1]]))
    with ScannedPack(path, skip_errors=True) as source:
        assert source.keys.tolist() == [1, 9] and source.labels.values.tolist() == [1, 3]
        assert [problem.kind for problem in source.problems] == ["not_listed"]


def test_objects_of_detection_records(packs):
    path = packs.detection("a", [[3, 1], [], [2, 2, 9]])
    with ScannedPack(path) as source:
        assert source.is_detection and source.labels.values.tolist() == [3, 1, 2, 2, 9]
        assert source.labels.starts.tolist() == [0, 2, 2, 5]
    path = packs.plain("b", [[4, 5, 7, 7, 3, 0, 0, 1, 1], [2, 5]])
    with ScannedPack(path) as source:
        assert source.is_detection
    path = packs.plain("c", [[4, 5, 7, 7, 3, 0, 0, 1, 1], [1, 1]])
    with ScannedPack(path) as source:
        assert not source.is_detection and source.labels.values.tolist() == [4, 1]


def test_identities_are_no_records(packs):
    for index in (True, False):
        with ScannedPack(packs.faces("a", [2, 0, 3], index)) as source:
            assert source.identities == 3 and source.keys.tolist() == [1, 2, 3, 4, 5]
            assert source.labels.values.tolist() == [0, 0, 2, 2, 2]


def test_records_without_header(packs):
    rows = [b"", b"text", b"a line of text that is longer than 24 bytes", pack((0, 1, 2, 0), b"")]
    path = packs.raw("a", rows)
    with ScannedPack(path) as source:
        assert source.headed.tolist() == [False, False, False, True]
        with pytest.raises(RecordHeaderError, match="record 0"):
            source.need_labels()
    with ScannedPack(path, skip_errors=True) as source:
        source.need_labels()
        assert len(source) == 1 and len(source.problems) == 3
        assert source.labels.values.tolist() == [1]


def test_headers_with_a_second_id_before_unknown_content(packs, caplog):
    rows = [pack((0, number, 100 + number, 1 << 40), b"unknown content") for number in range(4)]
    with ScannedPack(packs.raw("a", rows)) as source:
        assert source.headed.all() and source.ids.tolist() == [100, 101, 102, 103]
        assert source.labels.values.tolist() == [0, 1, 2, 3]
    assert not caplog.records


def test_data_without_header_may_begin_like_one(packs, caplog):
    rows = [np.arange(start, start + 9, dtype="<i8").tobytes() for start in (0, 1, 0, 12, 70, 0)]
    path = packs.raw("a", rows)
    with ScannedPack(path) as source:
        assert not source.headed.any() and not source.ids.any()
    assert f"{path}, offset 0, record 0: it begins like an image header" in caplog.text
    assert "and so do 2 more" in caplog.text
    # The id is the key: nothing but a header has it there.
    rows.append(pack((0, 5, 6, 7), b"unknown content"))
    with ScannedPack(packs.raw("b", rows)) as source:
        assert source.headed.tolist() == [False] * 6 + [True]


@pytest.mark.parametrize("index", [False, True])
def test_damage_raises_or_is_left_out(packs, index):
    path = packs.plain("a", range(10), index)
    with ScannedPack(path) as source:
        at = int(source.offsets[4])
    data = bytearray(path.read_bytes())
    data[at : at + 4] = b"oops"
    path.write_bytes(data)
    with pytest.raises(CorruptRecordError) as caught:
        ScannedPack(path)
    assert (caught.value.path, caught.value.offset, caught.value.record) == (str(path), at, 4)
    with ScannedPack(path, skip_errors=True) as source:
        assert source.labels.values.tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 9]
        assert [problem.offset for problem in source.problems] == [at]


def test_the_index_of_another_file(packs):
    path = packs.plain("a", range(4))
    index = path.with_suffix(".idx")
    index.write_text(index.read_text() + "4\t4\n")
    with pytest.raises(IndexFileError, match="line 5.*offset 4"):
        ScannedPack(path)
    with ScannedPack(path, skip_errors=True) as source:
        assert len(source) == 4 and source.problems[0].key == 4


def test_a_damaged_face_pack_still_is_one(packs):
    path = packs.faces("a", [2, 3])
    path.write_bytes(path.read_bytes()[:-8])
    with ScannedPack(path, skip_errors=True) as source:
        assert source.identities == 2 and source.keys.tolist() == [1, 2, 3, 4, 5]
        assert len(source.problems) == 1


def test_a_missing_file(tmp_path):
    with pytest.raises(RecordIOError, match="no such file"):
        ScannedPack(tmp_path / "none")


@given(
    rows=st.lists(
        st.tuples(
            st.one_of(
                st.integers(0, 9), st.lists(st.floats(width=32, allow_nan=False), max_size=3)
            ),
            st.sampled_from([0, 5, MAGIC_ID, MAGIC_ID << 32, 2**64 - 1]),
            st.binary(max_size=9),
        )
    )
)
def test_any_records(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("packs") / "a.rec"
    rows = [(number, label, content) for label, number, content in rows]
    write_rows(path, rows, index=False)
    assert build_index(path, path.with_suffix(".idx")) == len(rows)
    with ScannedPack(path) as source:
        assert source.ids.tolist() == [number for number, _, _ in rows]
        assert (
            source.ends.tolist() == [*source.offsets[1:].tolist(), path.stat().st_size][: len(rows)]
        )
        for number, (_, _, content) in enumerate(rows):
            assert bytes(source.record(number)).endswith(content)
