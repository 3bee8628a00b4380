"""`ImageLoader` over the JPEG files, with keywords for transforms: threads that need no Python."""

import torch
from protocol import serve

from iterators.torch import ImageLoader


def images(job, files, threads):
    """Batches of one epoch after the other."""
    keywords = job.record_iter_parameters()
    batch, shuffle = keywords.pop("batch_size"), keywords.pop("shuffle")
    with open(files["list"]) as file:
        samples = [(path, i % 1000) for i, path in enumerate(file.read().splitlines())]
    loader = ImageLoader(samples, batch, shuffle=shuffle, num_workers=threads, **keywords)
    while True:
        for data, _labels in loader:
            yield len(data)


if __name__ == "__main__":
    serve({"torch": torch.__version__}, images=images)
