"""`ImageLoader` in place of torch's `DataLoader`: the same batches of the same data sets."""

import functools
import itertools
import json
import os
import pickle
import re
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Subset,
    WeightedRandomSampler,
)

from iterators import ImageRecordDataset, ImageRecordIter, NamedRecipe, Pack
from iterators.testing import write_pack
from iterators.torch import ImageLoader, MapDataset
from recordio.errors import ImageDecodeError
from recordio.packs.open_pack import open_pack

SHAPE = (3, 8, 10)
IMAGES = 11


class Keywords(dict):
    """Keywords of a recipe, which Python can also do, as a transform."""

    def __call__(self, image):
        pixels = np.asarray(image, np.float32).reshape(*SHAPE[1:], -1).transpose(2, 0, 1)
        return torch.from_numpy(pixels * np.float32(1 / 255))


PLAIN = Keywords(data_shape=SHAPE, scale=1 / 255)
RANDOM = {"data_shape": (3, 6, 6), "rand_crop": True, "rand_mirror": True, "dtype": "uint8"}


def default_loader(path):
    with Image.open(path) as image:
        return image.convert("RGB")


default_loader.__module__ = "torchvision.datasets.folder"


class DatasetFolder(Dataset):
    """Torchvision's, as far as it is read."""

    __module__ = "torchvision.datasets.folder"

    def __init__(self, root, transform=None, target_transform=None, loader=default_loader):
        self.root, self.transform, self.target_transform = root, transform, target_transform
        self.loader = loader
        self.classes = sorted(os.listdir(root))
        self.class_to_idx = {name: label for label, name in enumerate(self.classes)}
        self.samples = [
            (os.path.join(root, name, file), label)
            for name, label in self.class_to_idx.items()
            for file in sorted(os.listdir(os.path.join(root, name)))
        ]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, target = self.samples[index]
        image = self.loader(path)
        if self.transform is not None:
            image = self.transform(image)
        return image, target if self.target_transform is None else self.target_transform(target)


class ImageFolder(DatasetFolder):
    @property
    def imgs(self):
        return self.samples


class ImageFolderWithPaths(ImageFolder):
    def __getitem__(self, index):
        return (*super().__getitem__(index), index)


class CIFAR10(Dataset):
    """Torchvision's, as far as it is read."""

    __module__ = "torchvision.datasets.cifar"

    def __init__(self, shape, transform=PLAIN):
        self.data = np.random.default_rng(3).integers(0, 256, shape, np.uint8)
        self.targets = [number % 3 for number in range(shape[0])]
        self.transform, self.target_transform = transform, None

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return self.transform(Image.fromarray(np.asarray(self.data[index]))), self.targets[index]


class MNIST(CIFAR10):
    __module__ = "torchvision.datasets.mnist"

    def __init__(self, shape):
        super().__init__(shape, Keywords({**PLAIN, "data_shape": (1, *SHAPE[1:])}))
        self.data, self.targets = torch.from_numpy(self.data), torch.tensor(self.targets)

    def __getitem__(self, index):
        return self.transform(Image.fromarray(self.data[index].numpy())), int(self.targets[index])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(5)
    for number in range(IMAGES):
        path = root / ("ant", "bee", "cow")[number % 3] / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (8, 10, 3), np.uint8)).save(path)
    return str(root)


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


def same(found, wanted):
    found, wanted = list(found), list(wanted)
    assert len(found) == len(wanted)
    for mine, theirs in zip(found, wanted, strict=True):
        assert len(mine) == len(theirs)
        for one, other in zip(mine, theirs, strict=True):
            assert one.dtype == other.dtype
            torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


def labels(batches):
    return [batch[-1].tolist() for batch in batches]


