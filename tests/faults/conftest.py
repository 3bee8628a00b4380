"""Scripts that a fault strikes in a process of their own, and small images for them.

Everything in this folder is marked ``faults``: `make faults` runs it, `make test` does not.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from iterators.testing import write_pack

HERE = Path(__file__).parent
#: Scripts for processes of their own.
collect_ignore = ["children.py", "exhausted.py", "killed.py"]
#: Repeats what is random or slow as often as a night allows.
LONG = bool(os.environ.get("FAULTS_LONG"))


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.faults)
            if LONG:
                item.add_marker(pytest.mark.timeout(7200))


def picture(number, height=40, width=50):
    rows, columns = np.mgrid[:height, :width]
    planes = [(rows * 3 + columns * plane + number * 7) % 256 for plane in (1, 2, 3)]
    return np.stack(planes, -1).astype(np.uint8)


def encoded(number, suffix, height=40, width=50):
    import cv2

    return cv2.imencode(suffix, picture(number, height, width))[1].tobytes()


@pytest.fixture(scope="session")
def pack(tmp_path_factory):
    """A record file of 60 images, every third one a PNG, which needs Python to be decoded."""
    images = [encoded(number, ".jpg" if number % 3 else ".png") for number in range(60)]
    return write_pack(tmp_path_factory.mktemp("pack") / "small.rec", images)


@pytest.fixture(scope="session")
def photos_folder(tmp_path_factory):
    """A folder of class folders with twelve images each."""
    root = tmp_path_factory.mktemp("photos")
    for name in ("cat", "dog"):
        (root / name).mkdir()
        for number in range(12):
            (root / name / f"{number:02d}.jpg").write_bytes(encoded(number, ".jpg"))
    return root


@pytest.fixture
def script():
    """Run a program in a process of its own; what it prints, after it ended as it should."""

    def run(program, *words, code=0, before=(), timeout=7000 if LONG else 100, **keywords):
        done = subprocess.run(
            [*before, sys.executable, "-c", textwrap.dedent(program), *map(str, words)],
            capture_output=True,
            text=True,
            timeout=timeout,
            **keywords,
        )
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done

    return run


def mounting(command, *needed):
    """Words that come before a command to let it see a mount, which nobody else sees."""
    words = ["unshare", "--mount", "--map-root-user", "--propagation", "private"]
    words += ["sh", "-c", f'{command} && shift {len(needed)} && exec "$@"', "sh"]
    words += [str(word) for word in needed]
    try:
        possible = subprocess.run([*words, "true"], capture_output=True, timeout=30)
    except OSError as error:
        pytest.skip(f"mounts of one's own need unshare: {error}")
    if possible.returncode:
        pytest.skip(f"mounts of one's own are not permitted: {possible.stderr.decode().strip()}")
    return words


@pytest.fixture
def small_disk(tmp_path):
    """``small_disk(size)``: a folder that is a disk of that size for those who have the words."""

    def make(size):
        folder = tmp_path / "disk"
        folder.mkdir()
        return folder, mounting(f'mount -t tmpfs -o size={size} none "$1"', folder)

    return make


@pytest.fixture
def read_only():
    """``read_only(folder)``: words for which a folder cannot be written to, not by root either."""

    def make(folder):
        command = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"'
        return mounting(command, folder)

    return make


@pytest.fixture
def command_line():
    """Run the command ``recordio`` here."""
    from recordio.tools.cli import main

    return lambda *words: main([str(word) for word in words])
