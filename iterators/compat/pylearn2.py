"""Names of Pylearn2: of `pylearn2.space`, `pylearn2.datasets` and `pylearn2.utils`."""

from ..core.finite_iterator import FiniteDatasetIterator as FiniteDatasetIterator
from ..core.order.modes import (
    BatchwiseShuffledSequentialIterator as BatchwiseShuffledSequentialIterator,
)
from ..core.order.modes import EvenSequencesSubsetIterator as EvenSequencesSubsetIterator
from ..core.order.modes import RandomSliceSubsetIterator as RandomSliceSubsetIterator
from ..core.order.modes import RandomUniformSubsetIterator as RandomUniformSubsetIterator
from ..core.order.modes import SequentialSubsetIterator as SequentialSubsetIterator
from ..core.order.modes import ShuffledSequentialSubsetIterator as ShuffledSequentialSubsetIterator
from ..core.order.modes import SubsetIterator as SubsetIterator
from ..core.order.modes import as_even as as_even
from ..core.order.modes import has_uniform_batch_size as has_uniform_batch_size
from ..core.order.modes import is_stochastic as is_stochastic
from ..core.order.modes import resolve_iterator_class as resolve_iterator_class
from ..datasets import DefaultViewConverter as DefaultViewConverter
from ..datasets import DenseDesignMatrix as DenseDesignMatrix
from ..datasets import TransformerDataset as TransformerDataset
from ..datasets import VectorSpacesDataset as VectorSpacesDataset
from ..datasets import from_dataset as from_dataset
from ..spaces import CompositeSpace as CompositeSpace
from ..spaces import Conv2DSpace as Conv2DSpace
from ..spaces import DataSpecsMapping as DataSpecsMapping
from ..spaces import IndexSequenceSpace as IndexSequenceSpace
from ..spaces import IndexSpace as IndexSpace
from ..spaces import NullSpace as NullSpace
from ..spaces import OneHotFormatter as OneHotFormatter
from ..spaces import Space as Space
from ..spaces import VectorSequenceSpace as VectorSequenceSpace
from ..spaces import VectorSpace as VectorSpace
from ..spaces import is_flat_source as is_flat_source
from ..spaces import is_flat_space as is_flat_space
from ..spaces import is_flat_specs as is_flat_specs
from ..spaces import is_symbolic_batch as is_symbolic_batch