def fast(*arguments, **keywords):
    """A loader that must not fall back on Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader = ImageLoader(*arguments, **keywords)
    assert loader.provider is not None
    return loader


# -- the batches of DataLoader ---------------------------------------------------------------------


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("batch_size", [1, 4, 11, 12])
def test_the_batches_of_a_folder_are_those_of_dataloader(folder, batch_size, drop_last):
    dataset = ImageFolder(folder, PLAIN)
    wanted = DataLoader(dataset, batch_size, drop_last=drop_last)
    with fast(dataset, batch_size, drop_last=drop_last) as loader:
        same(loader, wanted)
        same(loader, wanted)
        assert len(loader) == len(wanted) and loader.batch_size == batch_size
        assert loader.dataset is dataset


@pytest.mark.parametrize(
    "dataset", [CIFAR10((7, 8, 10, 3)), MNIST((7, 8, 10))], ids=["CIFAR10", "MNIST"]
)
def test_the_batches_of_arrays_are_those_of_dataloader(dataset):
    same(fast(dataset, 3), DataLoader(dataset, 3))
    subset = Subset(dataset, [6, 0, 3, 3])
    same(fast(subset, 3), DataLoader(subset, 3))


def test_recipes_of_colours_make_three_channels_of_grey_arrays():
    means = {f"{name}_{channel}": 100.0 for name in ("mean", "std") for channel in "rgb"}
    loader = fast(MNIST((5, 8, 10)), 5, transform={"data_shape": (3, 4, 5), **means})
    ((images, _),) = loader
    assert images.shape == (5, 3, 4, 5) and images.min() < 0
    assert torch.equal(images[:, 0], images[:, 2])
    ((images, _),) = fast(MNIST((5, 8, 10)), 5, transform={"mean_r": 100.0})
    assert images.shape == (5, 1, 8, 10) and images.min() < 0


def test_arrays_without_a_label_for_each_image():
    dataset = CIFAR10((7, 8, 10, 3))
    dataset.targets = dataset.targets[1:]
    with pytest.raises(ValueError, match=r"CIFAR10 has 7 images and labels of shape \(6,\)"):
        ImageLoader(dataset)


LABELS = [
    [0.5, 1.0, 2.0],
    [0.0, 1.0, 2.0],
    np.eye(3, dtype=np.float32),
    [[0, 1]] * 3,
    [[0], [1, 2], [3]],
    list("abc"),
    [1, 2, (1 << 24) + 1],
    [True, False, True],
    [None] * 3,
]


@pytest.mark.parametrize("labels", LABELS, ids=lambda labels: str(list(labels)[0]))
def test_other_labels_than_a_whole_number_are_those_of_the_data_set(folder, labels):
    arrays, files = CIFAR10((3, 8, 10, 3)), ImageFolder(folder, PLAIN)
    arrays.targets = labels
    paths = [path for path, _ in files.samples]
    files.samples = list(zip(paths, labels, strict=False))
    for dataset in arrays, files:
        with pytest.warns(UserWarning, match="its labels are not a whole number"):
            loader = ImageLoader(dataset, 3, collate_fn=list)
        for (image, label), (same_image, same_label) in zip(
            next(iter(loader)), next(iter(DataLoader(dataset, 3, collate_fn=list))), strict=True
        ):
            assert torch.equal(image, same_image) and str(label) == str(same_label)


def test_the_caller_may_ask_for_other_labels(folder):
    files, dataset = ImageFolder(folder, PLAIN).samples[:3], CIFAR10((3, 8, 10, 3))
    rows = [(path, [1, 0, label]) for path, label in files]
    images = ImageFolder(folder, PLAIN)
    images.samples = rows
    for given in rows, images:
        ((_, found),) = fast(given, 3, data_shape=SHAPE, label_width=3)
        assert found.tolist() == [row for _, row in rows]
    dataset.targets = [0.5, 1.0, 2.0]
    ((_, found),) = fast(dataset, 3, label_dtype="float32")
    assert found.dtype == torch.float32 and found.tolist() == dataset.targets


def test_subsets_of_subsets(folder):
    dataset = Subset(Subset(ImageFolder(folder, PLAIN), [9, 1, 3, 10, 2]), [4, 0, 2])
    loader = fast(dataset, 2)
    same(loader, DataLoader(dataset, 2))
    assert loader.classes == ["ant", "bee", "cow"]
    with pytest.raises(IndexError, match=r"the subset has the index 11, .* has 11 images"):
        ImageLoader(Subset(ImageFolder(folder, PLAIN), [11]))
    with pytest.raises(TypeError, match="the subset gives an index that is not an integer"):
        ImageLoader(Subset(ImageFolder(folder, PLAIN), [1.5]))


def test_lists_of_files(folder):
    dataset = ImageFolder(folder, PLAIN)
    same(fast(dataset.samples, 4, transform=PLAIN), DataLoader(dataset, 4))
    files = [path for path, _ in dataset.samples]
    images = list(fast(files, 4, **PLAIN))
    assert torch.equal(torch.cat(images), torch.cat([x for x, _ in fast(dataset, 4)]))
    with pytest.raises(TypeError, match=r"expected \(file, label\)"):
        ImageLoader([(files[0], 1), files[1]], **PLAIN)
    with pytest.raises(ValueError, match="empty list"):
        ImageLoader([])


def test_packs(tmp_path):
    path = write_pack(tmp_path / "a.rec", 10, lambda number: number % 4, size=(8, 10))
    provider = ImageRecordIter(path_imgrec=path, data_shape=SHAPE, batch_size=5)
    wanted = [batch.label[0].tolist() for batch in provider]
    for pack in (path, str(path), Pack(path), [str(path)], open_pack(path)):
        assert labels(fast(pack, 5, data_shape=SHAPE)) == wanted
    subset = Subset(Pack(path), [9, 2])
    assert labels(fast(subset, 5, recipe={"data_shape": SHAPE})) == [[1, 2]]
    with pytest.raises(ValueError, match="share of .* order of its own"):
        ImageLoader(Pack(path, share=1.0), data_shape=SHAPE)


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_shuffled_epochs_depend_on_seed_and_number_alone(folder, workers):
    dataset = ImageFolder(folder, RANDOM)
    loader = fast(dataset, 4, shuffle=True, seed=7, num_workers=workers)
    reference = fast(dataset, 4, True, generator=torch.Generator().manual_seed(7))
    epochs = [list(loader) for _ in range(2)]
    for epoch in epochs:
        same(epoch, reference)
    assert sorted(sum(labels(epochs[0]), [])) == sorted(label for _, label in dataset.samples)
    assert not torch.equal(epochs[0][0][0], epochs[1][0][0])
    assert labels(fast(dataset, 4, shuffle=True, seed=8)) != labels(epochs[0])
    loader.set_epoch(1)
    assert loader.epoch == 1
    same(loader, epochs[1])


def test_dtype_and_layout_are_those_of_the_recipe(folder):
    keywords = {"data_shape": SHAPE, "dtype": "uint8", "layout": "NHWC"}
    ((images, found),) = fast(ImageFolder(folder, keywords), IMAGES)
    assert images.dtype == torch.uint8 and images.shape == (IMAGES, 8, 10, 3)
    assert found.dtype == torch.int64
    ((floats, _),) = fast(ImageFolder(folder, keywords), IMAGES, dtype="float16")
    assert floats.dtype == torch.float16


@pytest.mark.parametrize(("drop_last", "counts"), [(False, [6, 6]), (True, [4, 4])])
def test_the_order_of_the_loader_stands_where_scripts_look_for_a_sampler(folder, drop_last, counts):
    files = [(file, number) for number, file in enumerate(sorted(Path(folder).rglob("*.png")))]
    assert len(files) == IMAGES
    loaders = [
        ImageLoader(
            files,
            4,
            shuffle=True,
            seed=0,
            drop_last=drop_last,
            rank=rank,
            world_size=2,
            data_shape=SHAPE,
        )
        for rank in range(2)
    ]
    assert [len(loader.sampler) for loader in loaders] == counts
    for loader in loaders:
        loader.sampler.set_epoch(3)
        assert loader.epoch == 3
        wanted = list(loader.sampler)
        assert len(wanted) == len(loader.sampler)
        assert [label for _, labels in loader for label in labels.tolist()] == wanted
        assert list(loader.sampler) != wanted  # those of epoch 4
    assert ImageLoader(files, 2, sampler=[3, 4], data_shape=SHAPE).sampler == [3, 4]
    assert ImageLoader(files, batch_sampler=[[3, 4]], data_shape=SHAPE).sampler is None


def test_setting_the_epoch_by_the_sampler_leaves_the_rest_of_a_resumed_one(folder):
    files = sorted(Path(folder).rglob("*.png"))
    loader = ImageLoader(files, 4, data_shape=SHAPE)
    next(iter(loader))
    middle = loader.state_dict()
    assert len([*loader]) == 3
    end = {**middle, "done": IMAGES}
    for state, epoch, batches in ((middle, 0, 2), (end, 1, 3)):
        loader.load_state_dict(state)
        loop = iter(loader)
        loader.sampler.set_epoch(epoch)
        assert len([*loop]) == batches


def test_views_and_a_function_that_collates(folder):
    views = {**PLAIN, "views": ({}, {"data_shape": (3, 4, 4)})}
    first, second, found = next(iter(fast(ImageFolder(folder, views), 3)))
    assert first.shape == (3, *SHAPE) and second.shape == (3, 3, 4, 4) and len(found) == 3
    samples = next(iter(fast(ImageFolder(folder, PLAIN), 3, collate_fn=list)))
    assert [label for _, label in samples] == [0, 0, 0] and samples[0][0].shape == SHAPE
    dataset = ImageFolder(folder, PLAIN)
    collate = torch.utils.data.default_collate
    same(fast(dataset, 4, collate_fn=collate), DataLoader(dataset, 4))


# -- ranks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("even", [False, True])
def test_two_ranks_by_the_environment(folder, monkeypatch, shuffle, even):
    dataset = ImageFolder(folder, PLAIN)
    monkeypatch.setenv("WORLD_SIZE", "2")
    images = []
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        loader = fast(dataset, 2, shuffle=shuffle, even=even, seed=0)
        found = list(loader)
        assert len(found) == len(loader) == 3
        if not shuffle and even:
            sampler = DistributedSampler(dataset, 2, rank, shuffle=False)
            same(found, DataLoader(dataset, 2, sampler=sampler))
        images += torch.cat([batch for batch, _ in found])
    assert len(images) == IMAGES + even
    assert len({image.numpy().tobytes() for image in images}) == IMAGES


# -- samplers --------------------------------------------------------------------------------------


def weighted():
    generator = torch.Generator().manual_seed(3)
    return {"sampler": WeightedRandomSampler([1.0] * 5 + [2.0] * 6, 15, generator=generator)}


SAMPLERS = {
    "list": lambda: {"sampler": [7, 7, 2, 0, 10]},
    "weighted": weighted,
    "random": lambda: {"sampler": RandomSampler(range(IMAGES))},
    "distributed": lambda: {"sampler": DistributedSampler(range(IMAGES), 3, 1, seed=4)},
    "batches": lambda: {"batch_sampler": BatchSampler(weighted()["sampler"], 4, drop_last=False)},
    "uneven batches": lambda: {"batch_sampler": [[1, 2], [3], [4, 5, 6, 7]]},
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_say_which_samples_come(folder, name):
    dataset = ImageFolder(folder, PLAIN)
    size = {} if "batch_sampler" in SAMPLERS[name]() else {"batch_size": 4}
    loader = fast(dataset, **size, **SAMPLERS[name]())
    theirs = DataLoader(dataset, **size, **SAMPLERS[name]())
    assert len(loader) == len(theirs)
    for _ in range(2):
        torch.manual_seed(9)
        found = list(loader)
        torch.manual_seed(9)
        # DataLoader draws a seed for its workers in front.
        iterator = iter(theirs) if name != "random" else None
        if iterator is not None:
            same(found, iterator)
    if name == "distributed":
        loader.set_epoch(5)
        theirs.sampler.set_epoch(5)
        same(loader, theirs)


def test_a_sample_that_comes_again_is_augmented_again(folder):
    ((images, found),) = fast(ImageFolder(folder, RANDOM), 8, sampler=[3] * 8)
    assert found.tolist() == [0] * 8
    assert len({image.numpy().tobytes() for image in images}) > 1


def test_copies_on_several_ranks_are_augmented_each_in_its_way(folder):
    crops = set()
    for rank in range(2):
        keywords = {"rank": rank, "world_size": 2, "sampler": [3, 3]}
        ((images, _),) = fast(ImageFolder(folder, RANDOM), 2, **keywords)
        crops |= {image.numpy().tobytes() for image in images}
    assert len(crops) > 2


def test_samplers_out_of_range_and_contradictions(folder):
    dataset = ImageFolder(folder, PLAIN)
    with pytest.raises(IndexError, match="list gives the index 11: the data set has 11 samples"):
        list(ImageLoader(dataset, sampler=[0, 11]))
    with pytest.raises(TypeError, match="list gives an index that is not an integer: .*float"):
        list(ImageLoader(dataset, sampler=[0, 1.5]))
    for keywords in (
        {"sampler": [1], "shuffle": True},
        {"batch_sampler": [[1]], "batch_size": 2},
        {"batch_sampler": [[1]], "sampler": [1]},
        {"batch_sampler": [[1]], "drop_last": True},
    ):
        with pytest.raises(ValueError, match="drop"):
            ImageLoader(dataset, **keywords)
    with pytest.raises(TypeError, match=r"with a len\(\)"):
        ImageLoader(dataset, sampler=iter([1]))


# -- states ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("python", [False, True])
@pytest.mark.parametrize("name", [None, *SAMPLERS])
def test_a_run_goes_on_after_every_batch(folder, name, python):
    def made(workers):
        keywords = {"shuffle": True, "seed": 5} if name is None else SAMPLERS[name]()
        if "batch_sampler" not in keywords:
            keywords["batch_size"] = 3
        if not python:
            return fast(ImageFolder(folder, RANDOM), num_workers=workers, **keywords)
        with pytest.warns(UserWarning, match="in Python"):
            dataset = ImageFolderWithPaths(folder, PLAIN)
            return ImageLoader(dataset, num_workers=workers, **keywords)

    torch.manual_seed(1)
    loader = made(1)
    list(loader)
    wanted, states = [], [json.dumps(loader.state_dict())]
    for batch in loader:
        wanted.append(batch)
        states.append(json.dumps(loader.state_dict()))
    assert len(wanted) > 1
    for done, state in enumerate(states):
        torch.manual_seed(done + 50)
        again = made(done % 3)
        again.load_state_dict(json.loads(state))
        assert again.state_dict() == json.loads(state)
        again.set_epoch(1)  # scripts say so for every epoch
        same(again, wanted[done:])
        assert again.epoch == 2
    after = list(loader)
    if name != "random":  # which goes on with torch's own generator
        same(again, after)


def test_states_of_other_ranks_and_other_data(folder):
    dataset = ImageFolder(folder, PLAIN)

    def made(rank=0, ranks=1, **keywords):
        keywords = {"shuffle": True, "seed": 0, **keywords}
        return ImageLoader(dataset, 2, rank=rank, world_size=ranks, even=False, **keywords)

    loader = made(1, 2)
    first = [next(iter(loader)), next(iter(made(0, 2)))]
    rest = made()
    rest.load_state_dict(loader.state_dict())
    assert sorted(sum(labels([*first, *rest]), [])) == sorted(n for _, n in dataset.samples)
    for keywords, name in (({"seed": 3}, "seed"), ({"shuffle": False}, "order")):
        with pytest.raises(ValueError, match=f"saved with {name}="):
            made(**keywords).load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match="saved with file="):
        ImageLoader(dataset.samples[1:], 2, **PLAIN).load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match="settings"):
        loader.load_state_dict({"epoch": 1, "done": 0, "sampler": {}})
    with pytest.raises(ValueError, match="settings=3: expected a dictionary"):
        loader.load_state_dict({**loader.state_dict(), "settings": 3})
    with pytest.raises(TypeError, match="ImageLoader cannot be pickled"):
        pickle.dumps(loader)


def test_a_sampler_that_cannot_be_repeated_is_an_error(folder):
    class Forgetful:
        turn = 0

        def __len__(self):
            return 4

        def __iter__(self):
            self.turn += 1
            return iter([self.turn] * 4)

    dataset, sampler = ImageFolder(folder, PLAIN), Forgetful()
    loader = ImageLoader(dataset, 2, sampler=sampler)
    next(iter(loader))
    again = ImageLoader(dataset, 2, sampler=sampler)
    again.load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match="Forgetful does not give the samples"):
        list(again)


@pytest.mark.parametrize("whole", [False, True])
def test_a_sampler_without_an_end_is_an_error(folder, whole):
    class Infinite:
        def __len__(self):
            return 4

        def __iter__(self):
            return itertools.cycle([[3, 1]] if whole else [3, 1])

    sampler = {"batch_sampler" if whole else "sampler": Infinite()}
    with pytest.raises(ValueError, match="Infinite gives more than 1048576 .* to end"):
        next(iter(ImageLoader(ImageFolder(folder, PLAIN), **sampler)))

    class More(Infinite):  # its len() is an estimate
        def __iter__(self):
            return itertools.islice(super().__iter__(), 90)

    sampler = {name: More() for name in sampler}
    assert len(list(fast(ImageFolder(folder, PLAIN), **sampler))) == 90


def test_loops_that_were_left_and_loops_at_once(folder):
    dataset = ImageFolder(folder, PLAIN)
    loader = ImageLoader(dataset, 4, shuffle=True, seed=0)
    epochs = [labels(loader) for _ in range(3)]
    again = ImageLoader(dataset, 4, shuffle=True, seed=0)
    iter(again)  # not used: no epoch
    for batch in again:
        assert batch[1].tolist() == epochs[0][0]
        break
    first, second = iter(again), iter(again)
    pairs = [(one[1].tolist(), other[1].tolist()) for one, other in zip(first, second, strict=True)]
    assert pairs == list(zip(epochs[1], epochs[2], strict=True))


# -- what only Python can do -----------------------------------------------------------------------


def other_loader(path):
    return default_loader(path)


def pil_loader(path):
    return default_loader(path).convert("L").convert("RGB")


@functools.wraps(default_loader)
def wrapped_loader(path):
    return pil_loader(path)


def untranslatable(image):
    return PLAIN(image)


class First(ImageFolder):
    def __len__(self):
        return 5


class Negated(Subset):
    def __getitems__(self, indices):
        return [(image, -label) for image, label in super().__getitems__(indices)]


def of_a_user(root):
    """A class with the name of torchvision's."""

    def numbered(self, index):
        return (*CIFAR10.__getitem__(self, index), index)

    return type("CIFAR10", (CIFAR10,), {"__module__": "mine", "__getitem__": numbered})(
        (7, 8, 10, 3)
    )


