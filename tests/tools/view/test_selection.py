"""Conditions over what pages show, compared with `recordio.filter`."""

from pathlib import Path

import pytest
from made_tars import tar

import recordio
from recordio.operations.expression import Condition
from recordio.packs.open_pack import open_pack
from recordio.tools.cli import main
from recordio.tools.view.selection import by_contents, by_heads, search


@pytest.mark.parametrize(
    "text",
    [
        "label == 1",
        "label in (0, 2) and width >= 55",
        "height > width or format == 'png'",
        "not decodable or id >= 1025",
        "bytes > 900 and key % 2 == 0",
        "2 in labels or len(labels) > 1",
        "objects > 0",
    ],
)
def test_the_same_records_are_found_as_by_the_command(opened, plain, tmp_path, text):
    pack = opened(plain)
    found = search(pack, Condition(text), 0, 100, seconds=60)
    assert found.complete and (found.begin, found.end) == (0, 30)
    try:
        recordio.filter(f"{plain}.rec", tmp_path / "out.rec", text)
        with recordio.RecordReader(tmp_path / "out.rec", tmp_path / "out.idx") as reader:
            expected = [recordio.unpack(record)[0].id for record in reader]
    except recordio.EmptyRecordFileError:
        expected = []
    assert [record.header.id for record in found.records] == expected


@pytest.mark.parametrize("text", ["label != 0", "label != 0 and width > 0"])
@pytest.mark.parametrize("chunk", [1, 3, 7, 256])
def test_pages_forwards_and_backwards_are_the_same(opened, plain, monkeypatch, chunk, text):
    monkeypatch.setattr("recordio.tools.view.selection.CHUNK", chunk)
    monkeypatch.setattr("recordio.tools.view.selection.BLOCK", chunk)
    pack, condition = opened(plain), Condition(text)
    pages, start = [], 0
    while start < 30:
        found = search(pack, condition, start, 4, seconds=60)
        assert found.complete
        pages.append([record.position for record in found.records])
        start = found.end
    assert sum(pages, []) == [n for n in range(30) if n % 3]
    end = 30
    for page in reversed(pages):
        before = search(pack, condition, end, len(page), backwards=True, seconds=60)
        assert [record.position for record in before.records] == page
        end = before.begin


def test_a_search_ends_in_time_and_says_where(opened, plain, monkeypatch):
    monkeypatch.setattr("recordio.tools.view.selection.BLOCK", 5)
    pack = opened(plain)
    found = search(pack, Condition("label == 99"), 0, 10, seconds=0)
    assert not found.complete and (found.records, found.begin, found.end) == ([], 0, 5)
    found = search(pack, Condition("label == 99"), 30, 10, backwards=True, seconds=0)
    assert not found.complete and (found.begin, found.end) == (25, 30)


def test_the_clock_is_looked_at_after_each_record_that_is_decoded(opened, plain):
    pack = opened(plain)
    for text in ("not decodable", "label == 0 and not decodable"):
        found = search(pack, Condition(text), 0, 10, seconds=0)
        assert not found.complete and (found.begin, found.end) == (0, 1)
        found = search(pack, Condition(text), 30, 10, backwards=True, seconds=0)
        assert not found.complete and (found.begin, found.end) == (29, 30)
    assert search(pack, Condition("width > 1000"), 0, 10, seconds=0).end == 30


def test_objects_are_asked_by_their_classes(opened, mixed):
    pack = opened(mixed)

    def positions(text):
        found = search(pack, Condition(text), 0, 20, seconds=60)
        return [record.position for record in found.records]

    assert positions("objects == 2") == [7]
    assert positions("8 in labels") == [7] and positions("label == 7") == [7]
    assert positions("3.5 in labels") == [8]
    assert positions("format == 'npy'") == [3]


def test_damaged_records_have_a_format_of_their_own(opened, damaged):
    found = search(opened(damaged), Condition("format == 'damaged'"), 0, 9, seconds=60)
    (record,) = found.records
    assert record.position == 4 and record.key == 1004 and "no record begins here" in record.damage


CONDITIONS = [
    "label == 1", "label != 1", "label > 0.5", "1 in labels", "len(labels) > 1", "len(labels) == 0",
    "bytes == 0", "bytes > 300", "id == 1005", "key == 5", "not key % 2 == 0", "objects == 0",
    "id >= 0 or label < 2",
]  # fmt: skip


