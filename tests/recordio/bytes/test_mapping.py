"""Mapped files that become shorter while they are read."""

import os
import platform
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from recordio import RecordReader, TruncatedRecordError, build_index, repair, verify
from recordio.bytes.mapping import check_kept, is_lost, map_descriptor, map_file
from recordio.frames.frame import find_head, scan_offsets, survey
from recordio.mxnet import MXIndexedRecordIO, MXRecordIO

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="mapped files stay as they are")

PAGE = os.sysconf("SC_PAGESIZE") if sys.platform != "win32" else 4096
MAGIC = b"\x0a\x23\xd7\xce"


@pytest.fixture
def mapped(tmp_path):
    """A file of ten pages of ones, and its map."""
    path = tmp_path / "file"
    path.write_bytes(b"\1" * (10 * PAGE))
    return path, map_file(path)


def test_missing_bytes_are_zeros_and_are_told(mapped):
    path, view = mapped
    assert not is_lost(view)
    os.truncate(path, 5 * PAGE + 100)
    assert bytes(view[: 5 * PAGE + 100]) == b"\1" * (5 * PAGE + 100)
    assert not any(view[5 * PAGE + 100 :])
    assert is_lost(view)
    assert not is_lost(view[: 5 * PAGE + 100])
    assert is_lost(view[5 * PAGE + 90 :][10:11])
    assert not is_lost(view[5 * PAGE + 90 :][9:10])


def test_a_second_cut_is_told_as_well(mapped):
    path, view = mapped
    for size in (8 * PAGE, 3 * PAGE + 1, 0):
        os.truncate(path, size)
        assert not any(view[size:])
        assert is_lost(view[size : size + 1])
        assert not is_lost(view[:size])


@pytest.mark.parametrize("touched", [9, 5, 0])
def test_what_was_lost_stays_lost(mapped, touched):
    path, view = mapped
    os.truncate(path, 0)
    assert view[touched * PAGE] == 0
    path.write_bytes(b"\2" * (10 * PAGE))
    assert is_lost(view)
    assert not any(view)
    assert not is_lost(map_file(path))


@pytest.mark.parametrize("size", [1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE - 1, 3 * PAGE])
def test_a_cut_within_the_last_page_is_noticed(tmp_path, size):
    path = tmp_path / "file"
    path.write_bytes(b"\1" * size)
    view = map_file(path)
    assert not is_lost(view)
    os.truncate(path, size - 1)
    assert is_lost(view)
    assert not is_lost(view[: size - 1])


def test_a_file_that_grows_or_is_replaced_loses_nothing(mapped):
    path, view = mapped
    with open(path, "ab") as file:
        file.write(b"\2" * PAGE)
    assert not is_lost(view)
    path.with_name("other").write_bytes(b"")
    os.replace(path.with_name("other"), path)
    assert not is_lost(view)
    path.unlink()
    assert bytes(view) == b"\1" * (10 * PAGE)
    assert not is_lost(view)


@pytest.mark.parametrize("other", [memoryview(b"abc"), b"abc", bytearray(3), np.zeros(3)])
def test_other_memory_is_never_lost(other):
    assert not is_lost(other)
    check_kept(other)


def test_the_error_names_the_place(mapped):
    path, view = mapped
    os.truncate(path, 0)
    with pytest.raises(TruncatedRecordError, match="a, offset 3, record 1: the file became"):
        check_kept(view, path="a", offset=3, record=1)


def test_maps_and_their_descriptors_are_let_go(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"\1" * PAGE)
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    for _ in range(3):  # more than one block of the table, and its slots again
        maps = [map_file(path) for _ in range(200)]
        part = maps[0][1:2]
        del maps
        assert part[0] == 1  # a part keeps the map
        del part
    if sys.platform == "linux":
        assert len(os.listdir("/proc/self/fd")) <= before


