"""Cases of the iterators over data sets, each beside torch's ``DataLoader`` in the same run.

Both sides deliver collated batches, arrays here and tensors there; processes keep running from
round to round on both.
"""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
from harness import case, compare, timed

from iterators import MultiprocessIterator, SerialIterator, concat_examples

BATCH = 32


class Computed:
    """Examples of about 100 kB that are computed again each time: an image scaled, and a label."""

    def __init__(self, count=3200):
        self.images = np.random.default_rng(1).integers(0, 256, (64, 3, 91, 92), np.uint8)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.images[i % 64].astype(np.float32), i % 10


class Stored:
    """Arrays of 10 numbers in memory, and their labels."""

    def __init__(self, count=100_000):
        self.rows = list(np.random.default_rng(1).random((count, 10), np.float32))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i], i % 10


def as_they_are(examples):
    """Collate nothing."""
    return examples


def counted(batches, samples):
    """Samples of a number of batches."""
    for _ in itertools.islice(batches, samples // BATCH):
        pass
    return samples


def processes(material, name, collate, convert):
    """Compare examples of 100 kB from processes with those of a loader."""
    from torch.utils.data import DataLoader

    dataset, count = Computed(), material.threads
    loader = DataLoader(
        dataset, BATCH, num_workers=count, persistent_workers=True, collate_fn=collate
    )
    with MultiprocessIterator(
        dataset,
        BATCH,
        shuffle=False,
        n_processes=count,
        n_prefetch=2 * count,  # what the loader has under way
    ) as batches:
        return compare(
            f"MultiprocessIterator, 100 kB, {name}",
            "examples/s",
            partial(timed, lambda: counted(map(convert, batches), len(dataset))),
            partial(timed, lambda: counted(loader, len(dataset))),
            bar=1.5,
            rounds=material.rounds,
            detail="reference: torch DataLoader with as many workers",
        )


@case
def multiprocess_iterator(material):
    """Examples of 100 kB from processes, as collated batches and as lists."""
    yield processes(material, "collated", None, concat_examples)
    yield processes(material, "as lists", as_they_are, as_they_are)


@case
def serial_iterator(material):
    """100,000 small examples through SerialIterator and concat_examples."""
    from torch.utils.data import DataLoader

    dataset = Stored()
    loader = DataLoader(dataset, BATCH, shuffle=True)
    batches = map(concat_examples, SerialIterator(dataset, BATCH))
    yield compare(
        "SerialIterator + concat_examples, 100,000 small",
        "examples/s",
        partial(timed, lambda: counted(batches, len(dataset))),
        partial(timed, lambda: counted(loader, len(dataset))),
        bar=1.5,
        rounds=material.rounds,
        detail="reference: torch DataLoader(num_workers=0)",
    )
