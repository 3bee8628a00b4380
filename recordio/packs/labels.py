"""Labels of packs that are used together: kept, appended or mapped.

A class label is the first label of a record, or the id of each object of a detection record.  The
functions here work out one `LabelChange` for every pack; they read no record themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import LabelError

__all__ = [
    "MOST_CLASSES",
    "ClassCount",
    "LabelChange",
    "LabelSource",
    "label_changes",
    "unknown_label",
]

#: Labels are stored as 32-bit floats, which hold every whole number up to this one.
MOST_CLASSES = 1 << 24


@dataclass(frozen=True)
class LabelChange:
    """A change of the class labels of one pack.

    >>> labels, known = LabelChange(classes=3, shift=10).apply(np.array([0, 2, 3], np.float32))
    >>> labels.tolist(), known.tolist()
    ([10.0, 12.0, 3.0], [True, True, False])
    """

    #: The pack has no labels: all become -1.
    absent: bool = False
    #: Labels, ascending, and what they become, float32; others are unknown.
    table: tuple[np.ndarray, np.ndarray] | None = None
    #: Without a table labels are whole numbers below this one, and others are unknown; None lets
    #: every label pass.  The shift is added.
    classes: int | None = None
    shift: int = 0

    @property
    def keeps(self) -> bool:
        """True if every label stays as it is."""
        return self == LabelChange()

    def apply(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Change class labels, float32, and tell which are known; unknown ones stay."""
        if self.absent:
            return np.full_like(labels, -1), np.ones(labels.shape, bool)
        if self.table is not None:
            keys, values = self.table
            position = np.minimum(np.searchsorted(keys, labels), len(keys) - 1)
            known = keys[position] == labels
            return np.where(known, values[position], labels), known
        if self.classes is None:
            return labels, np.ones(labels.shape, bool)
        known = (labels >= 0) & (labels < self.classes) & (labels == np.floor(labels))
        return np.where(known, labels + np.float32(self.shift), labels), known

    def of_record(self, labels: np.ndarray) -> np.ndarray:
        """Change the labels of one record, of which the first is its class; not for absent ones."""
        labels = np.array(labels)
        labels.flat[:1], known = self.apply(labels.flat[:1])
        if not known.all():
            raise LabelError(unknown_label(labels.flat[0]))
        return labels

    def of_names(self, names: Mapping[int, str]) -> dict[int, str]:
        """Name classes by the labels that these become; the first where several become one."""
        if self.absent or not names:
            return {}
        old = np.array(sorted(names), np.float32)
        new, known = self.apply(old)
        whole = known & (new == np.floor(new))
        found: dict[int, str] = {}
        for before, after in zip(old[whole].astype(int).tolist(), new[whole].tolist(), strict=True):
            found.setdefault(int(after), names[before])
        return found


def unknown_label(label: float) -> str:
    """Explain that a change does not know a class label."""
    return f"the label {label:g} is unknown to `labels` or `classes` of its pack"


@dataclass(frozen=True)
class LabelSource:
    """A pack, as far as its labels matter."""

    #: The pack in messages.
    name: str
    #: Reads all class labels and returns the different ones, ascending, float32; called only where
    #: the labels are not known without.
    distinct: Callable[[], np.ndarray]
    #: "keep", "append", a mapping, an array, a function or None, as for `iterators.Pack`.
    labels: Any = "keep"
    #: Number of classes, if it is given, and of identities in a face-recognition pack.
    classes: int | None = None
    identities: int | None = None

    @property
    def appends(self) -> bool:
        """True if its classes follow those of the packs before."""
        return isinstance(self.labels, str) and self.labels == "append"

    def count(self) -> int:
        """Count its classes, before any change; labels must be whole numbers of at least 0."""
        if self.classes is not None:
            return self.classes
        if self.identities is not None:
            return self.identities
        labels = self.distinct()
        if not len(labels):
            return 0
        wrong = labels[~((labels >= 0) & (labels == np.floor(labels)))]
        if len(wrong):
            raise ValueError(
                f"{self.name}: the label {wrong[0]:g} numbers no class: expected whole numbers "
                "from 0 on, or give a mapping as labels"
            )
        return int(labels[-1]) + 1


