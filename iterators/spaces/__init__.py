"""Floor 2: Pylearn2's spaces and data_specs, over the layouts of `core`; never a batch's source."""

from ..core.spec import SpecError, is_flat_source, is_flat_space, is_flat_specs
from .composite import CompositeSpace, DataSpecsMapping, NullSpace
from .index import IndexSequenceSpace, IndexSpace, OneHotFormatter
from .space import SimpleSpace, Space, is_dataless_batch, is_numeric_batch, is_symbolic_batch
from .vector import Conv2DSpace, VectorSequenceSpace, VectorSpace

__all__ = [
    "CompositeSpace",
    "Conv2DSpace",
    "DataSpecsMapping",
    "IndexSequenceSpace",
    "IndexSpace",
    "NullSpace",
    "OneHotFormatter",
    "SimpleSpace",
    "Space",
    "SpecError",
    "VectorSequenceSpace",
    "VectorSpace",
    "is_dataless_batch",
    "is_flat_source",
    "is_flat_space",
    "is_flat_specs",
    "is_numeric_batch",
    "is_symbolic_batch",
]
