"""`ImageLoader` over the JPEG files, with keywords for transforms: threads that need no Python.

With the argument `uint8` batches are as a GPU would normalise them, and one is made ahead.
"""

import sys

import torch
from protocol import serve

from iterators.torch import ImageLoader


def images(job, files, threads):
    """Batches of one epoch after the other."""
    keywords = job.record_iter_parameters()
    batch, shuffle = keywords.pop("batch_size"), keywords.pop("shuffle")
    if "uint8" in sys.argv:
        keywords = {k: value for k, value in keywords.items() if k[:4] not in ("mean", "std_")}
        keywords |= {"dtype": "uint8", "prefetch_factor": 1}
    with open(files["list"]) as file:
        samples = [(path, i % 1000) for i, path in enumerate(file.read().splitlines())]
    loader = ImageLoader(samples, batch, shuffle=shuffle, num_workers=threads, **keywords)
    while True:
        for data, _labels in loader:
            yield len(data)


if __name__ == "__main__":
    serve({"torch": torch.__version__}, images=images)
