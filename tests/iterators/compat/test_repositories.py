"""Calls that loaders of ten public repositories make, in their order and in our own words."""

import io
import multiprocessing
import numbers
import pickle
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest

from iterators import ImageRecordIter
from iterators.compat import mxnet as mx
from recordio import MXIndexedRecordIO

GOLDEN = Path(__file__).parents[2] / "golden"
SIZE = 24


def faces(seed, count):
    """BGR images with a little noise."""
    random = np.random.default_rng(seed)
    return [
        cv2.GaussianBlur(random.integers(0, 256, (SIZE, SIZE, 3), np.uint8), (5, 5), 2)
        for _ in range(count)
    ]


@pytest.fixture
def pack(tmp_path):
    """A pack with identities, built as insightface's builders do: record 0 is written last."""
    writer = mx.recordio.MXIndexedRecordIO(
        str(tmp_path / "train.idx"), str(tmp_path / "train.rec"), "w"
    )
    number, ranges = 1, []
    for label in range(3):
        first = number
        for image in faces(label, 2 + label):
            header = mx.recordio.IRHeader(0, label, number, 0)
            writer.write_idx(number, mx.recordio.pack_img(header, image, 95, ".jpg"))
            number += 1
        ranges.append([first, number])
    identities = number
    for found in ranges:
        header = mx.recordio.IRHeader(0, found, number, 0)
        writer.write_idx(number, mx.recordio.pack(header, b""))
        number += 1
    header = mx.recordio.IRHeader(0, (identities, number), 0, 1)
    writer.write_idx(0, mx.recordio.pack(header, b""))
    writer.close()
    return tmp_path


def opened(folder):
    return mx.recordio.MXIndexedRecordIO(str(folder / "train.idx"), str(folder / "train.rec"), "r")


class Faces:
    """arcface_torch and cavaface: a data set over the images that record 0 announces."""

    def __init__(self, folder):
        self.records = opened(folder)
        header, _ = mx.recordio.unpack(self.records.read_idx(0))
        assert header.flag > 0
        self.identities = int(header.label[1]) - int(header.label[0])
        self.numbers = np.array(range(1, int(header.label[0])))

    def __getitem__(self, index):
        header, content = mx.recordio.unpack(self.records.read_idx(self.numbers[index]))
        label = header.label
        if not isinstance(label, numbers.Number):
            label = label[0]
        return mx.image.imdecode(content).asnumpy(), label

    def __len__(self):
        return len(self.numbers)


def test_arcface_torch_and_cavaface(pack):
    import torch
    from PIL import Image

    data = Faces(pack)
    assert (len(data), data.identities) == (9, 3)
    assert [int(data[i][1]) for i in range(9)] == [0, 0, 1, 1, 1, 2, 2, 2, 2]
    image, label = data[5]
    assert type(image) is np.ndarray and torch.tensor(label, dtype=torch.long) == 2
    assert np.asarray(Image.fromarray(image)).shape == (SIZE, SIZE, 3)
    assert torch.from_numpy(image.transpose(2, 0, 1)).shape == (3, SIZE, SIZE)
    loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=2)
    assert [len(labels) for _, labels in loader] == [4, 4, 1]


def copied(source, queue):
    """Put every record of a pack into a queue, in another process."""
    records = opened(Path(source))
    header, _ = mx.recordio.unpack(records.read_idx(0))
    for number in reversed(range(1, int(header.label[0]))):
        queue.put(records.read_idx(number))
    queue.put(None)


def test_a_pack_is_shuffled_through_a_queue(pack, tmp_path):
    queue = multiprocessing.Queue(64)
    process = multiprocessing.Process(target=copied, args=(str(pack), queue), daemon=True)
    process.start()
    target = tmp_path / "shuffled"
    target.mkdir()
    writer = mx.recordio.MXIndexedRecordIO(
        str(target / "train.idx"), str(target / "train.rec"), "w"
    )
    count = 0
    while (item := queue.get(timeout=60)) is not None:
        header, content = mx.recordio.unpack(item)
        assert isinstance(header.label, float)
        header = mx.recordio.IRHeader(
            flag=header.flag, label=header.label, id=header.id, id2=header.id2
        )
        writer.write_idx(count, mx.recordio.pack(header, content))
        count += 1
    writer.close()
    process.join()
    again = opened(target)
    assert count == 9 and again.keys == list(range(9))
    assert mx.recordio.unpack(again.read_idx(0))[0].label == 2


