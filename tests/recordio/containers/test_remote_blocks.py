"""TFRecord and Parquet files on a server: batches equal those of the local files to the byte."""

import io

import pytest
from range_server import RangeServer
from tfrecords import write_tfrecord

import recordio.containers.tfrecord
from iterators import ImageRecordIter
from iterators.testing import assert_same, copies, encode_jpeg, noise

IMAGES = [encode_jpeg(noise(150 + i % 9, 140, i)) for i in range(40)]


@pytest.fixture
def server(tmp_path, monkeypatch):
    pytest.importorskip("obstore")
    monkeypatch.setenv("RECORDIO_INDEX_CACHE", str(tmp_path / "indexes"))
    server = RangeServer()
    yield server
    server.stop()


def batches(source, folder, **more):
    with ImageRecordIter(
        path_imgrec=source, batch_size=8, data_shape=(3, 64, 64), remote_cache=str(folder), **more
    ) as images:
        return copies(images)


@pytest.mark.parametrize("window", [1 << 12, 1 << 25])
def test_tfrecord(server, tmp_path, monkeypatch, window):
    monkeypatch.setattr(recordio.containers.tfrecord, "WINDOW", window)
    examples = ({"image": [image], "label": [i]} for i, image in enumerate(IMAGES))
    path = write_tfrecord(tmp_path / "a.tfrecord", *examples)
    server.objects["a.tfrecord"] = path.read_bytes()
    wanted = batches(str(path), tmp_path / "no", shuffle=True)
    assert_same(batches(f"{server.url}/a.tfrecord", tmp_path / "cache", shuffle=True), wanted)
    requests = len(server.requests)
    assert_same(batches(f"{server.url}/a.tfrecord", tmp_path / "cache", shuffle=True), wanted)
    assert len(server.requests) - requests <= 1


def test_parquet(server, tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("iterators.images.sources.record_source.MIXED_BYTES", 1 << 16)
    data = io.BytesIO()
    table = pa.table({"image": IMAGES, "label": list(range(40)), "other": [bytes(1 << 19)] * 40})
    pq.write_table(table, data, row_group_size=6, compression="none", use_dictionary=False)
    path = tmp_path / "a.parquet"
    path.write_bytes(data.getvalue())
    server.objects["a.parquet"] = data.getvalue()
    wanted = batches(str(path), tmp_path / "no", shuffle=True)
    assert_same(batches(f"{server.url}/a.parquet", tmp_path / "cache", shuffle=True), wanted)
    # The ranges of the columns that are read, and not the third one.
    assert sum(end - begin for _, begin, end in server.requests) < len(data.getvalue()) // 2
