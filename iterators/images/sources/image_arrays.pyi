from typing import Self

import numpy as np
from numpy.typing import NDArray

from .source import Source

class ImageArrays(Source):
    def __new__(cls, images: NDArray[np.uint8], labels: NDArray[np.float32]) -> Self: ...
