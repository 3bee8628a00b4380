"""Content that is not an image, for people: arrays, JSON, text, or bytes in hexadecimal."""

from __future__ import annotations

import contextlib
import json
from typing import Any, NamedTuple

import numpy as np

from recordio.errors import RecordIOError

from ..npy import decode_npy, is_sparse

MOST_BYTES = 1 << 16
#: Of JSON in lines, which takes some ten times the bytes of what people nest.
MOST_CHARACTERS = 1 << 19
HEX_BYTES = 1 << 12
HEX_ROW = 16
MOST_VALUES = 1000


class Reading(NamedTuple):
    """Content as text."""

    kind: str
    text: str
    note: str = ""  # about the rest that is left out


def read_content(content: Any, kind: str) -> Reading:
    """Return text for some content."""
    if kind == "empty":
        return Reading("empty", "")
    if kind == "npy":
        try:
            return _array(decode_npy(content))
        except RecordIOError as error:
            return _hexadecimal(content, f"it is a damaged .npy array: {error.reason}")
    start = bytes(content[:MOST_BYTES])
    cut = "" if len(content) <= MOST_BYTES else f"only the first {MOST_BYTES} bytes are shown"
    try:
        text = start.decode("utf-8")
    except UnicodeDecodeError as error:
        if not cut or error.start < len(start) - 4:
            return _hexadecimal(content)
        text = start[: error.start].decode("utf-8")
    if any(ord(c) < 32 and c not in "\t\r\n\f" for c in text):
        return _hexadecimal(content)
    if not cut and text.lstrip()[:1] in ("{", "["):
        with contextlib.suppress(ValueError, RecursionError):  # text that begins like JSON
            return _json(text)
    return Reading("text", text, cut)


def _json(text: str) -> Reading:
    """JSON in lines, unless these are mostly indents: deep nesting multiplies the text."""
    lines, size = [], 0
    for piece in json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(json.loads(text)):
        lines.append(piece)
        size += len(piece)
        if size > MOST_CHARACTERS:
            return Reading("JSON", text, "it is nested so deeply that it is shown as it is stored")
    return Reading("JSON", "".join(lines))


def _array(array: np.ndarray) -> Reading:
    if is_sparse(array):
        kind = f"sparse row, {len(array)} elements"
        text = "\n".join(f"{index}: {value}" for index, value in array[:MOST_VALUES].tolist())
    else:
        kind = f"array of {array.dtype}, shape {array.shape}"
        with np.printoptions(threshold=MOST_VALUES, linewidth=100):
            text = np.array2string(array)
    note = "" if array.size <= MOST_VALUES else "most of the elements are left out"
    return Reading(kind, text, note)


def _hexadecimal(content: Any, note: str = "") -> Reading:
    rows = []
    for at in range(0, min(len(content), HEX_BYTES), HEX_ROW):
        row = bytes(content[at : min(at + HEX_ROW, HEX_BYTES)])
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        rows.append(f"{at:08x}  {row.hex(' '):<{3 * HEX_ROW - 1}}  {text}")
    if len(content) > HEX_BYTES:
        cut = f"only the first {HEX_BYTES} of {len(content)} bytes are shown"
        note = f"{note}; {cut}" if note else cut
    return Reading("bytes", "\n".join(rows), note)
