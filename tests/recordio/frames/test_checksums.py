"""Checksums beside record files: made, compared, and trusted by check, repair and reader."""

import os
import pickle
import struct

import google_crc32c
import numpy as np
import pytest

import recordio
from recordio import (
    ChecksumError,
    ChecksumFileError,
    CorruptRecordError,
    RecordReader,
    RecordWriter,
    TruncatedRecordError,
    repair,
    verify,
    write_checksums,
)
from recordio.frames.checksums import format_checksums, read_checksums
from recordio.frames.encoder import MAGIC, encode

RECORDS = [b"zero", b"one" * 7, MAGIC * 3, b"three" + MAGIC, b"four", b""]
FRAMES = [encode(record) for record in RECORDS]
OFFSETS = np.cumsum([0, *map(len, FRAMES)])[:-1].tolist()
KEYS = [10, 11, 7, 13, 14, 15]


@pytest.fixture
def pack(tmp_path):
    """Record file, index and checksums of RECORDS."""
    path = tmp_path / "a.rec"
    with RecordWriter(path, tmp_path / "a.idx", checksums=True) as writer:
        for key, record in zip(KEYS, RECORDS, strict=True):
            writer.write(record, key)
    return path


def beside(path, suffix=".crc"):
    return path.with_suffix(suffix)


def flip(path, place, bit=0x10):
    data = bytearray(path.read_bytes())
    data[place] ^= bit
    path.write_bytes(data)


def number_of(place):
    return max(number for number, offset in enumerate(OFFSETS) if offset <= place)


# -- the file -------------------------------------------------------------------------------------


def test_every_byte_of_the_format(pack):
    data = beside(pack).read_bytes()
    assert data[:8] == b"\x89RECCRC\n"
    size = os.path.getsize(pack)
    assert struct.unpack("<IIQQI", data[8:36]) == (1, 16, len(RECORDS), size, 0)
    table = data[40:]
    assert struct.unpack("<I", data[36:40])[0] == google_crc32c.value(data[:36] + table)
    assert len(table) == 16 * len(RECORDS)
    for number, (offset, frame) in enumerate(zip(OFFSETS, FRAMES, strict=True)):
        entry = struct.unpack_from("<QII", table, 16 * number)
        assert entry == (offset, len(frame), google_crc32c.value(frame))


def test_writer_and_check_write_the_same(pack, tmp_path):
    before = beside(pack).read_bytes()
    beside(pack).unlink()
    report = write_checksums(pack, beside(pack, ".idx"))
    assert report.ok and report.records == len(RECORDS) and report.multipart == 1
    assert beside(pack).read_bytes() == before
    write_checksums(pack)  # replaces what holds
    assert sorted(os.listdir(tmp_path)) == ["a.crc", "a.idx", "a.rec"]


def test_an_empty_file_has_checksums_too(tmp_path):
    with RecordWriter(tmp_path / "a.rec", checksums=True):
        pass
    assert len(read_checksums(tmp_path / "a.crc")) == 0
    assert verify(tmp_path / "a.rec", checksums=tmp_path / "a.crc").ok
    assert list(RecordReader(tmp_path / "a.rec", verify=True)) == []


def test_a_large_record_is_checked_whole(tmp_path):
    payload = np.random.default_rng(1).bytes(5_000_001)
    with RecordWriter(tmp_path / "a.rec", checksums=True) as writer:
        for record in (b"before", payload, b"behind"):
            writer.write(record)
    entries = read_checksums(tmp_path / "a.crc").entries
    assert entries["crc"].tolist() == [
        google_crc32c.value(encode(record)) for record in (b"before", payload, b"behind")
    ]
    assert [bytes(r) for r in RecordReader(tmp_path / "a.rec", verify=True)][1] == payload


