"""Labels of packs that are used together: kept, appended or mapped.

A class label is the first label of a record, or the id of each object of a detection record.  The
functions here work out one `LabelChange` for every pack; they read no record themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import LabelError, RecordIOError
from .classes import SUFFIX, labels_of_names

#: Labels are stored as 32-bit floats, which hold every whole number up to this one.
MOST_CLASSES = 1 << 24


@dataclass(frozen=True)
class LabelChange:
    """A change of the class labels of one pack.

    >>> labels, is_known = LabelChange(classes=3, shift=10).apply(np.array([0, 2, 3], np.float32))
    >>> labels.tolist(), is_known.tolist()
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
            is_known = keys[position] == labels
            return np.where(is_known, values[position], labels), is_known
        if self.classes is None:
            return labels, np.ones(labels.shape, bool)
        is_known = (labels >= 0) & (labels < self.classes) & (labels == np.floor(labels))
        return np.where(is_known, labels + np.float32(self.shift), labels), is_known

    def of_record(self, labels: np.ndarray) -> np.ndarray:
        """Change the labels of one record, of which the first is its class; not for absent ones."""
        labels = np.array(labels)
        labels.flat[:1], is_known = self.apply(labels.flat[:1])
        if not is_known.all():
            raise LabelError(unknown_label(labels.flat[0]))
        return labels

    def of_names(self, names: Mapping[int, str]) -> dict[int, str]:
        """Name classes by the labels that these become; the first where several become one."""
        if self.absent or not names:
            return {}
        old = np.array(sorted(names), np.float32)
        new, is_known = self.apply(old)
        whole = is_known & (new == np.floor(new))
        names_after: dict[int, str] = {}
        for before, after in zip(old[whole].astype(int).tolist(), new[whole].tolist(), strict=True):
            names_after.setdefault(int(after), names[before])
        return names_after


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
    #: "keep", "append", "names", a mapping, an array, a function or None, as for `iterators.Pack`.
    labels: Any = "keep"
    #: Number of classes, or their names in order or with their labels, if that is given.
    classes: Any = None
    #: Number of identities in a face-recognition pack.
    identities: int | None = None
    #: Reads the names of classes by label; called only where they matter.
    read_names: Callable[[], Mapping[int, str]] = dict

    @cached_property
    def names(self) -> Mapping[int, str]:
        """Names of classes by label."""
        return self.read_names()

    @property
    def appends(self) -> bool:
        """True if its classes follow those of the packs before."""
        return isinstance(self.labels, str) and self.labels == "append"

    def count(self) -> int:
        """Count its classes, before any change; labels must be whole numbers of at least 0."""
        if isinstance(self.classes, int):
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
        self.count: int = 0
        self._uncounted: list[LabelSource] = []

    def add(self, source: LabelSource, change: LabelChange) -> None:
        """Count the classes of a pack as well."""
        if change.table is not None:
            named = named_classes(source.classes).values()
            self.count = max(self.count, int(change.table[1].max()) + 1, max(named, default=-1) + 1)
        elif not change.absent:
            self._uncounted.append(source)

    def __call__(self) -> int:
        """The largest number of any of them."""
        while self._uncounted:
            self.count = max(self.count, self._uncounted[-1].count())
            self._uncounted.pop()
        return self.count


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
    labels_by_name: dict[str, int] = {}  # labels of the names in the packs before
    for source in sources:
        if isinstance(source.labels, str) and source.labels == "names":
            change = _by_names(source, labels_by_name, num_classes)
            num_classes.add(source, change)
        elif source.appends:
            shift, count = num_classes(), source.count()
            if shift + count > MOST_CLASSES:
                raise ValueError(
                    f"{source.name}: its {count} classes would follow {shift} others, but labels "
                    f"are 32-bit floats, which tell at most {MOST_CLASSES} apart"
                )
            change = LabelChange(classes=count, shift=shift)
            num_classes.count = shift + count
        else:
            change = _change(source)
            num_classes.add(source, change)
        changes.append(change)
        if any(isinstance(pack.labels, str) and pack.labels == "names" for pack in sources):
            for name, label in labels_of_names(change.of_names(source.names)).items():
                labels_by_name.setdefault(name, label)
    return changes, num_classes


def agreed_names(
    packs: Sequence[tuple[str, Mapping[int, str], LabelChange]],
) -> dict[int, str]:
    """Name the classes of packs together, by the labels that they become.

    Packs are their prefix, names and change.  One label with two names is a RecordIOError, unless
    a mapping makes one class of two.

    >>> keep = LabelChange()
    >>> agreed_names([("a", {0: "cat"}, keep), ("b", {0: "cat", 1: "dog"}, keep)])
    {0: 'cat', 1: 'dog'}
    """
    names: dict[int, str] = {}
    before: tuple[Any, Any] = None, None
    for prefix, own, change in packs:
        if before[1] is change and before[0] == own:
            continue  # another file of the same set
        before = own, change
        for label, name in change.of_names(own).items():
            if names.setdefault(label, name) != name and change.table is None:
                raise RecordIOError(
                    f"class {label} is {name!r} here and {names[label]!r} in a pack before: "
                    'append the classes, map them, join them by name (labels="names"), or remove '
                    "the file of names",
                    path=prefix + SUFFIX,
                )
    return names


