"""Cases of text: CSV files at once and in chunks, and LibSVM.

`compare.py` has the comparison with MXNet and others that need environments of their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
from harness import absolute, case, compare, timed

from recordio import CSVReader, read_csv, read_libsvm

# Not ru_maxrss: that starts with the peak of the process that started this one.
PEAK_OF_READER = """
import json, re, sys
from recordio import CSVReader
peak = lambda: 1024 * int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])
before = peak()
rows = sum(map(len, CSVReader(sys.argv[1], int(sys.argv[2]), threads=int(sys.argv[3]))))
print(json.dumps(peak() - before))
"""


def pyarrow_reader(path, columns):
    """Function that reads a file into one float32 array with pyarrow, or None without it."""
    try:
        import pyarrow
        from pyarrow import csv
    except ImportError:
        return None
    names = [str(column) for column in range(columns)]
    reading = csv.ReadOptions(column_names=names)
    converting = csv.ConvertOptions(column_types=dict.fromkeys(names, pyarrow.float32()))

    def read():
        table = csv.read_csv(path, read_options=reading, convert_options=converting)
        array = np.empty((table.num_rows, columns), np.float32)
        for column, values in enumerate(table.columns):
            array[:, column] = values.to_numpy()
        return array

    return read


def megabytes(path, read):
    """Do it, and return how many megabytes of text that took."""
    read()
    return path.stat().st_size / 1e6


def compared_reading(material, job, path, columns, bar):
    """Rate of `read_csv` against pyarrow, or against NumPy where pyarrow is missing."""
    reference = pyarrow_reader(path, columns)
    detail = "reference: pyarrow to one float32 array"
    if reference is None:
        reference = partial(np.loadtxt, path, np.float32, delimiter=",")
        detail = "reference: numpy.loadtxt, for lack of pyarrow"
    else:
        import pyarrow

        pyarrow.set_cpu_count(material.threads)
    ours = partial(read_csv, path, (columns,), threads=material.threads)
    np.testing.assert_array_max_ulp(ours(), reference(), maxulp=1)
    return compare(
        job,
        "MB/s",
        partial(timed, partial(megabytes, path, ours)),
        partial(timed, partial(megabytes, path, reference)),
        bar=bar,
        rounds=material.rounds,
        detail=detail,
    )


@case
def read_csv_floats(material):
    """``read_csv`` of 100,000 x 50 floats with six digits."""
    yield compared_reading(material, "read_csv of floats", material.float_csv, 50, 3.5)


@case
def read_csv_integers(material):
    """``read_csv`` of 60,000 x 784 integers below 256 as float32."""
    path = material.integer_csv
    yield compared_reading(material, "read_csv of small integers", path, 784, 8)


@case
def csv_reader(material):
    """``CSVReader`` against ``read_csv`` of the same file, and its memory."""
    path = material.float_csv

    def stream():
        with CSVReader(path, (50,), threads=material.threads) as reader:
            return sum(map(len, reader))

    yield compare(
        "CSVReader of floats",
        "MB/s",
        partial(timed, partial(megabytes, path, stream)),
        partial(
            timed,
            partial(megabytes, path, partial(read_csv, path, (50,), threads=material.threads)),
        ),
        bar=0.85,
        rounds=material.rounds,
        detail="reference: read_csv",
    )
    if not Path("/proc/self/status").exists():
        return
    path = material.integer_csv
    command = [sys.executable, "-c", PEAK_OF_READER, str(path), "784", str(material.threads)]
    peaks = [
        json.loads(subprocess.run(command, check=True, capture_output=True).stdout) / 1e6
        for _ in range(material.rounds)
    ]
    yield absolute("memory of CSVReader, at most", "MB", peaks, bar=64, at_least=False)


@case
def libsvm(material):
    """``read_libsvm`` of 50,000 rows with 40 of 1,000 features each, against scikit-learn."""
    from sklearn.datasets import load_svmlight_file

    path = material.libsvm
    reference = partial(load_svmlight_file, str(path), dtype=np.float32, zero_based=True)
    yield compare(
        "read_libsvm",
        "MB/s",
        partial(
            timed,
            partial(megabytes, path, partial(read_libsvm, path, threads=material.threads)),
        ),
        partial(timed, partial(megabytes, path, reference)),
        bar=2,
        rounds=material.rounds,
        detail="reference: sklearn.datasets.load_svmlight_file",
    )
