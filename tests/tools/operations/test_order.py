"""Commands that order packs: shuffle, sort and shard."""

import json

import pytest

import recordio
from iterators.testing import write_pack
from recordio import RecordReader, unpack


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """A pack of thirty records of three classes, in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_pack("a.rec", [b"x" * (30 - number) for number in range(30)], lambda number: number % 3)
    return tmp_path


def ids(name):
    with RecordReader(f"{name}.rec", f"{name}.idx") as reader:
        return [unpack(record)[0].id for record in reader]


def test_shuffle(rows, command, capsys):
    assert command("shuffle", "a", "b") == 0
    assert command("shuffle", "a.rec", "c", "--seed", 0, "--window", 1) == 0
    assert command("shuffle", "a", "d", "--seed", 7) == 0
    assert ids("b") == ids("c") and sorted(ids("b")) == list(range(30))
    assert ids("d") != ids("b") != ids("a")
    assert "wrote b.rec: 30 records" in capsys.readouterr().err
    assert command("shuffle", "a", "b") == 1
    assert command("shuffle", "a", "b", "--force") == 0
    assert command("shuffle", "a", "a", "--force") == 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], [0, 3, 6]),
        (["--by", "label", "--reverse"], [2, 5, 8]),
        (["--by", "bytes"], [29, 28, 27]),
        (["--by", "id", "--reverse"], [29, 28, 27]),
        (["--by", "key"], [0, 1, 2]),
    ],
)
def test_sort(rows, command, words, expected):
    assert command("sort", "a", "b", *words) == 0
    assert ids("b")[:3] == expected


def test_what_cannot_be_sorted_is_left_out(rows, command, capsys):
    assert command("sort", "a", "b", "--by", "size") == 1
    assert "a.rec, offset 0, record 0" in capsys.readouterr().err
    assert command("sort", "a", "b", "--by", "size", "--skip-errors") == 1
    assert "no record would be in it" in capsys.readouterr().err


def test_shard(rows, command, capsys):
    (rows / "parts").mkdir()
    assert command("shard", "a", "parts", 3) == 0
    assert "wrote parts/a.shards.json" in capsys.readouterr().err
    assert command("check-shards", "parts/a.shards.json") == 0
    assert "3 files, 30 records, " in capsys.readouterr().out
    files = recordio.check_shards("parts/a.shards.json").files
    assert sum((ids(file[:-4]) for file in files), []) == list(range(30))
    assert command("shard", "a", "parts", 3) == 1
    assert "exists already" in capsys.readouterr().err
    assert command("shard", "a", "parts", 3, "--force") == 0
    assert command("shard", "a", "x-%02d.rec", 2) == 0
    assert (rows / "x-01.rec").exists() and (rows / "x.shards.json").exists()
    assert command("shard", "a", "y", 31) == 1


def test_check_shards(rows, command, capsys):
    assert command("shard", "a", "b", 2) == 0
    data = bytearray((rows / "b-000001.rec").read_bytes())
    data[-4] ^= 1
    (rows / "b-000001.rec").write_bytes(data)
    assert command("check-shards", "b.shards.json", "--quick") == 0
    assert command("check-shards", "b.shards.json") == 1
    assert "error: b-000001.rec: it is not the file" in capsys.readouterr().err
    (rows / "b.shards.json").write_text(json.dumps([]))
    assert command("check-shards", "b.shards.json") == 1


@pytest.mark.parametrize(
    "words",
    [
        "shuffle a",
        "shuffle a b --seed -1",
        "shuffle a b --window 0",
        "shuffle a s3://bucket/b",
        "sort a b --by colour",
        "shard a b",
        "shard a b 0",
        "shard a b x",
        "check-shards",
    ],
)
def test_wrong_words(rows, command, words):
    with pytest.raises(SystemExit) as ended:
        command(*words.split())
    assert ended.value.code == 2
    assert sorted(path.name for path in rows.iterdir()) == ["a.idx", "a.rec"]
