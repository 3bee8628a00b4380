"""Console command ``im2rec``: make image lists, and pack images into record files.

This is the command line alone; the work is done in `image_list` and `pack`, which can be imported.
"""

from __future__ import annotations

if not __package__:
    import checkout

    checkout.run("im2rec")

import argparse
import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from recordio.bytes.remote.objects import list_urls
from recordio.bytes.remote.settings import RemoteSettings, is_url
from recordio.errors import RecordIOError
from recordio.frames.companions import CLASSES, INDEX, LIST, RECORDS
from recordio.list_files import ListEntry

from .arguments import LIST_OPTIONS, PACK_OPTIONS, given_options, parse_arguments
from .console import UNNOTICED, Interruption, printable, run_command, say, say_skipped
from .im2rec_options import IMAGE_OPTIONS, EncodeOptions, encode_options, note_on_bits
from .image_list import (
    ImageList,
    read_list,
    shuffle_entries,
    split_entries,
    write_classes,
    write_list,
    write_skipped,
)
from .scan import describe_left_out, scan_images

if TYPE_CHECKING:
    from .pack import PackingReport

#: The path of a list and what is, or will be, in it.
NamedList: TypeAlias = tuple[str, ImageList]

#: Suffixes of the files that a PREFIX stands for.
PACK_SUFFIXES = (RECORDS.ending, INDEX.ending, LIST.ending)
SHOWN_PATHS = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 1 if images were skipped, or after a failure."""
    settings = parse_arguments(sys.argv[1:] if arguments is None else arguments)

    def action(interruption: Interruption) -> int:
        _check_root(settings)
        _settle_prefix(settings)
        return _make_lists(settings) if settings.list else _pack(settings, interruption)

    return run_command("im2rec", action)


def _check_root(settings: argparse.Namespace) -> None:
    if not os.path.isdir(settings.root):
        what = "is not a folder" if os.path.exists(settings.root) else "does not exist"
        if os.path.isdir(settings.prefix):
            what += "; PREFIX, which stands before it, is one"
        raise RecordIOError(f"ROOT, the folder with the images, {what}", path=settings.root)


def _settle_prefix(settings: argparse.Namespace) -> None:
    """Decide whether PREFIX is a folder, and drop the suffix of a file from it.

    MXNet's tool packs lists whose names begin with the suffix, too, and so does this one.
    """
    prefix = settings.prefix
    settings.folder = settings.slash if is_url(prefix) else os.path.isdir(prefix)
    stem, suffix = os.path.splitext(prefix)
    if settings.folder or suffix not in PACK_SUFFIXES:
        return
    if settings.list or not find_lists(prefix):
        settings.prefix = stem
        say("im2rec", f"note: PREFIX is a name without suffix: {stem} is taken for {prefix}")


def _note_without_effect(settings: argparse.Namespace, names: Sequence[str], why: str) -> None:
    options = given_options(settings, names)
    if options:
        say("im2rec", f"note: no effect of {', '.join(options)}: {why}")


def _scan(settings: argparse.Namespace, recursive: bool) -> ImageList:
    images = scan_images(settings.root, recursive, settings.exts)
    left_out = describe_left_out(images.left_out, settings.exts)
    if not images.entries:
        hint = f"no file in it ends with {', '.join(settings.exts)}"
        if not recursive and scan_images(settings.root, True, settings.exts).entries:
            hint = "the images are in sub-folders: add --recursive"
        else:
            hint = "; ".join([hint, *[left_out] * bool(left_out), *images.notes.lines()])
        raise RecordIOError(f"no images found; {hint}", path=settings.root)
    for line in [*[left_out] * bool(left_out), *images.notes.lines()]:
        say("im2rec", f"note: {line}")
    if not is_url(settings.prefix):
        os.makedirs(os.path.dirname(settings.prefix), exist_ok=True)
    return images


def _split(settings: argparse.Namespace, prefix: str, images: ImageList) -> list[NamedList]:
    """Return the lists of a scan with their file names; the first has what the scan skipped."""
    if settings.train_ratio == 1 and settings.test_ratio:
        say("im2rec", "note: no effect of --test-ratio: it needs --train-ratio below 1")
    if settings.train_ratio == 1 and settings.chunks == 1:
        _note_without_effect(settings, ["stratify"], "it needs --train-ratio below 1, or --chunks")
    entries = shuffle_entries(images.entries) if settings.shuffle else images.entries
    parts = split_entries(
        prefix,
        entries,
        settings.chunks,
        settings.train_ratio,
        settings.test_ratio,
        settings.stratify,
    )
    if settings.stratify:
        _note_missing_classes(parts, images)
    lists = [(path, ImageList(list(part))) for path, part in parts]
    lists[0][1].skipped.extend(images.skipped)
    return lists


def _note_missing_classes(
    parts: Sequence[tuple[str, Sequence[ListEntry]]], images: ImageList
) -> None:
    """Name the parts that lack classes: those of one image can be in one part alone."""
    classes = {entry.labels for entry in images.entries}
    for path, entries in parts:
        if missing := classes - {entry.labels for entry in entries}:
            name = images.classes[int(min(missing)[0])]
            say(
                "im2rec",
                f"note: {len(missing)} of {len(classes)} classes have too few images to be in "
                f"{path}; the first is {name}",
            )


def _write_lists(
    prefix: str,
    lists: Sequence[NamedList],
    classes: Sequence[str],
    reports: Mapping[str, PackingReport] = MappingProxyType({}),
) -> None:
    """Write lists and names of classes; the reports of lists that are packed, by their paths."""
    # The lists last: a later run that finds one takes the names for written.
    write_classes(prefix + CLASSES.ending, classes)
    say("im2rec", f"wrote {prefix}.classes.txt: {len(classes)} classes")
    for path, images in lists:
        write_list(path, images.entries)
        # A report begins with what is not in the list.
        bad = reports[path].skipped[len(images.skipped) :] if path in reports else []
        says = f"wrote {path}: {len(images.entries)} images"
        if bad:
            paths = ", ".join(item.path for item in bad[:SHOWN_PATHS])
            more = ", ..." if len(bad) > SHOWN_PATHS else ""
            says += f", of which {len(bad)} could not be packed: {paths}{more}"
        say("im2rec", says)


def _make_lists(settings: argparse.Namespace) -> int:
    """Do ``--list`` and return the exit code."""
    _note_without_effect(settings, PACK_OPTIONS, "with --list nothing is packed")
    images = _scan(settings, bool(settings.recursive))
    if images.skipped and settings.strict:
        path, reason = images.skipped[0]
        raise RecordIOError(reason, path=os.path.join(settings.root, path))
    prefix = _named(settings) if is_url(settings.prefix) else settings.prefix
    lists = _split(settings, prefix, images)
    _write_lists(prefix, lists, images.classes)
    if settings.recursive:  # where scripts written for MXNet's tool look for the labels
        for label, folder in enumerate(images.classes):
            print(printable(folder, sys.stdout), label)
    if images.skipped:
        write_skipped(prefix, images.skipped)
        say_skipped("im2rec", prefix, images.skipped)
    return int(bool(images.skipped) and not settings.skip_errors)


def find_lists(prefix: str, folder: bool | None = None) -> list[str]:
    """Return the lists that an absolute PREFIX stands for, sorted.

    For a folder these are the lists in it, or else the lists that ``--list`` writes beside it; for
    anything else, those whose path starts with it.  A URL stands for the lists in its folder whose
    URL starts with it.
    """
    if is_url(prefix):
        listed = list_urls(f"{prefix.rpartition('/')[0]}/", ".lst", RemoteSettings())
        return [url for url in listed if url.startswith(prefix)]

    def matching(folder: str, *starts: str) -> list[str]:
        paths = (os.path.join(folder, name) for name in sorted(os.listdir(folder)))
        return [
            path
            for path in paths
            if path.endswith(".lst") and path.startswith(starts) and os.path.isfile(path)
        ]

    beside = os.path.dirname(prefix)
    if not os.path.isdir(beside):
        return []
    if not (os.path.isdir(prefix) if folder is None else folder):
        return matching(beside, prefix)
    return matching(prefix, prefix) or matching(beside, f"{prefix}.lst", f"{prefix}_")


def _pack(settings: argparse.Namespace, interruption: Interruption) -> int:
    """Pack the lists, made first where there are none, and return the exit code."""
    if settings.pass_through:
        _note_without_effect(settings, IMAGE_OPTIONS, "--pass-through stores the files as they are")
    classes: list[str] | None = None
    prefix = settings.prefix
    paths = find_lists(prefix, settings.folder)
    if paths:
        say("im2rec", f"packing the images of {', '.join(paths)}; --list makes a list again")
        _note_without_effect(settings, LIST_OPTIONS, "the list exists; --list makes it again")
    if any(value is not None for value in (settings.shards, settings.part, settings.ray)):
        from .im2rec_shards import pack_in_shards

        code = 0 if paths else _list_first(settings)
        paths = find_lists(prefix, settings.folder)
        return max(code, pack_in_shards(settings, paths, interruption))
    if paths:
        lists = [(path, read_list(path)) for path in paths]
    else:
        prefix, lists, classes = _listed(settings)
    if not any(images.entries or images.skipped for _, images in lists):
        raise RecordIOError("the list is empty; --list makes it again", path=lists[0][0])
    if not settings.pack_label:
        _note_dropped_labels(lists)
    # Objects are published so that Ctrl-C may strike at any time, and a server may be slow.
    with contextlib.nullcontext() if is_url(prefix) else interruption.deferring():
        reports, code = _pack_lists(lists, settings, interruption)
        if classes is not None and reports:
            done = [(path, images) for path, images in lists if path in reports]
            _write_lists(prefix, done, classes, reports)
    return code


def _listed(settings: argparse.Namespace) -> tuple[str, list[NamedList], list[str]]:
    """Return prefix, lists and classes of a scan; nothing is written."""
    prefix = _named(settings)
    images = _scan(settings, settings.recursive is not False)
    say(
        "im2rec",
        f"no list {prefix}.lst yet: found {len(images.entries)} images in {settings.root}",
    )
    if settings.recursive is None and images.classes != ["."]:
        say(
            "im2rec",
            "ROOT has sub-folders with images: every folder is a class, as with --recursive",
        )
    lists = _split(settings, prefix, images)
    if settings.folder and not settings.slash:
        sharded = any(value is not None for value in (settings.shards, settings.part, settings.ray))
        suffix = ".shards.json" if sharded else ".rec"
        targets = ", ".join(f"{os.path.splitext(path)[0]}{suffix}" for path, _ in lists)
        say(
            "im2rec",
            f"note: PREFIX is a folder, and this writes {targets}; PREFIX {settings.prefix}.rec "
            "writes beside the folder",
        )
    return prefix, lists, images.classes


def _named(settings: argparse.Namespace) -> str:
    """Return a prefix that is not only a folder."""
    if settings.folder:
        return os.path.join(settings.prefix, os.path.basename(settings.root) or "images")
    return settings.prefix


def _list_first(settings: argparse.Namespace) -> int:
    """Write the lists before anything is packed, as shards that are made one by one need them."""
    if settings.part not in (None, (1, 1)):
        raise RecordIOError(
            "there is no list yet, and all workers need the same: make it first, with --list",
            path=f"{settings.prefix}.lst",
        )
    prefix, lists, classes = _listed(settings)
    skipped = lists[0][1].skipped
    if skipped and settings.strict:
        raise RecordIOError(skipped[0].reason, path=os.path.join(settings.root, skipped[0].path))
    _write_lists(prefix, lists, classes)
    if skipped:
        write_skipped(prefix, skipped)
        say_skipped("im2rec", prefix, skipped)
    return int(bool(skipped) and not settings.skip_errors)


def _note_dropped_labels(lists: Sequence[NamedList]) -> None:
    for path, images in lists:
        several = [len(entry.labels) for entry in images.entries if len(entry.labels) > 1]
        if several:
            say(
                "im2rec",
                f"note: only the first label is stored: {len(several)} of {len(images.entries)} "
                f"lines of {path} have several, up to {max(several)}; --pack-label stores all",
            )


def _pack_lists(
    lists: Sequence[NamedList],
    settings: argparse.Namespace,
    interruption: Interruption,
) -> tuple[dict[str, PackingReport], int]:
    """Pack every list beside itself; the reports of those that were packed, and the exit code."""
    from .images import warnings_are_noticed  # loading OpenCV takes longer than making a list
    from .pack import PackingError, pack, pack_together

    if settings.check == "decode" and not warnings_are_noticed():
        say("im2rec", f"note: {UNNOTICED}")
    options = encode_options(settings)
    common = {
        "options": options,
        "threads": settings.num_thread,
        "checksums": settings.checksums,
        "progress": sys.stderr.isatty(),
        "cancelled": interruption.requested,
    }
    jobs = [(images, os.path.splitext(path)[0]) for path, images in lists]
    if settings.strict:
        packed = pack_together(jobs, settings.root, strict=True, **common)
        for report, (_, images) in zip(packed, lists, strict=True):
            _say_packed(report, len(images.entries), options)
        return {path: report for report, (path, _) in zip(packed, lists, strict=True)}, 0
    reports: dict[str, PackingReport] = {}
    code = 0
    for (path, images), (_, prefix) in zip(lists, jobs, strict=True):
        try:
            report = pack(images, settings.root, prefix, **common)
        except PackingError as error:
            say_skipped("im2rec", prefix, error.skipped)
            say("im2rec", f"error: {error}")
            code = 1  # also with --skip-errors: there is no record file at all
            continue
        reports[path] = report
        if report.skipped:
            say_skipped("im2rec", prefix, report.skipped)
            code = code if settings.skip_errors else 1
        _say_packed(report, len(images.entries), options)
    return reports, code


def _say_packed(report: PackingReport, listed: int, options: EncodeOptions) -> None:
    count = f"{report.packed}" if report.packed == listed else f"{report.packed} of {listed}"
    say(
        "im2rec",
        f"packed {count} images, {report.bytes_written / 1e6:.1f} MB, into {report.path} "
        f"in {report.seconds:.1f} s ({report.packed / max(report.seconds, 1e-9):.0f} images/s)",
    )
    for name, missing in report.without.items():
        paths = ", ".join(missing[:SHOWN_PATHS]) + (", ..." if len(missing) > SHOWN_PATHS else "")
        none = f"; {len(missing)} images have none: {paths}" if missing else ""
        path = f"{report.path.removesuffix('.rec')}.{name}.rec"
        say("im2rec", f"wrote {path}: {report.packed - len(missing)} records{none}")
    lines = note_on_bits(report.reduced_to_8_bits)
    for line in [*lines, *(report.optimized.lines() if options.optimize else [])]:
        say("im2rec", line)


if __name__ == "__main__":
    sys.exit(main())
