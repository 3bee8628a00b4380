"""`shard`: the shards together are the pack."""

import hashlib
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordio
from iterators.testing import write_records
from recordio import EmptyRecordFileError, ManifestError, RecordIOError
from recordio.operations.division import _cuts
from recordio.packs.scanned_pack import ScannedPack


def records(*paths):
    found = []
    for path in paths:
        with ScannedPack(path) as source:
            found += [bytes(source.record(row)) for row in range(len(source))]
    return found


def test_the_shards_together_are_the_pack(packs, parts):
    path = packs.plain("a", range(50))
    report = recordio.shard(path, parts, 4)
    names = [f"a-00000{number}.rec" for number in range(4)]
    indexes = [name.replace(".rec", ".idx") for name in names]
    assert sorted(os.listdir(parts)) == sorted([*names, *indexes, "a.shards.json"])
    manifest = recordio.check_shards(parts / "a.shards.json")
    assert manifest.files == [str(parts / name) for name in names]
    assert records(*manifest.files) == records(path)
    assert manifest.records == report.records == 50 and manifest.identities == 0
    assert sum(shard.records for shard in manifest.shards) == 50
    assert manifest.bytes == path.stat().st_size == report.bytes
    sizes = [shard.bytes for shard in manifest.shards]
    assert max(sizes) - min(sizes) < 2 * max(map(len, records(path)))
    first = manifest.shards[1]
    assert first.first == manifest.shards[0].records and first.keys == [0, first.records - 1]
    data = (parts / names[1]).read_bytes()
    assert first.bytes == len(data) and first.sha256 == hashlib.sha256(data).hexdigest()


def test_how_the_files_are_named(packs, parts):
    path = packs.plain("a", range(5))
    recordio.shard(path, parts / "train", 2)
    recordio.shard(path, str(parts / "%02d_of_val.rec"), 2)
    assert sorted(name for name in os.listdir(parts) if not name.endswith(".idx")) == [
        "00_of_val.rec",
        "01_of_val.rec",
        "of_val.shards.json",
        "train-000000.rec",
        "train-000001.rec",
        "train.shards.json",
    ]


def test_every_shard_of_a_face_pack_is_one(packs, parts):
    path = packs.faces("a", [3, 0, 4, 2])
    recordio.shard(path, parts, 2)
    manifest = recordio.check_shards(parts / "a.shards.json")
    listed = [packs.identities(file) for file in manifest.files]
    assert [first + second for first, second in zip(*listed, strict=True)] == packs.identities(path)
    parts_of = [ScannedPack(file) for file in manifest.files]
    for source in parts_of:
        assert source.ids.tolist() == source.keys.tolist()
    assert [record[24:] for record in records(*manifest.files)] == [r[24:] for r in records(path)]
    assert manifest.identities == 4 and manifest.shards[1].keys[0] == 1


def test_objects_and_names_of_classes(packs, parts):
    path = packs.detection("a", [[1], [2, 3], []], index=False)
    path.with_suffix(".classes.txt").write_text("1\tcat\n")
    recordio.shard(path, parts, 3)
    files = recordio.check_shards(parts / "a.shards.json").files
    assert [packs.labels(file) for file in files] == [[[1]], [[2, 3]], [[]]]
    assert (parts / "a-000002.classes.txt").read_text() == "1\tcat\n"


def test_refused_before_anything_is_written(packs, parts):
    path = packs.plain("a", [1, 2])
    with pytest.raises(ValueError, match="n=0"):
        recordio.shard(path, parts, 0)
    with pytest.raises(EmptyRecordFileError, match="3 files cannot be made of 2 records"):
        recordio.shard(path, parts, 3)
    with pytest.raises(FileNotFoundError, match="folder"):
        recordio.shard(path, parts / "none" / "a", 2)
    with pytest.raises(EmptyRecordFileError):
        recordio.shard(packs.raw("none", []), parts, 1)
    assert os.listdir(parts) == []
    whole = packs.plain("b-000001", [1, 2])
    with pytest.raises(RecordIOError, match="overwritten"):
        recordio.shard(whole, packs.folder / "b", 2)


