"""MNIST's pairs of idx files: images become lossless PNG in image records, and back.

No pixel changes; images with an EXIF orientation are written upright.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from recordio import RecordIOError, read_idx_array
from recordio.bytes.storage import AtomicOutput

from ..images import decode_content, encode_image
from ..record_pack import Record, RecordPack
from .format import ArrayLimit, Export, Import, ImportSource, Item, Items, PixelLimit

IMAGES, LABELS = "-images-idx3-ubyte", "-labels-idx1-ubyte"


def open_mnist(settings: argparse.Namespace) -> ImportSource:
    """Read both files, which are small."""
    limit = settings.max_array_bytes
    images = read_idx_array(settings.images, max_array_bytes=limit)
    labels = read_idx_array(settings.labels, max_array_bytes=limit)
    if images.ndim != 3 or images.dtype != np.uint8:
        raise RecordIOError(
            f"expected images of uint8 with three axes, found {images.dtype} {images.shape}",
            path=settings.images,
        )
    if labels.ndim not in (1, 2) or len(labels) != len(images):
        raise RecordIOError(
            f"expected a label for each of {len(images)} images, found shape {labels.shape}",
            path=settings.labels,
        )
    return ImportSource(read_items(images, labels.reshape(len(labels), -1)), len(images))


def read_items(images: np.ndarray, labels: np.ndarray) -> Items:
    """Yield an item for each image."""
    for image, values in zip(images, labels, strict=True):
        yield Item(values.tolist(), encode_image(image, ".png"))


def outputs(target: str) -> list[str]:
    """Return the files that a target stands for."""
    return [f"{target}{IMAGES}", f"{target}{LABELS}"]


def write_mnist(pack: RecordPack, paths: Sequence[str], settings: argparse.Namespace) -> int:
    """Write the images and labels of a pack."""
    size: tuple[int, ...] = ()

    def row(record: Record) -> tuple[np.ndarray, int]:
        nonlocal size
        location = pack.location(record)
        image = decode_content(record.content, max_pixels=settings.max_pixels, **location)
        if image.ndim != 2 or image.dtype != np.uint8:
            raise RecordIOError(
                f"an image of shape {image.shape} and {image.dtype} is not grey with 8 bits",
                **location,
            )
        label = label_byte(record.labels, location)
        size = size or image.shape
        if image.shape != size:
            raise RecordIOError(
                f"the image is {image.shape[1]} x {image.shape[0]}, and those before are"
                f" {size[1]} x {size[0]}",
                **location,
            )
        return image, label

    pack = pack.usable(row)  # both files begin with their number
    with AtomicOutput(*paths) as output:
        images, labels = output.files
        labels.write(idx_header(len(pack)))
        for number, (_, (image, label)) in enumerate(pack.made(row)):
            if number == 0:
                images.write(idx_header(len(pack), *size))
            images.write(image.tobytes())
            labels.write(bytes([label]))
    return len(pack)


def idx_header(*shape: int) -> bytes:
    """Return the start of an idx file of bytes."""
    return bytes([0, 0, 8, len(shape)]) + np.array(shape, ">u4").tobytes()


def label_byte(labels: Sequence[float], location: dict) -> int:
    """Return the label of a record, which must fit into a byte."""
    if len(labels) != 1 or not labels[0].is_integer() or not 0 <= labels[0] <= 255:
        raise RecordIOError(
            f"the labels {labels} are not one whole number from 0 to 255", **location
        )
    return int(labels[0])


FROM_MNIST = Import(
    "mnist",
    "MNIST's images and labels (idx files)",
    [
        ("images", "the images, such as train-images-idx3-ubyte.gz", False),
        ("labels", "the labels, such as train-labels-idx1-ubyte.gz", False),
    ],
    open_mnist,
    ArrayLimit,
    description="Each image becomes an image record with a grey PNG and its label.",
    example=""">>> import struct
>>> _ = (folder / "images").write_bytes(struct.pack(">4B3I", 0, 0, 8, 3, 2, 4, 4) + bytes(32))
>>> _ = (folder / "labels").write_bytes(struct.pack(">4BI", 0, 0, 8, 1, 2) + bytes(2))
>>> recordio.convert.from_mnist(folder / "images", folder / "labels", folder / "a").records
2""",
)
TO_MNIST = Export(
    "mnist",
    f"MNIST's pair of files, TARGET{IMAGES} and TARGET{LABELS}",
    outputs,
    write_mnist,
    PixelLimit,
)
