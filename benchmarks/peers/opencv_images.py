"""A recipe done with OpenCV, for the contenders that bring no image operations of their own."""

import random

import cv2
import numpy as np
from protocol import Unsupported
from random_part import random_part

__all__ = ["Transform"]


class Transform:
    """From the bytes of a JPEG to a uint8 image, height x width x RGB."""

    def __init__(self, recipe):
        if recipe.extra:
            raise Unsupported("no such recipe of one call")
        self.recipe = recipe

    def __call__(self, jpeg):
        """Decode, resize, crop, mirror."""
        cv2.setNumThreads(0)  # the processes are the threads
        recipe = self.recipe
        image = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR_RGB)
        height, width = image.shape[:2]
        if recipe.short_side:
            scale = recipe.short_side / min(height, width)
            height, width = round(height * scale), round(width * scale)
            image = cv2.resize(image, (width, height), interpolation=cv2.INTER_LINEAR)
        if recipe.crop == "random":
            top = random.randint(0, height - recipe.size)
            left = random.randint(0, width - recipe.size)
            image = image[top : top + recipe.size, left : left + recipe.size]
        elif recipe.crop == "random_resized":
            left, top, width, height = random_part(width, height, recipe)
            part = image[top : top + height, left : left + width]
            image = cv2.resize(part, (recipe.size, recipe.size))
        return cv2.flip(image, 1) if random.random() < 0.5 else np.ascontiguousarray(image)