class Unknown(Dataset):
    def __len__(self):
        return 5

    def __getitem__(self, index):
        return torch.full((2,), index), -index


REASONS = [
    (lambda root: ImageFolderWithPaths(root, PLAIN), "ImageFolderWithPaths has a __getitem__"),
    (lambda root: ImageFolder(root, PLAIN, loader=other_loader), "loader=.*use the default one"),
    (lambda root: ImageFolder(root, PLAIN, loader=pil_loader), "loader=.*use the default one"),
    (lambda root: ImageFolder(root, PLAIN, loader=wrapped_loader), "loader=.*use the default"),
    (lambda root: First(root, PLAIN), "First has a __len__ of its own"),
    (lambda root: Negated(ImageFolder(root, PLAIN), [4, 2]), "Negated has a __getitems__ of its"),
    (of_a_user, "CIFAR10 has a __getitem__ of its own"),
    (lambda root: ImageFolder(root, PLAIN, target_transform=abs), "target_transform"),
    (lambda root: ImageFolder(root, untranslatable), "no counterpart: untranslatable"),
    (lambda root: Subset(ImageFolder(root, untranslatable), [4, 2]), "no counterpart"),
    (lambda root: Subset(Unknown(), [4, 2]), "a subset of Unknown: Unknown has a __getitem__"),
    (lambda root: CIFAR10((2, 8, 10, 4), Keywords()), "data are uint8 of"),
]


