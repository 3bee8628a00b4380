"""Shards of MosaicML Streaming (MDS) read in place."""

import contextlib
import json
import os
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mds_sets import shard, write_set

from iterators import ImageRecordIter
from iterators.testing import assert_same, copies, encode, noise, write_pack
from recordio.bytes.files import StoredFile
from recordio.containers.mds import MDS
from recordio.containers.reader import ContainedRecords
from recordio.containers.samples import NO_CONTENT
from recordio.containers.table import contained_files, container_of
from recordio.errors import RecordIOError, TruncatedRecordError

IMAGES = [encode(noise(12, 10, seed=number)) for number in range(5)]


def rows(images=IMAGES, first=0):
    return [(image, struct.pack("<q", first + i), b"some words") for i, image in enumerate(images)]


def one(tmp_path, content):
    path = tmp_path / "a.mds"
    path.write_bytes(content)
    return ContainedRecords(StoredFile(str(path)), MDS)


@pytest.fixture
def folder(tmp_path):
    return write_set(tmp_path / "set", shard(rows(IMAGES[:3])), shard(rows(IMAGES[3:], 3)))


def test_batches_are_those_of_a_record_file(folder, tmp_path):
    write_pack(tmp_path / "a.rec", IMAGES)
    settings = {"data_shape": (3, 8, 8), "batch_size": 2, "shuffle": True, "rand_mirror": True}
    with ImageRecordIter(
        path_imgrec=tmp_path / "a.rec", path_imgidx=tmp_path / "a.idx", **settings
    ) as plain:
        wanted = copies(plain)
    for path in (folder, folder / "index.json", str(folder / "shard.{00000..00001}.mds")):
        with ImageRecordIter(path_imgrec=path, **settings) as found:
            assert_same(copies(found), wanted)


@pytest.mark.parametrize(
    "columns, value, label",
    [
        ({"img": ("bytes", None), "cls": ("uint8", 1)}, b"\7", 7),
        ({"jpg": ("jpeg", None), "target": ("str_int", None)}, b"-12", -12),
        ({"photo": ("jpeg", None), "y": ("float64", 8)}, struct.pack("<d", 0.25), 0.25),
        ({"image": ("png", None), "other": ("int", 8)}, bytes(8), 0),
    ],
)
def test_columns_of_other_names_and_types(tmp_path, columns, value, label):
    with one(tmp_path, shard([(b"content", value)], columns)) as records:
        assert records.samples.labels.tolist() == [label]
        assert bytes(records.content(0)) == b"content"


@pytest.mark.parametrize(
    "columns, reason",
    [
        ({"image": ("pil", None)}, "an encoded image, or several are"),
        ({"a": ("jpeg", None), "b": ("png", None)}, "an encoded image, or several are"),
        ({"image": ("jpeg", None), "label": ("pkl", None)}, "the label in the column label is pkl"),
        ({"image": ("jpeg", None), "label": ("int", 3)}, "the column label has 3 bytes"),
        ({"image": ("jpeg", -1)}, "no MDS shard"),
        ({}, "no MDS shard"),
    ],
)
def test_columns_that_cannot_be_used(tmp_path, columns, reason):
    with pytest.raises(RecordIOError, match=reason):
        one(tmp_path, shard([], columns))


@pytest.mark.parametrize(
    "sample, reason",
    [
        ((b"image", b"cat"), "its label b'cat' is no number: write classes as int"),
        ((b"image", b"16777217"), "has no exact 32-bit float"),
    ],
)
def test_a_sample_that_cannot_be_used_says_why(tmp_path, sample, reason):
    content = shard([(b"image", b"1"), sample], {"image": ("jpeg", None), "label": ("str", None)})
    with one(tmp_path, content) as records:
        assert bytes(records.content(0)) == b"image"
        with pytest.raises(RecordIOError, match=reason):
            records.content(1)


def test_sizes_that_disagree_are_named(tmp_path):
    content = bytearray(shard(rows(IMAGES[:1])))
    begin = struct.unpack_from("<I", content, 4)[0]
    struct.pack_into("<I", content, begin, 2**31)
    with one(tmp_path, content) as records, pytest.raises(RecordIOError, match="its columns have"):
        records.content(0)


