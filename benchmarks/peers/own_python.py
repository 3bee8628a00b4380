"""A data set as users write them: every image is read, cropped and changed by their own Python."""

from own_changes import changed
from random_part import random_part

from recordio import decode_image, image_info

__all__ = ["Images"]


class Images:
    """Images of files and labels, made in Python."""

    def __init__(self, paths, recipe):
        self.paths, self.recipe = paths, recipe

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        """The image, changed, and the label."""
        with open(self.paths[i], "rb") as file:
            data = file.read()
        info, size = image_info(data), (self.recipe.size, self.recipe.size)
        part = random_part(info.width, info.height, self.recipe)
        return changed(decode_image(data, region=part, size=size), self.recipe), i % 1000
