"""Names of this package, for type checkers; `__init__.py` loads them when they are used."""

from .composite import CompositeSpace as CompositeSpace
from .composite import DataSpecsMapping as DataSpecsMapping
from .composite import NullSpace as NullSpace
from .index import IndexSequenceSpace as IndexSequenceSpace
from .index import IndexSpace as IndexSpace
from .index import OneHotFormatter as OneHotFormatter
from .space import SimpleSpace as SimpleSpace
from .space import Space as Space
from .space import is_dataless_batch as is_dataless_batch
from .space import is_numeric_batch as is_numeric_batch
from .space import is_symbolic_batch as is_symbolic_batch
from .spec import SpecError as SpecError
from .spec import is_flat_source as is_flat_source
from .spec import is_flat_space as is_flat_space
from .spec import is_flat_specs as is_flat_specs
from .vector import Conv2DSpace as Conv2DSpace
from .vector import VectorSequenceSpace as VectorSequenceSpace
from .vector import VectorSpace as VectorSpace
