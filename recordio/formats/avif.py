"""Contents of AVIF files: the sizes that they announce and those of AV1 frames, and the rotation.

A decoder takes memory for the frames, whatever the boxes around them announce, and only then scales
them.  Nothing is decoded here.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["avif_frames", "avif_orientation", "avif_size", "boxes"]

_SEQUENCE_HEADER = 1
#: Bytes of a sequence header that are looked at: all that can stand before the size, and the size.
_HEADER_BYTES = 1024


def boxes(view: memoryview, wanted: bytes) -> Iterator[memoryview]:
    """Yield the contents of the boxes of one kind, as far as those in front of them are sound."""
    at = 0
    while at + 8 <= len(view):
        size, start = int.from_bytes(view[at : at + 4], "big"), at + 8
        if size == 1:
            size, start = int.from_bytes(view[at + 8 : at + 16], "big"), at + 16
        end = len(view) if size == 0 else at + size
        if end < start:
            return
        if view[at + 4 : at + 8] == wanted:
            yield view[start:end]
        at = end


def inside(view: memoryview, *path: bytes) -> Iterator[memoryview]:
    """Yield the contents of boxes in boxes; a ``meta`` begins with four bytes of its own."""
    if not path:
        yield view
        return
    for box in boxes(view, path[0]):
        yield from inside(box[4:] if path[0] == b"meta" else box, *path[1:])


def avif_size(view: memoryview) -> tuple[int, int] | None:
    """Return the size of the largest picture in the file: others are parts or previews of it."""
    found = [
        (int.from_bytes(size[4:8], "big"), int.from_bytes(size[8:12], "big"))
        for size in inside(view, b"meta", b"iprp", b"ipco", b"ispe")
        if len(size) >= 12
    ]
    return max(found, key=lambda size: size[0] * size[1], default=None)


def avif_orientation(view: memoryview) -> int:
    """Return the orientation that turns pictures as its first rotation, anticlockwise, does."""
    rotations = (box[0] for box in inside(view, b"meta", b"iprp", b"ipco", b"irot") if len(box))
    return (1, 8, 3, 6)[next(rotations, 0) % 4]


def avif_frames(view: memoryview) -> list[tuple[int, int]]:
    """Find the largest sizes of frames of pictures, of the starts of tracks, and of grids."""
    found = []
    for kind, data in (*_items(view), *_samples(view)):
        if kind == b"av01":
            found += [_frame_size(unit) for unit in _sequence_headers(data)]
        elif kind == b"grid" and len(data) >= 8:
            side = 4 if data[1] & 1 else 2
            sides = data[4 : 4 + side], data[4 + side : 4 + 2 * side]
            found.append((int.from_bytes(sides[0], "big"), int.from_bytes(sides[1], "big")))
    return found


def _items(view: memoryview) -> Iterator[tuple[bytes, bytes]]:
    """Yield type and data of the items that ``iloc`` lists, in all no more than the file has."""
    left = len(view)
    for meta in inside(view, b"meta"):
        kinds = dict(_kinds(meta))
        stores = {0: view, 1: next(boxes(meta, b"idat"), view[:0])}
        for table in boxes(meta, b"iloc"):
            for item, method, extents in _extents(table):
                store, parts = stores.get(method, view[:0]), []
                for offset, length in extents if item in kinds else ():
                    part = store[offset : offset + length if length else None]
                    parts.append(part[:left])
                    left -= len(parts[-1])
                yield kinds.get(item, b""), b"".join(parts)


def _kinds(meta: memoryview) -> Iterator[tuple[int, bytes]]:
    """Yield number and type of each item."""
    for table in boxes(meta, b"iinf"):
        for entry in boxes(table[6 if table[:1] == b"\0" else 8 :], b"infe"):
            size = 4 if entry[:1] == b"\x03" else 2
            number = int.from_bytes(entry[4 : 4 + size], "big")
            yield number, bytes(entry[6 + size : 10 + size])


def _extents(table: memoryview) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
    """Yield number and storage of each item, and (offset, length) of its extents; 0: to the end."""
    at = 0

    def number(size: int) -> int:
        nonlocal at
        at += size
        return int.from_bytes(table[at - size : at], "big")

    version = number(1)
    number(3)
    sizes = number(1), number(1)
    of_offset, of_length = sizes[0] >> 4, sizes[0] & 15
    of_base, of_index = sizes[1] >> 4, sizes[1] & 15 if version else 0
    long = 4 if version == 2 else 2
    for _ in range(number(long)):
        if at >= len(table):
            return
        item = number(long)
        method = number(2) & 15 if version else 0
        number(2)
        base, extents = number(of_base), []
        for _ in range(number(2)):
            if at > len(table):
                break
            number(of_index)
            extents.append((base + number(of_offset), number(of_length)))
        yield item, method, extents


def _samples(view: memoryview) -> Iterator[tuple[bytes, bytes]]:
    """Yield type and data of the first sample of each track, in all no more than the file has."""
    left = len(view)
    for table in inside(view, b"moov", b"trak", b"mdia", b"minf", b"stbl"):
        sizes = next(boxes(table, b"stsz"), table[:0])
        common, first = (int.from_bytes(sizes[at : at + 4], "big") for at in (4, 12))
        for kind, bytes_of_offset in ((b"stco", 4), (b"co64", 8)):
            for chunks in boxes(table, kind):
                offset = int.from_bytes(chunks[8 : 8 + bytes_of_offset], "big")
                sample = bytes(view[offset : offset + (common or first)][:left])
                left -= len(sample)
                yield b"av01", sample


def _sequence_headers(data: bytes) -> Iterator[bytes]:
    """Yield the payloads of the units of AV1 that say how large frames are."""
    at = 0
    while at < len(data):
        head = data[at]
        at += 2 if head & 4 else 1
        size = len(data) - at
        if head & 2:
            size = shift = 0
            while at < len(data) and shift < 56:
                size |= (data[at] & 127) << shift
                shift, at = shift + 7, at + 1
                if data[at - 1] < 128:
                    break
        if head >> 3 & 15 == _SEQUENCE_HEADER:
            yield data[at : at + min(size, _HEADER_BYTES)]
        at += size


def _frame_size(header: bytes) -> tuple[int, int]:
    """Return the largest width and height of frames; AV1, 5.5.1, names what stands before them."""
    bits, left = int.from_bytes(header, "big"), 8 * len(header)

    def number(count: int) -> int:
        nonlocal left
        left -= count
        return (bits >> left if left >= 0 else 0) & (1 << count) - 1

    number(4)  # profile, still picture
    if number(1):  # a reduced header
        number(5)
    else:
        delay_bits = 0
        if number(1):  # timing
            number(64)
            if number(1):
                zeros = 0
                while left > 0 and zeros < 32 and not number(1):
                    zeros += 1
                number(zeros)
            if number(1):  # the model of a decoder
                delay_bits = 1 + number(5)
                number(42)
        with_delay = number(1)
        for _ in range(1 + number(5)):
            number(12)
            if number(5) > 7:
                number(1)
            if delay_bits and number(1):
                number(2 * delay_bits + 1)
            if with_delay and number(1):
                number(4)
    width_bits, height_bits = 1 + number(4), 1 + number(4)
    return 1 + number(width_bits), 1 + number(height_bits)
