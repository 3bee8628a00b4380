"""A recipe done with OpenCV, for the contenders that bring no image operations of their own."""

import math
import random

import cv2
import numpy as np
from protocol import Unsupported

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
            image = cv2.resize(self._random_part(image), (recipe.size, recipe.size))
        return cv2.flip(image, 1) if random.random() < 0.5 else np.ascontiguousarray(image)

    def _random_part(self, image):
        height, width = image.shape[:2]
        for _ in range(10):
            area = height * width * random.uniform(*self.recipe.area)
            aspect = math.exp(random.uniform(*map(math.log, self.recipe.aspect)))
            part_width, part_height = (
                round(math.sqrt(area * aspect)),
                round(math.sqrt(area / aspect)),
            )
            if part_width <= width and part_height <= height:
                top = random.randint(0, height - part_height)
                left = random.randint(0, width - part_width)
                return image[top : top + part_height, left : left + part_width]
        side = min(height, width)
        top, left = (height - side) // 2, (width - side) // 2
        return image[top : top + side, left : left + side]
