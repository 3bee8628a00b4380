"""`ImageDetIter`: MXNet's Python iterator over images with boxes, augmented in Python.

Labels come from records, list files and lists in memory.  `ImageDetRecordIter` does the same kind
of work in the image stage, with parameters of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from recordio.boxes import boxes_of
from recordio.bytes.remote.settings import RemoteSettings
from recordio.errors import LabelError, RecordIOError
from recordio.extras import need
from recordio.header import IRHeader
from recordio.keywords.checks import integers
from recordio.keywords.options import accepts, divided
from recordio.list_files import read_entries

from ..core.batch import DataDesc
from ..core.dtypes import FLOAT_TYPES
from ..core.layout import plan as layout_plan
from ..images.augment.augmenter import Augmenter, per_channel
from ..images.contact_sheet import COLOURS
from ..images.plan import RenderPlan
from ..images.row_writer import LinearPlan
from ..images.sources.mixed_packs import as_packs
from ..images.sources.record_source import read_label_vectors
from ..providers.image_engines import ImageEngines
from ..providers.image_job import ImageJob
from ..providers.image_labels import Labels, distinct_classes
from ..providers.image_options import ImageDetIterOptions
from ..providers.image_provider import RecordImageProvider
from ..providers.image_sources import ImageFileSource, listed_items
from ..providers.python_images import PythonImages, listed_labels
from .create import CreateDetAugmenter, DetAugmenterOptions
from .image_iter import (
    TAILS,
    ImageIter,
    callables,
    check_label_types,
    described_step,
    lists_files,
    open_images,
    refuse_for_functions,
    saved_of,
    shape_alone,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..core.keywords import ImageDetIterParameters

logger: logging.Logger = logging.getLogger("iterators")

#: Filling of a label behind the objects of its image.
PADDING = -1.0


@dataclass(frozen=True)
class DetSteps:
    """Functions on images and objects one after the other, and the label that comes of it."""

    steps: Sequence[Any]
    label_shape: tuple[int, int]
    listed: tuple[Any, ...] | None

    def __call__(self, image: np.ndarray, header: IRHeader) -> tuple[Any, np.ndarray]:
        """Return the image that the steps make, and its objects."""
        values = header.label if self.listed is None else listed_labels(self.listed, header.id)
        objects = objects_of(values)
        most, width = self.label_shape
        least = min(len(objects), 1)  # an image without objects stays one
        if not least:
            objects = np.zeros((0, width), np.float32)
        for step in self.steps:
            image, objects = step(image, objects)
        objects = np.asarray(objects, np.float32)
        if objects.ndim != 2 or not least <= len(objects) <= most or objects.shape[1] != width:
            raise LabelError(
                f"objects of shape {objects.shape}: expected ({least} to {most}, {width}); "
                "reshape() makes room for more"
            )
        label = np.full(self.label_shape, PADDING, np.float32)
        label[: len(objects)] = objects
        return image, label


@accepts(ImageDetIterOptions, DetAugmenterOptions)
class ImageDetIter(ImageIter):
    """Batches of images and the objects on them, augmented by functions in Python.

    The label of an image is ``[A, B, A - 2 more header values, objects of B values]`` with A of at
    least 2 and B of at least 5; an object begins with id, xmin, ymin, xmax, ymax in fractions of
    the image.  Objects without area are dropped.  A batch has a label array ``(batch_size, objects,
    B)``, filled with -1 after the objects of an image.

    Parameters
    ----------
    {parameters}

    Raises
    ------
    TypeError
        For a parameter that does not exist; the closest one is suggested.
    ValueError
        For a value that is out of range or has no effect, and for lists and files without images.
    LabelError
        When the iterator is made, if any label has another form, an object that cannot be right
        (see `recordio.boxes_of`), or objects of which none has an area; with
        ``on_error="skip"``, if all labels are of that kind.
    RecordIOError
        If the record file or its index is damaged.
    OSError
        If a file cannot be read.

    Attributes
    ----------
    label_shape : (int, int)
        Objects of the image with the most of them, and values of an object.

    See Also
    --------
    ImageDetRecordIter : the same kind of batches without Python for each image.
    CreateDetAugmenter : the steps for an image if there is no `aug_list`.

    Notes
    -----
    All labels of all parts are read when the iterator is made, so that parts agree on the shape;
    MXNet reads those of the part.

    Examples
    --------
    >>> import cv2, os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "a.png")
    >>> _ = cv2.imwrite(path, np.zeros((12, 16, 3), np.uint8))
    >>> boxes = [[2, 5, 0, 0.1, 0.1, 0.5, 0.9], [2, 5, 0, 0.2, 0.2, 0.3, 0.3, 1, 0.5, 0.5, 1, 1]]
    >>> with ImageDetIter(2, (3, 8, 8), imglist=[[label, path] for label in boxes]) as provider:
    ...     (batch,) = provider
    >>> batch.data[0].shape, batch.label[0].shape
    ((2, 3, 8, 8), (2, 2, 5))
    >>> batch.label[0][0, 1].tolist()
    [-1.0, -1.0, -1.0, -1.0, -1.0]
    >>> folder.cleanup()
    """

    def __init__(self, *values: Any, **keywords: Unpack[ImageDetIterParameters]) -> None:
        own, augmentation = divided(
            type(self).__name__, keywords, ImageDetIterOptions, DetAugmenterOptions, values=values
        )
        options = ImageDetIterOptions(**own)
        check_label_types(options, own)
        files, listed = _listed(options)
        #: The keywords of the steps, or None if there is an `aug_list`.
        self._described: dict[str, Any] | None = None
        if options.aug_list is None:
            self._described = augmentation
            recipe = Augmenter(data_shape=augmentation["data_shape"])
            self._steps = tuple(CreateDetAugmenter(**augmentation))
        else:
            recipe, self._steps = shape_alone(augmentation), callables(options.aug_list)
        refuse_for_functions(options)
        scaled_decode = "scaled_decode" in keywords
        job = ImageJob.of(
            options.for_records(),
            [recipe],
            scaled_decode=scaled_decode,
            dtypes=FLOAT_TYPES,
            plan_class=LinearPlan,
            tail=TAILS[options.last_batch_handle],
            change=partial(_det_steps, self._steps),
            more=saved_of(options, self._steps),
        )
        source = open_images(files, job, boxes=True)
        labels = _labels(source, listed, options)
        self._label_shape = cast(tuple[int, int], labels.shape)
        # That of `ImageIter` is about other keywords.
        RecordImageProvider.__init__(self, job, source, labels)

    @property
    def data_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an image."""
        return cast(tuple[int, int, int], self._plans[0].recipe.data_shape)

    @property
    def label_shape(self) -> tuple[int, int]:
        """Objects that there is room for in a label, and values of an object."""
        return self._label_shape

    def check_label_shape(self, label_shape: Sequence[int]) -> tuple[int, int]:
        """Return a label shape that has room for the objects of every image; ValueError if not."""
        most, width = integers("label_shape", label_shape, 2)
        if most < self._label_shape[0] or width != self._label_shape[1]:
            raise ValueError(
                f"label_shape={(most, width)}: expected at least {self._label_shape[0]} objects of "
                f"{self._label_shape[1]} values"
            )
        return most, width

    def reshape(
        self, data_shape: Sequence[int] | None = None, label_shape: Sequence[int] | None = None
    ) -> None:
        """Change the shape of the batches from the next one on.

        Parameters
        ----------
        data_shape : (int, int, int), optional
            (channels, height, width) of an image.  An `aug_list` that was given must make images of
            this size from now on.
        label_shape : (int, int), optional
            Objects that there is room for in a label, at least as many as now, and values of an
            object, which stay as many.
        """
        with self._access.lock:
            if label_shape is not None:
                self._label_shape = self.check_label_shape(label_shape)
            if data_shape is not None:
                recipe = shape_alone({"data_shape": data_shape})
                self._plans = [self._plans[0].changed(recipe)]
                if self._described is not None:
                    self._described["data_shape"] = recipe.data_shape
                    self._steps = tuple(CreateDetAugmenter(**self._described))
                    self._settings["aug_list"] = str([described_step(step) for step in self._steps])
                self._settings["data_shape"] = str(recipe.data_shape)
            plan, change = self._plans[0].plan, partial(_det_steps, self._steps)
            engine = cast(PythonImages, self._engine)
            engine.reform(plan, [change(plan, self._label_shape)], self._label_shape)
            self._job = replace(self._job, change=change)
            self._make_engine = replace(
                cast(ImageEngines, self._make_engine),
                job=self._job,
                plans=self._plans,
                label_shape=self._label_shape,
            )
            self._requests.clear()
            ((data,), label) = self._stored
            data = DataDesc(data.name, plan.shape(self.batch_size), data.dtype, data.layout)
            shape = (self.batch_size, *self._label_shape)
            label = [DataDesc(desc.name, shape, desc.dtype, desc.layout) for desc in label]
            self._describe([data], label)

    def sync_label_shape(self, it: ImageDetIter, verbose: bool = False) -> ImageDetIter:
        """Give two iterators room for the same number of objects, the larger of both.

        Parameters
        ----------
        it : ImageDetIter
            The other one, with objects of as many values.
        verbose : bool
            Log the shape, at level INFO of the logger ``iterators``.

        Returns
        -------
        ImageDetIter
            `it`.
        """
        if not isinstance(it, ImageDetIter):
            raise TypeError(f"it={it!r}: expected an ImageDetIter")
        most = max(self.label_shape[0], it.label_shape[0])
        for one, other in ((self, it), (it, self)):
            if one.label_shape[0] < most:
                one.reshape(label_shape=(most, other.label_shape[1]))
        if self.label_shape != it.label_shape:
            raise ValueError(f"objects of {self.label_shape[1]} and {it.label_shape[1]} values")
        if verbose:
            logger.info("labels of both iterators: %d objects of %d values", *self.label_shape)
        return it

    def draw_next(
        self,
        color: Any = None,
        thickness: int = 2,
        mean: Any = None,
        std: Any = None,
        clip: bool = True,
        id2labels: Mapping[int, str] | None = None,
    ) -> Iterator[np.ndarray]:
        """Yield the images of the rest of the epoch with their boxes, one by one.

        Parameters
        ----------
        color : (int, int, int), optional
            Colour of the boxes, RGB; by default one for each class.
        thickness : int
            Width of the lines in pixels.
        mean, std : array_like of 1 or 3 numbers, or True, optional
            Mean and standard deviation of the augmentation, to be undone; True for those of
            ImageNet.
        clip : bool
            Limit values to 0 to 255; otherwise those beyond wrap around.
        id2labels : mapping of int to str, optional
            Names of classes to write beside the boxes.

        Yields
        ------
        numpy.ndarray of uint8, (height, width, 3)
            BGR, as OpenCV writes and shows it.
        """
        colours = Augmenter(
            data_shape=(3, 1, 1), **per_channel("mean", mean), **per_channel("std", std)
        )
        rows = layout_plan(self._job.options.layout, "NHWC")
        while self.iter_next():
            batch = self.current
            for image, label in zip(
                rows(batch.data[0])[: batch.count], batch.label[0], strict=False
            ):
                pixels = np.asarray(image, np.float32) * colours.std[:3] + colours.mean[:3]
                if clip:
                    pixels = np.clip(pixels, 0, 255)
                bgr = np.rint(pixels[:, :, ::-1]).astype(np.int64).astype(np.uint8)
                yield drawn_boxes(bgr, np.asarray(label), color, thickness, id2labels)