def test_builders_that_never_close_their_file(tmp_path):
    def build():
        writer = mx.recordio.MXIndexedRecordIO(
            str(tmp_path / "a.idx"), str(tmp_path / "a.rec"), "w"
        )
        for i, image in enumerate(faces(0, 3)):
            header = mx.recordio.IRHeader(0, i, i, 0)
            encoded = cv2.imencode(".jpg", image)[1].tobytes()
            writer.write_idx(i, mx.recordio.pack(header, encoded))

    build()
    assert len(MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "r").keys) == 3


def test_labels_of_face2rec2(pack):
    header = mx.recordio.IRHeader(0, [7, 1], 3, 0)  # a label, and whether the face is aligned
    read, content = mx.recordio.unpack(mx.recordio.pack(header, b"jpeg"))
    assert read.flag == 2 and read.label.tolist() == [7, 1] and content == b"jpeg"
    with pytest.raises(TypeError):  # of Python 2: an empty text behind the labels of an identity
        mx.recordio.pack(mx.recordio.IRHeader(2, [1.0, 3.0], 3, 0), "")
    provider = ImageRecordIter(
        path_imgrec=str(pack / "train.rec"),
        path_imgidx=str(pack / "train.idx"),
        data_shape=(3, SIZE, SIZE),
        batch_size=9,
    )
    assert provider.num_samples == 9 and len(provider.identities) == 3


def test_insightface_pytorch_and_face_evolve(pack, tmp_path):
    from PIL import Image

    records = opened(pack)
    header, _ = mx.recordio.unpack(records.read_idx(0))
    for number in range(1, int(header.label[0])):
        header, image = mx.recordio.unpack_img(records.read_idx(number))
        folder = tmp_path / "imgs" / str(int(header.label))
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{number}.jpg", quality=95)
    assert len(list((tmp_path / "imgs").rglob("*.jpg"))) == 9
    pairs = [cv2.imencode(".png", image)[1].tobytes() for image in faces(5, 2)], [True]
    bins, same = pickle.loads(pickle.dumps(pairs))
    decoded = mx.image.imdecode(bins[0]).asnumpy()
    assert (cv2.cvtColor(decoded, cv2.COLOR_RGB2BGR) == faces(5, 2)[0]).all() and same == [True]
    mirrored = mx.ndarray.flip(data=mx.nd.transpose(mx.nd.array(decoded), axes=(2, 0, 1)), axis=2)
    assert (mirrored.asnumpy()[0] == decoded[:, ::-1, 0]).all()  # as the test sets are read


def test_keras_insightface_writes_folders(pack, tmp_path):
    records = opened(pack)
    header, _ = mx.recordio.unpack(records.read_idx(0))
    found = []
    for number in range(1, int(header.label[0])):
        header, content = mx.recordio.unpack(records.read_idx(number))
        found.append(str(int(np.sum(header.label))))
        with open(tmp_path / f"{number}.jpg", "wb") as file:
            file.write(content)
        assert cv2.imread(str(tmp_path / f"{number}.jpg")) is not None
    assert found == list("001112222")


class RecordDetection(mx.gluon.data.vision.ImageRecordDataset):
    """gluon-cv: boxes in pixels, made of the labels of a record."""

    def __getitem__(self, index):
        image, label = super().__getitem__(index)
        height, width, _ = image.shape
        label = np.array(label).ravel()
        objects = label[int(label[0]) :].reshape(-1, int(label[1]))
        boxes = np.concatenate([objects[:, 1:5], objects[:, :1]], axis=1)
        boxes[:, (0, 2)] *= width
        boxes[:, (1, 3)] *= height
        return image, boxes


