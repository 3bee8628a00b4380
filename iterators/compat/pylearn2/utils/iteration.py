"""Names of `pylearn2.utils.iteration`."""

from ....core.finite_iterator import FiniteDatasetIterator as FiniteDatasetIterator
from ....core.order.modes import (
    BatchwiseShuffledSequentialIterator as BatchwiseShuffledSequentialIterator,
)
from ....core.order.modes import EvenSequencesSubsetIterator as EvenSequencesSubsetIterator
from ....core.order.modes import RandomSliceSubsetIterator as RandomSliceSubsetIterator
from ....core.order.modes import RandomUniformSubsetIterator as RandomUniformSubsetIterator
from ....core.order.modes import SequentialSubsetIterator as SequentialSubsetIterator
from ....core.order.modes import (
    ShuffledSequentialSubsetIterator as ShuffledSequentialSubsetIterator,
)
from ....core.order.modes import SubsetIterator as SubsetIterator
from ....core.order.modes import as_even as as_even
from ....core.order.modes import has_uniform_batch_size as has_uniform_batch_size
from ....core.order.modes import is_stochastic as is_stochastic
from ....core.order.modes import resolve_iterator_class as resolve_iterator_class
