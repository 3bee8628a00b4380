"""AdaFace's changes: a part of the image on black, and low resolution."""

import subprocess
import sys

import cv2
import numpy as np
import pytest
from scipy import stats

from faces.draws import drawn_face
from faces.resample import resize
from iterators.images.augment.recipe import Recipe

from .test_policy import picture, rendered

RARE = 1e-4
DRAWS = 4000
CV = [cv2.INTER_NEAREST, cv2.INTER_LINEAR, cv2.INTER_CUBIC, cv2.INTER_AREA, cv2.INTER_LANCZOS4]


def drawn(count=DRAWS, shape=(3, 112, 112), **keywords):
    recipe = Recipe(data_shape=shape, **keywords)
    return [drawn_face(recipe, i % 3, i % 5, i) for i in range(count)]


def test_low_resolution_draws_side_and_both_interpolations():
    faces = drawn(low_resolution=0.2)
    some = [face for face in faces if face]
    assert stats.binomtest(len(some), DRAWS, 0.2).pvalue > RARE
    sides = np.array([face["small"][0] for face in some])
    assert sides.min() >= 22
    assert sides.max() <= 111
    # int(112 * x), x from 0.2 to 1: every whole number but the first as often.
    assert stats.kstest(sides + 0.5, stats.uniform(22.4, 89.6).cdf).statistic < 0.06
    table = np.zeros((5, 5))
    for face in some:
        table[face["methods"]] += 1
    assert stats.chisquare(table.ravel()).pvalue > RARE


def test_parts_are_those_of_a_random_resized_crop():
    parts = np.array([face["part"] for face in drawn(crop_on_fill=1.0)], float)
    x, y, width, height = parts.T
    assert (x >= 0).all()
    assert (y + height <= 112).all()
    small = drawn(crop_on_fill=1.0, crop_on_fill_area=(0.2, 0.5), shape=(3, 1000, 1000))
    width, height = np.array([face["part"][2:] for face in small], float).T
    area, ratio = width * height / 1e6, np.log(width / height)
    assert stats.kstest(area, stats.uniform(0.2, 0.3).cdf).pvalue > RARE
    limit = np.log(4 / 3)
    assert stats.kstest(ratio, stats.uniform(-limit, 2 * limit).cdf).pvalue > RARE


def test_an_image_that_no_part_fits_keeps_its_middle():
    (face,) = drawn(1, shape=(3, 10, 1000), crop_on_fill=1.0, crop_on_fill_area=1.0)
    assert face["part"] == (493, 0, 13, 10)


def test_the_stage_makes_what_is_drawn():
    image = picture()
    recipe = Recipe(data_shape=(3, 40, 48), crop_on_fill=0.5, low_resolution=0.5)
    changed = 0
    for record in range(60):
        face, wanted = drawn_face(recipe, 9, 0, record), image.copy()
        if "part" in face:
            x, y, width, height = face["part"]
            wanted = np.zeros_like(image)
            wanted[y : y + height, x : x + width] = image[y : y + height, x : x + width]
        if "small" in face:
            down, up = face["methods"]
            wanted = resize(resize(wanted, face["small"], method=down), (48, 40), method=up)
        np.testing.assert_array_equal(rendered(recipe, image, record), wanted)
        changed += bool(face)
    assert changed > 20


def test_low_resolution_is_opencvs():
    """As AdaFace calls it; cubic weights are whole numbers here."""
    image = cv2.GaussianBlur(picture(3, 112, 112), (5, 5), 0)
    recipe = Recipe(data_shape=(3, 112, 112), low_resolution=1.0)
    for record in range(20):
        face = drawn_face(recipe, 9, 0, record)
        down, up = (CV[method] for method in face["methods"])
        small = cv2.resize(image, face["small"], interpolation=down)
        wanted = cv2.resize(small, (112, 112), interpolation=up)
        found = rendered(recipe, image, record)
        # A level of a small image may become two of a large one.
        assert np.abs(found.astype(int) - wanted).max() <= 2 * (2 in face["methods"])


SHORT = r"""
import resource
from iterators.images.augment.recipe import Recipe
from iterators.images.plan import RenderPlan
from iterators.images.render import Renderer
from recordio import IRHeader, pack

record_of_image = pack(IRHeader(0, 0.0, 0, 0), b"P6\n20000 8\n255\n" + bytes(3 * 20000 * 8))
renderer = Renderer(RenderPlan(Recipe(data_shape=(3, 8, 20000), low_resolution=1.0)))
refused = 0
for record in range(60):
    # What has been allocated stays; tables of the resampler are above the threshold of mmap.
    with open("/proc/self/status") as status:
        used = 1024 * int(next(line for line in status if line.startswith("VmSize")).split()[1])
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 21), resource.RLIM_INFINITY))
    try:
        renderer.sample(record_of_image, 0, record)
    except MemoryError:
        refused += 1
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
    renderer.sample(record_of_image, 0, record)
print(refused)
"""


@pytest.mark.address_space
@pytest.mark.skipif(sys.platform != "linux", reason="limits its memory as Linux does it")
def test_no_memory_for_low_resolution_is_said():
    done = subprocess.run(
        [sys.executable, "-c", SHORT], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"low_resolution": 1.5}, "from 0 to 1"),
        ({"low_resolution": 0.5, "low_resolution_side": 0}, "from 0.01 to 1"),
        ({"low_resolution_side": 0.5}, "no effect without low_resolution"),
        ({"crop_on_fill_area": 0.5}, "no effect without crop_on_fill"),
    ],
)
def test_what_cannot_be_is_refused(keywords, text):
    with pytest.raises(ValueError, match=text):
        Recipe(data_shape=(3, 8, 8), **keywords)


def test_the_size_in_between():
    recipe = Recipe(data_shape=(3, 112, 112), low_resolution=1, low_resolution_side=0.5)
    assert drawn_face(recipe, 0, 0, 0)["small"] == (56, 56)
