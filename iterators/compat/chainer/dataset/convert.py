"""Names of `chainer.dataset.convert`."""

from ....core.collate import concat_examples as concat_examples
from ....core.device import to_device as to_device
from ....datasets.converter import ConcatWithAsyncTransfer as ConcatWithAsyncTransfer
from ....datasets.converter import Converter as Converter
from ....datasets.converter import converter as converter
