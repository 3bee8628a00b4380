"""Record files of images with boxes, through the provider."""

from __future__ import annotations

import contextlib
import random
import struct
import warnings

import numpy as np

from iterators import ImageDetRecordIter
from recordio import RecordIOError, RecordReader, unpack
from recordio.frames.encoder import encode

from .mutate import EDGES, change_number, near, put
from .records import change_frames, records_of
from .target import Target, drawing, scratch

#: Values that stand before the label in a row of the label array.
PREFIX = 4


def label_of(record: bytes) -> np.ndarray | None:
    """The label of a record by the plainest code; None if there is none, or it is not sound."""
    try:
        header, _ = unpack(record)
    except RecordIOError:
        return None
    if header.flag < 2:
        return None
    label = header.label
    head, width = label[:2].tolist()
    if not (2 <= head <= len(label) and 5 <= width <= 1 << 20):
        return None
    if (len(label) - int(head)) % int(width):
        return None
    objects = label[int(head) :].reshape(-1, int(width))[:, :5]
    is_inside = (objects[:, 1:] >= -1) & (objects[:, 1:] <= 2)
    return label if np.isfinite(objects).all() and is_inside.all() else None


def check_detection(data: bytes) -> None:
    """Batches are as wide as was asked for, or else as the longest sound label."""
    path, draw = scratch("boxes.rec", data), drawing(data)
    with contextlib.suppress(RecordIOError), RecordReader(path) as reader:
        if not len(reader):
            return
    on_error = draw.choice(["skip", "skip", "raise"])
    pad_width = draw.choice([0, 0, 30])
    keywords = {"rand_crop_prob": 0.5, "rand_pad_prob": 0.5, "max_pad_scale": 2.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with ImageDetRecordIter(
            path_imgrec=path, data_shape=(3, 8, 8), batch_size=2, preprocess_threads=1,
            on_error=on_error, label_pad_width=pad_width, **keywords,
        ) as provider:  # fmt: skip
            labels = [batch.label[0] for batch in provider]
    records, _, damage = records_of(data)
    widths = [len(label) for record in records if (label := label_of(record)) is not None]
    if on_error == "skip" and damage is None:  # the iterator finds records after damage as well
        widest = pad_width or max([0, *widths])
        assert all(label.shape == (2, PREFIX + widest) for label in labels), widest


def change_detection(data: bytes, draw: random.Random) -> bytes:
    """The number of labels, a value of a label, or something in the frames."""
    records, _, _ = records_of(data)
    if not records or draw.random() < 0.3:
        return change_frames(data, draw)
    number = draw.randrange(len(records))
    record = records[number]
    kind = draw.randrange(3)
    if kind == 0:
        flag = int.from_bytes(record[:4], "little")
        flag = draw.choice(
            [near(flag, draw) % 2**32, flag | 1 << draw.randrange(32), len(record) // 4]
        )
        records[number] = put(record, 0, flag.to_bytes(4, "little"))
    elif kind == 1:
        value = draw.choice([float("nan"), float("inf"), 0.0, 1.0, 2.0, 5.0, -1.0, 1e38, 4.5, 6.0])
        value = draw.choice([value, min(float(draw.choice(EDGES)), 3e38)])
        records[number] = put(record, 24 + 4 * draw.randrange(12), struct.pack("<f", value))
    else:
        records[number] = change_number(record, draw, draw.randrange(len(record) + 1))
    return b"".join(map(encode, records))


DETECTION = Target("detection", check_detection, change_detection)
