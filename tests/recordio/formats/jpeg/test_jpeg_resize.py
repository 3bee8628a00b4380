"""recordio.formats.jpeg.resize: OpenCV's pixels to the bit, or none."""

import io
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from iterators.testing import encode_jpeg, picture
from recordio import decode_image
from recordio.formats.jpeg import jpeg
from recordio.formats.jpeg.resize import decode_resized

SAMPLINGS = ("411", "420", "422", "440", "444")
METHODS = {1: cv2.INTER_LINEAR, 3: cv2.INTER_AREA}


def with_pillow(mode="RGB", **options):
    file = io.BytesIO()
    Image.fromarray(picture(40, 60)).convert(mode).save(file, "JPEG", **options)
    return file.getvalue()


def in_steps(data, short_side, method=1, channels=3, square=False):
    """The same by OpenCV, one step after the other; None if it finds no image."""
    flag = cv2.IMREAD_COLOR if channels == 3 else cv2.IMREAD_GRAYSCALE
    image = cv2.imdecode(np.frombuffer(data, np.uint8), flag)
    if image is None:
        return None
    height, width = image.shape[:2]
    if square:
        side = min(height, width)
        top, left = (height - side) // 2, (width - side) // 2
        image = image[top : top + side, left : left + side]
        height = width = side
    size = (
        (short_side, height * short_side // width)
        if height > width
        else (width * short_side // height, short_side)
    )
    return cv2.resize(image, size, interpolation=METHODS[method])


@pytest.mark.libjpeg
@settings(max_examples=150, deadline=None)
@given(
    height=st.integers(1, 150),
    width=st.integers(1, 150),
    stored_channels=st.sampled_from([1, 3]),
    sampling=st.sampled_from(SAMPLINGS),
    progressive=st.booleans(),
    restart=st.sampled_from([0, 0, 3]),
    quality=st.integers(20, 100),
    short_side=st.integers(1, 90),
    method=st.sampled_from(sorted(METHODS)),
    channels=st.sampled_from([3, 1]),
    square=st.booleans(),
)
def test_the_pixels_are_those_of_opencv_in_steps(
    height, width, stored_channels, sampling, progressive, restart, quality, short_side, method,
    channels, square,
):  # fmt: skip
    image = picture(height, width, height * width, stored_channels)
    data = encode_jpeg(image, sampling, quality, restart, progressive=progressive)
    result = decode_resized(data, short_side, method, channels, square=square)
    reference = in_steps(data, short_side, method, channels, square)
    assert result.flags.c_contiguous
    np.testing.assert_array_equal(result, reference)


@pytest.mark.libjpeg
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_the_size_itself_copies_the_decoded_pixels(sampling):
    data = encode_jpeg(picture(61, 83), sampling)
    np.testing.assert_array_equal(decode_resized(data, 61), in_steps(data, 61))


@pytest.mark.libjpeg
@pytest.mark.parametrize("progressive", [False, True])
def test_a_file_cut_anywhere_is_left_to_opencv(progressive):
    data = encode_jpeg(picture(24, 40), progressive=progressive)
    for end in range(len(data)):
        assert decode_resized(data[:end], 12) is None, end


@pytest.mark.libjpeg
def test_damage_below_the_crop_is_damage():
    data = encode_jpeg(picture(200, 40))
    cut = data[: len(data) * 9 // 10] + data[-2:]
    assert decode_resized(cut, 20, square=True) is None


@pytest.mark.libjpeg
def test_bytes_behind_the_end_do_not_matter():
    data = encode_jpeg(picture(24, 40))
    expected = decode_resized(data, 12)
    np.testing.assert_array_equal(decode_resized(data + b"\xff\xd8 and a film", 12), expected)


@settings(max_examples=150, deadline=None)
@given(
    changes=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4),
    progressive=st.booleans(),
    square=st.booleans(),
)
def test_damage_gives_what_opencv_makes_of_it_or_nothing(changes, progressive, square):
    data = bytearray(encode_jpeg(picture(40, 56), progressive=progressive, restart=2))
    for position, value in changes:
        data[position % len(data)] = value
    result = decode_resized(bytes(data), 20, square=square)
    if result is not None:
        np.testing.assert_array_equal(result, in_steps(bytes(data), 20, square=square))


@settings(deadline=None)
@given(data=st.binary(max_size=300))
def test_other_bytes_are_left_to_opencv(data):
    assert decode_resized(data, 10) is None
    assert decode_resized(b"\xff\xd8\xff" + data, 10) is None


@pytest.mark.parametrize(
    "data",
    [
        cv2.imencode(".png", picture(20, 30))[1].tobytes(),
        with_pillow(exif=b"Exif\0\0MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0"),
    ],
    ids=["png", "rotated"],
)
def test_kinds_that_are_left_to_others(data):
    assert decode_resized(data, 10) is None


def test_a_result_that_would_be_too_large_is_not_made():
    data = encode_jpeg(picture(2, 300))
    assert decode_resized(data, 100, largest_side=14_999) is None
    assert decode_resized(data, 2**31 - 1, largest_side=2**31 - 1) is None
    if jpeg.available():
        assert decode_resized(data, 100, largest_side=15_000).shape == (100, 15_000, 3)


@pytest.mark.libjpeg
def test_any_buffer_will_do():
    data = encode_jpeg(picture(30, 40))
    expected = decode_resized(data, 15)
    for same in (bytearray(data), memoryview(data), np.frombuffer(data, np.uint8)):
        np.testing.assert_array_equal(decode_resized(same, 15), expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"short_side": 0}, "short_side"),
        ({"short_side": 9, "method": 2}, "method"),
        ({"short_side": 9, "channels": 4}, "channels"),
        ({"short_side": 9, "channels": -3}, "channels"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        decode_resized(encode_jpeg(picture(10, 10)), **arguments)


@pytest.mark.libjpeg
def test_threads_do_not_disturb_each_other():
    files = [encode_jpeg(picture(40 + 7 * i, 90 - 5 * i, seed=i)) for i in range(8)]
    expected = [in_steps(data, 24) for data in files]
    wrong = []

    def work(first):
        for number in range(first, first + 200):
            if not np.array_equal(decode_resized(files[number % 8], 24), expected[number % 8]):
                wrong.append(number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert not wrong


@pytest.mark.libjpeg
def test_inks_are_resized_as_in_two_steps():
    data = with_pillow("CMYK")
    pixels = decode_image(data)[..., ::-1]
    small = cv2.resize(pixels, decode_resized(data, 10).shape[1::-1])
    np.testing.assert_array_equal(decode_resized(data, 10), small)
