"""The store behind `cache=`: threads, processes, kills, damage, full disks."""

import fcntl
import gc
import json
import logging
import os
import re
import signal
import struct
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iterators.images.cache import cache_file
from iterators.images.cache.image_cache import (
    LARGEST_CAPACITY,
    FileImageCache,
    MemoryImageCache,
    image_bytes,
)
from recordio.errors import CacheFileError

sys.path.append(str(Path(__file__).parents[3]))  # for processes that import this file
from faces.cache import load, store  # noqa: E402

COUNT = 40
SETTINGS = {"resize": "256", "data": "somewhere"}
MIB = 1 << 20


def picture(number, version=0, channels=3):
    """What record `number` has in these tests; sizes differ."""
    draws = np.random.default_rng([number, version])
    height, width = draws.integers(1, 40, 2)
    return draws.integers(0, 256, (height, width, channels), np.uint8)


def source_of(number):
    return 100 + number, 3 + number


def file_cache(path, count=COUNT, channels=3, capacity=MIB, settings=SETTINGS):
    return FileImageCache(str(path), count, channels, capacity, settings)


def make(kind, tmp_path, count=COUNT, capacity=MIB):
    if kind == "memory":
        return MemoryImageCache(count, 3, capacity)
    return file_cache(tmp_path / "images.cache", count, capacity=capacity)


def fill(cache, numbers=range(COUNT)):
    return [n for n in numbers if store(cache, n, picture(n), source_of(n))]


def check(cache, numbers=range(COUNT)):
    """Every image that is there is right; their numbers."""
    there = []
    for number in numbers:
        found = load(cache, number)
        if found is not None:
            np.testing.assert_array_equal(found[0], picture(number))
            assert found[1] == source_of(number)
            there.append(number)
    return there


def places(path):
    """Where table and data of a cache file begin."""
    with open(path, "rb") as file:
        file.seek(24)
        length, _ = struct.unpack("=II", file.read(8))
        description = json.loads(file.read(length))
    return description["table_place"], description["data_place"]


both = pytest.mark.parametrize("kind", ["memory", "file"])


# -- what a cache does -----------------------------------------------------------------------------


@both
def test_images_come_back_as_they_were_put_in(kind, tmp_path):
    cache = make(kind, tmp_path)
    assert load(cache, 0) is None
    assert fill(cache) == check(cache) == list(range(COUNT))
    assert cache.images == COUNT
    assert cache.used == sum(
        image_bytes(p.shape[1], p.shape[0], 3) for p in map(picture, range(COUNT))
    )


@both
def test_the_first_image_of_a_record_stays(kind, tmp_path):
    cache = make(kind, tmp_path)
    assert store(cache, 3, picture(3), source_of(3))
    used = cache.used
    assert not store(cache, 3, picture(3, version=1))
    assert check(cache) == [3] and cache.used == used


@both
@settings(max_examples=30)
@given(data=st.data())
def test_a_cache_is_a_dictionary_that_never_takes_more_than_its_capacity(
    kind, data, tmp_path_factory
):
    capacity = data.draw(st.integers(0, 30_000))
    cache = make(kind, tmp_path_factory.mktemp("cache"), capacity=capacity)
    model = {}
    for number, version in data.draw(
        st.lists(st.tuples(st.integers(0, COUNT - 1), st.integers(0, 2)), max_size=40)
    ):
        pixels = picture(number, version)
        needed = image_bytes(pixels.shape[1], pixels.shape[0], 3)
        fits = cache.used + needed <= capacity
        assert store(cache, number, pixels) == (fits and number not in model)
        if fits:
            model.setdefault(number, pixels)
        assert cache.used <= capacity
    for number in range(COUNT):
        found = load(cache, number)
        assert (found is None) == (number not in model)
        if found is not None:
            np.testing.assert_array_equal(found[0], model[number])
    assert cache.images == len(model)


