"""iterators.images.jpeg: exactness of regions, limits, and damaged files."""

import cv2
import numpy as np
import pytest

from iterators.images import jpeg

pytestmark = pytest.mark.skipif(not jpeg.available(), reason="built without libjpeg-turbo")


def test_whole_image_equals_opencv():
    image = np.random.default_rng(0).integers(0, 256, (37, 53, 3), np.uint8)
    data = cv2.imencode(".jpg", image)[1].tobytes()
    expected = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert np.array_equal(jpeg.decode(data), expected[:, :, ::-1])
