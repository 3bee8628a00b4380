"""Contents of AVIF files: the picture that is shown, and the sizes of AV1 frames.

A decoder takes memory for the frames, whatever the boxes around them announce, and only then scales
them.  Nothing is decoded here.
"""

from __future__ import annotations

from collections.abc import Iterator

_SEQUENCE_HEADER = 1
#: Orientations by quarter turns anticlockwise, and by the axis of mirroring: 2 for none.
_ORIENTATIONS = ((4, 2, 1), (5, 7, 8), (2, 4, 3), (7, 5, 6))
#: Bytes of a sequence header that are looked at: all that can stand before the size, and the size.
_HEADER_BYTES = 1024


def all_boxes(view: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """Yield kind and content of the boxes, as far as those in front of them are sound."""
    at = 0
    while at + 8 <= len(view):
        size, start = int.from_bytes(view[at : at + 4], "big"), at + 8
        if size == 1:
            size, start = int.from_bytes(view[at + 8 : at + 16], "big"), at + 16
        end = len(view) if size == 0 else at + size
        if end < start:
            return
        yield bytes(view[at + 4 : at + 8]), view[start:end]
        at = end


def boxes(view: memoryview, name: bytes) -> Iterator[memoryview]:
    """Yield the contents of the boxes of one kind."""
    return (content for kind, content in all_boxes(view) if kind == name)


def inside(view: memoryview, *path: bytes) -> Iterator[memoryview]:
    """Yield the contents of boxes in boxes; a ``meta`` begins with four bytes of its own."""
    if not path:
        yield view
        return
    for box in boxes(view, path[0]):
        yield from inside(box[4:] if path[0] == b"meta" else box, *path[1:])


def avif_picture(view: memoryview) -> tuple[int, int, int, int | None, int | None] | None:
    """Return width, height, orientation, bits and channels of the picture that is shown.

    The orientation is that of its rotation and mirroring, as libavif reads them; EXIF data do not
    count.
    """
    for meta in inside(view, b"meta"):
        primary = next(boxes(meta, b"pitm"), meta[:0])
        number = int.from_bytes(primary[4:6] if primary[:1] == b"\0" else primary[4:8], "big")
        properties = dict(_properties(meta, number))
        size = properties.get(b"ispe", meta[:0])
        if len(size) < 12:
            continue
        angle = properties.get(b"irot", b"\0")[0] & 3
        axis = properties[b"imir"][0] & 1 if b"imir" in properties else 2
        bits = channels = None
        if len(config := properties.get(b"av1C", meta[:0])) >= 4:
            bits = (8, 10, 12, 12)[config[2] >> 6 & 1 | config[2] >> 4 & 2]
            channels = 1 if config[2] & 16 else 3
        has_alpha = any(True for _ in inside(meta, b"iprp", b"ipco", b"auxC"))
        width, height = (int.from_bytes(size[at : at + 4], "big") for at in (4, 8))
        return width, height, _ORIENTATIONS[angle][axis], bits, channels and channels + has_alpha
    return None


def _properties(meta: memoryview, item: int) -> Iterator[tuple[bytes, memoryview]]:
    """Yield kinds and contents of the properties of an item; those that are not empty."""
    for properties in inside(meta, b"iprp"):
        parts = list(all_boxes(next(boxes(properties, b"ipco"), meta[:0])))
        for table in boxes(properties, b"ipma"):
            version, wide = (table[0], table[3] & 1) if len(table) >= 8 else (0, 0)
            size, at = 4 if version else 2, 8
            while at + size < len(table):
                number, count = int.from_bytes(table[at : at + size], "big"), table[at + size]
                at += size + 1
                for _ in range(count):
                    index = int.from_bytes(table[at : at + 1 + wide], "big")
                    index &= 0x7FFF if wide else 0x7F
                    at += 1 + wide
                    if number == item and 1 <= index <= len(parts) and len(parts[index - 1][1]):
                        yield parts[index - 1]


def avif_frames(view: memoryview) -> list[tuple[int, int]]:
    """Find the largest sizes of frames of pictures, of the starts of tracks, and of grids."""
    sizes = []
    for kind, data in (*_items(view), *_samples(view)):
        if kind == b"av01":
            sizes += [_frame_size(unit) for unit in _sequence_headers(data)]
        elif kind == b"grid" and len(data) >= 8:
            side = 4 if data[1] & 1 else 2
            sides = data[4 : 4 + side], data[4 + side : 4 + 2 * side]
            sizes.append((int.from_bytes(sides[0], "big"), int.from_bytes(sides[1], "big")))
    return sizes


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
