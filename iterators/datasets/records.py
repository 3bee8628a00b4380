"""Record files as datasets: the records themselves, and decoded images with their labels.

Every example is read when its index is used; nothing is cached or shuffled.
`iterators.ImageRecordIter` makes whole epochs of augmented batches faster.
"""

from __future__ import annotations

import functools
import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from recordio.bytes.mapping import LOST, is_lost
from recordio.bytes.remote.settings import RemoteOptions, RemoteSettings
from recordio.errors import LabelError, RecordIOError, TruncatedRecordError
from recordio.formats.decode import decode_image
from recordio.frames.encoder import MAX_RECORD_LENGTH
from recordio.header import IRHeader, unpack
from recordio.keywords.checks import boolean, choice, integer
from recordio.keywords.options import accepts, by_name, described, option, optional
from recordio.notes import Notes
from recordio.packs.labels import LabelChange, label_changes
from recordio.packs.open_pack import OpenPack

from ..core.backend import backend_of
from ..core.dtypes import dtype_name, quoted
from ..core.field_specs import FieldKind, FieldOptions, Image
from ..core.indexing import resolve_rows
from ..core.layout import plan
from ..images.augment.recipe import Recipe
from ..images.examples import AUGMENTATION, AugmentedExamples
from ..images.fields.example_fields import StoredFields
from ..images.fields.image_fields import ImageFields
from ..images.limit_options import LimitOptions
from ..images.sources.mixed_packs import (
    Pack,
    PackOptions,
    Packs,
    as_packs,
    check_names,
    label_source,
)
from ..images.sources.record_source import RecordSource, read_label_vectors
from ..images.stored_bits import CutBits
from .dataset_base import DatasetMixin
from .decoding import DecodingThreads, ThreadOptions

if TYPE_CHECKING:
    from ..core.keywords import ImageRecordDatasetParameters, RecordDatasetKeywords

Path = str | os.PathLike[str]

#: Types of the values of an image.
DTYPES = ("uint8", "float32", "uint16")
TO_CHW = plan("hwc", "chw")
MOST_LABELS = MAX_RECORD_LENGTH // 4  # those of the longest record


@dataclass(frozen=True, kw_only=True)
class RecordDatasetOptions(RemoteOptions):
    """The keywords of `RecordDataset`."""

    positional = "path index"

    path: Path = option(kind="path", text="The record file, or its URL.")
    index: Path | None = option(
        None,
        "path, optional",
        """Its ``.idx`` file; examples then come in its order.  Without one they come in the order
        of the file, which is scanned once.""",
    )
    header: bool = option(
        False,
        "bool",
        """Whether records begin with an image header.  An example is then ``(IRHeader, payload)``.
        """,
        boolean,
    )
    copy: bool = option(
        True,
        "bool",
        """True: payloads are bytes, which can be pickled and therefore sent between processes.
        False: they are read-only memoryviews of the mapped file, without a copy.""",
        boolean,
    )


