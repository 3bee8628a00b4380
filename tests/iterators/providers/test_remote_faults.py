"""What servers and networks do to an epoch: the same batches, or an error that says why.

The cache is smaller than the pack, so that every epoch goes on asking.
"""

import hashlib
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import traceback
from pathlib import Path

import numpy as np
import pytest
from range_server import RangeServer

import recordio
from iterators import ImageRecordIter
from iterators.providers.fetched_ahead import FetchedAhead
from iterators.testing import encode, noise, write_pack
from recordio.bytes.remote.block_table import BLOCK, HAS_LOCKS
from recordio.bytes.remote.mirror import Mirror
from recordio.errors import RemoteChangedError, RemoteFileError

pytestmark = pytest.mark.skipif(not HAS_LOCKS, reason="mirrors are bounded on Linux only")

#: Where the package that is tested lies, for other processes.
PACKAGES = str(Path(recordio.__file__).parents[1])
COUNT, BATCH = 80, 4
SETTINGS = {
    "data_shape": (3, 24, 24), "batch_size": BATCH, "shuffle": True, "seed": 3, "rand_crop": True,
    "preprocess_threads": 2, "verbose": False, "shuffle_chunk_size": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """80 records of 100 kB in 31 blocks."""
    images = [encode(noise(30, 34, seed=key), ".jpg") for key in range(COUNT)]
    path = tmp_path_factory.mktemp("pack") / "a.rec"
    return write_pack(path, [jpeg.ljust(100_000, b"\0") for jpeg in images], lambda key: key % 7)


@pytest.fixture(scope="module")
def wanted(pack):
    """Three epochs of the local file."""
    with ImageRecordIter(path_imgrec=pack, **SETTINGS) as it:
        return [batches(it) for _ in range(3)]


@pytest.fixture(params=["obstore", "fsspec"])
def library(request):
    pytest.importorskip("obstore" if request.param == "obstore" else "aiohttp")
    return request.param


@pytest.fixture
def server(pack):
    server = RangeServer()
    for file in (pack, pack.with_suffix(".idx")):
        server.objects[file.name] = file.read_bytes()
    yield server
    server.stop()


@pytest.fixture
def provider(server, tmp_path, library):
    """Makes providers of the pack on the server."""

    def make(timeout=30, query="", **keywords):
        return ImageRecordIter(
            path_imgrec=f"{server.url}/a.rec{query}", remote_cache=tmp_path / "mirrors",
            remote_timeout=timeout, remote_options={"library": library},
            **{"remote_cache_size": 10 * BLOCK, **SETTINGS, **keywords},
        )  # fmt: skip

    return make


def content(batch):
    return batch.data[0].tobytes(), batch.label[0].tobytes(), batch.index.tolist(), batch.pad


def batches(provider):
    return [content(batch) for batch in provider]


def rest(provider):
    """What is left of the epoch, however often a short time-out ends on a busy machine.

    A loop would begin the next epoch.
    """
    found = []
    while True:
        try:
            found.append(content(provider.next()))
        except RemoteFileError:
            continue
        except StopIteration:
            return found


def test_one_request_in_a_hundred_fails(server, provider, wanted):
    server.faults.extend((["ok"] * 20 + ["503"] + ["ok"] * 79) * 100)
    with provider() as it:
        assert [batches(it) for _ in range(3)] == wanted
        assert it.stats()["remote_retries"] > 0


def test_a_server_that_is_started_again(server, provider, wanted, monkeypatch):
    """It ends within an epoch and answers again when a request has failed."""
    failed = threading.Event()
    counted = Mirror._note_failure
    monkeypatch.setattr(Mirror, "_note_failure", lambda *a: (counted(*a), failed.set()))
    with provider() as it:
        begun = [content(it.next()) for _ in range(3)]
        server.stop()
        starter = threading.Thread(target=lambda: (failed.wait(60), server.start()))
        starter.start()
        assert begun + rest(it) == wanted[0]
        assert batches(it) == wanted[1]
        starter.join()
        assert failed.is_set() and it.stats()["remote_retries"] > 0


def strike(server, fault):
    """Have every request fail in one way from now on; what makes the server work again."""
    if fault == "gone":
        server.stop()
        return server.start
    if fault == "vanished":
        kept = dict(server.objects)
        server.objects.clear()
        return lambda: server.objects.update(kept)
    server.slow_seconds = 600
    server.faults.extend([fault] * 100_000)
    return server.faults.clear


@pytest.mark.parametrize("fault", ["503", "403", "reset", "short", "slow", "gone", "vanished"])
def test_what_lasts_is_an_error_and_the_epoch_goes_on_at_that_batch(
    server, provider, pack, wanted, fault, impatient
):
    with provider(timeout=3) as it:  # for what was asked for before the fault, too
        assert content(it.next()) == wanted[0][0]
        mend = strike(server, fault)
        delivered = 1
        with impatient(0.5), pytest.raises(RemoteFileError) as caught:
            while True:
                assert content(it.next()) == wanted[0][delivered]
                delivered += 1
        message, state = str(caught.value), it.state_dict()
        assert message.startswith(f"{server.url}/a.rec, offset {caught.value.offset}: bytes ")
        assert "(remote_timeout): " in message and not isinstance(caught.value, RemoteChangedError)
        assert state["done"] == delivered * BATCH < COUNT
        mend()
        assert rest(it) == wanted[0][delivered:]
        it.reset()
        assert rest(it) == wanted[1] and not it.skipped
    for again in (provider(), ImageRecordIter(path_imgrec=pack, **SETTINGS)):
        with again as it:
            it.load_state_dict(state)
            assert rest(it) == wanted[0][delivered:]


@pytest.mark.parametrize("fault", ["503", "403", "reset", "short"])
def test_what_passes_changes_nothing(server, provider, wanted, fault):
    server.faults.extend((["ok"] * 3 + [fault]) * 100)
    with provider() as it:
        assert batches(it) == wanted[0] and batches(it) == wanted[1]


def test_names_that_no_server_has(library, tmp_path):
    """The name is too long to be asked for; a resolver says that there is no such server."""
    url = f"http://{'a' * 64}.invalid/a.rec"
    options = {"remote_cache": tmp_path, "remote_options": {"library": library}}
    with pytest.raises(RemoteFileError, match=r"a.rec: the object cannot be opened") as caught:
        ImageRecordIter(path_imgrec=url, remote_timeout=0.3, **options, **SETTINGS)
    assert str(caught.value).startswith(url)


def test_a_server_that_fails_while_a_bad_record_is_replaced(provider, server, pack, monkeypatch):
    """The batch is neither left out nor filled with something else."""
    data = bytearray(server.objects["a.rec"])
    with recordio.RecordReader(pack) as reader:
        data[int(reader.offsets[7])] ^= 1
    server.objects["a.rec"] = bytes(data)
    with provider(on_error="skip") as it:
        expected = rest(it)
        assert len(it.skipped) == 1
    failures = [RemoteFileError("a server that is not there", path="x")] * 2
    retry = FetchedAhead.retry

    def failing(*arguments):
        if failures:
            raise failures.pop()
        return retry(*arguments)

    monkeypatch.setattr(FetchedAhead, "retry", failing)
    found = []
    with provider(on_error="skip") as it:
        while len(found) < len(expected):
            try:
                found.append(content(it.next()))
            except RemoteFileError:
                assert it.state_dict()["done"] == len(found) * BATCH
        assert not failures and len(it.skipped) == 1
    assert found == expected


def test_a_record_that_the_server_does_not_give_is_not_skipped(provider, monkeypatch):
    with provider(on_error="skip") as it:
        expected = rest(it)
    failures = [[(3, RemoteFileError("a server that is not there", path="x"))], []]
    collect = FetchedAhead.collect

    def failing(engine):
        *arrays, failed = collect(engine)
        return *arrays, [*failed, *(failures.pop() if failures else [])]

    monkeypatch.setattr(FetchedAhead, "collect", failing)
    with provider(on_error="skip") as it:
        found = [content(it.next())]
        with pytest.raises(RemoteFileError):
            it.next()
        assert found + rest(it) == expected
        assert not failures and not it.skipped


SCRIPT = textwrap.dedent("""
    import sys
    from iterators import ImageRecordIter
    url, cache, library = sys.argv[1:]
    provider = ImageRecordIter(
        path_imgrec=url, data_shape=(3, 24, 24), batch_size=4, verbose=False, remote_cache=cache,
        remote_options={"library": library},
    )
    print("ready", flush=True)
    sys.stdin.readline()
    provider.next()
""")


def test_ctrl_c_ends_a_process_that_waits(server, library, tmp_path):
    """Answers would take ten minutes; the process ends before the first of them."""
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, f"{server.url}/a.rec", str(tmp_path), library],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": PACKAGES},
    ) as child:  # fmt: skip
        assert child.stdout.readline() == "ready\n"
        server.latency = 600
        asked = len(server.requests)
        child.stdin.write("\n")
        child.stdin.flush()
        while len(server.requests) == asked and child.poll() is None:
            pass
        child.send_signal(signal.SIGINT)
        errors = child.communicate(timeout=60)[1]
    assert errors.rstrip().endswith("KeyboardInterrupt") and child.returncode == -signal.SIGINT


