"""Record files as Ray datasets and back, on a cluster of several node processes."""

import os
import sys
import threading
from pathlib import Path

import cv2
import numpy as np
import pytest

import recordio
from iterators.testing import write_faces, write_records
from recordio import (
    EmptyRecordFileError,
    ImageDecodeError,
    IRHeader,
    LabelError,
    ManifestError,
    RecordIOError,
    RecordReader,
    pack,
    unpack,
)

ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")
from ray.data.block import BlockAccessor  # noqa: E402
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: E402

from recordio.bytes.remote.block_table import BLOCK  # noqa: E402
from recordio.ray import RecordDatasink, RecordDatasource, read_images, read_records  # noqa: E402
from recordio.ray.ranges import cut_ranges, listed_record_files  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[2]))
from range_server import RangeServer  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("default"),  # Ray's own
    pytest.mark.timeout(300),
]


def image(number):
    return np.full((6 + number % 3, 9, 3), [number, 2 * number, 200], np.uint8)  # RGB


def png(number):
    return cv2.imencode(".png", image(number)[..., ::-1])[1].tobytes()


def write(path, records):
    records = list(records)
    return write_records(path, records, keys=range(100, 100 + len(records)))


def record(number, content=None):
    header = IRHeader(0, number % 4, 1000 + number, 0)
    return pack(header, png(number) if content is None else content)


@pytest.fixture
def packed(tmp_path):
    return write(tmp_path / "a.rec", map(record, range(20)))


@pytest.fixture
def shards(packed, tmp_path):
    folder = tmp_path / "shards"
    folder.mkdir()
    recordio.shard(packed, folder, 3)
    return folder / "a.shards.json"


def rows_of(tasks):
    return [row for task in tasks for block in task() for row in block.to_pylist()]


# -- what tasks read: no cluster is needed --------------------------------------------------------


@pytest.mark.parametrize("parallelism", [1, 3, 7, 100])
def test_every_task_has_a_range(packed, parallelism):
    tasks = RecordDatasource(packed).get_read_tasks(parallelism)
    assert len(tasks) == min(parallelism, 20)
    counts = [task.metadata.num_rows for task in tasks]
    assert sum(counts) == 20 and max(counts) - min(counts) <= 1
    for task, count in zip(tasks, counts, strict=True):
        assert len(rows_of([task])) == count
    rows = rows_of(tasks)
    assert [row["key"] for row in rows] == list(range(100, 120))
    assert [row["id"] for row in rows] == list(range(1000, 1020))
    assert [row["label"] for row in rows] == [n % 4 for n in range(20)]
    assert [row["bytes"] for row in rows] == [png(n) for n in range(20)]


def test_rows_of_a_manifest_are_counted_without_opening_a_file(shards, packed, monkeypatch):
    monkeypatch.setattr("recordio.packs.open_pack.RecordReader", None)
    tasks = RecordDatasource(shards).get_read_tasks(6)
    assert sum(task.metadata.num_rows for task in tasks) == 20
    assert {task.metadata.input_files[0] for task in tasks} == {
        str(shards.parent / f"a-00000{number}.rec") for number in range(3)
    }
    monkeypatch.undo()
    assert [row["bytes"] for row in rows_of(tasks)] == [png(n) for n in range(20)]


def test_a_task_fetches_its_range_alone(shards, packed, tmp_path, monkeypatch):
    pytest.importorskip("obstore")
    monkeypatch.setenv("RECORDIO_REMOTE_CACHE", str(tmp_path / "mirrors"))
    write(tmp_path / "b.rec", [record(number, bytes(2 * BLOCK)) for number in range(8)])
    server = RangeServer()
    try:
        for path in (*shards.parent.iterdir(), *tmp_path.glob("b.*")):
            server.objects[path.name] = path.read_bytes()
        rows = rows_of(RecordDatasource(f"{server.url}/{shards.name}").get_read_tasks(4))
        assert rows == rows_of(RecordDatasource(shards).get_read_tasks(4))
        _, last = RecordDatasource(f"{server.url}/b.rec").get_read_tasks(2)
        assert server.ranges("b.rec") == []
        assert len(rows_of([last])) == 4
        assert min(begin for begin, _ in server.ranges("b.rec")) >= 7 * BLOCK
        del server.objects["b.idx"]
        with pytest.raises(RecordIOError, match="make one with recordio index http"):
            RecordDatasource(f"{server.url}/b.rec")
    finally:
        server.stop()


