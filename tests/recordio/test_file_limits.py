"""Limits of arrays and of lines: the last size that is allowed, and the first that is not."""

import io

import pytest

from recordio import RecordIOError, TextFormatError
from recordio.file_limits import LONGEST_LINE, bounded_lines, check_array_bytes


def test_an_array_may_be_many_times_as_large_as_its_file():
    check_array_bytes(1 << 28, 1000, None, TextFormatError, "a.csv.gz")
    check_array_bytes(64 << 28, 1 << 28, None, TextFormatError, "a.csv.gz")
    with pytest.raises(TextFormatError, match=r"a\.csv\.gz: 1000 bytes .* become 536870912 "):
        check_array_bytes(1 << 29, 1000, None, TextFormatError, "a.csv.gz")
    with pytest.raises(TextFormatError, match="the limit of 5; raise max_array_bytes"):
        check_array_bytes(6, 1000, 5, TextFormatError, "a.csv.gz")


def test_lines_are_numbered_and_bounded():
    assert list(bounded_lines(io.StringIO("one\ntwo"), "a.lst")) == [(1, "one\n"), (2, "two")]
    lines = bounded_lines(io.StringIO("one\n" + LONGEST_LINE * "a"), "a.lst")
    next(lines)
    with pytest.raises(RecordIOError, match=r"a\.lst, line 2: .* this is no list"):
        next(lines)
