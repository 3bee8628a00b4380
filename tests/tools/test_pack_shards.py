"""Shards that are made apart, by any number of workers in any order, are the same."""

import json
import os
import random
import subprocess
import sys

import pytest

import recordio
from iterators import ImageRecordIter
from recordio import ManifestError
from recordio.tools.im2rec import main
from recordio.tools.image_list import read_list
from recordio.tools.pack_shards import cut_list


def run(*words):
    return main([str(word) for word in words])


def files(folder):
    """Content of every file but lists, notes and what belongs to them."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.suffix in (".rec", ".idx")} | {
        p.name: p.read_bytes() for p in folder.glob("*.shards.json")
    }


@pytest.fixture
def listed(photo_folder, tmp_path):
    """Make folders with the same list in each."""

    def make(name):
        folder = tmp_path / name
        folder.mkdir()
        assert run("--list", "--recursive", folder / "p", photo_folder) == 0
        return folder

    return make


@pytest.mark.parametrize("workers", [1, 2, 3, 5, 7])
def test_shards_do_not_depend_on_the_workers(photo_folder, listed, workers):
    alone, together = listed("alone"), listed("together")
    assert run("--shards", 5, alone / "p", photo_folder) == 0
    parts = list(range(1, workers + 1))
    random.Random(workers).shuffle(parts)
    for part in parts:
        assert not (together / "p.shards.json").exists()
        words = ("--shards", 5, "--part", f"{part}/{workers}", "--num-thread", 1 + part % 2)
        assert run(*words, together / "p", photo_folder) == 0
    assert files(together) == files(alone)
    assert len(files(alone)) == 11


def test_the_shards_together_are_the_pack(photo_folder, listed):
    folder = listed("a")
    assert run("--shards", 3, folder / "p", photo_folder) == 0
    manifest = recordio.check_shards(folder / "p.shards.json")
    assert [shard.records for shard in manifest.shards] == [6, 7, 7]
    whole = listed("b")
    assert run(whole / "p", photo_folder) == 0
    parts = b"".join((folder / f"p-00000{number}.rec").read_bytes() for number in range(3))
    assert parts == (whole / "p.rec").read_bytes()
    keywords = {"data_shape": (3, 16, 16), "batch_size": 5, "shuffle": True, "resize": 16}
    with (
        ImageRecordIter(path_imgrec=folder / "p.shards.json", **keywords) as one,
        ImageRecordIter(
            path_imgrec=whole / "p.rec", path_imgidx=whole / "p.idx", **keywords
        ) as other,
    ):
        for mine, theirs in zip(one, other, strict=True):
            assert mine.data[0].tobytes() == theirs.data[0].tobytes()
            assert mine.index.tolist() == theirs.index.tolist()


def test_one_call_lists_and_packs(photo_folder, output):
    assert run("--shards", 2, output / "p", photo_folder) == 0
    assert (output / "p.lst").exists() and (output / "p.classes.txt").exists()
    assert recordio.check_shards(output / "p.shards.json").records == 20


def test_workers_need_a_list(photo_folder, output, capsys):
    assert run("--part", "1/2", output / "p", photo_folder) == 1
    assert "make it first, with --list" in capsys.readouterr().err
    assert not os.listdir(output)


def times(folder):
    return {p.name: p.stat().st_mtime_ns for p in folder.glob("*.rec")}


def test_a_restart_makes_what_is_not_whole(photo_folder, listed, capsys):
    folder = listed("a")
    assert run("--shards", 4, folder / "p", photo_folder) == 0
    before, expected = times(folder), files(folder)
    assert run("--shards", 4, folder / "p", photo_folder) == 0
    assert times(folder) == before and "4 of 4 shards are whole" in capsys.readouterr().err
    (folder / "p-000001.rec").unlink()
    os.truncate(folder / "p-000002.rec", 100)
    (folder / "p.shards" / "000003.json").unlink()
    assert run("--shards", 4, folder / "p", photo_folder) == 0
    changed = {name for name, time in times(folder).items() if before[name] != time}
    assert changed == {f"p-00000{number}.rec" for number in (1, 2, 3)}
    assert files(folder) == expected


def test_other_options_or_lines_make_shards_again(photo_folder, listed):
    folder = listed("a")
    assert run("--shards", 2, folder / "p", photo_folder) == 0
    first = files(folder)
    assert run("--shards", 2, "--resize", 12, folder / "p", photo_folder) == 0
    assert files(folder).keys() == first.keys() and files(folder) != first
    before = times(folder)
    lines = (folder / "p.lst").read_text().splitlines()
    (folder / "p.lst").write_text("\n".join(["# a comment", *lines[:-1], "5\t7\tcat/00.jpg", ""]))
    assert run("--shards", 2, "--resize", 12, folder / "p", photo_folder) == 0
    assert all(times(folder)[name] != time for name, time in before.items())
    (folder / "p.lst").write_text("\n".join([*lines[:-1], "6\t7\tcat/00.jpg", ""]))


def test_a_manifest_is_gone_as_long_as_it_is_not_true(photo_folder, listed):
    folder = listed("a")
    assert run("--shards", 2, folder / "p", photo_folder) == 0
    assert run("--shards", 2, "--part", "1/2", "--resize", 9, folder / "p", photo_folder) == 0
    assert not (folder / "p.shards.json").exists()


def test_fewer_shards_than_before_are_refused(photo_folder, listed, capsys):
    folder = listed("a")
    assert run("--shards", 3, folder / "p", photo_folder) == 0
    assert run("--shards", 2, folder / "p", photo_folder) == 1
    assert "p-000002.rec" in capsys.readouterr().err


def test_bad_images_are_left_out_and_a_shard_without_any_is_not_there(photo_folder, output, capsys):
    good = [f"{number}\t1\tcat/{number:02d}.jpg" for number in range(4)]
    bad = [f"{number}\t1\tmissing.jpg" for number in (8, 9)]
    (output / "p.lst").write_text("\n".join([*good[:2], *bad, *good[2:], ""]))
    words = ("--shards", 3, output / "p", photo_folder)
    for _ in range(2):  # made, and found whole
        assert run(*words) == 1
        assert "2 skipped in all" in capsys.readouterr().err
    assert run("--skip-errors", *words) == 0
    manifest = recordio.check_shards(output / "p.shards.json")
    assert [shard.file for shard in manifest.shards] == ["p-000000.rec", "p-000002.rec"]
    assert [shard.first for shard in manifest.shards] == [0, 2]
    assert (output / "p-000001.skipped.txt").read_text().count("missing.jpg") == 2


def test_not_one_good_image(photo_folder, output, capsys):
    (output / "p.lst").write_text("1\t0\tmissing.jpg\n2\t0\tmissing.jpg\n")
    assert run("--shards", 2, output / "p", photo_folder) == 1
    assert "not one image" in capsys.readouterr().err
    assert not (output / "p.shards.json").exists()


def test_strict_stops_at_a_bad_image(photo_folder, output, capsys):
    (output / "p.lst").write_text("1\t0\tcat/00.jpg\n2\t0\tmissing.jpg\n")
    assert run("--strict", "--shards", 2, output / "p", photo_folder) == 1
    assert "missing.jpg" in capsys.readouterr().err
    assert (output / "p-000000.rec").exists() and not (output / "p-000001.rec").exists()


@pytest.mark.parametrize("words", [("--part", "0/2"), ("--part", "3/2"), ("--part", "2"),
                                   ("--shards", "0")])  # fmt: skip
def test_wrong_numbers(words, photo_folder, output):
    with pytest.raises(SystemExit) as ended:
        run(*words, output / "p", photo_folder)
    assert ended.value.code == 2


def test_too_many_shards(photo_folder, listed, capsys):
    assert run("--shards", 21, listed("a") / "p", photo_folder) == 1
    assert "21 shards cannot be made of 20 lines" in capsys.readouterr().err


def test_a_note_that_is_damaged_counts_as_none(photo_folder, listed):
    folder = listed("a")
    assert run("--shards", 2, folder / "p", photo_folder) == 0
    expected = files(folder)
    for number, text in enumerate(["[1, 2]", json.dumps({"format": "recordio shard 1", "x": 1})]):
        (folder / "p.shards" / f"{number:06d}.json").write_text(text)
    assert run("--shards", 2, folder / "p", photo_folder) == 0
    assert files(folder) == expected


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_spans_are_the_list(tmp_path, count):
    path = tmp_path / "a.lst"
    lines = [f"{n}\t0\té{n}.jpg" if n % 3 else "# nothing" for n in range(20)]
    path.write_text("\ufeff" + "\n".join([*lines[:5], "", "bad", *lines[5:], "", ""]))
    spans = cut_list(str(path), count, 1)
    found, whole = [span.listed() for span in spans], read_list(path)
    assert [entry for part in found for entry in part.entries] == whole.entries
    assert [item for part in found for item in part.skipped] == whole.skipped
    assert b"".join(span.read() for span in spans) == path.read_bytes()
    sizes = [span.images for span in spans]
    assert sum(sizes) == 14 and max(sizes) - min(sizes) <= 1


def test_a_file_that_was_changed_is_noticed_at_the_end(photo_folder, listed):
    from recordio.tools.pack_shards import finish, shard_tasks

    folder = listed("a")
    tasks = shard_tasks(str(folder / "p.lst"), str(photo_folder), shards=2)
    notes = [task.make() for task in tasks]
    os.truncate(folder / "p-000001.rec", 8)
    with pytest.raises(ManifestError, match="it has 8 bytes"):
        finish(tasks, notes)


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_killed_worker_costs_its_shard(photo_folder, listed):
    folder = listed("a")
    program = (
        "import os, sys; from recordio.tools import im2rec, pack_shards as s\n"
        "make = s.ShardTask.make\n"
        "def killed(task, **words):\n"
        "    stop = lambda count: os.kill(os.getpid(), 9) if task.number == 2 else None\n"
        "    return make(task, **words | {'progress': stop})\n"
        "s.ShardTask.make = killed; im2rec.main(sys.argv[1:])"
    )
    words = ["--shards", "4", str(folder / "p"), str(photo_folder)]
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True)
    assert done.returncode == -9
    before = times(folder)
    assert sorted(before) == ["p-000000.rec", "p-000001.rec"]
    assert run(*words) == 0
    assert times(folder).items() >= before.items()
    alone = listed("b")
    assert run("--shards", 4, alone / "p", photo_folder) == 0
    assert files(folder) == files(alone)
    assert not list(folder.glob("*.partial"))
