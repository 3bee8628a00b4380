"""Conversions, caching, gradients, rows and errors of views of one array."""

import itertools
import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from iterators import ClassView, DataView, ImageView, SequenceView, View
from iterators.core.dtypes import parse_type
from iterators.views import batch_rows
from iterators.views.kinds import kind_of, requested_kind

torch = pytest.importorskip("torch")


def orders(axes):
    return ["".join(order) for order in itertools.permutations(axes)]


BASES = [
    *((DataView, base) for base in ("b", "bf", "fb", *orders("bwc"), *orders("bdf"))),
    *((ImageView, base) for base in orders("bchw")),
    *((SequenceView, base) for base in orders("bwc")),
    *((ClassView, base) for base in ("b", "bt", "tb")),
]


@st.composite
def views(draw, dtypes=("float32", "float64")):
    """A view with data, in NumPy or torch."""
    kind, base = draw(st.sampled_from(BASES))
    shape = [draw(st.integers(0 if axis == "b" else 1, 4)) for axis in base]
    dtype = draw(st.sampled_from(dtypes))
    x = np.random.default_rng(draw(st.integers(0, 99))).integers(-9, 9, shape).astype(dtype)
    return kind(base, torch.from_numpy(x) if draw(st.booleans()) else x)


def available(view):
    """The forms that a view can really give."""
    found = []
    for name in dict.fromkeys([*view.offered, view.view]):
        try:
            view.forward_get(name)
        except ValueError:
            continue
        found.append(name)
    return found


def inner(a, b):
    return float((np.asarray(a, np.float64) * np.asarray(b, np.float64)).sum())


@given(view=views(), data=st.data())
@settings(max_examples=100, deadline=None)
def test_backward_is_the_adjoint_of_forward(view, data):
    name = data.draw(st.sampled_from(available(view)))
    dtype = data.draw(st.sampled_from([None, "float32", "float64"]))
    y = view.forward_get(name, dtype)
    g = np.random.default_rng(0).integers(-9, 9, tuple(y.shape)).astype(np.float64)
    g = torch.from_numpy(g).to(y.dtype) if isinstance(y, torch.Tensor) else g.astype(y.dtype)
    view.backward_put(name, g)
    back = view.backward_get()
    assert type(back) is type(view.input)
    assert back.shape == view.input.shape
    assert back.dtype == view.input.dtype
    # Small integers: exact in every type.
    assert inner(y, g) == inner(view.input, back)


@given(view=views(), data=st.data())
@settings(max_examples=100, deadline=None)
def test_gradients_of_all_consumers_are_summed(view, data):
    names = data.draw(st.lists(st.sampled_from(available(view)), min_size=1, max_size=4))
    dtypes = data.draw(
        st.lists(st.sampled_from(["float32", "float64"]), min_size=len(names), max_size=len(names))
    )
    expected = np.zeros(tuple(view.input.shape))
    for name, dtype in zip(names, dtypes, strict=True):
        y = view.forward_get(name, dtype)
        view.backward_put(name, y)
        alone = view.clone()
        alone.forward_get(name, dtype)
        alone.backward_put(name, y)
        expected += np.asarray(alone.backward_get(), np.float64)
    assert np.array_equal(np.asarray(view.backward_get(), np.float64), expected)
    assert np.array_equal(np.asarray(view.backward_get(), np.float64), expected)


@given(view=views(("float32", "float64", "int32", "uint8")), data=st.data())
@settings(max_examples=200, deadline=None)
def test_numpy_and_torch_give_the_same_numbers(view, data):
    name = data.draw(st.sampled_from(available(view)))
    mine = view.forward_get(name, "float32")
    other = view.input.numpy() if isinstance(view.input, torch.Tensor) else view.input
    other = torch.from_numpy(other.copy()) if not isinstance(view.input, torch.Tensor) else other
    theirs = type(view)(view.view, other).forward_get(name, "float32")
    assert type(mine) is not type(theirs)
    assert np.array_equal(np.asarray(mine), np.asarray(theirs))


