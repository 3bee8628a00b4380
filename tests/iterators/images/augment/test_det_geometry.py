"""Detection geometry: every drawn crop, border and size against its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faces.draws import drawn_det_jitter as drawn
from faces.labels import drawn_steps, transform
from iterators.images.augment.det_recipe import DetRecipe

#: A side on which fractions are exact to five digits: geometry alone needs no pixels.
SIDE = 1_000_000
CLOSE = 1e-4


def recipe_of(**arguments):
    return DetRecipe(**({"data_shape": (3, 300, 300)} | arguments))


def crop_of(recipe, record, label, width=SIDE, height=SIDE):
    """The crop in fractions of the image and the objects left."""
    steps, mirror, after = drawn_steps(recipe, 5, 0, record, width, height, label)
    assert not mirror and len(steps) == 1
    step = steps[0]
    box = np.array([step["x"], step["y"], step["width"], step["height"]], float)
    return box / [width, height, width, height], after[2:].reshape(-1, 5)


def areas(crop, objects):
    """Intersection of the crop with each object, and the objects' areas."""
    low = np.maximum(objects[:, 1:3], crop[:2])
    high = np.minimum(objects[:, 3:5], crop[:2] + crop[2:])
    return np.clip(high - low, 0, None).prod(1), (objects[:, 3:5] - objects[:, 1:3]).prod(1)


@st.composite
def object_lists(draw):
    rows = []
    for number in range(draw(st.integers(1, 4))):
        x, y = draw(st.floats(0, 0.8)), draw(st.floats(0, 0.8))
        width, height = draw(st.floats(0.05, 1)), draw(st.floats(0.05, 1))
        rows.append([number, x, y, min(x + width, 1), min(y + height, 1)])
    return np.array(rows, np.float32)


def raw(objects):
    return np.concatenate([[2, 5], np.ravel(objects)])


@given(
    object_lists(),
    st.integers(0, 1000),
    st.sampled_from(["overlaps", "sample_coverages", "object_coverages"]),
    st.floats(0, 0.9),
    st.floats(0, 0.5),
    st.sampled_from(["center", "overlap"]),
)
@settings(max_examples=150, deadline=None)
def test_an_accepted_crop_meets_its_limits_and_keeps_what_it_should(
    objects, record, limit, low, span, mode
):
    high = min(low + span, 1)
    recipe = recipe_of(
        rand_crop_prob=1,
        min_crop_scales=0.1,
        max_crop_scales=0.95,
        min_crop_aspect_ratios=0.5,
        max_crop_aspect_ratios=2,
        crop_emit_mode=mode,
        emit_overlap_thresh=0.4,
        **{f"min_crop_{limit}": low, f"max_crop_{limit}": high},
    )
    crop, after = crop_of(recipe, record, raw(objects))
    if np.array_equal(crop, [0, 0, 1, 1]):  # no trial succeeded
        assert np.array_equal(after, objects)
        return
    common, own = areas(crop, objects)
    measure = {
        "overlaps": common / (crop[2:].prod() + own - common),
        "sample_coverages": common / crop[2:].prod(),
        "object_coverages": common / own,
    }[limit]
    assert ((measure >= low - CLOSE) & (measure <= high + CLOSE)).any()
    if mode == "overlap":
        margin = common / own - 0.4
    else:
        centres = (objects[:, 1:3] + objects[:, 3:5]) / 2
        margin = np.minimum(centres - crop[:2], crop[:2] + crop[2:] - centres).min(1)
    kept = set(after[:, 0].astype(int).tolist())
    assert kept
    for number in range(len(objects)):
        if abs(margin[number]) > CLOSE:
            assert (number in kept) == (margin[number] > 0)
    for row in after:
        want = objects[int(row[0])]
        low_corner = (want[1:3] - crop[:2]) / crop[2:]
        high_corner = (want[3:5] - crop[:2]) / crop[2:]
        assert np.allclose(row[1:3], np.clip(low_corner, 0, None), atol=CLOSE)
        assert np.allclose(row[3:5], np.clip(high_corner, None, 1), atol=CLOSE)


