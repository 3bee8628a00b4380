"""Differences between two packs, by key and by content.

Both packs are read once.  A hash of every content is kept, never a content.
"""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Annotated, Any

import numpy as np

from ..header import HEADER, ID_OFFSET
from ..keywords.checks import integer
from ..keywords.functions import checked
from ..keywords.options import option
from ..packs.scanned_container import scan_field, scan_pack
from ..packs.scanned_pack import ScannedPack
from ..payload import read_payload
from .content_table import hash_of, word_of
from .options import Progress, Threads, Told
from .passes import label_bytes, pass_over

#: Kinds of differences, in the order in which they are shown.
KINDS = ("labels", "ids", "content", "moved", "only_a", "only_b")
WORDS = {
    "labels": "other labels",
    "ids": "other ids",
    "content": "other content",
    "moved": "under another key",
    "only_a": "only in {a}",
    "only_b": "only in {b}",
}
#: Hashes of a record.
ROW = np.dtype([("content", "<u8", 2), ("labels", "<u8"), ("ids", "<u8"), ("empty", "?")])


@dataclass(frozen=True)
class Difference:
    """One record in which two packs differ.

    Attributes
    ----------
    kind : str
        ``"labels"``, ``"ids"``, ``"content"``, ``"moved"``, ``"only_a"`` or ``"only_b"``.
    key_a, key_b : int or None
        Keys of the record in both packs; None for a pack without it.
    a, b : float, list of float, int, str or None
        Labels or ids of the record in both packs, if these differ; ``"no header"`` for a record
        without image header.
    """

    kind: str
    key_a: int | None
    key_b: int | None
    a: Any = None
    b: Any = None

    def __str__(self) -> str:
        if self.kind == "moved":
            return f"key {self.key_a} -> {self.key_b}"
        key = self.key_b if self.key_a is None else self.key_a
        return f"key {key}" if self.a is None else f"key {key}: {_text(self.a)} -> {_text(self.b)}"


@dataclass(frozen=True)
class PackDifference:
    """Result of `diff`; every record is counted once.

    Attributes
    ----------
    a, b : str
        The record files.
    records_a, records_b : int
        Records in them.
    same : int
        Records with the same key, labels, ids and content in both.
    labels, ids, content : int
        Records with the same key in both, and with the same content but other labels; with the same
        content and labels but another id; or with contents that differ and are under no other key.
    moved : int
        Contents under another key in the other pack.
    moved_labels : int
        Those of them whose labels differ, too.
    only_a, only_b : int
        Records whose content and key only one of the packs has.
    same_order : bool
        True if the same records come in the same order in both; `equal` does not depend on it.
    examples : tuple of Difference
        The first differences of each kind.
    fields : dict of str to PackDifference
        Results for the packs of each field that both have.
    fields_a, fields_b : tuple of str
        Names of the fields that only one of the packs has.
    described : tuple of str
        Names of the fields that ``PREFIX.fields.json`` describes differently in both.
    """

    a: str
    b: str
    records_a: int = 0
    records_b: int = 0
    same: int = 0
    labels: int = 0
    ids: int = 0
    content: int = 0
    moved: int = 0
    moved_labels: int = 0
    only_a: int = 0
    only_b: int = 0
    same_order: bool = True
    examples: tuple[Difference, ...] = field(default=())
    fields: dict[str, PackDifference] = field(default_factory=dict)
    fields_a: tuple[str, ...] = ()
    fields_b: tuple[str, ...] = ()
    described: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """True if both hold the same records under the same keys, and the same fields."""
        alone = self.fields_a or self.fields_b or self.described
        same = self.same == self.records_a == self.records_b and not alone
        return same and all(difference.equal for difference in self.fields.values())

    @property
    def complete(self) -> bool:
        """True if both hold the same contents with the same labels, under whatever keys."""
        changed = self.labels + self.content + self.moved_labels + self.only_a + self.only_b
        alone = self.fields_a or self.fields_b or self.described
        return not changed and not alone and all(f.complete for f in self.fields.values())

    def as_dict(self) -> dict[str, Any]:
        """Return all attributes for JSON; labels that are not finite become texts."""
        examples = [
            {**asdict(example), "a": _plain(example.a), "b": _plain(example.b)}
            for example in self.examples
        ]
        fields = {name: difference.as_dict() for name, difference in self.fields.items()}
        return {"equal": self.equal, **asdict(self), "examples": examples, "fields": fields}

    def __str__(self) -> str:
        order = "" if self.same_order else ", in another order"
        lines = [
            f"{self.a}: {self.records_a} records; {self.b}: {self.records_b} records",
            f"the same in both: {self.same}{order}",
        ]
        for kind in KINDS:
            if count := getattr(self, kind):
                labels = kind == "moved" and self.moved_labels
                note = f", {labels} of them with other labels" if labels else ""
                lines.append(f"{WORDS[kind].format(a=self.a, b=self.b)}: {count}{note}")
                examples = [example for example in self.examples if example.kind == kind]
                lines += [f"  {example}" for example in examples]
                if count > len(examples) > 0:
                    lines.append(f"  and {count - len(examples)} more")
        for name, difference in self.fields.items():
            first, *rest = str(difference).splitlines()[1:]
            lines += [f"field {name}, {first}", *(f"  {line}" for line in rest)]
        for pack, names in ((self.a, self.fields_a), (self.b, self.fields_b)):
            if names:
                lines.append(f"fields only in {pack}: {', '.join(names)}")
        if self.described:
            lines.append(f"fields that are described differently: {', '.join(self.described)}")
        if self.complete and not self.equal:
            lines.append("nothing lost: both hold the same contents with the same labels")
        return "\n".join(lines)


