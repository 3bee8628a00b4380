"""Records and arrays to batches, for NumPy and PyTorch.

Everything public can be imported from here; the subpackages say where it lives.  Torch is imported
only when a device is asked for.
"""

from . import datasets
from .core.batch import AbstractDataBatch, DataBatch, DataDesc
from .core.collate import concat_examples
from .core.converter import ConcatWithAsyncTransfer, Converter, converter
from .core.device import get_device, to_device
from .core.layout import Layout, LayoutError, plan
from .datasets import (
    ConcatenatedDataset,
    DatasetMixin,
    DictDataset,
    ImageDataset,
    ImageRecordDataset,
    LabeledImageDataset,
    LabeledZippedImageDataset,
    MultiZippedImageDataset,
    RecordDataset,
    SubDataset,
    TabularDataset,
    TextDataset,
    TransformDataset,
    TupleDataset,
    cache_or_load_file,
    cached_download,
    get_cross_validation_datasets,
    get_cross_validation_datasets_random,
    get_dataset_directory,
    get_dataset_root,
    set_dataset_root,
    split_dataset,
    split_dataset_n,
    split_dataset_n_random,
    split_dataset_random,
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
    "ConcatWithAsyncTransfer",
    "ConcatenatedDataset",
    "Conv2DSpace",
    "Converter",
    "DataBatch",
    "DataDesc",
    "DataSpecsMapping",
    "DataView",
    "Dataset",
    "DatasetMixin",
    "DictDataset",
    "ImageDataset",
    "ImageDetRecordIter",
    "ImageRecordDataset",
    "ImageRecordInt8Iter",
    "ImageRecordIter",
    "ImageRecordIter_v1",
    "ImageRecordProvider",
    "ImageRecordUInt8Iter",
    "ImageView",
    "IndexSequenceSpace",
    "IndexSpace",
    "LabeledImageDataset",
    "LabeledZippedImageDataset",
    "Layout",
    "LayoutError",
    "LibSVMIter",
    "LibSVMProvider",
    "ListView",
    "MNISTIter",
    "MNISTProvider",
    "MXDataProvider",
    "MultiZippedImageDataset",
    "NDArrayIter",
    "NullSpace",
    "PrefetchingIter",
    "RecordDataset",
    "ResizeIter",
    "Sample",
    "SequenceView",
    "SpecError",
    "SubDataset",
    "TabularDataset",
    "TextDataset",
    "TransformDataset",
    "TupleDataset",
    "VectorSequenceSpace",
    "VectorSpace",
    "View",
    "cache_or_load_file",
    "cached_download",
    "concat_examples",
    "converter",
    "datasets",
    "get_cross_validation_datasets",
    "get_cross_validation_datasets_random",
    "get_dataset_directory",
    "get_dataset_root",
    "get_device",
    "plan",
    "set_dataset_root",
    "split_dataset",
    "split_dataset_n",
    "split_dataset_n_random",
    "split_dataset_random",
    "to_device",
]
