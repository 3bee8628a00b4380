"""Chainer's loaders of well-known sets, from files at hand."""

import inspect
import pickle

import numpy as np
import pytest

from iterators.datasets import (
    TupleDataset,
    get_cifar10,
    get_cifar100,
    get_fashion_mnist,
    get_kuzushiji_mnist,
    get_mnist,
)
from recordio import write_idx_array

MNISTS = [get_mnist, get_fashion_mnist, get_kuzushiji_mnist]
DRAW = np.random.default_rng(0)
DIGITS = {
    part: DRAW.integers(0, 256, (n, 28, 28), np.uint8) for part, n in (("train", 5), ("t10k", 3))
}
COLOURS = DRAW.integers(0, 256, (4, 3072), np.uint8)


@pytest.fixture
def mnist(tmp_path):
    for part, images in DIGITS.items():
        write_idx_array(tmp_path / f"{part}-images-idx3-ubyte.gz", images)
        labels = np.arange(len(images), dtype=np.uint8)
        write_idx_array(tmp_path / f"{part}-labels-idx1-ubyte.gz", labels)
    return tmp_path


@pytest.fixture
def cifar(tmp_path):
    batch = {"data": COLOURS, "labels": [1, 2, 3, 4], "fine_labels": [9, 8, 7, 99]}
    names = ["train", "test", "test_batch", *(f"data_batch_{number}" for number in range(1, 6))]
    for name in names:
        (tmp_path / name).write_bytes(pickle.dumps(batch, protocol=2))
    return tmp_path


@pytest.mark.parametrize("get", MNISTS)
@pytest.mark.parametrize(("ndim", "shape"), [(1, (784,)), (2, (28, 28)), (3, (1, 28, 28))])
def test_images_of_every_shape(mnist, get, ndim, shape):
    train, test = get(mnist, ndim=ndim)
    assert isinstance(train, TupleDataset) and (len(train), len(test)) == (5, 3)
    image, label = train[4]
    assert image.shape == shape and image.dtype == np.float32
    assert label == 4 and label.dtype == np.int32
    expected = DIGITS["train"][4].reshape(shape) * np.float32(1 / 255)
    np.testing.assert_array_equal(image, expected)


def test_the_other_parameters_of_mnist(mnist):
    images, _ = get_mnist(mnist, False, 3, 255.0, np.float64, rgb_format=True)
    assert images.shape == (5, 3, 28, 28) and images.dtype == np.float64
    np.testing.assert_allclose(images[:, 2], DIGITS["train"])
    train, _ = get_mnist(mnist, label_dtype=np.int64)
    assert train[0][1].dtype == np.int64


def test_colour_images(cifar):
    train, test = get_cifar10(cifar)
    assert (len(train), len(test)) == (20, 4) and train[0][0].shape == (3, 32, 32)
    np.testing.assert_allclose(test[1][0].reshape(-1), COLOURS[1] / 255, rtol=1e-6)
    assert test[1][1] == 2 and test[1][1].dtype == np.int32
    train, test = get_cifar100(cifar, ndim=1, scale=255.0)
    np.testing.assert_allclose(train[3][0], COLOURS[3], rtol=1e-6)
    assert [int(label) for _, label in test[:]] == [9, 8, 7, 99]
    assert isinstance(get_cifar100(cifar, withlabel=False)[0], np.ndarray)


@pytest.mark.parametrize(
    ("get", "arguments", "error"),
    [
        (get_mnist, {"ndim": 4}, ValueError),
        (get_mnist, {"ndim": 0}, ValueError),
        (get_mnist, {"rgb_format": True}, ValueError),
        (get_mnist, {"dtype": np.uint8}, TypeError),
        (get_cifar10, {"ndim": 2}, ValueError),
    ],
)
def test_wrong_requests(mnist, cifar, get, arguments, error):
    with pytest.raises(error, match="="):
        get(mnist, **arguments)


@pytest.mark.parametrize("get", [*MNISTS, get_cifar10, get_cifar100])
def test_missing_files_are_named(tmp_path, get):
    with pytest.raises(FileNotFoundError, match="train-images|data_batch_1|train"):
        get(tmp_path)


def test_the_parameters_are_those_of_chainer():
    for get in MNISTS:
        parameters = list(inspect.signature(get).parameters.values())
        assert [p.name for p in parameters][1:] == [
            "withlabel", "ndim", "scale", "dtype", "label_dtype", "rgb_format",
        ]  # fmt: skip
        assert [p.default for p in parameters][1:] == [True, 1, 1.0, None, np.int32, False]
    for get in (get_cifar10, get_cifar100):
        parameters = list(inspect.signature(get).parameters.values())
        assert [p.name for p in parameters][1:] == ["withlabel", "ndim", "scale", "dtype"]
        assert [p.default for p in parameters][1:] == [True, 3, 1.0, None]
