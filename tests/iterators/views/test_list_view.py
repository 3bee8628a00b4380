"""Several views asked for as one."""

import numpy as np
import pytest

from iterators import ClassView, DataView, ImageView, ListView


def pair(n=4):
    x = np.arange(n * 12, dtype=np.float64).reshape(n, 3, 2, 2)
    return ListView([ImageView("bchw", x), ClassView("b", np.arange(n))])


def test_one_name_for_all_or_one_for_each():
    both = pair()
    images, classes = both.forward_get()
    assert images is both.components[0].input
    assert classes is both.components[1].input
    flat, slots = both.forward_get(["bf", "bt"], ["float", None])
    assert flat.shape == (4, 12)
    assert flat.dtype == np.float32
    assert slots.shape == (4, 1)
    assert [x.dtype for x in both.forward_get("default", "float")] == [np.float32] * 2


def test_values_are_put_and_replaced_in_order():
    both = pair()
    both.forward(["bchw", "b"], [np.ones((2, 3, 2, 2)), np.zeros(2, np.int64)])
    assert both.n_sample() == len(both) == 2
    both.replace(["bf", "bt"], [np.full((2, 12), 5.0), np.full((2, 1), 7)])
    assert both.input[0].shape == (2, 3, 2, 2)
    assert both.input[1].tolist() == [7, 7]


def test_gradients_are_never_summed_across_components():
    both = ListView([DataView("bf", np.zeros((2, 3))), DataView("bf", np.zeros((2, 3)))])
    for factor in (1, 2):
        both.backward("bf", [np.full((2, 3), factor), np.full((2, 3), 10.0 * factor)][1:] * 2)
    first, second = both.backward()
    assert first.tolist() == second.tolist() == [[30] * 3] * 2
    both.forward_put("bf", [np.zeros((2, 3)), np.zeros((2, 3))])
    both.backward_put("default", [np.full((2, 3), 1.0), np.full((2, 3), 2.0)])
    assert [g[0, 0] for g in both.backward_get("bf")] == [1, 2]


def test_rows_of_every_component():
    both = pair()
    picked = both.index([3, 0])
    assert picked.input[1].tolist() == [3, 0]
    out = both.sub(0, 2)
    assert both.sub(1, 3, out=out) is out
    assert out.input[1].tolist() == [1, 2]
    both.sub(1, 3, share=True).components[0].input[:] = -1
    assert (both.input[0][1:3] == -1).all()
    assert [stop for stop, _ in both.iter_sub(3, reuse=True)] == [3, 4]


def test_lists_may_hold_lists():
    nested = ListView([pair(), DataView("bf", np.zeros((4, 2)))])
    (images, classes), features = nested.forward_get([["bhwc", "bt"], "bf"])
    assert images.shape == (4, 2, 2, 3)
    assert classes.shape == (4, 1)
    assert features.shape == (4, 2)
    assert nested.view == [["bchw", "b"], "bf"]
    assert nested.index([1]).input[0][1].tolist() == [1]


def test_description_and_life():
    both = pair()
    assert both.size() == 2
    assert list(both) == list(both.components)
    assert both.view == ["bchw", "b"]
    assert both.sample_size() == 13
    other = both.clone()
    other.to(["float", "int"])
    assert [x.dtype.name for x in other.input] == ["float32", "int32"]
    assert both.input[0].dtype == np.float64
    other.set_input([np.ones((4, 3, 2, 2)), np.zeros(4)])
    assert other.input[1].sum() == 0
    old = both.forward_get(["bf", "bt"], "float")[0]
    both.flush()
    assert both.forward_get(["bf", "bt"], "float")[0] is not old
    assert [len(plan.dst.axes) for plan in both.transpose(["bhwc", "b"])] == [4, 1]
    assert repr(ListView([DataView()])) == "ListView([DataView()])"
    assert ListView([]).n_sample() == 0


def test_what_is_refused():
    both = pair()
    with pytest.raises(TypeError, match="component 1 is a ndarray"):
        ListView([DataView(), np.zeros(3)])
    with pytest.raises(ValueError, match="3 views for 2"):
        both.forward_get(["bf"] * 3)
    with pytest.raises(ValueError, match="1 arrays for 2"):
        both.forward_put("b", [np.zeros(2)])
    with pytest.raises(TypeError, match="list"):
        both.forward_put("b", np.zeros(2))
    with pytest.raises(TypeError, match="ListView"):
        both.sub(0, 1, out=DataView())
    with pytest.raises(ValueError, match="1 components"):
        both.sub(0, 1, out=ListView([ImageView()]))
