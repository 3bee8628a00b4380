"""This project: `ImageRecordIter`, `read_csv`, `decode_image`, `preprocess`.

`prefetch_buffer=4`; with `shuffle` a permutation of all records; bilinear.
"""

import importlib.metadata
from functools import partial

import numpy
from protocol import serve
from with_decoder import batches_of, decode

from iterators import ImageRecordIter, NamedRecipe, preprocess
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


def processor(job, files, threads):
    """Tensors of one batch after the other; memory is used again."""
    recipe = NamedRecipe.from_processor(job.processor)
    for blobs in batches_of(files, job.batch):
        preprocess(blobs, recipe, threads=1)
        yield len(blobs)


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
    serve(versions, images=images, table=table, processor=processor, decode=partial(decode, "ours"))
