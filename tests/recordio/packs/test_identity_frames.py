"""Frames of the records that list identities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordio import pack, unpack
from recordio.packs.identities import find_identities
from recordio.packs.identity_frames import face_keys, identity_frames


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


def test_more_keys_than_floats_tell_apart():
    keys, ranges = face_keys(np.repeat([0, 1], 1 << 23), 2)
    assert ranges.tolist() == [[1, (1 << 23) + 1], [(1 << 23) + 1, (1 << 24) + 1]]
    assert keys[-1] == 1 << 24
    frames = identity_frames(ranges, 1 << 24)
    labels = [np.frombuffer(frame, "<f4")[-2:].tolist() for frame in frames]
    assert labels == [[float(1 << 24), (1 << 24) + 4], [(1 << 23) + 1, float(1 << 24)]]  # rounded
    # What was rounded is found again, by the labels of a few images.
    listed = {0: frames[0], (1 << 24) + 1: frames[1][:40], (1 << 24) + 2: frames[1][40:]}

    def record(key):
        label = int(key >= ranges[1, 0])
        return listed[key][8:] if key in listed else pack((0, label, key, 0), b"image")

    found = find_identities(lambda keys: list(map(record, keys)), (1 << 24) + 2, "a.rec")
    assert found.ranges().tolist() == ranges.tolist()


def test_more_identities_than_labels_tell_apart():
    with pytest.raises(ValueError, match="16777216"):
        face_keys(np.zeros(3, np.int64), (1 << 24) + 1)
