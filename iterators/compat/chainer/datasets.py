"""Names of `chainer.datasets`; files of sets must be there, nothing is downloaded."""

from ...datasets import ConcatenatedDataset as ConcatenatedDataset
from ...datasets import DictDataset as DictDataset
from ...datasets import ImageDataset as ImageDataset
from ...datasets import LabeledImageDataset as LabeledImageDataset
from ...datasets import LabeledZippedImageDataset as LabeledZippedImageDataset
from ...datasets import MultiZippedImageDataset as MultiZippedImageDataset
from ...datasets import PickleDataset as PickleDataset
from ...datasets import PickleDatasetWriter as PickleDatasetWriter
from ...datasets import SubDataset as SubDataset
from ...datasets import TextDataset as TextDataset
from ...datasets import TransformDataset as TransformDataset
from ...datasets import TupleDataset as TupleDataset
from ...datasets import ZippedImageDataset as ZippedImageDataset
from ...datasets import get_cifar10 as get_cifar10
from ...datasets import get_cifar100 as get_cifar100
from ...datasets import get_cross_validation_datasets as get_cross_validation_datasets
from ...datasets import get_cross_validation_datasets_random as get_cross_validation_datasets_random
from ...datasets import get_fashion_mnist as get_fashion_mnist
from ...datasets import get_kuzushiji_mnist as get_kuzushiji_mnist
from ...datasets import get_mnist as get_mnist
from ...datasets import open_pickle_dataset as open_pickle_dataset
from ...datasets import open_pickle_dataset_writer as open_pickle_dataset_writer
from ...datasets import split_dataset as split_dataset
from ...datasets import split_dataset_n as split_dataset_n
from ...datasets import split_dataset_n_random as split_dataset_n_random
from ...datasets import split_dataset_random as split_dataset_random
