"""Records and arrays to batches, for NumPy and PyTorch.

Everything public can be imported from here; the subpackages say where it lives.  Torch is imported
only when a device is asked for.
"""

from . import datasets
from .core.batch import AbstractDataBatch, DataBatch, DataDesc
from .core.layout import Layout, LayoutError, plan
from .providers.base import AbstractDataProvider
from .providers.image_det_record import ImageDetRecordIter
from .providers.image_record import (
    ImageRecordInt8Iter,
    ImageRecordIter,
    ImageRecordIter_v1,
    ImageRecordProvider,
    ImageRecordUInt8Iter,
)
from .spaces import (
    CompositeSpace,
    Conv2DSpace,
    DataSpecsMapping,
    IndexSequenceSpace,
    IndexSpace,
    NullSpace,
    SpecError,
    VectorSequenceSpace,
    VectorSpace,
)
from .views import ClassView, DataView, ImageView, ListView, SequenceView, View

__all__ = [
    "AbstractDataBatch",
    "AbstractDataProvider",
    "ClassView",
    "CompositeSpace",
    "Conv2DSpace",
    "DataBatch",
    "DataDesc",
    "DataSpecsMapping",
    "DataView",
    "ImageDetRecordIter",
    "ImageRecordInt8Iter",
    "ImageRecordIter",
    "ImageRecordIter_v1",
    "ImageRecordProvider",
    "ImageRecordUInt8Iter",
    "ImageView",
    "IndexSequenceSpace",
    "IndexSpace",
    "Layout",
    "LayoutError",
    "ListView",
    "NullSpace",
    "SequenceView",
    "SpecError",
    "VectorSequenceSpace",
    "VectorSpace",
    "View",
    "datasets",
    "plan",
]