def refused(transform, images):
    raise TypeError(f"{transform.__name__} is not a transform of torchvision")


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(("make", "reason"), REASONS)
def test_what_only_python_can_do_is_said_once(folder, monkeypatch, make, reason, workers):
    monkeypatch.setattr(NamedRecipe, "from_torchvision", refused, raising=False)
    dataset = make(folder)
    with pytest.warns(UserWarning) as seen:
        loader = ImageLoader(dataset, 2, num_workers=workers)
    assert len(seen) == 1 and seen[0].filename == __file__
    assert re.search(f"{reason}.*in Python", str(seen[0].message))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(loader, DataLoader(dataset, 2))
        same(loader, DataLoader(dataset, 2))
    assert loader.provider is None and loader.recipe is None


@pytest.mark.parametrize("method", ["__getitem__", "__getitems__", "get_example", "__len__"])
def test_methods_of_a_subclass_of_ours_are_used(tmp_path, method):
    write_pack(tmp_path / "a.rec", 9, size=(20, 20))

    def changed(self, *arguments):
        return getattr(ImageRecordDataset, method)(self, *arguments)

    kind = type("Own", (ImageRecordDataset,), {method: changed})
    with pytest.warns(UserWarning, match="Own has a .* of its own"):
        assert ImageLoader(kind(tmp_path / "a.rec", data_shape=(3, 9, 9))).provider is None


