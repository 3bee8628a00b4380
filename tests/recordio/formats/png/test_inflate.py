"""The inflater of PNG: what zlib makes of a stream, and refused where zlib refuses it."""

import random
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faces.inflate import adler32, crc32, inflate

ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]
KINDS = [4] * 13 + [5] * 6  # the lengths of a complete code for lengths
LENGTH_BASE = [*range(3, 11), *range(11, 19, 2), *range(19, 35, 4), *range(35, 67, 8)]
LENGTH_BASE += [*range(67, 131, 16), *range(131, 258, 32), 258]
LENGTH_EXTRA = [0] * 8 + [extra for extra in range(1, 6) for _ in range(4)] + [0]
DISTANCE_EXTRA = [0, 0] + [extra for extra in range(14) for _ in range(2)]
DISTANCE_BASE = [1 + sum(1 << extra for extra in DISTANCE_EXTRA[:i]) for i in range(30)]
FIXED = [8] * 144 + [9] * 112 + [7] * 24 + [8] * 8


def by_zlib(data, size):
    """What zlib makes of it; None if that is not one stream of such a size."""
    reader = zlib.decompressobj()
    try:
        out = reader.decompress(data, size + 1)
    except zlib.error:
        return None
    return out if reader.eof and not reader.unused_data and len(out) == size else None


def check(data, size):
    """The same outcome as zlib's; what it is."""
    wanted = by_zlib(data, size)
    for portable in (False, True):
        assert inflate(data, size, portable=portable) == wanted, (data, size)
    return wanted


def codes(lengths):
    """The canonical code with these lengths: bits in the order of the data."""
    found, code = {}, 0
    for bits in range(1, 16):
        for symbol, length in enumerate(lengths):
            if length == bits:
                found[symbol] = f"{code:0{bits}b}"
                code += 1
        code <<= 1
    return found


def number(value, bits):
    """A number as the data have it, the lowest bit first."""
    return f"{value:0{bits}b}"[::-1] if bits else ""


def complete(draw, symbols, most=15):
    """Lengths of a complete code for some of the symbols."""
    leaves = [1, 1]
    wanted = draw.randint(2, len(symbols))
    while len(leaves) < wanted:
        short = [i for i, bits in enumerate(leaves) if bits < most]
        if not short:
            break
        at = max(short, key=leaves.__getitem__) if draw.random() < 0.2 else draw.choice(short)
        leaves[at] += 1
        leaves.append(leaves[at])
    return dict(zip(draw.sample(symbols, len(leaves)), leaves, strict=True))


def tables(draw, literals, distances):
    """The head of a dynamic block with these lengths of codes, repeats where they fit."""
    kinds = codes(KINDS)
    text = number(len(literals) - 257, 5) + number(len(distances) - 1, 5) + number(15, 4)
    text += "".join(number(KINDS[kind], 3) for kind in ORDER)
    lengths, at = [*literals, *distances], 0
    while at < len(lengths):
        same = 1
        while at + same < len(lengths) and lengths[at + same] == lengths[at]:
            same += 1
        if lengths[at] == 0 and same >= 11 and draw.random() < 0.9:
            times = min(same, 138)
            text += kinds[18] + number(times - 11, 7)
        elif lengths[at] == 0 and same >= 3 and draw.random() < 0.9:
            times = min(same, 10)
            text += kinds[17] + number(times - 3, 3)
        elif at and lengths[at] == lengths[at - 1] and same >= 3:
            times = min(same, 6)
            text += kinds[16] + number(times - 3, 2)
        else:
            times = 1
            text += kinds[lengths[at]]
        at += times
    return text


def symbols(draw, literals, distances, size, careful):
    """Symbols of a block after `size` bytes, and the size after it."""
    text = ""
    lit, dist = codes(literals), codes(distances)
    usable = [symbol for symbol in lit if symbol != 256]
    for _ in range(draw.choice([0, 1, 5, 200]) if usable else 0):
        symbol = draw.choice(usable)
        if symbol < 256:
            text += lit[symbol]
            size += 1
            continue
        near = [far for far in dist if far < 30 and DISTANCE_BASE[far] <= size]
        if symbol > 285 or not near:
            if careful or not dist:
                continue
            near = list(dist)
        far = draw.choice(near)
        length = draw.randrange(1 << LENGTH_EXTRA[symbol - 257]) if symbol < 286 else 0
        most = size - DISTANCE_BASE[far] if far < 30 else 0
        room = (1 << DISTANCE_EXTRA[far]) - 1 if far < 30 else 0
        if careful or draw.random() < 0.98:
            room = max(min(most, room), 0)
        back = draw.randint(0, room)
        text += lit[symbol] + number(length, LENGTH_EXTRA[symbol - 257] if symbol < 286 else 0)
        text += dist[far] + number(back, DISTANCE_EXTRA[far] if far < 30 else 0)
        size += LENGTH_BASE[symbol - 257] + length if symbol < 286 else 3
    return text + lit[256], size


