"""Record files as datasets: bytes, headers, decoded images and labels."""

import os
import pickle
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest
from hypothesis import given
from torch.utils.data import DataLoader

import recordio
from iterators import ConcatenatedDataset, ImageRecordDataset, ImageRecordIter, RecordDataset
from iterators.testing import check_dataset, write_records
from iterators.testing.strategies import rows_asked_for
from recordio.errors import (
    CorruptRecordError,
    EmptyRecordFileError,
    ImageDecodeError,
    LabelError,
    RecordHeaderError,
    RecordIOError,
)

torch = pytest.importorskip("torch")

PAYLOADS = [bytes([65 + i]) * (i * 7 % 19) for i in range(20)]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return write_records(tmp_path_factory.mktemp("records") / "plain.rec", PAYLOADS)


@given(case=rows_asked_for(20))
def test_records_are_indexed_as_a_list(plain, case):
    records = RecordDataset(plain)
    assert len(records) == 20
    index, rows = case
    assert records[index] == records.__getitems__(rows) == [PAYLOADS[i] for i in rows]


def test_they_are_data_sets(plain, pictures):
    check_dataset(RecordDataset(plain))
    check_dataset(ImageRecordDataset(pictures))


def test_iteration_ends_with_the_last_record(plain):
    assert list(RecordDataset(plain)) == PAYLOADS
    for i in (20, -21):
        with pytest.raises(IndexError):
            RecordDataset(plain)[i]
    with pytest.raises(TypeError):
        RecordDataset(plain)[1.0]


def test_views_are_not_copied(plain):
    records = RecordDataset(plain, copy=False)
    assert isinstance(records[3], memoryview)
    assert all(isinstance(record, memoryview) for record in records[2:5])
    assert records[3] == PAYLOADS[3]
    base = np.frombuffer(records.reader[3], np.uint8)
    assert np.shares_memory(np.frombuffer(records[3], np.uint8), base)


def test_an_index_gives_the_order(tmp_path):
    path, index = tmp_path / "a.rec", tmp_path / "a.idx"
    write_records(path, PAYLOADS[:3], keys=[5, 1, 3])
    lines = index.read_text().splitlines(keepends=True)
    index.write_text("".join(reversed(lines)))
    assert RecordDataset(path, index)[:] == PAYLOADS[2::-1]


@pytest.mark.parametrize("copy", [True, False])
def test_headers_are_unpacked_when_asked_for(tmp_path, copy):
    headers = [recordio.IRHeader(0, 2.5, 7, 0), recordio.IRHeader(0, [1, 2], 8, 0)]
    path = write_records(
        tmp_path / "a.rec", [recordio.pack(header, b"content") for header in headers]
    )
    data = RecordDataset(path, header=True, copy=copy)
    header, content = data[0]
    assert header == headers[0]
    assert content == b"content"
    (header, _), (again, _) = data[[1, -1]]
    assert header.label.tolist() == again.label.tolist() == [1, 2]


def test_a_record_without_a_header_is_named(tmp_path):
    path = write_records(tmp_path / "a.rec", [recordio.pack((0, 1, 0, 0), b""), b"short"])
    data = RecordDataset(path, header=True)
    for read in (lambda: data[1], lambda: data[-1], lambda: data[:]):
        with pytest.raises(RecordHeaderError) as caught:
            read()
        assert caught.value.path == str(path)
        assert caught.value.record == 1
        assert caught.value.offset == data.reader.offset_of(1)


def test_damage_is_an_error_with_its_place(tmp_path, plain):
    path, index = tmp_path / "a.rec", tmp_path / "a.idx"
    write_records(path, PAYLOADS)
    content = bytearray(path.read_bytes())
    place = int(recordio.RecordReader(path, index).offsets[4])
    content[place] ^= 1
    path.write_bytes(content)
    data = RecordDataset(path, index)
    assert data[:4] == PAYLOADS[:4]
    for read in (lambda: data[4], lambda: data[[0, 4]]):
        with pytest.raises(CorruptRecordError) as caught:
            read()
        assert caught.value.record == 4


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_records_go_into_other_processes(plain, read_in_a_new_process, read_in_forks):
    records = RecordDataset(plain)
    records[0]
    assert read_in_a_new_process(records, slice(2, 5)) == PAYLOADS[2:5]
    assert read_in_forks(records, range(20)) == [PAYLOADS] * 3
    for workers in (0, 2):
        loader = DataLoader(records, batch_size=8, num_workers=workers)
        assert sum(loader, []) == PAYLOADS


