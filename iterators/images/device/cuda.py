"""CUDA as far as decoding there needs it: memory and streams by torch, and three libraries.

nvJPEG, the compiler of kernels (nvrtc) and the driver are opened when they are first needed, and
called by the addresses of their functions.  Nothing here knows records, images or batches.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

import recordio
from recordio.extras import missing

from .decoder import DRIVER, SYMBOLS, BatchDecoder, BlockLayout, DeviceDecodeError

#: Versions of CUDA whose libraries are looked for, besides that of torch.
MAJORS = ("13", "12", "11")
#: Source of the kernel, and what it includes, by the names that it includes them by.
SOURCE = "resample_kernel.h"
INCLUDED = "recordio/kernels/half.h"
#: Exact results are promised: no products are fused with sums.
OPTIONS = ("--fmad=false", "--device-as-default-execution-space")
#: Threads of a block, as the kernel has it.
BLOCK = 256
#: Decoders that take turns; each keeps memory on the device.
DECODERS = 2


def library_names(name: str, majors: Sequence[str]) -> Iterator[str]:
    """Yield files of a library in NVIDIA's wheels, then the names that the system knows it by."""
    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations or ()) if spec is not None else []
    versions = {major: "11.2" if (name, major) == ("nvrtc", "11") else major for major in majors}
    for major, version in versions.items():
        for root in roots:
            for folder in (f"cu{major}", name, f"cuda_{name}"):
                if sys.platform == "win32":
                    yield from map(str, Path(root, folder, "bin").glob(f"**/{name}64_{major}*.dll"))
                else:
                    yield str(Path(root, folder, "lib", f"lib{name}.so.{version}"))
    for major, version in versions.items():
        windows = f"{name}64_{major}{'0_0' if name == 'nvrtc' else ''}.dll"
        yield windows if sys.platform == "win32" else f"lib{name}.so.{version}"


def open_library(name: str, package: str, purpose: str, majors: Sequence[str]) -> ctypes.CDLL:
    """Open the first library of that name that there is, or raise the error that says how."""
    for path in library_names(name, majors):
        try:
            return ctypes.CDLL(path)
        except OSError:  # it is not there, or needs what is not there
            continue
    raise missing(package, purpose, 'or leave decode_on="host"')


def addresses(library: Any, names: Sequence[str], prefix: str = "") -> dict[str, int]:
    """Return the addresses of functions; those that a library lacks are left out."""
    pointers = {}
    for name in names:
        function = getattr(library, prefix + name, None)
        if function is not None:
            pointers[name] = ctypes.cast(function, ctypes.c_void_p).value or 0
    return pointers


def kernel_source() -> tuple[bytes, bytes]:
    """Read the source of the kernel, and what it includes."""
    included = Path(recordio.__file__).parent / "kernels" / "half.h"
    return Path(__file__).with_name(SOURCE).read_bytes(), included.read_bytes()


def compiled(nvrtc: Any, architecture: str) -> bytes:
    """Compile the kernel for an architecture, "sm_90" for example."""
    source, included = kernel_source()
    program, size = ctypes.c_void_p(), ctypes.c_size_t()

    def text(read: str, length: str) -> bytes:
        getattr(nvrtc, length)(program, ctypes.byref(size))
        content = ctypes.create_string_buffer(size.value)
        getattr(nvrtc, read)(program, content)
        return content.raw

    options = [option.encode() for option in (*OPTIONS, f"--gpu-architecture={architecture}")]
    call(
        nvrtc,
        "nvrtcCreateProgram",
        ctypes.byref(program),
        source,
        SOURCE.encode(),
        1,
        (ctypes.c_char_p * 1)(included),
        (ctypes.c_char_p * 1)(INCLUDED.encode()),
    )
    try:
        array = (ctypes.c_char_p * len(options))(*options)
        status = nvrtc.nvrtcCompileProgram(program, len(options), array)
        if status:
            log = text("nvrtcGetProgramLog", "nvrtcGetProgramLogSize").decode("utf-8", "replace")
            error = DeviceDecodeError("nvrtcCompileProgram", status)
            error.add_note(f"for {architecture}: {log}")
            raise error
        return text("nvrtcGetCUBIN", "nvrtcGetCUBINSize")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


