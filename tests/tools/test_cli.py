"""The command line: help, wrong words, exit codes and signals."""

import argparse
import dataclasses
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from iterators.testing import write_images
from recordio import RecordReader, verify
from recordio.tools.cli import build_parser
from recordio.tools.convert.exporting import export_records
from recordio.tools.convert.registry import EXPORTS, IMPORTS
from recordio.tools.operations.table import PACK_COMMANDS
from recordio.tools.record_pack import RecordPack

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and limits")
COMMAND = [sys.executable, "-m", "recordio.tools.cli"]
COMMANDS = [
    *(f"from-{name}" for name in IMPORTS),
    "info",
    "head",
    "cat",
    "check",
    "optimize",
    "index",
    "export",
    *PACK_COMMANDS,
]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("".join(f"{row % 3},{row}\n" for row in range(300)))
    return path


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(command, capsys, name):
    with pytest.raises(SystemExit) as ended:
        command(name, "--help")
    assert ended.value.code == 0
    assert f"usage: recordio {name}" in capsys.readouterr().out


@pytest.mark.parametrize("name", EXPORTS)
def test_every_export_explains_its_options(command, capsys, name):
    with pytest.raises(SystemExit) as ended:
        command("export", "--to", name, "--help")
    assert ended.value.code == 0
    text = capsys.readouterr().out
    actions = argparse.ArgumentParser()
    EXPORTS[name].add_options(actions)
    for action in actions._actions[1:]:
        assert action.option_strings[0] in text


