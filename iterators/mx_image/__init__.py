"""Floor 4: MXNet's `mx.image`: functions on single images, augmenters in Python, `ImageDetIter`."""

from ..core.example_random import example_random
from ..providers.image_iter import ImageIter
from .augmenters import (
    Augmenter,
    CastAug,
    CenterCropAug,
    ForceResizeAug,
    HorizontalFlipAug,
    ImageAugmenter,
    RandomCropAug,
    RandomOrderAug,
    RandomSizedCropAug,
    ResizeAug,
    SequentialAug,
)
from .colours import (
    BrightnessJitterAug,
    ColorJitterAug,
    ColorNormalizeAug,
    ContrastJitterAug,
    HueJitterAug,
    LightingAug,
    RandomGrayAug,
    SaturationJitterAug,
)
from .create import CreateAugmenter, CreateDetAugmenter, DescribedSteps
from .crops import center_crop, fixed_crop, random_crop, random_size_crop, scale_down
from .det_iter import ImageDetIter
from .detection import (
    CreateMultiRandCropAugmenter,
    DetAugmenter,
    DetBorrowAug,
    DetHorizontalFlipAug,
    DetRandomCropAug,
    DetRandomPadAug,
    DetRandomSelectAug,
)
from .functions import (
    color_normalize,
    copyMakeBorder,
    imdecode,
    imread,
    imresize,
    resize_short,
)
from .rotate import imrotate, random_rotate

__all__ = [
    "Augmenter",
    "BrightnessJitterAug",
    "CastAug",
    "CenterCropAug",
    "ColorJitterAug",
    "ColorNormalizeAug",
    "ContrastJitterAug",
    "CreateAugmenter",
    "CreateDetAugmenter",
    "CreateMultiRandCropAugmenter",
    "DescribedSteps",
    "DetAugmenter",
    "DetBorrowAug",
    "DetHorizontalFlipAug",
    "DetRandomCropAug",
    "DetRandomPadAug",
    "DetRandomSelectAug",
    "ForceResizeAug",
    "HorizontalFlipAug",
    "HueJitterAug",
    "ImageAugmenter",
    "ImageDetIter",
    "ImageIter",
    "LightingAug",
    "RandomCropAug",
    "RandomGrayAug",
    "RandomOrderAug",
    "RandomSizedCropAug",
    "ResizeAug",
    "SaturationJitterAug",
    "SequentialAug",
    "center_crop",
    "color_normalize",
    "copyMakeBorder",
    "example_random",
    "fixed_crop",
    "imdecode",
    "imread",
    "imresize",
    "imrotate",
    "random_crop",
    "random_rotate",
    "random_size_crop",
    "resize_short",
    "scale_down",
]