First = Annotated[
    str | os.PathLike[str],
    option(
        kind="str or os.PathLike",
        text="""Record files, with or without ``.rec``, or containers.  ``PREFIX.idx`` beside them
        gives the keys; without an index they are the positions.  If several records share a key,
        the first is compared with the first of the other pack, and so on.""",
    ),
]
Second = Annotated[str | os.PathLike[str], option(kind="str or os.PathLike", text=...)]
Examples = Annotated[
    int,
    option(
        kind="int",
        text="Largest number of examples for each kind of difference.",
        check=partial(integer, low=0),
    ),
]


@checked
def diff(
    a: First,
    b: Second,
    *,
    examples: Examples = 10,
    threads: Threads = None,
    progress: Told = None,
) -> PackDifference:
    """Compare two packs by key and by content.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    PackDifference

    Raises
    ------
    RecordIOError
        If a record or an index is damaged, or a pack is missing.
    OSError
        If a file cannot be read.
    ValueError
        If `examples` is negative, or `threads` below 1.

    Notes
    -----
    Memory holds for each record its position, its key, and hashes of its content (128 bits), its
    labels and its ids (64 bits each).  Fields are compared as packs of their own, one by one.

    Examples
    --------
    >>> import tempfile
    >>> from recordio import IRHeader, RecordWriter, pack
    >>> folder = tempfile.mkdtemp()
    >>> for name, label in (("a", 1), ("b", 2)):
    ...     with RecordWriter(f"{folder}/{name}.rec") as writer:
    ...         _ = writer.write(pack(IRHeader(0, 0, 0, 0), b"first"))
    ...         _ = writer.write(pack(IRHeader(0, label, 1, 0), b"second"))
    >>> difference = diff(f"{folder}/a", f"{folder}/b")
    >>> difference.equal, difference.same, difference.labels, str(difference.examples[0])
    (False, 1, 1, 'key 1: 1 -> 2')
    """
    with scan_pack(a, everything=True) as first, scan_pack(b, everything=True) as second:
        difference = _compare_packs(first, second, examples, threads, progress)
        names = set(first.field_names), set(second.field_names)
        fields = {}
        for name in sorted(names[0] & names[1]):
            with scan_field(first, name) as field_a, scan_field(second, name) as field_b:
                fields[name] = _compare_packs(field_a, field_b, examples, threads, None)
        metas = first.fields_meta, second.fields_meta
        return replace(
            difference,
            fields=fields,
            fields_a=tuple(sorted(names[0] - names[1])),
            fields_b=tuple(sorted(names[1] - names[0])),
            described=tuple(n for n in fields if metas[0].get(n) != metas[1].get(n)),
        )


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _text(value: Any) -> str:
    """Labels or an id; whole numbers without a point."""
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _compare_packs(
    a: ScannedPack,
    b: ScannedPack,
    examples: int,
    threads: int | None,
    progress: Progress | None,
) -> PackDifference:
    total = len(a) + len(b)

    def tell(before: int) -> Progress:
        return lambda done, _: progress(before + done, total) if progress is not None else None

    pairs = _compare(
        a.keys, b.keys, _rows_of(a, threads, tell(0)), _rows_of(b, threads, tell(len(a)))
    )

    def describe(kind: str, row_a: int, row_b: int) -> Difference:
        values: tuple[Any, Any] = (None, None)
        if kind in ("labels", "ids"):
            values = (_value_of(kind, a.record(row_a)), _value_of(kind, b.record(row_b)))
        key_a = None if row_a < 0 else int(a.keys[row_a])
        key_b = None if row_b < 0 else int(b.keys[row_b])
        return Difference(kind, key_a, key_b, *values)

    named = [
        describe(kind, row_a, row_b)
        for kind in KINDS
        for row_a, row_b in pairs[kind][:examples].tolist()
    ]
    same = pairs["same"]
    return PackDifference(
        a.path,
        b.path,
        len(a),
        len(b),
        same=len(same),
        **{kind: len(pairs[kind]) for kind in (*KINDS, "moved_labels")},  # type: ignore[arg-type]
        same_order=bool((np.diff(same[:, 1]) > 0).all()),
        examples=tuple(named),
    )


