"""Pack the samples of a container into record files, as im2rec packs the images of a folder.

The pipeline is that of `pack`, and that of `pack_shards` where shards are wanted; this chooses
what they get, and writes what stands beside the record files.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from types import SimpleNamespace
from typing import Any

from recordio.bytes.files import open_output, remove_output
from recordio.bytes.remote.settings import is_url
from recordio.containers.container import Container
from recordio.errors import RecordIOError
from recordio.frames.companions import CLASSES, LIST, pack_paths
from recordio.list_files import ListEntry
from recordio.packs.classes import format_classes
from recordio.packs.names import PackPaths, single_path

from .console import progress_bar
from .convert.importing import ImportReport, convert
from .convert.manifest import FROM_MANIFEST, ManifestOptions
from .im2rec_options import EncodeOptions, note_on_bits
from .im2rec_shards import divided, make_shards
from .image_list import format_line, split_entries
from .pack import Progress, pack_together
from .pack_shards import IMAGES_PER_SHARD, finish, tasks_of
from .samples import SampleImages, Selection, cut_samples
from .unpacking import unpacked_beside

#: How the names of SageMaker's manifests end, and the options of packing that one takes.
MANIFEST = ".manifest"
OF_MANIFESTS = ("label_field", "check", "shuffle", "seed", "strict")


@dataclass
class SourceReport(ImportReport):
    """The result of `recordio.convert.pack`.

    Attributes
    ----------
    paths : list of str
        Paths of the record files, or of the manifest of the shards; empty while other workers make
        shards.
    path : str
        The first of them.
    records : int
        Number of records in them.
    bytes_written : int
        Bytes in these records.
    skipped : list of Skipped
        Samples that could not be packed, each with the reason.
    left_out : collections.Counter
        Numbers of files and parts of samples that were not stored, by kind.
    fields : collections.Counter
        Number of records in each field, by its name.
    continued : int
        Number of shards that were complete before.
    skipped_in_shards : int
        Number of samples that were skipped, in all shards together; files beside the shards have
        their names.
    notes : list of str
        Lines about what was left out of the source or read in another way than somebody may
        expect, about images of more than 8 bits of which the upper 8 were stored, and about images
        that were rewritten with ``optimize=True``.
    seconds : float
        Duration of the call.
    """

    paths: list[str] = field(default_factory=list)
    continued: int = 0
    skipped_in_shards: int = 0


def pack_source(
    source: PackPaths,
    prefix: str,
    options: Any,
    kind: Container | None = None,
    *,
    progress: Progress = False,
    check: Callable[[Sequence[str]], object] = lambda paths: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> SourceReport:
    """Pack the samples of a container of a `kind`, by default of that which its name says.

    ``check(paths)`` may refuse the files before any work.
    """
    start = time.perf_counter()
    if isinstance(source, str) and source.lower().endswith(MANIFEST):
        return _of_manifest(source, prefix, options, progress, check, cancelled)
    encoding = EncodeOptions(
        pack_label=True,
        pass_through=options.pass_through,
        **{
            item.name: getattr(options, item.name)
            for item in fields(EncodeOptions)
            if item.name not in ("pass_through", "pack_label", "field")
        },
    )
    if options.is_sharded and is_url(prefix):
        raise RecordIOError(
            "shards are made in a folder that all workers share, not at a URL: give its path, and "
            "upload the files when the manifest is there",
            path=prefix,
        )
    selection = Selection.of(source, options, kind)
    make = _in_shards if options.is_sharded else _at_once
    report = make(selection, prefix, options, encoding, progress, check, cancelled)
    report.path = (report.paths or [""])[0]
    report.seconds = time.perf_counter() - start
    return report


def _of_manifest(
    path: str,
    prefix: str,
    options: Any,
    progress: Progress,
    check: Callable[[Sequence[str]], object],
    cancelled: Callable[[], bool],
) -> SourceReport:
    """Convert a manifest of SageMaker as `recordio from-manifest` does."""
    for name in options.changed():
        if name not in OF_MANIFESTS:
            raise RecordIOError(
                f"the images of a manifest are stored as they are: drop {name}, or pack them again "
                "with `recordio export` and `im2rec`",
                path=path,
            )
    chosen = ManifestOptions(label=options.label_field, check=options.check)
    settings = SimpleNamespace(**vars(chosen), manifest=path)
    settings.__dict__.update(options.values("shuffle", "seed", "strict"))
    report = convert(
        FROM_MANIFEST,
        settings,
        prefix,
        check=check,
        progress=bool(progress),
        cancelled=cancelled,
    )
    return SourceReport(**vars(report), paths=[report.path])


def _at_once(
    selection: Selection,
    prefix: str,
    options: Any,
    encoding: EncodeOptions,
    progress: Progress,
    check: Callable[[Sequence[str]], object],
    cancelled: Callable[[], bool],
) -> SourceReport:
    kind, files = selection.files()
    bar = False if callable(progress) else progress
    with contextlib.ExitStack() as stack:
        files, names = stack.enter_context(unpacked_beside(files, prefix, bar, cancelled))
        images = SampleImages(selection, kind, files, names)
        stack.callback(images.pack.close)
        parts = split_entries(
            prefix,
            images.listed(),
            options.chunks,
            options.train_ratio,
            options.test_ratio,
            options.stratify,
        )
        jobs = [(entries, os.path.splitext(path)[0]) for path, entries in parts if entries]
        check([path for _, name in jobs for path in pack_paths(name, images.fields)])
        reports = pack_together(
            jobs,
            images,
            encoding,
            threads=options.num_thread,
            strict=options.strict,
            checksums=options.checksums,
            progress=progress,
            cancelled=cancelled,
        )
        for done, (entries, name) in zip(reports, jobs, strict=True):
            packed = [entry for entry in entries if entry.id not in done.skipped_ids]
            _write_companions(name, packed, images)
        report = _begun(images)
    report.paths = [done.path for done in reports]
    for done in reports:
        report.records += done.packed
        report.bytes_written += done.bytes_written
        report.skipped += done.skipped
        report.fields.update({n: done.packed - len(none) for n, none in done.without.items()})
    report.notes += note_on_bits(sum(done.reduced_to_8_bits for done in reports))
    report.notes += [line for r in reports if options.optimize for line in r.optimized.lines()]
    return report


def _begun(images: SampleImages) -> SourceReport:
    """Begin a report with what is known of the source."""
    report = SourceReport("")
    report.count(images.left_out())
    report.notes += [f"note: {line}" for line in images.notes()]
    return report


def _write_companions(prefix: str, entries: Sequence[ListEntry], images: SampleImages) -> None:
    """Write the list and the names of classes, or remove those of an older pack."""
    names = "".join(format_line(entry) for entry in entries if entry.path)
    listed = names.encode("utf-8", "surrogateescape")
    for row, content in ((LIST, listed), (CLASSES, format_classes(images.pack.classes))):
        if content:
            with open_output(prefix + row.ending) as output:
                output.write(content)
        else:
            remove_output(prefix + row.ending)


def _in_shards(
    selection: Selection,
    prefix: str,
    options: Any,
    encoding: EncodeOptions,
    progress: Progress,
    check: Callable[[Sequence[str]], object],
    cancelled: Callable[[], bool],
) -> SourceReport:
    spans = cut_samples(selection, options.shards, IMAGES_PER_SHARD)
    name = single_path(selection.source)
    tasks = tasks_of(spans, prefix, name, encoding, checksums=options.checksums)
    images = spans[0].contents("")
    whole, left = divided(tasks, options.part)
    if options.part in (None, (1, 1)) or options.part[0] == 1:
        _write_companions(prefix, images.listed(), images)
    total = sum(task.span.images for task in left)
    bar = (
        contextlib.nullcontext(progress)
        if callable(progress)
        else progress_bar(total, os.path.basename(prefix), "images", progress)
    )
    with bar as advance:
        new_notes = make_shards(
            left,
            threads=options.num_thread,
            strict=options.strict,
            ray=options.ray,
            progress=advance,
            cancelled=cancelled,
        )
    manifest = finish(tasks, whole + new_notes)
    shards = [note.shard for note in new_notes if note.shard is not None]
    report = _begun(images)
    report.paths = [] if manifest is None else [manifest.path]
    report.records = sum(s.records for s in shards) if manifest is None else manifest.records
    report.bytes_written = sum(shard.bytes for shard in shards)
    report.continued = len(whole)
    report.skipped_in_shards = sum(note.skipped for note in whole + new_notes)
    report.notes += note_on_bits(sum(note.reduced_to_8_bits for note in whole + new_notes))
    return report
