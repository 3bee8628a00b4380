"""Commands about one record file: looked into, checked, indexed, fetched, rewritten and shown."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import sys

import numpy as np

from recordio import build_index, repair, write_checksums
from recordio.bytes.files import StoredFile
from recordio.bytes.remote.folder import open_mirror
from recordio.errors import RecordIOError
from recordio.extras import need
from recordio.formats.image_header import DEFAULT_MAX_PIXELS
from recordio.frames.checksums import checksums_path
from recordio.frames.companions import pack_paths
from recordio.ordered import default_threads
from recordio.packs.check import check_pack
from recordio.packs.field_files import field_names
from recordio.packs.names import container_files, pack_files, pack_prefix, plain_files
from recordio.packs.open_pack import open_pack
from recordio.packs.sizes import write_sizes
from recordio.verification import is_verification_set

from .command import ARGUMENTS, Command, add, natural, show
from .console import UNNOTICED, Interruption, progress_bar, say, say_written
from .info import collect_info, format_info
from .outputs import check_outputs, local_path, url
from .pairs_info import PairsInfo, collect_pairs, format_pairs
from .show import head_lines, save_records, write_records


def _tell(text: str) -> None:
    say("recordio", text)


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


def _add_info(parser: argparse.ArgumentParser) -> None:
    add(parser, "path")
    add(parser, "json")


def _info(settings: argparse.Namespace, interruption: Interruption) -> int:
    collect = collect_pairs if is_verification_set(settings.path) else collect_info
    info = collect(settings.path)
    text = format_pairs(info) if isinstance(info, PairsInfo) else format_info(info)
    show(info.as_dict() if settings.json else text)
    return int(not info.ok)


def _add_head(parser: argparse.ArgumentParser) -> None:
    add(parser, "path")
    parser.add_argument(
        "-n", type=natural, default=10, metavar="N", help="how many records (default: 10)"
    )


def _head(settings: argparse.Namespace, interruption: Interruption) -> int:
    for line in head_lines(settings.path, settings.n):
        show(line)
    return 0


def _add_cat(parser: argparse.ArgumentParser) -> None:
    add(parser, "path")
    parser.add_argument("keys", metavar="KEY", type=int, nargs="+", help="keys of the records")
    parser.add_argument(
        "--position",
        action="store_true",
        help="the numbers are positions, counted from 0, or from the end with a minus, after --",
    )
    parser.add_argument(
        "--raw",
        action="store_true",
        help="whole records, with their image headers if they have one",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        help="write a file for each record; - is standard output, even if that is a terminal",
    )
    add(parser, "force")


def _cat(settings: argparse.Namespace, interruption: Interruption) -> int:
    words = (settings.path, settings.keys, settings.position, settings.raw)
    if settings.output in (None, "-"):
        write_records(*words, sys.stdout.buffer, force=settings.output == "-")
        return 0
    with interruption.deferring():
        paths = save_records(*words, settings.output, settings.force)
    for path in paths:
        _tell(f"wrote {path}")
    return 0


def _add_check(parser: argparse.ArgumentParser) -> None:
    add(
        parser,
        "path",
        help="the record file or its URL, or its name without .rec; with PREFIX.idx and PREFIX.crc",
    )
    task = parser.add_mutually_exclusive_group()
    task.add_argument(
        "--repair",
        metavar="PREFIX",
        type=local_path,
        help="""copy all intact records, with their keys, to PREFIX.rec and PREFIX.idx, and the
        list, the names of classes and the fields; if there are checksums, those that match them""",
    )
    task.add_argument(
        "--write-checksums",
        action="store_true",
        help="write PREFIX.crc, a checksum of every record, if no damage is found",
    )
    task.add_argument(
        "--decode",
        action="store_true",
        help="""also decode every image, and count warnings of the decoder as damage: the record
        format has no checksums, and most damaged JPEG images can still be decoded""",
    )
    add(
        parser,
        "max_pixels",
        help="with --decode: do not decode images with more pixels (default: 2**26)",
    )
    add(parser, "threads", help="with --decode: number of threads (default: all cores)")
    add(parser, "json")
    add(parser, "force")


def _wrong_of_check(settings: argparse.Namespace) -> str:
    options = {"--max-pixels": "max_pixels" in settings, "--threads": settings.threads is not None}
    wrong = [name for name, is_set in options.items() if is_set and not settings.decode]
    return f"argument {wrong[0]}: it needs --decode" if wrong else ""


def _check(settings: argparse.Namespace, interruption: Interruption) -> int:
    opened = open_pack(settings.path, skip_errors=True)
    if opened.container is not None and (settings.write_checksums or settings.repair):
        plain_files(settings.path)
    pack, checksums = opened.file.name, opened.checksums_path
    index = None if opened.index is None else opened.index.name
    if settings.write_checksums:
        beside = checksums_path(pack)
        check_outputs([beside], settings.force)
        report = write_checksums(pack, index)
        _tell(f"wrote {beside}: {report.records} checksums")
    elif settings.repair is None:
        report = check_pack(opened, checksums)
    else:
        prefix = pack_prefix(settings.repair)
        outputs = pack_paths(prefix, opened.field_names)
        sums = [checksums_path(outputs[0])] * (checksums is not None)
        check_outputs(outputs + sums, settings.force)
        report = repair(pack, outputs[0], index, outputs[1], checksums)
        _tell(f"wrote {outputs[0]}: {report.records} records")
    if settings.decode:
        from .decode_check import check_contents  # slow to load
        from .images import warnings_are_noticed

        if not warnings_are_noticed():
            _tell(f"note: {UNNOTICED}")
        check_contents(
            report,
            opened,
            max_pixels=getattr(settings, "max_pixels", DEFAULT_MAX_PIXELS),
            threads=settings.threads or default_threads(),
            cancelled=interruption.requested,
        )
    facts = {"ok": report.ok, **dataclasses.asdict(report)}
    show(facts if settings.json else str(report))
    return int(not report.ok)


def _add_optimize(parser: argparse.ArgumentParser) -> None:
    add(parser, "path")
    add(parser, "out")
    parser.add_argument(
        "--restart",
        type=_restart,
        default="auto",
        metavar="N",
        help="""MCUs (mostly 16 x 16 pixels) between restart markers; 0: no markers (default: auto,
        by the size of the image; no markers in small images)""",
    )
    add(parser, "threads")
    add(parser, "force")


def _optimize(settings: argparse.Namespace, interruption: Interruption) -> int:
    from .optimize import optimize_records  # slow to load

    pack, index = plain_files(settings.path)
    prefix = pack_prefix(settings.out)
    check_outputs(pack_paths(prefix, field_names(StoredFile(pack))), settings.force)
    with interruption.deferring():
        report = optimize_records(
            pack,
            prefix,
            index,
            settings.restart,
            threads=settings.threads or default_threads(),
            cancelled=interruption.requested,
        )
    say_written(report.path, report.records, report.bytes_written, report.seconds)
    for line in report.tally.lines():
        _tell(line)
    return 0


def _add_index(parser: argparse.ArgumentParser) -> None:
    add(
        parser,
        "path",
        help="the record file, or its name without .rec; beside a URL the index is uploaded",
    )
    parser.add_argument(
        "--keys",
        choices=["position", "id"],
        default="position",
        help="""position: 0, 1, 2, ...; id: the id in each image header, as im2rec writes them
        (default: position)""",
    )
    parser.add_argument(
        "--sizes",
        action="store_true",
        help="""also write width and height of every image, PREFIX.sizes; an existing index is
        kept, and a container needs none""",
    )
    add(parser, "force", help="replace an existing index")


def _index(settings: argparse.Namespace, interruption: Interruption) -> int:
    contained = settings.sizes and container_files(settings.path)
    if not contained and (settings.force or not settings.sizes or not pack_files(settings.path)[1]):
        _write_index(settings)
    if not settings.sizes:
        return 0
    with (
        interruption.deferring(),
        open_pack(settings.path) as pack,
        progress_bar(len(pack.all_offsets), os.path.basename(pack.path), "records") as advance,
    ):
        for file in pack.sized_files():
            name, sizes = write_sizes(file, advance, interruption.requested)
            _tell(f"wrote {name}: sizes of {np.count_nonzero(sizes.min(1))} images")
    return 0


def _write_index(settings: argparse.Namespace) -> None:
    pack, _ = plain_files(settings.path)
    beside = StoredFile(pack).beside(".idx")
    index = beside.name
    if beside.is_local:
        check_outputs([index], settings.force)
    elif beside.exists() and not settings.force:
        raise RecordIOError("exists already; --force replaces it", path=index)
    _tell(f"wrote {index}: {build_index(pack, index, settings.keys)} records")


def _add_fetch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "urls", metavar="URL", type=url, nargs="+", help="s3://, gs://, https://, ..."
    )


def _fetch(settings: argparse.Namespace, interruption: Interruption) -> int:
    for address in settings.urls:
        mirror = open_mirror(address)
        with progress_bar(mirror.size, os.path.basename(address), "B") as advance:
            mirror.fetch_all(advance)
        _tell(f"{mirror.url}: {mirror.size / 1e6:.1f} MB are at {mirror.path}")
    return 0


def _add_view(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("packs", **{**ARGUMENTS["path"], "type": local_path}, nargs="+")
    parser.add_argument(
        "--port",
        type=_port,
        default=0,
        metavar="N",
        help="port of 127.0.0.1 (default: any free port)",
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.add_argument(
        "--processor",
        type=local_path,
        metavar="FILE",
        help="preprocessor_config.json of a vision-language model, whose tiles and patches the "
        "page of an image shows",
    )
    add(
        parser,
        "threads",
        help="number of images that are decoded at the same time (default: the number of cores)",
    )


def _view(settings: argparse.Namespace, interruption: Interruption) -> int:
    for module in ("jinja2", "starlette", "uvicorn"):
        need(module, "recordio view")
    from iterators.images.augment.pipelines.parts import PipelineError
    from iterators.images.augment.pipelines.processor_families import FAMILIES, rule_of

    from .view.server import serve  # slow to load

    rule = None if settings.processor is None else rule_of(settings.processor)
    if settings.processor is not None and rule is None:
        raise PipelineError(
            f"is none of a vision-language model that is known here ({', '.join(FAMILIES)})",
            settings.processor,
        )
    with contextlib.suppress(KeyboardInterrupt):  # how it ends
        serve(
            settings.packs,
            settings.port,
            settings.threads,
            not settings.no_browser,
            lambda address: print(address, flush=True),
            rule,
        )
    return 0


FILE_COMMANDS = [
    Command(
        "info",
        "count and measure the contents of a record file, and look for damage",
        "",
        _add_info,
        _info,
    ),
    Command("head", "show the first records as a table", "", _add_head, _head),
    Command(
        "cat",
        "write the contents of records to standard output or to files",
        "",
        _add_cat,
        _cat,
    ),
    Command(
        "check",
        "look for damage in a record file and its index, and repair it",
        "",
        _add_check,
        _check,
        _wrong_of_check,
    ),
    Command(
        "optimize",
        "rewrite the JPEG images of a record file without loss, to be decoded faster",
        """Copy a record file with its JPEG images rewritten without loss: not progressive, and
        with restart markers, so that a part of an image can be decoded without the rest. Pixels,
        labels, ids, keys and order stay the same; records that are not JPEG images, or cannot be
        rewritten, are copied unchanged.""",
        _add_optimize,
        _optimize,
    ),
    Command(
        "view",
        "look at packs in a browser, and at the batches that training makes of them",
        "Show packs in a browser: thumbnails, classes, sizes, damage, and the batches that the\n"
        "image iterators make of them.  Only this machine can open the page, with the address\n"
        "that is printed.  Nothing is written, and Ctrl-C ends it.",
        _add_view,
        _view,
    ),
    Command("index", "write the index of a record file", "", _add_index, _index),
    Command(
        "fetch",
        "fetch files from a server into the local cache",
        """Fill the local copies of files on servers that readers and providers use. They are in
        the folder that RECORDIO_REMOTE_CACHE names, by default ~/.cache/recordio/remote.""",
        _add_fetch,
        _fetch,
    ),
]
