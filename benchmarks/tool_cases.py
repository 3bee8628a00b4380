"""Cases of `im2rec`: whole runs of the command, process start included."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import cv2
from harness import case, compare, timed

from recordio import IRHeader, RecordWriter, pack


def im2rec(prefix, folder, *options):
    """Run the command as a user would."""
    command = Path(sys.executable).with_name("im2rec")
    arguments = [str(prefix), str(folder), *options]
    subprocess.run(
        [command, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def prepared(material, count):
    """A folder of photographs, its files, and a list of them under ``packed.lst``."""
    folder = material.folder_of(count)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    prefix = material.folder / f"packed-{count}"
    im2rec(prefix, folder, "--list", "--recursive")
    return folder, files, prefix


def opencv_loop(files, target):
    """Read, resize and encode one image after the other, as a plain script does."""
    cv2.setNumThreads(1)
    with RecordWriter(target) as writer:
        for number, path in enumerate(files):
            image = cv2.imread(str(path))
            height, width = image.shape[:2]
            size = (256, height * 256 // width) if width < height else (width * 256 // height, 256)
            image = cv2.resize(image, size)
            encoded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 95])[1]
            writer.write(pack(IRHeader(0, 0.0, number, 0), encoded.tobytes()))
    return len(files)


@case
def im2rec_resize(material):
    """``im2rec --resize 256 --quality 95`` against a loop over OpenCV in one process."""
    folder, files, prefix = prepared(material, 1500)

    def ours():
        options = ("--resize", "256", "--quality", "95", "--num-thread", str(material.threads))
        im2rec(prefix, folder, *options)
        return len(files)

    yield compare(
        "im2rec --resize 256",
        "images/s",
        partial(timed, ours),
        partial(timed, partial(opencv_loop, files, material.folder / "loop.rec")),
        bar=1.8,
        rounds=material.rounds,
        detail=f"{material.threads} workers; reference: one process",
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
