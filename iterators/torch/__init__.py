"""Floor 4: data sets for PyTorch's ``DataLoader`` and training scripts; imported on request only.

``import iterators.torch`` needs torch; nothing else in `iterators` imports this package.
"""

from recordio.extras import need

need("torch", "iterators.torch")

from .dlpack import from_dlpack, to_dlpack  # noqa: E402
from .image_loader import ImageLoader  # noqa: E402
from .python_batches import MapDataset  # noqa: E402
from .record_batches import RecordBatches  # noqa: E402

__all__ = ["ImageLoader", "MapDataset", "RecordBatches", "from_dlpack", "to_dlpack"]
