"""Where the bytes of records come from: mapped files and image files."""

import ctypes
import errno
import mmap
import os
import sys
import threading
import time

import numpy as np
import pytest

import recordio
from iterators.images.sources.source import (
    ImageFiles,
    LabelTable,
    LibraryRows,
    RecordFiles,
    Source,
)
from iterators.testing import write_records
from recordio.errors import ImageFileError, RecordHeaderError, RecordIOError
from recordio.header import pack, unpack


def files_of(paths, labels=None, ids=None):
    count = len(paths)
    labels = np.zeros((count, 1), np.float32) if labels is None else labels
    ids = np.arange(count, dtype=np.uint64) if ids is None else ids
    return ImageFiles([os.fspath(path) for path in paths], ids, labels)


def test_records_of_several_files(tmp_path):
    magic = b"\x0a\x23\xd7\xce"
    contents = [[b"one", b"", magic + b"two" + magic], [b"three"]]
    readers = []
    for i, records in enumerate(contents):
        readers.append(recordio.RecordReader(write_records(tmp_path / f"{i}.rec", records)))
    offsets = np.concatenate([reader.offsets for reader in readers])
    source = RecordFiles(readers, offsets, np.array([0, 3]))
    assert [source.read(i) for i in range(source.count)] == contents[0] + contents[1]
    broken = RecordFiles(readers, np.append(offsets[:3], 4), np.array([0, 3]))
    with pytest.raises(RecordIOError, match=r"1\.rec, offset 4, record 0"):
        broken.read(3)


