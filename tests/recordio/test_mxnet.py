"""Scripts written for `mxnet.recordio` work, and its accidents do not happen."""

import gc
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import recordio
from recordio import (
    CorruptRecordError,
    IndexFileError,
    KeyNotFoundError,
    MXIndexedRecordIO,
    MXRecordIO,
    RecordIOError,
    RecordTooLargeError,
    TruncatedRecordError,
)
from recordio.frames.encoder import MAGIC, encode

PAYLOADS = [b"zero", b"", MAGIC + b"two", b"three\0"]


@pytest.fixture
def path(write_records):
    return str(write_records(PAYLOADS))


@pytest.fixture
def pair(write_records):
    path, index = write_records(PAYLOADS, [0, 7, 3, 7])
    return str(index), str(path)


def test_the_examples_of_the_mxnet_documentation(tmp_path):
    record = recordio.MXRecordIO(str(tmp_path / "tmp.rec"), "w")
    for i in range(5):
        record.write(b"record_%d" % i)
    record.close()
    record = recordio.MXRecordIO(str(tmp_path / "tmp.rec"), "r")
    assert [record.read() for _ in range(6)] == [b"record_%d" % i for i in range(5)] + [None]
    record.close()

    record = recordio.MXIndexedRecordIO(str(tmp_path / "a.idx"), str(tmp_path / "a.rec"), "w")
    for i in range(5):
        record.write_idx(i, b"record_%d" % i)
    record.close()
    record = recordio.MXIndexedRecordIO(str(tmp_path / "a.idx"), str(tmp_path / "a.rec"), "r")
    assert record.read_idx(3) == b"record_3"
    assert record.keys == [0, 1, 2, 3, 4]


def test_golden_files_both_ways(golden, golden_payloads, tmp_path):
    record = MXIndexedRecordIO(golden / "frames.idx", golden / "frames.rec", "r")
    assert [record.read_idx(key) for key in record.keys] == golden_payloads
    out = MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "w")
    for key, payload in enumerate(golden_payloads):
        out.write_idx(key, payload)
    out.close()
    assert (tmp_path / "a.rec").read_bytes() == (golden / "frames.rec").read_bytes()
    assert (tmp_path / "a.idx").read_bytes() == (golden / "frames.idx").read_bytes()


@pytest.mark.parametrize("flag", ["a", "rb", "", None])
def test_flags(path, flag):
    with pytest.raises(ValueError, match="Invalid flag"):
        MXRecordIO(path, flag)


@pytest.mark.parametrize(
    ("uri", "flag"), [("s3://bucket/a.rec", "w"), ("stdin", "r"), ("stdout", "w")]
)
def test_only_files(uri, flag, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecordIOError, match="files can be"):
        MXRecordIO(uri, flag)
    assert os.listdir(tmp_path) == []


def test_missing_files(tmp_path, path):
    with pytest.raises(FileNotFoundError):
        MXRecordIO(str(tmp_path / "none.rec"), "r")
    with pytest.raises(FileNotFoundError):
        MXIndexedRecordIO(str(tmp_path / "none.idx"), path, "r")
    with pytest.raises(FileNotFoundError):
        MXRecordIO(str(tmp_path / "none" / "a.rec"), "w")


def test_reading(path):
    record = MXRecordIO(path, "r")
    assert record.is_open
    assert not record.writable
    assert (record.uri, record.flag) == (path, "r")
    assert record.tell() == 0
    assert record.read() == PAYLOADS[0]
    assert type(record.read()) is bytes
    assert record.tell() == 20
    assert list(record) == PAYLOADS[2:]
    assert record.read() is None
    assert record.read() is None
    record.reset()
    assert list(record) == PAYLOADS
    record.close()
    record.close()
    assert not record.is_open
    for use in (record.read, record.tell, lambda: iter(record)):
        with pytest.raises(ValueError, match="closed"):
            use()
    record.reset()
    assert record.read() == PAYLOADS[0]


def test_reading_and_writing_are_not_mixed(path, tmp_path):
    with pytest.raises(AssertionError):
        MXRecordIO(path, "r").write(b"a")
    with MXRecordIO(str(tmp_path / "a.rec"), "w") as record, pytest.raises(AssertionError):
        record.read()


