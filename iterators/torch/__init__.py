"""Floor 4: what PyTorch's ``DataLoader`` and training scripts need; imported only when asked for.

``import iterators.torch`` needs torch; nothing else in `iterators` imports this package.
"""

from .dlpack import from_dlpack, to_dlpack
from .map_style import MapDataset
from .record_batches import RecordBatches

__all__ = ["MapDataset", "RecordBatches", "from_dlpack", "to_dlpack"]
