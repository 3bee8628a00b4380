"""What a writer wrote is read again; what went wrong leaves no trace."""

import mmap
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordio import (
    CorruptRecordError,
    IndexFileError,
    RecordReader,
    RecordTooLargeError,
    RecordWriter,
    TruncatedRecordError,
)
from recordio.frames.encoder import MAGIC, encode

payloads_with_magic = st.lists(
    st.lists(st.one_of(st.just(MAGIC), st.binary(max_size=5)), max_size=12).map(b"".join),
    max_size=12,
)


@given(payloads_with_magic)
def test_round_trip(tmp_path_factory, payloads):
    folder = tmp_path_factory.mktemp("writer")
    with RecordWriter(folder / "a.rec", folder / "a.idx") as writer:
        offsets = []
        for payload in payloads:
            assert writer.tell() == sum(len(encode(p)) for p in payloads[: len(offsets)])
            offsets.append(writer.write(payload))
    assert (folder / "a.rec").read_bytes() == b"".join(map(encode, payloads))
    reader = RecordReader(folder / "a.rec", folder / "a.idx")
    assert [bytes(record) for record in reader] == payloads
    assert reader.offsets.tolist() == offsets
    assert reader.keys.tolist() == list(range(len(payloads)))
    assert [bytes(record) for record in RecordReader(folder / "a.rec")] == payloads


def test_golden_files_are_written(golden, golden_payloads, tmp_path):
    with RecordWriter(tmp_path / "a.rec", tmp_path / "a.idx") as writer:
        for payload in golden_payloads:
            writer.write(payload)
    assert (tmp_path / "a.rec").read_bytes() == (golden / "frames.rec").read_bytes()
    assert (tmp_path / "a.idx").read_bytes() == (golden / "frames.idx").read_bytes()


@pytest.mark.parametrize("size", [(1 << 20) - 8, (1 << 20) - 7, (1 << 20) + 1, 9 << 20])
def test_records_around_the_size_of_the_buffer(tmp_path, size):
    large = np.random.default_rng(0).bytes(size)
    with RecordWriter(tmp_path / "a.rec") as writer:
        for payload in (b"before", large, b"between", large, b"after"):
            writer.write(payload)
    records = list(RecordReader(tmp_path / "a.rec"))
    assert records == [b"before", large, b"between", large, b"after"]


def test_more_data_than_the_buffer_holds(tmp_path):
    with RecordWriter(tmp_path / "a.rec") as writer:
        offsets = [writer.write(bytes([n % 256]) * 10_000) for n in range(1000)]
    reader = RecordReader(tmp_path / "a.rec")
    assert reader.offsets.tolist() == offsets
    assert all(record == bytes([n % 256]) * 10_000 for n, record in enumerate(reader))


def test_keys(tmp_path):
    with RecordWriter(tmp_path / "a.rec", tmp_path / "a.idx") as writer:
        for key in (None, 5, None, 5, -7, np.int32(2), None, -(2**63)):
            writer.write(b"", key=key)
    keys = [line.split("\t")[0] for line in (tmp_path / "a.idx").read_text().splitlines()]
    assert keys == ["0", "5", "6", "5", "-7", "2", "7", str(-(2**63))]


def test_keys_that_cannot_be_stored(tmp_path):
    with RecordWriter(tmp_path / "a.rec", tmp_path / "a.idx") as writer:
        for key in (2**63, -(2**63) - 1):
            with pytest.raises(ValueError, match="64 bits"):
                writer.write(b"a", key=key)
        for key in ("1", 1.0):
            with pytest.raises(TypeError):
                writer.write(b"a", key=key)
        writer.write(b"last", key=2**63 - 1)
        with pytest.raises(ValueError, match="64 bits"):
            writer.write(b"none is left")
    assert (tmp_path / "a.idx").read_text() == f"{2**63 - 1}\t0\n"
    with RecordWriter(tmp_path / "b.rec") as writer, pytest.raises(ValueError, match="no index"):
        writer.write(b"a", key=1)


def test_refused_records_leave_the_writer_usable(tmp_path):
    with RecordWriter(tmp_path / "a.rec", tmp_path / "a.idx") as writer:
        writer.write(b"one")
        with pytest.raises(TypeError):
            writer.write("text")
        with mmap.mmap(-1, 2**29) as zeros, pytest.raises(RecordTooLargeError):
            writer.write(zeros)
        writer.write(b"two")
    reader = RecordReader(tmp_path / "a.rec", tmp_path / "a.idx")
    assert [bytes(record) for record in reader] == [b"one", b"two"]
    assert reader.keys.tolist() == [0, 1]


