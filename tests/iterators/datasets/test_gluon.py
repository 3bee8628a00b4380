"""gluon's datasets: orders, labels, what is left out, and datasets made of them."""

import pickle

import numpy as np
import pytest
from torch.utils.data import DataLoader

import recordio
from iterators.datasets.gluon import (
    ArrayDataset,
    Dataset,
    ImageFolderDataset,
    ImageRecordDataset,
    RecordFileDataset,
    SimpleDataset,
)
from iterators.testing import encode, noise, write_pack, write_records
from recordio.errors import CorruptRecordError, ImageDecodeError, RecordHeaderError


def pixels(number):
    return noise(6, 5, seed=number)


@pytest.fixture
def path(tmp_path):
    images = [pixels(i) for i in range(4)]
    return write_pack(tmp_path / "a.rec", images, [0, 1, 2, [3, 4]], keys=range(0, 40, 10))


def test_records_come_in_the_order_of_the_index(path):
    index = path.with_suffix(".idx")
    index.write_text("".join(reversed(index.read_text().splitlines(keepends=True))))
    records = RecordFileDataset(path)
    assert len(records) == 4 and isinstance(records[0], bytes)
    assert [recordio.unpack(record)[0].id for record in records] == [3, 2, 1, 0]
    index.unlink()
    assert [recordio.unpack(record)[0].id for record in RecordFileDataset(str(path))] == [
        0,
        1,
        2,
        3,
    ]
    with pytest.raises(IndexError):
        records[4]


def test_images_of_records(path):
    images = ImageRecordDataset(path)
    for i in range(3):
        image, label = images[i]
        np.testing.assert_array_equal(image, pixels(i))
        assert label == float(i) and isinstance(label, float)
    assert images[-1][1].tolist() == [3, 4] and images[-1][1].flags.writeable
    grey = ImageRecordDataset(path, 0, lambda image, label: (image / 255, int(label)))
    assert grey[2][0].shape == (6, 5, 1) and grey[2][1] == 2
    with pytest.raises(ValueError, match="flag=2"):
        ImageRecordDataset(path, 2)


def test_bad_records_are_named(tmp_path):
    no_image = recordio.pack(recordio.IRHeader(0, 1.0, 7, 0), b"no image")
    write_records(tmp_path / "bad.rec", [no_image, b"short"], index=False)
    images = ImageRecordDataset(tmp_path / "bad.rec")
    with pytest.raises(ImageDecodeError, match=r"bad\.rec, offset 0, record 0: not an image"):
        images[0]
    with pytest.raises(RecordHeaderError, match=r"bad\.rec, offset \d+, record 1"):
        images[1]
    (tmp_path / "bad.rec").write_bytes(b"\0" * 16)
    with pytest.raises(CorruptRecordError):
        ImageRecordDataset(tmp_path / "bad.rec")[0]


def test_folders_of_images(tmp_path):
    for number, name in enumerate(
        ("dog/b.PNG", "dog/a.png", "cat/x.jpeg", "none/note.txt", "list")
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(encode(pixels(number)))
    with pytest.warns(UserWarning, match=r"2 files were left out .*list, none/note\.txt"):
        images = ImageFolderDataset(tmp_path)
    assert images.synsets == ["cat", "dog", "none"]
    assert [(path[len(str(tmp_path)) + 1 :], label) for path, label in images.items] == [
        ("cat/x.jpeg", 0), ("dog/a.png", 1), ("dog/b.PNG", 1),
    ]  # fmt: skip
    np.testing.assert_array_equal(images[1][0], pixels(1))
    assert images[-1][1] == 1 and len(images) == 3
    with pytest.raises(IndexError):
        images[3]
    (tmp_path / "cat/x.jpeg").write_bytes(b"no image")
    with pytest.raises(ImageDecodeError, match=r"x\.jpeg: not an image"):
        images[0]


def test_datasets_made_of_datasets(path):
    images = ImageRecordDataset(path)
    sizes = images.transform(lambda image, label: image.size).take(2)
    assert list(sizes) == [90, 90] and len(images.take(None)) == len(images.take(9)) == 4
    first = images.transform_first(lambda image: image[0, 0].tolist())
    assert first[1] == (pixels(1)[0, 0].tolist(), 1.0)
    assert [label for _, label in images.filter(lambda sample: sample[1] is not None)][:3] == [
        0,
        1,
        2,
    ]
    assert [label for _, label in images.sample([2, 0, 0])] == [2, 0, 0]
    calls = []
    eager = SimpleDataset([1, 2]).transform(lambda x: calls.append(x) or -x, lazy=False)
    assert list(eager) == list(eager) == [-1, -2] and calls == [1, 2]
    assert SimpleDataset([1, 2]).transform_first(abs)[1] == 2
    for arguments in ((0, 0), (2, 2), (2, -1)):
        with pytest.raises(ValueError):
            images.shard(*arguments)


def test_arrays_side_by_side():
    pairs = ArrayDataset(np.arange(3), [5, 6, 7])
    assert pairs[1] == (1, 6) and pairs[:2] == [(0, 5), (1, 6)] and len(pairs) == 3
    for arguments in ((), ([1], [1, 2])):
        with pytest.raises(ValueError, match="expected one length"):
            ArrayDataset(*arguments)


def test_a_dataset_of_ones_own_in_gluons_way():
    class Squares(Dataset):
        def __len__(self):
            return 5

        def __getitem__(self, i):
            return i * i

    assert list(Squares().shard(2, 1)) == [9, 16]
    assert list(Squares().filter(lambda x: x > 3).transform(str)) == ["4", "9", "16"]


def _halved(image):
    return image // 2


def test_loaders_and_pickles(path):
    images = ImageRecordDataset(path).take(3).transform_first(_halved)
    again = pickle.loads(pickle.dumps(images))
    np.testing.assert_array_equal(again[2][0], images[2][0])
    (batch,) = DataLoader(images, batch_size=3)
    assert tuple(batch[0].shape) == (3, 6, 5, 3) and batch[1].tolist() == [0, 1, 2]