def test_every_format_has_a_command():
    assert set(COMMANDS) >= {
        "from-csv",
        "from-mnist",
        "from-libsvm",
        "from-numpy",
        "from-imagefolder",
        "from-webdataset",
        "from-tfrecord",
    }
    assert "COMMAND" in build_parser().format_help()


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nonsense"],
        ["from-csv", "a"],
        ["from-csv", "a", "b", "--seed", "3"],
        ["from-csv", "a", "b", "--strict", "--skip-errors"],
        ["from-csv", "a", "b", "--raw"],
        ["export", "a", "b", "--to", "nonsense"],
        ["export", "a", "b", "--to", "npy", "--delimiter", ";"],
        ["cat", "a"],
        ["cat", "a", "key"],
    ],
)
def test_wrong_words_give_exit_code_2(command, words):
    with pytest.raises(SystemExit) as ended:
        command(*words)
    assert ended.value.code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["inof"],
            "recordio: error: argument COMMAND: invalid choice: 'inof'; did you mean 'info'?",
        ),
        (["coco", "a"], "did you mean 'from-coco'?"),
        (["nonsense"], "invalid choice: 'nonsense' (choose from "),
        (
            ["info", "a", "--jsn"],
            "recordio info: error: unrecognized arguments: --jsn; did you mean",
        ),
        (["from-csv", "a", "b", "--label-column=0"], "did you mean '--label-columns'?"),
        (["from-coco", "a", "b", "c", "--crowds"], "did you mean '--crowd'?"),
        (["check", "a", "--num-workers=4"], "--num-workers=4; did you mean '--threads'? It is a"),
        (["from-coco", "a", "b", "c", "--crowd", "marks"], "'marks'; did you mean 'mark'?"),
        (["check", "a", "--wombat"], "recordio check: error: unrecognized arguments: --wombat\n"),
        (["export", "a", "b", "--to", "webdatset"], "did you mean 'webdataset'?"),
        (["export", "a", "b", "--to", "csv", "--no-label"], "did you mean '--no-labels'?"),
    ],
)
def test_the_closest_word_is_named(command, words, said, capsys):
    with pytest.raises(SystemExit) as ended:
        command(*words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_a_letter_too_much_is_noticed_by_every_command(command, name, capsys):
    with pytest.raises(SystemExit) as ended:
        command(f"{name}s")
    assert ended.value.code == 2
    assert f"did you mean '{name}'?" in capsys.readouterr().err


def test_nothing_is_replaced_without_force(rows, tmp_path, command, capsys):
    for name in ("t.rec", "t.idx", "t.lst", "t.classes.txt"):
        (tmp_path / name).write_text("precious")
        assert command("from-csv", rows, tmp_path / "t") == 1
        assert f"{name}: exists already; --force" in capsys.readouterr().err
        assert (tmp_path / name).read_text() == "precious"
        if name != "t.classes.txt":
            (tmp_path / name).unlink()
    (tmp_path / "t.lst").write_text("of another pack")
    assert command("from-csv", rows, tmp_path / "t", "--force") == 0
    assert names(tmp_path) == ["rows.csv", "t.idx", "t.rec"]
    (tmp_path / "b.csv").write_text("precious")
    assert command("export", tmp_path / "t", tmp_path / "b.csv", "--to", "csv") == 1
    assert (tmp_path / "b.csv").read_text() == "precious"
    assert command("export", tmp_path / "t", tmp_path / "b.csv", "--to", "csv", "--force") == 0


def test_a_prefix_may_end_with_rec(rows, tmp_path, command):
    assert command("from-csv", rows, tmp_path / "t.rec") == 0
    assert names(tmp_path) == ["rows.csv", "t.idx", "t.rec"]


def test_missing_folders_and_files_are_named(rows, tmp_path, command, capsys):
    assert command("from-csv", rows, tmp_path / "no" / "t") == 1
    assert "make it first" in capsys.readouterr().err
    for name in COMMANDS[: COMMANDS.index("export")]:
        extra = {
            "cat": ["1"],
            **dict.fromkeys(
                ("from-mnist", "from-coco", "from-voc", "from-yolo"),
                [tmp_path / "missing", tmp_path / "t"],
            ),
            "optimize": [tmp_path / "t"],
        }.get(name, [])
        target = [tmp_path / "t"] if name.startswith("from-") and not extra else []
        assert command(name, tmp_path / "missing", *target, *extra) == 1
        assert "missing" in capsys.readouterr().err
    assert command("export", tmp_path / "missing", tmp_path / "x") == 1
    assert names(tmp_path) == ["rows.csv"]


def test_a_pack_is_not_replaced_by_its_export(rows, tmp_path, command):
    assert command("from-csv", rows, tmp_path / "t") == 0
    before = (tmp_path / "t.rec").read_bytes()
    words = ["export", tmp_path / "t", tmp_path / "t.rec", "--to", "csv", "--force"]
    assert command(*words) == 1
    assert (tmp_path / "t.rec").read_bytes() == before


def test_check_finds_damage_and_repairs_it(rows, tmp_path, command, capsys):
    assert command("from-csv", rows, tmp_path / "t") == 0
    assert command("check", tmp_path / "t") == 0
    assert "no problems" in capsys.readouterr().out
    data = bytearray((tmp_path / "t.rec").read_bytes())
    data[1600] ^= 1
    (tmp_path / "t.rec").write_bytes(data)
    lost = 1 if data[1600:1604] != b"\x0a\x23\xd7\xce" and command("check", tmp_path / "t") else 0
    capsys.readouterr()
    assert command("check", tmp_path / "t", "--repair", tmp_path / "u") == lost
    assert command("check", tmp_path / "t", "--repair", tmp_path / "u") == 1
    assert "--force" in capsys.readouterr().err
    assert command("check", tmp_path / "u.rec") == 0


def test_what_check_finds_can_be_read_by_programs(rows, tmp_path, command, capsys):
    assert command("from-csv", rows, tmp_path / "t") == 0
    capsys.readouterr()
    assert command("check", tmp_path / "t", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    count = len((tmp_path / "t.idx").read_text().splitlines())
    assert found["ok"] and not found["problems"]
    assert found["records"] == found["index_lines"] == count
    data = (tmp_path / "t.rec").read_bytes()
    (tmp_path / "t.rec").write_bytes(data[:-5])
    assert command("check", tmp_path / "t", "--json") == 1
    shown = json.loads(capsys.readouterr().out)
    report = verify(tmp_path / "t.rec", tmp_path / "t.idx")
    assert shown == {"ok": False, **json.loads(json.dumps(dataclasses.asdict(report)))}
    assert shown["problems"][0]["reason"] == report.problems[0].reason


@pytest.mark.parametrize(
    ("kind", "example"),
    [
        ("webdataset", "t.tar"),
        ("tfrecord", "t.tfrecord"),
        ("csv", "t.csv"),
        ("labels", "t.csv"),
        ("libsvm", "t.libsvm"),
        ("npy", "t.npy"),
        ("mnist", "t-images-idx3-ubyte"),
    ],
)
def test_a_folder_is_no_target_of_files(rows, tmp_path, command, capsys, kind, example):
    assert command("from-csv", rows, tmp_path / "t") == 0
    before = names(tmp_path)
    for made in (False, True):
        target = f"{tmp_path / 'set'}{os.sep}"
        assert command("export", tmp_path / "t", target, "--to", kind, "--force") == 1
        said = capsys.readouterr().err
        assert f"--to {kind} writes files: name one, such as {target}{example}" in said, made
        assert names(tmp_path) == before
        (tmp_path / "set").mkdir(exist_ok=True)
        before = names(tmp_path)
    if EXPORTS[kind].suffix:
        assert command("export", tmp_path / "t", tmp_path / "set", "--to", kind, "--force") == 1
        assert "this is a folder" in capsys.readouterr().err


def test_a_lost_index_is_made_anew(rows, tmp_path, command):
    assert command("from-csv", rows, tmp_path / "t", "--shuffle") == 0
    before = (tmp_path / "t.idx").read_bytes()
    assert command("index", tmp_path / "t", "--keys", "id") == 1
    (tmp_path / "t.idx").unlink()
    assert command("index", tmp_path / "t", "--keys", "id") == 0
    assert (tmp_path / "t.idx").read_bytes() == before


def test_sizes_are_written_ahead(tmp_path, command, capsys):
    folder = tmp_path / "images"
    write_images(folder, names=[f"cat/{i}.png" for i in range(4)], contents=4)
    assert command("from-imagefolder", folder, tmp_path / "t") == 0
    before = (tmp_path / "t.idx").read_bytes()
    for number in range(2):
        assert command("index", tmp_path / "t", "--sizes") == 0
        assert f"wrote {tmp_path / 't.sizes'}: sizes of" in capsys.readouterr().err
        assert (tmp_path / "t.idx").read_bytes() == before
        if number:
            break
        (tmp_path / "t.idx").unlink()
        assert command("index", tmp_path / "t", "--sizes", "--keys", "id") == 0
    capsys.readouterr()
    assert command("index", folder, "--sizes") == 0
    assert (tmp_path / "images.sizes").is_file()


@pytest.mark.parametrize("name", EXPORTS)
def test_an_interrupted_export_leaves_nothing(tmp_path, command, images, name):
    of_images = name in ("folders", "mnist", "webdataset")
    np.save(tmp_path / "a.npy", np.zeros((3, 4, 4) if of_images else (3, 4), np.uint8))
    encoding = ".png" if of_images else ".npy"
    words = ["from-numpy", tmp_path / "a.npy", tmp_path / "t", "--encoding", encoding]
    assert command(*words) == 0
    before = names(tmp_path)
    calls = iter([False, False, True])
    settings = build_parser(name).parse_args(
        ["export", str(tmp_path / "t"), str(tmp_path / "out"), "--to", name]
    )
    pack = RecordPack(settings.path, cancelled=lambda: next(calls))
    with pytest.raises(KeyboardInterrupt):
        export_records(pack, settings.target, EXPORTS[name], settings)
    assert names(tmp_path) == before


def run_with(words, prepare):
    return subprocess.Popen(
        [*COMMAND, *map(str, words)], stderr=subprocess.PIPE, text=True, preexec_fn=prepare
    )


@posix_only
@pytest.mark.parametrize("words", [[], ["--shuffle"]])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_converting_leaves_nothing(tmp_path, output, number, words):
    # A file with a hole, which takes minutes to convert.
    np.lib.format.open_memmap(tmp_path / "a.npy", "w+", np.uint8, (30_000_000, 64))

    def default_signals():
        signal.signal(signal.SIGINT, signal.default_int_handler)

    process = run_with(["from-numpy", tmp_path / "a.npy", output / "t", *words], default_signals)
    while not list(output.glob("**/*.rec.*")):  # until it writes
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
    process.send_signal(number)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "interrupted" in messages
    assert "Traceback" not in messages
    assert names(output) == []


@posix_only
@pytest.mark.parametrize("words", [[], ["--shuffle"]])
def test_a_full_disk_leaves_nothing_and_is_explained(rows, output, words):
    import resource

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    process = run_with(["from-csv", rows, output / "t", *words], small_files)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "recordio: error: " in messages
    assert "Traceback" not in messages
    assert names(output) == []


@posix_only
def test_a_full_disk_while_exporting_leaves_nothing(photo_folder, tmp_path, command, output):
    import resource

    assert command("from-imagefolder", photo_folder, tmp_path / "p") == 0

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))

    for words in ([output / "x"], [output / "x.tar", "--to", "webdataset"]):
        process = run_with(["export", tmp_path / "p", *words], small_files)
        _, messages = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "recordio: error: " in messages
        assert "Traceback" not in messages
        assert names(output) == []


