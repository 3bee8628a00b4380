"""Parquet files read in place."""

import json
import os
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators import ImageRecordIter, Pack
from iterators.images.sources.record_source import RecordSource
from iterators.testing import assert_same, copies, encode_jpeg, noise, write_pack
from recordio import RecordIOError
from recordio.bytes.files import StoredFile
from recordio.containers import parquet as module
from recordio.containers.parquet import PARQUET, ParquetRows, scan
from recordio.containers.samples import NO_CONTENT
from recordio.packs.open_pack import open_listed

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

COUNT = 23
IMAGES = [encode_jpeg(noise(40 + i % 5, 44, i)) for i in range(COUNT)]


def table_of(images=IMAGES, labels=None, names=None):
    """A table as the package datasets writes it."""
    labels = list(range(len(images))) if labels is None else labels
    rows = [{"bytes": image, "path": f"a{i}.jpg"} for i, image in enumerate(images)]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    table = pa.table({"image": pa.array(rows, kind), "label": pa.array(labels)})
    features = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": names or []}}
    about = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    return table.replace_schema_metadata(about)


@pytest.fixture
def path(tmp_path):
    """A file of 23 images in groups of 4."""
    pq.write_table(table_of(names=["cat", "dog"]), tmp_path / "a.parquet", row_group_size=4)
    return tmp_path / "a.parquet"


def write(path, **columns):
    pq.write_table(pa.table(columns), path)
    return StoredFile(str(path))


def as_pack(path, images=IMAGES):
    return str(write_pack(f"{path}.rec", images))


def make(source, **more):
    return ImageRecordIter(path_imgrec=source, batch_size=5, data_shape=(3, 32, 32), **more)


def batches(source, **more):
    with make(source, **more) as images:
        return copies(images)


@pytest.mark.parametrize("more", [{}, {"shuffle": True, "seed": 3, "rand_crop": True}])
def test_batches_are_those_of_a_pack_where_all_may_be_kept(path, tmp_path, more):
    assert_same(batches(path, **more), batches(as_pack(tmp_path / "pack"), **more))


def test_folders_and_patterns_of_files_are_numbered_through(path, tmp_path):
    wanted = batches(as_pack(tmp_path / "pack", IMAGES * 2))
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.parquet").write_bytes(path.read_bytes())
    for source in (folder, f"{folder}/*.parquet", f"{folder}/{{a,b}}.parquet"):
        found = batches(source)
        assert [b.index.tolist() for b in found] == [b.index.tolist() for b in wanted]


def test_classes_and_names_are_those_of_the_hub(path):
    (opened,) = open_listed(str(path))
    with opened:
        assert opened.classes == {0: "cat", 1: "dog"}
        assert opened.samples.name_of(3) == "a3.jpg"
        assert bytes(opened.reader.content(5)) == IMAGES[5]


@pytest.fixture
def small_room(monkeypatch):
    """A room so small that a shuffle mixes two or three groups."""
    monkeypatch.setattr("iterators.images.sources.record_source.MIXED_BYTES", 3 * 4 * 1500)
    monkeypatch.setattr(module, "KEPT_BYTES", 6 * 4 * 1500)


def order_of(found):
    return np.concatenate([b.index[: len(b.index) - b.pad] for b in found]).tolist()