def _det_steps(steps: Sequence[Any], plan: RenderPlan, shape: tuple[int, ...]) -> DetSteps:
    """Return what is called for every image."""
    return DetSteps(steps, cast(tuple[int, int], shape), plan.labels)


def _listed(options: ImageDetIterOptions) -> tuple[ImageFileSource | None, Vectors | None]:
    """Return the image files that are meant, None for a record file, and the labels of a list."""
    path = options.path_imglist
    if as_packs(options.path_imgrec):
        raise TypeError(
            f"path_imgrec={options.path_imgrec!r}: ImageDetIter reads one pack: give its path, "
            "or use ImageDetRecordIter"
        )
    if not lists_files(options):
        return None, read_label_vectors(path, options.remote) if path else None
    names, ids, listed = described_files(options.imglist, path, options.remote)
    # The labels of the files stand apart, since they differ in length.
    images = names, ids, np.zeros((len(names), 1), np.float32)
    return ImageFileSource(path or "imglist", images, options.path_root), listed


def _labels(source: Any, listed: Vectors | None, options: ImageDetIterOptions) -> Labels:
    """Room for the objects of every image."""
    labels = source.label_vectors() if listed is None else listed_labels_of(listed, source.name)
    most, width, stated = 0, 0, 0
    for location, values in labels:
        try:
            if isinstance(values, RecordIOError):
                raise values
            objects = objects_of(values, options.label_width)
            if not len(objects):
                stated = stated or objects.shape[1]
                continue
            if width not in (0, objects.shape[1]):
                raise LabelError(
                    f"objects of {objects.shape[1]} values, those before it have {width}"
                )
        except RecordIOError as error:
            if options.on_error == "raise":
                raise type(error)(error.reason, **location) from None
            continue
        most, width = max(most, len(objects)), objects.shape[1]
    if not (most or stated):
        raise LabelError("no image has a label that can be used", path=source.name)
    most, width = max(most, 1), width or stated
    plans = [{"label_width": 0, "labels": listed}]
    return Labels(shape=(most, width), plans=plans, distinct=distinct_classes)


