"""Names of `mx.gluon.data.dataset`: the data sets of `iterators.datasets.gluon`."""

from typing import Any, TypeAlias

from .....datasets import gluon as _gluon
from ...ndarray.array import NDArray as _NDArray
from ...ndarray_results import without_examples as _without_examples

Dataset: TypeAlias = _gluon.Dataset
RecordFileDataset = _gluon.RecordFileDataset
SimpleDataset = _gluon.SimpleDataset


def _plain_labels(self: Any, *args: Any) -> None:
    """Keep arrays of one axis as NumPy arrays, whose entries are scalars, as gluon does."""
    arrays = (a.asnumpy() if isinstance(a, _NDArray) and a.ndim == 1 else a for a in args)
    _gluon.ArrayDataset.__init__(self, *arrays)


ArrayDataset: type[_gluon.ArrayDataset] = type(
    "ArrayDataset",
    (_gluon.ArrayDataset,),
    {
        "__init__": _plain_labels,
        "__module__": __name__,
        "__doc__": _without_examples(_gluon.ArrayDataset),
    },
)
