"""Pack the samples of a container into record files, as im2rec packs the images of a folder.

The pipeline is that of `pack`, and that of `pack_shards` where shards are wanted; this chooses
what they get, and writes what stands beside the record files.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields, make_dataclass
from typing import Any

from recordio.bytes.files import open_output, remove_output
from recordio.bytes.remote.settings import is_url
from recordio.errors import RecordIOError
from recordio.keywords.options import Options, Rule, option, refuse_ineffective
from recordio.lists import ListEntry
from recordio.packs.classes import SUFFIX, format_classes
from recordio.packs.names import Names, one_name

from .arguments import IMAGE_OPTIONS
from .console import progress_bar
from .im2rec_options import EncodeOptions, Im2recOptions, note_on_bits
from .im2rec_shards import divided, make_shards
from .image_list import Skipped, split_entries, write_list
from .pack import pack_together
from .pack_shards import IMAGES_PER_SHARD, finish, tasks_of
from .samples import SampleImages, cut_samples, sample_list

__all__ = ["PackOptions", "SourceReport", "companions_of", "pack_source"]

#: Options of im2rec that say where images lie, or what follows from a container.
FOREIGN = ("list", "recursive", "exts", "pass_through", "pack_label", "field", "skip_errors")
#: What differs: the default, or the words.
SHUFFLED = "Shuffle the samples, in the same way every time (default: keep their order)."
TEXTS = {
    "shuffle": SHUFFLED,
    "chunks": "Cut the samples into N packs PREFIX_0.rec, PREFIX_1.rec, ... (default: 1).",
    "train_ratio": """Share of the samples for PREFIX_train.rec; the samples left by this and by
    `test_ratio` go to PREFIX_val.rec (default: 1, a single PREFIX.rec).""",
    "test_ratio": """Share of the samples for PREFIX_test.rec; needs `train_ratio` below 1
    (default: 0).""",
    "resize": """Scale the short side to this size, up or down (default: 0, keep the size). Without
    this and the other options that change images, contents are stored unchanged.""",
    "check": """How to check contents that are stored untouched. header: all pixels must be there,
    and formats that do not show this otherwise are decoded; decode: decode all; none: store
    anything (default: header).""",
    "shards": """Cut the samples into N shards, PREFIX-000000.rec and so on, with a manifest;
    complete shards are not made again, so a run that was killed continues (default with `part` and
    `ray`: one for every 10000 samples).""",
    "part": """Make only the shards of worker K of N, from 1 to N.  The last worker to finish writes
        the manifest.""",
}
SHARDED = ("shards", "part", "ray")


def _field(item: Any) -> tuple[str, Any, Any]:
    words = dict(item.metadata)
    words["text"] = TEXTS.get(item.name, words["text"])
    default = False if item.name == "shuffle" else item.default
    return item.name, item.type, option(default if default is not MISSING else MISSING, **words)


def _is_pass_through(options: Any) -> bool:
    """Return True if nothing changes images, so that contents are stored as they are."""
    return not any(options.differs(name) for name in IMAGE_OPTIONS)


def _check(options: Options) -> None:
    """Check values one by one, and beside each other."""
    Options.__post_init__(options)
    refuse_ineffective(options)


#: The options of `recordio pack`: those of im2rec that do not follow from the source.
PackOptions: Any = make_dataclass(
    "PackOptions",
    [_field(item) for item in fields(Im2recOptions) if item.name not in FOREIGN],
    bases=(Options,),
    namespace={
        "__doc__": "Options of `recordio pack`; a value out of range is a ValueError.",
        "__module__": __name__,
        "pass_through": property(_is_pass_through),
        "rules": (
            *(rule for rule in Im2recOptions.rules),
            Rule(
                "chunks train_ratio",
                lambda v: any(getattr(v, name) is not None for name in SHARDED),
                "is for several packs, and shards are one",
                refused=True,
            ),
            Rule(
                "test_ratio stratify",
                lambda v: v.train_ratio == 1 and (v.test_ratio or v.chunks == 1),
                "needs `train_ratio` below 1",
                refused=True,
            ),
        ),
        "__post_init__": _check,
    },
    frozen=True,
    kw_only=True,
)


@dataclass
class SourceReport:
    """The result of `recordio.convert.pack`.

    Attributes
    ----------
    paths : list of str
        Paths of the record files, or of the manifest of the shards; empty while other workers make
        shards.
    records : int
        Number of records in them.
    bytes_written : int
        Bytes in these records.
    skipped : list of Skipped
        Samples that could not be packed, each with the reason.
    left_out : dict of str to int
        Numbers of files and parts of samples that were not stored, by kind.
    continued : int
        Number of shards that were complete before.
    skipped_in_shards : int
        Number of samples that were skipped, in all shards together; files beside the shards have
        their names.
    notes : list of str
        Lines about images of more than 8 bits of which the upper 8 were stored, and about images
        that were rewritten with ``optimize=True``.
    seconds : float
        Duration of the call.
    """

    paths: list[str] = field(default_factory=list)
    records: int = 0
    bytes_written: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    continued: int = 0
    skipped_in_shards: int = 0
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0


def companions_of(prefix: str) -> list[str]:
    """Return the paths of the files that `pack_source` writes for one pack."""
    return [f"{prefix}{suffix}" for suffix in (".rec", ".idx", ".lst", SUFFIX)]


def is_sharded(options: Any) -> bool:
    """Return True if a manifest with several shards is wanted."""
    return any(getattr(options, name) is not None for name in SHARDED)


def pack_source(
    source: Names,
    prefix: str,
    options: Any,
    *,
    progress: bool | Callable[[int], object] = False,
    check: Callable[[Sequence[str]], object] = lambda paths: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> SourceReport:
    """Pack the samples of a container; ``check(paths)`` may refuse the files before any work."""
    start = time.perf_counter()
    encoding = EncodeOptions(
        pack_label=True,
        pass_through=options.pass_through,
        **{
            item.name: getattr(options, item.name)
            for item in fields(EncodeOptions)
            if item.name not in ("pass_through", "pack_label", "field")
        },
    )
    make = _in_shards if is_sharded(options) else _at_once
    if is_sharded(options) and is_url(prefix):
        raise RecordIOError(
            "shards are made in a folder that all workers share, not at a URL: give its path, and "
            "upload the files when the manifest is there",
            path=prefix,
        )
    report = make(source, prefix, options, encoding, progress, check, cancelled)
    report.seconds = time.perf_counter() - start
    return report


def _at_once(
    source: Names,
    prefix: str,
    options: Any,
    encoding: EncodeOptions,
    progress: bool | Callable[[int], object],
    check: Callable[[Sequence[str]], object],
    cancelled: Callable[[], bool],
) -> SourceReport:
    images = SampleImages(source)
    parts = split_entries(
        prefix,
        sample_list(images, options.shuffle),
        options.chunks,
        options.train_ratio,
        options.test_ratio,
        options.stratify,
    )
    jobs = [(entries, os.path.splitext(path)[0]) for path, entries in parts if entries]
    check([path for _, name in jobs for path in companions_of(name)])
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
    for report, (entries, name) in zip(reports, jobs, strict=True):
        packed = [entry for entry in entries if entry.id not in report.skipped_ids]
        _write_companions(name, packed, images)
    return SourceReport(
        [report.path for report in reports],
        sum(report.packed for report in reports),
        sum(report.bytes_written for report in reports),
        [item for report in reports for item in report.skipped],
        dict(images.pack.reader.samples.left_out),
        notes=[
            *_notes(images),
            *note_on_bits(sum(report.reduced_to_8_bits for report in reports)),
            *(line for r in reports if options.optimize for line in r.optimized.lines()),
        ],
    )


def _write_companions(prefix: str, entries: Sequence[ListEntry], images: SampleImages) -> None:
    """Write the list and the names of classes, or remove those of an older pack."""
    named = [entry for entry in entries if entry.path]
    if named:
        write_list(f"{prefix}.lst", named)
    else:
        remove_output(f"{prefix}.lst")
    classes = images.pack.classes
    if classes:
        with open_output(prefix + SUFFIX) as output:
            output.write(format_classes(classes))
    else:
        remove_output(prefix + SUFFIX)


def _in_shards(
    source: Names,
    prefix: str,
    options: Any,
    encoding: EncodeOptions,
    progress: bool | Callable[[int], object],
    check: Callable[[Sequence[str]], object],
    cancelled: Callable[[], bool],
) -> SourceReport:
    spans = cut_samples(source, options.shards, IMAGES_PER_SHARD, options.shuffle)
    tasks = tasks_of(
        spans, prefix, one_name(spans[0].source), encoding, checksums=options.checksums
    )
    images = spans[0].contents("")
    whole, left = divided(tasks, options.part)
    if options.part in (None, (1, 1)) or options.part[0] == 1:
        _write_companions(prefix, sample_list(images, options.shuffle), images)
    total = sum(task.span.images for task in left)
    bar = (
        contextlib.nullcontext(progress)
        if callable(progress)
        else progress_bar(total, os.path.basename(prefix), "images", progress)
    )
    with bar as advance:
        made = make_shards(
            left,
            threads=options.num_thread,
            strict=options.strict,
            ray=options.ray,
            progress=advance,
            cancelled=cancelled,
        )
    manifest = finish(tasks, whole + made)
    shards = [note.shard for note in made if note.shard is not None]
    return SourceReport(
        [] if manifest is None else [manifest.path],
        sum(shard.records for shard in shards) if manifest is None else manifest.records,
        sum(shard.bytes for shard in shards),
        [],
        dict(images.pack.reader.samples.left_out),
        len(whole),
        skipped_in_shards=sum(note.skipped for note in whole + made),
        notes=[
            *_notes(images),
            *note_on_bits(sum(note.reduced_to_8_bits for note in whole + made)),
        ],
    )


def _notes(images: SampleImages) -> list[str]:
    """Say what was left out or read in another way than somebody may expect."""
    return [f"note: {line}" for line in images.pack.notes.lines()]
