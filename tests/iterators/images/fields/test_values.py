"""Images of values: what is stored for each pixel, whatever it would look like."""

import io

import cv2
import numpy as np
import pytest
from PIL import Image

from faces.paths import read_values
from recordio.errors import ImageDecodeError
from recordio.formats.jpeg.jpeg import DEFAULT_LIMITS


def stored(image, kind="PNG", **how):
    file = io.BytesIO()
    image.save(file, kind, **how)
    return file.getvalue()


def paletted(values, bits):
    image = Image.fromarray(values, "P")
    image.putpalette(np.random.default_rng(1).integers(0, 256, 768, np.uint8).tobytes())
    return stored(image, bits=bits)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_numbers_of_a_palette_are_the_values(bits):
    values = np.random.default_rng(0).integers(0, 1 << bits, (13, 21), np.uint8)
    found, size = read_values(paletted(values, bits), DEFAULT_LIMITS)
    np.testing.assert_array_equal(found, values)
    assert size == 1


def test_grey_levels_are_the_values_and_are_not_stretched():
    values = np.random.default_rng(0).integers(0, 2, (13, 21), np.uint8)
    found, _ = read_values(stored(Image.fromarray(values * 255).convert("1")), DEFAULT_LIMITS)
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("kind", [".png", ".tiff"])
def test_16_bits_are_kept(kind):
    values = np.random.default_rng(0).integers(0, 1 << 16, (13, 21), np.uint16)
    data = cv2.imencode(kind, values)[1].tobytes()
    found, size = read_values(data, DEFAULT_LIMITS)
    np.testing.assert_array_equal(found, values)
    assert size == 2


@pytest.mark.parametrize("kind", [".png", ".pgm", ".bmp", ".tiff"])
def test_8_bits_are_kept_and_a_rectangle_is_read(kind):
    values = np.random.default_rng(0).integers(0, 256, (30, 40), np.uint8)
    data = cv2.imencode(kind, values)[1].tobytes()
    np.testing.assert_array_equal(read_values(data, DEFAULT_LIMITS)[0], values)
    found, _ = read_values(data, DEFAULT_LIMITS, region=(3, 5, 20, 11))
    np.testing.assert_array_equal(found, values[5:16, 3:23])


@pytest.mark.parametrize("kind", [".png", ".ppm", ".webp"])
def test_colours_are_refused(kind):
    data = cv2.imencode(kind, np.zeros((4, 5, 3), np.uint8))[1].tobytes()
    with pytest.raises(ImageDecodeError, match="several values for each pixel"):
        read_values(data, DEFAULT_LIMITS)


def test_jpeg_is_refused_for_masks_alone():
    data = cv2.imencode(".jpg", np.full((16, 16), 7, np.uint8))[1].tobytes()
    with pytest.raises(ImageDecodeError, match="does not keep the values"):
        read_values(data, DEFAULT_LIMITS)
    assert abs(read_values(data, DEFAULT_LIMITS, exact=False)[0] - 7).max() <= 1


def test_limits_and_damage_are_errors():
    data = cv2.imencode(".png", np.zeros((30, 40), np.uint8))[1].tobytes()
    with pytest.raises(ImageDecodeError):
        read_values(data, {**DEFAULT_LIMITS, "max_pixels": 100})
    tiff = cv2.imencode(".tiff", np.zeros((30, 40), np.uint8))[1].tobytes()
    with pytest.raises(ImageDecodeError):
        read_values(tiff, {**DEFAULT_LIMITS, "max_pixels": 100})
    for data in (data, tiff, cv2.imencode(".pgm", np.zeros((30, 40), np.uint8))[1].tobytes()):
        last = len(data) - (
            24 if data.startswith(b"\x89PNG") else 1
        )  # the end of PNG is not needed
        for end in range(0, last, 7):
            with pytest.raises(ImageDecodeError):
                read_values(data[:end], DEFAULT_LIMITS)