def test_scale_and_aspect_ratio_of_crops_stay_in_their_ranges_and_fill_them():
    recipe = recipe_of(
        rand_crop_prob=1,
        min_crop_scales=0.3,
        max_crop_scales=0.6,
        min_crop_aspect_ratios=0.5,
        max_crop_aspect_ratios=2,
    )
    crops = np.array([crop_of(recipe, i, [7, 5, 0, 0, 0, 0, 0])[0] for i in range(2000)])
    scale = np.sqrt(crops[:, 2] * crops[:, 3])
    squared = crops[:, 2] / crops[:, 3]  # width / height relative to the image is ratio squared
    assert scale.min() >= 0.3 - CLOSE and scale.max() <= 0.6 + CLOSE
    assert scale.min() < 0.31 and scale.max() > 0.59
    assert squared.min() >= 0.5 - CLOSE and squared.max() <= 2 + CLOSE
    assert squared.min() < 0.52 and squared.max() > 1.95
    room = 1 - crops[:, 2:]
    place = crops[:, :2] / room
    assert place.min() < 0.01 and place.max() > 0.99 and abs(place.mean() - 0.5) < 0.03


def test_scales_are_uniform():
    from scipy.stats import kstest

    recipe = recipe_of(rand_crop_prob=1, min_crop_scales=0.2, max_crop_scales=0.8)
    crops = np.array([crop_of(recipe, i, [7, 5, 0, 0, 0, 0, 0])[0] for i in range(5000)])
    assert kstest(np.sqrt(crops[:, 2] * crops[:, 3]), "uniform", (0.2, 0.6)).pvalue > 1e-4


def test_samplers_take_turns_at_random():
    recipe = recipe_of(
        rand_crop_prob=1,
        num_crop_sampler=3,
        min_crop_scales=(0.1, 0.4, 0.7),
        max_crop_scales=(0.2, 0.5, 0.8),
    )
    crops = np.array([crop_of(recipe, i, [7, 5, 0, 0, 0, 0, 0])[0] for i in range(3000)])
    used = np.floor(np.sqrt(crops[:, 2] * crops[:, 3]) / 0.3).astype(int)
    assert np.abs(np.bincount(used, minlength=3) / 3000 - 1 / 3).max() < 0.04


def test_the_next_sampler_is_tried_when_one_cannot_succeed():
    recipe = recipe_of(
        rand_crop_prob=1,
        num_crop_sampler=2,
        min_crop_scales=(0.1, 0.5),
        max_crop_scales=(0.2, 0.6),
        min_crop_object_coverages=(0.9, 0),
    )
    label = [2, 5, 0, 0, 0, 1, 1]  # larger than the first sampler's crops can cover
    for record in range(100):
        crop, after = crop_of(recipe, record, label)
        if len(after) and not np.array_equal(crop, [0, 0, 1, 1]):
            assert crop[2] > 0.45


@pytest.mark.parametrize(
    "off", [{"rand_crop_prob": -1}, {"num_crop_sampler": 0}, {"max_crop_trials": 0}]
)
def test_crops_can_be_switched_off(off):
    recipe = recipe_of(**({"rand_crop_prob": 1, "max_crop_scales": 0.5} | off))
    for record in range(20):
        assert np.array_equal(crop_of(recipe, record, [2, 5, 0, 0, 0, 1, 1])[0], [0, 0, 1, 1])


@pytest.mark.parametrize("step", ["mirror", "pad", "crop"])
@pytest.mark.parametrize("probability", [0, 0.25, 1])
def test_steps_happen_with_their_probability(step, probability):
    recipe = recipe_of(
        **{f"rand_{step}_prob": probability},
        max_pad_scale=3,
        max_crop_scales=0.9,
        resize_mode="shrink",
    )
    hits = 0
    for record in range(2000):
        steps, mirror, _ = drawn_steps(recipe, 1, 0, record, 1000, 1000, [7, 5, 0, 0, 0, 0, 0])
        padded = any(s["border_x"] or s["border_y"] for s in steps if s["kind"] == 2)
        cropped = steps[0]["width"] < 1000
        hits += {"mirror": mirror, "pad": padded, "crop": cropped}[step]
    # A border that would be less than 5 % is left out.
    expected = probability * (1 - 0.05 / 2 if step == "pad" else 1)
    assert abs(hits / 2000 - expected) < 0.04


