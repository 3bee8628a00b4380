"""One pack into several: by chance, by class or by list; or into shards with a manifest."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Unpack

import numpy as np

from ..errors import EmptyRecordFileError, LabelError, ManifestError, RecordIOError
from ..frames.companions import MANIFEST
from ..keywords.checks import boolean, choice, integer
from ..keywords.functions import checked
from ..keywords.options import option
from ..packs.chosen import chosen_records
from ..packs.manifest import Shard, ShardManifest, described_fields, json_of, sha256_of
from ..packs.names import pack_prefix, source_prefix
from ..packs.scanned_container import scan_pack
from ..packs.scanned_pack import ScannedPack
from .options import Path, RunOptions, Seed, SkipErrors
from .output import PackReport, PackWritten, Seal, write_packs
from .rewriting import need_folder, need_records, output_path, plan_of

#: Multiples of it, taken modulo 1, are spread evenly however many there are.
GOLDEN_RATIO = (5**0.5 - 1) / 2
#: How the name of a manifest ends.
SUFFIX = MANIFEST.ending
DIGITS = 6  # of numbers in the names of shards
#: Open files for each shard - record file, index and names of classes; for each field two, and one
#: that describes them - each with its lock; and for everything else.
FILES, FIELD_FILES, LOCKED, OTHER_DESCRIPTORS = 3, 2, 2, 32


Outputs = Annotated[
    Mapping[Any, float | str | os.PathLike[str] | Iterable[int]],
    option(
        kind="mapping",
        text="""Record files to write, each with its records. ``by="fraction"``: its share of the
        records. ``by="class"``: its share of the classes; all records of a class go to the same
        file. Shares are above 0 and add up to 1. ``by="list"``: an iterable of keys, the path of a
        text file with one key in each line, or that of a ``.lst`` file with ids.""",
    ),
]
By = Annotated[
    str,
    option(
        kind='{"fraction", "class", "identity", "list"}',
        text="""How records are divided: fraction: records at random; class: classes at random,
        with all of their records; identity: the same, of a face-recognition pack; list: by files
        with a key in each line, or .lst files with ids.""",
        check=partial(choice, allowed=("fraction", "class", "identity", "list")),
    ),
]
Stratified = Annotated[
    bool,
    option(
        kind="bool",
        text="""With fractions, each file also gets its share of every class, rounded up or down.
        The class of a record is its first label, or that of its first object.""",
        check=boolean,
    ),
]


@checked
def split(
    path: Path,
    outputs: Outputs,
    seed: Seed = 0,
    by: By = "fraction",
    *,
    stratified: Stratified = False,
    skip_errors: SkipErrors = False,
    **run: Unpack[RunOptions],
) -> PackReport:
    """Divide the records of a pack among new ones, in which they keep their order.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    PackReport
        Its `outputs` have the order of the mapping; `left_out` counts the records in no list.

    Raises
    ------
    ValueError
        If shares do not add up to 1, or options contradict each other.
    EmptyRecordFileError
        If a file would get no record, or no class.
    LabelError
        For ``by="class"``, if it is a detection pack.
    RecordHeaderError
        For ``by="class"`` and `stratified`, if a record has no image header.
    KeyNotFoundError
        For ``by="list"``, if a key or id belongs to no record.
    RecordIOError
        If the source is damaged or missing, or is an output, or if two lists name one record.
    OSError
        If a file cannot be read or written.

    Notes
    -----
    Keys are numbered again in every file; ids and labels stay.  Every file lists all identities of
    a face-recognition pack, some of them without images, and its ids are its keys.  A class is the
    first label of a record.

    Examples
    --------
    >>> import tempfile
    >>> from recordio import IRHeader, RecordWriter, pack, split
    >>> folder = tempfile.mkdtemp()
    >>> with RecordWriter(f"{folder}/a.rec") as writer:
    ...     for number in range(10):
    ...         _ = writer.write(pack(IRHeader(0, number % 2, number, 0), b"content"))
    >>> report = split(f"{folder}/a", {f"{folder}/train": 0.8, f"{folder}/val": 0.2}, seed=1)
    >>> [output.records for output in report.outputs]
    [8, 2]
    """
    if stratified and by != "fraction":
        raise ValueError(f"stratified=True needs by='fraction', not by={by!r}")
    if not outputs:
        raise ValueError("outputs is empty: give at least one record file")
    shares: list[Any] = list(outputs.values())
    if by != "list":
        check_shares(shares)
    with scan_pack(path, skip_errors) as source:
        if by == "list":
            parts = _listed(source, outputs)
        elif by in ("class", "identity"):
            if by == "identity" and source.identities is None:
                raise ValueError(
                    f"by='identity': {source.path} lists no identities, so it is no "
                    "face-recognition pack; by='class' divides by labels"
                )
            parts = _by_class(source, shares, seed)
        else:
            labels = grouped_labels(source) if stratified else None
            parts = _cut(shuffled_by_share(len(source), seed, labels), shares)
        plans = [
            plan_of(source, output_path(out), np.sort(part))
            for out, part in zip(outputs, parts, strict=True)
        ]
        return write_packs([source], plans, **run)


def check_shares(shares: list[Any]) -> None:
    """Raise ValueError unless they are shares of a whole."""
    for share in shares:
        if isinstance(share, (str, bool)) or not isinstance(share, (int, float, np.number)):
            raise ValueError(f"the share {share!r} is no number between 0 and 1")
        if not 0 < share <= 1:
            raise ValueError(f"the share {share} does not lie between 0 and 1")
    if abs(sum(shares) - 1) > 1e-6:
        raise ValueError(f"the shares add up to {sum(shares):g} instead of 1")


def shuffled_by_share(count: int, seed: int, labels: np.ndarray | None = None) -> np.ndarray:
    """Put all records in a random order; with labels every stretch has its share of each."""
    order = np.random.default_rng(seed).permutation(count)
    if labels is None:
        return order
    # The i-th of n records of a class stands at (i + start) / n of the way.  The start differs from
    # class to class, so that small classes do not all have their first record at the same position.
    grouped, within = class_by_class(order, labels)
    sizes = np.bincount(labels)
    start = (np.arange(len(sizes)) + 0.5) * GOLDEN_RATIO % 1
    position = (within + np.repeat(start, sizes)) / np.repeat(sizes, sizes)
    return grouped[np.argsort(position, kind="stable")]


def class_by_class(order: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order records class by class, and count those of its class before each of them."""
    sizes = np.bincount(labels)
    within = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return order[np.argsort(labels[order], kind="stable")], within


