"""``python -m iterators``: the decoders of this installation, its platform and missing extras.

For bug reports and for finding out why images decode slowly.  It opens no file.
"""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata

import numpy as np

from recordio.extras import EXTRAS, PACKAGES, command
from recordio.formats import general as codec
from recordio.kernels import resample
from recordio.ordered import default_threads

#: What every installation has, besides this package, NumPy and OpenCV.
REQUIRED = ("pillow", "tqdm", "filelock")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _extra(package: str) -> str:
    """Return the version of an optional package, or the command that brings it."""
    version = _version(PACKAGES.get(package, (package, package))[1])
    return f"not installed; {command(package)}" if version == "not installed" else version


def report() -> str:
    """Describe the installation, one line per fact: its name and its value.

    >>> "decoder" in report()
    True
    """
    simd = np.show_config(mode="dicts").get("SIMD Extensions", {})
    free_threaded = getattr(sys, "_is_gil_enabled", lambda: True)() is False
    facts = {
        "recordio-iterators": _version("recordio-iterators"),
        "decoder": codec.describe(),
        "kernels": f"{resample.variants()[-1]} (of {', '.join(resample.LEVELS)})",
        "cpu": " ".join([*simd.get("baseline", []), *simd.get("found", [])]) or "unknown",
        "cores": f"{default_threads()} usable of {os.cpu_count()}",
        "platform": platform.platform(),
        "python": platform.python_version() + (" (free-threaded)" if free_threaded else ""),
        "numpy": np.__version__,
        **{package: _version(package) for package in REQUIRED},
        **{package: _extra(package) for package in EXTRAS},
    }
    width = max(map(len, facts))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in facts.items())


def main() -> int:
    """Print the report and return the exit status, 0."""
    print(report())
    return 0


if __name__ == "__main__":
    sys.exit(main())
