"""PNG files of every kind, made chunk by chunk: what encoders do not write is in them, too."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: Depths that each colour type allows, and its samples: grey, RGB, palette, grey alpha, RGBA.
DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2))
ADAM7 += ((0, 1, 1, 2),)


def chunk(kind: bytes, content: bytes = b"") -> bytes:
    """A chunk with its length and checksum."""
    body = kind + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))


def packed_rows(samples: np.ndarray, depth: int) -> list[np.ndarray]:
    """Rows of samples as bytes; the first one is at the highest bits."""
    rows = samples.reshape(samples.shape[0], -1)
    if depth == 16:
        return list(rows.astype(">u2").view(np.uint8))
    if depth == 8:
        return list(rows.astype(np.uint8))
    bits = (rows[..., None] >> np.arange(depth - 1, -1, -1)) & 1
    return list(np.packbits(bits.reshape(rows.shape[0], -1).astype(np.uint8), axis=1))


def paeth(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The predictor, as the specification says it."""
    p = a + b - c
    pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
    return np.where((pa <= pb) & (pa <= pc), a, np.where(pb <= pc, b, c))


def filtered(rows: list[np.ndarray], filters: list[int], pixel: int) -> bytes:
    """Rows with their filters, which are taken in turn."""
    out, above = b"", np.zeros_like(rows[0], dtype=int)
    for number, stored in enumerate(rows):
        row = stored.astype(int)
        left = np.concatenate([np.zeros(pixel, int), row])[: row.size]
        corner = np.concatenate([np.zeros(pixel, int), above])[: row.size]
        kind = filters[number % len(filters)]
        guess = [0, left, above, (left + above) // 2, paeth(left, above, corner)][kind]
        out += bytes([kind]) + ((row - guess) & 255).astype(np.uint8).tobytes()
        above = row
    return out


@dataclass
class Picture:
    """What a PNG file is made of."""

    samples: np.ndarray
    depth: int
    colour: int
    interlaced: bool = False
    filters: list[int] = field(default_factory=lambda: [0])
    palette: bytes = b""
    transparency: bytes = b""
    piece: int = 1 << 30
    before: tuple[tuple[bytes, bytes], ...] = ()
    after: tuple[tuple[bytes, bytes], ...] = ()

    def data(self) -> bytes:
        """All rows with their filters, not yet compressed."""
        pixel = max(1, SAMPLES[self.colour] * self.depth // 8)
        parts = [self.samples]
        if self.interlaced:
            parts = [self.samples[y::down, x::across] for x, y, across, down in ADAM7]
        return b"".join(
            filtered(packed_rows(part, self.depth), self.filters, pixel)
            for part in parts
            if part.size
        )

    def chunks(self) -> list[tuple[bytes, bytes]]:
        """Kinds and contents."""
        height, width = self.samples.shape[:2]
        header = struct.pack(
            ">IIBBBBB", width, height, self.depth, self.colour, 0, 0, self.interlaced
        )
        packed = zlib.compress(self.data(), 1)
        return [
            (b"IHDR", header),
            *self.before,
            *([(b"PLTE", self.palette)] if self.palette else []),
            *([(b"tRNS", self.transparency)] if self.transparency else []),
            *((b"IDAT", packed[at : at + self.piece]) for at in range(0, len(packed), self.piece)),
            *self.after,
            (b"IEND", b""),
        ]

    def file(self) -> bytes:
        """The PNG file."""
        return SIGNATURE + b"".join(chunk(*item) for item in self.chunks())


def picture(
    colour: int,
    depth: int,
    size: tuple[int, int] = (13, 17),
    *,
    seed: int = 0,
    transparent: bool = False,
    **options,
) -> Picture:
    """A picture of random samples, with few distinct ones so that transparent colours occur."""
    random = np.random.default_rng(seed)
    shape = (size[1], size[0], SAMPLES[colour])
    samples = random.integers(0, 1 << depth, shape)
    samples[random.random(shape[:2]) < 0.5] = samples[0, 0]
    palette = transparency = b""
    if colour == 3:
        entries = int(random.integers(1, (1 << depth) + 1))
        palette = random.bytes(3 * entries)
        if transparent:
            transparency = random.bytes(int(random.integers(1, entries + 1)))
    elif colour in (0, 2) and transparent:
        transparency = samples[0, 0].astype(">u2").tobytes()
    return Picture(samples, depth, colour, palette=palette, transparency=transparency, **options)


@st.composite
def pictures(draw) -> Picture:
    """Pictures of every kind, up to 40 by 40 pixels."""
    colour = draw(st.sampled_from(sorted(DEPTHS)))
    return picture(
        colour,
        draw(st.sampled_from(DEPTHS[colour])),
        (draw(st.integers(1, 40)), draw(st.integers(1, 40))),
        seed=draw(st.integers(0, 1 << 20)),
        transparent=draw(st.booleans()),
        interlaced=draw(st.booleans()),
        filters=draw(st.lists(st.integers(0, 4), min_size=1, max_size=9)),
        piece=draw(st.sampled_from([1 << 30, 1 << 30, 100, 7])),
    )
