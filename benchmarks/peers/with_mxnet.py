"""MXNet: `ImageRecordIter` with the same parameters, `CSVIter`.

`preprocess_threads` as given, of which MXNet uses no more than half the processors less one, but at
least one: on small machines compare per CPU second. `prefetch_buffer=4`; with the index a
permutation of all records.
`CSVIter` delivers batches of 256 rows, to the end of the file.
"""

import warnings

import numpy
from protocol import serve

warnings.filterwarnings("ignore")
import mxnet  # noqa: E402


def images(job, files, threads):
    """Batches of one epoch after the other."""
    provider = mxnet.io.ImageRecordIter(
        path_imgrec=files["records"],
        path_imgidx=files["index"],
        preprocess_threads=threads,
        prefetch_buffer=4,
        verbose=False,
        **job.record_iter_parameters(),
    )
    while True:
        for batch in provider:
            batch.data[0].wait_to_read()
            yield batch.data[0].shape[0] - batch.pad
        provider.reset()


def table(job, files, threads):
    """The file again and again, in megabytes."""
    while True:
        rows = mxnet.io.CSVIter(
            data_csv=files["csv"], data_shape=(job.columns,), batch_size=256, round_batch=False
        )
        for batch in rows:
            batch.data[0].wait_to_read()
        yield files["bytes"] / 1e6


if __name__ == "__main__":
    serve({"MXNet": mxnet.__version__, "NumPy": numpy.__version__}, images=images, table=table)
