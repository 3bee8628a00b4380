"""Tables: named columns of equal length, read by rows and columns, transformed lazily."""

from .dataset import DelegateDataset, TabularDataset
from .sources import from_data

__all__ = ["DelegateDataset", "TabularDataset", "from_data"]
