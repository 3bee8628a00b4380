"""Layouts and plans: what they say, what they convert, what they cost and what they refuse."""

import copy
import itertools
import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from iterators.core.layout import ClassNumberError, Layout, LayoutError, plan

torch = pytest.importorskip("torch")

#: The first use of a library takes longer than hypothesis allows for an example.
unhurried = settings(deadline=None)


@st.composite
def image_layouts(draw, sizes):
    """A layout of an image batch: any order, or flattened in any order, or half of both."""
    order = draw(st.permutations("hwc"))
    kind = draw(st.sampled_from(["plain", "flat", "half"]))
    if kind == "plain":
        return Layout("".join(draw(st.permutations("bhwc"))), **sizes)
    if kind == "flat":
        return Layout(draw(st.sampled_from(["bf", "fb"])), f_order="".join(order), **sizes)
    axes = draw(st.permutations(["b", "f", order[2]]))
    return Layout("".join(axes), f_order="".join(order[:2]), **sizes)


@st.composite
def conversions(draw):
    """A source, a target and the number of samples."""
    size = st.integers(1, 4)
    sizes = {"h": draw(size), "w": draw(size), "c": draw(size)}
    return (
        draw(image_layouts(sizes)),
        draw(image_layouts(sizes)),
        draw(st.integers(0, 4)),
    )


@st.composite
def linear_plans(draw):
    """Any plan that has an adjoint, selections included, and a batch size."""
    if draw(st.booleans()):
        src, dst, batch = draw(conversions())
        return plan(src, dst), batch
    slots, place = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    place %= slots
    src = Layout("".join(draw(st.permutations("btc"))), t=slots, c=3)
    dst = Layout("".join(draw(st.permutations("bc"))), t_at=place, c=3)
    return plan(src, dst), draw(st.integers(0, 4))


def array(layout, batch, dtype=np.float64):
    """Distinct small numbers in a layout."""
    shape = layout.shape(batch)
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


# -- descriptions -----------------------------------------------------------------------------


def test_rows_columns_and_capitals_are_other_names_of_the_same_axes():
    assert (
        Layout(("b", "c", 0, 1), h=2, w=3) == Layout("bchw", h=2, w=3) == Layout("NCHW", H=2, W=3)
    )


def test_a_flattened_axis_knows_its_size_from_what_it_holds_and_the_other_way_round():
    assert Layout("bf", f_order="hwc", h=2, w=3, c=4).sizes["f"] == 24
    assert Layout("bf", f=24, f_order="hwc", h=2, w=3).sizes["c"] == 4


@pytest.mark.parametrize(
    ("axes", "arguments", "word"),
    [
        ("bhh", {}, "twice"),
        ("bf", {"f": 7, "f_order": "hw", "h": 2, "w": 3}, "hold 6"),
        ("bf", {"f": 7, "f_order": "hw", "h": 2}, "multiple"),
        ("bh", {"w": 3}, "no axis 'w'"),
        ("bh", {"b": 3}, "no size"),
        ("bh", {"h": -1}, "negative"),
        ("bh", {"h": 2.5}, "integer"),
        ("bh", {"f_order": "wc"}, "no axis 'f'"),
        ("bf", {"f_order": "fw"}, "itself"),
        ("bhf", {"f_order": "hw"}, "twice"),
        ("bt", {"t_at": 0}, "has the axis"),
        ("b", {"t_at": 3, "t": 3}, "not below"),
        ("bt", {"index_of": "t"}, "has that axis"),
        ("b!", {}, "not an axis"),
        (("b", 2), {}, "not an axis"),
        (5, {}, "letters"),
        ("bh", {"h_length": 2}, "expected a size"),
    ],
)
def test_layouts_that_contradict_themselves_are_refused(axes, arguments, word):
    with pytest.raises(LayoutError, match=word):
        Layout(axes, **arguments)


def test_layouts_are_values():
    layout = Layout("bt", t=2, index_of="k", k=10)
    for other in (copy.deepcopy(layout), pickle.loads(pickle.dumps(layout)), eval(repr(layout))):
        assert other == layout and hash(other) == hash(layout)
    assert layout != Layout("bt", t=2) and layout != "bt"
    with pytest.raises(AttributeError):
        layout.axes = "tb"


def test_shape_and_total_need_sizes():
    assert Layout("chwb", h=2, w=3, c=4).total == 24
    with pytest.raises(LayoutError, match="not known"):
        Layout("bhw", h=2).shape(3)


