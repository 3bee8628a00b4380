"""The normalising kernels against the formula, in every layout, type and variant."""

import itertools
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from faces.normalise import normalise
from iterators.core.dtypes import BATCH_TYPES, numpy_dtype
from recordio.kernels.resample import variants

LAYOUTS = ["".join(order) for order in itertools.permutations("chw")]
DTYPES = [name for name in BATCH_TYPES if name != "bfloat16" or find_spec("ml_dtypes")]


def reference(
    image, mean=0.0, std=1.0, scale=1.0, contrast=1.0, illumination=0.0, mirror=False,
    dtype="float32", layout="chw", mean_image=None,
):  # fmt: skip
    f = np.float32
    x = image.transpose(2, 0, 1)
    ones = np.ones(x.shape[0], f)
    mean = (np.asarray(mean, f) * ones)[:, None, None] if mean_image is None else mean_image
    std = (np.asarray(std, f) * ones)[:, None, None]
    if dtype in ("uint8", "uint16"):
        result = x.astype(dtype)
    elif dtype == "int8":
        wide = np.broadcast_to(mean, x.shape).astype(np.float64)
        away = np.sign(wide) * np.floor(np.abs(wide) + 0.5)
        result = np.clip(x - away, -128, 127).astype(np.int8)
    else:
        factor, offset = f(contrast) * f(scale) / std, f(illumination) * f(scale) / std
        with np.errstate(over="ignore"):
            result = ((x.astype(f) - mean) * factor + offset).astype(numpy_dtype(dtype))
    if mirror:
        result = result[:, :, ::-1]
    return np.ascontiguousarray(result.transpose(["chw".index(axis) for axis in layout]))


def draw_image(seed, height, width, channels):
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)


@settings(deadline=None, max_examples=200)
@given(
    st.integers(1, 4), st.integers(1, 80), st.sampled_from([1, 3, 4]), st.booleans(),
    st.sampled_from(DTYPES), st.sampled_from(LAYOUTS), st.booleans(), st.integers(0, 2**16),
)  # fmt: skip
def test_every_variant_equals_the_formula(
    height, width, channels, mirror, dtype, layout, imaged, seed
):
    image = draw_image(seed, height, width, channels)
    rng = np.random.default_rng(seed)
    recipe = {
        "mean": np.round(rng.normal(100, 80, channels) * 2) / 2,
        "std": rng.uniform(0.1, 60, channels),
        "scale": rng.uniform(0.001, 3),
        "contrast": rng.uniform(0.5, 1.5),
        "illumination": rng.normal(0, 30),
        "mirror": mirror,
        "dtype": dtype,
        "layout": layout,
        "mean_image": rng.normal(100, 80, (channels, height, width)).astype("f")
        if imaged
        else None,
    }
    expected = reference(image, **recipe)
    for variant in variants():
        result = normalise(image, variant=variant, **recipe)
        assert result.dtype == expected.dtype
        assert result.shape == expected.shape
        assert result.tobytes() == expected.tobytes(), variant


@pytest.mark.parametrize("variant", variants())
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_every_width_leaves_what_follows_alone(variant, channels):
    """Fast paths work on eight pixels at a time: nothing may be written beyond the row."""
    for width, mirror, dtype in itertools.product(range(1, 40), (False, True), DTYPES):
        image = draw_image(width, 1, width, channels)
        for layout in ("chw", "hwc"):
            shape = (channels, 1, width) if layout == "chw" else (1, width, channels)
            size = width * channels
            block = np.full(size + 128, 77, numpy_dtype(dtype))
            out = block[64 : 64 + size].reshape(shape)
            normalise(
                image, mean=3, mirror=mirror, dtype=dtype, layout=layout, out=out, variant=variant
            )
            expected = reference(image, mean=3, mirror=mirror, dtype=dtype, layout=layout)
            assert out.tobytes() == expected.tobytes()
            assert (block[:64] == 77).all()
            assert (block[64 + size :] == 77).all()


