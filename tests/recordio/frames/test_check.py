"""Damage is listed, and what is whole is saved."""

import os
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordio import IndexFileError, RecordReader, RecordWriter, build_index, repair, verify
from recordio.frames.encoder import MAGIC, encode
from recordio.frames.frame import scan_offsets

RECORDS = [b"zero", b"one" * 7, MAGIC * 3, b"three" + MAGIC, b"four", b""]


def head(flag, length):
    return MAGIC + struct.pack("<I", flag << 29 | length)


def check(tmp_path, data, index=None):
    """Verify and repair, and compare what both say; returns the report and the saved payloads."""
    path = tmp_path / "some.rec"
    path.write_bytes(data)
    report = verify(path, index)
    repaired = repair(path, tmp_path / "out.rec")
    assert (report.records, report.lost_bytes) == (repaired.records, repaired.lost_bytes)
    assert [p for p in report.problems if not p.kind.startswith(("index", "not"))] == list(
        repaired.problems
    )
    assert path.read_bytes() == data
    saved = RecordReader(tmp_path / "out.rec", tmp_path / "out.idx")
    assert len(saved) == report.records
    assert saved.keys.tolist() == list(range(len(saved)))
    assert os.path.getsize(tmp_path / "out.rec") == len(data) - report.lost_bytes
    assert verify(tmp_path / "out.rec", tmp_path / "out.idx").ok
    return report, [bytes(record) for record in saved]


def test_a_whole_file(golden):
    report = verify(golden / "frames.rec", golden / "frames.idx")
    assert report.ok
    assert (report.records, report.index_lines, report.lost_bytes) == (30, 30, 0)
    assert report.size == os.path.getsize(golden / "frames.rec")
    assert report.multipart > 0
    payload_bytes = sum(len(r) for r in RecordReader(golden / "frames.rec"))
    assert report.payload_bytes == payload_bytes
    assert str(report).endswith("no problems; contents not verified")


def test_an_empty_file(tmp_path):
    report, saved = check(tmp_path, b"")
    assert report.ok
    assert saved == []


frames = [encode(payload) for payload in RECORDS]
WHOLE = b"".join(frames)


@pytest.mark.parametrize(
    ("data", "kinds", "saved", "places"),
    [
        (b"garbage!" + WHOLE, ["bad_magic"], RECORDS, [(0, 0, 8)]),
        (WHOLE + bytes(8), ["zeros"], RECORDS, [(len(WHOLE), 6, 8)]),
        (WHOLE + b"\0", ["zeros"], RECORDS, [(len(WHOLE), 6, 1)]),
        (WHOLE + frames[1][:-4], ["truncated_payload"], RECORDS, [(len(WHOLE), 6, 28)]),
        (WHOLE + frames[1][:-1], ["truncated_pad"], RECORDS, [(len(WHOLE), 6, 31)]),
        (WHOLE + MAGIC, ["truncated_head"], RECORDS, [(len(WHOLE), 6, 4)]),
        (WHOLE + frames[2][:8], ["missing_part"], RECORDS, [(len(WHOLE), 6, 8)]),
        (frames[2][:16] + WHOLE, ["unfinished"], RECORDS, [(0, 0, 16)]),
        (frames[2][8:] + WHOLE, ["orphan_part"], RECORDS, [(0, 0, 24)]),
        (head(7, 4) + b"abcd" + WHOLE, ["bad_flag"], RECORDS, [(0, 0, 12)]),
        # Too long: it swallows the next record, whose head gives it away.
        (head(0, 16) + b"zero" + WHOLE[12:], ["swallowed_head"], RECORDS[1:], [(0, 0, 12)]),
        (head(0, 2**28) + b"zero" + WHOLE[12:], ["wrong_length"], RECORDS[1:], [(0, 0, 12)]),
        # Too short: what is left over stands between the records.
        (head(0, 4) + frames[1][8:] + WHOLE, ["bad_magic"], [b"oneo", *RECORDS], [(12, 1, 20)]),
        (
            b"junk" + frames[0] + bytes(12) + frames[4] + b"JUNK" * 5 + frames[5] + b"x",
            ["bad_magic", "zeros", "bad_magic", "bad_magic"],
            [b"zero", b"four", b""],
            [(0, 0, 4), (16, 2, 12), (40, 4, 20), (68, 6, 1)],
        ),
        (b"no record\0at all", ["bad_magic"], [], [(0, 0, 16)]),
        (head(0, 100) * 3, ["truncated_payload"], [], [(0, 0, 24)]),
    ],
)
def test_damage_is_listed_and_the_rest_is_saved(tmp_path, data, kinds, saved, places):
    report, payloads = check(tmp_path, data)
    assert [problem.kind for problem in report.problems] == kinds
    assert [(p.offset, p.record, p.length) for p in report.problems] == places
    assert payloads == saved
    assert not report.ok
    for problem in report.problems:
        assert f"offset {problem.offset}, record {problem.record}: " in str(report)
        assert str(problem) in str(report)


