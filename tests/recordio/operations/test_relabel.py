"""`relabel`: labels, objects, identities and class names."""

import numpy as np
import pytest

from recordio import LabelError, RecordIOError, relabel


def changed(packs, labels, **options):
    report = relabel(packs.path("a"), packs.path("b"), labels, **options)
    assert report.left_out == 0
    return [row[0] for row in packs.read(packs.path("b")).values()]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("dense", [[1], [0], [2, 9], [1]]),
        ({7: 0, 3: 1, 8: 0}, [[0], [1], [0, 9], [0]]),
        (np.arange(10)[::-1], [[2], [6], [1, 9], [2]]),
        (lambda labels: labels + 0.5, [[7.5], [3.5], [8.5, 9], [7.5]]),
        (None, [[-1], [-1], [-1, 9], [-1]]),
    ],
)
def test_labels(packs, labels, expected):
    packs.plain("a", [7, 3, [8, 9], 7])
    before = packs.read(packs.path("a"))
    assert changed(packs, labels) == expected
    after = packs.read(packs.path("b"))
    assert [row[1:] for row in after.values()] == [row[1:] for row in before.values()]


def test_objects(packs):
    packs.detection("a", [[5, 9], [], [9]])
    assert [labels[4::5] for labels in changed(packs, "dense")] == [[0, 1], [], [1]]


def test_identities_follow_the_labels(packs):
    packs.faces("a", [2, 1, 1])
    changed(packs, {0: 1, 1: 0, 2: 1})
    assert packs.identities(packs.path("b")) == [[0], [1, 1, 1]]
    changed(packs, None)
    assert packs.identities(packs.path("b")) is None


def test_names_of_classes(packs):
    packs.plain("a", [7, 3]).with_suffix(".classes.txt").write_text("3\tcat\n7\tdog\n8\tcow\n")
    changed(packs, "dense")
    assert packs.path("b").with_suffix(".classes.txt").read_text() == "0\tcat\n1\tdog\n"


def test_a_list(packs, tmp_path):
    packs.plain("a", [7, 3, 5], first_id=10)
    path = tmp_path / "new.lst"
    path.write_text("12\t1\tx\n10\t0.5\tx\n11\t2\tx\n99\t9\tunused\n")
    assert changed(packs, path) == [[0.5], [2], [1]]
    path.write_text("12\t1\tx\n10\t4\t5\t6\tx\n11\t2\tx\n")
    assert changed(packs, str(path)) == [[4, 5, 6], [2], [1]]
    packs.path("a").write_bytes(packs.path("b").read_bytes())
    packs.path("a").with_suffix(".idx").write_bytes(
        packs.path("b").with_suffix(".idx").read_bytes()
    )
    path.write_text("12\t1\t2\tx\n10\t4\tx\n11\t2\tx\n")
    assert changed(packs, path) == [[4], [2], [1, 2]]
    assert packs.contents(packs.path("b")) == [packs.content("a", number) for number in range(3)]


def test_refused(packs, tmp_path):
    packs.plain("a", [7, 3])
    with pytest.raises(LabelError, match=r"a\.rec, offset \d+, record 1: .*label 3"):
        changed(packs, {7: 0})
    path = tmp_path / "new.lst"
    path.write_text("0\t1\tx\n")
    with pytest.raises(LabelError, match=r"record 1, id 1: .*new\.lst has no line"):
        changed(packs, path)
    path.write_text("0\t1\tx\n0\t1\ty\n")
    with pytest.raises(RecordIOError, match=r"new\.lst, line 2: another line has the id 0"):
        changed(packs, path)
    for labels in ("keep", "append", "new.txt"):
        with pytest.raises(ValueError, match="labels="):
            changed(packs, labels)
    assert "b.rec" not in packs.names()
