"""Commands that make packs of packs: join, split, relabel, filter and others."""

import argparse
import os
import signal
import struct
import subprocess
import sys

import pytest

from iterators.testing import write_rows
from recordio import RecordReader, RecordWriter, unpack
from recordio.tools.operations.arguments import mapping


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Packs a and b of some records of three classes, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name, first in (("a", 0), ("b", 90)):
        rows = [(n, n % 3, name.encode() * n) for n in range(first, first + 30)]
        write_rows(f"{name}.rec", rows)
    return tmp_path


def labels(name):
    with RecordReader(f"{name}.rec", f"{name}.idx") as reader:
        return [unpack(record)[0].label for record in reader]


def size(name):
    with RecordReader(f"{name}.rec", f"{name}.idx") as reader:
        return len(reader)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", [0, 1, 2, 0, 1, 2]),
        ("--labels append", [0, 1, 2, 3, 4, 5]),
        ("--labels append --classes 10", [0, 1, 2, 10, 11, 12]),
        ("--labels keep --labels 0=7,1=8,2=7.5", [0, 1, 2, 7, 8, 7.5]),
        ("--labels none --labels map.txt", [-1, -1, -1, 6, 5, 4]),
    ],
)
def test_join(rows, command, words, expected, capsys):
    (rows / "map.txt").write_text("0\t6\n1\t5\n\n2\t4\n")
    assert command("join", "a", "b.rec", "out", *words.split()) == 0
    found = labels("out")
    assert found[:3] + found[30:33] == expected
    assert "wrote out.rec: 60 records, 0.0 MB" in capsys.readouterr().err


def test_split(rows, command, capsys):
    assert command("split", "a", "x=0.9", "y=0.1", "--stratified", "--seed", 5) == 0
    assert size("x") == 27 and sorted(labels("y")) == [0, 1, 2]
    assert command("split", "a", "x=0.6", "y=0.4", "--by", "class", "--force") == 0
    assert {*labels("x")} | {*labels("y")} == {0, 1, 2} and not {*labels("x")} & {*labels("y")}
    (rows / "keys.txt").write_text("3\n4\n")
    assert command("split", "a", "z=keys.txt", "--by", "list") == 0
    assert labels("z") == [0, 1] and "no list names 28 records" in capsys.readouterr().err


def test_relabel(rows, command):
    (rows / "new.lst").write_text("".join(f"{number}\t{number}\tx\n" for number in range(30)))
    for words, expected in (
        (["--map", "0=5,1=6,2=6"], [5, 6, 6]),
        (["--list", "new.lst"], [0, 1, 2]),
        (["--dense"], [0, 1, 2]),
        (["--none"], [-1, -1, -1]),
    ):
        assert command("relabel", "a", "out", "--force", *words) == 0
        assert labels("out")[:3] == expected
    assert command("relabel", "a", "out", "--force", "--map", "0=1") == 1


def test_narrow(rows, command, capsys):
    with RecordWriter("wide.rec") as writer:
        writer.write(struct.pack("IdQQ", 0, 4, 7, 0) + b"content")
    assert command("narrow", "wide", "out") == 0
    assert labels("out") == [4]
    assert command("narrow", "a", "more") == 1
    assert "record 0: 24 bytes are too few for an image header of 32" in capsys.readouterr().err


def test_filter(rows, command):
    assert command("filter", "a", "out", "--where", "label == 1 and id < 10") == 0
    assert labels("out") == [1, 1, 1]
    (rows / "keys.txt").write_text("3\n4\n")
    assert command("filter", "a", "out", "--keys", "keys.txt", "--drop", "--force") == 0
    assert size("out") == 28


def test_sample(rows, command):
    assert command("sample", "a", "out", "-n", 2, "--per-class") == 0
    assert sorted(labels("out")) == [0, 0, 1, 1, 2, 2]
    assert command("sample", "a", "out", "--fraction", 0.5, "--force") == 0
    assert size("out") == 15


