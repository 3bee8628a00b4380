"""Samples that a data set makes itself, with images that a vision-language model's processor takes.

A sample is its image or a list of images, a tuple that begins with these, or a dictionary that has
them under one of the usual names.  Images are contents of files, paths, arrays, images of Pillow
and dictionaries with ``bytes`` and ``path``, as the library datasets gives them undecoded.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from recordio.containers.labels import IMAGES, first_named
from recordio.errors import RecordIOError
from recordio.formats.decode import image_info

from ..core.order import CostPlan, check_of
from ..images.augment.pipelines.processor_rules import ProcessorRule
from ..images.processors.preprocess import preprocess
from ..providers.processor_images import check_of_rule, costs_of
from .python_batches import default_collate

#: Names of images in a dictionary, lists of them first.
NAMES = ("images", *IMAGES)
#: Types whose values torch puts together; of others a batch has a list.
COLLATED = (numbers.Number, np.ndarray, np.generic, torch.Tensor)


class ProcessedSamples(torch.utils.data.Dataset):
    """Samples of a data set with their numbers, and `collate`, which makes a batch of them."""

    def __init__(
        self,
        dataset: Any,
        rule: ProcessorRule,
        dtype: Any,
        budget: int,
        threads: int | None,
        costs: np.ndarray | None = None,
    ) -> None:
        self.dataset = dataset
        self._rule, self._dtype, self._threads = rule, dtype, threads
        self.budget: int = budget
        #: Of each sample, found from the headers of its images; None without a budget.
        self.costs: np.ndarray | None = self._costs() if budget and costs is None else costs

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, number: int) -> tuple[int, Any]:
        """Return the number of a sample, which errors name, and the sample."""
        return number, self.dataset[number]

    def _costs(self) -> np.ndarray:
        """Ask for every sample once, and count the patches or tiles of its images."""
        sizes, counts = [], []
        for number in range(len(self)):
            images, _ = parted(self.dataset[number])
            counts.append(len(images))
            sizes += [_size_of(image) for image in images]
        starts = np.append(0, np.cumsum(counts)).astype(np.int64)
        return costs_of(np.array(sizes or np.zeros((0, 2)), np.int64), self._rule, starts)

    def cut(self, order: Any, batch_size: int, tail: Any) -> CostPlan:
        """Cut epochs into batches that the budget allows; see `loader_epochs.Cut`."""
        assert self.costs is not None
        return CostPlan(
            order=order, batch_size=batch_size, tail=tail, costs=self.costs, most=self.budget
        )

    def described(self) -> str:
        """Describe what a saved state must agree with."""
        costs = "" if self.costs is None else f", {self.budget} in a batch, {check_of(self.costs)}"
        return f"{self._rule.name}, {check_of_rule(self._rule)}{costs}"

    def collate(self, samples: list[tuple[int, Any]]) -> Any:
        """Make the tensors of a batch; what samples have besides is collated or listed."""
        pairs = [parted(sample) for _, sample in samples]
        lists = [images for images, _ in pairs]
        try:
            inputs = preprocess(
                lists, self._rule, device="cpu", dtype=self._dtype, threads=self._threads
            )
        except RecordIOError as error:
            number = samples[error.record or 0][0]
            raise error.at(record=number) from None
        rests = [rest for _, rest in pairs]
        if isinstance(rests[0], Mapping):
            named = {name: _joined([rest[name] for rest in rests]) for name in rests[0]}
            return inputs | named
        if not rests[0]:
            return inputs
        return (inputs, *(_joined(list(values)) for values in zip(*rests, strict=True)))


def parted(sample: Any) -> tuple[list[Any], Any]:
    """Return the images of a sample, and what it has besides: a tuple, or a dictionary."""
    rest: Any = ()
    if isinstance(sample, Mapping) and not _is_undecoded(sample):
        name = first_named(list(sample), NAMES)
        if name is None:
            raise TypeError(
                f"a sample has no images under a usual name, only {', '.join(map(str, sample))}: "
                "name them images"
            )
        rest = {key: value for key, value in sample.items() if key != name}
        sample = sample[name]
    elif isinstance(sample, tuple) and sample:
        sample, *others = sample
        rest = tuple(others)
    images = sample if isinstance(sample, (list, tuple)) else [sample]
    return [_image_of(image) for image in images], rest


def _is_undecoded(image: Any) -> bool:
    """Tell an image that the library datasets has not decoded."""
    return isinstance(image, Mapping) and image.keys() == {"bytes", "path"}


def _image_of(image: Any) -> Any:
    """Return an image as `preprocess` takes it."""
    if _is_undecoded(image):
        return image["path"] if image["bytes"] is None else image["bytes"]
    return image


def _size_of(image: Any) -> tuple[int, int]:
    """Read height and width of an image; zeros of one that a batch will find to be bad."""
    if isinstance(image, np.ndarray):
        return image.shape[:2] if image.ndim > 1 else (0, 0)
    if hasattr(image, "getbands"):
        return image.height, image.width
    try:
        if isinstance(image, (str, os.PathLike)):
            with open(image, "rb") as file:
                image = file.read()
        facts = image_info(image)
    except (OSError, RecordIOError, TypeError):
        return 0, 0
    return facts.height, facts.width


def _joined(values: list[Any]) -> Any:
    """Put numbers and tensors together; anything else is a list."""
    return default_collate(values) if isinstance(values[0], COLLATED) else values
