"""Console command ``recordio``: its sub-commands and their options.

This is the command line alone.  Formats and their options are in `convert`, the rest of the work in
`info`, `show` and the library.
"""

from __future__ import annotations

if not __package__:
    import checkout

    checkout.run("cli")

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence

from recordio import build_index, repair, verify, write_checksums
from recordio.errors import RecordIOError
from recordio.frames.checksums import checksums_path
from recordio.image_size import DEFAULT_MAX_PIXELS
from recordio.ordered import default_threads

from .console import Interruption, add_version, printable, run_command, say, say_skipped
from .convert.exporting import export_records
from .convert.format import Import
from .convert.importing import companions, import_records
from .convert.registry import EXPORTS, IMPORTS
from .convert.shards import add_shard_options
from .info import collect_info, format_info
from .outputs import check_outputs, local_path
from .record_pack import RecordPack, pack_prefix
from .show import head_lines, save_records, write_records

__all__ = ["build_parser", "main"]

DESCRIPTION = """\
Make record files (PREFIX.rec, PREFIX.idx) of other formats, look into them, and turn them back.
"""
EPILOG = """\
examples:
  recordio from-csv table.csv data/table --label-columns 0
  recordio from-imagefolder photos data/photos --shuffle
  recordio info data/photos
  recordio head data/photos -n 5
  recordio cat data/photos 3 > 3.jpg
  recordio optimize data/photos data/photos-optimized
  recordio export data/photos again
  recordio export data/table table.csv --to csv

exit codes:
  0         everything was done
  1         something was skipped or is damaged, or nothing could be written
  2         wrong arguments
  130, 143  interrupted by Ctrl-C or SIGTERM; nothing half-written is left
"""
PACK_HELP = "the record file, or its name without .rec; PREFIX.idx is used if it is there"
CHECK_HELP = "the record file, or its name without .rec; PREFIX.idx and PREFIX.crc are used, too"

MOST_NAMED = 4  # files in a message

#: What a sub-command does with its settings.
Action = Callable[[argparse.Namespace, Interruption], int]


