"""Pictures become smaller, never larger."""

import numpy as np
import pytest

from recordio.tools.view.pictures import fitted


@pytest.mark.parametrize(("side", "shape"), [(10, (10, 5, 3)), (100, (100, 50, 3))])
def test_the_longer_side_has_at_most_so_many_pixels(side, shape):
    assert fitted(np.zeros((100, 50, 3), np.uint8), side).shape == shape
