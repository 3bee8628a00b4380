"""recordio.decode_image, decode_many, image_info: what they give, and what they refuse."""

import contextlib
import io
import os
import threading

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import recordio
from iterators.testing import picture
from recordio import ImageDecodeError, decode_image, decode_many, image_info
from recordio.formats.jpeg import jpeg
from recordio.kernels.resample import resize

PHOTO = picture(45, 61)
KINDS = ("jpeg", "progressive", "grey", "turned", "png", "palette", "deep", "ppm", "webp", "bmp")
#: EXIF data that ask for a quarter turn.
TURNED = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"


def content(kind):
    """The photograph as a file of some kind; one of JPEG may be turned."""
    if kind == "deep":
        return cv2.imencode(".png", PHOTO.astype(np.uint16) * 257)[1].tobytes()
    file = io.BytesIO()
    image = Image.fromarray(PHOTO)
    if kind in ("grey", "palette"):
        image = image.convert("L" if kind == "grey" else "P")
    form = {"progressive": "JPEG", "grey": "JPEG", "turned": "JPEG", "palette": "PNG"}
    more = {"progressive": {"progressive": True}, "turned": {"exif": TURNED}}.get(kind, {})
    image.save(file, form.get(kind, kind), **more)
    return file.getvalue()


CONTENT = {kind: content(kind) for kind in KINDS}


@pytest.fixture(params=KINDS)
def data(request):
    return CONTENT[request.param]


# -- pixels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("offset", range(17))
def test_rows_go_to_memory_of_any_alignment_and_not_beyond(channels, offset):
    for width in (1, 5, 16, 31, 48, 61):
        size = 45 * width * channels
        data = cv2.imencode(".jpg", PHOTO[:, :width])[1].tobytes()
        room = np.full(size + 100, 7, np.uint8)
        out = room[offset : offset + size].reshape(45, width, channels)
        decode_image(data, channels=channels, out=out)
        planes = decode_image(data, channels=channels, layout="CHW")  # from rows of the decoder's
        assert np.array_equal(out, planes.transpose(1, 2, 0))
        assert (room[:offset] == 7).all() and (room[offset + size :] == 7).all()


@pytest.mark.parametrize("channels", [1, 3])
def test_pixels_are_those_of_opencv(data, channels):
    theirs = cv2.imdecode(np.frombuffer(data, np.uint8), int(channels != 1))
    theirs = theirs[..., None] if channels == 1 else theirs[..., ::-1]
    assert np.array_equal(decode_image(data, channels=channels), theirs)


def test_other_layouts_and_memory_hold_the_same(data):
    whole = decode_image(data)
    planes = decode_image(data, layout="CHW")
    assert planes.flags.c_contiguous and np.array_equal(planes.transpose(1, 2, 0), whole)
    height, width, _ = whole.shape
    room = np.full((height + 2, width + 3, 3), 7, np.uint8)
    part = room[1:-1, 2:-1]
    assert decode_image(data, out=part) is part and np.array_equal(part, whole)
    assert (room[0] == 7).all() and (room[:, :2] == 7).all() and (room[:, -1] == 7).all()
    room = np.full((3, height + 1, width + 5), 7, np.uint8)
    part = room[:, 1:, 5:]
    decode_image(data, out=part, layout="CHW")
    assert np.array_equal(part, planes) and (room[:, 0] == 7).all() and (room[..., :5] == 7).all()
    assert np.array_equal(decode_image(memoryview(data)), whole)
    assert np.array_equal(decode_image(np.frombuffer(data, np.uint8)), whole)


@given(
    st.sampled_from(KINDS), st.integers(0, 60), st.integers(0, 60), st.integers(1, 61),
    st.integers(1, 61), st.sampled_from([1, 3]), st.booleans(), st.booleans(),
)  # fmt: skip
def test_regions_are_cut_from_the_whole(kind, x, y, width, height, channels, orient, planar):
    settings = {"channels": channels, "orient": orient, "layout": "CHW" if planar else "HWC"}
    whole = decode_image(CONTENT[kind], **settings)
    tall, wide = whole.shape[1:] if planar else whole.shape[:2]
    region = (x, y, width, height)
    if x + width > wide or y + height > tall:
        with pytest.raises(ValueError, match="lies outside the image of"):
            decode_image(CONTENT[kind], region=region, **settings)
        return
    rows, columns = slice(y, y + height), slice(x, x + width)
    wanted = whole[:, rows, columns] if planar else whole[rows, columns]
    found = decode_image(CONTENT[kind], region=region, **settings)
    assert found.shape == wanted.shape and np.array_equal(found, wanted)