class ClassCount:
    """The number of classes of packs: labels are read for it when it is first asked for."""

    def __init__(self) -> None:
        self.found: int = 0
        self._uncounted: list[LabelSource] = []

    def add(self, source: LabelSource, change: LabelChange) -> None:
        """Count the classes of a pack as well."""
        if change.table is not None:
            self.found = max(self.found, int(change.table[1].max()) + 1)
        elif not change.absent:
            self._uncounted.append(source)

    def __call__(self) -> int:
        """The largest number of any of them."""
        while self._uncounted:
            self.found = max(self.found, self._uncounted[-1].count())
            self._uncounted.pop()
        return self.found


def label_changes(sources: Sequence[LabelSource]) -> tuple[list[LabelChange], ClassCount]:
    """Work out the changes of the labels of packs that are used together, and count their classes.

    Labels that mean nothing, that cannot be counted where they have to be, or that are too many for
    32-bit floats, are a TypeError or a ValueError.

    >>> first = LabelSource("a.rec", lambda: np.arange(3, dtype=np.float32))
    >>> second = LabelSource("b.rec", lambda: np.arange(2, dtype=np.float32), "append")
    >>> changes, num_classes = label_changes([first, second])
    >>> changes[1].shift, num_classes()
    (3, 5)
    """
    changes, num_classes = [], ClassCount()
    for source in sources:
        if source.appends:
            shift, count = num_classes(), source.count()
            if shift + count > MOST_CLASSES:
                raise ValueError(
                    f"{source.name}: its {count} classes would follow {shift} others, but labels "
                    f"are 32-bit floats, which tell at most {MOST_CLASSES} apart"
                )
            change = LabelChange(classes=count, shift=shift)
            num_classes.found = shift + count
        else:
            change = _change(source)
            num_classes.add(source, change)
        changes.append(change)
    return changes, num_classes


def _change(source: LabelSource) -> LabelChange:
    labels = source.labels
    if labels is None:
        return LabelChange(absent=True)
    if isinstance(labels, str):
        if labels != "keep":
            raise ValueError(
                f"{source.name}: labels={labels!r}: expected 'keep', 'append', a mapping, an "
                "array, a function or None"
            )
        return LabelChange(classes=source.classes)
    if callable(labels):
        keys = source.distinct()
        values = _numbers(source, labels(keys.copy()))
        if len(values) != len(keys):
            raise ValueError(
                f"{source.name}: the function labels was given {len(keys)} different labels and "
                f"returned {len(values)}"
            )
    elif isinstance(labels, Mapping):
        keys, values = _numbers(source, list(labels)), _numbers(source, list(labels.values()))
    else:
        values = _numbers(source, labels)
        keys = np.arange(len(values), dtype=np.float32)
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    if not len(keys):
        raise ValueError(f"{source.name}: labels is empty: every label would be unknown")
    if (keys[1:] == keys[:-1]).any():
        raise ValueError(f"{source.name}: two keys of labels are the same 32-bit float")
    return LabelChange(table=(keys, values))


def _numbers(source: LabelSource, values: Any) -> np.ndarray:
    """Numbers as one row of 32-bit floats, all exactly what was given."""
    try:
        given = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        given = np.zeros((0, 0))
    numbers = given.astype(np.float32)
    if given.ndim != 1 or not np.isfinite(given).all():
        raise TypeError(
            f"{source.name}: labels={values!r}: expected 'keep', 'append', a mapping, an array or "
            "a function that gives a finite number for each label, or None"
        )
    if (np.abs(given) > MOST_CLASSES).any():
        raise ValueError(
            f"{source.name}: labels has numbers beyond {MOST_CLASSES}, which labels, 32-bit "
            "floats, do not tell apart"
        )
    return numbers
