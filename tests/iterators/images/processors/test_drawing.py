"""Where what a processor makes of a picture lies, which the viewer and the manual draw."""

import pytest

from iterators.images.augment.pipelines.processor_families import rule_of
from iterators.images.processors.drawing import made_pictures, plan_words


def rule(name, **settings):
    return rule_of({"image_processor_type": f"{name}ImageProcessor", **settings})


def test_patches_are_of_one_picture():
    (made,) = made_pictures(rule("Siglip2", max_num_patches=64), 300, 400)
    assert made.grid == rule("Siglip2", max_num_patches=64).plan(300, 400).grid
    assert made.size == (16 * made.grid[1], 16 * made.grid[0])
    assert made.placed == made.seen == (0, 0, *made.size) and made.part == (0, 0, 400, 300)


def test_tiles_and_the_thumbnail_have_the_numbers_of_the_tensor():
    shape = {"size": {"height": 448, "width": 448}, "crop_to_patches": True}
    grid, thumbnail = made_pictures(rule("GotOcr2", **shape), 400, 800)
    assert grid.size == (1344, 896) or grid.size[0] == 2 * grid.size[1]
    assert list(grid.tiles) == list(range(len(grid.tiles))) and grid.grid == (0, 0)
    assert list(thumbnail.tiles) == [len(grid.tiles)] and thumbnail.size == (448, 448)


def test_padding_is_around_the_picture():
    anyres = rule("LlavaNext", image_grid_pinpoints=[[448, 448]])
    whole, canvas = made_pictures(anyres, 112, 224)
    assert whole.placed == (0, 0, 224, 224)
    assert canvas.size == (448, 448) and canvas.placed == canvas.seen == (0, 112, 448, 224)
    assert canvas.part == (0, 0, 224, 112)


def test_two_resizes_are_one_place():
    for made in made_pictures(rule("Idefics3"), 400, 601):
        assert made.placed == made.seen == (0, 0, *made.size) and made.part == (0, 0, 601, 400)


def test_crops_are_parts_of_the_picture():
    scan = rule(
        "Gemma3", do_pan_and_scan=True, pan_and_scan_min_crop_size=50,
        pan_and_scan_max_num_crops=4, pan_and_scan_min_ratio_to_activate=1.2,
    )  # fmt: skip
    whole, left, right = made_pictures(scan, 100, 200)
    assert whole.part == (0, 0, 200, 100)
    assert (left.part, right.part) == ((0, 0, 100, 100), (100, 0, 100, 100))
    assert right.placed == (-224, 0, 448, 224) and right.seen == (0, 0, 224, 224)


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("Qwen2VL", {}, "2,436 patches, 42 rows of 58; 609 where the model merges 2 x 2"),
        ("Pixtral", {}, "1,900 patches, 38 rows of 50"),
        ("GotOcr2", {}, "1 tile of 384 x 384 pixels"),
        (
            "Gemma4",
            {},
            "2,394 patches, 42 rows of 57, in room for 2,520; 266 where the model merges 3 x 3",
        ),
    ],
)
def test_words(name, settings, words):
    one = rule(name, **settings)
    assert plan_words(one, one.plan(600, 800)) == words