@given(
    st.sampled_from(KINDS), st.sampled_from([2, 4, 8]), st.integers(0, 44), st.integers(0, 44),
    st.booleans(),
)  # fmt: skip
def test_a_region_at_a_scale_is_cut_from_the_scaled_image(kind, by, x, y, planar):
    whole = decode_image(CONTENT[kind])
    scaled = decode_image(CONTENT[kind], scale=1 / by)
    height, width = (-(-side // by) for side in whole.shape[:2])
    assert scaled.shape == (height, width, 3)
    if kind in ("png", "ppm", "bmp"):
        assert np.array_equal(scaled, resize(np.ascontiguousarray(whole), (width, height), 3))
    region = (x, y, whole.shape[1] - x, whole.shape[0] - y)
    layout = "CHW" if planar else "HWC"
    found = decode_image(CONTENT[kind], scale=1 / by, region=region, layout=layout)
    wanted = scaled[y // by :, x // by :]
    assert np.array_equal(found.transpose(1, 2, 0) if planar else found, wanted)


@pytest.mark.parametrize("size", [(61, 45), (30, 22), (7, 5), (100, 9), (1, 1), (130, 200)])
def test_a_size_is_a_mean_over_areas(data, size):
    whole = decode_image(data)
    found = decode_image(data, size=size)
    assert found.shape == (size[1], size[0], 3)
    wanted = resize(np.ascontiguousarray(whole), size, 3).astype(int)
    assert np.abs(found - wanted).mean() < 15  # JPEG images are smaller before they are decoded
    if data[:2] != b"\xff\xd8":
        assert np.array_equal(found, wanted)
    planes = decode_image(data, size=size, layout="CHW")
    assert np.array_equal(planes.transpose(1, 2, 0), found)
    region = (3, 4, 29, 31)
    part = decode_image(data, size=size, region=region).astype(int)
    wanted = resize(np.ascontiguousarray(whole[4:35, 3:32]), size, 3)
    assert np.abs(part - wanted).mean() < 15


def test_turned_images_stand_upright_unless_they_are_wanted_as_stored():
    whole = decode_image(CONTENT["turned"])
    assert whole.shape[:2] == PHOTO.shape[1::-1]
    stored = decode_image(CONTENT["turned"], orient=False)
    assert np.array_equal(np.rot90(stored, -1), whole)


@pytest.mark.parametrize("dtype", ["uint16", "float32", np.uint16, np.dtype("float32")])
def test_values_of_sixteen_bits_are_kept(dtype):
    deep = PHOTO.astype(np.uint16) * 251 + 3
    data = cv2.imencode(".png", deep[..., ::-1])[1].tobytes()
    found = decode_image(data, dtype=dtype)
    assert found.dtype == dtype and np.array_equal(found, deep)
    found = decode_image(data, dtype=dtype, region=(2, 3, 20, 10), layout="CHW")
    assert np.array_equal(found, deep[3:13, 2:22].transpose(2, 0, 1))
    out = np.empty(deep.shape, dtype)
    assert decode_image(data, dtype=dtype, out=out) is out and np.array_equal(out, deep)
    assert np.array_equal(decode_image(data), (deep >> 8).astype(np.uint8))
    assert np.array_equal(decode_image(CONTENT["png"], dtype=dtype), decode_image(CONTENT["png"]))
    grey = cv2.imencode(".png", deep[..., 0])[1].tobytes()
    assert np.array_equal(decode_image(grey, channels=1, dtype=dtype)[..., 0], deep[..., 0])


def test_four_channels_are_those_of_the_image():
    rgba = np.dstack((PHOTO, PHOTO[..., 0]))
    file = io.BytesIO()
    Image.fromarray(rgba).save(file, "PNG")
    assert np.array_equal(decode_image(file.getvalue(), channels=4), rgba)
    found = decode_image(file.getvalue(), channels=4, region=(1, 2, 9, 8), layout="CHW")
    assert np.array_equal(found, rgba[2:10, 1:10].transpose(2, 0, 1))
    with pytest.raises(ImageDecodeError, match="channels, not the 4"):
        decode_image(CONTENT["jpeg"], channels=4)


def test_tensors_share_memory():
    torch = pytest.importorskip("torch")
    whole = decode_image(CONTENT["jpeg"])
    tensor = torch.zeros(whole.shape, dtype=torch.uint8)
    assert decode_image(CONTENT["jpeg"], out=tensor) is tensor
    assert np.array_equal(tensor.numpy(), whole)
    batch = torch.zeros((2, 3, 9, 8), dtype=torch.uint8)
    assert decode_many([CONTENT["jpeg"]] * 2, size=(8, 9), layout="CHW", out=batch) is batch
    assert batch.numpy().any()
    assert torch.from_dlpack(decode_image(CONTENT["jpeg"])).shape == whole.shape
    with pytest.raises(TypeError, match="memory of the CPU"):
        decode_image(CONTENT["jpeg"], out=torch.zeros(whole.shape, device="meta"))


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"channels": 2}, "channels must be"),
        ({"dtype": "int8"}, "dtype must be"),
        ({"layout": "NCHW"}, "layout must be"),
        ({"scale": 2}, "scale must be"),
        ({"scale": 0.3}, "scale must be"),
        ({"scale": 1 / 2, "size": (3, 3)}, "leave one out"),
        ({"size": (3, 3), "dtype": "uint16"}, "hold the stored values"),
        ({"scale": 1 / 2, "dtype": "float32"}, "hold the stored values"),
        ({"channels": 4, "dtype": "float32"}, "channels, not the 4"),
        ({"size": (0, 3)}, "size must be"),
        ({"size": (3, 1 << 28)}, "size must be"),
        ({"size": 3}, "size must be"),
        ({"size": (3, 4, 5)}, "size must be"),
        ({"size": (3.5, 4)}, "size must be"),
        ({"region": (0, 0, 3)}, "region must be"),
        ({"region": (0, 0, 3, "x")}, "region must be"),
        ({"region": (-1, 0, 3, 3)}, "lies outside"),
        ({"region": (0, 0, 0, 3)}, "lies outside"),
        ({"region": (0, 0, 3, -1)}, "lies outside"),
        ({"region": (0, 0, 62, 3)}, "lies outside"),
        ({"region": (1 << 70, 0, 3, 3)}, "lies outside"),
        ({"region": (0, -(1 << 70), 1 << 71, 3)}, "lies outside"),
        ({"region": (2**31 - 1, 2**31 - 1, 2**31 - 1, 2**31 - 1)}, "lies outside"),
    ],
)
def test_arguments_that_cannot_be_are_refused(settings, message):
    for kind in ("jpeg", "png", "ppm", "bmp", "deep"):
        with pytest.raises(ValueError, match=message):
            decode_image(CONTENT[kind], **settings)
    with pytest.raises(ValueError, match="lies outside"):
        decode_image(CONTENT["deep"], dtype="uint16", region=(60, 0, 2, 2))


