"""Costs that grow with the number of records and of threads: ``python benchmarks/growth.py``.

Synthetic record files of the smallest images there are, from a thousand records to ten millions,
each measured in a process of its own; and what a batch costs the one thread that takes it, against
what it costs the decoding threads.  ``--docs FOLDER`` renews the tables of `benchmarks.md` there.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import report
from harness import markdown_table, number
from image_cases import resident_bytes
from material import NEARBY_PHOTOS, Material
from packs import Packs
from peers.jobs import JOBS

from iterators import ImageRecordIter
from iterators.core.order import ShuffledOrder
from recordio import build_index
from recordio.frames.head import FRAMED_HEADER, HEAD, MAGIC_WORD

BATCH = 128
REPEATS = 5
#: A pixel as a portable pixmap: the smallest image that is decoded like any other.
IMAGE = b"P6 1 1 255\n\x10\x20\x30"
RECORD = np.dtype(
    [
        *FRAMED_HEADER.descr,
        ("image", f"V{len(IMAGE)}"),
        ("padding", f"V{-len(IMAGE) % 4}"),
    ]
)
THREADS = (1, 2, 4, 8, 16)
#: What is measured, in the unit of the table.
COSTS = {
    "build the index": ("ms", 1e3),
    "memory of an open provider": ("MB", 1e-6),
    "open": ("ms", 1e3),
    "first batch": ("ms", 1e3),
    "next epoch, to its first batch": ("ms", 1e3),
    "resume half-way, to the batch": ("ms", 1e3),
    "shuffled order of one batch": ("us", 1e6),
    "open without an index": ("ms", 1e3),
}
#: Differences that mean nothing.
NOISE = {"ms": 5.0, "us": 5.0, "MB": 1.0}
JOBS_ON_PAPER = ("random_resized_crop", "resize_crop", "faces")


def write_records(path, count):
    """A record file of `count` records, laid out by NumPy."""
    with open(path, "wb") as file:
        for start in range(0, count, 1_000_000):
            part = np.zeros(min(1_000_000, count - start), RECORD)
            payload = FRAMED_HEADER.itemsize - HEAD.itemsize + len(IMAGE)
            part["magic"], part["lrec"] = MAGIC_WORD, payload
            part["id"] = np.arange(start, start + len(part))
            part["image"] = np.void(IMAGE)
            part.tofile(file)


def seconds(work):
    """Elapsed seconds of a call, and what it returns."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def opened_costs(count, settings):
    """Measure the costs of an open provider, in the order of `COSTS`."""
    opening, provider = seconds(lambda: ImageRecordIter(**settings))
    with provider:
        first, _ = seconds(provider.next)
        state = {**provider.state_dict(), "done": count // 2}
        advancing, _ = seconds(lambda: (provider.reset(), provider.next()))
        resuming, _ = seconds(lambda: (provider.load_state_dict(state), provider.next()))
    order, places = ShuffledOrder(count), np.arange(BATCH)
    ordering, _ = seconds(lambda: [order.at(epoch, places) for epoch in range(100)])
    return opening, first, advancing, resuming, ordering / 100


def measure_records(records, index):
    """Costs of a record file in seconds and bytes; medians of what can be done more than once."""
    building, _ = seconds(lambda: build_index(records, index))
    settings = {"path_imgrec": records, "data_shape": (3, 4, 4), "batch_size": BATCH}
    settings.update(shuffle=True, verbose=False, preprocess_threads=2)
    with_index = {"path_imgidx": index, **settings}
    before = resident_bytes()
    with ImageRecordIter(**with_index) as provider:  # the first one also loads modules
        provider.next()
        gc.collect()
        memory = resident_bytes() - before
        count = provider.num_samples
    found = [opened_costs(count, with_index) for _ in range(REPEATS)]
    scanning, _ = seconds(lambda: ImageRecordIter(**settings).close())
    medians = map(statistics.median, zip(*found, strict=True))
    return dict(zip(COSTS, (building, memory, *medians, scanning), strict=True))


def growth_table(folder, largest):
    """Markdown: a line for each cost, a column for each number of records, and what fits them."""
    counts = [10**power for power in range(3, 9) if 10**power <= largest]
    measured = []
    for count in counts:
        print(f"{count} records", file=sys.stderr)
        records, index = folder / "growth.rec", folder / "growth.idx"
        write_records(records, count)
        command = [sys.executable, __file__, "--one", str(records), str(index)]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        measured.append(json.loads(printed))
        records.unlink()
        index.unlink()
    lines = []
    for name, (unit, scale) in COSTS.items():
        values = [scale * costs[name] for costs in measured]
        lines.append((f"{name}, {unit}", *map(number, values), constants(counts, values, unit)))
    return markdown_table(["Records", *(f"{count:,}" for count in counts), ""], *lines)


def constants(counts, values, unit):
    """In words: flat, or the a and b of a + b n.

    The fit weighs relative deviations.  Flat is what ten million records change by less than half
    of what one costs, or by less than the clock and the allocator tell apart.
    """
    weights = 1 / np.maximum(values, 1e-9)
    slope, constant = np.polyfit(counts, values, 1, w=weights)
    if slope * counts[-1] < max(0.5 * constant, NOISE[unit]):
        return f"flat, {number(statistics.median(values))} {unit}"
    small, factor = {"ms": ("ns", 1e6), "us": ("ps", 1e6), "MB": ("bytes", 1e6)}[unit]
    per_record = f"{number(slope * factor)} {small} a record"
    return f"linear, {number(max(constant, 0))} {unit} + {per_record}"


def serial_share(job, files, seconds_each):
    """Processor time an image costs the thread that takes batches, and all the others."""
    parameters = job.record_iter_parameters()
    with ImageRecordIter(
        path_imgrec=files["records"], path_imgidx=files["index"], verbose=False, **parameters
    ) as provider:
        shares = []
        for _ in range(REPEATS):
            images, start = 0, time.perf_counter()
            own, everybody = time.thread_time(), time.process_time()
            while time.perf_counter() - start < seconds_each:
                try:
                    images += provider.next().count_samples()
                except StopIteration:
                    provider.reset()
            own, everybody = time.thread_time() - own, time.process_time() - everybody
            shares.append((own / images, (everybody - own) / images))
    return [statistics.median(column) for column in zip(*shares, strict=True)]


def threads_table(packs, seconds_each):
    """Markdown: speed-ups by Amdahl's law, which are computed and not measured."""
    lines = []
    for name in JOBS_ON_PAPER:
        job = JOBS[name]
        serial, parallel = serial_share(job, getattr(packs, job.pack), seconds_each)
        share = serial / (serial + parallel)
        lines.append(
            (
                f"`{name}`",
                f"{1e6 * serial:.2f}",
                f"{1e6 * parallel:.0f}",
                f"{100 * share:.2f} %",
                *(f"{1 / (share + (1 - share) / threads):.2f}" for threads in THREADS),
                number(1 / serial),
            )
        )
    head = ["Job", "serial, us", "parallel, us", "serial share"]
    head += [f"{threads} threads" if threads > 1 else "1 thread" for threads in THREADS]
    return markdown_table([*head, "images/s at most"], *lines)


def main(arguments=None):
    """Measure, print, and renew the page if asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--largest", type=int, default=10**7, help="number of records")
    parser.add_argument("--photos", type=Path, help="folder of JPEG photographs")
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement of threads")
    parser.add_argument("--docs", type=Path, help="folder of benchmarks.md")
    options = parser.parse_args(arguments)
    photos = options.photos or (NEARBY_PHOTOS if NEARBY_PHOTOS.is_dir() else None)
    with tempfile.TemporaryDirectory(prefix="recordio-growth-") as folder:
        growth = growth_table(Path(folder), options.largest)
        print(growth, flush=True)
        material = Material(photos, folder, threads=2, rounds=1, seconds=options.seconds)
        threads = threads_table(Packs(material, photos=2_000, faces=20_000), options.seconds)
        print("\n" + threads)
    if options.docs:
        report.put(options.docs / "benchmarks.md", "growth", growth)
        report.put(options.docs / "benchmarks.md", "threads", threads)
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure_records(*sys.argv[2:])))
    else:
        sys.exit(main())
