"""Records and arrays to batches, for NumPy and PyTorch.

There are four doors:

- `ImageRecordIter` and its siblings deliver batches of the images in record files, and `CSVIter`,
  `ArrayDataProvider` and others batches of text and arrays.
- `recordio.RecordReader` and `recordio.RecordWriter` read and write single records.
- `ImageRecordDataset` and the other data sets give one sample at an index.
- `iterators.torch.RecordBatches` is for torch's ``DataLoader``.

Everything public can be imported from here; ``__init__.pyi`` is the list of names, in groups, and
says where they live.  A module is loaded when something of it is first asked for, torch only when a
device is, or `iterators.torch` is named.

The way of a record to a batch is `core`, `images` and `providers`.  Older designs stand behind it:
`samples` (a design note), `datasets` and `loops` (Chainer), `spaces` (Pylearn2), `views` (torch's
``dp``) and `mx_image` (MXNet).  `compat` lists everything under the names of each of them.
"""

import importlib
from typing import Any

import lazy_loader

import recordio  # noqa: F401  (which tells what is wrong where nothing is compiled)

_attribute, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

#: Modules beside those of the list, which a star import leaves alone, as some need torch or Ray.
_MODULES = ("fields", "ray", "testing", "torch")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    return _attribute(name)
