"""Several packs of record images as one source, and the settings of each: `Pack`, `Packs`.

A pack is what one `Pack` names: a record file, or several that belong together.  Records are
numbered through, pack after pack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Unpack

import numpy as np

from recordio.bytes.files import listed_files
from recordio.bytes.remote.objects import redacted_url
from recordio.bytes.remote.settings import RemoteSettings, is_url
from recordio.containers.container import Choice
from recordio.containers.names import field_note
from recordio.errors import LabelError, RecordIOError
from recordio.keywords.checks import integer, paths, real, text, unknown_keyword
from recordio.keywords.checks import path as path_of
from recordio.keywords.options import Options, accepts, by_name, option, optional
from recordio.packs.classes import labels_of_names
from recordio.packs.labels import (
    MOST_CLASSES,
    LabelChange,
    LabelSource,
    agreed_names,
    unknown_label,
)
from recordio.packs.open_pack import open_listed

from ..augment.augmenter import Augmenter, AugmenterOptions
from ..augment.det_recipe import DetRecipe
from ..augment.recipe import Recipe
from .record_source import RecordSource

if TYPE_CHECKING:
    from ...core.pack_keywords import PackParameters


def _positive(name: str, value: Any) -> float:
    number = real(name, value)
    if number <= 0:
        raise ValueError(f"{name}={value!r}: expected a number above 0")
    return number


def _classes(name: str, value: Any) -> Any:
    """Return a number of classes, or names."""
    if isinstance(value, Mapping) or (
        isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value)
    ):
        return value
    return integer(name, value, low=1, high=MOST_CLASSES)


@dataclass(frozen=True, kw_only=True)
class PackOptions(Options):
    """The keywords of `Pack`, except those of augmentation."""

    positional = "path"

    path: Any = option(
        kind="str or os.PathLike, or a list of them",
        text="The record file or files, as ``path_imgrec`` of `ImageRecordIter` names them.",
        check=paths,
    )
    share: float | None = option(
        None,
        "float, optional",
        """The fraction of every stretch of an epoch that comes from this pack; those of all packs
        add up to 1.  A pack that is used up begins its next permutation, and one that is larger
        than its share goes on in the next epoch where it stopped.""",
        optional(_positive),
    )
    repeat: float | None = option(
        None,
        "float, optional",
        """How often the pack comes in an epoch, instead of a share: 3, or 0.5 for one half in every
        epoch.  Packs without it come once.""",
        optional(_positive),
    )
    labels: Any = option(
        "keep",
        '{"keep", "append", "names"}, mapping, array_like, callable or None',
        """"keep" leaves the class labels unchanged; "append" numbers them after the classes of the
        packs before; "names" gives them the labels that classes of the same names have there, and
        numbers new names behind.  A mapping, whose keys are labels or, as texts, names of classes,
        or an array with a number for each label from 0 on, gives the new
        labels; a function is called once, with an array of the different labels, and returns as
        many numbers.  None is for a pack without labels: they are -1, and images have no objects.
        A class label is the first label of a record, or the id of each object of a detection
        record.""",
    )
    classes: Any = option(
        None,
        "int, sequence of str or mapping of str to int, optional",
        """Number of classes of the pack, whose labels are whole numbers from 0 on.  Found from its
        identities or labels where it is needed; reading those of millions of records takes a
        while.  Names with their labels, such as ``train.class_to_idx``, or those of 0, 1, 2 and so
        on in this order, give the classes of the same names these labels.""",
        optional(_classes),
    )
    weights: Any = option(
        None,
        "array_like or mapping, optional",
        """Draw the records of the pack with replacement, as `weights` of `ImageRecordIter`; a
        mapping has the labels after their change by `labels`.""",
    )
    path_imgidx: Any = option("", "path, optional", "Index and list of labels of this pack.", paths)
    path_imglist: Any = option("", "path, optional", ..., path_of)
    image_field: str = option(
        "",
        "str, optional",
        """What of a sample in a container is the image, where that is not chosen by its usual
        names: an ending in tar files, such as ``"left.png"``, a feature of TFRecord, a column of
        Parquet or MDS, or a pattern of keys in LMDB, ``"image_hr-%09d"``.""",
        text,
    )
    label_field: str = option(
        "",
        "str, optional",
        """What of a sample in a container is the label, as `image_field`; in tar files, an ending
        or ``"json:NAME"``.""",
        text,
    )
    cache: Any = option(
        None,
        '{"ram"} or path, optional',
        "Keep the decoded images of this pack, as `cache` of `ImageRecordIter`.",
        path_of,
    )
    cache_size: int | None = option(
        None,
        "int, optional",
        "Bytes that these images may take.",
        optional(partial(integer, low=1)),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share is not None and self.repeat is not None:
            raise ValueError(f"share={self.share!r} and repeat={self.repeat!r}: give one of both")


#: The families of augmentation that iterators over packs have: a pack is not told which it is for.
AUGMENTATION_FAMILIES = (Recipe, DetRecipe, AugmenterOptions, Augmenter)


def _check_augmentation(name: str, value: Any, keywords: Iterable[str]) -> None:
    """Refuse a keyword that no iterator has, and a value that all of them refuse."""
    items = [i for family in AUGMENTATION_FAMILIES for i in fields(family) if i.name == name]
    if not items:
        raise unknown_keyword("Pack", name, keywords)
    checks = [item.metadata["check"] for item in items if item.metadata["check"]]
    errors = [error for check in checks if (error := _refused(check, name, value))]
    if errors and len(errors) == len(checks):
        raise errors[0]


def _refused(check: Callable[[str, Any], Any], name: str, value: Any) -> Exception | None:
    try:
        check(name, value)
    except (TypeError, ValueError) as error:
        return error
    return None


@accepts(PackOptions, rest="augmentation")
class Pack:
    """One of several packs that are used together: its files, its share, its labels.

    Parameters
    ----------
    {parameters}
    **augmentation
        Keywords of augmentation and normalisation that differ from those of the provider, such as
        ``resize`` or ``rand_mirror``.

    Raises
    ------
    TypeError, ValueError
        For a keyword that no iterator over images has, and for a value that all of them refuse.

    Examples
    --------
    >>> Pack("mine/train.rec", share=0.3, labels="append")
    Pack('mine/train.rec', share=0.3, labels='append')
    """

    def __init__(self, *values: Any, **keywords: Unpack[PackParameters]) -> None:
        own = {item.name for item in fields(PackOptions)}
        arguments = by_name("Pack", keywords, PackOptions, values)
        options = PackOptions.of("Pack", {n: v for n, v in arguments.items() if n in own})
        augmentation = {name: value for name, value in arguments.items() if name not in own}
        names = own | {i.name for family in AUGMENTATION_FAMILIES for i in fields(family)}
        for name, value in augmentation.items():
            _check_augmentation(name, value, names)
        self.path: str | tuple[str, ...] = options.path
        self.share: float | None = options.share
        self.repeat: float | None = options.repeat
        self.labels: Any = options.labels
        self.classes: Any = options.classes
        self.weights: Any = options.weights
        self.path_imgidx: str | tuple[str, ...] = options.path_imgidx
        self.path_imglist: str = options.path_imglist
        self.image_field: str = options.image_field
        self.label_field: str = options.label_field
        self.cache: str = options.cache
        self.cache_size: int | None = options.cache_size
        self.augmentation: Mapping[str, Any] = augmentation

    def choice(self, boxes: bool = False, several: bool = False) -> Choice:
        """Return what of the samples of a container is used; for the wishes see `Choice`."""
        return Choice(
            image_field=self.image_field,
            label_field=self.label_field,
            boxes=boxes,
            several=several,
        )

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each name of a class in the files, before `labels` changes it."""
        files = open_listed(self.path, self.path_imgidx, choice=self.choice())
        return labels_of_names({k: v for file in files for k, v in file.shown_classes.items()})

    def __repr__(self) -> str:
        plain = vars(Pack(""))
        changed = {n: v for n, v in vars(self).items() if v is not plain[n] and v != plain[n]}
        changed.pop("path", None)
        changed.update(changed.pop("augmentation", {}))
        named = [f"{name}={value!r}" for name, value in changed.items()]
        return f"Pack({', '.join([repr(_shown(self.path)), *named])})"


