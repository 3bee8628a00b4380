"""`split`: by fractions, classes, lists, and stratified."""

import collections

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordio import EmptyRecordFileError, KeyNotFoundError, LabelError, RecordIOError, split
from recordio.operations.division import shuffled_by_share


def parts(packs, shares, **options):
    """Split pack a; ids of the records of each part."""
    outputs = {packs.path(f"part{i}"): share for i, share in enumerate(shares)}
    report = split(packs.path("a"), outputs, **options)
    found = [packs.ids(path) for path in outputs]
    assert [output.records for output in report.outputs] == list(map(len, found))
    return found


def test_fractions(packs):
    packs.plain("a", [0] * 50)
    found = parts(packs, [0.7, 0.2, 0.1], seed=3)
    assert list(map(len, found)) == [35, 10, 5]
    assert sorted(sum(found, [])) == list(range(50)) and all(part == sorted(part) for part in found)
    assert found == parts(packs, [0.7, 0.2, 0.1], seed=3) != parts(packs, [0.7, 0.2, 0.1], seed=4)


def test_stratified(packs):
    labels = [0] * 50 + [1] * 30 + [2] * 20
    packs.plain("a", labels)
    found = parts(packs, [0.8, 0.2], stratified=True)
    for share, part in zip([0.8, 0.2], found, strict=True):
        counts = collections.Counter(labels[row] for row in part)
        assert all(abs(counts[label] - share * labels.count(label)) <= 1 for label in range(3))


@given(labels=st.lists(st.integers(0, 4), min_size=1, max_size=60), seed=st.integers(0, 9))
def test_every_stretch_has_its_share(labels, seed):
    numbers = np.unique(labels, return_inverse=True)[1]
    order = shuffled_by_share(len(labels), seed, numbers)
    assert sorted(order.tolist()) == list(range(len(labels)))
    half = numbers[order[: len(order) // 2]]
    for number, count in enumerate(np.bincount(numbers).tolist()):
        assert abs((half == number).sum() - count / 2) <= 3


def test_by_class(packs):
    labels = [number % 10 for number in range(40)]
    packs.plain("a", labels)
    found = parts(packs, [0.6, 0.4], by="class", seed=1)
    classes = [{labels[row] for row in part} for part in found]
    assert list(map(len, classes)) == [6, 4] and not classes[0] & classes[1]
    assert list(map(len, found)) == [24, 16]
    assert found == parts(packs, [0.6, 0.4], by="class", seed=1)
    with pytest.raises(EmptyRecordFileError, match="10 classes"):
        parts(packs, [0.99, 0.01], by="class")
    packs.detection("a", [[1], [2]])
    with pytest.raises(LabelError, match="objects"):
        parts(packs, [0.5, 0.5], by="class")


def test_by_list(packs, tmp_path):
    packs.plain("a", range(6), first_id=100)
    keys, images = tmp_path / "keys.txt", tmp_path / "some.lst"
    keys.write_text("# which\n5\n\n 1\n")
    images.write_text("102\t0\tone.jpg\n100\t0\ttwo.jpg\n")
    assert parts(packs, [keys, images, [3]], by="list") == [[101, 105], [100, 102], [103]]
    outputs = {packs.path("b"): [0, 1]}
    assert split(packs.path("a"), outputs, by="list").left_out == 4


@pytest.mark.parametrize(
    ("name", "text", "error", "match"),
    [
        ("a.txt", "1\nx\n", RecordIOError, r"a\.txt, line 2: 'x' is no key"),
        ("a.txt", "1\n9\n", KeyNotFoundError, r"a\.txt, line 2: no record .* the key 9"),
        ("a.lst", "1\t2\n", RecordIOError, r"a\.lst, line 1: 2 field"),
        ("a.lst", "9\t2\tx\n", KeyNotFoundError, r"a\.lst, line 1: no record .* the id 9"),
        ("a.txt", "99999999999999999999", RecordIOError, "no key"),
        ("a.txt", "", EmptyRecordFileError, "part0"),
    ],
)
def test_bad_lists(packs, tmp_path, name, text, error, match):
    packs.plain("a", range(3))
    (tmp_path / name).write_text(text)
    with pytest.raises(error, match=match):
        parts(packs, [tmp_path / name], by="list")
    assert "part0.rec" not in packs.names()


def test_refused(packs):
    path = packs.plain("a", range(3))
    with pytest.raises(RecordIOError, match=r"record 1: two lists name it, for .*part0.*part1"):
        parts(packs, [[0, 1], [1, 2]], by="list")
    for shares in ([0.5, 0.4], [1.5, -0.5], ["0.5", 0.5], [0.5, 0.5, 0.0], [True]):
        with pytest.raises(ValueError, match="share"):
            parts(packs, shares)
    with pytest.raises(ValueError, match="stratified"):
        parts(packs, [1.0], by="class", stratified=True)
    with pytest.raises(ValueError, match="by="):
        parts(packs, [1.0], by="chance")
    with pytest.raises(ValueError, match="needs keys"):
        parts(packs, [0.5], by="list")
    with pytest.raises(ValueError, match="empty"):
        split(path, {})
    with pytest.raises(EmptyRecordFileError):
        parts(packs, [0.99, 0.01])
    assert packs.names() == ["a.idx", "a.rec"]


def test_identities_and_names_stay(packs):
    packs.faces("a", [3, 2, 4]).with_suffix(".classes.txt").write_text("0\tx\n2\tz\n")
    parts(packs, [0.5, 0.5], by="class", seed=2)
    found = [packs.identities(packs.path(f"part{i}")) for i in range(2)]
    assert [len(rows) for rows in found] == [3, 3]
    for number, (one, other) in enumerate(zip(*found, strict=True)):
        assert [number] * (3, 2, 4)[number] == one + other and not (one and other)
    assert (packs.folder / "part1.classes.txt").read_text() == "0\tx\n2\tz\n"


def test_one_record(packs):
    packs.plain("a", [1])
    assert parts(packs, [1]) == [[0]]
