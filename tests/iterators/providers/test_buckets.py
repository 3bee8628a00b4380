"""`buckets=`: batches of one shape each, of images resized to it, for any number of parts."""

from collections import Counter

import numpy as np
import pytest

from iterators import Buckets, ImageRecordIter, MixBatches, Pack
from iterators.fields import Crop, Size
from iterators.testing import check_provider, encode_jpeg, noise, write_pack
from recordio.errors import RecordIOError

SHAPES = [(16, 32), (24, 24), (32, 16)]
COUNT = 61


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(0)
    sides = rng.integers(20, 70, (COUNT, 2)).tolist()
    images = [encode_jpeg(noise(height, width, i)) for i, (height, width) in enumerate(sides)]
    return str(write_pack(tmp_path_factory.mktemp("packs") / "a.rec", images, index=True))


@pytest.fixture
def make(path):
    def make(parts=1, part=0, **keywords):
        usual = {"batch_size": 4, "buckets": SHAPES, "shuffle": True, "rand_crop": True}
        usual |= {"path_imgrec": path, "num_parts": parts, "part_index": part}
        return ImageRecordIter(**usual | keywords)

    return make


def epoch(provider, steps=None):
    """Images of the epoch by their ids, and shapes of its batches."""
    seen, shapes = {}, []
    for number, batch in enumerate(provider):
        count = batch.count_samples()
        for index, image in zip(batch.index[:count].tolist(), batch.data[0], strict=False):
            assert index not in seen
            seen[index] = image.copy()
        assert batch.bucket_key == batch.data[0].shape[2:] == batch.provide_data[0].shape[2:]
        assert len(batch.data[0]) == len(batch.label[0]) == len(batch.index)
        shapes.append(batch.bucket_key)
        if number + 1 == steps:
            break
    return seen, shapes


def test_a_provider_as_others_are(make):
    variants = [{"preprocess_threads": 1}, {"prefetch_buffer": 1}, {"preprocess_threads": 9}]
    check_provider(make, variants=variants)


def test_every_image_comes_once_in_the_shape_that_is_nearest(make, path):
    with make() as provider:
        assert provider.num_samples == COUNT
        seen, shapes = epoch(provider)
        assert sorted(seen) == list(range(COUNT)) and len(shapes) == len(provider)
        assert set(shapes) == set(SHAPES) and shapes != sorted(shapes)
        assert provider.stats()["filled"] == 4 * len(shapes) - COUNT
        second, again = epoch(provider)
        assert sorted(second) == sorted(seen) and list(second) != list(seen) and again != shapes
        assert provider.provide_data[0].shape == (4, 3, 32, 32)


def test_an_image_is_that_of_a_provider_of_one_shape(make, path):
    with make() as provider:
        seen, _ = epoch(provider)
    for height, width in SHAPES:
        keywords = {"data_shape": (3, height, width), "resize": "cover", "rand_crop": True}
        with ImageRecordIter(path_imgrec=path, batch_size=COUNT, **keywords) as provider:
            (batch,) = provider
        for index, image in seen.items():
            if image.shape[1:] == (height, width):
                assert np.array_equal(image, batch.data[0][index])


@pytest.mark.parametrize("keywords", [{}, {"shuffle": False}, {"round_batch": False}])
@pytest.mark.parametrize(("before", "after", "steps"), [(1, 3, 2), (3, 2, 2), (7, 1, 1), (2, 7, 0)])
def test_any_number_of_parts_goes_on(make, before, after, steps, keywords):
    seen, states = {}, []
    for part in range(before):
        with make(before, part, **keywords) as provider:
            if steps:
                some, _ = epoch(provider, steps)
                assert not some.keys() & seen.keys()
                seen |= some
            states.append(provider.state_dict())
    assert all(state == states[0] for state in states)
    shapes = []
    for part in range(after):
        with make(after, part, **keywords) as provider:
            provider.load_state_dict(states[-1])
            some, mine = epoch(provider)
            assert not some.keys() & seen.keys()
            seen |= some
            shapes.append(mine)
    assert len(seen) == COUNT and all(mine == shapes[0] for mine in shapes)
    with make(**keywords) as provider:  # the same pixels as without parts
        whole, _ = epoch(provider)
    assert all(np.array_equal(whole[index], image) for index, image in seen.items())


def test_a_state_of_other_buckets_is_refused(make):
    with make() as provider, make(buckets=SHAPES[:2]) as other:
        with pytest.raises(ValueError, match="order="):
            other.load_state_dict(provider.state_dict())
        state = provider.state_dict()
        del state["together"]
        with pytest.raises(ValueError, match="together"):
            provider.load_state_dict(state)