def test_credentials_are_nowhere_to_be_seen(server, provider, tmp_path, caplog, impatient):
    secret, ours = "hunter2-hunter2", ("recordio", "iterators")
    with caplog.at_level(logging.DEBUG, "recordio"), caplog.at_level(logging.DEBUG, "iterators"):
        with provider(timeout=3, query=f"?X-Amz-Signature={secret}", verbose=True) as it:
            seen = [repr(it), str(it.state_dict()), repr(it.packs), it.path_imgrec]
            it.next()
            server.faults.extend(["403"] * 100_000)
            with impatient(0.3), pytest.raises(RemoteFileError) as caught:
                batches(it)
            seen += traceback.format_exception(caught.value)
            seen.append(str(it.stats()))
    seen += [record.getMessage() for record in caplog.records if record.name in ours]
    assert secret not in "".join(seen)
    for path in (tmp_path / "mirrors").rglob("*"):
        assert secret not in path.name
        assert not path.is_file() or secret.encode() not in path.read_bytes()


EPOCH = textwrap.dedent("""
    import hashlib, sys
    from iterators import ImageRecordIter
    url, cache, library, settings = sys.argv[1:]
    provider = ImageRecordIter(
        path_imgrec=url, remote_cache=cache, remote_options={"library": library}, **eval(settings)
    )
    print("open", flush=True)
    sys.stdin.readline()
    digest = hashlib.sha256()
    for batch in provider:
        digest.update(batch.data[0].tobytes() + batch.label[0].tobytes() + batch.index.tobytes())
    print(digest.hexdigest(), int(provider.stats()["remote_requests"]), flush=True)
""")


