"""Batches of images in patches: what is in them, how they are drawn, and how a run goes on."""

import math

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import recordio
from iterators import ImageDetRecordIter, ImageRecordIter
from iterators.core.order.tokens import naflex_size
from iterators.core.random import philox
from iterators.fields import Crop, Mask, Size
from iterators.images.view_plans import augment_key
from iterators.testing import encode, write_pack

COUNT = 29
SIZES = {5: (1, 70), 6: (70, 1), 7: (1, 1)}


def image_of(number):
    rng = np.random.default_rng(number)
    height, width = SIZES.get(number, tuple(rng.integers(20, 90, 2).tolist()))
    return cv2.resize(rng.integers(0, 256, (5, 4, 3), dtype=np.uint8), (width, height))


def written(path, change):
    contents = [change(number, encode(image_of(number))) for number in range(COUNT)]
    return str(write_pack(path, contents))


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    return written(tmp_path_factory.mktemp("patches") / "train.rec", lambda number, data: data)


def in_patches(path, **more):
    given = {
        "batch_size": 6,
        "patches": 4,
        "sequence_lengths": (16, 30, 64),
        "shuffle": True,
        "seed": 5,
        "resample": "pillow",
        "interpolation": "bicubic",
        **more,
    }
    return ImageRecordIter(path_imgrec=path, **given)


def seen(provider):
    return [
        [*(np.array(one) for one in batch.data), np.array(batch.label[0]), np.array(batch.pad)]
        for batch in provider
    ]


def assert_same(found, wanted):
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        for array, same in zip(one, other, strict=True):
            np.testing.assert_array_equal(array, same)


