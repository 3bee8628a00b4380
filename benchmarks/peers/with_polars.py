"""polars: `read_csv` to float32 columns, `to_numpy(order="c")`.

`POLARS_MAX_THREADS` is the number of threads given.
"""

import importlib.metadata
import os

from protocol import serve


def table(job, files, threads):
    """The file again and again, in megabytes."""
    os.environ["POLARS_MAX_THREADS"] = str(threads)  # read when it is imported
    import polars

    types = [polars.Float32] * job.columns
    while True:
        columns = polars.read_csv(files["csv"], has_header=False, schema_overrides=types)
        array = columns.to_numpy(order="c")
        assert array.dtype == "float32"
        yield files["bytes"] / 1e6


if __name__ == "__main__":
    serve({"polars": importlib.metadata.version("polars")}, table=table)