def test_every_changed_byte_of_the_checksums_is_noticed(pack):
    path, whole = beside(pack), beside(pack).read_bytes()
    for place in range(len(whole)):
        flip(path, place, 1 << place % 8)
        with pytest.raises(ChecksumFileError) as caught:
            verify(pack, checksums=path)
        assert caught.value.path == str(path) and "--write-checksums" in str(caught.value)
        path.write_bytes(whole)


def test_every_truncation_of_the_checksums_is_noticed(pack):
    path, whole = beside(pack), beside(pack).read_bytes()
    for data in [whole[:size] for size in range(len(whole))] + [whole + b"\0"]:
        path.write_bytes(data)
        for use in (lambda: read_checksums(path), lambda: RecordReader(pack, verify=True)):
            with pytest.raises(ChecksumFileError):
                use()


@pytest.mark.parametrize("change", ["gap", "overlap", "short", "behind", "huge"])
def test_a_table_that_is_no_table_is_refused_though_its_checksum_is_right(pack, change):
    checksums = read_checksums(beside(pack))
    entries, size = checksums.entries.copy(), checksums.size
    if change == "gap":
        entries["offset"][2:] += 4
    elif change == "overlap":
        entries["length"][1] += 4
    elif change == "short":
        entries["length"][1], entries["offset"][2], entries["length"][2] = 4, 16, 100
    elif change == "behind":
        size -= 4
    else:
        entries["offset"][3] = -(1 << 62)
    beside(pack).write_bytes(b"".join(format_checksums(entries, size)))
    with pytest.raises(ChecksumFileError, match="follow one another"):
        read_checksums(beside(pack))


def test_checksums_of_a_file_that_no_disk_holds_are_refused(pack):
    entries = read_checksums(beside(pack)).entries
    beside(pack).write_bytes(b"".join(format_checksums(entries, 2**63)))
    with pytest.raises(ChecksumFileError, match="no record file has 9223372036854775808 bytes"):
        read_checksums(beside(pack))


def test_checksums_of_another_file_are_refused(pack, tmp_path):
    other = tmp_path / "b.rec"
    with RecordWriter(other) as writer:
        for record in (b"something", b"else"):
            writer.write(record)
    beside(pack).rename(beside(other))
    size = os.path.getsize(pack)
    for use in (
        lambda: verify(other, checksums=beside(other)),
        lambda: repair(other, tmp_path / "c.rec", checksums=beside(other)),
        lambda: RecordReader(other, verify=True),
    ):
        with pytest.raises(ChecksumFileError, match=f"of {size} bytes, and .*b.rec has 32"):
            use()
    assert not (tmp_path / "c.rec").exists()


# -- writing --------------------------------------------------------------------------------------


def test_the_files_appear_together_or_not_at_all(tmp_path):
    with pytest.raises(RuntimeError):
        with RecordWriter(tmp_path / "a.rec", tmp_path / "a.idx", checksums=True) as writer:
            writer.write(b"abc")
            raise RuntimeError
    assert os.listdir(tmp_path) == []


def test_appending_continues_the_checksums(pack):
    with RecordWriter(pack, beside(pack, ".idx"), append=True, checksums=True) as writer:
        writer.write(b"more")
    assert verify(pack, beside(pack, ".idx"), beside(pack)).checksums == len(RECORDS) + 1
    beside(pack).unlink()
    with pytest.raises(ChecksumFileError, match="no such file"):
        RecordWriter(pack, beside(pack, ".idx"), append=True, checksums=True)


def test_checksums_do_not_stay_beside_a_file_that_they_do_not_belong_to(pack, tmp_path):
    with RecordWriter(pack, beside(pack, ".idx"), append=True) as writer:
        writer.write(b"more")
    assert not beside(pack).exists()
    beside(pack).write_bytes(b"notes of somebody else")
    with RecordWriter(pack) as writer:
        writer.write(b"new")
    assert beside(pack).read_bytes() == b"notes of somebody else"


