"""LitData: chunks of 64 MB that its `optimize` has made, OpenCV in the workers of its loader.

As many workers as threads are given, `prefetch_factor=2`, shuffled as it shuffles.  Workers and
batches as for the `DataLoader`.
"""

import os

import cv2
import litdata
import torch
from opencv_images import Transform
from protocol import serve
from torch_batches import collate, normalised


def packed(numbered):
    """A file as it is, and its label."""
    number, path = numbered
    with open(path, "rb") as file:
        return {"image": file.read(), "label": number % 1000}


class Images(litdata.StreamingDataset):
    """Images, transformed, and their labels."""

    def __init__(self, folder, transform):
        super().__init__(folder, shuffle=True)
        self.change = transform  # `transform` is a name of theirs

    def __getitem__(self, index):
        """The image and the label."""
        sample = super().__getitem__(index)
        return self.change(sample["image"]), sample["label"]


def images(job, files, threads):
    """Batches of one epoch after the other."""
    folder = files["list"] + "-litdata"
    if not os.path.isdir(folder):
        with open(files["list"]) as file:
            paths = list(enumerate(file.read().splitlines()))
        litdata.optimize(packed, paths, output_dir=folder, chunk_bytes="64MB", num_workers=threads)
    loader = litdata.StreamingDataLoader(
        Images(folder, Transform(job.recipe)),
        batch_size=job.batch,
        num_workers=threads,
        prefetch_factor=2,
        collate_fn=collate,
        drop_last=True,
    )
    while True:
        for batch in normalised(loader, job.recipe):
            yield len(batch)


if __name__ == "__main__":
    versions = {
        "LitData": litdata.__version__,
        "torch": torch.__version__,
        "OpenCV": cv2.__version__,
    }
    serve(versions, images=images)
