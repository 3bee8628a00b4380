"""Names of `pylearn2.datasets.dense_design_matrix`."""

from ....datasets import DefaultViewConverter as DefaultViewConverter
from ....datasets import DenseDesignMatrix as DenseDesignMatrix
from ....datasets import from_dataset as from_dataset
