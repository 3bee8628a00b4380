"""Every kind of plan against its definition: an array of named axes, and the transposed map."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from iterators.core.layout import Layout, LayoutError, plan

torch = pytest.importorskip("torch")

unhurried = settings(deadline=None, max_examples=80)

ATOMS = "hwctk"


def grouped(draw, atoms):
    """Axes and orders of a layout that holds `atoms` in any order, some flattened together."""
    atoms = draw(st.permutations(atoms))
    axes, orders, flattened = "", {}, iter("fgu")
    while atoms:
        count = draw(st.integers(1, min(3, len(atoms))))
        group, atoms = "".join(atoms[:count]), atoms[count:]
        if count == 1 and draw(st.integers(0, 3)) or "b" in group:
            axes += group
            continue
        letter = next(flattened, None)
        if letter is None:
            axes += group
            continue
        axes += letter
        orders[f"{letter}_order"] = group
    return axes, orders


@st.composite
def plans(draw, two_axes=False):
    """A linear plan, the number of samples, and what becomes of each axis."""
    sizes = {axis: draw(st.integers(1, 3)) for axis in ATOMS}
    have = draw(st.lists(st.sampled_from(ATOMS), unique=True, max_size=4))
    chosen, dropped = {}, []
    for axis in have:
        fate = draw(st.sampled_from(["keep", "keep", "keep", "select", "drop"]))
        if fate == "select":
            chosen[axis] = draw(st.integers(0, sizes[axis] - 1))
        elif fate == "drop":
            sizes[axis] = 1
            dropped.append(axis)
    inserted = (
        draw(st.lists(st.sampled_from(sorted(set(ATOMS) - set(have))), unique=True))
        if (set(ATOMS) - set(have))
        else []
    )
    for axis in inserted:
        sizes[axis] = 1
    want = [axis for axis in have if axis not in chosen and axis not in dropped] + inserted
    layouts = []
    for atoms in (have, want):
        if two_axes:
            order = "".join(draw(st.permutations(atoms)))
            axes, orders = ("bf", {"f_order": order}) if order else ("bf", {"f": 1})
            if draw(st.booleans()):
                axes = axes[::-1]
        else:
            axes, orders = grouped(draw, [*atoms, "b"])
        known = {axis: sizes[axis] for axis in atoms}
        layouts.append((axes, {**orders, **known}))
    (axes, known), (target, wanted) = layouts
    src = Layout(axes, **known)
    dst = Layout(target, **wanted, **{f"{axis}_at": place for axis, place in chosen.items()})
    return plan(src, dst), draw(st.integers(0, 3)), sizes, chosen


def by_definition(convert, x, batch, sizes, chosen):
    """The result element by element: every place of the target, found in the source."""
    sizes = {**sizes, "b": batch, "f": 1}
    src, dst = convert.src.atoms, convert.dst.atoms
    expanded = x.reshape([sizes[axis] for axis in src])
    result = np.zeros([sizes[axis] for axis in dst])
    for place in itertools.product(*(range(sizes[axis]) for axis in dst)):
        at = {**chosen, **dict(zip(dst, place, strict=True))}
        result[place] = expanded[tuple(at.get(axis, 0) for axis in src)]
    return result.reshape(convert.dst.shape(batch))


def check(convert, batch, seed):
    """<plan(x), g> == <x, adjoint(g)> in NumPy and torch; returns x, plan(x), g, adjoint(g)."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-9, 9, convert.src.shape(batch)).astype(float)
    g = rng.integers(-9, 9, convert.dst.shape(batch)).astype(float)
    y, back = convert(x), convert.adjoint(g)
    assert y.shape == g.shape and back.shape == x.shape
    assert (y * g).sum() == (x * back).sum()
    tensor = torch.from_numpy(x).requires_grad_()
    result = convert(tensor)
    np.testing.assert_array_equal(result.detach().numpy(), y)
    result.backward(torch.from_numpy(g))
    np.testing.assert_array_equal(tensor.grad.numpy(), back)
    np.testing.assert_array_equal(convert.adjoint(torch.from_numpy(g)).numpy(), back)
    return x, y, g, back


@unhurried
@given(plans(), st.integers(0, 2**32 - 1))
def test_plans_do_what_they_say_and_their_adjoints_transpose_it(case, seed):
    convert, batch, sizes, chosen = case
    x, y, _, _ = check(convert, batch, seed)
    np.testing.assert_array_equal(y, by_definition(convert, x, batch, sizes, chosen))
    if convert.lossless:
        np.testing.assert_array_equal(convert.adjoint(y), x)
    else:
        assert any(sizes[axis] > 1 for axis in chosen)
    for dtype in ("float32", "int64"):
        cast = convert(x, dtype)
        np.testing.assert_array_equal(cast, y)
        assert cast.dtype == dtype and cast.flags.c_contiguous
        assert convert(torch.from_numpy(x), dtype).dtype == getattr(torch, dtype)
    assert convert(x, contiguous=True).flags.c_contiguous


@unhurried
@given(plans(two_axes=True), st.integers(0, 2**32 - 1), st.sampled_from(["csr", "csc", "coo"]))
def test_sparse_plans_and_their_adjoints(case, seed, layout):
    convert, batch, _, _ = case
    if batch == 0:
        return
    x, y, g, back = check(convert, batch, seed)
    for kind in (scipy.sparse.csr_matrix, scipy.sparse.csr_array):
        sparse = kind(x * (x > 0)).asformat(layout)
        result = convert(sparse)
        np.testing.assert_array_equal(result.toarray(), convert(x * (x > 0)))
        assert isinstance(result, scipy.sparse.sparray) == isinstance(sparse, scipy.sparse.sparray)
        gradient = convert.adjoint(kind(g))
        np.testing.assert_array_equal(gradient.toarray(), back)
        assert convert(sparse, "float32").dtype == convert.adjoint(kind(g), "float32").dtype
        inner = result.multiply(g).sum(), sparse.multiply(gradient).sum()
        assert inner[0] == inner[1]


