"""What importing each part costs: processor time as a multiple of NumPy's, in new processes.

    python benchmarks/imports.py [ROUNDS]

Of torch's adapter, the number is what comes on top of torch; the others include NumPy.
"""

import resource
import statistics
import subprocess
import sys

from harness import markdown_table

#: Title, program, and the program whose time is taken off, by its title.
PROGRAMS = {
    "nothing": ("pass", None),
    "numpy": ("import numpy", "nothing"),
    "torch": ("import torch", "nothing"),
    "recordio": ("import recordio", "nothing"),
    "iterators": ("import iterators", "nothing"),
    "RecordReader": ("from recordio import RecordReader", "nothing"),
    "ImageRecordIter": ("from iterators import ImageRecordIter", "nothing"),
    "ImageRecordDataset": ("from iterators import ImageRecordDataset", "nothing"),
    "iterators.torch": ("from iterators.torch import ImageLoader; import torch", "torch"),
    "recordio.tools.view": ("import recordio.tools.view.server", "nothing"),
    "iterators.compat.mxnet": ("import iterators.compat.mxnet", "nothing"),
    "iterators.mx_image": ("import iterators.mx_image", "nothing"),
    "iterators.compat.chainer": ("import iterators.compat.chainer", "nothing"),
    "iterators.compat.pylearn2": ("import iterators.compat.pylearn2", "nothing"),
    "iterators.compat.dp": ("import iterators.compat.dp", "nothing"),
    "iterators.samples": ("from iterators import Sample", "nothing"),
}


def seconds(program):
    """Processor time of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(rounds=9):
    times = {title: [] for title in PROGRAMS}
    for _ in range(rounds):
        for title, (program, _) in PROGRAMS.items():
            times[title].append(seconds(program))
    medians = {title: statistics.median(found) for title, found in times.items()}
    unit = medians["numpy"] - medians["nothing"]
    rows = [
        (f"`{title}`", f"{(medians[title] - medians[base]) / unit:.1f}")
        for title, (_, base) in PROGRAMS.items()
        if base is not None
    ]
    print(markdown_table(("import", "in imports of NumPy"), *rows))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
