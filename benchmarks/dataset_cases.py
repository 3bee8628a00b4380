"""Cases of datasets and batch conversion: examples to batches, and records read in batches."""

from __future__ import annotations

import numpy as np
import torch
from harness import case, compare, timed
from torch.utils.data import default_collate

from iterators import ImageRecordDataset, RecordDataset, concat_examples

EXAMPLES = 100_000


@case
def collate_examples(material):
    """``concat_examples`` against torch's ``default_collate``, arrays and labels."""
    random = np.random.default_rng(4)
    for shape, size in (((32,), 32), ((32,), 128), ((32,), 256), ((3, 32, 32), 128)):
        batch = [(random.random(shape, np.float32), label) for label in range(size)]

        def convert(collate, batch=batch):
            for _ in range(EXAMPLES // len(batch)):
                collate(batch)
            return EXAMPLES

        for name, ours in (
            ("numpy", concat_examples),
            ("tensors", lambda batch: concat_examples(batch, "cpu")),
        ):
            yield compare(
                f"collate {size} x {shape} to {name}",
                "examples/s",
                lambda ours=ours, convert=convert: timed(lambda: convert(ours)),
                lambda convert=convert: timed(lambda: convert(default_collate)),
                bar=1.5,
                rounds=material.rounds,
                detail=f"torch uses {torch.get_num_threads()} threads",
            )


@case
def record_dataset_batches(material):
    """Batches of random records through ``__getitems__`` against one record at a time."""
    records = RecordDataset(material.kilobyte_records)
    order = np.random.default_rng(5).permutation(len(records))[:100_000]
    batches = [part.tolist() for part in np.array_split(order, len(order) // 256)]

    def together():
        for batch in batches:
            records.__getitems__(batch)
        return len(order)

    def one_by_one():
        for batch in batches:
            _ = [records[i] for i in batch]
        return len(order)

    yield compare(
        "RecordDataset, batches of 256",
        "records/s",
        lambda: timed(together),
        lambda: timed(one_by_one),
        bar=1.5,
        rounds=material.rounds,
    )


@case
def image_dataset_batches(material):
    """Batches of decoded images by two threads against one image after the other."""
    path = material.few_photo_records
    together, alone = ImageRecordDataset(path, threads=2), ImageRecordDataset(path, threads=1)
    batch = list(range(min(64, len(alone))))
    yield compare(
        f"ImageRecordDataset, {len(batch)} photographs",
        "images/s",
        lambda: timed(lambda: len(together.__getitems__(batch))),
        lambda: timed(lambda: len(alone.__getitems__(batch))),
        bar=1.5,
        rounds=material.rounds,
        detail="two threads against one",
    )
