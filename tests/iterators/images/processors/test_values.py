"""Values of float32, computed or looked up: those of the tables of the rule, to the bit."""

import numpy as np
import pytest

from iterators import preprocess
from iterators.images.augment.pipelines.processor_families import rule_of

SETTINGS = {
    "OpenAI": {},
    "halves": {"image_mean": [0.5] * 3, "image_std": [0.5] * 3},
    "not rescaled": {"do_rescale": False},
    "not normalised": {"do_normalize": False},
    "another factor": {"rescale_factor": 0.0123},
    "nothing left": {"rescale_factor": 0.0},
    "no deviation": {"image_std": [0.0, 1e-30, 0.3]},
    "large": {"image_mean": [-3e5, 7, 0.1], "image_std": [3, 1e20, 0.7]},
}


@pytest.mark.parametrize("width", [7, 8, 9, 16, 23, 40])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_values_of_tiles_are_those_of_the_tables(settings, width):
    processor = {
        "image_processor_type": "GotOcr2ImageProcessor",
        "size": {"height": 33, "width": width},
        **settings,
    }
    image = np.random.default_rng(width).integers(0, 256, (33, width, 3), np.uint8)
    with np.errstate(all="ignore"):
        values = preprocess([image], processor, dtype="float32")["pixel_values"][0]
        tables = rule_of(processor).tables()
    for plane, table, channel in zip(values, tables, np.moveaxis(image, 2, 0), strict=True):
        np.testing.assert_array_equal(plane.view(np.int32), table[channel].view(np.int32))


@pytest.mark.parametrize("side", [4, 8, 14])
def test_values_of_patches_are_those_of_the_tables(side):
    processor = {"image_processor_type": "Qwen2VLImageProcessor", "patch_size": side}
    image = np.random.default_rng(side).integers(0, 256, (90, 130, 3), np.uint8)
    values, levels = (
        preprocess([image], processor, dtype=dtype)["pixel_values"].reshape(-1, 3, 2 * side**2)
        for dtype in ("float32", "uint8")
    )
    for channel, table in enumerate(rule_of(processor).tables()):
        np.testing.assert_array_equal(values[:, channel], table[levels[:, channel]])