@pytest.fixture
def process(server, tmp_path, library):
    """Starts processes that run an epoch when a line comes; they share one folder of mirrors."""
    children = []

    def start():
        arguments = [f"{server.url}/a.rec", str(tmp_path / "mirrors"), library, repr(SETTINGS)]
        child = subprocess.Popen(
            [sys.executable, "-c", EPOCH, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": PACKAGES},
        )  # fmt: skip
        children.append(child)
        assert child.stdout.readline() == "open\n"
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()


@pytest.fixture(scope="module")
def digest(wanted):
    found = hashlib.sha256()
    for data, label, index, _ in wanted[0]:
        found.update(data + label + np.array(index, np.uint64).tobytes())
    return found.hexdigest()


def go(child):
    child.stdin.write("\n")
    child.stdin.flush()


def blocks_asked_for(server):
    """How often each block was asked for."""
    counts = np.zeros(-(-len(server.objects["a.rec"]) // BLOCK), int)
    for begin, end in server.ranges("a.rec"):
        counts[begin // BLOCK : -(-end // BLOCK)] += 1
    return counts


def test_two_processes_share_a_mirror(server, process, digest):
    server.latency = 0.02
    children = [process() for _ in range(2)]
    for child in children:
        go(child)
    results = [child.communicate()[0].split() for child in children]
    assert [found for found, _ in results] == [digest] * 2
    counts = blocks_asked_for(server)
    assert counts.min() >= 1 and counts.sum() <= 1.25 * len(counts)
    assert sum(int(requests) for _, requests in results) <= len(server.ranges("a.rec"))


def test_of_two_processes_one_is_killed_and_started_again(server, process, digest):
    server.latency = 0.05
    killed, other = process(), process()
    before = len(server.ranges("a.rec"))
    go(killed)
    go(other)
    while len(server.ranges("a.rec")) < before + 5:
        pass
    killed.kill()
    again = process()
    go(again)
    assert other.communicate()[0].split()[0] == digest
    assert again.communicate()[0].split()[0] == digest
    assert blocks_asked_for(server).sum() <= 2.5 * len(blocks_asked_for(server))
    last = process()
    asked = len(server.requests)
    go(last)
    assert last.communicate()[0].split()[0] == digest and len(server.requests) == asked


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs SIGSTOP")
def test_a_process_that_is_stopped_holds_nobody_up(server, process, provider, wanted):
    """What it was fetching is fetched by the others, after their remote_timeout."""
    stopped = process()
    before, server.latency = len(server.ranges("a.rec")), 600
    go(stopped)
    while len(server.ranges("a.rec")) == before:
        pass
    stopped.send_signal(signal.SIGSTOP)
    server.latency = 0.0
    with provider(timeout=1, remote_cache_size=None) as it:
        assert rest(it) == wanted[0]