def build_parser(target: str | None = None) -> argparse.ArgumentParser:
    """The parser of all sub-commands.

    Parameters
    ----------
    target : str, optional
        The format whose options ``export`` has; that of folders by default.
    """
    parser = argparse.ArgumentParser(
        prog="recordio",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_version(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def add(
        name: str, summary: str, action: Action, description: str = ""
    ) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name,
            help=summary,
            description=description or f"{summary[0].upper()}{summary[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.set_defaults(action=action)
        return command

    for source in IMPORTS.values():
        _add_import(add(f"from-{source.name}", source.summary, _import, source.description), source)
    _add_inspection(add)
    _add_export(add, target if target in EXPORTS else next(iter(EXPORTS)))
    return parser


def _add_import(command: argparse.ArgumentParser, source: Import) -> None:
    for name, text, several in source.sources:
        command.add_argument(name, metavar=name.upper(), help=text, nargs="+" if several else None)
    command.add_argument(
        "prefix", metavar="PREFIX", type=local_path, help="write PREFIX.rec and PREFIX.idx"
    )
    source.add_options(command)
    output = command.add_argument_group("output")
    output.add_argument("--shuffle", action="store_true", help="put the records in random order")
    output.add_argument(
        "--seed", type=int, metavar="N", help="with --shuffle: another random order (default: 0)"
    )
    output.add_argument("--force", action="store_true", help="replace existing files")
    errors = output.add_mutually_exclusive_group()
    errors.add_argument(
        "--skip-errors",
        action="store_true",
        help="exit with 0 although something was skipped; PREFIX.skipped.txt names it",
    )
    errors.add_argument(
        "--strict", action="store_true", help="stop at the first bad item, write nothing"
    )


def _add_inspection(add: Callable[..., argparse.ArgumentParser]) -> None:
    info = add("info", "count and measure what is in a record file, and look for damage", _info)
    info.add_argument("pack", metavar="PACK", type=local_path, help=PACK_HELP)
    info.add_argument("--json", action="store_true", help="print one JSON object")

    head = add("head", "show the first records as a table", _head)
    head.add_argument("pack", metavar="PACK", type=local_path, help=PACK_HELP)
    head.add_argument(
        "-n", type=_natural, default=10, metavar="N", help="how many records (default: 10)"
    )

    cat = add("cat", "write what is in records to standard output or to files", _cat)
    cat.add_argument("pack", metavar="PACK", type=local_path, help=PACK_HELP)
    cat.add_argument("keys", metavar="KEY", type=int, nargs="+", help="keys of the records")
    cat.add_argument(
        "--position",
        action="store_true",
        help="the numbers are positions, from 0; from the end with a minus, behind --",
    )
    cat.add_argument(
        "--raw",
        action="store_true",
        help="whole records, with their image headers if they have one",
    )
    cat.add_argument("-o", "--output", metavar="FOLDER", help="write a file for each record")
    cat.add_argument("--force", action="store_true", help="replace existing files")

    check = add("check", "look for damage in a record file and its index, and repair it", _check)
    check.add_argument("pack", metavar="PACK", type=local_path, help=CHECK_HELP)
    task = check.add_mutually_exclusive_group()
    task.add_argument(
        "--repair",
        metavar="PREFIX",
        type=local_path,
        help="copy all whole records to PREFIX.rec and PREFIX.idx, keeping their keys; with "
        "checksums those that are as they were",
    )
    task.add_argument(
        "--write-checksums",
        action="store_true",
        help="write PREFIX.crc, a checksum of every record, if no damage is found; needs "
        "google-crc32c",
    )
    task.add_argument(
        "--decode",
        action="store_true",
        help="decode every image as well, and count warnings of the decoder as damage: the record "
        "format has no checksums, and a damaged JPEG image mostly decodes to something",
    )
    check.add_argument(
        "--max-pixels",
        type=_natural,
        metavar="N",
        help="with --decode: do not decode images with more pixels (default: 2**26)",
    )
    check.add_argument(
        "--threads",
        type=_threads,
        metavar="N",
        help="with --decode: number of threads (default: all cores)",
    )
    check.add_argument("--force", action="store_true", help="replace existing files")

    _add_optimize(add)

    index = add("index", "write the index of a record file", _index)
    index.add_argument(
        "pack", metavar="PACK", type=local_path, help="the record file, or its name without .rec"
    )
    index.add_argument(
        "--keys",
        choices=["position", "id"],
        default="position",
        help="position: 0, 1, 2, ...; id: the id in each image header, which is what im2rec writes "
        "(default: position)",
    )
    index.add_argument("--force", action="store_true", help="replace an existing index")


def _add_optimize(add: Callable[..., argparse.ArgumentParser]) -> None:
    optimize = add(
        "optimize",
        "rewrite the JPEG images of a record file without loss, to be decoded faster",
        _optimize,
        "Copy a record file with its JPEG images rewritten without loss: not progressive, and\n"
        "with restart markers, so that a part of an image is decoded without the rest.  Pixels,\n"
        "labels, ids, keys and order stay the same; what is no JPEG image, or cannot be\n"
        "rewritten, is copied as it is.",
    )
    optimize.add_argument("pack", metavar="PACK", type=local_path, help=PACK_HELP)
    optimize.add_argument(
        "prefix", metavar="PREFIX", type=local_path, help="write PREFIX.rec and PREFIX.idx"
    )
    optimize.add_argument(
        "--restart",
        type=_restart,
        default="auto",
        metavar="N",
        help="MCUs (mostly 16 x 16 pixels) between restart markers; 0: none (default: auto, by the "
        "size of the image; none for small ones)",
    )
    optimize.add_argument(
        "--threads", type=_threads, metavar="N", help="number of threads (default: all cores)"
    )
    optimize.add_argument("--force", action="store_true", help="replace existing files")


def _add_export(add: Callable[..., argparse.ArgumentParser], target: str) -> None:
    formats = "\n".join(f"  {name:<11} {export.summary}" for name, export in EXPORTS.items())
    export = add(
        "export",
        "turn records back into folders of images, tables, arrays, ...",
        _export,
        f"Turn the records of a pack into files of another format:\n\n{formats}\n\n"
        "`recordio export --to FORMAT --help` shows the options of a format.",
    )
    export.add_argument("pack", metavar="PACK", type=local_path, help=PACK_HELP)
    export.add_argument(
        "target", metavar="TARGET", type=local_path, help="what to write, see above"
    )
    export.add_argument(
        "--to",
        choices=list(EXPORTS),
        default=next(iter(EXPORTS)),
        metavar="FORMAT",
        help="the format (default: %(default)s)",
    )
    export.add_argument("--force", action="store_true", help="replace existing files, not folders")
    chosen = EXPORTS[target]
    options = export.add_argument_group(f"--to {target}")
    if chosen.outputs("TARGET"):
        add_shard_options(options)
    chosen.add_options(options)


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number")
    return int(text)


def _threads(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of threads")
    return int(text)


def _restart(text: str) -> int | str:
    if text == "auto":
        return text
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is neither auto nor a number up to 65535")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words behind the command; those of the process by default.

    Returns
    -------
    int
        The exit code: 0 done, 1 something was skipped, is damaged or failed, 130 and 143
        interrupted, 141 when nobody reads the output any more.

    Raises
    ------
    SystemExit
        The arguments are wrong (code 2), or help was asked for (code 0).
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    # The format decides which options there are.
    scout = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    scout.add_argument("--to", nargs="?")
    parser = build_parser(scout.parse_known_args(words)[0].to)
    settings = parser.parse_args(words)
    if getattr(settings, "seed", None) is not None and not settings.shuffle:
        parser.error("argument --seed: it needs --shuffle")
    if settings.command == "check" and not settings.decode:
        for name in ("max_pixels", "threads"):
            if getattr(settings, name) is not None:
                parser.error(f"argument --{name.replace('_', '-')}: it needs --decode")
    return run_command("recordio", lambda interruption: settings.action(settings, interruption))


def _tell(text: str) -> None:
    say("recordio", text)


def _import(settings: argparse.Namespace, interruption: Interruption) -> int:
    prefix = pack_prefix(settings.prefix)
    check_outputs(companions(prefix), settings.force)
    source = IMPORTS[settings.command.removeprefix("from-")].open(settings)
    with interruption.deferring():
        report = import_records(
            source,
            prefix,
            shuffle=(settings.seed or 0) if settings.shuffle else None,
            strict=settings.strict,
            cancelled=interruption.requested,
        )
    for note in source.notes():
        _tell(note)
    if report.skipped:
        say_skipped("recordio", prefix, report.skipped)
    rate = report.records / max(report.seconds, 1e-9)
    _tell(
        f"wrote {report.path}: {report.records} records, {report.bytes_written / 1e6:.1f} MB, in "
        f"{report.seconds:.1f} s ({rate:.0f} records/s)"
    )
    return int(bool(report.skipped) and not settings.skip_errors)


def _export(settings: argparse.Namespace, interruption: Interruption) -> int:
    pack = RecordPack(settings.pack, cancelled=interruption.requested)
    with interruption.deferring():
        report = export_records(pack, settings.target, EXPORTS[settings.to], settings)
    if report.left_out:
        _tell(f"note: {report.left_out} records only list identities and were left out")
    written = ", ".join(report.paths)
    if len(report.paths) > MOST_NAMED:
        written = f"{len(report.paths)} files, {report.paths[0]} to {report.paths[-1]}"
    _tell(f"wrote {written}: {report.records} records in {report.seconds:.1f} s")
    return 0


def _info(settings: argparse.Namespace, interruption: Interruption) -> int:
    info = collect_info(settings.pack)
    _print(json.dumps(info.as_dict(), indent=2) if settings.json else format_info(info))
    return int(not info.ok)


def _head(settings: argparse.Namespace, interruption: Interruption) -> int:
    for line in head_lines(settings.pack, settings.n):
        _print(line)
    return 0


def _cat(settings: argparse.Namespace, interruption: Interruption) -> int:
    words = (settings.pack, settings.keys, settings.position, settings.raw)
    if settings.output is None:
        write_records(*words, sys.stdout.buffer)
        return 0
    with interruption.deferring():
        paths = save_records(*words, settings.output, settings.force)
    for path in paths:
        _tell(f"wrote {path}")
    return 0


def _check(settings: argparse.Namespace, interruption: Interruption) -> int:
    pack, index = _files_of(settings.pack)
    beside = checksums_path(pack)
    checksums = beside if os.path.isfile(beside) else None
    if settings.write_checksums:
        check_outputs([beside], settings.force)
        report = write_checksums(pack, index)
        _tell(f"wrote {beside}: {report.records} checksums")
    elif settings.repair is None:
        report = verify(pack, index, checksums)
    else:
        prefix = pack_prefix(settings.repair)
        outputs = [f"{prefix}.rec", f"{prefix}.idx"]
        if checksums is not None:
            outputs.append(f"{prefix}.crc")
        check_outputs(outputs, settings.force)
        report = repair(pack, outputs[0], index, outputs[1], checksums)
        _tell(f"wrote {outputs[0]}: {report.records} records")
    if settings.decode:
        from .decode_check import check_contents, warnings_are_noticed  # slow to load

        if not warnings_are_noticed():
            _tell("note: built without libjpeg-turbo: warnings of the JPEG decoder go unnoticed")
        check_contents(
            report,
            max_pixels=settings.max_pixels or DEFAULT_MAX_PIXELS,
            threads=settings.threads or default_threads(),
            cancelled=interruption.requested,
        )
    _print(str(report))
    return int(not report.ok)


def _optimize(settings: argparse.Namespace, interruption: Interruption) -> int:
    from .optimize import optimize_records  # slow to load

    pack, index = _files_of(settings.pack)
    prefix = pack_prefix(settings.prefix)
    check_outputs((f"{prefix}.rec", f"{prefix}.idx"), settings.force)
    with interruption.deferring():
        report = optimize_records(
            pack,
            prefix,
            index,
            settings.restart,
            threads=settings.threads or default_threads(),
            cancelled=interruption.requested,
        )
    rate = report.records / max(report.seconds, 1e-9)
    _tell(
        f"wrote {report.path}: {report.records} records, {report.bytes_written / 1e6:.1f} MB, in "
        f"{report.seconds:.1f} s ({rate:.0f} records/s)"
    )
    for line in report.tally.lines():
        _tell(line)
    return 0


def _index(settings: argparse.Namespace, interruption: Interruption) -> int:
    pack, _ = _files_of(settings.pack)
    index = f"{pack_prefix(pack)}.idx"
    check_outputs([index], settings.force)
    _tell(f"wrote {index}: {build_index(pack, index, settings.keys)} records")
    return 0


def _files_of(name: str) -> tuple[str, str | None]:
    """The record file that a name stands for, and its index if there is one."""
    path = name if name.endswith(".rec") or os.path.isfile(name) else f"{name}.rec"
    if not os.path.isfile(path):
        raise RecordIOError("there is no such file", path=path)
    index = f"{pack_prefix(path)}.idx"
    return path, index if os.path.isfile(index) else None


def _print(text: str) -> None:
    print(printable(text, sys.stdout))


if __name__ == "__main__":
    sys.exit(main())