def test_a_data_set_with_epochs_of_its_own_is_told_which_one_comes(tmp_path):
    write_pack(tmp_path / "a.rec", 9, size=(20, 20))
    keywords = {"data_shape": (3, 9, 9), "rand_crop": True}

    def made():
        return MapDataset(ImageRecordDataset(tmp_path / "a.rec", **keywords))

    with pytest.warns(UserWarning, match="__getitem__"):
        loader, subset = ImageLoader(made(), 9), ImageLoader(Subset(made(), range(9)), 9)
    epochs = [next(iter(loader))[0] for _ in range(3)]
    assert all(torch.equal(next(iter(subset))[0], epoch) for epoch in epochs)
    assert not torch.equal(epochs[0], epochs[1])
    loader.set_epoch(0)
    assert torch.equal(next(iter(loader))[0], epochs[0])


def test_a_script_that_lets_pillow_open_truncated_files_has_its_way(tmp_path, monkeypatch):
    (tmp_path / "ant").mkdir()
    for number in range(4):
        path = tmp_path / "ant" / f"{number}.png"
        pixels = np.random.default_rng(number).integers(0, 256, (80, 90, 3), np.uint8)
        Image.fromarray(pixels).save(path)
        if number == 1:
            path.write_bytes(path.read_bytes()[:12000])
    dataset = ImageFolder(tmp_path, PLAIN)
    with pytest.raises(ImageDecodeError, match='on_error="skip"'):
        list(fast(dataset, 4))
    monkeypatch.setattr("PIL.ImageFile.LOAD_TRUNCATED_IMAGES", True)
    loader = fast(dataset, 4)
    assert loader.provider is not None
    ((images, _),) = loader
    contents = [Path(path).read_bytes() for path, _ in dataset.samples]
    ((others, _),) = fast(write_pack(tmp_path / "a.rec", contents), 4, **PLAIN)
    torch.testing.assert_close(images, others)


def test_an_error_of_a_data_set_comes_where_its_batch_does():
    class Broken(Unknown):
        def __getitem__(self, index):
            if index == 3:
                raise KeyError("no third")
            return super().__getitem__(index)

    with pytest.warns(UserWarning, match="Broken has a __getitem__"):
        loader = ImageLoader(Broken(), 2, num_workers=2)
    batches = iter(loader)
    assert next(batches)[1].tolist() == [0, -1]
    with pytest.raises(KeyError, match="no third"):
        next(batches)


class Failing(Dataset):
    """Numbers, some of which cannot be had; it may draw from the generators of the process."""

    def __init__(self, draws=False):
        self.draws = draws

    def __len__(self):
        return 12

    def __getitem__(self, index):
        if index in (4, 7, 11):
            raise OSError("bad file")
        return index + self.draws * torch.rand(()).item()


def delivered(loop):
    """The labels of all batches of a loop, and the errors between them."""
    found = []
    while True:
        try:
            batch = next(loop)
        except StopIteration:
            return found
        except (OSError, ImageDecodeError) as error:
            found.append(type(error).__name__)
        else:
            found.append((batch if torch.is_tensor(batch) else batch[-1]).int().tolist())


@pytest.mark.filterwarnings("ignore:.*in Python")
@pytest.mark.parametrize("order", ["usual", "sampled"])
@pytest.mark.parametrize(("draws", "workers"), [(False, 0), (True, 0), (False, 2)])
def test_a_loop_goes_on_behind_a_batch_that_failed(draws, workers, order):
    sampler = {"sampler": range(12)} if order == "sampled" else {}
    loader = ImageLoader(Failing(draws), 2, num_workers=workers, seed=3, **sampler)
    wanted = [[0, 1], [2, 3], "OSError", "OSError", [8, 9], "OSError"]
    for epoch in range(2):
        loop = iter(loader)
        assert delivered(loop) == wanted
        assert next(loop, None) is None and loader.epoch == epoch + 1
    loop = iter(loader)
    with pytest.raises(OSError, match="bad file"):
        list(loop)
    again = ImageLoader(Failing(draws), 2, num_workers=workers, seed=3, **sampler)
    again.load_state_dict(loader.state_dict())
    assert delivered(iter(again)) == delivered(loop) == wanted[3:]


def test_a_loop_is_over_where_the_loader_was_closed_or_its_images_changed(folder):
    dataset = ImageFolder(folder, PLAIN)
    for change in (ImageLoader.close, len):
        loader = fast(dataset, 2)
        loop = iter(loader)
        next(loop)
        dataset.samples = list(dataset.samples)[:-1]
        change(loader)
        with pytest.raises(ValueError, match="closed"):
            list(loop)
        assert not list(loop)
        loader.close()