@both
def test_arguments_that_cannot_be(kind, tmp_path):
    cache = make(kind, tmp_path)
    for number in (-1, COUNT, 1 << 40):
        with pytest.raises(IndexError):
            store(cache, number, picture(0))
        with pytest.raises(IndexError):
            load(cache, number)
    assert make(kind, tmp_path / "none" if kind == "memory" else tmp_path, COUNT).images == 0


@both
def test_a_cache_of_nothing(kind, tmp_path):
    cache = make(kind, tmp_path, count=0, capacity=0)
    assert cache.images == cache.used == 0


def test_room_that_is_not_used_costs_nothing(tmp_path):
    huge = 1 << 38
    memory = MemoryImageCache(COUNT, 3, huge)
    assert fill(memory) == check(memory) == list(range(COUNT))
    cache = file_cache(tmp_path / "images.cache", capacity=huge)
    assert fill(cache) == check(cache) == list(range(COUNT))
    status = os.stat(tmp_path / "images.cache")
    assert status.st_size > huge and status.st_blocks * 512 < 8 * MIB


def test_more_memory_than_there_can_be_is_refused_with_a_reason():
    with pytest.raises(MemoryError, match="choose a smaller cache_size"):
        [MemoryImageCache(COUNT, 3, LARGEST_CAPACITY) for _ in range(5)]


def test_memory_is_given_back_with_the_cache():
    def resident():
        return int(re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())[1])

    before = resident()
    cache = MemoryImageCache(64, 3, 64 * MIB)
    pixels = np.ones((512, 512, 3), np.uint8)
    stored = sum(store(cache, n, pixels) for n in range(64))
    assert stored > 60 and resident() - before > 40_000
    del cache
    gc.collect()
    assert resident() - before < 20_000


# -- threads ---------------------------------------------------------------------------------------


@both
def test_threads_that_put_the_same_images(kind, tmp_path):
    cache = make(kind, tmp_path, count=300, capacity=4 * MIB)
    begin, failures = threading.Barrier(6), []

    def work(order):
        begin.wait()
        for number in order:
            store(cache, number, picture(number), source_of(number))
            found = load(cache, number)
            if found is not None and not np.array_equal(found[0], picture(number)):
                failures.append(number)

    orders = [np.random.default_rng(seed).permutation(300).tolist() for seed in range(6)]
    with ThreadPoolExecutor(len(orders)) as pool:
        list(pool.map(work, orders))
    assert not failures
    there = check(cache, range(300))
    # Of a file, one that was locked just then may be missing until it is put there again.
    if kind == "memory":
        assert len(there) == 300
    assert fill(cache, range(300)) == [n for n in range(300) if n not in there]
    assert check(cache, range(300)) == list(range(300))


# -- files, used again -----------------------------------------------------------------------------


def test_a_file_is_used_again(tmp_path):
    path = tmp_path / "images.cache"
    assert fill(file_cache(path), range(10)) == list(range(10))
    again = file_cache(path)
    assert check(again) == list(range(10)) and again.images == 10
    assert fill(again) == list(range(10, COUNT))
    assert check(file_cache(path)) == list(range(COUNT))


def test_two_caches_over_one_file_see_what_the_other_puts_there(tmp_path):
    first, second = (file_cache(tmp_path / "images.cache") for _ in range(2))
    fill(first, range(0, COUNT, 2))
    assert check(second) == list(range(0, COUNT, 2))
    assert fill(second) == list(range(1, COUNT, 2))
    assert check(first) == list(range(COUNT)) and first.used == second.used


def test_a_file_grows_with_a_larger_capacity_and_keeps_what_it_has(tmp_path):
    path = tmp_path / "images.cache"
    small = file_cache(path, capacity=20_000)
    there = fill(small)
    assert 0 < len(there) < COUNT
    large = file_cache(path, capacity=MIB)
    assert fill(large) == [n for n in range(COUNT) if n not in there]
    assert check(large) == list(range(COUNT))
    # What lies behind its mapping the first one neither reads nor puts there again.
    used = large.used
    assert set(there) <= set(check(small)) and fill(small) == [] and large.used == used
    assert check(file_cache(path, capacity=10)) == list(range(COUNT))
    assert fill(file_cache(path, capacity=10)) == []