def test_batches_by_pixels_and_numbers_of_their_own(make):
    for buckets, sizes in (
        (Buckets(SHAPES, batch_pixels=1100), {(16, 32): 2, (24, 24): 1, (32, 16): 2}),
        (Buckets(SHAPES, batch_size=[1, 3, 4]), {(16, 32): 1, (24, 24): 3, (32, 16): 4}),
    ):
        with make(buckets=buckets) as provider:
            seen = Counter()
            for batch in provider:
                assert len(batch.data[0]) == sizes[batch.bucket_key]
                seen.update(batch.index[: batch.count_samples()].tolist())
            assert seen == Counter(range(COUNT))


def test_what_is_left_is_carried_over(make):
    with make(buckets=Buckets(SHAPES, carry_over=True)) as provider:
        delivered = 0
        for number in range(5):
            seen = Counter()
            for batch in provider:
                assert batch.pad == 0
                seen.update(batch.index.tolist())
            delivered += seen.total()
            provider.set_epoch(number)
            assert delivered + provider.stats()["carried_over"] == COUNT * (number + 1)
            provider.set_epoch(number + 1)
        assert provider.stats()["filled"] == 0


def test_contain(make):
    with make(resize="contain", rand_crop=False, fill_value=0, dtype="uint8") as provider:
        borders = 0
        for batch in provider:
            borders += int(
                (batch.data[0][:, :, 0] == 0).all() or (batch.data[0][..., 0] == 0).all()
            )
        assert provider.stats()["samples"] == COUNT


def test_the_crop_and_the_original_size_are_fields(make):
    with make(fields={"crop": Crop(), "size": Size()}) as provider:
        for batch in provider:
            height, width = batch.bucket_key
            for (_, _, across, down), sides in zip(batch["crop"], batch["size"], strict=True):
                assert abs(across / down - width / height) < 0.2 * width / height
                assert np.isclose([across, down], sides, atol=1e-3).any()


def test_several_packs(make, path):
    packs = [Pack(path), Pack(path)]
    with make(path_imgrec=packs) as provider:
        seen = Counter()
        for batch in provider:
            count = batch.count_samples()
            seen.update(
                zip(batch.source[:count].tolist(), batch.index[:count].tolist(), strict=True)
            )
        assert len(seen) == 2 * COUNT and set(seen.values()) == {1}


@pytest.fixture
def damaged(tmp_path):
    images = [encode_jpeg(noise(40, 60, i)) for i in range(12)]
    images += [encode_jpeg(noise(60, 40, i)) for i in range(6)]
    for bad in (3, 4, 14):
        images[bad] = b"no image"
    return str(write_pack(tmp_path / "b.rec", images))


def test_bad_records(make, damaged):
    with make(path_imgrec=damaged) as provider, pytest.raises(RecordIOError, match="record"):
        for _ in provider:
            pass
    with make(path_imgrec=damaged, on_error="skip") as provider:
        for _ in range(2):
            found = Counter()
            for batch in provider:
                found.update(batch.index.tolist())
            assert set(found) == set(range(18)) - {3, 4, 14}
        assert {number for number, _ in provider.skipped} == {3, 4, 14}


def test_a_bad_record_is_replaced_alike_after_resuming(make, damaged):
    def ids(provider):
        return [batch.index.tolist() for batch in provider]

    with make(path_imgrec=damaged, on_error="skip") as provider:
        whole = ids(provider)
    for stop in range(len(whole)):
        with make(path_imgrec=damaged, on_error="skip") as provider:
            done = [batch.index.tolist() for _, batch in zip(range(stop), provider, strict=False)]
            state = provider.state_dict()
        with make(path_imgrec=damaged, on_error="skip") as provider:
            provider.load_state_dict(state)
            assert done + ids(provider) == whole


def test_images_of_a_batch_are_mixed(make):
    with MixBatches(make(), classes=COUNT, mixup=1.0) as mixed:
        shapes = {batch.data[0].shape[2:] for batch in mixed}
    assert shapes == set(SHAPES)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"data_shape": (3, 8, 8)}, "drop data_shape"),
        ({"even": True}, "drop even"),
        ({"weights": [1.0] * COUNT, "shuffle": False}, "order of their own"),
        ({"epoch_size": 7}, "order of their own"),
        ({"shuffle_chunk_size": 1}, "order of their own"),
        ({"images_per_class": 2}, "order of their own"),
        ({"orient": False}, "drop orient=False"),
        ({"views": [{}, {}]}, "single shape"),
        ({"buckets": []}, "expected a list"),
        ({"buckets": Buckets(SHAPES, batch_size=9)}, "batch_size=4 is the most"),
    ],
)
def test_what_does_not_go_with_buckets_is_refused(make, keywords, message):
    with pytest.raises(ValueError, match=message):
        make(**keywords)


def test_channels(make):
    with make(data_shape=(1, None, None)) as provider:
        assert next(iter(provider)).data[0].shape[1] == 1


def test_samples_of_ones_own_choice_have_one_shape(make):
    with make() as provider, pytest.raises(ValueError, match="one shape"):
        next(iter(provider.iterator(mode="sequential", batch_size=2)))
