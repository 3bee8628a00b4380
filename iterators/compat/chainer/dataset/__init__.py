"""Names of `chainer.dataset`."""

from ....core.collate import concat_examples as concat_examples
from ....core.device import to_device as to_device
from ....datasets import DatasetMixin as DatasetMixin
from ....datasets import TabularDataset as TabularDataset
from ....datasets import cache_or_load_file as cache_or_load_file
from ....datasets import cached_download as cached_download
from ....datasets import get_dataset_directory as get_dataset_directory
from ....datasets import get_dataset_root as get_dataset_root
from ....datasets import set_dataset_root as set_dataset_root
from ....datasets import tabular as tabular
from ....datasets.converter import ConcatWithAsyncTransfer as ConcatWithAsyncTransfer
from ....datasets.converter import Converter as Converter
from ....datasets.converter import converter as converter
from ....loops import Iterator as Iterator
from . import convert as convert
from . import download as download
