"""Names of `pylearn2.datasets`: data sets in memory, and preprocessing."""

from . import dense_design_matrix as dense_design_matrix
from . import preprocessing as preprocessing
from . import transformer_dataset as transformer_dataset
from . import vector_spaces_dataset as vector_spaces_dataset
