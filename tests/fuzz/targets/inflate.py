"""Compressed data of PNG: our inflater beside zlib."""

from __future__ import annotations

import zlib

from faces.inflate import inflate

from .target import Target

MOST = 1 << 18


def deflated(raw: bytes, level: int, strategy: int) -> bytes:
    """What zlib writes, without its header and checksum."""
    writer = zlib.compressobj(level, zlib.DEFLATED, -15, 9, strategy)
    return writer.compress(raw) + writer.flush()


def check_inflate(data: bytes) -> None:
    """The same bytes, or refused as zlib refuses it."""
    reader = zlib.decompressobj(-15)
    try:
        out = reader.decompress(data, MOST)
    except zlib.error:
        out = b""
    ended = data[: len(data) - len(reader.unused_data)]
    stream = b"\x78\x01" + ended + zlib.adler32(out).to_bytes(4, "big")
    for portable in (False, True):
        found = inflate(stream, len(out), portable=portable)
        assert found == (out if reader.eof else None)
        assert inflate(stream, len(out) + 1, portable=portable) is None
        assert not out or inflate(stream, len(out) - 1, portable=portable) is None


INFLATE = Target("inflate", check_inflate)
