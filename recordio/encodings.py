"""Text that is not UTF-8: a guess of its encoding, and names of files in such an encoding.

Lists, tables and names of files are UTF-8 here.  What looks like another encoding is never read as
if it were, but named in the error.
"""

from __future__ import annotations

import codecs
import os
import unicodedata
from typing import Literal

#: Marks in front of UTF-16 and UTF-32 text.
MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
#: Letters of text that is ASCII.
PLAIN = frozenset(b"\t\n\r\f" + bytes(range(32, 127)))
#: Forms of names that look alike, and what they are called.
FORMS: tuple[tuple[Literal["NFD", "NFC"], str], ...] = (("NFD", "decomposed"), ("NFC", "composed"))
#: Encodings of more than one byte, the strictest first; Latin letters are the last guess.
GUESSES = ("EUC-JP", "GBK", "SHIFT-JIS", "BIG5")


def wrong_encoding(head: bytes) -> tuple[str, str] | None:
    r"""Return what text of two or four bytes a letter is, and what to do with it; None of other.

    >>> wrong_encoding(b"\xff\xfe1\0")[0], wrong_encoding(b"1\0,\0")[0], wrong_encoding(b"1,2\n")
    ('UTF-16 text', 'UTF-16 text', None)
    """
    for mark, encoding in MARKS:
        if head.startswith(mark):
            return f"{encoding} text", _convert(encoding)
    # Most letters of tables are ASCII, and then every other byte is zero.
    for first, end in ((1, "LE"), (0, "BE")):
        high, low = head[first::2], head[1 - first :: 2]
        letters = [letter for zero, letter in zip(high, low, strict=False) if not zero]
        if len(head) > 3 and 4 * len(letters) >= len(head) and all(x in PLAIN for x in letters):
            return "UTF-16 text", _convert(f"UTF-16{end}")
    return None


def guessed_encoding(text: bytes) -> str:
    r"""Guess the encoding of bytes that are no UTF-8.

    >>> guessed_encoding("镕/1.jpg".encode("gbk")), guessed_encoding(b"caf\xe9.jpg")
    ('GBK', 'Latin-1')
    """
    for encoding in GUESSES:
        try:
            letters = text.decode(encoding)
        except UnicodeDecodeError:
            continue
        if all(letter.isascii() or unicodedata.category(letter) == "Lo" for letter in letters):
            return encoding
    return "Latin-1"


def _convert(encoding: str) -> str:
    return f"save it as UTF-8: `iconv -f {encoding} -t UTF-8 OLD > NEW`"


def not_utf8(text: str | bytes) -> str:
    """Say that text is not UTF-8, what it looks like, and what to do; its bytes or surrogates."""
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    encoding = guessed_encoding(raw)
    return f"it is not UTF-8, but looks like {encoding}: {_convert(encoding)}"


def missing_name(path: str) -> str:
    """Say why a file may not be found by a name that a list has; empty where nothing is known."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return f"; the name in the list: {not_utf8(os.path.basename(path))}"
    if path.isascii():
        return ""
    for form, name in FORMS:
        spelling = unicodedata.normalize(form, path)
        if spelling != path and os.path.exists(path_of_name(spelling)):
            return (
                f"; a file of this name in {name} form ({form}) exists: write the list with names "
                "as the file system has them"
            )
    return ""


def path_of_name(path: str) -> str:
    """Return a path that was read as UTF-8 as this system's calls take it, in any locale."""
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return os.fsdecode(path.encode("utf-8", "surrogateescape"))
    return path
