"""`sort`: by labels, objects, keys, sizes and images."""

import os

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordio
from iterators.testing import write_pack, write_rows
from recordio import IRHeader, pack


def ids(packs, name="b"):
    return [row[1] for row in packs.read(packs.path(name)).values()]


def test_by_label_equal_ones_stay_in_order(packs):
    path = packs.plain("a", [2, 0, np.nan, 1, 0, [1, 9], 2, -1])
    report = recordio.sort(path, packs.path("b"))
    assert report.records == 8 and ids(packs) == [7, 1, 4, 3, 5, 0, 6, 2]
    recordio.sort(path, packs.path("b"), reverse=True)
    assert ids(packs) == [0, 6, 3, 5, 1, 4, 7, 2]


def test_by_the_first_object(packs):
    recordio.sort(packs.detection("a", [[3, 1], [], [2, 7], [1]]), packs.path("b"))
    assert packs.labels(packs.path("b")) == [[1], [2, 7], [3, 1], []]


def test_by_key_id_and_bytes(packs):
    rows = [(2**63, 0, bytes(8)), (3, 0, bytes(80)), (2**63 - 1, 0, bytes(9))]
    path = write_rows(packs.path("a"), rows, keys=[5, -1, 9])
    for by, expected in (
        ("key", [3, 2**63, 2**63 - 1]),
        ("id", [3, 2**63 - 1, 2**63]),
        ("bytes", [2**63, 2**63 - 1, 3]),
    ):
        recordio.sort(path, packs.path("b"), by)
        assert ids(packs) == expected
        recordio.sort(path, packs.path("b"), by, reverse=True)
        assert ids(packs) == expected[::-1]


def test_by_the_size_of_the_image(packs):
    shapes = [(9, 9), (2, 30), (5, 5), (3, 20)]
    images = [cv2.imencode(".png", np.zeros(shape, np.uint8))[1].tobytes() for shape in shapes]
    images.append(cv2.imencode(".jpg", np.zeros((4, 4), np.uint8))[1].tobytes())
    rows = [pack(IRHeader(0, 0, n, 0), image) for n, image in enumerate(images)]
    recordio.sort(packs.raw("a", rows), packs.path("b"), "size", threads=2)
    assert ids(packs) == [4, 2, 1, 3, 0]
    path = packs.raw("c", [*rows, pack(IRHeader(0, 0, 9, 0), b"text")])
    with pytest.raises(recordio.ImageDecodeError, match=r"c\.rec, offset \d+, record 5"):
        recordio.sort(path, packs.path("b"), "size")
    report = recordio.sort(path, packs.path("b"), "size", skip_errors=True)
    assert report.skipped == 1 and ids(packs) == [4, 2, 1, 3, 0]


def test_identities_and_names_of_classes(packs):
    path = packs.faces("a", [3, 0, 4])
    recordio.shuffle(path, packs.path("mixed"), seed=1)
    packs.path("mixed").with_suffix(".classes.txt").write_text("0\tann\n")
    recordio.sort(packs.path("mixed"), packs.path("b"))
    assert packs.identities(packs.path("b")) == packs.identities(path)
    assert packs.labels(packs.path("b")) == packs.labels(path)
    assert packs.path("b").with_suffix(".classes.txt").read_text() == "0\tann\n"


def test_refused_before_anything_is_written(packs):
    path = packs.plain("a", [1, 2])
    with pytest.raises(ValueError, match="by='colour': expected one of 'label', 'key'"):
        recordio.sort(path, packs.path("b"), "colour")
    with pytest.raises(recordio.RecordIOError, match="overwritten"):
        recordio.sort(path, path)
    with pytest.raises(ValueError, match="window"):
        recordio.sort(path, packs.path("b"), window=-1)
    with pytest.raises(FileNotFoundError):
        recordio.sort(path, packs.folder / "none" / "b")
    with pytest.raises(recordio.EmptyRecordFileError):
        recordio.sort(packs.raw("none", []), packs.path("b"))
    assert packs.names() == ["a.idx", "a.rec", "none.idx", "none.rec"]


def test_records_without_header(packs):
    path = packs.raw("a", [b"ccc", b"a", b"bb"], index=False)
    recordio.sort(path, packs.path("b"), "bytes")
    with recordio.RecordReader(packs.path("b")) as reader:
        assert [bytes(record) for record in reader] == [b"a", b"bb", b"ccc"]
    for by in ("label", "id"):
        with pytest.raises(recordio.RecordHeaderError, match="record 0"):
            recordio.sort(path, packs.path("c"), by)
        with pytest.raises(recordio.EmptyRecordFileError):
            recordio.sort(path, packs.path("c"), by, skip_errors=True)


def test_cancelling_writes_nothing(packs):
    with pytest.raises(KeyboardInterrupt):
        recordio.sort(packs.plain("a", [1, 2]), packs.path("b"), cancelled=lambda: True)
    assert packs.names() == ["a.idx", "a.rec"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_run_goes_on(packs, killed_after):
    path = packs.plain("a", [n * 7 % 60 for n in range(60)])

    def make(name, progress=None):
        return recordio.sort(path, packs.path(name), window=64, progress=progress)

    make("x")
    killed_after(30, lambda progress: make("b", progress))
    assert make("b").continued >= 25
    assert packs.path("b").read_bytes() == packs.path("x").read_bytes()


@given(labels=st.lists(st.integers(-3, 3), min_size=1, max_size=12), reverse=st.booleans())
def test_it_sorts_as_python_does(labels, reverse, tmp_path_factory):
    folder = tmp_path_factory.mktemp("packs")
    write_pack(folder / "a.rec", [b""] * len(labels), labels, index=False)
    recordio.sort(folder / "a", folder / "b", reverse=reverse)
    found = [recordio.unpack(record)[0].id for record in recordio.RecordReader(folder / "b.rec")]
    assert found == sorted(range(len(labels)), key=lambda n: labels[n], reverse=reverse)