def grouped_labels(source: ScannedPack) -> np.ndarray:
    """Number the class of each record from 0; records without label are a class together."""
    source.need_labels()
    labels = source.labels.first_of(np.arange(len(source)))
    return np.unique(labels, return_inverse=True)[1].reshape(-1)


def _cut(order: np.ndarray, shares: list[float]) -> list[np.ndarray]:
    ends = np.rint(np.cumsum(shares) / sum(shares) * len(order)).astype(np.int64)
    return np.split(order, ends[:-1])


def _by_class(source: ScannedPack, shares: list[float], seed: int) -> list[np.ndarray]:
    """Records by class, classes by chance."""
    source.need_labels()
    if source.is_detection:
        raise LabelError(
            "its records have objects of several classes: it cannot be divided by class",
            path=source.path,
        )
    labels = source.labels.first_of(np.arange(len(source)))
    classes, numbers = np.unique(labels, return_inverse=True)
    chosen = _cut(np.random.default_rng(seed).permutation(len(classes)), shares)
    if not all(map(len, chosen)):
        raise EmptyRecordFileError(
            f"its {len(classes)} classes are too few for these shares: a file would get none",
            path=source.path,
        )
    return [np.flatnonzero(np.isin(numbers, part)) for part in chosen]


def _listed(source: ScannedPack, outputs: Mapping[Any, Any]) -> list[np.ndarray]:
    owner = np.full(len(source), -1)
    parts = []
    for number, (out, keys) in enumerate(outputs.items()):
        if isinstance(keys, (int, float)):
            raise ValueError(f"by='list' needs keys or a file for {out}, not {keys!r}")
        part = chosen_records(source, keys)
        if len(twice := part[owner[part] >= 0]):
            first = list(outputs)[owner[twice[0]]]
            raise RecordIOError(
                f"two lists name it, for {first} and for {out}", **source.location(int(twice[0]))
            )
        owner[part] = number
        parts.append(part)
    return parts


