"""Several packs of record images as one source, and what is said about each: `Pack`, `Packs`.

A pack is what one `Pack` names: a record file, or several that belong together.  Records are
numbered through, pack after pack.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from recordio.errors import LabelError, RecordIOError
from recordio.files import listed_files
from recordio.packs.labels import MOST_CLASSES, LabelChange, LabelSource, unknown_label
from recordio.remote.objects import shown
from recordio.remote.settings import RemoteSettings, is_url

from ...core.parameters import integer, paths, real
from ...core.parameters import path as path_of
from .record_source import RecordSource

__all__ = ["Pack", "Packs", "as_packs", "changed_labels", "label_source"]

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class Pack:
    """One of several packs that are used together: which files, how much of them, what labels.

    Parameters
    ----------
    path : str or os.PathLike, or a list of them
        The record file or files, as ``path_imgrec`` of `ImageRecordIter` names them.
    share : float, optional
        The fraction of every stretch of an epoch that comes from this pack; those of all packs add
        up to 1.  A pack that is used up begins its next permutation, and one that is larger than
        its share goes on in the next epoch where it stopped.
    repeat : float, optional
        How often the pack comes in an epoch, instead of a share: 3, or 0.5 for one half in every
        epoch.  Packs without it come once.
    labels : {"keep", "append"}, mapping, array_like, callable or None
        The class labels as they are; behind the classes of the packs before; what each label
        becomes, as a mapping or as an array with a number for each label from 0 on; or a function
        that is called once, with an array of the different labels, and returns as many numbers.
        None for a pack without labels: they are -1, and images have no objects.  A class label is
        the first label of a record, or the id of each object of a detection record.
    classes : int, optional
        Number of classes of the pack, whose labels are whole numbers from 0 on.  Found from its
        identities or labels where it is needed; reading those of millions of records takes a while.
    weights : array_like or mapping, optional
        Draw the records of the pack with replacement, as `weights` of `ImageRecordIter`; a mapping
        names labels as they become.
    path_imgidx, path_imglist : path, optional
        Index and list of labels of this pack.
    cache : {"ram"} or path, optional
        Keep the decoded images of this pack, as `cache` of `ImageRecordIter`.
    cache_size : int, optional
        Bytes that they may take.
    **augmentation
        Keywords of augmentation and normalisation that differ from those of the provider, such as
        ``resize`` or ``rand_mirror``.

    Examples
    --------
    >>> Pack("mine/train.rec", share=0.3, labels="append")
    Pack('mine/train.rec', share=0.3, labels='append')
    """

    def __init__(
        self,
        path: Paths,
        *,
        share: float | None = None,
        repeat: float | None = None,
        labels: Any = "keep",
        classes: int | None = None,
        weights: Any = None,
        path_imgidx: Paths = "",
        path_imglist: str | os.PathLike[str] = "",
        cache: str | os.PathLike[str] | None = None,
        cache_size: int | None = None,
        **augmentation: Any,
    ) -> None:
        self.path = paths("path", path)
        self.share = None if share is None else _positive("share", share)
        self.repeat = None if repeat is None else _positive("repeat", repeat)
        if share is not None and repeat is not None:
            raise ValueError(f"share={share!r} and repeat={repeat!r}: give one of both")
        self.labels = labels
        self.classes = None if classes is None else integer("classes", classes, 1, MOST_CLASSES)
        self.weights = weights
        self.path_imgidx = paths("path_imgidx", path_imgidx)
        self.path_imglist = path_of("path_imglist", path_imglist)
        self.cache = path_of("cache", cache)
        self.cache_size = None if cache_size is None else integer("cache_size", cache_size, low=1)
        self.augmentation: Mapping[str, Any] = augmentation

    def __repr__(self) -> str:
        plain = vars(Pack(""))
        changed = {n: v for n, v in vars(self).items() if v is not plain[n] and v != plain[n]}
        changed.pop("path", None)
        changed.update(changed.pop("augmentation", {}))
        named = [f"{name}={value!r}" for name, value in changed.items()]
        return f"Pack({', '.join([repr(_shown(self.path)), *named])})"


def _positive(name: str, value: Any) -> float:
    number = real(name, value)
    if number <= 0:
        raise ValueError(f"{name}={value!r}: expected a number above 0")
    return number


class _Named(Protocol):
    """A source of images, as far as it matters here."""

    name: str

    @property
    def num_identities(self) -> int | None:
        """How many identities it has, if it is a face-recognition pack."""


def as_packs(value: Any) -> tuple[Pack, ...] | None:
    """The packs of a `Pack` or of a list with at least one; None where there is none.

    Examples
    --------
    >>> as_packs(["a.rec", Pack("b.rec")])
    (Pack('a.rec'), Pack('b.rec'))
    >>> as_packs(["a.rec", "b.rec"]) is None
    True
    """
    if isinstance(value, Pack):
        return (value,)
    if isinstance(value, (list, tuple)) and any(isinstance(item, Pack) for item in value):
        return tuple(item if isinstance(item, Pack) else Pack(item) for item in value)
    return None


class Packs(RecordSource):
    """The records of packs, numbered through.

    Parameters
    ----------
    packs : sequence of Pack
    on_error, verify, remote
        As for `RecordSource`.

    Attributes
    ----------
    packs : tuple of Pack
    members : list of RecordSource
        The records of each.
    firsts : numpy.ndarray of int64
        Number of the first record of each.
    """

    def __init__(
        self,
        packs: Sequence[Pack],
        on_error: str = "raise",
        verify: bool = False,
        remote: RemoteSettings | None = None,
    ) -> None:
        self.packs = tuple(packs)
        # Files on servers are opened together, because they share the room on the disk.
        together = listed_files(_urls(packs), ".rec", remote) if len(packs) > 1 else []
        self.members = [
            RecordSource(pack.path, pack.path_imgidx, on_error, verify, remote) for pack in packs
        ]
        del together
        sizes = [len(member) for member in self.members]
        self.firsts = np.cumsum([0, *sizes[:-1]]).astype(np.int64)
        self.name = ";".join(member.name for member in self.members)
        self.paths = [path for member in self.members for path in member.paths]
        self.readers = [reader for member in self.members for reader in member.readers]
        self.tables = [table for member in self.members for table in member.tables]
        self.offsets = _joined([member.offsets for member in self.members])
        self.starts = _joined(
            [m.starts + first for m, first in zip(self.members, self.firsts, strict=True)]
        )
        self.faces = self.members[0].faces if len(packs) == 1 else []
        self.indexed = any(m.indexed or m.faces for m in self.members)

    def pack_of(self, record: int) -> int:
        """Number of the pack that a record belongs to."""
        return int(np.searchsorted(self.firsts, record, side="right")) - 1


def _shown(path: str | tuple[str, ...]) -> str | tuple[str, ...]:
    return shown(path) if isinstance(path, str) else tuple(map(shown, path))


def _urls(packs: Sequence[Pack]) -> list[str]:
    given = [pack.path.split(";") if isinstance(pack.path, str) else pack.path for pack in packs]
    return [path for paths in given for path in paths if is_url(path)]


def label_source(source: _Named, pack: Pack, distinct: Callable[[], np.ndarray]) -> LabelSource:
    """What is said about the labels of a pack; `distinct` reads the different ones."""
    identities = source.num_identities
    return LabelSource(source.name, distinct, pack.labels, pack.classes, identities)


def changed_labels(
    change: LabelChange,
    found: tuple[np.ndarray, dict[int, RecordIOError]],
    place_of: Callable[[int], dict[str, Any]],
    on_error: str,
) -> tuple[np.ndarray, dict[int, RecordIOError]]:
    """The first label of every record of a pack as it becomes; NaN for those that are unknown."""
    labels, errors = found
    labels, known = change.apply(labels)
    for record in np.flatnonzero(~known & ~np.isnan(labels)).tolist():
        error = LabelError(unknown_label(labels[record]), **place_of(record))
        if on_error == "raise":
            raise error
        errors[record] = error
    return np.where(known, labels, np.float32("nan")), errors


def _joined(arrays: list[np.ndarray]) -> np.ndarray:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
