"""Environments of the peers: made by pip on first use, kept in one folder.

A peer whose environment cannot be made is absent, with the reason; nothing here ends a run.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ENVIRONMENTS", "Absent", "Environment", "python_of"]

OLDEST = (3, 8)


class Absent(Exception):
    """An environment is missing, for the reason given."""


@dataclass(frozen=True)
class Environment:
    """Packages to install, and the newest Python that has them."""

    requirements: tuple[str, ...]
    newest: tuple[int, int] = (3, 13)


ENVIRONMENTS = {
    "mxnet": Environment(("mxnet==1.9.1", "numpy<1.24"), newest=(3, 11)),
    "dali": Environment(("nvidia-dali-cuda120",)),
    "torch": Environment(
        (
            "torch==2.13.0",
            "torchvision",
            "torchcodec",
            "opencv-python-headless>=4.11",
            "webdataset",
            "spdl-core",
            "litdata",
        )
    ),
    "decoders": Environment(
        ("simplejpeg", "imagecodecs", "kornia-rs", "opencv-python-headless>=4.11", "pillow")
    ),
    "transformers": Environment(("transformers>=5.24", "torch==2.13.0", "torchvision", "pillow")),
    "tensorflow": Environment(("tensorflow-cpu",)),
    "tables": Environment(("pyarrow", "polars", "numpy")),
}


def version_of(python) -> tuple[int, int] | None:
    """Version of an interpreter that can make environments, or None."""
    code = "import ensurepip, venv, sys; print(*sys.version_info[:2])"
    try:
        printed = subprocess.run(
            [python, "-c", code], capture_output=True, check=True, text=True, timeout=30
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    major, minor = map(int, printed.split())
    return major, minor


def interpreter(newest) -> str:
    """This Python, or the newest one on the machine that is old enough."""
    if OLDEST <= sys.version_info[:2] <= newest:
        return sys.executable
    for minor in range(newest[1], OLDEST[1] - 1, -1):
        name = f"python3.{minor}"
        installed = Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/{name}")
        for python in filter(None, (shutil.which(name), *installed)):
            if version_of(python) == (3, minor):
                return str(python)
    raise Absent(f"no Python from 3.{OLDEST[1]} to 3.{newest[1]} is found")


def python_of(name, folder) -> str:
    """The interpreter of an environment, which is made if it is not there as it should be.

    Parameters
    ----------
    name : str
        One of `ENVIRONMENTS`.
    folder : Path
        Where environments are kept.

    Raises
    ------
    Absent
        It cannot be made; the message says why.
    """
    environment = ENVIRONMENTS[name]
    place = (Path(folder) / name).absolute()
    python, stamp = place / "bin/python", place / "installed"
    wanted = json.dumps(environment.requirements)
    if stamp.exists() and stamp.read_text() == wanted:
        return str(python)
    print(f"making {place} ...", file=sys.stderr)
    try:
        command = [interpreter(environment.newest), "-m", "venv", "--clear", str(place)]
        subprocess.run(command, capture_output=True, check=True, text=True)
        install = [str(python), "-m", "pip", "install", "--quiet", *environment.requirements]
        subprocess.run(install, capture_output=True, check=True, text=True)
    except OSError as error:
        raise Absent(str(error)) from error
    except subprocess.CalledProcessError as error:
        lines = [line for line in (error.stderr or "").splitlines() if "ERROR" in line]
        reason = lines[-1] if lines else f"{error.cmd[0]} ended with {error.returncode}"
        raise Absent(reason) from error
    stamp.write_text(wanted)
    return str(python)
