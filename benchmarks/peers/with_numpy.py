"""NumPy: `loadtxt(dtype=float32)`, which has one thread."""

import numpy as np
from protocol import serve


def table(job, files, threads):
    """The file again and again, in megabytes."""
    while True:
        np.loadtxt(files["csv"], np.float32, delimiter=",")
        yield files["bytes"] / 1e6


if __name__ == "__main__":
    serve({"NumPy": np.__version__}, table=table)
