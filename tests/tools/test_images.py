"""Images as bytes: what is encoded comes back, and other formats than JPEG are not examined."""

import numpy as np
import pytest
from image_variants import variants

from recordio import decode_image
from recordio.tools.images import (
    check_jpeg,
    decode_content,
    decode_upright,
    encode_image,
    swap_red_and_blue,
)

VARIANTS = variants()


def test_pixels_come_back_from_png():
    pixels = np.eye(2, dtype=np.uint8)
    content = encode_image(pixels, ".png")
    assert content[1:4] == b"PNG"
    assert decode_content(content).tolist() == pixels.tolist()


def test_an_image_that_is_no_jpeg_is_not_examined():
    assert not check_jpeg(encode_image(np.eye(2, dtype=np.uint8), ".png"))


def test_alpha_stays_behind_the_colours():
    image = np.array([[[1, 2, 3, 4]]], np.uint8)
    assert swap_red_and_blue(image).tolist() == [[[3, 2, 1, 4]]]
    grey = np.array([[1, 2]], np.uint8)
    assert swap_red_and_blue(grey).tolist() == [[1, 2]]


@pytest.mark.parametrize("name", [name for name in VARIANTS if " turned " in name])
def test_images_are_decoded_upright_once(name):
    pixels = decode_upright(VARIANTS[name])
    assert np.array_equal(pixels[..., ::-1], decode_image(VARIANTS[name]))
