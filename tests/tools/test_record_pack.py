"""A record of a damaged file has one number, whoever names it."""

import struct

import numpy as np
import pytest

import recordio
from iterators import ImageRecordIter
from iterators.images.sources.record_source import RecordSource
from recordio import IRHeader, RecordIOError, RecordReader, pack, verify
from recordio.frames.encoder import MAGIC, encode
from recordio.packs.open_pack import OpenPack
from recordio.packs.scanned_pack import ScannedPack, whole_records
from recordio.tools.decode_check import check_contents
from recordio.tools.record_pack import RecordPack
from recordio.tools.view.locations import FrameLocations
from recordio.tools.view.pack import ShownPack

COUNT = 7


@pytest.fixture
def frames(images):
    """Records whose ids are their numbers; the content of the last but one cannot be decoded."""
    contents = [images.png()] * COUNT
    contents[COUNT - 2] = b"no image"
    return [
        encode(pack(IRHeader(0, number, number, 0), content))
        for number, content in enumerate(contents)
    ]


def head_cut(frames):
    return [*frames[:2], frames[2][8:], *frames[3:]]


def length_flipped(frames):
    """One that is too long, up to the middle of the record behind it."""
    longer = MAGIC + struct.pack("<I", len(frames[2]) + 32) + frames[2][8:]
    return [*frames[:2], longer, *frames[3:]]


def length_beyond_the_end(frames):
    return [*frames[:2], MAGIC + struct.pack("<I", 1 << 28) + frames[2][8:], *frames[3:]]


def garbage_between(frames):
    return [*frames[:2], b"junk" * 5, *frames[2:]]


def damaged_start(frames):
    return [b"oops" + frames[0][4:], *frames[1:]]


def two_in_a_row(frames):
    return [*frames[:1], *(b"oops" + frame[4:] for frame in frames[1:3]), *frames[3:]]


def two_apart(frames):
    return [b"oops" + f[4:] if n in (1, 3) else f for n, f in enumerate(frames)]


def damaged_end(frames):
    return [*frames[:-1], frames[-1][:-20]]


#: The numbers of the damage without an index and with one, and the ids of the whole records by
#: their numbers in both cases; None: the index lists nothing there.
DAMAGE = {
    head_cut: ([2], [2], [0, 1, None, 3, 4, 5, 6], [0, 1, None, 3, 4, 5, 6]),
    length_flipped: ([2], [2], [0, 1, None, 3, 4, 5, 6], [0, 1, None, 3, 4, 5, 6]),
    length_beyond_the_end: ([2], [2], [0, 1, None, 3, 4, 5, 6], [0, 1, None, 3, 4, 5, 6]),
    garbage_between: ([2], [None], [0, 1, None, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5, 6]),
    damaged_start: ([0], [0], [None, 1, 2, 3, 4, 5, 6], [None, 1, 2, 3, 4, 5, 6]),
    two_in_a_row: ([1], [1], [0, None, 3, 4, 5, 6], [0, None, None, 3, 4, 5, 6]),
    two_apart: ([1, 3], [1, 3], [0, None, 2, None, 4, 5, 6], [0, None, 2, None, 4, 5, 6]),
    damaged_end: ([6], [6], [0, 1, 2, 3, 4, 5, None], [0, 1, 2, 3, 4, 5, None]),
}


@pytest.fixture(params=DAMAGE, ids=lambda damage: damage.__name__)
def damage(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["plain", "indexed"])
def indexed(request):
    return request.param


@pytest.fixture
def broken(tmp_path, frames, damage, indexed):
    """A damaged pack, and what is expected: offsets of damage by number, ids by number."""
    path = tmp_path / "a.rec"
    pieces = damage(frames)
    path.write_bytes(b"".join(pieces))
    starts = np.cumsum([0, *map(len, pieces)])[:-1]
    if indexed:
        records = [
            start for start, piece in zip(starts, pieces, strict=True) if piece[:4] != b"junk"
        ]
        lines = [f"{number}\t{offset}\n" for number, offset in enumerate(records)]
        path.with_suffix(".idx").write_text("".join(lines))
    bad = [start for start, p in zip(starts, pieces, strict=True) if p not in frames]
    numbers, ids = DAMAGE[damage][indexed], DAMAGE[damage][2 + indexed]
    where = [int(bad[place]) for place in range(len(numbers))]
    return path, list(zip(numbers, where, strict=True)), ids


def id_at(path, offset):
    with RecordReader(path) as reader:
        return recordio.unpack(reader.read_at(int(offset))[0])[0].id


def whole(ids):
    return {number: at for number, at in enumerate(ids) if at is not None}