def test_an_empty_file(tmp_path):
    with MXRecordIO(str(tmp_path / "a.rec"), "w"):
        pass
    assert MXRecordIO(str(tmp_path / "a.rec"), "r").read() is None


def test_a_truncated_tail_is_an_error_each_time(path):
    Path(path).write_bytes(Path(path).read_bytes()[:-1])
    record = MXRecordIO(path, "r")
    for payload in PAYLOADS[:3]:
        assert record.read() == payload
    for _ in range(2):
        with pytest.raises(TruncatedRecordError) as caught:
            record.read()
        assert (caught.value.path, caught.value.record) == (path, 3)


def test_writing(tmp_path):
    path = tmp_path / "a.rec"
    record = MXRecordIO(str(path), "w")
    assert record.writable
    assert record.is_open
    assert record.tell() == 0
    assert record.write(b"one") is None
    record.write(bytearray(b"two"))
    assert record.tell() == 24
    with pytest.raises(TypeError):
        record.write("text")
    with pytest.raises(RecordTooLargeError):
        record.write(np.zeros(2**29, np.uint8))
    assert not path.exists()
    record.close()
    record.close()
    assert path.read_bytes() == encode(b"one") + encode(b"two")
    for use in (lambda: record.write(b""), record.tell):
        with pytest.raises(ValueError, match="closed"):
            use()


def test_resetting_a_writer_starts_an_empty_file(tmp_path):
    path = tmp_path / "a.rec"
    record = MXRecordIO(str(path), "w")
    record.write(b"given up")
    record.reset()
    record.write(b"kept")
    record.close()
    assert path.read_bytes() == encode(b"kept")
    record.reset()
    record.close()
    assert path.read_bytes() == b""


def test_a_dropped_writer_publishes(tmp_path):
    record = MXIndexedRecordIO(str(tmp_path / "a.idx"), str(tmp_path / "a.rec"), "w")
    record.write_idx(5, b"five")
    del record
    gc.collect()
    assert (tmp_path / "a.idx").read_bytes() == b"5\t0\n"
    assert (tmp_path / "a.rec").read_bytes() == encode(b"five")


def test_a_dropped_writer_in_a_cycle_publishes(tmp_path):
    record = MXRecordIO(str(tmp_path / "a.rec"), "w")
    record.write(b"five")
    record.cycle = record
    del record
    gc.collect()
    assert (tmp_path / "a.rec").read_bytes() == encode(b"five")


@pytest.mark.parametrize("ending", ["", "raise KeyError", "import sys; sys.exit(2)"])
def test_the_end_of_the_program_publishes(tmp_path, ending):
    program = (
        "import sys\nfrom recordio import MXRecordIO\n"
        f"record = MXRecordIO(sys.argv[1], 'w')\nrecord.write(b'five')\n{ending}\n"
    )
    subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(tmp_path / "a.rec")],
        stderr=subprocess.DEVNULL,
        check=False,
    )
    assert os.listdir(tmp_path) == ["a.rec"]
    assert (tmp_path / "a.rec").read_bytes() == encode(b"five")


def test_a_block_left_by_an_exception_publishes_nothing(path):
    before = Path(path).read_bytes()
    with pytest.raises(KeyError), MXRecordIO(path, "w") as record:
        record.write(b"new")
        raise KeyError
    assert not record.is_open
    assert Path(path).read_bytes() == before
    assert len(os.listdir(os.path.dirname(path))) == 1


def test_pickling_a_reader_leaves_it_open(path):
    record = MXRecordIO(path, "r")
    record.read()
    copy = pickle.loads(pickle.dumps(record))
    assert record.is_open
    assert copy.is_open
    assert copy.read() == PAYLOADS[0]
    assert record.read() == PAYLOADS[1]
    record.close()
    assert not pickle.loads(pickle.dumps(record)).is_open


def test_pickling_a_writer_truncates_nothing(tmp_path):
    path = tmp_path / "a.rec"
    record = MXRecordIO(str(path), "w")
    record.write(b"one")
    copy = pickle.loads(pickle.dumps(record))
    assert not copy.is_open
    record.close()
    with pytest.raises(ValueError, match="closed"):
        copy.write(b"two")
    copy.close()
    del copy
    assert path.read_bytes() == encode(b"one")


