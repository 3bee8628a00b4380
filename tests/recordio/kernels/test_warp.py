"""Affine warps against a slow reference, frozen results of OpenCV 4.8.1, MXNet, and themselves."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import recordio
from faces.warp import bounds, forward_matrix, warp
from recordio.kernels.resample import variants

GOLDEN = Path(__file__).parents[2] / "golden"
NEAREST, BILINEAR, CUBIC, AREA, LANCZOS4 = METHODS = range(5)
TAPS = {NEAREST: 1, BILINEAR: 2, CUBIC: 4, AREA: 2, LANCZOS4: 8}


# ---- the reference: whole images at once, in the words of the rule ----


def inverse(matrix):
    """The matrix from the target to the source, in the order of operations of OpenCV."""
    (a, b, c), (d, e, f) = np.asarray(matrix, np.float32).astype(float).tolist()
    determinant = a * e - b * d
    factor = 1 / determinant if determinant else 0.0
    a, b, d, e = e * factor, -factor * b, -factor * d, a * factor
    return [[a, b, -a * c - b * f], [d, e, -d * c - e * f]]


def positions(matrix, window, method):
    """Source x and y of every pixel of the window, in 1/32 pixel."""
    x, y, width, height = window
    columns, rows = np.arange(x, x + width), np.arange(y, y + height)
    for step, step_down, offset in inverse(matrix):
        along = np.rint(step * columns * 1024).astype(np.int64)
        down = np.rint((step_down * rows + offset) * 1024).astype(np.int64)
        yield (along + down[:, None] + (512 if method == NEAREST else 16)) >> 5


def weights_of_one_axis(method):
    """float32 weights at each of the 32 fractions."""
    x = np.arange(32, dtype=np.float32) / np.float32(32)
    one = np.float32(1)
    if method in (BILINEAR, AREA):
        return np.stack([one - x, x], 1)
    if method == CUBIC:
        a = np.float32(-0.75)
        outer = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a
        inner = ((a + 2) * x - (a + 3)) * x * x + 1
        other = ((a + 2) * (1 - x) - (a + 3)) * (1 - x) * (1 - x) + 1
        return np.stack([outer, inner, other, one - outer - inner - other], 1)
    distances = x[:, None].astype(float) + 3 - np.arange(8)
    weights = (np.sinc(distances) * np.sinc(distances / 4)).astype(np.float32)
    total = np.zeros(32, np.float32)
    for column in weights.T:
        total += column  # one after the other: the order decides the last bit
    return weights * (one / total)[:, None]


def weights_of_positions(method):
    """15-bit weights, indexed [fraction of y, fraction of x, row, column]; they sum to 32768."""
    one = weights_of_one_axis(method)
    taps = one.shape[1]
    products = one[:, None, :, None] * one[None, :, None, :]
    table = np.clip(np.rint(products * np.float32(32768)), -32768, 32767).astype(np.int64)
    if taps == 2:
        return table  # OpenCV's only correction, from 32767 to 32768, changes no result
    middle = slice(taps // 2, taps // 2 + 2)
    for weights in table.reshape(1024, taps, taps):
        excess = weights.sum() - 32768
        four = weights[middle, middle]
        place = four.argmin() if excess > 0 else four.argmax()
        four[np.unravel_index(place, four.shape)] -= excess
    return table


TABLES = {method: weights_of_positions(method) for method in (BILINEAR, CUBIC, AREA, LANCZOS4)}


def reference(image, matrix, window, method, fill):
    """What the window of the warped image shows; `image` has three dimensions."""
    taps, (height, width) = TAPS[method], image.shape[:2]
    px, py = positions(matrix, window, method)
    before = taps // 2 - 1 if taps > 1 else 0
    total = np.zeros((*px.shape, image.shape[2]), np.int64)
    for row in range(taps):
        for column in range(taps):
            x, y = (px >> 5) - before + column, (py >> 5) - before + row
            outside = (x < 0) | (x >= width) | (y < 0) | (y >= height)
            pixels = image[y.clip(0, height - 1), x.clip(0, width - 1)].astype(np.int64)
            pixels[outside] = fill
            if method == NEAREST:
                return pixels.astype(np.uint8)
            total += pixels * TABLES[method][py & 31, px & 31, row, column][..., None]
    return ((total + 16384) >> 15).clip(0, 255).astype(np.uint8)


# ---- material ----


def pixels(seed, height, width, channels):
    """Noise, or black and white noise, which reaches the limits of every sum."""
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 256, (height, width, channels), dtype=np.uint8)
    return np.where(image > 127, 255, 0).astype(np.uint8) if seed % 3 == 0 else image


@st.composite
def matrices(draw, reach=60):
    """Turns, stretches and shears that keep some of the image in sight, most of the time."""
    angle = draw(st.one_of(st.sampled_from([0, 90, 180, 270]), st.floats(-360, 360)))
    stretch = draw(st.one_of(st.just(1.0), st.floats(0.1, 8)))
    shear, ratio = draw(st.floats(-1, 1)), draw(st.floats(0.3, 3))
    shift = st.one_of(st.integers(-reach, reach), st.floats(-reach, reach))
    a, b = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
    return np.array(
        [
            [stretch * a - shear * b, stretch * b + shear * a, draw(shift)],
            [-b * stretch * ratio, a * stretch * ratio, draw(shift)],
        ],
        np.float32,
    )


@st.composite
def windows(draw, most=100):
    """A window, and the size of a result that holds it."""
    x, width = draw(st.integers(0, most)), draw(st.integers(1, most))
    y, height = draw(st.integers(0, most)), draw(st.integers(1, most))
    more = draw(st.integers(0, most))
    return (x, y, width, height), (x + width + more, y + height + more)


sides = st.integers(1, 40)
seeds = st.integers(0, 2**16)
channel_counts = st.sampled_from([1, 3, 4])
methods = st.sampled_from(METHODS)
fills = st.lists(st.integers(0, 255), min_size=4, max_size=4)


# ---- against the reference and others' results ----


@settings(deadline=None, max_examples=80)
@given(matrices(), windows(), sides, sides, channel_counts, methods, fills, seeds)
def test_every_method_equals_the_reference(
    matrix, place, width, height, channels, method, fill, seed
):
    image = pixels(seed, height, width, channels)
    window, size = place
    result = warp(image, matrix, size, method, fill[:channels], window)
    expected = reference(image, matrix, window, method, fill[:channels])
    if method == 4:  # the sines of the Lanczos reference can tip a weight that is nearly a tie
        assert np.abs(result.astype(int) - expected).max(initial=0) <= 1
    else:
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_rows_longer_than_a_chunk_of_positions_equal_the_reference(method, channels):
    image = pixels(5, 30, 700, channels)
    for width in (255, 256, 257, 512, 700):
        matrix = np.array([[0.97, 0.02, 3], [0.01, 1.1, -2]], np.float32)
        result = warp(image, matrix, (width, 33), method, 9)
        expected = reference(image, matrix, (0, 0, width, 33), method, [9] * channels)
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(1, 1, 3), (1, 9, 1), (9, 1, 4), (2, 3, 3), (4, 4, 3)])
def test_images_smaller_than_the_kernel(shape, method):
    image = pixels(1, *shape)
    for matrix in ([[1, 0, 5.3], [0, 1, 4.8]], [[0.3, -2, 9], [1.5, 0.4, 6]]):
        result = warp(image, matrix, (25, 23), method, 100)
        expected = reference(image, matrix, (0, 0, 25, 23), method, [100] * shape[2])
        np.testing.assert_array_equal(result, expected)


def test_frozen_results_of_opencv_4_8_1():
    golden = np.load(GOLDEN / "warp_opencv.npz")
    compared = 0
    for name in golden.files:
        if name.count("/") != 2:
            continue
        case, channels, method = name.split("/")
        image, fill = golden["image"][:, :, : int(channels)], golden["fill"][: int(channels)]
        image = image[:, :, 0] if channels == "1" else image
        size, window = golden[f"{case}/target"][:2], golden[f"{case}/target"][2:]
        for variant in variants():
            result = warp(
                image, golden[f"{case}/matrix"], tuple(size.tolist()), int(method), fill,
                tuple(window.tolist()), variant=variant,
            )  # fmt: skip
            np.testing.assert_array_equal(result, golden[name], err_msg=f"{name} {variant}")
        compared += 1
    assert compared == 49


def test_rotated_batches_of_mxnet():
    """MXNet's rotation and centre crop, from nothing but the pixels that `bounds` names."""
    case = json.loads((GOLDEN / "image_cases.json").read_text())["rotate"]["args"]
    _, height, width = case["data_shape"]
    expected = np.load(GOLDEN / "image_batches.npz")
    with recordio.RecordReader(GOLDEN / case["path_imgrec"]) as reader:
        images = [recordio.unpack_img(bytes(record), 1)[1][:, :, ::-1] for record in reader]
    for number, image in enumerate(images):
        batch, row = divmod(number, case["batch_size"])
        whole = image.shape[1], image.shape[0]
        matrix = forward_matrix(case["rotate"], 0, 1, 1, whole, whole)
        window = (whole[0] - width) // 2, (whole[1] - height) // 2, width, height
        x, y, w, h = bounds(matrix, whole, window)
        result = warp(
            image[y : y + h, x : x + w], matrix, whole, BILINEAR, case["fill_value"], window,
            origin=(x, y), image_size=whole,
        )  # fmt: skip
        golden = expected[f"rotate/0/{batch}/data"][row]
        np.testing.assert_array_equal(result.transpose(2, 0, 1), golden)
    assert len(images) == 10