SIZES = [(8, 12), (5, 9), (16, 16), (7, 3)]


def image(i, channels=3):
    height, width = SIZES[i % 4]
    return np.random.default_rng(i).integers(0, 256, (height, width, channels), np.uint8)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Twenty PNG images with labels 0 to 19, of which the last has a vector of three."""
    payloads = []
    for i in range(20):
        label = i if i < 19 else [19, 0.5, -1]
        bgr = image(i)[:, :, ::-1]
        payloads.append(recordio.pack_img((0, label, 100 + i, 0), bgr, img_fmt=".png"))
    return write_records(tmp_path_factory.mktemp("pictures") / "pictures.rec", payloads)


@pytest.mark.parametrize("threads", [None, 1, 3])
def test_images_are_decoded_with_their_labels(pictures, threads):
    data = ImageRecordDataset(pictures, threads=threads)
    assert len(data) == 20
    for rows in (range(20), [3, 3, -2, 0], []):
        for i, (pixels, label) in zip(rows, data.__getitems__(list(rows)), strict=True):
            np.testing.assert_array_equal(pixels, image(i % 20))
            if i % 20 < 19:
                assert type(label) is np.float32
                assert label == i % 20
    vector = data[19][1]
    assert vector.dtype == np.float32
    assert vector.tolist() == [19, 0.5, -1]
    assert len(data[::5]) == 4
    for i in (20, -21):
        with pytest.raises(IndexError):
            data[i]


def test_channels_and_layouts(pictures):
    data = ImageRecordDataset(pictures, layout="CHW")
    assert data[0][0].flags.c_contiguous
    np.testing.assert_array_equal(data[0][0], image(0).transpose(2, 0, 1))
    assert ImageRecordDataset(pictures, channels=1)[0][0].shape == (8, 12, 1)
    assert ImageRecordDataset(pictures, channels=1, layout="CHW")[1][0].shape == (1, 5, 9)
    with pytest.raises(ImageDecodeError, match="4"):
        ImageRecordDataset(pictures, channels=4)[0]


@pytest.mark.parametrize("kind", [".png", ".tiff"])
def test_depths_of_16_bits_keep_every_bit(tmp_path, kind):
    depths = np.random.default_rng(1).integers(0, 1 << 16, (6, 30, 40), np.uint16)
    payloads = [
        recordio.pack((0, i, i, 0), cv2.imencode(kind, plane)[1].tobytes())
        for i, plane in enumerate(depths)
    ]
    path = write_records(tmp_path / "depths.rec", payloads)
    for layout, axis in (("HWC", -1), ("CHW", 0)):
        data = ImageRecordDataset(path, channels=1, dtype="float32", layout=layout, threads=2)
        for (values, label), plane in zip(data.__getitems__(range(6)), depths, strict=True):
            assert values.dtype == np.float32
            assert values.flags.c_contiguous
            np.testing.assert_array_equal(values.squeeze(axis), plane)
        assert label == 5
    with pytest.warns(UserWarning, match="upper 8 bits"):
        shallow = ImageRecordDataset(path, channels=1)[0][0]
    np.testing.assert_array_equal(shallow[..., 0], depths[0] >> 8)


def test_a_transform_takes_the_image_in_the_callers_thread(pictures):
    here = []

    def transform(pixels):
        here.append(threading.current_thread() is threading.main_thread())
        return pixels.shape

    data = ImageRecordDataset(pictures, transform=transform, threads=4)
    assert [found for found, _ in data[:16]] == [image(i).shape for i in range(16)]
    assert data[0] == ((8, 12, 3), 0)
    assert all(here)


def test_labels_are_cast_when_they_can_be(pictures):
    data = ImageRecordDataset(pictures, label_dtype="int64")
    assert type(data[7][1]) is np.int64
    with pytest.raises(LabelError) as caught:
        data[19]
    assert (caught.value.record, caught.value.record_id) == (19, 119)
    with pytest.raises(TypeError, match="label_dtype"):
        ImageRecordDataset(pictures, label_dtype="U3")


@pytest.mark.parametrize(
    ("label", "dtype", "fits"),
    [(255, "uint8", True), (256, "uint8", False), (-1, "uint8", False), (2.0**31, "int32", False),
     (float("nan"), "int64", False), (float("inf"), "int64", False), (2.0**63, "int64", False),
     (-(2.0**63), "int64", True)],
)  # fmt: skip
def test_integer_labels_have_a_range(tmp_path, label, dtype, fits):
    payload = recordio.pack_img((0, label, 0, 0), image(0), img_fmt=".png")
    data = ImageRecordDataset(write_records(tmp_path / "a.rec", [payload]), label_dtype=dtype)
    if fits:
        assert data[0][1] == label
    else:
        with pytest.raises(LabelError):
            data[0]


def test_examples_are_the_samples_of_the_provider(pictures, photos, tmp_path):
    payloads = [
        recordio.pack_img((0, i, i, 0), pixels[:200, :200, ::-1])
        for i, pixels in enumerate(photos.values())
    ]
    path = write_records(tmp_path / "a.rec", payloads)
    provider = ImageRecordIter(path_imgrec=str(path), data_shape=(3, 200, 200), batch_size=4)
    batch = next(iter(provider))
    data = ImageRecordDataset(path, layout="CHW")
    for i, (pixels, label) in enumerate(data):
        np.testing.assert_array_equal(pixels, batch.data[0][i])
        assert label == batch.label[0][i]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"channels": 2}, "channels"),
        ({"layout": "WHC"}, "layout"),
        ({"dtype": "int16"}, "dtype"),
        ({"dtype": "float32", "channels": 4}, "8 bits"),
        ({"threads": 0}, "threads"),
        ({"max_pixels": 0}, "max_pixels"),
    ],
)
def test_arguments_are_checked(pictures, options, message):
    with pytest.raises(ValueError, match=message):
        ImageRecordDataset(pictures, **options)


@pytest.mark.parametrize("threads", [1, 3])
def test_bad_images_are_named(tmp_path, threads):
    good = recordio.pack_img((0, 1, 0, 0), image(0), img_fmt=".png")
    cases = {
        "no image": (recordio.pack((0, 1, 9, 0), b"no image"), ImageDecodeError),
        "truncated": (good[: len(good) // 2], ImageDecodeError),
        "empty": (b"", RecordHeaderError),
    }
    for payload, error in cases.values():
        path = write_records(tmp_path / "a.rec", [good] * 9 + [payload])
        data = ImageRecordDataset(path, threads=threads)
        for read in (lambda: data[9], lambda: data[:]):
            with pytest.raises(error) as caught:
                read()
            assert caught.value.path == str(path)
            assert caught.value.record == 9
        assert len(data[:9]) == 9
    with pytest.raises(ImageDecodeError, match="too large"):
        ImageRecordDataset(path, max_pixels=10)[0]


def test_a_dataset_of_images_describes_itself(pictures):
    name = f"ImageRecordDataset of Pack({str(pictures)!r}): {len(ImageRecordDataset(pictures))}"
    assert repr(ImageRecordDataset(pictures, layout="CHW")) == f"<{name} images, CHW uint8>"
    views = [{}, {"data_shape": (3, 2, 2)}]
    augmented = ImageRecordDataset(pictures, data_shape=(3, 4, 4), views=views)
    augmented.set_epoch(3)
    form = "CHW float32 of (3, 4, 4) and (3, 2, 2), epoch 3"
    assert repr(augmented) == f"<{name} images, {form}>"


def test_several_files_are_numbered_through(pictures, tmp_path):
    for name in ("a.rec", "b.rec"):
        shutil.copy(pictures, tmp_path / name)
    (tmp_path / "b.rec").write_bytes(
        (tmp_path / "b.rec").read_bytes()
        + write_records(tmp_path / "c", [recordio.pack((0, 1, 0, 0), b"x")]).read_bytes()
    )
    data = ImageRecordDataset(tmp_path)
    assert len(data) == 41
    assert [label for _, label in data[18:22:3]] == [18, 1]
    with pytest.raises(ImageDecodeError) as caught:
        data[40]
    assert caught.value.path.endswith("b.rec")
    assert caught.value.record == 20


def test_of_a_face_pack_the_examples_are_the_images(tmp_path):
    path, index = tmp_path / "faces.rec", tmp_path / "faces.idx"
    with recordio.RecordWriter(path, index) as writer:
        writer.write(recordio.pack((0, [6, 8], 0, 0), b""), key=0)
        for key in range(1, 6):
            label = float(key > 3)
            writer.write(recordio.pack_img((0, label, key, 0), image(key), img_fmt=".png"), key=key)
        writer.write(recordio.pack((0, [1, 4], 6, 0), b""), key=6)
        writer.write(recordio.pack((0, [4, 6], 7, 0), b""), key=7)
    data = ImageRecordDataset(path, index)
    assert len(data) == 5
    assert data.identities.tolist() == [[0, 3], [3, 5]]
    for identity, (first, end) in enumerate(data.identities):
        assert {float(label) for _, label in data[first:end]} == {identity}
    assert ImageRecordDataset(path).identities.tolist() == [[0, 3], [3, 5]]
    lines = index.read_text().splitlines()
    index.write_text("\n".join(line for line in lines if not line.startswith("2\t")) + "\n")
    assert ImageRecordDataset(path, index).identities.tolist() == [[0, 2], [2, 4]]
    recordio.shuffle(path, tmp_path / "shuffled", seed=2, skip_errors=True)
    shuffled = ImageRecordDataset(tmp_path / "shuffled.rec", tmp_path / "shuffled.idx")
    with pytest.raises(recordio.RecordIOError, match="do not lie identity by identity"):
        _ = shuffled.identities
    recordio.sort(tmp_path / "shuffled", tmp_path / "sorted", "key")
    data = ImageRecordDataset(tmp_path / "sorted.rec", tmp_path / "sorted.idx")
    assert data.identities.tolist() == [[0, 2], [2, 4]]


def test_an_empty_file_is_an_error(tmp_path):
    (tmp_path / "a.rec").write_bytes(b"")
    assert len(RecordDataset(tmp_path / "a.rec")) == 0
    with pytest.raises(EmptyRecordFileError, match="no records"):
        ImageRecordDataset(tmp_path / "a.rec")
    with pytest.raises(OSError):
        ImageRecordDataset(tmp_path / "missing.rec")


def test_images_go_into_other_processes_and_threads(pictures, read_in_a_new_process, read_in_forks):
    data = ImageRecordDataset(pictures, threads=2)
    data[:]  # starts the threads
    pixels, label = read_in_a_new_process(data, 3)
    np.testing.assert_array_equal(pixels, image(3))
    for found in read_in_forks(data, [slice(0, 16), 5]):
        assert [int(label) for _, label in found[0]] == list(range(16))
    with ThreadPoolExecutor(6) as pool:
        for part in pool.map(data.__getitem__, [slice(0, 19)] * 12):
            assert [int(label) for _, label in part] == list(range(19))
    copied = pickle.loads(pickle.dumps(data))
    assert len(copied[:]) == 20


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("workers", [0, 2])
def test_the_loader_of_torch_gets_batches(tmp_path, workers):
    payloads = [recordio.pack_img((0, i, i, 0), image(0), img_fmt=".png") for i in range(12)]
    path = write_records(tmp_path / "a.rec", payloads)
    data = ImageRecordDataset(path, layout="CHW", label_dtype="int64")
    loader = DataLoader(
        ConcatenatedDataset(data, data), batch_size=8, num_workers=workers, shuffle=False
    )
    batches = list(loader)
    assert [tuple(pixels.shape) for pixels, _ in batches] == [(8, 3, 8, 12)] * 3
    labels = torch.cat([labels for _, labels in batches])
    assert labels.dtype == torch.int64
    assert labels.tolist() == list(range(12)) * 2


def test_threads_end_with_the_dataset(pictures):
    before = set(threading.enumerate())
    data = ImageRecordDataset(pictures, threads=3)
    data[:]
    workers = set(threading.enumerate()) - before
    assert workers
    del data
    for worker in workers:
        worker.join(30)
        assert not worker.is_alive()


def test_errors_are_of_one_family(tmp_path):
    (tmp_path / "a.rec").write_bytes(os.urandom(64))
    for build in (RecordDataset, ImageRecordDataset):
        with pytest.raises(RecordIOError):
            build(tmp_path / "a.rec")[0]
