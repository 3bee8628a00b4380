"""The face-recognition example: the drop-in data set, and training."""

import importlib.util
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import recordio

PATH = Path(__file__).parents[2] / "examples" / "face_recognition.py"


@pytest.fixture(scope="module")
def example():
    """The example as a module."""
    specification = importlib.util.spec_from_file_location("face_recognition", PATH)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pack(example, tmp_path_factory):
    """A pack of 3 identities with 4 images each."""
    folder = tmp_path_factory.mktemp("faces")
    example.make_pack(folder, identities=3, images=4, size=32)
    return folder


def test_the_drop_in_has_what_scripts_use(example, pack):
    dataset = example.MXFaceDataset(root_dir=pack, local_rank=0)
    assert len(dataset) == 12
    assert dataset.header0 == (13, 16)
    assert dataset.imgidx.tolist() == list(range(1, 13))
    image, label = dataset[5]
    assert (image.shape, image.dtype) == ((3, 32, 32), torch.float32)
    assert (label.shape, label.dtype, label.item()) == ((), torch.long, 1)
    assert -1 <= image.min() < image.max() <= 1
    assert [int(dataset[i][1]) for i in range(12)] == [0] * 4 + [1] * 4 + [2] * 4


def test_keys_that_labels_round(example, tmp_path):
    first = 17_091_657
    image = np.full((8, 8, 3), 100, np.uint8)
    with recordio.RecordWriter(tmp_path / "train.rec", tmp_path / "train.idx") as writer:
        writer.write(recordio.pack((0, [first, first + 2], 0, 0), b""), 0)
        for key in range(first - 4, first):
            header = recordio.IRHeader(0, float(key >= first - 2), key, 0)
            writer.write(recordio.pack_img(header, image, img_fmt=".png"), key)
        for key in (first, first + 1):
            begin = first - 4 + 2 * (key - first)
            writer.write(recordio.pack((0, [begin, begin + 2], key, 0), b""), key)
    dataset = example.MXFaceDataset(tmp_path)
    assert dataset.header0 == (first, first + 2)
    assert dataset.imgidx.tolist() == list(range(first - 4, first))
    assert [int(label) for _, label in dataset] == [0, 0, 1, 1]


def test_images_are_rgb_and_a_transform_gets_them_as_they_are(example, pack):
    dataset = example.MXFaceDataset(pack, transform=lambda image: image)
    image, _ = dataset[0]
    assert (image.shape, image.dtype) == ((32, 32, 3), np.uint8)
    with recordio.RecordReader(pack / "train.rec", pack / "train.idx") as reader:
        _, pixels = recordio.unpack_img(reader.by_key(1))
    assert np.array_equal(image, pixels[:, :, ::-1])


def test_sets_that_are_no_packs_and_labels_that_are_vectors(example, tmp_path):
    image = np.full((8, 8, 3), 100, np.uint8)
    with recordio.RecordWriter(tmp_path / "train.rec", tmp_path / "train.idx") as writer:
        for key, label in enumerate((3.0, [4.0, 9.0])):
            header = recordio.IRHeader(0, label, key, 0)
            writer.write(recordio.pack_img(header, image, img_fmt=".png"), key)
    dataset = example.MXFaceDataset(tmp_path)
    assert not hasattr(dataset, "header0")
    assert [int(label) for _, label in dataset] == [3, 4]


@pytest.mark.filterwarnings("ignore:.*os.fork")
@pytest.mark.parametrize("workers", [0, 2])
def test_the_drop_in_works_in_loaders_and_can_be_pickled(example, pack, workers):
    dataset = example.MXFaceDataset(pack)
    context = "fork" if workers else None  # the class is in a module that no worker could import
    loader = DataLoader(dataset, 5, num_workers=workers, multiprocessing_context=context)
    labels = [batch[1] for batch in loader]
    assert torch.cat(labels).tolist() == [0] * 4 + [1] * 4 + [2] * 4
    if workers == 0:
        same = pickle.loads(pickle.dumps(dataset.imgrec))
        assert len(same) == len(dataset.imgrec)


def test_the_fast_way_gives_the_same_samples(example, pack):
    slow = example.MXFaceDataset(pack, transform=lambda image: image)
    fast = example.record_batches(pack, 4, 32)
    wanted = {}
    for key in range(12):
        image, label = slow[key]
        for turned in (image, image[:, ::-1]):
            wanted[np.ascontiguousarray(turned).tobytes()] = int(label)
    seen = 0
    for images, labels in fast:
        pixels = (images * 127.5 + 127.5).round().to(torch.uint8).permute(0, 2, 3, 1)
        for image, label in zip(pixels.numpy(), labels.reshape(-1), strict=True):
            assert wanted[np.ascontiguousarray(image).tobytes()] == int(label)
            seen += 1
    assert seen == 12


def test_the_whole(example, capsys):
    assert example.main(["--epochs", "2", "--size", "32", "--images", "6"]) == 0
    text = capsys.readouterr().out
    assert "told apart" in text
    assert "drawn.bin: 60 pairs, accuracy " in text and "TAR@FAR=1e-4" in text


def test_pixels_tell_drawn_people_apart(example, tmp_path, capsys):
    """The printed scores are those of the protocol, with pixels as the embedding."""
    path = tmp_path / "pairs.bin"
    example.make_pairs(path, 40, 32)
    network = torch.nn.Sequential(torch.nn.AvgPool2d(8), torch.nn.Flatten())
    scores = example.verify(path, network)
    assert 0.6 < scores["accuracy"] <= 1
    assert scores["TAR@FAR=1e-4"] <= scores["TAR@FAR=1e-3"] <= 1
    assert f"accuracy {scores['accuracy']:.5f}" in capsys.readouterr().out
    plain = example.verify(path, network, flip=False)
    assert plain["accuracy"] > 0.6
    assert "flipped" not in capsys.readouterr().out


def test_scores_of_known_distances(example):
    """Ten folds of ten pairs, of which every fold has one that is wrong at every threshold."""
    same = np.tile([True, False], 50)
    distances = np.where(same, 0.5, 2.0)
    assert example.accuracies(distances, same).tolist() == [1] * 10
    assert example.accepted_at(distances, same, 1e-3) == 1
    distances[::10] = 3.0  # one of five pairs of one person in each fold
    assert np.allclose(example.accuracies(distances, same), 0.9)
    assert example.accepted_at(distances, same, 1e-3) == pytest.approx(0.8)
    distances[1] = 0.1  # in the first fold: others accept it only where they are measured
    found = example.accuracies(distances, same)
    assert found[0] == pytest.approx(0.8) and np.allclose(found[1:], 0.9)
    assert example.accepted_at(distances, same, 1e-4) == pytest.approx(0.08)
    folds = [part.tolist() for part, _ in example.fold_rows(23, 10)]
    assert [len(part) for part in folds] == [3] * 3 + [2] * 7
    assert sum(folds, []) == list(range(23))