# ---- against itself ----


@settings(deadline=None, max_examples=100)
@given(matrices(), windows(300), sides, st.integers(1, 300), channel_counts, methods, seeds)
def test_every_variant_gives_the_same_bytes(matrix, place, width, height, channels, method, seed):
    image = pixels(seed, height, width, channels)
    window, size = place
    plain = warp(image, matrix, size, method, seed % 256, window, variant="plain")
    for variant in variants():
        result = warp(image, matrix, size, method, seed % 256, window, variant=variant)
        np.testing.assert_array_equal(result, plain, err_msg=variant)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_every_variant_ends_rows_of_every_length_alike(channels, method):
    image = pixels(7, 12, 60, channels)
    matrix = [[1, 0.1, 0.4], [-0.05, 1, 1.7]]
    for width in range(1, 45):
        plain = warp(image, matrix, (width, 9), method, variant="plain")
        for variant in variants():
            result = warp(image, matrix, (width, 9), method, variant=variant)
            np.testing.assert_array_equal(result, plain, err_msg=f"{variant} {width}")


@settings(deadline=None, max_examples=150)
@given(matrices(), windows(), sides, sides, channel_counts, methods, seeds)
def test_the_bounds_hold_all_pixels_that_a_window_shows(
    matrix, place, width, height, channels, method, seed
):
    image = pixels(seed, height, width, channels)
    window, size = place
    x, y, w, h = bounds(matrix, (width, height), window, method)
    whole = warp(image, matrix, size, method, 77, window)
    if w == 0:
        assert (x, y, h) == (0, 0, 0)
        assert (whole == 77).all()
        return
    part = image[y : y + h, x : x + w]
    result = warp(part, matrix, size, method, 77, window, origin=(x, y), image_size=(width, height))
    np.testing.assert_array_equal(result, whole)