def test_gluon_cv_data_sets_and_transforms(tmp_path):
    source = mx.recordio.MXRecordIO(str(GOLDEN / "det_boxes.rec"), "r")
    with mx.recordio.MXRecordIO(str(tmp_path / "a.rec"), "w") as target:
        for _ in range(2):
            target.write(source.read())
    data = RecordDetection(str(tmp_path / "a.rec"))
    image, boxes = data[0]
    assert isinstance(image, mx.nd.NDArray) and boxes.shape == (2, 5)
    height, width, _ = image.shape
    small = mx.image.imresize(mx.image.fixed_crop(image, 2, 1, 20, 16), 12, 8, interp=1)
    tensor = mx.nd.image.normalize(
        mx.nd.image.to_tensor(small), mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)
    )
    assert tensor.shape == (3, 8, 12) and tensor.expand_dims(0).shape == (1, 3, 8, 12)
    assert boxes.astype(tensor.dtype).dtype == np.float32
    flipped = mx.nd.flip(image, axis=1)
    assert (flipped.asnumpy()[:, 0] == image.asnumpy()[:, -1]).all()
    canvas = mx.nd.full((2 * height, 2 * width, 3), 124, dtype="uint8")
    canvas[height : 2 * height, width : 2 * width, :] = image
    assert (canvas[height:, width:].asnumpy() == image.asnumpy()).all()
    gt = mx.nd.array(boxes[np.newaxis, :, :4])
    assert gt.shape == (1, 2, 4)
    batches = mx.gluon.data.DataLoader(
        data,
        2,
        num_workers=2,
        batchify_fn=mx.gluon.data.batchify.Tuple(
            mx.gluon.data.batchify.AsList(), mx.gluon.data.batchify.Pad(val=-1)
        ),
    )
    ((images, padded),) = batches
    assert len(images) == 2 and padded.shape[0] == 2


class DetectionRecords(mx.io.DataIter):
    """mxnet-ssd: `ImageDetRecordIter`, its labels reshaped."""

    def __init__(self, path, batch_size, shape):
        super().__init__()
        self.inner = mx.io.ImageDetRecordIter(
            path_imgrec=path,
            batch_size=batch_size,
            data_shape=shape,
            label_width=-1,
            label_pad_width=40,
            label_pad_value=-1,
            resize_mode="force",
            mean_r=123.68,
            mean_g=116.779,
            mean_b=103.939,
        )
        self.provide_label = None
        self._fetch()
        self.reset()

    @property
    def provide_data(self):
        return self.inner.provide_data

    def reset(self):
        self.inner.reset()

    def iter_next(self):
        return self._fetch()

    def next(self):
        if self.iter_next():
            return self.batch
        raise StopIteration

    def _fetch(self):
        self.batch = self.inner.next()
        if not self.batch:
            return False
        label = self.batch.label[0].asnumpy()
        if self.provide_label is None:
            first = self.batch.label[0][0].asnumpy()
            self.batch_size = self.batch.label[0].shape[0]
            self.begin, self.width = 4 + int(first[4]), int(first[5])
            self.count = (first.size - self.begin) // self.width
            self.provide_label = [("label", (self.batch_size, self.count, self.width))]
        label = label[:, self.begin : self.begin + self.count * self.width]
        self.batch.label = [mx.nd.array(label.reshape(self.batch_size, self.count, self.width))]
        return True


def test_mxnet_ssd_iterates_over_records_with_boxes():
    it = DetectionRecords(str(GOLDEN / "det_boxes.rec"), 1, (3, 32, 32))
    batches = list(it)
    assert len(batches) == 3
    for batch in batches:
        assert batch.label[0].shape == it.provide_label[0][1]
        assert batch.data[0].shape == (1, 3, 32, 32)


def test_sagemakers_image_packs(tmp_path):
    from iterators.compat.mxnet.tools.im2rec import main

    shutil.copytree(GOLDEN / "im2rec" / "photos", tmp_path / "photos")
    prefix, root = str(tmp_path / "caltech"), str(tmp_path / "photos")
    assert main(["--list", "--recursive", prefix, root]) == 0
    assert main(["--resize", "24", "--quality", "90", "--num-thread", "2", prefix, root]) == 0
    it = mx.io.ImageRecordIter(
        path_imgrec=f"{prefix}.rec", data_shape=(3, 20, 20), batch_size=2, rand_crop=True
    )
    assert next(iter(it)).data[0].asnumpy().shape == (2, 3, 20, 20)


def test_packs_that_dali_reads(pack):
    """DALI's reader goes by the index: an id, a tab and an offset in each line."""
    lines = [line.split("\t") for line in (pack / "train.idx").read_text().splitlines()]
    raw = io.BytesIO((pack / "train.rec").read_bytes())
    for _, offset in lines:
        raw.seek(int(offset))
        assert raw.read(4) == b"\x0a\x23\xd7\xce"
    rewritten = mx.recordio.MXRecordIO(str(pack / "train.rec"), "r")
    offsets = []
    while True:
        offsets.append(rewritten.tell())
        if rewritten.read() is None:
            break
    assert sorted(int(offset) for _, offset in lines) == offsets[:-1]
