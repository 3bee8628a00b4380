"""Speed of one thread of plain libjpeg-turbo: the bar for the image stage.

Compiles ``jpeg_limits.c`` beside it on first use, into a temporary folder.  Use it side by side
with what is compared, in the same run: the clock speed of a machine drifts.
"""

import ctypes
import functools
import os
import shlex
import subprocess
import sysconfig
import tempfile
import time
from pathlib import Path

__all__ = ["build", "coefficient_rate", "decode_once", "full_decode_rate"]


@functools.cache
def build():
    """Compile and load the kernels; raises CalledProcessError without libjpeg-turbo's headers."""
    source = Path(__file__).with_suffix(".c")
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    folder = tempfile.TemporaryDirectory(prefix="jpeg_limits")
    library = Path(folder.name, "jpeg_limits.so")
    command = [*compiler, "-O3", "-shared", "-fPIC", str(source), "-o", str(library), "-ljpeg"]
    subprocess.run(command, check=True)
    kernels = ctypes.CDLL(str(library))
    folder.cleanup()  # what is loaded stays loaded
    for name in ("full_decode", "read_coefficients"):
        function = getattr(kernels, name)
        function.restype = ctypes.c_int64
        function.argtypes = [
            ctypes.POINTER(ctypes.c_char_p),
            ctypes.POINTER(ctypes.c_size_t),
            ctypes.c_int,
        ]
    return kernels


def decode_once(name, blobs):
    """Do `full_decode` or `read_coefficients` once for every image; other threads run meanwhile."""
    data = (ctypes.c_char_p * len(blobs))(*blobs)
    sizes = (ctypes.c_size_t * len(blobs))(*map(len, blobs))
    getattr(build(), name)(data, sizes, len(blobs))


def _rate(name, blobs, seconds):
    """Images per second over at least `seconds`, after one pass to warm up."""
    decode_once(name, blobs)
    images = 0
    start = time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        decode_once(name, blobs)
        images += len(blobs)
    return images / elapsed


def full_decode_rate(blobs, seconds=2.0):
    """Images per second that one thread decodes in full.

    Parameters
    ----------
    blobs : list of bytes
        Sound JPEG files, at most 16384 pixels wide.
    seconds : float
        How long to measure, at least.
    """
    return _rate("full_decode", blobs, seconds)


def coefficient_rate(blobs, seconds=2.0):
    """Images per second of which one thread reads the coefficients only.

    Parameters
    ----------
    blobs : list of bytes
        Sound JPEG files.
    seconds : float
        How long to measure, at least.
    """
    return _rate("read_coefficients", blobs, seconds)