@settings(deadline=None, max_examples=80)
@given(matrices(), windows(), st.integers(20, 90), st.integers(20, 90), methods)
def test_the_bounds_are_no_larger_than_needed(matrix, place, width, height, method):
    window, _ = place
    before = max(TAPS[method] // 2 - 1, 0)
    box = []
    for position, side in zip(positions(matrix, window, method), (width, height), strict=True):
        first = (position >> 5) - before
        low, high = max(first.min(), 0), min(first.max() + TAPS[method], side)
        assume(low < high)
        box.append((low, high - low))
    (x, w), (y, h) = box
    assert bounds(matrix, (width, height), window, method) == (x, y, w, h)


@settings(deadline=None, max_examples=60)
@given(matrices(), windows(), sides, sides, channel_counts, methods, st.integers(0, 255))
def test_weights_sum_to_one(matrix, place, width, height, channels, method, value):
    """An image of one value, on ground of the same value, cannot be seen."""
    image = np.full((height, width, channels), value, np.uint8)
    window, size = place
    assert (warp(image, matrix, size, method, value, window) == value).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_whole_pixel_moves_and_quarter_turns_copy_pixels(channels, method):
    image = pixels(4, 21, 34, channels)
    fill = [1, 2, 3, 4][:channels]
    np.testing.assert_array_equal(warp(image, [[1, 0, 0], [0, 1, 0]], (34, 21), method), image)
    moved = np.empty_like(image)
    moved[:] = fill
    moved[5:, :-3] = image[:-5, 3:]
    result = warp(image, [[1, 0, -3], [0, 1, 5]], (34, 21), method, fill)
    np.testing.assert_array_equal(result, moved)
    result = warp(image, [[0, 1, 0], [-1, 0, 33]], (21, 34), method)
    np.testing.assert_array_equal(result, np.rot90(image))


def test_grey_images_of_two_dimensions_stay_so():
    image = pixels(1, 9, 8, 1)
    result = warp(image[:, :, 0], [[1, 0.2, 0], [0, 1, 0]], (8, 9), CUBIC)
    whole = warp(image, [[1, 0.2, 0], [0, 1, 0]], (8, 9), CUBIC)
    np.testing.assert_array_equal(result, whole[:, :, 0])


def test_fill_may_differ_by_channel():
    result = warp(pixels(1, 4, 4, 4), [[1, 0, 100], [0, 1, 0]], (4, 4), fill=(9, 8, 7, 0))
    assert (result == [9, 8, 7, 0]).all()


def test_threads_share_the_weights():
    image = pixels(2, 200, 200, 3)
    matrix = forward_matrix(33, 0.1, 0.9, 1.2, (200, 200), (200, 200))
    expected = {method: warp(image, matrix, (200, 200), method) for method in METHODS}
    wrong = []

    def work(method):
        for _ in range(5):
            if not np.array_equal(warp(image, matrix, (200, 200), method), expected[method]):
                wrong.append(method)

    with ThreadPoolExecutor(len(METHODS)) as pool:
        list(pool.map(work, METHODS))
    assert not wrong


# ---- extremes ----


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [1e-4, 1e-5, 1e-7, 3e-9])
def test_an_image_shrunk_to_almost_nothing_is_a_dot(scale, method):
    """Positions here exceed 32 bits."""
    image = np.full((8, 8, 3), 200, np.uint8)
    matrix = np.array([[scale, 0, 100], [0, scale, 70]], np.float32)
    result = warp(image, matrix, (224, 150), method, 7)
    expected = reference(image, matrix, (0, 0, 224, 150), method, [7, 7, 7])
    np.testing.assert_array_equal(result, expected)
    assert (result[70, 100] != 7).all()
    assert (result != 7).any(2).sum() == 1