@pytest.mark.parametrize("name", ["plain", "mixed", "damaged", "faces"])
@pytest.mark.parametrize("text", CONDITIONS)
def test_heads_say_the_same_as_contents(opened, request, name, text):
    pack, condition = opened(request.getfixturevalue(name)), Condition(text)
    table = pack.locations.table(0, 100)
    expected = [record.position for record in by_contents(pack, condition, 0, table)]
    assert [record.position for record in by_heads(pack, condition, 0, table)] == expected


def test_heads_of_damaged_files_say_the_same(opened, plain, tmp_path):
    import random

    data = Path(f"{plain}.rec").read_bytes()
    draw = random.Random(5)
    for turn in range(20):
        changed = bytearray(data[: draw.choice([len(data), draw.randrange(8, len(data))])])
        for _ in range(20):
            changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        prefix = tmp_path / f"{turn}"
        prefix.with_name(f"{turn}.rec").write_bytes(changed)
        prefix.with_name(f"{turn}.idx").write_bytes(Path(f"{plain}.idx").read_bytes())
        pack = opened(str(prefix))
        table = pack.locations.table(0, 100)
        for text in CONDITIONS:
            one, other = (
                [r.position for r in look(pack, Condition(text), 0, table)]
                for look in (by_contents, by_heads)
            )
            assert one == other, text


SIZE_CONDITIONS = [
    "width > 55", "width > 55 or key % 3 == 0", "not width >= 60", "width > 45 and label != 1",
    "height > width and bytes > 300", "width < 60 and format == 'png'",
]  # fmt: skip


@pytest.mark.parametrize("name", ["plain", "mixed", "damaged", "faces", "turned"])
@pytest.mark.parametrize("text", SIZE_CONDITIONS)
def test_kept_sizes_find_the_same_records(opened, copied, request, name, text):
    prefix = copied(request.getfixturevalue("plain" if name == "turned" else name))
    if name == "turned":  # positions in another order than the records
        lines = Path(f"{prefix}.idx").read_text().splitlines()
        Path(f"{prefix}.idx").write_text("".join(f"{line}\n" for line in lines[::-1]))
    condition = Condition(text)
    expected = [r.position for r in search(opened(prefix), condition, 0, 100, seconds=60).records]
    open_pack(prefix, skip_errors=True, everything=True).image_sizes  # noqa: B018
    pack = opened(prefix)
    assert pack.sizes.has_sizes()
    assert [r.position for r in search(pack, condition, 0, 100, seconds=60).records] == expected


@pytest.mark.parametrize("text", ["width > 55", "width > 55 and label == 1"])
def test_records_with_kept_sizes_are_not_read_to_be_compared(opened, copied, plain, text):
    prefix = copied(plain)
    assert main(["index", prefix, "--sizes"]) == 0
    pack, read = opened(prefix), []
    look = pack.at
    pack.at = lambda location: read.append(location.position) or look(location)
    found = search(pack, Condition(text), 0, 100, seconds=60)
    assert 0 < len(found.records) < 30
    assert read == [record.position for record in found.records]


def test_sizes_of_another_pack_are_not_used(opened, copied, plain, faces):
    prefix, other = copied(plain), copied(faces)
    main(["index", other, "--sizes"])
    Path(f"{other}.sizes").replace(f"{prefix}.sizes")
    pack = opened(prefix)
    assert len(search(pack, Condition("width == 60"), 0, 100, seconds=60).records) == 16
    assert not pack.sizes.has_sizes()


@pytest.mark.parametrize("count", [1, 3])
def test_kept_sizes_of_containers(opened, images, tmp_path, count):
    for number in range(count):
        files = [(f"{n}.png", images.png(20 + number, 30 + n)) for n in range(4)]
        (tmp_path / f"{number}.tar").write_bytes(tar(*files))
    path = f"{tmp_path}/{{0..{count - 1}}}.tar" if count > 1 else f"{tmp_path}/0.tar"
    for text in ("width > 31", "height > 31 or width == 20", "width > 31 and label == 0"):
        expected = [r.position for r in search(opened(path), Condition(text), 0, 99).records]
        open_pack(path).image_sizes  # noqa: B018
        pack = opened(path)
        assert pack.sizes.has_sizes()
        assert [r.position for r in search(pack, Condition(text), 0, 99).records] == expected
