"""Every random parameter against the formula it is drawn by.

The draws depend on fixed keys, so a test either always passes or always fails; the limits are those
that a correct generator would miss once in ten thousand times.
"""

import numpy as np
import pytest
from scipy import stats

from faces.draws import drawn_jitter as drawn
from iterators import ImageRecordIter
from iterators.images.augment.geometry import drawn_steps
from iterators.images.augment.recipe import Recipe
from iterators.testing import encode, write_pack

DRAWS = 6000
RARE = 1e-4


def geometry(recipe, size, count=DRAWS):
    """Layers and mirror of images of several keys, epochs and records."""
    for i in range(count):
        yield drawn_steps(recipe, i % 4, (i // 4) % 10, i // 40, *size)


def colours(recipe, name, count=DRAWS):
    found = [drawn(recipe, i % 4, (i // 4) % 10, i // 40)[name] for i in range(count)]
    return np.array(found)


def follows_uniform(values, low, high):
    values = np.asarray(values, float)
    assert low <= values.min()
    assert values.max() <= high
    assert stats.kstest(values, stats.uniform(low, high - low).cdf).pvalue > RARE


def is_even(values, low, high):
    """Whole numbers from `low` to `high`, all equally likely."""
    values = np.asarray(values)
    assert low <= values.min()
    assert values.max() <= high
    counts = np.bincount(values - low, minlength=high - low + 1)
    assert stats.chisquare(counts).pvalue > RARE


def is_independent(first, second):
    """No correlation of ranks, and no pattern in a table of quartiles."""
    assert stats.spearmanr(first, second).pvalue > RARE
    rows = np.searchsorted(np.quantile(first, [0.25, 0.5, 0.75]), first)
    columns = np.searchsorted(np.quantile(second, [0.25, 0.5, 0.75]), second)
    table = np.bincount(4 * rows + columns, minlength=16).reshape(4, 4)
    table = table[table.any(1)][:, table.any(0)]  # few values fill few quarters
    assert stats.chi2_contingency(table).pvalue > RARE


# -- crops -----------------------------------------------------------------------------------------


def test_random_resized_crop_draws_area_and_ratio_uniformly_and_swaps_half_of_the_sides():
    """On an image so large that every crop fits and rounding does not show."""
    size = 40000, 40000
    recipe = Recipe(
        data_shape=(3, 8, 8), random_resized_crop=True, min_random_area=0.08, max_random_area=0.5,
        min_aspect_ratio=0.75, max_aspect_ratio=1.6,
    )  # fmt: skip
    crops = np.array([[s[0]["width"], s[0]["height"]] for s, _ in geometry(recipe, size)], float)
    area = crops.prod(1) / 1.6e9
    follows_uniform(area, 0.08 - 1e-4, 0.5 + 1e-4)
    # The ratio r becomes r or 1 / r, each with probability one half.
    cdf = stats.uniform(0.75, 0.85).cdf
    ratio = crops[:, 0] / crops[:, 1]
    assert stats.kstest(ratio, lambda x: (cdf(x) + 1 - cdf(1 / x)) / 2).pvalue > RARE
    is_independent(area, ratio)


def test_offsets_of_a_random_resized_crop_are_uniform_inclusive():
    recipe = Recipe(
        data_shape=(3, 8, 8), random_resized_crop=True, min_random_area=0.25, max_random_area=0.25
    )
    steps = [s[0] for s, _ in geometry(recipe, (40, 32))]
    assert {(s["width"], s["height"]) for s in steps} == {(18, 18)}
    is_even([s["x"] for s in steps], 0, 22)
    is_even([s["y"] for s in steps], 0, 14)
    is_independent([s["x"] for s in steps], [s["y"] for s in steps])


def test_a_random_resized_crop_that_never_fits_is_the_plain_crop():
    recipe = Recipe(
        data_shape=(3, 8, 8), random_resized_crop=True, min_random_area=0.9, max_random_area=1.0
    )
    for (step,), _ in geometry(recipe, (100, 10), 200):
        assert (step["width"], step["target_width"], step["left"], step["top"]) == (100, 100, 46, 1)
    # Of 100 x 36 pixels a square has at most 0.36: now and then ten tries find none.
    recipe = Recipe(
        data_shape=(3, 8, 8), random_resized_crop=True, min_random_area=0.3, max_random_area=0.9
    )
    plain = sum(s[0]["left"] == 46 for s, _ in geometry(recipe, (100, 36)))
    assert stats.binomtest(plain, DRAWS, (1 - (36.5**2 / 3600 - 0.3) / 0.6) ** 10).pvalue > RARE


def test_random_crops_are_uniform_inclusive():
    recipe = Recipe(data_shape=(3, 20, 30), rand_crop=True)
    steps = [s[-1] for s, _ in geometry(recipe, (47, 31))]
    is_even([s["left"] for s in steps], 0, 17)
    is_even([s["top"] for s in steps], 0, 11)
    is_independent([s["left"] for s in steps], [s["top"] for s in steps])


def test_crop_sizes_and_their_places():
    recipe = Recipe(data_shape=(3, 9, 9), min_crop_size=5, max_crop_size=14, rand_crop=True)
    steps = [s[0] for s, _ in geometry(recipe, (40, 30))]
    side = np.array([s["width"] for s in steps])
    assert all(s["width"] == s["height"] for s in steps)
    is_even(side, 5, 14)
    for chosen in (5, 14):
        mine = [s for s in steps if s["width"] == chosen]
        is_even([s["x"] for s in mine], 0, 40 - chosen)
        is_even([s["y"] for s in mine], 0, 30 - chosen)
    centred = Recipe(data_shape=(3, 9, 9), min_crop_size=5, max_crop_size=14)
    for (step, *_), _ in geometry(centred, (40, 30), 300):
        assert step["x"] == (40 - step["width"]) // 2
        assert step["y"] == (30 - step["width"]) // 2


def test_mirroring_is_a_fair_coin_unless_it_is_always():
    recipe = Recipe(data_shape=(3, 8, 8), rand_mirror=True)
    turned = [mirror for _, mirror in geometry(recipe, (9, 9))]
    is_even(np.array(turned, int), 0, 1)
    both = Recipe(data_shape=(3, 8, 8), rand_mirror=True, mirror=True)
    assert all(mirror for _, mirror in geometry(both, (9, 9), 200))


def test_inter_method_10_is_one_of_five_and_drawn_for_every_step():
    recipe = Recipe(
        data_shape=(3, 50, 50), inter_method=10, resize=40, max_rotate_angle=5, rand_crop=True
    )
    found = np.array([[step["method"] for step in s] for s, _ in geometry(recipe, (60, 60))])
    assert found.shape == (DRAWS, 3)
    for i in range(3):
        is_even(found[:, i], 0, 4)
        is_independent(found[:, i], found[:, i - 1])


# -- warps -----------------------------------------------------------------------------------------


def forward(step):
    return np.linalg.inv(np.vstack([np.reshape(step["inverse"][:6], (2, 3)), [0, 0, 1]]))


def angles_of(recipe):
    """The angle of every warp: a rotation is a, b, -b, a."""
    matrices = [forward(s[0]) for s, _ in geometry(recipe, (31, 31))]
    return np.degrees([np.arctan2(m[0, 1], m[0, 0]) for m in matrices])


def test_angles_are_whole_degrees_on_both_sides():
    angles = angles_of(Recipe(data_shape=(3, 8, 8), max_rotate_angle=12))
    whole = np.round(angles)
    assert np.abs(angles - whole).max() < 1e-3
    is_even(whole.astype(int), -12, 12)


def test_rotate_and_rotate_list_take_the_place_of_the_angle():
    fixed = angles_of(Recipe(data_shape=(3, 8, 8), max_rotate_angle=12, rotate=40))
    assert np.allclose(fixed, 40, atol=1e-3)
    recipe = Recipe(
        data_shape=(3, 8, 8), max_rotate_angle=12, rotate=40, rotate_list="-90,0,35,120"
    )
    listed = np.round(angles_of(recipe)).astype(int)
    is_even(np.searchsorted([-90, 0, 35, 120], listed), 0, 3)
    assert set(listed) == {-90, 0, 35, 120}


def test_shear_scale_and_stretch():
    recipe = Recipe(
        data_shape=(3, 4, 4), max_shear_ratio=0.3, min_random_scale=0.7, max_random_scale=1.4,
        min_aspect_ratio=0.8, max_aspect_ratio=1.5,
    )  # fmt: skip
    matrices = np.array([forward(s[0]) for s, _ in geometry(recipe, (40, 40))])
    horizontal, vertical = matrices[:, 0, 0], matrices[:, 1, 1]
    shear = matrices[:, 0, 1] / vertical
    ratio = vertical / horizontal  # the vertical stretch over the horizontal one
    scale = horizontal * (1 + ratio) / 2
    limit = 1e-6
    follows_uniform(shear, -0.3 - limit, 0.3 + limit)
    follows_uniform(scale, 0.7 - limit, 1.4 + limit)
    follows_uniform(ratio, 0.8 - limit, 1.5 + limit)
    for first, second in ((shear, scale), (shear, ratio), (scale, ratio)):
        is_independent(first, second)


def test_without_a_lower_limit_the_aspect_ratio_is_on_both_sides_of_one():
    recipe = Recipe(data_shape=(3, 4, 4), max_aspect_ratio=0.4)
    matrices = np.array([forward(s[0]) for s, _ in geometry(recipe, (40, 40))])
    follows_uniform(matrices[:, 1, 1] / matrices[:, 0, 0], 0.6 - 1e-6, 1.4 + 1e-6)


# -- colours ---------------------------------------------------------------------------------------


def test_factors_of_brightness_contrast_and_saturation_and_their_order():
    recipe = Recipe(data_shape=(3, 8, 8), brightness=0.4, contrast=0.2, saturation=0.7)
    factors = colours(recipe, "factor")
    for i, largest in enumerate((0.4, 0.2, 0.7)):
        follows_uniform(factors[:, i], 1 - largest - 1e-6, 1 + largest + 1e-6)
        is_independent(factors[:, i], factors[:, i - 1])
    orders = colours(recipe, "order")
    assert (np.sort(orders, 1) == [0, 1, 2]).all()
    number = 2 * orders[:, 0] + (orders[:, 1] > orders[:, 2])
    is_even(number, 0, 5)
    for i in range(3):
        is_independent(factors[:, i], number)


@pytest.mark.parametrize(
    ("name", "shift", "largest"),
    [("random_h", "hue", 36), ("random_s", "saturation", 50), ("random_l", "lightness", 9)],
)
def test_hls_shifts_weigh_one_number_four_times_the_other(name, shift, largest):
    """r = (u1 + 4 u2) / 5 and the shift is trunc(2 r max - max)."""
    found = colours(Recipe(data_shape=(3, 8, 8), **{name: largest}), shift)

    def below(r):  # P((u1 + 4 u2) / 5 <= r), the integral of a trapezium
        t = np.clip(5 * np.asarray(r, float), 0, 5)
        return (
            np.clip(t, 0, None) ** 2 - np.clip(t - 1, 0, None) ** 2 - np.clip(t - 4, 0, None) ** 2
        ) / 8

    values = np.arange(-largest + 1, largest)
    # trunc moves toward zero: 0 takes (-1, 1), k > 0 takes [k, k + 1), k < 0 takes (k - 1, k].
    edges = np.array([[v - (v <= 0), v + (v >= 0)] for v in values]) / (2 * largest) + 0.5
    chance = below(edges[:, 1]) - below(edges[:, 0])
    assert chance.sum() == pytest.approx(1)
    assert np.abs(found).max() < largest
    counts = np.bincount(found + largest - 1, minlength=len(values))
    assert stats.chisquare(counts, chance / chance.sum() * DRAWS).pvalue > RARE


def test_hls_shifts_do_not_depend_on_one_another():
    recipe = Recipe(data_shape=(3, 8, 8), random_h=90, random_s=90, random_l=90)
    shifts = [colours(recipe, name) for name in ("hue", "saturation", "lightness")]
    for i in range(3):
        is_independent(shifts[i], shifts[i - 1])


def test_pca_noise_is_normal_along_the_principal_colours():
    noise = colours(Recipe(data_shape=(3, 8, 8), pca_noise=0.25), "noise")
    values = np.array([55.46, 4.794, 1.148])
    vectors = np.array(
        [[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]]
    )
    normal = np.linalg.solve(vectors * values, noise.T)
    for i in range(3):
        assert stats.kstest(normal[i] / 0.25, stats.norm.cdf).pvalue > RARE
        is_independent(normal[i], normal[i - 1])


def test_contrast_and_illumination_of_the_normalisation():
    recipe = Recipe(data_shape=(3, 8, 8), max_random_contrast=0.3, max_random_illumination=20)
    contrast, illumination = colours(recipe, "exposure"), colours(recipe, "illumination")
    follows_uniform(contrast, 0.7 - 1e-6, 1.3 + 1e-6)
    follows_uniform(illumination, -20 - 1e-5, 20 + 1e-5)
    is_independent(contrast, illumination)


# -- independence ----------------------------------------------------------------------------------

EVERYTHING = Recipe(
    data_shape=(3, 20, 20), rand_crop=True, rand_mirror=True, max_rotate_angle=90,
    max_shear_ratio=0.2, min_random_scale=0.9, max_random_scale=1.5, max_aspect_ratio=0.3,
    brightness=0.5, contrast=0.5, saturation=0.5, random_h=90, random_s=90, random_l=90,
    pca_noise=0.1, max_random_contrast=0.5, max_random_illumination=50,
)  # fmt: skip


def numbers(key, epoch, record, occurrence=0):
    """One number for every parameter of an image."""
    steps, mirror = drawn_steps(EVERYTHING, key, epoch, record, 101, 103, occurrence)
    colour = drawn(EVERYTHING, key, epoch, record, occurrence)
    matrix = forward(steps[0])
    ratio = np.sqrt(matrix[0, 1] ** 2 + matrix[0, 0] ** 2)
    return [
        # The canvas follows the scale, and the room for the crop the canvas.
        steps[-1]["left"] / (steps[-1]["target_width"] - 20),
        steps[-1]["top"] / (steps[-1]["target_height"] - 20),
        mirror, steps[0]["target_width"], matrix[1, 0], ratio, *colour["factor"],
        colour["order"][0],
        colour["hue"], colour["lightness"], colour["saturation"], *colour["noise"][:1],
        colour["exposure"], colour["illumination"],
    ]  # fmt: skip


def correlations_are_noise(table, pairs):
    ranks = stats.rankdata(table, axis=0)
    ranks = (ranks - ranks.mean(0)) / ranks.std(0)
    count = len(ranks)
    limit = stats.norm.isf(RARE / len(pairs) / 2) / np.sqrt(count)
    found = [abs((ranks[:, a] * ranks[:, b]).mean()) for a, b in pairs]
    assert max(found) < limit


def test_all_parameters_of_an_image_are_independent():
    table = np.array([numbers(5, i % 7, i) for i in range(DRAWS)], float)
    width = table.shape[1]
    # The two stretches of one matrix hang together by construction: scale, angle, shear, ratio.
    linked = {3, 4, 5}
    pairs = [(a, b) for a in range(width) for b in range(a) if not (a in linked and b in linked)]
    correlations_are_noise(table, pairs)


@pytest.mark.parametrize(
    "other",
    [
        lambda key, epoch, record: (key, epoch, record + 1),
        lambda key, epoch, record: (key, epoch + 1, record),
        lambda key, epoch, record: (key + 1, epoch, record),
        lambda key, epoch, record: (key, epoch, record + (1 << 32)),
        lambda key, epoch, record: (key + (1 << 32), epoch, record),
        lambda key, epoch, record: (key, record, epoch),
        lambda key, epoch, record: (key, epoch, record, 1),
        lambda key, epoch, record: (key, epoch, record, 1 << 32),
        lambda key, epoch, record: (key, epoch, record, record),
    ],
    ids=[
        "record", "epoch", "seed", "large record", "large seed", "exchanged", "occurrence",
        "large occurrence", "place",
    ],
)  # fmt: skip
def test_neighbours_are_independent(other):
    places = [(11, 3, 10 + 2 * i) for i in range(3000)]
    first = np.array([numbers(*place) for place in places], float)
    second = np.array([numbers(*other(*place)) for place in places], float)
    assert not (first[:, 0] == second[:, 0]).all()
    width = first.shape[1]
    correlations_are_noise(np.hstack([first, second]), [(i, i + width) for i in range(width)])


def test_draws_are_those_of_every_release():
    """Whoever goes on with a saved state needs the same crops; these use no rounded functions."""
    recipe = Recipe(
        data_shape=(3, 20, 20), random_resized_crop=True, min_random_area=0.1, rand_mirror=True
    )
    found = []
    for record in (0, 1, 1 << 40):
        for occurrence in (0, 1):
            (crop,), mirror = drawn_steps(recipe, 7, 2, record, 100, 90, occurrence)
            found.append((crop["x"], crop["y"], crop["width"], crop["height"], mirror))
    assert found == [
        (17, 0, 76, 76, False), (24, 25, 62, 62, False), (19, 3, 81, 81, True),
        (8, 1, 89, 89, False), (11, 7, 61, 61, False), (12, 16, 74, 74, False),
    ]  # fmt: skip


def test_switching_a_step_off_leaves_the_others_as_they_were():
    from dataclasses import replace

    off = replace(EVERYTHING, rand_mirror=False, brightness=0.0, random_h=0, pca_noise=0.0)
    for i in range(100):
        steps, _ = drawn_steps(EVERYTHING, 1, 2, i, 101, 103)
        assert drawn_steps(off, 1, 2, i, 101, 103)[0] == steps
        one, two = drawn(EVERYTHING, 1, 2, i), drawn(off, 1, 2, i)
        assert one["factor"][1:] == two["factor"][1:]
        assert [one[n] for n in ("order", "lightness", "exposure")] == [
            two[n] for n in ("order", "lightness", "exposure")
        ]


# -- from the record file to the batch -------------------------------------------------------------


@pytest.fixture(scope="module")
def coordinates(tmp_path_factory):
    """One picture, 600 times: red is 2 x and green 2 y."""
    y, x = np.mgrid[:90, :120]
    image = np.dstack([2 * x, 2 * y, 0 * x]).astype(np.uint8)
    path = tmp_path_factory.mktemp("coordinates") / "xy.rec"
    return write_pack(path, [encode(image)] * 600, [0] * 600, index=False)


def pictures(path, epochs=10, **arguments):
    defaults = {"batch_size": 100, "dtype": "float32", "layout": "NHWC", "preprocess_threads": 2}
    with ImageRecordIter(path_imgrec=path, **(defaults | arguments)) as provider:
        return np.concatenate([b.data[0] for _ in range(epochs) for b in provider]) / 2


def test_crops_and_mirrors_read_back_from_pixels(coordinates):
    found = pictures(coordinates, data_shape=(3, 70, 90), rand_crop=True, rand_mirror=True)
    left, top = found[:, 0, :, 0].min(1).astype(int), found[:, :, 0, 1].min(1).astype(int)
    mirrored = found[:, 0, 0, 0] > found[:, 0, 1, 0]
    x = np.arange(90)
    for i in range(0, len(found), 97):
        row = left[i] + (x[::-1] if mirrored[i] else x)
        assert (found[i, ..., 0] == row).all()
        assert (found[i, ..., 1] == top[i] + np.arange(70)[:, None]).all()
    is_even(left, 0, 30)
    is_even(top, 0, 20)
    is_even(mirrored.astype(int), 0, 1)
    is_independent(left, top)
    is_independent(left, mirrored.astype(int))


def test_random_resized_crops_read_back_from_pixels(coordinates):
    found = pictures(
        coordinates, data_shape=(3, 64, 64), random_resized_crop=True, min_random_area=0.3,
        max_random_area=0.5, min_aspect_ratio=0.8, max_aspect_ratio=1.25,
    )  # fmt: skip
    # Bilinear: pixel j shows (j + 0.5) * side / 64 - 0.5; between the borders that is exact.
    j = np.arange(8, 56)
    width = np.polyfit(j, found[:, 30, 8:56, 0].T, 1)[0] * 64
    height = np.polyfit(j, found[:, 8:56, 30, 1].T, 1)[0] * 64
    area = width * height / (120 * 90)
    # Rounded sides blur the edges of the range a little.
    assert stats.kstest(area, stats.uniform(0.3, 0.2).cdf).statistic < 0.03
    assert 0.29 < area.min() < 0.31 < 0.49 < area.max() < 0.51
    cdf = stats.uniform(0.8, 0.45).cdf
    ratio = width / height
    result = stats.kstest(ratio, lambda r: (cdf(r) + 1 - cdf(1 / r)) / 2)
    assert result.statistic < 0.03
    assert abs(stats.spearmanr(area, ratio).statistic) < 0.06


def test_angles_read_back_from_pixels(coordinates):
    found = pictures(coordinates, data_shape=(3, 60, 60), max_rotate_angle=20)
    # Positive angles turn counter-clockwise: walking to the right then goes down in the source.
    dx = np.polyfit(np.arange(60), found[..., 0].mean(1).T, 1)[0]
    dy = np.polyfit(np.arange(60), found[..., 1].mean(1).T, 1)[0]
    angles = np.degrees(np.arctan2(dy, dx))
    whole = np.round(angles).astype(int)
    assert np.abs(angles - whole).max() < 0.4
    is_even(whole, -20, 20)
    epochs = whole.reshape(10, 600)
    is_independent(epochs[:-1].ravel(), epochs[1:].ravel())
    is_independent(whole[:-1], whole[1:])