def cut(image, side):
    """The patches of an image, as timm's `patchify_image` cuts them."""
    height, width, channels = image.shape
    parts = image.reshape(height // side, side, width // side, side, channels)
    return parts.swapaxes(1, 2).reshape(-1, side * side * channels)


@settings(max_examples=12, deadline=None)
@given(
    side=st.sampled_from([1, 3, 4, 16]),
    lengths=st.lists(st.integers(70, 200), min_size=1, max_size=3, unique=True),
    channels=st.sampled_from([1, 3]),
    dtype=st.sampled_from(["uint8", "float32", "float16"]),
    more=st.sampled_from([{}, {"mirror": True}, {"flip_p": 1.0}]),
)
def test_patches_are_those_of_the_resized_image(pack, side, lengths, channels, dtype, more):
    given = {"resample": "pillow", "interpolation": "bicubic", "dtype": dtype, **more}
    shape = channels, None, None
    with in_patches(
        pack, patches=side, sequence_lengths=lengths, data_shape=shape, **given
    ) as provider:
        batch = next(iter(provider))
    length = batch["patches"].shape[1]
    assert length in lengths and batch["patches"].dtype == dtype
    for patches, coord, valid, number in zip(*batch.data, batch.index.tolist(), strict=True):
        stored = image_of(number).shape
        height, width = naflex_size(stored[1], stored[0], side, length)
        count = height // side * (width // side)
        assert valid[:count].all() and not valid[count:].any() and count <= length
        assert not patches[count:].any() and not coord[count:].any()
        rows, columns = np.divmod(np.arange(count), width // side)
        np.testing.assert_array_equal(coord[:count], np.stack([rows, columns], 1))
        fixed = ImageRecordIter(
            path_imgrec=pack,
            batch_size=COUNT,
            data_shape=(channels, height, width),
            resize=(height, width),
            layout="NHWC",
            **given,
        )
        with fixed:
            (whole,) = fixed
        np.testing.assert_array_equal(patches[:count], cut(whole.data[0][number], side))


# -- random crops ----------------------------------------------------------------------------------

#: Numbers of what is drawn: the tries of a crop, and its position.
DRAW_AREA, DRAW_CROP = 16, 1
CROPS = {"random_resized_crop": True, "min_random_area": 0.2, "log_aspect_ratio": True}
CROPS |= {"min_aspect_ratio": 0.8, "max_aspect_ratio": 1.25}


def timms_crop(width, height, area, ratio, epoch, record, seed=5):
    """The crop of timm's RandomResizedCropToSequence, with our random numbers in its place."""

    def words(purpose):
        return [word / 2**32 for word in philox(augment_key(seed), (purpose, epoch, record, 0))]

    def between(unit, low, high):
        return low + unit * (high - low)

    own = width / height
    for trial in range(10):
        first, second, *_ = words(DRAW_AREA + trial)
        wanted = width * height * between(first, *area)
        aspect = own * math.exp(between(second, math.log(ratio[0]), math.log(ratio[1])))
        high, wide = round(math.sqrt(wanted / aspect)), round(math.sqrt(wanted * aspect))
        if 0 < wide <= width and 0 < high <= height:
            x, y, *_ = words(DRAW_CROP)
            return int(x * (width - wide + 1)), int(y * (height - high + 1)), wide, high
    wide, high = width, height
    if own < own * ratio[0]:
        high = min(round(wide / (own * ratio[0])), height)
    elif own > own * ratio[1]:
        wide = min(round(high * own * ratio[1]), width)
    high, wide = max(1, high), max(1, wide)
    return (width - wide) // 2, (height - high) // 2, wide, high


@pytest.mark.parametrize(
    "more", [{}, {"mirror": True}, {"min_aspect_ratio": 1.5, "max_aspect_ratio": 2.0}]
)
def test_random_crops_are_timms_for_the_same_draws(pack, more):
    given = {**CROPS, "dtype": "uint8", "fields": {"crop": Crop(), "size": Size()}, **more}
    ratio = given["min_aspect_ratio"], given["max_aspect_ratio"]
    epochs = []
    with in_patches(pack, **given) as provider:
        for epoch in range(3):
            seen_here = {}
            for batch in provider:
                length = batch["patches"].shape[1]
                rows = zip(*batch.data, batch.index.tolist(), strict=True)
                for patches, coord, valid, crop, size, number in rows:
                    height, width = image_of(number).shape[:2]
                    assert size.tolist() == [width, height]
                    x, y, wide, high = timms_crop(width, height, (0.2, 1.0), ratio, epoch, number)
                    np.testing.assert_allclose(crop, [x, y, wide, high], atol=1e-3)
                    down, across = naflex_size(wide, high, 4, length)
                    image = Image.fromarray(image_of(number)).crop((x, y, x + wide, y + high))
                    pixels = np.array(image.resize((across, down), Image.Resampling.BICUBIC))
                    pixels = pixels[:, ::-1] if more.get("mirror") else pixels
                    count = down * across // 16
                    assert valid.sum() == count and valid[:count].all()
                    np.testing.assert_array_equal(patches[:count], cut(pixels, 4))
                    assert not patches[count:].any() and not coord[count:].any()
                    seen_here[number] = x, y, wide, high
            epochs.append(seen_here)
    assert all(len(one) == COUNT for one in epochs) and epochs[0] != epochs[1] != epochs[2]


def test_ratios_without_a_logarithm_are_relative_too(pack):
    given = {**CROPS, "log_aspect_ratio": False, "min_random_area": 0.5}
    found = []
    with in_patches(pack, fields={"crop": Crop(), "size": Size()}, **given) as provider:
        for _ in range(8):
            for batch in provider:
                ratios = batch["crop"][:, 2:] / batch["size"]
                found += [
                    (wide / high, wide * high)
                    for (wide, high), size in zip(ratios.tolist(), batch["size"], strict=True)
                    if size.min() > 20
                ]
    ratios, areas = np.array(found).T
    assert 0.75 < ratios.min() < 0.85 and 1.18 < ratios.max() < 1.33
    assert 0.45 < areas.min() < 0.6 and areas.max() <= 1
    assert 0.3 < (ratios > 1).mean() < 0.7


def test_runs_with_random_crops_go_on_and_depend_on_no_thread(pack):
    given = {**CROPS, "fields": {"crop": Crop()}, "rand_mirror": True}
    with in_patches(pack, preprocess_threads=1, **given) as one:
        wanted = [*seen(one), *seen(one)]
    with in_patches(pack, preprocess_threads=5, **given) as many:
        assert_same([*seen(many), *seen(many)], wanted)
    with in_patches(pack, **given) as first:
        for _ in range(3):
            first.next()
        state = first.state_dict()
    with in_patches(pack, **given) as second:
        second.load_state_dict(state)
        assert_same([*seen(second), *seen(second)], wanted[3:])


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_change_nothing(pack, threads):
    with in_patches(pack, preprocess_threads=1, prefetch_buffer=1) as one:
        wanted = seen(one)
    with in_patches(pack, preprocess_threads=threads, prefetch_buffer=4) as many:
        assert_same(seen(many), wanted)


def test_a_batch_has_as_many_images_as_its_budget_allows(pack):
    with in_patches(pack, batch_patches=100) as provider:
        assert provider.provide_data[0].shape == (1, 64, 48)
        for batch in provider:
            images, length, _ = batch["patches"].shape
            assert images == {16: 6, 30: 3, 64: 1}[length]
            assert batch.provide_data[0].shape == batch["patches"].shape
            assert len(batch.label[0]) == len(batch.index) == len(batch.source) == images


@pytest.mark.parametrize("round_batch", [True, False])
def test_every_image_comes_once_and_padding_is_counted(pack, round_batch):
    with in_patches(pack, round_batch=round_batch) as provider:
        for _ in range(3):
            labels, batches, expected = [], 0, 0
            for batch in provider:
                expected = len(provider)
                labels += batch.label[0][: batch.count_samples()].tolist()
                batches += 1
                if not round_batch and batch.pad:
                    assert not batch["patch_valid"][-batch.pad :].any()
                    assert not batch["patches"][-batch.pad :].any()
            assert sorted(labels) == list(range(COUNT)) and batches == expected


def test_a_run_goes_on_at_every_batch(pack):
    with in_patches(pack, rand_mirror=True) as provider:
        wanted = [batch for _ in range(2) for batch in seen(provider)]
    for done in range(len(wanted) + 1):
        with in_patches(pack, rand_mirror=True) as first:
            taken = 0
            while taken < done:
                for _ in first:
                    taken += 1
                    if taken == done:
                        break
            state = first.state_dict()
        with in_patches(pack, rand_mirror=True) as second:
            second.load_state_dict(state)
            rest = [batch for _ in range(state["epoch"], 2) for batch in seen(second)]
        assert_same(rest, wanted[done:])


def test_parts_have_the_same_lengths_and_go_on_with_another_number(pack):
    parts = [in_patches(pack, num_parts=3, part_index=part) for part in range(3)]
    found, labels = [], []
    for _ in range(2):
        batches = [part.next() for part in parts]
        found.append({batch["patches"].shape for batch in batches})
        labels += [label for batch in batches for label in batch.label[0].tolist()]
    assert all(len(shapes) == 1 for shapes in found)
    states = [part.state_dict() for part in parts]
    for part in parts:
        part.close()
    with in_patches(pack) as one:
        one.load_state_dict(states[1])
        for batch in one:
            labels += batch.label[0][: batch.count_samples()].tolist()
    assert sorted(labels) == list(range(COUNT))


def test_a_damaged_image_is_replaced_in_its_slot(tmp_path):
    def damaged(number, data):
        return {3: data[:-40], 9: b"nothing", 10: b""}.get(number, data)

    path = written(tmp_path / "bad.rec", damaged)
    given = {"shuffle": False, "on_error": "skip", "fields": {"size": Size()}}
    with in_patches(path, **given) as provider, in_patches(path, **given) as other:
        for batch in provider:
            rows = zip(*batch.data, batch.label[0], strict=True)
            for patches, coord, valid, stored, label in rows:
                assert label not in (3, 9, 10)
                height, width = image_of(int(label)).shape[:2]
                assert stored.tolist() == [width, height]
                size = naflex_size(width, height, 4, len(valid))
                assert valid.sum() == size[0] * size[1] // 16
                assert (coord[valid].max(0) + 1).tolist() == [size[0] // 4, size[1] // 4]
                assert not patches[~valid].any()
        assert {number for number, _ in provider.skipped} == {3, 9, 10}
        list(other)
    with (
        in_patches(path, shuffle=False) as provider,
        pytest.raises(recordio.RecordIOError, match="record 3"),
    ):
        list(provider)


def test_tensors_bfloat16_and_pictures(pack):
    import torch

    with in_patches(pack, device="cpu", dtype="bfloat16", mean_r=100.0, std_r=50.0) as provider:
        batch = next(iter(provider))
        assert batch["patches"].dtype == torch.bfloat16 and batch["patch_valid"].dtype == torch.bool
        assert batch["patch_coord"].dtype == torch.int64
        assert torch.from_dlpack(batch["patches"]).data_ptr() == batch["patches"].data_ptr()
    with in_patches(pack, mean_r=100.0, std_r=50.0) as provider:
        assert provider.show(columns=3).size[0] > 100
        assert provider.show(next(iter(provider)), columns=3).size[0] > 100


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"sequence_lengths": ()}, "needs sequence_lengths"),
        ({"sequence_lengths": (16, 16)}, "twice"),
        ({"sequence_lengths": (0,)}, "sequence_lengths"),
        ({"patches": 0}, "patches"),
        ({"patches": None, "data_shape": (3, 8, 8)}, "need patches"),
        ({"data_shape": (3, 8, 8)}, "give data_shape=None"),
        ({"data_shape": [(3, 8, 8), (3, 9, 9)]}, "give data_shape=None"),
        ({"resize": 30}, "drop resize"),
        ({"rand_crop": True}, "rand_crop needs one"),
        ({"fields": {"mask": Mask()}}, "fields cannot follow"),
        ({"random_erasing": 0.5}, "random_erasing needs one"),
        ({"layout": "NHWC"}, "drop layout"),
        ({"num_parts": 2, "shuffle": False}, "give shuffle=True"),
        ({"ragged": "buffer"}, "drop ragged"),
        ({"weights": [1.0] * COUNT}, "drop weights"),
    ],
)
def test_options_that_do_not_go_with_patches_are_refused(pack, more, text):
    with pytest.raises(ValueError, match=text):
        in_patches(pack, **more)


def test_boxes_are_not_cut_into_patches(pack):
    with pytest.raises(ValueError, match="ImageRecordIter"):
        ImageDetRecordIter(path_imgrec=pack, batch_size=2, data_shape=None, patches=4)
