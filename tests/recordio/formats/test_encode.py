"""recordio.encode_image: OpenCV's bytes for JPEG, the pixels for PNG, and what is refused."""

import io
import threading

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from iterators.testing import picture
from recordio import decode_image, encode_image, image_info
from recordio.formats.encode import encode_as_opencv
from recordio.formats.jpeg import encoder

PHOTO = picture(45, 61)


def opencv_jpeg(pixels, quality, subsampling="4:2:0", progressive=False, optimize=False):
    options = [cv2.IMWRITE_JPEG_QUALITY, quality, cv2.IMWRITE_JPEG_PROGRESSIVE, int(progressive)]
    options += [cv2.IMWRITE_JPEG_OPTIMIZE, int(optimize)]
    if subsampling != "4:2:0":
        name = f"IMWRITE_JPEG_SAMPLING_FACTOR_{subsampling.replace(':', '')}"
        options += [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, getattr(cv2, name)]
    return cv2.imencode(".jpg", pixels[..., ::-1], options)[1].tobytes()


@pytest.mark.libjpeg
@given(
    st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 3]), st.integers(0, 100),
    st.sampled_from(list(encoder.SUBSAMPLINGS)), st.booleans(), st.booleans(),
)  # fmt: skip
def test_jpeg_has_the_bytes_of_opencv(
    height, width, channels, quality, subsampling, progressive, optimize
):
    pixels = np.ascontiguousarray(PHOTO[:height, :width, :channels])
    options = {"subsampling": subsampling, "progressive": progressive, "optimize": optimize}
    ours = encode_image(pixels, quality=quality, **options)
    assert ours == opencv_jpeg(pixels, quality, **options)
    assert encode_image(PHOTO) == opencv_jpeg(PHOTO, 95)  # whatever tables the last one had
    facts = image_info(ours)
    assert facts[:3] == ("jpeg", width, height) and facts.channels == channels
    assert facts.progressive == progressive


@pytest.mark.libjpeg
@pytest.mark.parametrize("suffix", [".jpg", ".JPEG"])
@pytest.mark.parametrize("quality", [None, -3, 0, 77, 200])
def test_packs_have_the_bytes_of_opencv(suffix, quality):
    options = [] if quality is None else [cv2.IMWRITE_JPEG_QUALITY, min(max(quality, 0), 100)]
    for image in (PHOTO, PHOTO[..., 0], PHOTO[..., :1], PHOTO[::2, ::-1]):
        theirs = cv2.imencode(suffix, np.ascontiguousarray(image), options)[1].tobytes()
        assert encode_as_opencv(image, suffix, quality) == theirs


@pytest.mark.opencv
def test_packs_have_the_pngs_of_opencv():
    assert encode_as_opencv(PHOTO, ".png", 3) == cv2.imencode(".png", PHOTO, [16, 3])[1].tobytes()


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("suffix", [".png", ".bmp", ".tif", ".pnm"])
def test_a_suffix_stands_for_grey_and_colour_with_and_without_opencv(suffix, channels):
    image = PHOTO[..., :channels]
    data = np.frombuffer(encode_as_opencv(image, suffix), np.uint8)
    read = cv2.imdecode(data, cv2.IMREAD_UNCHANGED).reshape(image.shape)
    assert np.array_equal(read, image)


@given(
    arrays.arrays(
        st.sampled_from([np.uint8, np.uint16]),
        st.tuples(st.integers(1, 12), st.integers(1, 12), st.integers(1, 4)),
    ),
    st.integers(0, 9),
)
def test_png_has_the_pixels(pixels, level):
    data = encode_image(pixels, "png", quality=level)
    channels = pixels.shape[2]
    facts = image_info(data)
    assert facts[:3] == ("png", pixels.shape[1], pixels.shape[0])
    assert (facts.bits, facts.channels) == (8 * pixels.itemsize, channels)
    read = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    if channels == 2:
        assert np.array_equal(read[..., 0], pixels[..., 0])
        assert np.array_equal(read[..., 3], pixels[..., 1])
    elif channels == 1:
        assert np.array_equal(read, pixels[..., 0])
    else:
        assert np.array_equal(read[..., [2, 1, 0, 3][:channels]], pixels)
    if pixels.dtype == np.uint8 and channels != 2:
        assert np.array_equal(decode_image(data, channels=channels), pixels)
        if channels != 1:
            assert np.array_equal(np.asarray(Image.open(io.BytesIO(data))), pixels)


