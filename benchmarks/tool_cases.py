"""Cases of `im2rec`: whole processes on both sides, from start to end."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from harness import case, compare, timed


def run(*command):
    """Run a command as a user would, without a terminal."""
    words = [str(word) for word in command]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def im2rec(prefix, folder, *options):
    """Run the console command of this environment."""
    run(Path(sys.executable).with_name("im2rec"), prefix, folder, *options)


def prepared(material, count):
    """A folder of photographs, its files, and a list of them under ``packed.lst``."""
    folder = material.folder_of(count)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    prefix = material.folder / f"packed-{count}"
    im2rec(prefix, folder, "--list", "--recursive")
    return folder, files, prefix


@case
def im2rec_resize(material):
    """``im2rec --resize 256 --quality 95`` against a loop over OpenCV in one process.

    Both are whole processes, from the start of the interpreter to its end, so that each pays for
    its own imports, its own scan or list, and its own fsync; with 4,000 photographs that is a few
    hundredths of the time of either.
    """
    folder, files, prefix = prepared(material, 4000)
    target = material.folder / "loop.rec"

    def ours():
        options = ("--resize", "256", "--quality", "95", "--num-thread", material.threads)
        im2rec(prefix, folder, *options)
        return len(files)

    def reference():
        run(sys.executable, Path(__file__).with_name("opencv_loop.py"), folder, target)
        return len(files)

    yield compare(
        "im2rec --resize 256",
        "images/s",
        partial(timed, ours),
        partial(timed, reference),
        bar=1.8,
        rounds=material.rounds,
        detail=f"{material.threads} threads; reference: a script with one",
    )


@case
def im2rec_pass_through(material):
    """``im2rec --pass-through`` against ``cp -r`` of the same files."""
    folder, files, prefix = prepared(material, 10_000)

    def ours():
        im2rec(prefix, folder, "--pass-through", "--num-thread", str(material.threads))
        return len(files)

    def reference():
        target = material.folder / "copied"
        shutil.rmtree(target, ignore_errors=True)
        subprocess.run(["cp", "-r", str(folder), str(target)], check=True)
        return len(files)

    yield compare(
        "im2rec --pass-through",
        "files/s",
        partial(timed, ours),
        partial(timed, reference),
        bar=0.5,
        rounds=material.rounds,
        detail="reference: cp -r",
    )
