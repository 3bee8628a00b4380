"""Arguments that `ImageLoader` refuses, each with the argument to give instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.order import BatchPlan, BucketPlan, CostPlan
from .image_sets import ImageSet

#: Keywords of `ImageRecordIter` that say what is the matter of the loader, and who says it here.
OTHERWISE = {
    "path_imgrec": "the data set is the first argument",
    "num_parts": "it follows from the ranks",
    "part_index": "it follows from the ranks",
    "round_batch": "the last batch is short, or dropped with drop_last=True",
    "data_specs": "the loader yields tensors; another form is made by collate_fn",
    **dict.fromkeys(
        (
            "weights",
            "images_per_class",
            "classes_per_batch",
            "epoch_size",
            "shuffle_chunk_size",
            "shuffle_chunk_seed",
        ),
        "a sampler says which images come: give sampler=, or use RecordBatches(ImageRecordIter, "
        "...)",
    ),
}
#: Why an epoch of random transforms in Python does not come again.
IN_THREADS = "in threads, whose random numbers no seed repeats (num_workers=0 does), "
#: What DataLoader does with processes.
PROCESSES = "there are no worker processes: images are made by threads of this one; drop it"


def refuse_processes(timeout: Any, worker_init_fn: Any, multiprocessing_context: Any) -> None:
    """Refuse what `DataLoader` says about its worker processes."""
    arguments = {
        "timeout": timeout,
        "worker_init_fn": worker_init_fn,
        "multiprocessing_context": multiprocessing_context,
    }
    for name, value in arguments.items():
        if value:
            raise TypeError(f"{name}={value!r}: {PROCESSES}")


def refuse_orders(keywords: Mapping[str, Any]) -> None:
    """Refuse keywords of providers that a loader has another way for."""
    for name, instead in OTHERWISE.items():
        if name in keywords:
            raise TypeError(f"{name}: {instead}")


def refuse_rest(images: ImageSet, keywords: Mapping[str, Any]) -> None:
    """Refuse keywords of a provider where there is none."""
    if keywords:
        names = ", ".join(keywords)
        raise ValueError(
            f"{names}: no image of {images.name} is made here, because {images.reason}; drop them"
        )


def refuse_shapes(plan: BatchPlan, keywords: Mapping[str, Any], **arguments: Any) -> None:
    """Refuse what is given and does not go with batches that have a shape each."""
    if plan.fills:
        kinds = {BucketPlan: "buckets", CostPlan: "batch_patches"}
        what = kinds.get(type(plan), "patches")
        for name in ("sampler", "batch_sampler"):
            if arguments[name] is not None:
                raise ValueError(
                    f"{what} choose the images of a batch, and so does {name}: drop one of "
                    "both, or give a list of shapes as data_shape"
                )
    if isinstance(plan, BucketPlan) and arguments["drop_last"] and not plan.buckets.carry_over:
        raise ValueError(
            "drop_last=True would leave out images of every bucket in every epoch: give "
            "buckets=Buckets(..., carry_over=True), whose batches are all full, or drop it"
        )
    if isinstance(plan, CostPlan) and arguments["collate_fn"] is not None:
        raise ValueError("collate_fn gets images, which a processor puts together: drop it")
    if keywords.get("ragged") == "buffer" and arguments["collate_fn"] is not None:
        raise ValueError('collate_fn gets images, which ragged="buffer" puts together: drop one')


def check_indices(name: str, indices: np.ndarray | None, count: int) -> None:
    """Refuse indices of a subset that its data set does not have."""
    if indices is not None and len(indices) and not 0 <= indices.min() <= indices.max() < count:
        wrong = next(i for i in indices.tolist() if not 0 <= i < count)
        raise IndexError(f"the subset has the index {wrong}, and {name} has {count} images")


def check_samplers(
    batch_size: int, shuffle: bool, sampler: Any, batch_sampler: Any, drop_last: bool
) -> None:
    """Refuse what contradicts a sampler, as DataLoader does."""
    if batch_sampler is not None and (
        batch_size != 1 or shuffle or sampler is not None or drop_last
    ):
        raise ValueError(
            "batch_sampler makes the batches: drop batch_size, shuffle, sampler and drop_last"
        )
    if sampler is not None and shuffle:
        raise ValueError("a sampler sets the order of the samples: drop shuffle")
    for name, value in (("sampler", sampler), ("batch_sampler", batch_sampler)):
        if value is not None and not (hasattr(value, "__iter__") and hasattr(value, "__len__")):
            raise TypeError(f"{name}={value!r}: expected an iterable of indices with a len()")
