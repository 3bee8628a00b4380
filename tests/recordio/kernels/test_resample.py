"""The streaming resampler against a slow reference, frozen results of OpenCV 4.8.1, and itself."""

import math
import threading
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faces.resample import denominator, resize
from recordio.kernels import resample
from recordio.kernels.resample import variants

GOLDEN = Path(__file__).parents[2] / "golden" / "resize_opencv.npz"
NEAREST, BILINEAR, CUBIC, AREA, LANCZOS4 = METHODS = range(5)


# ---- the reference: one target pixel after the other, in the words of the rule ----


class Axis:
    """One axis as the resampler sees it: decoded pixels counted from the crop's first one."""

    def __init__(self, source, target, origin=0, denominator=1, stored=None):
        stored = source if stored is None else stored
        self.target = target
        self.first = origin // denominator
        last = min(-(-(origin + source) // denominator), -(-stored // denominator))
        self.extent = last - self.first
        self.scale = 1.0 / (target / source) / denominator
        self.shift = (origin % denominator) / denominator
        self.end = (origin + source) / denominator - self.first
        self.full = source, origin, denominator

    def clip(self, position):
        return min(max(position, 0), self.extent - 1)

    def nearest(self, t):
        source, origin, denominator = self.full
        position = min(math.floor(t * (1.0 / (self.target / source))), source - 1)
        return (origin + position) // denominator - self.first

    def position(self, t):
        """Whole and fractional part of the place that target pixel t looks at."""
        x = np.float32((t + 0.5) * self.scale + self.shift - 0.5)
        whole = math.floor(x)
        return whole, np.float32(x - np.float32(whole))

    def position_growing(self, t):
        """The same where area has to invent pixels."""
        whole = math.floor(t * self.scale + self.shift)
        x = np.float32((t + 1) - (whole + 1 - self.shift) / self.scale)
        return whole, np.float32(0) if x <= 0 else np.float32(x - np.float32(math.floor(x)))

    def cells(self, t):
        """(pixel, float32 share) of everything that target pixel t covers."""
        left = t * self.scale + self.shift
        right = left + self.scale
        size = min(self.scale, self.end - left)
        end = min(math.floor(right), self.extent - 1)
        start = min(math.ceil(left), end)
        shares = [(start - 1, (start - left) / size)] if start - left > 1e-3 else []
        shares += [(k, 1.0 / size) for k in range(start, end)]
        if right - end > 1e-3:
            shares.append((end, min(right - end, 1.0, size) / size))
        return [(k, np.float32(share)) for k, share in shares]


def kernel_weights(method, x):
    one = np.float32(1)
    if method == CUBIC:
        a = np.float32(-0.75)
        w0 = ((a * (x + one) - 5 * a) * (x + one) + 8 * a) * (x + one) - 4 * a
        w1 = ((a + 2) * x - (a + 3)) * x * x + one
        w2 = ((a + 2) * (one - x) - (a + 3)) * (one - x) * (one - x) + one
        weights = [w0, w1, w2, one - w0 - w1 - w2]
    elif method == LANCZOS4:
        weights = []
        for k in range(8):
            p = float(np.float32(x + np.float32(3)) - np.float32(k))
            y = p * math.pi / 4
            sign = math.sin(math.pi * (float(np.float32(x + np.float32(3))))) * (-1) ** k
            weights.append(np.float32(1e30 if abs(p) < 1e-6 else sign * math.sin(y) / (y * y)))
        weights = np.array(weights, np.float32)
        total = np.float32(0)
        for weight in weights:
            total = np.float32(total + weight)
        weights = weights * (one / total)
    else:
        weights = [one - x, x]
    return [int(np.rint(np.float32(weight) * np.float32(2048))) for weight in weights]


def reference(image, size, method, crop=None, denominator=1, stored=None):
    """Everything in Python integers and float32; the image has a channel axis."""
    stored = (image.shape[1], image.shape[0]) if stored is None else stored
    crop = (0, 0, *stored) if crop is None else crop
    x = Axis(crop[2], size[0], crop[0], denominator, stored[0])
    y = Axis(crop[3], size[1], crop[1], denominator, stored[1])
    image = image[y.first : y.first + y.extent, x.first : x.first + x.extent].astype(np.int64)
    if crop[2:] == tuple(size) and denominator == 1:
        return image.astype(np.uint8)
    if method == NEAREST:
        rows = [y.nearest(t) for t in range(size[1])]
        return image[rows][:, [x.nearest(t) for t in range(size[0])]].astype(np.uint8)
    factors = round(x.scale), round(y.scale)
    whole = (
        x.shift == y.shift == 0
        and abs(x.scale - factors[0]) < np.finfo(float).eps
        and abs(y.scale - factors[1]) < np.finfo(float).eps
    )
    if whole and (factors == (2, 2) if method == BILINEAR else method == AREA and min(factors) > 0):
        return reference_boxes(image, size, factors)
    if method == AREA and x.scale >= 1 and y.scale >= 1:
        return reference_cells(image, size, x, y)
    return reference_taps(image, size, method, x, y)


def reference_boxes(image, size, factors):
    boxes = image[: size[1] * factors[1], : size[0] * factors[0]]
    boxes = boxes.reshape(size[1], factors[1], size[0], factors[0], -1).sum((1, 3))
    if factors == (2, 2):
        return ((boxes + 2) >> 2).astype(np.uint8)
    share = np.float32(1) / np.float32(factors[0] * factors[1])
    return np.rint(boxes.astype(np.float32) * share).astype(np.uint8)


def reference_cells(image, size, x, y):
    result = np.zeros((size[1], size[0], image.shape[2]), np.uint8)
    across = np.zeros((image.shape[0], size[0], image.shape[2]), np.float32)
    for t in range(size[0]):
        for k, share in x.cells(t):
            across[:, t] += image[:, k].astype(np.float32) * share
    for t in range(size[1]):
        total = np.zeros(across.shape[1:], np.float32)
        for k, share in y.cells(t):
            total += across[k] * share
        result[t] = np.clip(np.rint(total), 0, 255)
    return result


def reference_taps(image, size, method, x, y):
    taps = {BILINEAR: 2, AREA: 2, CUBIC: 4, LANCZOS4: 8}[method]

    def look(axis, t):
        whole, part = axis.position_growing(t) if method == AREA else axis.position(t)
        return whole, part

    across = np.zeros((image.shape[0], size[0], image.shape[2]), np.int64)
    for t in range(size[0]):
        whole, part = look(x, t)
        if taps == 2 and (whole < 0 or whole >= x.extent - 1):
            whole, part = x.clip(whole), np.float32(0)
        for k, weight in enumerate(kernel_weights(method, part)):
            across[:, t] += image[:, x.clip(whole - taps // 2 + 1 + k)] * weight
    result = np.zeros((size[1], size[0], image.shape[2]), np.uint8)
    for t in range(size[1]):
        whole, part = look(y, t)
        weights = kernel_weights(method, part)
        rows = [across[y.clip(whole - taps // 2 + 1 + k)] for k in range(taps)]
        if taps == 2:  # each product loses its low bits by itself
            parts = [((row >> 4) * weight) >> 16 for row, weight in zip(rows, weights, strict=True)]
            result[t] = (parts[0] + parts[1] + 2) >> 2
        else:
            total = sum(row * weight for row, weight in zip(rows, weights, strict=True))
            result[t] = np.clip((total + (1 << 21)) >> 22, 0, 255)
    return result


def pixels(seed, height, width, channels):
    """Noise, or black and white noise, which reaches the limits of every sum."""
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 256, (height, width, channels), dtype=np.uint8)
    return np.where(image > 127, 255, 0).astype(np.uint8) if seed % 3 == 0 else image


def assert_equals_reference(result, expected, method):
    """To the byte; the sines of the Lanczos reference can tip a weight that is nearly a tie."""
    if method == LANCZOS4:
        assert np.abs(result.astype(int) - expected).max(initial=0) <= 1
    else:
        np.testing.assert_array_equal(result, expected)


sides = st.integers(1, 40)
seeds = st.integers(0, 2**16)
channel_counts = st.sampled_from([1, 3, 4])


@settings(deadline=None, max_examples=80)
@given(sides, sides, sides, sides, channel_counts, st.sampled_from(METHODS), seeds)
def test_every_method_equals_the_reference(
    width, height, new_width, new_height, channels, method, seed
):
    image = pixels(seed, height, width, channels)
    expected = reference(image, (new_width, new_height), method)
    assert_equals_reference(resize(image, (new_width, new_height), method), expected, method)


@settings(deadline=None, max_examples=60)
@given(sides, sides, st.integers(1, 5), st.integers(1, 5), st.sampled_from([1, 3]), seeds)
def test_whole_factors_equal_the_reference(width, height, factor_x, factor_y, method, seed):
    image = pixels(seed, height * factor_y, width * factor_x, [1, 3, 4][seed % 3])
    expected = reference(image, (width, height), method)
    np.testing.assert_array_equal(resize(image, (width, height), method), expected)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [(1, 1), (2, 7), (7, 2), (61, 1), (1, 61), (33, 35)])
@pytest.mark.parametrize(
    "shape", [(1, 1, 3), (1, 5, 1), (5, 1, 4), (3, 3, 3), (90, 2, 3), (2, 90, 1)]
)
def test_images_smaller_than_the_kernel_and_thin_images(shape, size, method):
    image = pixels(1, *shape)
    np.testing.assert_array_equal(resize(image, size, method), reference(image, size, method))


def test_frozen_results_of_opencv_4_8_1():
    golden = np.load(GOLDEN)
    compared = 0
    for name in golden.files:
        if "/" not in name:
            continue
        source, size, method = name.split("/")
        size = tuple(int(side) for side in size.split("x"))
        result = resize(golden[source], size, int(method))
        difference = np.abs(result.astype(int) - golden[name]).max()
        assert difference <= (1 if int(method) == CUBIC else 0), name
        compared += 1
    assert compared == 75


@pytest.mark.parametrize("method", METHODS)
def test_close_to_the_installed_opencv(method):
    rng = np.random.default_rng(3)
    for _ in range(60):
        height, width, new_height, new_width = (int(side) for side in rng.integers(2, 150, 4))
        image = pixels(int(rng.integers(1000)), height, width, 3)
        expected = cv2.resize(image, (new_width, new_height), interpolation=method)
        difference = np.abs(resize(image, (new_width, new_height), method).astype(int) - expected)
        assert difference.max() <= (2 if method == CUBIC else 1), (
            image.shape,
            new_width,
            new_height,
        )


@settings(deadline=None, max_examples=150)
@given(
    st.integers(1, 200), st.integers(1, 60), st.integers(1, 200), st.integers(1, 60),
    channel_counts, st.sampled_from(METHODS), seeds,
)  # fmt: skip
def test_every_variant_gives_the_same_bytes(
    width, height, new_width, new_height, channels, method, seed
):
    image = pixels(seed, height, width, channels)
    plain = resize(image, (new_width, new_height), method, variant="plain")
    for variant in variants():
        result = resize(image, (new_width, new_height), method, variant=variant)
        np.testing.assert_array_equal(result, plain, err_msg=variant)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("width", range(1, 40))
def test_every_variant_halves_and_thirds_alike(width, channels):
    for factor_x, factor_y in [(2, 2), (3, 3), (1, 2), (3, 1), (4, 5)]:
        image = pixels(width, 4 * factor_y, width * factor_x, channels)
        plain = resize(image, (width, 4), AREA, variant="plain")
        for variant in variants():
            np.testing.assert_array_equal(resize(image, (width, 4), AREA, variant=variant), plain)


def parts(data, side):
    begin = data.draw(st.integers(0, side - 1))
    return begin, data.draw(st.integers(1, side - begin))


@settings(deadline=None, max_examples=150)
@given(st.data(), sides, sides, sides, sides, channel_counts, st.sampled_from(METHODS), seeds)
def test_window_equals_cutting_the_whole_result(
    data, width, height, new_width, new_height, channels, method, seed
):
    image = pixels(seed, height, width, channels)
    (x, w), (y, h) = parts(data, new_width), parts(data, new_height)
    whole = resize(image, (new_width, new_height), method)
    result = resize(image, (new_width, new_height), method, window=(x, y, w, h))
    np.testing.assert_array_equal(result, whole[y : y + h, x : x + w])


@settings(deadline=None, max_examples=150)
@given(st.data(), sides, sides, sides, sides, channel_counts, st.sampled_from(METHODS), seeds)
def test_crop_equals_cutting_first_and_ignores_what_is_outside(
    data, width, height, new_width, new_height, channels, method, seed
):
    image = pixels(seed, height, width, channels)
    (x, w), (y, h) = parts(data, width), parts(data, height)
    expected = resize(image[y : y + h, x : x + w], (new_width, new_height), method)
    poisoned = 255 - image
    poisoned[y : y + h, x : x + w] = image[y : y + h, x : x + w]
    for source in (image, poisoned):
        result = resize(source, (new_width, new_height), method, crop=(x, y, w, h))
        np.testing.assert_array_equal(result, expected)


@settings(deadline=None, max_examples=150)
@given(
    st.data(), sides, sides, sides, sides, st.sampled_from([2, 4, 8]),
    st.sampled_from(METHODS[1:]), seeds,
)  # fmt: skip
def test_reduced_image_with_aligned_crop_equals_resizing_the_decoded_crop(
    data, width, height, new_width, new_height, reduction, method, seed
):
    image = pixels(seed, height, width, 3)
    (x, w), (y, h) = parts(data, width), parts(data, height)
    result = resize(
        image, (new_width, new_height), method, denominator=reduction,
        stored=(width * reduction, height * reduction),
        crop=(x * reduction, y * reduction, w * reduction, h * reduction),
    )  # fmt: skip
    expected = reference(image[y : y + h, x : x + w], (new_width, new_height), method)
    assert_equals_reference(result, expected, method)


@settings(deadline=None, max_examples=150)
@given(
    st.data(),
    st.integers(1, 99),
    st.integers(1, 99),
    st.sampled_from([2, 4, 8]),
    st.sampled_from(METHODS),
)
def test_reduced_image_with_any_crop_equals_the_reference(data, width, height, reduction, method):
    image = pixels(width * height, -(-height // reduction), -(-width // reduction), 3)
    (x, w), (y, h) = parts(data, width), parts(data, height)
    size = data.draw(sides), data.draw(sides)
    arguments = {"denominator": reduction, "stored": (width, height), "crop": (x, y, w, h)}
    expected = reference(image, size, method, (x, y, w, h), reduction, (width, height))
    for variant in variants():
        result = resize(image, size, method, variant=variant, **arguments)
        assert_equals_reference(result, expected, method)


@pytest.mark.parametrize("method", [BILINEAR, CUBIC, AREA, LANCZOS4])
@pytest.mark.parametrize("reduction", [2, 4, 8])
def test_reduced_image_samples_the_same_places(method, reduction):
    """A ramp resized from the full image and from the averaged one agree away from the edges."""
    ramp = np.linspace(0, 255, 640)
    full = np.rint(np.repeat(ramp[None], 640, 0)).astype(np.uint8)
    small = np.rint(ramp.reshape(-1, reduction).mean(1))
    small = np.repeat(small[None], 640 // reduction, 0).astype(np.uint8)
    crop, size = (37, 51, 500, 410), (40, 33)
    expected = resize(full, size, method, crop=crop).astype(int)
    result = resize(small, size, method, crop=crop, denominator=reduction, stored=(640, 640))
    assert np.abs(result.astype(int) - expected)[:, 2:-2].max() <= 2


def test_same_size_copies():
    image = pixels(1, 9, 11, 3)
    for method in METHODS:
        np.testing.assert_array_equal(resize(image, (11, 9), method), image)
        result = resize(image, (5, 4), method, crop=(2, 3, 5, 4))
        np.testing.assert_array_equal(result, image[3:7, 2:7])


@pytest.mark.parametrize("method", METHODS)
def test_constant_images_stay_constant(method):
    for value in (0, 1, 127, 254, 255):
        image = np.full((31, 29, 3), value, np.uint8)
        for size in ((7, 9), (29, 62), (100, 3), (64, 64)):
            assert (resize(image, size, method) == value).all()


def test_extreme_factors():
    image = pixels(4, 3000, 2, 3)
    for method in METHODS:
        assert resize(image, (1, 1), method).shape == (1, 1, 3)
        assert resize(image[:1], (5000, 1), method).shape == (1, 5000, 3)
    mean = resize(image, (1, 1), AREA)[0, 0].astype(float)
    assert np.abs(mean - image.mean((0, 1))).max() <= 0.5 + 1e-3


def test_denominator_keeps_the_target_covered():
    assert denominator(BILINEAR, (1000, 900), (224, 224)) == 4
    assert denominator(BILINEAR, (448, 448), (224, 224)) == 2
    assert denominator(BILINEAR, (448, 447), (224, 224)) == 1
    assert denominator(AREA, (100000, 100000), (1, 1)) == 8
    assert denominator(CUBIC, (100, 100), (224, 224)) == 1
    assert denominator(NEAREST, (1000, 900), (10, 10)) == 1


def test_grey_images_may_lack_the_channel_axis():
    image = pixels(1, 20, 30, 1)
    np.testing.assert_array_equal(
        resize(image[:, :, 0], (13, 11)), resize(image, (13, 11))[:, :, 0]
    )


def test_strided_input_and_given_output():
    image = pixels(1, 40, 60, 3)
    view = image[::2, ::-3]
    out = np.zeros((12, 10, 3), np.uint8)
    assert resize(view, (10, 12), out=out) is out
    np.testing.assert_array_equal(out, resize(np.ascontiguousarray(view), (10, 12)))


def test_threads_give_the_same_bytes():
    image = pixels(2, 200, 300, 3)
    expected = {method: resize(image, (111, 93), method) for method in METHODS}
    failures = []

    def work():
        for method in METHODS:
            for _ in range(5):
                if not np.array_equal(resize(image, (111, 93), method), expected[method]):
                    failures.append(method)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"size": (0, 5)}, "window"),
        ({"size": (5, -1)}, "window"),
        ({"size": (5, 5), "method": 9}, "method must be"),
        ({"size": (5, 5), "crop": (0, 0, 11, 3)}, "crop"),
        ({"size": (5, 5), "crop": (-1, 0, 3, 3)}, "crop"),
        ({"size": (5, 5), "crop": (0, 0, 0, 3)}, "crop"),
        ({"size": (5, 5), "window": (1, 0, 5, 5)}, "window"),
        ({"size": (5, 5), "denominator": 3}, "denominator"),
        ({"size": (5, 5), "denominator": 2}, "stored image is needed"),
        ({"size": (5, 5), "denominator": 2, "stored": (99, 16)}, "is not one of"),
        ({"size": (5, 5), "variant": "mmx"}, "variant"),
        ({"size": (5, 5), "out": np.zeros((4, 5, 3), np.uint8)}, "out must be"),
        ({"size": (5, 5), "out": np.zeros((5, 5, 3), np.float32)}, "out must be"),
        ({"size": (1 << 29, 1)}, "cannot resize|no memory"),
    ],
)
def test_impossible_requests_are_refused(arguments, text):
    image = np.zeros((8, 10, 3), np.uint8)
    with pytest.raises((ValueError, MemoryError), match=text):
        resize(image, **arguments)


@pytest.mark.parametrize("shape", [(8,), (8, 8, 2), (8, 8, 5), (0, 8, 3), (8, 0), (1, 2, 3, 4)])
def test_images_of_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="an image has"):
        resize(np.zeros(shape, np.uint8), (4, 4))


def test_other_element_types_are_refused():
    with pytest.raises(TypeError, match="uint8"):
        resize(np.zeros((8, 8, 3), np.float32), (4, 4))


@pytest.mark.parametrize("method", METHODS)
def test_the_product_resizes_whole_images_as_through_a_window(method):
    random = np.random.default_rng(method)
    for height, width, channels in ((1, 1, 1), (5, 9, 3), (64, 33, 4), (200, 7, 3)):
        image = random.integers(0, 256, (height, width, channels), np.uint8)
        image.flags.writeable = False
        for size in ((1, 1), (7, 3), (90, 120)):
            result = resample.resize(image, size, method)
            np.testing.assert_array_equal(result, resize(image, size, method))


@pytest.mark.parametrize(
    ("shape", "size", "method"),
    [((0, 8, 3), (4, 4), 1), ((8, 8), (4, 4), 1), ((8, 8, 2), (4, 4), 1), ((8, 8, 3), (0, 4), 1)]
    + [((8, 8, 3), (4, -1), 1), ((8, 8, 3), (4, 4), 9), ((8, 8, 3), (1 << 29, 1), 1)],
)
def test_the_product_refuses_what_it_cannot_resize(shape, size, method):
    with pytest.raises((ValueError, MemoryError)):
        resample.resize(np.zeros(shape, np.uint8), size, method)


def test_small_images_by_hand():
    assert resize(np.array([[0, 100], [100, 200]], np.uint8), (1, 1)).tolist() == [[100]]
    assert variants()[0] == "plain"
    assert denominator(1, source=(1000, 900), target=(224, 224)) == 4
