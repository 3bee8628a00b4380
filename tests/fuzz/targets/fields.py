"""Records of fields beside an image, through the provider: values of pixels, objects, texts, JSON.

An input is a byte for the kind of the field, and a record.
"""

from __future__ import annotations

import contextlib
import json
import random
import struct
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np

from iterators import ImageRecordIter
from iterators.core.field_specs import Boxes, FieldKind, Image, Json, Keypoints, Mask, Text
from iterators.images.fields.pixel_fields import decode_values
from recordio import IRHeader, RecordIOError, pack, unpack
from recordio.boxes import objects_of
from recordio.containers.objects import labels_of_rows
from recordio.errors import LabelError
from recordio.formats.table import kind_of
from recordio.frames.encoder import encode

from .mutate import EDGES, change_number, near, put
from .png import change_png, mend_png
from .target import Target, scratch

HEADER = 24
WIDTH, HEIGHT = 9, 6
PNG_DEPTH = 24
IMAGE = cv2.imencode(".png", np.full((HEIGHT, WIDTH, 3), 90, np.uint8))[1].tobytes()
IMAGES = b"".join(encode(pack(IRHeader(0, 0, key, 0), IMAGE)) for key in range(2))
GREY = cv2.imencode(".png", np.ones((HEIGHT, WIDTH), np.uint8))[1].tobytes()
#: Kinds by the first byte of an input, each with a sound record.
KINDS: tuple[tuple[FieldKind, bytes], ...] = (
    (Mask(dtype="int32"), pack(IRHeader(0, 0, 1, 0), GREY)),
    (Mask(), pack(IRHeader(0, 0, 1, 0), GREY)),
    (Image(dtype="uint16"), pack(IRHeader(0, 0, 1, 0), GREY)),
    (Keypoints(), pack(IRHeader(0, [2, 6, 0.5, 0.5, 2, 0, 0, 0], 1, 0), b"")),
    (Boxes(), pack(IRHeader(0, [2, 5, 1, 0, 0, 1, 1], 1, 0), b"")),
    (Text(), pack(IRHeader(0, 0, 1, 0), b"a text")),
    (Text(line="first"), pack(IRHeader(0, 0, 1, 0), b"a text")),
    (Json(), pack(IRHeader(0, 0, 1, 0), b"[1]")),
)


def check_fields(data: bytes) -> None:
    """A field is that of the plainest code, or its record is refused."""
    if not data:
        return
    (kind, sound), record = KINDS[data[0] % len(KINDS)], data[1:]
    path = scratch("a.rec", IMAGES)
    scratch("a.x.rec", encode(record) + encode(sound))
    with ImageRecordIter(
        path_imgrec=path, data_shape=(3, HEIGHT, WIDTH), batch_size=1, preprocess_threads=1,
        on_error="skip", fields={"x": kind},
    ) as provider:  # fmt: skip
        batch = provider.next()
        is_sound = not provider.skipped
    try:
        header, content = unpack(record)
    except RecordIOError:
        assert not is_sound
        return
    check_rows(bytes(content))
    if is_sound:
        check_value(kind, batch["x"][0], header, bytes(content))


def check_value(kind: FieldKind, value: Any, header: IRHeader, content: bytes) -> None:
    """Compare what was delivered with what the record holds."""
    if isinstance(kind, Json):
        assert repr(value) == repr(json.loads(content))
    elif isinstance(kind, Text):
        line = content if kind.line == "all" else content.partition(b"\n")[0]
        assert value == line.decode()
    elif isinstance(kind, (Mask, Image)):
        is_few_bits = kind_of(content) == "png" and content[PNG_DEPTH] < 8  # Pillow stretches them
        exact = isinstance(kind, Mask)
        with contextlib.suppress(RecordIOError):  # one of the two may be more patient
            wanted = decode_values(content, exact=exact)
            assert wanted.shape == (HEIGHT, WIDTH)
            assert is_few_bits or np.array_equal(value.reshape(wanted.shape), wanted)
    else:
        check_objects(kind, value, np.atleast_1d(np.asarray(header.label, np.float32)))