@given(view=views(), data=st.data())
@settings(max_examples=200, deadline=None)
def test_replace_undoes_forward_for_every_lossless_form(view, data):
    name = data.draw(st.sampled_from(available(view)))
    before = np.asarray(view.input).copy()
    y = view.forward_get(name)
    if ClassView is type(view) and name == "b" and view.view != "b" and view.sample_size() > 1:
        with pytest.raises(ValueError, match="does not hold all"):
            view.replace(name, y)
        return
    memory = view.input
    inplace = data.draw(st.booleans())
    view.replace(name, y + 1, inplace=inplace)
    assert np.array_equal(np.asarray(view.input), before + 1)
    assert (view.input is memory) or not inplace
    assert view.input.dtype == memory.dtype


@given(view=views(), data=st.data())
@settings(max_examples=100, deadline=None)
def test_index_and_sub_are_rows_of_every_form(view, data):
    n = view.n_sample()
    ids = data.draw(st.lists(st.integers(-n, n - 1), max_size=6)) if n else []
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    for name in available(view):
        axis = (view.view if name == "default" else name).index("b")
        whole = np.asarray(view.forward_get(name))
        gathered = np.take(whole, np.array(ids, np.int64), axis)
        assert np.array_equal(np.asarray(view.index(ids).forward_get(name)), gathered)
        cut = np.take(whole, np.arange(start, stop), axis)
        for share in (False, True):
            piece = view.sub(start, stop, share=share)
            assert type(piece) is type(view)
            assert np.array_equal(np.asarray(piece.forward_get(name)), cut)


# -- what is asked for ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("float", "float32"),
        ("Float", "float32"),
        ("double", "float64"),
        ("torch.DoubleTensor", "float64"),
        ("torch.FloatTensor", "float32"),
        ("torch.ByteTensor", "uint8"),
        ("torch.CharTensor", "int8"),
        ("torch.ShortTensor", "int16"),
        ("int", "int32"),
        ("Int", "int32"),
        ("long", "int64"),
        ("torch.LongTensor", "int64"),
        ("float16", "float16"),
        (np.float64, "float64"),
        (np.dtype("int16"), "int16"),
    ],
)
def test_names_of_element_types(spec, name):
    x = np.arange(6).reshape(2, 3)
    array = DataView("bf", x).forward_get("bf", spec)
    assert isinstance(array, np.ndarray)
    assert array.dtype == name
    tensor = DataView("bf", torch.from_numpy(x)).forward_get("bf", spec)
    assert tensor.dtype == getattr(torch, name)


@pytest.mark.parametrize(
    "spec", [torch.float32, "float32@cpu", "float@cpu", "torch.FloatTensor@cpu"]
)
def test_a_torch_type_or_a_device_asks_for_a_tensor(spec):
    view = ImageView("bchw", np.ones((2, 3, 4, 4), np.float64))
    found = view.forward_get("bhwc", spec)
    assert isinstance(found, torch.Tensor)
    assert found.dtype == torch.float32
    view.backward_put("bhwc", torch.ones_like(found))
    assert isinstance(view.backward_get(), np.ndarray)
    assert view.backward_get().dtype == np.float64


def test_a_device_alone_keeps_the_element_type_and_shares_memory():
    x = np.zeros((2, 3))
    found = DataView("bf", x).forward_get("bf", "@cpu")
    x[0, 0] = 5
    assert found[0, 0] == 5


def test_read_only_and_reversed_arrays_become_tensors_without_a_warning():
    x = np.arange(6.0).reshape(2, 3)
    x.flags.writeable = False
    assert DataView("bf", x).forward_get("bf", "@cpu").tolist() == x.tolist()
    assert DataView("bf", x[::-1]).forward_get("bf", "@cpu").tolist() == x[::-1].tolist()


@pytest.mark.parametrize("spec", ["floaty", "float@", "float@nowhere", "cuda:x", ""])
def test_unknown_types_and_devices_are_value_errors(spec):
    with pytest.raises(ValueError):
        DataView("bf", np.zeros((2, 3))).forward_get("bf", spec)


