"""`reducing_gap`: JPEG pictures at a fraction, as Pillow's `draft` and `resize(box=)` have them."""

import io

import numpy as np
import pytest
from PIL import Image

from iterators import NamedRecipe, PipelineError, preprocess
from iterators.images.augment.pipelines.processor_families import rule_of
from recordio.formats.jpeg import jpeg

pytestmark = pytest.mark.skipif(not jpeg.available(), reason="needs libjpeg-turbo")
ONE = {"image_processor_type": "GotOcr2ImageProcessor", "size": {"height": 60, "width": 90}}
SCAN = {
    "image_processor_type": "Gemma3ImageProcessor", "size": {"height": 40, "width": 40},
    "do_pan_and_scan": True, "pan_and_scan_min_crop_size": 50, "pan_and_scan_max_num_crops": 4,
    "pan_and_scan_min_ratio_to_activate": 1.2,
}  # fmt: skip


def picture(width, height, kind="JPEG", **settings):
    rng = np.random.default_rng(width)
    coarse = Image.fromarray(rng.integers(0, 256, (height // 20, width // 20, 3), np.uint8))
    file = io.BytesIO()
    coarse.resize((width, height), Image.BICUBIC).save(file, kind, **settings)
    return file.getvalue()


def made(content, processor, gap, **settings):
    recipe = NamedRecipe.from_processor(processor, reducing_gap=gap)
    return preprocess([content], recipe, dtype="uint8", **settings)["pixel_values"]


@pytest.mark.parametrize("settings", [{}, {"progressive": True}, {"subsampling": 0}])
@pytest.mark.parametrize("gap", [1, 2.0, 3.5])
def test_it_is_draft_and_resize_of_pillow(gap, settings):
    content = picture(811, 547, quality=90, **settings)
    full = made(content, ONE, None)
    with Image.open(io.BytesIO(content)) as stored:
        box = stored.draft(None, (int(90 * gap), int(60 * gap)))[1]
        expected = np.asarray(stored.resize((90, 60), Image.BICUBIC, box=box))
    result = made(content, ONE, gap)
    np.testing.assert_array_equal(result[0].transpose(1, 2, 0), expected)
    assert not np.array_equal(result, full)
    np.testing.assert_array_equal(result, made(content, {**ONE, "reducing_gap": gap}, None))


def test_the_whole_and_its_crops_are_of_one_decoded_picture():
    content = picture(800, 400)
    assert rule_of({**SCAN, "reducing_gap": 2.0}).plan(400, 800).count == 3
    result = made(content, SCAN, 2.0)
    with Image.open(io.BytesIO(content)) as stored:
        stored.draft(None, (160, 80))  # 1/4, as the crops have 400 pixels a side
        for tile, box in zip(
            result, [(0, 0, 200, 100), (0, 0, 100, 100), (100, 0, 200, 100)], strict=True
        ):
            expected = stored.crop(box).resize((40, 40), Image.BILINEAR)
            np.testing.assert_array_equal(tile.transpose(1, 2, 0), np.asarray(expected))


@pytest.mark.parametrize("kind", ["PNG", "turned", "array", "small"])
def test_other_pictures_are_decoded_in_full(kind):
    if kind == "PNG":
        content = picture(811, 547, "PNG")
    elif kind == "turned":
        exif = Image.Exif()
        exif[0x112] = 6
        content = picture(811, 547, exif=exif)
    else:
        content = picture(811, 547) if kind == "array" else picture(140, 100)
    if kind == "array":
        content = np.asarray(Image.open(io.BytesIO(content)))
    np.testing.assert_array_equal(made(content, ONE, 2.0), made(content, ONE, None))


def test_other_processors_get_the_keyword():
    processor = {
        "do_resize": True, "size": {"height": 32, "width": 32}, "resample": 3, "do_rescale": True,
        "rescale_factor": 1 / 255,
    }  # fmt: skip
    assert NamedRecipe.from_processor(processor, 2.0).keywords["reducing_gap"] == 2.0


@pytest.mark.parametrize("gap", [0.5, "2", True])
def test_wrong_numbers_are_named(gap):
    with pytest.raises(PipelineError, match="reducing_gap="):
        NamedRecipe.from_processor(ONE, reducing_gap=gap)


def test_nearest_has_no_gap():
    with pytest.raises(PipelineError, match="no effect"):
        NamedRecipe.from_processor({**ONE, "resample": 0}, reducing_gap=2.0)
