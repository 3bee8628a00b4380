"""Names of `chainer.dataset.convert`."""

from ....core.collate import concat_examples as concat_examples
from ....core.converter import ConcatWithAsyncTransfer as ConcatWithAsyncTransfer
from ....core.converter import Converter as Converter
from ....core.converter import converter as converter
from ....core.device import to_device as to_device