def test_a_length_that_is_too_small_is_suspected(tmp_path):
    report, _ = check(tmp_path, head(0, 4) + frames[1][8:] + WHOLE)
    assert "record before is too small" in report.problems[0].reason


def unescaped(payload):
    """A record as SageMaker's writer makes it: in one part, whatever is in it."""
    return head(0, len(payload)) + payload + bytes(-len(payload) % 4)


SAGEMAKER = [b"abcd" + MAGIC + b"efg", b"plain", MAGIC, MAGIC + b"\4\0\0\0" * 5, encode(b"ab") * 2]


def test_records_with_magic_words_that_were_not_escaped_are_whole(tmp_path):
    data = b"".join(map(unescaped, SAGEMAKER))
    report, saved = check(tmp_path, data)
    assert report.ok and report.lost_bytes == 0
    assert saved == SAGEMAKER
    assert (report.unescaped, report.first_unescaped) == (4, 0)
    assert "4 whole records hold a magic word that is not escaped, the first at offset 0" in str(
        report
    )
    path = tmp_path / "some.rec"
    assert [bytes(record) for record in RecordReader(path)] == SAGEMAKER
    assert build_index(path, tmp_path / "some.idx") == len(SAGEMAKER)
    assert verify(path, tmp_path / "some.idx").ok
    assert verify(path, tmp_path / "some.idx").records == len(SAGEMAKER)


def test_records_before_a_damaged_head_are_kept_with_their_magic_words(tmp_path):
    data = unescaped(b"abcd" + MAGIC + b"efg") + head(0, 400) + b"cut"
    report, saved = check(tmp_path, data)
    assert [problem.kind for problem in report.problems] == ["truncated_payload"]
    assert saved == [b"abcd" + MAGIC + b"efg"]


def test_escaped_magic_words_are_nothing_to_tell(tmp_path, golden):
    report = verify(golden / "frames.rec")
    assert report.multipart and not report.unescaped and not report.note
    report, saved = check(tmp_path, WHOLE + unescaped(SAGEMAKER[0]))
    assert saved == [*RECORDS, SAGEMAKER[0]]
    assert (report.unescaped, report.first_unescaped) == (1, len(WHOLE))


@given(st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE)), st.binary(max_size=20))
def test_any_stretch_replaced_by_anything(tmp_path_factory, first, second, junk):
    first, second = sorted((first, second))
    check(tmp_path_factory.mktemp("check"), WHOLE[:first] + junk + WHOLE[second:])


def test_records_outside_the_damage_are_never_lost(tmp_path):
    # Zeros cannot be mistaken for heads, so exactly the records they touch are lost.
    offsets = [*scan_offsets(WHOLE).tolist(), len(WHOLE)]
    for place in range(0, len(WHOLE), 4):
        data = bytearray(WHOLE)
        data[place : place + 4] = bytes(4)
        number = max(n for n, offset in enumerate(offsets) if offset <= place)
        _, saved = check(tmp_path, bytes(data))
        for other, payload in enumerate(RECORDS):
            if other != number:
                assert payload in saved


def test_many_records_and_many_false_heads_take_linear_time(tmp_path):
    # Each false head claims half of the file; looking through all of it each time would never end.
    count = 300_000
    data = b"".join([head(0, 4 * count)] * count)
    report, saved = check(tmp_path, data)
    assert len(saved) < 3
    assert report.lost_bytes > 0
    report, saved = check(tmp_path, encode(b"12") * 20_000 + b"junk" + encode(b"34") * 20_000)
    assert saved == [b"12"] * 20_000 + [b"34"] * 20_000
    assert len(report.problems) == 1