def test_of_many_maps_just_the_right_one_is_lost(tmp_path):
    maps = []
    for i in range(200):
        (tmp_path / str(i)).write_bytes(b"\1" * PAGE)
        maps.append(map_file(tmp_path / str(i)))
    os.truncate(tmp_path / "150", 0)
    assert [i for i, view in enumerate(maps) if view[0] == 0] == [150]
    assert [i for i, view in enumerate(maps) if is_lost(view)] == [150]


def test_what_cannot_be_mapped_is_an_error_of_the_system(tmp_path):
    (tmp_path / "file").write_bytes(b"1")
    with open(tmp_path / "file", "rb") as file:
        assert bytes(map_descriptor(file.fileno(), 0, "a")) == b""
    with pytest.raises(FileNotFoundError):
        map_file(tmp_path / "none")
    with open(tmp_path / "file", "wb") as file, pytest.raises(PermissionError, match="'a'"):
        map_descriptor(file.fileno(), 1, "a")


def test_threads_that_touch_missing_pages_at_once(tmp_path):
    views = []
    for i in range(4):
        (tmp_path / str(i)).write_bytes(b"\1" * (64 * PAGE))
        views.append(map_file(tmp_path / str(i)))
        os.truncate(tmp_path / str(i), i * PAGE)
    start = threading.Barrier(8)
    wrong = []

    def read(first, own):
        start.wait()
        for k in range(64):
            page = (first + 7 * k) % 64
            for i, view in enumerate(own):
                if set(bytes(view[page * PAGE : (page + 1) * PAGE])) != {int(page < i)}:
                    wrong.append((i, page))

    threads = []
    for i in range(8):
        # Without the GIL threads cannot slice the same memoryview (CPython gh-155606).
        own = [memoryview(np.frombuffer(view, np.uint8)) for view in views]
        threads.append(threading.Thread(target=read, args=(i, own)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert all(map(is_lost, views))


# -- readers ------------------------------------------------------------------------------------


RECORDS = 40
SIZE = 3 * PAGE // 2


@pytest.fixture
def pack(write_records):
    """Records of one and a half pages each, every fifth in several parts; and their index."""
    payloads = [
        (MAGIC if i % 5 == 0 else b"") + bytes([i + 1]) * SIZE + (MAGIC if i % 5 == 0 else b"")
        for i in range(RECORDS)
    ]
    return *write_records(payloads, keys=range(100, 100 + RECORDS)), payloads


def cut(path, record):
    """Take away the end of a file from the middle of a record on; where that begins."""
    offset = int(scan_offsets(path.read_bytes())[record])
    os.truncate(path, offset + SIZE // 2)
    return offset


WAYS = {
    "position": lambda reader, i: reader[i],
    "from the end": lambda reader, i: reader[i - RECORDS],
    "list": lambda reader, i: reader[[i, i]][1],
    "slice": lambda reader, i: reader[i : i + 1][0],
    "many": lambda reader, i: reader.read_many(np.array([i]))[0],
    "key": lambda reader, i: reader.by_key(100 + i),
    "offset": lambda reader, i: reader.read_at(reader.offset_of(i), i)[0],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("lost", [0, 1, 20, 25, RECORDS - 1])
def test_a_reader_names_what_is_lost_and_gives_the_rest(pack, way, lost):
    path, index, payloads = pack
    reader = RecordReader(path, index)
    offset = cut(path, lost)
    for i in range(RECORDS):
        if i < lost:
            assert bytes(WAYS[way](reader, i)) == payloads[i]
        else:
            with pytest.raises(TruncatedRecordError, match="the file became shorter") as caught:
                WAYS[way](reader, i)
            assert caught.value.path == str(path)
            assert (caught.value.record, caught.value.offset) == (i, reader.offset_of(i))
    assert reader.offset_of(lost) == offset


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("begun", [0, 1, 20])
def test_iterating_over_a_file_that_becomes_shorter(pack, indexed, begun):
    path, index, payloads = pack
    records = iter(RecordReader(path, index if indexed else None))
    got = [bytes(next(records)) for _ in range(begun)]
    offset = cut(path, 25)
    got += [bytes(next(records)) for _ in range(25 - begun)]
    assert got == payloads[:25]
    for _ in range(2):  # and it stays so
        with pytest.raises(TruncatedRecordError, match="the file became shorter") as caught:
            next(records)
        assert (caught.value.record, caught.value.offset) == (25, offset)


def test_a_view_that_was_handed_out_shows_zeros_and_can_be_asked(pack):
    path, index, payloads = pack
    reader = RecordReader(path, index)
    kept, gone = reader[1], reader[26]
    cut(path, 25)
    assert bytes(kept) == payloads[1]
    assert not any(gone)
    assert is_lost(gone)
    assert not is_lost(kept)


def test_the_last_bytes_alone(pack):
    path, index, _ = pack
    reader = RecordReader(path, index)
    os.truncate(path, os.path.getsize(path) - 1)
    with pytest.raises(TruncatedRecordError, match="the file became shorter"):
        reader[RECORDS - 1]
    assert reader[RECORDS - 2][0] == RECORDS - 1


def test_scans_of_a_file_that_becomes_shorter(pack):
    path, _, _ = pack
    reader, view = RecordReader(path), map_file(path)
    offset = cut(path, 25)
    for scan in (lambda: len(reader), lambda: reader.check_tail(), lambda: survey(view)):
        with pytest.raises(TruncatedRecordError, match="the file became shorter") as caught:
            scan()
        assert caught.value.path == str(path)
        assert caught.value.offset >= offset
    assert find_head(view, offset + 4) == len(view)


@pytest.mark.parametrize("work", ["verify", "repair", "build_index", "build_index by id"])
def test_work_on_a_file_that_becomes_shorter_is_given_up(pack, tmp_path, monkeypatch, work):
    path, _, _ = pack

    def map_and_cut(name):
        view = map_file(name)
        cut(path, 25)
        return view

    monkeypatch.setattr("recordio.bytes.files.map_file", map_and_cut)
    out = tmp_path / "out"
    with pytest.raises(TruncatedRecordError, match="the file became shorter"):
        if work == "verify":
            verify(path)
        elif work == "repair":
            repair(path, out)
        else:
            build_index(path, out, keys="id" if work.endswith("id") else "position")
    assert not out.exists()


def test_the_readers_of_mxnet(pack):
    path, index, payloads = pack
    plain, indexed = MXRecordIO(str(path), "r"), MXIndexedRecordIO(str(index), str(path), "r")
    assert plain.read() == payloads[0]
    offset = cut(path, 1)
    for read in (plain.read, lambda: indexed.read_idx(101)):
        with pytest.raises(TruncatedRecordError, match="the file became shorter") as caught:
            read()
        assert caught.value.offset == offset
    assert indexed.read_idx(100) == payloads[0]


# -- the handler --------------------------------------------------------------------------------


SETTING = """
import ctypes, faulthandler, mmap, os, signal, sys
from recordio.bytes.mapping import is_lost, map_file
PAGE = mmap.PAGESIZE
path = sys.argv[1]
def make():
    with open(path, "wb") as file:
        file.write(bytes(4 * PAGE))
def foreign():
    make()
    with open(path, "rb") as file:
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    os.truncate(path, 0)
    print("foreign", flush=True)
    pages[0]
def ours(view):
    os.truncate(path, 0)
    assert view[2 * PAGE] == 0 and is_lost(view)
    print("alive", flush=True)
make()
"""
MAP = "view = map_file(path)\n"
OURS = "ours(view)\n"
FOREIGN = "foreign()\n"
ENABLE, DISABLE = "faulthandler.enable()\n", "faulthandler.disable()\n"
HANDLE = "signal.signal(signal.SIGBUS, lambda *words: None)\n"
RAISE = "signal.raise_signal(signal.SIGBUS)\n"
KILL = "os.kill(os.getpid(), signal.SIGBUS)\n"
FORK = """
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
MAP_AGAIN = "make()\nview = map_file(path)\n"


def run_child(tmp_path, *steps):
    return subprocess.run(
        [sys.executable, "-c", SETTING + "".join(steps), str(tmp_path / "file")],
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    "steps",
    [
        [MAP, OURS],
        [ENABLE, MAP, OURS],
        [MAP, ENABLE, OURS],
        [ENABLE, MAP, DISABLE, MAP_AGAIN, OURS],
        [MAP, ENABLE, DISABLE, OURS],
        [MAP, ENABLE, MAP_AGAIN, OURS],
        [MAP, ENABLE, MAP_AGAIN, DISABLE, OURS],
        [MAP, OURS, MAP_AGAIN, OURS],
        [MAP, FORK, OURS],
        [HANDLE, MAP, OURS],
        [MAP, HANDLE, MAP_AGAIN, OURS],
        [ENABLE, HANDLE, MAP, OURS],
        [MAP, "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n", OURS],
    ],
)
def test_a_fault_of_a_map_is_survived(tmp_path, steps):
    done = run_child(tmp_path, *steps)
    assert (done.returncode, done.stdout.split()[-1]) == (0, "alive"), done.stderr


@pytest.mark.parametrize(
    "steps",
    [
        [MAP, FOREIGN],
        [MAP, OURS, FOREIGN],
        [ENABLE, MAP, FOREIGN],
        [MAP, ENABLE, FOREIGN],
        [MAP, ENABLE, OURS, FOREIGN],
        [MAP, ENABLE, MAP_AGAIN, FOREIGN],
        [MAP, ENABLE, MAP_AGAIN, DISABLE, FOREIGN],
        [MAP, ENABLE, MAP_AGAIN, DISABLE, OURS, FOREIGN],
        [ENABLE, MAP, DISABLE, FOREIGN],
        [MAP, "signal.signal(signal.SIGBUS, signal.SIG_IGN)\n", MAP_AGAIN, FOREIGN],
        [MAP, HANDLE, MAP_AGAIN, FOREIGN],
        [MAP, "print('foreign')\n", RAISE],
        [MAP, "print('foreign', flush=True)\n", KILL],
        [MAP, ENABLE, MAP_AGAIN, "print('foreign', flush=True)\n", RAISE],
    ],
)
def test_every_other_fault_still_ends_the_process(tmp_path, steps):
    done = run_child(tmp_path, *steps, "print('alive')")
    assert done.returncode == -signal.SIGBUS, done.stderr
    assert "alive" not in done.stdout.split()[-1:]


FAILING_DISK = """
import ctypes, os, platform, struct, sys, threading
import numpy as np
from recordio import RecordReader
from recordio.errors import TruncatedRecordError
reader = RecordReader(sys.argv[1], sys.argv[2])
address = np.frombuffer(reader[20], np.uint8).ctypes.data + 100
# What the system would say of a page that cannot be read: BUS_OBJERR.
number = {"x86_64": 297, "aarch64": 240}[platform.machine()]
info = ctypes.create_string_buffer(struct.pack("=iiiiQ", 7, 0, 3, 0, address), 128)
libc = ctypes.CDLL(None)
assert libc.syscall(number, os.getpid(), threading.get_native_id(), 7, info) == 0
for i in range(len(reader)):
    try:
        assert bytes(reader[i])[-1] == i + 1, i
        print(i, end=" ")
    except TruncatedRecordError as error:
        assert error.record == i and error.offset == reader.offset_of(i)
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="number of a call")
@pytest.mark.skipif(sys.platform != "linux", reason="a signal that only Linux lets a process send")
def test_a_page_that_cannot_be_read_costs_its_records_alone(write_records, tmp_path):
    payloads = [bytes([i + 1]) * SIZE for i in range(RECORDS)]
    path, index = write_records(payloads, keys=range(RECORDS))
    done = subprocess.run(
        [sys.executable, "-c", FAILING_DISK, str(path), str(index)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    offsets = [*scan_offsets(path.read_bytes()).tolist(), os.path.getsize(path)]
    page = (offsets[20] + 8 + 100) // PAGE
    right = [
        i
        for i in range(RECORDS)
        if offsets[i + 1] <= page * PAGE or offsets[i] >= (page + 1) * PAGE
    ]
    assert list(map(int, done.stdout.split())) == right