def test_the_check_and_the_decoding(broken, indexed):
    path, bad, ids = broken
    report = verify(path, path.with_suffix(".idx") if indexed else None)
    frames = [p for p in report.problems if p.kind != "index_offset"]
    assert [(p.record, p.offset) for p in frames] == bad
    check_contents(report, threads=1, progress=False)
    (undecoded,) = [p for p in report.problems if p.kind == "content"]
    assert (undecoded.record, id_at(path, undecoded.offset)) == (ids.index(COUNT - 2), COUNT - 2)


def test_repair(broken, indexed, tmp_path):
    path, bad, _ = broken
    index = path.with_suffix(".idx") if indexed else None
    report = recordio.repair(path, tmp_path / "out.rec", index)
    assert [(p.record, p.offset) for p in report.problems] == bad


def test_the_pack_functions(broken, indexed):
    path, bad, ids = broken
    with ScannedPack(path, skip_errors=True) as source:
        assert dict(zip(source.numbers.tolist(), source.ids.tolist(), strict=True)) == whole(ids)
        assert source.location(COUNT - 3)["record"] == ids.index(int(source.ids[COUNT - 3]))
        problems = [(p.record, p.offset) for p in source.problems]
    # An index says which records are missing, each by itself.
    assert set(problems) >= {row for row in bad if row[0] is not None}
    assert sorted(n for n, _ in problems) == [n for n, i in enumerate(ids) if i is None]


def test_training(broken, damage, indexed):
    path, bad, ids = broken
    index = str(path.with_suffix(".idx")) if indexed else ""
    source = RecordSource.open(str(path), index, on_error="skip")
    assert len(source) == len(ids)
    for number, found in whole(ids).items():
        assert id_at(path, source.location_of(number)["offset"]) == found
    for number, offset in bad:
        if number is not None:
            assert source.location_of(number) == {
                "path": str(path),
                "offset": offset,
                "record": number,
            }
    with ImageRecordIter(
        path_imgrec=str(path), path_imgidx=index, data_shape=(3, 8, 8), batch_size=1, resize=8,
        on_error="skip", error_budget=COUNT,
    ) as provider:  # fmt: skip
        for _ in provider:
            pass
        skipped = [reason for _, reason in provider.skipped]
    # What is no image, and the damage, but for a length that leads over another head: the image
    # in such a record is whole.
    numbers = [ids.index(COUNT - 2)] + [n for n, at in enumerate(ids) if at is None]
    named = {n for n in numbers if any(f"record {n}" in reason for reason in skipped)}
    assert len(skipped) == len(named)
    assert set(numbers) - named <= ({2} if damage is length_flipped else set())


def test_readers_and_commands_that_end_at_the_first_damage(broken, indexed):
    path, bad, ids = broken
    if indexed:
        pack = RecordPack(str(path), progress=False)
        assert pack.positions() == range(len(ids))
        for number, found in whole(ids).items():
            assert recordio.unpack(pack.reader[number])[0].id == found
        return
    for open_all in (
        lambda: len(RecordReader(path)),
        lambda: len(OpenPack(path)),
        lambda: ScannedPack(path),
        lambda: RecordSource.open(str(path)),
        lambda: len(RecordPack(str(path))),
        lambda: recordio.build_index(path, path.with_suffix(".new")),
        lambda: recordio.frames.check.write_checksums(path),
    ):
        with pytest.raises(RecordIOError) as error:
            open_all()
        assert (error.value.record, error.value.offset) == bad[0]


def test_the_viewer(broken, indexed):
    path, bad, ids = broken
    pack = ShownPack(str(path))
    pack.locations.survey(lambda: False)
    assert pack.locations.count == len(ids)
    for number, found in whole(ids).items():
        assert pack.record(number).header.id == found
    for number, offset in bad:
        assert pack.locations.position_at(offset) == number
    pack.close()


def test_the_viewer_follows_a_block_at_a_time(broken, indexed, monkeypatch):
    path, _, _ = broken
    tables = []
    for block in (4096, 2):
        monkeypatch.setattr("recordio.tools.view.locations.BLOCK", block)
        locations = FrameLocations(RecordReader(path))
        locations.survey()
        tables.append(locations.table(0, 99).tolist())
        assert locations.count == len(tables[-1])
    assert tables[0] == tables[1]


def test_whole_records(broken, indexed):
    path, _, ids = broken
    index = str(path.with_suffix(".idx")) if indexed else None
    (offsets, _, numbers), _ = whole_records(path.read_bytes(), index)
    assert {n: id_at(path, at) for n, at in zip(numbers.tolist(), offsets, strict=True)} == whole(
        ids
    )
