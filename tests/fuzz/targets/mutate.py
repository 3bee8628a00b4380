"""Changes of bytes, numbers, lines and JSON, from which the changes of all targets are made."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

#: Numbers at which parsers go wrong.
EDGES = (
    [0, 1, 2, 3, 4, 5, 7, 8, 16, 24, 63, 64, 65, 127, 128, 255, 256]
    + [2**15 - 1, 2**15, 2**16 - 1, 2**16, 2**24, 2**29 - 1, 2**29, 2**31 - 1, 2**31]
    + [2**32 - 1, 2**32, 2**40, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
)


def change_bytes(
    data: bytes, draw: random.Random, words: Sequence[bytes] = (), others: Sequence[bytes] = ()
) -> bytes:
    """One change that knows nothing but a few words of the format."""
    kind = draw.randrange(10)
    at = draw.randrange(len(data) + 1)
    length = min(draw.choice([1, 1, 2, 4, 8, 30, 200]), len(data) - at)
    if kind == 0:
        return put(data, at, bytes([draw.randrange(256)]))
    if kind == 1 and data:
        at %= len(data)
        return put(data, at, bytes([data[at] ^ 1 << draw.randrange(8)]))
    if kind == 2:
        return data[:at] + data[at + length :]
    if kind == 3:
        return data[:at]
    if kind == 4:
        return data[:at] + data[at : at + length] * draw.choice([2, 2, 3, 20]) + data[at + length :]
    if kind == 5 and others:
        other = draw.choice(others)
        return data[:at] + other[draw.randrange(len(other) + 1) :]
    if kind == 6:
        return change_number(data, draw, at)
    if kind == 7:
        return data[:at] + draw.randbytes(draw.randrange(1, 9)) + data[at:]
    word = draw.choice(words) if words else b"\0"
    return put(data, at, word) if kind == 8 else data[:at] + word + data[at:]


def change_number(data: bytes, draw: random.Random, at: int, width: int = 0) -> bytes:
    """Another number in place of what is there, of 1, 2, 4 or 8 bytes in any byte order."""
    width = width or draw.choice([1, 2, 4, 4, 8])
    order = draw.choice(["little", "little", "big"])
    number = int.from_bytes(data[at : at + width], order)
    number = near(number, draw) % (1 << 8 * width)
    return put(data, at, number.to_bytes(width, order))


def near(number: int, draw: random.Random) -> int:
    """A number that is close to this one, or notorious."""
    kind = draw.randrange(6)
    if kind == 0:
        return number + draw.choice([-1, 1, -4, 4])
    if kind == 1:
        return number * 2 if draw.random() < 0.5 else number // 2
    if kind == 2:
        return -number
    return draw.choice(EDGES) + draw.choice([0, 0, -1, 1])


def put(data: bytes, at: int, piece: bytes) -> bytes:
    """The data with a piece written over what is at a place; never longer."""
    return (data[:at] + piece + data[at + len(piece) :])[: max(len(data), at)]


def move_item(items: list[Any], draw: random.Random) -> list[Any]:
    """One of some items gone, twice, or elsewhere."""
    items = list(items)
    if not items:
        return items
    item = items.pop(draw.randrange(len(items)))
    for _ in range(draw.choice([0, 1, 2, 2, 9])):
        items.insert(draw.randrange(len(items) + 1), item)
    return items


def change_line(
    data: bytes, draw: random.Random, words: Sequence[bytes], splits: bytes = b"\t"
) -> bytes:
    """One line of a text gone or elsewhere, or one field of it something else."""
    lines = data.split(b"\n")
    if draw.random() < 0.3:
        return b"\n".join(move_item(lines, draw))
    number = draw.randrange(len(lines))
    split = bytes([draw.choice(splits)])
    fields = lines[number].split(split)
    if draw.random() < 0.3:
        fields = move_item(fields, draw)
    else:
        fields[draw.randrange(len(fields))] = draw.choice(
            [*words, str(draw.choice(EDGES)).encode()]
        )
    lines[number] = split.join(fields)
    return b"\n".join(lines)


#: What may stand in JSON where something else is expected.
ODD = [None, True, False, "", "x", "1", -1, 0, 1, 0.5, -0.5, 1e300, float("nan"), [], [0], {}]


def change_json(value: Any, draw: random.Random) -> Any:
    """One place in what JSON holds, anywhere in its depth, changed."""
    inside = (
        list(value) if isinstance(value, dict) else range(len(value)) if _is_list(value) else []
    )
    if len(inside) and draw.random() < 0.85:
        key = draw.choice(inside)
        value = value.copy()
        kind = draw.random()
        if kind < 0.1:
            del value[key]
        elif kind < 0.15 and isinstance(value, dict):
            value[draw.choice(["x", "", "done", "order"])] = value.pop(key)
        else:
            value[key] = change_json(value[key], draw)
        return value
    if isinstance(value, int) and draw.random() < 0.6:
        return near(value, draw)
    if isinstance(value, str) and draw.random() < 0.5:
        return change_bytes(value.encode("utf-8", "replace"), draw).decode("latin-1")
    return draw.choice([*ODD, *EDGES])


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def change_json_text(data: bytes, draw: random.Random) -> bytes:
    """The same for JSON as bytes; what is none stays as it is."""
    try:
        return json.dumps(change_json(json.loads(data), draw)).encode()
    except (ValueError, RecursionError):
        return data