def test_an_empty_writer_writes_empty_files(tmp_path):
    with RecordWriter(tmp_path / "a.rec", tmp_path / "a.idx"):
        pass
    assert (tmp_path / "a.rec").read_bytes() == (tmp_path / "a.idx").read_bytes() == b""


def test_closing(tmp_path):
    writer = RecordWriter(tmp_path / "a.rec")
    assert not writer.closed
    writer.write(b"a")
    writer.close()
    writer.close()
    writer.discard()
    assert writer.closed
    assert "closed" in repr(writer)
    assert (tmp_path / "a.rec").read_bytes() == encode(b"a")
    for use in (lambda: writer.write(b""), writer.tell, writer.__enter__):
        with pytest.raises(ValueError, match="closed"):
            use()


@pytest.fixture
def existing(write_records):
    path, index = write_records([b"old", b"records"], [3, 8])
    return path, index


def is_untouched(existing):
    path, index = existing
    return (
        path.read_bytes() == encode(b"old") + encode(b"records")
        and index.read_text() == "3\t0\n8\t12\n"
        and sorted(os.listdir(path.parent)) == ["some.idx", "some.rec"]
    )


@pytest.mark.parametrize("append", [False, True])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_exception_leaves_the_old_files_alone(existing, append, error):
    with pytest.raises(error):
        with RecordWriter(*existing, append=append) as writer:
            writer.write(b"new" * 3_000_000)
            raise error
    assert is_untouched(existing)


def test_a_dropped_writer_warns_and_writes_nothing(existing):
    with pytest.warns(ResourceWarning, match="without close"):
        RecordWriter(*existing).write(b"new")
    assert is_untouched(existing)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
