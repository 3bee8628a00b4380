"""Kernels give the same bytes at every level of every processor; ARM is emulated by QEMU.

`processors.c` runs every kernel on many small and nasty inputs, and prints a hash for each.
"""

import platform
import runpy
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from faces import colour
from faces.normalise import normalise
from faces.resample import resize
from recordio.kernels.resample import LEVELS, variants

ROOT = Path(__file__).parents[1]
DRIVER = ROOT / "tests" / "processors.c"
#: The same as in setup.py; it matters that nothing is fused.
FLAGS = ["-O3", "-ffp-contract=off", "-Wall", "-Werror", "-Wno-unused-function", f"-I{ROOT}"]
#: Those that look at the order of bytes; every extension includes one of them.
BYTE_ORDER_HEADERS = (
    "recordio/frames/words.h",
    "recordio/text/decimal.h",
    "recordio/kernels/simd.h",
)
SIDE = 224

pytestmark = pytest.mark.timeout(600)  # compilers on a busy machine


def compiled(compiler, target, *flags):
    command = [*compiler, *FLAGS, *flags, str(DRIVER), "-o", str(target), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=550)
    assert done.returncode == 0, done.stderr
    return target


def run(command, level, *arguments):
    """Lines that the driver prints, by the names of its cases."""
    command = [*map(str, command), str(level), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=550)
    assert done.returncode == 0, done.stderr
    return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())


def compiler_or_skip():
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None or sys.platform == "win32":
        pytest.skip("no gcc or clang here")
    return [compiler]


def cross_compiler_or_skip():
    compiler = shutil.which("aarch64-linux-gnu-gcc")
    if compiler is None:
        pytest.skip(
            "no compiler for ARM here "
            "(Debian: apt install gcc-aarch64-linux-gnu libc6-dev-arm64-cross)"
        )
    return [compiler]


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    """The driver for this processor."""
    return [compiled(compiler_or_skip(), tmp_path_factory.mktemp("native") / "processors")]


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    """The driver for 64-bit ARM, run by QEMU."""
    compiler = cross_compiler_or_skip()
    emulator = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if emulator is None:
        pytest.skip("no qemu-aarch64 here (Debian: apt install qemu-user)")
    return [emulator, compiled(compiler, tmp_path_factory.mktemp("arm") / "processors", "-static")]


@pytest.fixture(scope="module")
def plain(native):
    """What plain C gives on this processor."""
    cases = run(native, LEVELS["plain"])
    assert cases.pop("level") == "0"
    assert len(cases) > 150
    return cases


@pytest.mark.parametrize("name", [name for name in variants() if name != "plain"])
def test_every_level_gives_the_bytes_of_plain_c(native, plain, name):
    cases = run(native, LEVELS[name])
    assert cases.pop("level") == str(LEVELS[name])
    assert cases == plain


@pytest.mark.parametrize(("name", "limit", "level"), [("plain", 0, "0"), ("neon", 3, "2")])
def test_arm_gives_the_bytes_of_plain_c(arm, plain, name, limit, level):
    cases = run(arm, limit)
    assert cases.pop("level") == level, f"{name} is not in use"
    assert cases == plain


def expected(image):
    """What the extension modules of this installation make of an image, as the driver writes it."""
    for method in (1, 2, 3):
        small = resize(image, (SIDE, SIDE), method)
        changed = colour.saturation(colour.brightness(small, 1.2), 0.8)
        changed = colour.lighting(colour.shift_hls(changed, 7, -11, 13), (3.7, -5.1, 0.25))
        # The driver has these numbers as factors, which are rounded once.
        factors = np.array([0.0171, 0.0175, 0.0174], np.float32)
        planes = normalise(changed, mean=(123, 117, 104), mirror=True)
        yield small.tobytes() + changed.tobytes() + (planes * factors[:, None, None]).tobytes()


@pytest.mark.parametrize("processor", ["native", "arm"])
@pytest.mark.parametrize("name", ["astronaut", "chelsea", "rocket"])
def test_photographs_have_the_same_pixels(request, photos, tmp_path, processor, name):
    command = request.getfixturevalue(processor)
    image = photos[name]
    source, result = tmp_path / "pixels", tmp_path / "result"
    size = np.array([image.shape[1], image.shape[0]], "<i4")
    source.write_bytes(size.tobytes() + image.tobytes())
    # The driver takes a level as it is; QEMU's processor has NEON.
    best = 3 if processor == "arm" else LEVELS[variants()[-1]]
    run(command, best, source, result)
    assert result.read_bytes() == b"".join(expected(image))


@pytest.mark.parametrize("header", BYTE_ORDER_HEADERS)
@pytest.mark.parametrize("processor", ["pretended", "arm"])
def test_big_endian_processors_are_refused_by_the_compiler(header, processor):
    if processor == "arm":
        command = [*cross_compiler_or_skip(), "-mbig-endian"]
    else:
        command = [*compiler_or_skip(), "-U__BYTE_ORDER__", "-D__BYTE_ORDER__=4321"]
    command += [f"-I{ROOT}", "-fsyntax-only", "-x", "c", str(ROOT / header)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "needs a little-endian processor" in done.stderr


def test_big_endian_processors_are_refused_by_setup(monkeypatch):
    cython = types.ModuleType("Cython.Build")
    cython.cythonize = None
    monkeypatch.setitem(sys.modules, "Cython", types.ModuleType("Cython"))
    monkeypatch.setitem(sys.modules, "Cython.Build", cython)
    monkeypatch.setattr(sys, "byteorder", "big")
    with pytest.raises(SystemExit, match="needs a little-endian processor"):
        runpy.run_path(str(ROOT / "setup.py"))


def test_the_report_names_the_instruction_set():
    from iterators.__main__ import report

    (line,) = [line for line in report().splitlines() if line.startswith("kernels ")]
    arm = platform.machine() in ("aarch64", "arm64")
    levels = ["plain", "neon"] if arm else ["plain", "sse4.1", "avx2", "avx512"]
    assert line.split(maxsplit=1)[1] == f"{variants()[-1]} (of {', '.join(levels)})"
