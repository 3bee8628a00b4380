"""Fields of a sample beside its image and label: the kinds for ``fields=`` of image iterators.

A field lies in a pack of its own, ``PREFIX.name.rec`` beside ``PREFIX.rec``, and its records have
the keys of the images.
"""

from .core.field_specs import Boxes, Crop, Image, Json, Keypoints, Mask, Mirrored, Size, Text

__all__ = ["Boxes", "Crop", "Image", "Json", "Keypoints", "Mask", "Mirrored", "Size", "Text"]
