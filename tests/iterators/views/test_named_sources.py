"""Data sources by name, from files at hand."""

import pickle

import numpy as np
import pytest
from PIL import Image

from iterators.views import (
    Cifar10,
    Cifar100,
    DataSource,
    Mnist,
    NotMnist,
    PennTreeBank,
    Sampler,
    SmallImageSource,
    Standardize,
    TextSource,
)
from recordio import write_idx_array

DRAW = np.random.default_rng(0)
DIGITS = DRAW.integers(0, 256, (12, 28, 28), np.uint8)
COLOURS = DRAW.integers(0, 256, (4, 3072), np.uint8)


@pytest.fixture
def mnist(tmp_path):
    for part in ("train", "t10k"):
        write_idx_array(tmp_path / f"{part}-images-idx3-ubyte", DIGITS)
        write_idx_array(tmp_path / f"{part}-labels-idx1-ubyte", np.arange(12, dtype=np.uint8) % 10)
    return tmp_path


@pytest.fixture
def cifar(tmp_path):
    batch = {"data": COLOURS, "labels": [1, 2, 3, 4], "fine_labels": [9, 8, 7, 99]}
    for name in ["train", "test", "test_batch", *(f"data_batch_{i}" for i in range(1, 6))]:
        (tmp_path / name).write_bytes(pickle.dumps(batch, protocol=2))
    return tmp_path


def folders(root, train, test, classes, size):
    for part, count in ((train, 3), (test, 1)):
        for number, name in enumerate(classes):
            (root / part / name).mkdir(parents=True)
            for i in range(count):
                Image.new("L", size, 50 * number + i).save(root / part / name / f"{i}.png")
    return root


def test_mnist(mnist):
    source = Mnist(mnist)
    assert isinstance(source, DataSource) and source.name == "mnist"
    assert [len(s) for s in (source.train_set, source.valid_set, source.test_set)] == [10, 2, 12]
    x, view, data_set = source.get("train", "inputs", "bhwc")
    assert x.shape == (10, 28, 28, 1) and x.dtype == np.float32 and data_set.io_shapes[1] == "b"
    np.testing.assert_allclose(x[..., 0], DIGITS[:10] / 255, atol=1e-7)
    assert source.get("valid", "target", "b")[0].tolist() == [0, 1]
    assert source.classes == list(range(10)) and source.i_size("h") == 28
    batch, seen, size = next(Sampler(batch_size=4).sample_epoch(source))
    assert (batch.n_sample, seen, size) == (4, 4, 10)


def test_the_parameters_of_mnist(mnist):
    assert Mnist(mnist, valid_ratio=0).valid_set is None
    assert Mnist(mnist, valid_ratio=1).train_set is None
    raw = Mnist(mnist, scale=None).get("test")[0]
    np.testing.assert_array_equal(raw[..., 0], DIGITS)
    low = Mnist(mnist, scale=(-1, 1)).get("test")[0]
    np.testing.assert_allclose(low[..., 0], DIGITS / 127.5 - 1, atol=1e-6)
    marks = Mnist(mnist, binarize=True).get("test")[0]
    np.testing.assert_array_equal(marks[..., 0], DIGITS >= 128)
    fitted = Mnist(mnist, input_preprocess=[Standardize()])
    np.testing.assert_allclose(fitted.get("train", "input", "bf")[0].mean(0), 0, atol=1e-6)
    for wrong in ({"valid_ratio": 1.5}, {"scale": (0, "x")}, {"shuffle": "yes"}):
        with pytest.raises((ValueError, TypeError), match=next(iter(wrong))):
            Mnist(mnist, **wrong)
    with pytest.raises(FileNotFoundError, match="train-images"):
        Mnist(mnist / "nowhere")


def test_shuffled_rows_stay_together_and_follow_from_the_seed(mnist):
    source = Mnist(mnist, shuffle=True)
    x, labels = (
        np.concatenate([source.get(part, kind)[0] for part in ("train", "valid")])
        for kind in ("input", "target")
    )
    order = [
        int(np.flatnonzero((row == DIGITS).all((1, 2)))[0]) for row in np.round(x[..., 0] * 255)
    ]
    assert sorted(order) == list(range(12)) and order != sorted(order)
    assert [number % 10 for number in order] == labels.tolist()
    again = Mnist(mnist, shuffle=True).get()[0]
    np.testing.assert_array_equal(source.get()[0], again)
    assert (Mnist(mnist, shuffle=True, random_seed=1).get()[0] != again).any()


def test_cifar(cifar):
    source = Cifar10(cifar)
    assert [len(s) for s in (source.train_set, source.valid_set, source.test_set)] == [16, 4, 4]
    x = source.get("test", "input", "bchw")[0]
    np.testing.assert_allclose(x.reshape(4, -1), COLOURS / 255, atol=1e-7)
    assert source.get("test", "target")[0].tolist() == [1, 2, 3, 4]
    hundred = Cifar100(cifar, valid_ratio=0.5, shuffle=False)
    assert hundred.get("train", "target")[0].tolist() == [9, 8]
    assert len(hundred.classes) == 100 and Cifar100(cifar).name == "cifar100"


def test_folders_of_small_images(tmp_path):
    root = folders(tmp_path, "train", "test", ["cat", "dog"], (6, 6))
    source = SmallImageSource(root, (1, 6, 6), scale=None)
    x, labels = source.get("train")[0], source.get("train", "target")[0]
    assert x.shape == (5, 1, 6, 6) and source.classes == ["cat", "dog"]
    assert (x[:, 0, 0, 0] // 50).tolist() == labels.tolist() and len(source.valid_set) == 1
    assert len(source.test_set) == 2
    (root / "test" / "emu").mkdir()
    Image.new("L", (6, 6)).save(root / "test" / "emu" / "0.png")
    with pytest.raises(ValueError, match="emu"):
        SmallImageSource(root, (1, 6, 6))


def test_letters_with_their_broken_files(tmp_path):
    root = folders(tmp_path, "notMNIST_large", "notMNIST_small", "ABCDEFGHIJ", (28, 28))
    broken = root / "notMNIST_large" / "B" / "TmlraXNFRi1TZW1pQm9sZEl0YWxpYy5vdGY=.png"
    broken.write_bytes(b"")
    source = NotMnist(root)
    assert source.classes == list("ABCDEFGHIJ") and source.i_size() == (28, 28, 1)
    assert len(source.train_set) == 25 and len(source.valid_set) == 5


def test_running_text(tmp_path):
    for part, text in (("train", " a b a \n c \n"), ("valid", "b d\n"), ("test", "e a\n")):
        (tmp_path / f"ptb.{part}.txt").write_text(text)
    source = PennTreeBank(tmp_path, context_size=2, recurrent=True)
    assert source.vocabulary() == ["a", "b", "<eos>", "c", "d", "e"] == source.classes
    assert source.vocab["d"] == 4 and source.vocabulary_size() == 6
    assert source.word_frequency() == [2, 2, 3, 1, 1, 0]
    batch = source.train_set.batch(1)
    assert batch.inputs.input.tolist() == [[0, 1]] and batch.targets.input.tolist() == [[1, 0]]
    assert source.test_set.data.tolist() == [5, 0, 2] and batch.inputs.classes[5] == "e"
    with pytest.raises(FileNotFoundError, match=r"ptb\.text"):
        TextSource("ptb.text", data_path=tmp_path)
    only = TextSource("a b", context_size=1, string=True)
    assert only.vocabulary() == ["a", "b"] and only.valid_set is None is only.test_set
    with pytest.raises(ValueError, match="none after"):
        TextSource("a b", context_size=5, string=True)
