"""Boxes are moved as the pixels are: compared with where white rectangles end up."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from faces.labels import moved
from iterators.images.augment.det_recipe import MOVING, DetRecipe
from recordio.kernels.operations import NAMES, operate

STRENGTHS = {"shear_x": 0.99, "shear_y": 0.99, "translate_x": 60, "translate_y": 60, "rotate": 180}


def white(width, height, box):
    image = np.zeros((height, width), np.uint8)
    left, top, right, bottom = box
    image[top:bottom, left:right] = 255
    return image


def extent(image):
    """xmin, ymin, xmax, ymax of the white pixels; None without any."""
    rows, columns = np.nonzero(image > 127)
    if not len(rows):
        return None
    return columns.min(), rows.min(), columns.max() + 1, rows.max() + 1


def label_of(width, height, *boxes):
    sides = np.array([width, height, width, height])
    return [2, 5, *(value for box in boxes for value in (7, *(np.array(box) / sides)))]


def boxes_after(width, height, box, operations, **more):
    """Boxes in pixels."""
    found = moved(label_of(width, height, box), operations, width, height, **more)
    return found[2:].reshape(-1, 5)[:, 1:] * (width, height, width, height)


@st.composite
def cases(draw):
    width, height = draw(st.integers(20, 90)), draw(st.integers(20, 90))
    left, top = draw(st.integers(0, width - 8)), draw(st.integers(0, height - 8))
    right, bottom = draw(st.integers(left + 8, width)), draw(st.integers(top + 8, height))
    operations = []
    for name in draw(st.lists(st.sampled_from(MOVING), min_size=1, max_size=3)):
        value = draw(st.floats(-STRENGTHS[name], STRENGTHS[name]))
        operations.append((name, round(value) if name.startswith("translate") else value))
    return width, height, (left, top, right, bottom), operations


@given(case=cases())
@example(case=(73, 37, (0, 0, 42, 25), [("translate_x", 42), ("rotate", 21.0)]))
def test_the_box_is_the_extent_of_the_white_pixels(case):
    """Within a pixel for each operation, however many, and with parts that leave the image."""
    width, height, box, operations = case
    image = white(width, height, box)
    for name, value in operations:
        image = operate(image, name, value)
    seen = extent(image)
    found = boxes_after(width, height, box, operations, overlap=0)
    assert (found >= 0).all() and (found[:, [0, 2]] <= width).all()
    assert (found[:, [1, 3]] <= height).all()
    # Each nearest neighbour rounds by half a pixel, which a further shear makes up to twice as far.
    slack = 1.5 * (2 ** len(operations) - 1)
    if seen is None:
        assert not len(found) or (found[0, 2:] - found[0, :2]).min() <= slack
    elif len(found):
        # A tip that is narrower than a pixel may contain the centre of none.
        assert (found[0, :2] <= np.array(seen[:2]) + slack).all()
        assert (found[0, 2:] >= np.array(seen[2:]) - slack).all()
    else:
        assert min(seen[2] - seen[0], seen[3] - seen[1]) <= slack


@pytest.mark.parametrize("name", ["shear_x", "shear_y", "translate_x", "translate_y"])
@pytest.mark.parametrize("share", [-1, -0.6, -0.1, 0.1, 0.6, 1])
def test_shears_and_shifts_are_exact_to_the_pixel(name, share):
    """Flat sides leave no thin tips, except those that a shear makes: one pixel."""
    width, height, box = 80, 60, (20, 10, 50, 40)
    value = round(20 * share) if name.startswith("translate") else 0.3 * share
    seen = extent(operate(white(width, height, box), name, value))
    (found,) = boxes_after(width, height, box, [(name, value)])
    slack = 1e-4 if name.startswith("translate") else 1
    np.testing.assert_allclose(found, seen, atol=slack)


@pytest.mark.parametrize("turn", [90, 180, 270, -90])
def test_quarter_turns_are_exact(turn):
    box = 3, 5, 20, 30
    seen = extent(operate(white(40, 40, box), "rotate", turn))
    np.testing.assert_allclose(boxes_after(40, 40, box, [("rotate", turn)]), [seen], atol=1e-4)


def test_a_mirrored_image_has_mirrored_boxes():
    """The operations see the image as it is stored, and the boxes are those of its mirror."""
    width, height, box = 50, 40, (4, 6, 24, 30)
    operations = [("rotate", 25), ("translate_x", -9), ("shear_y", 0.2)]
    image = white(width, height, box)
    (plain,) = boxes_after(width, height, box, operations)
    for name, value in operations:
        image = operate(image, name, value)
    mirrored = width - box[2], box[1], width - box[0], box[3]
    (found,) = boxes_after(width, height, mirrored, operations, mirror=True)
    np.testing.assert_allclose(found, [width - plain[2], plain[1], width - plain[0], plain[3]],
                               atol=1e-3)  # fmt: skip
    np.testing.assert_allclose(found, extent(image[:, ::-1]), atol=2)


def test_what_a_first_operation_pushed_out_does_not_come_back():
    box = 0, 10, 10, 20
    away_and_back = [("translate_x", 15), ("translate_x", -15)]
    assert len(boxes_after(40, 40, box, away_and_back, overlap=0)) == 0
    assert len(boxes_after(40, 40, box, away_and_back)) == 0
    half = [("translate_x", 4), ("translate_x", -4)]
    np.testing.assert_allclose(boxes_after(40, 40, box, half), [[4, 10, 10, 20]], atol=1e-4)


@pytest.mark.parametrize(
    ("shift", "centre", "overlap"), [(9, 1, 1), (10, 1, 1), (11, 0, 1), (15, 0, 0), (20, 0, 0)]
)
def test_objects_are_dropped_by_the_rule_of_a_crop(shift, centre, overlap):
    """A box of 20 pixels, shifted out to the left: by its centre, or by what is left of it."""
    done = [("translate_x", shift)]
    assert len(boxes_after(60, 60, (0, 10, 20, 30), done)) == centre
    assert len(boxes_after(60, 60, (0, 10, 20, 30), done, overlap=0.3)) == overlap


def test_the_share_that_is_left_is_that_of_the_area_and_not_of_the_box_around_it():
    """Turned by 45 degrees, half of a square that sticks out at a corner is a triangle."""
    box = 40, 40, 60, 60
    operations = [("rotate", 45), ("translate_x", -50)]
    assert len(boxes_after(100, 100, box, operations, overlap=0.49)) == 1
    assert len(boxes_after(100, 100, box, operations, overlap=0.51)) == 0


@pytest.mark.parametrize("edge", [(0, 0, 60, 60), (0, 20, 10, 40), (50, 0, 60, 60), (0, 0, 10, 10)])
def test_boxes_on_edges_stay_in_the_image(edge):
    for name in MOVING:
        for value in (-STRENGTHS[name] / 3, STRENGTHS[name] / 3):
            found = boxes_after(60, 60, edge, [(name, value)], overlap=0)
            assert (found >= 0).all() and (found <= 60).all()


def test_other_objects_and_values_stay_as_they_are():
    label = [3, 6, 9, 1, 0.0, 0.4, 0.1, 0.6, 0.5, 2, 0.5, 0.5, 0.7, 0.7, 0.25]
    found = moved(label, [("translate_x", 10)], 40, 40)
    np.testing.assert_allclose(found, [3, 6, 9, 2, 0.25, 0.5, 0.45, 0.7, 0.25], atol=1e-6)


def test_operations_that_move_nothing_leave_every_bit():
    label = np.array([2, 5, 1, -0.1, 0.1, 1.3, 0.7], np.float32)  # beyond the image, as is allowed
    still = [(name, 1) for name in NAMES if name not in MOVING]
    assert np.array_equal(moved(label, still, 33, 21), label)


def test_no_objects_and_malformed_labels():
    flat = [2, 5, 1, 0.5, 0.5, 0.5, 0.7]
    assert moved(flat, [("rotate", 30)], 10, 10).tolist() == [2, 5]
    assert moved([2, 5], [("rotate", 30)], 10, 10).tolist() == [2, 5]
    for label in ([], [2], [1, 5, 0, 0, 0, 1, 1]):
        with pytest.raises(ValueError, match=r"label|header"):
            moved(label, [], 10, 10)
    with pytest.raises(ValueError, match="at most 64"):
        moved([2, 5, 1, 0, 0, 1, 1], [("rotate", 1)] * 65, 10, 10)


def test_many_operations_keep_a_box_that_is_cut_by_each():
    operations = [("rotate", 37 + i) for i in range(64)]
    (found,) = boxes_after(50, 50, (0, 0, 50, 50), operations)
    assert (found[:2] < 25).all() and (found[2:] > 25).all()


def test_which_policies_move_boxes():
    def moves(**keywords):
        return DetRecipe(data_shape=(3, 9, 9), **keywords).moves_boxes

    assert not moves() and not moves(auto_augment="3a") and not moves(auto_augment="rand-t3a")
    assert moves(auto_augment="randaugment") and moves(auto_augment="augmix")
    assert all(moves(auto_augment=f"autoaugment{name}") for name in ("", "-svhn", "-cifar10"))


def test_a_shift_moves_a_box():
    label = moved([2, 5, 7, 0.0, 0.25, 0.5, 1.0], [("translate_x", -10)], 40, 40)
    assert label.tolist() == [2.0, 5.0, 7.0, 0.25, 0.25, 0.75, 1.0]
