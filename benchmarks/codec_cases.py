"""Cases of decoders: ours against those of the libraries, in the same pipeline or alone."""

from __future__ import annotations

import importlib
import os
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from unittest.mock import patch

import cv2
import numpy as np
from harness import Stopwatch, case, compare, reported
from image_cases import AREA, IMAGENET, PREFETCH, provider_of, steady_rate
from PIL import Image

from iterators import ImageRecordIter
from recordio import RecordReader, decode_image, unpack
from recordio.formats.jpeg import jpeg
from recordio.formats.table import FORMATS
from recordio.formats.webp import webp


@case
def entropy_decoder(material):
    """Crops of photographs, sequential and progressive, and faces: ours against the library's."""
    if jpeg.entropy_decoder() != "own":
        return
    photos = {
        "path_imgrec": str(material.photo_records),
        "path_imgidx": str(material.photo_records.with_suffix(".idx")),
        "data_shape": (3, 224, 224),
        "batch_size": 128,
        "random_resized_crop": True,
        **AREA,
        **IMAGENET,
    }
    faces = {
        "path_imgrec": str(material.face_records),
        "path_imgidx": str(material.face_records.with_suffix(".idx")),
        "data_shape": (3, 112, 112),
        "batch_size": 256,
        **IMAGENET,
    }
    progressive = {
        **photos,
        "path_imgrec": str(material.progressive_records),
        "path_imgidx": str(material.progressive_records.with_suffix(".idx")),
    }
    for job, bar, parameters in (
        ("entropy decoder, random resized crop 224", 1.25, photos),
        ("entropy decoder, the same of progressive photographs", 1.4, progressive),
        ("entropy decoder, faces 112", 1.15, faces),
    ):
        make = partial(
            ImageRecordIter,
            shuffle=True,
            seed=1,
            rand_mirror=True,
            preprocess_threads=material.threads,
            prefetch_buffer=PREFETCH,
            **parameters,
        )
        with both_decoders(make, "ITERATORS_JPEG", "plain") as (ours, reference):
            yield compare(
                job,
                "images/s",
                partial(steady_rate, ours),
                partial(steady_rate, reference),
                bar=bar,
                rounds=material.rounds,
                detail="reference: the same with libjpeg-turbo's",
            )


@contextmanager
def both_decoders(make, variable, theirs):
    """A provider with our decoder, and one with the library's, which the variable asks for.

    It holds for the provider that is made while it is set.
    """
    with make() as ours, patch.dict(os.environ, {variable: theirs}), make() as reference:
        yield ours, reference


@case
def png_decoder(material):
    """Photographs of short side 256 as PNG, in batches, against OpenCV that only decodes them."""
    path = material.resized_records(".png")
    with RecordReader(path) as reader:
        blobs = [bytes(unpack(record)[1]) for record in reader][:200]
    alone = partial(decode_rate, by_opencv, blobs, material.seconds)
    for job, bar, parameters in (
        ("PNG, random resized crop 224", 2, {"random_resized_crop": True, **AREA}),
        ("PNG, random crop 224", 2, {"rand_crop": True}),
    ):
        with provider_of(
            material,
            path,
            data_shape=(3, 224, 224),
            batch_size=128,
            rand_mirror=True,
            **parameters,
            **IMAGENET,
        ) as provider:
            yield compare(
                job,
                "images/s",
                partial(steady_rate, provider),
                partial(reported, alone, material.threads),
                bar=bar,
                rounds=material.rounds,
                detail=f"reference: {material.threads} x one thread of OpenCV, decoding alone",
            )


@case
def entry_points(material):
    """Untouched photographs and images of twelve megapixels: with entry points, from epoch 2 on."""
    large = material.packed("large.rec", [twelve_megapixels(i) for i in range(4)] * 12)
    for job, bar, path, batch_size in (
        ("entry points, random resized crop 224", 1.2, material.photo_records, 128),
        ("entry points, the same of 4000 x 3000", 1.35, large, 4),
    ):
        make = partial(
            provider_of,
            material,
            path,
            data_shape=(3, 224, 224),
            batch_size=batch_size,
            random_resized_crop=True,
            rand_mirror=True,
            **AREA,
            **IMAGENET,
        )
        with make(entry_points=True) as ours, make() as reference:
            for _ in range(3):  # after which most images are known down to their last rows
                for _ in ours:
                    pass
            yield compare(
                job,
                "images/s",
                partial(steady_rate, ours),
                partial(steady_rate, reference),
                bar=bar,
                rounds=material.rounds,
                detail="reference: the same without",
            )


