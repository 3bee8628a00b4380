"""A user's own augmentation, in Python and NumPy, which every loader has to call for each image."""

import random

import numpy as np

__all__ = ["changed"]


def changed(image, recipe):
    """A mirrored, normalised image with four holes and a tint: float32, channels first."""
    pixels = image[:, ::-1] if random.random() < 0.5 else image
    pixels = (pixels - np.float32(recipe.mean)) / np.float32(recipe.std)
    pixels *= np.float32([random.uniform(0.8, 1.2) for _ in range(3)])
    for _ in range(4):
        top, left = random.randrange(recipe.size), random.randrange(recipe.size)
        pixels[top : top + 32, left : left + 32] = 0
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))
