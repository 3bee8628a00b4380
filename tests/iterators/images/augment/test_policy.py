"""The operations of `auto_augment`: applied in order, mixed; names and keywords."""

import numpy as np
import pytest
from scipy import stats

from faces.draws import drawn_operations, operations_of
from iterators.images.augment.policies import NAMES, policy_of
from iterators.images.augment.program import PolicyChange
from iterators.images.augment.recipe import Recipe
from iterators.images.plan import RenderPlan
from iterators.images.render import Renderer
from iterators.testing import noise
from recordio import IRHeader, pack_img
from recordio.kernels.operations import operate

RARE = 1e-5


def test_mixes_have_the_distributions_of_augmix():
    """Weights are Dirichlet and the share is Beta, with any parameter."""
    for alpha, text in ((1, "augmix"), (0.4, "augmix-a0.4"), (3, "augmix-a3-w2")):
        change = PolicyChange(Recipe(data_shape=(3, 4, 4), auto_augment=text))
        mixes = [operations_of(change, 0, i % 5, i)[1] for i in range(6000)]
        width = len(mixes[0]["weights"])
        shares = np.array([mix["share"] for mix in mixes])
        weights = np.array([mix["weights"] for mix in mixes])
        assert stats.kstest(shares, stats.beta(alpha, alpha).cdf).pvalue > RARE
        np.testing.assert_allclose(weights.sum(1), 1, atol=1e-5)
        rest = stats.beta(alpha, alpha * (width - 1)).cdf
        for column in weights.T:
            assert stats.kstest(column, rest).pvalue > RARE
        assert stats.spearmanr(shares, weights[:, 0]).pvalue > RARE


# -- pixels ----------------------------------------------------------------------------------------


def picture(channels=3, height=40, width=48):
    return noise(height, width, channels, channels)


def rendered(recipe, image, record=0, epoch=0, dtype="uint8", **more):
    """What the image stage makes of an image, height first."""
    plan = RenderPlan(recipe, layout="NHWC", dtype=dtype, key=9, **more)
    packed = pack_img(IRHeader(0, 0.0, 0, 0), image[:, :, ::-1], img_fmt=".png")
    return Renderer(plan).sample(packed, epoch, record)[0][0]


def steps_of(image, operations, fill):
    for name, value, method in operations:
        image = operate(image, name, value, method=method, fill=fill)
    return image


@pytest.mark.parametrize("text", ["randaugment", "trivialaugment", "rand-m9-n3-inc1-mstd0.5", "v0"])
def test_the_stage_applies_what_is_drawn_in_its_order(text):
    image = picture()
    recipe = Recipe(data_shape=(3, 40, 48), auto_augment=text, augment_fill=(7, 80, 255))
    changed = 0
    for record in range(40):
        operations, _ = drawn_operations(recipe, 9, 2, record)
        wanted = steps_of(image, operations, (7, 80, 255))
        np.testing.assert_array_equal(rendered(recipe, image, record, 2), wanted)
        changed += not np.array_equal(wanted, image)
    assert changed > 10


@pytest.mark.parametrize("text", ["augmix", "augmix-m5-w4-d2", "augmix-b1"])
def test_mixes_are_put_together_as_the_libraries_do(text):
    image = picture()
    recipe = Recipe(data_shape=(3, 40, 48), auto_augment=text)
    for record in range(20):
        operations, mix = drawn_operations(recipe, 9, 0, record)
        ends = [*mix["parts"][1:], len(operations)]
        fill = recipe.policy().fill
        parts = [
            steps_of(image, operations[first:last], fill).astype(np.float32)
            for first, last in zip(mix["parts"], ends)
        ]
        weights, share = np.float32(mix["weights"]), np.float32(mix["share"])
        base = image.astype(np.float32)
        if text == "augmix":  # torchvision: one sum
            wanted = (1 - share) * base
            wanted = wanted + sum(share * w * part for w, part in zip(weights, parts))
        elif text != "augmix-b1":  # timm: the sum as an image, blended with the image
            mixed = sum(w * part for w, part in zip(weights, parts))
            wanted = base + share * (np.clip(mixed, 0, 255).astype(np.uint8) - base)
        else:
            wanted, rest, shares = base, 1.0, []
            for weight in (weights * share)[::-1]:
                shares.append(weight / rest)
                rest *= 1 - shares[-1]
            for own, part in zip(shares[::-1], parts):
                wanted = np.trunc(wanted + own * (part - wanted))
        found = rendered(recipe, image, record).astype(int)
        # Sums of floats in another order may be cut off at another whole number.
        assert np.abs(found - np.clip(wanted, 0, 255).astype(int)).max() <= 1


