"""Floor 2: what can be indexed and iterated over; never how a batch is used."""

from .design_matrix import DefaultViewConverter, DenseDesignMatrix, VectorSpacesDataset

__all__ = ["DefaultViewConverter", "DenseDesignMatrix", "VectorSpacesDataset"]
