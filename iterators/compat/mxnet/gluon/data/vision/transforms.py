"""Names of `mx.gluon.data.vision.transforms`: blocks that are called with an image.

Images have (height, width, channels), or for most of them a batch axis in front; `ToTensor` puts
channels first, for `Normalize` and the rotations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ......core.dtypes import numpy_dtype
from ......mx_image import center_crop, imrotate, random_crop, random_size_crop
from ....ndarray import image as pixels
from ....ndarray.array import as_nd
from ....random import chance, drawn, gaussian, shuffled
from ...block import Block as Block
from ...block import GluonBlock, HybridBlock, Sequential

__all__ = [
    "Block",
    "Cast",
    "CenterCrop",
    "Compose",
    "CropResize",
    "HybridBlock",
    "HybridCompose",
    "HybridRandomApply",
    "Normalize",
    "RandomApply",
    "RandomBrightness",
    "RandomColorJitter",
    "RandomContrast",
    "RandomCrop",
    "RandomFlipLeftRight",
    "RandomFlipTopBottom",
    "RandomGray",
    "RandomHue",
    "RandomLighting",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomSaturation",
    "Resize",
    "Rotate",
    "ToTensor",
]


def _pair(size: Any) -> tuple[int, int]:
    """Return width and height; a number is a square."""
    width, height = (size, size) if np.ndim(size) == 0 else size
    return int(width), int(height)


class Compose(Sequential):
    """Transforms one after the other."""

    def __init__(self, transforms: Sequence[Any]) -> None:
        super().__init__()
        self.add(*transforms)


class RandomApply(Sequential):
    """A transform that happens with a probability."""

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        super().__init__()
        self.transforms: Any = transforms
        self.p: float = p

    def forward(self, x: Any, *args: Any) -> Any:
        """Return the array itself, or what the transform makes of it."""
        return self.transforms(x) if chance(self.p) else x


class Cast(GluonBlock):
    """Another element type."""

    def __init__(self, dtype: Any = "float32") -> None:
        super().__init__()
        self._dtype = numpy_dtype(dtype)

    def forward(self, x: Any) -> Any:
        """Return the array in the type."""
        return as_nd(np.asarray(x).astype(self._dtype))


class ToTensor(GluonBlock):
    """Channels first, and float32 from 0 to 1."""

    def forward(self, x: Any) -> Any:
        """Return the image so."""
        return pixels.to_tensor(x)


class Normalize(GluonBlock):
    """Subtract a mean and divide by a deviation; channels come first."""

    def __init__(self, mean: Any = 0.0, std: Any = 1.0) -> None:
        super().__init__()
        self._mean, self._std = mean, std

    def forward(self, x: Any) -> Any:
        """Return the image normalised."""
        return pixels.normalize(x, self._mean, self._std)


class Rotate(GluonBlock):
    """Rotate images, channels first and float32, by an angle."""

    def __init__(self, rotation_degrees: Any, zoom_in: bool = False, zoom_out: bool = False):
        super().__init__()
        self._arguments = rotation_degrees, zoom_in, zoom_out

    def forward(self, x: Any) -> Any:
        """Return the image rotated."""
        return as_nd(imrotate(x, *self._arguments))


class RandomRotation(GluonBlock):
    """Rotate images, channels first and float32, by an angle between two, with a probability."""

    def __init__(
        self,
        angle_limits: Sequence[float],
        zoom_in: bool = False,
        zoom_out: bool = False,
        rotate_with_proba: float = 1.0,
    ) -> None:
        super().__init__()
        low, high = angle_limits
        if low >= high:
            raise ValueError(f"angle_limits={angle_limits!r}: the first must be the smaller one")
        if not 0 <= rotate_with_proba <= 1:
            raise ValueError(f"rotate_with_proba={rotate_with_proba!r}: expected 0 to 1")
        self._limits, self._zoom, self._p = (low, high), (zoom_in, zoom_out), rotate_with_proba

    def forward(self, x: Any) -> Any:
        """Return the image rotated, or as it is."""
        if not chance(self._p):
            return x
        return as_nd(imrotate(x, drawn(*self._limits), *self._zoom))


class RandomResizedCrop(GluonBlock):
    """Cut out a part of a random area and shape, and resize it."""

    def __init__(
        self,
        size: Any,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3 / 4, 4 / 3),
        interpolation: int = 1,
    ) -> None:
        super().__init__()
        scale = [scale, 1.0] if isinstance(scale, int | float) else scale
        self._arguments = _pair(size), scale, ratio, interpolation

    def forward(self, x: Any) -> Any:
        """Return the part."""
        return as_nd(random_size_crop(x, *self._arguments)[0])


class RandomCrop(GluonBlock):
    """Cut out a random part, after `pad` pixels of 0 were put around the image."""

    def __init__(self, size: Any, pad: Any = None, interpolation: int = 1) -> None:
        super().__init__()
        self._size, self._interpolation = _pair(size), interpolation
        self._pad = ((pad, pad), (pad, pad), (0, 0)) if isinstance(pad, int) else pad

    def forward(self, x: Any) -> Any:
        """Return the part."""
        image = np.asarray(x) if self._pad is None else np.pad(x, self._pad)
        return as_nd(random_crop(image, self._size, self._interpolation)[0])


class CropResize(GluonBlock):
    """Cut out a given part, and resize it if there is a size."""

    def __init__(
        self, x: int, y: int, width: int, height: int, size: Any = None, interpolation: Any = None
    ) -> None:
        super().__init__()
        self._part, self._size = (x, y, width, height), size
        self._interpolation = 1 if interpolation is None else interpolation

    def forward(self, x: Any) -> Any:
        """Return the part."""
        part = pixels.crop(x, *self._part)
        if not self._size:
            return part
        return pixels.resize(part, _pair(self._size), False, self._interpolation)


class CenterCrop(GluonBlock):
    """Cut out the centre; from a smaller image, the largest part of that shape, resized."""

    def __init__(self, size: Any, interpolation: int = 1) -> None:
        super().__init__()
        self._arguments = _pair(size), interpolation

    def forward(self, x: Any) -> Any:
        """Return the centre."""
        return as_nd(center_crop(x, *self._arguments)[0])


class Resize(GluonBlock):
    """Resize to a width and a height, to a square, or by the shorter side with `keep_ratio`."""

    def __init__(self, size: Any, keep_ratio: bool = False, interpolation: int = 1) -> None:
        super().__init__()
        self._arguments = size, keep_ratio, interpolation

    def forward(self, x: Any) -> Any:
        """Return the image in that size."""
        return pixels.resize(x, *self._arguments)


class RandomFlipLeftRight(GluonBlock):
    """Exchange left and right, with probability 1/2."""

    _flip = staticmethod(pixels.random_flip_left_right)

    def forward(self, x: Any) -> Any:
        """Return the image or its mirror image."""
        return self._flip(x)


class RandomFlipTopBottom(RandomFlipLeftRight):
    """Exchange top and bottom, with probability 1/2."""

    _flip = staticmethod(pixels.random_flip_top_bottom)


class RandomBrightness(GluonBlock):
    """Change brightness by a factor that lies within `amount` of 1."""

    _change = staticmethod(pixels.random_brightness)

    def __init__(self, amount: float) -> None:
        super().__init__()
        if amount < 0:
            raise ValueError(f"an amount of {amount}: expected at least 0")
        self._range = max(0, 1 - amount), 1 + amount

    def forward(self, x: Any) -> Any:
        """Return the image changed."""
        return self._change(x, *self._range)


class RandomContrast(RandomBrightness):
    """Change contrast by a factor that lies within `amount` of 1."""

    _change = staticmethod(pixels.random_contrast)


class RandomSaturation(RandomBrightness):
    """Change saturation by a factor that lies within `amount` of 1."""

    _change = staticmethod(pixels.random_saturation)


class RandomHue(RandomBrightness):
    """Turn the hue by up to `amount` of a full turn in both directions."""

    _change = staticmethod(pixels.random_hue)


class RandomColorJitter(GluonBlock):
    """Brightness, contrast, saturation and hue in random order; those of amount 0 are left out."""

    def __init__(
        self, brightness: float = 0, contrast: float = 0, saturation: float = 0, hue: float = 0
    ) -> None:
        super().__init__()
        kinds = (RandomBrightness, RandomContrast, RandomSaturation, RandomHue)
        amounts = (brightness, contrast, saturation, hue)
        self._steps = [kind(amount) for kind, amount in zip(kinds, amounts, strict=True) if amount]

    def forward(self, x: Any) -> Any:
        """Return the image changed."""
        for step in shuffled(self._steps):
            x = step(x)
        return x


class RandomLighting(GluonBlock):
    """Add noise along the principal colours of ImageNet, with a deviation of `alpha`."""

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self._alpha = alpha

    def forward(self, x: Any) -> Any:
        """Return the image changed."""
        return pixels.adjust_lighting(x, gaussian(self._alpha, 3))


class RandomGray(GluonBlock):
    """Turn grey, with a probability; the image keeps three channels."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self._p = p

    def forward(self, x: Any) -> Any:
        """Return the image or a grey one."""
        return pixels.random_saturation(x, 0, 0) if chance(self._p) else x


HybridCompose: TypeAlias = Compose
HybridRandomApply: TypeAlias = RandomApply
