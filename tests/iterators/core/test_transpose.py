"""The transposing copy moves every element of every kind of array to its place, or declines."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iterators.core.backend import NUMPY
from iterators.core.transpose import copy_transposed

DTYPES = ["u1", "?", "i2", "f2", ">u2", "f4", "i4", "f8", "c8", "u8"]


@st.composite
def strided_arrays(draw):
    """An array with permuted, reversed, stepped or repeated axes."""
    shape = draw(
        st.lists(st.integers(0, 9) | st.sampled_from([63, 65, 130]), min_size=1, max_size=4)
    )
    while np.prod(shape) > 300_000:
        shape.remove(max(shape))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    raw = np.random.default_rng(len(shape)).integers(0, 256, (*shape, dtype.itemsize), np.uint8)
    x = raw.view(np.uint8).reshape(-1).view(dtype).reshape(shape)
    if draw(st.booleans()):
        x = x.transpose(draw(st.permutations(range(x.ndim))))
    steps = draw(st.lists(st.sampled_from([1, 1, 1, -1, 2]), min_size=x.ndim, max_size=x.ndim))
    x = x[tuple(slice(None, None, step) for step in steps)]
    if draw(st.booleans()):
        axis = draw(st.integers(0, x.ndim))
        x = np.broadcast_to(np.expand_dims(x, axis), (*x.shape[:axis], 3, *x.shape[axis:]))
    return x


@settings(deadline=None, max_examples=300)
@given(strided_arrays())
def test_every_element_arrives(x):
    target = np.full(x.shape, 1, x.dtype)
    before = target.copy()
    done = copy_transposed(target, x)
    assert target.tobytes() == (x if done else before).tobytes()
    assert NUMPY.contiguous(x).tobytes() == x.tobytes()
    assert NUMPY.contiguous(x).flags.c_contiguous


@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "f8"])
@pytest.mark.parametrize("order", [(1, 2, 3, 0), (3, 0, 1, 2), (0, 2, 3, 1), (0, 3, 1, 2)])
def test_image_layouts_are_transposed_by_the_kernel(dtype, order):
    x = (np.arange(5 * 3 * 67 * 70) % 251).astype(dtype).reshape(5, 3, 67, 70).transpose(order)
    target = np.empty(x.shape, dtype)
    assert copy_transposed(target, x) == (x.strides[-1] != x.itemsize)
    assert NUMPY.contiguous(x).tobytes() == x.tobytes()


def test_it_leaves_to_others_what_it_does_not_do_better():
    x = np.zeros((4, 4))
    for source in (x, x[::-1], x[:, ::2].T, x.astype("c16").T, x.astype(object).T):
        assert not copy_transposed(np.empty(source.shape, source.dtype), source)
    held = np.array([[object(), "a"], [2.5, None]], object).T
    assert (NUMPY.contiguous(held) == held).all()


def test_it_refuses_targets_that_do_not_fit():
    x = np.zeros((4, 5)).T
    for target in (np.empty((4, 5)), np.empty((5, 4), "f4"), np.empty(20)):
        with pytest.raises(ValueError, match="differ"):
            copy_transposed(target, x)
    frozen = np.empty((5, 4))
    frozen.flags.writeable = False
    with pytest.raises(ValueError):
        copy_transposed(frozen, x)


def test_a_read_only_source_and_several_threads():
    x = np.random.default_rng(0).random((300, 400))
    x.flags.writeable = False
    targets = [np.empty((400, 300)) for _ in range(4)]
    threads = [threading.Thread(target=copy_transposed, args=(target, x.T)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(target, x.T) for target in targets)
