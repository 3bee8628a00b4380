"""Boxes that are drawn on images."""

import numpy as np

from iterators.mx_image.det_iter import drawn_boxes


def test_a_box_is_drawn_on_a_copy():
    black = np.zeros((9, 9, 3), np.uint8)
    assert drawn_boxes(black, np.array([[0, 0.2, 0.2, 0.8, 0.8]])).any()
    assert not drawn_boxes(black, np.array([[-1, 0.2, 0.2, 0.8, 0.8]])).any()  # padding
    assert not black.any()