def test_png_is_about_as_small_as_that_of_opencv():
    theirs = len(cv2.imencode(".png", PHOTO, [cv2.IMWRITE_PNG_COMPRESSION, 6])[1])
    assert len(encode_image(PHOTO, "png")) < 1.1 * theirs


def test_other_kinds():
    for kind in ("ppm", "bmp", "tiff"):
        data = encode_image(PHOTO, kind)
        assert image_info(data).kind == kind and np.array_equal(decode_image(data), PHOTO)
    assert image_info(encode_image(PHOTO, "webp", quality=80)).kind == "webp"
    grey = encode_image(PHOTO[..., 0], "pgm")
    assert np.array_equal(decode_image(grey, channels=1)[..., 0], PHOTO[..., 0])


def test_arrays_of_any_strides_and_tensors():
    torch = pytest.importorskip("torch")
    wanted = encode_image(np.ascontiguousarray(PHOTO[::2, ::-1]))
    assert encode_image(PHOTO[::2, ::-1]) == wanted
    assert encode_image(torch.from_numpy(PHOTO)) == encode_image(PHOTO)
    assert encode_image(np.asfortranarray(PHOTO), "png") == encode_image(PHOTO, "png")
    with pytest.raises(TypeError, match="array must be an array or a tensor .* not int"):
        encode_image(3)


@pytest.mark.parametrize(
    ("array", "kind", "settings", "message"),
    [
        (PHOTO, "jpg", {}, "kind must be"),
        (PHOTO, "png", {"progressive": True}, "for JPEG"),
        (PHOTO, "png", {"optimize": True}, "for JPEG"),
        (PHOTO, "png", {"subsampling": "4:4:4"}, "for JPEG"),
        (PHOTO, "png", {"quality": 10}, "0 to 9"),
        (PHOTO, "png", {"quality": -1}, "0 to 9"),
        (PHOTO, "jpeg", {"quality": 101}, "0 to 100"),
        (PHOTO, "jpeg", {"quality": -1}, "0 to 100"),
        (PHOTO, "jpeg", {"subsampling": "420"}, "subsampling must be"),
        (PHOTO, "ppm", {"quality": 5}, "no quality"),
        (PHOTO[..., 0], "ppm", {}, "3 channels"),
        (PHOTO[..., :2], "jpeg", {}, "1 or 3 channels"),
        (np.zeros((4, 4, 4), np.uint8), "jpeg", {}, "1 or 3 channels"),
        (np.zeros((4, 4, 5), np.uint8), "png", {}, "1 to 4 channels"),
        (PHOTO.astype(np.uint16), "jpeg", {}, "from uint8"),
        (PHOTO.astype(np.float32), "png", {}, "from uint8"),
        (np.zeros((0, 4, 3), np.uint8), "jpeg", {}, "has the shape"),
        (np.zeros(4, np.uint8), "jpeg", {}, "has the shape"),
        (np.zeros((1, 65501, 1), np.uint8), "jpeg", {}, "pixels a side"),
    ],
)  # fmt: skip
def test_what_is_no_image_is_refused(array, kind, settings, message):
    with pytest.raises(ValueError, match=message):
        encode_image(array, kind, **settings)


@pytest.mark.libjpeg
def test_the_longest_sides_are_encoded():
    data = encode_image(np.zeros((2, 65500, 1), np.uint8), quality=1)
    assert image_info(data).width == 65500


@pytest.mark.libjpeg
def test_threads_share_nothing():
    images = [picture(40 + n, 50, seed=n) for n in range(6)]
    wanted = [encode_image(image, optimize=n % 2) for n, image in enumerate(images)]
    wrong = []

    def work():
        for _ in range(10):
            for n, image in enumerate(images):
                if encode_image(image, optimize=n % 2) != wanted[n]:
                    wrong.append(n)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