@pytest.mark.parametrize("channels", [1, 4])
def test_grey_and_alpha_go_through_policies_too(channels):
    image = picture(channels) if channels == 1 else picture(4)
    recipe = Recipe(data_shape=(channels, 40, 48), auto_augment="randaugment")
    for record in range(10):
        operations, _ = drawn_operations(recipe, 9, 0, record)
        wanted = steps_of(image, operations, (0, 0, 0, 0))
        if channels == 4:  # BGRA in the record
            packed = image[:, :, [2, 1, 0, 3]]
            found = rendered(recipe, packed[:, :, ::-1], record)
        else:
            found = rendered(recipe, image, record)
        np.testing.assert_array_equal(found, wanted)


def test_switching_a_policy_on_leaves_all_other_draws():
    """The crop and the mirror are those of the recipe without it."""
    image = picture(3, 90, 120)
    common = {"data_shape": (3, 40, 48), "rand_crop": True, "rand_mirror": True}
    nothing = Recipe(**common, auto_augment="rand-m0-p0.0")
    for record in range(10):
        np.testing.assert_array_equal(
            rendered(nothing, image, record), rendered(Recipe(**common), image, record)
        )


# -- keywords --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_a_policy(name):
    assert policy_of(name).choices


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"auto_augment": "randaugmnt"}, "expected one of 'randaugment'"),
        ({"auto_augment": "rand-m9-x3"}, "'x3' is none of m, n, p"),
        ({"auto_augment": "rand-m"}, "'m' is none of"),
        ({"auto_augment": "rand-twide"}, "no set of operations 'twide'"),
        ({"auto_augment": "rand-m9", "magnitude": 3}, "contains all settings"),
        ({"auto_augment": "rand-n17"}, "not possible"),
        ({"auto_augment": "augmix-w9"}, "a width of up to 8"),
        ({"auto_augment": "randaugment", "magnitude": 31}, "from 0 to 30"),
        ({"auto_augment": "randaugment", "magnitude_std": 0.5}, "timm's tables"),
        ({"auto_augment": "randaugment", "increasing": True}, "timm's tables"),
        ({"auto_augment": "trivialaugment", "num_ops": 3}, "num_ops has no meaning"),
        ({"auto_augment": "autoaugment", "magnitude": 3}, "magnitude has no meaning"),
        ({"auto_augment": "augmix", "magnitude": 2.5}, "severities from 1 to 10"),
        ({"auto_augment": "trivialaugment", "augment_table": "timm"}, "is not in timm"),
        ({"auto_augment": "randaugment", "augment_interpolation": "area"}, "'nearest'"),
        ({"auto_augment": "randaugment", "augment_fill": 256}, "from 0 to 255"),
        ({"auto_augment": "randaugment", "augment_table": "timn"}, "'torchvision', 'timm'"),
    ],
)
def test_what_makes_no_policy_is_refused(keywords, text):
    with pytest.raises(ValueError, match=text):
        Recipe(data_shape=(3, 8, 8), **keywords)


def test_keywords_and_strings_name_the_same_policies():
    assert policy_of(
        "randaugment", "timm", num_ops=3, magnitude=9, magnitude_std=0.5, increasing=True
    ) == policy_of("rand-n3-m9-mstd0.5-inc1")
    assert policy_of("autoaugment", "timm", magnitude_std=0.5) == policy_of("original-mstd0.5")
    assert policy_of("augmix", "timm", magnitude=5) == policy_of("augmix-m5")


def test_fill_value_serves_policies_where_it_is_given():
    def fill(**keywords):
        return Recipe(data_shape=(3, 8, 8), auto_augment="randaugment", **keywords).policy().fill

    assert fill() == (0, 0, 0)
    assert fill(augment_table="timm") == (128, 128, 128)
    assert fill(fill_value=9) == (9, 9, 9)
    assert fill(fill_value=9, augment_fill=(1, 2, 3)) == (1, 2, 3)


def test_a_policy_by_name_draws_its_operations():
    recipe = Recipe(data_shape=(3, 8, 8), auto_augment="randaugment")
    operations, mix = drawn_operations(recipe, 0, 0, 0)
    assert (len(operations), mix) == (2, {})
