"""Names of `chainer.iterators`."""

from ...loops import MultiprocessIterator as MultiprocessIterator
from ...loops import MultithreadIterator as MultithreadIterator
from ...loops import OrderSampler as OrderSampler
from ...loops import SerialIterator as SerialIterator
from ...loops import ShuffleOrderSampler as ShuffleOrderSampler