# -- conversions ------------------------------------------------------------------------------


def test_worked_numbers_of_pylearn2():
    flat = Layout("bf", f_order="hwc", h=2, w=2, c=3)
    image = Layout("bchw", h=2, w=2, c=3)
    planes = plan(flat, image)(np.arange(12)[None])
    assert planes[0].tolist() == [[[0, 3], [6, 9]], [[1, 4], [7, 10]], [[2, 5], [8, 11]]]
    back = plan(image, flat)(np.arange(12).reshape(1, 3, 2, 2))
    assert back.tolist() == [[0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]]


@unhurried
@given(conversions())
def test_conversion_is_a_transposition_of_named_axes(case):
    src, dst, batch = case
    x = array(src, batch)
    sizes = {**src.sizes, "b": batch}
    expanded = x.reshape([sizes[axis] for axis in src.atoms])
    expected = np.einsum(
        expanded,
        [src.atoms.index(a) for a in src.atoms],
        [src.atoms.index(a) for a in dst.atoms],
    ).reshape(dst.shape(batch))
    converted = plan(src, dst)(x)
    np.testing.assert_array_equal(converted, expected)
    np.testing.assert_array_equal(plan(dst, src)(converted), x)
    np.testing.assert_array_equal(plan(src, dst)(torch.from_numpy(x)).numpy(), expected)
    assert plan(src, dst).lossless and plan(src, dst).linear


@unhurried
@given(st.permutations("bhwc"), st.permutations("bhwc"))
def test_sizes_may_come_from_the_array_alone(first, second):
    x = np.random.default_rng(0).random((2, 3, 4, 5))
    converted = plan("".join(first), "".join(second))(x)
    assert converted.shape == tuple(x.shape[first.index(axis)] for axis in second)


@settings(max_examples=100, deadline=None)
@given(linear_plans(), st.integers(0, 2**32 - 1))
def test_adjoint_passes_the_inner_product_test(case, seed):
    convert, batch = case
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(convert.src.shape(batch))
    g = rng.standard_normal(convert.dst.shape(batch))
    here, there = (convert(x) * g).sum(), (x * convert.adjoint(g)).sum()
    np.testing.assert_allclose(here, there, rtol=1e-12, atol=1e-12)

    tensor = torch.from_numpy(x).requires_grad_()
    gradient = torch.from_numpy(g)
    result = convert(tensor)
    result.backward(gradient)
    np.testing.assert_array_equal(tensor.grad.numpy(), convert.adjoint(g))
    np.testing.assert_array_equal(convert.adjoint(gradient).numpy(), convert.adjoint(g))


@unhurried
@given(linear_plans())
def test_the_adjoint_is_differentiable_too(case):
    convert, batch = case
    g = torch.ones(convert.dst.shape(batch), dtype=torch.float64, requires_grad=True)
    convert.adjoint(g).sum().backward()
    assert torch.equal(g.grad, torch.ones_like(g))


@unhurried
@given(conversions())
def test_sparse_matrices_convert_like_dense_ones(case):
    src, dst, batch = case
    if src.ndim != 2 or batch == 0:
        return
    dense = array(src, batch) % 3
    convert = plan(src, dst)
    sparse = scipy.sparse.csr_matrix(dense)
    if dst.ndim != 2:
        with pytest.raises(LayoutError, match="two axes"):
            convert(sparse)
        return
    result = convert(sparse)
    assert scipy.sparse.issparse(result) and result.dtype == dense.dtype
    np.testing.assert_array_equal(result.toarray(), convert(dense))
    np.testing.assert_array_equal(convert.adjoint(result).toarray(), dense)


def test_selecting_keeps_one_slot_and_its_adjoint_fills_zeros():
    primary = plan(Layout("tb", t=2), Layout("b", t_at=1))
    x = np.arange(6.0).reshape(2, 3)
    assert primary(x).tolist() == [3, 4, 5] and np.shares_memory(primary(x), x)
    assert primary.adjoint(np.ones(3)).tolist() == [[0, 0, 0], [1, 1, 1]]
    assert not primary.lossless and plan(Layout("tb", t=1), Layout("b", t_at=0)).lossless


def test_axes_of_size_one_come_and_go():
    assert plan("b", Layout("bf"))(np.arange(3)).shape == (3, 1)
    assert plan(Layout("bf", f=1), "b")(np.zeros((3, 1))).shape == (3,)
    assert plan("b", "bt").adjoint(np.zeros((3, 1))).shape == (3,)


