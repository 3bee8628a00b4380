"""Images with more than 8 bits: every bit in the batches, or one warning, or an error."""

import warnings

import numpy as np
import pytest
from image_variants import tiff
from made_png import picture

from iterators import (
    AugmentedDataset,
    ImageDetRecordIter,
    ImageIter,
    ImageRecordDataset,
    ImageRecordIter,
    Pack,
)
from iterators.datasets.gluon import GluonImageRecordDataset
from iterators.testing import encode, noise, write_pack
from recordio import decode_image
from recordio.errors import ImageDecodeError

COLOURS = {1: 0, 3: 2}
BOX = [2, 5, 0, 0.1, 0.1, 0.5, 0.5]
DEEP = pytest.mark.parametrize("dtype", ["float32", "uint16"])


def deep_png(channels=3, size=(40, 30), **options):
    """Width and height of a file of 16 bits whose values are all different."""
    made = picture(COLOURS[channels], 16, size, **options)
    made.samples = np.random.default_rng(3).integers(0, 1 << 16, made.samples.shape)
    return made.file()


@pytest.fixture
def pack(tmp_path):
    def write(*contents, labels=None):
        return write_pack(tmp_path / "deep.rec", contents, labels)

    return write


@pytest.fixture(autouse=True)
def no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def images(path, kind=ImageRecordIter, **keywords):
    with kind(path_imgrec=path, **{"batch_size": 2, "verbose": False} | keywords) as provider:
        return np.concatenate([batch.data[0][: 2 - batch.pad] for batch in provider])


@DEEP
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("form", ["plain", "interlaced", "alpha", "other channels"])
def test_crops_have_all_bits(pack, dtype, layout, channels, form):
    stored = deep_png(channels, interlaced=form == "interlaced")
    if form == "alpha":
        values = np.random.default_rng(4).integers(0, 1 << 16, (30, 40, 4))
        made = picture(6, 16, (40, 30))
        made.samples, stored = values, made.file()
    elif form == "other channels":
        stored = deep_png(4 - channels)
    whole = decode_image(stored, channels=channels, dtype=dtype)
    assert whole.max() > 60000
    small = encode(noise(30, 40, channels=3), ".png")
    path = pack(*[stored] * 5, small)
    settings = {"data_shape": (channels, 20, 24), "dtype": dtype, "layout": layout}
    found = images(path, preprocess_threads=3, mirror=True, **settings)
    if layout == "NCHW":
        found = found.transpose(0, 2, 3, 1)
    assert found.dtype == dtype
    for image in found[:5]:
        np.testing.assert_array_equal(image, whole[5:25, 8:32][:, ::-1])
    eight = decode_image(small, channels=channels)
    np.testing.assert_array_equal(found[5], eight[5:25, 8:32][:, ::-1])


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("mirror", [False, True])
def test_normalised_images(pack, tmp_path, layout, mirror):
    f = np.float32
    stored = deep_png()
    whole = decode_image(stored, dtype="float32")[5:25, 8:32]
    path = pack(stored, stored)
    mean, std = {"mean_r": 1000.5, "mean_g": 2, "mean_b": 40000}, {"std_r": 3, "std_b": 0.5}
    more = {"data_shape": (3, 20, 24), "layout": layout, "mirror": mirror, "scale": 0.25}
    means = np.array([1000.5, 2, 40000], f)
    factor = f(0.25) / np.array([3, 1, 0.5], f)
    wanted = ((whole - means) * factor)[:, :: -1 if mirror else 1]
    found = images(path, **more, **mean, **std)[0]
    np.testing.assert_array_equal(found.transpose(1, 2, 0) if layout == "NCHW" else found, wanted)
    found = images(path, mean_img=tmp_path / "mean.bin", **more)[0]  # of the same two images
    np.testing.assert_array_equal(found, np.zeros_like(found))


@DEEP
def test_random_crops_and_flips_are_those_of_8_bits(pack, dtype):
    stored = [deep_png(size=(40 + i, 30 + i)) for i in range(4)]
    upper = [encode(decode_image(data), ".png") for data in stored]
    keywords = {"data_shape": (3, 20, 24), "rand_crop": True, "rand_mirror": True, "flip_p": 0.5}
    found = images(pack(*stored), dtype=dtype, seed=5, **keywords)
    wanted = images(pack(*upper), dtype="uint8", seed=5, **keywords)
    np.testing.assert_array_equal(found.astype(np.uint16) >> 8, wanted)


