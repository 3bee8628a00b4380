"""`resize="cover"` and `resize="contain"`: the first resize follows the size of the batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iterators import ImageRecordIter
from iterators.images.augment.geometry import drawn_steps
from iterators.images.augment.recipe import Recipe
from iterators.providers.image_shapes import resized
from iterators.testing import encode, noise, write_pack

SIDES = st.integers(1, 3000)


def steps(how, target, width, height, **keywords):
    recipe = Recipe(data_shape=(3, *target), resize=how, **keywords)
    return drawn_steps(recipe, 1, 2, 3, width, height)[0]


@settings(max_examples=300)
@given(SIDES, SIDES, SIDES, SIDES, st.booleans())
def test_cover_leaves_nothing_empty_and_loses_one_side_only(width, height, down, across, random):
    found = steps("cover", (down, across), width, height, rand_crop=random)
    (step,) = found
    assert (step["out_width"], step["out_height"]) == (across, down)
    assert step["target_width"] >= across and step["target_height"] >= down
    assert step["target_width"] == across or step["target_height"] == down
    scale = max(across / width, down / height)
    assert abs(step["target_width"] - width * scale) <= 0.5 + 1e-6
    assert abs(step["target_height"] - height * scale) <= 0.5 + 1e-6


@settings(max_examples=300)
@given(SIDES, SIDES, SIDES, SIDES, st.booleans())
def test_contain_loses_nothing(width, height, down, across, random):
    found = steps("contain", (down, across), width, height, rand_crop=random)
    scale = min(across / width, down / height)
    fitted = max(round(width * scale), 1), max(round(height * scale), 1)
    last = found[-1]
    assert (last["out_width"], last["out_height"]) == (across, down)
    for step in found:
        assert step["left"] == step["top"] == 0
    if len(found) == 2:
        assert last["kind"] == 2
        assert abs(last["border_x"] - (across - fitted[0]) / 2) <= 1
        assert abs(last["border_y"] - (down - fitted[1]) / 2) <= 1
    assert abs(found[0]["out_width"] - fitted[0]) <= 1 or len(found) == 1


def limited(width, height, short, most):
    """Size by torchvision's `_compute_resized_output_size`; without `short` what exceeds `most`."""
    if short is None and max(width, height) <= most:
        return width, height
    if short is None or most <= short:
        factor = most, max(width, height)
    else:
        width, height = (int(short * side / min(width, height)) for side in (width, height))
        factor = (most, max(width, height)) if max(width, height) > most else (1, 1)
    return tuple(int(factor[0] * side / factor[1]) for side in (width, height))


@settings(max_examples=300)
@given(SIDES, SIDES, st.one_of(st.none(), st.integers(1, 900)), st.integers(1, 900))
def test_max_side(width, height, short, most):
    expected = limited(width, height, short, most)
    if min(expected) < 1:
        return
    resize = -1 if short is None else short
    found = steps(resize, (1, 1), width, height, max_side=most, resample="pillow")[0]
    assert (found["target_width"], found["target_height"]) == expected
    recipe = Recipe(data_shape=(3, 1, 1), resize=resize, max_side=most)
    (sizes,) = resized(np.array([[width, height]], np.uint32), recipe, 1 << 40)
    assert tuple(sizes[::-1]) == expected


def test_max_side_of_images_in_their_own_sizes(tmp_path):
    images = [noise(30 + 20 * i, 50, i) for i in range(4)]
    path = write_pack(tmp_path / "a.rec", [encode(image) for image in images])
    keywords = {"path_imgrec": str(path), "batch_size": 4, "data_shape": None, "max_side": 60}
    sizes = [(30, 50), (50, 50), (60, 42), (60, 33)]
    for more in ({}, {"cache": "ram"}, {"resample": "pillow", "cache": str(tmp_path / "cache")}):
        with ImageRecordIter(**keywords, **more) as provider:
            for _ in range(2):
                (batch,) = provider
                assert [one.shape[1:] for one in batch.data[0]] == sizes


def test_max_side_beside_both_sides():
    with pytest.raises(ValueError, match="max_side=9 has no effect beside a resize to both"):
        Recipe(data_shape=(3, 8, 8), resize=(8, 8), max_side=9)


def test_pixels(tmp_path):
    red = np.zeros((10, 40, 3), np.uint8)
    red[:, 15:25] = [255, 0, 0]
    path = write_pack(tmp_path / "a.rec", [encode(red)])
    keywords = {
        "path_imgrec": str(path),
        "batch_size": 1,
        "data_shape": (3, 20, 20),
        "dtype": "uint8",
    }
    with ImageRecordIter(resize="cover", **keywords) as provider:
        (cover,) = (batch.data[0][0] for batch in provider)
    assert (cover[0, :, 2:-2] > 200).all() and (cover[1:, :, 2:-2] < 50).all()
    with ImageRecordIter(resize="contain", fill_value=7, **keywords) as provider:
        (contain,) = (batch.data[0][0] for batch in provider)
    assert (contain[:, :7] == 7).all() and (contain[:, 13:] == 7).all()
    assert contain[0, 9, 10] > 200 and contain[0, 9, 2] < 50


def test_the_cache_keeps_whole_images(tmp_path):
    path = write_pack(tmp_path / "a.rec", [encode(noise(30 + i, 50 - i, i)) for i in range(6)])
    keywords = {
        "path_imgrec": str(path),
        "batch_size": 6,
        "data_shape": (3, 20, 24),
        "resize": "cover",
    }
    found = []
    for cache in ({}, {"cache": "ram"}):
        with ImageRecordIter(**keywords, **cache) as provider:
            found.append([[b.data[0].copy() for b in provider] for _ in range(2)])
    assert np.array_equal(found[0], found[1])


@pytest.mark.parametrize("wrong", ["fit", "", b"cover", None, ["cover"]])
def test_other_words_are_refused(wrong):
    with pytest.raises((ValueError, TypeError), match="resize"):
        Recipe(data_shape=(3, 8, 8), resize=wrong)
