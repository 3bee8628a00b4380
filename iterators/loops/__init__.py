"""Floor 3: Chainer's iterators, over anything with a length and an index; batches are lists."""

from .iterator import Iterator, SerialIterator
from .multiprocess import MultiprocessIterator, TimeoutWarning
from .multithread import MultithreadIterator
from .serializers import (
    Deserializer,
    DictionarySerializer,
    NpzDeserializer,
    Serializer,
    load_npz,
    save_npz,
    serialize,
)
from .sweep_orders import OrderSampler, SeededOrderSampler, ShuffleOrderSampler
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
    "serialize",
]
