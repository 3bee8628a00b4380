"""Names of `pylearn2.utils`: `data_specs` and `iteration`."""

from . import data_specs as data_specs
from . import iteration as iteration
