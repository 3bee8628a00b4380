"""`mx.gluon.data`: loaders, samplers, transforms and sets of images over this package."""

import gzip
import multiprocessing
import pickle
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators.compat import mxnet as mx
from recordio import write_idx_array

data = mx.gluon.data
transforms = data.vision.transforms


class Noisy:
    """Images, and a transform that draws."""

    def __init__(self, length=11):
        self.length = length
        self.step = transforms.Compose(
            [transforms.RandomFlipLeftRight(), transforms.RandomColorJitter(0.3, 0.3, 0.3, 0.1)]
        )
        self.crop = mx.image.RandomCropAug((4, 4))

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        pixels = np.random.default_rng(i).integers(0, 255, (6, 6, 3)).astype(np.uint8)
        return self.crop(self.step(mx.nd.array(pixels, dtype="uint8"))), i


@pytest.fixture
def fork_server():
    """Python's way since 3.14."""
    multiprocessing.set_start_method("forkserver", force=True)
    yield
    multiprocessing.set_start_method(None, force=True)


def epochs(**keywords):
    mx.random.seed(3)
    loader = data.DataLoader(Noisy(), 4, **keywords)
    return [[(x.asnumpy(), y.asnumpy().tolist()) for x, y in loader] for _ in range(2)]


@pytest.mark.parametrize(
    "keywords",
    [
        {"num_workers": 2},
        {"num_workers": 3, "prefetch": 0},
        {"num_workers": 2, "thread_pool": True},
        {"num_workers": 1, "thread_pool": True, "prefetch": 1},
    ],
)
def test_an_epoch_does_not_depend_on_its_workers(keywords):
    expected, found = epochs(), epochs(**keywords)
    for one, other in zip(expected, found, strict=True):
        assert len(one) == len(other) == 3
        for (x, y), (u, v) in zip(one, other, strict=True):
            assert (x == u).all() and y == v
    assert not (expected[0][0][0] == expected[1][0][0]).all()  # the next epoch draws anew


def test_batches_of_workers_are_ndarrays():
    loader = data.DataLoader(Noisy(), 5, num_workers=2)
    for x, y in loader:
        assert isinstance(x, mx.nd.NDArray) and isinstance(y, mx.nd.NDArray)
        assert x.dtype == np.uint8


@pytest.mark.skipif(sys.platform != "linux", reason="MXNet forks workers on Linux")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_workers_know_functions_that_cannot_be_pickled(fork_server):
    squares = data.SimpleDataset(list(range(7))).transform(lambda x: x * x)
    loader = data.DataLoader(squares, 4, num_workers=2)
    assert [x.asnumpy().tolist() for x in loader] == [[0, 1, 4, 9], [16, 25, 36]]


class Broken(Noisy):
    def __getitem__(self, i):
        if i == 6:
            raise ValueError("sample 6")
        return super().__getitem__(i)


@pytest.mark.parametrize(
    "keywords", [{}, {"num_workers": 2}, {"num_workers": 2, "thread_pool": True}]
)
def test_an_error_of_a_sample_reaches_the_loop(keywords):
    loader = data.DataLoader(Broken(), 4, **keywords)
    batches = iter(loader)
    next(batches)
    with pytest.raises(ValueError, match="sample 6"):
        next(batches)


def test_a_loop_that_is_left_ends_its_workers():
    loader = data.DataLoader(Noisy(), 2, num_workers=2, thread_pool=True)
    for _ in loader:
        break
    assert len(list(loader)) == len(loader) == 6


def pickled(indices, batchify, dataset):
    """Make a batch in a process of a pool, which has no data set."""
    assert dataset is None
    return pickle.dumps(batchify([Noisy()[i] for i in indices]))


@pytest.mark.parametrize("prefetch", [0, 2, 9])
def test_a_pool_of_a_loader_of_ones_own(prefetch):
    batches = [[0, 1, 2], [5], [4, 3]]
    with multiprocessing.Pool(2) as pool:
        found = data.dataloader._MultiWorkerIter(
            pool, data.batchify.default_batchify_fn, batches, worker_fn=pickled, prefetch=prefetch
        )
        assert len(found) == 3 and iter(found) is found
        assert [y.asnumpy().tolist() for _, y in found] == batches
        with pytest.raises(StopIteration):
            found.next()


@pytest.mark.parametrize(
    ("keywords", "word"),
    [
        ({}, "batch_size"),
        ({"batch_size": 2, "sampler": [1], "shuffle": True}, "shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler"),
        ({"batch_size": 2, "last_batch": "none"}, "last_batch"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 1, "prefetch": -1}, "prefetch"),
    ],
)
def test_parameters_of_a_loader_are_checked(keywords, word):
    with pytest.raises(ValueError, match=word):
        data.DataLoader(Noisy(), **keywords)


