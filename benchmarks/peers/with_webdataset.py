"""WebDataset: four tar archives, OpenCV in the workers of a `DataLoader`.

Archives and a buffer of 1,000 samples are shuffled; workers and batches as for the `DataLoader`.
"""

import cv2
import torch
import webdataset
from opencv_images import Transform
from protocol import serve
from torch.utils.data import DataLoader
from torch_batches import collate, normalised


def images(job, files, threads):
    """Batches of one epoch after the other."""
    samples = (
        webdataset.WebDataset(files["webdataset"], shardshuffle=len(files["webdataset"]))
        .repeat()
        .shuffle(1000)
        .to_tuple("jpg;png;webp", "cls")
        .map_tuple(Transform(job.recipe), int)
        .batched(job.batch, collation_fn=collate, partial=False)
    )
    loader = DataLoader(samples, batch_size=None, num_workers=threads, prefetch_factor=2)
    for batch in normalised(loader, job.recipe):
        yield len(batch)


if __name__ == "__main__":
    versions = {
        "WebDataset": webdataset.__version__,
        "torch": torch.__version__,
        "OpenCV": cv2.__version__,
    }
    serve(versions, images=images)
