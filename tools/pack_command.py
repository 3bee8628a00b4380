"""``recordio pack``: the arguments and messages of the command; `pack_source` does the work."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from recordio.bytes.remote.settings import is_url
from recordio.errors import RecordIOError
from recordio.packs.names import pack_prefix

from .arguments import ADDRESS, DIFFERENT
from .command import Command, add, add_option, wrong_of
from .console import UNNOTICED, Interruption, say, say_skipped, say_written
from .convert.importing import ImportReport
from .im2rec_options import IMAGE_OPTIONS, PackOptions
from .outputs import check_outputs, output_target, path_or_url

GROUPS = (
    ("samples", ("image_field", "label_field", "no_labels", "fields", "exts", "max_content_bytes")),
    (
        "order and parts",
        ("shuffle", "seed", "chunks", "train_ratio", "test_ratio", "stratify"),
    ),
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


def refusing(force: bool) -> Callable[[Sequence[str]], None]:
    """Make the check that refuses files of this machine that exist, unless they are replaced."""
    return lambda paths: check_outputs([path for path in paths if not is_url(path)], force)


def _pack(settings: argparse.Namespace, interruption: Interruption) -> int:
    from .images import warnings_are_noticed  # slow to load
    from .pack_source import pack_source

    if settings.check == "decode" and not warnings_are_noticed():
        say("recordio", f"note: {UNNOTICED}")
    prefix = pack_prefix(settings.out)
    # Objects are published so that Ctrl-C may strike at any time, and a server may be slow.
    deferring = contextlib.nullcontext() if is_url(prefix) else interruption.deferring()
    with deferring, naming_skipped(prefix, settings.strict):
        report = pack_source(
            settings.source,
            prefix,
            PackOptions(**{i.name: getattr(settings, i.name) for i in fields(PackOptions)}),
            progress=sys.stderr.isatty(),
            check=refusing(settings.force),
            cancelled=interruption.requested,
        )
    return say_report(report, prefix, settings.skip_errors)


@contextlib.contextmanager
def naming_skipped(prefix: str, strict: bool) -> Iterator[None]:
    """Name the first of the images for which packing ended without output."""
    try:
        yield
    except RecordIOError as error:
        skipped = getattr(error, "skipped", ())
        if skipped and not strict:
            say_skipped("recordio", os.path.splitext(error.path or prefix)[0], skipped)
        raise


def say_report(report: ImportReport, prefix: str, skip_errors: bool) -> int:
    """Say what was written and what was not; return the exit code."""
    for note in report.notes:
        say("recordio", note)
    if left_out := report.not_stored():
        say("recordio", f"note: {left_out}")
    if continued := getattr(report, "continued", 0):
        say("recordio", f"{continued} shards were whole already")
    for name, count in report.fields.items():
        none = f"; {report.records - count} images have none" if count < report.records else ""
        say("recordio", f"wrote {prefix}.{name}.rec: {count} records{none}")
    paths = getattr(report, "paths", [report.path])
    in_shards = getattr(report, "skipped_in_shards", 0)
    if report.skipped and len(paths) == 1:
        say_skipped("recordio", prefix, report.skipped)
    elif count := len(report.skipped) or in_shards:
        say("recordio", f"{count} skipped in all; see the .skipped.txt files")
    written = ", ".join(paths) or "shards; the manifest is written with the last of all"
    say_written(written, report.records, report.bytes_written, report.seconds)
    return int(bool(report.skipped or in_shards) and not skip_errors)


PACK_SOURCE = Command(
    "pack",
    "make a record file from a container: a folder of classes, tar files, ...",
    DESCRIPTION,
    _add_pack,
    _pack,
    partial(wrong_of, PackOptions),
)