def block(draw, size, careful):
    """One block without its first bit, and the size after it."""
    if draw.random() < 0.15:
        text, size = symbols(draw, FIXED, [5] * 32, size, careful)
        return number(1, 2) + text, size
    values = [*range(256)] if draw.random() < 0.5 else draw.sample(range(256), 9)
    used = complete(draw, [*values, 256, *range(257, 286)])
    if 256 not in used:
        used[256] = used.pop(next(iter(used)))
    literals = [used.get(symbol, 0) for symbol in range(draw.choice([286, max(used) + 1]))]
    far = complete(draw, list(range(30))) if draw.random() < 0.9 else {draw.randrange(30): 1}
    far = {} if draw.random() < 0.05 else far
    distances = [far.get(symbol, 0) for symbol in range(draw.choice([30, max(far, default=0) + 1]))]
    if not careful and draw.random() < 0.2:
        lengths = draw.choice([literals, distances])
        lengths[draw.randrange(len(lengths))] = draw.randrange(16)
    if len(codes(literals).get(256, "")) == 0:
        careful, literals[256] = False, 1
    head = tables(draw, literals, distances)
    text, size = symbols(draw, literals, distances, size, careful)
    return number(2, 2) + head + text, size


def stream(seed, careful=True):
    """A made stream of some blocks, and the size of what it should become."""
    draw = random.Random(seed)
    text, size = "", 0
    count = draw.randint(1, 4)
    for i in range(count):
        text += str(int(i == count - 1))
        if draw.random() < 0.15:
            stored = draw.randbytes(draw.choice([0, 1, 70, 2000]))
            text += "00"
            text += "0" * (-len(text) % 8)
            length = len(stored) ^ (not careful and draw.random() < 0.2)
            text += number(length, 16) + number(len(stored) ^ 0xFFFF, 16)
            text += "".join(number(byte, 8) for byte in stored)
            size += len(stored)
        else:
            more, size = block(draw, size, careful)
            text += more
    text += "0" * (-len(text) % 8)
    packed = int(text[::-1], 2).to_bytes(len(text) // 8, "little")
    reader = zlib.decompressobj(-15)
    try:
        out = reader.decompress(packed)
    except zlib.error:
        out = bytes(size)
    return b"\x78\x01" + packed + zlib.adler32(out).to_bytes(4, "big"), len(out)


@given(st.integers(0, 1 << 40))
def test_made_streams_of_all_kinds_of_blocks_and_codes(seed):
    data, size = stream(seed)
    assert check(data, size) is not None


@given(st.integers(0, 1 << 40))
def test_broken_codes_and_symbols_have_the_outcome_of_zlib(seed):
    check(*stream(seed, careful=False))


@given(st.integers(0, 1 << 40))
def test_changed_streams_have_the_outcome_of_zlib(seed):
    data, size = stream(seed)
    draw = random.Random(seed)
    changed = bytearray(data)
    for _ in range(draw.randint(1, 3)):
        changed[draw.randrange(2, len(data))] ^= 1 << draw.randrange(8)
    check(bytes(changed), size)
    # Without the checksum, which would hide what was accepted.
    reader = zlib.decompressobj(-15)
    try:
        out = reader.decompress(bytes(changed[2:-4]), 1 << 20)
    except zlib.error:
        return
    end = len(changed) - 4 - len(reader.unused_data)
    check(bytes(changed[:end]) + zlib.adler32(out).to_bytes(4, "big"), len(out))


def test_a_stream_that_ends_early_anywhere_or_goes_on():
    for seed in range(12):
        data, size = stream(seed)
        for end in range(min(len(data), 400)):
            assert check(data[:end], size) is None
        assert check(data + b"x", size) is None
        assert check(data, size + 1) is None
        assert size == 0 or check(data, size - 1) is None


@pytest.mark.parametrize("level", range(10))
@pytest.mark.parametrize("strategy", range(5), ids=["", "filtered", "huffman", "rle", "fixed"])
def test_what_zlib_writes(level, strategy):
    random_bytes = np.random.default_rng(level)
    photograph = np.cumsum(random_bytes.integers(-3, 4, 150_000), dtype=np.uint8).tobytes()
    for raw in (
        *(b"", b"a", bytes(70_000), b"abc" * 30_000, photograph, random_bytes.bytes(70_000)),
        *(bytes(range(period)) * (3000 // period) for period in range(1, 40)),
    ):
        writer = zlib.compressobj(level, zlib.DEFLATED, 15, 9, strategy)
        data = writer.compress(raw) + writer.flush()
        assert check(data, len(raw)) == raw
        wrong = data[:-1] + bytes([data[-1] ^ 1])
        assert check(wrong, len(raw)) is None


@pytest.mark.parametrize(
    "header", [b"\x78\x02", b"\x79\x01", b"\x78\x20", b"\x88\x1c", b"\x68\x81"]
)
def test_headers(header):
    data = zlib.compress(b"content")
    assert check(header + data[2:], 7) == (b"content" if header == b"\x68\x81" else None)


@given(st.binary(max_size=300), st.integers(0, 40))
def test_checksums_are_those_of_zlib(data, start):
    data = data[start:]
    assert crc32(data) == crc32(data, plain=True) == zlib.crc32(data)
    assert adler32(data) == zlib.adler32(data)


def test_checksums_of_much_data():
    for data in (np.random.default_rng(0).bytes(1_000_003), b"\xff" * 999_999):
        for size in (len(data), 4096, 4095, 65_536, 65_537):
            part = memoryview(data)[-size:]
            assert crc32(part) == crc32(part, plain=True) == zlib.crc32(part)
            assert adler32(part) == zlib.adler32(part)