@pytest.mark.skipif(torch.cuda.is_available(), reason="is about machines without CUDA")
@pytest.mark.parametrize("spec", ["cuda", "cuda:0", "Cuda", "torch.CudaTensor", "float16@cuda:1"])
def test_an_unreachable_device_is_a_value_error(spec):
    with pytest.raises(ValueError, match="cannot reach the device 'cuda"):
        DataView("bf", np.zeros((2, 3))).forward_get("bf", spec)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_forms_on_a_device_and_gradients_back_from_it():
    x = np.random.default_rng(0).random((4, 3, 8, 8), np.float32)
    view = ImageView("bchw", x)
    there = view.forward_get("bhwc", "cuda:0")
    assert there.is_cuda
    assert view.forward_get("bhwc", "cuda") is there
    assert np.array_equal(there.cpu().numpy(), x.transpose(0, 2, 3, 1))
    view.backward_put("bhwc", there)
    view.backward_put("bchw", x)
    assert np.array_equal(view.backward_get(), 2 * x)
    moved = view.clone().cuda()
    assert moved.input.is_cuda
    assert np.array_equal(moved.index([2, 0]).input.cpu().numpy(), x[[2, 0]])
    assert moved.sub(1, 3).forward_get("bf").is_cuda


def test_bfloat16_tensors_are_a_base_like_any_other():
    view = ImageView("bchw", torch.ones((1, 3, 2, 2), dtype=torch.bfloat16))
    assert view.forward_get("bhwc").dtype == torch.bfloat16
    assert view.forward_get("bf", "float").dtype == torch.float32


def test_sparse_matrices_convert_and_give_rows():
    x = scipy.sparse.random(6, 5, 0.4, format="csr", random_state=0)
    view = DataView("bf", x)
    assert view.forward_get("bf", "float").dtype == np.float32
    assert np.array_equal(view.index([4, 4, 0]).input.toarray(), x.toarray()[[4, 4, 0]])
    assert np.array_equal(view.sub(1, 3).input.toarray(), x.toarray()[1:3])
    with pytest.raises(TypeError, match="toarray"):
        view.forward_get("bf", "float@cpu")


def test_forward_get_stays_in_the_graph_of_torch():
    x = torch.randn(2, 3, 4, 4, dtype=torch.float64, requires_grad=True)
    view = ImageView("bchw", x)
    (view.forward_get("bf", "float") ** 2).sum().backward()
    assert torch.allclose(x.grad, 2 * x.detach(), atol=1e-6)


# -- caching --------------------------------------------------------------------------------------


def test_the_same_request_gives_the_same_object():
    view = ImageView("bchw", np.ones((2, 3, 4, 4)))
    assert view.forward_get("bhwc", "float") is view.forward_get("bhwc", np.float32)
    assert view.forward_get("bf") is view.forward_get("bf", "double")
    assert view.forward_get("bf", "float") is not view.forward_get("bf")
    assert view.forward_get("bf", "float@cpu") is not view.forward_get("bf", "float")


def test_the_base_is_handed_out_itself():
    x = np.ones((2, 3, 4, 4))
    view = ImageView("bchw", x)
    for form, dtype in [
        ("default", None),
        ("bchw", None),
        ("bchw", "double"),
        ("default", "double"),
    ]:
        assert view.forward_get(form, dtype) is x


@pytest.mark.parametrize("change", ["put", "replace", "flush"])
def test_put_replace_and_flush_forget_converted_copies(change):
    view = ImageView("bchw", np.ones((2, 3, 4, 4)))
    old = view.forward_get("bf", "float")
    if change == "put":
        view.forward_put("bchw", np.zeros((2, 3, 4, 4)))
    elif change == "replace":
        view.replace("bf", np.zeros((2, 48)))
    else:
        view.flush()
    new = view.forward_get("bf", "float")
    assert new is not old
    assert new.sum() == (2 * 48 if change == "flush" else 0)


def test_flush_keeps_base_and_gradients():
    view = ImageView("bchw", np.ones((2, 3, 4, 4)))
    view.forward_get("bf")
    view.backward_put("bf", np.ones((2, 48)))
    view.flush()
    assert view.view == "bchw"
    assert view.backward_get().sum() == 96


def test_other_sizes_and_types_under_the_same_string_need_no_flush():
    view = ImageView("bchw", np.ones((2, 3, 4, 4)))
    assert view.forward_get("bf").shape == (2, 48)
    view.forward_put("bchw", np.ones((5, 1, 2, 6), np.float32))
    assert view.forward_get("bf").shape == (5, 12)
    assert view.forward_get("bf").dtype == np.float32


def test_conversions_that_strides_can_express_copy_nothing():
    x = np.ones((2, 3, 4, 4))
    view = ImageView("bchw", x)
    for form in ("bhwc", "chwb", "bf"):
        assert np.shares_memory(view.forward_get(form), x)


