"""described_augmenter: what it accepts, what is drawn, and colours that equal MXNet's."""

import json

import numpy as np
import pytest
from scipy import stats

from faces.draws import composed, drawn_colours
from iterators.images.augment.augmenter import described_augmenter
from iterators.images.augment.geometry import drawn_steps
from iterators.images.render import Renderer
from iterators.images.row_writer import LinearPlan
from recordio import IRHeader, pack_img

SHAPE = (3, 16, 12)
DRAWS = 5000


def close_to(values, distribution):
    assert stats.kstest(values, distribution).pvalue > 1e-3


def test_the_description_is_immutable_and_says_what_differs():
    augmenter = described_augmenter(SHAPE, resize=20, hue=0.1)
    assert augmenter == described_augmenter(list(SHAPE), 20, hue=0.1) != described_augmenter(SHAPE)
    assert repr(augmenter) == (
        "Augmenter(data_shape=(3, 16, 12), resize=20, inter_method=2, hue=0.1)"
    )
    with pytest.raises(AttributeError):
        augmenter.hue = 0.2
    assert hash(augmenter) == hash(described_augmenter(SHAPE, 20, hue=0.1))


@pytest.mark.parametrize(
    "value, expected",
    [
        (None, (0, 0, 0)),
        (True, (123.68, 116.28, 103.53)),
        ([1, 2, 3], (1, 2, 3)),
        (np.array([7.0]), (7, 7, 7)),
        (5, (5, 5, 5)),
    ],
)
def test_means(value, expected):
    assert described_augmenter(SHAPE, mean=value).mean[:3] == expected


def test_standard_deviations():
    assert described_augmenter(SHAPE, std=True).std == (58.395, 57.12, 57.375, 1)
    assert described_augmenter(SHAPE).std == (1, 1, 1, 1)


@pytest.mark.parametrize(
    "arguments, text",
    [
        ({"mean": [1, 2]}, r"mean=\[1, 2\]: expected True, None, or 1 or 3 numbers"),
        ({"mean": "blue"}, "mean='blue'"),
        ({"std": 0}, "std_r=0"),
        ({"std": [[1, 1, 1]]}, "std="),
        ({"rand_resize": True}, "rand_resize=True needs rand_crop=True"),
        ({"resize": -2}, "resize=-2"),
        ({"brightness": -0.1}, r"brightness=-0\.1: expected a number of at least 0"),
        ({"rand_gray": 1.5}, r"rand_gray=1\.5: expected a number from 0 to 1"),
        ({"hue": float("nan")}, "hue=nan"),
        ({"inter_method": 5}, "inter_method=5: expected one of 0, 1, 2, 3, 4, 9, 10"),
        ({"rand_mirror": 2}, "rand_mirror=2"),
    ],
)
def test_bad_values_are_refused_by_name(arguments, text):
    with pytest.raises(ValueError, match=text):
        described_augmenter(SHAPE, **arguments)


# -- what is drawn ---------------------------------------------------------------------------------


def test_factors_hue_noise_and_grey_follow_their_formulas():
    augmenter = described_augmenter(
        SHAPE, brightness=0.3, contrast=0.5, saturation=0.9, hue=0.25, pca_noise=0.2, rand_gray=0.3
    )
    found = [drawn_colours(augmenter, 5, 0, record) for record in range(DRAWS)]
    for i, change in enumerate((0.3, 0.5, 0.9)):
        close_to([f["factor"][i] for f in found], stats.uniform(1 - change, 2 * change).cdf)
    close_to([f["hue"] / np.pi for f in found], stats.uniform(-0.25, 0.5).cdf)
    orders = [tuple(f["order"]) for f in found]
    assert stats.chisquare([orders.count(order) for order in set(orders)]).pvalue > 1e-3
    assert len(set(orders)) == 6
    assert abs(np.mean([f["grey"] for f in found]) - 0.3) < 4 * np.sqrt(0.3 * 0.7 / DRAWS)
    vectors = np.array(
        [[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]]
    )
    noise = np.linalg.solve(
        vectors * [55.46, 4.794, 1.148], np.array([f["noise"] for f in found]).T
    )
    for row in noise:
        close_to(row, stats.norm(0, 0.2).cdf)


def test_what_is_off_draws_nothing():
    steps = drawn_colours(described_augmenter(SHAPE, contrast=0.5), 1, 2, 3)
    assert steps["factor"][0] == steps["factor"][2] == 1 != steps["factor"][1]
    assert steps["hue"] == 0 and steps["noise"] == [0, 0, 0] and steps["grey"] is False


def test_areas_are_uniform_and_ratios_uniform_in_their_logarithm():
    augmenter = described_augmenter((3, 50, 50), rand_crop=True, rand_resize=True)
    crops = [drawn_steps(augmenter, 3, 0, record, 1000, 1000)[0][0] for record in range(DRAWS)]
    # Far from the limits every first try fits, so that nothing is selected.
    areas = np.array([c["width"] * c["height"] for c in crops]) / 1e6
    ratios = np.log([c["width"] / c["height"] for c in crops])
    small = areas < 0.5
    close_to(areas[small], stats.uniform(0.08, 0.42).cdf)
    close_to(ratios[small], stats.uniform(np.log(3 / 4), 2 * np.log(4 / 3)).cdf)
    left = np.array([c["x"] / max(1000 - c["width"], 1) for c in crops])[small]
    assert left.min() >= 0 and left.max() <= 1 and abs(left.mean() - 0.5) < 0.03


