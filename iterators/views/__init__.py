"""Floor 2: the views, data sets and samplers of torch's ``dp``, over the layouts of `core`.

A `View` holds one array and hands it out in other orders of axes, element types and libraries.
`DataSet`, `Batch` and the samplers put inputs and targets together; `preprocess` transforms them.
"""

from .batch_views import view_batch
from .class_view import ClassView
from .data_view import DataView
from .image_sets import ImageClassSet
from .image_view import ImageView
from .list_view import ListView
from .named_sources import Cifar10, Cifar100, Mnist, NotMnist, SmallImageSource
from .preprocess import (
    GCN,
    ZCA,
    Binarize,
    LeCunLCN,
    ParallelPreprocess,
    Pipeline,
    Preprocess,
    Standardize,
)
from .samplers import Epoch, RandomSampler, Sampler, ShuffleSampler
from .sequence_view import SequenceView
from .sets import BaseSet, Batch, DataSet, DataSource
from .side_data import Carry
from .text_samplers import SentenceSampler, TextSampler
from .text_sets import SentenceSet, TextSet
from .text_sources import PennTreeBank, TextSource
from .view import View

__all__ = [
    "GCN",
    "ZCA",
    "BaseSet",
    "Batch",
    "Binarize",
    "Carry",
    "Cifar10",
    "Cifar100",
    "ClassView",
    "DataSet",
    "DataSource",
    "DataView",
    "Epoch",
    "ImageClassSet",
    "ImageView",
    "LeCunLCN",
    "ListView",
    "Mnist",
    "NotMnist",
    "ParallelPreprocess",
    "PennTreeBank",
    "Pipeline",
    "Preprocess",
    "RandomSampler",
    "Sampler",
    "SentenceSampler",
    "SentenceSet",
    "SequenceView",
    "ShuffleSampler",
    "SmallImageSource",
    "Standardize",
    "TextSampler",
    "TextSet",
    "TextSource",
    "View",
    "view_batch",
]
