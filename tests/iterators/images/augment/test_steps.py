"""The keyword `steps`: pixels and draws of torchvision's pipelines, and what is refused."""

import importlib.util
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from faces.draws import drawn_steps, steps_of
from iterators import ImageRecordIter
from iterators.images.augment.det_recipe import DetRecipe
from iterators.images.augment.program import StepChange
from iterators.images.augment.recipe import Recipe
from iterators.images.augment.steps import MOST_DEPTH, PUBLIC
from recordio.kernels.gaussian import blur
from recordio.kernels.operations import operate
from recordio.kernels.transform import affine_map, perspective_map, rotation_map, transform

from .library_draws import GOLDEN, PIPELINES, SIZE, numbered, of_pipeline
from .library_pixels import GOLDEN as PIXELS
from .library_pixels import STEPS
from .library_pixels import picture as library_picture
from .test_policy import picture, rendered
from .test_policy_draws import DRAWS, compare

RARE = 1e-5
PHOTOS = GOLDEN.with_name("photosjpg.rec")


def recipe(*steps, shape=(3, 40, 48), **more):
    return Recipe(data_shape=shape, steps=steps, **more)


# -- pixels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STEPS)
def test_pixels_are_torchvisions(name):
    image = library_picture()
    found = rendered(recipe(*STEPS[name][0], shape=(3, *image.shape[:2])), image)
    wanted = np.load(PIXELS)[name]
    assert not np.array_equal(wanted, image)
    if "blur" in name:  # sums in another order: halves, of which slopes have many, may differ
        assert np.abs(found.astype(int) - wanted).max() <= 1
        assert (found != wanted).mean() < 0.002
    else:
        np.testing.assert_array_equal(found, wanted)


def applied(image, name, *values, **more):
    """One step that was drawn, by the Python faces of the kernels."""
    size = image.shape[:2]
    if name in ("hflip", "vflip"):
        return image[:, ::-1] if name == "hflip" else image[::-1]
    if name == "gaussian_blur":
        return blur(image, (7, 5), values[0])
    if name == "rotate":
        return transform(image, rotation_map(values[0], size)[0], **more)
    if name == "affine":
        angle, *shifts, scale, shear_x, shear_y = values
        return transform(image, affine_map(angle, shifts, scale, (shear_x, shear_y), size), **more)
    if name == "perspective":
        ends = np.reshape(values, (4, 2)).astype(int).tolist()
        return transform(image, perspective_map(ends, size), **more | {"method": "bilinear"})
    return operate(image, name, values[0])


EVERYTHING = (
    {"op": "color_jitter", "brightness": (0.5, 1.5), "hue": (-0.2, 0.2), "p": 0.7},
    {"op": "order", "of": [{"op": "posterize", "bits": 5, "p": 0.5}, "hflip", "vflip"]},
    {"op": "apply", "p": 0.6, "of": [
        {"op": "gaussian_blur", "kernel_size": (7, 5)}, {"op": "sharpness", "factor": 1.8},
    ]},
    {"op": "choice", "of": [
        {"op": "rotate", "degrees": (-30, 30), "fill": 9},
        {"op": "affine", "degrees": (-9, 9), "translate": (0.2, 0.1), "scale": (0.7, 1.3),
         "shear": (-8, 8), "fill": 9},
        {"op": "perspective", "fill": 9},
        "invert",
    ]},
    {"op": "solarize", "p": 0.3},
)  # fmt: skip


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_the_stage_applies_what_is_drawn_in_its_order(channels):
    steps = EVERYTHING
    if channels == 1:
        steps = ({"op": "color_jitter", "brightness": (0.5, 1.5)}, *EVERYTHING[1:])
    wanted_of = recipe(*steps, shape=(channels, 40, 48))
    image, seen = picture(channels), set()
    for record in range(60):
        wanted = image
        for name, *values in drawn_steps(wanted_of, 9, 2, record):
            wanted = applied(wanted, name, *values, fill=(9, 9, 9, 0))
            seen.add(name)
        if channels < 4:  # raw PNG with alpha keeps it
            np.testing.assert_array_equal(rendered(wanted_of, image, record, 2), wanted)
    assert {"brightness", "hflip", "gaussian_blur", "rotate", "affine", "perspective"} <= seen


def test_grey_images_go_through_everything_that_needs_no_colours():
    steps = ["equalize", "autocontrast", "invert", {"op": "gaussian_blur", "kernel_size": 3}]
    image = picture(1)
    found = rendered(recipe(*steps, shape=(1, 40, 48)), image)
    assert found.shape == image.shape
    assert not np.array_equal(found, image)


def test_a_policy_among_steps_is_that_of_the_keyword():
    """With random numbers of its own: as many operations, of the same kinds."""
    step = {"op": "auto_augment", "policy": "randaugment", "num_ops": 3, "magnitude": 14}
    images = [drawn_steps(recipe(step, step), 0, 0, i) for i in range(300)]
    assert {len(image) for image in images} == {6}
    assert any(image[:3] != image[3:] for image in images)
    image, fills = picture(), {**step, "augment_fill": 7}
    for record in range(20):
        assert rendered(recipe(fills), image, record).shape == image.shape


