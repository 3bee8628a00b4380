"""`recordio show`: the table of records, and contents that are written."""

import io

import pytest

from recordio import IRHeader, RecordIOError, RecordReader, RecordWriter, pack
from recordio.tools.show import write_records


@pytest.fixture
def pack_of_three(tmp_path, images):
    path = tmp_path / "p"
    with RecordWriter(f"{path}.rec", f"{path}.idx") as writer:
        writer.write(pack(IRHeader(0, 2.0, 7, 0), images.jpeg(5, 6)), key=70)
        writer.write(pack(IRHeader(0, [1, 2.5, 3, 4, 5], 8, 0), images.png(4, 4)[:40]), key=80)
        writer.write(b"plain text without any header", key=-9)
    return path


def test_the_table_has_a_line_for_each_record(pack_of_three, command, capsys):
    assert command("head", pack_of_three) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["position", "key", "id", "flag", "labels", "bytes", "kind", "content"]
    words = lines[0].split()
    assert words[:5] == ["0", "70", "7", "0", "2"]
    assert " ".join(words[6:]) == "jpeg 6 x 5 x 3"
    assert "5  1 2.5 3 4 ..." in lines[1]
    assert "the PNG image is truncated" in lines[1]
    assert lines[2].split() == ["2", "-9", "-", "-", "-", "29", "other"]


def test_as_many_lines_as_asked_for(pack_of_three, command, capsys):
    for count in (0, 1, 2, 9):
        assert command("head", pack_of_three, "-n", count) == 0
        assert len(capsys.readouterr().out.splitlines()) == 1 + min(count, 3)
    with pytest.raises(SystemExit):
        command("head", pack_of_three, "-n", "-1")


def test_the_head_of_a_damaged_file_is_shown(pack_of_three, tmp_path, command, capsys):
    data = (tmp_path / "p.rec").read_bytes()
    (tmp_path / "q.rec").write_bytes(data[:-10])
    assert command("head", tmp_path / "q", "-n", 2) == 0
    capsys.readouterr()
    assert command("head", tmp_path / "q") == 1
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 3
    assert "record 2" in captured.err


def test_contents_are_written_as_they_are(pack_of_three, command, capfdbinary, images):
    assert command("cat", pack_of_three, 70) == 0
    assert capfdbinary.readouterr().out == images.jpeg(5, 6)
    assert command("cat", pack_of_three, "--position", 2, 0) == 0
    assert capfdbinary.readouterr().out == b"plain text without any header" + images.jpeg(5, 6)
    assert command("cat", pack_of_three, "--raw", "--", 70, -9) == 0
    with RecordReader(f"{pack_of_three}.rec") as reader:
        assert capfdbinary.readouterr().out == bytes(reader[0]) + bytes(reader[2])


def test_contents_are_written_to_files(pack_of_three, command, output, capsys, images):
    assert command("cat", pack_of_three, 70, 80, "-o", output) == 0
    assert sorted(path.name for path in output.iterdir()) == ["70.jpg", "80.png"]
    assert (output / "70.jpg").read_bytes() == images.jpeg(5, 6)
    assert command("cat", pack_of_three, 70, "-o", output) == 1
    assert "--force" in capsys.readouterr().err
    assert command("cat", pack_of_three, 70, "-o", output, "--force", "--raw") == 0
    assert (output / "70.record").stat().st_size == len(images.jpeg(5, 6)) + 24


@pytest.mark.parametrize("words", [["71"], ["70", "71"], ["--position", "3"]])
def test_records_that_do_not_exist_are_named(pack_of_three, command, capsys, output, words):
    assert command("cat", pack_of_three, *words, "-o", output) == 1
    assert words[-1] in capsys.readouterr().err
    assert list(output.iterdir()) == []


class Terminal(io.BytesIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"a text,\twith lines\r\n", True),
        ("Größe \N{SNOWMAN}".encode(), True),
        (b"\x89PNG\r\n", False),
        (b"plain \x1b[31m red", False),
        (b"\x9b31m red", False),  # the same in eight bits
        ("\x9b31m".encode(), False),
        (b"cut \xc3", False),
        (b"delete \x7f", False),
    ],
)
def test_a_terminal_gets_text_only(tmp_path, content, shown):
    path = str(tmp_path / "a.rec")
    with RecordWriter(path) as writer:
        writer.write(content)
    words = (path, [0], True, True)
    if shown:
        write_records(*words, terminal := Terminal())
        assert terminal.getvalue() == content
    else:
        with pytest.raises(RecordIOError, match=r"redirect it \(> FILE\), .* --output -"):
            write_records(*words, Terminal())
    write_records(*words, terminal := Terminal(), force=True)
    assert terminal.getvalue() == content
    write_records(*words, file := io.BytesIO())
    assert file.getvalue() == content


def test_a_dash_stands_for_standard_output(pack_of_three, command, capfdbinary):
    assert command("cat", pack_of_three, 70) == 0
    expected = capfdbinary.readouterr().out
    assert command("cat", pack_of_three, 70, "--output", "-") == 0
    assert capfdbinary.readouterr().out == expected != b""
