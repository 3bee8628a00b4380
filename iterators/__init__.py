"""Records and arrays to batches, for NumPy and PyTorch.

Everything public can be imported from here; the subpackages say where it lives.  Torch is imported
only when a device is asked for.
"""

from .core.batch import AbstractDataBatch, DataBatch, DataDesc
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

__all__ = [
    "AbstractDataBatch",
    "AbstractDataProvider",
    "ArrayDataProvider",
    "CSVIter",
    "CSVProvider",
    "DataBatch",
    "DataDesc",
    "ImageDetRecordIter",
    "ImageRecordInt8Iter",
    "ImageRecordIter",
    "ImageRecordIter_v1",
    "ImageRecordProvider",
    "ImageRecordUInt8Iter",
    "LibSVMIter",
    "LibSVMProvider",
    "MNISTIter",
    "MNISTProvider",
    "MXDataProvider",
    "NDArrayIter",
    "PrefetchingIter",
    "ResizeIter",
]
