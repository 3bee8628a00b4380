"""Pictures to the tensors of a vision-language model: `preprocess` and `count_patches`.

The sizes come from the headers first, so that every tensor has its final size when it is made; then
threads decode the pictures and write them into their places, without the GIL.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recordio.errors import ImageDecodeError, ImageFileError, RecordIOError
from recordio.formats.decode import decode_image, image_info, memory_of
from recordio.formats.image_header import complete_limits
from recordio.ordered import default_threads, each_number

from ...core.backend import is_tensor
from ...core.device import placement
from ...core.dtypes import array_over, dtype_name, numpy_dtype
from ..augment.named_recipes import NamedRecipe
from ..augment.pipelines.parts import PipelineError
from ..augment.pipelines.processor_families import FAMILIES, rule_of
from ..augment.pipelines.processor_rules import PicturePlan, ProcessorRule
from .tile_writer import Scratch, write_picture

#: Filters of the resampler by Pillow's numbers for them.
FILTERS = {0: 16, 4: 17, 2: 18, 5: 19, 3: 20, 1: 21}
DTYPES = ("float32", "float16", "bfloat16", "uint8")


def preprocess(
    images: Sequence[Any],
    processor: Any,
    *,
    threads: int | None = None,
    out: Mapping[str, Any] | None = None,
    device: Any = None,
    on_error: str = "raise",
    dtype: Any = None,
    **limits: int | None,
) -> dict[str, Any]:
    r"""Make the tensors of a vision-language model from pictures, as its processor does.

    Parameters
    ----------
    images : list
        Contents of image files, paths, arrays (height, width, channels) of uint8, and images of
        Pillow, in any mixture; or a list of these for each sample, which may be empty.  Files are
        loaded as ``transformers.image_utils.load_image`` loads them: upright by their EXIF
        orientation, and RGB without an alpha channel.  Arrays and images of Pillow are taken as
        they are, transparent ones laid over white, as the processor does it.
    processor : object, dict, str, os.PathLike or NamedRecipe
        As for `NamedRecipe.from_processor`, or what it returns.  That is quicker where the function
        is called often: with one recipe, memory of results that nobody holds any more is used
        again, of two calls at most.
    threads : int, optional
        How many threads work, including that of the caller; by default one for every processor
        that this process may use.  The result is the same with any number.
    out : dict, optional
        Memory for results by their names: arrays or tensors on the CPU, contiguous, of the type of
        the result.  The first axis may be longer, as `count_patches` need not be known; the result
        is then the part that is used.
    device : str, optional
        Torch tensors on that device; by default NumPy arrays.
    on_error : {"raise", "skip"}
        With "skip", pictures that cannot be used are left out, and ``"skipped"`` is a list of
        (position, reason), where the position is (sample, picture) if samples have lists.
    dtype : {"float32", "float16", "bfloat16", "uint8"}, optional
        Type of ``pixel_values``; by default that of the processor.  The others are rounded from its
        float32.  "uint8" leaves scaling and normalisation out, and padding is 0 then.
    **limits : int or None
        As for `recordio.decode_image`.

    Returns
    -------
    dict
        What the processor returns, under the same names.  If samples have lists, these are the
        tensors of all pictures in their order, in the shapes of the processor for such lists, and
        ``"image_counts"``, int64, says how many pictures of each sample there are.

    Raises
    ------
    ImageDecodeError, ImageFileError, ImageSizeError
        For the first picture that cannot be used; ``error.record`` is its position, or that of its
        sample.
    PipelineError
        For a processor, or a setting of one, that is not known here.
    ValueError, TypeError
        If an argument is not as it should be.

    See Also
    --------
    count_patches : How much comes of pictures, by their sizes.

    Examples
    --------
    >>> from iterators import preprocess
    >>> page = b"P5\n56 84\n255\n" + bytes(56 * 84)
    >>> tensors = preprocess([page, page], {"image_processor_type": "Qwen2VLImageProcessor"})
    >>> tensors["pixel_values"].shape, tensors["image_grid_thw"].tolist()
    ((48, 1176), [[1, 6, 4], [1, 6, 4]])

    Samples with two pictures, with none, and with one:

    >>> tensors = preprocess([[page, page], [], [page]], {"image_processor_type": "Qwen2VL"})
    >>> tensors["pixel_values"].shape, tensors["image_counts"].tolist()
    ((72, 1176), [2, 0, 1])
    """
    if on_error not in ("raise", "skip"):
        raise ValueError(f'on_error={on_error!r}: expected "raise" or "skip"')
    rule = _rule(processor)
    images, counts = flat_images(images)
    batch = _Batch(rule, images, counts, _type(rule, dtype), complete_limits(limits))
    threads = default_threads() if threads is None else threads
    if not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads must be a whole number above 0, not {threads!r}")
    if not images and not counts:
        raise ValueError("images is empty: a tensor needs at least one picture")
    place = placement(device)
    failed: dict[int, RecordIOError] = {}

    def guarded(work: Callable[[int], None]) -> Callable[[int], None]:
        def call(number: int) -> None:
            try:
                work(number)
            except RecordIOError as error:
                if on_error == "raise":
                    raise batch.located(number, error) from error
                failed[number] = error

        return call

    each_number(len(batch.images), guarded(batch.look), threads)
    batch.arrange(failed, out, place.allocate)
    each_number(len(batch.images), guarded(batch.write), threads)
    results = batch.outputs(failed)
    names = [name for name, value in results.items() if isinstance(value, np.ndarray)]
    results.update(zip(names, place.place([results[name] for name in names]), strict=True))
    if device is None:
        results.update(batch.as_given(results))
    if on_error == "skip":
        results["skipped"] = [(batch.place(n), str(failed[n])) for n in sorted(failed)]
    return results


def count_patches(sizes: Any, processor: Any) -> np.ndarray:
    """Count the patches of pictures from their sizes alone.

    Parameters
    ----------
    sizes : array_like, (pictures, 2)
        Rows of (height, width), upright.
    processor : object, dict, str, os.PathLike or NamedRecipe
        As for `preprocess`.

    Returns
    -------
    numpy.ndarray of int64
        Patches of every picture before a model merges them; for processors that cut tiles, the
        tiles, with thumbnails and whole pictures.

    Raises
    ------
    ImageSizeError
        For a size that the processor refuses; ``error.record`` is its row.

    Examples
    --------
    >>> from iterators import count_patches
    >>> count_patches([(600, 800), (56, 84)], {"image_processor_type": "Qwen2VLImageProcessor"})
    array([2436,   24])
    """
    return _rule(processor).counts(sizes)


def _rule(processor: Any) -> ProcessorRule:
    """Return the rule of a processor, or say which classes there are."""
    rule = processor.rule if isinstance(processor, NamedRecipe) else rule_of(processor)
    if rule is None:
        raise PipelineError(
            "is none of a vision-language model that is known here "
            f"({', '.join(FAMILIES)}): give others to ImageRecordIter, as its recipe",
            "the image processor",
        )
    return rule


def _type(rule: ProcessorRule, dtype: Any) -> str:
    """Return the name of the type of pixels."""
    if dtype is None:
        return "uint8" if rule.is_plain else "float32"
    name = dtype_name(dtype)
    if name not in DTYPES:
        raise ValueError(f"dtype={dtype!r}: expected one of {', '.join(DTYPES)}")
    return name


def flat_images(images: Sequence[Any]) -> tuple[list[Any], list[int] | None]:
    """Return all pictures, and how many each sample has; None where they are in no lists."""
    samples = list(images)
    nested = [isinstance(sample, (list, tuple)) for sample in samples]
    if not any(nested):
        return samples, None
    if not all(nested):
        at = nested.index(not nested[0])
        raise TypeError(
            f"images[{at}] is {'a list' if nested[at] else 'none'} and images[0] is "
            f"{'a list' if nested[0] else 'none'}: give a list for every sample, or for none"
        )
    return [image for sample in samples for image in sample], [len(sample) for sample in samples]


class _Batch:
    """Pictures of one call: looked at, arranged, written; threads work on different ones."""

    def __init__(
        self,
        rule: ProcessorRule,
        images: list[Any],
        counts: list[int] | None,
        dtype: str,
        limits: Any,
    ) -> None:
        self.rule, self.images, self.limits = rule, images, limits
        #: Number of the sample of each picture, where samples have lists.
        self.samples = None if counts is None else np.repeat(np.arange(len(counts)), counts)
        self.of_several = np.repeat(np.array(counts or [], int) > 1, counts or [])
        self._counts = counts
        self.dtype = numpy_dtype(dtype)
        tables = np.tile(np.arange(256), (3, 1)) if dtype == "uint8" else rule.tables()
        tables = np.ascontiguousarray(tables.astype(self.dtype))
        self.tables = tables.view(np.uint8).reshape(3, -1)
        self.scale = rule.scale()
        form = rule.patches
        self.form = (0, 1, 1, False) if form is None else form[:4]
        self.method = FILTERS[rule.config["resample"]]
        self.sizes: list[tuple[int, int]] = [(0, 0)] * len(images)
        #: By which pictures are decoded.
        self.denominators = [1] * len(images)
        self.plans: list[Any] = [None] * len(images)
        #: For each picture, where it begins among the items, and for how many there is room.
        self.rooms: dict[int, tuple[int, int]] = {}
        self.locks = {id(image): threading.Lock() for image in images}
        self.scratch = threading.local()
        self.memory: dict[str, tuple[Any, np.ndarray]] = {}

    def place(self, number: int) -> Any:
        """Return the position of a picture: of its sample and there, where samples have lists."""
        if self.samples is None:
            return number
        sample = int(self.samples[number])
        return sample, number - int(np.searchsorted(self.samples, sample))

    def located(self, number: int, error: RecordIOError) -> RecordIOError:
        """Return the error of a picture with its position."""
        if self.samples is None:
            return error.at(record=number)
        sample, image = self.place(number)
        copy = error.at(record=sample)
        copy.reason = f"image {image}: {error.reason}"
        return copy

    def shown(self, number: int) -> str:
        """Return a picture as the caller finds it."""
        place = self.place(number)
        return f"images{list(place)}".replace(", ", "][") if self._counts else f"images[{place}]"

    def counts(self, numbers: Sequence[int]) -> list[int] | None:
        """Return how many of these pictures each sample has."""
        if self.samples is None or self._counts is None:
            return None
        return np.bincount(self.samples[list(numbers)], minlength=len(self._counts)).tolist()

    def look(self, number: int) -> None:
        """Find the size of a picture and its plan; a file is read for that."""
        scales = False
        image = self.images[number]
        if isinstance(image, (str, os.PathLike)):
            try:
                image = self.images[number] = Path(image).read_bytes()
            except OSError as error:
                raise ImageFileError(
                    f"the file cannot be read: {error.strerror or error}", path=image
                ) from error
        if isinstance(image, np.ndarray):
            if image.ndim not in (2, 3) or image.dtype != np.uint8 or 0 in image.shape:
                raise TypeError(
                    f"{self.shown(number)} is an array {image.dtype} {image.shape}: expected uint8 "
                    "(height, width, channels)"
                )
            size = image.shape[:2]
        elif hasattr(image, "getbands"):
            size = image.height, image.width
        else:
            try:
                facts = image_info(image)
            except TypeError:
                raise TypeError(
                    f"{self.shown(number)} is a {type(image).__name__}: expected the content of an "
                    "image file, a path, an array of uint8 or an image of Pillow"
                ) from None
            size = facts.height, facts.width
            # The grids of a turned picture need not begin at its edges.
            scales = facts.kind == "jpeg" and facts.orientation == 1
        height, width = size
        several = self._counts is not None and self.of_several[number]
        self.plans[number] = self.rule.plan(height, width, bool(several))
        self.sizes[number] = height, width
        if scales:
            self.denominators[number] = self.rule.denominator(self.plans[number])

    def arrange(self, failed: Mapping[int, Any], out: Any, allocate: Any) -> None:
        """Take memory for all pictures that have a plan."""
        good = [number for number in range(len(self.images)) if number not in failed]
        if failed and not good:
            raise self.located(0, failed[0])
        plans, counts = [self.plans[number] for number in good], self.counts(good)
        self.rooms = dict(zip(good, self.rule.rooms(plans, counts), strict=True))
        self.item = self.rule.item(plans)
        shape = self.rule.shape_of(plans, counts)
        nbytes = math.prod(shape) * self.dtype.itemsize
        self.memory = {name: (value, _memory(value)) for name, value in (out or {}).items()}
        if "pixel_values" in self.memory:
            self.pixels = self._fitting("pixel_values", shape, self.dtype)
        else:  # page-locked memory has a pool of its own
            take = allocate or self.rule.pool.take
            memory = np.frombuffer(take(nbytes), np.uint8)
            self.pixels = memory.view(self.dtype).reshape(shape)
        self.bytes = self.pixels.reshape(-1).view(np.uint8)
        self._clear_empty(counts)

    def _clear_empty(self, counts: Sequence[int] | None) -> None:
        """Write zeros where samples without pictures have room."""
        for number, count in enumerate(counts or ()):
            if self.rule.nested and not count:
                self.pixels[number] = 0

    def _fitting(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Return the part of the caller's memory that has a shape."""
        array, first = self.memory[name][1], self._growing
        part_shape = list(array.shape)
        if array.ndim == len(shape):
            part_shape[first] = shape[first]
        if tuple(part_shape) != shape or array.shape[first] < shape[first] or array.dtype != dtype:
            raise ValueError(
                f"out[{name!r}] has the shape {array.shape} of {array.dtype}, and {shape} of "
                f"{dtype} is needed"
            )
        if not array.flags.c_contiguous or not array.flags.writeable:
            raise ValueError(f"out[{name!r}]: the memory must be contiguous and writeable")
        return self._part(array, shape[first])

    def write(self, number: int) -> None:
        """Decode a picture and write what becomes of it."""
        plan = self.plans[number]
        if plan is None or number not in self.rooms:
            return
        begin, room = self.rooms[number]
        if not hasattr(self.scratch, "pictures"):
            self.scratch.pictures = Scratch()
        steps = [_step_row(step, plan) for step in plan.steps]
        write_picture(
            self._load(number),
            (*self.sizes[number], self.denominators[number]),
            np.array(steps, np.int32).reshape(-1, 11),
            np.array(plan.cuts, np.int32),
            plan.tile,
            self.method,
            self.form,
            self.item[-2:] if self.form[0] == 0 else (0, 0),
            self.tables,
            self.scale,
            self.bytes,
            begin,
            room,
            self.scratch.pictures,
            plan.fill,
        )

    def _load(self, number: int) -> np.ndarray:
        """Return the RGB pixels of a picture, maybe in memory of this thread."""
        image, (height, width) = self.images[number], self.sizes[number]
        if isinstance(image, np.ndarray):
            return _rgb(image, self._converts(image.shape[2] if image.ndim == 3 else 1))
        if hasattr(image, "getbands"):
            with self.locks[id(image)]:  # loading it is no work for two threads
                return _rgb_of_pillow(image, self._converts(len(image.getbands())))
        by = self.denominators[number]
        height, width = -(-height // by), -(-width // by)
        size = height * width * 3
        room = getattr(self.scratch, "room", None)
        if room is None or len(room) < size:
            room = self.scratch.room = np.empty(size, np.uint8)
        pixels = room[:size].reshape(height, width, 3)
        try:
            return decode_image(image, out=pixels, scale=1 / by, **self.limits)
        except RecordIOError:
            raise
        except ValueError as error:  # of another size than its header says
            raise ImageDecodeError(f"the image cannot be decoded: {error}") from error

    def _converts(self, channels: int) -> bool:
        """Refuse a picture that is not RGB if the processor does."""
        if channels != 3 and not self.rule.config.get("do_convert_rgb"):
            raise ImageDecodeError(
                f"the image has {channels} channels, and the processor converts none: make it RGB, "
                "or set do_convert_rgb"
            )
        return channels != 3

    def outputs(self, failed: Mapping[int, Any]) -> dict[str, Any]:
        """Return all results, without the pictures that have failed."""
        numbers = [number for number in self.rooms if number not in failed]
        if failed and not numbers:
            first = min(failed)
            raise self.located(first, failed[first])
        plans, counts = [self.plans[number] for number in numbers], self.counts(numbers)
        if len(numbers) < len(self.rooms):
            self._close_gaps(numbers, plans, counts)
        results = {"pixel_values": self.pixels}
        sizes = [self.sizes[number] for number in numbers]
        results.update(self.rule.outputs(plans, sizes, counts))
        if counts is not None:
            results["image_counts"] = np.array(counts, np.int64)
        for name in self.memory.keys() - {"pixel_values"}:
            value = results.get(name)
            if not isinstance(value, np.ndarray):
                raise ValueError(f"out[{name!r}]: the processor gives no array of that name")
            part = self._fitting(name, value.shape, value.dtype)
            part[...] = value
            results[name] = part
        return results

    def _close_gaps(
        self, numbers: Sequence[int], plans: Sequence[PicturePlan], counts: Sequence[int] | None
    ) -> None:
        """Move pictures to where they are without those that turned out to be damaged."""
        shape, item = self.rule.shape_of(plans, counts), self.rule.item(plans)
        rows = self.pixels.reshape(-1, *self.item)
        flat = self.pixels.reshape(-1)[: math.prod(shape)]
        moved = flat.reshape(-1, *item)
        rooms = self.rule.rooms(plans, counts)
        for number, (begin, room) in zip(numbers, rooms, strict=True):
            old, used = self.rooms[number]
            used = min(used, room)
            part = rows[old : old + used]
            if item != self.item:  # tiles were padded to a size that is gone
                part = part[:, :, : item[1], : item[2]]
            moved[begin : begin + used] = part.copy()
            moved[begin + used : begin + room] = 0
        self.pixels = flat.reshape(shape)
        self._clear_empty(counts)

    def as_given(self, results: Mapping[str, Any]) -> dict[str, Any]:
        """Return the caller's own objects, or their parts that are used."""
        parts = {}
        for name, (value, array) in self.memory.items():
            shape = results[name].shape
            whole = array.shape == shape
            parts[name] = value if whole else self._part(value, shape[self._growing])
        return parts

    @property
    def _growing(self) -> int:
        """The axis that counts pictures, patches, tiles, or samples with a list of them."""
        return int(self.rule.nested and self.samples is None)

    def _part(self, memory: Any, length: int) -> Any:
        """Return the first entries along the axis that grows."""
        return memory[:, :length] if self._growing else memory[:length]


def _memory(out: Any) -> np.ndarray:
    """Return an array over the memory of the caller; NumPy lacks some types of tensors."""
    return array_over(out) if is_tensor(out) and out.device.type == "cpu" else memory_of(out)


def _step_row(step: Any, plan: PicturePlan) -> tuple[int, ...]:
    """Return the numbers of a step."""
    return (step.source, *step.region, *step.size, *(step.canvas or step.size), *step.at)


def _rgb(image: np.ndarray, converts: bool) -> np.ndarray:
    """Return an array as RGB, a transparent one over white, as processors do it."""
    if converts:
        pixels = image if image.ndim == 3 else image[:, :, None]
        channels = pixels.shape[2]
        if channels == 1:
            image = np.repeat(pixels, 3, 2)
        elif channels == 4:
            alpha = pixels[..., 3:] / 255
            image = np.round(alpha * pixels[..., :3] + (1 - alpha) * 255).astype(np.uint8)
        else:
            raise ImageDecodeError(f"the array has {channels} channels: expected 1, 3 or 4")
    return np.ascontiguousarray(image)


def _rgb_of_pillow(image: Any, converts: bool) -> np.ndarray:
    """Return an image of Pillow as RGB, a transparent one over white, as processors do it."""
    from PIL import Image

    try:
        if "A" in image.getbands() or image.info.get("transparency") is not None:
            over = Image.new("RGBA", image.size, (255, 255, 255, 255))
            image = Image.alpha_composite(over, image.convert("RGBA"))
        return np.array(image.convert("RGB"))
    except (OSError, SyntaxError, ValueError) as error:
        raise ImageDecodeError(f"Pillow cannot load the image: {error}") from error