# -- the index ----------------------------------------------------------------------------------


def test_packed_shards_are_used_once_they_are_unpacked(tmp_path):
    folder = write_set(
        tmp_path / "set", shard(rows()), compression="zstd", zip_data={"basename": "x.mds.zstd"}
    )
    assert len(contained_files(str(folder))) == 1
    os.rename(folder / "shard.00000.mds", folder / "shard.00000.mds.zstd")
    with pytest.raises(RecordIOError, match=r"packed only, by zstd: .*zstd -d"):
        contained_files(str(folder))


def test_a_missing_or_cut_shard_is_named(folder):
    path = folder / "shard.00001.mds"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(TruncatedRecordError, match=r"00001\.mds: it has \d+ bytes, and index"):
        contained_files(str(folder))
    path.unlink()
    with pytest.raises(RecordIOError, match=r"index\.json: the shard shard\.00001\.mds is missing"):
        contained_files(str(folder))


@pytest.mark.parametrize("name", ["../a.mds", "/etc/passwd", "a\\..\\b", "", 3])
def test_shards_lie_below_the_index(folder, name):
    text = json.loads((folder / "index.json").read_text())
    text["shards"][1]["raw_data"]["basename"] = name
    (folder / "index.json").write_text(json.dumps(text))
    with pytest.raises(RecordIOError, match="lies elsewhere|no MDS shard"):
        contained_files(str(folder))


def test_other_files_of_that_name_are_none(tmp_path):
    index = tmp_path / "index.json"
    for text in ("", "[]", '{"shards": 3}', '{"chunks": []}', '{"shards": []}', "[" * 10_000):
        index.write_text(text)
        assert container_of(StoredFile(str(index))) is None
        assert container_of(StoredFile(str(tmp_path))) is not MDS
    assert container_of(StoredFile("s3://bucket/set/index.json")) is MDS


# -- damage -------------------------------------------------------------------------------------


def test_a_shard_cut_anywhere_is_an_error(tmp_path):
    whole = shard(rows([b"image"] * 2))
    for size in range(len(whole)):
        with pytest.raises(RecordIOError):
            one(tmp_path, whole[:size])


@given(st.binary(max_size=300))
def test_random_bytes_give_samples_or_an_error(tmp_path_factory, data):
    read(tmp_path_factory, data)
    edges = struct.pack("<III", 1, 12 + len(data), 12 + len(data))
    read(tmp_path_factory, edges + data)


@given(st.data())
def test_damaged_shards_give_samples_or_an_error(tmp_path_factory, data):
    content = bytearray(shard(rows([b"image", b"other"])))
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=6)):
        content[at] = data.draw(st.integers(0, 255))
    read(tmp_path_factory, content)


def read(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "read.mds"
    path.write_bytes(content)
    with contextlib.suppress(RecordIOError):
        samples = MDS.scan(StoredFile(str(path)), None)
        ends = samples.offsets + samples.sizes.clip(0)
        assert (ends[samples.sizes != NO_CONTENT] <= len(content)).all()
        assert set(samples.faults) == set(np.flatnonzero(samples.sizes == NO_CONTENT))


# -- on a server --------------------------------------------------------------------------------


def test_shards_on_a_server(folder, tmp_path, bucket, s3_endpoint):
    settings = {"data_shape": (3, 8, 8), "batch_size": 2, "shuffle": True}
    access = {
        "endpoint_url": s3_endpoint, "access_key_id": "me", "secret_access_key": "hunter2-hunter2",
        "region": "us-east-1",
    }  # fmt: skip
    for path in folder.iterdir():
        bucket.upload_file(str(path), "bucket", f"set/{path.name}")
    with (
        ImageRecordIter(path_imgrec=folder, **settings) as local,
        ImageRecordIter(
            path_imgrec="s3://bucket/set/index.json",
            remote_cache=tmp_path / "mirrors",
            remote_options=access,
            **settings,
        ) as remote,
    ):
        assert_same(copies(remote), copies(local))
