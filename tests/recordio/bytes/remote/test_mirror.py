"""Mirrors: sparse, shared, pinned to a version, bounded, and filled by requests that may fail."""

import errno
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import recordio
from recordio.bytes.remote import library
from recordio.bytes.remote.block_table import BLOCK, HAS_LOCKS
from recordio.bytes.remote.folder import open_mirror, open_mirrors
from recordio.bytes.remote.mirror import Mirror
from recordio.bytes.remote.settings import RemoteSettings
from recordio.errors import RemoteChangedError, RemoteFileError, RemoteMissingError

#: Where the package that is tested lies, for other processes.
PACKAGES = str(Path(recordio.__file__).parents[1])
DATA = np.random.default_rng(0).bytes(40 * BLOCK + 12345)

needs_locks = pytest.mark.skipif(not HAS_LOCKS, reason="mirrors are bounded on Linux only")


@pytest.fixture
def url(server):
    server.objects["a.rec"] = DATA
    return f"{server.url}/a.rec"


def used_bytes(mirror):
    return os.stat(mirror.path).st_blocks * 512


def test_only_what_is_held_is_fetched(server, url, settings):
    mirror = open_mirror(url, settings())
    with mirror.pin_bytes(5 * BLOCK + 7, 6 * BLOCK + 9):
        assert (
            bytes(mirror.view[5 * BLOCK + 7 : 6 * BLOCK + 9]) == DATA[5 * BLOCK + 7 : 6 * BLOCK + 9]
        )
    assert server.ranges("a.rec") == [(5 * BLOCK, 7 * BLOCK)]
    assert used_bytes(mirror) <= 2 * BLOCK
    with mirror.pin_bytes(5 * BLOCK, 5 * BLOCK + 1):
        pass
    assert len(server.ranges("a.rec")) == 1
    assert mirror.counters["requests"] == 1 and mirror.counters["bytes"] == 2 * BLOCK


def test_all_of_it_by_large_requests(server, url, settings):
    mirror = open_mirror(url, settings())
    came = []
    mirror.fetch_all(came.append)
    assert bytes(mirror.view) == DATA and sum(came) == len(DATA)
    assert len(server.ranges("a.rec")) == 2