@pytest.mark.parametrize(
    "words",
    [
        "join a",
        "join a b out --labels maybe",
        "join a b out --labels 0=1,1",
        "join a b out --labels 0=1,0=2",
        "join a b out --labels keep --labels keep --labels keep",
        "join a b out --classes -1",
        "split a",
        "split a x",
        "split a x=0.5 y=0.4",
        "split a x=0.5 x=0.5",
        "split a x=1.5",
        "split a x=file",
        "split a x=0.5 y=0.5 --by class --stratified",
        "split a x=file --by list --seed 3",
        "relabel a out",
        "relabel a out --dense --none",
        "relabel a out --list new.txt",
        "filter a out",
        "filter a out --where size>3",
        "filter a out --where label",
        "sample a out",
        "sample a out -n 0",
        "sample a out -n 3 --fraction 0.5",
        "sample a out --fraction 2",
        "sample a out -n x",
        "sample a s3://bucket/out -n 3",
    ],
)
def test_wrong_words_give_exit_code_2(rows, command, words):
    with pytest.raises(SystemExit) as ended:
        command(*words.split())
    assert ended.value.code == 2
    assert sorted(path.name for path in rows.iterdir()) == ["a.idx", "a.rec", "b.idx", "b.rec"]


def test_existing_files_need_force(rows, command, capsys):
    assert command("join", "a", "b") == 1
    assert "b.rec: exists already; --force replaces it" in capsys.readouterr().err
    (rows / "c.classes.txt").write_text("0\tx\n")
    assert command("join", "a", "c") == 1
    assert command("join", "a", "b", "b", "--force") == 1
    assert "source" in capsys.readouterr().err and labels("b")[:2] == [0, 1]


def test_missing_files_are_named(rows, command, capsys):
    for words in (
        "join a none out",
        "split none x=1",
        "relabel none out --dense",
        "filter none out --where decodable",
        "filter a out --keys none.txt",
        "sample none out -n 1",
        "sample a none/out -n 1",
    ):
        assert command(*words.split()) == 1
        assert "none" in capsys.readouterr().err


def test_damaged_records(rows, command, capsys):
    data = bytearray((rows / "a.rec").read_bytes())
    data[0:4] = b"oops"
    (rows / "a.rec").write_bytes(data)
    assert command("sample", "a", "out", "-n", 5) == 1
    assert "a.rec, offset 0, record 0" in capsys.readouterr().err
    assert command("sample", "a", "out", "-n", 29, "--skip-errors") == 0
    assert "left out: a.rec: offset 0, record 0, key 0" in capsys.readouterr().err


def test_a_table_of_labels():
    assert mapping("0=3,1=3") == {0.0: 3.0, 1.0: 3.0}
    for text in ("none.txt", "", "1", "a=b"):
        with pytest.raises(argparse.ArgumentTypeError):
            mapping(text)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted(rows, number, code):
    """Between two steps of the journal."""
    program = (
        "import os, signal, sys\n"
        "from recordio.operations import output\n"
        "output.STEP = 1\n"
        "note = output.Journal.note\n"
        "def interrupted(*words):\n"
        f"    os.kill(os.getpid(), {int(number)})\n"
        "    note(*words)\n"
        "output.Journal.note = interrupted\n"
        "from recordio.tools.cli import main\n"
        "sys.exit(main())\n"
    )
    words = [sys.executable, "-c", program, "join", "a", "b", "out"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert "interrupted; nothing half-written was left" in done.stderr
    assert sorted(path.name for path in rows.iterdir()) == ["a.idx", "a.rec", "b.idx", "b.rec"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs SIGKILL")
def test_a_killed_command_goes_on(rows, command, capsys):
    assert command("join", "a", "b", "expected") == 0
    program = (
        "import os, signal, sys\n"
        "from recordio.operations import copying, output\n"
        "copying.CHUNK, output.STEP = 10, 1\n"
        "note = output.Journal.note\n"
        "def killed(self, number, files, size):\n"
        "    note(self, number, files, size)\n"
        "    if size > 2500:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "output.Journal.note = killed\n"
        "from recordio.tools.cli import main\n"
        "sys.exit(main())\n"
    )
    words = [sys.executable, "-c", program, "join", "a", "b", "out"]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    assert command("join", "a", "b", "out") == 0
    assert "went on after 40 records of a run that was killed" in capsys.readouterr().err
    for end in (".rec", ".idx"):
        assert (rows / f"out{end}").read_bytes() == (rows / f"expected{end}").read_bytes()
    assert not [path for path in rows.iterdir() if path.name.endswith(".partial")]
