"""The packs of an image provider: what of its keywords holds for each, and what labels become.

Orders are made in `image_orders`, caches in `image_caching`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from recordio.errors import RecordIOError
from recordio.packs.classes import shown_classes
from recordio.packs.labels import LabelChange, label_changes

from ..core.order import check_of
from ..images.sources.packs import Pack, as_packs, changed_labels, label_source
from ..images.sources.record_source import RecordSource
from ..images.view_plans import with_keywords
from .image_caching import RAM, check_cache
from .image_options import ImageRecordOptions
from .image_settings import ImageSource

__all__ = ["PackClasses", "described", "packs_of", "varied"]

#: What is the same for all packs, because batches have one form.
SHARED = ("data_shape", "label_pad_width", "label_pad_value", "max_label_width")


def packs_of(options: ImageRecordOptions) -> tuple[Pack, ...]:
    """The packs that keywords name; what holds for one of several has to stand in its `Pack`.

    Raises
    ------
    ValueError
        If a keyword of the provider says what a `Pack` has to say.
    """
    own = options.values("path_imgidx", "path_imglist", "cache", "cache_size")
    check_cache(own["cache"], own["cache_size"])
    packs = as_packs(options.path_imgrec)
    if packs is None:
        return (Pack(options.path_imgrec, **own),)
    for name in ("path_imgidx", "path_imglist"):
        if own[name]:
            raise ValueError(f"{name} belongs to one pack: give it to that Pack")
    if own["cache"]:
        if any(pack.cache for pack in packs):
            raise ValueError("cache is given to the provider and to a Pack: drop one of both")
        if own["cache"] != RAM and len(packs) > 1:
            raise ValueError(
                f"cache={own['cache']!r}: every pack needs a file of its own: give it to each Pack"
            )
    for pack in packs:
        check_cache(pack.cache, pack.cache_size)
    return packs


def varied(recipe: Any, pack: Pack) -> Any:
    """The recipe of a pack: that of the provider, with the keywords of the `Pack`.

    Raises
    ------
    TypeError
        For a keyword that the recipe does not have.
    ValueError
        For one that has to be the same for all packs.
    """
    if not pack.augmentation:
        return recipe
    for name in SHARED:
        if name in pack.augmentation and hasattr(recipe, name):
            raise ValueError(f"{name} is the same for all packs: give it to the provider")
    return with_keywords("Pack", recipe, pack.augmentation)


class PackClasses:
    """What becomes of the class labels of packs.

    Parameters
    ----------
    source : ImageSource
    packs : sequence of Pack
        One for each member of the source.
    listed : sequence
        For each the labels of its list, or None.
    distinct : callable
        ``distinct(member, listed)`` reads the different class labels of a member.
    on_error : {"raise", "skip"}

    Attributes
    ----------
    source : ImageSource
    changes : list of LabelChange
        One for each pack.
    count : ClassCount
        ``count()`` gives the number of classes of all together, and may read labels for it.
    """

    def __init__(
        self,
        source: ImageSource,
        packs: Sequence[Pack],
        listed: Sequence[Any],
        distinct: Callable[[Any, Any], np.ndarray],
        on_error: str,
    ) -> None:
        self.source, self._listed, self._on_error = source, listed, on_error
        self.changes: list[LabelChange]
        self.changes, self.count = label_changes(
            [
                label_source(member, pack, functools.partial(distinct, member, table))
                for member, pack, table in zip(source.members, packs, listed, strict=True)
            ]
        )

    def read(self) -> tuple[np.ndarray, dict[int, RecordIOError]]:
        """The class of every record, float32, NaN for those without, and why they are."""
        labels, errors = [], {}
        source = self.source
        for member, first, table, change in zip(
            source.members, source.firsts.tolist(), self._listed, self.changes, strict=True
        ):
            count = len(member)
            if change.absent:
                labels.append(np.full(count, -1, np.float32))
                continue
            found = member.labels(table, self._on_error)
            mine, wrong = changed_labels(change, found, member.place_of, self._on_error)
            labels.append(mine)
            errors.update({first + record: error for record, error in wrong.items()})
        return np.concatenate(labels), errors

    def names(self) -> dict[int, str]:
        """The names of classes in files beside those of the packs, by the labels that they become.

        A label that has several names is not among them, and servers are not asked.
        """
        found: dict[int, set[str]] = {}
        for member, change in zip(self.source.members, self.changes, strict=True):
            if member.is_remote or not isinstance(member, RecordSource):
                continue
            for path in member.paths:
                for label, name in change.of_names(shown_classes(path)).items():
                    found.setdefault(label, set()).add(name)
        return {label: names.pop() for label, names in found.items() if len(names) == 1}

    def described(self) -> str:
        """Short text that tells these changes from others."""
        return ", ".join(_described(change) for change in self.changes)


def _described(change: LabelChange) -> str:
    if change.table is not None:
        return f"labels {check_of(*change.table)}"
    if change.absent:
        return "no labels"
    return f"{'all' if change.classes is None else change.classes} labels + {change.shift}"


def described(
    options: ImageRecordOptions,
    packs: Sequence[Pack],
    classes: PackClasses,
    listed: Sequence[Any],
) -> dict[str, str]:
    """What of the packs, besides their files and shares, a saved state must agree with."""
    settings = {}
    if as_packs(options.path_imgrec):
        augmentation = [dict(sorted(pack.augmentation.items())) for pack in packs]
        settings["packs"] = f"{classes.described()}; {augmentation}"
    tables = [part for table in listed if table is not None for part in table]
    if tables:
        settings["path_imglist"] = check_of(*tables)
    return settings