def test_a_task_reads_its_range_alone(packed):
    """What is damaged elsewhere does not matter to it."""
    with RecordReader(packed) as reader:
        begin = reader.offset_of(15)
    with open(packed, "r+b") as file:
        file.seek(begin)
        file.write(b"\0\0\0\0")
    first, last = RecordDatasource(packed).get_read_tasks(2)
    assert len(rows_of([first])) == 10
    with pytest.raises(RecordIOError, match="a.rec.*record 15"):
        rows_of([last])
    first, last = RecordDatasource(packed, on_error="skip").get_read_tasks(2)
    assert last.metadata.num_rows is None and len(rows_of([last])) == 9


def test_a_file_without_an_index_is_refused(tmp_path):
    path = write(tmp_path / "a.rec", [record(0)])
    path.with_suffix(".idx").unlink()
    with pytest.raises(RecordIOError, match="recordio index .*a.rec"):
        RecordDatasource(path)


def test_a_file_without_records_is_refused(tmp_path):
    with pytest.raises(EmptyRecordFileError):
        RecordDatasource(write(tmp_path / "a.rec", []))


def test_identities_are_no_rows(tmp_path):
    path = write_faces(tmp_path / "faces.rec", [2, 1])
    assert [row["key"] for row in rows_of(RecordDatasource(path).get_read_tasks(2))] == [1, 2, 3]


def test_labels_of_several_widths(tmp_path):
    labels = [[1.0, 2.0], [3.0, 4.0], [5.0]]
    records = [pack(IRHeader(0, np.array(row, np.float32), 0, 0), b"x") for row in labels]
    path = write(tmp_path / "a.rec", records)
    tasks = RecordDatasource(path, label_width=None).get_read_tasks(1)
    assert [row["label"] for row in rows_of(tasks)] == labels
    with pytest.raises(LabelError, match="record 2.*1 labels, and label_width is 2"):
        rows_of(RecordDatasource(path, label_width=2).get_read_tasks(1))
    tasks = RecordDatasource(path, label_width=2, on_error="skip").get_read_tasks(1)
    assert [row["label"] for row in rows_of(tasks)] == labels[:2]


def test_a_file_that_was_written_again_is_noticed(packed):
    tasks = RecordDatasource(packed).get_read_tasks(2)
    write(packed, map(record, range(5)))
    with pytest.raises(RecordIOError, match="it has 5 records, and had 20"):
        rows_of(tasks)


@pytest.mark.parametrize("words", [{"label_width": 0}, {"channels": 2}, {"on_error": "ignore"}])
def test_wrong_values(packed, words):
    with pytest.raises(ValueError, match=next(iter(words))):
        RecordDatasource(packed, **words)


def test_ranges_stay_inside_files(packed, shards):
    files = listed_record_files([packed, shards])
    ranges = cut_ranges(files, 8)
    assert len(ranges) >= 4
    assert sum(len(piece) for piece in ranges) == 40


# -- on a cluster ---------------------------------------------------------------------------------


def test_records_on_a_cluster(ray_cluster, packed):
    dataset = read_records(packed, override_num_blocks=5)
    assert dataset.count() == 20
    rows = sorted(dataset.take_all(), key=lambda row: row["key"])
    assert [row["bytes"] for row in rows] == [png(n) for n in range(20)]


def test_images_on_a_cluster(ray_cluster, shards):
    rows = sorted(read_images(shards).take_all(), key=lambda row: row["id"])
    assert len(rows) == 20
    for number, row in enumerate(rows):
        assert np.array_equal(row["image"], image(number)) and row["label"] == number % 4
    grey = read_images(shards, channels=1).take(1)[0]["image"]
    assert grey.ndim == 2 and grey.dtype == np.uint8


def test_an_image_that_cannot_be_decoded(ray_cluster, tmp_path):
    path = write(tmp_path / "a.rec", [record(0), record(1, b"no image"), record(2)])
    with pytest.raises(ImageDecodeError, match="a.rec.*record 1"):
        read_images(path).take_all()
    assert len(read_images(path, on_error="skip").take_all()) == 2


def found_in(manifest):
    """Key, id, label and content of every record."""
    rows = []
    listed = recordio.check_shards(manifest)
    for file, index in zip(listed.files, listed.indexes, strict=True):
        with RecordReader(file, index) as reader:
            for key, content in zip(reader.keys.tolist(), reader, strict=True):
                header, encoded = unpack(content)
                rows.append((key, header.id, header.label, bytes(encoded)))
    return rows