def test_a_loop_of_images_goes_on_behind_a_batch_that_failed(folder, tmp_path):
    files = [(path, label) for label, (path, _) in enumerate(ImageFolder(folder).samples)]
    damaged = tmp_path / "4.png"
    damaged.write_bytes(Path(files[4][0]).read_bytes()[:60])
    files[4] = str(damaged), 4
    loader = fast(files, 4, shuffle=False, data_shape=SHAPE)
    assert delivered(iter(loader)) == [[0, 1, 2, 3], "ImageDecodeError", [8, 9, 10]]

    def collate(samples):
        if samples[0][1] == 0:
            raise OSError("bad batch")
        return torch.tensor([label for _, label in samples])

    loader = fast(ImageFolder(folder, PLAIN), 4, collate_fn=collate)
    assert delivered(iter(loader)) == ["OSError", [1, 1, 1, 1], [2, 2, 2]]


def test_an_interrupt_loses_no_batch():
    class Interrupted(Failing):
        def __getitem__(self, index):
            if index == 2 and interrupts.pop():
                raise KeyboardInterrupt
            return index

    interrupts = [False, False, True]
    with pytest.warns(UserWarning, match="in Python"):
        loop = iter(ImageLoader(Interrupted(), 2))
    assert next(loop).tolist() == [0, 1]
    with pytest.raises(KeyboardInterrupt):
        next(loop)
    assert delivered(loop)[:2] == [[2, 3], [4, 5]]


@pytest.mark.parametrize("batch_size", [8, 3, 1])
def test_all_threads_work_on_the_first_batches_of_a_data_set(batch_size):
    class Together(Unknown):
        """Its first four samples are made at the same time, or not at all."""

        calls = itertools.count()
        met = threading.Barrier(4, timeout=20)

        def __len__(self):
            return 8

        def __getitem__(self, index):
            if next(self.calls) < 4:
                self.met.wait()
            return super().__getitem__(index)

    with pytest.warns(UserWarning, match="Together has a __getitem__"):
        loader = ImageLoader(Together(), batch_size, num_workers=4, prefetch_factor=1)
    assert [-label for _, labels in loader for label in labels.tolist()] == list(range(8))


def test_no_more_batches_of_a_data_set_are_ahead_than_asked_for():
    class Counted(Unknown):
        taken = 0

        def __len__(self):
            return 400

        def __getitem__(self, index):
            self.taken = max(self.taken, index + 1)
            return super().__getitem__(index)

    dataset = Counted()
    with pytest.warns(UserWarning, match="Counted has a __getitem__"):
        loader = ImageLoader(dataset, 10, num_workers=8, prefetch_factor=2)
    for number, _ in enumerate(loader):
        assert dataset.taken <= 10 * (number + 2)


def test_a_script_that_ends_within_an_epoch(tmp_path):
    """Its threads are in C++ code, where the end of Python would abort the process."""
    program = """
import os
import torch
from iterators.torch import ImageLoader

for _ in range(2):  # scripts in children first, which need not import torch again
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0
    else:
        break

class Images:
    def __len__(self):
        return 4000

    def __getitem__(self, index):
        return torch.rand(3, 224, 224).flip(2), index

batches = iter(ImageLoader(Images(), 16, num_workers=8))
next(batches)
"""
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr


def test_transforms_are_translated(folder, monkeypatch):
    asked = []

    def translated(transform, images):
        asked.append(transform)
        return NamedRecipe("mine", keywords=dict(PLAIN))

    monkeypatch.setattr(NamedRecipe, "from_torchvision", translated, raising=False)
    dataset = ImageFolder(folder, untranslatable)
    loader = fast(dataset, 4)
    same(loader, DataLoader(dataset, 4))
    assert asked == [untranslatable] and loader.recipe.name == "mine"
    fast(dataset.samples, 4, transform=untranslatable)
    assert len(asked) == 2


class ToTensor:
    """Torchvision's, which is translated; called where Python does everything."""

    __module__ = "torchvision.transforms"

    def __call__(self, image):
        pixels = np.array(image, np.float32).transpose(2, 0, 1)
        return torch.from_numpy(pixels * np.float32(1 / 255))


class Resize:
    __module__ = "torchvision.transforms"
    size, interpolation, max_size = (6, 7), "bilinear", None

    def __call__(self, image):
        return image.resize(self.size[::-1], Image.Resampling.BILINEAR)


class Compose:
    __module__ = "torchvision.transforms"

    def __init__(self, *transforms):
        self.transforms = transforms

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image


def negative(image):
    return -image


def thumbnail(image):
    return image.resize((3, 3))


def reds(images):
    return images[:1]


@pytest.mark.parametrize(
    ("transforms", "names", "shape"),
    [
        ((Resize(), ToTensor(), negative, reds), "function has no .* negative, reds", (1, 6, 7)),
        ((Resize(), thumbnail, ToTensor()), "function has no .* thumbnail, ToTensor", (3, 3, 3)),
    ],
)
@pytest.mark.parametrize("workers", [0, 2])
def test_transforms_at_the_end_run_in_python_behind_the_threads(
    folder, transforms, names, shape, workers
):
    dataset = ImageFolder(folder, Compose(*transforms))
    for given, keywords in ((dataset, {}), (dataset.samples, {"transform": dataset.transform})):
        with pytest.warns(UserWarning) as seen:
            loader = ImageLoader(given, 4, num_workers=workers, **keywords)
        assert len(seen) == 1 and seen[0].filename == __file__
        assert re.search(f"{names} run in Python", str(seen[0].message))
        assert loader.provider is not None and len(loader.recipe.tail) == 2
        assert next(iter(loader))[0].shape == (4, *shape)
        same(loader, DataLoader(dataset, 4))
        subset = Subset(dataset, [3, 1])
        with pytest.warns(UserWarning, match="run in Python"):
            same(ImageLoader(subset, 4), DataLoader(subset, 4))


def pair(image):
    return torch.stack([image, image])


def never(image):
    raise ArithmeticError("not today")


