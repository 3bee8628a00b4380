"""Whole images to RGB arrays: every decoder that is installed, in turns, by processor time.

``python benchmarks/decoders.py [FOLDER]`` decodes the photographs of a folder, as they are, as
progressive JPEG and as PNG, and resized to 112 x 112 pixels as faces are.  Decoders are those of
`DECODERS` that can be imported: ``pip install simplejpeg imagecodecs kornia-rs torchcodec
torchvision`` brings others; torchvision 0.29 deprecates its decoders for those of torchcodec.  Each
round decodes all images once with each; the best round counts.

The table is for programs of other environments, too: nothing but NumPy is imported with it.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROUNDS, IMAGES, FACE = 5, 100, 112
Decoder = Callable[[bytes], Any]


def ours() -> Decoder:
    from recordio import decode_image

    return decode_image


def mx_image() -> Decoder:
    from iterators.mx_image import imdecode

    return imdecode


def pillow() -> Decoder:
    from PIL import Image

    return lambda data: np.array(Image.open(io.BytesIO(data)).convert("RGB"))


def opencv() -> Decoder:
    import cv2

    cv2.setNumThreads(1)
    return lambda data: cv2.cvtColor(
        cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB
    )


def simplejpeg() -> Decoder:
    import simplejpeg

    return simplejpeg.decode_jpeg


def imagecodecs() -> Decoder:
    import imagecodecs

    return lambda data: (
        imagecodecs.jpeg8_decode(data) if data[0] == 0xFF else imagecodecs.png_decode(data)
    )


def torchcodec() -> Decoder:
    import torch
    from torchcodec.decoders import decode_image

    torch.set_num_threads(1)
    return decode_image


def torchvision() -> Decoder:
    import torch
    from torchvision.io import ImageReadMode, decode_image

    torch.set_num_threads(1)
    return lambda data: decode_image(
        torch.frombuffer(bytearray(data), dtype=torch.uint8), ImageReadMode.RGB
    )


def kornia() -> Decoder:
    from kornia_rs import io as kornia_io

    def decode(data: bytes) -> Any:
        if data[0] == 0xFF:
            return kornia_io.decode_image_jpegturbo(data, "rgb")
        width, height = struct.unpack(">II", data[16:24])
        return kornia_io.decode_image_png_u8(data, (height, width), "rgb")

    return decode


DECODERS = {
    "ours": (ours, "recordio-iterators"),
    "mx.image": (mx_image, "recordio-iterators"),
    "simplejpeg": (simplejpeg, "simplejpeg"),
    "OpenCV": (opencv, "opencv-python-headless"),
    "Pillow": (pillow, "pillow"),
    "imagecodecs": (imagecodecs, "imagecodecs"),
    "torchcodec": (torchcodec, "torchcodec"),
    "torchvision": (torchvision, "torchvision"),
    "kornia-rs": (kornia, "kornia_rs"),
}


def material(folder: Path) -> dict[str, list[bytes]]:
    """Images of each kind, as files in memory."""
    from recordio import decode_image, encode_image

    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    photos = [path.read_bytes() for path in paths[:IMAGES]]
    pixels = [decode_image(data) for data in photos]
    faces = [decode_image(data, size=(FACE, FACE)) for data in photos]
    return {
        "photographs, JPEG": photos,
        "the same, progressive": [encode_image(p, quality=90, progressive=True) for p in pixels],
        "faces 112, JPEG": [encode_image(p) for p in faces] * 4,
        "photographs, PNG": [encode_image(p, "png") for p in pixels[: IMAGES // 2]],
    }


def rates(files: list[bytes], decoders: dict[str, Decoder]) -> dict[str, float]:
    """Images per second of processor time; those that cannot decode them are left out."""
    able = {}
    for name, decode in decoders.items():
        try:
            decode(files[0])
        except Exception:  # libraries raise what they like
            continue
        able[name] = decode
    best = dict.fromkeys(able, 0.0)
    for _ in range(ROUNDS):
        for name, decode in able.items():
            start = time.process_time()
            for data in files:
                decode(data)
            best[name] = max(best[name], len(files) / (time.process_time() - start))
    return best


def main(folder: str = "../shared/data/photos") -> None:
    """Print a table of all decoders over all kinds of images."""
    decoders, versions = {}, []
    for name, (make, package) in DECODERS.items():
        try:
            decoders[name] = make()
        except Exception as error:  # not installed, or not for this machine
            print(f"without {name}: {error}"[:100], file=sys.stderr)
            continue
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # a checkout
            versions.append(f"{name} {importlib.metadata.version(package)}")
    print(", ".join(versions))
    print("| |", " | ".join(decoders), "| ours : best other |")
    print("|---" * (len(decoders) + 2) + "|")
    for kind, files in material(Path(folder)).items():
        found = rates(files, decoders)
        cells = (f"{found[name]:,.0f}" if name in found else "-" for name in decoders)
        other = max(rate for name, rate in found.items() if name not in ("ours", "mx.image"))
        print(f"| {kind} | {' | '.join(cells)} | {found['ours'] / other:.2f} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
