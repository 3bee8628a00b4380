"""Rows of the files of a pack, and the table of them in the documentation."""

from pathlib import Path

import pytest

from iterators.testing import write_pack
from recordio.frames.companions import COMPANIONS, pack_paths, stale_files
from recordio.packs.open_pack import open_pack
from recordio.packs.sizes import write_sizes

PAGE = Path(__file__).parents[3] / "docs/formats/pack.md"


@pytest.mark.parametrize("row", COMPANIONS, ids=lambda row: row.ending)
def test_every_row(tmp_path, row):
    """A companion is made of bytes of the records, or says something about them, or neither."""
    assert not (row.magic and row.believed)
    assert not row.kept or row.believed
    path = tmp_path / "a.rec"
    path.write_bytes(b"")
    beside = path.with_suffix(row.ending) if row.ending.startswith(".") else tmp_path / row.ending
    beside.write_bytes(row.magic)
    assert stale_files(str(path)) == [str(beside)] * bool(row.magic)
    void = [str(beside)] * bool(row.magic or row.believed)
    assert stale_files(str(path), believed=True, kept=True) == void
    assert stale_files(str(path), believed=True) == void * (not row.kept)
    assert stale_files(str(path), [str(beside)], believed=True, kept=True) == []
    written = row.believed or row.ending in (".rec", ".idx")
    assert (str(beside) in pack_paths(str(path)[:-4])) == written
    assert (str(beside) in pack_paths(str(path)[:-4], kept=False)) == (written and not row.kept)


def beside_others(row):
    """Say, as the page does, how a file fares when the records beside it are replaced."""
    if row.kept:
        return "removed by the commands that copy it"
    if row.believed:
        return "removed with the old pack"
    return "removed with the old records" if row.magic else "replaced"


def test_the_page_has_the_rows():
    table = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert table == [
        f"| `{row.ending}` | {row.content} | {row.written_by} | {row.new_packs} | "
        f"{beside_others(row)} |"
        for row in COMPANIONS
    ]


def test_writers_remove_what_was_made_of_the_records_they_replace(tmp_path):
    path = write_pack(tmp_path / "a.rec", 3)
    path.with_suffix(".lst").write_text("0\t0\ta.jpg\n")
    with open_pack(path) as opened:
        (file,) = opened.sized_files()
        write_sizes(file)
    assert stale_files(str(path)) == [str(path.with_suffix(".sizes"))]
    write_pack(path, 1)
    assert not path.with_suffix(".sizes").exists()
    assert path.with_suffix(".lst").exists()  # im2rec reads it


def test_files_of_others_stay(tmp_path):
    path = write_pack(tmp_path / "a.rec", 1)
    path.with_suffix(".crc").write_text("not of recordio")
    path.with_suffix(".entry").write_text("a diary")
    assert stale_files(str(path), believed=True) == []