def test_pinned_memory_is_warned_of():
    with pytest.warns(UserWarning, match="pin_memory"):
        data.DataLoader(Noisy(), 2, pin_memory=True)


@given(st.integers(0, 12), st.integers(1, 5), st.sampled_from(["keep", "discard", "rollover"]))
def test_lists_of_indices(length, size, last):
    sampler = data.BatchSampler(data.SequentialSampler(length), size, last)
    given_back = []
    for _ in range(3):
        expected = len(sampler)
        batches = list(sampler)
        assert len(batches) == expected
        assert all(len(batch) == size for batch in batches[:-1])
        given_back += [i for batch in batches for i in batch]
    if last == "keep":
        assert given_back == list(range(length)) * 3
    elif last == "rollover":
        assert given_back == (list(range(length)) * 3)[: len(given_back)]
        assert 3 * length - len(given_back) < size


def test_gluons_own_sets(tmp_path):
    write_idx_array(tmp_path / "t10k-images-idx3-ubyte.gz", np.zeros((3, 28, 28), np.uint8))
    write_idx_array(tmp_path / "t10k-labels-idx1-ubyte.gz", np.arange(3, dtype=np.uint8))
    mnist = data.vision.MNIST(tmp_path, train=False)
    image, label = mnist[2]
    assert image.shape == (28, 28, 1) and isinstance(image, mx.nd.NDArray)
    assert label == 2 and label.dtype == np.int32
    doubled = data.vision.FashionMNIST(tmp_path, False, lambda x, y: (x, 2 * y))
    assert [doubled[i][1] for i in range(3)] == [0, 2, 4]
    rows = np.random.default_rng(0).integers(0, 10, (2, 3073)).astype(np.uint8)
    for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
        rows.tofile(tmp_path / name)
    cifar = data.vision.CIFAR10(tmp_path)
    assert len(cifar) == 10 and cifar[0][0].shape == (32, 32, 3)
    assert (cifar[1][0].asnumpy() == rows[1, 1:].reshape(3, 32, 32).transpose(1, 2, 0)).all()
    rows = np.random.default_rng(0).integers(0, 20, (2, 3074)).astype(np.uint8)
    rows.tofile(tmp_path / "train.bin")
    for fine in (True, False):
        cifar = data.vision.CIFAR100(tmp_path, fine_label=fine)
        assert [cifar[i][1] for i in range(2)] == rows[:, int(fine)].tolist()
    assert gzip and len(data.DataLoader(cifar, 2)) == 1


def test_transforms_can_be_pickled_and_are_called_with_ndarrays():
    image = mx.nd.array(np.arange(300).reshape(10, 10, 3) % 255, dtype="uint8")
    steps = [
        transforms.Resize(8),
        transforms.RandomResizedCrop(6),
        transforms.RandomCrop(5, pad=2),
        transforms.RandomFlipTopBottom(),
        transforms.RandomGray(0.5),
        transforms.RandomLighting(0.1),
        transforms.RandomApply(transforms.RandomHue(0.1), 0.5),
        transforms.ToTensor(),
        transforms.RandomRotation((-10, 10), zoom_in=True),
    ]
    for step in pickle.loads(pickle.dumps(steps)):
        image = step(image)
        assert isinstance(image, mx.nd.NDArray), step
    assert image.shape == (3, 5, 5) and image.dtype == np.float32


def test_blocks_of_a_script():
    class Halved(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.clip(x / 2, 0, 1)

    net = mx.gluon.nn.Sequential()
    net.add(Halved(), Halved())
    net.hybridize()
    assert net(mx.nd.array([1, 8])).asnumpy().tolist() == [0.25, 0.5]
    with pytest.raises(NotImplementedError, match="does not define forward"):
        mx.gluon.Block()(1)


def test_samples_of_several_shapes():
    padded = data.batchify.Pad(val=-1)([np.ones((2, 1)), np.ones((1, 3))])
    assert padded.asnumpy().tolist() == [[[1, -1, -1], [1, -1, -1]], [[1, 1, 1], [-1, -1, -1]]]
    with pytest.raises(ValueError, match="axis=0"):
        data.batchify.Pad(axis=0)([np.ones((2, 1)), np.ones((1, 3))])
    a, b = data.batchify.Group(data.batchify.Stack(), data.batchify.AsList())([(1, "x"), (2, "y")])
    assert a.asnumpy().tolist() == [1, 2] and b == ["x", "y"]
