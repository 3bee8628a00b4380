"""Heads of large records: read by small requests, kept beside the mirror, and compared."""

import os
from pathlib import Path

import numpy as np
import pytest

from recordio.bytes.remote.block_table import BLOCK
from recordio.bytes.remote.folder import open_mirror
from recordio.bytes.remote.heads import record_heads

DATA = np.random.default_rng(0).bytes(12 * BLOCK)
BEGINS = np.arange(0, len(DATA), 300_000)
WANTED = [DATA[begin : begin + 36] for begin in BEGINS.tolist()]


@pytest.fixture
def url(server):
    server.objects["a.rec"] = DATA
    return f"{server.url}/a.rec"


def heads(mirror):
    return [head.tobytes() for _, piece in record_heads(mirror, BEGINS, 36) for head in piece]


def flip(path, offset):
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


def test_heads_are_asked_for_once(server, url, settings):
    mirror = open_mirror(url, settings())
    assert heads(mirror) == WANTED
    assert all(end - begin == 36 for begin, end in server.ranges("a.rec"))
    count = len(server.requests)
    assert heads(mirror) == WANTED and len(server.requests) == count


@pytest.mark.parametrize("offset", [0, 36 * 5 + 7, -1])
def test_heads_that_changed_on_the_disk_are_asked_for_again(url, settings, offset):
    mirror = open_mirror(url, settings())
    heads(mirror)
    (kept,) = Path(mirror.path).parent.glob("heads-*")
    flip(kept, offset)
    assert heads(mirror) == WANTED
    os.truncate(kept, kept.stat().st_size // 2)
    assert heads(mirror) == WANTED


def test_heads_in_blocks_that_changed_on_the_disk(url, settings):
    mirror = open_mirror(url, settings())
    mirror.pin(np.arange(4, 8)).wait()
    path = mirror.path
    del mirror
    flip(Path(path), int(BEGINS[5]) + 3)
    assert heads(open_mirror(url, settings())) == WANTED
