"""This project: `ImageRecordIter`, `read_csv`, `decode_image`.

`prefetch_buffer=4`; with `shuffle` a permutation of all records; bilinear.
"""

import importlib.metadata
from functools import partial

import numpy
from protocol import serve
from with_decoder import decode

from iterators import ImageRecordIter
from recordio import read_csv
from recordio.formats import general as codec


def images(job, files, threads):
    """Batches of one epoch after the other."""
    with ImageRecordIter(
        path_imgrec=files["records"],
        path_imgidx=files.get("index", ""),
        preprocess_threads=threads,
        prefetch_buffer=4,
        verbose=False,
        **job.record_iter_parameters(),
    ) as provider:
        while True:
            for batch in provider:
                yield batch.count_samples()


def table(job, files, threads):
    """The file again and again, in megabytes."""
    while True:
        array = read_csv(files["csv"], (job.columns,), threads=threads)
        assert array.dtype == "float32"
        yield files["bytes"] / 1e6


if __name__ == "__main__":
    versions = {
        "recordio": importlib.metadata.version("recordio-iterators"),
        "NumPy": numpy.__version__,
        "decoder": codec.describe(),
    }
    serve(versions, images=images, table=table, decode=partial(decode, "ours"))
