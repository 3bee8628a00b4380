"""Cases of fields: what a mask and key points beside the image cost, and boxes as one packed array.

torchvision and albumentations are compared with by hand: docs/measurements/performance.md says how.
"""

from __future__ import annotations

from functools import partial

import cv2
import numpy as np
from harness import case, compare
from image_cases import IMAGENET, PREFETCH, provider_of, steady_rate
from recipe_cases import MIRRORED_CROPS

import recordio
from iterators import ImageDetRecordIter
from iterators.fields import Boxes, Keypoints, Mask

POINTS = 17


def write_fields(records, blobs):
    """Write a mask of eight ellipses and 17 key points for every record, beside the pack."""
    rng, made = np.random.default_rng(0), {}
    prefix = records.with_suffix("")
    with (
        recordio.RecordReader(records, records.with_suffix(".idx")) as reader,
        recordio.RecordWriter(f"{prefix}.mask.rec", f"{prefix}.mask.idx") as masks,
        recordio.RecordWriter(f"{prefix}.points.rec", f"{prefix}.points.idx") as points,
    ):
        for number, key in enumerate(reader.keys.tolist()):
            photo = number % len(blobs)
            if photo not in made:
                height, width = cv2.imdecode(np.frombuffer(blobs[photo], np.uint8), 1).shape[:2]
                mask = np.zeros((height, width), np.uint8)
                for kind in range(1, 9):
                    centre = int(rng.integers(width)), int(rng.integers(height))
                    axes = int(rng.integers(9, width // 3)), int(rng.integers(9, height // 3))
                    cv2.ellipse(mask, centre, axes, 0, 0, 360, kind, -1)
                made[photo] = cv2.imencode(".png", mask)[1].tobytes()
            masks.write(recordio.pack(recordio.IRHeader(0, 0.0, key, 0), made[photo]), key)
            xyv = np.c_[rng.uniform(0, 1, (POINTS, 2)), np.full(POINTS, 2)]
            label = [2, 3 * POINTS, *xyv.ravel()]
            points.write(recordio.pack(recordio.IRHeader(0, label, key, 0), b""), key)


@case
def fields_of_photographs(material):
    """A mask and 17 key points beside each image, against the image alone."""
    write_fields(material.photo_records, material.blobs)
    common = {"data_shape": (3, 224, 224), "batch_size": 64, **MIRRORED_CROPS, **IMAGENET}
    fields = {"mask": Mask(), "points": Keypoints(swap=[(1, 2)])}
    with (
        provider_of(material, material.photo_records, fields=fields, **common) as with_fields,
        provider_of(material, material.photo_records, **common) as plain,
    ):
        yield compare(
            "mask and 17 points 224",
            "images/s",
            partial(steady_rate, with_fields),
            partial(steady_rate, plain),
            bar=0.7,
            rounds=material.rounds,
            detail="reference: the image alone",
        )


@case
def packed_boxes(material):
    """Boxes of detection images as one array with offsets, against the rows of labels alone."""
    rng = np.random.default_rng(0)
    path = material.folder / "boxes.rec"
    with recordio.RecordWriter(path, path.with_suffix(".idx")) as writer:
        for key in range(max(len(material.blobs), 1000)):
            low = rng.uniform(0, 0.6, (7, 2))
            corners = np.c_[low, low + rng.uniform(0.05, 0.4, (7, 2))]
            label = [2, 5, *np.c_[rng.integers(0, 80, 7), corners].ravel()]
            header = recordio.IRHeader(0, label, key, 0)
            writer.write(recordio.pack(header, material.blobs[key % len(material.blobs)]), key)
    common = {
        "path_imgrec": str(path),
        "data_shape": (3, 320, 320),
        "batch_size": 64,
        "shuffle": True,
        "rand_mirror_prob": 0.5,
        "rand_crop_prob": 0.5,
        "num_crop_sampler": 1,
        "min_crop_scales": 0.3,
        "preprocess_threads": material.threads,
        "prefetch_buffer": PREFETCH,
    }
    with (
        ImageDetRecordIter(fields={"boxes": Boxes(packed=True)}, **common) as packed,
        ImageDetRecordIter(**common) as plain,
    ):
        yield compare(
            "packed boxes 320",
            "images/s",
            partial(steady_rate, packed),
            partial(steady_rate, plain),
            bar=0.95,
            rounds=material.rounds,
            detail="reference: rows of labels alone",
        )
