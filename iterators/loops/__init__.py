"""Floor 3: iterators over data sets, for batches that are lists of examples (Chainer's names)."""

from ..core.order.sweep_orders import OrderSampler, SeededOrderSampler, ShuffleOrderSampler
from .dali import DaliIterator
from .iterator import Iterator
from .multiprocess import MultiprocessIterator, TimeoutWarning
from .multithread import MultithreadIterator
from .serial import SerialIterator
from .serializers import (
    Deserializer,
    DictionarySerializer,
    NpzDeserializer,
    Serializer,
    load_npz,
    save_npz,
)
from .worker import WorkerError
from .worker_pool import WorkerDiedError

__all__ = [
    "DaliIterator",
    "Deserializer",
    "DictionarySerializer",
    "Iterator",
    "MultiprocessIterator",
    "MultithreadIterator",
    "NpzDeserializer",
    "OrderSampler",
    "SeededOrderSampler",
    "SerialIterator",
    "Serializer",
    "ShuffleOrderSampler",
    "TimeoutWarning",
    "WorkerDiedError",
    "WorkerError",
    "load_npz",
    "save_npz",
]