class Kernel:
    """The kernel, loaded by the driver into the context that is current."""

    def __init__(self, driver: Any, binary: bytes) -> None:
        self._driver = driver
        self._module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        call(driver, "cuModuleLoadData", ctypes.byref(self._module), binary)
        call(
            driver,
            "cuModuleGetFunction",
            ctypes.byref(self._function),
            self._module,
            SOURCE.removesuffix(".h").encode(),
        )

    def __call__(
        self,
        layout: BlockLayout,
        tail: int,
        pixels: int,
        out: int,
        form: bytes,
        slots: int,
        stream: int,
    ) -> None:
        """Launch it once for each step, on memory of the device at these addresses."""
        pointers = [ctypes.c_void_p(one) for one in (tail + layout.rows, tail, pixels, out)]
        for number, most in enumerate(layout.most):
            described = (ctypes.c_char * len(form)).from_buffer_copy(form)
            values: list[Any] = [*pointers, described, ctypes.c_int(number)]
            places = [ctypes.cast(ctypes.byref(one), ctypes.c_void_p) for one in values]
            arguments = (ctypes.c_void_p * len(places))(*places)
            grid = [ctypes.c_uint(n) for n in (-(-most // BLOCK), slots, 1)]
            block = [ctypes.c_uint(n) for n in (BLOCK, 1, 1)]
            call(
                self._driver,
                "cuLaunchKernel",
                self._function,
                *grid,
                *block,
                ctypes.c_uint(0),
                ctypes.c_void_p(stream),
                arguments,
                None,
            )


def call(library: Any, name: str, *arguments: Any) -> None:
    """Call a function that returns a status."""
    status = getattr(library, name)(*arguments)
    if status:
        raise DeviceDecodeError(name, status)


@functools.cache
def _binary(majors: Sequence[str], architecture: str) -> bytes:
    nvrtc = open_library("nvrtc", "nvidia.cuda_nvrtc", 'decode_on="device"', majors)
    return compiled(nvrtc, architecture)


class CudaMachine:
    """A CUDA device of torch: its memory, a stream for batches, and streams for decoders."""

    def __init__(self, device: Any, decoders: int = DECODERS) -> None:
        import torch

        purpose = 'decode_on="device"'
        majors = list(dict.fromkeys((str(torch.version.cuda or "").partition(".")[0], *MAJORS)))
        majors = [major for major in majors if major]
        self._torch, self.device = torch, device
        self._nvjpeg = open_library("nvjpeg", "nvidia.nvjpeg", purpose, majors)
        self._driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        self.stream: Any = torch.cuda.Stream(device)
        self.streams: list[Any] = [torch.cuda.Stream(device) for _ in range(decoders)]
        with self.working():
            # The driver's own functions need the context of the device, which this makes current.
            self.stream.synchronize()
            architecture = "sm_{}{}".format(*torch.cuda.get_device_capability(device))
            self._kernel = Kernel(self._driver, _binary(tuple(majors), architecture))

    def decoder(self, channels: int, images_per_call: int = 0) -> BatchDecoder:
        """Make a decoder of nvJPEG."""
        context = ctypes.c_void_p()
        with self.working():
            call(self._driver, "cuCtxGetCurrent", ctypes.byref(context))
            return BatchDecoder(
                addresses(self._nvjpeg, list(SYMBOLS), "nvjpeg"),
                addresses(self._driver, DRIVER),
                context.value or 0,
                [stream.cuda_stream for stream in self.streams],
                channels=channels,
                images_per_call=images_per_call,
            )

    def working(self) -> AbstractContextManager[Any]:
        """Return a context in which torch works on the stream for batches."""
        return self._torch.cuda.stream(self.stream)

    def allocate(self, nbytes: int) -> np.ndarray:
        """Return page-locked memory."""
        return self._torch.empty(nbytes, dtype=self._torch.uint8, pin_memory=True).numpy()

    def empty(self, nbytes: int) -> Any:
        """Return memory of the device, as a tensor of bytes."""
        return self._torch.empty(nbytes, dtype=self._torch.uint8, device=self.device)

    def zeros(self, shape: Sequence[int], dtype: str) -> Any:
        """Return a tensor of zeros on the device."""
        return self._torch.zeros(
            tuple(shape), dtype=getattr(self._torch, dtype), device=self.device
        )

    def decode(self, decoder: BatchDecoder, block: np.ndarray, pixels: Any) -> list[int]:
        """Decode a block behind what the stream for batches does, which then waits for it."""
        for stream in self.streams:
            stream.wait_stream(self.stream)
        refused = decoder.decode(block, pixels.data_ptr())
        for stream in self.streams:
            self.stream.wait_stream(stream)
        return refused

    def resample(
        self, layout: BlockLayout, tail: Any, pixels: Any, out: Any, form: bytes, slots: int
    ) -> None:
        """Launch the kernel."""
        memory = tail.data_ptr(), pixels.data_ptr(), out.data_ptr()
        self._kernel(layout, *memory, form, slots, self.stream.cuda_stream)

    def mark(self) -> Callable[[], None]:
        """Return a function that waits for all that the stream for batches was given so far."""
        wait: Callable[[], None] = self.stream.record_event().synchronize
        return wait
