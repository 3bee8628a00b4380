"""Write progressive JPEG files from coefficients, in any order of scans: plain Python, for tests.

It checks nothing: with a script that makes no sense it writes a file that makes none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

#: Places in natural order by position in the order of coding.
ZIGZAG = np.array(
    sorted(
        range(64),
        key=lambda i: (i // 8 + i % 8, i // 8 if (i // 8 + i % 8) % 2 else i % 8),
    )
)


class Scan(NamedTuple):
    """Components, band, and the bits before and in this scan, as in the file."""

    components: tuple[int, ...]
    first: int = 0
    last: int = 0
    high: int = 0
    low: int = 0
    restart: int = 0


class Frame(NamedTuple):
    """Coefficients of each component, (rows, columns, 64) in the order of coding; rows and columns
    are whole numbers of MCUs.
    """

    width: int
    height: int
    sampling: Sequence[tuple[int, int]]
    blocks: Sequence[np.ndarray]

    @property
    def mcus(self) -> tuple[int, int]:
        """Rows and columns of MCUs of a scan with several components."""
        across = 8 * max(h for h, _ in self.sampling)
        down = 8 * max(v for _, v in self.sampling)
        return -(-self.height // down), -(-self.width // across)

    def size_of(self, component: int) -> tuple[int, int]:
        """Rows and columns of the blocks that a scan of this component alone has."""
        h, v = self.sampling[component]
        most_h, most_v = (max(side) for side in zip(*self.sampling, strict=True))
        return -(-self.height * v // (8 * most_v)), -(-self.width * h // (8 * most_h))


def empty_frame(width: int, height: int, sampling: Sequence[tuple[int, int]]) -> Frame:
    """A frame of zeros."""
    rows, columns = Frame(width, height, sampling, []).mcus
    blocks = [np.zeros((rows * v, columns * h, 64), int) for h, v in sampling]
    return Frame(width, height, sampling, blocks)


# ---- symbols: (symbol or None, bits behind it as text)

Token = tuple[int | None, str]


def value_bits(value: int) -> str:
    """The bits of a coefficient or difference."""
    size = abs(value).bit_length()
    return format(value + (value < 0) * ((1 << size) - 1), f"0{size}b") if size else ""


def point_transform(value: int, low: int) -> int:
    """An AC coefficient without its lowest bits."""
    return (abs(value) >> low) * (1 if value > 0 else -1)


def blocks_of(frame: Frame, scan: Scan) -> Iterator[list[tuple[int, np.ndarray]]]:
    """MCU by MCU: component and coefficients of each block."""
    if len(scan.components) == 1:
        (component,) = scan.components
        rows, columns = frame.size_of(component)
        for row in range(rows):
            for column in range(columns):
                yield [(component, frame.blocks[component][row, column])]
        return
    rows, columns = frame.mcus
    for row in range(rows):
        for column in range(columns):
            yield [
                (c, frame.blocks[c][row * v + y, column * h + x])
                for c in scan.components
                for h, v in [frame.sampling[c]]
                for y in range(v)
                for x in range(h)
            ]


def dc_tokens(mcus, scan: Scan) -> Iterator[Token]:
    """A segment of DC coefficients."""
    before = dict.fromkeys(scan.components, 0)
    for mcu in mcus:
        for component, block in mcu:
            value = int(block[0]) >> scan.low
            if scan.high:
                yield None, str(value & 1)
            else:
                difference = value - before[component]
                before[component] = value
                yield abs(difference).bit_length(), value_bits(difference)


class Ends:
    """Ends of blocks that are gathered into one symbol, and what has to be written behind it."""

    def __init__(self, most: int):
        self.most, self.count, self.bits = most, 0, ""

    def flush(self) -> Iterator[Token]:
        """The symbol for the blocks that have ended, if any."""
        if self.count:
            size = self.count.bit_length() - 1
            yield size << 4, format(self.count, "b")[1:] + self.bits
        self.count, self.bits = 0, ""

    def add(self, bits: str = "") -> Iterator[Token]:
        """One block more."""
        self.count += 1
        self.bits += bits
        if self.count >= self.most or len(self.bits) > 900:
            yield from self.flush()


def first_tokens(mcus, scan: Scan, most_ends: int) -> Iterator[Token]:
    """A segment of a first scan of AC coefficients."""
    ends = Ends(most_ends)
    for ((_, block),) in mcus:
        run = 0
        for value in block[scan.first : scan.last + 1]:
            value = point_transform(int(value), scan.low)
            if not value:
                run += 1
                continue
            yield from ends.flush()
            for _ in range(run // 16):
                yield 0xF0, ""
            yield run % 16 << 4 | abs(value).bit_length(), value_bits(value)
            run = 0
        if run:
            yield from ends.add()
    yield from ends.flush()


def refining_tokens(mcus, scan: Scan, most_ends: int) -> Iterator[Token]:
    """A segment of a refinement of AC coefficients."""
    ends = Ends(most_ends)
    for ((_, block),) in mcus:
        values = [point_transform(int(v), scan.low) for v in block[scan.first : scan.last + 1]]
        newest = max((i for i, value in enumerate(values) if abs(value) == 1), default=-1)
        run, bits = 0, ""
        for i, value in enumerate(values):
            if not value:
                run += 1
                continue
            while run > 15 and i <= newest:
                yield from ends.flush()
                yield 0xF0, bits
                run, bits = run - 16, ""
            if abs(value) > 1:
                bits += str(value & 1 if value > 0 else -value & 1)
                continue
            yield from ends.flush()
            yield run << 4 | 1, str(int(value > 0)) + bits
            run, bits = 0, ""
        if run or bits:
            yield from ends.add(bits)
    yield from ends.flush()


# ---- codes


def code_lengths(frequencies: Counter, skew: int) -> dict[int, int]:
    """Symbol -> length: the first `skew` of them by frequency 1, 2, ..., the rest all the same."""
    symbols = [symbol for symbol, _ in frequencies.most_common()]
    rest = max(0, len(symbols) - skew)
    skew = min(skew, len(symbols), 16 - rest.bit_length())
    rest = len(symbols) - skew
    return {
        symbol: i + 1 if i < skew else skew + rest.bit_length() for i, symbol in enumerate(symbols)
    }


def codes(lengths: dict[int, int]) -> tuple[dict[int, str], bytes]:
    """Symbol -> code, and the table as it is in the file."""
    ordered = sorted(lengths, key=lambda symbol: (lengths[symbol], symbol))
    code, last, found = 0, 0, {}
    for symbol in ordered:
        code <<= lengths[symbol] - last
        last = lengths[symbol]
        found[symbol] = format(code, f"0{last}b")
        code += 1
    counts = Counter(lengths.values())
    return found, bytes(counts.get(i, 0) for i in range(1, 17)) + bytes(ordered)


def segment(marker: int, body: bytes) -> bytes:
    """A marker, a length and what it is the length of."""
    return bytes([0xFF, marker]) + (len(body) + 2).to_bytes(2, "big") + body


def coded(bits: str) -> bytes:
    """Bits as bytes, filled up with ones, and stuffed."""
    bits += "1" * (-len(bits) % 8)
    return int("1" + bits, 2).to_bytes(len(bits) // 8 + 1, "big")[1:].replace(b"\xff", b"\xff\0")


def write_scan(frame: Frame, scan: Scan, skew: int = 3, most_ends: int = 0x7FFF) -> bytes:
    """A scan with tables of its own before it."""
    mcus = list(blocks_of(frame, scan))
    interval = scan.restart or len(mcus)
    segments = []
    for at in range(0, len(mcus), interval):
        part = mcus[at : at + interval]
        if scan.first == 0:
            segments.append(list(dc_tokens(part, scan)))
        elif scan.high:
            segments.append(list(refining_tokens(part, scan, most_ends)))
        else:
            segments.append(list(first_tokens(part, scan, most_ends)))
    frequencies = Counter(s for tokens in segments for s, _ in tokens if s is not None)
    found, table = codes(code_lengths(frequencies, skew))
    data = segment(0xDD, scan.restart.to_bytes(2, "big"))
    data += segment(0xC4, bytes([16 * (scan.first > 0)]) + table)
    selectors = b"".join(bytes([component + 1, 0]) for component in scan.components)
    band = bytes([scan.first, scan.last, scan.high << 4 | scan.low])
    data += segment(0xDA, bytes([len(scan.components)]) + selectors + band)
    for number, tokens in enumerate(segments):
        if number:
            data += bytes([0xFF, 0xD0 + (number - 1) % 8])
        data += coded("".join(found.get(symbol, "") + bits for symbol, bits in tokens))
    return data


def write_file(
    frame: Frame, scans: Sequence[Scan], skew: int = 3, most_ends: int = 0x7FFF, step: int = 2
) -> bytes:
    """A file of these scans; `step` is that of the quantisation."""
    components = b"".join(bytes([i + 1, h << 4 | v, 0]) for i, (h, v) in enumerate(frame.sampling))
    size = frame.height.to_bytes(2, "big") + frame.width.to_bytes(2, "big")
    data = b"\xff\xd8" + segment(0xDB, b"\0" + bytes([step] * 64))
    data += segment(0xC2, b"\x08" + size + bytes([len(frame.sampling)]) + components)
    for scan in scans:
        data += write_scan(frame, scan, skew, most_ends)
    return data + b"\xff\xd9"


def usual_scans(components: int) -> list[Scan]:
    """The scans that libjpeg writes."""
    every = tuple(range(components))
    if components == 1:
        return [
            Scan(every, low=1), Scan(every, 1, 5, low=2), Scan(every, 6, 63, low=2),
            Scan(every, 1, 63, 2, 1), Scan(every, high=1), Scan(every, 1, 63, 1, 0),
        ]  # fmt: skip
    return [
        Scan(every, low=1), Scan((0,), 1, 5, low=2), Scan((2,), 1, 63, low=1),
        Scan((1,), 1, 63, low=1), Scan((0,), 6, 63, low=2), Scan((0,), 1, 63, 2, 1),
        Scan(every, high=1), Scan((2,), 1, 63, 1, 0), Scan((1,), 1, 63, 1, 0),
        Scan((0,), 1, 63, 1, 0),
    ]  # fmt: skip
