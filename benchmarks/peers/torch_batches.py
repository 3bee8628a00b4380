"""Batches of torch tensors from worker processes, for `with_torch` and `with_webdataset`."""

import numpy as np
import torch

__all__ = ["collate", "normalised"]


def collate(samples):
    """One uint8 tensor of the images of a batch, and one of labels."""
    images, labels = zip(*samples, strict=True)
    return torch.from_numpy(np.stack(images)), torch.tensor(labels)


def normalised(loader, recipe):
    """Float32 batches in NCHW, written into one buffer that is used again."""
    torch.set_num_threads(1)
    mean = torch.tensor(recipe.mean).view(1, 3, 1, 1)
    scale = 1 / torch.tensor(recipe.std).view(1, 3, 1, 1)
    buffer = None
    for images, _labels in loader:
        images = images.permute(0, 3, 1, 2)
        if buffer is None:
            buffer = torch.empty(images.shape)
        buffer.copy_(images)
        yield buffer.sub_(mean).mul_(scale)