@posix_only
def test_a_closed_pipe_ends_quietly(photo_folder, tmp_path, command):
    assert command("from-imagefolder", photo_folder, tmp_path / "p") == 0
    for words in (["head", tmp_path / "p"], ["cat", tmp_path / "p", *range(20)]):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [*COMMAND, *map(str, words)], stdout=writing, stderr=subprocess.PIPE, timeout=60
        )
        os.close(writing)
        assert done.stderr == b""
        assert done.returncode == 141


def test_bars_are_for_terminals_only(rows, tmp_path, command, capsys):
    assert command("from-csv", rows, tmp_path / "t") == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["recordio"]
    with RecordReader(tmp_path / "t.rec") as reader:
        assert len(reader) == 300


def test_urls_where_a_path_is_needed_say_what_can_be_done(rows, tmp_path, command, capsys):
    for words in (
        ["check", "a", "--repair", "s3://bucket/a"],
        ["export", tmp_path / "a", "s3://bucket/a"],
        ["from-csv", rows, "s3://bucket/a"],
    ):
        with pytest.raises(SystemExit) as ended:
            command(*words)
        assert ended.value.code == 2
        assert "a URL, where a path of this machine is needed" in capsys.readouterr().err
    assert command("from-imagefolder", "s3://bucket/photos", tmp_path / "a") == 1
    assert "download what is read (aws s3 cp, fsspec)" in capsys.readouterr().err


def test_the_version_is_printed(command, capsys):
    from recordio.tools.rec2idx import main as rec2idx

    for run, name in ((command, "recordio"), (lambda word: rec2idx([word]), "rec2idx")):
        with pytest.raises(SystemExit) as ended:
            run("--version")
        assert ended.value.code == 0
        assert capsys.readouterr().out.startswith(f"{name} (recordio-iterators ")