@pytest.mark.parametrize("variant", variants())
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_rows_of_whole_cache_lines_equal_the_formula(variant, channels):
    """They are written past the caches, a line at a time."""
    for width, mirror, layout in itertools.product(
        (16, 32, 48, 112), (False, True), ("chw", "hcw", "hwc")
    ):
        image = draw_image(width, 3, width, channels)
        size = 3 * width * channels
        block = np.full(size + 48, 77, np.float32)
        start = 16 + (-block.ctypes.data // 4) % 16
        shape = {"c": channels, "h": 3, "w": width}
        out = block[start : start + size].reshape([shape[axis] for axis in layout])
        assert out.ctypes.data % 64 == 0
        recipe = {"mean": np.arange(channels) + 3, "std": 2.0, "mirror": mirror, "layout": layout}
        normalise(image, out=out, variant=variant, **recipe)
        assert out.tobytes() == reference(image, **recipe).tobytes()
        assert (block[:start] == 77).all()
        assert (block[start + size :] == 77).all()


@pytest.mark.parametrize("variant", variants())
def test_half_precision_rounds_like_numpy_over_its_whole_range(variant):
    """Subnormals, ties, the largest value, overflow and both zeros."""
    image = np.arange(256, dtype=np.uint8).reshape(1, 256)
    for exponent, sign in itertools.product(range(-34, 12), (1, -1)):
        for odd in (1.0, 1.00048828125, 1.0009765625, 1.5, 1.9990234375, 1.99951171875):
            recipe = {"scale": np.float32(sign * odd * 2.0**exponent), "dtype": "float16"}
            result = normalise(image, variant=variant, **recipe)
            assert result.tobytes() == reference(image[:, :, None], **recipe).tobytes(), recipe
    special = np.array([np.inf, -np.inf, np.nan, 65519.0, 65520.0], np.float32).reshape(1, 1, 5)
    result = normalise(
        np.zeros((1, 5), np.uint8), mean_image=special, dtype="float16", variant=variant
    )
    expected = [-np.inf, np.inf, np.nan, -65504.0, -np.inf]
    np.testing.assert_array_equal(result.ravel(), np.array(expected, np.float16))


@pytest.mark.parametrize("variant", variants())
@pytest.mark.parametrize("layout", ["chw", "hwc"])
@settings(deadline=None)
@given(bits=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=90), turned=st.booleans())
@example(
    bits=[0x7F800001, 0xFFFFFFFF, 0x7FC12345, 0xFFC00000, 0x7F800000, 0xFF800000] * 3, turned=False
)
@example(
    bits=[0x7F7F7FFF, 0x7F7F8000, 0xFF7FFFFF, 1, 0x8000, 0x8001, 0x18000, 0x80018001] * 3,
    turned=True,
)
def test_bfloat16_is_rounded_as_ml_dtypes_rounds(variant, layout, bits, turned):
    """Every float32: ties, overflow, infinities, subnormals, zeros, and what is not a number."""
    kind = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    values = np.array(bits, "u4").view("f4")
    form = {"layout": layout, "variant": variant, "mirror": turned}
    recipes = [{"mean_image": values.reshape(1, 1, -1)}]
    recipes += [{"scale": value} for value in values[:12]]
    with np.errstate(all="ignore"):
        for recipe in recipes:
            width = len(bits) if "mean_image" in recipe else 64
            image = np.arange(width, dtype=np.uint8).reshape(1, width)
            exact = normalise(image, **recipe, **form)
            found = normalise(image, dtype="bfloat16", **recipe, **form)
            assert found.tobytes() == exact.astype(kind).tobytes()


def test_bfloat16_is_rounded_as_torch_rounds():
    torch = pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")
    values = np.random.default_rng(0).integers(0, 2**32, 3 << 14, np.uint64).astype("u4").view("f4")
    values = values[~np.isnan(values)]
    image = np.zeros((1, len(values)), np.uint8)
    found = normalise(image, dtype="bfloat16", mean_image=-values.reshape(1, 1, -1))
    wanted = torch.from_numpy(values).add(0).to(torch.bfloat16).view(torch.int16).numpy()
    assert found.view("i2").ravel().tolist() == wanted.tolist()


