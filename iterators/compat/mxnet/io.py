"""Names of `mx.io`, and the provider names of MXNet.jl: their batches hold `NDArray`."""

from ...core.batch import DataBatch as DataBatch
from ...core.batch import DataDesc as DataDesc
from ...providers.arrays import ArrayDataProvider as _ArrayDataProvider
from ...providers.arrays import NDArrayIter as _NDArrayIter
from ...providers.csv import CSVIter as _CSVIter
from ...providers.data_iter import DataIter as DataIter
from ...providers.image_det_record import ImageDetRecordIter as _ImageDetRecordIter
from ...providers.image_record import ImageRecordInt8Iter as _ImageRecordInt8Iter
from ...providers.image_record import ImageRecordIter as _ImageRecordIter
from ...providers.image_record import ImageRecordIter_v1 as _ImageRecordIter_v1
from ...providers.image_record import ImageRecordUInt8Iter as _ImageRecordUInt8Iter
from ...providers.libsvm import LibSVMIter as _LibSVMIter
from ...providers.mnist import MNISTIter as _MNISTIter
from ...providers.mx_data_provider import MXDataProvider as _MXDataProvider
from ...providers.wrappers import PrefetchingIter as _PrefetchingIter
from ...providers.wrappers import ResizeIter as _ResizeIter
from .ndarray_results import delivering

CSVIter: type[_CSVIter] = delivering(_CSVIter, __name__)
ImageDetRecordIter: type[_ImageDetRecordIter] = delivering(_ImageDetRecordIter, __name__)
ImageRecordInt8Iter: type[_ImageRecordInt8Iter] = delivering(_ImageRecordInt8Iter, __name__)
ImageRecordIter: type[_ImageRecordIter] = delivering(_ImageRecordIter, __name__)
ImageRecordIter_v1: type[_ImageRecordIter_v1] = delivering(_ImageRecordIter_v1, __name__)
ImageRecordUInt8Iter: type[_ImageRecordUInt8Iter] = delivering(_ImageRecordUInt8Iter, __name__)
ImageRecordUInt8Iter_v1: type[_ImageRecordUInt8Iter] = ImageRecordUInt8Iter
LibSVMIter: type[_LibSVMIter] = delivering(_LibSVMIter, __name__)
MNISTIter: type[_MNISTIter] = delivering(_MNISTIter, __name__)
MXDataIter: type[_MXDataProvider] = delivering(_MXDataProvider, __name__)
NDArrayIter: type[_NDArrayIter] = delivering(_NDArrayIter, __name__)
PrefetchingIter: type[_PrefetchingIter] = delivering(_PrefetchingIter, __name__)
ResizeIter: type[_ResizeIter] = delivering(_ResizeIter, __name__)

#: The class of all iterators that MXNet did not write in Python.
for _native in (
    CSVIter,
    ImageDetRecordIter,
    ImageRecordInt8Iter,
    ImageRecordIter,
    ImageRecordIter_v1,
    ImageRecordUInt8Iter,
    LibSVMIter,
    MNISTIter,
):
    MXDataIter.register(_native)

# MXNet.jl
ArrayDataProvider: type[_ArrayDataProvider] = delivering(_ArrayDataProvider, __name__)
CSVProvider: type[_CSVIter] = CSVIter
ImageRecordProvider: type[_ImageRecordIter] = ImageRecordIter
MNISTProvider: type[_MNISTIter] = MNISTIter
MXDataProvider = MXDataIter