@pytest.mark.parametrize("append", [False, True])
def test_a_full_disk_leaves_the_old_files_alone(existing, append):
    # A limit on the size of files fails as a full disk does, at any write, for any user.
    program = (
        "import resource, sys\nfrom recordio import RecordWriter\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (9_000_000, 9_000_000))\n"
        f"writer = RecordWriter(sys.argv[1], sys.argv[2], append={append})\n"
        "try:\n"
        "    for number in range(20_000):\n"
        "        writer.write(bytes(1000))\n"
        "    writer.close()\n"
        "except OSError as error:\n"
        "    assert writer.closed\n"
        "    import os\n"
        "    print(sorted(os.listdir(os.path.dirname(sys.argv[1]))))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, existing)], capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == "['some.idx', 'some.rec']"
    assert done.stderr == b""
    assert is_untouched(existing)


def test_a_disk_that_fills_up_at_the_end_leaves_the_old_files_alone(existing, monkeypatch):
    writer = RecordWriter(*existing)
    writer.write(b"small enough to stay in the buffer")
    monkeypatch.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(OSError, match="full"):
        writer.close()
    monkeypatch.undo()
    assert writer.closed
    assert is_untouched(existing)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_a_killed_writer_leaves_the_old_files_alone(existing):
    program = (
        "import os, signal, sys\nfrom recordio import RecordWriter\n"
        "writer = RecordWriter(sys.argv[1], sys.argv[2])\n"
        "for number in range(10_000):\n    writer.write(bytes(1000))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, *map(str, existing)], check=False)
    assert done.returncode == -signal.SIGKILL
    left = list(existing[0].parent.glob("*.partial"))
    assert len(left) == 2
    for path in left:
        path.unlink()
    assert is_untouched(existing)


def test_ctrl_c_leaves_the_old_files_alone(existing):
    if not hasattr(signal, "raise_signal") or os.name == "nt":
        pytest.skip("signals of POSIX")
    program = (
        "import signal, sys\nfrom recordio import RecordWriter\n"
        "with RecordWriter(sys.argv[1], sys.argv[2]) as writer:\n"
        "    for number in range(10_000):\n"
        "        writer.write(bytes(1000))\n"
        "        if number == 9_000:\n"
        "            signal.raise_signal(signal.SIGINT)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, existing)], capture_output=True, check=False
    )
    assert b"KeyboardInterrupt" in done.stderr
    assert is_untouched(existing)


def test_appending_continues_records_and_keys(existing):
    path, index = existing
    with RecordWriter(path, index, append=True) as writer:
        assert writer.tell() == 28
        assert writer.write(b"new" + MAGIC) == 28
        writer.write(b"with a key", key=1)
    reader = RecordReader(path, index)
    assert [bytes(record) for record in reader] == [
        b"old",
        b"records",
        b"new" + MAGIC,
        b"with a key",
    ]
    assert reader.keys.tolist() == [3, 8, 9, 1]
    assert [bytes(record) for record in RecordReader(path)] == [bytes(record) for record in reader]


def test_appending_to_nothing_begins_a_file(tmp_path):
    for _ in range(3):
        with RecordWriter(tmp_path / "a.rec", tmp_path / "a.idx", append=True) as writer:
            writer.write(b"again")
    assert (tmp_path / "a.idx").read_text() == "0\t0\n1\t16\n2\t32\n"
    assert len(RecordReader(tmp_path / "a.rec")) == 3


def test_appending_without_an_index(existing):
    path, _ = existing
    with RecordWriter(path, append=True) as writer:
        writer.write(b"new")
    assert [bytes(record) for record in RecordReader(path)] == [b"old", b"records", b"new"]


def test_appending_to_an_index_without_a_final_newline(existing):
    path, index = existing
    index.write_text("3\t0\n8\t12")
    with RecordWriter(path, index, append=True) as writer:
        writer.write(b"new")
    assert index.read_text() == "3\t0\n8\t12\n9\t28\n"


@pytest.mark.parametrize("with_index", [False, True])
@pytest.mark.parametrize(
    ("tail", "error"),
    [
        (encode(b"cut short")[:-4], TruncatedRecordError),
        (bytes(8), CorruptRecordError),
        (b"x", CorruptRecordError),
    ],
)
def test_appending_behind_damage_is_refused(existing, with_index, tail, error):
    path, index = existing
    data = path.read_bytes() + tail
    path.write_bytes(data)
    with pytest.raises(error) as caught:
        RecordWriter(path, index if with_index else None, append=True)
    assert (caught.value.offset, caught.value.record) == (28, 2)
    assert path.read_bytes() == data
    assert sorted(os.listdir(path.parent)) == ["some.idx", "some.rec"]


@pytest.mark.parametrize("missing", [0, 1])
def test_appending_to_half_a_pair_is_refused(existing, missing):
    existing[missing].unlink()
    with pytest.raises(IndexFileError, match="both exist") as caught:
        RecordWriter(*existing, append=True)
    assert caught.value.path == str(existing[missing])


def test_appending_to_a_foreign_index_is_refused(existing):
    existing[1].write_text("0\t400\n")
    with pytest.raises(IndexFileError, match="outside"):
        RecordWriter(*existing, append=True)
    existing[1].write_text("0\t4\n")
    with pytest.raises(CorruptRecordError):
        RecordWriter(*existing, append=True)


def test_a_reader_keeps_the_file_it_has_opened(existing):
    reader = RecordReader(*existing)
    with RecordWriter(*existing) as writer:
        writer.write(b"new")
    assert [bytes(record) for record in reader] == [b"old", b"records"]
    assert [bytes(record) for record in RecordReader(*existing)] == [b"new"]


def test_threads_share_a_writer(tmp_path):
    with RecordWriter(tmp_path / "a.rec", tmp_path / "a.idx") as writer:

        def work(number):
            for count in range(500):
                writer.write(b"%d %d" % (number, count) * 50)

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(work, range(6)))
    reader = RecordReader(tmp_path / "a.rec", tmp_path / "a.idx")
    assert reader.keys.tolist() == list(range(3000))
    assert sorted(bytes(record) for record in reader) == sorted(
        b"%d %d" % (number, count) * 50 for number in range(6) for count in range(500)
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_child_cannot_write_and_does_no_harm(existing):
    program = (
        "import os, sys\nfrom recordio import RecordWriter\n"
        "writer = RecordWriter(sys.argv[1], sys.argv[2])\n"
        "writer.write(b'parent', key=1)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    for use in (lambda: writer.write(b'child'), writer.close, writer.tell):\n"
        "        try:\n"
        "            use()\n"
        "        except RuntimeError:\n"
        "            pass\n"
        "        else:\n"
        "            os._exit(3)\n"
        "    del writer\n"
        "    sys.exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "writer.write(b'parent again', key=2)\n"
        "writer.close()\n"
    )
    subprocess.run([sys.executable, "-c", program, *map(str, existing)], check=True)
    path, index = existing
    reader = RecordReader(path, index)
    assert [bytes(record) for record in reader] == [b"parent", b"parent again"]
    assert reader.keys.tolist() == [1, 2]
