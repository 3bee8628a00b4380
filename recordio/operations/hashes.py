"""Hashes by which contents are told apart."""

from __future__ import annotations

import hashlib
from typing import Any

__all__ = ["HASH_BYTES", "hash_of", "word_of"]

HASH_BYTES = 16


def hash_of(content: Any) -> bytes:
    """128 bits of BLAKE2b over some bytes.

    Examples
    --------
    >>> hash_of(b"same") == hash_of(bytearray(b"same")), len(hash_of(b""))
    (True, 16)
    """
    return hashlib.blake2b(content, digest_size=HASH_BYTES).digest()


def word_of(content: Any) -> int:
    """The first 64 of these bits, as a number.

    Examples
    --------
    >>> word_of(b"a") == word_of(b"b")
    False
    """
    return int.from_bytes(hash_of(content)[:8], "little")