@accepts(RecordDatasetOptions)
class RecordDataset(DatasetMixin):
    """The records of any record file.

    Parameters
    ----------
    {parameters}

    Raises
    ------
    OSError, IndexFileError
        As `recordio.RecordReader`.
    CorruptRecordError, TruncatedRecordError, RecordHeaderError
        When a damaged record is read.

    Notes
    -----
    Negative integers count from the end.  Any number of threads may read one dataset; it can be
    used after a fork, and pickling stores the paths only.  Lists and slices are read with
    `recordio.RecordReader.read_many`, and so are the batches of torch's ``DataLoader``.

    Examples
    --------
    >>> import pathlib, recordio, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.rec")
    >>> with recordio.RecordWriter(path) as writer:
    ...     for text in (b"one", b"two", b"three"):
    ...         _ = writer.write(text)
    >>> records = RecordDataset(path)
    >>> len(records), records[-1], records[[1, 0]]
    (3, b'three', [b'two', b'one'])
    """

    def __init__(self, *values: Any, **keywords: Unpack[RecordDatasetKeywords]) -> None:
        options = RecordDatasetOptions.of(type(self).__name__, keywords, values)
        self.reader: Any = OpenPack(options.path, options.index, settings=options.remote).reader
        self._header = options.header
        self._copy = options.copy

    def __len__(self) -> int:
        return len(self.reader)

    def get_example(self, i: Any) -> bytes | memoryview | tuple[IRHeader, Any]:
        """Return the record at a position."""
        record = self.reader[i]
        payload = bytes(record) if self._copy else record
        if is_lost(record):
            raise TruncatedRecordError(LOST, **self.location_of(i))
        return self._finish(payload, i)

    def __getitems__(self, indices: Sequence[int] | np.ndarray) -> list[Any]:
        """Return several records, read at once."""
        records: list[Any] = self.reader.read_many(indices, copy=self._copy)
        if not self._header:
            return records
        return [self._finish(record, i) for i, record in zip(indices, records, strict=True)]

    def _finish(self, payload: bytes | memoryview, i: Any) -> Any:
        if not self._header:
            return payload
        try:
            return unpack(payload)
        except RecordIOError as error:
            raise error.at(**self.location_of(i)) from None

    def location_of(self, i: Any) -> dict[str, Any]:
        """Return the position of an example, as `RecordIOError` names it."""
        row = resolve_rows(i, len(self))
        return {"path": self.reader.path, "offset": self.reader.offset_of(row), "record": row}


def _label_dtype(name: str, value: Any) -> np.dtype:
    dtype = np.dtype(value)
    if dtype.kind not in "iuf":
        raise TypeError(f"{name}={value!r}: expected a type of real numbers")
    return dtype


@dataclass(frozen=True, kw_only=True)
class ImageRecordDatasetOptions(ThreadOptions, LimitOptions, RemoteOptions):
    """The keywords of `ImageRecordDataset`, except those of augmentation."""

    positional = "path index"

    path: Any = option(
        kind="path, Pack, or a list of them",
        text="""A record file, a folder of them, or several paths separated by semicolons.  In a
        face-recognition pack, the examples are the images.  A `Pack` may also change its labels;
        examples are numbered consecutively, pack after pack.""",
    )
    index: Any = option(
        "",
        "path",
        """``.idx`` files in the same form.  Optional: without them the files are scanned once.  A
        `Pack` names its own.""",
    )
    image_field: str = described(PackOptions, "image_field")
    label_field: str = described(PackOptions, "label_field")
    classes: Any = described(PackOptions, "classes")
    channels: int | None = option(
        None,
        "{3, 1, 4}",
        """3 for RGB, 1 for grey, 4 for RGBA, as it is stored.  Augmented images have the channels
        of `data_shape`.""",
    )
    orient: bool = described(Recipe, "orient")
    layout: str | None = option(
        None,
        '{"HWC", "CHW"}',
        'Order of the axes; by default "HWC" for unchanged and "CHW" for augmented images.',
    )
    dtype: Any = option(
        None,
        '{"uint8", "float32", "uint16"}',
        f"""\"uint8", the default for unchanged images; ``"float32"`` or ``"uint16"`` for the values
        that are stored, such as depths and medical images of 16 bits or, as float32, floating
        point, with every bit and without scaling; for 1 or 3 channels.  Augmented images have
        {quoted()}; those of float32 and uint16 keep every bit unless they are resized or their
        colours change, of which a warning or, for uint16, an error tells.""",
    )
    transform: Callable[[np.ndarray], Any] | None = option(
        None,
        "callable, optional",
        """Function that is called with the image, or each view of it, and returns its replacement.
        It runs in the thread of the caller.""",
    )
    fields: Any = described(
        FieldOptions,
        "fields",
        """Parts of an example between its image and its label, by name: ``{"mask": Mask()}`` of
        `iterators.fields`; for a name alone, or None in place of a field, ``PREFIX.fields.json``
        gives the kind.  A field is stored in ``PREFIX.name.rec`` beside ``PREFIX.rec``, in records
        with the keys of the images.  It is moved as an augmented image is, or has the size of an
        unchanged one; `transform` does not change it.""",
    )
    label_dtype: Any = option(
        np.float32,
        "dtype_like",
        "Element type of the labels, float32 in the file.",
        _label_dtype,
    )
    multi_hot: int | None = option(
        None,
        "int, optional",
        """Number of classes of records with any number of labels each: the label of an example has
        so many values, 1 for each label of the record and 0 for the others.""",
        optional(functools.partial(integer, low=1, high=MOST_LABELS)),
    )


