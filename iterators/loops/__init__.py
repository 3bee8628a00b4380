"""Floor 3: iterators over data sets, for batches that are lists of examples (Chainer's names)."""

from .iterator import Iterator
from .multiprocess import MultiprocessIterator, TimeoutWarning
from .multithread import MultithreadIterator
from .order_samplers import OrderSampler, SeededOrderSampler, ShuffleOrderSampler
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
