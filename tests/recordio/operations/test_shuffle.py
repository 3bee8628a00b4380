"""`shuffle`: every record once, by the seed alone."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordio
from iterators.testing import write_records
from recordio import EmptyRecordFileError, RecordIOError


def test_every_record_once_in_another_order(packs):
    path = packs.plain("a", range(200))
    report = recordio.shuffle(path, str(packs.path("b"))[:-4], seed=3)
    old, new = packs.read(path), packs.read(packs.path("b"))
    assert report.records == 200 and list(new) == list(range(200))
    assert sorted(row[1] for row in new.values()) == list(range(200))
    assert all(row == old[row[1]] for row in new.values())  # labels, ids and contents together
    places = np.array([row[1] for row in new.values()])
    assert abs(np.corrcoef(places, np.arange(200))[0, 1]) < 0.3


def test_the_seed_decides_and_nothing_else(packs, small_blocks):
    path = packs.plain("a", range(60))
    for name, seed, window in (("b", 1, 1 << 20), ("c", 1, 100), ("d", 2, 1 << 20)):
        recordio.shuffle(path, packs.path(name), seed, window=window)
    assert packs.path("b").read_bytes() == packs.path("c").read_bytes()
    assert packs.path("b").read_bytes() != packs.path("d").read_bytes()


def test_identities_stay_together_by_key(packs):
    path = packs.faces("a", [3, 0, 4, 5])
    recordio.shuffle(path, packs.path("b"), seed=1)
    assert packs.identities(packs.path("b")) == packs.identities(path)
    labels = sum(packs.labels(packs.path("b")), [])
    assert sorted(labels) == sum(packs.labels(path), []) and labels != sorted(labels)


@pytest.mark.parametrize("index", [True, False])
def test_objects_and_one_record(packs, index):
    path = packs.detection("a", [[1, 2], [3], []], index)
    recordio.shuffle(path, packs.path("b"))
    assert sorted(packs.labels(packs.path("b"))) == [[], [1, 2], [3]]
    recordio.shuffle(packs.plain("c", [7], index), packs.path("d"))
    assert packs.labels(packs.path("d")) == [[7]]


def test_names_of_classes_go_along_and_old_checksums_go_away(packs):
    path = packs.plain("a", [0, 1])
    path.with_suffix(".classes.txt").write_text("0\tcat\n1\tdog\n")
    write_records(packs.path("b"), [b"old"], index=False, checksums=True)
    recordio.shuffle(path, packs.path("b"))
    assert packs.path("b").with_suffix(".classes.txt").read_text() == "0\tcat\n1\tdog\n"
    assert not packs.path("b").with_suffix(".crc").exists()


def test_refused_before_anything_is_written(packs):
    path = packs.plain("a", [1, 2])
    with pytest.raises(RecordIOError, match="overwritten"):
        recordio.shuffle(path, path)
    with pytest.raises(ValueError, match="window=0"):
        recordio.shuffle(path, packs.path("b"), window=0)
    with pytest.raises(ValueError, match="seed=-1: expected an integer of at least 0"):
        recordio.shuffle(path, packs.path("b"), seed=-1)
    with pytest.raises(EmptyRecordFileError, match=r"none\.rec"):
        recordio.shuffle(packs.raw("none", []), packs.path("b"))
    assert packs.names() == ["a.idx", "a.rec", "none.idx", "none.rec"]


def test_damage_is_named_or_left_out(packs):
    path = packs.plain("a", range(9), index=False)
    data = bytearray(path.read_bytes())
    with recordio.RecordReader(path) as reader:
        data[int(reader.offsets[4])] ^= 255
    path.write_bytes(data)
    with pytest.raises(recordio.CorruptRecordError, match="record 4"):
        recordio.shuffle(path, packs.path("b"))
    assert packs.names() == ["a.rec"]
    report = recordio.shuffle(path, packs.path("b"), skip_errors=True)
    assert report.skipped == 1 and report.records == 8 and "offset" in report.problems[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("faces", [False, True])
def test_a_killed_run_goes_on(packs, killed_after, faces):
    path = packs.faces("a", [20, 0, 40]) if faces else packs.plain("a", range(60))

    def make(name, progress=None):
        return recordio.shuffle(path, packs.path(name), 5, window=64, progress=progress)

    make("x")
    killed_after(30, lambda progress: make("b", progress))
    assert not packs.path("b").exists()
    assert make("b").continued >= 25
    assert packs.path("b").read_bytes() == packs.path("x").read_bytes()
    assert not [name for name in packs.names() if name.endswith(".partial")]


@given(contents=st.lists(st.binary(max_size=40), min_size=1, max_size=9), seed=st.integers(0, 9))
def test_it_is_a_permutation(contents, seed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("packs")
    write_records(folder / "a.rec", contents, index=False)
    recordio.shuffle(folder / "a", folder / "b", seed, window=16)
    found = [bytes(record) for record in recordio.RecordReader(folder / "b.rec")]
    assert sorted(found) == sorted(contents)