@pytest.mark.parametrize(
    ("index", "kinds"),
    [
        ("0\t0\n1\t12\n2\t20\n", []),
        ("2\t20\n0\t0\n1\t12\n", []),
        ("0\t0\n0\t12\n0\t20\n", []),
        ("0\t0\n1\t12\n", ["not_listed"]),
        ("", ["not_listed"]),
        ("0\t0\n1\t12\n2\t20\n3\t4\n", ["index_offset"]),
        ("0\t0\n1\t12\n2\t20\n3\t12\n", ["listed_twice"]),
        ("0\t0\n1\t12\n2\t400\n", ["index_offset", "not_listed"]),
        ("0\t0\n1 12\n", ["index_text"]),
    ],
)
def test_an_index_is_compared(tmp_path, index, kinds):
    (tmp_path / "a.rec").write_bytes(encode(b"a") + encode(b"") + encode(b"c"))
    (tmp_path / "a.idx").write_text(index)
    report = verify(tmp_path / "a.rec", tmp_path / "a.idx")
    assert [problem.kind for problem in report.problems] == kinds
    assert report.index_path == str(tmp_path / "a.idx")
    if "index_text" not in kinds:
        assert report.index_lines == index.count("\n")
    if kinds:
        assert str(tmp_path / "a.idx") in str(report)


def test_repair_keeps_keys_and_makes_new_ones(tmp_path):
    path, index = tmp_path / "a.rec", tmp_path / "a.idx"
    path.write_bytes(b"junk" + encode(b"one") + encode(b"two") + encode(b"not listed"))
    index.write_text("70\t16\n5\t4\n9\t400\n")
    report = repair(path, tmp_path / "b.rec", index, tmp_path / "keys")
    assert report.lost_bytes == 4
    reader = RecordReader(tmp_path / "b.rec", tmp_path / "keys")
    assert {key: bytes(reader.by_key(key)) for key in reader.keys} == {
        5: b"one",
        70: b"two",
        71: b"not listed",
    }
    assert sorted(os.listdir(tmp_path)) == ["a.idx", "a.rec", "b.rec", "keys"]


@given(st.permutations(range(6)), st.sets(st.integers(0, 5)))
def test_carried_keys(tmp_path_factory, keys, listed):
    folder = tmp_path_factory.mktemp("carry")
    (folder / "a.rec").write_bytes(WHOLE)
    offsets = scan_offsets(WHOLE)
    lines = [f"{keys[n] + 10}\t{offsets[n]}\n" for n in sorted(listed, key=keys.__getitem__)]
    (folder / "a.idx").write_text("".join(lines))
    repair(folder / "a.rec", folder / "b.rec", folder / "a.idx")
    reader = RecordReader(folder / "b.rec", folder / "b.idx")
    assert [bytes(record) for record in reader] == RECORDS
    assert len(np.unique(reader.keys)) == 6
    for number in listed:
        assert reader.keys[number] == keys[number] + 10


def test_repair_refuses_to_overwrite_its_input(tmp_path):
    path, index = tmp_path / "a.rec", tmp_path / "a.idx"
    path.write_bytes(b"junk" + encode(b"one"))
    index.write_text("0\t4\n")
    for arguments in (
        (path, path),
        (path, tmp_path / "b.rec", index, index),
        (path, tmp_path / "b.rec", None, path),
        (path, index, index),
    ):
        with pytest.raises(ValueError, match="overwritten"):
            repair(*arguments)
    (tmp_path / "bad.idx").write_text("no index\n")
    with pytest.raises(IndexFileError):
        repair(path, tmp_path / "b.rec", tmp_path / "bad.idx")
    assert sorted(os.listdir(tmp_path)) == ["a.idx", "a.rec", "bad.idx"]
    for missing in (verify, lambda path: repair(path, tmp_path / "b.rec")):
        with pytest.raises(FileNotFoundError):
            missing(tmp_path / "none.rec")
    assert not (tmp_path / "b.rec").exists()


def test_keys_behind_the_largest_that_there_can_be(write_records, tmp_path):
    path, index = write_records([b"a", b"b"], [2**63 - 1, 0])
    repair(path, tmp_path / "full.rec", index)
    assert RecordReader(tmp_path / "full.rec", tmp_path / "full.idx").keys.tolist() == [
        2**63 - 1,
        0,
    ]
    index.write_text(f"{2**63 - 1}\t0\n")
    with pytest.raises(IndexFileError, match="no keys behind 9223372036854775807"):
        repair(path, tmp_path / "part.rec", index)
    assert not (tmp_path / "part.rec").exists()


def test_verify_tells_how_far_it_is_and_can_be_ended(tmp_path):
    path = tmp_path / "a.rec"
    with RecordWriter(path) as writer:
        for number in range(20_000):
            writer.write(b"%d" % number)
    told = []
    report = verify(path, progress=lambda done, total: told.append((done, total)))
    assert report.ok and len(told) > 1
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert told[-1] == (report.size, report.size)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify(path, progress=stop)
