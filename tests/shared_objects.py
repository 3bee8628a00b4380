"""One object of every kind that threads may share, or a fork may copy, and what it holds.

Each function of `Makers` returns ``(make, take, wanted)``: `make` opens the object, `take` takes
one thing from it or raises StopIteration, and `wanted` is everything that there is to be taken.
"""

import csv
import io
from pathlib import Path

import numpy as np
from PIL import Image

import iterators
import recordio
from iterators.testing import write_pack

COUNT = 60
CSV_ROWS = 90


def encoded(image, kind, **settings):
    """A file of that kind; made without OpenCV, which free-threaded interpreters may not have."""
    file = io.BytesIO()
    Image.fromarray(image).save(file, kind, **settings)
    return file.getvalue()


def prepare(folder):
    """Write the files that the objects need."""
    folder = Path(folder)
    images = [np.full((24, 30, 3), number * 4, np.uint8) for number in range(COUNT)]
    kinds = ["jpeg" if number % 3 else "png" for number in range(COUNT)]
    write_pack(folder / "a.rec", map(encoded, images, kinds))
    labels = [[2, 5, 0, 0.1, 0.1, 0.9, 0.9]] * COUNT
    jpegs = [encoded(image, "jpeg") for image in images]
    write_pack(folder / "boxes.rec", jpegs, labels, index=False)
    with open(folder / "rows.csv", "w", newline="") as file:
        csv.writer(file).writerows([number, number + 0.5] for number in range(CSV_ROWS))
    (folder / "lines.txt").write_text("".join(f"line {number}\n" for number in range(COUNT)))


class Makers:
    """What there is, by name."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.pack = {"path_imgrec": self.folder / "a.rec", "path_imgidx": self.folder / "a.idx"}
        self.image = {
            "data_shape": (3, 16, 16),
            "batch_size": 6,
            "preprocess_threads": 2,
            "round_batch": False,
            "verbose": False,
        }

    @staticmethod
    def batches(make, wanted=COUNT):
        return make, lambda provider: tuple(provider.next().index.tolist()), _in_sixes(wanted)

    def reader(self):
        with recordio.RecordReader(self.folder / "a.rec", self.folder / "a.idx") as reader:
            wanted = [bytes(record) for record in reader]
        make = lambda: recordio.RecordReader(self.folder / "a.rec", self.folder / "a.idx")  # noqa: E731
        return make, None, wanted

    def reader_iterator(self):
        make, _, wanted = self.reader()
        return lambda: iter(make()), lambda records: bytes(next(records)), wanted

    def csv_reader(self):
        def make():
            return recordio.CSVReader(self.folder / "rows.csv", threads=2, chunk_bytes=64)

        return make, None, list(range(CSV_ROWS))

    def image_record_iter(self):
        return self.batches(
            lambda: iterators.ImageRecordIter(**self.pack, **self.image, shuffle=False)
        )

    def cached_in_memory(self):
        return self.batches(
            lambda: iterators.ImageRecordIter(
                **self.pack, **self.image, cache="ram", cache_size=1 << 20
            )
        )

    def cached_in_a_file(self):
        path = self.folder / "images.cache"
        return self.batches(
            lambda: iterators.ImageRecordIter(
                **self.pack, **self.image, cache=path, cache_size=1 << 20
            )
        )

    def image_det_record_iter(self):
        return self.batches(
            lambda: iterators.ImageDetRecordIter(
                path_imgrec=self.folder / "boxes.rec", **self.image
            )
        )

    def image_iter(self):
        return self.batches(
            lambda: iterators.ImageIter(
                path_imgrec=str(self.folder / "a.rec"),
                path_imgidx=str(self.folder / "a.idx"),
                data_shape=(3, 16, 16),
                batch_size=6,
            )
        )

    def array_provider(self):
        return self.batches(
            lambda: iterators.NDArrayIter(np.arange(COUNT * 2).reshape(COUNT, 2), batch_size=6)
        )

    def csv_iter(self):
        return self.batches(
            lambda: iterators.CSVIter(
                data_csv=self.folder / "rows.csv", data_shape=(2,), batch_size=6
            ),
            CSV_ROWS,
        )

    def resize_iter(self):
        make, take, wanted = self.array_provider()
        return lambda: iterators.ResizeIter(make(), COUNT // 6), take, wanted

    def prefetching_iter(self):
        make, take, wanted = self.array_provider()
        return lambda: iterators.PrefetchingIter(make()), take, wanted

    def finite_iterator(self):
        make = self.array_provider()[0]
        return (
            lambda: make().iterator("sequential", batch_size=6),
            lambda batches: tuple((batches.next()[:, 0] // 2).astype(int).tolist()),
            _in_sixes(COUNT),
        )

    def loop(self, kind, **keywords):
        return (
            lambda: kind(range(COUNT), 6, repeat=False, shuffle=False, **keywords),
            lambda batches: tuple(next(batches)),
            _in_sixes(COUNT),
        )

    def serial_iterator(self):
        return self.loop(iterators.SerialIterator)

    def multithread_iterator(self):
        return self.loop(iterators.MultithreadIterator, n_threads=2)

    def multiprocess_iterator(self):
        return self.loop(iterators.MultiprocessIterator, n_processes=2)


def _in_sixes(count):
    return [tuple(range(first, first + 6)) for first in range(0, count, 6)]
