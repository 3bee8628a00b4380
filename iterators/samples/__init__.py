"""Floor 2: the lazy samples of a design note of 2010, over anything that takes an index.

`Sample` sees one thing with named parts, `Dataset` many of them along the first axis, and
`StreamDataset` what can only be read in its own order.  The storage is a NumPy array, a torch
tensor, a memory-mapped file, a list or a record file, and nothing is read before it is called.  All
methods begin with an underscore, because all other names belong to the fields.
"""

from .dataset import Dataset, Minibatches, fields, fields_meta, minibatches, shape
from .region import ReadOnlyError
from .sample import Sample
from .stream import StreamDataset

__all__ = [
    "Dataset",
    "Minibatches",
    "ReadOnlyError",
    "Sample",
    "StreamDataset",
    "fields",
    "fields_meta",
    "minibatches",
    "shape",
]
