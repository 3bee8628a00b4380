"""``recordio pack``: the arguments and messages of the command; `pack_source` does the work."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from recordio.bytes.remote.settings import is_url
from recordio.packs.names import pack_prefix

from .arguments import ADDRESS, DIFFERENT, IMAGE_OPTIONS
from .command import Command, add, add_option, as_flags, flag_of
from .console import UNNOTICED, Interruption, say, say_skipped, say_written
from .outputs import check_outputs, output_target, path_or_url

__all__ = ["PACK_SOURCE"]

GROUPS = (
    ("order and parts", ("shuffle", "chunks", "train_ratio", "test_ratio", "stratify")),
    ("changing images", IMAGE_OPTIONS),
    ("packing", ("optimize", "checksums", "num_thread", "check", "max_pixels")),
    ("shards", ("shards", "part", "ray")),
)
DESCRIPTION = """Pack the samples of a container into a record file (PREFIX.rec) with its index,
the names of the files (PREFIX.lst) and, if they are known, the names of the classes
(PREFIX.classes.txt). SOURCE is a folder of classes, or one or more files of another kind that
training reads in place; braces and patterns such as 'train-{000..009}.tar' stand for several
files. Contents are stored unchanged, unless an option changes images. Samples that are missing,
damaged or truncated are left out and named in PREFIX.skipped.txt; the exit code is then 1. A run
that is killed leaves nothing. With --shards, complete shards are not made again."""


def _address(text: str) -> str:
    if text and not ADDRESS.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no address; --ray= takes any")
    return text


#: Words for ``add_argument`` that do not follow from an option.
WORDS: dict[str, dict[str, Any]] = {
    **{name: words for name, words in DIFFERENT.items() if name not in ("exts", "shuffle")},
    "ray": {"metavar": "ADDRESS", "type": _address, "nargs": "?", "const": ""},
}


def _add_pack(parser: argparse.ArgumentParser) -> None:
    from .pack_source import PackOptions  # slow to load

    options = {item.name: item for item in fields(PackOptions)}
    parser.add_argument(
        "source", metavar="SOURCE", type=path_or_url, help="the container, or a pattern of files"
    )
    add(parser, "out", type=output_target, help="start of the output names; may be a URL")
    for title, names in GROUPS:
        group = parser.add_argument_group(title)
        for name in names:
            add_option(group, options[name], **WORDS.get(name, {}))
    output = parser.add_argument_group("output and errors")
    add(output, "force", help="replace existing files, except complete shards")
    either = output.add_mutually_exclusive_group()
    add(either, "skip_errors", help="exit with 0 even if samples were skipped")
    either.add_argument(
        "--strict", action="store_true", help="stop at the first bad sample and write nothing"
    )


def _options(settings: argparse.Namespace) -> Any:
    from .pack_source import PackOptions

    return PackOptions(**{item.name: getattr(settings, item.name) for item in fields(PackOptions)})


def _wrong_of_pack(settings: argparse.Namespace) -> str:
    try:
        _options(settings)
    except ValueError as error:
        name, _, text = str(error).partition("=")
        return f"argument {flag_of(name)}: it {as_flags(text.partition(' ')[2])}"
    return ""


def _pack(settings: argparse.Namespace, interruption: Interruption) -> int:
    from .images import warnings_are_noticed
    from .pack import PackingError
    from .pack_source import pack_source

    if settings.check == "decode" and not warnings_are_noticed():
        say("recordio", f"note: {UNNOTICED}")

    def check(paths: Sequence[str]) -> None:
        check_outputs([path for path in paths if not is_url(path)], settings.force)

    prefix = pack_prefix(settings.out)
    # Objects are published so that Ctrl-C may strike at any time, and a server may be slow.
    with contextlib.nullcontext() if is_url(prefix) else interruption.deferring():
        try:
            report = pack_source(
                settings.source,
                prefix,
                _options(settings),
                progress=sys.stderr.isatty(),
                check=check,
                cancelled=interruption.requested,
            )
        except PackingError as error:
            if not settings.strict:
                say_skipped("recordio", os.path.splitext(error.path or prefix)[0], error.skipped)
            raise
    if report.left_out:
        shown = ", ".join(f"{count} {kind}" for kind, count in report.left_out.items())
        say("recordio", f"note: not stored: {shown}")
    if report.continued:
        say("recordio", f"{report.continued} shards were whole already")
    for note in report.notes:
        say("recordio", note)
    if report.skipped and len(report.paths) == 1:
        say_skipped("recordio", prefix, report.skipped)
    elif count := len(report.skipped) or report.skipped_in_shards:
        say("recordio", f"{count} skipped in all; see the .skipped.txt files")
    written = ", ".join(report.paths) or "shards; the manifest is written with the last of all"
    say_written(written, report.records, report.bytes_written, report.seconds)
    skipped = report.skipped or report.skipped_in_shards
    return int(bool(skipped) and not settings.skip_errors)


PACK_SOURCE = Command(
    "pack",
    "make a record file from a container: a folder of classes, tar files, ...",
    DESCRIPTION,
    _add_pack,
    _pack,
    _wrong_of_pack,
)
