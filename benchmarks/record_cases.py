"""Cases of record files: reading records, and opening a large index."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
from harness import absolute, best_of, case, timed

from recordio import RecordReader

OPEN_INDEX = """
import json, sys, time
from recordio import RecordReader
def peak():  # not ru_maxrss, which a process inherits from the one that started it
    with open("/proc/self/status") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
before = peak()
start = time.perf_counter()
reader = RecordReader(sys.argv[1], sys.argv[2])
count = len(reader)
print(json.dumps({"seconds": time.perf_counter() - start, "bytes": peak() - before, "keys": count}))
"""


@case
def iterate_records(material):
    """One record of 1 kB at a time: ``for record in RecordReader(...)``."""
    path = material.kilobyte_records

    def run():
        count = 0
        with RecordReader(path) as reader:
            for _record in reader:
                count += 1
        return count

    rates = best_of(material.rounds, lambda: timed(run).elapsed)
    yield absolute("iterate over 1 kB records", "records/s", rates, bar=2e6)


@case
def read_many(material):
    """Records of 1 kB in random order, 4,096 positions a call."""
    path = material.kilobyte_records
    with RecordReader(path, path.with_suffix(".idx")) as reader:
        order = np.random.default_rng(2).permutation(len(reader))
        chunks = [order[start : start + 4096] for start in range(0, len(order), 4096)]

        def run():
            return sum(len(reader.read_many(chunk)) for chunk in chunks)

        rates = best_of(material.rounds, lambda: timed(run).elapsed)
    yield absolute("read_many of 1 kB records", "records/s", rates, bar=5e6)


def open_index_once(material, keys):
    """Seconds, bytes and keys of opening an index in a process of its own."""
    records, index = material.index_of(keys)
    printed = subprocess.run(
        [sys.executable, "-c", OPEN_INDEX, str(records), str(index)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    opened = json.loads(printed)
    assert opened["keys"] == keys
    return opened


@case
def open_index(material):
    """Open an index of 10 million keys in a new process: time, memory, growth with the keys."""
    small, large = 2_500_000, 10_000_000
    few = [open_index_once(material, small) for _ in range(material.rounds)]
    many = [open_index_once(material, large) for _ in range(material.rounds)]
    seconds = [opened["seconds"] for opened in many]
    growth = min(seconds) / min(opened["seconds"] for opened in few)
    yield absolute(
        "open an index of 10 M keys",
        "seconds",
        seconds,
        bar=1.0,
        at_least=False,
        detail=f"{growth:.1f} x the time of a quarter of the keys",
    )
    peaks = [opened["bytes"] / 1e6 for opened in many]
    yield absolute("memory for it, at most", "MB", peaks, bar=200, at_least=False)