def test_int8_rounds_half_means_away_from_zero_and_saturates():
    image = np.array([[0, 100, 255]], np.uint8)
    for mean, rounded in [
        (0.5, 1),
        (1.5, 2),
        (2.5, 3),
        (-0.5, -1),
        (-2.5, -3),
        (0.49999997, 0),
        (3.4, 3),
    ]:
        result = normalise(image, mean=mean, dtype="int8").ravel().tolist()
        assert result == [max(-128, 0 - rounded), min(127, 100 - rounded), 127]
    assert normalise(image, mean=1e30, dtype="int8").ravel().tolist() == [-128] * 3
    assert normalise(image, mean=-1e30, dtype="int8").ravel().tolist() == [127] * 3


def test_mean_image_is_subtracted_before_mirroring():
    image = np.array([[10, 20, 30]], np.uint8)
    means = np.array([[[1, 2, 3]]], np.float32)
    assert normalise(image, mean_image=means, mirror=True).ravel().tolist() == [27, 18, 9]
    result = normalise(image, mean=1000, mean_image=means).ravel().tolist()
    assert result == [9, 18, 27]


def test_scale_contrast_illumination_and_std_follow_the_formula():
    image = np.array([[[100, 150, 200]]], np.uint8)
    result = normalise(
        image, mean=(10, 20, 30), std=(2, 4, 8), scale=0.5, contrast=1.5, illumination=16
    ).ravel()
    assert result.tolist() == [(90 * 1.5 + 16) / 4, (130 * 1.5 + 16) / 8, (170 * 1.5 + 16) / 16]


def test_strided_images_empty_images_and_given_outputs():
    image = draw_image(1, 10, 24, 3)
    view = image[::2, ::-3]
    np.testing.assert_array_equal(normalise(view), reference(np.ascontiguousarray(view)))
    out = np.empty((3, 10, 24), np.float32)
    assert normalise(image, out=out) is out
    assert normalise(image[:0]).shape == (3, 0, 24)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"dtype": "float64"}, "dtype"),
        ({"layout": "nchw"}, "layout"),
        ({"layout": "ccw"}, "layout"),
        ({"mean": (1, 2)}, "mean must be"),
        ({"std": (1, 2, 3, 4)}, "std must be"),
        ({"variant": "neon"}, "variant"),
        ({"mean_image": np.zeros((3, 4, 4), np.float32)}, "mean image"),
        ({"out": np.zeros((3, 4, 5), np.float64)}, "out must be"),
        ({"out": np.zeros((4, 5, 3), np.float32)}, "out must be"),
        ({"out": np.zeros((3, 4, 10), np.float32)[:, :, ::2]}, "out must be"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        normalise(np.zeros((4, 5, 3), np.uint8), **arguments)


@pytest.mark.parametrize(
    "image", [np.zeros((4, 5, 2), np.uint8), np.zeros((4, 5), np.int16), np.zeros(4, np.uint8)]
)
def test_images_that_are_not_images_are_refused(image):
    with pytest.raises(ValueError, match="an image"):
        normalise(image)


def test_a_pixel_by_hand():
    pixel = np.array([[[10, 20, 30]]], np.uint8)
    found = normalise(pixel, mean=(10, 10, 10), scale=0.5)
    assert found.ravel().tolist() == [0.0, 5.0, 10.0]


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize("width", [16, 48, 64, 112, 224, 40])
def test_rows_of_whole_cache_lines_equal_those_that_are_not(channels, mirror, width):
    image = np.random.default_rng(width).integers(0, 256, (5, width, channels), dtype=np.uint8)
    memory = np.full(image.size + 64, np.nan, np.float32)
    start = -memory.ctypes.data % 64 // 4
    settings = {"mean": 3.5, "std": 7, "mirror": mirror}
    for shift in (0, 1):
        out = memory[start + shift : start + shift + image.size].reshape(channels, 5, width)
        normalise(image, out=out, **settings)
        assert np.array_equal(out, normalise(image, variant="plain", **settings))
    assert np.isnan(memory[start + 1 + image.size :]).all()