def twelve_megapixels(seed):
    """A JPEG file with detail at every scale."""
    draw = np.random.default_rng(seed)
    image = np.zeros((3000, 4000, 3), np.float32)
    for side in (8, 60, 500, 3000):
        noise = draw.normal(0, 20, (side, side * 4 // 3, 3)).astype(np.float32)
        image += cv2.resize(noise, (4000, 3000), interpolation=cv2.INTER_CUBIC)
    pixels = np.clip(image * (1, 0.6, 0.6) + 128, 0, 255).astype(np.uint8)
    return cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, 85])[1].tobytes()


@case
def webp_decoder(material):
    """WebP photographs, whole and crops, against OpenCV's decoder alone and with its resizing."""
    if not webp.available():
        return
    blobs = material.other_blobs("WEBP")
    crops = [webp_crop(blob, np.random.default_rng(i)) for i, blob in enumerate(blobs)]

    def ours(pair):
        return decode_image(pair[0], region=pair[1], size=(224, 224))

    def theirs(pair):
        x, y, width, height = pair[1]
        return cv2.resize(by_opencv(pair[0])[y : y + height, x : x + width], (224, 224))

    for job, bar, mine, other, items in (
        ("WebP, whole", 1.2, decode_image, by_opencv, blobs),
        ("WebP, random resized crop 224", 1.8, ours, theirs, crops),
    ):
        yield compare(
            job,
            "images/s",
            partial(reported, partial(decode_rate, mine, items, material.seconds), 1),
            partial(reported, partial(decode_rate, other, items, material.seconds), 1),
            bar=bar,
            rounds=material.rounds,
            detail="one thread; reference: OpenCV",
        )


def webp_crop(blob, draw):
    """A file and a crop of 8 to 100 % of it."""
    height, width = by_opencv(blob).shape[:2]
    side = np.sqrt(draw.uniform(0.08, 1))
    w, h = max(1, int(width * side)), max(1, int(height * side))
    return blob, (int(draw.integers(width - w + 1)), int(draw.integers(height - h + 1)), w, h)


def decode_rate(decode, blobs, seconds):
    """Images per second that a function decodes in this thread."""
    watch, images = Stopwatch(), 0
    while watch.seconds()[0] < seconds:
        for blob in blobs:
            decode(blob)
        images += len(blobs)
    return images / watch.seconds()[0]


def by_opencv(blob):
    """Pixels as OpenCV decodes them."""
    return cv2.imdecode(np.frombuffer(blob, np.uint8), cv2.IMREAD_COLOR)


def with_pillow(blob):
    """Pixels as Pillow decodes them."""
    with Image.open(BytesIO(blob)) as image:
        return np.asarray(image.convert("RGB"))


@case
def other_formats(material):
    """WebP, AVIF and JPEG XL: random resized crops against Pillow, decoding alone."""
    for found in FORMATS:
        if found.kind not in ("webp", "avif", "jxl"):
            continue
        try:
            importlib.import_module(found.module)  # a plugin makes itself known to Pillow
        except ImportError:
            continue
        kind = found.kind
        blobs = material.other_blobs(found.pillow)
        path = material.packed(f"{kind}.rec", blobs * max(1, round(300 / len(blobs))))
        alone = partial(decode_rate, with_pillow, blobs, material.seconds)
        with provider_of(
            material,
            path,
            data_shape=(3, 224, 224),
            batch_size=32,
            rand_mirror=True,
            random_resized_crop=True,
            **AREA,
            **IMAGENET,
        ) as provider:
            yield compare(
                f"{found.name}, random resized crop 224",
                "images/s",
                partial(steady_rate, provider),
                partial(reported, alone, material.threads),
                bar=0.75,
                rounds=material.rounds,
                detail=f"reference: {material.threads} x one thread of Pillow, decoding alone",
            )