def test_no_checksums_are_made_of_damage(pack, tmp_path):
    crc, data = beside(pack).read_bytes(), pack.read_bytes()
    flip(pack, OFFSETS[1] + 9)
    with pytest.raises(ChecksumError, match="is not replaced") as caught:
        write_checksums(pack)
    assert (caught.value.record, caught.value.offset) == (1, OFFSETS[1])
    assert beside(pack).read_bytes() == crc
    beside(pack).unlink()
    pack.write_bytes(data[:-4])
    with pytest.raises(CorruptRecordError, match="damaged file"):
        write_checksums(pack)
    pack.write_bytes(data)
    beside(pack, ".idx").write_text("0\t4\n")
    with pytest.raises(CorruptRecordError, match="list offsets"):
        write_checksums(pack, beside(pack, ".idx"))
    assert not beside(pack).exists()


# -- check and repair -----------------------------------------------------------------------------


def test_every_flipped_byte_is_found_named_and_left_out_by_repair(pack, tmp_path):
    whole, out = pack.read_bytes(), tmp_path / "out.rec"
    for place in range(len(whole)):
        flip(pack, place, 1 << place % 8)
        number = number_of(place)
        report = verify(pack, beside(pack, ".idx"), beside(pack))
        (problem,) = report.problems
        assert (problem.kind, problem.record) == ("checksum", number)
        assert (problem.offset, problem.key) == (OFFSETS[number], KEYS[number])
        assert f"offset {OFFSETS[number]}, record {number}, key {KEYS[number]}: " in str(report)
        assert report.lost_bytes == problem.length == len(FRAMES[number])
        saved = repair(pack, out, beside(pack, ".idx"), None, beside(pack))
        assert saved.problems == report.problems and saved.records == len(RECORDS) - 1
        assert out.read_bytes() == b"".join(FRAMES[:number] + FRAMES[number + 1 :])
        with RecordReader(out, beside(out, ".idx"), verify=True) as reader:
            assert reader.keys.tolist() == KEYS[:number] + KEYS[number + 1 :]
            assert [bytes(r) for r in reader] == RECORDS[:number] + RECORDS[number + 1 :]
        assert verify(out, beside(out, ".idx"), beside(out)).ok
        pack.write_bytes(whole)


def test_a_truncated_file_keeps_what_holds(pack, tmp_path):
    whole = pack.read_bytes()
    for size in range(len(FRAMES[0]), len(whole)):
        pack.write_bytes(whole[:size])
        kept = sum(o + len(f) <= size for o, f in zip(OFFSETS, FRAMES, strict=True))
        report = verify(pack, beside(pack, ".idx"), beside(pack))
        assert [p.record for p in report.problems] == [*range(kept, len(RECORDS)), None]
        assert report.problems[-1].kind == "checksum_size"
        assert report.records == kept
        assert report.lost_bytes == size - sum(map(len, FRAMES[:kept]))
        repair(pack, tmp_path / "out.rec", checksums=beside(pack))
        assert (tmp_path / "out.rec").read_bytes() == b"".join(FRAMES[:kept])


def test_what_has_no_checksum_is_told_and_not_kept(pack, tmp_path):
    whole = pack.read_bytes()
    pack.write_bytes(whole + encode(b"behind"))
    (problem,) = repair(pack, tmp_path / "out.rec", checksums=beside(pack)).problems
    assert (problem.kind, problem.offset, problem.length) == ("checksum_size", len(whole), 16)
    assert "no checksums" in problem.reason
    assert (tmp_path / "out.rec").read_bytes() == whole


def test_bytes_put_in_between_lose_what_is_behind_them_and_are_not_guessed_at(pack, tmp_path):
    whole = pack.read_bytes()
    pack.write_bytes(whole[: OFFSETS[2]] + bytes(4) + whole[OFFSETS[2] :])
    assert repair(pack, tmp_path / "out.rec", checksums=beside(pack)).records == 2
    assert (tmp_path / "out.rec").read_bytes() == b"".join(FRAMES[:2])


