"""Limits on the scans of JPEG images, which hold before anything is decoded, at every door."""

import io

import cv2
import numpy as np
import pytest
from PIL import Image

from faces.codecs import decode_jpeg
from iterators import ImageRecordIter, optimize_jpeg
from iterators.datasets import ImageRecordDataset
from iterators.datasets.image_files import read_image
from iterators.images.augment.recipe import Recipe
from iterators.images.plan import RenderPlan
from iterators.images.render import Renderer
from recordio import IRHeader, RecordWriter, decode_image, pack, unpack_img
from recordio.errors import ImageDecodeError
from recordio.formats.image_header import complete_limits
from recordio.formats.jpeg import jpeg
from recordio.formats.jpeg.resize import decode_resized
from recordio.formats.transcode import transcode as jpeg_transcode
from recordio.operations.pictures import channel_sums, picture_hash
from recordio.tools.encode import EncodeOptions, encode_image
from recordio.tools.images import decode_content


def progressive(mode="RGB", size=(60, 50), subsampling=0):
    """A progressive file, and where its scans and what belongs to them begin."""
    file = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), np.uint8)
    image = Image.fromarray(pixels).convert(mode)
    image.save(file, "JPEG", progressive=True, subsampling=subsampling, quality=60)
    return file.getvalue()


def scans_of(data):
    """Offsets of the scans: none of the files here has anything like it in a segment."""
    return [at for at in range(len(data) - 1) if data[at : at + 2] == b"\xff\xda"]


def components_of(data):
    return [data[at + 4] for at in scans_of(data)]


def with_empty_scans(data, count):
    """The same file, with more scans of all components, without data, behind its first one."""
    first = scans_of(data)[0]
    length = int.from_bytes(data[first + 2 : first + 4], "big")
    scan = data[first : first + 1 + length] + b"\x10"  # one more bit of the DC coefficients
    end = data.index(b"\xff\xc4", first)
    return data[:end] + scan * count + data[end:]


def with_size(data, width, height):
    """The same file, claiming another size."""
    at = data.index(b"\xff\xc2") + 5
    return data[:at] + height.to_bytes(2, "big") + width.to_bytes(2, "big") + data[at + 4 :]


SOUND = progressive()
MANY = with_empty_scans(SOUND, 300)  # more than 256
LONG = with_size(with_empty_scans(SOUND, 30), 8000, 8000)  # 64 million pixels, 90 times and more
CMYK = progressive("CMYK")
MANY_CMYK = with_empty_scans(CMYK, 300)
LONG_CMYK = with_size(with_empty_scans(CMYK, 30), 8000, 8000)


def render(data, **limits):
    record = pack(IRHeader(0, 1.0, 7, 0), data)
    return Renderer(RenderPlan(Recipe(data_shape=(3, 8, 8)), **limits)).sample(record)[0]


def open_pack(folder, data, kind, **limits):
    path = folder / "one.rec"
    with RecordWriter(path) as writer:
        writer.write(pack(IRHeader(0, 1.0, 7, 0), data))
    if kind == "dataset":
        return ImageRecordDataset(path, **limits)[0]
    with ImageRecordIter(
        path_imgrec=str(path), data_shape=(3, 8, 8), batch_size=1, verbose=False, **limits
    ) as provider:
        return provider.next()


def unpack_image(data, **limits):
    return unpack_img(pack(IRHeader(0, 1.0, 7, 0), data), **limits)[1]


def pillow_image(data, **limits):
    return read_image(data, "uint8", complete_limits(limits))