def test_set_input_exchanges_the_base_and_keeps_converted_copies():
    view = DataView("bf", np.zeros((2, 3)))
    copy = view.forward_get("bf", "float")
    x = np.ones((2, 3))
    view.set_input(x)
    assert view.input is x
    assert view.forward_get("bf") is x
    assert view.forward_get("bf", "float") is copy


# -- gradients ------------------------------------------------------------------------------------


def test_gradients_are_dropped_by_the_next_put_only():
    view = DataView("bf", np.zeros((2, 3)))
    view.backward_put("bf", np.ones((2, 3)))
    first, second = view.backward_get(), view.backward_get()
    assert first is not second
    assert np.array_equal(first, second)
    view.forward_put("bf", np.zeros((2, 3)))
    with pytest.raises(RuntimeError, match="backward_put"):
        view.backward_get()


def test_the_sum_is_never_the_memory_of_a_consumer():
    view = ImageView("bchw", np.zeros((2, 3, 4, 4)))
    g = np.ones((2, 3, 4, 4))
    view.backward_put("bchw", g)
    view.backward_get()[:] = 7
    view.backward_put("bchw", g)
    view.backward_get()[:] = 7
    assert (g == 1).all()


def test_a_later_smaller_batch_has_gradients_of_its_own_size():
    view = DataView("bf", np.zeros((4, 3)))
    view.forward_get("bf", "float")
    for rows in (4, 2):
        view.forward_put("bf", np.zeros((rows, 3)))
        view.backward_put("bf", np.ones((rows, 3), np.float32))
        view.backward_put("bf", np.ones((rows, 3)))
        assert view.backward_get().shape == (rows, 3)


def test_a_request_for_an_earlier_batch_counts_until_the_order_changes():
    view = ImageView("bchw", np.zeros((2, 3, 4, 4)))
    view.forward_get("bf")
    view.forward_put("bchw", np.zeros((2, 3, 4, 4)))
    view.backward_put("bf", np.zeros((2, 48)))
    view.forward_put("bhwc", np.zeros((2, 4, 4, 3)))
    with pytest.raises(RuntimeError, match="never requested"):
        view.backward_put("bf", np.zeros((2, 48)))


@pytest.mark.parametrize("kind", [ImageView, SequenceView, ClassView])
def test_axes_with_unknown_letters(kind):
    with pytest.raises(ValueError, match=f"'bxf': {kind.__name__} knows no axis 'x', only b, f, t"):
        kind("bxf", np.zeros((2, 3, 4)))
    assert DataView("bxf", np.zeros((2, 3, 4))).forward_get("bf").shape == (2, 12)


# -- rows -----------------------------------------------------------------------------------------


def test_out_is_filled_and_its_memory_used_again():
    view = DataView("bf", np.arange(12.0).reshape(6, 2))
    out = view.sub(0, 2)
    memory, stale = out.input, out.forward_get("bf", "float")
    assert view.sub(2, 4, out=out) is out
    assert out.input is memory
    assert out.forward_get("bf", "float") is not stale
    assert view.index([5, 5], out=out).input is memory
    assert memory.tolist() == [[10, 11], [10, 11]]
    assert view.index([1, 2, 3], out=out).input.shape == (3, 2)


@pytest.mark.parametrize(
    ("base", "x"),
    [
        ("bf", np.arange(200_000.0).reshape(200, 1000).T),
        ("fb", np.arange(400_000.0).reshape(200, 2000)[:, ::2]),
        ("bhwc", np.arange(240_000.0).reshape(1000, 3, 8, 10).transpose(0, 2, 3, 1)),
        ("bf", np.arange(400_000.0).reshape(1000, 400)[:, ::2].view(np.ndarray)),
    ],
)
def test_rows_of_a_transposed_base_need_no_copy_of_all_of_it(base, x, monkeypatch):
    monkeypatch.setattr(batch_rows, "GATHERED_BYTES", 10_000)
    view, ids = DataView(base, x), np.arange(200)[::-1]
    out = view.index(ids)
    memory = out.input
    memory[...] = -1
    tracemalloc.start()
    try:
        view.index(ids, out=out)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert out.input is memory and memory.flags.c_contiguous
    np.testing.assert_array_equal(memory, np.take(x, ids, base.index("b")))
    assert peak < memory.nbytes / 4


