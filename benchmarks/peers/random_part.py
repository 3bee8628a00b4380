"""The part of an image for a random resized crop, for contenders that have no such thing."""

import math
import random

__all__ = ["random_part"]


def random_part(width, height, recipe):
    """Left, top, width and height: torchvision's rule, with Python's random numbers."""
    for _ in range(10):
        area = height * width * random.uniform(*recipe.area)
        aspect = math.exp(random.uniform(*map(math.log, recipe.aspect)))
        part_width, part_height = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if part_width <= width and part_height <= height:
            left = random.randint(0, width - part_width)
            top = random.randint(0, height - part_height)
            return left, top, part_width, part_height
    side = min(height, width)
    return (width - side) // 2, (height - side) // 2, side, side