#: Ascending ids, where the values of each begin, and the values.
Vectors = tuple[np.ndarray, np.ndarray, np.ndarray]


def objects_of(values: Any, raw_width: int = -1) -> np.ndarray:
    """Return the objects of a label as float32 rows, (objects, B); those without area are left out.

    A label is ``[A, B, A - 2 more values, objects of B values]``, of `raw_width` values if that is
    above 0.  It is a LabelError if the values contradict each other, or there are objects and none
    has an area.
    """
    label = np.atleast_1d(np.asarray(values, np.float32))
    if raw_width > 0 and len(label) != raw_width:
        raise LabelError(f"the label has {len(label)} values, label_width is {raw_width}")
    objects = boxes_of(label)
    visible_objects = objects[(objects[:, 3] > objects[:, 1]) & (objects[:, 4] > objects[:, 2])]
    if len(objects) and not len(visible_objects):
        raise LabelError("no object of the label has an area")
    return visible_objects


def described_files(
    imglist: Sequence[Any] | None, path_imglist: str, remote: RemoteSettings | None = None
) -> tuple[list[str], np.ndarray, Vectors]:
    """Return paths, ids and labels of the images of a list in memory or of a list file."""
    if imglist is not None:
        names, rows = listed_items(imglist)
        ids = list(range(len(names)))
    else:
        entries = [entry for _, entry in read_entries(path_imglist, settings=remote)]
        ids = [entry.id for entry in entries]
        rows = [entry.labels for entry in entries]
        names = [entry.path for entry in entries]
    keys, counts = np.unique(np.array(ids, np.uint64), return_counts=True)
    if (counts > 1).any():
        raise LabelError(
            "the id comes twice in the list", path=path_imglist, record_id=int(keys[counts > 1][0])
        )
    table = dict(zip(ids, rows, strict=True))
    ordered = [np.array(table[int(key)], np.float32) for key in keys]
    starts = np.cumsum([0, *map(len, ordered)]).astype(np.int64)
    values = np.concatenate([np.zeros(0, np.float32), *ordered])
    return names, np.array(ids, np.uint64), (keys, starts, values)