def test_repair_does_not_write_over_the_checksums_that_it_reads(pack, tmp_path):
    with pytest.raises(ValueError, match="overwritten"):
        repair(pack, tmp_path / "a.more", out_index=tmp_path / "b.idx", checksums=beside(pack))


def test_many_records(tmp_path):
    count = 20_000
    with RecordWriter(tmp_path / "a.rec", checksums=True) as writer:
        for number in range(count):
            writer.write(number.to_bytes(4, "little"))
    bad = [0, 4095, 4096, 4097, 12_000, count - 1]
    for number in bad:
        flip(tmp_path / "a.rec", 12 * number + 8)
    report = verify(tmp_path / "a.rec", checksums=tmp_path / "a.crc")
    assert [problem.record for problem in report.problems] == bad
    assert report.records == count - len(bad) and report.lost_bytes == 12 * len(bad)
    repaired = repair(tmp_path / "a.rec", tmp_path / "b.rec", checksums=tmp_path / "a.crc")
    assert repaired.records == report.records
    left = [int.from_bytes(r, "little") for r in RecordReader(tmp_path / "b.rec", verify=True)]
    assert left == sorted(set(range(count)) - set(bad))


# -- reader ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("indexed", [False, True])
def test_the_reader_raises_for_the_damaged_record_alone(pack, indexed):
    whole = pack.read_bytes()
    for place in range(len(whole)):
        flip(pack, place, 1 << place % 8)
        number = number_of(place)
        index = beside(pack, ".idx") if indexed else None
        with RecordReader(pack, index, verify=True) as reader:
            assert len(reader) == len(RECORDS)
            for other, record in enumerate(RECORDS):
                if other != number:
                    assert bytes(reader[other]) == record
                    assert bytes(reader.read_many([other])[0]) == record
                    assert bytes(reader.read_at(OFFSETS[other])[0]) == record
            takes = [
                lambda: reader[number],
                lambda: reader.by_key(KEYS[number] if indexed else number),
                lambda: reader.read_many([0, number - len(RECORDS)]),
                lambda: reader.read_at(OFFSETS[number], number),
                lambda: list(reader),
            ]
            for take in takes:
                with pytest.raises((CorruptRecordError, TruncatedRecordError)) as caught:
                    take()
                assert caught.value.path == str(pack) and caught.value.record == number
            in_payload = place - OFFSETS[number] >= 8
            if in_payload and number in (0, 1, 4):
                assert isinstance(caught.value, ChecksumError)
                assert caught.value.offset == OFFSETS[number]
        pack.write_bytes(whole)


def test_without_verify_nothing_is_compared(pack):
    flip(pack, OFFSETS[1] + 9)
    assert len(list(RecordReader(pack))) == len(RECORDS)
    assert RecordReader(pack).checksums is None


def test_a_reader_that_verifies_is_pickled_as_one(pack):
    reader = pickle.loads(pickle.dumps(RecordReader(pack, verify=True)))
    assert reader.checksums is not None
    assert pickle.loads(pickle.dumps(RecordReader(pack))).checksums is None


def test_an_index_of_another_file_meets_no_checksum(pack):
    # Offset 52 is inside record 2: the second of its parts, made to look like a first one.
    data = bytearray(pack.read_bytes())
    second = OFFSETS[2] + 8
    data[second : second + 8] = MAGIC + struct.pack("<I", 0)
    pack.write_bytes(data)
    beside(pack, ".idx").write_text(f"0\t{second}\n")
    with RecordReader(pack, beside(pack, ".idx"), verify=True, selection=True) as reader:
        with pytest.raises(ChecksumError, match="knows no record"):
            reader[0]


def test_public_names():
    for name in ("ChecksumError", "ChecksumFileError", "write_checksums"):
        assert name in recordio.__all__
