import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordio import unpack
from recordio.packs.faces import face_keys, identity_frames


@given(labels=st.lists(st.integers(0, 5), min_size=1), more=st.integers(0, 3))
def test_ranges_hold_the_keys_of_their_images(labels, more):
    identities = max(labels) + 1 + more
    keys, ranges = face_keys(np.array(labels), identities)
    assert sorted(keys.tolist()) == list(range(1, len(labels) + 1))
    for number, (first, end) in enumerate(ranges.tolist()):
        assert 1 <= first <= end <= len(labels) + 1
        chosen = keys[np.array(labels) == number].tolist()
        assert chosen == list(range(first, end))  # in the order of the images


def test_frames_are_those_of_the_layout():
    first, rest = identity_frames(np.array([[1, 4], [4, 4]]), 3)
    frames = [first, rest[: len(rest) // 2], rest[len(rest) // 2 :]]
    rows = [unpack(frame[8:]) for frame in frames]
    assert [(header.id, header.label.tolist()) for header, _ in rows] == [
        (0, [4, 6]),
        (4, [1, 4]),
        (5, [4, 4]),
    ]


def test_keys_are_exact_as_floats():
    with pytest.raises(ValueError, match="16777216"):
        face_keys(np.zeros(3, np.int64), (1 << 24) - 3)
