"""Cache files that were written over, with right checksums where there are any: right images, a
`CacheFileError` or no image, and never the end of the process.

What could end it is run in a process of its own.
"""

import functools
import json
import os
import struct
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest

from iterators.images.cache.image_cache import FileImageCache, MemoryImageCache, image_bytes
from recordio.errors import CacheFileError

sys.path.append(str(Path(__file__).parents[3]))  # for processes that import this file
from faces.cache import load, store  # noqa: E402

COUNT = 24
CAPACITY = 60_000
UNIT, HEAD_SIZE = 64, 64
BITS = (1 << 64) - 1


@functools.lru_cache(None)
def picture(number):
    draws = np.random.default_rng(number)
    height, width = draws.integers(1, 25, 2)
    return draws.integers(0, 256, (height, width, 3), np.uint8)


def source_of(number):
    return 100 + number, 3 + number


def open_cache(path, capacity=CAPACITY):
    return FileImageCache(str(path), COUNT, 3, capacity, {"resize": "256"})


def fill(cache, numbers=range(COUNT)):
    return [n for n in numbers if store(cache, n, picture(n), source_of(n))]


def there(cache):
    """Numbers of the images that are there, each of which must be right."""
    found = {n: load(cache, n) for n in range(COUNT)}
    for number, image in found.items():
        if image is not None:
            np.testing.assert_array_equal(image[0], picture(number))
            assert image[1] == source_of(number)
    return [n for n in found if found[n] is not None]


