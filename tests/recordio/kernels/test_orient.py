"""The eight EXIF orientations."""

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faces.orient import orient_region
from recordio.kernels import orient

#: What NumPy does to turn an image stored with each orientation upright.
UPRIGHT = {
    1: lambda image: image,
    2: lambda image: image[:, ::-1],
    3: lambda image: image[::-1, ::-1],
    4: lambda image: image[::-1],
    5: lambda image: image.transpose(1, 0, 2),
    6: lambda image: np.rot90(image, -1),
    7: lambda image: image[::-1, ::-1].transpose(1, 0, 2),
    8: lambda image: np.rot90(image),
}


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("orientation", UPRIGHT)
def test_orient_equals_numpy(orientation, channels):
    random = np.random.default_rng(orientation)
    for height, width in ((1, 1), (1, 7), (7, 1), (5, 9), (64, 33)):
        image = random.integers(0, 256, (height, width, channels), np.uint8)
        turned = orient.orient(image, orientation)
        assert np.array_equal(turned, UPRIGHT[orientation](image))
        assert not np.shares_memory(turned, image)


@pytest.mark.parametrize("orientation", UPRIGHT)
def test_orient_equals_what_opencv_does_with_exif(orientation):
    image = np.zeros((24, 40, 3), np.uint8)
    image[:8, :16] = 255
    data = cv2.imencode(".jpg", image)[1].tobytes()
    entry = b"\x12\x01\x03\0\x01\0\0\0" + bytes([orientation, 0, 0, 0])
    segment = b"\xff\xe1\0\x22Exif\0\0II\x2a\0\x08\0\0\0\x01\0" + entry + bytes(4)
    data = data[:2] + segment + data[2:]
    stored = cv2.imdecode(
        np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
    )
    upright = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert np.array_equal(orient.orient(stored, orientation), upright)


@given(st.integers(1, 8), st.integers(1, 12), st.integers(1, 12), st.tuples(*[st.floats(0, 1)] * 4))
def test_oriented_part_of_the_stored_image_is_the_part_of_the_upright_one(
    orientation, height, width, place
):
    image = np.arange(height * width, dtype=np.uint8).reshape(height, width, 1)
    upright = UPRIGHT[orientation](image)
    x, y = int(place[0] * (upright.shape[1] - 1)), int(place[1] * (upright.shape[0] - 1))
    w = 1 + int(place[2] * (upright.shape[1] - x - 1))
    h = 1 + int(place[3] * (upright.shape[0] - y - 1))
    left, top, wide, high = orient_region(width, height, orientation, (x, y, w, h))
    assert left >= 0
    assert top >= 0
    stored_part = image[top : top + high, left : left + wide]
    assert stored_part.shape[:2] == (high, wide)
    turned = orient.orient(stored_part, orientation)
    assert np.array_equal(turned, upright[y : y + h, x : x + w])


def test_wrong_orientation():
    for orientation in (0, 9, -1):
        with pytest.raises(ValueError, match="1 to 8"):
            orient.orient(np.zeros((2, 2, 3), np.uint8), orientation)


def test_empty_image():
    assert orient.orient(np.zeros((0, 4, 3), np.uint8), 6).shape == (4, 0, 3)