def test_a_pixel_enlarged_beyond_all_measure_fills_the_result():
    image = pixels(1, 3, 3, 3)
    matrix = np.array([[1e7, 0, -9.9e6], [0, 1e7, -9.9e6]], np.float32)
    assert (warp(image, matrix, (50, 40), NEAREST, 7) == image[1, 1]).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_singular_matrix_shows_the_first_pixel_as_opencv_does(method):
    image = pixels(1, 6, 6, 3)
    for matrix in ([[0, 0, 5], [0, 0, 5]], [[1, 2, 3], [2, 4, 6]]):
        assert (warp(image, matrix, (10, 10), method) == image[0, 0]).all()


finite = st.floats(width=32, allow_nan=False, allow_infinity=False)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(finite, min_size=6, max_size=6), windows(20), channel_counts, methods,
    st.integers(0, 2**20 - 20),
)  # fmt: skip
def test_no_matrix_is_too_wild(entries, place, channels, method, far):
    """Any finite matrix: all variants agree, and nothing beyond the image is read."""
    image = np.full((9, 11, channels), 50, np.uint8)
    matrix = np.reshape(entries, (2, 3))
    (x, y, w, h), _ = place
    window = (x + far // 2, y + far // 2, w, h)
    size = (2**20, 2**20)
    plain = warp(image, matrix, size, method, 50, window, variant="plain")
    assert (plain == 50).all()
    for variant in variants():
        np.testing.assert_array_equal(
            warp(image, matrix, size, method, 50, window, variant=variant), plain
        )
    x, y, w, h = bounds(matrix, (11, 9), window, method)
    assert 0 <= x <= x + w <= 11
    assert 0 <= y <= y + h <= 9


# ---- the forward matrix ----


@settings(deadline=None, max_examples=100)
@given(
    st.integers(-360, 360), st.floats(-1, 1), st.floats(0.1, 4), st.floats(0.2, 4), sides, sides,
    st.floats(1, 200), st.floats(1, 200),
)  # fmt: skip
def test_forward_matrix_rotates_stretches_shears_and_centres(
    angle, shear, scale, ratio, width, height, canvas_width, canvas_height
):
    size, canvas = (width, height), (canvas_width, canvas_height)
    matrix = forward_matrix(angle, shear, scale, ratio, size, canvas)
    assert matrix.dtype == np.float32
    a, b = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
    horizontal = 2 * scale / (1 + ratio)
    rotate = np.array([[a, b], [-b, a]])
    stretch = np.diag([horizontal, ratio * horizontal])
    shear_rows = np.array([[1, shear], [0, 1]])
    np.testing.assert_allclose(matrix[:, :2], shear_rows @ stretch @ rotate, atol=1e-5)
    centre = matrix @ [width / 2, height / 2, 1]
    np.testing.assert_allclose(centre, np.array(canvas) / 2, atol=1e-3)


# ---- bad input ----


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"image": np.zeros((0, 4, 3), np.uint8)}, "shape"),
        ({"image": np.zeros((4, 4, 2), np.uint8)}, "1, 3 or 4 channels"),
        ({"image": np.zeros(4, np.uint8)}, "shape"),
        ({"matrix": np.eye(3)}, r"\(2, 3\)"),
        ({"matrix": [[1, 0, float("nan")], [0, 1, 0]]}, "finite"),
        ({"matrix": [[1, 0, 1e39], [0, 1, 0]]}, "finite"),
        ({"size": (0, 4)}, "sides of 1 to"),
        ({"size": (4, 2**20 + 1)}, "sides of 1 to"),
        ({"method": 5}, "method"),
        ({"method": -1}, "method"),
        ({"fill": 256}, "fill"),
        ({"fill": (1, 2)}, "fill"),
        ({"fill": (1, 2, -3)}, "fill"),
        ({"window": (0, 0, 5, 1)}, "window"),
        ({"window": (-1, 0, 2, 2)}, "window"),
        ({"window": (0, 0, 0, 1)}, "window"),
        ({"origin": (-1, 0)}, "not inside an image"),
        ({"origin": (1, 0), "image_size": (4, 4)}, "not inside an image"),
        ({"image_size": (2**20 + 1, 4)}, "sides of 1 to"),
        ({"variant": "mmx"}, "variant"),
    ],
)
def test_impossible_arguments_are_named(change, text):
    arguments = {
        "image": np.zeros((4, 4, 3), np.uint8),
        "matrix": [[1, 0, 0], [0, 1, 0]],
        "size": (4, 4),
    }
    with pytest.raises(ValueError, match=text):
        warp(**(arguments | change))


def test_images_of_other_types_are_refused():
    with pytest.raises(TypeError, match="uint8"):
        warp(np.zeros((4, 4, 3)), [[1, 0, 0], [0, 1, 0]], (4, 4))
