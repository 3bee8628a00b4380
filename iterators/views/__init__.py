"""Floor 2: the views, data sets and samplers of torch's ``dp``, over the layouts of `core`.

A `View` holds one array and hands it out in other orders of axes, element types and libraries.
`DataSet`, `Batch` and the samplers put inputs and targets together; `preprocess` transforms them.
"""

from .array_views import ClassView, ImageView, SequenceView
from .data_view import DataView
from .image_sets import ImageClassSet
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
from .samplers import Epoch, RandomSampler, Sampler, SentenceSampler, ShuffleSampler, TextSampler
from .sets import BaseSet, Batch, DataSet, DataSource, view_batch
from .text_sets import PennTreeBank, SentenceSet, TextSet, TextSource
from .view import Carry, View

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
