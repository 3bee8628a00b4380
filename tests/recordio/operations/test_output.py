"""Packs written from planned records: order, labels, identities and ends."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators.testing import write_records
from recordio import (
    EmptyRecordFileError,
    LabelError,
    RecordIOError,
    RecordWriter,
    TruncatedRecordError,
    repair,
)
from recordio.operations import copying
from recordio.operations.copying import Edit
from recordio.operations.journal import Journal
from recordio.operations.output import Plan, write_packs
from recordio.packs.scanned_pack import ScannedPack
from recordio.tools.optimize import optimize_records

MAGIC_ID = 0xCED7230A


def plan_of(path, *chosen):
    """Of pairs of source and record."""
    pairs = np.array(chosen, np.int64).reshape(-1, 2)
    return Plan(str(path), pairs[:, 0], pairs[:, 1])


@pytest.mark.parametrize("long_run", [0, 1, 1000])
def test_any_order_of_two_packs(packs, monkeypatch, small_blocks, long_run):
    monkeypatch.setattr(copying, "LONG_RUN", long_run)
    paths = [packs.plain("a", range(20)), packs.plain("b", [[1, 2]] * 20)]
    rng = np.random.default_rng(0)
    chosen = rng.permuted(np.stack([np.repeat([0, 1], 20), np.tile(np.arange(20), 2)]), axis=1)
    pairs = np.stack([chosen[0], chosen[1]], axis=1)
    with ScannedPack(paths[0]) as first, ScannedPack(paths[1]) as second:
        expected = [bytes((first, second)[pack].record(row)) for pack, row in pairs.tolist()]
        report = write_packs([first, second], [plan_of(packs.path("c"), *pairs.tolist())])
    with ScannedPack(packs.path("c")) as source:
        assert [bytes(source.record(row)) for row in range(40)] == expected
        assert source.keys.tolist() == list(range(40))
    assert report.records == 40 and report.bytes == packs.path("c").stat().st_size
    assert packs.names() == ["a.idx", "a.rec", "b.idx", "b.rec", "c.idx", "c.rec"]


def test_labels_and_ids_change(packs, small_blocks):
    plain = packs.plain("a", [1, [2, 3], 4, 5, 6], first_id=MAGIC_ID - 3)
    objects = packs.detection("b", [[1], [], [2, 3], [4], [5]])
    with ScannedPack(plain) as first, ScannedPack(objects) as second:
        edits = [Edit(first.labels.values + 10, shift=1), Edit(second.labels.values + 20)]
        pairs = [(pack, row) for row in range(5) for pack in range(2)]
        write_packs([first, second], [plan_of(packs.path("c"), *pairs)], edits)
    found, before = packs.read(packs.path("c")), packs.read(plain)
    assert [labels for labels, _, _ in found.values()][::2] == [[11], [12, 3], [14], [15], [16]]
    assert [number for _, number, _ in found.values()][::2] == list(
        range(MAGIC_ID - 2, MAGIC_ID + 3)
    )
    assert [row[2] for row in found.values()][::2] == [row[2] for row in before.values()]
    objects_after = [labels for labels, _, _ in found.values()][1::2]
    assert [labels[4::5] for labels in objects_after] == [[21], [], [22, 23], [24], [25]]
    assert all(labels[:4] == [4, 5, 7, 7] for labels in objects_after)


def test_identities_are_the_labels(packs):
    path = packs.faces("a", [2, 0, 3])
    with ScannedPack(path) as source:
        write_packs([source], [plan_of(packs.path("same"), *[(0, row) for row in range(5)])])
        plan = plan_of(packs.path("b"), (0, 4), (0, 1), (0, 2))
        report = write_packs([source], [plan])
        write_packs([source], [plan_of(packs.path("c"), (0, 1))], identities=0)
    assert packs.path("same").read_bytes() == path.read_bytes()
    assert (
        packs.path("same").with_suffix(".idx").read_bytes() == path.with_suffix(".idx").read_bytes()
    )
    assert packs.identities(packs.path("b")) == [[0], [], [2, 2]]
    assert packs.labels(packs.path("b")) == [[2], [0], [2]]
    assert report.outputs[0].identities == 3 and report.records == 3
    assert packs.identities(packs.path("c")) is None


def test_what_identities_cannot_list(packs):
    with ScannedPack(packs.faces("a", [2, 1])) as source:
        edit = [Edit(np.array([0, 0.5, 1], np.float32))]
        plan = plan_of(packs.path("b"), (0, 0), (0, 1), (0, 2))
        with pytest.raises(LabelError, match=r"a\.rec, offset \d+, record 2: .*0\.5"):
            write_packs([source], [plan], edit)
        source.identities = (1 << 24) + 1
        with pytest.raises(RecordIOError, match="32-bit"):
            write_packs([source], [plan])


@pytest.mark.parametrize("target", ["a.rec", "link.rec", "a.idx"])
def test_a_source_is_not_overwritten(packs, target):
    path = packs.plain("a", [1])
    os.link(path, packs.path("link"))
    with ScannedPack(path) as source, pytest.raises(RecordIOError, match="source"):
        write_packs([source], [plan_of(packs.folder / target, (0, 0))])
    assert packs.labels(path) == [[1]]


def test_refused_before_anything_is_written(packs):
    path = packs.plain("a", [1])
    with ScannedPack(path) as source:
        with pytest.raises(EmptyRecordFileError, match=r"c\.rec"):
            write_packs([source], [plan_of(packs.path("b"), (0, 0)), plan_of(packs.path("c"))])
        with pytest.raises(RecordIOError, match="two outputs"):
            write_packs([source], [plan_of(packs.path("b"), (0, 0))] * 2)
        with pytest.raises(OSError, match="folder"):
            write_packs([source], [plan_of(packs.folder / "folder/b.rec", (0, 0))])
    assert packs.names() == ["a.idx", "a.rec"]


def test_companions_of_the_old_pack(packs):
    path = packs.plain("a", [1])
    old = packs.plain("b", [2])
    for suffix in (".classes.txt", ".lst"):
        old.with_suffix(suffix).write_text("0\told\n")
    write_records(old, [b"old"], checksums=True)
    with ScannedPack(path) as source:
        write_packs([source], [plan_of(old, (0, 0))])
        assert packs.names() == ["a.idx", "a.rec", "b.idx", "b.lst", "b.rec"]
        companions = {".classes.txt": b"1\tnew\n"}
        write_packs([source], [Plan(str(old), np.array([0]), np.array([0]), companions)])
    assert old.with_suffix(".classes.txt").read_text() == "1\tnew\n"


def test_progress_and_cancelling(packs, small_blocks):
    path = packs.plain("a", range(30))
    plan = plan_of(packs.path("b"), *[(0, row) for row in range(30)])
    seen = []
    with ScannedPack(path) as source:
        write_packs([source], [plan], progress=lambda *counts: seen.append(counts))
        assert seen[-1] == (30, 30) and len(seen) > 4 and seen == sorted(seen)
        packs.path("b").unlink()
        with pytest.raises(KeyboardInterrupt):
            write_packs([source], [plan], cancelled=lambda: True)
    assert packs.names() == ["a.idx", "a.rec", "b.idx"]


def test_a_source_that_becomes_shorter(packs):
    path = packs.plain("a", range(3000))
    with ScannedPack(path) as source:
        plan = plan_of(packs.path("b"), *[(0, row) for row in range(3000)])
        os.truncate(path, path.stat().st_size // 2)
        with pytest.raises(TruncatedRecordError, match=r"a\.rec"):
            write_packs([source], [plan])
    assert packs.names() == ["a.idx", "a.rec"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("faces", [False, True])
def test_a_killed_run_goes_on(packs, killed_after, faces):
    path = packs.faces("a", [20, 0, 40]) if faces else packs.plain("a", range(60))
    with ScannedPack(path) as source:
        edits = [Edit(source.labels.values[::-1].copy())]
        rows = np.random.default_rng(1).permutation(60).reshape(2, 30)

        def make(names, progress=None):
            plans = [
                plan_of(packs.path(name), *[(0, row) for row in part])
                for name, part in zip(names, rows.tolist(), strict=True)
            ]
            return write_packs([source], plans, edits, progress=progress)

        make("xy")
        killed_after(45, lambda progress: make("bc", progress))
        assert len([name for name in packs.names() if name.endswith(".partial")]) == 5
        killed_after(55, lambda progress: make("bc", progress))
        report = make("bc")
        assert 50 <= report.continued <= 55
        assert make("bc").continued == 0
    for new, old in ("bx", "cy"):
        for suffix in (".rec", ".idx"):
            new_file, old_file = (packs.path(name).with_suffix(suffix) for name in (new, old))
            assert new_file.read_bytes() == old_file.read_bytes()
    assert len(packs.names()) == 10


@pytest.mark.parametrize(
    "line",
    ["0 x 1 2", "0 1 2", "0 1 2 3 4", "0 -4 DEVICE INODE", "0 99999999999999999999 DEVICE INODE",
     "9" * 5000, "0 13 DEVICE INODE", "\xe9", ""],
)  # fmt: skip
def test_lines_that_no_run_wrote_are_not_believed(packs, line):
    """Beside whole first records of the output, in the journal of the same run."""
    path, target = packs.plain("a", range(60)), packs.path("b")
    lines = []

    def make(progress=None):
        with ScannedPack(path) as source:
            plan = Plan(str(target), np.zeros(60, int), np.arange(60)[::-1])
            return write_packs([source], [plan], progress=progress)

    journal = packs.folder / "b.rec.journal.00000000.partial"
    make(lambda done, total: lines.append(journal.read_bytes().split(b"\n")[0]))
    expected = target.read_bytes()
    partial = packs.folder / "b.rec.00000000.partial"
    partial.write_bytes(expected[: len(expected) // 2])
    status = os.stat(partial)
    line = line.replace("DEVICE", str(status.st_dev)).replace("INODE", str(status.st_ino))
    journal.write_bytes(lines[0] + b"\n" + line.encode("latin-1") + b"\n")
    assert make().continued == 0
    assert target.read_bytes() == expected
    assert packs.names() == ["a.idx", "a.rec", "b.idx", "b.rec"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("change", ["plan", "source", "partial", "journal", "other"])
def test_what_another_run_left_is_not_continued(packs, killed_after, change):
    path = packs.plain("a", range(60))
    rows = np.arange(60)

    def make(progress=None):
        with ScannedPack(path) as source:
            plan = Plan(str(packs.path("b")), np.zeros(60, int), rows)
            return write_packs([source], [plan], progress=progress)

    killed_after(40, make)
    partial = packs.folder / "b.rec.00000000.partial"
    if change == "plan":
        rows = rows[::-1]
    elif change == "source":
        packs.plain("a", range(100, 160))
    elif change == "partial":
        partial.write_bytes(partial.read_bytes()[:200])
    elif change == "journal":
        (packs.folder / "b.rec.journal.00000000.partial").write_bytes(b"\xff\0 5\n1 2")
    else:
        data = partial.read_bytes()
        partial.unlink()
        partial.write_bytes(bytes(len(data)))
    assert make().continued == 0
    assert packs.names() == ["a.idx", "a.rec", "b.idx", "b.rec"]
    with ScannedPack(path) as old, ScannedPack(packs.path("b")) as new:
        assert new.labels.values.tolist() == old.labels.values[rows].tolist()


@pytest.mark.libjpeg
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_any_other_output_removes_what_a_killed_run_left(packs, killed_after):
    path = packs.plain("a", range(60))
    target = packs.path("b")

    def make(progress=None):
        with ScannedPack(path) as source:
            plan = Plan(str(packs.path("b")), np.zeros(60, int), np.arange(60))
            return write_packs([source], [plan], progress=progress)

    for write in (
        lambda: optimize_records(path, target.with_suffix("")),
        lambda: repair(path, target),
        lambda: RecordWriter(target, target.with_suffix(".idx")).close(),
    ):
        killed_after(40, make)
        assert "b.rec.journal.00000000.partial" in packs.names()
        write()
        assert packs.names() == ["a.idx", "a.rec", "b.idx", "b.rec"]


def test_the_journal_of_a_run_that_goes_on_stays(packs):
    target = packs.path("b")
    journal = Journal(str(target), "a run")
    RecordWriter(target).close()
    assert packs.names() == ["b.rec", "b.rec.journal.00000000.partial"]
    journal.remove()


@given(data=st.data())
def test_what_is_written_is_what_was_planned(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("packs")
    contents = [
        data.draw(st.lists(st.binary(max_size=60), min_size=1, max_size=8)) for _ in range(2)
    ]
    for name, payloads in zip("ab", contents, strict=True):
        write_records(folder / f"{name}.rec", payloads, index=False)
    every = [(pack, row) for pack in range(2) for row in range(len(contents[pack]))]
    chosen = data.draw(st.lists(st.sampled_from(every), min_size=1))
    with ScannedPack(folder / "a") as first, ScannedPack(folder / "b") as second:
        write_packs([first, second], [plan_of(folder / "c.rec", *chosen)])
    with ScannedPack(folder / "c") as source:
        written = [bytes(source.record(row)) for row in range(len(source))]
    assert written == [contents[pack][row] for pack, row in chosen]
