"""Labels of an image provider: those of a batch, and changed class labels of packs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from recordio.errors import LabelError, RecordIOError
from recordio.notes import Notes
from recordio.packs.labels import ClassCount, LabelChange, label_changes, named_classes

from ..core.batch import DataDesc
from ..core.order import check_of
from ..images.sources.mixed_packs import Pack, as_packs, changed_labels, check_names, label_source
from ..images.sources.record_source import RecordSource, read_label_list
from .image_options import MOST_LABELS, ImageClassOptions, ImageRecordOptions
from .image_sources import ImageSource

#: Axes of a label array by their number.
AXES = ("", "N", "NC", "NWC")


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Labels of the images of a provider, and where they come from.

    The `shape` is that of one image's labels.  The plan of every pack is told its `plans`, `labels`
    among them, which are those of a list or None.  ``distinct(member, listed)`` reads the different
    classes of a member of the source.  If `label_is_class`, an image has its class as first label.
    """

    shape: tuple[int, ...]
    plans: list[dict[str, Any]]
    distinct: Callable[[Any, Any], np.ndarray]
    label_is_class: bool = False
    #: Of images with boxes: values of an object, and objects of an image at most.
    objects: tuple[int, int] | None = None

    @property
    def listed(self) -> list[Any]:
        """For every pack the labels of its list, or None."""
        tables = [plan["labels"] for plan in self.plans]
        return [None if isinstance(table, str) else table for table in tables]

    def described(self, options: ImageRecordOptions) -> list[DataDesc]:
        """Describe the label arrays of a batch; a single class has no axis."""
        if options.label_name is None:
            return []
        shape = () if self.label_is_class and self.shape == (1,) else self.shape
        shape = (options.batch_size, *shape)
        return [DataDesc(options.label_name, shape, options.label_dtype, AXES[len(shape)])]


def class_labels(packs: Sequence[Pack], options: ImageRecordOptions) -> Labels:
    """As many labels for every image as `label_width` says, the first being a class."""
    width = options.label_width
    plans = [
        {
            "label_width": width,
            "labels": read_label_list(pack.path_imglist, width, options.remote)
            if pack.path_imglist
            else None,
        }
        for pack in packs
    ]
    return Labels(shape=(width,), plans=plans, distinct=distinct_classes, label_is_class=True)


def several_classes(
    packs: Sequence[Pack], options: ImageClassOptions, source: ImageSource
) -> Labels:
    """Any number of classes for every image: padded to the longest, or a row with 1 for each."""
    for pack in packs:
        if pack.path_imglist:
            raise ValueError(
                "label_width='longest' and multi_hot read the labels of records: drop path_imglist"
            )
    for member in source.members:
        if not isinstance(member, RecordSource):
            raise ValueError(
                f"label_width='longest' and multi_hot are for packs, and {member.name} is none"
            )
    width, longest = options.multi_hot, 0
    if width is None:
        longest, form = max(_longest(member) for member in source.members), "padded"
    elif options.label_width not in (1, "longest"):
        raise ValueError("multi_hot says how many values a row of labels has: drop label_width")
    else:
        form = "multi_hot"
    return Labels(
        shape=(width or longest,),
        plans=[{"label_width": width or longest, "labels": form} for _ in packs],
        distinct=all_classes if width is None or len(packs) > 1 else lambda *_: np.arange(width),
    )


def _vectors(member: Any) -> Iterator[np.ndarray]:
    """Yield the labels of every record that can be read."""
    for _, label in member.label_vectors():
        if not isinstance(label, RecordIOError):
            yield np.atleast_1d(label)


def _longest(member: Any) -> int:
    longest = max(map(len, _vectors(member)), default=1)
    if longest > MOST_LABELS:
        raise LabelError(f"a record has {longest} labels, more than {MOST_LABELS}")
    return longest


def all_classes(member: Any, listed: Any) -> np.ndarray:
    """Read the different labels of a pack whose records have several, ascending."""
    classes = np.array([], np.float32)
    for labels in _vectors(member):
        classes = np.union1d(classes, labels)
    return classes[~np.isnan(classes)].astype(np.float32)