def test_a_shuffle_mixes_row_groups_that_come_in_random_order(path, small_room):
    first, second = (order_of(batches(path, shuffle=True, seed=s)) for s in (0, 1))
    assert sorted(first) == sorted(second) == list(range(COUNT))
    assert first != second
    assert len({row // 4 for row in first[:8]}) > 1
    assert order_of(batches(path, shuffle=True, seed=0)) == first


def test_a_shuffle_is_resumed_after_every_batch(path, small_room):
    wanted = batches(path, shuffle=True)
    for done in range(len(wanted)):
        with make(path, shuffle=True) as images:
            for _ in range(done):
                next(images)
            state = images.state_dict()
        with make(path, shuffle=True, preprocess_threads=1) as images:
            images.load_state_dict(state)
            assert_same(copies(images), wanted[done:])


@pytest.mark.parametrize("parts", [2, 3])
def test_parts_of_a_shuffle_have_each_row_once(path, small_room, parts):
    found = []
    for part in range(parts):
        found += order_of(batches(path, shuffle=True, num_parts=parts, part_index=part))
    assert sorted(found) == list(range(COUNT))


def test_row_groups_are_mixed_with_the_blocks_of_a_pack(path, tmp_path, small_room):
    packs = [Pack(str(path)), Pack(as_pack(tmp_path / "pack"))]
    assert sum(len(b.index) - b.pad for b in batches(packs, shuffle=True)) == 2 * COUNT


def test_chunks_are_whole_row_groups(path):
    source = RecordSource.open(str(path))
    edges = source.blocks(20000)
    assert 2 < len(edges) < 7
    assert set(edges[:-1] % 4) == {0}
    assert edges[-1] == COUNT
    assert sorted(order_of(batches(path, shuffle=True, shuffle_chunk_size=1))) == list(range(COUNT))


def test_a_row_group_is_read_once_for_all_threads(path, monkeypatch):
    rows = ParquetRows(StoredFile(str(path)), scan(StoredFile(str(path))))
    read, real = [], rows._unpacked
    monkeypatch.setattr(rows, "_unpacked", lambda group: (read.append(group), real(group))[1])
    begin, wrong = threading.Barrier(6), []

    def work():
        begin.wait()
        wrong.extend(i for i in range(COUNT) if rows.read(i) != IMAGES[i])

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert sorted(read) == list(range(6))
    rows.close()


def test_what_is_kept_has_a_bound(path, monkeypatch):
    monkeypatch.setattr(module, "KEPT_BYTES", 25000)
    rows = ParquetRows(StoredFile(str(path)), scan(StoredFile(str(path))))
    module._GROUPS._kept.clear()
    for i in [*range(COUNT), *range(COUNT)]:
        assert rows.read(i) == IMAGES[i]
        assert sum(group.nbytes for group in module._GROUPS._kept.values()) <= 25000
    rows.close()
    assert not [key for key in module._GROUPS._kept if key[0] is rows._token]


def test_large_row_groups_are_unpacked_into_a_file(path, monkeypatch):
    monkeypatch.setattr(module, "LARGEST_GROUP", 100)
    monkeypatch.setattr(module, "AT_ONCE", 3000)
    rows = ParquetRows(StoredFile(str(path)), scan(StoredFile(str(path))))
    assert [rows.read(i) for i in range(COUNT)] == IMAGES
    assert (
        len([key for key in module._GROUPS._kept if key[0] is rows._token]) <= module.KEPT_FILES + 1
    )
    rows.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_process_moves_nothing_in_files_of_row_groups(path, monkeypatch):
    monkeypatch.setattr(module, "LARGEST_GROUP", 100)
    rows = ParquetRows(StoredFile(str(path)), scan(StoredFile(str(path))))
    assert rows.read(0) == IMAGES[0]
    child = os.fork()  # where the groups of the parent are dropped
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert [rows.read(i) for i in range(4)] == IMAGES[:4]
    rows.close()  # what cannot be closed warns


@pytest.mark.parametrize("largest", [1 << 28, 0])
def test_null_images_are_errors_with_their_place(tmp_path, monkeypatch, largest):
    monkeypatch.setattr(module, "LARGEST_GROUP", largest)
    images = [IMAGES[0], None, IMAGES[2]]
    pq.write_table(table_of(images), tmp_path / "a.parquet")
    with pytest.raises(RecordIOError, match=r"image\.bytes is null") as error:
        batches(tmp_path / "a.parquet")
    assert error.value.record == 1
    found = batches(tmp_path / "a.parquet", on_error="skip")
    assert 1 not in order_of(found)


def test_columns_of_bytes_are_found_by_name_or_alone(tmp_path):
    other = [b"?"] * 3
    found = write(tmp_path / "a.parquet", mask=other, jpg=IMAGES[:3], cls=[1.5, 2, 3])
    samples = scan(found)
    assert samples.labels.tolist() == [1.5, 2, 3]
    assert ParquetRows(found, samples).read(1) == IMAGES[1]
    found = write(tmp_path / "b.parquet", anything=IMAGES[:3], number=[1, 2, 3])
    samples = scan(found)
    assert samples.labels.tolist() == [0, 0, 0]
    assert ParquetRows(found, samples).read(2) == IMAGES[2]


def test_without_one_column_of_images_it_is_an_error(tmp_path):
    with pytest.raises(RecordIOError, match="several columns of bytes"):
        scan(write(tmp_path / "a.parquet", a=[b"1"], b=[b"2"]))
    with pytest.raises(RecordIOError, match="no column of bytes.*image: string"):
        scan(write(tmp_path / "a.parquet", image=["a.jpg"]))


def test_faults_of_labels(tmp_path):
    found = scan(write(tmp_path / "a.parquet", image=[b"a"] * 3, label=[1, None, 2**24 + 1]))
    assert found.sizes.tolist() == [0, NO_CONTENT, NO_CONTENT]
    assert "null" in found.faults[1]
    assert "no 32-bit float" in found.faults[2]
    found = scan(write(tmp_path / "a.parquet", image=[b"a"] * 4, label=[[1, 2], None, [], [3]]))
    assert found.labels_of(0).tolist() == [1, 2]
    assert found.labels_of(3).tolist() == [3]
    assert sorted(found.faults) == [1, 2]
    assert scan(write(tmp_path / "a.parquet", image=[b"a"], label=[True])).labels.tolist() == [1]


def test_labels_that_are_texts_are_an_error_that_says_what_to_do(tmp_path):
    for labels in (["cat"], [["cat"]]):
        with pytest.raises(RecordIOError, match="class_encode_column"):
            scan(write(tmp_path / "a.parquet", image=[b"a"], label=labels))


def test_every_truncation_and_other_bytes_are_errors(path, tmp_path):
    whole, part = path.read_bytes(), tmp_path / "part.parquet"
    for size in [*range(0, len(whole), 97), len(whole) - 1]:
        part.write_bytes(whole[:size])
        with pytest.raises(RecordIOError, match="cannot be read as Parquet") as error:
            scan(StoredFile(str(part)))
        assert error.value.path == str(part)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("any") / "a.parquet"
    path.write_bytes(b"PAR1" + data + len(data).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(RecordIOError):
        scan(StoredFile(str(path)))


def test_a_reader_can_be_pickled(path):
    (opened,) = open_listed(str(path))
    with opened, pickle.loads(pickle.dumps(opened.reader)) as again:
        assert again[5] == opened.reader[5]
        assert again.container is PARQUET


def test_drawing_anywhere_in_row_groups_is_warned_of(path, small_room):
    with pytest.warns(UserWarning, match="a whole row group is read"):
        batches(path, weights=dict.fromkeys(range(COUNT), 1.0))


def test_a_damaged_row_group_is_an_error_of_its_rows(path):
    data = bytearray(path.read_bytes())
    at = data.index(IMAGES[5][100:120])
    data[at - 1500 : at + 40] = bytes(1540)
    path.write_bytes(data)
    with pytest.raises(RecordIOError):
        batches(path)


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        batches(tmp_path / "none.parquet")
