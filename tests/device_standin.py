"""A machine of host memory in the place of a CUDA device, over `standin.c`, compiled here."""

import ctypes
import functools
import shutil
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from iterators.images.device.cuda import CudaMachine, Kernel, compiled

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "tests" / "iterators" / "images" / "device" / "standin.c"


@functools.cache
def library():
    """Compile the library and open it; skips where that is not possible."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or sys.platform == "win32":
        pytest.skip("no compiler of C")
    folder = tempfile.mkdtemp(prefix="standin-")
    target = Path(folder, "libstandin.so")
    command = [compiler, "-shared", "-fPIC", "-O2", "-ffp-contract=off", f"-I{ROOT}", str(SOURCE)]
    made = subprocess.run([*command, "-ljpeg", "-lpthread", "-o", str(target)], capture_output=True)
    if made.returncode:
        pytest.skip("no headers of libjpeg-turbo")
    found = ctypes.CDLL(str(target))
    found.standin_fault.restype = ctypes.c_char_p
    found.standin_count.restype = ctypes.c_int64
    found.standin_window.argtypes = ctypes.c_void_p, ctypes.c_size_t
    found.cuStreamSynchronize.argtypes = (ctypes.c_void_p,)
    return found


def count(of):
    """Return one of the counters of the library."""
    return library().standin_count(of.encode())


class Stream:
    """A stream, which does nothing before somebody waits for it."""

    def __init__(self, number):
        self.cuda_stream = number

    def wait_stream(self, other):
        """Have the work of another stream done."""
        library().cuStreamSynchronize(other.cuda_stream)


class HostMachine(CudaMachine):
    """The machine whose device is host memory."""

    def __init__(self, device=None, decoders=2):
        import torch

        self._torch, self.device = torch, torch.device("cpu")
        self._nvjpeg = self._driver = library()
        self.stream = Stream(100)
        self.streams = [Stream(number) for number in range(1, decoders + 1)]
        self._kernel = Kernel(self._driver, compiled(library(), "sm_90"))

    def working(self):
        """There is no stream."""
        return nullcontext()

    def allocate(self, nbytes):
        """Return memory full of what would be noticed."""
        return np.full(nbytes, 0xA5, np.uint8)

    def empty(self, nbytes):
        """Return memory of the device, within which its library may write."""
        memory = super().empty(nbytes).fill_(0x5A)
        library().standin_window(memory.data_ptr(), nbytes)
        return memory

    def mark(self):
        """Everything was done when it was asked for."""
        return lambda: None
