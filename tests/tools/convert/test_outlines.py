"""Polygons and run lengths as masks: to the pixels of pycocotools, whose results these are."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordio.errors import LabelError
from recordio.tools.convert.outlines import mask_of, run_lengths_of_text

#: Size of an image, a polygon, and the run lengths that pycocotools 2.0 makes of it.
POLYGONS = [
    (
        (25, 14),
        [37, -1, 0, 30, 2, 19, 33, -1, 28, 9, -2, 1],
        "11=0000001O0000001N10001N1O100O2N100O1O2O60C0O11ON210M13OM1",
    ),
    (
        (32, 31),
        [7.6, 22.5, -1.2, 23.1, 41.5, 26.3],
        "d31n00000000000000000000000010O000000000000000l40TK0WO",
    ),
    ((8, 30), [42.9, -1.8, 37.2, 9.9, 2.9, 1.7], "e52l00O"),
    ((24, 40), [2, 33, 32, 36, 8, 19, 2, 31], "^33S12N2N2N2N3N11O1O001O1O1O001O10O01O1O001O1ORO"),
    (
        (9, 8),
        [5.9, 28.7, 16.5, 11.1, 24.1, 17.8, 10.4, 34.1, 29.6, 7.7, 23.6, 21.2, 38.0, 31.0],
        "X2",
    ),
    ((23, 9), [20.6, 3.9, 12.4, 40.8, 16.2, 42.2], "h51f0"),
    ((9, 40), [16, 17, 40, 18, 34, 27, 33, 25, 0, 1, 13, 26, 40, 38], "11X11O1N2O1O001N2O1G"),
    ((9, 8), [27.1, 43.7, 35.5, 9.7, 14.5, 28.1, -2.9, 18.2, 4.1, 1.6], "f0233O12N2N:"),
    ((8, 18), [2.2, 7.9, 14.8, 37.8, -0.1, 17.6, 22.4, 38.4, 35.3, 37.5], "\\11b01O1O2N1OO"),
    ((22, 31), [39, 20, 10, 5, 1, 7, 5, 10, 38, 10], "U21m02O1O00000O100001O001O001O001O00o10gM"),
    (
        (5, 36),
        [4.8, 9.5, 3.0, 21.7, 25.3, 11.3, 2.0, 37.2, 41.6, 27.4, 31.5, 17.9, 37.8, 41.7],
        "n34=MO81I",
    ),
    (
        (40, 30),
        [15.2, 1.0, 26.4, -1.0, -0.8, 6.0, 3.8, 12.3, -1.5, -4.0, 3.3, 0.9],
        "024Oc08NL^OMb02AM=37O1000000O1000000O100000m00SO000ja0",
    ),
    ((28, 6), [9, 35, 20, 5, 36, 12], "m31Z1"),
    (
        (27, 28),
        [1.9, 36.7, 43.7, 18.4, 19.2, 0.1, 0.9, 12.4, 8.7, 35.8, 3.7, -2.9],
        "X12i04@LK551JO:NLL71I799G3N0O1O100O1O100O1O10l00TO1O1O0O2O1N2OJ",
    ),
]


@pytest.mark.parametrize(("size", "polygon", "text"), POLYGONS)
def test_polygons_are_filled_as_pycocotools_does(size, polygon, text):
    expected = mask_of({"size": [size[1], size[0]], "counts": text}, size)
    assert np.array_equal(mask_of([polygon], size), expected)
    assert expected.shape == (size[1], size[0])


def test_several_polygons_are_one_object():
    (size, first, _), second = POLYGONS[0], [0, 0, 3, 0, 3, 3, 0, 3]
    both = mask_of([first, second], size)
    assert np.array_equal(both, mask_of([first], size) | mask_of([second], size))


@given(st.lists(st.integers(0, 20), min_size=1, max_size=9), st.integers(1, 5))
def test_run_lengths(counts, width):
    counts = [*counts, -sum(counts) % width] if len(counts) % 2 else counts
    counts = counts if sum(counts) % width == 0 else [*counts, -sum(counts) % width]
    height = sum(counts) // width
    if not height:
        return
    mask = mask_of({"size": [height, width], "counts": counts}, (width, height))
    inside = np.concatenate([np.full(n, i % 2 == 1) for i, n in enumerate(counts)])
    assert np.array_equal(mask.T.reshape(-1), inside)


@pytest.mark.parametrize(
    ("outline", "reason"),
    [
        ("text", "no list of polygons and no RLE"),
        ([], "no list of polygons and no RLE"),
        ([[1, 2, 3, 4]], "at least 3 points"),
        ([[1, 2, 3, 4, 5]], "at least 3 points"),
        ([[1, 2, 3, 4, 5, None]], "something else than finite"),
        ([[1, 2, 3, 4, 5, True]], "something else than finite"),
        ([[1, 2, 3, 4, 5, float("nan")]], "something else than finite"),
        ([[1, 2, 3, 4, 5, 1e300]], "too far away"),
        ([[1, 2, 3, 4, 5, 10**400]], "too far away"),
        ([[0, 0, 1e7, 0, 1e7, 1e7]], "too long"),
        ({"counts": [12]}, "its RLE is of size None"),
        ({"size": [4, 3], "counts": [12]}, "its RLE is of size"),
        ({"size": [3, 4], "counts": [11]}, "are those of 11 pixels"),
        ({"size": [3, 4], "counts": [13, -1]}, "some are negative"),
        ({"size": [3, 4], "counts": [1 << 62, 1]}, "are those of"),
        ({"size": [3, 4], "counts": [12.5]}, "no whole numbers"),
        ({"size": [3, 4], "counts": None}, "no whole numbers"),
        ({"size": [3, 4], "counts": "o"}, "end within a number"),
        ({"size": [3, 4], "counts": "oooooooooo0"}, "are no run lengths"),
        ({"size": [3, 4], "counts": "\x7f"}, "are no run lengths"),
        ({"size": [3, 4], "counts": "ä"}, "are no run lengths"),
    ],
)
def test_malformed_outlines(outline, reason):
    with pytest.raises(LabelError, match=reason):
        mask_of(outline, (4, 3))


@given(st.text(max_size=30))
def test_any_text_is_run_lengths_or_refused(text):
    try:
        mask_of({"size": [3, 4], "counts": text}, (4, 3))
    except LabelError:
        return
    assert sum(run_lengths_of_text(text)) == 12


@given(st.recursive(st.none() | st.floats() | st.integers() | st.text(max_size=3), st.lists))
def test_whatever_json_has(outline):
    with contextlib.suppress(LabelError):
        assert mask_of(outline, (4, 3)).shape == (3, 4)
