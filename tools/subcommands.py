"""The command line of ``recordio``: the table of its sub-commands.

Those that convert are here, with the options that all formats have; a format brings its own, from
`convert`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from recordio.packs.names import pack_prefix

from .bench import BENCH
from .command import Command, add, wrong_of
from .completion import add_completion
from .console import Interruption, Parser, add_version, say
from .convert.exporting import export_records
from .convert.format import Import
from .convert.importing import convert
from .convert.registry import EXPORTS, IMPORTS
from .convert.shards import add_shard_options
from .file_commands import FILE_COMMANDS
from .operations.table import PACK_COMMANDS
from .outputs import local_path
from .pack_command import PACK_SOURCE, naming_skipped, refusing, say_report
from .record_pack import RecordPack

MOST_NAMED = 4  # files in a message
DESCRIPTION = """Convert other formats to record files (PREFIX.rec, PREFIX.idx) and back, and
inspect record files."""
EPILOG = """\
examples:
  recordio from-csv table.csv data/table --label-columns 0
  recordio from-imagefolder photos data/photos --shuffle
  recordio from-coco instances_train2017.json train2017 data/coco
  recordio from-webdataset 'train-{000..009}.tar' data/train
  recordio pack 'train-{000..009}.tar' data/train --resize 256
  recordio info data/photos
  recordio head data/photos -n 5
  recordio cat data/photos 3 > 3.jpg
  recordio check data/photos --decode
  recordio fetch s3://bucket/train.rec
  recordio view data/photos
  recordio bench data/photos --data-shape 3,224,224 --batch-size 64 --rand-crop
  recordio optimize data/photos data/photos-optimized
  recordio join data/photos data/more data/both --labels append
  recordio split data/photos data/train=0.8 data/val=0.2 --stratified
  recordio filter data/photos data/large --where 'width >= 512 and label != 3'
  recordio shuffle data/photos data/mixed --seed 1
  recordio shard data/photos shards 16
  recordio stats data/photos --mean-std
  recordio dedup data/photos --near --remove data/unique
  recordio export data/photos again
  recordio export data/table table.csv --to csv

exit codes:
  0         everything was done
  1         something was skipped or is damaged, or nothing could be written
  2         wrong arguments
  130, 143  interrupted by Ctrl-C or SIGTERM; nothing half-written is left
"""


def commands(target: str | None = None) -> dict[str, Command]:
    """Return all sub-commands, in the order of the help; ``export`` has the options of a format."""
    all_of_them = [
        *(
            Command(
                f"from-{source.name}",
                source.summary,
                source.description,
                _import_options(source),
                _import,
                _wrong_of_import(source),
            )
            for source in IMPORTS.values()
        ),
        PACK_SOURCE,
        *FILE_COMMANDS,
        BENCH,
        *PACK_COMMANDS.values(),
        _export_command(target if target in EXPORTS else next(iter(EXPORTS))),
    ]
    return {command.name: command for command in all_of_them}


def build_parser(target: str | None = None, asked: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all sub-commands; ``export`` has the options of one format.

    If it is known which command is `asked` for, that one alone has its options.
    """
    parser = Parser(
        prog="recordio",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_version(parser)
    add_completion(parser)
    parsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in commands(target).items():
        summary = command.summary
        added = parsers.add_parser(
            name,
            help=summary,
            description=command.description or f"{summary[0].upper()}{summary[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        if asked in (None, name):
            command.add_options(added)
    return parser


def _import_options(source: Import) -> Callable[[argparse.ArgumentParser], None]:
    def add_options(command: argparse.ArgumentParser) -> None:
        for name, text, several in source.sources:
            nargs = "+" if several else None
            command.add_argument(name, metavar=name.upper(), help=text, nargs=nargs)
        add(command, "out")
        source.add_options(command)
        output = command.add_argument_group("output")
        output.add_argument(
            "--shuffle", action="store_true", help="put the records in random order"
        )
        output.add_argument(
            "--seed",
            type=int,
            metavar="N",
            help="with --shuffle: another random order (default: 0)",
        )
        add(output, "force")
        errors = output.add_mutually_exclusive_group()
        add(
            errors,
            "skip_errors",
            help="exit with 0 even if items were skipped; PREFIX.skipped.txt names them",
        )
        errors.add_argument(
            "--strict", action="store_true", help="stop at the first bad item and write nothing"
        )

    return add_options


def _wrong_of_import(source: Import) -> Callable[[argparse.Namespace], str]:
    def wrong(settings: argparse.Namespace) -> str:
        if settings.seed is not None and not settings.shuffle:
            return "argument --seed: it needs --shuffle"
        return wrong_of(source.options, settings)

    return wrong


def _import(settings: argparse.Namespace, interruption: Interruption) -> int:
    prefix = pack_prefix(settings.out)
    with interruption.deferring(), naming_skipped(prefix, settings.strict):
        report = convert(
            IMPORTS[settings.command.removeprefix("from-")],
            settings,
            prefix,
            check=refusing(settings.force),
            cancelled=interruption.requested,
        )
    return say_report(report, prefix, settings.skip_errors)


def _export(settings: argparse.Namespace, interruption: Interruption) -> int:
    pack = RecordPack(settings.path, cancelled=interruption.requested)
    pack.skip_errors = settings.skip_errors
    with interruption.deferring():
        report = export_records(pack, settings.target, EXPORTS[settings.to], settings)
    if report.left_out:
        say("recordio", f"note: {report.left_out} records only list identities and were left out")
    for line in report.notes:
        say("recordio", f"note: {line}")
    for problem in report.problems[:MOST_NAMED]:
        say("recordio", f"left out: {problem}")
    if len(report.problems) > MOST_NAMED:
        say("recordio", f"left out: {len(report.problems) - MOST_NAMED} more records")
    for name, count in report.fields.items():
        none = f"; {report.records - count} records have none" if count < report.records else ""
        say("recordio", f"field {name}: {count} records{none}")
    if report.fields_left_out:
        names = ", ".join(report.fields_left_out)
        say("recordio", f"note: fields are not written: {names}")
    written = ", ".join(report.paths)
    if len(report.paths) > MOST_NAMED:
        written = f"{len(report.paths)} files, {report.paths[0]} to {report.paths[-1]}"
    say("recordio", f"wrote {written}: {report.records} records in {report.seconds:.1f} s")
    return 0


def _export_command(target: str) -> Command:
    """Make the command with the options of one format."""

    def add_options(parser: argparse.ArgumentParser) -> None:
        add(parser, "path")
        parser.add_argument(
            "target", metavar="TARGET", type=local_path, help="what to write, see above"
        )
        parser.add_argument(
            "--to",
            choices=list(EXPORTS),
            default=next(iter(EXPORTS)),
            metavar="FORMAT",
            help="the format (default: %(default)s)",
        )
        add(parser, "force", help="replace existing files, not folders")
        add(
            parser,
            "skip_errors",
            help="leave out records that cannot be read or stored, and count them (default: stop)",
        )
        chosen = EXPORTS[target]
        options = parser.add_argument_group(f"--to {target}")
        if chosen.outputs("TARGET"):
            add_shard_options(options)
        chosen.add_options(options)

    formats = "\n".join(f"  {name:<11} {export.summary}" for name, export in EXPORTS.items())
    return Command(
        "export",
        "turn records back into folders of images, tables, arrays, ...",
        f"Turn the records of a pack into files of another format:\n\n{formats}\n\n"
        "`recordio export --to FORMAT --help` shows the options of a format.",
        add_options,
        _export,
    )
