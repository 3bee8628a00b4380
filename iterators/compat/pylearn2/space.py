"""Names of `pylearn2.space`."""

from ...spaces import CompositeSpace as CompositeSpace
from ...spaces import Conv2DSpace as Conv2DSpace
from ...spaces import IndexSequenceSpace as IndexSequenceSpace
from ...spaces import IndexSpace as IndexSpace
from ...spaces import NullSpace as NullSpace
from ...spaces import Space as Space
from ...spaces import VectorSequenceSpace as VectorSequenceSpace
from ...spaces import VectorSpace as VectorSpace
from ...spaces import is_symbolic_batch as is_symbolic_batch