# -- one-hot ----------------------------------------------------------------------------------

LABELS = Layout("bt", t=2, index_of="k", k=4)
VALUES = np.array([[0, 2], [1, 1]])
ONE_HOT = {
    "stack": (Layout("btk", k=4), [[[1, 0, 0, 0], [0, 0, 1, 0]], [[0, 1, 0, 0]] * 2]),
    "concatenate": (
        Layout("bf", f_order="tk", t=2, k=4),
        [[1, 0, 0, 0, 0, 0, 1, 0], [0, 1, 0, 0, 0, 1, 0, 0]],
    ),
    "merge": (Layout("bk", k=4), [[1, 0, 1, 0], [0, 1, 0, 0]]),
    "classes first": (Layout("kb", k=4), [[1, 0], [0, 1], [1, 0], [0, 0]]),
    "primary": (Layout("bk", k=4, t_at=0), [[1, 0, 0, 0], [0, 1, 0, 0]]),
}


@pytest.mark.parametrize("case", ONE_HOT)
def test_one_hot(case):
    dst, expected = ONE_HOT[case]
    convert = plan(LABELS, dst)
    result = convert(VALUES, np.float32)
    assert result.tolist() == expected and result.dtype == np.float32
    assert convert(torch.from_numpy(VALUES), "float32").tolist() == expected
    assert convert(VALUES.astype(np.uint8)).dtype == np.uint8
    if dst.ndim == 2:
        sparse = convert(VALUES, np.float32, sparse=True)
        assert sparse.toarray().tolist() == expected and sparse.dtype == np.float32
    assert not convert.linear and convert.lossless == (case in ("stack", "concatenate"))
    with pytest.raises(LayoutError, match="no adjoint"):
        convert.adjoint(result)


@pytest.mark.parametrize("wrong", [-1, 4])
@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_labels_outside_the_axis_are_refused(wrong, make):
    for error in (ClassNumberError, IndexError, ValueError):
        with pytest.raises(error, match="expected labels from 0 to 3"):
            plan(LABELS, "bk")(make([[0, wrong]]))


def test_labels_are_integers():
    with pytest.raises(TypeError, match="integers"):
        plan(LABELS, "bk")(np.zeros((2, 2)))
    with pytest.raises(TypeError, match="sparse"):
        plan(LABELS, "bk")(scipy.sparse.csr_matrix(VALUES))


def test_no_labels_at_all():
    assert plan(LABELS, "bk")(np.zeros((0, 2), int)).shape == (0, 4)
    assert plan(LABELS, "bk")(np.zeros((0, 2), int), sparse=True).shape == (0, 4)


# -- plans ------------------------------------------------------------------------------------


def test_plans_are_cached_and_values():
    assert plan("bchw", "chwb") is plan(Layout("bchw"), Layout(("c", 0, 1, "b")))
    assert len({plan("bchw", "chwb"), plan("NCHW", "CHWN"), plan("bchw", "bhwc")}) == 2
    assert pickle.loads(pickle.dumps(plan("bchw", "chwb"))) == plan("bchw", "chwb")


@unhurried
@given(st.data())
def test_composed_plans_do_one_after_the_other(data):
    sizes = {"h": 2, "w": 3, "c": 2}
    first, second, third = (data.draw(image_layouts(sizes)) for _ in range(3))
    together = plan(second, third).compose(plan(first, second))
    assert together == plan(first, third)
    x = array(first, 2)
    np.testing.assert_array_equal(together(x), plan(second, third)(plan(first, second)(x)))


def test_composing_with_a_selection_keeps_both_steps():
    first = plan(Layout("btf", t=2, f=3), Layout("bf", t_at=1, f=3))
    both = plan(first.dst, Layout("fb", f=3)).compose(first)
    x = np.arange(12.0).reshape(2, 2, 3)
    assert both(x).tolist() == x[:, 1].T.tolist()
    assert both.adjoint(both(x)).tolist() == (x * [[[0], [1]]]).tolist()
    with pytest.raises(LayoutError, match="does not begin"):
        first.compose(first)


