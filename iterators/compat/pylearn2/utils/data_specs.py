"""Names of `pylearn2.utils.data_specs`."""

from ....spaces import DataSpecsMapping as DataSpecsMapping
from ....spaces import is_flat_source as is_flat_source
from ....spaces import is_flat_space as is_flat_space
from ....spaces import is_flat_specs as is_flat_specs
