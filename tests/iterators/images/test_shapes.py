"""Batches whose images have another size than that of the plan: all one size, or each its own."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordio
from iterators.images.augment.det_recipe import DetRecipe
from iterators.images.augment.recipe import Recipe
from iterators.images.det_render import DetPlan
from iterators.images.plan import RenderPlan
from iterators.images.sources.source import RecordFiles
from iterators.images.stage import Stage
from iterators.images.workers import PlanGroup

LARGEST = (96, 112)
RECIPES = {
    "plain": {},
    "crop": {"rand_crop": True, "rand_mirror": True, "resize": 40},
    "area": {"random_resized_crop": True, "min_random_area": 0.2, "max_aspect_ratio": 0.4},
    "flip": {"flip_p": 0.5, "mirror_p": 0.5, "rand_mirror": True},
    "erased": {"random_erasing": 1.0, "erasing_value": "pixel"},
    "policy": {"auto_augment": "randaugment", "gaussian_blur": 0.5},
    "augmix": {"auto_augment": "augmix"},
    "face": {"crop_on_fill": 0.7, "low_resolution": 0.7},
    "pillow": {"resample": "pillow", "interpolation": "bicubic", "resize": 60},
}


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    path = tmp_path_factory.mktemp("shapes") / "images.rec"
    rng = np.random.default_rng(3)
    with recordio.RecordWriter(path, path.with_suffix(".idx")) as writer:
        for number in range(12):
            height, width = (1, 70) if number == 5 else rng.integers(20, 150, 2)
            small = rng.integers(0, 256, (6, 7, 3), dtype=np.uint8)
            image = cv2.resize(small, (int(width), int(height)))
            label = [2, 5, 1, 0.1, 0.2, 0.8, 0.9]
            header = recordio.IRHeader(0, label, number, 0)
            content = cv2.imencode(".png" if number % 3 else ".jpg", image)[1].tobytes()
            writer.write(recordio.pack(header, content), number)
    return path


def stage_of(path, size=LARGEST, recipe=None, kind=Recipe, batch_size=12, threads=1, **plan):
    reader = recordio.RecordReader(path)
    made = kind(data_shape=(3, *size), **(recipe or {}))
    plan_class = DetPlan if kind is DetRecipe else RenderPlan
    return Stage(
        RecordFiles([reader], reader.offsets, np.zeros(1, np.int64)),
        PlanGroup(plan_class(made, label_width=12 if kind is DetRecipe else 0, **plan)),
        batch_size=batch_size,
        threads=threads,
        depth=2,
    )


def batch_of(stage, *shape, records=np.arange(12)):
    try:
        stage.submit(records, 3, records, *shape)
        data, label, ids, failures = stage.collect()
        assert not failures
        return data, label, ids
    finally:
        stage.close()


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "CHWN"])
@pytest.mark.parametrize("name", RECIPES)
def test_a_batch_of_a_size_is_that_of_a_plan_of_this_size(pack, name, layout):
    for size in [(64, 64), (32, 112), (1, 90), LARGEST]:
        wanted, _, ids = batch_of(stage_of(pack, size, RECIPES[name], layout=layout))
        found, _, same = batch_of(stage_of(pack, LARGEST, RECIPES[name], layout=layout), size)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(ids, same)


@pytest.mark.parametrize(
    "recipe", [{"resize_mode": "fit"}, {"mosaic": 1.0}, {"auto_augment": "v0"}]
)
def test_boxes_follow_the_size_of_a_batch(pack, recipe):
    recipe = {**recipe, "rand_mirror_prob": 0.5}
    records = np.delete(np.arange(12), 5)  # no part of a line of 1 x 70 fits
    for size in [(64, 48), (33, 80)]:
        wanted = batch_of(stage_of(pack, size, recipe, DetRecipe), records=records)
        found = batch_of(stage_of(pack, LARGEST, recipe, DetRecipe), size, records=records)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(
        st.tuples(st.integers(1, LARGEST[0]), st.integers(1, LARGEST[1])), min_size=1, max_size=12
    ),
    threads=st.integers(1, 3),
    layout=st.sampled_from(["NCHW", "NHWC", "HWCN"]),
    name=st.sampled_from(["crop", "area", "erased"]),
)
def test_every_slot_may_have_a_size(pack, sizes, threads, layout, name):
    records = np.arange(len(sizes))
    data, _, _ = batch_of(
        stage_of(pack, recipe=RECIPES[name], threads=threads, layout=layout),
        np.array(sizes, np.int32),
        records=records,
    )
    assert len(data) == len(sizes)
    for record, (array, size) in enumerate(zip(data, sizes, strict=True)):
        wanted, _, _ = batch_of(
            stage_of(pack, size, RECIPES[name], batch_size=1, layout=layout),
            records=np.array([record]),
        )
        np.testing.assert_array_equal(array, wanted.squeeze(layout.index("N")))


def test_a_batch_may_have_fewer_slots_and_those_without_a_record_are_zero(pack):
    stage = stage_of(pack)
    data, label, ids = batch_of(stage, (20, 30), 7, records=np.arange(5))
    assert data.shape == (7, 3, 20, 30) and len(label) == len(ids) == 7
    assert data[:5].any(axis=(1, 2, 3)).all() and not data[5:].any()


def test_a_slot_is_filled_again_in_its_size_or_in_another_one(pack):
    stage = stage_of(pack)
    records = np.arange(3)
    sizes = np.array([[20, 30], [40, 50], [9, 1]], np.int32)
    stage.submit(records, 0, records, sizes)
    data, label, ids, _ = stage.collect()
    before = [array.copy() for array in data]
    stage.retry(7, 0, 0, data, label, ids, 1)
    assert data[1].shape == (3, 40, 50) and ids[1] == 7
    stage.retry(8, 0, 0, data, label, ids, 1, (33, 12))
    assert data[1].shape == (3, 33, 12) and ids[1] == 8
    np.testing.assert_array_equal(data[0], before[0])
    np.testing.assert_array_equal(data[2], before[2])
    stage.submit(records, 0, records, (24, 16))
    data, label, ids, _ = stage.collect()
    stage.retry(8, 0, 0, data, label, ids, 2)
    wanted, _, _ = batch_of(stage_of(pack, (24, 16), batch_size=1), records=np.array([8]))
    assert data.shape == (12, 3, 24, 16) and ids[2] == 8 and wanted.shape == (1, 3, 24, 16)
    stage.close()


@pytest.mark.parametrize("size", [(97, 10), (10, 113), (0, 10), (10, -1)])
def test_a_size_beyond_the_largest_is_refused(pack, size):
    for sizes in (size, np.array([size] * 12)):
        with pytest.raises(ValueError, match="at most 96 x 112"):
            batch_of(stage_of(pack), sizes)


def test_views_have_the_sizes_of_their_plans(pack):
    view = RenderPlan(Recipe(data_shape=(3, 8, 8)), label_width=0)
    with pytest.raises(ValueError, match="several views"):
        batch_of(stage_of(pack, views=[view]), (20, 20))
