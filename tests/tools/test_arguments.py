"""Arguments of `im2rec`: the table of options, their checks, and MXNet's spellings."""

import os
import sys
from dataclasses import fields

import pytest

from recordio.tools.arguments import (
    LIST_OPTIONS,
    PACK_OPTIONS,
    given_options,
    modern_spelling,
    parse_arguments,
)
from recordio.tools.encode import EncodeOptions
from recordio.tools.im2rec_options import IMAGE_OPTIONS, Im2recOptions

#: The number as argparse shows it among choices; Python 3.14 quotes it.
TEN = "'10'" if sys.version_info >= (3, 14) else "10"


def parse(*words):
    return parse_arguments([*words, "prefix", "root"])


def test_defaults_are_those_of_mxnets_tool_but_for_the_number_of_threads():
    settings = vars(parse())
    expected = {
        "list": False,
        "exts": (".jpeg", ".jpg", ".png"),
        "shuffle": True,
        "train_ratio": 1.0,
        "test_ratio": 0.0,
        "chunks": 1,
        "pass_through": False,
        "resize": 0,
        "center_crop": False,
        "encoding": ".jpg",
        "color": 1,
        "pack_label": False,
    }
    assert {name: settings[name] for name in expected} == expected
    assert settings["num_thread"] is None
    assert settings["quality"] is None
    assert settings["prefix"] == os.path.abspath("prefix")
    assert settings["root"] == os.path.abspath("root")


def test_the_command_line_has_the_options_of_the_table_with_their_defaults():
    settings = vars(parse())
    assert settings.keys() - {"prefix", "root", "slash"} == {f.name for f in fields(Im2recOptions)}
    settings["field"] = settings["field"] or ()  # argparse adds to a list
    assert {f.name: settings[f.name] for f in fields(Im2recOptions)} == {
        f.name: f.default for f in fields(Im2recOptions)
    }


@pytest.mark.parametrize(
    "options",
    [
        {"resize": -5},
        {"quality": 101},
        {"num_thread": 0},
        {"chunks": 0},
        {"train_ratio": 1.5},
        {"train_ratio": 0.8, "test_ratio": 0.5},
        {"encoding": ".gif"},
        {"encoding": "raw", "quality": 95},
        {"encoding": ".png", "optimize": True},
        {"color": 2},
        {"part": (4, 3)},
        {"part": (1, 3), "ray": ""},
        {"shards": 0},
        {"max_pixels": 0},
    ],
)
def test_the_table_refuses_the_same_in_python_and_on_the_command_line(options, capsys):
    with pytest.raises(ValueError, match="=|encoding"):
        Im2recOptions(**options)
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    words = [word.replace("(", "").replace(", ", "/").replace(")", "") for word in words]
    with pytest.raises(SystemExit, match="2"):
        parse(*words)
    err = capsys.readouterr().err
    assert any(f"argument --{name.replace('_', '-')}: " in err for name in options)


@pytest.mark.parametrize("flag", ["list", "recursive", "pass-through", "center-crop", "pack-label"])
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--{}"], True),
        (["--{}", "True"], True),
        (["--{}", "1"], True),
        (["--{}=1"], True),
        (["--{}=TRUE"], True),
        (["--{}=yes"], True),
        (["--{}", "False"], False),
        (["--{}=0"], False),
        (["--{}", "--{}=false"], False),
        (["--{}=false", "--{}"], True),
    ],
)
def test_older_spellings_of_flags(flag, words, expected):
    settings = parse(*(word.format(flag) for word in words))
    assert getattr(settings, flag.replace("-", "_")) is expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--no-shuffle"], False),
        (["--no-shuffle", "True"], False),
        (["--no-shuffle=false"], True),
        (["--shuffle", "false"], False),
        (["--shuffle=0"], False),
        (["--shuffle", "True"], True),
        (["--shuffle"], True),
    ],
)
def test_spellings_of_shuffle(words, expected):
    assert parse(*words).shuffle is expected


def test_silence_about_recursive_differs_from_no():
    assert parse().recursive is None
    assert parse("--recursive=false").recursive is False