def test_the_border_holds_the_image_where_the_boxes_say():
    recipe = recipe_of(
        rand_pad_prob=1, max_pad_scale=4, data_shape=(3, 10**7, 10**7), resize_mode="shrink"
    )
    for record in range(200):
        steps, _, label = drawn_steps(recipe, 3, 0, record, SIDE, SIDE // 2, [2, 5, 0, 0, 0, 1, 1])
        if len(steps) == 1:
            assert label.tolist() == [2, 5, 0, 0, 0, 1, 1]
            continue
        pad = steps[1]
        corners = [
            pad["border_x"] / pad["out_width"],
            pad["border_y"] / pad["out_height"],
            (pad["border_x"] + SIDE) / pad["out_width"],
            (pad["border_y"] + SIDE // 2) / pad["out_height"],
        ]
        assert np.allclose(label[3:], corners, atol=CLOSE)
        assert 1.05 <= pad["out_width"] / SIDE + CLOSE <= 4 + 2 * CLOSE


@pytest.mark.parametrize(
    ("mode", "size", "target", "result"),
    [
        ("force", (48, 40), (36, 60), (36, 60)),
        ("shrink", (48, 40), (60, 36), (43, 36)),
        ("shrink", (48, 40), (50, 50), (48, 40)),
        ("fit", (48, 40), (80, 80), (80, 66)),
        ("fit", (10, 1000), (80, 80), None),
    ],
)
def test_resize_modes(mode, size, target, result):
    recipe = recipe_of(data_shape=(3, target[1], target[0]), resize_mode=mode)
    if result is None:
        with pytest.raises(ValueError, match="too large or empty"):
            drawn_steps(recipe, 0, 0, 0, 1, 1000, [7, 5, 0, 0, 0, 0, 0])
        return
    steps, _, _ = drawn_steps(recipe, 0, 0, 0, *size, [7, 5, 0, 0, 0, 0, 0])
    assert (steps[-1]["out_width"], steps[-1]["out_height"]) == result


def test_draws_depend_on_key_epoch_and_record_alone():
    recipe = recipe_of(rand_crop_prob=1, max_crop_scales=0.9, rand_mirror_prob=0.5)
    label = [2, 5, 0, 0.1, 0.1, 0.9, 0.9]

    def of(key, epoch, record):
        steps, mirror, after = drawn_steps(recipe, key, epoch, record, 500, 400, label)
        return str(steps), mirror, after.tolist()

    assert of(1, 2, 3) == of(1, 2, 3)
    assert len({str(of(*place)) for place in [(1, 2, 3), (2, 2, 3), (1, 3, 3), (1, 2, 4)]}) == 4


# -- labels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ([], "at least 2 values"),
        ([2, 5, 1, 0, 0, 1], "no whole number of objects"),
        ([2, 5, float("nan"), 0, 0, 1, 1], "class is not a finite number"),
        ([2, 5, 1, 0, 0, 1, 2.01], "in fractions of the image"),
        ([2, 5, 1, 0, -1.01, 1, 1], "in fractions of the image"),
        ([1, 5, 0, 0, 0, 1, 1], "header width"),
        ([8, 5, 0, 0, 0, 1, 1], "header width"),
        ([float("nan"), 5, 0, 0, 0, 1, 1], "header width"),
        ([2, 4, 0, 0, 0, 1, 1, 1], "object width"),
        ([2, 1e30, 0, 0, 0, 1, 1], "object width"),
        ([2, 5, 0, 0, 0, 1, 1, 1], "no whole number of objects"),
        ([2, 5, 0, 0, float("inf"), 1, 1], "finite"),
    ],
)
def test_malformed_labels_are_refused(label, text):
    with pytest.raises(ValueError, match=text):
        transform(label)