def test_other_settings_are_refused_and_named(tmp_path):
    path = tmp_path / "images.cache"
    fill(file_cache(path))
    before = path.read_bytes()
    for arguments, message in (
        ({"settings": {**SETTINGS, "resize": "224"}}, "resize=256, but now resize=224: delete"),
        ({"settings": {"resize": "256"}}, "data=somewhere, but now data=None"),
        ({"settings": {**SETTINGS, "more": "1"}}, "more=None, but now more=1"),
        ({"count": COUNT + 1}, f"records={COUNT}, but now records={COUNT + 1}"),
        ({"channels": 1}, "channels=3, but now channels=1"),
    ):
        with pytest.raises(CacheFileError, match=re.escape(message)) as caught:
            file_cache(path, **arguments)
        assert caught.value.path == str(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"\0" * 64, b"labels that took a year", b"x" * 9000])
def test_a_file_of_something_else_is_left_alone(tmp_path, content):
    path = tmp_path / "precious"
    path.write_bytes(content)
    with pytest.raises(CacheFileError, match="not a cache of images"):
        file_cache(path)
    assert path.read_bytes() == content
    with pytest.raises(CacheFileError, match="must be a regular file"):
        file_cache(tmp_path)


def test_a_file_that_cannot_be_made(tmp_path):
    with pytest.raises(CacheFileError, match="No such file"):
        file_cache(tmp_path / "missing" / "images.cache")
    assert os.listdir(tmp_path) == []


def test_nothing_but_the_file_is_left(tmp_path):
    fill(file_cache(tmp_path / "images.cache"))
    assert os.listdir(tmp_path) == ["images.cache"]


