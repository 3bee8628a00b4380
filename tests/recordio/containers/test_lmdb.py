"""LMDB databases read in place."""

import contextlib
import multiprocessing
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators import ImageRecordIter
from iterators.testing import assert_same, copies, encode, noise, write_pack
from recordio import decode_image
from recordio.bytes.files import StoredFile
from recordio.containers import lmdb as reading
from recordio.containers.lmdb import LMDB
from recordio.containers.reader import ContainedRecords
from recordio.containers.table import container_of
from recordio.errors import EmptyRecordFileError, LabelError, RecordIOError, TruncatedRecordError

IMAGES = [encode(noise(12, 10, seed=number)) for number in range(5)]


def field(number, kind, value):
    if kind == 0:
        value &= 2**64 - 1
        groups = [value >> shift & 0x7F for shift in range(0, 64, 7) if value >> shift] or [0]
        return bytes([number << 3, *(group | 0x80 for group in groups[:-1]), groups[-1]])
    length = field(0, 0, len(value))[1:]
    return bytes([number << 3 | kind]) + length + value


def datum(data, label=0, shape=None, encoded=True):
    parts = [field(i + 1, 0, size) for i, size in enumerate(shape or ())]
    parts += [field(4, 2, data), field(5, 0, label)]
    return b"".join(parts) + (field(7, 0, 1) if encoded else b"")


def write(folder, entries, **keywords):
    lmdb = pytest.importorskip("lmdb")
    with lmdb.open(str(folder), map_size=1 << 24, **keywords) as database:
        with database.begin(write=True) as transaction:
            for key, value in entries.items():
                transaction.put(key, value)
    return folder


def database(path):
    (file,) = LMDB.shards(StoredFile(str(path)), None)
    return ContainedRecords(file, LMDB)


def contents(path):
    with database(path) as records:
        return [bytes(records.content(row)) for row in range(len(records))]


def numbered(labels, images=IMAGES):
    pairs = {b"num-samples": b"%d" % len(labels)}
    for number, (label, image) in enumerate(zip(labels, images, strict=True), 1):
        pairs[b"image-%09d" % number] = image
        pairs[b"label-%09d" % number] = label
    return pairs


@pytest.mark.parametrize("kind", ["images", "datum", "numbered"])
def test_batches_are_those_of_a_record_file(kind, tmp_path):
    entries = {
        "images": {b"%d/%d.png" % (i, i): image for i, image in enumerate(IMAGES)},
        "datum": {b"%08d_x.png" % i: datum(image, i) for i, image in enumerate(IMAGES)},
        "numbered": numbered([b"%d" % i for i in range(5)]),
    }[kind]
    folder = write(tmp_path / "set", entries)
    before = sorted(path.name for path in folder.iterdir())
    write_pack(tmp_path / "a.rec", IMAGES)
    settings = {"data_shape": (3, 8, 8), "batch_size": 2, "shuffle": True, "rand_mirror": True}
    with (
        ImageRecordIter(
            path_imgrec=tmp_path / "a.rec", path_imgidx=tmp_path / "a.idx", **settings
        ) as plain,
        ImageRecordIter(path_imgrec=folder, **settings) as found,
        ImageRecordIter(path_imgrec=folder, preprocess_threads=3, **settings) as twice,
    ):
        wanted = copies(plain)
        assert_same(copies(found), wanted)
        assert_same(copies(twice), wanted)
    left = sorted(path.name for path in folder.iterdir())
    assert set(left) - set(before) <= {"data.mdb.index"}


def test_a_database_in_one_file_and_names_and_classes(tmp_path):
    entries = {b"b/1": IMAGES[0], b"a/\xff2": IMAGES[1], b"__len__": b"2"}
    path = write(tmp_path / "a.lmdb", entries, subdir=False)
    assert container_of(StoredFile(str(path))) is LMDB
    with database(path) as records:
        assert records.samples.all_names() == ["a/\udcff2", "b/1"]
        assert records.samples.labels.tolist() == [0, 1]
        assert records.samples.classes == {0: "a", 1: "b"}


@pytest.mark.parametrize("channels", [1, 3])
def test_pixels_of_caffe_become_images(tmp_path, channels):
    pixels = noise(5, 4, channels=channels)
    planes = np.ascontiguousarray(pixels[..., ::-1].transpose(2, 0, 1))
    value = datum(planes.tobytes(), -3, planes.shape, encoded=False)
    (content,) = contents(write(tmp_path / "set", {b"1": value}))
    with database(tmp_path / "set") as records:
        assert records.samples.labels.tolist() == [-3]
        assert records.samples.sizes.tolist() == [len(content)]
    image = decode_image(content, channels=channels)
    assert np.array_equal(image.reshape(5, 4, channels), pixels)