class _Named(Protocol):
    """A source of images, as far as it matters here."""

    name: str

    @property
    def num_identities(self) -> int | None:
        """Number of its identities, if it is a face-recognition pack."""


def as_packs(value: Any) -> tuple[Pack, ...] | None:
    """Return the packs of a `Pack` or of a list with at least one; None where there is none.

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
    """The records of packs, numbered through, and of each of the packs."""

    def __init__(
        self,
        packs: Sequence[Pack],
        on_error: str = "raise",
        verify: bool = False,
        remote: RemoteSettings | None = None,
        **wishes: bool,
    ) -> None:
        self.packs: tuple[Pack, ...] = tuple(packs)
        # Files on servers are opened together, because they share the room on the disk.
        together = listed_files(_urls(packs), ".rec", remote) if len(packs) > 1 else []
        self.members: list[RecordSource] = [
            RecordSource.open(
                pack.path, pack.path_imgidx, on_error, verify, remote, pack.choice(**wishes)
            )
            for pack in packs
        ]
        del together
        super().__init__(
            [file for member in self.members for file in member.files],
            ";".join(member.name for member in self.members),
            any(member.indexed or member.faces for member in self.members),
        )
        #: Number of the first record of each.
        self.firsts: np.ndarray = np.cumsum([0, *map(len, self.members[:-1])]).astype(np.int64)
        self.faces = self.members[0].faces if len(packs) == 1 else []

    def say_notes(
        self, fields: Iterable[str] | None, *, strict: bool = False, stacklevel: int = 2
    ) -> None:
        """Say what is odd about them; that what is asked for as a field is one is not."""
        notes = self.notes
        for name in fields or ():
            notes.kinds.pop(field_note(name), None)
        notes.say(self.name, strict=strict, stacklevel=stacklevel)

    def pack_of(self, record: int) -> int:
        """Return the number of the pack that a record belongs to."""
        return int(np.searchsorted(self.firsts, record, side="right")) - 1


def _shown(path: str | tuple[str, ...]) -> str | tuple[str, ...]:
    return redacted_url(path) if isinstance(path, str) else tuple(map(redacted_url, path))


def _urls(packs: Sequence[Pack]) -> list[str]:
    lists = [pack.path.split(";") if isinstance(pack.path, str) else pack.path for pack in packs]
    return [path for paths in lists for path in paths if is_url(path)]


def label_source(source: _Named, pack: Pack, distinct: Callable[[], np.ndarray]) -> LabelSource:
    """Return a pack as `label_changes` takes it; `distinct` reads the different labels."""
    identities = source.num_identities
    return LabelSource(
        source.name, distinct, pack.labels, pack.classes, identities, partial(names_of, source)
    )


def names_of(source: Any) -> dict[int, str]:
    """Read the names of the classes of a pack; servers are not asked.

    One label that has two names in two of its files is a RecordIOError.
    """
    keep = LabelChange()
    return agreed_names([(f.prefix, f.shown_classes, keep) for f in getattr(source, "files", ())])


def check_names(
    members: Iterable[Any], changes: Iterable[LabelChange], listed: Iterable[Any]
) -> None:
    """Raise RecordIOError where files that are used together have two names for one label.

    Servers are not asked, and names do not matter where labels come from a list.
    """
    agreed_names(
        [
            (file.prefix, file.shown_classes, change)
            for member, change, table in zip(members, changes, listed, strict=True)
            if table is None and isinstance(member, RecordSource) and not member.is_remote
            for file in member.files
        ]
    )


def changed_labels(
    change: LabelChange,
    labels_and_errors: tuple[np.ndarray, dict[int, RecordIOError]],
    location_of: Callable[[int], dict[str, Any]],
    on_error: str,
) -> tuple[np.ndarray, dict[int, RecordIOError]]:
    """Change the first label of every record of a pack; NaN for those that are unknown."""
    labels, errors = labels_and_errors
    labels, is_known = change.apply(labels)
    for record in np.flatnonzero(~is_known & ~np.isnan(labels)).tolist():
        error = LabelError(unknown_label(labels[record]), **location_of(record))
        if on_error == "raise":
            raise error
        errors[record] = error
    return np.where(is_known, labels, np.float32("nan")), errors