def checksum(seed, data):
    """What `image_cache.h` computes."""
    multiplier = 0x9E3779B97F4A7C15

    def mix(state, word):
        state = (state ^ word) * multiplier & BITS
        return (state << 29 | state >> 35) & BITS

    lanes = [seed, ~seed & BITS, seed ^ multiplier, (seed + multiplier) & BITS]
    words = np.frombuffer(data[: len(data) // 8 * 8], "=u8").tolist()
    whole = len(words) // 4 * 4
    for i, word in enumerate(words):
        lane = i % 4 if i < whole else 0
        lanes[lane] = mix(lanes[lane], word)
    last = int.from_bytes(data[len(words) * 8 :], "little")
    result = mix(mix(lanes[0], last), len(data))
    for lane in lanes[1:]:
        result = mix(result, lane)
    return result ^ result >> 32


class Parts:
    """The bytes of a cache file, and where its parts are."""

    def __init__(self, content):
        self.content = bytearray(content)
        (length,) = struct.unpack_from("=I", content, 24)
        self.description = json.loads(content[32 : 32 + length])
        self.table = self.description["table_place"]
        self.data = self.description["data_place"]
        self.seed = int(self.description["id"], 16)

    def word(self, number):
        return struct.unpack_from("=Q", self.content, self.table + 8 * number)[0]

    def place(self, number):
        return self.data + (self.word(number) >> 24) * UNIT

    def with_bytes(self, place, new):
        content = self.content.copy()
        content[place : place + len(new)] = new
        return content

    def with_text(self, text):
        """Another description, whose length and checksum are right."""
        return self.with_bytes(24, struct.pack("=II", len(text), zlib.crc32(text)) + text)

    def head(self, record, /, **changes):
        """The head of a record's image, changed, with the checksum that belongs to it."""
        place = self.place(record)
        names = ("number", "width", "height", "source_width", "source_height")
        head = dict(zip(names, struct.unpack_from("=qiiii", self.content, place + 8)), **changes)
        packed = struct.pack("=qiiii", *head.values())
        pixels = place + HEAD_SIZE
        length = max(head["width"] * head["height"] * 3, 0)
        rest = bytes(self.content[pixels : pixels + length]) if length < 1 << 20 else b""
        return struct.pack("=Q", checksum(checksum(self.seed, packed), rest)) + packed


@pytest.fixture
def path(tmp_path):
    """A cache file with half of the images."""
    path = tmp_path / "images.cache"
    assert fill(open_cache(path), range(0, COUNT, 2)) == list(range(0, COUNT, 2))
    return path


def outlive(function, *arguments):
    """Call a function of this module in a process that it must not end; what it printed."""
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"import test_cache_damage\ntest_cache_damage.{function}(*sys.argv[1:])\nprint('alive')\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.returncode == 0 and run.stdout.endswith("alive\n"), (run.returncode, run.stderr)
    return run.stdout


# -- the description -------------------------------------------------------------------------------

VALUES = [
    *(0, 1, -1, 8, 31, 4095, 4097, 4104, 8192, 1 << 20, 1 << 31, 1 << 40, 1 << 62, 1 << 63),
    *(1 << 64, -(1 << 40), -(1 << 63), 10**400, 4096.0, 4096.5, 1e308, float("inf"), True, False),
    *(None, "", "x", "4096", "0x1234567890abcd", "1" * 17, 1234567890123456, "\ud800\x1b[2J"),
    *("0_1_2_3_4_5_6_7_", "f" * 16 + "\n", "\u0661" * 16, [], {}, [4096], "y" * 100_000),
]

TEXTS = [
    *(b"[]", b"{}", b"1", b"null", b'"x"', b"NaN", b"\xff\xfe", b"{", b'{"a": 1', b"\0" * 50),
    *(b"[" * 200_000, b'{"a":' * 100_000, b"9" * 5000, b"[" * 900 + b"]" * 900, b"\x1b[2J"),
]


def descriptions(parts):
    """Texts in place of the description."""
    right = parts.description
    for name in right:
        yield {key: right[key] for key in right if key != name}
        for value in VALUES:
            yield {**right, name: value}
    yield {**right, "more": 1}
    yield {**right, "more": [[]]}
    yield {**right, "table_place": right["data_place"], "data_place": right["table_place"]}
    yield {**right, "table_place": right["data_place"]}
    yield {**right, "data_place": right["table_place"]}
    yield {**right, "\x1b[2J" * 1000: 5}


def descriptions_as_texts(parts):
    right = json.dumps(parts.description)
    yield from TEXTS
    yield right.encode("utf-16")
    yield right.encode() + b" " * 100
    yield right.replace(": ", ":").encode()
    yield right.replace("{", '{"table_place": 4096, ').encode()
    for description in descriptions(parts):
        text = json.dumps(description).encode()
        if text != right.encode():
            yield text


def attack_description(path):
    parts = Parts(Path(path).read_bytes())
    length = len(json.dumps(parts.description))
    for text in descriptions_as_texts(parts):
        Path(path).write_bytes(parts.with_text(text))
        try:
            there(open_cache(path))
        except CacheFileError as error:
            assert str(error).isprintable() and len(str(error)) < 1000, error
            continue
        raise AssertionError(f"opened with {text[:300]!r}")
    for check in (b"\0" * 8, b"\xff" * 8, struct.pack("=II", length, 0)):
        Path(path).write_bytes(parts.with_bytes(24, check))
        with pytest.raises(CacheFileError, match="damaged"):
            open_cache(path)
    Path(path).write_bytes(parts.content)
    assert there(open_cache(path)) == list(range(0, COUNT, 2))


def test_a_description_with_a_right_checksum_is_believed_only_as_it_was_written(path):
    outlive("attack_description", path)


@pytest.mark.parametrize(
    "change",
    [{"table_place": 1 << 40}, {"data_place": -(1 << 40)}, {"table_place": 4096.0}, {"id": "x"}],
    ids=str,
)
def test_places_that_become_addresses_are_checked(path, change):
    parts = Parts(path.read_bytes())
    path.write_bytes(parts.with_text(json.dumps({**parts.description, **change}).encode()))
    with pytest.raises(CacheFileError, match="the cache is damaged: delete the file") as caught:
        open_cache(path)
    assert caught.value.path == str(path)


def test_files_made_before_the_places_were_checked_are_still_of_use(path):
    """The rule for the places must not change without VERSION."""
    description = Parts(path.read_bytes()).description
    assert (description["version"], description["table_place"], description["data_place"]) == (
        *(1, 4096),
        8192,
    )


def attack_length(path):
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (1 << 36, 1 << 36))
    os.truncate(path, 1 << 38)
    with pytest.raises(CacheFileError, match="the cache of 274877906944 bytes cannot be mapped"):
        open_cache(path)
    os.truncate(path, 1 << 20)
    assert there(open_cache(path)) == list(range(0, COUNT, 2))


@pytest.mark.address_space
def test_a_file_that_is_too_large_to_be_mapped(path):
    outlive("attack_length", path)


# -- table, heads and the number of bytes in use, before the file is opened ------------------------


def words(draws, parts):
    """Words that no cache wrote, and words of other records."""
    number = int(draws.integers(COUNT // 2)) * 2
    place, length = parts.word(number) >> 24, parts.word(number) & 0xFFFFFF
    end = (len(parts.content) - parts.data) // UNIT
    return [
        *(1, 2, 3, BITS, 1 << 63, 0xFFFFFF, 1 << 24, BITS << 24 & BITS, parts.word(0)),
        *(place << 24 | n for n in (0, 1, 2, length + 1, length - 1, 0xFFFFFF)),
        *((place + n) % (1 << 40) << 24 | length for n in (1, -1, 2, 1000)),
        *(end - n << 24 | n for n in (1, 2, 3)),
        *((end - 1) << 24 | 3, end << 24 | 2, int(draws.integers(1 << 62))),
    ]


def heads(draws, parts, number):
    """Heads with a right checksum that say what cannot be, or something else."""
    height, width, _ = picture(number).shape
    largest = (1 << 31) - 1
    for values in (
        {"number": -1},
        {"number": int(draws.integers(COUNT))},
        {"number": 1 << 62},
        {"width": 0},
        {"width": -width, "height": -height},
        {"width": width + int(draws.integers(1, 400))},
        {"width": largest, "height": largest},
        {"width": 1 << 16, "height": 1 << 16},
        {"width": 1 << 30, "height": 4},
        {"width": height, "height": width},
        {"width": width * height, "height": 1},
        {"source_width": 0},
        {"source_height": -1},
        {"source_width": largest, "source_height": largest},
    ):
        yield parts.head(number, **values)


def used_bytes(draws):
    return [0, 1, 64, CAPACITY, BITS, 1 << 63, BITS - 63, BITS - 4095, int(draws.integers(1 << 40))]


def mutations(draws, parts):
    """Contents of a file whose description is right, and whether images may differ."""
    number = int(draws.integers(COUNT // 2)) * 2
    for word in words(draws, parts):
        place = parts.table + 8 * int(draws.integers(COUNT))
        yield parts.with_bytes(place, struct.pack("=Q", word)), False
    yield parts.with_bytes(parts.table, draws.bytes(8 * COUNT)), False
    for used in used_bytes(draws):
        yield parts.with_bytes(16, struct.pack("=Q", used)), False
    for head in heads(draws, parts, number):
        yield parts.with_bytes(parts.place(number), head), True
    for first, last in ((32, parts.table), (parts.table, parts.data), (parts.data, CAPACITY)):
        junk = draws.bytes(int(draws.integers(1, 200)))
        if first > 32:
            yield parts.with_bytes(int(draws.integers(first, last)), junk), False


def fits(parts, number, image):
    """Whether an image has no more pixels than there are."""
    height, width, channels = image[0].shape
    return image_bytes(width, height, channels) == (parts.word(number) & 0xFFFFFF) * UNIT


def attack_closed(path, seed):
    draws = np.random.default_rng(int(seed))
    parts = Parts(Path(path).read_bytes())
    for content, forged in mutations(draws, parts):
        Path(path).write_bytes(content)
        try:
            cache = open_cache(path)
        except CacheFileError:
            raise AssertionError("a description that is right was refused") from None
        before = Parts(Path(path).read_bytes())
        if forged:
            for number in range(COUNT):
                image = load(cache, number)
                assert image is None or fits(before, number, image)
            fill(cache)
            continue
        right = there(cache)
        fill(cache)
        # What this process found or put there stays, and another one finds it.
        assert set(right) <= set(there(cache)) == set(there(open_cache(path)))


@pytest.mark.parametrize("seed", range(2))
def test_a_file_that_was_written_over_before_it_is_opened(path, seed):
    outlive("attack_closed", path, seed)


# -- the same while the file is open ---------------------------------------------------------------


def overwrite(path, place, new):
    file = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(file, new, place)
    finally:
        os.close(file)


def attack_open(path, seed):
    draws = np.random.default_rng(int(seed))
    parts = Parts(Path(path).read_bytes())
    number = int(draws.integers(COUNT // 2)) * 2
    changes = [(parts.table + 8 * number, struct.pack("=Q", word)) for word in words(draws, parts)]
    changes += [(16, struct.pack("=Q", used)) for used in used_bytes(draws)]
    changes += [(parts.place(number), draws.bytes(HEAD_SIZE)) for _ in range(5)]
    changes += [(parts.table, draws.bytes(8 * COUNT)), (0, draws.bytes(parts.table))]
    forged = [(parts.place(number), head) for head in heads(draws, parts, number)]
    for place, new in changes + forged:
        Path(path).write_bytes(parts.content)
        cache = open_cache(path)
        known = there(cache)
        overwrite(path, place, new)
        if (place, new) in forged:  # the checksum is right, so that there may be another image
            image = load(cache, number)
            assert image is None or fits(parts, number, image)
            continue
        there(cache)
        fill(cache)
        right = there(cache)
        if place == 16:
            assert set(known) <= set(right)


@pytest.mark.parametrize("seed", range(2))
def test_a_file_that_is_written_over_while_it_is_open(path, seed):
    outlive("attack_open", path, seed)


def attack_by_a_thread(path):
    """A thread that writes over everything, images included, while others load and store."""
    parts = Parts(Path(path).read_bytes())
    caches = [open_cache(path) for _ in range(2)]
    stop, failures = threading.Event(), []

    def write(seed):
        draws = np.random.default_rng(seed)
        file = os.open(path, os.O_WRONLY)
        while not stop.is_set():
            number = int(draws.integers(COUNT // 2)) * 2
            word = words(draws, parts)
            for place, new in (
                (parts.table + 8 * number, struct.pack("=Q", word[draws.integers(len(word))])),
                (parts.place(number) + 16, draws.bytes(16)),
                (parts.place(number) + 16, struct.pack("=ii", 1 << 14, 1 << 14)),
                (int(draws.integers(parts.data, CAPACITY)), draws.bytes(100)),
                (16, struct.pack("=Q", used_bytes(draws)[draws.integers(9)])),
            ):
                os.pwrite(file, new, place)
            for place, size in ((16, 8), (parts.table, 8 * COUNT), (parts.data, CAPACITY)):
                os.pwrite(file, parts.content[place : place + size], place)
        os.close(file)

    def load_all(cache):
        largest = max(picture(n).size for n in range(COUNT))
        for i in range(150):
            for number in range(COUNT):
                image = load(cache, number)
                if image is not None and image[0].size > largest + 2 * UNIT:
                    failures.append(image[0].shape)
            if i % 10 == 0:
                fill(cache)

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(2)]
    readers = [threading.Thread(target=load_all, args=(cache,)) for cache in caches * 2]
    for thread in writers + readers:
        thread.start()
    for thread in readers:
        thread.join()
    stop.set()
    for thread in writers:
        thread.join()
    assert not failures, failures[:5]


def test_threads_that_write_over_a_file_while_others_use_it(path):
    outlive("attack_by_a_thread", path)


def test_sizes_that_change_after_the_checksum_was_right_are_not_used(path):
    """The image is checked again: it is another one, or none."""
    parts, cache = Parts(path.read_bytes()), open_cache(path)
    number = max(range(0, COUNT, 2), key=lambda n: abs(np.diff(picture(n).shape[:2])[0]))
    height, width, _ = picture(number).shape
    right = load(cache, number)
    for size in ((1 << 20, 1 << 20), (height, width), (width, 0), (-width, -height)):
        overwrite(path, parts.place(number) + 16, struct.pack("=ii", *size))
        assert load(cache, number) is None
    overwrite(path, parts.place(number) + 24, struct.pack("=ii", 1, 1))
    assert load(cache, number) is None
    overwrite(path, parts.place(number) + 16, struct.pack("=iiii", width, height, *right[1]))
    np.testing.assert_array_equal(load(cache, number)[0], right[0])


@pytest.mark.parametrize("used", [0, 64, 77, BITS - 127, 1 << 63])
def test_a_number_of_bytes_in_use_that_became_too_low_ends_the_filling(path, used, caplog):
    cache = open_cache(path)
    known = there(cache)
    overwrite(path, 16, struct.pack("=Q", used))
    assert fill(cache) == [] and there(cache) == known
    assert "no more images are cached, because the file was written over" in caplog.text
    assert len(caplog.records) == 1
    again = open_cache(path)
    assert there(again) == known and fill(again) == list(range(1, COUNT, 2))


def test_images_that_no_cache_can_hold():
    cache = MemoryImageCache(2, 1, 1 << 20)
    too_large = np.zeros((1, 1 << 30, 1), np.uint8)
    assert not store(cache, 0, too_large)
    assert cache.images == 0
