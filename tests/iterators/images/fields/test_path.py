"""Masks and points follow every step that is drawn for their image: compared with steps on arrays.

``python test_path.py 100000`` compares that many draws.
"""

import sys

import numpy as np
import pytest

from faces.paths import PathMaker
from iterators.images.augment.det_recipe import DetRecipe
from iterators.images.augment.recipe import Recipe
from iterators.images.det_render import DetPlan
from iterators.images.plan import RenderPlan
from tests.iterators.images.fields.reference import followed, forward_matrix

SHAPE = (3, 16, 20)
FLIPS = {"rand_mirror": True, "flip_p": 0.3}
WARPED = {"max_rotate_angle": 40, "max_shear_ratio": 0.3, "max_random_scale": 1.4}
PILLOW = {"resample": "pillow", **FLIPS}
CASES = {
    "crop": Recipe(data_shape=SHAPE, rand_crop=True, **FLIPS),
    "resize": Recipe(data_shape=SHAPE, resize=24, rand_crop=True, **FLIPS),
    "square": Recipe(data_shape=SHAPE, rand_crop=True, max_crop_size=19, min_crop_size=5, **FLIPS),
    "area": Recipe(data_shape=SHAPE, random_resized_crop=True, min_random_area=0.05, **FLIPS),
    "warp": Recipe(data_shape=SHAPE, resize=26, rand_crop=True, pad=3, **WARPED, **FLIPS),
    "borders": Recipe(data_shape=SHAPE, pad=9, rand_crop=True, padding_mode="reflect", **PILLOW),
    "edges": Recipe(data_shape=SHAPE, pad=6, rand_crop=True, padding_mode="edge", **PILLOW),
    "moves": Recipe(
        data_shape=SHAPE,
        resize=(30, 25),
        rotation=50,
        affine={"degrees": 20, "translate": (0.2, 0.1), "scale": (0.7, 1.3), "shear": 15},
        perspective=0.6,
        rand_crop=True,
        **PILLOW,
    ),
    "policy": Recipe(data_shape=SHAPE, rand_crop=True, auto_augment="randaugment", **FLIPS),
    "trivial": Recipe(data_shape=SHAPE, auto_augment="trivialaugment", **FLIPS),
    "boxes": DetRecipe(
        data_shape=SHAPE,
        resize_mode="fit",
        rand_mirror_prob=0.5,
        rand_crop_prob=0.7,
        rand_pad_prob=0.5,
        max_pad_scale=3,
        num_crop_sampler=2,
        min_crop_scales=(0.2, 0.5),
        max_crop_scales=(0.7, 1.0),
    ),
}


def maker_of(name):
    """What makes the paths of a case."""
    recipe = CASES[name]
    if isinstance(recipe, DetRecipe):
        return PathMaker(DetPlan(recipe, label_width=0))
    return PathMaker(RenderPlan(recipe))


def compare(name, draws, sizes=((23, 31), (40, 22), (21, 20))):
    """Compare masks and points of so many draws; returns how many paths were bent."""
    maker, bent, seen_at_all = maker_of(name), 0, 0
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        height, width = sizes[draw % len(sizes)]
        mask = rng.integers(0, 250, (height, width), np.uint8)
        path = maker(np.zeros((height, width, 3), np.uint8), draw % 7, draw)
        expected = followed(mask, path)
        xs, ys = path.origins()
        mine = np.where(xs < 0, 255, mask[ys, xs])
        np.testing.assert_array_equal(mine, expected)
        points = rng.uniform(0, (width, height), (3, 2))
        wanted = forward_matrix(path) @ np.c_[points, np.ones(3)].T
        for (x, y), found in zip(points, (wanted[:2] / wanted[2]).T, strict=True):
            moved_x, moved_y, seen = path.moved(x, y)
            if np.abs(found).max() < 1e4:
                assert abs(moved_x - found[0]) < 0.01 and abs(moved_y - found[1]) < 0.01
            if seen:
                seen_at_all += 1
                assert 0 <= moved_x <= expected.shape[1] and 0 <= moved_y <= expected.shape[0]
                back = path.origin(moved_x, moved_y)
                np.testing.assert_allclose(back, (x, y), atol=0.01)
        bent += not path.straight
    assert seen_at_all
    return bent


@pytest.mark.parametrize("name", CASES)
def test_masks_and_points_follow_the_steps(name):
    bent = compare(name, 60)
    assert bool(bent) == (name in ("warp", "moves", "policy", "trivial"))


def test_a_point_is_where_its_pixel_is():
    """A mark of one pixel in a mask lies under the point at its centre."""
    maker = maker_of("moves")
    met = 0
    for draw in range(200):
        path = maker(np.zeros((40, 50, 3), np.uint8), 0, draw)
        xs, ys = path.origins()
        for y, x in ((7, 9), (20, 30), (33, 12)):
            at_x, at_y, seen = path.moved(x + 0.5, y + 0.5)
            rows, columns = np.nonzero((xs == x) & (ys == y))
            if seen and len(rows):
                met += 1
                assert np.hypot(columns + 0.5 - at_x, rows + 0.5 - at_y).min() < 2.5
    assert met > 20


def test_left_and_right_change_places_by_one_mirror_not_by_two():
    maker = PathMaker(RenderPlan(Recipe(data_shape=SHAPE, **FLIPS)))
    kinds = set()
    for draw in range(40):
        path = maker(np.zeros((20, 24, 3), np.uint8), 0, draw)
        assert path.reversed == (path.mirror != path.flip)
        kinds.add((path.mirror, path.flip))
    assert len(kinds) == 4


def test_mixtures_of_moved_images_are_refused():
    plan = RenderPlan(Recipe(data_shape=SHAPE, auto_augment="augmix"))
    with pytest.raises(ValueError, match="mixes several moved copies"):
        PathMaker(plan)


if __name__ == "__main__":
    each = int(sys.argv[1]) // len(CASES) + 1
    for case in CASES:
        print(case, each, "draws,", compare(case, each), "bent")
