from typing import Any

import numpy as np
from numpy.typing import NDArray

from .layers import LayerRenderer

class Renderer(LayerRenderer):
    def sample(
        self,
        record: bytes | bytearray | memoryview,
        epoch: int = 0,
        number: int = 0,
        draw: int = 0,
    ) -> tuple[NDArray[Any], NDArray[np.float32], int]: ...