@pytest.mark.parametrize(
    ("src", "dst", "word"),
    [
        (Layout("bhw"), Layout("bhc", c=3), "no axis"),
        (Layout("bhwc", c=3), Layout("bhw"), "c_at="),
        (Layout("bhwc", h=2), Layout("bchw", h=3), "size 2 and 3"),
        (Layout("bhwc"), Layout("bf", f=12), "f_order="),
        (Layout("bf", f=12), Layout("bf", f_order="hwc", h=2, w=2, c=3), "no axis"),
        (Layout("fhw"), Layout("bhw"), "no axis"),
        (LABELS, Layout("bt"), "labels"),
        (Layout("bt", index_of="k"), Layout("bk"), "size of axis 'k'"),
        (Layout("bt", t=2), Layout("bk", k=4), "no axis"),
        (Layout("bt", t=2), Layout("b", t_at=5), "size 2"),
    ],
)
def test_impossible_and_ambiguous_conversions_are_refused(src, dst, word):
    with pytest.raises(LayoutError, match=word):
        plan(src, dst)


def test_arrays_that_do_not_fit_are_refused():
    convert = plan(Layout("bhwc", h=2), Layout("bf", f_order="hwc"))
    with pytest.raises(LayoutError, match="4 axes"):
        convert(np.zeros((2, 2)))
    with pytest.raises(LayoutError, match="has size 2"):
        convert(np.zeros((1, 3, 4, 5)))
    with pytest.raises(LayoutError, match="not known for the adjoint|sizes of"):
        plan("bhwc", Layout("bf", f_order="hwc")).adjoint(np.zeros((1, 12)))
    with pytest.raises(LayoutError, match="size 12"):
        plan(Layout("bhwc", h=2, w=2, c=3), Layout("bf", f_order="hwc")).adjoint(np.zeros((1, 8)))
    with pytest.raises(TypeError, match="not list"):
        convert([[1]])


# -- cost -------------------------------------------------------------------------------------


@unhurried
@given(st.permutations("bhwc"), st.permutations("bhwc"))
def test_permutations_are_views(first, second):
    x = np.zeros((2, 3, 4, 5))
    assert np.shares_memory(plan("".join(first), "".join(second))(x), x)


def test_what_needs_no_step_is_the_same_object():
    x = np.zeros((2, 3))
    assert plan("bf", "bf")(x) is x and plan("bf", "bf")(x, "float64") is x
    assert plan("bf", "bf").adjoint(x) is x
    tensor = torch.zeros(2, 3)
    assert plan("bf", "bf")(tensor) is tensor


@unhurried
@given(conversions())
def test_the_result_is_a_view_or_contiguous_never_neither(case):
    src, dst, _ = case
    x = array(src, 3)
    result = plan(src, dst)(x)
    assert np.shares_memory(result, x) or result.flags.c_contiguous
    copied = plan(src, dst)(x, "float32")
    assert copied.flags.c_contiguous and copied.dtype == np.float32


def most_allocated(work):
    """Largest amount of memory that `work` holds beside what was there."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("first", ["bchw", "chwb", "bhwc", "whbc"])
@pytest.mark.parametrize("dtype", [None, "float32", "float64"])
def test_flattening_and_casting_cost_one_copy_together(first, dtype):
    sizes = {"h": 32, "w": 48, "c": 4}
    convert = plan(Layout(first, **sizes), Layout("bf", f_order="hwc", **sizes))
    x = np.zeros(convert.src.shape(64))
    result = convert(x, dtype)
    if np.shares_memory(result, x):
        assert result.dtype == x.dtype
        return
    assert most_allocated(lambda: convert(x, dtype)) < 1.1 * result.nbytes
    assert most_allocated(lambda: convert.adjoint(result, x.dtype)) < 1.1 * x.nbytes


def test_stride_tricks_suffice_where_memory_agrees():
    flat = Layout("bf", f_order="hwc", h=4, w=5, c=3)
    x = np.zeros((2, 60))
    for axes in map("".join, itertools.permutations("bhwc")):
        image = plan(flat, Layout(axes, h=4, w=5, c=3))(x)
        assert np.shares_memory(image, x)
        assert np.shares_memory(plan(Layout(axes, h=4, w=5, c=3), flat)(image), x)


@pytest.mark.parametrize("make", [np.zeros, lambda shape: torch.zeros(shape)])
def test_contiguous_on_request(make):
    x = make((2, 3, 4, 5))
    result = plan("bchw", "chwb")(x, contiguous=True)
    assert tuple(result.shape) == (3, 4, 5, 2)
    assert result.is_contiguous() if torch.is_tensor(result) else result.flags.c_contiguous
