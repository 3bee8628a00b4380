"""Records and arrays to batches, for NumPy and PyTorch.

Everything public can be imported from here; the subpackages say where it lives.  Torch is imported
only when a device is asked for.
"""

from .core.batch import AbstractDataBatch, DataBatch, DataDesc
from .providers.base import AbstractDataProvider
from .providers.image_det_record import ImageDetRecordIter
from .providers.image_record import (
    ImageRecordInt8Iter,
    ImageRecordIter,
    ImageRecordIter_v1,
    ImageRecordProvider,
    ImageRecordUInt8Iter,
)
from .views import ClassView, DataView, ImageView, ListView, SequenceView, View

__all__ = [
    "AbstractDataBatch",
    "AbstractDataProvider",
    "ClassView",
    "DataBatch",
    "DataDesc",
    "DataView",
    "ImageDetRecordIter",
    "ImageRecordInt8Iter",
    "ImageRecordIter",
    "ImageRecordIter_v1",
    "ImageRecordProvider",
    "ImageRecordUInt8Iter",
    "ImageView",
    "ListView",
    "SequenceView",
    "View",
]
