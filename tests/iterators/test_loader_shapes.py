"""`ImageLoader` with batches of many shapes: those of the provider, in the loader's own order."""

import json
import weakref
from collections import Counter

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import BatchSampler, DistributedSampler, SequentialSampler, Subset

from iterators import Buckets, ImageRecordIter
from iterators.fields import Crop
from iterators.testing import encode_jpeg, noise, write_pack
from iterators.torch import ImageLoader

COUNT = 43
SHAPES = [(16, 32), (24, 24), (32, 16)]
KINDS = {
    "buckets": {"buckets": SHAPES, "rand_crop": True},
    "buckets of pixels": {"buckets": Buckets(SHAPES, batch_pixels=1100)},
    "buckets apart": {"buckets": Buckets(SHAPES, same_shape=False)},
    "buckets carried over": {"buckets": Buckets(SHAPES, carry_over=True)},
    "patches": {"patches": 4, "sequence_lengths": (16, 30, 49)},
    "drawn": {"data_shape": [(3, 16, 24), (3, 20, 20), (3, 24, 16)], "rand_crop": True},
    "images": {"data_shape": None},
    "buffer": {"data_shape": None, "ragged": "buffer"},
}
COMMON = {"dtype": "uint8", "rand_mirror": True, "seed": 7}


def sides():
    return np.random.default_rng(0).integers(20, 70, (COUNT, 2)).tolist()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    images = [encode_jpeg(noise(height, width, i)) for i, (height, width) in enumerate(sides())]
    return str(write_pack(tmp_path_factory.mktemp("packs") / "a.rec", images, index=True))


@pytest.fixture
def made(path):
    def made(kind, rank=0, ranks=1, **more):
        given = {"shuffle": True, "rank": rank, "world_size": ranks, **COMMON, **KINDS[kind]}
        return ImageLoader(more.pop("dataset", path), 4, **given | more)

    return made


def parts_of(batch):
    """The tensors of a batch, by name or number."""
    images, labels = batch
    if isinstance(images, dict):
        return {**images, "label": labels}
    images = images if isinstance(images, list) else [images]
    return {**dict(enumerate(images)), "label": labels}


def same(found, wanted):
    found, wanted = list(found), list(wanted)
    assert len(found) == len(wanted)
    for one, other in zip(map(parts_of, found), map(parts_of, wanted), strict=True):
        assert list(one) == list(other)
        for name, tensor in one.items():
            assert isinstance(tensor, torch.Tensor) and tensor.dtype == other[name].dtype
            assert torch.equal(tensor, other[name])


def of_provider(path, kind, **more):
    """The batches of a provider as those of a loader."""
    given = {"batch_size": 4, "shuffle": True, "round_batch": False, "label_dtype": "int64"}
    with ImageRecordIter(
        path_imgrec=path, device="cpu", **given | COMMON | KINDS[kind] | more
    ) as it:
        for batch in it:
            count, (labels,) = batch.count_samples(), batch.label
            images = {
                desc[0]: one[:count]
                for desc, one in zip(batch.provide_data, batch.data, strict=True)
            }
            if kind == "buffer":
                images = dict(zip(("data", "offsets", "sizes"), batch.data, strict=True))
            elif kind != "patches":
                images = list(batch.data[0]) if kind == "images" else batch.data[0][:count]
            yield images, labels[:count]