@accepts(ImageRecordDatasetOptions, rest="keywords")
class ImageRecordDataset(DatasetMixin):
    """Decoded images of record files, with their labels; unchanged or augmented.

    Parameters
    ----------
    {parameters}
    **keywords
        With a `data_shape`, or a `recipe` that has one, images are augmented: keywords of `Recipe`,
        and `recipe`, `views` and `seed` of `ImageRecordIter`.

    Attributes
    ----------
    given : dict
        The keywords with which it was made.
    source : RecordSource
        The files; ``source.labels()`` reads all labels without decoding an image.
    fields : dict of str to field
        The fields of an example by name, in their order.
    identities : numpy.ndarray of int64, (identities, 2), or None
        In a face-recognition pack, the examples ``[first, end)`` of every identity.

    Raises
    ------
    OSError
        If a file cannot be read.
    EmptyRecordFileError
        If there is no record.
    FieldError
        If a pack has no such field, or a record of the field is missing or not of its kind.
    ImageDecodeError, RecordHeaderError, CorruptRecordError, TruncatedRecordError
        When a bad record is read; the error names path, offset and record.
    LabelError
        If `label_dtype` is an integer type and a label is not a whole number in its range.
    TypeError, ValueError
        For keywords that do not exist, that need a `data_shape`, or that contradict one another.

    Notes
    -----
    An example is ``(image, label)``, with views ``(view, view, ..., label)``, and with fields
    ``(image, field, ..., label)``.  Images are arrays of `dtype` and shape (height, width,
    channels) or (channels, height, width); a label is a NumPy scalar, or an array of shape
    (labels,) where the record has a vector.  Fields are those of a batch of `ImageRecordIter`
    without its first axis, texts and JSON values included; packed objects are as many as the image
    has, and every view has its own fields.  Example i is the i-th sample of ``ImageRecordIter``
    without shuffling; augmented images are those of the epoch that `set_epoch` sets, and the same
    at every access within it.  Negative integers count from the end.  Threads and processes may
    share a dataset; 8 bytes are kept for a record.

    Examples
    --------
    >>> import pathlib, recordio, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.rec")
    >>> with recordio.RecordWriter(path) as writer:
    ...     for label in (3, 5):
    ...         pixels = np.full((4, 6, 3), 10 * label, np.uint8)
    ...         header = recordio.IRHeader(0, label, 0, 0)
    ...         _ = writer.write(recordio.pack_img(header, pixels, img_fmt=".png"))
    >>> images = ImageRecordDataset(path, layout="CHW", label_dtype="int64")
    >>> image, label = images[1]
    >>> image.shape, image.max(), label, len(images)
    ((3, 4, 6), np.uint8(50), np.int64(5), 2)
    >>> views = [{"auto_augment": "randaugment"}, {"data_shape": (3, 2, 2), "mean_r": 1}]
    >>> first, second, label = ImageRecordDataset(path, data_shape=(3, 4, 4), views=views)[0]
    >>> first.shape, second[:, 0, 0].tolist(), label
    ((3, 4, 4), [29.0, 30.0, 30.0], np.float32(3.0))
    """

    def __init__(self, *values: Any, **keywords: Unpack[ImageRecordDatasetParameters]) -> None:
        owner = type(self).__name__
        arguments = by_name(owner, keywords, ImageRecordDatasetOptions, values)
        self.arguments: dict[str, Any] = dict(arguments)
        own = {item.name for item in fields(ImageRecordDatasetOptions)}
        augmentation = {name: arguments.pop(name) for name in AUGMENTATION & arguments.keys() - own}
        options = ImageRecordDatasetOptions.of(owner, arguments, also=AUGMENTATION)
        self._threads = DecodingThreads(options.threads)
        self._limits: dict[str, Any] = options.limits
        self._examples: AugmentedExamples | None = None
        self._cut = CutBits()
        self._stored: StoredFields | None = None
        if augmentation:
            if "orient" in arguments:  # a recipe may say it as well
                augmentation["orient"] = options.orient
            self._augment(augmentation, options)
        else:
            self._upright = options.orient
            channels = options.channels
            self._channels = choice("channels", 3 if channels is None else channels, (3, 1, 4))
            self._layout = choice("layout", options.layout or "HWC", ("HWC", "CHW"))
            self._dtype = choice("dtype", np.dtype(options.dtype or "uint8").name, DTYPES)
            if self._dtype != "uint8" and channels == 4:
                raise ValueError("channels=4 has 8 bits: drop dtype, or ask for 1 or 3 channels")
        self._label_dtype = options.label_dtype
        self._multi_hot = options.multi_hot
        self._transform = options.transform
        packs = as_packs(options.path)
        if options.index and packs:
            raise ValueError("index belongs to one pack: give path_imgidx to that Pack")
        chosen = options.values("image_field", "label_field", "classes")
        for name in chosen if packs else ():
            if chosen[name]:
                raise ValueError(f"{name} belongs to one pack: give it to that Pack")
        self.packs: tuple[Pack, ...] = packs or (
            Pack(options.path, path_imgidx=options.index, **chosen),
        )
        _refuse_mixing(self.packs)
        settings = options.remote
        self.source: Packs = Packs(self.packs, remote=settings)
        self.source.say_notes(options.fields, stacklevel=3)
        self._add_fields(options)
        if self._examples is not None:
            self._examples.count = len(self)
        self._lists = [_labels_of_list(pack.path_imglist, settings) for pack in self.packs]
        unlisted = Notes()
        for member, pack, table in zip(self.source.members, self.packs, self._lists, strict=True):
            if table is not None:
                ids = np.fromiter(table, np.uint64, len(table))
                member.note_unlisted(ids, pack.path_imglist, unlisted)
        unlisted.say(self.source.name, stacklevel=3)
        self._changes, self._count_classes = label_changes(
            [
                label_source(member, pack, functools.partial(_distinct, member, listed))
                for member, pack, listed in zip(
                    self.source.members, self.packs, self._lists, strict=True
                )
            ]
        )
        check_names(self.source.members, self._changes, self._lists)

    def _augment(self, augmentation: dict[str, Any], options: ImageRecordDatasetOptions) -> None:
        form = {"layout": options.layout, "dtype": options.dtype}
        form = {name: value for name, value in form.items() if value is not None}
        if "dtype" in form:
            form["dtype"] = dtype_name(form["dtype"])
        examples = AugmentedExamples(type(self).__name__, augmentation | form, **self._limits)
        self._channels = examples.recipes[0].channels
        if options.channels not in (None, self._channels):
            raise ValueError(
                f"channels={options.channels!r}, but data_shape has {self._channels}: drop it"
            )
        self._examples = examples

    def _add_fields(self, options: ImageRecordDatasetOptions) -> None:
        """Open the fields, and find what makes them."""
        examples, views = self._examples, 0
        if examples is not None and len(examples.recipes) > 1:
            views = len(examples.recipes)
        self._fields = ImageFields(options.fields, self.source, views)
        if not self._fields:
            return
        if examples is not None:
            examples.fields = self._fields
            return
        if self._dtype != "uint8":
            for name, kind in self._fields.specs.items():
                if isinstance(kind, Image) and kind.dtype is None:
                    raise ValueError(
                        f"fields: {name}={kind!r} has the type of the image, and dtype="
                        f"{self._dtype!r} gives stored values: give it a dtype of its own"
                    )
        form = {"layout": f"N{self._layout}", "dtype": self._dtype, **self._limits}
        self._stored = StoredFields(self._fields, self._channels, self._upright, **form)

    @property
    def fields(self) -> dict[str, FieldKind]:
        """The fields of an example by name, in their order; with views those of each."""
        return self._fields.kinds()

    def example_parts(self) -> dict[str, tuple[int, dict[str, Any]]]:
        """Name the parts of an example, with their places and what is known of each.

        Returns
        -------
        dict of str to (int, dict)
            ``input``, or with views ``input0``, ``input1``, ...; the fields; and ``target``.  A
            field has its ``kind``, with its entry of ``PREFIX.fields.json``, and the requested
            ``field``; images have a ``layout`` and a ``dtype``, and augmented ones a ``shape``;
            ``classes`` of the target names labels.
        """
        examples = self._examples
        form = {"layout": self._layout, "dtype": self._dtype} if examples is None else {}
        images: list[dict[str, Any]] = [{"kind": "image", **form}]
        if examples is not None:
            options = examples.options
            images = [
                {
                    "kind": "image",
                    "layout": options.layout,
                    "dtype": options.dtype,
                    "shape": plan.shape(1)[1:],
                }
                for plan in examples.plans()
            ]
        names = ["input"] if len(images) == 1 else [f"input{i}" for i in range(len(images))]
        stored = self.source.fields_meta
        parts = dict(zip(names, images, strict=True))
        for name, field, kind in self._fields.named():
            stored_facts = stored[field].facts() if field in stored else {}
            parts[name] = {"kind": type(kind).__name__.lower(), **stored_facts, "field": kind}
        classes = {k: v for file in self.source.files for k, v in file.shown_classes.items()}
        parts["target"] = {"kind": "label", **({"classes": classes} if classes else {})}
        return {name: (place, facts) for place, (name, facts) in enumerate(parts.items())}

    def __repr__(self) -> str:
        packs, examples = ", ".join(map(repr, self.packs)), self._examples
        if examples is None:
            form = f"{self._layout} {self._dtype}"
        else:
            options = examples.options
            shapes = " and ".join(str(tuple(recipe.data_shape)) for recipe in examples.recipes)
            form = f"{options.layout} {options.dtype} of {shapes}, epoch {self.epoch}"
        return f"<{type(self).__name__} of {packs}: {len(self)} images, {form}>"

    @property
    def epoch(self) -> int:
        """Number of the epoch, on which the augmentation of images depends."""
        return 0 if self._examples is None else self._examples.epoch.value

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, also for the worker processes of a loader, persistent ones included.

        Raises
        ------
        ValueError
            If images are not augmented, so that all epochs are the same.
        """
        if self._examples is None:
            raise ValueError("images are not augmented, so that epochs do not differ")
        self._examples.set_epoch(epoch)

    @property
    def identities(self) -> np.ndarray | None:
        """Examples ``[first, end)`` of every identity of a face-recognition pack, else None."""
        faces = self.source.faces
        if len(faces) == 1:
            return self.source.files[0].image_spans()
        keys = self.source.identities
        return None if keys is None else keys - 1  # numbered from 1 through all files

    @property
    def num_classes(self) -> int:
        """Number of classes of all packs; the first time it may read the labels of all records."""
        return self._count_classes()

    def pack_of(self, i: int) -> int:
        """Return the number of the pack that an example comes from."""
        return self.source.pack_of(resolve_rows(i, len(self)))

    def __len__(self) -> int:
        return len(self.source)

    def get_example(self, i: Any) -> tuple[Any, ...]:
        """Return the image, transformed if there is a transform, and the label of a record."""
        return self._finish(*self._read(resolve_rows(i, len(self))))

    def __getitems__(self, indices: Sequence[int] | np.ndarray) -> list[tuple[Any, ...]]:
        """Return several examples, decoded by several threads."""
        rows = [resolve_rows(i, len(self)) for i in indices]
        return [self._finish(*example) for example in self._threads.map(self._read, rows)]

    def _read(self, row: int) -> tuple[Any, list[Any], Any]:
        if not (self._fields and self.source.is_remote):
            return self._read_here(row)
        with self.source.pin(np.array([row])):
            return self._read_here(row)

    def _read_here(self, row: int) -> tuple[Any, list[Any], Any]:
        """Read image, fields and label, with the records of the fields at hand."""
        source = self.source
        file = bisect_right(source.starts, row) - 1
        pack, number = source.files[file], row - int(source.starts[file])
        location = pack.location(number)
        offset = int(pack.offsets[number])
        record, _ = pack.reader.read_at(offset, pack.number_of(number), copy=True)
        image: Any
        try:
            record = b"" if record is None else record
            header, content = unpack(record)
            if self._examples is not None:
                image = self._examples(record, row)
            else:
                if self._dtype == "uint8":
                    self._cut.look(content, "dtype='uint8'")
                image = decode_image(
                    content,
                    channels=self._channels,
                    dtype=self._dtype,
                    orient=self._upright,
                    **self._limits,
                )
            label = self._label(header, source.pack_of(row))
        except RecordIOError as error:
            raise error.at(**location) from None
        beside: list[Any] = []
        if self._stored is not None:
            beside = self._stored.of(row, *image.shape[:2])
        elif self._fields and self._examples is not None:
            beside = self._examples.fields_of(row)
        if self._examples is None and self._layout == "CHW":
            image = backend_of(image).contiguous(TO_CHW(image))
        return image, beside, label

    def _label(self, header: IRHeader, pack: int) -> Any:
        listed, change = self._lists[pack], self._changes[pack]
        stored = np.array(header.label, np.float32)
        if listed is not None and not change.absent:
            if header.id not in listed:
                raise LabelError("the list of labels has no line for this id", record_id=header.id)
            stored = listed[header.id]
        if self._multi_hot is not None:
            stored = self._row_of(stored, change, header.id)
        else:
            stored = np.array(-1, np.float32) if change.absent else change.of_record(stored)
        dtype = self._label_dtype
        if dtype.kind != "f":
            limits = np.iinfo(dtype)
            wide = stored.astype(np.float64)
            inside = (wide >= float(limits.min)) & (wide < float(limits.max + 1))
            if not (inside & (wide == np.floor(wide))).all():
                raise LabelError(
                    f"the label {stored.tolist()} does not fit {dtype.name}", record_id=header.id
                )
        return stored.astype(dtype)[()]

    def _row_of(self, labels: np.ndarray, change: LabelChange, record_id: int) -> np.ndarray:
        """Make a row with 1 at each label of a record; -1 for all where labels are absent."""
        count = self._multi_hot or 0
        if change.absent:
            return np.full(count, -1, np.float32)
        labels, is_known = change.apply(np.atleast_1d(labels))
        is_known &= (labels >= 0) & (labels < count) & (labels == np.floor(labels))
        if not is_known.all():
            wrong = labels[np.argmin(is_known)]
            raise LabelError(
                f"the label {wrong:g} numbers none of the {count} classes of multi_hot",
                record_id=record_id,
            )
        row = np.zeros(count, np.float32)
        row[labels.astype(int)] = 1
        return row

    def _finish(self, image: Any, fields: list[Any], label: Any) -> tuple[Any, ...]:
        views = image if isinstance(image, tuple) else (image,)
        if self._transform is not None:
            views = tuple(map(self._transform, views))
        return *views, *fields, label


def _refuse_mixing(packs: Sequence[Pack]) -> None:
    """Refuse what says how often images come, and what becomes of them."""
    for pack in packs:
        for name in ("share", "repeat", "weights", "cache"):
            if getattr(pack, name) not in (None, ""):
                raise ValueError(f"{name} of {pack!r} is for iterators over packs: drop it")
        for name in pack.augmentation:
            raise ValueError(
                f"{name} of {pack!r} is for iterators over packs: give it to the data set"
            )


def _labels_of_list(path: str, remote: RemoteSettings) -> dict[int, np.ndarray] | None:
    """Return the labels of every id of a list file."""
    if not path:
        return None
    ids, starts, values = read_label_vectors(path, remote)
    rows = np.split(values, starts[1:-1])
    return {int(key): row if len(row) > 1 else row[0] for key, row in zip(ids, rows, strict=True)}


def _distinct(source: RecordSource, listed: dict[int, np.ndarray] | None) -> np.ndarray:
    """Return the different class labels of a pack."""
    if listed is None:
        labels, _ = source.labels(on_error="skip")
    else:
        labels = np.array([np.atleast_1d(row)[0] for row in listed.values()], np.float32)
    return np.unique(labels[~np.isnan(labels)])