@pytest.mark.parametrize("library", [np.asarray, torch.as_tensor])
def test_share_is_a_window_and_copies_are_not(library):
    for kind, base in [(DataView, "fb"), (ClassView, "bt"), (ImageView, "chwb")]:
        x = library(np.zeros([4] * len(base)))
        view = kind(base, x)
        view.sub(1, 3).input[...] = 1
        assert x.sum() == 0
        view.sub(1, 3, share=True).input[...] = 1
        assert x.sum() == 4 ** len(base) / 2


def test_out_that_shares_memory_with_the_source_is_not_overwritten():
    x = np.arange(6.0).reshape(3, 2)
    view = DataView("bf", x)
    out = view.sub(0, 2, share=True)
    view.index([1, 0], out=out)
    assert x.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert out.input.tolist() == [[2, 3], [0, 1]]


def test_an_empty_out_adopts_a_new_array():
    view = DataView("bf", np.arange(6).reshape(3, 2))
    out = DataView()
    assert view.sub(1, 3, out=out).input.tolist() == [[2, 3], [4, 5]]
    assert out.view == "bf"


def test_classes_are_handed_on():
    view = ClassView("b", np.arange(4))
    view.set_classes("abcd")
    for other in (view.index([1]), view.sub(0, 2), view.sub(0, 2, share=True), view.clone()):
        assert other.classes == ["a", "b", "c", "d"]
    assert view.index([0], out=ClassView()).classes == ["a", "b", "c", "d"]


def test_pieces_in_order_with_a_short_last_one():
    view = DataView("bf", np.arange(5).reshape(5, 1))
    pieces = [(stop, piece.input.ravel().tolist()) for stop, piece in view.iter_sub(2)]
    assert pieces == [(2, [0, 1]), (4, [2, 3]), (5, [4])]
    assert len({id(piece) for _, piece in view.iter_sub(2, reuse=True)}) == 1
    for _, piece in view.iter_sub(2, share=True, reuse=True):
        piece.input[:] = 9
    assert (view.input == 9).all()


def test_masks_select_rows():
    view = DataView("bf", np.arange(6).reshape(3, 2))
    assert view.index(np.array([True, False, True])).input.tolist() == [[0, 1], [4, 5]]
    assert view.index(torch.tensor([2, 0])).input.tolist() == [[4, 5], [0, 1]]


@pytest.mark.parametrize("ids", [[3], [-4], [True, False]])
def test_rows_that_do_not_exist(ids):
    with pytest.raises(IndexError):
        DataView("bf", np.zeros((3, 2))).index(ids)


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (2, 1), (0, 4)])
def test_ranges_that_do_not_exist(start, stop):
    with pytest.raises(IndexError):
        DataView("bf", np.zeros((3, 2))).sub(start, stop)


# -- replace --------------------------------------------------------------------------------------


def test_replace_ignores_pending_gradients_and_casts_to_the_base():
    view = DataView("bf", np.zeros((2, 3), np.float32))
    view.backward_put("bf", np.ones((2, 3), np.float32))
    view.replace("bf", np.full((2, 3), 5.0))
    assert view.input.dtype == np.float32
    assert (view.input == 5).all()
    with pytest.raises(RuntimeError):
        view.backward_get()


def test_replace_takes_another_number_of_rows_but_not_of_features():
    view = ImageView("chwb", np.zeros((3, 4, 4, 2)))
    view.replace("bf", np.zeros((5, 48)))
    assert view.input.shape == (3, 4, 4, 5)
    with pytest.raises(ValueError):
        view.replace("bf", np.zeros((5, 47)))
    with pytest.raises(ValueError):
        view.replace("bf", np.zeros((2, 48)), inplace=True)


# -- conversions as objects -----------------------------------------------------------------------


def test_conversion_objects_convert_other_batches():
    view = ImageView("bhwc", np.zeros((2, 4, 5, 3)))
    x = np.random.default_rng(0).random((7, 4, 5, 3))
    assert np.array_equal(view.bchw()(x), x.transpose(0, 3, 1, 2))
    assert np.array_equal(view.transpose("chwb")(x), x.transpose(3, 1, 2, 0))
    assert view.default()(x) is x
    assert view.bf()(x).shape == (7, 60)
    assert np.array_equal(view.bchw().adjoint(view.bchw()(x)), x)
    assert view.bchw() is view.bchw()
    assert ClassView("b", np.arange(3)).bt()(np.arange(5)).shape == (5, 1)
    assert SequenceView("bwc", np.zeros((1, 2, 3))).bcw()(np.zeros((4, 2, 3))).shape == (4, 3, 2)


