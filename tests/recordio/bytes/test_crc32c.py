"""CRC-32C by instruction, by tables and by the library: the same number."""

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordio.bytes.crc32c import crc32c, has_instruction


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),  # these four: RFC 3720, B.4
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_known_values(data, crc):
    assert crc32c(data) == crc32c(data, plain=True) == crc


@given(st.binary(max_size=300), st.integers(0, 300), st.integers(0, 9))
def test_every_way_gives_the_same(data, cut, start):
    data = data[start:]
    wanted = google_crc32c.value(data)
    for plain in (False, True):
        assert crc32c(data, plain=plain) == wanted
        assert crc32c(data[cut:], crc32c(data[:cut], plain=plain), plain=plain) == wanted


def test_large_and_unaligned_data():
    data = np.random.default_rng(0).bytes(1_000_003)
    view = memoryview(data)
    for start in range(9):
        wanted = google_crc32c.value(data[start:])
        assert crc32c(view[start:]) == crc32c(view[start:], plain=True) == wanted


def test_other_buffers():
    assert crc32c(bytearray(b"abc")) == crc32c(np.frombuffer(b"abc", np.uint8)) == crc32c(b"abc")
    with pytest.raises((TypeError, BufferError, ValueError)):
        crc32c(np.arange(9)[::2])
    assert has_instruction() in (True, False)
