"""The public names and where they live; `__init__.py` loads them by this list.

Records themselves, without batches, are read and written by `recordio`: `RecordReader` and
`RecordWriter`.  Two packages need torch or Ray: `iterators.torch` and `iterators.ray`.
"""
# ruff: noqa: I001 - the order is that in which a newcomer should read

# Modules with names of their own, loaded when they are named.

# Batches of images in record files.
from .providers.image_record import ImageRecordIter as ImageRecordIter
from .providers.image_record import ImageRecordUInt8Iter as ImageRecordUInt8Iter
from .providers.image_record import ImageRecordInt8Iter as ImageRecordInt8Iter
from .providers.image_det_record import ImageDetRecordIter as ImageDetRecordIter
from .core.order import Buckets as Buckets
from .images.sources.mixed_packs import Pack as Pack
from .images.augment.named_recipes import NamedRecipe as NamedRecipe
from .images.augment.pipelines.parts import PipelineError as PipelineError
from .images.processors.preprocess import count_patches as count_patches
from .images.processors.preprocess import preprocess as preprocess
from .providers.mix_batches import MixBatches as MixBatches
from .providers.show import show as show

# Batches of arrays, of text, and from other iterators.
from .providers.arrays import ArrayDataProvider as ArrayDataProvider
from .providers.arrays import NDArrayIter as NDArrayIter
from .providers.csv import CSVIter as CSVIter
from .providers.libsvm import LibSVMIter as LibSVMIter
from .providers.mnist import MNISTIter as MNISTIter
from .providers.protobuf import ProtobufRecordIter as ProtobufRecordIter
from .providers.wrappers import PrefetchingIter as PrefetchingIter
from .providers.wrappers import ResizeIter as ResizeIter
from .providers.mx_data_provider import MXDataProvider as MXDataProvider

# Data sets: one sample at an index.  `iterators.torch` gives them to torch's ``DataLoader``.
from .datasets import ImageRecordDataset as ImageRecordDataset
from .datasets import RecordDataset as RecordDataset
from .datasets import VerificationPairs as VerificationPairs
from .datasets import AugmentedDataset as AugmentedDataset
from .datasets import ConcatenatedDataset as ConcatenatedDataset
from .datasets import DatasetMixin as DatasetMixin
from .datasets import DictDataset as DictDataset
from .datasets import ImageDataset as ImageDataset
from .datasets import LabeledImageDataset as LabeledImageDataset
from .datasets import LabeledZippedImageDataset as LabeledZippedImageDataset
from .datasets import MultiZippedImageDataset as MultiZippedImageDataset
from .datasets import SubDataset as SubDataset
from .datasets import TabularDataset as TabularDataset
from .datasets import TextDataset as TextDataset
from .datasets import TransformDataset as TransformDataset
from .datasets import TupleDataset as TupleDataset
from .datasets import get_cross_validation_datasets as get_cross_validation_datasets
from .datasets import get_cross_validation_datasets_random as get_cross_validation_datasets_random
from .datasets import split_dataset as split_dataset
from .datasets import split_dataset_n as split_dataset_n
from .datasets import split_dataset_n_random as split_dataset_n_random
from .datasets import split_dataset_random as split_dataset_random
from .datasets import cache_or_load_file as cache_or_load_file
from .datasets import cached_download as cached_download
from .datasets import get_dataset_directory as get_dataset_directory
from .datasets import get_dataset_root as get_dataset_root
from .datasets import set_dataset_root as set_dataset_root

# Batches of data sets, and their examples as arrays.
from .loops import Iterator as Iterator
from .loops import MultiprocessIterator as MultiprocessIterator
from .loops import MultithreadIterator as MultithreadIterator
from .loops import SerialIterator as SerialIterator
from .loops import OrderSampler as OrderSampler
from .loops import ShuffleOrderSampler as ShuffleOrderSampler
from .core.collate import concat_examples as concat_examples
from .datasets.converter import ConcatWithAsyncTransfer as ConcatWithAsyncTransfer
from .datasets.converter import Converter as Converter
from .datasets.converter import converter as converter
from .core.device import get_device as get_device
from .core.device import to_device as to_device

# Lazily viewed samples and data sets.
from .samples import Dataset as Dataset
from .samples import Sample as Sample

