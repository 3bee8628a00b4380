"""Commands that look at packs: diff, stats and dedup."""

import json
import signal

import numpy as np
import pytest

import recordio
from iterators.testing import encode_jpeg, write_pack, write_records
from recordio import RecordReader


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Packs a and b, of which b has another label and another record."""
    monkeypatch.chdir(tmp_path)
    for name, labels in (("a", [0, 1, 1]), ("b", [0, 2, 1, 1])):
        contents = [b"content %d" % number for number in range(len(labels))]
        write_pack(f"{name}.rec", contents, labels)
    return tmp_path


@pytest.fixture
def pictures(tmp_path, monkeypatch, photos):
    """A pack of two photographs, one of them also compressed more, and one of them twice."""
    monkeypatch.chdir(tmp_path)
    contents = [
        encode_jpeg(photos[name], quality=quality)
        for name, quality in (("astronaut", 90), ("coffee", 90), ("coffee", 50), ("astronaut", 90))
    ]
    write_pack("p.rec", contents, lambda number: number % 2)
    return tmp_path


def test_diff(rows, command, capsys):
    assert command("diff", "a", "a.rec") == 0
    assert "the same in both: 3" in capsys.readouterr().out
    assert command("diff", "a", "b") == 1
    said = capsys.readouterr()
    assert "other labels: 1\n  key 1: 1 -> 2\nonly in b.rec: 1\n  key 3\n" in said.out
    assert said.err == ""
    assert command("diff", "a", "b", "--json", "--examples", 0, "--threads", 1) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["labels"] == 1 and found["examples"] == [] and found["equal"] is False


def test_diff_of_damaged_packs_is_an_error(rows, command, capsys):
    (rows / "b.rec").write_bytes((rows / "b.rec").read_bytes()[:-4])
    assert command("diff", "a", "b") == 1
    said = capsys.readouterr()
    assert "error: b.rec, offset " in said.err and said.out == ""


def test_stats(pictures, command, capsys):
    assert command("stats", "p") == 0
    assert "classes     2, from 0 to 1" in capsys.readouterr().out
    assert command("stats", "p.rec", "--mean-std", "--threads", 2) == 0
    pasted = capsys.readouterr().out.splitlines()[-1]
    expected = recordio.stats("p", mean_std=True).pixels
    assert pasted.strip() == str(expected) and pasted.strip().startswith("mean_r=")
    assert command("stats", "p", "--mean-std", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pixels"]["keywords"] == expected.keywords()


def test_damage_ends_stats_or_is_counted(rows, command, capsys):
    assert command("stats", "a", "--mean-std") == 1
    assert "a.rec, offset 0, record 0: " in capsys.readouterr().err
    (rows / "b.idx").unlink()
    (rows / "b.rec").write_bytes((rows / "b.rec").read_bytes()[:-4])
    assert command("stats", "b") == 1
    assert command("stats", "b", "--skip-errors") == 0
    assert "records     3, 99 bytes in all, 1 damaged and left out" in capsys.readouterr().out


def test_dedup(pictures, command, capsys):
    assert command("dedup", "p") == 0
    said = capsys.readouterr()
    assert said.out == "0: 3 (label 1, not 0)\n" and "1 with the content of an earlier" in said.err
    assert sorted(path.name for path in pictures.iterdir()) == ["p.idx", "p.rec"]
    assert command("dedup", "p", "--near") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and lines[1].startswith("1: 2 (distance ")
    assert command("dedup", "p", "--near", 6, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["key"] for row in found["duplicates"]] == [3, 2] and found["near"] == 1


def test_duplicates_are_removed_when_asked(pictures, command, capsys):
    assert command("dedup", "p", "--near", 6, "--remove", "unique") == 0
    assert "wrote unique.rec: 2 records" in capsys.readouterr().err
    with RecordReader("unique.rec", "unique.idx") as reader:
        assert len(reader) == 2
    assert command("dedup", "p", "--remove", "unique") == 1
    assert "--force" in capsys.readouterr().err
    assert command("dedup", "p", "--remove", "unique", "--force") == 0
    assert command("dedup", "p", "--remove", "p", "--force") == 1
    assert command("dedup", "p") == 0


@pytest.mark.parametrize(
    "words",
    [
        "diff a",
        "diff a b --examples -1",
        "diff a b --threads 0",
        "stats",
        "stats a --max-pixels 100",
        "stats a --mean-std --max-pixels 0",
        "dedup a --near 17",
        "dedup a --near x",
        "dedup a --force",
        "dedup a --max-pixels 10",
        "dedup a --remove s3://bucket/b",
    ],
)
def test_wrong_words(rows, command, words):
    with pytest.raises(SystemExit) as ended:
        command(*words.split())
    assert ended.value.code == 2
    assert sorted(path.name for path in rows.iterdir()) == ["a.idx", "a.rec", "b.idx", "b.rec"]


def test_interrupted_while_comparing(rows, command, monkeypatch, capsys):
    from recordio.operations import content_table

    hash_of, signals = content_table.hash_of, [signal.SIGTERM]

    def interrupt(content):
        if signals:  # once: a second signal may strike anywhere, in a destructor too
            signal.raise_signal(signals.pop())
        return hash_of(content)

    monkeypatch.setattr(content_table, "hash_of", interrupt)
    write_records("many.rec", [np.int64(number).tobytes() for number in range(2000)], index=False)
    assert command("dedup", "many", "--remove", "x", "--threads", 1) in (130, 143)
    assert "interrupted" in capsys.readouterr().err and not (rows / "x.rec").exists()