@DEEP
@pytest.mark.parametrize("orientation", range(1, 9))
def test_turned_images(pack, dtype, orientation):
    values = np.random.default_rng(0).integers(0, 1 << 16, (30, 40), np.uint16)
    stored = tiff(values, 16, (274, 3, [orientation]))
    made = picture(0, 16, (40, 30))
    made.samples = values[..., None]
    exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0" + bytes([orientation]) + bytes(6)
    made.before = ((b"eXIf", exif),)
    for content in (stored, made.file()):
        whole = decode_image(content, channels=1, dtype=dtype)
        top, left = (whole.shape[0] - 20) // 2, (whole.shape[1] - 24) // 2
        found = images(pack(content, content), data_shape=(1, 20, 24), dtype=dtype)
        np.testing.assert_array_equal(found[0, 0], whole[top : top + 20, left : left + 24, 0])


def test_signed_and_floating_point_values(pack):
    signed = np.linspace(-1000, 2999, 30 * 40).astype(np.int16).reshape(30, 40)
    floats = np.linspace(-1, 1, 30 * 40).astype(np.float32).reshape(30, 40)
    path = pack(tiff(signed, 16, numbers=2), tiff(floats, 32, numbers=3))
    found = images(path, data_shape=(1, 30, 40))
    np.testing.assert_array_equal(found[0, 0], signed)
    np.testing.assert_array_equal(found[1, 0], floats)
    for keywords in ({"dtype": "uint8"}, {"dtype": "uint16"}, {"resize": 20}):
        with pytest.raises(ImageDecodeError, match=r"signed values.*dtype='float32'"):
            images(path, data_shape=(1, 20, 20), **keywords)
    with pytest.raises(ImageDecodeError, match="signed values"):
        images(path, ImageIter, data_shape=(1, 30, 40))


CUTS = [
    ({"dtype": "uint8"}, "dtype='uint8'"),
    ({"dtype": "int8"}, "dtype='int8'"),
    ({"dtype": "float16"}, "dtype='float16'"),
    ({"resize": 26}, "resize"),
    ({"random_resized_crop": True, "min_random_area": 0.5}, "random_resized_crop"),
    ({"max_rotate_angle": 10}, "max_rotate_angle"),
    ({"color_jitter": 0.4}, "color_jitter"),
    ({"auto_augment": "randaugment"}, "auto_augment"),
    ({"random_erasing": 1.0}, "random_erasing"),
    ({"pad": 2}, "pad"),
    ({"views": [{}, {"mirror": True}]}, "views"),
    ({"cache": "ram"}, "cache"),
    ({"data_shape": (3, 35, 45)}, "images that are resized"),
]


@pytest.mark.parametrize(("keywords", "cause"), CUTS, ids=[cause for _, cause in CUTS])
def test_one_warning_where_bits_are_cut(pack, keywords, cause):
    path = pack(*[deep_png(seed=i) for i in range(6)])
    settings = {"data_shape": (3, 20, 24), "batch_size": 2, "verbose": False} | keywords
    with (
        pytest.warns(UserWarning, match="upper 8 bits") as said,
        ImageRecordIter(path_imgrec=path, **settings) as provider,
    ):
        for _ in range(2):
            for batch in provider:
                assert batch.data[0].max() < 256
    assert len(said) == 1
    assert f"because of {cause}" in str(said[0].message)
    assert said[0].filename == __file__


REFUSED = [pair for pair in CUTS if not {"dtype", "data_shape"} & pair[0].keys()]


@pytest.mark.parametrize(("keywords", "cause"), REFUSED, ids=[cause for _, cause in REFUSED])
def test_uint16_with_steps_that_cut_bits(pack, keywords, cause):
    settings = {"data_shape": (3, 20, 24), "batch_size": 2, "dtype": "uint16"} | keywords
    path = pack(deep_png())
    with pytest.raises(ValueError, match=rf"{cause}.*uint16|uint16.*{cause}"):
        ImageRecordIter(path_imgrec=path, **settings)
    if "cache" not in keywords:
        with pytest.raises(ValueError, match=cause):
            ImageRecordDataset(path, data_shape=(3, 20, 24), dtype="uint16", **keywords)