Template = Annotated[
    str | os.PathLike[str],
    option(
        kind="str or os.PathLike",
        text="""An existing folder, in which the files are named after the pack; or a template of
        names: ``data/train`` gives ``data/train-000000.rec`` and so on, and ``%04d`` in it marks
        the position of the number.  Each file gets an index.  The manifest is
        ``data/train.shards.json``.""",
    ),
]
Count = Annotated[
    int,
    option(
        kind="int",
        text="Number of files, at most one for each record.",
        check=partial(integer, low=1),
    ),
]


@checked
def shard(
    path: Path,
    out: Template,
    n: Count,
    *,
    skip_errors: SkipErrors = False,
    **run: Unpack[RunOptions],
) -> PackReport:
    """Divide a pack into files of about equal size, with a manifest.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    PackReport
        Its `outputs` are the files in their order.

    Raises
    ------
    ValueError
        If `n` is not above 0.
    EmptyRecordFileError
        If there are fewer records than files.
    ManifestError
        If the manifest exists and lists files that would stay beside the new ones.
    RecordIOError
        If the source is damaged or missing, or would be overwritten.
    OSError
        If a file cannot be read or written, or more files would be open than the process may have.

    Notes
    -----
    Records stay in the order of the file, and one file follows the other.  The files appear
    together, and the manifest last: if it exists, all of them are complete.  Keys are numbered from
    0 in every file; ids and labels stay.  Every file of a face-recognition pack lists all
    identities, some of them without images, and its ids are its keys.

    Examples
    --------
    >>> import tempfile
    >>> from recordio import RecordWriter, check_shards
    >>> folder = tempfile.mkdtemp()
    >>> with RecordWriter(f"{folder}/a.rec") as writer:
    ...     for number in range(10):
    ...         _ = writer.write(b"record %d" % number)
    >>> shard(f"{folder}/a", f"{folder}/part-%02d", 3).records
    10
    >>> [(shard.file, shard.first) for shard in check_shards(f"{folder}/part.shards.json").shards]
    [('part-00.rec', 0), ('part-01.rec', 3), ('part-02.rec', 7)]
    """
    with scan_pack(path, skip_errors) as pack:
        need_records(pack)
        if len(pack) < n:
            raise EmptyRecordFileError(
                f"{n} files cannot be made of {len(pack)} records", path=pack.path
            )
        names, manifest = shard_names(source_prefix(path), out, n)
        check_older(manifest, names)
        _check_descriptors(n, len(pack.field_names))
        cuts = _cuts(pack.frame_sizes, n)
        parts = np.split(np.arange(len(pack)), cuts)
        plans = [plan_of(pack, *pair) for pair in zip(names, parts, strict=True)]

        def content(packs: Sequence[PackWritten], files: Sequence[Sequence[str]]) -> bytes:
            firsts = [0, *cuts.tolist()]
            shards = tuple(
                _described(*words, run["cancelled"])
                for words in zip(packs, files, firsts, strict=True)
            )
            description = ShardManifest(
                manifest,
                sum(shard.records for shard in shards),
                sum(shard.bytes for shard in shards),
                packs[0].identities,
                shards,
            )
            return json_of(description)

        return write_packs([pack], plans, seal=Seal(manifest, content), **run)