@pytest.mark.parametrize(
    "out",
    [
        np.empty((45, 61), np.uint8),
        np.empty((45, 60, 3), np.uint8),
        np.empty((45, 61, 3), np.int8),
        np.empty((45, 61, 3), np.uint16),
        np.empty((45, 61, 3), bool),
        np.empty((3, 45, 61), np.uint8).transpose(1, 2, 0),
        np.empty((45, 61, 4), np.uint8)[..., :3],
        np.empty((45, 61, 3), np.uint8)[:, ::-1],
        np.empty((45, 61, 3), np.uint8)[::-1],
        np.broadcast_to(np.empty((61, 3), np.uint8), (45, 61, 3)),
        np.lib.stride_tricks.as_strided(np.empty(45 * 200, np.uint8), (45, 61, 3), (90, 3, 1)),
        np.frombuffer(bytes(45 * 61 * 3), np.uint8).reshape(45, 61, 3),
    ],
)
def test_memory_that_does_not_fit_is_refused_and_left_alone(out):
    before = out.copy()
    for kind in ("jpeg", "png", "ppm", "bmp"):
        with pytest.raises((ValueError, BufferError)):
            decode_image(CONTENT[kind], out=out)
    assert np.array_equal(out, before)


def test_no_bytes_and_no_images_are_refused():
    for data in (b"", b"no image", bytes(1000), b"\xff\xd8\xff"):
        with pytest.raises(ImageDecodeError):
            decode_image(data)
        with pytest.raises(ImageDecodeError):
            image_info(data)
        with pytest.raises(ImageDecodeError):
            decode_image(data, dtype="uint16")
    for data in ("image.jpg", None, 5, [1, 2]):
        with pytest.raises(TypeError):
            decode_image(data)
        with pytest.raises(TypeError):
            image_info(data)
    with pytest.raises(TypeError, match="max_pixel"):
        decode_image(CONTENT["png"], max_pixel=3)


