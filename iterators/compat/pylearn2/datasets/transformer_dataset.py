"""Names of `pylearn2.datasets.transformer_dataset`."""

from ....datasets import TransformerDataset as TransformerDataset
