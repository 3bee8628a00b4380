"""Commands over containers: several files are one pack, and faults have names."""

import json

import pytest
from fake_containers import write_container

pytestmark = pytest.mark.usefixtures("fake_containers")


@pytest.fixture
def source(tmp_path, images):
    """Two files with six images of two classes; the fourth has no content if that is wanted."""

    def make(bad=False):
        rows = [([float(n % 2)], f"{n}.jpg", images.jpeg(20 + n, 30)) for n in range(6)]
        if bad:
            rows[3] = ([1.0], "3.jpg", "it is too long")
        for number, part in enumerate([rows[:3], rows[3:]]):
            write_container(tmp_path / f"set-{number}.spans", part, {0: "cat", 1: "dog"})
        return tmp_path / "set-{0..1}.spans"

    return make


def test_info_counts_the_samples_of_all_files(source, command, capsys):
    assert command("info", source()) == 0
    out = capsys.readouterr().out
    assert "a file of spans, 2 files" in out and "6 x jpeg" in out and "problems    none" in out
    assert command("info", source(), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["records"], found["files"], found["labels"]["distinct"]) == (6, 2, 2)


def test_check_names_a_sample_without_content(source, command, capsys):
    assert command("check", source(), "--decode") == 0
    assert "6 images decoded" in capsys.readouterr().out
    for words in ([], ["--decode"]):
        assert command("check", source(bad=True), *words) == 1
        out = capsys.readouterr().out
        assert "set-1.spans: it is too long" in out and "record 0" in out and "5 records" in out
    assert command("info", source(bad=True)) == 1
    assert "it is too long" in capsys.readouterr().out


def test_decoding_finds_a_damaged_image(tmp_path, images, command, capsys):
    content = images.jpeg(40, 60)
    path = write_container(
        tmp_path / "a.packed", [([0.0], "", content), ([0.0], "", content[:300])]
    )
    assert command("check", path) == 0
    assert command("check", path, "--decode") == 1
    assert "record 1" in capsys.readouterr().out


def test_head_cat_and_export_read_several_files(source, command, capsys, tmp_path):
    assert command("head", source(), "-n", 5) == 0
    assert len(capsys.readouterr().out.splitlines()) == 6
    assert command("cat", source(), 4, "--output", tmp_path) == 0
    assert (tmp_path / "4.jpeg").exists() or (tmp_path / "4.jpg").exists()
    assert command("export", source(), tmp_path / "again") == 0
    assert sorted(p.name for p in (tmp_path / "again").iterdir()) == ["cat", "dog", "labels.csv"]


def test_operations_take_several_files(source, command, capsys, tmp_path):
    assert command("stats", source(), "--mean-std") == 0
    assert "pixels" in capsys.readouterr().out
    assert command("filter", source(), tmp_path / "dogs", "--where", "class == 'dog'") == 0
    assert command("shard", source(), tmp_path, 2) == 0
    assert (tmp_path / "set-000001.rec").exists()
    assert command("diff", source(), source()) == 0
    assert command("join", source(), tmp_path / "dogs", tmp_path / "all") == 0


@pytest.mark.parametrize(
    "words",
    [["optimize", "out"], ["index"], ["check", "--repair", "out"], ["check", "--write-checksums"]],
)
def test_commands_for_record_files_say_how_to_make_one(source, command, capsys, tmp_path, words):
    name, *rest = (tmp_path / word if word == "out" else word for word in words)
    assert command(name, source(), *rest) == 1
    assert "it is a file of spans, and this needs a record file: `recordio pack" in (
        capsys.readouterr().err
    )