def _rows_of(pack: ScannedPack, threads: int | None, progress: Progress) -> np.ndarray:
    """Hash contents, labels and ids, and find empty contents: a `ROW` for each."""
    rows = np.zeros(len(pack), ROW)

    def hashes(number: int, content: memoryview) -> bytes:
        if not len(content):
            rows["empty"][number] = True
        return hash_of(content)

    for first, parts in pass_over(pack, hashes, threads, progress):
        rows["content"][first : first + len(parts)] = np.frombuffer(b"".join(parts), "<u8").reshape(
            -1, 2
        )
    headers = np.ascontiguousarray(pack.headers)
    # Most headers say it in two words: flag and label, and id.  Others are hashed.
    words = headers.view("<u8").reshape(-1, 3)
    rows["labels"], rows["ids"] = words[:, 0], words[:, 1]
    rows["labels"][~pack.headed] = rows["ids"][~pack.headed] = 0
    for number in np.flatnonzero(pack.headed & (headers["flag"] > 0)).tolist():
        rows["labels"][number] = word_of(label_bytes(pack, number))
    for number in np.flatnonzero(pack.headed & (headers["id2"] > 0)).tolist():
        rows["ids"][number] = word_of(pack.record(number)[ID_OFFSET : HEADER.size])
    return rows


def _value_of(kind: str, record: memoryview) -> Any:
    """Return the labels of a record, or its id, as a message shows them."""
    header = read_payload(record).header
    if header is None:
        return "no header"
    if kind == "ids":
        return header.id | header.id2 << 64
    return header.label.tolist() if header.flag else header.label


def _compare(
    keys_a: np.ndarray, keys_b: np.ndarray, a: np.ndarray, b: np.ndarray
) -> dict[str, np.ndarray]:
    """Find positions in both packs of the records of each kind; -1 where a pack has none."""
    by_key = _matches([keys_a], [keys_b])
    content = (a["content"][by_key[:, 0]] == b["content"][by_key[:, 1]]).all(-1)
    labels = a["labels"][by_key[:, 0]] == b["labels"][by_key[:, 1]]
    ids = a["ids"][by_key[:, 0]] == b["ids"][by_key[:, 1]]
    pairs_by_kind = {
        "same": by_key[content & labels & ids],
        "labels": by_key[content & ~labels],
        "ids": by_key[content & labels & ~ids],
    }
    left_a, left_b = np.ones(len(a), bool), np.ones(len(b), bool)

    def take(pairs: np.ndarray) -> np.ndarray:
        left_a[pairs[:, 0]] = left_b[pairs[:, 1]] = False
        return pairs

    take(by_key[content])
    moved = []
    # Of equal contents first those whose labels are equal, too; nothing at all is not moved.
    for names in (("content", "labels"), ("content",)):
        positions = [
            np.flatnonzero(left & ~side["empty"]) for left, side in ((left_a, a), (left_b, b))
        ]
        columns = [
            [column for name in names for column in _columns(side[name][position])]
            for side, position in zip((a, b), positions, strict=True)
        ]
        pairs = _matches(*columns)
        pairs = np.stack([positions[0][pairs[:, 0]], positions[1][pairs[:, 1]]], -1)
        moved.append(take(pairs))
    pairs_by_kind["moved"] = _in_order(np.concatenate(moved))
    pairs_by_kind["moved_labels"] = moved[1]
    pairs_by_kind["content"] = take(by_key[left_a[by_key[:, 0]] & left_b[by_key[:, 1]]])
    only_a, only_b = np.flatnonzero(left_a), np.flatnonzero(left_b)
    pairs_by_kind["only_a"] = np.stack([only_a, np.full_like(only_a, -1)], -1)
    pairs_by_kind["only_b"] = np.stack([np.full_like(only_b, -1), only_b], -1)
    return pairs_by_kind


def _columns(values: np.ndarray) -> list[np.ndarray]:
    return [values] if values.ndim == 1 else list(values.T)


def _matches(a: list[np.ndarray], b: list[np.ndarray]) -> np.ndarray:
    """Pair positions of equal values, the n-th of one with the n-th of the other.

    Each side is a list of columns; pairs come in the order of the first.
    """
    columns = [np.concatenate(both) for both in zip(a, b, strict=True)]
    count = len(a[0])
    side = np.arange(len(columns[0])) >= count
    order = np.lexsort([side, *columns])  # stable: positions ascend within equal values
    starts = np.ones(len(order), bool)
    starts[1:] = np.any([column[order[1:]] != column[order[:-1]] for column in columns], axis=0)
    group = np.cumsum(starts) - 1
    sides = side[order]
    # Number of a record among those of its side and group.
    first = np.flatnonzero(starts)
    of_a = np.add.reduceat(~sides, first, dtype=np.int64) if len(first) else np.zeros(0, np.int64)
    of_all = np.diff(first, append=len(order))
    position = np.arange(len(order)) - first[group]
    turn = np.where(sides, position - of_a[group], position)
    paired = turn < np.minimum(of_a, of_all - of_a)[group]
    # Both sides come group by group and turn by turn.
    return _in_order(np.stack([order[paired & ~sides], order[paired & sides] - count], -1))


def _in_order(pairs: np.ndarray) -> np.ndarray:
    return pairs[np.argsort(pairs[:, 0], kind="stable")]