def test_axes_that_are_grouped_otherwise_are_put_together_so():
    sizes = {"c": 1, "t": 2, "w": 1, "h": 1}
    convert = plan(
        Layout("fgb", f_order="ct", g_order="wh", **sizes),
        Layout("fgb", f_order="c", g_order="twh", **sizes),
    )
    assert check(convert, 3, 0)[1].shape == (1, 2, 3)


@unhurried
@given(st.data(), st.integers(0, 2**32 - 1))
def test_composed_plans_and_their_adjoints(data, seed):
    first, batch, sizes, _ = data.draw(plans())
    atoms = [axis for axis in first.dst.atoms if axis != "b"]
    axes, orders = grouped(data.draw, [*atoms, "b"])
    known = {axis: sizes.get(axis, 1) for axis in atoms}
    second = plan(first.dst, Layout(axes, **orders, **known))
    both = second.compose(first)
    x, y, _, _ = check(both, batch, seed)
    np.testing.assert_array_equal(y, second(first(x)))
    assert both.lossless == first.lossless and both.linear
    assert both.src == first.src or both.src.axes == first.src.axes
    assert hash(both) == hash(second.compose(first)) and both == second.compose(first)


@unhurried
@given(st.data())
def test_one_hot_of_any_labels_by_definition(data):
    axes = "".join(data.draw(st.permutations("btw")))
    sizes = {"t": data.draw(st.integers(1, 3)), "w": 2, "k": data.draw(st.integers(1, 4))}
    batch = data.draw(st.integers(0, 3))
    labels = Layout(axes, t=sizes["t"], w=2, index_of="k", k=sizes["k"])
    kept = data.draw(st.sampled_from(["btwk", "bwk", "btk"]))
    target = Layout("".join(data.draw(st.permutations(kept))), **{a: sizes[a] for a in kept[1:]})
    convert = plan(labels, target)
    x = np.random.default_rng(0).integers(0, sizes["k"], labels.shape(batch))
    x = x.astype(data.draw(st.sampled_from(["uint8", "int16", "int32", "int64", "uint64"])))
    expected = np.zeros(target.shape(batch))
    for place in np.ndindex(x.shape):
        at = {**dict(zip(axes, place, strict=True)), "k": int(x[place])}
        expected[tuple(at[axis] for axis in target.axes)] = 1
    np.testing.assert_array_equal(convert(x, "float32"), expected)
    if x.dtype != np.uint64:
        np.testing.assert_array_equal(convert(torch.from_numpy(x), "float32").numpy(), expected)
    one_each = kept == "btwk" or (kept == "bwk" and sizes["t"] == 1)
    assert convert.lossless == one_each and not convert.linear


def test_options_that_mean_nothing_here_are_refused():
    with pytest.raises(TypeError, match="one-hot"):
        plan("bf", "fb")(np.zeros((2, 3)), sparse=True)
    labels = plan(Layout("b", index_of="k", k=3), Layout("bk"))
    with pytest.raises(TypeError, match="NumPy labels"):
        labels(torch.tensor([1, 2]), sparse=True)
    with pytest.raises(TypeError, match="sparse tensor"):
        plan("bf", "fb")(torch.eye(2).to_sparse())
    tensor = torch.eye(2).to_sparse()
    assert plan("bf", "bf")(tensor) is tensor
    assert plan("bf", "bf")(tensor, "float64").dtype == torch.float64


def test_a_batch_inside_a_flattened_axis():
    """Time and batch merged, as recurrent models do: the number of samples comes from the data."""
    convert = plan(Layout("tbc", t=2, c=3), Layout("fc", f_order="tb", t=2, c=3))
    x = np.arange(24.0).reshape(2, 4, 3)
    assert np.shares_memory(convert(x), x) and convert(x).shape == (8, 3)
    np.testing.assert_array_equal(convert.adjoint(convert(x)), x)
    with pytest.raises(LayoutError):
        convert.adjoint(np.zeros((7, 3)))


@pytest.mark.parametrize("step", [1, 2, -1])
@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_any_strides(step, make):
    base = np.arange(2 * 6 * 4 * 3.0).reshape(2, 6, 4, 3)
    x = base[:, ::step]
    if make is torch.tensor and step < 0:
        return
    given = torch.from_numpy(base)[:, ::step] if make is torch.tensor else x
    flat = Layout("bf", f_order="hwc")
    for axes in map("".join, itertools.permutations("bhwc")):
        there = plan("bhwc", axes)(given)
        found = np.asarray(plan(axes, flat)(there))
        np.testing.assert_array_equal(found, x.reshape(2, -1))
    wide = np.broadcast_to(np.arange(3.0), (2, 4, 4, 3))
    np.testing.assert_array_equal(plan("bhwc", flat)(wide), wide.reshape(2, -1))


def test_layouts_without_samples_or_sizes():
    assert plan("b", "b")(np.zeros(0)).shape == (0,)
    empty = plan(Layout("bhwc"), Layout("bf", f_order="chw"))(np.zeros((0, 2, 0, 3)))
    assert empty.shape == (0, 0)
    assert math.prod(plan("bchw", "chwb")(np.zeros((0, 3, 2, 2))).shape) == 0
