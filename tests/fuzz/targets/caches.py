"""Files of cached images, with right checksums, before they are opened and while they are open."""

from __future__ import annotations

import json
import operator
import random
import struct
import zlib

import numpy as np

from faces.cache import load, store
from iterators.images.cache.image_cache import FileImageCache

from .mutate import EDGES, change_json_text, change_number, near, put
from .target import Target, scratch

#: What the files of the corpus were made with.
COUNT, CHANNELS, CAPACITY = 6, 3, 1 << 12
SETTINGS = {"data": "some", "resize": "8"}
MASK = 2**64 - 1
MULTIPLIER = 0x9E3779B97F4A7C15


def opened(path: str) -> FileImageCache:
    """The cache in a file, or a new one."""
    return FileImageCache(path, COUNT, CHANNELS, CAPACITY, SETTINGS)


def image(number: int) -> np.ndarray:
    """What belongs to a record."""
    return np.full((2 + number, 3, CHANNELS), 10 + number, np.uint8)


def loaded(cache: FileImageCache) -> None:
    """All images can be asked for; one that is there has a size and pixels."""
    assert 0 <= cache.images <= COUNT
    for number in range(COUNT):
        found = load(cache, number)
        if found is not None:
            pixels, _ = found
            assert pixels.ndim == 3
            assert pixels.shape[2] == CHANNELS
            int(pixels.sum())  # every byte of it can be read


def check_cache(data: bytes) -> None:
    """A changed file is refused or used, also when it is changed under a cache that is open."""
    path = scratch("changed.cache", data)
    try:
        cache = opened(path)
        loaded(cache)
        for number in range(COUNT):
            if store(cache, number, image(number)):
                assert np.array_equal(load(cache, number)[0], image(number))
        loaded(cache)
        del cache
        loaded(opened(path))
    finally:
        overwritten(data)


def overwritten(data: bytes) -> None:
    """Written over, but not cut, while it is open: images are found or not, nothing else."""
    path = scratch("open.cache", whole_file())
    cache = opened(path)
    loaded(cache)  # what was checked once is not checked again
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(data[4096 : len(whole_file())])
    loaded(cache)
    store(cache, 5, image(5))


_whole: bytes | None = None


def whole_file() -> bytes:
    """A cache with images of some records."""
    global _whole
    if _whole is None:
        path = scratch("whole.cache")
        cache = opened(path)
        for number in range(4):
            store(cache, number, image(number), (30, 20))
        del cache
        with open(path, "rb") as file:
            _whole = file.read()
    return _whole


# ---- the file


def described(data: bytes) -> bytes:
    """The JSON in a file."""
    (length,) = struct.unpack_from("<I", data.ljust(32, b"\0"), 24)
    return data[32 : 32 + length]


def with_description(data: bytes, text: bytes) -> bytes:
    """The file with another description."""
    check = struct.pack("<II", len(text), zlib.crc32(text))
    old = len(described(data))
    return (
        data[:24]
        + check
        + text
        + data[32 + max(old, len(text)) :].rjust(max(len(data) - 32 - len(text), 0), b"\0")
    )


def checksum(seed: int, data: bytes) -> int:
    """The checksum of image_cache.h."""
    lanes = [seed, ~seed & MASK, seed ^ MULTIPLIER, seed + MULTIPLIER & MASK]
    words = [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data) // 8 * 8, 8)]
    whole = len(words) // 4 * 4
    for i, word in enumerate(words[:whole]):
        lanes[i % 4] = mix(lanes[i % 4], word)
    for word in [*words[whole:], int.from_bytes(data[8 * len(words) :], "little"), len(data)]:
        lanes[0] = mix(lanes[0], word)
    for lane in lanes[1:]:
        lanes[0] = mix(lanes[0], lane)
    return lanes[0] ^ lanes[0] >> 32


def mix(state: int, word: int) -> int:
    """One step of it."""
    state = (state ^ word) * MULTIPLIER & MASK
    return (state << 29 | state >> 35) & MASK


def heads(data: bytes) -> list[tuple[int, int]]:
    """Record number and place in the file of each image that the table leads to."""
    try:
        found = json.loads(described(data))
        table, begin = (operator.index(found[name]) for name in ("table_place", "data_place"))
        words = struct.unpack_from(f"<{COUNT}Q", data, table)
        places = [
            (number, begin + (word >> 24) * 64) for number, word in enumerate(words) if word > 1
        ]
        return [(number, place) for number, place in places if 0 <= place <= len(data) - 64]
    except (ValueError, TypeError, KeyError, OverflowError, struct.error):
        return []


def mend_cache(data: bytes) -> bytes:
    """The checksums of the description and of all images made right."""
    if len(data) < 40:
        return data
    data = put(data, 28, struct.pack("<I", zlib.crc32(described(data))))
    try:
        seed = int(json.loads(described(data))["id"], 16) & MASK
    except (ValueError, TypeError, KeyError):
        return data
    for _, place in heads(data):
        rest = data[place + 8 : place + 32]
        _, width, height = struct.unpack_from("<qii", rest)
        size = max(width * height, 0) * CHANNELS
        if size <= len(data):
            pixels = data[place + 64 : place + 64 + size]
            data = put(data, place, struct.pack("<Q", checksum(checksum(seed, rest), pixels)))
    return data


def change_cache(data: bytes, draw: random.Random) -> bytes:
    """The description, a word of the table, the head of an image, or what is in use."""
    kind = draw.randrange(5)
    if kind <= 1:
        text = described(data)
        if kind == 0:
            try:
                found = json.loads(text)
                name = draw.choice(["table_place", "data_place", "id", "records"])
                places = [*EDGES, 4096, 8192, len(data), len(data) - 8, -8, near(found[name], draw)]
                found[name] = draw.choice([*places, "1" * 20, "-1", None, 4096.0, [4096]])
                return with_description(data, json.dumps(found).encode())
            except (ValueError, TypeError, KeyError):
                return data
        return with_description(data, change_json_text(text, draw))
    places = heads(data)
    if kind == 2 and places:
        _, place = draw.choice(places)
        at, width = draw.choice([(0, 8), (8, 8), (16, 4), (20, 4), (24, 4), (28, 4)])
        return change_number(data, draw, place + at, width)
    if kind == 3:
        word = draw.choice(EDGES) << 24 | draw.choice([1, 2, 3, 4, 64, 2**24 - 1])
        return put(data, 4096 + 8 * draw.randrange(COUNT), struct.pack("<Q", word & MASK))
    return change_number(data, draw, draw.choice([16, 24, 4096, 4104, 8192 + 64]), 8)


CACHE = Target(
    "cache", check_cache, change_cache, mend_cache, words=(b"iterators-cache\n", bytes(64))
)