def _described(
    pack: PackWritten, files: Sequence[str], first: int, cancelled: Callable[[], bool]
) -> Shard:
    begin = 1 if pack.identities else 0  # key 0 lists identities
    fields = [(name, f"{pack_prefix(pack.path)}.{name}.rec") for name in pack.fields]
    return Shard(
        file=os.path.basename(pack.path),
        index=os.path.basename(f"{pack_prefix(pack.path)}.idx"),
        first=first,
        records=pack.records,
        keys=[begin, begin + pack.records - 1],
        bytes=pack.bytes,
        sha256=sha256_of(files[0], cancelled),
        index_sha256=sha256_of(files[1], cancelled),
        fields=described_fields(fields, files[len(files) - 2 * len(fields) :], cancelled),
    )


def _cuts(sizes: np.ndarray, n: int) -> np.ndarray:
    """Cut files of bytes as equal as records allow, none empty; all but the first begin there."""
    before = np.concatenate([[0], np.cumsum(sizes)])
    targets = before[-1] * np.arange(1, n) / n
    cuts = np.searchsorted(before, targets)
    cuts -= targets - before[cuts - 1] < before[cuts] - targets  # the nearer of two positions
    least = np.arange(1, n)
    cuts = np.maximum.accumulate(np.maximum(cuts, least) - least) + least
    return np.minimum(cuts, len(sizes) - n + least)


def number_template(target: str) -> tuple[str, int, str]:
    """Find text before and after the numbers of shards, and how many digits these have.

    >>> number_template("out/train.tar"), number_template("out/%04d-train.tar")
    (('out/train-', 6, '.tar'), ('out/', 4, '-train.tar'))
    """
    folder, name = os.path.split(target)
    match = re.search(r"%0?(\d*)d", name)
    if match is None:
        stem, suffix = os.path.splitext(target)
        return f"{stem}-", DIGITS, suffix
    return os.path.join(folder, name[: match.start()]), int(match[1] or 0), name[match.end() :]


def shard_names(prefix: str, out: str | os.PathLike[str], n: int) -> tuple[list[str], str]:
    """Name the record files and the manifest that `shard` makes of a pack, given without ``.rec``.

    >>> shard_names("data/train", "part-%02d", 2)
    (['part-00.rec', 'part-01.rec'], 'part.shards.json')
    """
    name = os.fsdecode(out)
    if os.path.isdir(name):
        name = os.path.join(name, os.path.basename(prefix))
    target = output_path(name)
    need_folder(target)
    before, digits, after = number_template(target)
    names = [f"{before}{number:0{digits}d}{after}" for number in range(n)]
    stem = os.path.basename(before).rstrip("-_.") or pack_prefix(after).strip("-_.") or "pack"
    return names, os.path.join(os.path.dirname(target), f"{stem}{SUFFIX}")


def _check_descriptors(n: int, fields: int) -> None:
    """Refuse more shards than this process can have open: all are, until they appear together."""
    try:
        import resource
    except ImportError:  # Windows
        return
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = FILES + FIELD_FILES * fields + bool(fields)
    needed = n * LOCKED * files + OTHER_DESCRIPTORS
    if most != resource.RLIM_INFINITY and needed > most:
        raise OSError(
            errno.EMFILE,
            f"{n} shards need {needed} open files at a time, and this process may have {most}: "
            "raise the limit (ulimit -n) or make fewer",
        )


def check_older(manifest: str, names: Sequence[str]) -> None:
    """Refuse to leave files of an older manifest that would be taken for some of the new ones."""
    if not os.path.lexists(manifest):
        return
    files = ShardManifest.read(manifest).files
    left = [file for file in files if file not in names and os.path.lexists(file)]
    if left:
        raise ManifestError(
            f"it lists {len(left)} files that would be left beside the new ones, {left[0]} for one:"
            " remove them, or give another name",
            path=manifest,
        )
