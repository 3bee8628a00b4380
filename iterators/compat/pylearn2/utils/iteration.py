"""Names of `pylearn2.utils.iteration`."""

from ....spaces.finite_iterator import FiniteDatasetIterator as FiniteDatasetIterator
from ....spaces.modes import (
    BatchwiseShuffledSequentialIterator as BatchwiseShuffledSequentialIterator,
)
from ....spaces.modes import EvenSequencesSubsetIterator as EvenSequencesSubsetIterator
from ....spaces.modes import RandomSliceSubsetIterator as RandomSliceSubsetIterator
from ....spaces.modes import RandomUniformSubsetIterator as RandomUniformSubsetIterator
from ....spaces.modes import SequentialSubsetIterator as SequentialSubsetIterator
from ....spaces.modes import (
    ShuffledSequentialSubsetIterator as ShuffledSequentialSubsetIterator,
)
from ....spaces.modes import SubsetIterator as SubsetIterator
from ....spaces.modes import as_even as as_even
from ....spaces.modes import has_uniform_batch_size as has_uniform_batch_size
from ....spaces.modes import is_stochastic as is_stochastic
from ....spaces.modes import resolve_iterator_class as resolve_iterator_class