@pytest.mark.parametrize(
    ("transforms", "reason"),
    [
        ((negative, Resize(), ToTensor()), "its transform has no counterpart: transform .0."),
        ((Resize(), ToTensor(), pair), "function has no .* end of a recipe: pair: .* no image"),
        ((Resize(), ToTensor(), never), "function has no .* end of a recipe: not today"),
    ],
)
def test_an_end_that_makes_no_images_leaves_everything_to_the_data_set(folder, transforms, reason):
    dataset = ImageFolder(folder, Compose(*transforms))
    with pytest.warns(UserWarning, match=f"{reason}.*its own __getitem__") as seen:
        loader = ImageLoader(dataset, 4)
    assert len(seen) == 1 and seen[0].filename == __file__
    assert loader.provider is loader.recipe is None
    if pair in transforms:
        same(loader, DataLoader(dataset, 4))
        with pytest.raises(ArithmeticError):
            ImageLoader(dataset.samples, 4, transform=Compose(Resize(), ToTensor(), never))
        with pytest.raises(ValueError, match="pair: returned"):
            ImageLoader(dataset.samples, 4, transform=dataset.transform)


# -- classes ---------------------------------------------------------------------------------------


def test_names_of_classes(folder, tmp_path):
    dataset = ImageFolder(folder, PLAIN)
    loader = ImageLoader(dataset)
    assert loader.classes == dataset.classes and loader.class_to_idx == dataset.class_to_idx
    path = write_pack(tmp_path / "a.rec", 4, size=(8, 10))
    without = ImageLoader(path, data_shape=SHAPE)
    assert without.classes is without.class_to_idx is None
    (tmp_path / "a.classes.txt").write_text("2\tdog\n0\tcat\n")
    loader = ImageLoader(path, data_shape=SHAPE)
    with pytest.warns(UserWarning, match="'dog', is the name of label 2"):
        assert loader.classes == ["cat", "dog"]
    (tmp_path / "a.classes.txt").write_text("1\tdog\n0\tcat\n")
    wanted = {"cat": 0, "dog": 1}
    loader = ImageLoader(path, data_shape=SHAPE)
    assert loader.class_to_idx == wanted and loader.classes == ["cat", "dog"]
    assert Pack(path).class_to_idx == open_pack(path).class_to_idx == wanted
    with ImageRecordIter(path_imgrec=path, data_shape=SHAPE, batch_size=2) as provider:
        assert provider.class_to_idx == wanted and provider.classes == ["cat", "dog"]
    with pytest.raises(ValueError, match="closed"):
        _ = provider.class_to_idx
    packs = [Pack(path, classes=3), Pack(path, classes=3, labels="append")]
    assert ImageLoader(packs, data_shape=SHAPE).class_to_idx == wanted


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"timeout": 3}, TypeError, "timeout=3: there are no worker processes"),
        ({"worker_init_fn": print}, TypeError, "worker_init_fn"),
        ({"multiprocessing_context": "fork"}, TypeError, "multiprocessing_context"),
        ({"num_parts": 2}, TypeError, "num_parts: it follows from the ranks"),
        ({"weights": {0: 1}}, TypeError, "weights: a sampler"),
        ({"round_batch": True}, TypeError, "round_batch"),
        ({"rand_miror": True}, TypeError, "did you mean 'rand_mirror'"),
        ({"num_workers": 2, "preprocess_threads": 2}, ValueError, "mean the same"),
        ({"seed": 1, "generator": torch.Generator()}, ValueError, "give one of them"),
        ({"transform": {}, "recipe": {}}, ValueError, "mean the same"),
        ({"path_imglist": "a.lst"}, ValueError, "path_imglist is for record files"),
        ({"rank": 1}, ValueError, "rank and world_size belong together"),
        ({"batch_size": 0}, ValueError, "batch_size"),
        ({"batch_size": None}, TypeError, "batch_size"),
        ({"num_workers": -1}, ValueError, "num_workers"),
    ],
)
def test_what_makes_no_sense_is_refused(folder, keywords, error, message):
    with pytest.raises(error, match=message):
        ImageLoader(ImageFolder(folder, PLAIN), **keywords)


def test_data_sets_that_are_none(folder):
    class Stream(IterableDataset):
        def __iter__(self):
            return iter([])

    for dataset in (Stream(), 5, iter([])):
        with pytest.raises(TypeError, match="expected images at indices"):
            ImageLoader(dataset)
    with pytest.raises(ValueError, match="rand_mirror: no image of Unknown is made here"):
        ImageLoader(Unknown(), rand_mirror=True)
    with pytest.raises(ValueError, match="give it the transform"):
        ImageLoader(Unknown(), transform=PLAIN)
    for keywords in {}, {"collate_fn": list}, {"transform": None}:
        with pytest.raises(TypeError, match=r"ImageLoader\(\) needs data_shape.* or a transform"):
            ImageLoader(ImageFolder(folder), **keywords)
    assert len(next(iter(fast(ImageFolder(folder), 3, data_shape=None)))[0]) == 3


def test_arguments_without_meaning_are_taken(folder):
    dataset = ImageFolder(folder, PLAIN)
    loader = fast(dataset, 4, persistent_workers=True, in_order=True, prefetch_factor=2)
    same(loader, DataLoader(dataset, 4))
    if not torch.cuda.is_available():
        with pytest.warns(UserWarning, match="pin_memory=True has no effect"):
            same(ImageLoader(dataset, 4, pin_memory=True), DataLoader(dataset, 4))


def test_memory_is_pinned_where_there_is_a_device(folder, monkeypatch):
    pinned = []

    def pin(tensor):
        pinned.append(tensor)
        return tensor

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    batches = list(fast(ImageFolder(folder, PLAIN), 6, pin_memory=True))
    assert [id(one) for one in pinned] == [id(one) for batch in batches for one in batch]


# -- damage, closing, forks ------------------------------------------------------------------------


def test_a_damaged_file_is_named_or_skipped(folder, tmp_path):
    samples = ImageFolder(folder).samples
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no image")
    samples[2] = str(bad), 0
    with pytest.raises(Exception, match="bad.png"):
        list(ImageLoader(samples, 4, **PLAIN))
    loader = ImageLoader(samples, 4, on_error="skip", **PLAIN)
    assert len(sum(labels(loader), [])) == IMAGES
    assert len(loader.provider.skipped) == 1