def distinct_classes(member: Any, listed: Any) -> np.ndarray:
    """Read the different class labels of a pack, ascending."""
    labels, _ = member.labels(listed, "skip")
    return np.unique(labels[~np.isnan(labels)])


def refuse_classes(options: ImageRecordOptions, packs: Sequence[Pack]) -> None:
    """Refuse what needs one class for every image."""
    weights = [options.weights, *(pack.weights for pack in packs)]
    if any(isinstance(weight, Mapping) for weight in weights):
        raise ValueError("weights by label need class labels: give one weight for every record")
    for name in ("images_per_class", "classes_per_batch"):
        if getattr(options, name) is not None:
            raise ValueError(f"{name} needs class labels, one for every image: drop it")


class PackClasses:
    """Changes of the class labels of packs: `changes`, one for each.

    ``count()`` gives the number of classes of all together, and may read labels for it.
    """

    def __init__(
        self, source: ImageSource, packs: Sequence[Pack], labels: Labels, on_error: str
    ) -> None:
        self.source: ImageSource = source
        self._packs = packs
        self._listed = labels.listed
        self._on_error = on_error
        self.changes: list[LabelChange]
        self.count: ClassCount
        self.changes, self.count = label_changes(
            [
                label_source(member, pack, partial(labels.distinct, member, table))
                for member, pack, table in zip(source.members, packs, self._listed, strict=True)
            ]
        )
        check_names(source.members, self.changes, self._listed)

    def unlisted(self) -> Notes:
        """Find the records whose labels are those of a list that has no line for them."""
        notes = Notes()
        for member, pack, table, change in zip(
            self.source.members, self._packs, self._listed, self.changes, strict=False
        ):
            if table is not None and isinstance(member, RecordSource) and not change.absent:
                member.note_unlisted(table[0], pack.path_imglist, notes)
        return notes

    def read(self) -> tuple[np.ndarray, dict[int, RecordIOError]]:
        """Read the class of every record, float32, NaN for those without, and why they are."""
        labels, errors = [], {}
        source = self.source
        for member, first, table, change in zip(
            source.members, source.firsts.tolist(), self._listed, self.changes, strict=True
        ):
            count = len(member)
            if change.absent:
                labels.append(np.full(count, -1, np.float32))
                continue
            own_labels = member.labels(table, self._on_error)
            mine, wrong = changed_labels(change, own_labels, member.location_of, self._on_error)
            labels.append(mine)
            errors.update({first + record: error for record, error in wrong.items()})
        return np.concatenate(labels), errors

    def names(self) -> dict[int, str]:
        """Read names of classes from files beside the packs, by the labels that they become.

        Those that `classes` of a pack gives are among them.  A label that has several names is not,
        and servers are not asked.
        """
        names_by_label: dict[int, set[str]] = {}
        for pack in self._packs:
            for name, label in named_classes(pack.classes).items():
                names_by_label.setdefault(label, set()).add(name)
        for member, change in zip(self.source.members, self.changes, strict=True):
            if member.is_remote or not isinstance(member, RecordSource):
                continue
            for file in member.files:
                for label, name in change.of_names(file.shown_classes).items():
                    names_by_label.setdefault(label, set()).add(name)
        return {label: names.pop() for label, names in names_by_label.items() if len(names) == 1}

    def saved(self, options: ImageRecordOptions) -> dict[str, str]:
        """Return what, besides files and shares, a saved state must agree with."""
        saved = {}
        if as_packs(options.path_imgrec) or named_classes(self._packs[0].classes):
            changes = ", ".join(map(_described, self.changes))
            augmentation = [dict(sorted(pack.augmentation.items())) for pack in self._packs]
            saved["packs"] = f"{changes}; {augmentation}"
        tables = [part for table in self._listed if table is not None for part in table]
        if tables:
            saved["path_imglist"] = check_of(*tables)
        return saved


def _described(change: LabelChange) -> str:
    if change.table is not None:
        return f"labels {check_of(*change.table)}"
    if change.absent:
        return "no labels"
    return f"{'all' if change.classes is None else change.classes} labels + {change.shift}"
