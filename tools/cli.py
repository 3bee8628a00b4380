"""Console command ``recordio``: its sub-commands, which run by the options given.

The options are in `subcommands` and `convert`, and so are the formats; the rest of the work is done
in `info`, `show` and the library.
"""

from __future__ import annotations

if not __package__:
    import checkout

    checkout.run("cli")

import argparse
import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Callable, Sequence

from recordio import build_index, repair, verify, write_checksums
from recordio.bytes.files import StoredFile
from recordio.bytes.remote.folder import open_mirror
from recordio.errors import RecordIOError
from recordio.extras import need
from recordio.formats.image_size import DEFAULT_MAX_PIXELS
from recordio.frames.checksums import checksums_path
from recordio.ordered import default_threads
from recordio.packs.names import pack_files, pack_prefix

from .console import (
    UNNOTICED,
    Interruption,
    printable,
    progress_bar,
    run_command,
    say,
    say_skipped,
)
from .convert.exporting import export_records
from .convert.importing import companions, import_records
from .convert.registry import EXPORTS, IMPORTS
from .info import collect_info, format_info
from .material.registry import PACK_COMMANDS
from .outputs import check_outputs
from .record_pack import RecordPack
from .show import head_lines, save_records, write_records
from .subcommands import build_parser

__all__ = ["build_parser", "main"]

MOST_NAMED = 4  # files in a message


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 1 if anything was skipped, is damaged or failed."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # The format decides which options there are.
    scout = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    scout.add_argument("--to", nargs="?")
    parser = build_parser(scout.parse_known_args(words)[0].to)
    settings = parser.parse_args(words)
    if getattr(settings, "seed", None) is not None and not getattr(settings, "shuffle", True):
        parser.error("argument --seed: it needs --shuffle")
    if settings.command == "check" and not settings.decode:
        for name in ("max_pixels", "threads"):
            if getattr(settings, name) is not None:
                parser.error(f"argument --{name.replace('_', '-')}: it needs --decode")
    action = ACTIONS.get(settings.command, _import)
    if (command := PACK_COMMANDS.get(settings.command)) is not None:
        action = command.run
        if wrong := command.check(settings):
            parser.error(wrong)
    return run_command("recordio", lambda interruption: action(settings, interruption))


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
    if left_out := report.not_stored():
        _tell(f"note: {left_out}")
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
    if settings.output in (None, "-"):
        write_records(*words, sys.stdout.buffer, force=settings.output == "-")
        return 0
    with interruption.deferring():
        paths = save_records(*words, settings.output, settings.force)
    for path in paths:
        _tell(f"wrote {path}")
    return 0


def _check(settings: argparse.Namespace, interruption: Interruption) -> int:
    pack, index = pack_files(settings.pack)
    beside = checksums_path(pack)
    checksums = beside if StoredFile.at(beside).exists() else None
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
        from .decode_check import check_contents  # slow to load
        from .images import warnings_are_noticed

        if not warnings_are_noticed():
            _tell(f"note: {UNNOTICED}")
        check_contents(
            report,
            max_pixels=settings.max_pixels or DEFAULT_MAX_PIXELS,
            threads=settings.threads or default_threads(),
            cancelled=interruption.requested,
        )
    found = {"ok": report.ok, **dataclasses.asdict(report)}
    _print(json.dumps(found, indent=2) if settings.json else str(report))
    return int(not report.ok)


def _optimize(settings: argparse.Namespace, interruption: Interruption) -> int:
    from .optimize import optimize_records  # slow to load

    pack, index = pack_files(settings.pack)
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
    pack, _ = pack_files(settings.pack)
    beside = StoredFile(pack).beside(".idx")
    index = beside.name
    if beside.is_local:
        check_outputs([index], settings.force)
    elif beside.exists() and not settings.force:
        raise RecordIOError("exists already; --force replaces it", path=index)
    _tell(f"wrote {index}: {build_index(pack, index, settings.keys)} records")
    return 0


def _fetch(settings: argparse.Namespace, interruption: Interruption) -> int:
    for url in settings.urls:
        mirror = open_mirror(url)
        name = os.path.basename(url)
        with progress_bar(mirror.size, name, "B") as advance:
            mirror.fetch_all(advance)
        _tell(f"{mirror.url}: {mirror.size / 1e6:.1f} MB are at {mirror.path}")
    return 0


def _view(settings: argparse.Namespace, interruption: Interruption) -> int:
    for module in ("jinja2", "starlette", "uvicorn"):
        need(module, "recordio view")
    from .view.server import serve  # slow to load

    with contextlib.suppress(KeyboardInterrupt):  # how it ends
        serve(
            settings.packs,
            settings.port,
            settings.threads,
            not settings.no_browser,
            lambda address: print(address, flush=True),
        )
    return 0


def _print(text: str) -> None:
    print(printable(text, sys.stdout))


#: Functions of the sub-commands besides ``from-FORMAT``.
ACTIONS: dict[str, Callable[[argparse.Namespace, Interruption], int]] = {
    "info": _info,
    "head": _head,
    "cat": _cat,
    "check": _check,
    "optimize": _optimize,
    "view": _view,
    "index": _index,
    "fetch": _fetch,
    "export": _export,
}


if __name__ == "__main__":
    sys.exit(main())