def test_steps_come_after_the_other_changes():
    image = picture()
    found = rendered(recipe({"op": "solarize", "threshold": 100}, random_grayscale=1), image)
    wanted = operate(operate(image, "grey"), "solarize", 100)
    np.testing.assert_array_equal(found, wanted)


# -- draws -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", PIPELINES)
def test_steps_are_drawn_as_torchvision_draws_them(text):
    wanted = recipe(*PIPELINES[text], shape=(3, SIZE[1], SIZE[0]))
    change = StepChange(wanted, wanted.steps)
    images = numbered(steps_of(change, i % 3, i % 7, i) for i in range(DRAWS))
    compare(images, json.loads(GOLDEN.read_text())[text])


@pytest.mark.skipif(not importlib.util.find_spec("torchvision"), reason="torchvision is missing")
@pytest.mark.parametrize("text", PIPELINES)
def test_torchvision_draws_what_is_stored(text):
    compare(of_pipeline(text, DRAWS), json.loads(GOLDEN.read_text())[text])


def test_numbers_are_float32_as_those_of_torchvision():
    """With other digits one byte of 200,000 differed under bicubic interpolation."""
    exact = ("rotate", "affine", "gaussian_blur", "brightness", "contrast", "colour")
    steps = (
        {"op": "affine", "degrees": (12, 12), "scale": (0.9, 0.9), "shear": (-7, 7.7, 3, 3.3)},
        {"op": "rotate", "degrees": (0.1, 0.1)},
        {"op": "gaussian_blur", "kernel_size": 9, "sigma": (0.1, 1.2)},
        {"op": "color_jitter", "brightness": (0.6, 1.4), "saturation": (1.3, 1.3)},
    )
    drawn = drawn_steps(recipe(*steps), 0, 0, 0)
    assert {name for name, *_ in drawn} < set(exact)
    for _, *values in drawn:
        assert values == np.float32(values).tolist()
    assert drawn[0][4] == np.float32(0.9)


def test_all_orders_are_equally_likely():
    wanted = recipe({"op": "order", "of": ["invert", "hflip", "vflip", "equalize"]})
    found = [tuple(name for name, _ in drawn_steps(wanted, 0, 0, i)) for i in range(6000)]
    _, counts = np.unique(found, axis=0, return_counts=True)
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > RARE


def test_choices_follow_their_weights():
    steps = {"op": "choice", "of": ["invert", "hflip", "vflip"], "weights": [1, 0, 3]}
    wanted = recipe(steps)
    found = [drawn_steps(wanted, 0, 0, i)[0][0] for i in range(4000)]
    assert set(found) == {"invert", "vflip"}
    assert stats.binomtest(found.count("invert"), 4000, 0.25).pvalue > RARE


def test_equal_steps_do_not_depend_on_one_another():
    coin = {"op": "hflip", "p": 0.5}
    coins = recipe(coin, coin)
    counts = [len(drawn_steps(coins, 1, 0, i)) for i in range(4000)]
    assert stats.chisquare(np.bincount(counts), [1000, 2000, 1000]).pvalue > RARE


def test_draws_depend_on_key_epoch_record_and_occurrence():
    wanted = recipe({"op": "rotate", "degrees": (-90, 90)})
    places = [(0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)]
    assert len({drawn_steps(wanted, *place)[0] for place in places}) == 5
    assert drawn_steps(wanted, *places[0]) == drawn_steps(wanted, *places[0])


def test_views_have_steps_of_their_own_whatever_the_threads():
    turned = [{"op": "rotate", "degrees": (-30, 30)}, {"op": "auto_augment", "policy": "augmix"}]
    batches = []
    for threads in (1, 3):
        with ImageRecordIter(
            path_imgrec=PHOTOS, data_shape=(3, 32, 32), batch_size=5, dtype="uint8", seed=3,
            preprocess_threads=threads, steps=["invert"], views=[{"steps": []}, {"steps": turned}],
        ) as provider:  # fmt: skip
            batches.append([[np.array(view) for view in batch.data] for batch in provider])
    for one, three in zip(*batches, strict=True):
        np.testing.assert_array_equal(one, three)
        assert not np.array_equal(one[0], one[1])


