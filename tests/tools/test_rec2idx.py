"""`rec2idx`: indices made of record files, and damage."""

import subprocess
import sys

import pytest

from recordio import IRHeader, RecordWriter, pack
from recordio.tools.rec2idx import main


@pytest.fixture
def record_file(tmp_path):
    path = tmp_path / "a.rec"
    with RecordWriter(path) as writer:
        for number in (5, 3, 9):
            writer.write(pack(IRHeader(0, 0.0, number, 0), b"\x0a\x23\xd7\xce" * number))
    return path


def test_keys_are_positions_and_offsets_are_record_heads(record_file, tmp_path, capsys):
    assert main([str(record_file), str(tmp_path / "b.idx")]) == 0
    rows = [line.split("\t") for line in (tmp_path / "b.idx").read_text().splitlines()]
    assert [row[0] for row in rows] == ["0", "1", "2"]
    data = record_file.read_bytes()
    assert all(data[int(offset) :].startswith(b"\x0a\x23\xd7\xce") for _, offset in rows)
    assert "3 records" in capsys.readouterr().err


def test_keys_may_be_the_ids_of_the_headers(record_file, tmp_path):
    assert main([str(record_file), str(tmp_path / "b.idx"), "--keys", "id"]) == 0
    rows = [line.split("\t") for line in (tmp_path / "b.idx").read_text().splitlines()]
    assert [row[0] for row in rows] == ["5", "3", "9"]


def test_damage_is_explained_and_the_old_index_stays(record_file, tmp_path, capsys):
    (tmp_path / "b.idx").write_text("old")
    record_file.write_bytes(record_file.read_bytes()[:-4])
    assert main([str(record_file), str(tmp_path / "b.idx")]) == 1
    assert str(record_file) in capsys.readouterr().err
    assert (tmp_path / "b.idx").read_text() == "old"


def test_a_missing_file_is_named(tmp_path, capsys):
    assert main([str(tmp_path / "x.rec"), str(tmp_path / "x.idx")]) == 1
    assert "x.rec" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_index_is_not_written_over_its_record_file(record_file, capsys):
    before = record_file.read_bytes()
    assert main([str(record_file), str(record_file)]) == 1
    assert record_file.read_bytes() == before


def test_it_runs_as_a_module(record_file, tmp_path):
    words = [record_file, tmp_path / "b.idx"]
    subprocess.run([sys.executable, "-m", "recordio.tools.rec2idx", *words], check=True, timeout=60)
    assert (tmp_path / "b.idx").exists()