def test_labels_that_are_text_are_an_error(tmp_path):
    folder = write(tmp_path / "set", numbered([b"1", b"hello", b"2", b"3", b"4"]))
    with pytest.raises(
        LabelError, match=r"record 1: the label of image-000000002 is text, b'hello"
    ):
        database(folder)


@pytest.mark.parametrize(
    "value, reason",
    [
        (b"", "neither an image nor a Datum"),
        (b"nothing known", "neither an image nor a Datum"),
        (datum(bytes(12), 0, (3, 2, 1), encoded=False), "12 bytes of pixels for the shape"),
        (datum(bytes(8), 0, (4, 2, 1), encoded=False), "1 or 3 channels"),
        (field(6, 5, b"")[:1] + bytes(4), "a Datum of floats"),
    ],
)
def test_a_value_that_cannot_be_used_says_why(tmp_path, value, reason):
    folder = write(tmp_path / "set", {b"1": IMAGES[0], b"2": value})
    with database(folder) as records:
        assert bytes(records.content(0)) == IMAGES[0]
        with pytest.raises(RecordIOError, match=reason) as caught:
            records.content(1)
    assert caught.value.record == 1


def test_pickles_are_refused(tmp_path):
    folder = write(tmp_path / "set", {b"1": pickle.dumps((IMAGES[0], 3), protocol=4)})
    with pytest.raises(RecordIOError, match=r"the value of b'1' is a pickle, which would run code"):
        database(folder)


def test_labels_must_be_there_and_fit(tmp_path):
    entries = numbered([b"1", b"2", b"3", b"4", b"5"])
    del entries[b"label-000000002"]
    with database(write(tmp_path / "set", entries)) as records:
        with pytest.raises(RecordIOError, match="no label for image-000000002"):
            records.content(1)
    with pytest.raises(LabelError, match="no exact 32-bit float"):
        database(write(tmp_path / "large", {b"1": datum(IMAGES[0], 2**24 + 1)}))


def test_an_empty_database_and_one_without_images(tmp_path):
    with pytest.raises(EmptyRecordFileError, match="empty"):
        database(write(tmp_path / "empty", {}))
    with pytest.raises(EmptyRecordFileError, match="no images"):
        database(write(tmp_path / "none", {b"__len__": b"3"}))


def test_a_database_that_was_cut_is_an_error(tmp_path):
    folder = write(tmp_path / "set", {b"%d" % i: IMAGES[0] * 20 for i in range(9)})
    whole = (folder / "data.mdb").read_bytes()
    for size in (32, 4096, 8192, len(whole) // 2, len(whole) - 4096):
        (folder / "data.mdb").write_bytes(whole[:size])
        with pytest.raises(RecordIOError):
            database(folder)
    with pytest.raises(TruncatedRecordError, match="copy it again"):
        database(folder)


def test_any_thread_may_read(tmp_path):
    folder = write(tmp_path / "set", {b"%03d" % i: IMAGES[i % 5] for i in range(200)})
    with database(folder) as records, ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda row: bytes(records.content(row)), range(200)))
    assert found == [IMAGES[i % 5] for i in range(200)]


def in_child(records, results):
    results.put([bytes(records.content(row)) for row in range(len(records))])


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_reads_after_a_fork(tmp_path):
    folder = write(tmp_path / "set", {b"%d" % i: image for i, image in enumerate(IMAGES)})
    context = multiprocessing.get_context("fork")
    with database(folder) as records:
        records.content(0)
        results = context.Queue()
        child = context.Process(target=in_child, args=(records, results))
        child.start()
        assert results.get(timeout=30) == IMAGES
        child.join()
        assert child.exitcode == 0
        assert bytes(records.content(4)) == IMAGES[4]


def test_a_database_on_a_server_has_to_be_copied():
    file = StoredFile("s3://bucket/set.lmdb")
    assert container_of(file) is LMDB
    with pytest.raises(OSError, match="copy it there"):
        LMDB.shards(file, None)


def test_other_files_are_no_databases(tmp_path):
    for name in ("a.mdb", "a.lmdb"):
        (tmp_path / name).write_bytes(b"\0\1\0\0Standard Jet DB")
        assert container_of(StoredFile(str(tmp_path / name))) is None


@given(st.binary(max_size=60))
def test_random_values_are_images_or_errors(value):
    with contextlib.suppress(RecordIOError, reading._PickleError):
        size, _ = reading._measured(memoryview(value))
        assert len(reading._content(memoryview(value))) == size


@given(st.binary(max_size=20), st.integers(-(2**24), 2**24))
def test_a_datum_is_read_as_it_was_written(data, label):
    found = reading._datum(memoryview(datum(data, label)))
    assert (bytes(found.data), found.label, found.encoded) == (data, label, True)
    for size in range(len(datum(data, label))):
        with contextlib.suppress(RecordIOError, reading._PickleError):
            reading._datum(memoryview(datum(data, label)[:size]))
