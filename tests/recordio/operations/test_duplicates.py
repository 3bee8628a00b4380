"""`dedup`: equal contents, and pictures that look alike."""

import json

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordio
from iterators.testing import write_records, write_rows
from recordio import IRHeader, RecordIOError, pack


def encode(image, suffix=".png", quality=90):
    return cv2.imencode(suffix, image, [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()


def rows_of(*records):
    """Of pairs of label and content."""
    return [pack(IRHeader(0, label, n, 0), content) for n, (label, content) in enumerate(records)]


@pytest.fixture
def looks_alike(packs, photos):
    """Photographs, each also smaller and more compressed, and one of them twice."""
    contents = []
    for name in ("astronaut", "chelsea", "coffee", "rocket"):
        image = np.ascontiguousarray(photos[name][..., ::-1])
        half = cv2.resize(image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
        contents += [encode(image, ".jpg"), encode(half), encode(image, ".jpg", 40)]
    contents.append(contents[0])
    contents.append(contents[4])
    return packs.raw("a", rows_of(*((n % 3, content) for n, content in enumerate(contents))))


def test_labels_that_are_no_numbers_and_keys_that_repeat(packs):
    rows = [(0, np.nan, b"x"), (0, np.inf, b"x"), (0, 1, b"y"), (0, 2, b"y")]
    path = write_rows(packs.path("a"), rows, keys=[5] * 4)
    found = recordio.dedup(path)
    assert list(found.lines()) == ["5: 5 (label inf, not nan)", "5: 5 (label 2, not 1)"]
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["groups"] == 2


def test_the_first_of_the_same_contents_stays(packs):
    path = packs.raw("a", rows_of((1, b"x"), (2, b"y"), (1, b"x"), (3, b"y"), (0, b"z"), (1, b"x")))
    found = recordio.dedup(path, packs.path("b"))
    assert (found.exact, found.near, found.groups, found.conflicts) == (3, 0, 2, 1)
    assert list(found.lines()) == ["0: 2, 5", "1: 3 (label 3, not 2)"]
    assert found.same.all() and (found.distance == -1).all()
    assert packs.contents(packs.path("b")) == [b"x", b"y", b"z"]
    assert found.written.records == 3
    assert "3 with the content of an earlier one; groups: 2, of which the labels" in str(found)
    assert recordio.dedup(packs.path("b")).exact == 0


def test_nothing_is_written_unless_asked_for(packs):
    recordio.dedup(packs.raw("a", rows_of((1, b"x"), (1, b"x"))))
    assert packs.names() == ["a.idx", "a.rec"]


def test_other_objects_contradict(packs):
    path = packs.raw("a", rows_of(([1, 2], b"x"), ([1, 3], b"x"), ([1, 2], b"x")))
    found = recordio.dedup(path)
    assert found.conflicts == 1 and list(found.lines()) == ["0: 1 (other labels), 2"]


def test_pictures_that_look_alike(looks_alike, packs):
    found = recordio.dedup(looks_alike, packs.path("b"), near=8)
    assert (found.exact, found.near, found.groups) == (2, 8, 4)
    groups = {}
    for kept, key in zip(found.kept.tolist(), found.key.tolist(), strict=True):
        groups.setdefault(kept, []).append(key)
    assert groups == {0: [1, 2, 12], 3: [4, 5, 13], 6: [7, 8], 9: [10, 11]}
    assert found.same.tolist() == [False, False, True, *[False] * 7]
    assert found.distance.min() >= 0 and found.distance.max() <= 8
    assert found.starts.tolist() == [0, 3, 6, 8]
    assert "13 (distance " in list(found.lines())[1]  # the same as 4, which only looks like 3
    assert len(packs.contents(packs.path("b"))) == 4
    assert recordio.dedup(looks_alike).exact == 2


@pytest.mark.parametrize("threads", [1, 4])
def test_threads_change_nothing(looks_alike, threads):
    found = recordio.dedup(looks_alike, near=8, threads=threads)
    assert found.distance.tolist() == recordio.dedup(looks_alike, near=8).distance.tolist()


def test_what_is_no_picture_is_compared_exactly(packs):
    path = packs.raw("a", [b"text", b"", b"text", b"", *rows_of((0, b"\x93NUMPYx"))], index=False)
    found = recordio.dedup(path, near=4)
    assert found.exact == 1 and found.near == 0 and np.isnan(found.label).all()
    said = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert said["duplicates"][0]["key"] == 2 and said["duplicates"][0]["label"] is None


def test_identities_are_rewritten_and_classes_kept(packs):
    path = packs.path("a")
    labels = [0, 0, 1, 1, 1]
    contents = [b"x", b"y", b"x", b"z", b"z"]
    rows = [pack(IRHeader(2, [6, 8], 0, 0), b"")]
    rows += [
        pack(IRHeader(0, label, key, 0), content)
        for key, (label, content) in enumerate(zip(labels, contents, strict=True), 1)
    ]
    rows += [pack(IRHeader(2, pair, 6, 0), b"") for pair in ([1, 3], [3, 6])]
    packs.raw("a", rows)
    path.with_suffix(".classes.txt").write_text("0\tann\n1\tbob\n")
    found = recordio.dedup(path, packs.path("b"))
    assert found.exact == 2 and found.conflicts == 1 and found.records == 5
    assert packs.identities(packs.path("b")) == [[0, 0], [1]]
    assert packs.path("b").with_suffix(".classes.txt").read_text() == "0\tann\n1\tbob\n"


def test_wrong_words_are_refused_before_anything_is_read(packs):
    path = packs.plain("a", [1])
    for near in (-1, 17):
        with pytest.raises(ValueError, match="near="):
            recordio.dedup(path, near=near)
    with pytest.raises(RecordIOError, match="overwritten"):
        recordio.dedup(path, str(path)[:-4])
    with pytest.raises(FileNotFoundError, match="folder"):
        recordio.dedup(path, packs.folder / "none" / "b")
    with pytest.raises(recordio.EmptyRecordFileError):
        recordio.dedup(packs.raw("empty", []), packs.path("b"))
    assert len(recordio.dedup(packs.path("empty"))) == 0


def test_damage_is_named_or_left_out(looks_alike, packs):
    with recordio.RecordReader(looks_alike, looks_alike.with_suffix(".idx")) as reader:
        rows = [bytes(record) for record in reader]
    rows[3] = rows[3][:60]
    path = packs.raw("b", rows)
    with pytest.raises(recordio.ImageDecodeError, match=r"b\.rec, offset \d+, record 3"):
        recordio.dedup(path, packs.path("c"), near=4)
    assert not packs.path("c").exists()
    found = recordio.dedup(path, packs.path("c"), near=8, skip_errors=True)
    assert found.skipped == 1 and found.written.skipped == 1
    assert found.written.records == 4  # the fourth group is led by another picture now
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.with_suffix(".idx").unlink()
    path.write_bytes(data)
    with pytest.raises(recordio.CorruptRecordError, match="offset 0"):
        recordio.dedup(path)
    assert recordio.dedup(path, skip_errors=True).skipped == 1


def test_cancelling_writes_nothing(packs):
    path = packs.raw("a", rows_of((1, b"x"), (1, b"x")))
    with pytest.raises(KeyboardInterrupt):
        recordio.dedup(path, packs.path("b"), cancelled=lambda: True)
    assert packs.names() == ["a.idx", "a.rec"]


@given(contents=st.lists(st.sampled_from([b"", b"a", b"b", b"c"]), min_size=1, max_size=12))
def test_what_is_left_is_every_content_once(contents, tmp_path_factory):
    folder = tmp_path_factory.mktemp("packs")
    write_records(folder / "a.rec", contents, index=False)
    recordio.dedup(folder / "a", folder / "b")
    left = [bytes(record) for record in recordio.RecordReader(folder / "b.rec")]
    assert [c for c in left if c] == list(dict.fromkeys(c for c in contents if c))
    assert left.count(b"") == contents.count(b"")
