"""Records with any number of labels each: padded, or as rows with 1 at each class."""

import numpy as np
import pytest

import recordio
from iterators import ImageRecordDataset, ImageRecordIter, Pack
from iterators.torch import ImageLoader
from recordio import LabelError

TAGS = [[3], [0, 2], [1, 2, 3], [2], [3, 0]]


@pytest.fixture
def path(tmp_path):
    """A pack whose records have one to three labels; with one, in the header or behind it."""
    return write(tmp_path / "tags.rec", TAGS)


def write(path, tags):
    image = recordio.encode_image(np.zeros((4, 4, 3), np.uint8), "png")
    with recordio.RecordWriter(path, path.with_suffix(".idx")) as writer:
        for number, labels in enumerate(tags):
            label = float(labels[0]) if len(labels) == 1 and number == 0 else labels
            writer.write(recordio.pack((0, label, number, 0), image), number)
    return path


def provider(path, **keywords):
    keywords = {"data_shape": (3, 4, 4), "batch_size": 5, "verbose": False} | keywords
    return ImageRecordIter(path_imgrec=path, **keywords)


def padded(tags, width=3):
    return [[*labels, *[-1] * (width - len(labels))] for labels in tags]


def hot(tags, width=4):
    return [[float(n in labels) for n in range(width)] for labels in tags]


def test_padded_to_the_longest(path):
    with provider(path, label_width="longest") as images:
        assert images.provide_label[0].shape == (5, 3)
        assert next(iter(images)).label[0].tolist() == padded(TAGS)
        assert images.num_classes == 4
    with provider(path, label_width="longest", label_dtype="int64") as images:
        assert next(iter(images)).label[0].dtype == np.int64


def test_rows_with_1_for_each_label(path):
    with provider(path, multi_hot=6, shuffle=True, seed=1) as images:
        assert images.provide_label[0].shape == (5, 6)
        label = next(iter(images)).label[0]
        assert (label.dtype, images.num_classes) == (np.float32, 6)
        assert sorted(label.tolist()) == sorted(hot(TAGS, 6))


def test_a_single_class(tmp_path):
    with provider(write(tmp_path / "a.rec", [[0]] * 5), multi_hot=1) as images:
        assert next(iter(images)).label[0].tolist() == [[1]] * 5


def test_labels_of_several_packs(path, tmp_path):
    other = write(tmp_path / "other.rec", [[1, 0], [1]])
    packs = [Pack(path), Pack(other, labels="append")]
    with provider(packs, multi_hot=6, batch_size=7) as images:
        assert next(iter(images)).label[0].tolist() == hot([*TAGS, [5, 4], [5]], 6)
    with provider(packs, label_width="longest", batch_size=7) as images:
        assert next(iter(images)).label[0].tolist() == padded([*TAGS, [5, 4], [5]])


@pytest.mark.parametrize("wrong", [[4], [-1], [0.5], [0, 7], [float("nan")]])
def test_a_label_that_numbers_no_class(tmp_path, wrong):
    path = write(tmp_path / "a.rec", [*TAGS[:4], wrong])
    with provider(path, multi_hot=4) as images, pytest.raises(LabelError, match="multi_hot") as e:
        next(iter(images))
    assert (e.value.path, e.value.record) == (str(path), 4)
    with provider(path, multi_hot=4, batch_size=4, on_error="skip") as images:
        assert next(iter(images)).label[0].tolist() == hot(TAGS[:4])


def test_what_contradicts(path, tmp_path):
    with pytest.raises(ValueError, match="label_width"):
        provider(path, label_width="all")
    with pytest.raises(ValueError, match="drop label_width"):
        provider(path, label_width=2, multi_hot=4)
    with pytest.raises(ValueError, match="multi_hot"):
        provider(path, multi_hot=0)
    (tmp_path / "a.lst").write_text("0\t1\ta.png\n")
    with pytest.raises(ValueError, match="drop path_imglist"):
        provider(path, multi_hot=4, path_imglist=tmp_path / "a.lst")
    with pytest.raises(ValueError, match="class labels"):
        provider(path, multi_hot=4, images_per_class=2)
    with pytest.raises(LabelError, match="label_width is 1"):
        next(iter(provider(path)))


def test_data_sets(path, tmp_path):
    assert [label.tolist() for _, label in ImageRecordDataset(path, multi_hot=4)] == hot(TAGS)
    labels = [np.atleast_1d(label).tolist() for _, label in ImageRecordDataset(path)]
    assert labels == TAGS
    with pytest.raises(LabelError, match="record 1, id 1: the label 2 numbers none of the 2"):
        ImageRecordDataset(write(tmp_path / "a.rec", [[1], [0, 2]]), multi_hot=2)[1]


def test_loaders(path):
    with ImageLoader(path, data_shape=(3, 4, 4), batch_size=5, multi_hot=4) as loader:
        assert next(iter(loader))[1].tolist() == hot(TAGS)
