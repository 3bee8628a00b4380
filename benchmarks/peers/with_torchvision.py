"""torchvision v2 in the workers of a torch `DataLoader`, as its references/classification has it.

As many workers as threads are given, `prefetch_factor=2`.  Images of Pillow, or tensors that OpenCV
has decoded; workers send normalised float32.
"""

import sys

import cv2
import numpy as np
import torch
from PIL import Image
from protocol import Unsupported, serve
from torch.utils.data import DataLoader, Dataset, RandomSampler


def transforms():
    """torchvision and its transforms, which are Python over torch.

    One made for another torch cannot load its own operators; those that it looks for are declared
    then.  Nothing here calls them.
    """
    try:
        import torchvision
    except RuntimeError:
        for name in [name for name in sys.modules if name.startswith("torchvision")]:
            del sys.modules[name]
        for name in ("nms", "qnms"):
            OPERATORS.define(f"{name}(Tensor dets, Tensor scores, float threshold) -> Tensor")
        import torchvision
    from torchvision.transforms import v2

    return torchvision, v2


ENDLESS = 10**12  # samples: one permutation after the other
OPERATORS = torch.library.Library("torchvision", "FRAGMENT")
torchvision, v2 = transforms()


def transform_of(recipe):
    """From an image of Pillow, or a tensor of uint8, to normalised float32."""
    if recipe.extra or recipe.crop not in ("random_resized", "center"):
        raise Unsupported("compared with torchvision's own pipelines only")
    scaled = [[value / 255 for value in values] for values in (recipe.mean, recipe.std)]
    if recipe.crop == "center":
        geometry = [v2.Resize(recipe.short_side, antialias=True), v2.CenterCrop(recipe.size)]
    else:
        geometry = [
            v2.RandomResizedCrop(recipe.size, recipe.area, recipe.aspect, antialias=True),
            v2.RandomHorizontalFlip(),
        ]
    if recipe.randaugment:
        geometry.append(v2.RandAugment(*recipe.randaugment))
    return v2.Compose(
        [
            *geometry,
            v2.PILToTensor() if sys.argv[1] == "pillow" else v2.Identity(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(*scaled),
            *([v2.RandomErasing(recipe.erasing)] if recipe.erasing else []),
        ]
    )


def decoded(path):
    """An image as the transforms take it."""
    if sys.argv[1] == "pillow":
        with Image.open(path) as image:
            return image.convert("RGB")
    cv2.setNumThreads(0)  # the processes are the threads
    pixels = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR_RGB)
    return torch.from_numpy(pixels).permute(2, 0, 1)


class Images(Dataset):
    """Images of files, and their labels."""

    def __init__(self, paths, transform):
        self.paths, self.transform = paths, transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        """The image, transformed, and the label."""
        return self.transform(decoded(self.paths[i])), i % 1000


def images(job, files, threads):
    """Batches of one epoch after the other."""
    with open(files["list"]) as file:
        dataset = Images(file.read().splitlines(), transform_of(job.recipe))
    loader = DataLoader(
        dataset,
        job.batch,
        sampler=RandomSampler(dataset, num_samples=ENDLESS),
        num_workers=threads,
        prefetch_factor=2,
    )
    for batch, _labels in loader:
        yield len(batch)


if __name__ == "__main__":
    versions = {"torchvision": torchvision.__version__, "torch": torch.__version__}
    serve(versions, images=images)