def test_pickling_by_key(pair):
    record = MXIndexedRecordIO(*pair, "r")
    copy = pickle.loads(pickle.dumps(record))
    assert copy.read_idx(3) == PAYLOADS[2]
    assert copy.keys == record.keys
    names = MXIndexedRecordIO(*pair, "r", key_type=str)
    assert pickle.loads(pickle.dumps(names)).read_idx("3") == PAYLOADS[2]


def test_reading_by_key(pair):
    record = MXIndexedRecordIO(*pair, "r")
    assert record.keys == [0, 7, 3, 7]
    assert record.idx == {0: 0, 7: 40, 3: 20}
    assert (record.idx_path, record.key_type) == (pair[0], int)
    assert record.read_idx(7) == PAYLOADS[3]  # the last of two
    assert record.read_idx(3) == PAYLOADS[2]
    assert record.read() == PAYLOADS[3]  # goes on behind
    for key in (3.0, np.int32(3), np.float64(3)):
        assert record.read_idx(key) == PAYLOADS[2]
    record.seek(7)
    assert record.tell() == record.idx[7]
    assert record.read() == PAYLOADS[3]


@pytest.mark.parametrize("key", [1, 3.5, "3", None, 2**70, float("inf"), float("nan")])
def test_unknown_keys(pair, key):
    record = MXIndexedRecordIO(*pair, "r")
    with pytest.raises(KeyError) as caught:
        record.read_idx(key)
    assert isinstance(caught.value, KeyNotFoundError)
    with pytest.raises(KeyNotFoundError):
        record.seek(key)


def test_reading_to_the_end_does_not_kill_the_reader(pair):
    record = MXIndexedRecordIO(*pair, "r")
    assert list(record) == PAYLOADS
    assert record.read() is None
    assert record.read_idx(3) == PAYLOADS[2]
    assert record.read() == PAYLOADS[3]
    assert record.read() is None


def test_a_closed_reader_opens_again_by_key(pair):
    for key_type in (int, str):
        record = MXIndexedRecordIO(*pair, "r", key_type)
        record.close()
        with pytest.raises(ValueError, match="closed"):
            record.read()
        assert record.read_idx(key_type(3)) == PAYLOADS[2]
        assert record.is_open


def test_a_closed_writer_does_not_open_again(tmp_path):
    record = MXIndexedRecordIO(str(tmp_path / "a.idx"), str(tmp_path / "a.rec"), "w")
    record.write_idx(1, b"one")
    record.close()
    with pytest.raises(AssertionError):
        record.read_idx(1)
    with pytest.raises(ValueError, match="closed"):
        record.write_idx(2, b"two")
    assert (tmp_path / "a.idx").read_bytes() == b"1\t0\n"


def test_writing_by_key(tmp_path):
    index, path = tmp_path / "a.idx", tmp_path / "a.rec"
    record = MXIndexedRecordIO(str(index), str(path), "w")
    for key, payload in zip((0, 7.9, 3, 7), PAYLOADS, strict=True):
        record.write_idx(key, payload)
    record.write(b"not listed")
    assert record.keys == [0, 7, 3, 7]
    assert record.idx == {0: 0, 7: 40, 3: 20}
    assert record.tell() == 40 + 16 + 20
    record.close()
    assert index.read_text() == "0\t0\n7\t12\n3\t20\n7\t40\n"


@pytest.mark.parametrize(
    ("key_type", "keys"), [(str, ["a", "b c", "1", "ü"]), (float, [0.5, -1.0, 1e300, 7.0])]
)
def test_other_types_of_keys(tmp_path, key_type, keys):
    files = str(tmp_path / "a.idx"), str(tmp_path / "a.rec")
    with MXIndexedRecordIO(*files, "w", key_type=key_type) as record:
        for key, payload in zip(keys, PAYLOADS, strict=True):
            record.write_idx(key, payload)
    record = MXIndexedRecordIO(*files, "r", key_type=key_type)
    assert record.keys == keys
    assert list(record.idx) == keys
    assert [record.read_idx(key) for key in reversed(keys)] == PAYLOADS[::-1]
    with pytest.raises(KeyNotFoundError):
        record.read_idx(key_type("33"))


