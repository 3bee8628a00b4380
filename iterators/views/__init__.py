"""Floor 2: what a batch looks like on request, with gradients, after torch's ``dp``.

A `View` holds one array and hands it out in other orders of axes, element types and libraries.
`DataSet`, `Batch` and the samplers put inputs and targets together; `preprocess` transforms them.
"""

from .class_view import ClassView
from .data_view import DataView
from .image_view import ImageView
from .list_view import ListView
from .sequence_view import SequenceView
from .view import View

__all__ = ["ClassView", "DataView", "ImageView", "ListView", "SequenceView", "View"]