def test_limits_are_exact(data):
    pixels = PHOTO.shape[0] * PHOTO.shape[1]
    assert decode_image(data, max_pixels=pixels).any()
    assert decode_image(data, max_pixels=None).any()
    with pytest.raises(ImageDecodeError, match="too large"):
        decode_image(data, max_pixels=pixels - 1)
    with pytest.raises(ImageDecodeError, match="too large"):
        decode_image(data, max_pixels=pixels - 1, region=(0, 0, 1, 1))


@pytest.mark.libjpeg
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_strict_refuses_what_decoders_make_up(dtype):
    data = bytearray(CONTENT["jpeg"])
    for at in range(len(data) - 400, len(data) - 40):
        data[at] = 0x55
    outcomes = set()
    for strict in (False, True):
        try:
            decode_image(bytes(data), dtype=dtype, strict=strict)
            outcomes.add("pixels")
        except ImageDecodeError as error:
            assert "damaged" in str(error)
            outcomes.add("refused")
    assert outcomes == {"pixels", "refused"}


@given(
    st.binary(max_size=400), st.sampled_from([b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"P6\n"])
)
def test_random_bytes_are_an_image_or_an_error(data, start):
    for call in (decode_image, image_info, lambda data: decode_many([data], threads=1)):
        with contextlib.suppress(ImageDecodeError):
            call(start + data)