def test_objects_without_area_are_dropped_and_extras_are_kept():
    label = [3, 6, 99, 1, 0.2, 0.2, 0.1, 0.9, 7, 2, 0.1, 0.2, 0.3, 0.4, 8, 3, 0, 0.5, 1, 0.5, 9]
    want = np.array([3, 6, 99, 2, 0.1, 0.2, 0.3, 0.4, 8], np.float32)
    assert np.array_equal(transform(label), want)


@given(object_lists())
def test_mirroring_twice_is_nothing(objects):
    once = transform(raw(objects), mirror=True)
    assert np.allclose(transform(once, mirror=True), raw(objects), atol=1e-6)


@given(object_lists(), st.floats(0, 1), st.floats(0, 1), st.floats(2, 4))
def test_cropping_the_image_out_of_its_border_restores_the_boxes(objects, x, y, scale):
    label = raw(objects)
    crop = (x / scale, y / scale, 1 / scale, 1 / scale)
    assert np.allclose(transform(label, pad=(x, y, scale), crop=crop), label, atol=1e-5)


# -- colours --------------------------------------------------------------------------------------


def test_each_colour_change_has_its_probability_and_range():
    recipe = recipe_of(
        max_random_hue=30,
        random_hue_prob=0.5,
        max_random_saturation=40,
        random_saturation_prob=1,
        max_random_illumination=50,
        random_illumination_prob=0,
        max_random_contrast=0.4,
        random_contrast_prob=0.75,
    )
    rows = [drawn(recipe, 7, 0, record) for record in range(4000)]
    table = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    # A drawn hue is truncated to 0 with probability 1 / 30.
    assert abs((table["hue"] != 0).mean() - 0.5 * 29 / 30) < 0.03
    assert table["hue"].min() == -29 and table["hue"].max() == 29
    assert abs((table["saturation"] != 0).mean() - 39 / 40) < 0.02
    assert not table["lightness"].any()
    assert abs((table["gain"] != 1).mean() - 0.75) < 0.03
    assert 0.6 <= table["gain"].min() < 0.61 and 1.39 < table["gain"].max() <= 1.4


# -- parameters -----------------------------------------------------------------------------------


def test_one_value_serves_all_samplers():
    recipe = recipe_of(num_crop_sampler=3, min_crop_scales=0.5, max_crop_trials="(1, 2, 3)")
    assert recipe.min_crop_scales == (0.5, 0.5, 0.5)
    assert recipe.max_crop_trials == (1, 2, 3)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"num_crop_sampler": 2, "min_crop_scales": (0.1, 0.2, 0.3)}, "min_crop_scales holds 3"),
        ({"num_crop_sampler": 65}, "num_crop_sampler=65"),
        ({"min_crop_scales": 0.5, "max_crop_scales": 0.5}, "must be above min_crop_scales"),
        ({"min_crop_overlaps": 0.5, "max_crop_overlaps": 0.4}, "min_crop_overlaps=0.5 is above"),
        ({"max_crop_scales": 1.5}, "max_crop_scales=1.5: expected a number from 0 to 1"),
        ({"min_crop_aspect_ratios": -1}, "min_crop_aspect_ratios=-1"),
        ({"min_crop_scales": ()}, "at least one number"),
        ({"max_crop_trials": -1}, "max_crop_trials=-1"),
        ({"rand_crop_prob": 1.5}, "rand_crop_prob=1.5"),
        ({"rand_mirror_prob": -0.5}, "rand_mirror_prob=-0.5"),
        ({"crop_emit_mode": "centre"}, "'center', 'overlap'"),
        ({"emit_overlap_thresh": -1}, "emit_overlap_thresh=-1"),
        ({"resize_mode": "stretch"}, "'force', 'shrink', 'fit'"),
        ({"inter_method": 5}, "inter_method=5"),
        ({"resize": 0}, "resize=0"),
        ({"fill_value": 256}, "fill_value=256"),
        ({"max_random_hue": 1001}, "max_random_hue=1001"),
        ({"data_shape": (1, 8, 8), "max_random_hue": 3}, "needs RGB"),
        ({"data_shape": (2, 8, 8)}, "1, 3 or 4 channels"),
    ],
)
def test_wrong_values_are_refused(arguments, text):
    with pytest.raises(ValueError) as caught:
        recipe_of(**arguments)
    assert text in str(caught.value)