def listed_labels_of(listed: Vectors, path: str) -> Iterator[tuple[dict[str, Any], Any]]:
    """Return location and label of every line of a list."""
    ids, starts, values = listed
    for row, key in enumerate(ids.tolist()):
        yield {"path": path, "record_id": key}, values[starts[row] : starts[row + 1]]


def drawn_boxes(
    image: np.ndarray,
    objects: np.ndarray,
    color: Any = None,
    thickness: int = 2,
    names: Mapping[int, str] | None = None,
) -> np.ndarray:
    """Draw the boxes of objects on a copy of a BGR image, (height, width, 3), as OpenCV shows it.

    `objects` has rows of class, xmin, ymin, xmax, ymax in fractions of the image; those with a
    negative class are padding.  `color` is RGB, by default one for each class; `names` are written
    beside the boxes.
    """
    cv2 = need("cv2", "boxes drawn on images")
    drawn = np.ascontiguousarray(image).copy()
    height, width = drawn.shape[:2]
    for row in objects[objects[:, 0] >= 0]:
        kind = int(row[0])
        box = (row[1:5] * (width, height, width, height)).astype(int).tolist()
        colour = COLOURS[kind % len(COLOURS)] if color is None else tuple(color)
        cv2.rectangle(drawn, box[:2], box[2:], colour[::-1], thickness)
        if names is not None and kind in names:
            corner = (box[0] + 5, box[1] + 15)
            cv2.putText(drawn, names[kind], corner, cv2.FONT_HERSHEY_SIMPLEX, 0.5, (255,) * 3, 2)
    return drawn
