"""The reference values and examples of dp, in Python's numbering."""

import numpy as np
import pytest

from iterators import ClassView, DataView, ImageView, SequenceView

torch = pytest.importorskip("torch")

LIBRARIES = pytest.mark.parametrize("library", [np.asarray, torch.as_tensor], ids=["np", "torch"])
CHANNELS_LAST = [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]


def counted(library, *shape):
    return library(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))


@LIBRARIES
def test_bhwc_flattens_in_its_own_order(library):
    view = ImageView("bhwc", counted(library, 1, 2, 2, 3))
    assert view.forward_get("bf").tolist() == [list(range(12))]


@LIBRARIES
def test_bchw_flattens_with_channels_slowest_and_becomes_bhwc(library):
    view = ImageView("bchw", counted(library, 1, 3, 2, 2))
    assert view.forward_get("bf").tolist() == [list(range(12))]
    assert np.ravel(view.forward_get("bhwc").tolist()).tolist() == CHANNELS_LAST


@LIBRARIES
def test_chwb_flattens_with_the_batch_swapped_to_the_front(library):
    view = ImageView("chwb", counted(library, 3, 2, 2, 1))
    assert view.forward_get("bf").tolist() == [CHANNELS_LAST]


@pytest.mark.parametrize(
    ("base", "inside"),
    [
        ("bhwc", "hwc"),
        ("bchw", "chw"),
        ("chwb", "hwc"),
        ("bwc", "wc"),
        ("wbc", "wc"),
        ("cwb", "wc"),
        ("bcw", "cw"),
        ("hwcb", "wch"),
    ],
)
def test_order_inside_flattened_features(base, inside):
    sizes = {"b": 2, "h": 3, "w": 4, "c": 5}
    x = np.random.default_rng(0).random([sizes[axis] for axis in base])
    expected = x.transpose([base.index(axis) for axis in "b" + inside]).reshape(2, -1)
    found = DataView(base, x).forward_get("bf")
    assert np.array_equal(found, expected)


@LIBRARIES
def test_gradients_of_two_types_are_summed_in_the_type_of_the_base(library):
    x = library(np.random.default_rng(0).random((8, 10)))
    view = DataView("bf", x)
    assert view.forward_get("bf", "torch.FloatTensor").shape == (8, 10)
    g = library(np.random.default_rng(1).random((8, 10)))
    g2 = library(np.random.default_rng(2).random((8, 10)).astype(np.float32))
    view.backward_put("bf", g)
    view.backward_put("bf", g2)
    total = view.backward_get()
    assert total.dtype == x.dtype
    assert np.allclose(total, g + g2)


@LIBRARIES
def test_primary_class_of_several(library):
    view = ClassView("bt", library(np.array([[4, 2], [3, 1], [2, 3], [3, 4]])))
    assert view.forward_get("b").tolist() == [4, 3, 2, 3]


@LIBRARIES
def test_one_class_gets_a_slot(library):
    x = library(np.arange(8))
    found = ClassView("b", x).forward_get("bt")
    assert tuple(found.shape) == (8, 1)
    assert found.dtype == x.dtype


@LIBRARIES
def test_gradient_of_the_primary_class_leaves_the_others_zero(library):
    view = ClassView("bt", library(np.ones((4, 2), np.float32)))
    view.forward_get("b")
    view.backward_put("b", library(np.ones(4, np.float32)))
    assert view.backward_get().tolist() == [[1, 0]] * 4


def test_primary_class_of_a_transposed_base_is_its_first_row():
    view = ClassView("tb", np.array([[4, 3, 2], [1, 1, 1]]))
    assert view.forward_get("b").tolist() == [4, 3, 2]
    assert view.forward_get("bt").tolist() == [[4, 1], [3, 1], [2, 1]]


def test_sub_of_the_guide_in_half_open_numbering():
    view = DataView("bf", np.arange(8).reshape(4, 2))
    assert view.sub(1, 3).input.tolist() == [[2, 3], [4, 5]]


def test_sequences_change_the_order_of_position_and_channel():
    x = np.arange(24).reshape(2, 3, 4)
    view = SequenceView("bwc", x)
    assert np.array_equal(view.forward_get("bcw"), x.transpose(0, 2, 1))
    assert view.forward_get("bwc") is x


def test_one_producer_and_several_consumers():
    images = ImageView()
    images.forward_put("bhwc", np.random.default_rng(0).random((8, 4, 4, 3)))
    flat = images.forward_get("bf", "float")
    planes = images.forward_get("bchw", "double")
    images.backward_put("bf", np.ones_like(flat))
    images.backward_put("bchw", np.full_like(planes, 2))
    assert np.array_equal(images.backward_get(), np.full((8, 4, 4, 3), 3.0))
    assert np.array_equal(images.backward_get("bhwc", "double"), np.full((8, 4, 4, 3), 3.0))
