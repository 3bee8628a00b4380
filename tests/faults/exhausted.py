"""A program that does a job again and again with a little more memory, or one more descriptor.

``exhausted.py memory|descriptors JOB FOLDER`` prints how often the job failed and how often it was
done.  It fails with an error that says what is missing, leaves no descriptor open and no file
behind, and does not take good data for bad; otherwise the program ends with an error.
"""

import errno
import os
import resource
import sys
from pathlib import Path

import numpy as np
from children import STARTING, end_of

import recordio
from iterators import ImageIter, ImageRecordIter

FAILED = 7
CODES = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}


def is_exhaustion(error):
    """Whether an error says that the machine lacks something."""
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, OSError) and error.errno in CODES:
        return True
    words = ("can't start new thread", "Too many open files", "Cannot allocate memory")
    return isinstance(error, (RuntimeError, OSError)) and any(word in str(error) for word in words)


class Jobs:
    """Each is done whole, which it checks, or raises."""

    def __init__(self, folder):
        self.folder = folder
        self.pack = folder / "small.rec"
        self.index = folder / "small.idx"

    def write(self):
        target = [self.folder / "new.rec", self.folder / "new.idx"]
        try:
            with recordio.RecordWriter(*target) as writer:
                for number in range(30):
                    writer.write(bytes([number]) * 100_000)
            with recordio.RecordReader(*target) as reader:
                assert [record[0] for record in reader] == list(range(30))
        finally:
            for path in target:
                path.unlink(missing_ok=True)

    def read(self):
        with recordio.RecordReader(self.pack, self.index) as reader:
            assert len(reader) == 60
            assert len({bytes(record) for record in reader.read_many(range(60))}) == 60

    def epoch(self, **keywords):
        with ImageRecordIter(
            path_imgrec=self.pack, path_imgidx=self.index, data_shape=(3, 160, 160), resize=200,
            rand_crop=True, batch_size=10, preprocess_threads=2, prefetch_buffer=2,
            on_error="skip", verbose=False, **keywords,
        ) as provider:  # fmt: skip
            found = np.concatenate([batch.index for batch in provider])
            assert provider.skipped == []
        assert sorted(found.tolist()) == list(range(60))

    def progressive(self):
        """The coefficients of whole images, 24 MB each, have to be in memory."""
        with ImageRecordIter(
            path_imgrec=self.folder / "large.rec", data_shape=(3, 32, 32), resize=40,
            batch_size=2, preprocess_threads=1, on_error="skip", verbose=False,
        ) as provider:  # fmt: skip
            assert len(provider.next().index) == 2
            assert provider.skipped == []

    def cached_epoch(self):
        self.epoch(cache="ram", cache_size=20_000_000)

    def file_cached_epoch(self):
        path = self.folder / "images.cache"
        try:
            self.epoch(cache=path, cache_size=20_000_000)
        finally:
            path.unlink(missing_ok=True)

    def files(self):
        paths = [(float(i), f"{i}.jpg") for i in range(60)]
        with ImageIter(
            imglist=paths, path_root=str(self.folder), data_shape=(3, 300, 300), batch_size=10,
            preprocess_threads=2, prefetch_buffer=2, on_error="skip", verbose=False,
        ) as provider:  # fmt: skip
            found = np.concatenate([batch.label[0].ravel() for batch in provider])
            assert provider.skipped == []
        assert sorted(found.tolist()) == list(range(60))

    def csv(self):
        table = recordio.read_csv(self.folder / "table.csv", threads=2)
        assert table.shape == (400_000, 8) and table.sum() == 400_000 * 28

    def pack_images(self):
        from recordio.tools.im2rec import main

        words = ["--num-thread", "2", "--resize", "900", "--no-shuffle", self.folder / "p"]
        words = [str(word) for word in [*words, self.folder / "photos"]]
        outputs = [self.folder / f"p{end}" for end in (".rec", ".idx", ".lst", ".classes.txt")]
        skipped = self.folder / "p.skipped.txt"
        try:
            code = main(words)
            if code:
                # Said on standard error, and images that had no memory are listed.
                assert not outputs[0].exists() or "memory" in skipped.read_text()
                raise MemoryError
            assert len(recordio.RecordReader(*outputs[:2])) == 24
        finally:
            for path in [*outputs, skipped]:
                path.unlink(missing_ok=True)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def address_space():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def attempt(job, folder, kind, limit):
    """In a child: 0 if the job was done, FAILED if it said what is missing."""
    before, names = descriptors(), sorted(os.listdir(folder))
    hard = resource.getrlimit(kind)[1]
    used = address_space() if kind == resource.RLIMIT_AS else before - 1
    resource.setrlimit(kind, (used + limit, hard))
    code = 0
    try:
        job()
    except Exception as error:
        failure = error if is_exhaustion(error) else None
        error = error.with_traceback(None) if failure else error
        code = FAILED
        if failure is None:
            raise
    resource.setrlimit(kind, (hard, hard))
    assert sorted(os.listdir(folder)) == names, sorted(os.listdir(folder))
    assert descriptors() == before
    job()  # nothing is left that would stop it now
    return code


def main(kind, name, place):
    folder = Path(place)
    job = getattr(Jobs(folder), name)
    job()  # imports everything
    kinds = {"memory": resource.RLIMIT_AS, "descriptors": resource.RLIMIT_NOFILE}
    limits = range(12)
    if kind == "memory":
        limits = [*(1 << power for power in range(20, 29)), 1 << 32]
    names, codes = set(os.listdir(folder)), []
    for limit in limits:
        codes.append(end_of(lambda: attempt(job, folder, kinds[kind], limit), quiet=False))
        assert codes[-1] in (0, FAILED, STARTING), (limit, codes)
        if codes[-1] == STARTING:  # it was stopped amid its work
            for name in set(os.listdir(folder)) - names:
                Path(folder, name).unlink()
    print(len(codes) - codes.count(0), codes.count(0))


if __name__ == "__main__":
    main(*sys.argv[1:])
