"""One data set of a user's own, in Python, by the loader that the argument names.

`threads`: `MultithreadIterator` and `concat_examples`; `image_loader`: `ImageLoader`, whose threads
call the data set; `data_loader`: torch's `DataLoader` with as many processes, `prefetch_factor=2`.
"""

import itertools
import sys
import warnings

import numpy
from own_python import Images
from protocol import serve

ENDLESS = 10**12  # samples: one permutation after the other


def threads(dataset, batch, count):
    """Batches of arrays."""
    from iterators import MultithreadIterator, concat_examples

    return map(concat_examples, MultithreadIterator(dataset, batch, n_threads=count))


def image_loader(dataset, batch, count):
    """Batches of tensors, by threads."""
    from iterators.torch import ImageLoader

    warnings.filterwarnings("ignore", message=".*__getitem__")
    loader = ImageLoader(dataset, batch, shuffle=True, num_workers=count)
    return itertools.chain.from_iterable(itertools.repeat(loader))


def data_loader(dataset, batch, count):
    """Batches of tensors, by processes."""
    from torch.utils.data import DataLoader, RandomSampler

    sampler = RandomSampler(dataset, num_samples=ENDLESS)
    return DataLoader(dataset, batch, sampler=sampler, num_workers=count, prefetch_factor=2)


def images(job, files, count):
    """Batches of one epoch after the other."""
    with open(files["list"]) as file:
        dataset = Images(file.read().splitlines(), job.recipe)
    for data, _labels in globals()[sys.argv[1]](dataset, job.batch, count):
        yield len(data)


if __name__ == "__main__":
    versions = {"Python": sys.version.split()[0], "NumPy": numpy.__version__}
    if sys.argv[1] != "threads":
        import torch  # as a training process does

        versions["torch"] = torch.__version__
    serve(versions, images=images)