def test_descriptors_are_closed(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        fill(file_cache(tmp_path / "images.cache"))
        with pytest.raises(CacheFileError):
            file_cache(tmp_path / "images.cache", channels=1)
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 1


# -- damage ----------------------------------------------------------------------------------------


def test_a_file_that_was_cut_off_anywhere_is_refused_or_right(tmp_path):
    path = tmp_path / "images.cache"
    fill(file_cache(path, capacity=40_000))
    whole = path.read_bytes()
    table, data = places(path)
    cuts = [
        *range(0, 400),
        *range(table - 3, table + 8 * COUNT, 61),
        *range(data - 9, len(whole), 997),
    ]
    outcomes = set()
    for cut in cuts:
        path.write_bytes(whole[:cut])
        try:
            cache = file_cache(path, capacity=40_000)
        except CacheFileError as error:
            outcomes.add(error.reason.split(":")[0])
            assert cut < data
            continue
        there = check(cache)
        outcomes.add(len(there))
        fill(cache)
        assert set(there) <= set(check(cache))
        del cache
    assert {"the file is not a cache of images", "the cache is damaged", 0} < outcomes
    assert len(outcomes) > 10


@settings(max_examples=60)
@given(
    where=st.sampled_from(["head", "table", "data"]),
    place=st.integers(0, 1 << 30),
    junk=st.binary(min_size=1, max_size=300),
)
def test_random_bytes_anywhere_never_become_pixels(tmp_path_factory, where, place, junk):
    path = tmp_path_factory.getbasetemp() / "damaged.cache"
    path.unlink(missing_ok=True)
    put = len(fill(file_cache(path, capacity=60_000)))
    content = bytearray(path.read_bytes())
    table, data = places(path)
    first, last = {"head": (0, 400), "table": (table, data), "data": (data, len(content))}[where]
    place = first + place % (last - first)
    junk = junk[: len(content) - place]
    content[place : place + len(junk)] = junk
    path.write_bytes(content)
    try:
        cache = file_cache(path, capacity=60_000)
    except CacheFileError:
        assert where == "head"
        return
    there = check(cache)
    assert len(there) >= put - 2 - len(junk) // 8 or where == "data"
    # What is missing is put there again where there is room, and what was there stays right.
    fill(cache)
    assert set(there) <= set(check(cache))
    assert set(there) <= set(check(file_cache(path, capacity=60_000)))


def test_images_in_one_place_are_told_apart(tmp_path):
    """Two words of the table that point to one image: it belongs to one record."""
    path = tmp_path / "images.cache"
    fill(file_cache(path), [5])
    table, _ = places(path)
    with open(path, "r+b") as file:
        file.seek(table + 8 * 5)
        word = file.read(8)
        for number in (4, 6):
            file.seek(table + 8 * number)
            file.write(word)
    cache = file_cache(path)
    assert check(cache) == [5]
    assert fill(cache, [4, 6]) == [4, 6] and check(cache) == [4, 5, 6]


@pytest.mark.parametrize("used", [0, 64, 1 << 40, 77])
def test_what_is_in_use_is_never_given_away_again(tmp_path, used):
    """The number of bytes in use is older than the table, as after a loss of power."""
    path = tmp_path / "images.cache"
    fill(file_cache(path), range(20))
    with open(path, "r+b") as file:
        file.seek(16)
        file.write(struct.pack("=Q", used))
    cache = file_cache(path)
    assert check(cache) == list(range(20))
    assert fill(cache) == list(range(20, COUNT)) and check(cache) == list(range(COUNT))
    assert check(file_cache(path)) == list(range(COUNT))


def test_an_image_of_an_older_file_in_the_same_blocks_is_not_taken_for_one(tmp_path):
    path, old = tmp_path / "images.cache", tmp_path / "old.cache"
    fill(file_cache(old))
    file_cache(path)
    table, data = places(path)
    content, old_content = bytearray(path.read_bytes()), old.read_bytes()
    content[table:] = old_content[table:]
    path.write_bytes(content)
    assert check(file_cache(path)) == []


# -- processes -------------------------------------------------------------------------------------

WRITER = """
import sys, itertools
sys.path.insert(0, {folder!r})
from test_image_cache import *
path, start, step, end = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
cache = FileImageCache(path, 2000, 3, 64 * MIB, SETTINGS)
print("open", flush=True)
for number in range(start, 2000, step):
    store(cache, number, picture(number), source_of(number))
print("done", flush=True)
if end == "forever":
    signal.pause()
"""


def writer(path, start, step, end="end"):
    program = WRITER.format(folder=str(Path(__file__).parent))
    return subprocess.Popen(
        [sys.executable, "-c", program, str(path), str(start), str(step), end],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_processes_that_fill_one_file_at_once(tmp_path):
    """Two halves, and all of it by a third one; the file is made by whoever comes first."""
    path = tmp_path / "images.cache"
    processes = [writer(path, 0, 2), writer(path, 1, 2), writer(path, 0, 1)]
    for process in processes:
        assert process.communicate(timeout=100)[0] == "open\ndone\n" and process.returncode == 0
    cache = FileImageCache(str(path), 2000, 3, 64 * MIB, SETTINGS)
    fill(cache, range(2000))  # those for which the lock was not to be had
    assert check(cache, range(2000)) == list(range(2000))
    assert os.listdir(tmp_path) == ["images.cache"]


@pytest.mark.parametrize("images", [1, 40, 300])
def test_a_process_that_is_killed_while_it_fills_the_file(tmp_path, images):
    path = tmp_path / "images.cache"
    process = writer(path, 0, 1, "forever")
    try:
        assert process.stdout.readline() == "open\n"
        cache = FileImageCache(str(path), 2000, 3, 64 * MIB, SETTINGS)
        while cache.images < images:
            assert process.poll() is None
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    for reader in (cache, FileImageCache(str(path), 2000, 3, 64 * MIB, SETTINGS)):
        assert len(check(reader, range(2000))) >= images
    fill(reader, range(2000))
    assert check(reader, range(2000)) == check(cache, range(2000)) == list(range(2000))


def test_a_lock_that_somebody_keeps_stops_nobody(tmp_path, monkeypatch):
    path = tmp_path / "images.cache"
    cache = file_cache(path)
    fill(cache, range(5))
    with open(path, "rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert fill(cache, range(8)) == [] and check(cache) == list(range(5))
        monkeypatch.setattr(cache_file, "LOCK_SECONDS", 0.05)
        with pytest.raises(CacheFileError, match="keeps the cache locked"):
            file_cache(path)
    assert fill(cache, range(8)) == [5, 6, 7]


def test_a_child_that_forgets_the_cache_takes_nothing_from_its_parent(tmp_path):
    caches = [MemoryImageCache(COUNT, 3, MIB), file_cache(tmp_path / "images.cache")]
    for cache in caches:
        fill(cache, range(20))
    child = os.fork()
    if child == 0:
        try:
            del cache, caches
            gc.collect()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    for cache in caches:
        assert fill(cache) == list(range(20, COUNT)) and check(cache) == list(range(COUNT))


# -- full disks ------------------------------------------------------------------------------------


def limited(limit, program, path):
    """Run a program in which no file can become longer than `limit` bytes."""
    head = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_image_cache import *\n"
        "import resource\n"
        f"path = {str(path)!r}\n"
        f"def limit(): resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", head + program], capture_output=True, text=True, timeout=100
    )
    assert run.returncode == 0, run.stderr
    return run


def test_no_room_for_the_file_is_an_error_at_the_start(tmp_path):
    path = tmp_path / "images.cache"
    program = (
        "limit()\ntry:\n    file_cache(path)\nexcept CacheFileError as error:\n    print(error)\n"
    )
    for limit in (0, 100, 5000, MIB):
        assert "cannot be made here: File too large" in limited(limit, program, path).stdout
    assert os.listdir(tmp_path) == []


def test_no_room_to_grow_is_an_error_at_the_start(tmp_path):
    path = tmp_path / "images.cache"
    fill(file_cache(path))
    program = (
        "limit()\ntry:\n    file_cache(path, capacity=8 * MIB)\n"
        "except CacheFileError as error:\n    print(error)\n"
    )
    assert "cannot grow" in limited(2 * MIB, program, path).stdout
    assert check(file_cache(path)) == list(range(COUNT))


def test_a_disk_that_becomes_full_ends_the_filling_and_nothing_else(tmp_path):
    path = tmp_path / "images.cache"
    fill(file_cache(path), range(5))
    _, data = places(path)
    program = (
        "cache = file_cache(path)\nlimit()\nlogging.basicConfig()\n"
        "stored = fill(cache)\nassert check(cache) == [*range(5), *stored]\n"
        "assert fill(cache) == []\nprint(len(stored))\n"
    )
    run = limited(data + 30_000, program, path)
    stored = int(run.stdout)
    assert 0 < stored < COUNT - 5
    assert (
        run.stderr.count("no more images are cached, because writing failed: File too large") == 1
    )
    again = file_cache(path)
    assert len(check(again)) == 5 + stored
    assert len(fill(again)) == COUNT - 5 - stored and check(again) == list(range(COUNT))


def test_the_warning_of_a_failed_write_is_logged_once(tmp_path, caplog):
    """A descriptor that cannot be written to stands for every error of the system."""
    path = tmp_path / "images.cache"
    cache = file_cache(path)
    fill(cache, range(3))
    numbers = map(int, os.listdir("/proc/self/fd"))
    links = {n: f"/proc/self/fd/{n}" for n in numbers if os.path.exists(f"/proc/self/fd/{n}")}
    mine = next(
        n
        for n, link in links.items()
        if os.path.samefile(link, path) and fcntl.fcntl(n, fcntl.F_GETFL) & os.O_RDWR
    )
    reading = os.open(path, os.O_RDONLY)
    os.dup2(reading, mine)
    os.close(reading)
    with caplog.at_level(logging.WARNING, "iterators"):
        assert fill(cache) == []
    assert len(caplog.records) == 1 and str(path) in caplog.text
    assert check(cache) == [0, 1, 2]
