"""``python -m iterators``: what this installation decodes with, and what it runs on.

For bug reports and for finding out why images decode slowly.  It opens no file.
"""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata

import numpy as np

from iterators.images.codecs import by_pillow
from iterators.images.codecs import general as codec
from iterators.images.kernels.resample import variants


def _version(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _usable_cores():
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux knows
        return os.cpu_count() or 1


def report():
    """Describe the installation.

    Returns
    -------
    str
        One line per fact: its name and its value.

    Examples
    --------
    >>> "decoder" in report()
    True
    """
    simd = np.show_config(mode="dicts").get("SIMD Extensions", {})
    free_threaded = getattr(sys, "_is_gil_enabled", lambda: True)() is False
    facts = {
        "recordio-iterators": _version("recordio-iterators"),
        "decoder": codec.describe(),
        "formats": by_pillow.describe(),
        "kernels": {"plain": "plain C"}.get(variants()[-1], variants()[-1].upper()),
        "python": platform.python_version() + (" (free-threaded)" if free_threaded else ""),
        "numpy": np.__version__,
        "pillow": _version("pillow"),
        "torch": _version("torch"),
        "platform": platform.platform(),
        "cores": f"{_usable_cores()} usable of {os.cpu_count()}",
        "cpu": " ".join([*simd.get("baseline", []), *simd.get("found", [])]) or "unknown",
    }
    width = max(map(len, facts))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in facts.items())


def main():
    """Print the report.

    Returns
    -------
    int
        The exit status, 0.
    """
    print(report())
    return 0


if __name__ == "__main__":
    sys.exit(main())