def test_stripes(server, url, settings):
    mirror = open_mirror(url, settings())
    with mirror.pin(np.array([1, 9, 33]), stripe=8):
        pass
    blocks = sorted((begin // BLOCK, -(-end // BLOCK)) for begin, end in server.ranges("a.rec"))
    assert blocks == [(0, 8), (8, 16), (32, 40)]


def test_a_mirror_outlives_its_process(server, url, settings):
    mirror = open_mirror(url, settings())
    mirror.fetch_all()
    count = len(server.requests)
    path = mirror.path
    del mirror
    again = open_mirror(url, settings())
    assert again.path == path and again.complete and bytes(again.view) == DATA
    assert len(server.requests) == count


FAULTS = ["503", "403", "reset", "short", "elsewhere", "unsaid"]


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        (byte,) = file.read(1)
        file.seek(offset)
        file.write(bytes([byte ^ 1]))


def shorter(place):
    os.truncate(place / "data", len(DATA) // 2)


def longer(place):
    os.truncate(place / "data", len(DATA) + 1)


def vanished(place):
    os.remove(place / "data")


def empty(place):
    (place / "data").write_bytes(b"")


def other_bytes(place):
    (place / "data").write_bytes(DATA[::-1])


def no_marks(place):
    os.remove(place / "blocks")


def noisy_marks(place):
    marks = place / "blocks"
    noise = np.random.default_rng(1).bytes(marks.stat().st_size - 64)
    marks.write_bytes(marks.read_bytes()[:64] + noise)


DAMAGES = [shorter, longer, vanished, empty, other_bytes, no_marks, noisy_marks]


@pytest.mark.parametrize("size", [None, pytest.param(8 * BLOCK, marks=needs_locks)])
@pytest.mark.parametrize("damage", DAMAGES)
def test_what_happened_to_a_mirror_between_runs_is_noticed(url, settings, damage, size):
    mirror = open_mirror(url, settings())
    mirror.fetch_all()
    place = Path(mirror.path).parent
    del mirror
    damage(place)
    mirror = open_mirror(url, settings(remote_cache_size=size))
    for block in range(mirror.table.count):
        begin = block * BLOCK
        with mirror.pin(np.array([block])):
            assert mirror.view[begin : begin + BLOCK] == DATA[begin : begin + BLOCK]


@pytest.mark.parametrize("all_of_it", [False, True])
def test_single_bytes_that_changed_are_noticed_and_their_blocks_fetched_again(
    server, url, settings, caplog, all_of_it
):
    mirror = open_mirror(url, settings())
    mirror.fetch_all()
    path = mirror.path
    del mirror
    for offset in (0, 7 * BLOCK - 1, len(DATA) - 1):
        flip(path, offset)
    server.requests.clear()
    mirror = open_mirror(url, settings())
    if all_of_it:
        mirror.fetch_all()
    else:
        with mirror.pin(np.arange(41)):
            pass
    assert bytes(mirror.view) == DATA
    blocks = sorted((begin // BLOCK, -(-end // BLOCK)) for begin, end in server.ranges("a.rec"))
    assert blocks == [(0, 1), (6, 7), (40, 41)]
    said = "\n".join(record.getMessage() for record in caplog.records)
    assert (
        f"{path}: " in said and "not as they were written" in said and "bytes 0 to 262143 " in said
    )
    server.requests.clear()
    del mirror
    mirror = open_mirror(url, settings())
    mirror.fetch_all()
    assert bytes(mirror.view) == DATA and not server.requests


def test_a_disk_that_cannot_read_a_block(server, url, settings, monkeypatch):
    open_mirror(url, settings()).fetch_all()
    read = os.pread

    def failing(descriptor, count, offset):
        if offset == 3 * BLOCK:
            raise OSError(errno.EIO, "Input/output error")
        return read(descriptor, count, offset)

    server.requests.clear()
    with monkeypatch.context() as patched:
        patched.setattr(os, "pread", failing)
        mirror = open_mirror(url, settings())
        mirror.fetch_all()
    assert bytes(mirror.view) == DATA
    assert server.ranges("a.rec") == [(3 * BLOCK, 4 * BLOCK)]


def test_blocks_are_compared_once(url, settings, monkeypatch):
    open_mirror(url, settings()).fetch_all()
    mirror, compared = open_mirror(url, settings()), []
    whole = Mirror._is_as_written
    monkeypatch.setattr(
        Mirror, "_is_as_written", lambda self, block: compared.append(block) or whole(self, block)
    )
    for _ in range(3):
        with mirror.pin(np.arange(5, 9)):
            pass
    assert compared == [5, 6, 7, 8]


def test_who_has_a_mirror_open_whose_file_vanished_goes_on(server, url, settings):
    """With marks of its own, which say nothing of the file that others fill."""
    child = start(url, settings)
    (data,) = Path(settings().folder).glob("*/data")
    data.unlink()
    mirror = open_mirror(url, settings())
    child.stdin.write("\n1\n")
    child.stdin.flush()
    child.communicate()
    assert not mirror.table.states.any()
    mirror.fetch_all()
    assert bytes(mirror.view) == DATA


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_tried_again(server, url, settings, fault):
    mirror = open_mirror(url, settings())
    server.faults.extend([fault] * 2)
    with mirror.pin_bytes(BLOCK, BLOCK + 10):
        assert mirror.view[BLOCK : 2 * BLOCK] == DATA[BLOCK : 2 * BLOCK]
    assert not server.faults


def test_bytes_that_trickle_in_are_given_up(server, url, settings, monkeypatch):
    monkeypatch.setattr(library, "REQUEST_SECONDS", 0.5)
    server.slow_seconds = 0.1
    mirror = open_mirror(url, settings())
    server.faults.append("trickle")
    with mirror.pin_bytes(0, 10):
        assert mirror.view[:10] == DATA[:10]
    assert mirror.counters["retries"] >= 1


def test_slow_answers_are_given_up(server, url, settings):
    server.slow_seconds = 600
    mirror = open_mirror(url, settings(remote_timeout=1))
    server.faults.append("slow")
    server.faults.extend(["503"] * 1000)
    with pytest.raises(RemoteFileError, match="remote_timeout"), mirror.pin_bytes(0, 10):
        pass


def test_what_fails_for_too_long_is_an_error_and_can_be_asked_for_again(
    server, url, settings, impatient
):
    mirror = open_mirror(url, settings())
    server.faults.extend(["503"] * 1000)
    with (
        impatient(0.3),
        pytest.raises(RemoteFileError) as caught,
        mirror.pin_bytes(BLOCK, BLOCK + 1),
    ):
        pass
    assert caught.value.path == url and caught.value.offset == BLOCK
    assert f"bytes {BLOCK} to {2 * BLOCK - 1}" in str(caught.value)
    server.faults.clear()
    with mirror.pin_bytes(BLOCK, BLOCK + 1):
        assert mirror.view[BLOCK] == DATA[BLOCK]


def test_a_server_that_comes_back(server, url, settings, monkeypatch):
    failed = threading.Event()
    counted = Mirror._note_failure
    monkeypatch.setattr(Mirror, "_note_failure", lambda *a: (counted(*a), failed.set()))
    mirror = open_mirror(url, settings())
    server.stop()
    pin = mirror.pin_bytes(0, 10)
    assert failed.wait(20)
    server.start()
    with pin:
        assert bytes(mirror.view[:10]) == DATA[:10]


def test_what_nobody_wants_any_more_can_be_asked_for_again(server, url, settings):
    mirror = open_mirror(url, settings())
    server.faults.extend(["503"] * 2)
    for _ in range(20):
        mirror.pin(np.arange(41)).release()
    with mirror.pin(np.arange(41)):
        assert bytes(mirror.view) == DATA


def test_a_changed_object(server, url, settings):
    mirror = open_mirror(url, settings())
    with mirror.pin_bytes(0, 1):
        pass
    server.objects["a.rec"] = other = DATA[:-1] + b"?"
    with pytest.raises(RemoteChangedError), mirror.pin_bytes(BLOCK, BLOCK + 1):
        pass
    assert mirror.view[0] == DATA[0]
    new = open_mirror(url, settings())
    assert new.path != mirror.path
    new.fetch_all()
    assert bytes(new.view) == other


def test_what_is_not_there(server, settings):
    with pytest.raises(RemoteMissingError, match=r"nothing.rec: there is no such object"):
        open_mirror(f"{server.url}/nothing.rec", settings())
    with pytest.raises(FileNotFoundError):
        open_mirror(f"{server.url}/nothing.rec", settings())


def test_empty_objects(server, settings):
    server.objects["a.rec"] = b""
    mirror = open_mirror(f"{server.url}/a.rec", settings())
    mirror.fetch_all()
    assert len(mirror.view) == 0 and mirror.complete


@needs_locks
def test_a_bounded_mirror_gives_up_what_nobody_holds(server, url, settings):
    mirror = open_mirror(url, settings(remote_cache_size=10 * BLOCK))
    assert not mirror.resident
    first = mirror.pin(np.arange(3))
    first.wait()
    for block in [*range(3, 41), *range(20)]:
        with mirror.pin(np.array([block])):
            begin = block * BLOCK
            assert mirror.view[begin : begin + BLOCK] == DATA[begin : begin + BLOCK]
        assert mirror.kept_bytes <= 10 * BLOCK
    assert mirror.view[: 3 * BLOCK] == DATA[: 3 * BLOCK]
    first.release()
    assert mirror.counters["evicted"] > 20
    assert used_bytes(mirror) <= 11 * BLOCK
    with pytest.raises(RemoteFileError, match="remote_cache_size"):
        mirror.fetch_all()


@needs_locks
def test_other_mirrors_make_room(server, url, settings):
    server.objects["b.rec"] = DATA[::-1]
    limit = len(DATA) + 8 * BLOCK
    mirror = open_mirror(url, settings(remote_cache_size=limit))
    mirror.fetch_all()
    place = Path(mirror.path).parent
    del mirror
    other = open_mirror(f"{server.url}/b.rec", settings(remote_cache_size=limit))
    other.folder._looked = -100
    other.fetch_all()
    assert bytes(other.view) == DATA[::-1] and not place.exists()


@needs_locks
def test_mirrors_that_are_used_together_stay_or_go_together(server, url, settings):
    server.objects["b.rec"] = DATA
    urls = [url, f"{server.url}/b.rec"]
    small = open_mirrors(urls, settings(remote_cache_size=len(DATA) + 1))
    assert [mirror.resident for mirror in small] == [False, False]
    del small
    large = open_mirrors(urls, settings(remote_cache_size=3 * len(DATA)))
    assert [mirror.resident for mirror in large] == [True, True]


SCRIPT = textwrap.dedent("""
    import sys
    import numpy as np
    from recordio.bytes.remote.folder import open_mirror
    from recordio.bytes.remote.settings import RemoteSettings
    url, cache, size, library = sys.argv[1:]
    mirror = open_mirror(url, RemoteSettings(cache, int(size), 20, {"library": library}))
    print("open", flush=True)
    sys.stdin.readline()
    order = np.random.default_rng(int(sys.stdin.readline())).permutation(mirror.table.count)
    check = 0
    for block in order.tolist():
        with mirror.pin(np.array([block])):
            check ^= hash(bytes(mirror.view[block << 18 : block + 1 << 18]))
    print(check, mirror.counters["requests"], flush=True)
""")


def start(url, settings, size=1 << 40):
    arguments = [url, settings().folder, str(size), settings().library]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": PACKAGES}
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    assert child.stdout.readline() == "open\n"
    return child


@pytest.mark.parametrize("size", [1 << 40, pytest.param(12 * BLOCK, marks=needs_locks)])
def test_processes_share_a_mirror(server, url, settings, size):
    children = [start(url, settings, size) for _ in range(2)]
    for seed, child in enumerate(children):
        child.stdin.write(f"\n{seed}\n")
        child.stdin.flush()
    results = [child.communicate()[0].split() for child in children]
    assert results[0][0] == results[1][0]
    if size == 1 << 40:
        assert sorted(set(server.ranges("a.rec"))) == sorted(server.ranges("a.rec"))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_process_leaves_nothing_that_looks_whole(server, url, settings):
    child = start(url, settings)
    server.latency = 0.01
    child.stdin.write("\n1\n")
    child.stdin.flush()
    while len(server.ranges("a.rec")) < 10:
        pass
    child.kill()
    child.communicate()
    server.latency = 0
    mirror = open_mirror(url, settings())
    begun = np.flatnonzero(mirror.table.states).tolist()
    assert begun
    for block in begun:
        assert mirror.view[block * BLOCK : (block + 1) * BLOCK] == DATA[block * BLOCK :][:BLOCK]
    mirror.fetch_all()
    assert bytes(mirror.view) == DATA


def test_interrupts_end_a_wait(server, url, settings, interrupt_after):
    mirror = open_mirror(url, settings())
    server.latency = 30
    pin = mirror.pin_bytes(0, 1)
    interrupt_after(0.1)
    with pytest.raises(KeyboardInterrupt), pin:
        pass


@pytest.mark.parametrize(
    "wrong",
    [{"remote_cache_size": 0}, {"remote_timeout": 0}, {"remote_options": {"library": "curl"}}],
)
def test_settings_are_checked(wrong):
    with pytest.raises(ValueError, match="remote_"):
        RemoteSettings(**wrong)
    with pytest.raises(TypeError, match="mapping"):
        RemoteSettings(remote_options=3)
