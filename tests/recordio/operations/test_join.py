"""`join`: labels, classes and identities of several packs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators.testing import write_records
from recordio import (
    IRHeader,
    LabelError,
    RecordIOError,
    RecordReader,
    join,
    pack,
    split,
)


def joined(packs, *names, **options):
    return join([packs.path(name) for name in names], packs.path("out"), **options)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("keep", [0, 2, 1, 0, 1]),
        ("append", [0, 2, 1, 3, 4]),
        (["keep", "append"], [0, 2, 1, 3, 4]),
        (["keep", {0: 7, 1: 9}], [0, 2, 1, 7, 9]),
        ([5, 6, 7], [5, 7, 6, 5, 6]),
        (["append", [20, 30]], [0, 2, 1, 20, 30]),
        (np.array([3, 2, 1]), [3, 1, 2, 3, 2]),
        (lambda labels: -labels, [0, -2, -1, 0, -1]),
        (["keep", None], [0, 2, 1, -1, -1]),
    ],
)
def test_labels(packs, labels, expected):
    packs.plain("a", [0, 2, 1])
    packs.plain("b", [0, 1], index=False)
    report = joined(packs, "a", "b", labels=labels)
    assert [row[0] for row in packs.labels(packs.path("out"))] == expected
    assert (report.records, report.left_out, report.skipped) == (5, 0, 0)
    contents = packs.contents(packs.path("out"))
    assert contents == [packs.content("a", i) for i in range(3)] + [
        packs.content("b", i) for i in range(2)
    ]


def test_classes_that_have_no_record_count(packs):
    packs.plain("a", [0, 1])
    joined(packs, "a", "a", labels="append", classes=[10, 2])
    assert packs.labels(packs.path("out")) == [[0], [1], [10], [11]]


def test_detection_and_several_labels(packs):
    packs.detection("a", [[0, 2], [], [1]])
    packs.plain("b", [[1, 40, 50], [0, 60, 70]])
    joined(packs, "a", "b", labels="append")
    assert packs.labels(packs.path("a")) == [[0, 2], [], [1]]
    rows = list(packs.read(packs.path("out")).values())
    assert [labels[4::5] for labels, _, _ in rows[:3]] == [[0, 2], [], [1]]
    assert [labels for labels, _, _ in rows[3:]] == [[4, 40, 50], [3, 60, 70]]


def test_identities_of_two_face_packs(packs):
    packs.faces("a", [2, 1])
    packs.faces("b", [1, 0, 2], index=False)
    report = joined(packs, "a", "b", labels="append")
    assert packs.identities(packs.path("out")) == [[0, 0], [1], [2], [], [4, 4]]
    assert report.outputs[0].identities == 5
    joined(packs, "a", "b")
    assert packs.identities(packs.path("out")) == [[0, 0, 0], [1], [2, 2]]


def test_a_face_pack_and_an_ordinary_one(packs):
    packs.faces("a", [2, 1])
    packs.plain("b", [0, 1, 0])
    joined(packs, "b", "a", labels="append")
    assert packs.identities(packs.path("out")) == [[0, 0], [1], [2, 2], [3]]
    joined(packs, "b", "a", labels=None)
    assert packs.identities(packs.path("out")) is None


def test_ids_move_only_where_they_collide(packs):
    packs.plain("a", [0] * 3, first_id=10)
    packs.plain("b", [0] * 3, first_id=13)
    packs.plain("c", [0] * 3, first_id=12)
    joined(packs, "a", "b", "c")
    ids = [number for _, number, _ in packs.read(packs.path("out")).values()]
    assert ids == [10, 11, 12, 13, 14, 15, 28, 29, 30]
    packs.plain("d", [0], first_id=2**63 - 1)
    with pytest.raises(RecordIOError, match=r"d\.rec.*63 bits"):
        joined(packs, "d", "d")


def test_ids_of_headers_with_a_second_id(packs):
    rows = [pack(IRHeader(0, 1, number, 77), b"unknown content") for number in range(3)]
    for name in ("a", "b"):
        packs.raw(name, rows)
    joined(packs, "a", "b")
    assert packs.ids(packs.path("out")) == [0, 1, 2, 3, 4, 5]


def test_names_of_classes(packs):
    for name, names in (("a", "0\tcat\n1\tdog\n"), ("b", "0\tcow\n1\tdog\n")):
        packs.plain(name, [0, 1]).with_suffix(".classes.txt").write_text(names)
    beside = packs.folder / "out.classes.txt"
    joined(packs, "a", "b", labels="append")
    assert beside.read_text() == "0\tcat\n1\tdog\n2\tcow\n3\tdog\n"
    with pytest.raises(RecordIOError, match=r"b\.classes\.txt: class 0 is 'cow' here and 'cat'"):
        joined(packs, "a", "b")
    joined(packs, "a", "b", labels=["keep", {0: 2, 1: 1}])
    assert beside.read_text() == "0\tcat\n1\tdog\n2\tcow\n"
    joined(packs, "a", "b", labels=None)
    assert not beside.exists()


def test_unknown_labels_are_named(packs):
    packs.plain("a", [0, 1])
    packs.plain("b", [0, 5, 1])
    with pytest.raises(LabelError, match=r"b\.rec, offset \d+, record 1: .*label 5"):
        joined(packs, "a", "b", labels={0: 0, 1: 1})
    with pytest.raises(ValueError, match=r"1\.5 numbers no class"):
        packs.plain("c", [1.5])
        joined(packs, "c", labels="append")
    assert "out.rec" not in packs.names()


@pytest.mark.parametrize("options", [{"labels": ["keep"]}, {"classes": [1]}, {"labels": "all"}])
def test_options_that_mean_nothing(packs, options):
    packs.plain("a", [0])
    with pytest.raises(ValueError, match=r"labels|classes"):
        joined(packs, "a", "a", **options)
    with pytest.raises(ValueError, match="packs"):
        join([], packs.path("out"))
    with pytest.raises(ValueError, match="packs"):
        join("a.rec", packs.path("out"))


def test_damage_is_counted(packs):
    path = packs.plain("a", range(6), index=False)
    data = bytearray(path.read_bytes())
    data[: len(data) // 2 // 4 * 4] = data[: len(data) // 2 // 4 * 4].replace(b"a2a2", b"\0\0\0\0")
    data[0] = 0
    path.write_bytes(data)
    with pytest.raises(RecordIOError, match=r"a\.rec, offset 0, record 0"):
        joined(packs, "a")
    report = joined(packs, "a", skip_errors=True)
    assert report.records == 5 and report.skipped == 1
    assert report.problems[0].startswith(f"{path}: offset 0, record 0")


def test_records_without_header_are_copied(packs):
    packs.raw("a", [b"one", b"", b"a line of text of more than 24 bytes"])
    packs.plain("b", [1])
    joined(packs, "a", "b", "a")
    with RecordReader(packs.path("out")) as reader:
        assert [bytes(record) for record in reader[:3]] == [bytes(record) for record in reader[4:]]
    with pytest.raises(RecordIOError, match="no image header"):
        joined(packs, "a", "b", labels="append")
    assert joined(packs, "a", "b", labels="append", skip_errors=True).skipped == 3


payloads = st.builds(
    lambda label, content: pack(IRHeader(0, label, 0, 0), content),
    st.one_of(st.integers(0, 5), st.lists(st.integers(0, 9), min_size=1, max_size=9)),
    st.binary(max_size=20),
)


@given(contents=st.lists(st.lists(payloads, min_size=1, max_size=6), min_size=1, max_size=3))
def test_join_then_split_gives_the_packs_back(contents, tmp_path_factory):
    folder = tmp_path_factory.mktemp("packs")
    lists, start = {}, 0
    for number, rows in enumerate(contents):
        write_records(folder / f"{number}.rec", rows, index=False)
        lists[folder / f"again{number}.rec"] = range(start, start + len(rows))
        start += len(rows)
    report = join([folder / f"{number}" for number in range(len(contents))], folder / "all")
    assert report.records == start
    report = split(folder / "all", lists, by="list")
    assert [output.records for output in report.outputs] == list(map(len, contents))
    for number, rows in enumerate(contents):
        with RecordReader(folder / f"again{number}.rec") as reader:
            # All ids were 0: those of the n-th pack have become n.
            again = [bytes(row[:8]) + bytes(8) + bytes(row[16:]) for row in reader]
            assert {row[8] for row in map(bytes, reader)} == {number}
        assert again == [bytes(row) for row in rows]


def test_what_mxnet_wrote_stays_as_it_is(golden, golden_payloads, packs):
    join([golden / "frames.rec"] * 2, packs.path("out"))
    with RecordReader(packs.path("out"), packs.path("out").with_suffix(".idx")) as reader:
        assert [bytes(record) for record in reader] == golden_payloads * 2
    frames = (golden / "frames.rec").read_bytes()
    assert packs.path("out").read_bytes() == frames * 2
