"""Scripts for shells that complete the commands."""

import shutil
import subprocess
import sys

import pytest

from recordio.tools import arguments, rec2idx, subcommands

PARSERS = [arguments.build_parser, rec2idx.build_parser, subcommands.build_parser]


@pytest.mark.parametrize("build", PARSERS)
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_every_command_prints_a_script(build, shell, capsys):
    pytest.importorskip("shtab")
    parser = build()
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(["--print-completion", shell])
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert parser.prog in printed and "--version" in printed


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["inf"], ["info"]),
        (["export", "pack", "target", "--t"], ["--to"]),
        (["export", "pack", "target", "--to", "web"], ["webdataset"]),
        (["check", "set.r"], ["set.rec"]),
        (["check", "set.rec", "--repair", "set.r"], ["set.rec"]),
    ],
)
def test_bash_completes_words(words, expected, tmp_path, capsys):
    pytest.importorskip("shtab")
    (tmp_path / "set.rec").touch()
    with pytest.raises(SystemExit):
        subcommands.build_parser().parse_args(["--print-completion", "bash"])
    script = capsys.readouterr().out
    ask = f"""
    COMP_WORDS=(recordio {" ".join(words)}); COMP_CWORD={len(words)}
    $(complete -p recordio | sed "s/.*-F \\([^ ]*\\).*/\\1/") recordio {words[-1]} {words[-2:][0]}
    printf "%s\\n" "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", script + ask], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.split() == expected, done.stderr


def test_without_shtab_the_error_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    with pytest.raises(SystemExit) as ended:
        subcommands.build_parser().parse_args(["--print-completion", "bash"])
    assert ended.value.code == 2
    assert "pip install shtab" in capsys.readouterr().err