@pytest.mark.parametrize("key", ["a\tb", "a\nb", "", " a", "a\r"])
def test_text_keys_that_a_line_cannot_hold(tmp_path, key):
    files = str(tmp_path / "a.idx"), str(tmp_path / "a.rec")
    with MXIndexedRecordIO(*files, "w", key_type=str) as record:
        with pytest.raises(ValueError, match="key"):
            record.write_idx(key, b"a")
        record.write_idx("fine", b"b")
    assert MXIndexedRecordIO(*files, "r", key_type=str).keys == ["fine"]


@pytest.mark.parametrize("line", ["", "a 0", "a\tb", "a\t400", "a\t-4"])
def test_bad_lines_with_other_types_of_keys(pair, line):
    with open(pair[0], "a") as file:
        file.write(f"{line}\n")
    with pytest.raises(IndexFileError) as caught:
        MXIndexedRecordIO(*pair, "r", key_type=str)
    assert (caught.value.path, caught.value.line) == (pair[0], 5)


def test_an_index_that_leads_between_heads(pair):
    with open(pair[0], "w") as file:
        file.write("1\t4\n")
    for key_type in (int, str):
        with pytest.raises(IndexFileError, match="of another file"):
            MXIndexedRecordIO(*pair, "r", key_type)
        record = MXIndexedRecordIO(*pair, "r", key_type, selection=True)
        with pytest.raises(CorruptRecordError):
            record.read_idx(key_type(1))


@pytest.mark.parametrize("key_type", [int, str])
def test_an_index_that_ends_early_has_to_be_meant(pair, key_type):
    with open(pair[0]) as file:
        lines = file.read().splitlines(True)
    with open(pair[0], "w") as file:
        file.writelines(lines[:2])
    with pytest.raises(IndexFileError, match=r"ends at .*recordio index .*some\.rec --force"):
        MXIndexedRecordIO(*pair, "r", key_type)
    record = MXIndexedRecordIO(*pair, "r", key_type, selection=True)
    assert [record.read_idx(key) for key in record.keys] == PAYLOADS[:2]


def test_an_empty_index_still_reads_in_order(pair):
    open(pair[0], "w").close()
    with pytest.raises(IndexFileError, match="lists no record"):
        MXIndexedRecordIO(*pair, "r")
    record = MXIndexedRecordIO(*pair, "r", selection=True)
    assert record.keys == []
    assert record.idx == {}
    assert list(record) == PAYLOADS


def test_threads_read_by_key(write_records):
    payloads = [str(number).encode() * 20 for number in range(500)]
    path, index = write_records(payloads, range(500))
    record = MXIndexedRecordIO(index, path, "r")
    failures = []

    def work(seed):
        for key in np.random.default_rng(seed).permutation(500):
            if record.read_idx(key) != payloads[key]:
                failures.append(key)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert not failures


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_children_read_on_and_cannot_write(pair, tmp_path):
    program = (
        "import os, sys\nfrom recordio import MXIndexedRecordIO, MXRecordIO\n"
        "reader = MXIndexedRecordIO(sys.argv[1], sys.argv[2], 'r')\n"
        "writer = MXRecordIO(sys.argv[3], 'w')\n"
        "writer.write(b'parent')\n"
        "first = reader.read()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    assert reader.read() == b'' and reader.read_idx(0) == first\n"
        "    try:\n"
        "        writer.write(b'child')\n"
        "    except RuntimeError:\n"
        "        sys.exit(0)                    # the finalizers of the child publish nothing\n"
        "    sys.exit(3)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "assert not os.path.exists(sys.argv[3])\n"
        "assert reader.read() == b''\n"
    )
    out = tmp_path / "out" / "a.rec"
    out.parent.mkdir()
    subprocess.run([sys.executable, "-c", program, *pair, str(out)], check=True)
    assert out.read_bytes() == encode(b"parent")
    assert os.listdir(out.parent) == ["a.rec"]
