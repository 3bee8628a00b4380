"""Records and arrays to batches, for NumPy and PyTorch.

Everything public can be imported from here; the subpackages say where it lives.  Torch is imported
only when a device is asked for.
"""

from . import datasets
from .core.batch import AbstractDataBatch, DataBatch, DataDesc
from .core.layout import Layout, LayoutError, plan
from .loops import (
    Iterator,
    MultiprocessIterator,
    MultithreadIterator,
    OrderSampler,
    SerialIterator,
    ShuffleOrderSampler,
)
from .providers.abstract import AbstractDataProvider
from .providers.arrays import ArrayDataProvider, NDArrayIter
from .providers.csv import CSVIter, CSVProvider
from .providers.image_det_record import ImageDetRecordIter
from .providers.image_record import (
    ImageRecordInt8Iter,
    ImageRecordIter,
    ImageRecordIter_v1,
    ImageRecordProvider,
    ImageRecordUInt8Iter,
)
from .providers.libsvm import LibSVMIter, LibSVMProvider
from .providers.mnist import MNISTIter, MNISTProvider
from .providers.wrappers import MXDataProvider, PrefetchingIter, ResizeIter
from .samples import Dataset, Sample
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
    "ArrayDataProvider",
    "CSVIter",
    "CSVProvider",
    "ClassView",
    "CompositeSpace",
    "Conv2DSpace",
    "DataBatch",
    "DataDesc",
    "DataSpecsMapping",
    "DataView",
    "Dataset",
    "ImageDetRecordIter",
    "ImageRecordInt8Iter",
    "ImageRecordIter",
    "ImageRecordIter_v1",
    "ImageRecordProvider",
    "ImageRecordUInt8Iter",
    "ImageView",
    "IndexSequenceSpace",
    "IndexSpace",
    "Iterator",
    "Layout",
    "LayoutError",
    "LibSVMIter",
    "LibSVMProvider",
    "ListView",
    "MNISTIter",
    "MNISTProvider",
    "MXDataProvider",
    "MultiprocessIterator",
    "MultithreadIterator",
    "NDArrayIter",
    "NullSpace",
    "OrderSampler",
    "PrefetchingIter",
    "ResizeIter",
    "Sample",
    "SequenceView",
    "SerialIterator",
    "ShuffleOrderSampler",
    "SpecError",
    "VectorSequenceSpace",
    "VectorSpace",
    "View",
    "datasets",
    "plan",
]