# The form of a batch: layouts, spaces and views.
from .core.layout import Layout as Layout
from .core.layout import LayoutError as LayoutError
from .core.layout import plan as plan
from .spaces import CompositeSpace as CompositeSpace
from .spaces import Conv2DSpace as Conv2DSpace
from .spaces import DataSpecsMapping as DataSpecsMapping
from .spaces import IndexSequenceSpace as IndexSequenceSpace
from .spaces import IndexSpace as IndexSpace
from .spaces import NullSpace as NullSpace
from .spaces import SpecError as SpecError
from .spaces import VectorSequenceSpace as VectorSequenceSpace
from .spaces import VectorSpace as VectorSpace
from .views import ClassView as ClassView
from .views import DataView as DataView
from .views import ImageView as ImageView
from .views import ListView as ListView
from .views import SequenceView as SequenceView
from .views import View as View

# Base classes of your own providers, and the objects that providers deliver.
from .core.batch import AbstractDataBatch as AbstractDataBatch
from .core.batch import DataBatch as DataBatch
from .providers.report import EpochReport as EpochReport
from .core.batch import DataDesc as DataDesc
from .providers.abstract import AbstractDataProvider as AbstractDataProvider
from .providers.data_iter import DataIter as DataIter
from .providers.protocol import AbstractDataProviderState as AbstractDataProviderState
from .providers.protocol import SlicedNDArray as SlicedNDArray

# MXNet's `mx.image`: images one by one, in Python.
from .mx_image.image_iter import ImageIter as ImageIter
from .mx_image import ImageDetIter as ImageDetIter
from .images.augment.augmenter import Augmenter as Augmenter
from .images.transcode import optimize_jpeg as optimize_jpeg
from .mx_image import BrightnessJitterAug as BrightnessJitterAug
from .mx_image import CastAug as CastAug
from .mx_image import CenterCropAug as CenterCropAug
from .mx_image import ColorJitterAug as ColorJitterAug
from .mx_image import ColorNormalizeAug as ColorNormalizeAug
from .mx_image import ContrastJitterAug as ContrastJitterAug
from .mx_image import CreateAugmenter as CreateAugmenter
from .mx_image import CreateDetAugmenter as CreateDetAugmenter
from .mx_image import CreateMultiRandCropAugmenter as CreateMultiRandCropAugmenter
from .mx_image import DetAugmenter as DetAugmenter
from .mx_image import DetBorrowAug as DetBorrowAug
from .mx_image import DetHorizontalFlipAug as DetHorizontalFlipAug
from .mx_image import DetRandomCropAug as DetRandomCropAug
from .mx_image import DetRandomPadAug as DetRandomPadAug
from .mx_image import DetRandomSelectAug as DetRandomSelectAug
from .mx_image import ForceResizeAug as ForceResizeAug
from .mx_image import HorizontalFlipAug as HorizontalFlipAug
from .mx_image import HueJitterAug as HueJitterAug
from .mx_image import LightingAug as LightingAug
from .mx_image import RandomCropAug as RandomCropAug
from .mx_image import RandomGrayAug as RandomGrayAug
from .mx_image import RandomOrderAug as RandomOrderAug
from .mx_image import RandomSizedCropAug as RandomSizedCropAug
from .mx_image import ResizeAug as ResizeAug
from .mx_image import SaturationJitterAug as SaturationJitterAug
from .mx_image import SequentialAug as SequentialAug
from .mx_image import center_crop as center_crop
from .mx_image import color_normalize as color_normalize
from .mx_image import copyMakeBorder as copyMakeBorder
from .mx_image import example_random as example_random
from .mx_image import fixed_crop as fixed_crop
from .mx_image import imdecode as imdecode
from .mx_image import imread as imread
from .mx_image import imresize as imresize
from .mx_image import imrotate as imrotate
from .mx_image import random_crop as random_crop
from .mx_image import random_rotate as random_rotate
from .mx_image import random_size_crop as random_size_crop
from .mx_image import resize_short as resize_short
from .mx_image import scale_down as scale_down

# Other names of classes above, in MXNet.jl and MXNet.
from .providers.csv import CSVProvider as CSVProvider
from .providers.image_record import ImageRecordIter_v1 as ImageRecordIter_v1
from .providers.image_record import ImageRecordProvider as ImageRecordProvider
from .providers.mnist import MNISTProvider as MNISTProvider

# The rooms; `compat` has all names of MXNet, Chainer, Pylearn2 and dp.
from . import compat as compat
from . import core as core
from . import datasets as datasets
from . import images as images
from . import loops as loops
from . import mx_image as mx_image
from . import providers as providers
from . import samples as samples
from . import spaces as spaces
from . import views as views
