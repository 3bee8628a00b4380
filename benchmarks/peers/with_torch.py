"""torch `DataLoader` over the JPEG files, OpenCV in its workers.

As many workers as threads are given, `prefetch_factor=2`.  Workers send uint8 images, a quarter of
the bytes; the main process makes normalised float32 of them, in one buffer that is used again.
"""

import cv2
import torch
from opencv_images import Transform
from protocol import serve
from torch.utils.data import DataLoader, Dataset, RandomSampler
from torch_batches import collate, normalised

ENDLESS = 10**12  # samples: one permutation after the other


class Images(Dataset):
    """Images of files, and their labels."""

    def __init__(self, paths, transform):
        self.paths, self.transform = paths, transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        """The image, transformed, and the label."""
        with open(self.paths[i], "rb") as file:
            return self.transform(file.read()), i % 1000


def images(job, files, threads):
    """Batches of one epoch after the other."""
    with open(files["list"]) as file:
        dataset = Images(file.read().splitlines(), Transform(job.recipe))
    loader = DataLoader(
        dataset,
        job.batch,
        sampler=RandomSampler(dataset, num_samples=ENDLESS),
        num_workers=threads,
        collate_fn=collate,
        prefetch_factor=2,
    )
    for batch in normalised(loader, job.recipe):
        yield len(batch)


if __name__ == "__main__":
    serve({"torch": torch.__version__, "OpenCV": cv2.__version__}, images=images)
