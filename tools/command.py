"""Sub-commands of ``recordio``, and the arguments that several of them share."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields
from typing import Any, NamedTuple

from recordio.keywords.options import Options

from .console import Interruption, printable, progress_bar, with_commands
from .outputs import local_path, path_or_url


class Command(NamedTuple):
    """Sub-command of ``recordio``; the texts are those of ``--help``."""

    name: str
    summary: str
    description: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Interruption], int]  # returns the exit code
    #: Names the fault of arguments that do not go together; empty if there is none.
    check: Callable[[argparse.Namespace], str] = lambda settings: ""


def natural(text: str) -> int:
    """Read a whole number from 0 on; for ``add_argument(type=...)``."""
    if not text.isdecimal() or len(text) > 18:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 on")
    return int(text)


def positive(text: str) -> int:
    """Read a whole number above 0; for ``add_argument(type=...)``."""
    number = natural(text)
    if not number:
        raise argparse.ArgumentTypeError("it must be at least 1")
    return number


#: Arguments by the names that parameters have; where one has no flag it is given by position.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "path": {
        "metavar": "PACK",
        "type": path_or_url,
        "help": """the record file or its URL, or its name without .rec; PREFIX.idx is used if it
        exists""",
    },
    "out": {"metavar": "PREFIX", "type": local_path, "help": "write PREFIX.rec and PREFIX.idx"},
    "json": {"action": "store_true", "help": "print one JSON object"},
    "force": {"action": "store_true", "help": "replace existing files"},
    "skip_errors": {
        "action": "store_true",
        "help": "leave damaged records out and count them, instead of stopping at the first",
    },
    "max_pixels": {
        "type": positive,
        "metavar": "N",
        "default": argparse.SUPPRESS,
        "help": "do not decode images with more pixels (default: 2**26)",
    },
    "threads": {"type": positive, "metavar": "N", "help": "number of threads (default: all cores)"},
}
BY_POSITION = ("path", "out")


def add(group: Any, name: str, **different: Any) -> None:
    """Add one of `ARGUMENTS`; `different` are words for ``add_argument`` in place of its own."""
    words = {**ARGUMENTS[name], **different}
    if name in BY_POSITION and "flag" not in words:
        group.add_argument(name, **words)
    else:
        group.add_argument(words.pop("flag", flag_of(name)), dest=name, **words)


def add_option(group: Any, item: Field[Any], **different: Any) -> None:
    """Add the parameter of a function, described and checked as there.

    One without a default is given by position.
    """
    check, text = item.metadata["check"], item.metadata["text"]
    settings: dict[str, Any] = {} if text is ... else {"help": _help(text, item.default)}
    flag = flag_of(item.name)
    if is_flag(item):
        settings["action"] = "store_false" if item.default is True else "store_true"
        flag = flag.replace("--", "--no-") if item.default is True else flag
    elif allowed := getattr(check, "keywords", {}).get("allowed"):
        settings |= {"type": type(allowed[0]), "choices": list(allowed)}
    else:
        settings |= {"type": _typed(item.name, check), "metavar": _metavar(item)}
    if item.default is not MISSING:
        settings |= {"default": item.default, "dest": item.name}
    words = {**settings, **different}
    group.add_argument(item.name if item.default is MISSING else words.pop("flag", flag), **words)


def wrong_of(family: type[Options], settings: argparse.Namespace) -> str:
    """Name the first argument that does not go with the others; empty if all do."""
    try:
        family(**{item.name: getattr(settings, item.name) for item in fields(family)})
    except ValueError as error:
        name, _, text = str(error).partition("=")
        return f"argument {flag_of(name)}: it {as_flags(text.partition(' ')[2])}"
    return ""


def is_flag(item: Field[Any]) -> bool:
    """Return True for an option without a value."""
    return "bool" in item.metadata["kind"]


def flag_of(name: str) -> str:
    """Return the option of a parameter."""
    return f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"


def as_flags(text: str) -> str:
    """Return a text with the options of the parameters that it names."""
    return re.sub(r"(?<!`)`(\w+)`(?!`)", lambda match: flag_of(match[1]), text)


def _help(text: str, default: Any) -> str:
    """Write a description as ``--help`` has it, with the default unless the text says it."""
    text = as_flags(text).replace("``", "").replace("%", "%%").rstrip(".")
    none = default is False or default in (None, MISSING, ())
    has_none = none or "default:" in text
    ending = "" if has_none else f" (default: {default})"
    first = text[0] if text[1].isupper() else text[0].lower()
    return f"{first}{text[1:]}{ending}"


def _metavar(item: Field[Any]) -> str:
    return "N" if "int" in str(item.metadata["kind"]) else item.name.upper()


def _typed(name: str, check: Callable[[str, Any], Any] | None) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        try:
            return check(name, text) if check else text
        except (TypeError, ValueError) as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix(f"{name}=")) from None

    return convert


def show(content: str | dict[str, Any]) -> None:
    """Print a text, or an object as JSON."""
    text = with_commands(content) if isinstance(content, str) else json.dumps(content, indent=2)
    print(printable(text, sys.stdout))


@contextlib.contextmanager
def showing_progress(name: str, unit: str = "records") -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar for ``progress(done, total)``, a new one when that begins again."""
    with contextlib.ExitStack() as stack:
        position = 0
        advance: Callable[[int], object] | None = None

        def progress(done: int, total: int) -> None:
            nonlocal position, advance
            if advance is None or done < position:  # how many there are is known now
                advance, position = stack.enter_context(progress_bar(total, name, unit)), 0
            advance(done - position)
            position = done

        yield progress