def test_records_to_shards_and_back(ray_cluster, packed, tmp_path):
    sink = RecordDatasink(tmp_path / "out", shard_bytes=600)
    read_records(packed, override_num_blocks=4).write_datasink(sink)
    rows = sorted(found_in(sink.manifest))
    assert rows == [(100 + n, 1000 + n, n % 4, png(n)) for n in range(20)]
    listed = recordio.ShardManifest.read(sink.manifest)
    assert len(listed.shards) > 2
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".partial")]
    assert read_records(sink.manifest).count() == 20


def test_images_of_any_dataset_to_records(ray_cluster, tmp_path):
    rows = [{"image": image(n), "label": n} for n in range(4)]
    sink = RecordDatasink(tmp_path / "out.rec", encoding=".png")
    ray.data.from_items(rows, override_num_blocks=1).write_datasink(sink)
    found = sorted(read_images(sink.manifest).take_all(), key=lambda row: row["label"])
    assert [row["key"] for row in found] == list(range(4))
    assert all(np.array_equal(row["image"], image(n)) for n, row in enumerate(found))


def test_what_is_there_is_not_mixed_with_new_shards(ray_cluster, packed, tmp_path):
    sink = RecordDatasink(tmp_path / "out")
    read_records(packed).write_datasink(sink)
    with pytest.raises(ManifestError, match="it is there already"):
        read_records(packed).write_datasink(RecordDatasink(tmp_path / "out"))
    os.unlink(sink.manifest)
    with pytest.raises(ManifestError, match="000.rec: it is there already"):
        read_records(packed).write_datasink(RecordDatasink(tmp_path / "out"))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"text": b"x"}, "expected bytes or image"),
        ({"bytes": b"x", "path": "a"}, "expected bytes or image"),
        ({"image": np.zeros((2, 2, 3), np.float32)}, "expected uint8"),
        ({"image": np.zeros((2, 2, 4), np.uint8)}, "4 channels"),
        ({"bytes": b"x", "label": "cat"}, "neither a number nor a list"),
    ],
)
def test_rows_that_are_no_records(tmp_path, row, said):
    sink = RecordDatasink(tmp_path / "out")
    batch = {name: [value] for name, value in row.items()}
    block = BlockAccessor.batch_to_block(batch)
    with pytest.raises(RecordIOError, match=said):
        sink.write([block], type("Context", (), {"task_idx": 0}))
    assert os.listdir(tmp_path) == []


def test_a_sink_that_makes_no_sense(tmp_path):
    for words in ({"shard_bytes": 0}, {"encoding": ".gif"}, {"quality": 101}):
        with pytest.raises(ValueError, match=next(iter(words))):
            RecordDatasink(tmp_path / "out", **words)
    with pytest.raises(FileNotFoundError):
        RecordDatasink(tmp_path / "none" / "out")


def test_a_node_that_is_killed_costs_nothing_but_its_tasks(ray_cluster, packed, tmp_path):
    """Tasks prefer the doomed node, and the first there waits until it dies: all go elsewhere."""
    doomed = ray_cluster.add_node(doomed=1)
    (mine,) = (n["NodeID"] for n in ray.nodes() if "doomed" in n["Resources"] and n["Alive"])
    preferred = NodeAffinitySchedulingStrategy(mine, soft=True)
    started = tmp_path / "started"

    def hold(batch):
        if ray.get_runtime_context().get_node_id() == mine:
            started.touch()
            threading.Event().wait()
        return batch

    def strike():
        for _ in range(600):
            if started.exists():
                ray_cluster.kill(doomed)
                return
            threading.Event().wait(0.1)

    thread = threading.Thread(target=strike)
    thread.start()
    sink = RecordDatasink(tmp_path / "out", shard_bytes=100)
    records = read_records(packed, override_num_blocks=10, num_cpus=0.5)
    records.map_batches(hold, scheduling_strategy=preferred).write_datasink(sink)
    thread.join()
    assert started.exists()
    assert sorted(found_in(sink.manifest)) == [
        (100 + n, 1000 + n, n % 4, png(n)) for n in range(20)
    ]
    names = {shard.file for shard in recordio.ShardManifest.read(sink.manifest).shards}
    assert {name for name in os.listdir(tmp_path) if name.endswith(".rec")} == names | {"a.rec"}
