"""Batches of images for vision-language models: as many patches or tiles as a budget allows.

`ProcessorShapes` says which images make a batch, from the sizes in their headers; `ProcessorImages`
is the engine, which has `iterators.preprocess` make the tensors of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from recordio.errors import ImageSizeError, RecordIOError
from recordio.header import IRHeader

from ..core.batch import DataDesc
from ..core.field_specs import Json, Text
from ..core.order import BatchPlan, CostPlan, Order
from ..core.order.epochs import check_of
from ..core.prefetch import Prefetcher
from ..images.augment.pipelines.processor_rules import ProcessorRule
from ..images.augment.recipe import BaseRecipe
from ..images.fields.example_fields import StoredFields
from ..images.fields.image_fields import ImageFields
from ..images.plan import RenderPlan
from ..images.processors.preprocess import DTYPES, preprocess
from .image_options import ImageRecordOptions
from .image_shapes import Shapes, order_of_all, refuse_own_orders
from .image_sources import ImageSource
from .python_images import ImageSteps
from .sample_iterator import Samples

#: Keywords of the provider that say something of images of one shape, and what asks for nothing.
NEEDS_SHAPE: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(
        ("views", "data_specs", "cache", "mean_img", "multi_hot", "patches"), (None, "")
    ),
    **dict.fromkeys(("entry_points", "strict"), (False,)),
    **dict.fromkeys(("images_per_class", "classes_per_batch"), (None, 0)),
    "normalise_on": ("host",),
    "decode_on": ("host",),
    "layout": ("NCHW",),
    "ragged": ("list",),
}
#: How many images each sample of a batch has.
COUNTS = "image_counts"
#: Images in a batch with a budget of patches, unless `batch_size` says less.
MOST_IMAGES = 1 << 12
#: Heights and widths of images that every processor takes, and cuts otherwise.
SIZES = ((448, 448), (300, 900), (1200, 700))


@dataclass(frozen=True, kw_only=True)
class ProcessorShapes(Shapes):
    """As many images in a batch as `budget` patches or tiles allow; 0 for a number of images."""

    rule: ProcessorRule
    #: Where the images of each sample begin among all, where samples may have any number.
    starts: np.ndarray | None = field(default=None, compare=False, repr=False)

    def over(self, source: Any) -> Shapes:
        """Return them for the samples of a source, which may have any number of images."""
        return replace(self, starts=source.image_starts)

    @property
    def of_images(self) -> bool:
        """False: arrays of a batch are those of the processor."""
        return False

    def in_patches(self, options: ImageRecordOptions) -> Shapes:
        """Return them with the budget."""
        return replace(self, budget=options.batch_patches or 0)

    def check(self, options: ImageRecordOptions, recipes: Sequence[BaseRecipe]) -> None:
        """Refuse what a processor has no use for."""
        name = self.rule.name
        for keyword, allowed in NEEDS_SHAPE.items():
            if getattr(options, keyword, allowed[0]) not in allowed:
                raise ValueError(f"{keyword} needs images of one shape, unlike {name}: drop it")
        if options.label_width == "longest":
            raise ValueError(f"label_width='longest' does not go with {name}: give a number")
        if options.dtype not in DTYPES:
            raise ValueError(f"dtype={options.dtype!r}: {name} gives {', '.join(DTYPES)}")
        for key, kind in (options.fields or {}).items():
            if not isinstance(kind, (Text, Json)):
                raise ValueError(
                    f"field {key}: with {name} the fields of a sample are Text() and Json(), "
                    "since others would follow the cuts of the image"
                )
        for recipe in recipes:
            for keyword in recipe.changed():
                if keyword not in ("data_shape", "label_pad_width", "label_pad_value"):
                    raise ValueError(f"{keyword} changes images, which {name} makes: drop it")
        refuse_own_orders(options, "batches")

    def sizes(
        self, source: Any, recipes: Sequence[BaseRecipe], options: ImageRecordOptions
    ) -> np.ndarray:
        """Return height and width of all images, from their headers; 0 for those without.

        Those of a sample follow one another.
        """
        images = source if self.starts is None else source.images
        tables = [np.zeros((0, 2), np.uint32), *(images.image_sizes if images is not None else ())]
        sizes = np.concatenate(tables).astype(np.int64)[:, ::-1]
        sizes[sizes.prod(1) > options.max_pixels] = 0
        return sizes

    def plan(
        self, order: Order, batch_size: int, tail: Any, seed: int, sizes: np.ndarray | None
    ) -> BatchPlan:
        """Cut epochs into batches."""
        assert sizes is not None
        order = order_of_all(order)
        count = len(sizes) if self.starts is None else len(self.starts) - 1
        costs = np.ones(count, np.int64)
        if self.budget:
            costs = costs_of(sizes, self.rule, self.starts)
        most = self.budget or batch_size
        return CostPlan(order=order, batch_size=batch_size, tail=tail, costs=costs, most=most)

    def of_plans(self, sizes: np.ndarray | None) -> dict[str, Any]:
        """Return nothing: plans are told of labels alone."""
        return {}

    def described_data(
        self, images: list[DataDesc], plan: RenderPlan, most: int, sizes: np.ndarray | None
    ) -> list[DataDesc]:
        """Describe the arrays of a batch; an axis of length 0 differs from batch to batch."""
        lists = [2, 1], [1], [0, 3]
        one, *others = [self._shapes(SIZES[: sum(counts)], counts) for counts in lists]
        descs = []
        for name, (kind, shape) in one.items():
            sides = zip(shape, *(shapes[name][1] for shapes in others), strict=True)
            shape = tuple(side[0] if len({*side}) == 1 else 0 for side in sides)
            descs.append(DataDesc(name, shape, images[0].dtype if kind is None else kind, None))
        return descs

    def _shapes(
        self, sizes: Sequence[tuple[int, int]], lists: Sequence[int]
    ) -> dict[str, tuple[Any, tuple[int, ...]]]:
        """Return types, None for that of pixels, and shapes of the arrays of some images."""
        plans = [self.rule.plan(*size) for size in sizes]
        counts = None if self.starts is None else lists
        # Of the pixels the shape alone is wanted, which takes no memory.
        pixels = np.broadcast_to(np.uint8(0), self.rule.shape_of(plans, counts))
        outputs = {"pixel_values": pixels, **self.rule.outputs(plans, sizes, counts)}
        if counts is not None:
            outputs[COUNTS] = np.array(counts, np.int64)
        names = list(outputs)
        return {
            name: (None if name == "pixel_values" else array.dtype, array.shape)
            for name, array in zip(names, in_batch(self.rule, outputs, names), strict=True)
        }

    def joined(self, samples: Samples, as_buffer: bool) -> Samples:
        """Have the arrays of a processor put together: by name."""
        names = [desc.name for desc in samples.stored[0]]
        return replace(samples, finish=lambda data: [dict(zip(names, data, strict=True))])

    def described(self) -> str:
        """Describe them for a saved state."""
        return f"{self.rule.name}, {self.budget} in a batch, {check_of_rule(self.rule)}"


def check_of_rule(rule: ProcessorRule) -> str:
    """Return a number that settings of a processor have in common."""
    return check_of(np.frombuffer(repr(sorted(rule.config.items())).encode(), np.uint8))


def costs_of(
    sizes: np.ndarray, rule: ProcessorRule, starts: np.ndarray | None = None
) -> np.ndarray:
    """Return the patches or tiles of every sample, int64; of an image without use the fewest.

    Padding counts where a processor pads every image to one number.  A sample is an image, or has
    those from its place in `starts` on; one without images costs 1.
    """
    of_several = np.zeros(len(sizes), bool)
    if starts is not None:
        of_several = np.repeat(np.diff(starts) > 1, np.diff(starts))
    costs = np.zeros(len(sizes), np.int64)
    for several in (False, True):
        mine = of_several == several
        keys, inverse = np.unique(sizes[mine, 0] << 32 | sizes[mine, 1], return_inverse=True)
        counts = np.zeros(len(keys), np.int64)
        for number, key in enumerate(keys.tolist()):
            try:
                plan = rule.plan(key >> 32, key & 0xFFFFFFFF, several)
                counts[number] = rule.slots([plan]) or plan.count
            except ImageSizeError:
                continue
        costs[mine] = counts[inverse]
    costs[costs == 0] = costs[costs > 0].min() if costs.any() else 1
    if starts is None:
        return costs
    sums = np.append(0, np.cumsum(costs))
    return np.maximum(np.diff(sums[starts]), 1)


def in_batch(rule: ProcessorRule, outputs: dict[str, Any], names: Sequence[str]) -> list[Any]:
    """Return the arrays of a batch.

    Where samples have lists of images, numbers in lists are padded with zeros.  Where a processor
    takes all images for one sample and gives each a room of its own, the axis of samples comes
    before that of the images of a sample, of which there is one.
    """
    arrays = [
        array if isinstance(array, np.ndarray) else padded(array)
        for array in (outputs[name] for name in names)
    ]
    if COUNTS in outputs:
        return arrays
    has_rooms = rule.nested and rule.slots([rule.plan(*SIZES[0])]) is not None
    return [array[0][:, None] for array in arrays] if has_rooms else arrays


def padded(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Return lists of numbers as rows of one length, with zeros at their ends."""
    table = np.zeros((len(rows), max(map(len, rows), default=0)), np.int64)
    for row, numbers in zip(table, rows, strict=True):
        row[: len(numbers)] = numbers
    return table