def test_uint16_of_other_keywords(pack):
    path = pack(deep_png())
    for keywords in ({"mean_r": 1}, {"scale": 0.5}):
        with pytest.raises(ValueError, match="has no effect on"):
            images(path, data_shape=(3, 20, 24), dtype="uint16", **keywords)
    small = images(pack(encode(noise(10, 12), ".png")), data_shape=(3, 20, 24), dtype="uint16")
    assert small.max() in range(200, 256)  # 8 bits are resized
    with pytest.raises(ImageDecodeError, match="would be resized"):
        images(pack(deep_png(size=(10, 12))), data_shape=(3, 20, 24), dtype="uint16")


def test_a_bad_image_of_16_bits_is_skipped(pack):
    stored = deep_png()
    path = pack(stored, stored[:900], stored)
    found = images(path, data_shape=(3, 30, 40), on_error="skip")
    whole = decode_image(stored, dtype="float32")
    np.testing.assert_array_equal(found[0], whole.transpose(2, 0, 1))


@DEEP
def test_boxes(pack, dtype):
    stored = deep_png()
    path = pack(stored, stored, labels=lambda i: BOX)
    whole = decode_image(stored, dtype=dtype).transpose(2, 0, 1)
    for keywords in ({}, {"resize_mode": "shrink", "data_shape": (3, 34, 48)}):
        keywords = {"data_shape": (3, 30, 40), "rand_mirror_prob": 1.0, "dtype": dtype} | keywords
        found = images(path, ImageDetRecordIter, **keywords)[0]
        assert not found[:, 30:].any()
        assert not found[:, :, 40:].any()
        np.testing.assert_array_equal(found[:, :30, :40], whole[:, :, ::-1])
    with pytest.warns(UserWarning, match="upper 8 bits"):
        images(path, ImageDetRecordIter, data_shape=(3, 20, 20))


@DEEP
def test_data_sets(pack, dtype):
    stored = deep_png()
    path = pack(stored, stored)
    whole = decode_image(stored, dtype=dtype)
    np.testing.assert_array_equal(ImageRecordDataset(path, dtype=dtype)[0][0], whole)
    data = ImageRecordDataset(path, dtype=dtype, data_shape=(3, 20, 24), layout="HWC")
    np.testing.assert_array_equal(data[0][0], whole[5:25, 8:32])
    np.testing.assert_array_equal(data[0][0], data.__getitems__([1])[0][0])
    with pytest.warns(UserWarning, match="because of dtype='uint8'") as said:
        data = ImageRecordDataset(path)
        assert data[0][0].max() < 256
        data[1]
    assert len(said) == 1
    if dtype == "float32":
        with pytest.warns(UserWarning, match="because of resize") as said:
            data = ImageRecordDataset(path, dtype=dtype, data_shape=(3, 20, 24), resize=26)
            data[0], data[1]
        assert len(said) == 1
    with pytest.warns(UserWarning, match="gluon"):
        GluonImageRecordDataset(path)[0]
    pixels = AugmentedDataset([noise(30, 40)], data_shape=(3, 20, 24), dtype=dtype)[0]
    np.testing.assert_array_equal(pixels, noise(30, 40)[5:25, 8:32].transpose(2, 0, 1))


@DEEP
def test_packs(tmp_path, dtype):
    deep, plain = deep_png(), encode(noise(30, 40), ".png")
    paths = [write_pack(tmp_path / f"{i}.rec", [data] * 2) for i, data in enumerate((deep, plain))]
    found = images([Pack(path) for path in paths], data_shape=(3, 30, 40), dtype=dtype)
    for image, data in zip(found, (deep, deep, plain, plain), strict=True):
        whole = decode_image(data, dtype=dtype)
        np.testing.assert_array_equal(image, whole.transpose(2, 0, 1))
    packs = [Pack(paths[0]), Pack(paths[1], resize=30)]
    if dtype == "uint16":
        with pytest.raises(ValueError, match="resize"):
            images(packs, data_shape=(3, 30, 40), dtype=dtype)
    else:
        assert images(packs, data_shape=(3, 30, 30))[0].max() > 60000


def test_iterators_of_mxnet_warn_once(pack):
    path = pack(deep_png(), deep_png())
    for keywords in ({}, {"aug_list": []}):
        with pytest.warns(UserWarning, match="because of ImageIter") as said:
            assert images(path, ImageIter, data_shape=(3, 30, 40), **keywords).max() < 256
        assert len(said) == 1


def test_pictures_of_batches_are_not_white(pack):
    with ImageRecordIter(
        path_imgrec=pack(deep_png(), deep_png()), data_shape=(3, 30, 40), batch_size=2
    ) as provider:
        shown = np.asarray(provider.show())
    assert (shown == 255).mean() < 0.9