# -- description and life -------------------------------------------------------------------------


def test_description():
    view = ImageView("chwb", np.zeros((3, 4, 5, 2), np.float32))
    assert (view.view, view.n_sample(), len(view), view.sample_size()) == ("chwb", 2, 2, 60)
    assert (view.find_axis("b"), view.find_axis("c", "bhwc")) == (3, 3)
    assert list(view) == [view]
    assert repr(view) == "ImageView('chwb', (3, 4, 5, 2), float32)"


def test_a_view_without_data():
    view = DataView()
    assert (view.view, view.input, len(view), repr(view)) == ("", None, 0, "DataView()")
    assert list(view) == [view]
    for call in (
        view.forward_get,
        view.backward_get,
        view.sample_size,
        view.bf,
        lambda: view.backward_put("bf", np.zeros((1, 1))),
        lambda: view.replace("bf", np.zeros((1, 1))),
        lambda: view.sub(0, 0),
        lambda: view.index([]),
        lambda: view.to("float"),
    ):
        with pytest.raises(RuntimeError, match="forward_put"):
            call()


def test_conversion_of_the_base():
    view = DataView("bf", np.ones((2, 3)))
    view.backward_put("bf", np.ones((2, 3)))
    assert view.float() is view
    assert view.input.dtype == np.float32
    assert view.backward_get().dtype == np.float32
    for word, name in [
        ("byte", "uint8"),
        ("int", "int32"),
        ("long", "int64"),
        ("double", "float64"),
    ]:
        assert getattr(view, word)().input.dtype == name
    assert view.type("half").input.dtype == np.float16
    assert isinstance(view.to("@cpu").input, torch.Tensor)


def test_clone_copies_the_base():
    view = ImageView("bchw", np.zeros((1, 3, 2, 2)))
    other = view.clone()
    other.input[:] = 1
    assert view.input.sum() == 0
    assert type(other) is ImageView
    assert DataView().clone().view == ""


def test_forward_and_backward_put_arrays_and_get_everything_else():
    view = DataView()
    x = np.ones((2, 3))
    assert view.forward("bf", x) is None
    assert view.forward("bf") is x
    assert view.forward("bf", "float").dtype == np.float32
    assert view.backward("bf", x) is None
    assert view.backward().tolist() == x.tolist()
    assert view.backward("bf", "double").tolist() == x.tolist()


def test_views_survive_pickling():
    view = ImageView("bchw", np.random.default_rng(0).random((2, 3, 4, 4)))
    view.forward_get("bf", "float")
    other = pickle.loads(pickle.dumps(view))
    assert np.array_equal(other.forward_get("bhwc"), view.forward_get("bhwc"))


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: View(), TypeError, "abstract"),
        (lambda: DataView("bf"), TypeError, "both"),
        (lambda: DataView("bf", [[1, 2]]), TypeError, "array"),
        (lambda: DataView("bf", np.zeros(3)), ValueError, "2 axes"),
        (lambda: DataView("f", np.zeros(3)), ValueError, "no axis 'b'"),
        (lambda: DataView("bb", np.zeros((3, 3))), ValueError, "twice"),
        (lambda: DataView("BF", np.zeros((3, 3))), ValueError, "lower-case"),
        (lambda: DataView("default", np.zeros((3, 3))), ValueError, "twice|axis"),
        (lambda: DataView(3, np.zeros((3, 3))), TypeError, "string"),
    ],
)
def test_what_cannot_be_put(make, kind, text):
    with pytest.raises(kind, match=text):
        make()


