"""The command line of ``recordio``: its sub-commands and their options.

Nothing is read or written here; formats bring options of their own, from `convert`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from .completion import add_completion
from .console import Parser, add_version
from .convert.format import Import
from .convert.registry import EXPORTS, IMPORTS
from .convert.shards import add_shard_options
from .material.registry import PACK_COMMANDS
from .outputs import local_path, path_or_url, url

__all__ = ["build_parser"]

DESCRIPTION = """\
Make record files (PREFIX.rec, PREFIX.idx) of other formats, look into them, and turn them back.
"""
EPILOG = """\
examples:
  recordio from-csv table.csv data/table --label-columns 0
  recordio from-imagefolder photos data/photos --shuffle
  recordio from-coco instances_train2017.json train2017 data/coco
  recordio from-webdataset 'train-{000..009}.tar' data/train
  recordio info data/photos
  recordio head data/photos -n 5
  recordio cat data/photos 3 > 3.jpg
  recordio check data/photos --decode
  recordio fetch s3://bucket/train.rec
  recordio view data/photos
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
PACK_HELP = (
    "the record file or its URL, or its name without .rec; PREFIX.idx is used if it is there"
)
CHECK_HELP = "the record file or its URL, or its name without .rec; with PREFIX.idx and PREFIX.crc"


def build_parser(target: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all sub-commands; ``export`` has the options of one format."""
    parser = Parser(
        prog="recordio",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_version(parser)
    add_completion(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def add(name: str, summary: str, description: str = "") -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=summary,
            description=description or f"{summary[0].upper()}{summary[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    for source in IMPORTS.values():
        _add_import(add(f"from-{source.name}", source.summary, source.description), source)
    _add_inspection(add)
    for command in PACK_COMMANDS.values():
        command.add_options(add(command.name, command.summary, command.description))
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
    info = add("info", "count and measure what is in a record file, and look for damage")
    info.add_argument("pack", metavar="PACK", type=path_or_url, help=PACK_HELP)
    info.add_argument("--json", action="store_true", help="print one JSON object")

    head = add("head", "show the first records as a table")
    head.add_argument("pack", metavar="PACK", type=path_or_url, help=PACK_HELP)
    head.add_argument(
        "-n", type=_natural, default=10, metavar="N", help="how many records (default: 10)"
    )

    cat = add("cat", "write what is in records to standard output or to files")
    cat.add_argument("pack", metavar="PACK", type=path_or_url, help=PACK_HELP)
    cat.add_argument("keys", metavar="KEY", type=int, nargs="+", help="keys of the records")
    cat.add_argument(
        "--position",
        action="store_true",
        help="the numbers are positions, from 0; from the end with a minus, after --",
    )
    cat.add_argument(
        "--raw",
        action="store_true",
        help="whole records, with their image headers if they have one",
    )
    cat.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        help="write a file for each record; - for standard output, a terminal too",
    )
    cat.add_argument("--force", action="store_true", help="replace existing files")

    check = add("check", "look for damage in a record file and its index, and repair it")
    check.add_argument("pack", metavar="PACK", type=path_or_url, help=CHECK_HELP)
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
        help="write PREFIX.crc, a checksum of every record, if no damage is found",
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
    check.add_argument("--json", action="store_true", help="print one JSON object")
    check.add_argument("--force", action="store_true", help="replace existing files")

    _add_optimize(add)

    _add_view(add)

    index = add("index", "write the index of a record file")
    index.add_argument(
        "pack",
        metavar="PACK",
        type=path_or_url,
        help="the record file, or its name without .rec; beside a URL the index is uploaded",
    )
    index.add_argument(
        "--keys",
        choices=["position", "id"],
        default="position",
        help="position: 0, 1, 2, ...; id: the id in each image header, which is what im2rec writes "
        "(default: position)",
    )
    index.add_argument("--force", action="store_true", help="replace an existing index")

    fetch = add(
        "fetch",
        "fetch files from a server into the local cache",
        "Fill the local copies of files on servers, as readers and providers use them.  They are\n"
        "in the folder that RECORDIO_REMOTE_CACHE names, by default ~/.cache/recordio/remote.",
    )
    fetch.add_argument(
        "urls", metavar="URL", type=url, nargs="+", help="s3://, gs://, https://, ..."
    )


def _add_view(add: Callable[..., argparse.ArgumentParser]) -> None:
    view = add(
        "view",
        "look at packs in a browser, and at what training sees of them",
        "Show packs in a browser: thumbnails, classes, sizes, damage, and the batches that the\n"
        "image iterators make of them.  Only this machine can open the page, with the address\n"
        "that is printed.  Nothing is written, and Ctrl-C ends it.",
    )
    view.add_argument("packs", metavar="PACK", type=local_path, nargs="+", help=PACK_HELP)
    view.add_argument(
        "--port", type=_port, default=0, metavar="N", help="of 127.0.0.1 (default: any free one)"
    )
    view.add_argument("--no-browser", action="store_true", help="only print the address")
    view.add_argument(
        "--threads",
        type=_threads,
        metavar="N",
        help="images that are decoded at a time (default: as many as there are cores)",
    )


def _add_optimize(add: Callable[..., argparse.ArgumentParser]) -> None:
    optimize = add(
        "optimize",
        "rewrite the JPEG images of a record file without loss, to be decoded faster",
        "Copy a record file with its JPEG images rewritten without loss: not progressive, and\n"
        "with restart markers, so that a part of an image is decoded without the rest.  Pixels,\n"
        "labels, ids, keys and order stay the same; what is no JPEG image, or cannot be\n"
        "rewritten, is copied as it is.",
    )
    optimize.add_argument("pack", metavar="PACK", type=path_or_url, help=PACK_HELP)
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
        f"Turn the records of a pack into files of another format:\n\n{formats}\n\n"
        "`recordio export --to FORMAT --help` shows the options of a format.",
    )
    export.add_argument("pack", metavar="PACK", type=path_or_url, help=PACK_HELP)
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


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of a port")
    return int(text)


def _restart(text: str) -> int | str:
    if text == "auto":
        return text
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is neither auto nor a number up to 65535")
    return int(text)
