"""Batches of images in patches: what is in them, how they are drawn, and how a run goes on."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordio
from iterators import ImageDetRecordIter, ImageRecordIter
from iterators.core.order.tokens import naflex_size

COUNT = 29
SIZES = {5: (1, 70), 6: (70, 1), 7: (1, 1)}


def image_of(number):
    rng = np.random.default_rng(number)
    height, width = SIZES.get(number, tuple(rng.integers(20, 90, 2).tolist()))
    return cv2.resize(rng.integers(0, 256, (5, 4, 3), dtype=np.uint8), (width, height))


def written(path, change):
    with recordio.RecordWriter(path, path.with_suffix(".idx")) as writer:
        for number in range(COUNT):
            content = change(number, cv2.imencode(".png", image_of(number))[1].tobytes())
            writer.write(recordio.pack(recordio.IRHeader(0, float(number), number, 0), content))
    return str(path)


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
    given = {"shuffle": False, "on_error": "skip"}
    with in_patches(path, **given) as provider, in_patches(path, **given) as other:
        for batch in provider:
            for patches, coord, valid, label in zip(*batch.data, batch.label[0], strict=True):
                assert label not in (3, 9, 10)
                height, width = image_of(int(label)).shape[:2]
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
        ({"random_resized_crop": True, "min_random_area": 0.3}, "random_resized_crop needs one"),
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