DOORS = {
    "decode_image": decode_image,
    "check": jpeg.check_limits,
    "render": render,
    "im2rec": lambda data: encode_image(data, EncodeOptions(resize=8)),
    "tools": lambda data: decode_content(data),
    "unpack_img": unpack_image,
    "channel_sums": channel_sums,
    "picture_hash": picture_hash,
    "Pillow": pillow_image,
}
if jpeg.available():
    DOORS["decode"] = decode_jpeg
    DOORS["region"] = lambda data: decode_jpeg(data, region=(0, 0, 9, 9), denominator=8)
    DOORS["optimize"] = optimize_jpeg
    DOORS["coefficients"] = jpeg_transcode.coefficients


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", ["rgb", "cmyk"])
def test_too_many_scans_are_refused_at_every_door(door, kind):
    if kind == "cmyk" and door in ("decode", "region"):
        return  # not decoded there at all
    many, too_long = (MANY, LONG) if kind == "rgb" else (MANY_CMYK, LONG_CMYK)
    with pytest.raises(ImageDecodeError, match="max_scans|too many scans"):
        DOORS[door](many)
    with pytest.raises(ImageDecodeError, match="max_scan_pixels|too many scans"):
        DOORS[door](too_long)


@pytest.mark.libjpeg
def test_images_of_inks_are_refused_by_their_scans_too():
    for data in (MANY_CMYK, LONG_CMYK):
        with pytest.raises(ImageDecodeError, match="suspicious"):
            decode_jpeg(data)
    assert decode_jpeg(CMYK).shape[2] == 3


def test_arithmetic_coding_and_other_frames_are_counted():
    """No decoder is asked: only markers are read."""
    for frame in (0xC9, 0xCA, 0xC6):
        at = MANY.index(b"\xff\xc2")
        changed = MANY[:at] + bytes((0xFF, frame)) + MANY[at + 2 :]
        for door in (decode_image, jpeg.check_limits, render):
            with pytest.raises(ImageDecodeError, match="max_scans"):
                door(changed)


def test_one_resized_in_one_pass_is_left_to_others():
    assert decode_resized(MANY, 8) is None
    assert decode_resized(LONG, 8) is None


@pytest.mark.parametrize(
    "decode", [decode_image, render, unpack_image, channel_sums, picture_hash, pillow_image]
)
def test_each_limit_is_lifted_by_the_keyword_that_the_error_names(decode):
    for data in (SOUND, CMYK):
        passes = sum(components_of(data))
        assert decode(with_empty_scans(data, 250), max_scans=300, max_scan_pixels=2**40) is not None
        assert (
            decode(data, max_scans=len(scans_of(data)), max_scan_pixels=3000 * passes) is not None
        )
        with pytest.raises(ImageDecodeError, match="raise max_scans to allow"):
            decode(data, max_scans=len(scans_of(data)) - 1)
        with pytest.raises(ImageDecodeError, match="raise max_scan_pixels to allow"):
            decode(data, max_scan_pixels=3000 * passes - 1)
        with pytest.raises(ImageDecodeError, match="raise max_pixels to allow"):
            decode(data, max_pixels=2999)
        with pytest.raises(TypeError, match="max_scan_pixels"):
            decode(data, max_pixel=3000)
    if jpeg.available():
        assert decode(MANY, max_scans=400) is not None


def test_none_lifts_a_limit():
    lifted = {"max_pixels": None, "max_scans": None, "max_scan_pixels": None}
    for decode in (unpack_image, channel_sums, picture_hash, pillow_image):
        assert decode(MANY, **lifted) is not None
        with pytest.raises(ImageDecodeError, match="write it again with fewer"):
            decode(MANY, **{**lifted, "max_scans": 256})


@pytest.mark.parametrize("kind", ["dataset", "provider"])
def test_limits_of_providers_and_data_sets(tmp_path, kind):
    with pytest.raises(ImageDecodeError, match="raise max_scans to allow"):
        open_pack(tmp_path, MANY, kind)
    assert open_pack(tmp_path, MANY, kind, max_scans=400)
    for name, value in (("max_scans", 5), ("max_scan_pixels", 30_000), ("max_pixels", 2999)):
        with pytest.raises(ImageDecodeError, match=f"raise {name} to allow"):
            open_pack(tmp_path, SOUND, kind, **{name: value})
        with pytest.raises((TypeError, ValueError), match=name):
            open_pack(tmp_path, SOUND, kind, **{name: 0})