def labels_of(batches):
    return [label for _, labels in batches for label in labels.tolist()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workers", [0, 1, 5])
def test_the_batches_are_those_of_the_provider(path, made, kind, workers):
    loader = made(kind, num_workers=workers)
    batches = list(loader)
    same(batches, of_provider(path, kind))
    assert len(batches) == len(made(kind))
    if kind != "buckets carried over":
        assert sorted(labels_of(batches)) == list(range(COUNT))
    same(loader, of_provider(path, kind, epoch=1))
    same(made(kind, shuffle=False), of_provider(path, kind, shuffle=False))


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_goes_on_after_every_batch(made, kind):
    loader = made(kind)
    wanted, states = [], [json.dumps(loader.state_dict())]
    for _ in range(2):
        for batch in loader:
            wanted.append(batch)
            states.append(json.dumps(loader.state_dict()))
    first = len(made(kind))
    for done in {0, 1, first - 1, first, first + 2, len(wanted) - 1}:
        again = made(kind, num_workers=done % 3)
        again.load_state_dict(json.loads(states[done]))
        assert again.state_dict() == json.loads(states[done])
        rest = [batch for _ in range(again.epoch, 2) for batch in again]
        same(rest, wanted[done:])


@pytest.mark.parametrize("ranks", [2, 3, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_ranks_take_as_many_steps_of_one_shape(made, kind, ranks):
    loaders = [made(kind, rank, ranks) for rank in range(ranks)]
    epochs = [list(loader) for loader in loaders]
    assert {len(batches) for batches in epochs} == {len(loader) for loader in map(fresh, loaders)}
    seen = Counter(label for batches in epochs for label in labels_of(batches))
    assert kind == "buckets carried over" or set(seen) == set(range(COUNT))
    assert max(seen.values(), default=0) <= 2
    for step in zip(*epochs, strict=True):
        assert all(len(labels) for _, labels in step)
        if kind not in ("images", "buffer", "buckets apart"):
            assert len({len(labels) for _, labels in step}) == 1
            shapes = {next(iter(parts_of(batch).values())).shape for batch in step}
            assert len(shapes) == 1
    for rank in range(ranks):
        expected = list(made(kind, rank, ranks).sampler)
        assert labels_of(epochs[rank]) == expected
        assert len(made(kind, rank, ranks).sampler) == len(expected)


def fresh(loader):
    loader.set_epoch(0)
    return loader


@pytest.mark.parametrize("kind", ["buckets", "patches", "drawn", "images"])
@pytest.mark.parametrize(("before", "after"), [(3, 1), (1, 4), (4, 3)])
def test_other_numbers_of_ranks_go_on(made, kind, before, after):
    found, states = [], []
    for rank in range(before):
        loader = made(kind, rank, before)
        batches = iter(loader)
        found += labels_of([next(batches), next(batches)])
        states.append(loader.state_dict())
    assert all(state == states[0] for state in states)
    twice = len(found) - len(set(found))
    for rank in range(after):
        loader = made(kind, rank, after)
        loader.load_state_dict(states[-1])
        found += labels_of(loader)
    assert set(found) == set(range(COUNT)) and twice <= before
    assert len(found) - COUNT <= before + after * len(SHAPES)


@pytest.mark.parametrize("kind", ["buckets", "patches", "drawn", "images", "buffer"])
def test_other_data_sets_have_shapes_too(path, made, tmp_path, kind):
    files = []
    with ImageRecordIter(
        path_imgrec=path, batch_size=1, data_shape=None, dtype="uint8"
    ) as provider:
        for number, batch in enumerate(provider):
            files.append((str(tmp_path / f"{number}.png"), number))
            Image.fromarray(batch.data[0][0].transpose(1, 2, 0)).save(files[-1][0])
    whole = {"scaled_decode": False}
    same(made(kind, dataset=files, **whole), made(kind, **whole))
    rows = [40, 3, 3, 17, 22, 9, 30]
    found = made(kind, dataset=Subset(files, rows))
    assert Counter(labels_of(found)) == Counter(rows)
    for images, labels in made(kind, dataset=Subset(files, rows), shuffle=False):
        for number, image in zip(labels.tolist(), rows_of(images), strict=True):
            if kind == "images":
                assert image.shape == (3, *sides()[number])
    state = found.state_dict()
    with pytest.raises(ValueError, match="indices="):
        made(kind, dataset=Subset(files, rows[::-1])).load_state_dict(state)


def rows_of(images):
    if isinstance(images, dict):
        return list(images["sizes"] if "sizes" in images else images["patches"])
    return list(images)


class CIFAR10(torch.utils.data.Dataset):
    """Torchvision's, as far as it is read."""

    __module__ = "torchvision.datasets.cifar"

    def __init__(self, shape):
        self.data = np.random.default_rng(3).integers(0, 256, shape, np.uint8)
        self.targets = list(range(shape[0]))

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        raise AssertionError("the images are made by threads")


@pytest.mark.parametrize("shape", [(9, 30, 20, 3), (9, 30, 20)])
def test_arrays(shape):
    channels = 3 if len(shape) == 4 else 1
    for images, _ in ImageLoader(CIFAR10(shape), 4, buckets=SHAPES):
        assert images.shape[1:] == (channels, 32, 16)
    for images, _ in ImageLoader(CIFAR10(shape), 4, patches=5, sequence_lengths=24):
        assert images["patches"].shape[1:] == (24, 25 * channels)
        assert images["patch_valid"].sum(1).tolist() == [24] * len(images["patches"])
    for images, labels in ImageLoader(CIFAR10(shape), 4, data_shape=None, dtype="uint8"):
        wanted = (
            CIFAR10(shape).data.reshape(9, 30, 20, channels).transpose(0, 3, 1, 2)[labels.numpy()]
        )
        assert all(np.array_equal(one, other) for one, other in zip(images, wanted, strict=True))


# -- who makes the batches ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["drawn", "images", "buffer"])
def test_samplers_say_which_images_come(made, kind):
    sampler = DistributedSampler(range(COUNT), 2, 1, seed=4)
    loader = made(kind, sampler=sampler, shuffle=False)
    batches = list(loader)
    assert labels_of(batches) == list(sampler)
    for batch, (images, labels) in zip(range(9), batches, strict=False):
        assert len(labels) == (4 if batch < len(batches) - 1 else 2)
        if kind == "images":
            assert [one.shape[1:] for one in images] == [tuple(sides()[i]) for i in labels]
    middle = made(kind, sampler=DistributedSampler(range(COUNT), 2, 1, seed=4), shuffle=False)
    next(loop := iter(middle))
    again = made(kind, sampler=DistributedSampler(range(COUNT), 2, 1, seed=4), shuffle=False)
    again.load_state_dict(middle.state_dict())
    same(list(again), list(loop))
    own = [[1, 2], [3], [4, 5, 6, 7]]
    whole = ImageLoader(made(kind).dataset, batch_sampler=own, **COMMON | KINDS[kind])
    assert [labels.tolist() for _, labels in whole] == own
    other = made(kind, shuffle=False, sampler=SequentialSampler(range(COUNT)))
    if kind == "drawn":  # all ranks draw one shape for a step
        assert [one.shape[1:] for one, _ in other][:5] == [one.shape[1:] for one, _ in batches][:5]


@pytest.mark.parametrize(
    ("kind", "more", "text"),
    [
        ("buckets", {"sampler": [1, 2], "shuffle": False}, "buckets choose .* drop one of both"),
        ("patches", {"sampler": [1, 2], "shuffle": False}, "patches choose .* sampler: drop one"),
        ("buckets", {"drop_last": True}, "carry_over=True"),
        ("buffer", {"collate_fn": list}, "puts together: drop one"),
        ("buckets", {"data_shape": (3, 8, 8)}, "drop data_shape"),
        ("patches", {"sequence_lengths": ()}, "needs sequence_lengths"),
    ],
)
def test_what_contradicts_shapes_is_refused(made, kind, more, text):
    with pytest.raises(ValueError, match=text):
        made(kind, **more)


def test_a_batch_sampler_and_buckets_are_refused(path):
    batches = BatchSampler(SequentialSampler(range(COUNT)), 4, False)
    with pytest.raises(ValueError, match="and so does batch_sampler"):
        ImageLoader(path, batch_sampler=batches, **KINDS["buckets"])


@pytest.mark.parametrize("kind", ["buckets", "patches"])
def test_ranks_without_an_image_are_refused(made, kind):
    assert sorted(labels_of(made(kind, even=False))) == list(range(COUNT))
    with pytest.raises(ValueError, match="even=False would leave some ranks"):
        list(made(kind, 1, 2, even=False))


def test_the_last_batch_is_dropped(made):
    full = made("buckets carried over", drop_last=True)
    assert all(len(labels) == 4 for _, labels in full)
    for kind in ("patches", "drawn", "images"):
        for ranks in (1, 3):
            loaders = [made(kind, rank, ranks, drop_last=True) for rank in range(ranks)]
            epochs = [list(loader) for loader in loaders]
            assert {len(batches) for batches in epochs} == {len(fresh(loaders[0]))}
            loaders[0].set_epoch(1)
            whole = labels_of(made(kind, 0, ranks))
            mine = labels_of(epochs[0])
            assert mine == whole[: len(mine)] and len(mine) < len(whole)
            assert len(made(kind, 0, ranks, drop_last=True).sampler) == len(mine)
            for images, labels in epochs[0]:
                if kind == "patches":
                    length = images["patches"].shape[1]
                    assert len(labels) == {16: 4, 30: 2, 49: 1}[length]
                else:
                    assert len(labels) == 4
            state = loaders[0].state_dict()
            assert state["epoch"] == 1 and state["done"] == 0


def test_states_of_other_shapes_are_refused(made):
    for kind, more in (
        ("buckets", {"buckets": SHAPES[:2]}),
        ("patches", {"sequence_lengths": (16,)}),
        ("drawn", {"data_shape": [(3, 8, 8), (3, 9, 9)]}),
    ):
        state = made(kind).state_dict()
        with pytest.raises(ValueError, match="saved with (shapes|data_shape|sequence_lengths)="):
            made(kind, **more).load_state_dict(state)


def test_a_loader_that_is_dropped_leaves_no_threads(made):
    for kind in KINDS:
        loader = made(kind)
        next(iter(loader))
        provider = weakref.ref(loader.provider)
        del loader
        assert provider() is None


# -- what is handed out ------------------------------------------------------------------------


def test_functions_that_collate_get_images(made):
    for images in made("patches", collate_fn=list):
        for parts, label in images:
            assert list(parts) == ["patches", "patch_coord", "patch_valid"]
            assert parts["patch_valid"].ndim == 1 and isinstance(label, int)
    for images in made("images", collate_fn=list):
        assert all(image.shape == (3, *sides()[label]) for image, label in images)


def test_fields_come_behind_the_images(made):
    for images, crops, labels in made("buckets", fields={"crop": Crop()}):
        assert crops.shape == (len(images), 4) == (len(labels), 4)


def test_images_alone(path, made):
    for images in made("images", label_name=None):
        assert isinstance(images, list) and images[0].dtype == torch.uint8
    for images in made("patches", label_name=None, dtype="bfloat16"):
        assert images["patches"].dtype == torch.bfloat16


@pytest.mark.parametrize("kind", ["buckets", "patches", "drawn", "images"])
def test_a_damaged_image_is_replaced(tmp_path, kind):
    images = [encode_jpeg(noise(height, width, i)) for i, (height, width) in enumerate(sides())]
    for number in (3, 4, 20):
        images[number] = b"damaged"
    path = str(write_pack(tmp_path / "bad.rec", images, index=True))
    given = {"shuffle": True, **COMMON, **KINDS[kind]}
    loader = ImageLoader(path, 4, on_error="skip", **given)
    batches = list(loader)
    assert {number for number, _ in loader.provider.skipped} == {3, 4, 20}
    same(ImageLoader(path, 4, on_error="skip", num_workers=1, **given), batches)
    if kind == "patches":
        for parts, _ in batches:
            for patches, valid in zip(parts["patches"], parts["patch_valid"], strict=True):
                assert valid.any() and not patches[~valid].any()
    with pytest.raises(Exception, match="record"):
        list(ImageLoader(path, 4, **given))
