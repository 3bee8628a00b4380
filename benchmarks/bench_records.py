"""Rates of reading, writing and indexing records, one JSON line for each case.

Run ``python benchmarks/bench_records.py [CASE ...] [--records N] [--repeat N]``.  Ratios are taken
against the plainest loop that does the same work, measured side by side in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from recordio import RecordReader, RecordWriter, verify
from recordio.frames.encoder import MAX_RECORD_LENGTH, encode
from recordio.frames.index_file import write_index

PAYLOAD = np.random.default_rng(0).bytes(1000)
BATCH = 256


def best_time(repeat, *works):
    """Shortest seconds of each work, taken in turns."""
    best = [float("inf")] * len(works)
    for _ in range(repeat):
        for number, work in enumerate(works):
            start = time.perf_counter()
            work()
            best[number] = min(best[number], time.perf_counter() - start)
    return best


def report(case, **values):
    rounded = {name: float(f"{value:.4g}") for name, value in values.items()}
    print(json.dumps({"case": case} | rounded), flush=True)


def record_file(folder, records):
    """A record file of 1 kB records with its index."""
    path, index = folder / "bench.rec", folder / "bench.idx"
    if not path.exists():
        with RecordWriter(path, index) as writer:
            for _ in range(records):
                writer.write(PAYLOAD)
    return path, index


def read_plainly(path):
    """Do the work of a reader in plain Python for every record."""
    with open(path, "rb") as file:
        while head := file.read(8):
            length = struct.unpack("<II", head)[1] & MAX_RECORD_LENGTH
            file.read(length)
            file.read(-length % 4)


def bench_iterate(folder, records, repeat):
    """``for record in RecordReader(path)``, without and with an index."""
    path, index = record_file(folder, records)

    def run(reader):
        for _ in reader:
            pass

    plain, alone, indexed = best_time(
        repeat,
        lambda: read_plainly(path),
        lambda: run(RecordReader(path)),
        lambda: run(RecordReader(path, index)),
    )
    report(
        "iterate",
        million_per_second=records / alone / 1e6,
        million_per_second_with_index=records / indexed / 1e6,
        ratio_to_plain_python=plain / alone,
    )


def bench_read_many(folder, records, repeat):
    """``read_many`` of random positions in batches, and one position at a time."""
    path, index = record_file(folder, records)
    reader = RecordReader(path, index)
    order = np.random.default_rng(1).permutation(records)

    def batches():
        for first in range(0, records, BATCH):
            reader.read_many(order[first : first + BATCH])

    def singles():
        for position in order.tolist():
            reader[position]

    many, one, all_at_once = best_time(repeat, batches, singles, lambda: reader.read_many(order))
    report(
        "read_many",
        million_per_second=records / many / 1e6,
        million_per_second_all_at_once=records / all_at_once / 1e6,
        million_per_second_one_at_a_time=records / one / 1e6,
    )


def bench_write(folder, records, repeat):
    """``RecordWriter.write`` against writing the same bytes to a file, both with fsync."""
    frame = encode(PAYLOAD)

    def ours():
        with RecordWriter(folder / "out.rec", folder / "out.idx") as writer:
            for _ in range(records):
                writer.write(PAYLOAD)

    def plain():
        with open(folder / "plain", "wb") as file:
            for _ in range(records):
                file.write(frame)
            file.flush()
            os.fsync(file.fileno())

    seconds, plainly = best_time(repeat, ours, plain)
    report(
        "write",
        million_per_second=records / seconds / 1e6,
        megabytes_per_second=records * len(frame) / seconds / 1e6,
        ratio_to_plain_file=plainly / seconds,
    )


def bench_verify(folder, records, repeat):
    """``verify`` of every byte, against reading the file."""
    path, index = record_file(folder, records)
    ours, plain = best_time(repeat, lambda: verify(path, index), path.read_bytes)
    report(
        "verify",
        gigabytes_per_second=path.stat().st_size / ours / 1e9,
        ratio_to_reading=plain / ours,
    )


OPEN_INDEX = """
import sys, time
from recordio import RecordReader
def peak():  # of this process alone; ru_maxrss begins with that of the process that started it
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
before, start = peak(), time.perf_counter()
reader = RecordReader(sys.argv[1], sys.argv[2])
opened, memory = time.perf_counter(), peak() - before
reader.position_of(int(sys.argv[3]))
print(opened - start, memory, time.perf_counter() - opened)
"""


def bench_open_index(folder, records, repeat):
    """Open an index of 10 million keys in a fresh process: time, and peak memory above the start.

    Needs Linux, which tells the peak of a process.
    """
    keys = 10_000_000
    path = folder / "sparse.rec"
    with open(path, "wb") as file:
        file.truncate(keys * 1008)
    for name, numbers in (
        ("ascending", np.arange(keys)),
        ("shuffled", np.random.default_rng(2).permutation(keys)),
    ):
        index = folder / f"{name}.idx"
        write_index(index, numbers, np.arange(keys) * 1008)
        runs = []
        for _ in range(repeat):
            done = subprocess.run(
                [sys.executable, "-c", OPEN_INDEX, str(path), str(index), "5"],
                capture_output=True,
                check=True,
            )
            runs.append([float(value) for value in done.stdout.split()])
        seconds, memory, lookup = np.min(runs, axis=0)
        report(
            f"open_index_{name}",
            seconds=seconds,
            peak_megabytes=memory * 1024 / 1e6,
            first_lookup_seconds=lookup,
            million_keys_per_second=keys / seconds / 1e6,
        )
        index.unlink()


CASES = {
    name.removeprefix("bench_"): function
    for name, function in list(globals().items())
    if name.startswith("bench_")
}


def main():
    """Run the chosen cases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    unknown = set(options.cases) - set(CASES)
    if unknown:
        parser.error(f"unknown case {sorted(unknown)[0]!r}; choose from {', '.join(CASES)}")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.cases or CASES:
            CASES[name](Path(folder), options.records, options.repeat)


if __name__ == "__main__":
    main()