def resident_pages(path):
    """Which pages of a file are in memory."""
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as pages:
        found = np.zeros(-(-len(pages) // mmap.PAGESIZE), np.uint8)
        start = ctypes.c_char.from_buffer(pages)
        libc = ctypes.CDLL(None, use_errno=True)
        status = libc.mincore(
            ctypes.c_void_p(ctypes.addressof(start)),
            ctypes.c_size_t(len(pages)),
            ctypes.c_void_p(found.ctypes.data),
        )
        del start
        assert status == 0, os.strerror(ctypes.get_errno())
    return found & 1 == 1


def drop_from_memory(path):
    with open(path, "r+b") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux what is in memory")
def test_just_the_announced_records_are_read_from_the_disk(tmp_path):
    size, wanted = 3 << 20, [7, 3, 15]
    path = write_records(tmp_path / "large.rec", [bytes(size)] * 16)
    with recordio.RecordReader(path) as reader:
        offsets = reader.offsets.copy()
    drop_from_memory(path)
    if resident_pages(path).any():
        pytest.skip("this file system keeps all files in memory")
    reader = recordio.RecordReader(path)
    source = RecordFiles([reader], offsets, np.zeros(1, np.int64))
    assert source.announce(np.array(wanted)) == 3
    expected = np.zeros(len(resident_pages(path)), bool)
    for number in wanted:
        first = offsets[number] // mmap.PAGESIZE
        expected[first : -(-(offsets[number] + size) // mmap.PAGESIZE)] = True
    end = time.monotonic() + 60
    while (missing := (expected & ~resident_pages(path)).sum()) and time.monotonic() < end:
        pass
    assert missing == 0
    # A few pages come with the first bytes, by which the kind of a file is known.
    assert (resident_pages(path) & ~expected).sum() <= 2 * len(wanted) + 16


def test_nothing_is_announced_when_nothing_is_missing(tmp_path):
    reader = recordio.RecordReader(write_records(tmp_path / "a.rec", [b"small"]))
    source = RecordFiles([reader], reader.offsets, np.zeros(1, np.int64))
    numbers = np.zeros(1000, np.int64)
    assert source.announce(numbers) == 1000  # at the start nobody knows
    told = [source.announce(numbers) for _ in range(200)]
    assert 0 in told  # a page of something else may be missing now and then
    assert source.announce(np.zeros(0, np.int64)) == 0


@pytest.mark.parametrize("number", [-1, 1, 2**62])
def test_what_is_not_there_cannot_be_announced(tmp_path, number):
    (tmp_path / "a").write_bytes(b"")
    source = files_of([tmp_path / "a"])
    assert source.announce(np.zeros(1, np.int64)) == 0  # files are read, not mapped
    with pytest.raises(IndexError, match=f"record {number} of 1"):
        source.announce(np.array([number]))


def test_announcing_follows_any_index(tmp_path):
    path = write_records(tmp_path / "a.rec", map(bytes, (5, 300_000, 5)))
    reader = recordio.RecordReader(path)
    size = (tmp_path / "a.rec").stat().st_size
    for table in (
        reader.offsets[::-1].copy(),
        np.array([0, 0, 0]),
        np.array([size - 1, size, size + 1]),
        np.array([-1, -(2**63), 2**63 - 1]),
        np.array([2**62, 0, 4]),
    ):
        source = RecordFiles([reader], table, np.zeros(1, np.int64))
        assert source.announce(np.array([0, 1, 2])) == 3
    (tmp_path / "b.rec").write_bytes(b"")
    empty = recordio.RecordReader(tmp_path / "b.rec")
    RecordFiles([empty], np.array([0]), np.zeros(1, np.int64)).announce(np.array([0]))


@pytest.mark.parametrize("number", [-1, 1])
def test_there_is_no_such_record(tmp_path, number):
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(IndexError):
        files_of([tmp_path / "a"]).read(number)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_an_image_file_has_the_labels_and_the_id_of_its_list(tmp_path, width):
    sizes = [0, 1, 4096, 100_000]
    for size in sizes:
        (tmp_path / f"{size}").write_bytes(bytes(range(256)) * (size // 256) + b"x" * (size % 256))
    labels = np.arange(len(sizes) * width, dtype=np.float32).reshape(len(sizes), width)
    ids = np.array([3, 2**64 - 1, 0, 3], np.uint64)
    source = files_of([tmp_path / f"{size}" for size in sizes], labels, ids)
    for i, size in enumerate(sizes):
        header, content = source.image(i)
        assert content == source.read(i) == (tmp_path / f"{size}").read_bytes()
        expected, _ = unpack(pack((0, labels[i] if width > 1 else labels[i, 0], ids[i], 0), b""))
        assert header._replace(label=0) == expected._replace(label=0)
        assert type(header.label) is type(expected.label)
        assert np.array_equal(header.label, expected.label)
        if width > 1:
            with pytest.raises(ValueError, match="read-only"):
                header.label[0] = 9
    assert labels.flags.writeable


def test_a_record_is_parsed_where_it_is_handed_out(tmp_path):
    record = pack((0, [1.0, 2.0], 7, 0), b"content")
    reader = recordio.RecordReader(write_records(tmp_path / "a.rec", [record, b"short"]))
    source = RecordFiles([reader], reader.offsets, np.zeros(1, np.int64))
    header, content = source.image(0)
    assert (header.label.tolist(), header.id, content) == ([1, 2], 7, b"content")
    with pytest.raises(RecordHeaderError, match="too few"):
        source.image(1)


def test_names_of_any_bytes(tmp_path):
    name = os.fsdecode(os.fsencode(tmp_path) + b"/a\xff b\n.png")
    with open(name, "wb") as file:
        file.write(b"content")
    assert files_of([name]).read(0) == b"content"
    with pytest.raises(ValueError, match="zero character"):
        files_of(["a\0b"])


def test_what_cannot_be_read_says_why(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "large", "wb") as file:
        file.truncate(1 << 29)
    os.symlink("loop", tmp_path / "loop")
    source = files_of(
        [tmp_path / name for name in ("none", "pipe", "large", "loop", "", "x" * 999)]
    )
    reasons = [
        "No such file", "no regular file", "536870911 bytes", "symbolic links", "no regular file",
        "too long",
    ]  # fmt: skip
    for i, reason in enumerate(reasons):
        with pytest.raises(ImageFileError, match=reason) as caught:
            source.read(i)
        assert caught.value.record == i and caught.value.record_id == i
        assert isinstance(caught.value, OSError) and isinstance(caught.value, ValueError)


def test_too_many_open_files_say_nothing_about_a_file(tmp_path):
    """Neither an `ImageFileError` nor a `RecordIOError`, which would be skipped on request."""
    resource = pytest.importorskip("resource")
    (tmp_path / "a").write_bytes(b"content")
    source = files_of([tmp_path / "a"])
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        with pytest.raises(OSError) as caught:
            source.read(0)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert caught.value.errno == errno.EMFILE and caught.value.filename == str(tmp_path / "a")
    assert not isinstance(caught.value, ValueError)
    assert source.read(0) == b"content"


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="one id and one row"):
        ImageFiles(["a"], np.zeros(2, np.uint64), np.zeros((1, 1), np.float32))
    with pytest.raises(ValueError, match="at least one label"):
        ImageFiles(["a"], np.zeros(1, np.uint64), np.zeros((1, 0), np.float32))


def test_many_threads_read_at_once(tmp_path):
    for i in range(20):
        (tmp_path / f"{i}").write_bytes(bytes([i]) * (1000 * i))
    source = files_of([tmp_path / f"{i}" for i in range(20)])
    wrong = []

    def read():
        for i in [*range(20), *range(19, -1, -1)]:
            if source.read(i) != bytes([i]) * (1000 * i):
                wrong.append(i)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_source_without_records():
    assert Source().count == 0
    assert files_of([]).count == 0


def test_every_thread_learns_why_a_row_could_not_be_read():
    def reading(number):
        raise RecordIOError("the disk is on fire")

    labels = LabelTable(np.zeros(1, np.uint64), np.array([0, 1]), np.zeros(1, np.float32))
    source = LibraryRows(reading, lambda number: {"path": "a.parquet"}, labels)
    reasons = set()

    def read():
        for _ in range(300):
            with pytest.raises(RecordIOError) as caught:
                source.read(0)
            reasons.add(str(caught.value))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert len(reasons) == 1 and "the disk is on fire" in reasons.pop()
