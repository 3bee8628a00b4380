"""MNIST files to packs and back."""

import numpy as np
import pytest

from iterators import ImageRecordIter
from recordio import IRHeader, RecordWriter, pack, read_idx_array, write_idx_array


@pytest.fixture
def digits():
    random = np.random.default_rng(0)
    return random.integers(0, 256, (7, 12, 9), np.uint8), random.integers(0, 10, 7).astype(np.uint8)


@pytest.fixture
def files(tmp_path, digits):
    paths = tmp_path / "images.gz", tmp_path / "labels"
    for path, array in zip(paths, digits, strict=True):
        write_idx_array(path, array)
    return paths


def test_there_and_back_gives_the_same_arrays(files, digits, tmp_path, command):
    assert command("from-mnist", *files, tmp_path / "m") == 0
    assert command("export", tmp_path / "m", tmp_path / "again", "--to", "mnist") == 0
    images, labels = digits
    again = read_idx_array(tmp_path / "again-images-idx3-ubyte")
    np.testing.assert_array_equal(again, images)
    np.testing.assert_array_equal(read_idx_array(tmp_path / "again-labels-idx1-ubyte"), labels)
    plain = tmp_path / "plain"
    write_idx_array(plain, images)
    assert plain.read_bytes() == (tmp_path / "again-images-idx3-ubyte").read_bytes()


def test_the_image_iterator_reads_them(files, digits, tmp_path, command):
    assert command("from-mnist", *files, tmp_path / "m") == 0
    images, labels = digits
    with ImageRecordIter(
        path_imgrec=tmp_path / "m.rec", data_shape=(1, 12, 9), batch_size=7, device=None
    ) as batches:
        batch = next(iter(batches))
        np.testing.assert_array_equal(batch.data[0][:, 0], images)
        np.testing.assert_array_equal(batch.label[0], labels)


def test_files_that_do_not_fit_together_are_refused(files, digits, tmp_path, command, capsys):
    write_idx_array(files[1], digits[1][:-1])
    assert command("from-mnist", *files, tmp_path / "m") == 1
    assert "label for each of 7" in capsys.readouterr().err
    assert command("from-mnist", files[1], files[1], tmp_path / "m") == 1
    assert "three axes" in capsys.readouterr().err
    assert not (tmp_path / "m.rec").exists()


def test_labels_and_images_that_mnist_cannot_hold_are_refused(tmp_path, command, capsys, output):
    data = np.zeros((2, 4, 4), np.uint8)
    np.save(tmp_path / "data.npy", data)
    for labels in ([0, 256], [0, 0.5], [0, -1]):
        np.save(tmp_path / "labels.npy", np.array(labels))
        words = ["--labels", tmp_path / "labels.npy", "--encoding", ".png", "--force"]
        assert command("from-numpy", tmp_path / "data.npy", tmp_path / "m", *words) == 0
        assert command("export", tmp_path / "m", output / "x", "--to", "mnist") == 1
        assert "record 1" in capsys.readouterr().err
    np.save(tmp_path / "data.npy", np.zeros((2, 4, 4, 3), np.uint8))
    words = ["--encoding", ".png", "--force"]
    assert command("from-numpy", tmp_path / "data.npy", tmp_path / "m", *words) == 0
    assert command("export", tmp_path / "m", output / "x", "--to", "mnist") == 1
    assert "not grey" in capsys.readouterr().err
    assert list(output.iterdir()) == []


def test_digits_are_written_upright(tmp_path, command, images):
    pixels = images.gradient(28, 28, 1)
    with RecordWriter(tmp_path / "t.rec", tmp_path / "t.idx") as writer:
        for orientation in range(1, 9):
            content = images.turned(pixels, "PNG", orientation)
            writer.write(pack(IRHeader(0, 1.0, orientation, 0), content), orientation)
    assert command("export", tmp_path / "t", tmp_path / "b", "--to", "mnist") == 0
    found = read_idx_array(tmp_path / "b-images-idx3-ubyte")
    assert found.shape == (8, 28, 28) and (found == pixels).all()
