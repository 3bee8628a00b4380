"""Ends in mid-epoch: whatever way a program ends, it ends, at once and with its own exit code."""

import signal
import sys

import pytest

BEGINNING = """
import atexit, os, signal, sys, threading
import numpy as np
from iterators import ImageRecordIter, MultithreadIterator, NDArrayIter, PrefetchingIter
import recordio
ending, kind = sys.argv[2:]
def make():
    if kind == "rows":
        return PrefetchingIter(NDArrayIter(np.zeros((400, 3)), batch_size=4), prefetch_buffer=3)
    if kind == "loop":
        return MultithreadIterator(list(range(1000)), 5, n_threads=3)
    if kind == "csv":
        path = os.path.join(os.path.dirname(sys.argv[1]), "rows.csv")
        with open(path, "w") as file:
            file.write("1,2,3\\n" * 50_000)
        return iter(recordio.CSVReader(path, threads=3, chunk_bytes=1000))
    keywords = {"cache": "ram", "cache_size": 1 << 20} if kind == "cached" else {}
    return ImageRecordIter(path_imgrec=sys.argv[1], data_shape=(3, 250, 250), resize=400,
                           batch_size=16, preprocess_threads=4, verbose=False, **keywords)
shared = make()
def take():
    try:
        return shared.next() if hasattr(shared, "next") else next(shared)
    except StopIteration:
        getattr(shared, "reset", lambda: None)()
held = [take()]
"""

ENDINGS = {
    "_exit": ("os._exit(3)", 3),
    "exit": ("sys.exit(4)", 4),
    "error": ("raise KeyError('end')", 1),
    "end": ("", 0),
    "signal": ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    "atexit": ("atexit.register(take)", 0),
    "daemon": (
        "started = threading.Event()\n"
        "def work():\n"
        "    while True:\n"
        "        take()\n"
        "        started.set()\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        "started.wait()",
        0,
    ),
    "thread": (
        "def work():\n"
        "    for _ in range(5):\n"
        "        take()\n"
        "    sys.exit(9)\n"
        "threading.Thread(target=work).start()",
        0,
    ),
    "cycle": ("held.append(held)\nheld.append(shared)\nshared_too = shared\ndel shared", 0),
    "modules": ("sys.modules.clear()", 0),
}


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("kind", ["images", "cached", "rows", "loop", "csv"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_program_ends(script, tmp_path, pack, ending, kind):
    program, code = ENDINGS[ending]
    source = tmp_path / pack.name
    source.write_bytes(pack.read_bytes())
    done = script(BEGINNING + program, source, ending, kind, code=code, timeout=60)
    if ending == "error":
        assert done.stderr.rstrip().endswith("KeyError: 'end'")
    # A thread that goes on reading at the end is told that the provider is closed.
    elif ending not in ("modules", "daemon"):
        assert done.stderr == ""