def check_objects(kind: FieldKind, value: np.ndarray, labels: np.ndarray) -> None:
    """Compare points, or look at boxes, of an image that fills its slot."""
    objects = objects_of(labels, 3 if isinstance(kind, Keypoints) else 5)
    if isinstance(kind, Boxes):
        kept = value[value[:, 0] != -1][:, 1:5]
        assert len(kept) <= len(objects)
        assert ((kept >= 0) & (kept <= (WIDTH, HEIGHT, WIDTH, HEIGHT))).all()
        return
    with np.errstate(over="ignore", invalid="ignore"):
        points = objects.reshape(len(objects), -1, 3).astype(np.float64) * (WIDTH, HEIGHT, 1)
        x, y, v = points.astype(np.float32).transpose(2, 0, 1)
    found = value[: len(objects)]
    labelled = v != 0
    assert np.array_equal(found[..., 0], np.where(labelled, x, 0))
    assert np.array_equal(found[..., 1], np.where(labelled, y, 0))
    seen = labelled & (x >= 0) & (x <= WIDTH) & (y >= 0) & (y <= HEIGHT)
    inside = (x > 0) & (x < WIDTH) & (y > 0) & (y < HEIGHT)
    same = np.isclose(found[..., 2], v, rtol=0, atol=0, equal_nan=True)
    assert (same | ~(seen & inside)).all()
    assert ((found[..., 2] == 0) | seen).all()


def check_rows(content: bytes) -> None:
    """Objects in JSON are labels from which the same objects are read."""
    try:
        labels = labels_of_rows(content)
    except LabelError:
        return
    if labels is not None:
        rows = json.loads(content)
        objects = objects_of(np.array(labels, np.float32), 3)
        assert np.array_equal(objects.reshape(-1), np.float32(sum(rows, [])), equal_nan=True)


def change_fields(data: bytes, draw: random.Random) -> bytes:
    """The kind, the number of labels, a label, or something in the content."""
    if len(data) < 1 + HEADER or draw.random() < 0.1:
        return bytes([draw.randrange(len(KINDS))]) + data[1:]
    flag = int.from_bytes(data[1:5], "little")
    kind = draw.randrange(3)
    if kind == 0:
        flag = draw.choice([near(flag, draw) % 2**32, len(data) // 4, flag | 1 << 31])
        return put(data, 1, flag.to_bytes(4, "little"))
    if kind == 1 and flag:
        value = draw.choice([float("nan"), float("inf"), 0.0, 0.5, 1.0, 2.0, 3.0, 6.0, -1.0, 1e38])
        value = draw.choice([value, min(float(draw.choice(EDGES)), 3e38)])
        return put(data, 1 + HEADER + 4 * draw.randrange(min(flag, 40)), struct.pack("<f", value))
    return changed_content(data, lambda content: content_changed(content, draw))


def content_changed(content: bytes, draw: random.Random) -> bytes:
    """The content with one change."""
    if content.startswith(b"\x89PNG"):
        return change_png(content, draw)
    return change_number(content, draw, draw.randrange(len(content) + 1))


def changed_content(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """An input whose content is changed, if its header has an end."""
    begin = 1 + HEADER + 4 * int.from_bytes(data[1:5], "little")
    return data if begin > len(data) else data[:begin] + change(data[begin:])


def mend_fields(data: bytes) -> bytes:
    """Make the checksums of a PNG image right."""
    return changed_content(data, lambda c: mend_png(c) if c.startswith(b"\x89PNG") else c)


WORDS = (b"[[1, 0, 0, 1, 1]]", b"\n", b"\xff", b'{"a": NaN}', struct.pack("<2f", 2, 6))
FIELDS = Target("fields", check_fields, change_fields, mend_fields, WORDS)
