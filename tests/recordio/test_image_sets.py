"""The files of MNIST and CIFAR: every way in which they are written, and what must not be run."""

import gzip
import io
import os
import pickle
import struct
import tarfile

import numpy as np
import pytest

from recordio import ArrayFileError, write_idx_array
from recordio.image_sets import read_cifar, read_mnist

PIXELS = np.random.default_rng(0).integers(0, 256, (2, 3072), np.uint8)


def python_2_batch():
    """What Python 2 and the NumPy of 2009 wrote, opcode by opcode."""
    data = PIXELS.tobytes()
    return (
        b"\x80\x02}q\x01(U\x0bbatch_labelq\x02U\x15training batch 1 of 5q\x03"
        b"U\x06labelsq\x04]q\x05(K\x06K\x09eU\x04dataq\x06cnumpy.core.multiarray\n_reconstruct\n"
        b"q\x07cnumpy\nndarray\nq\x08K\x00\x85q\x09U\x01bq\x0a\x87q\x0bRq\x0c(K\x01K\x02M\x00\x0c"
        b"\x86q\x0dcnumpy\ndtype\nq\x0eU\x02u1q\x0fK\x00K\x01\x87q\x10Rq\x11(K\x03U\x01|q\x12NNN"
        b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x13b\x89T"
        + struct.pack("<i", len(data))
        + data
        + b"q\x14tq\x15bU\x09filenamesq\x16]q\x17(U\x05a.pngq\x18U\x05b.pngq\x19eu."
    )


def cifar_10(folder, content):
    for name in [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]:
        (folder / name).write_bytes(content)
    return folder


def test_batches_of_python_2(tmp_path):
    images, labels = read_cifar(cifar_10(tmp_path, python_2_batch()), 10, "test")
    assert images.shape == (2, 3, 32, 32) and images.dtype == labels.dtype == np.uint8
    assert images.tobytes() == PIXELS.tobytes() and labels.tolist() == [6, 9]
    assert len(read_cifar(tmp_path)[0]) == 10 and images.flags.writeable


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("keys", [str, str.encode])
def test_batches_of_every_protocol(tmp_path, protocol, order, keys):
    batch = {keys("data"): np.asarray(PIXELS, order=order), keys("fine_labels"): [99, 0]}
    (tmp_path / "train").write_bytes(pickle.dumps(batch, protocol))
    images, labels = read_cifar(tmp_path, 100)
    assert images.tobytes() == PIXELS.tobytes() and labels.tolist() == [99, 0]


@pytest.mark.parametrize("mode", ["w:gz", "w"])
def test_archives(tmp_path, mode):
    path = tmp_path / "cifar-100-python.tar"
    content = python_2_batch().replace(b"\x06labels", b"\x0bfine_labels")
    with tarfile.open(path, mode) as archive:
        info = tarfile.TarInfo("cifar-100-python/test")
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    assert read_cifar(path, 100, "test")[1].tolist() == [6, 9]
    with pytest.raises(FileNotFoundError, match="no train in the archive"):
        read_cifar(path, 100)
    path.write_bytes(path.read_bytes()[:700])
    with pytest.raises((ArrayFileError, FileNotFoundError), match="cifar-100"):
        read_cifar(path, 100, "test")
    path.write_bytes(b"no archive at all")
    with pytest.raises(ArrayFileError, match="archive"):
        read_cifar(path, 100, "test")


class Runs:
    def __reduce__(self):
        return os.system, ("echo run >&2; exit 3",)


@pytest.mark.parametrize(
    "stored",
    [
        Runs(),
        {"data": PIXELS, "labels": Runs()},
        {"data": Runs(), "labels": [1, 2]},
        {"data": PIXELS, "labels": [1, 10]},
        {"data": PIXELS, "labels": [1, -1]},
        {"data": PIXELS, "labels": [1, 2, 3]},
        {"data": PIXELS, "labels": ["a", "b"]},
        {"data": PIXELS, "labels": [0.5, 1.5]},
        {"data": PIXELS[:, :100], "labels": [1, 2]},
        {"data": PIXELS.astype(np.int16), "labels": [1, 2]},
        {"data": np.array([[Runs()]]), "labels": [1]},
        {"data": [1, 2]},
        {"labels": [1, 2]},
        [1, 2],
        None,
    ],
)
def test_nothing_in_a_batch_is_run_and_everything_is_checked(tmp_path, stored, capfd):
    cifar_10(tmp_path, pickle.dumps(stored, protocol=2))
    with pytest.raises(ArrayFileError, match="data_batch_1"):
        read_cifar(tmp_path)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("end", [0, 1, 10, 200, -1])
def test_truncated_batches(tmp_path, end):
    cifar_10(tmp_path, python_2_batch()[:end])
    with pytest.raises(ArrayFileError, match="no batch of CIFAR"):
        read_cifar(tmp_path)


def test_a_few_bytes_claim_no_memory(tmp_path):
    claims_a_memo_of_gigabytes = b"\x80\x02}r\xff\xff\xff\x7f."
    cifar_10(tmp_path, claims_a_memo_of_gigabytes)
    with pytest.raises(ArrayFileError):
        read_cifar(tmp_path)
    with open(tmp_path / "data_batch_1", "wb") as file:
        file.truncate((1 << 28) + 1)
    with pytest.raises(ArrayFileError, match="more than a file of CIFAR"):
        read_cifar(tmp_path)


@pytest.mark.parametrize("name", ["{}-{}-idx{}-ubyte", "{}-{}.idx{}-ubyte"])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_mnist(tmp_path, name, suffix):
    images = PIXELS[:, :784].reshape(2, 28, 28)
    for kind, axes, array in (("images", 3, images), ("labels", 1, np.array([3, 4], np.uint8))):
        write_idx_array(tmp_path / (name.format("train", kind, axes) + suffix), array)
    found, labels = read_mnist(tmp_path)
    np.testing.assert_array_equal(found, images)
    assert labels.tolist() == [3, 4]
    with pytest.raises(FileNotFoundError, match="t10k-images-idx3-ubyte"):
        read_mnist(tmp_path, "test")


@pytest.mark.parametrize(
    ("images", "labels"),
    [
        (np.zeros((2, 4), np.uint8), np.zeros(2, np.uint8)),
        (np.zeros((2, 4, 4), np.uint8), np.zeros(3, np.uint8)),
        (np.zeros((2, 4, 4), np.float32), np.zeros(2, np.uint8)),
        (np.zeros((2, 4, 4), np.uint8), np.zeros((2, 1), np.uint8)),
    ],
)
def test_files_that_do_not_belong_together(tmp_path, images, labels):
    write_idx_array(tmp_path / "train-images-idx3-ubyte", images)
    write_idx_array(tmp_path / "train-labels-idx1-ubyte", labels)
    with pytest.raises(ArrayFileError, match="train-"):
        read_mnist(tmp_path)


def test_damaged_gzip_names_its_file(tmp_path):
    write_idx_array(tmp_path / "train-labels-idx1-ubyte", np.zeros(2, np.uint8))
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(bytes(100))[:20])
    with pytest.raises(ArrayFileError, match="train-images"):
        read_mnist(tmp_path)
