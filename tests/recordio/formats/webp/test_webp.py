"""recordio.formats.webp: what OpenCV and Pillow decode, to the same pixels."""

import base64
import io
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from faces.codecs import decode_webp
from iterators.images.augment.recipe import Recipe
from iterators.images.plan import RenderPlan
from iterators.images.render import Renderer
from recordio import IRHeader, decode_image, pack
from recordio.errors import ImageDecodeError
from recordio.formats import image_decoder
from recordio.formats.image_header import read_header
from recordio.formats.webp import webp

pytestmark = pytest.mark.libwebp

CORPUS = Path(__file__).parents[3] / "fuzz" / "corpus" / "webp"
#: One filters its edges in the simple way, one has several partitions: Pillow writes neither.
FILES = sorted(path for path in CORPUS.iterdir() if path.name in ("simple_filter", "four_parts"))


def picture(width, height, mode="RGB", seed=0):
    """Smooth colours with noise, so that chroma and edges matter."""
    draw = np.random.default_rng(seed)
    small = draw.integers(0, 256, (height // 6 + 2, width // 6 + 2, len(mode)), np.uint8)
    smooth = cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)
    noise = draw.integers(-12, 13, (height, width, len(mode)))
    return np.clip(smooth.reshape(noise.shape).astype(int) + noise, 0, 255).astype(np.uint8)


def made(width=53, height=41, mode="RGB", seed=0, **options):
    """A file by Pillow."""
    file = io.BytesIO()
    Image.fromarray(picture(width, height, mode, seed), mode).save(
        file, "WEBP", **{"quality": 70, **options}
    )
    return file.getvalue()


@st.composite
def files(draw):
    """Files of all sizes and kinds, and their modes."""
    mode = draw(st.sampled_from(["RGB", "RGBA"]))
    options = {
        "lossless": draw(st.booleans()),
        "quality": draw(st.integers(0, 100)),
        "method": draw(st.integers(0, 4)),
        "alpha_quality": draw(st.sampled_from([20, 100])),
    }
    sides = st.one_of(st.integers(1, 40), st.integers(60, 90))
    return made(draw(sides), draw(sides), mode, draw(st.integers(0, 99)), **options), mode


def by_opencv(data, channels):
    """Its pixels in our order."""
    flags = {1: cv2.IMREAD_GRAYSCALE, 3: cv2.IMREAD_COLOR, 4: cv2.IMREAD_UNCHANGED}[channels]
    if channels != 4:
        flags |= cv2.IMREAD_IGNORE_ORIENTATION
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    pixels = pixels.reshape(*pixels.shape[:2], channels)
    return pixels[..., [2, 1, 0, 3][:channels]] if channels > 1 else pixels


@settings(max_examples=60)
@given(files())
def test_pixels_are_those_of_opencv_and_pillow(made_file):
    data, mode = made_file
    for channels in (1, 3, 4) if b"ALPH" in data else (1, 3):
        assert np.array_equal(decode_webp(data, channels), by_opencv(data, channels))
    with Image.open(io.BytesIO(data)) as image:
        channels = len(image.mode)
        assert np.array_equal(decode_webp(data, channels), np.asarray(image))


@settings(max_examples=60)
@given(files(), st.sampled_from([1, 3, 4]), st.data())
def test_a_region_is_part_of_the_whole(made_file, channels, data):
    content = made_file[0]
    whole = decode_webp(content, channels)
    if whole is None:
        assert channels == 4
        return
    check_regions(content, channels, whole, data)


#: 60 x 4 pixels whose transparency is stored by a palette, as differences from left and above.
FILTERED = (
    "UklGRmwBAABXRUJQVlA4WAoAAAAQAAAAOwAAAwAAQUxQSOoAAAAFf6KobSRH07S/JX6w+zGIiMQrMYUZh6MLBAGA+I"
    "MD27bLWlfzkn7btm0zSd0gov+xAWBf/dRPCm84UA5/sHEkeeAelVZCu5mPjigSmCLbaFcm5Y5xfIc01ail0oh8AsTF"
    "J+EIJ268aGgcMM38Cup/FbcoV142Jl1IstQH2dlesTtKJULvGQJyo3FlzRwvx0VEJwapghP/3m12FVHANhUi+EkjTL"
    "WS8ULssl4Gn3S3X+oXH+TsL77744+RnfaJwNVIq95EOAJb8/kTHoiXF0awGwhEOoVhVF3O0+UpHx33k82flKv5brZn"
    "SAJWUDggXAAAAHADAJ0BKjwABAA//f7/f7+6t7IoCqvwP4lsasNGFl/GHUaPgADkDLn2GcuxeUc55Uuq/Qb7oTfuqL"
    "aLnM9bPxe50xQtVPcnzbk8LbHNs3mI5/lgx59Wr/o9gAAA"
)


def test_transparency_of_a_region_depends_on_the_rows_above():
    """libwebp does not decode them when it crops."""
    content = base64.b64decode(FILTERED)
    whole = decode_webp(content, 4)
    for y in range(4):
        assert np.array_equal(decode_webp(content, 4, (0, y, 60, 4 - y)), whole[y:])


def check_regions(content, channels, whole, data):
    height, width = whole.shape[:2]
    for _ in range(5):
        x, y = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
        region = x, y, data.draw(st.integers(1, width - x)), data.draw(st.integers(1, height - y))
        wanted = whole[y : y + region[3], x : x + region[2]]
        assert np.array_equal(decode_webp(content, channels, region), wanted), region


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@settings(max_examples=20)
@given(data=st.data())
def test_other_filters_and_partitions(path, data):
    content = path.read_bytes()
    whole = decode_webp(content)
    assert len(FILES) == 2
    assert np.array_equal(whole, by_opencv(content, 3))
    check_regions(content, 3, whole, data)


def test_every_region_of_a_small_image():
    content = made(19, 18)
    whole = decode_webp(content)
    for y in range(18):
        for x in range(19):
            for width, height in ((1, 1), (2, 3), (19 - x, 18 - y)):
                if x + width <= 19 and y + height <= 18:
                    part = decode_webp(content, 3, (x, y, width, height))
                    assert np.array_equal(part, whole[y : y + height, x : x + width])


@pytest.mark.parametrize("region", [(0, 0, 0, 1), (0, 0, 54, 1), (-1, 0, 1, 1), (0, 41, 1, 1)])
def test_regions_outside_the_image_are_refused(region):
    with pytest.raises(ValueError, match="outside the image"):
        decode_webp(made(), 3, region)


def test_what_is_left_to_the_general_decoder():
    frames = [Image.fromarray(picture(20, 16, seed=seed)) for seed in range(3)]
    file = io.BytesIO()
    frames[0].save(file, "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    moving = file.getvalue()
    assert decode_webp(moving) is None
    assert np.array_equal(decode_image(moving), np.asarray(frames[0]))
    assert decode_webp(made(), 4) is None
    with pytest.raises(ImageDecodeError, match="3 channels, not the 4"):
        decode_image(made(), channels=4)
    for other in (b"", b"RIFF", b"RIFF....WAVEfmt ", made()[1:]):
        assert decode_webp(other) is None


def test_the_limit_on_pixels_comes_first():
    assert decode_webp(made(), max_pixels=53 * 41).shape == (41, 53, 3)
    with pytest.raises(ImageDecodeError, match="53 x 41 pixels are more than the limit of 2172"):
        decode_webp(made(), max_pixels=53 * 41 - 1)
    # A canvas of another size than the picture.
    large = bytearray(made(mode="RGBA"))
    assert large[12:16] == b"VP8X"
    large[24:30] = (8000).to_bytes(3, "little") * 2
    with pytest.raises(ImageDecodeError, match="damaged"):
        decode_webp(large)
    # A picture that announces much, with a few bytes of data.
    large = bytearray(made(lossless=True))
    assert large[12:16] == b"VP8L"
    large[21:25] = ((1 << 28) - 1).to_bytes(4, "little")
    with pytest.raises(ImageDecodeError, match="16384 x 16384 pixels are more than the limit of 6"):
        decode_webp(large)


@pytest.mark.parametrize("options", [{}, {"lossless": True}, {"mode": "RGBA"}], ids=str)
def test_truncated_files_are_refused_whatever_the_region(options):
    data = made(**options)
    for size in range(12, len(data)):
        if size % 7 == 0 or size < 60 or size > len(data) - 40:
            for region in (None, (0, 0, 1, 1)):
                with pytest.raises(ImageDecodeError, match=r"truncated|damaged"):
                    decode_webp(data[:size], 3, region)


def test_damaged_bytes_never_do_more_than_refuse():
    draw = np.random.default_rng(5)
    for options in ({}, {"lossless": True}, {"mode": "RGBA"}):
        data = made(**options)
        for _ in range(150):
            damaged = bytearray(data)
            for _ in range(draw.integers(1, 6)):
                damaged[draw.integers(12, len(data))] = draw.integers(256)
            try:
                whole = decode_webp(damaged, max_pixels=1 << 18)
            except ImageDecodeError:
                continue
            if whole is not None:
                height, width = whole.shape[:2]
                part = decode_webp(damaged, 3, (width // 3, height // 3, 1, 1), max_pixels=1 << 18)
                assert np.array_equal(part[0, 0], whole[height // 3, width // 3])


def with_orientation(orientation, **options):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return made(exif=exif, **options)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation(orientation):
    data = with_orientation(orientation)
    upright = decode_image(data)
    assert np.array_equal(upright, decode_webp(data, upright=True))
    assert (upright.shape[1], upright.shape[0]) == read_header(data).size
    stored = decode_image(data, orient=False)
    assert np.array_equal(stored, decode_webp(data)) and stored.shape == (41, 53, 3)
    sample = sample_of(data, upright.shape)
    assert np.array_equal(sample, upright)
    assert np.array_equal(sample_of(data, stored.shape, orient=False), stored)
    four = with_orientation(orientation, mode="RGBA")
    assert decode_image(four, channels=4).shape == (41, 53, 4)  # as it is stored


@pytest.mark.parametrize("size", [b"\0\0\0\0", b"\x08\0\0\0", b"\xff\xff\xff\xff"])
def test_orientations_that_are_cut_off_are_none(size):
    data = bytearray(with_orientation(6))
    at = data.index(b"EXIF")
    # libwebp reads nothing behind the pixels; ours stays within the file.
    data[at + 4 : at + 8] = size
    assert decode_webp(data, upright=True).shape[2] == 3


def sample_of(content, shape, **settings):
    """What the image stage makes of a record, with the shape of the image."""
    recipe = Recipe(data_shape=(3, *shape[:2]), **settings)
    renderer = Renderer(RenderPlan(recipe))
    sample = renderer.sample(pack(IRHeader(0, 1.0, 7, 0), content))[0]
    return sample[0].transpose(1, 2, 0)


def test_crops_of_records_are_those_of_the_whole_image(monkeypatch):
    recipe = Recipe(data_shape=(3, 24, 20), rand_crop=True, rand_mirror=True)
    records = [pack(IRHeader(0, 1.0, i, 0), made(seed=i)) for i in range(6)]

    def samples():
        renderer = Renderer(RenderPlan(recipe))
        return [np.array(renderer.sample(record)[0]) for record in records]

    ours = samples()
    others = tuple(codec for codec in image_decoder.CODECS if codec is not webp.WebpRows)
    assert len(others) == len(image_decoder.CODECS) - 1
    import iterators.images.render as render

    monkeypatch.setattr(render, "CODECS", others)
    for mine, theirs in zip(ours, samples(), strict=True):
        assert np.array_equal(mine, theirs)


def test_threads_share_nothing():
    contents = [made(40 + i, 30 + i, seed=i) for i in range(8)]
    wanted = [decode_webp(content) for content in contents]
    wrong = []

    def work(number):
        for turn in range(20):
            which = (number + turn) % len(contents)
            if not np.array_equal(decode_webp(contents[which]), wanted[which]):
                wrong.append(which)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert not wrong


def test_odd_chunks_in_front_and_behind():
    data = made(mode="RGBA")
    head, rest = data[:30], data[30:]
    extra = b"ODD!" + struct.pack("<I", 3) + b"abc\0"

    def file(*pieces):
        content = b"".join(pieces)
        return content[:4] + struct.pack("<I", len(content) - 8) + content[8:]

    whole = decode_webp(data, 4)
    assert np.array_equal(decode_webp(file(head, extra, rest), 4), whole)
    assert np.array_equal(decode_webp(file(head, rest, extra), 4), whole)
    assert np.array_equal(decode_webp(data + b"trailing bytes", 4), whole)