def test_random_crops_are_uniform_and_their_size_is_the_largest_that_fits():
    augmenter = described_augmenter((3, 20, 10), rand_crop=True)
    for height, width, size in [(30, 40, (20, 10)), (10, 40, (10, 5)), (40, 6, (12, 6))]:
        crops = [drawn_steps(augmenter, 3, 0, i, width, height)[0][0] for i in range(DRAWS)]
        assert {(c["height"], c["width"]) for c in crops} == {size}
        for axis, most in (("x", width - size[1]), ("y", height - size[0])):
            counts = np.bincount([c[axis] for c in crops], minlength=most + 1)
            assert len(counts) == most + 1
            assert most == 0 or stats.chisquare(counts).pvalue > 1e-3


def test_a_random_area_that_never_fits_is_the_centre():
    augmenter = described_augmenter((3, 20, 20), rand_crop=True, rand_resize=True)
    (step,), _ = drawn_steps(augmenter, 0, 0, 0, 4000, 20)
    assert (step["x"], step["y"], step["width"], step["height"]) == (1990, 0, 20, 20)


def test_a_crop_of_no_pixels_is_an_error():
    with pytest.raises(ValueError, match="too unequal"):
        drawn_steps(described_augmenter((3, 1000, 1)), 0, 0, 0, 50, 10)


def test_occurrences_differ_and_number_zero_is_the_plain_draw():
    augmenter = described_augmenter(SHAPE, brightness=0.5)
    factors = [drawn_colours(augmenter, 1, 2, 3, draw)["factor"][0] for draw in range(100)]
    assert len(set(factors)) == 100
    assert factors[0] == drawn_colours(augmenter, 1, 2, 3)["factor"][0]


# -- arithmetic ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def judged(golden):
    with np.load(golden / "mx_image.npz") as file:
        return dict(file)


@pytest.mark.parametrize("number", range(6))
def test_colours_are_those_of_mxnet(judged, number):
    """Given what was drawn, the whole chain of MXNet's augmenters is this one map."""
    given = json.loads(str(judged["cases"]))["colours"][number]
    pixels = judged["pixels"].astype(np.float64)
    matrix, offset = composed(
        **given, average=pixels.mean((0, 1)), mean=(120, 110, 100), std=(50, 60, 70)
    )
    np.testing.assert_allclose(pixels @ matrix.T + offset, judged[f"colour{number}"], atol=2e-4)


def reference(pixels, steps, mean, std):
    """The steps one after the other, as they are defined."""
    luma = np.array([0.299, 0.587, 0.114])
    x = pixels.astype(np.float64)
    for step in steps["order"]:
        factor = steps["factor"][step]
        grey = [0, (x @ luma).mean(), (x @ luma)[..., None]][step]
        x = x * factor + (1 - factor) * grey
    if steps["hue"]:
        cos, sin = np.cos(steps["hue"]), np.sin(steps["hue"])
        to_yiq = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
        to_rgb = np.array([[1, 0.956, 0.621], [1, -0.272, -0.647], [1, -1.107, 1.705]])
        x = x @ (to_rgb @ [[1, 0, 0], [0, cos, -sin], [0, sin, cos]] @ to_yiq).T
    x = x + steps["noise"]
    if steps["grey"]:
        x = np.repeat((x @ [0.21, 0.72, 0.07])[..., None], 3, 2)
    return (x - mean) / std


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("size", [(16, 12), (1, 1), (70, 1000)])
def test_rendered_images_follow_the_definition(dtype, size):
    mean, std = np.array([120.0, 110, 100]), np.array([50.0, 60, 70])
    augmenter = described_augmenter(
        (3, *size), brightness=0.4, contrast=0.4, saturation=0.4, hue=0.3, pca_noise=0.1,
        rand_gray=0.4, mean=mean, std=std,
    )  # fmt: skip
    renderer = Renderer(LinearPlan(augmenter, key=9, dtype=dtype))
    image = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    record = pack_img(IRHeader(0, 1.0, 2, 0), image[:, :, ::-1], img_fmt=".png")
    for number in range(6):
        for draw in (0, 7):
            data, _, _ = renderer.sample(record, 4, number, draw)
            steps = drawn_colours(augmenter, 9, 4, number, draw)
            expected = reference(image, steps, mean, std)
            tolerance = 1e-4 if dtype == "float32" else 1e-2
            np.testing.assert_allclose(data[0].transpose(1, 2, 0), expected, atol=tolerance)


def test_integers_cannot_hold_such_colours():
    with pytest.raises(ValueError, match="dtype='uint8'"):
        LinearPlan(described_augmenter(SHAPE), dtype="uint8")
