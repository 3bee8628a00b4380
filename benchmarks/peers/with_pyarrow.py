"""pyarrow: `csv.read_csv` to float32 columns, and those into one array.

Its thread pool has as many threads as are given.
"""

import numpy as np
import pyarrow
from protocol import serve
from pyarrow import csv


def table(job, files, threads):
    """The file again and again, in megabytes."""
    pyarrow.set_cpu_count(threads)
    names = [str(column) for column in range(job.columns)]
    reading = csv.ReadOptions(column_names=names)
    converting = csv.ConvertOptions(column_types=dict.fromkeys(names, pyarrow.float32()))
    while True:
        columns = csv.read_csv(files["csv"], reading, convert_options=converting)
        array = np.empty((columns.num_rows, job.columns), np.float32)
        for column, values in enumerate(columns.columns):
            array[:, column] = values.to_numpy()
        yield files["bytes"] / 1e6


if __name__ == "__main__":
    serve({"pyarrow": pyarrow.__version__, "NumPy": np.__version__}, table=table)