@pytest.mark.parametrize(
    ("view", "form", "text"),
    [
        (DataView("bf", np.zeros((2, 3))), "bhwc", "offers default, bf, b"),
        (DataView("bf", np.zeros((2, 3))), "clone", "offers default, bf, b"),
        (DataView("bf", np.zeros((2, 3))), "b", "3 features"),
        (DataView("bwc", np.zeros((2, 3, 4))), "b", "'bwc'"),
        (ImageView("bhw", np.zeros((2, 3, 4))), "bhwc", "same axes"),
        (ImageView("bf", np.zeros((2, 3))), "bhwc", "same axes"),
        (SequenceView("bf", np.zeros((2, 3))), "bwc", "same axes"),
        (SequenceView("bwcd", np.zeros((2, 3, 4, 5))), "bcw", "same axes"),
        (ClassView("bf", np.zeros((2, 3))), "bt", "'b', 'bt' or 'tb'"),
        (ClassView("bwc", np.zeros((2, 3, 4))), "b", "'b', 'bt' or 'tb'"),
        (ClassView("b", np.zeros(2)), "bhwc", "offers default, b, bt"),
    ],
)
def test_what_cannot_be_asked_for(view, form, text):
    with pytest.raises(ValueError, match=text):
        view.forward_get(form)
    with pytest.raises(ValueError, match=text):
        view.backward_put(form, np.zeros((2, 3)))


def test_classes_are_no_features():
    with pytest.raises(NotImplementedError):
        ClassView("bt", np.zeros((2, 3))).forward_get("bf")


def test_one_feature_can_be_given_as_b():
    assert DataView("bf", np.arange(3).reshape(3, 1)).forward_get("b").tolist() == [0, 1, 2]
    assert DataView("fb", np.arange(3).reshape(1, 3)).forward_get("b").tolist() == [0, 1, 2]
    assert DataView("b", np.arange(3)).forward_get("bf").tolist() == [[0], [1], [2]]


def test_gradients_that_are_refused():
    view = DataView("bf", np.zeros((2, 3)))
    with pytest.raises(RuntimeError, match="never requested"):
        view.backward_put("bf", np.zeros((2, 3), np.float32))
    with pytest.raises(ValueError, match="shape"):
        view.backward_put("bf", np.zeros((3, 2)))
    view.backward_put("default", np.zeros((2, 3)))
    with pytest.raises(ValueError, match="form 'bf'"):
        DataView("bf", np.zeros((2, 1))).backward_get("b")
    with pytest.raises(ValueError, match="float64"):
        view.backward_get(None, "float")


def test_out_that_is_refused():
    view = DataView("bf", np.zeros((2, 3)))
    with pytest.raises(TypeError, match="ImageView"):
        view.index([0], out=ImageView())
    other = DataView("fb", np.ones((3, 2)))
    with pytest.raises(ValueError, match="'fb'"):
        view.sub(0, 1, out=other)
    assert (other.input == 1).all()
    with pytest.raises(ValueError, match="another view"):
        view.sub(0, 1, out=view)


def test_axes_that_are_not_there():
    view = DataView("bf", np.zeros((2, 3)))
    with pytest.raises(ValueError, match="'bf' has no axis 'c'"):
        view.find_axis("c")
    with pytest.raises(ValueError, match="same axes"):
        view.transpose("bhwc")


WORDS = {
    "Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64",
    "Half": "float16", "Float": "float32", "Double": "float64", "Bool": "bool",
    "BFloat16": "bfloat16",
}  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
def test_tensor_types_by_their_words_and_as_classes(word):
    assert parse_type(f"torch.{word}Tensor") == (WORDS[word], None)
    for name in (f"torch.cuda.{word}Tensor", f"torch.Cuda{word}Tensor"):
        assert parse_type(name) == (WORDS[word], "cuda")
        assert parse_type(f"{name}@cuda:1") == (WORDS[word], "cuda:1")
    assert parse_type(getattr(torch, f"{word}Tensor")) == (WORDS[word], "cpu")
    assert parse_type(getattr(torch.cuda, f"{word}Tensor")) == (WORDS[word], "cuda")
    base = kind_of(np.zeros(3))
    assert requested_kind(getattr(torch, f"{word}Tensor"), base).library == "torch"
    assert requested_kind(f"torch.cuda.{word}Tensor", base).device.startswith("cuda")


def test_a_tensor_class_gives_a_tensor():
    view = DataView("bf", np.zeros((2, 3)))
    found = view.forward_get("bf", torch.FloatTensor)
    assert isinstance(found, torch.Tensor) and found.dtype == torch.float32
    assert isinstance(view.forward_get("bf", "torch.FloatTensor"), np.ndarray)
    with pytest.raises(ValueError, match=r"torch\.sparse"):
        view.forward_get("bf", torch.sparse.FloatTensor)
