"""Compressed streams are read no further than allowed."""

import io

import pytest

from recordio.tools.convert.unpacking import BoundedReader


def test_a_reader_stops_at_a_limit_that_moves_on():
    file = BoundedReader(io.BytesIO(bytes(100)), 10, lambda: ValueError("too much"))
    assert len(file.read(10)) == 10
    with pytest.raises(ValueError, match="too much"):
        file.read(1)
    file.allowed = 20
    assert len(file.read(10)) == 10