# -- checks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "error", "text"),
    [
        ("hflip", TypeError, "steps='hflip': expected a list of steps"),
        ([3], TypeError, r"steps\[0\]=3: expected a dictionary"),
        ([{"p": 1}], TypeError, r'steps\[0\] needs "op"'),
        (["hflop"], ValueError, r"steps\[0\]\[\"op\"\]='hflop': did you mean 'hflip'"),
        ([{"op": "hflip", "q": 1}], TypeError, "no parameter 'q'"),
        (["hflip", {"op": "gaussian_blur", "kernel_size": 3, "sgima": 1}], TypeError,
         r"steps\[1\], 'gaussian_blur', has no parameter 'sgima'; did you mean 'sigma'"),
        (["posterize"], TypeError, r"steps\[0\], 'posterize', needs \"bits\""),
        ([{"op": "posterize", "bits": 9}], ValueError, r"steps\[0\]\[\"bits\"\]=9: .* 1 to 8"),
        ([{"op": "gaussian_blur", "kernel_size": 4}], ValueError, "an odd number"),
        ([{"op": "gaussian_blur", "kernel_size": (3, 83)}], ValueError, "below the 40 pixels"),
        ([{"op": "gaussian_blur", "kernel_size": 3, "sigma": (2, 1)}], ValueError,
         r"steps\[0\]\[\"sigma\"\]=\(2, 1\): 2 is above 1"),
        ([{"op": "rotate", "degrees": 10}], TypeError, r"expected a range, \(low, high\)"),
        ([{"op": "affine", "degrees": (0, 0), "translate": (2, 0)}], ValueError, "from 0 to 1"),
        ([{"op": "affine", "degrees": (0, 0), "shear": (0, 1, 2)}], ValueError, "2 or 4 numbers"),
        ([{"op": "color_jitter", "hue": (-1, 1)}], ValueError, "from -0.5 to 0.5"),
        (["color_jitter"], ValueError, "no effect without a range"),
        ([{"op": "apply", "of": []}], ValueError, r"steps\[0\]\[\"of\"\] is empty"),
        ([{"op": "choice", "of": ["hflip"], "p": 0.5}], TypeError, "no parameter 'p'"),
        ([{"op": "choice", "of": ["hflip"], "weights": [1, 2]}], ValueError, "expected 1 numbers"),
        ([{"op": "choice", "of": ["hflip"], "weights": [0]}], ValueError, "above 0"),
        ([{"op": "choice", "of": ["hflip", "vflip"], "weights": np.zeros(2)}], ValueError,
         "above 0"),
        ([{"op": "order", "of": [{"op": "hflip", "p": 2}]}], ValueError,
         r"steps\[0\]\[\"of\"\]\[0\]\[\"p\"\]=2"),
        ([{"op": "order", "of": ["hflip"] * 65}], ValueError, "up to 64"),
        (["hflip"] * 257, ValueError, "at most 256"),
        ([{"op": "auto_augment", "policy": "randaugmint"}], ValueError, r"steps\[0\]: .*randaugm"),
        ([{"op": "auto_augment", "policy": "augmix", "num_ops": 2}], ValueError, "num_ops"),
    ],
)  # fmt: skip
def test_mistakes_are_named_where_they_are(steps, error, text):
    with pytest.raises(error, match=text):
        Recipe(data_shape=(3, 40, 48), steps=steps)


def test_nesting_has_a_limit():
    step = "hflip"
    for _ in range(MOST_DEPTH - 1):
        step = {"op": "apply", "of": [step]}
    assert drawn_steps(recipe(step), 0, 0, 0) == [("hflip", 0.0)]
    with pytest.raises(ValueError, match=f"{MOST_DEPTH} deep"):
        recipe({"op": "apply", "of": [step]})


@pytest.mark.parametrize(
    "step", ["grayscale", {"op": "color_jitter", "hue": (-0.1, 0.1), "contrast": (1, 2)}]
)
def test_grey_images_have_no_colours_to_change(step):
    with pytest.raises(ValueError, match="needs RGB images"):
        recipe(step, shape=(1, 40, 48))


@pytest.mark.parametrize("step", [
    "hflip", "vflip", "perspective", {"op": "rotate", "degrees": (0, 9)},
    {"op": "affine", "degrees": (0, 9)}, {"op": "auto_augment", "policy": "augmix"},
])  # fmt: skip
def test_steps_that_move_pixels_are_refused_beside_boxes(step):
    with pytest.raises(ValueError, match=r"steps\[1\]\[\"of\"\]\[0\]\[\"op\"\]=.* moves pixels"):
        DetRecipe(data_shape=(3, 40, 48), steps=["invert", {"op": "apply", "of": [step]}])


plain = st.sampled_from(["hflip", "equalize", {"op": "solarize", "threshold": 9, "p": 0.5}])
nested = st.recursive(
    plain,
    lambda parts: st.builds(
        lambda kind, of: {"op": kind, "of": of},
        st.sampled_from(["apply", "choice", "order"]), st.lists(parts, min_size=1, max_size=4),
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(st.lists(nested, max_size=3))
def test_a_program_is_what_it_is_as_json(steps):
    once = recipe(*steps)
    assert recipe(*json.loads(json.dumps(once.steps))) == once
    assert once.steps == () or set(PUBLIC) >= {step["op"] for step in once.steps}
    assert rendered(once, picture()).shape == (40, 48, 3)
