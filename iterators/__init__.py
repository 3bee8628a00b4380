"""Records and arrays to batches, for NumPy and PyTorch.

Everything public can be imported from here; the subpackages say where it lives.  A module is loaded
when something of it is first asked for, torch only when a device is.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import datasets
    from .core.batch import AbstractDataBatch, DataBatch, DataDesc
    from .core.layout import Layout, LayoutError, plan
    from .loops import (
        Iterator,
        MultiprocessIterator,
        MultithreadIterator,
        OrderSampler,
        SerialIterator,
        ShuffleOrderSampler,
    )
    from .providers.abstract import AbstractDataProvider
    from .providers.arrays import ArrayDataProvider, NDArrayIter
    from .providers.csv import CSVIter, CSVProvider
    from .providers.image_det_record import ImageDetRecordIter
    from .providers.image_record import (
        ImageRecordInt8Iter,
        ImageRecordIter,
        ImageRecordIter_v1,
        ImageRecordProvider,
        ImageRecordUInt8Iter,
    )
    from .providers.libsvm import LibSVMIter, LibSVMProvider
    from .providers.mnist import MNISTIter, MNISTProvider
    from .providers.wrappers import MXDataProvider, PrefetchingIter, ResizeIter
    from .samples import Dataset, Sample
    from .spaces import (
        CompositeSpace,
        Conv2DSpace,
        DataSpecsMapping,
        IndexSequenceSpace,
        IndexSpace,
        NullSpace,
        SpecError,
        VectorSequenceSpace,
        VectorSpace,
    )
    from .views import ClassView, DataView, ImageView, ListView, SequenceView, View

__all__ = [
    "AbstractDataBatch",
    "AbstractDataProvider",
    "ArrayDataProvider",
    "CSVIter",
    "CSVProvider",
    "ClassView",
    "CompositeSpace",
    "Conv2DSpace",
    "DataBatch",
    "DataDesc",
    "DataSpecsMapping",
    "DataView",
    "Dataset",
    "ImageDetRecordIter",
    "ImageRecordInt8Iter",
    "ImageRecordIter",
    "ImageRecordIter_v1",
    "ImageRecordProvider",
    "ImageRecordUInt8Iter",
    "ImageView",
    "IndexSequenceSpace",
    "IndexSpace",
    "Iterator",
    "Layout",
    "LayoutError",
    "LibSVMIter",
    "LibSVMProvider",
    "ListView",
    "MNISTIter",
    "MNISTProvider",
    "MXDataProvider",
    "MultiprocessIterator",
    "MultithreadIterator",
    "NDArrayIter",
    "NullSpace",
    "OrderSampler",
    "PrefetchingIter",
    "ResizeIter",
    "Sample",
    "SequenceView",
    "SerialIterator",
    "ShuffleOrderSampler",
    "SpecError",
    "VectorSequenceSpace",
    "VectorSpace",
    "View",
    "datasets",
    "plan",
]

#: Module -> what of it is public here.
_NAMES_BY_MODULE = {
    "core.batch": ("AbstractDataBatch", "DataBatch", "DataDesc"),
    "core.layout": ("Layout", "LayoutError", "plan"),
    "loops": (
        "Iterator",
        "MultiprocessIterator",
        "MultithreadIterator",
        "OrderSampler",
        "SerialIterator",
        "ShuffleOrderSampler",
    ),
    "providers.abstract": ("AbstractDataProvider",),
    "providers.arrays": ("ArrayDataProvider", "NDArrayIter"),
    "providers.csv": ("CSVIter", "CSVProvider"),
    "providers.image_det_record": ("ImageDetRecordIter",),
    "providers.image_record": (
        "ImageRecordInt8Iter",
        "ImageRecordIter",
        "ImageRecordIter_v1",
        "ImageRecordProvider",
        "ImageRecordUInt8Iter",
    ),
    "providers.libsvm": ("LibSVMIter", "LibSVMProvider"),
    "providers.mnist": ("MNISTIter", "MNISTProvider"),
    "providers.wrappers": ("MXDataProvider", "PrefetchingIter", "ResizeIter"),
    "samples": ("Dataset", "Sample"),
    "spaces": (
        "CompositeSpace",
        "Conv2DSpace",
        "DataSpecsMapping",
        "IndexSequenceSpace",
        "IndexSpace",
        "NullSpace",
        "SpecError",
        "VectorSequenceSpace",
        "VectorSpace",
    ),
    "views": ("ClassView", "DataView", "ImageView", "ListView", "SequenceView", "View"),
}
_MODULE_OF = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}
_SUBPACKAGES = ("core", "datasets", "images", "loops", "providers", "samples", "spaces", "views")


def __getattr__(name: str) -> object:
    """Load what is asked for: a program pays only for what it uses."""
    if name in _SUBPACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBPACKAGES})
