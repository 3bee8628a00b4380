"""Cases of the providers over arrays, MNIST and CSV files.

The references are plain NumPy calls that do the same work without epochs, shuffling, prefetching or
fresh memory, and `read_csv` for the streamed file.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
from harness import absolute, case, compare, timed

from iterators import ArrayDataProvider, CSVIter, MNISTIter
from recordio import read_csv, write_idx_array


def samples(provider, epochs=1):
    """Samples of one epoch or more."""
    return sum(batch.count_samples() for _ in range(epochs) for batch in provider)


def taken(array, order, out):
    """Rows of one epoch of plain `take` into a batch that is used again."""
    size = len(out)
    for start in range(0, len(array) - size + 1, size):
        np.take(array, order[start : start + size], axis=0, out=out, mode="clip")
    return len(array) // size * size


def shuffled(material, name, shape, batch_size):
    """Compare shuffled batches of a 1 GB array with `take`."""
    rng = np.random.default_rng(1)
    array = np.empty(shape, np.float32)
    array[:] = rng.standard_normal(shape[1], dtype=np.float32)
    out = np.empty((batch_size, shape[1]), np.float32)
    with ArrayDataProvider(array, batch_size=batch_size, shuffle=True) as provider:
        yield compare(
            f"shuffled batches of {batch_size} x {name}",
            "samples/s",
            partial(timed, partial(samples, provider)),
            partial(timed, partial(taken, array, rng.permutation(len(array)), out)),
            bar=0.6,
            rounds=material.rounds,
            detail="reference: numpy take(out=)",
        )


@case
def array_shuffled(material):
    """Shuffled batches of a 1 GB float32 array, rows of 12 KB and of 1 KB."""
    yield from shuffled(material, "3072", (81_380, 3072), 256)
    yield from shuffled(material, "250", (1_000_000, 250), 1024)


@case
def mnist(material):
    """Batches of 60,000 images of 28 x 28, each pixel divided by 256."""
    images = np.random.default_rng(1).integers(0, 256, (60_000, 28, 28), np.uint8)
    image, label = material.folder / "images", material.folder / "labels"
    write_idx_array(image, images)
    write_idx_array(label, np.zeros(len(images), np.uint8))
    out = np.empty((128, 28, 28), np.float32)

    epochs = 8  # processor time is counted in steps of 10 ms

    def multiplied():
        for _ in range(epochs):
            for start in range(0, len(images) - 127, 128):
                np.multiply(images[start : start + 128], np.float32(1 / 256), out=out)
        return epochs * (len(images) // 128 * 128)

    for shuffle in (True, False):
        with MNISTIter(image=image, label=label, shuffle=shuffle, silent=True) as provider:
            yield compare(
                f"MNIST batches of 128, {'shuffled' if shuffle else 'in order'}",
                "images/s",
                partial(timed, partial(samples, provider, epochs)),
                partial(timed, multiplied),
                bar=0.6,
                rounds=material.rounds,
                detail="reference: numpy multiply(out=) in order",
            )


def csv_file(material):
    """100,000 x 50 numbers."""
    path = material.folder / "floats.csv"
    if not path.exists():
        block = np.random.default_rng(1).standard_normal((1000, 50))
        text = "".join(",".join(f"{x:.6g}" for x in row) + "\n" for row in block)
        path.write_text(text * 100)
    return path


@case
def csv_streamed(material):
    """A streamed epoch of a CSV file against reading it into one array."""
    path = csv_file(material)

    settings = {"data_shape": (50,), "batch_size": 256, "threads": material.threads}

    def opened():
        with CSVIter(data_csv=path, **settings) as provider:
            return samples(provider)

    def read():
        return len(read_csv(path, (50,), threads=material.threads))

    with CSVIter(data_csv=path, **settings) as provider:
        yield compare(
            "CSV streamed, 100,000 x 50",
            "rows/s",
            partial(timed, lambda: samples(provider)),
            partial(timed, read),
            bar=0.85,
            rounds=material.rounds,
            detail="reference: read_csv",
        )
    yield compare(
        "the same, opened again",
        "rows/s",
        partial(timed, opened),
        partial(timed, read),
        bar=0.6,
        rounds=material.rounds,
        detail="the rows are counted when a provider is made",
    )


def peak_bytes():
    """Most memory that this process ever had in use."""
    with open("/proc/self/status") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def peak_growth(path, threads):
    """Print by how many bytes the most memory in use grows in two epochs."""
    before = peak_bytes()
    with CSVIter(data_csv=path, data_shape=(50,), batch_size=256, threads=threads) as provider:
        for _ in range(2):
            samples(provider)
    print(peak_bytes() - before)


@case
def csv_memory(material):
    """Growth of the memory in use while a CSV file is streamed."""
    program = "import sys; from array_cases import peak_growth as measure; " + (
        f"measure(sys.argv[1], {material.threads})"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program, str(csv_file(material))],
        cwd=Path(__file__).parent,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    yield absolute("memory of streaming CSV", "MiB", [int(printed) / 2**20], bar=64, at_least=False)
