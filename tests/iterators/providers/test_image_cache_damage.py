"""Batches from a cache file that somebody writes over: those without a cache, to the byte."""

import struct
import subprocess
import sys
import threading
from pathlib import Path

import cv2
import numpy as np
import pytest

from iterators import ImageIter, ImageRecordIter
from iterators.testing import encode, write_pack

COUNT, EPOCHS = 12, 150


def photo(number):
    draws = np.random.default_rng(number)
    height, width = draws.integers(40, 90, 2).tolist()
    small = draws.integers(0, 256, (4, 4, 3), np.uint8)
    return encode(cv2.resize(small, (width, height)), ".jpg")


def batches(provider):
    return [np.array(batch.data[0]).tobytes() for batch in provider]


def iterator_of(folder, **arguments):
    images = [[float(i), f"{i}.jpg"] for i in range(COUNT)]
    return ImageIter(4, (3, 24, 28), imglist=images, path_root=folder, verbose=False, **arguments)


def record_iter(path, **arguments):
    return ImageRecordIter(
        path_imgrec=path, data_shape=(3, 24, 28), batch_size=4, verbose=False, **arguments
    )


@pytest.fixture
def pack(tmp_path):
    return write_pack(tmp_path / "images.rec", map(photo, range(COUNT)))


def attack_sources(pack, resize):
    """Heads with right checksums which say that the images were made from others."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "images" / "cache"))
    from test_cache_damage import Parts

    path = Path(pack).with_suffix(".cache")
    recipe = {"resize": int(resize), "rand_crop": True, "rand_mirror": True}
    with record_iter(pack, **recipe) as provider:
        expected = batches(provider)
    with record_iter(pack, **recipe, cache=path) as provider:
        assert batches(provider) == expected and provider.cache_info().images == COUNT
    parts = Parts(path.read_bytes())
    for source in ((8000, 8000), (1, 1), (1 << 30, 3), ((1 << 31) - 1, (1 << 31) - 1)):
        content = parts.content.copy()
        for number in range(COUNT):
            head = parts.head(number, source_width=source[0], source_height=source[1])
            content[parts.place(number) : parts.place(number) + len(head)] = head
        path.write_bytes(content)
        with record_iter(pack, **recipe, cache=path) as provider:
            assert batches(provider) == expected
            # Resized images of some proportions could be those of such a source.
            assert provider.cache_info().hits == 0 or recipe["resize"] != -1
    print("alive")


@pytest.mark.parametrize("resize", [-1, 40])
def test_a_source_that_would_have_given_another_image(pack, resize):
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import test_image_cache_damage\ntest_image_cache_damage.attack_sources(*sys.argv[1:])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, str(pack), str(resize)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.returncode == 0 and run.stdout == "alive\n", (run.returncode, run.stderr)


def test_an_image_that_vanishes_from_the_cache_is_read_from_its_file(tmp_path):
    """Only the head of a cached image's record is made, so what was found must remain found."""
    for i in range(COUNT):
        (tmp_path / f"{i}.jpg").write_bytes(photo(i))
    path = tmp_path / "images.cache"
    recipe = {"resize": 32, "rand_crop": True, "preprocess_threads": 2}
    with iterator_of(tmp_path, **recipe) as provider:
        expected = [batches(provider) for _ in range(EPOCHS + 1)]
    with iterator_of(tmp_path, **recipe, cache=path) as provider:
        assert batches(provider) == expected[0] and provider.cache_info().images == COUNT
        content = path.read_bytes()
        table = content.index(struct.pack("=Q", 0), 32) // 4096 * 4096 + 4096
        words = content[table : table + 8 * COUNT]
        assert all(struct.unpack(f"={COUNT}Q", words))
        program = (
            "import os, sys\n"
            "file, words = os.open(sys.argv[1], os.O_WRONLY), bytes.fromhex(sys.argv[3])\n"
            "print(flush=True)\n"
            "while True:\n"
            "    for new in (bytes(len(words)), words):\n"
            "        os.pwrite(file, new, int(sys.argv[2]))\n"
        )
        writer = subprocess.Popen(
            [sys.executable, "-c", program, str(path), str(table), words.hex()],
            stdout=subprocess.PIPE,
        )
        with writer:
            try:
                writer.stdout.readline()
                assert [batches(provider) for _ in range(EPOCHS)] == expected[1:]
            finally:
                writer.kill()


def test_counters_are_read_while_threads_count(pack, tmp_path):
    """What other threads see never goes back, and is complete at the end."""
    seen, stop = [], threading.Event()
    with record_iter(pack, cache="ram", resize=32, preprocess_threads=2) as provider:

        def watch():
            while not stop.is_set():
                seen.append(provider.stats())

        thread = threading.Thread(target=watch)
        thread.start()
        for _ in range(5):
            batches(provider)
        stop.set()
        thread.join()
        seen.append(provider.stats())
    for name in ("images", "bytes", "cache_hits", "cache_misses", "decode_seconds"):
        values = [stats[name] for stats in seen]
        assert values == sorted(values)
    assert min(stats["transform_seconds"] for stats in seen) >= 0
    assert seen[-1]["cache_hits"] + seen[-1]["cache_misses"] >= 5 * COUNT