def _by_names(
    source: LabelSource, labels_by_name: Mapping[str, int], num_classes: ClassCount
) -> LabelChange:
    """Give classes the labels of their names in the packs before; new names follow them."""
    names = source.names
    if not names:
        raise ValueError(f"{source.name}: labels='names': the pack has no names of classes")
    new, free = dict(labels_by_name), num_classes() if labels_by_name or num_classes.count else 0
    for name in labels_of_names(names):
        if name not in new:
            new[name], free = free, free + 1
    return _table(source, {label: new[name] for label, name in names.items()})


def _named(source: LabelSource, mapping: Mapping[Any, Any]) -> LabelChange:
    """Map labels of which some are given by the names of their classes."""
    labels: dict[Any, Any] = {}
    for key, value in mapping.items():
        if not isinstance(key, str):
            keys = [key]
        else:
            keys = [label for label, name in source.names.items() if name == key]
            if not keys:
                raise ValueError(
                    f"{source.name}: labels: no class is called {key!r}; the names are "
                    f"{', '.join(map(repr, list(labels_of_names(source.names))[:10])) or 'unknown'}"
                )
        for label_key in keys:
            if label_key in labels:
                raise ValueError(f"{source.name}: labels gives {key!r} twice")
            labels[label_key] = value
    return _table(source, labels)


def named_classes(classes: Any) -> dict[str, int]:
    """Return the label of each name that `classes` of a pack gives; none for a number of classes.

    >>> named_classes(["cat", "dog"]), named_classes({"dog": 5}), named_classes(2)
    ({'cat': 0, 'dog': 1}, {'dog': 5}, {})
    """
    if classes is None or isinstance(classes, int):
        return {}
    if isinstance(classes, Mapping):
        return dict(classes)
    return {name: label for label, name in enumerate(classes)}


def _ordered(source: LabelSource) -> LabelChange:
    """Give classes the labels that their names have in `classes`."""
    classes = named_classes(source.classes)
    if len(classes) < len(source.classes):
        raise ValueError(f"{source.name}: classes has a name twice")
    if not isinstance(source.labels, str) or source.labels != "keep":
        raise ValueError(f"{source.name}: give names as classes, or labels")
    if not source.names:
        raise ValueError(f"{source.name}: classes: the pack has no names of classes")
    unknown = [name for name in source.names.values() if name not in classes]
    if unknown:
        raise ValueError(f"{source.name}: its class {unknown[0]!r} is not among classes")
    return _table(source, {label: classes[name] for label, name in source.names.items()})


def _table(source: LabelSource, new: Mapping[Any, Any]) -> LabelChange:
    """Make the change that a mapping of numbers says."""
    keys, values = _numbers(source, list(new)), _numbers(source, list(new.values()))
    return _in_order(source, keys, values)


def _change(source: LabelSource) -> LabelChange:
    labels = source.labels
    if source.classes is not None and not isinstance(source.classes, int):
        return _ordered(source)
    if labels is None:
        return LabelChange(absent=True)
    if isinstance(labels, str):
        if labels != "keep":
            raise ValueError(
                f"{source.name}: labels={labels!r}: expected 'keep', 'append', 'names', a "
                "mapping, an array, a function or None"
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
        return _named(source, labels)
    else:
        values = _numbers(source, labels)
        keys = np.arange(len(values), dtype=np.float32)
    return _in_order(source, keys, values)


def _in_order(source: LabelSource, keys: np.ndarray, values: np.ndarray) -> LabelChange:
    """Make a change of labels and what they become."""
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
        if any(isinstance(value, str) for value in values):
            raise TypeError  # NumPy would read numbers from texts
        doubles = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        doubles = np.zeros((0, 0))
    numbers = doubles.astype(np.float32)
    if doubles.ndim != 1 or not np.isfinite(doubles).all():
        raise TypeError(
            f"{source.name}: labels={values!r}: expected 'keep', 'append', a mapping, an array or "
            "a function that gives a finite number for each label, or None"
        )
    if (np.abs(doubles) > MOST_CLASSES).any():
        raise ValueError(
            f"{source.name}: labels has numbers beyond {MOST_CLASSES}, which labels, 32-bit "
            "floats, do not tell apart"
        )
    return numbers