@pytest.mark.libjpeg
def test_sequential_scans_of_one_component_each_are_counted():
    file = io.BytesIO()
    Image.fromarray(np.zeros((50, 60, 3), np.uint8)).save(file, "JPEG", subsampling=0)
    data = file.getvalue()
    start = data.index(b"\xff\xda")
    scans = [b"\xff\xda\0\x08\x01" + bytes((i, 0x11 * (i > 1))) + b"\0\x3f\0" for i in (1, 2, 3)]
    body = b"".join(scan + bytes(200) for scan in scans)
    for count, limits in ((1, {}), (1, {"max_scan_pixels": 1}), (90, {"max_scans": 270})):
        decode_jpeg(data[:start] + body * count + b"\xff\xd9", **limits)
    with pytest.raises(ImageDecodeError, match="max_scans"):
        decode_jpeg(data[:start] + body * 90 + b"\xff\xd9")
    with pytest.raises(ImageDecodeError, match="max_scan_pixels"):
        decode_jpeg(data[:start] + body * 2 + b"\xff\xd9", max_scan_pixels=3000 * 5)


@pytest.mark.libjpeg
def test_a_sequential_image_of_one_scan_is_limited_by_its_pixels_alone():
    data = cv2.imencode(".jpg", np.zeros((50, 60, 3), np.uint8))[1].tobytes()
    assert decode_jpeg(data, max_scan_pixels=1).shape == (50, 60, 3)


def test_ordinary_photographs_are_far_below_the_limits():
    """Passes of encoders, at the largest sizes: 100 million pixels, and CMYK at 67."""
    assert sum(components_of(SOUND)) * 100_000_000 < jpeg.DEFAULT_MAX_SCAN_PIXELS
    assert len(scans_of(CMYK)) == 18
    assert sum(components_of(CMYK)) * jpeg.DEFAULT_MAX_PIXELS < jpeg.DEFAULT_MAX_SCAN_PIXELS
    jpeg.check_limits(with_size(SOUND, 10_000, 10_000), max_pixels=10**8)


def test_scans_in_segments_and_behind_the_image_do_not_count():
    comment = b"\xff\xfe" + (4002).to_bytes(2, "big") + b"\xff\xda\0\x0c" * 1000
    at = scans_of(SOUND)[0]
    for data in (SOUND[:at] + comment + SOUND[at:], SOUND + b"\xff\xda\0\x0c" * 1000):
        jpeg.check_limits(data)
        assert decode_image(data).shape == (50, 60, 3)


def test_check_is_safe_on_every_cut_and_on_other_formats():
    for size in range(0, len(MANY), 7):
        try:
            jpeg.check_limits(MANY[:size], max_scans=20)
        except ImageDecodeError as error:
            assert "max_scans" in str(error)
    for data in (b"", b"P6 1 1 255 abc", b"\xff\xd8", b"\xff\xd8\xff", memoryview(b"GIF89a")):
        jpeg.check_limits(data)


@pytest.mark.libjpeg
@pytest.mark.parametrize("restart", [0, 2])
@pytest.mark.parametrize("limits", [{"max_pixels": 2999}, {"max_scans": 5}, {"max_scan_pixels": 9}])
def test_both_entropy_decoders_refuse_the_same(restart, limits, monkeypatch):
    pixels = np.zeros((50, 60, 3), np.uint8)
    sequential = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_RST_INTERVAL, restart])[1].tobytes()
    if jpeg.entropy_decoder() not in ("own", "plain"):
        pytest.skip("there is only one")
    for data in (SOUND, sequential, MANY):
        outcomes = []
        for own in (False, True):
            monkeypatch.setenv("ITERATORS_JPEG", "" if own else "plain")
            try:
                outcomes.append(decode_jpeg(data, region=(0, 0, 9, 9), **limits).tobytes())
            except ImageDecodeError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]