def test_closing_stops_the_threads_and_a_loop_starts_new_ones(folder):
    loader = ImageLoader(ImageFolder(folder, RANDOM), 4, shuffle=True)
    wanted = list(loader), list(loader)
    loader.set_epoch(0)
    same(loader, wanted[0])
    loader.close()
    loader.close()
    same(loader, wanted[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*os.fork", "ignore:.*fork")
def test_a_forked_child_has_threads_of_its_own(folder):
    loader = ImageLoader(ImageFolder(folder, PLAIN), 4)
    wanted = labels(loader)
    child = os.fork()
    if not child:
        os._exit(0 if labels(loader) == wanted else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert labels(loader) == wanted


# -- a data set that changes -----------------------------------------------------------------------


def test_a_changed_data_set_is_followed_from_the_next_loop_on(folder):
    dataset = ImageFolder(folder, PLAIN)
    loader = fast(dataset, 4, shuffle=True, seed=3)
    orders = [labels(loader) for _ in range(3)]
    loader.set_epoch(0)
    same_order = []
    for scale in (1.0, 0.5, 0.25):
        dataset.transform = Keywords({**PLAIN, "scale": scale})
        images = torch.cat([images for images, _ in loader])
        assert images.max() <= 255 * scale and images.max() > 120 * scale
        same_order.append(len(images))
    assert same_order == [IMAGES] * 3 and loader.epoch == 3
    loader.set_epoch(1)
    assert labels(loader) == orders[1]
    dataset.samples = [(path, label + 5) for path, label in dataset.samples[:7]]
    assert len(loader) == 2
    assert sorted(sum(labels(loader), [])) == [5, 5, 5, 5, 6, 6, 6]
    dataset.samples.append(dataset.samples[0])
    assert len(sum(labels(loader), [])) == 8


def test_a_changed_subset_and_changed_labels_are_followed():
    dataset = CIFAR10((7, 8, 10, 3))
    subset = Subset(dataset, [6, 0])
    loader = fast(subset, 7)
    same(loader, DataLoader(subset, 7))
    subset.indices = [1, 2, 3]
    same(loader, DataLoader(subset, 7))
    dataset.targets[2] = 8
    same(loader, DataLoader(subset, 7))
    dataset.target_transform = str
    with pytest.warns(UserWarning, match="target_transform is a function of Python"):
        list(loader)


def test_a_data_set_that_grows_is_followed():
    class Growing(Unknown):
        count = 3

        def __len__(self):
            return self.count

    dataset = Growing()
    with pytest.warns(UserWarning, match="in Python"):
        loaders = ImageLoader(dataset, 2), ImageLoader(Subset(dataset, range(3)), 2)
    for loader in loaders:
        for dataset.count in 3, 5, 4:
            same(loader, DataLoader(loader.dataset, 2))
            dataset.count += 3
            assert len(loader) == len(DataLoader(loader.dataset, 2))


def test_a_state_is_of_the_data_set_as_it_is_then(folder):
    dataset = ImageFolder(folder, PLAIN)
    loader = fast(dataset, 4, seed=3)
    loop = iter(loader)
    next(loop)
    dataset.transform = Keywords({**PLAIN, "scale": 1.0})
    assert next(loop)[0].max() <= 1  # the loop that runs has begun
    state = loader.state_dict()
    again = fast(ImageFolder(folder, PLAIN), 4, seed=3)
    again.load_state_dict(state)
    assert len(list(again)) == 1


# -- seeds -----------------------------------------------------------------------------------------


def test_torch_decides_about_a_seed_that_nobody_gives(folder):
    def order(seed):
        torch.manual_seed(seed)
        return labels(fast(ImageFolder(folder, PLAIN), 4, shuffle=True))

    assert order(1) == order(1) and len({str(order(seed)) for seed in range(4)}) > 2


def test_a_state_brings_its_seed(folder):
    loader = fast(ImageFolder(folder, RANDOM), 4, shuffle=True)
    loop = iter(loader)
    next(loop)
    state = json.loads(json.dumps(loader.state_dict()))
    rest = list(loop)
    again = fast(ImageFolder(folder, RANDOM), 4, shuffle=True)
    again.load_state_dict(state)
    same(again, rest)
    same(again, loader)
    with pytest.raises(ValueError, match="saved with seed="):
        fast(ImageFolder(folder, RANDOM), 4, shuffle=True, seed=0).load_state_dict(state)


def test_ranks_without_a_group_need_a_seed(folder):
    keywords = {"rank": 1, "world_size": 2}
    loader = fast(ImageFolder(folder, PLAIN), 4, shuffle=True, **keywords)
    assert len(loader) == 2
    for use in (list, lambda loader: list(loader.sampler)):
        with pytest.raises(ValueError, match="give seed=, or make the process group"):
            use(loader)
    assert len(list(fast(ImageFolder(folder, PLAIN), 4, **keywords))) == 2


def test_ranks_of_a_group_shuffle_by_the_seed_of_the_first(folder, tmp_path):
    code = (
        "import os, sys, torch, torch.distributed\n"
        "from pathlib import Path\n"
        "from iterators.torch import ImageLoader\n"
        "child = os.fork()  # which need not import torch again\n"
        "rank = int(child == 0)\n"
        "torch.manual_seed(rank)\n"
        "files = [(file, i) for i, file in enumerate(sorted(Path(sys.argv[1]).rglob('*.png')))]\n"
        "loader = ImageLoader(files, 2, shuffle=True, even=False, data_shape=(3, 8, 10))\n"
        "group = {'init_method': f'file://{os.getcwd()}/meet', 'rank': rank, 'world_size': 2}\n"
        "torch.distributed.init_process_group('gloo', **group)\n"
        "open(f'rank-{rank}', 'w').write(str(sum((y.tolist() for _, y in loader), [])))\n"
        "torch.distributed.barrier()\n"
        "torch.distributed.destroy_process_group()\n"
        "assert not child or os.waitpid(child, 0)[1] == 0\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, folder]
    subprocess.run(command, cwd=tmp_path, timeout=100, check=True)
    found = [json.loads((tmp_path / f"rank-{rank}").read_text()) for rank in range(2)]
    assert sorted(sum(found, [])) == list(range(IMAGES))


def test_the_warning_says_that_threads_are_not_repeated(folder):
    with pytest.warns(UserWarning, match="no seed repeats .num_workers=0 does"):
        ImageLoader(ImageFolderWithPaths(folder, PLAIN), 2, num_workers=2)