@given(st.sampled_from(KINDS), st.data())
def test_damaged_files_give_pixels_or_an_error(kind, draw):
    data = bytearray(CONTENT[kind])
    for _ in range(draw.draw(st.integers(1, 4))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    data = bytes(data[: draw.draw(st.integers(len(data) // 2, len(data)))])
    out = np.zeros((45, 61, 3), np.uint8)
    for settings in ({}, {"size": (9, 8)}, {"region": (1, 2, 20, 20)}, {"out": out}):
        try:
            decode_image(data, max_pixels=1 << 16, **settings)
        except ImageDecodeError:
            pass
        except ValueError as error:  # another size than before
            assert "outside" in str(error) or "shape" in str(error)  # noqa: PT017


def test_a_failed_image_does_not_harm_the_next(data):
    whole = decode_image(data)
    for bad in (b"", data[: len(data) // 2], b"\xff\xd8\xff\xe0" + bytes(50)):
        with pytest.raises(ImageDecodeError):
            decode_image(bad)
        assert np.array_equal(decode_image(data), whole)


# -- many images ----------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 40])
def test_many_images_are_the_same_with_any_number_of_threads(threads):
    images = [CONTENT[kind] for kind in KINDS] * 3
    whole = decode_many(images, threads=threads)
    assert isinstance(whole, list) and len(whole) == len(images)
    for found, data in zip(whole, images, strict=True):
        assert np.array_equal(found, decode_image(data))
    batch = decode_many(images, threads=threads, size=(20, 30), layout="CHW")
    assert batch.shape == (len(images), 3, 30, 20)
    for found, data in zip(batch, images, strict=True):
        assert np.array_equal(found, decode_image(data, size=(20, 30), layout="CHW"))
    values = decode_many([CONTENT["deep"]] * 2, threads=threads, dtype="uint16")
    assert np.array_equal(values[0], decode_image(CONTENT["deep"], dtype="uint16"))


def test_many_images_fill_the_memory_that_is_given():
    images = [CONTENT["jpeg"], CONTENT["png"]]
    out = np.zeros((2, 45, 61, 3), np.uint8)
    assert decode_many(images, out=out) is out
    assert np.array_equal(out[1], decode_image(images[1]))
    for wrong in (out[:1], out[0], np.zeros((2, 45, 60, 3), np.uint8), out.astype(np.int16)):
        with pytest.raises(ValueError, match="out "):
            decode_many(images, out=wrong)
    assert decode_many([]) == [] and decode_many([], size=(3, 4)).shape == (0, 4, 3, 3)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_first_image_that_cannot_be_decoded_is_named(threads):
    images = [CONTENT["png"]] * 20
    images[11] = images[17] = b"no image"
    for _ in range(5):
        with pytest.raises(ImageDecodeError, match="record 11") as caught:
            decode_many(images, threads=threads)
        assert caught.value.record == 11
    with pytest.raises(ValueError, match="threads"):
        decode_many(images, threads=0)
    with pytest.raises(TypeError, match="str"):
        decode_many(["path"])


def test_threads_of_python_share_nothing():
    wanted = {kind: decode_image(CONTENT[kind]) for kind in KINDS}
    wrong = []

    def work():
        for _ in range(20):
            for kind in KINDS:
                if not np.array_equal(decode_image(CONTENT[kind]), wanted[kind]):
                    wrong.append(kind)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_decodes():
    whole = decode_image(CONTENT["jpeg"])
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(decode_many([CONTENT["jpeg"]] * 4)[3], whole) else 1)
    assert os.waitpid(child, 0)[1] == 0


# -- the door is one ------------------------------------------------------------------------------


def test_all_doors_give_the_same_pixels(data):
    from iterators.mx_image import imdecode

    assert np.array_equal(imdecode(data), decode_image(data))
    assert np.array_equal(imdecode(data, flag=0), decode_image(data, channels=1))
    packed = recordio.pack(recordio.IRHeader(0, 1.0, 1, 0), data)
    unpacked = recordio.unpack_img(packed, 1)[1]
    assert np.array_equal(unpacked[..., ::-1], decode_image(data))


# -- facts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        ("jpeg", ("jpeg", 61, 45, 1, 8, 3, False)),
        ("progressive", ("jpeg", 61, 45, 1, 8, 3, True)),
        ("grey", ("jpeg", 61, 45, 1, 8, 1, False)),
        ("turned", ("jpeg", 45, 61, 6, 8, 3, False)),
        ("png", ("png", 61, 45, 1, 8, 3, False)),
        ("palette", ("png", 61, 45, 1, 8, 3, False)),
        ("deep", ("png", 61, 45, 1, 16, 3, False)),
        ("ppm", ("ppm", 61, 45, 1, 8, 3, False)),
        ("webp", ("webp", 61, 45, 1, 8, 3, False)),
        ("bmp", ("bmp", 61, 45, 1, 8, 3, False)),
    ],
)
def test_facts_are_those_of_the_header(kind, facts):
    assert image_info(CONTENT[kind]) == facts
    height, width, _ = decode_image(CONTENT[kind]).shape
    assert (width, height) == facts[1:3]


def test_the_facts_of_a_file_need_its_header_alone():
    for kind in ("jpeg", "progressive", "png", "deep", "turned"):
        data = CONTENT[kind]
        assert image_info(data[: len(data) // 2]) == image_info(data)


def test_the_fast_path_is_as_fast_as_the_codec_alone():
    """The decoders of a thread are kept: one of each kind is made, however many images come."""
    made = []

    class Counted(jpeg.JpegRows):
        def __init__(self, *arguments, **settings):
            made.append(arguments)

    from recordio.formats import image_decoder

    before = image_decoder.CODECS
    image_decoder.CODECS = (Counted, *before[1:])
    try:
        for _ in range(5):
            decode_image(CONTENT["jpeg"], max_scans=77)
    finally:
        image_decoder.CODECS = before
    assert len(made) == 1