class ProcessorArrays(list[Any]):
    """The `arrays` of a batch, its fields behind them, and the `contents` of its samples.

    A content, or a list of them, is None as long as it cannot be used; there are no arrays until
    all can.
    """

    def __init__(self, arrays: int, fields: int, slots: int) -> None:
        super().__init__([None] * arrays + [[None] * slots for _ in range(fields)])
        self.arrays = arrays
        self.contents: list[Any] = [None] * slots


class ProcessorImages(Prefetcher):
    """An engine of the tensors of a processor, each batch made by one thread.

    For each member of the source there is one of `plans`, of which the labels count.
    """

    _phase = "decode_seconds"

    def __init__(
        self,
        source: ImageSource,
        plans: Sequence[RenderPlan],
        rule: ProcessorRule,
        fields: ImageFields,
        names: Sequence[str],
        *,
        dtype: str,
        threads: int,
        depth: int,
    ) -> None:
        threads = min(threads, depth)
        super().__init__(self._batch, depth, threads=threads, name="processor-images")
        self._source, self._starts = source, source.image_starts
        images = source if self._starts is None else source.images
        self._bytes: Any = None if images is None else images.bytes_source()
        self._labels = [
            ImageSteps((), plan.label_width, plan.labels, plan.change) for plan in plans
        ]
        self._label_width = plans[0].label_width
        self._rule, self._names = rule, names
        self._form: dict[str, Any] = {"threads": 1, "dtype": dtype, **plans[0].limits}
        self._num_fields = len(fields.named())
        self._fields = StoredFields(fields, 3, True) if fields else None

    def submit(
        self, records: Any, epoch: int, draws: Any = None, sizes: Any = None, slots: int = 0
    ) -> None:
        """Start work on a batch, which has a slot for each of the records."""
        super().submit(records, epoch)

    def retry(
        self, record: int, epoch: int, draw: int, data: Any, label: Any, ids: Any, slot: int
    ) -> None:
        """Put another record into a slot of a collected batch; the last one makes the arrays."""
        content = self._read(record, data, label, ids, slot)
        error = self._fault(content, record)
        if error is not None:
            raise error
        data.contents[slot] = content
        if None not in data.contents:
            self._fill(data)

    def _batch(
        self, records: np.ndarray, epoch: int
    ) -> tuple[Any, Any, Any, list[tuple[int, Exception]]]:
        numbers = records.tolist()
        data = ProcessorArrays(len(self._names), self._num_fields, len(numbers))
        label = np.zeros((len(numbers), self._label_width), np.float32)
        ids = np.zeros(len(numbers), np.uint64)
        failures: list[tuple[int, Exception]] = []
        for slot, record in enumerate(numbers):
            try:
                data.contents[slot] = self._read(record, data, label, ids, slot)
            except Exception as error:
                failures.append((slot, error))
        if failures or not self._fill(data):
            for slot, record in enumerate(numbers):
                content = data.contents[slot]
                fault = None if content is None else self._fault(content, record)
                if fault is not None:
                    data.contents[slot] = None
                    failures.append((slot, fault))
        return data, label, ids, sorted(failures, key=lambda failure: failure[0])

    def _fill(self, data: ProcessorArrays) -> bool:
        """Make the arrays of a batch; False if some image cannot be used."""
        try:
            outputs = preprocess(data.contents, self._rule, **self._form)
        except RecordIOError:
            return False
        data[: data.arrays] = in_batch(self._rule, outputs, self._names)
        return True

    def _fault(self, content: Any, record: int) -> Exception | None:
        """Return the error of an image that cannot be used."""
        try:
            preprocess([content], self._rule, **self._form)
        except RecordIOError as error:
            return self._located(error, record)
        return None

    def _read(self, record: int, data: Any, label: Any, ids: Any, slot: int) -> Any:
        """Return the content of a record, or a list; labels, id and fields go into their slot."""
        try:
            header, content = self._content(record)
            member = int(np.searchsorted(self._source.firsts, record, side="right")) - 1
            labels = self._labels[member].labels(header)
            fields = [] if self._fields is None else self._fields.of(record, 1, 1)
        except RecordIOError as error:
            raise self._located(error, record) from None
        label[slot], ids[slot] = labels, header.id
        for values, value in zip(data[data.arrays :], fields, strict=True):
            values[slot] = value
        return content

    def _content(self, record: int) -> tuple[IRHeader, Any]:
        """Return the header of a sample and its content, or all of them in a list."""
        if self._starts is None:
            header, content = self._bytes.image(record)
            return header, bytes(content)
        header, contents = self._source.header_of(record), []
        first, end = self._starts[record : record + 2].tolist()
        for number in range(first, end):
            try:
                contents.append(bytes(self._bytes.image(number)[1]))
            except RecordIOError as error:
                copy = error.at(**self._source.location_of(record))
                copy.reason = f"image {number - first}: {error.reason}"
                raise copy from None
        return header, contents

    def _located(self, error: RecordIOError, record: int) -> Exception:
        """Return the error with the place of its record."""
        return error if error.path is not None else error.at(**self._source.location_of(record))
