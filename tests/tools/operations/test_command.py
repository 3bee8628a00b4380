"""Commands made of functions: they have all of their options."""

import argparse
from functools import partial
from typing import Annotated

import pytest

import recordio
from recordio.keywords.checks import choice, integer
from recordio.keywords.functions import checked, options_of
from recordio.keywords.options import option
from recordio.operations.options import Cancelled, Out, Path, SkipErrors, Told
from recordio.tools.operations.command import operation
from recordio.tools.operations.table import PACK_COMMANDS

Most = Annotated[int, option(kind="int", text="If not `turn_back`.", check=partial(integer, low=1))]
Way = Annotated[str, option(kind="str", text="``up`` or not.", check=partial(choice, allowed="ab"))]
Flag = Annotated[bool, option(kind="bool", text="Go back.")]


@checked
def turn(
    path: Path,
    out: Out,
    most: Most = 3,
    *,
    way: Way = "a",
    turn_back: Flag = False,
    skip_errors: SkipErrors = False,
    progress: Told = None,
    cancelled: Cancelled = lambda: False,
):
    """Turn a pack."""


def parser_of(command):
    parser = argparse.ArgumentParser("demo")
    command.add_options(parser)
    return parser


def test_a_command_has_the_options_of_its_function(capsys):
    command = operation(turn, "turn a pack", "Turn a pack.")
    parser = parser_of(command)
    settings = parser.parse_args(["x", "y"])
    assert (settings.most, settings.way, settings.turn_back) == (3, "a", False)
    settings = parser.parse_args(["x", "y", "--most", "7", "--way", "b", "--turn-back"])
    assert (settings.most, settings.way, settings.turn_back) == (7, "b", True)
    shown = " ".join(parser.format_help().split())
    assert "--most N if not --turn-back (default: 3)" in shown
    assert "--way {a,b} up or not (default: a)" in shown
    with pytest.raises(SystemExit):
        parser.parse_args(["x", "y", "--most", "0"])
    said = "argument --most: '0': expected an integer of at least 1"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["shuffle", "sort", "sample", "filter", "split", "relabel", "shard"]
)
def test_no_option_of_a_function_is_missing(name):
    options = {action.dest for action in parser_of(PACK_COMMANDS[name])._actions}
    known = set(options_of(getattr(recordio, name))) - {"path", "out", "progress", "cancelled"}
    assert known <= options