def test_more_shards_than_files_can_be_open(packs, parts):
    resource = pytest.importorskip("resource")
    most, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    path = packs.plain("a", range(200))
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 1000), hard))
        with pytest.raises(OSError, match="200 shards need 1232 open files"):
            recordio.shard(path, parts, 200)
        assert os.listdir(parts) == []
        assert recordio.shard(path, parts, 100).records == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def test_shards_of_an_older_run_are_replaced_or_in_the_way(packs, parts):
    path = packs.plain("a", range(30))
    recordio.shard(path, parts, 4)
    recordio.shard(packs.plain("a", range(60)), parts, 4)
    assert recordio.check_shards(parts / "a.shards.json").records == 60
    with pytest.raises(ManifestError, match=r"2 files that would be left .*a-000002\.rec"):
        recordio.shard(path, parts, 2)
    assert recordio.check_shards(parts / "a.shards.json").records == 60


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("faces", [False, True])
def test_a_killed_run_goes_on(packs, parts, killed_after, faces):
    path = packs.faces("a", [20, 0, 40]) if faces else packs.plain("a", range(60))

    def make(folder, progress=None):
        return recordio.shard(path, folder, 3, progress=progress)

    other = packs.folder / "other"
    other.mkdir()
    make(other)
    killed_after(50, lambda progress: make(parts, progress))
    assert all(name.endswith(".partial") for name in os.listdir(parts))
    assert make(parts).continued >= 40
    assert sorted(os.listdir(parts)) == sorted(os.listdir(other))
    for name in os.listdir(other):
        assert (parts / name).read_bytes() == (other / name).read_bytes()


def test_a_failure_leaves_the_old_shards(packs, parts, monkeypatch):
    path = packs.plain("a", range(30))
    recordio.shard(path, parts, 2)
    before = {file.name: file.read_bytes() for file in parts.iterdir()}
    monkeypatch.setattr(recordio.operations.division, "_described", lambda *words: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        recordio.shard(packs.plain("a", range(50)), parts, 2)
    assert {file.name: file.read_bytes() for file in parts.iterdir()} == before


def test_the_manifest_stands_only_beside_whole_groups(packs, parts, monkeypatch):
    recordio.shard(packs.plain("a", range(30)), parts, 2)
    commits = []
    commit = recordio.bytes.storage.AtomicOutput.commit

    def strike(output):
        commits.append(output.paths[0])
        if len(commits) == 2:
            raise OSError("the disk went away")
        commit(output)

    monkeypatch.setattr(recordio.bytes.storage.AtomicOutput, "commit", strike)
    with pytest.raises(OSError, match="went away"):
        recordio.shard(packs.plain("a", range(50)), parts, 2)
    assert not (parts / "a.shards.json").exists()


@given(sizes=st.lists(st.integers(1, 50), min_size=1, max_size=30).map(np.array), data=st.data())
def test_no_shard_is_empty_and_none_much_too_large(sizes, data):
    n = data.draw(st.integers(1, len(sizes)))
    cuts = [0, *_cuts(sizes, n).tolist(), len(sizes)]
    assert len(cuts) == n + 1 and (np.diff(cuts) > 0).all()
    if sizes.max() * n <= sizes.sum():
        shares = [sizes[first:end].sum() for first, end in zip(cuts, cuts[1:], strict=False)]
        assert max(shares) <= sizes.sum() / n + sizes.max()


@given(contents=st.lists(st.binary(max_size=40), min_size=1, max_size=9), data=st.data())
def test_any_pack_is_the_sum_of_its_shards(contents, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("packs")
    write_records(folder / "a.rec", contents, index=False)
    recordio.shard(folder / "a", folder / "b", data.draw(st.integers(1, len(contents))))
    assert records(*recordio.check_shards(folder / "b.shards.json").files) == contents
