"""Floor 3: Chainer's datasets, over files of every kind, and Pylearn2's, over arrays and spaces."""

from . import gluon, tabular
from .augmented import AugmentedDataset
from .combine import (
    ConcatenatedDataset,
    DictDataset,
    SubDataset,
    TransformDataset,
    TupleDataset,
    get_cross_validation_datasets,
    get_cross_validation_datasets_random,
    split_dataset,
    split_dataset_n,
    split_dataset_n_random,
    split_dataset_random,
)
from .dataset_base import DatasetMixin
from .design_matrix import DenseDesignMatrix, from_dataset
from .download import (
    ChecksumError,
    DigestError,
    cache_or_load_file,
    cached_download,
    get_dataset_directory,
    get_dataset_root,
    set_dataset_root,
)
from .image_files import (
    ImageDataset,
    LabeledImageDataset,
    LabeledZippedImageDataset,
    MultiZippedImageDataset,
    ZippedImageDataset,
)
from .pickle import (
    PickleDataset,
    PickleDatasetWriter,
    open_pickle_dataset,
    open_pickle_dataset_writer,
)
from .records import ImageRecordDataset, RecordDataset
from .tabular import TabularDataset
from .text import TextDataset
from .vector_spaces import TransformerDataset, VectorSpacesDataset
from .verification import VerificationPairs
from .view_converter import DefaultViewConverter
from .well_known import (
    get_cifar10,
    get_cifar100,
    get_fashion_mnist,
    get_kuzushiji_mnist,
    get_mnist,
)

__all__ = [
    "AugmentedDataset",
    "ChecksumError",
    "ConcatenatedDataset",
    "DatasetMixin",
    "DefaultViewConverter",
    "DenseDesignMatrix",
    "DictDataset",
    "DigestError",
    "ImageDataset",
    "ImageRecordDataset",
    "LabeledImageDataset",
    "LabeledZippedImageDataset",
    "MultiZippedImageDataset",
    "PickleDataset",
    "PickleDatasetWriter",
    "RecordDataset",
    "SubDataset",
    "TabularDataset",
    "TextDataset",
    "TransformDataset",
    "TransformerDataset",
    "TupleDataset",
    "VectorSpacesDataset",
    "VerificationPairs",
    "ZippedImageDataset",
    "cache_or_load_file",
    "cached_download",
    "from_dataset",
    "get_cifar10",
    "get_cifar100",
    "get_cross_validation_datasets",
    "get_cross_validation_datasets_random",
    "get_dataset_directory",
    "get_dataset_root",
    "get_fashion_mnist",
    "get_kuzushiji_mnist",
    "get_mnist",
    "gluon",
    "open_pickle_dataset",
    "open_pickle_dataset_writer",
    "set_dataset_root",
    "split_dataset",
    "split_dataset_n",
    "split_dataset_n_random",
    "split_dataset_random",
    "tabular",
]
