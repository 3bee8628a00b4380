"""Messages, signals, progress bars and exit codes of the console commands."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from typing import Any, TextIO

from recordio.keywords.checks import did_you_mean
from recordio.keywords.synonyms import synonym

from .image_list import Skipped, skipped_path

SHOWN_SKIPPED = 10
#: Dashes that editors and web pages make of hyphens, before an option or a number.
DASH = re.compile("-?[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]+-?(?=\\w)")
#: Message of commands that look for damage where warnings cannot be had.
UNNOTICED = "built without libjpeg-turbo: warnings of the JPEG decoder go unnoticed"
BROKEN_PIPE = 128 + 13  # what the shell reports for a command that SIGPIPE ended


class Interruption:
    """Ctrl-C and SIGTERM: noted while output is written, `KeyboardInterrupt` elsewhere.

    While output is written, an exception could come between the two renames of a publication, so
    the first signal is only noted, and commands look for it between records.  A second one raises.
    """

    def __init__(self) -> None:
        self.number: int | None = None  # the last signal that came
        self.deferred = False

    def __call__(self, number: int, frame: object) -> None:
        """Note a signal; `KeyboardInterrupt` unless that is deferred."""
        again = self.number is not None
        self.number = number
        if again or not self.deferred:
            raise KeyboardInterrupt

    def requested(self) -> bool:
        """True if a signal has come."""
        return self.number is not None

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Handle both signals for a while; in another thread than the main one nothing changes."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        # A signal that is ignored stays ignored: `nohup` and background jobs rely on it.
        before = {number: old for number, old in before.items() if old is not signal.SIG_IGN}
        try:
            for number in before:
                signal.signal(number, self)
            yield
        finally:
            for number, old in before.items():
                signal.signal(number, signal.SIG_DFL if old is None else old)

    @contextlib.contextmanager
    def deferring(self) -> Iterator[None]:
        """Only note signals for a while."""
        self.deferred = True
        try:
            yield
        finally:
            self.deferred = False


class Parser(argparse.ArgumentParser):
    """Parser whose errors name the closest sub-command, choice or option."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Return the settings; arguments without a meaning end the process."""
        args = list(sys.argv[1:] if args is None else args)
        for word in args[: args.index("--") if "--" in args else None]:
            if (match := DASH.match(word)) and not os.path.exists(word):
                name, _, rest = word[match.end() :].partition("=")
                dash = next(letter for letter in match[0] if letter != "-")
                hyphens = "-" if len(name) == 1 or name[:1].isdigit() else "--"
                self.error(
                    f"{word}: it begins with a dash of typography (U+{ord(dash):04X}), not with "
                    f"hyphens; did you mean {hyphens}{name}{'=' if rest else ''}{rest}?"
                )
        settings, rest = self.parse_known_args(args, namespace)
        if not rest:
            return settings
        parsers: list[argparse.ArgumentParser] = [self]
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                parsers.append(action.choices[getattr(settings, action.dest)])
        names = [
            option
            for parser in parsers
            for action in parser._actions
            if action.help != argparse.SUPPRESS
            for option in action.option_strings
        ]
        unknown = (word.partition("=")[0] for word in rest if word.startswith("--"))
        hints = " ".join(
            filter(None, (synonym(word, names) or did_you_mean(word, names) for word in unknown))
        )
        problem = f"unrecognized arguments: {' '.join(rest)}"
        parsers[-1].error(f"{problem}; {hints}" if hints else problem)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError:
            hint = did_you_mean(value, action.choices or ()) if isinstance(value, str) else ""
            if not hint:
                raise
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; {hint}") from None


def add_version(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--version``, which prints command, package and version."""
    try:
        version = metadata.version("recordio-iterators")
    except metadata.PackageNotFoundError:
        version = "in a checkout that is not installed"
    parser.add_argument(
        "--version",
        action="version",
        version=f"%(prog)s (recordio-iterators {version})",
        help="print the version of the package, and exit",
    )


def run_command(command: str, action: Callable[[Interruption], int]) -> int:
    """Run a command and turn whatever stops it into a message and an exit code.

    The code is that of `action`; 1 after an error, 130 and 143 after Ctrl-C and SIGTERM, 141 when
    nobody reads standard output any more.
    """
    interruption = Interruption()
    try:
        with interruption.installed():
            code = action(interruption)
            sys.stdout.flush()
            return code
    except KeyboardInterrupt:
        say(command, "interrupted; nothing half-written was left")
        return 128 + (interruption.number or signal.SIGINT)
    except BrokenPipeError:
        _forget_output()
        return BROKEN_PIPE
    except OSError as error:
        name = f"{error.filename}: " if error.filename is not None else ""
        say(command, f"error: {name}{error.strerror or error}")
    except (ValueError, ImportError) as error:  # a RecordIOError is a ValueError
        say(command, f"error: {error}")
    except MemoryError:
        say(command, "error: not enough memory")
    return 1


def _forget_output() -> None:
    """Let what is still buffered go nowhere, so that the end of the process stays quiet."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


#: Commands in the place of functions that messages name as remedies.
COMMANDS = {
    "recordio.repair()": "`recordio check --repair PREFIX`",
    "recordio.build_index()": "`recordio index`",
}


def say(command: str, text: str) -> None:
    """Print a message of a command to standard error."""
    text = with_commands(text)
    print(f"{command}: {printable(text, sys.stderr)}", file=sys.stderr, flush=True)


def say_skipped(command: str, prefix: str, skipped: Sequence[Skipped]) -> None:
    """Name the first things that were skipped, and the file that names all of them."""
    for path, reason in skipped[:SHOWN_SKIPPED]:
        say(command, f"skipped {path}: {reason}")
    say(command, f"{len(skipped)} skipped in all; see {skipped_path(prefix)}")


def say_written(path: str, records: int, nbytes: int, seconds: float) -> None:
    """Name what `recordio` wrote, with its size and the time that it took."""
    rate = records / max(seconds, 1e-9)
    size = f"{records} records, {nbytes / 1e6:.1f} MB"
    say("recordio", f"wrote {path}: {size}, in {seconds:.1f} s ({rate:.0f} records/s)")


def with_commands(text: str) -> str:
    """Put commands in the place of the functions that a message names as remedies.

    >>> with_commands("recordio.build_index() writes it again")
    '`recordio index` writes it again'
    """
    for function, command in COMMANDS.items():
        text = text.replace(function, command)
    return text


def printable(text: str, stream: TextIO) -> str:
    """Escape the characters that a stream cannot write: file names may be any bytes."""
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


@contextlib.contextmanager
def progress_bar(
    total: int | None, description: str, unit: str, shown: bool | None = None
) -> Iterator[Callable[[int], object]]:
    """Show a progress bar on standard error, by default only where that is a terminal.

    The yielded ``advance(count)`` moves it, and has no effect if it is not shown.
    """
    if not (sys.stderr.isatty() if shown is None else shown):
        yield lambda count: None
        return
    from tqdm import tqdm  # loading it takes longer than packing ten photographs

    with tqdm(
        total=total, desc=description, unit=f" {unit}", file=sys.stderr, dynamic_ncols=True
    ) as bar:
        yield bar.update
