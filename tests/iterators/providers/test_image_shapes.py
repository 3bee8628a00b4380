"""Image providers with batches of many shapes: `data_shape` as a list, and None."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordio
from iterators import ImageDetRecordIter, ImageRecordIter, Pack, show
from iterators.fields import Mask
from iterators.testing import box_label, encode, write_pack

SHAPES = [(3, 32, 32), (3, 48, 40), (3, 24, 56)]
COUNT = 23


def image_of(number):
    rng = np.random.default_rng(number)
    height, width = {5: (1, 70), 6: (70, 1)}.get(number, tuple(rng.integers(20, 90, 2).tolist()))
    return cv2.resize(rng.integers(0, 256, (5, 4, 3), dtype=np.uint8), (width, height))


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    path = tmp_path_factory.mktemp("shapes") / "train.rec"
    return str(write_pack(path, map(image_of, range(COUNT))))


@pytest.fixture(scope="module")
def boxes(tmp_path_factory):
    path = tmp_path_factory.mktemp("shapes") / "boxes.rec"
    labels = [box_label((number % 3, 0.1, 0.2, 0.7, 0.9)) for number in range(10)]
    return str(write_pack(path, map(image_of, range(100, 110)), labels, kind=".jpg"))


def drawn(path, **more):
    given = {"data_shape": SHAPES, "batch_size": 4, "shuffle": True, "seed": 7, **more}
    return ImageRecordIter(path_imgrec=path, **given)


def seen(provider):
    return [
        (
            batch.bucket_key,
            [np.array(one) for one in batch.data],
            np.array(batch.label[0]),
            batch.pad,
        )
        for batch in provider
    ]


def assert_same(found, wanted):
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one[0] == other[0] and one[3] == other[3]
        for array, same in zip([*one[1], one[2]], [*other[1], other[2]], strict=True):
            np.testing.assert_array_equal(array, same)


def test_a_batch_equals_that_of_a_provider_of_its_shape(pack):
    more = {"rand_crop": True, "rand_mirror": True, "resize": 30}
    with drawn(pack, **more) as provider:
        found = [batch for _ in range(3) for batch in seen(provider)]
    assert len({key for key, *_ in found}) == len(SHAPES)
    for shape in SHAPES:
        with drawn(pack, data_shape=shape, **more) as fixed:
            wanted = [batch for _ in range(3) for batch in seen(fixed)]
        mine = [number for number, batch in enumerate(found) if batch[0] == shape[1:]]
        for number in mine:
            np.testing.assert_array_equal(found[number][1][0], wanted[number][1][0])
            np.testing.assert_array_equal(found[number][2], wanted[number][2])


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_change_nothing(pack, threads):
    with drawn(pack, preprocess_threads=1, prefetch_buffer=1) as one:
        wanted = seen(one)
    with drawn(pack, preprocess_threads=threads, prefetch_buffer=5) as many:
        assert_same(seen(many), wanted)


@pytest.mark.parametrize("shape", [SHAPES, None])
def test_a_run_goes_on_at_every_batch(pack, shape):
    def make():
        return drawn(pack, data_shape=shape, rand_mirror=True)

    def flat(provider):
        return [
            (batch.bucket_key, [np.array(one) for one in batch.data[0]], batch.label[0], batch.pad)
            for batch in provider
        ]

    with make() as provider:
        wanted = [batch for _ in range(2) for batch in flat(provider)]
    for done in range(len(wanted) + 1):
        with make() as first:
            taken = []
            while len(taken) < done:
                for batch in first:
                    taken.append(batch)
                    if len(taken) == done:
                        break
            state = first.state_dict()
        with make() as second:
            second.load_state_dict(state)
            rest = [batch for _ in range(state["epoch"], 2) for batch in flat(second)]
        assert_same(rest, wanted[done:])


def test_all_parts_have_the_same_shape_at_each_step(pack):
    for parts in (2, 3, 7):
        keys = []
        for part in range(parts):
            with drawn(pack, batch_size=1, num_parts=parts, part_index=part) as provider:
                keys.append([batch.bucket_key for _ in range(2) for batch in provider])
        steps = min(map(len, keys))
        assert steps > 2 and len({tuple(one[:3]) for one in keys}) == 1


def test_the_shapes_are_drawn_evenly_and_by_the_seed(pack):
    def keys(seed):
        with drawn(pack, batch_size=1, seed=seed, shuffle=False) as provider:
            return [batch.bucket_key for _ in range(12) for batch in provider]

    first = keys(1)
    assert first == keys(1) and first != keys(2)
    counts = [first.count(shape[1:]) for shape in SHAPES]
    assert sum(counts) == 12 * COUNT and min(counts) > 12 * COUNT / 5


def test_boxes_and_images_have_the_shape_of_their_batch(boxes):
    given = {"path_imgrec": boxes, "batch_size": 5, "rand_mirror_prob": 0.5, "seed": 3}
    with ImageDetRecordIter(data_shape=SHAPES, **given) as provider:
        assert provider.provide_data[0].shape == (5, 3, 48, 56)
        found = [batch for _ in range(4) for batch in seen(provider)]
    assert len({batch[0] for batch in found}) > 1
    for shape in SHAPES:
        with ImageDetRecordIter(data_shape=shape, **given) as fixed:
            wanted = [batch for _ in range(4) for batch in seen(fixed)]
        for one, other in zip(found, wanted, strict=True):
            if one[0] == shape[1:]:
                np.testing.assert_array_equal(one[1][0], other[1][0])
                np.testing.assert_array_equal(one[2], other[2])


def test_descriptions_are_those_of_the_largest_shape_and_of_each_batch(pack):
    with drawn(pack, layout="NHWC", dtype="uint8") as provider:
        assert provider.provide_data[0].shape == (4, 48, 56, 3)
        for batch in provider:
            height, width = batch.bucket_key
            assert batch.provide_data[0].shape == batch.data[0].shape == (4, height, width, 3)
            assert batch["data"] is batch.data[0]


# -- images as they are -----------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "HWCN"])
def test_images_keep_their_size(pack, layout):
    given = {"data_shape": None, "shuffle": False, "dtype": "uint8", "layout": layout}
    with drawn(pack, **given) as provider:
        found = [image for batch in provider for image in batch.data[0]]
    letters = layout.replace("N", "")
    for number, image in enumerate(found):
        wanted = image_of(number % COUNT)
        axes = ["HWC".index(axis) for axis in letters]
        np.testing.assert_array_equal(image, wanted.transpose(axes))


@settings(max_examples=15, deadline=None)
@given(
    resize=st.sampled_from([-1, 1, 7, 33, (12, 20), (70, 9)]),
    batch_size=st.integers(1, 30),
    threads=st.integers(1, 3),
    round_batch=st.booleans(),
)
def test_a_buffer_holds_the_images_of_the_list(pack, resize, batch_size, threads, round_batch):
    given = {
        "data_shape": (3, None, None),
        "resize": resize,
        "batch_size": batch_size,
        "round_batch": round_batch,
        "preprocess_threads": threads,
    }
    with drawn(pack, **given) as lists, drawn(pack, ragged="buffer", **given) as buffers:
        samples = 0
        for one, other in zip(lists, buffers, strict=True):
            offsets, sizes = other["offsets"], other["sizes"]
            assert len(offsets) == len(one.data[0]) + 1 and offsets[-1] == len(other["data"])
            for number, image in enumerate(one.data[0]):
                part = other["data"][offsets[number] : offsets[number + 1]]
                np.testing.assert_array_equal(part.reshape(3, *sizes[number]), image)
            assert one.pad == other.pad and one.count_samples() == other.count_samples()
            assert len(one.label[0]) == len(one.data[0]) == len(one.index) == len(one.source)
            samples += one.count_samples()
        assert samples == COUNT


@pytest.mark.parametrize("resize", [16, 41])
def test_sizes_are_those_of_the_steps(pack, resize):
    """An image with the size that was worked out beforehand is neither cropped nor grown."""
    with drawn(pack, data_shape=None, resize=resize, shuffle=False, round_batch=False) as provider:
        found = [image for batch in provider for image in batch.data[0]]
    for number, image in enumerate(found):
        height, width = image_of(number).shape[:2]
        short = min(height, width)
        size = resize * height // short, resize * width // short
        assert image.shape[1:] == size
        with drawn(pack, data_shape=(3, *size), resize=resize, shuffle=False) as fixed:
            batch = next(b for i, b in enumerate(fixed) if i == number // 4)
        np.testing.assert_array_equal(image, batch.data[0][number % 4])


def test_boxes_lie_in_images_of_their_own_size(boxes):
    given = {"path_imgrec": boxes, "batch_size": 4, "round_batch": False}
    with ImageDetRecordIter(data_shape=None, rand_mirror_prob=0.5, **given) as provider:
        for batch in provider:
            for image, label in zip(batch.data[0], batch.label[0], strict=True):
                assert tuple(label[:3]) == image.shape
        assert provider.show(batch).size[0] > 100


def test_several_packs_have_a_resize_each(pack):
    packs = [Pack(pack, resize=20), Pack(pack, resize=(11, 13))]
    with drawn(packs, data_shape=None, batch_size=5) as provider:
        for batch in provider:
            for image, source in zip(batch.data[0], batch.source, strict=True):
                assert image.shape[1:] == (11, 13) if source else min(image.shape[1:]) == 20


@pytest.mark.parametrize("shape", [SHAPES, None])
def test_a_damaged_image_is_replaced_by_the_next_one(tmp_path, shape):
    contents = [encode(image_of(number)) for number in range(12)]
    contents[3], contents[7], contents[8] = contents[3][:-40], b"nothing", b""
    path = str(write_pack(tmp_path / "bad.rec", contents))
    given = {"data_shape": shape, "shuffle": False, "dtype": "uint8", "on_error": "skip"}
    for more in ({}, {"ragged": "buffer"} if shape is None else {"rand_mirror": True}):
        with drawn(path, **given, **more) as provider:
            labels = np.concatenate([batch.label[0] for batch in provider])
            assert {number for number, _ in provider.skipped} == {3, 7, 8}
        assert labels.tolist() == [0, 1, 2, 4, 4, 5, 6, 9, 9, 9, 10, 11]
    with drawn(path, **given) as provider:
        for batch in provider:
            for image, label in zip(batch.data[0], batch.label[0], strict=True):
                if shape is None:
                    wanted = image_of(int(label)).transpose(2, 0, 1)
                    np.testing.assert_array_equal(image, wanted)
    with (
        drawn(path, **{**given, "on_error": "raise"}) as provider,
        pytest.raises(recordio.RecordIOError, match="record 3"),
    ):
        list(provider)


def test_tensors_and_dlpack(pack):
    import torch

    with drawn(pack, data_shape=None, device="cpu") as provider:
        batch = next(iter(provider))
        assert all(isinstance(image, torch.Tensor) for image in batch.data[0])
        assert "data=(4,)" in repr(batch) and "(4,)" in str(batch)
    with drawn(pack, device="cpu") as provider:
        for batch in provider:
            assert tuple(batch.data[0].shape[2:]) == batch.bucket_key
            assert torch.from_dlpack(batch.data[0]).data_ptr() == batch.data[0].data_ptr()


def test_pictures_of_batches(pack):
    with drawn(pack) as provider:
        assert provider.show(columns=2).size[0] > 100
    with drawn(pack, data_shape=None, mean_r=100.0, std_r=3.0) as provider:
        sheet = provider.show(columns=2)
        batch = next(iter(provider))
        assert sheet.size == provider.show(batch, columns=2).size
        assert show(batch, columns=2).size[0] == sheet.size[0]
        assert "<img" in batch._repr_html_()
    with (
        drawn(pack, data_shape=None, ragged="buffer") as provider,
        pytest.raises(ValueError, match="holds no images"),
    ):
        provider.show()


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"mean_img": "mean.bin"}, "mean_img needs a single shape"),
        ({"views": [{}, {"pad": 2}]}, "views needs a single shape"),
        ({"data_shape": None, "rand_crop": True}, "rand_crop needs one: drop rand_crop"),
        ({"data_shape": None, "pad": 3}, "pad needs one"),
        ({"data_shape": None, "auto_augment": "randaugment"}, "auto_augment needs one"),
        ({"data_shape": None, "random_erasing": 0.5}, "random_erasing needs one"),
        ({"data_shape": None, "orient": False}, "drop orient=False"),
        ({"data_shape": None, "max_batch_bytes": 1000}, "max_batch_bytes=1,000 allows less"),
        ({"data_shape": None, "fields": {"mask": Mask()}}, "drop fields"),
        ({"ragged": "buffer"}, "needs data_shape=None"),
        ({"data_shape": (3, 8, 8), "ragged": "buffer"}, "needs data_shape=None"),
        ({"data_shape": [(3, 8, 8), (1, 8, 8)]}, "the same number of channels"),
        ({"data_shape": [(3, 8, 8), (3, 8)]}, "data_shape"),
        ({"data_shape": [(3, 8, 8), (3, 0, 8)]}, "data_shape"),
        ({"data_shape": (2, None, None)}, "1, 3 or 4 channels"),
    ],
)
def test_options_that_need_one_shape_are_refused(pack, more, text):
    with pytest.raises(ValueError, match=text):
        drawn(pack, **more)


@pytest.mark.parametrize("shape", [SHAPES, None])
def test_samples_by_number_need_one_shape(pack, shape):
    with drawn(pack, data_shape=shape) as provider:
        with pytest.raises(ValueError, match="a single data_shape"):
            next(provider.iterator(batch_size=2))


def test_a_state_belongs_to_its_shapes(pack):
    with drawn(pack) as provider:
        state = provider.state_dict()
    with (
        drawn(pack, data_shape=[*SHAPES[::-1]]) as other,
        pytest.raises(ValueError, match="shapes"),
    ):
        other.load_state_dict(state)
