"""Names of `pylearn2.datasets.vector_spaces_dataset`."""

from ....datasets import VectorSpacesDataset as VectorSpacesDataset