def test_a_flag_with_another_value_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        parse("--list=maybe")
    assert "--list" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--exts", ".JPG", ".png"], (".jpg", ".png")),
        (["--exts", ".jpg", "--no-shuffle"], (".jpg",)),
        (["--exts=.BMP"], (".bmp",)),
        (["--exts", "jpg", "PNG"], (".jpg", ".png")),
        (["--exts", ".jpg,.png"], (".jpg", ".png")),
        (["--exts", "*.jpg"], (".jpg",)),
        (["--exts", ".npy", ".weird"], (".npy", ".weird")),
        (["--exts", ".jpg", "--exts", ".png"], (".jpg", ".png")),
    ],
)
def test_extensions_do_not_swallow_the_positional_arguments(words, expected):
    settings = parse(*words)
    assert settings.exts == expected
    assert os.path.basename(settings.prefix) == "prefix"


@pytest.mark.parametrize("prefix", ["./out", "../out", ".", "out.d/x", "png/x"])
def test_extensions_leave_paths_alone(prefix):
    settings = parse_arguments(["--exts", ".jpg", prefix, "root"])
    assert settings.prefix == os.path.abspath(prefix)
    assert settings.exts == (".jpg",)


def test_extensions_without_a_value_are_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        parse_arguments(["prefix", "root", "--exts"])
    assert "--exts" in capsys.readouterr().err


def test_positional_arguments_may_stand_anywhere():
    for words in (["a", "--list", "b"], ["--list", "a", "b"], ["a", "b", "--list"]):
        settings = parse_arguments(words)
        assert settings.list
        assert (settings.prefix, settings.root) == (os.path.abspath("a"), os.path.abspath("b"))


def test_underscores_and_a_negative_colour():
    settings = parse("--num_thread", "3", "--train_ratio=0.5", "--color", "-1")
    assert (settings.num_thread, settings.train_ratio, settings.color) == (3, 0.5, -1)


@pytest.mark.parametrize(
    ("word", "encoding"),
    [(".jpg", ".jpg"), ("JPEG", ".jpg"), ("png", ".png"), ("raw", "raw"), (".RAW", "raw")],
)
def test_encodings_have_one_spelling(word, encoding):
    assert parse("--encoding", word).encoding == encoding
    assert EncodeOptions(encoding=encoding).encoding == encoding


def test_everything_behind_two_dashes_is_left_alone():
    words = ["--list", "--", "--exts", "true"]
    assert modern_spelling(words) == words


@pytest.mark.parametrize(
    "words",
    [
        ["--resize", "-5"],
        ["--resize", "big"],
        ["--quality", "101"],
        ["--num-thread", "0"],
        ["--chunks", "0"],
        ["--train-ratio", "1.5"],
        ["--train-ratio", "0.8", "--test-ratio", "0.5"],
        ["--encoding", ".gif"],
        ["--encoding", "raw", "--quality", "95"],
        ["--color", "2"],
        ["--inter-method", "10"],
        ["--strict", "--skip-errors"],
        ["--unknown"],
        ["third"],
    ],
)
def test_wrong_arguments_end_with_code_2_and_a_message(words, capsys):
    with pytest.raises(SystemExit, match="2"):
        parse(*words)
    assert "im2rec: error:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--resise", "256"], "unrecognized arguments: --resise 256; did you mean '--resize'?"),
        (["--pass_trough"], "did you mean '--pass-through'?"),
        (["--num-workers", "4"], "--num-workers 4; did you mean '--num-thread'? It is a number"),
        (["--encoding", "pgn"], "invalid choice: '.pgn'; did you mean '.png'?"),
        (["--color", "10"], f"invalid choice: {TEN} (choose from"),
    ],
)
def test_the_closest_option_is_named(words, said, capsys):
    with pytest.raises(SystemExit) as ended:
        parse_arguments(["a", "b", *words])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_given_options_are_named_as_they_are_written():
    settings = parse(
        "--no-shuffle", "--exts", ".jpg", "--color", "0", "--check=none", "--recursive"
    )
    assert given_options(settings, LIST_OPTIONS) == ["--recursive", "--exts", "--no-shuffle"]
    assert given_options(settings, IMAGE_OPTIONS) == ["--color"]
    assert given_options(settings, PACK_OPTIONS) == ["--color", "--check"]


def test_help_names_every_option_with_its_default_and_gives_examples(capsys):
    with pytest.raises(SystemExit, match="0"):
        parse_arguments(["--help"])
    text = capsys.readouterr().out
    for name in (*LIST_OPTIONS, *PACK_OPTIONS, "list", "strict", "skip_errors"):
        option = "--no-shuffle" if name == "shuffle" else f"--{name.replace('_', '-')}"
        assert option in text
    assert "examples:" in text
    assert "exit codes:" in text
    assert max(map(len, text.splitlines())) <= 100
