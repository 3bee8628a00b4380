"""Ids of new face-recognition packs are their keys, so that an index can be made of them again."""

import struct

import numpy as np
import pytest

import recordio
from recordio import IRHeader, RecordHeaderError, build_index, pack
from recordio.packs.check import check_pack
from recordio.packs.open_pack import OpenPack, open_pack
from recordio.packs.scanned_pack import ScannedPack

MAGIC = struct.pack("<I", 0xCED7230A)


def made(packs, tmp_path):
    """Packs of a face pack by every function that makes some; their names."""
    path = packs.faces("a", [3, 1, 0, 4])
    recordio.filter(path, tmp_path / "filtered", "label != 0")
    recordio.sample(path, tmp_path / "sampled", n=5, seed=1)
    recordio.shuffle(path, tmp_path / "shuffled", seed=1)
    recordio.sort(path, tmp_path / "sorted", by="bytes")
    recordio.join([path, path], tmp_path / "joined", labels="append")
    recordio.join([path, path], tmp_path / "again")
    recordio.split(path, {tmp_path / "one": 0.5, tmp_path / "two": 0.5})
    recordio.split(path, {tmp_path / "three": 0.5, tmp_path / "four": 0.5}, by="class")
    recordio.relabel(path, tmp_path / "relabelled", {0: 1, 1: 0, 3: 2})
    recordio.dedup(path, tmp_path / "different")
    recordio.shard(path, tmp_path / "shard-%02d", 2)
    names = "filtered sampled shuffled sorted joined again one two three four relabelled different"
    return [*names.split(), "shard-00", "shard-01"]


def test_an_index_by_ids_is_the_same(packs, tmp_path):
    for name in made(packs, tmp_path):
        path = tmp_path / f"{name}.rec"
        before = path.with_suffix(".idx").read_bytes()
        with ScannedPack(path) as source:
            contents = {int(key): bytes(source.record(i)) for i, key in enumerate(source.keys)}
        build_index(path, keys="id")
        lines = [
            sorted(text.splitlines()) for text in (before, path.with_suffix(".idx").read_bytes())
        ]
        assert lines[0] == lines[1], name
        with ScannedPack(path) as source:
            assert source.identities is not None
            assert source.ids.tolist() == source.keys.tolist()
            found = {int(key): bytes(source.record(i)) for i, key in enumerate(source.keys)}
        assert found == contents


def test_records_in_several_parts(packs, tmp_path):
    """A magic word in the content, or one that a new id would be, at a multiple of four bytes."""
    records = [pack(IRHeader(0, [4.0, 6.0], 0, 0), b"")]
    records += [pack(IRHeader(0, float(i > 1), 100 + i, 0), MAGIC * i + b"end") for i in range(3)]
    records += [pack(IRHeader(0, [1.0, 3.0], 4, 0), b""), pack(IRHeader(0, [3.0, 4.0], 5, 0), b"")]
    packs.raw("a", records)
    recordio.shuffle(tmp_path / "a", tmp_path / "b", seed=3)
    with ScannedPack(tmp_path / "b") as source:
        assert source.ids.tolist() == source.keys.tolist()
        contents = sorted(bytes(source.record(row))[24:] for row in range(3))
    assert contents == sorted(MAGIC * i + b"end" for i in range(3))


def test_fields_have_the_ids_of_their_images(packs, tmp_path):
    packs.faces("a", [2, 2])
    with recordio.RecordWriter(tmp_path / "a.text.rec", tmp_path / "a.text.idx") as writer:
        for key in range(1, 5):
            writer.write(pack(IRHeader(0, 0.0, key, 0), str(key).encode()), key)
    recordio.filter(tmp_path / "a", tmp_path / "b", "label == 1")
    with ScannedPack(tmp_path / "b.text") as source:
        assert source.ids.tolist() == source.keys.tolist() == [1, 2]
        assert [bytes(source.record(row))[24:] for row in (0, 1)] == [b"3", b"4"]


def test_ids_of_ordinary_packs_stay(packs, tmp_path):
    packs.plain("a", range(5), first_id=100)
    recordio.filter(tmp_path / "a", tmp_path / "b", "label > 2")
    assert packs.ids(tmp_path / "b.rec") == [103, 104]


def test_ids_that_come_twice_are_refused(packs, tmp_path):
    path = packs.raw("a", [pack(IRHeader(0, 0.0, i, 0), b"x") for i in (7, 3, 7, 3, 7)])
    before = path.with_suffix(".idx").read_bytes()
    with pytest.raises(RecordHeaderError, match=r"record 2, id 7: record 0 .*for 2 more") as caught:
        build_index(path, keys="id")
    assert caught.value.record == 2 and "position" in caught.value.reason
    assert path.with_suffix(".idx").read_bytes() == before


def test_check_finds_keys_that_are_no_images(packs, tmp_path):
    path = packs.faces("a", [2, 2])
    with open_pack(path) as opened:
        assert check_pack(opened).ok
    text = path.with_suffix(".idx").read_text()
    path.with_suffix(".idx").write_text(text.replace("\n2\t", "\n50\t"))
    with OpenPack(path, path.with_suffix(".idx")) as opened:
        (problem,) = check_pack(opened).problems
    assert (problem.kind, problem.key) == ("identities", 50)
    assert "1 records have keys from 50 on" in problem.reason
    assert np.all(opened.keys < 5)
