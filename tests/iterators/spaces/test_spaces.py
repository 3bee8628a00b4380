"""Spaces: what they are, what they accept, and what they turn one batch into another."""

import itertools
import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from iterators import ArrayDataProvider
from iterators.core.dtypes import floatx, set_floatx
from iterators.core.layout import Layout
from iterators.spaces import (
    CompositeSpace,
    Conv2DSpace,
    IndexSequenceSpace,
    IndexSpace,
    NullSpace,
    OneHotFormatter,
    SimpleSpace,
    Space,
    VectorSequenceSpace,
    VectorSpace,
    is_numeric_batch,
    is_symbolic_batch,
)
from iterators.testing import check_space

torch = pytest.importorskip("torch")

AXES = list(itertools.permutations(("b", "c", 0, 1)))
unhurried = settings(deadline=None)


def image(axes=("b", 0, 1, "c"), shape=(2, 2), channels=3, dtype="floatX"):
    return Conv2DSpace(shape, num_channels=channels, axes=axes, dtype=dtype)


def count(*shape, dtype=np.float64):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


# -- descriptions -----------------------------------------------------------------------------

SPACES = {
    "VectorSpace(dim=3, dtype=float64)": lambda: VectorSpace(3),
    "VectorSpace(dim=3, sparse, dtype=float64)": lambda: VectorSpace(3, sparse=True),
    "VectorSpace(dim=3, dtype=None)": lambda: VectorSpace(3, dtype=None),
    "VectorSpace(dim=3, dtype=float32)": lambda: VectorSpace(3, dtype=np.float32),
    "IndexSpace(dim=1, max_labels=10, dtype=int64)": lambda: IndexSpace(10, 1),
    "IndexSpace(dim=1, max_labels=10, dtype=uint8)": lambda: IndexSpace(10, 1, "uint8"),
    "IndexSequenceSpace(dim=1, max_labels=10, dtype=int64)": lambda: IndexSequenceSpace(10, 1),
    "VectorSequenceSpace(dim=3, dtype=float64)": lambda: VectorSequenceSpace(3),
    "Conv2DSpace(shape=(2, 2), num_channels=3, axes=('b', 0, 1, 'c'), dtype=float64)": image,
    "Conv2DSpace(shape=(2, 2), num_channels=3, axes=('c', 0, 1, 'b'), dtype=float64)": lambda: (
        image(axes=["c", 0, 1, "b"])
    ),
    "CompositeSpace(VectorSpace(dim=3, dtype=float64), NullSpace)": lambda: CompositeSpace(
        (VectorSpace(3), NullSpace())
    ),
    "NullSpace": NullSpace,
}


@pytest.mark.parametrize("text", SPACES)
def test_spaces_are_equal_by_description(text):
    space = SPACES[text]()
    assert repr(space) == str(space) == text
    for other in SPACES:
        assert (space == SPACES[other]()) == (other == text)
    assert hash(space) == hash(SPACES[text]())
    assert pickle.loads(pickle.dumps(space)) == space
    assert CompositeSpace([space]) != space and space != text


def test_callbacks_do_not_make_a_difference_and_run_first():
    seen = []
    space = VectorSpace(3, np_validate_callbacks=[seen.append], validate_callbacks=[seen.append])
    assert space == VectorSpace(3)
    with pytest.raises(ValueError):
        space.np_validate(np.zeros((1, 2)))
    with pytest.raises(ValueError):
        space.validate(torch.zeros(1, 2))
    assert len(seen) == 2
    both = CompositeSpace([space], np_validate_callbacks=[seen.append])
    both.np_validate((np.zeros((1, 3)),))
    assert isinstance(seen[2], tuple) and len(seen) == 4


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"shape": (2, 2)}, TypeError),
        ({"shape": (2, 2), "channels": 3, "num_channels": 3}, TypeError),
        ({"shape": 2, "channels": 3}, ValueError),
        ({"shape": (2,), "channels": 3}, ValueError),
        ({"shape": (2, 0), "channels": 3}, ValueError),
        ({"shape": (2, 2.0), "channels": 3}, ValueError),
        ({"shape": (2, 2), "channels": 0}, ValueError),
        ({"shape": (2, 2), "channels": "3"}, ValueError),
        ({"shape": (2, 2), "channels": 3, "axes": ("b", 0, 1)}, ValueError),
        ({"shape": (2, 2), "channels": 3, "axes": ("b", 0, 0, "c")}, ValueError),
        ({"shape": (2, 2), "channels": 3, "axes": ("b", 0, 1, "t")}, ValueError),
        ({"shape": (2, 2), "channels": 3, "axes": ("b", 0, 2, "c")}, ValueError),
        ({"shape": (2, 2), "channels": 3, "axes": 5}, ValueError),
    ],
)
def test_wrong_arguments_of_conv2dspace(arguments, error):
    with pytest.raises(error) as caught:
        Conv2DSpace(**arguments)
    assert isinstance(caught.value, AssertionError), "scripts catch Pylearn2's AssertionError"


def test_conv2dspace_accepts_what_is_like_a_tuple():
    space = Conv2DSpace(np.array([2, 3]), channels=np.int64(4), axes=["b", "c", np.int64(0), 1])
    assert space.shape == (2, 3) and space.num_channels == 4 and space.axes == ("b", "c", 0, 1)
    assert space == Conv2DSpace([2, 3], num_channels=4, axes=("b", "c", 0, 1))


# -- dtype ------------------------------------------------------------------------------------


def test_floatx_is_replaced_at_once():
    assert floatx() == "float64"
    before = VectorSpace(3)
    set_floatx("float32")
    try:
        assert VectorSpace(3).dtype == "float32" and before.dtype == "float64"
    finally:
        set_floatx("float64")


@pytest.mark.parametrize("wrong", ["float23", 5, object, "U3", []])
def test_unknown_dtypes(wrong):
    with pytest.raises(TypeError):
        VectorSpace(3, dtype=wrong)


def test_dtype_cannot_be_deleted_and_can_be_set():
    space = VectorSpace(3)
    with pytest.raises(AttributeError):
        del space.dtype
    for value, name in ((np.dtype("f4"), "float32"), (torch.int8, "int8"), (None, None)):
        space.dtype = value
        assert space.dtype == name


@pytest.mark.parametrize("kind", [IndexSpace, IndexSequenceSpace])
@pytest.mark.parametrize("dtype", ["float32", "bool", None])
def test_labels_have_an_integer_type(kind, dtype):
    with pytest.raises(ValueError):
        kind(3, 1, dtype=dtype)


def test_dtype_of_composite_and_null():
    inner = CompositeSpace([VectorSpace(1), NullSpace()])
    space = CompositeSpace([inner, VectorSpace(2)])
    null = NullSpace().dtype
    assert space.dtype == (("float64", null), "float64") and null == "NullSpace's dtype"
    space.dtype = "float32"
    assert space.dtype == (("float32", null), "float32")
    space.dtype = (("int8", null), None)
    assert space.dtype == (("int8", null), None)
    with pytest.raises(ValueError):
        space.dtype = ("float32",)
    with pytest.raises(TypeError):
        NullSpace().dtype = "float32"
    NullSpace().dtype = null


# -- origins and sizes ------------------------------------------------------------------------


def test_origins_and_total_dimensions():
    assert VectorSpace(3, dtype="int8").get_origin().dtype == np.float64
    assert IndexSpace(9, 2).get_origin().shape == (1, 2)
    origin = image(("c", "b", 1, 0), (2, 5), dtype="float32").get_origin()
    assert origin.shape == (3, 5, 2) and origin.dtype == np.float32
    assert [space.get_total_dimension() for space in (VectorSpace(3), image(), IndexSpace(9, 2))] \
        == [3, 12, 2]  # fmt: skip
    assert CompositeSpace([image(), CompositeSpace([VectorSpace(2), NullSpace()])]) \
        .get_total_dimension() == 14  # fmt: skip
    assert CompositeSpace([]).get_total_dimension() == NullSpace().get_total_dimension() == 0


def test_origin_batches():
    assert VectorSpace(3).get_origin_batch(0).shape == (0, 3)
    sparse = VectorSpace(3, sparse=True).get_origin_batch(2)
    assert scipy.sparse.issparse(sparse) and sparse.format == "csr"
    assert IndexSpace(9, 2, "int8").get_origin_batch(4).dtype == np.int8
    assert image(("c", "b", 1, 0)).get_origin_batch(5).shape == (3, 5, 2, 2)
    nested = CompositeSpace([VectorSpace(1), CompositeSpace([VectorSpace(2)])])
    one, (two,) = nested.get_origin_batch(3, ("int8", ("float32",)))
    assert one.dtype == np.int8 and two.dtype == np.float32 and two.shape == (3, 2)
    assert nested.get_origin_batch(3, "int8")[1][0].dtype == np.int8
    with pytest.raises(TypeError):
        image().get_origin_batch(2.0)
    with pytest.raises(AssertionError):
        image().get_origin_batch(0)
    with pytest.raises(TypeError, match="dtype"):
        VectorSpace(3, dtype=None).get_origin_batch(2)
    with pytest.raises(ValueError):
        nested.get_origin_batch(3, ("int8",))
    with pytest.raises(TypeError):
        nested.get_origin_batch(3, (("int8",), ("float32",)))


@pytest.mark.parametrize(
    "space", [VectorSequenceSpace(2), IndexSequenceSpace(3, 1), NullSpace(), CompositeSpace([])]
)
def test_what_has_no_origin(space):
    with pytest.raises(NotImplementedError):
        space.get_origin()
    if not isinstance(space, CompositeSpace):
        with pytest.raises(NotImplementedError):
            space.get_origin_batch(1)
    if isinstance(space, (VectorSequenceSpace, IndexSequenceSpace)):
        with pytest.raises(NotImplementedError):
            space.get_total_dimension()


def test_batch_axis_and_batch_size():
    for axes in AXES:
        space = image(axes, dtype=None)
        assert space.get_batch_axis() == axes.index("b")
        assert space.np_batch_size(space.get_origin_batch(7, "int8")) == 7
    assert VectorSpace(3).get_batch_axis() == CompositeSpace([]).get_batch_axis() == 0
    assert VectorSequenceSpace(3).np_batch_size(np.zeros((9, 3))) == 1
    assert IndexSequenceSpace(3, 1).np_batch_size(np.zeros((9, 1), int)) == 1
    assert NullSpace().np_batch_size(None) == CompositeSpace([]).np_batch_size(()) == 0


def test_batch_size_of_a_composite():
    space = CompositeSpace([NullSpace(), CompositeSpace([]), VectorSpace(3), VectorSpace(1)])
    assert space.np_batch_size((None, (), np.zeros((4, 3)), np.zeros((4, 1)))) == 4
    with pytest.raises(ValueError, match="different"):
        space.np_batch_size((None, (), np.zeros((4, 3)), np.zeros((5, 1))))
    assert space.batch_size((None, (), torch.zeros(4, 3), torch.zeros(5, 1))) == 4


def test_restrict():
    space = CompositeSpace([VectorSpace(1), VectorSpace(2), VectorSpace(3)])
    assert space.restrict([1]) is space.components[1]
    assert space.restrict([2, 0]) == CompositeSpace([VectorSpace(3), VectorSpace(1)])
    batch = space.get_origin_batch(2)
    assert space.restrict_batch(batch, [1]) is batch[1]
    assert space.restrict_batch(batch, [2, 0]) == (batch[2], batch[0])


# -- validation -------------------------------------------------------------------------------


def test_families_of_batches():
    array, tensor = np.zeros(2), torch.zeros(2)
    assert is_numeric_batch((array, (None, ()))) and not is_numeric_batch((tensor, None))
    assert is_symbolic_batch((tensor, (None, ()))) and not is_symbolic_batch(array)
    for nothing in (None, (), (None, ())):
        assert is_numeric_batch(nothing) and is_symbolic_batch(nothing)
    with pytest.raises(AssertionError):
        is_numeric_batch((array, (tensor,)))
    with pytest.raises(TypeError):
        is_symbolic_batch((array, [array]))


@pytest.mark.parametrize(
    ("space", "batch", "error"),
    [
        (VectorSpace(3), 5, TypeError),
        (VectorSpace(3), [np.zeros((1, 3))], TypeError),
        (VectorSpace(3), torch.zeros(1, 3), TypeError),
        (VectorSpace(3), (np.zeros((1, 3)),), TypeError),
        (VectorSpace(3), None, TypeError),
        (VectorSpace(3), np.zeros((1, 3), complex), TypeError),
        (VectorSpace(3, dtype="int8"), np.zeros((1, 3)), TypeError),
        (VectorSpace(3, dtype="int8"), np.zeros((1, 3), bool), TypeError),
        (IndexSpace(3, 1), np.zeros((1, 1)), TypeError),
        (IndexSequenceSpace(3, 1), np.zeros((1, 1)), TypeError),
        (VectorSpace(3), scipy.sparse.csr_matrix((1, 3)), TypeError),
        (IndexSpace(9, 3), scipy.sparse.csr_matrix((1, 3), dtype=int), TypeError),
        (VectorSequenceSpace(3), scipy.sparse.csr_matrix((1, 3)), TypeError),
        (image(), scipy.sparse.csr_matrix((1, 12)), TypeError),
        (VectorSpace(3, sparse=True), np.zeros((1, 3)), TypeError),
        (VectorSpace(3), np.zeros(3), ValueError),
        (VectorSpace(3), np.zeros((1, 4)), ValueError),
        (VectorSpace(3, sparse=True), scipy.sparse.csr_matrix((1, 4)), ValueError),
        (IndexSpace(9, 3), np.zeros((1, 4), int), ValueError),
        (VectorSequenceSpace(3), np.zeros((5, 4)), ValueError),
        (image(), np.zeros((1, 12)), ValueError),
        (image(), np.zeros((1, 2, 2, 4)), ValueError),
        (image(), np.zeros((1, 3, 2, 3)), ValueError),
        (image(), np.zeros((1, 2, 3, 3)), ValueError),
        (CompositeSpace([VectorSpace(3)]), np.zeros((1, 3)), TypeError),
        (CompositeSpace([VectorSpace(3)]), (), ValueError),
        (CompositeSpace([VectorSpace(3)]), (np.zeros((1, 4)),), ValueError),
        (NullSpace(), (), TypeError),
        (NullSpace(), np.zeros(1), TypeError),
    ],
)
def test_batches_that_do_not_lie_in_a_space(space, batch, error):
    with pytest.raises(error):
        space.np_validate(batch)
    with pytest.raises(error):
        space.np_format_as(batch, space)


def test_the_wrong_axis_that_is_named_is_the_channel_first():
    with pytest.raises(ValueError, match="axis 3"):
        image().np_validate(np.zeros((1, 9, 9, 9)))


@pytest.mark.parametrize(
    ("space", "batch"),
    [
        (VectorSpace(3), np.zeros((0, 3))),
        (VectorSpace(3), np.zeros((1, 3), int)),
        (VectorSpace(3), np.zeros((1, 3), bool)),
        (VectorSpace(3, dtype="float32"), np.zeros((1, 3))),
        (VectorSpace(3, dtype="int8"), np.zeros((1, 3), int)),
        (VectorSpace(3, dtype="complex64"), np.zeros((1, 3))),
        (VectorSpace(3, dtype=None), np.zeros((1, 3), complex)),
        (VectorSpace(3, sparse=True), scipy.sparse.coo_matrix((1, 3))),
        (VectorSpace(3, sparse=True), scipy.sparse.csc_array((1, 3))),
        (IndexSpace(3, 1), np.full((1, 1), 99)),
        (CompositeSpace([VectorSpace(1)] * 2), (np.zeros((1, 1)), np.zeros((2, 1)))),
        (NullSpace(), None),
    ],
)
def test_batches_that_are_accepted_silently(space, batch):
    space.np_validate(batch)


# -- conversion -------------------------------------------------------------------------------


def test_worked_numbers():
    space = image(("b", "c", 0, 1))
    planes = VectorSpace(12).np_format_as(count(1, 12), space)
    assert planes[0].tolist() == [[[0, 3], [6, 9]], [[1, 4], [7, 10]], [[2, 5], [8, 11]]]
    flat = space.np_format_as(count(1, 3, 2, 2), VectorSpace(12))
    assert flat[0].tolist() == [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]
    labels = np.array([[0, 2], [1, 1]])
    merged = IndexSpace(4, 2).np_format_as(labels, VectorSpace(4))
    assert merged.tolist() == [[1, 0, 1, 0], [0, 1, 0, 0]] and merged.dtype == np.float64
    joined = IndexSpace(4, 2).np_format_as(labels, VectorSpace(8))
    assert joined.tolist() == [[1, 0, 0, 0, 0, 0, 1, 0], [0, 1, 0, 0, 0, 1, 0, 0]]


VECTOR, IMAGE, INDEX = VectorSpace(4), image(shape=(2, 2), channels=1), IndexSpace(4, 4)
PAIR = CompositeSpace([VectorSpace(3), VectorSpace(1)])
SEQUENCE, LABELS, NULL = VectorSequenceSpace(4), IndexSequenceSpace(4, 1), NullSpace()
ALL = (VECTOR, IMAGE, INDEX, PAIR, SEQUENCE, LABELS, NULL)
N, V, OK = NotImplementedError, ValueError, None
TABLE = {
    VECTOR: (OK, OK, N, OK, N, N, N),
    IMAGE: (OK, OK, N, N, N, N, N),
    INDEX: (OK, V, OK, V, V, V, V),
    PAIR: (OK, N, N, OK, N, N, N),
    SEQUENCE: (V, V, V, V, OK, V, V),
    LABELS: (V, V, V, V, OK, OK, V),
    NULL: (N, N, N, N, N, N, OK),
}
BATCHES = {
    VECTOR: np.zeros((2, 4)),
    IMAGE: np.zeros((2, 2, 2, 1)),
    INDEX: np.zeros((2, 4), int),
    PAIR: (np.zeros((2, 3)), np.zeros((2, 1))),
    SEQUENCE: np.zeros((5, 4)),
    LABELS: np.zeros((5, 1), int),
    NULL: None,
}


def tensors(batch):
    if isinstance(batch, tuple):
        return tuple(map(tensors, batch))
    return None if batch is None else torch.from_numpy(batch)


@pytest.mark.parametrize("src", ALL, ids=str)
@pytest.mark.parametrize("dst", ALL, ids=str)
def test_which_spaces_convert_to_which(src, dst):
    expected = TABLE[src][ALL.index(dst)]
    if expected is None:
        dst.np_validate(src.np_format_as(BATCHES[src], dst))
        dst.validate(src.format_as(tensors(BATCHES[src]), dst))
        return
    with pytest.raises(expected):
        src.np_format_as(BATCHES[src], dst)
    with pytest.raises(expected):
        src.format_as(tensors(BATCHES[src]), dst)


@pytest.mark.parametrize("src", [VECTOR, IMAGE, PAIR], ids=str)
@pytest.mark.parametrize(
    "dst", [VectorSpace(5), image(), IndexSpace(4, 5), CompositeSpace([VECTOR, VECTOR])], ids=str
)
def test_different_totals_come_first(src, dst):
    with pytest.raises(ValueError):
        src.np_format_as(BATCHES[src], dst)


@pytest.mark.parametrize(
    ("src", "batch", "dst", "error"),
    [
        (image(shape=(2, 6)), np.zeros((1, 2, 6, 3)), image(shape=(3, 4)), V),
        (image(shape=(1, 2)), np.zeros((1, 1, 2, 3)), image(shape=(1, 3), channels=2), V),
        (VectorSpace(12, sparse=True), scipy.sparse.csr_matrix((1, 12)), image(), TypeError),
        (IndexSpace(4, 2), np.zeros((1, 2), int), VectorSpace(5), V),
        (IndexSpace(4, 2), np.zeros((1, 2), int), IndexSpace(5, 2), V),
        (IndexSpace(4, 2), np.array([[0, 4]]), VectorSpace(4), IndexError),
        (IndexSpace(4, 2), np.array([[0, -1]]), VectorSpace(4), V),
        (IndexSequenceSpace(4, 1), np.zeros((1, 1), int), VectorSequenceSpace(5), V),
        (IndexSequenceSpace(4, 1), np.zeros((1, 1), int), IndexSequenceSpace(5, 1), V),
        (VectorSequenceSpace(4), np.zeros((1, 4)), VectorSequenceSpace(5), V),
        (PAIR, BATCHES[PAIR], CompositeSpace([VectorSpace(4)]), V),
        (PAIR, BATCHES[PAIR], CompositeSpace([VectorSpace(1), VectorSpace(3)]), V),
        (PAIR, BATCHES[PAIR], CompositeSpace([VectorSpace(3), CompositeSpace([VectorSpace(1)])]),
         TypeError),
        (VECTOR, BATCHES[VECTOR], "VectorSpace", TypeError),
    ],
)  # fmt: skip
def test_conversions_that_are_refused(src, batch, dst, error):
    with pytest.raises(error):
        src.np_format_as(batch, dst)


def test_mixed_types_need_a_type():
    pair = CompositeSpace([VectorSpace(3, dtype=None), VectorSpace(1, dtype=None)])
    batch = (np.zeros((2, 3), np.float32), np.zeros((2, 1)))
    with pytest.raises(TypeError, match="float32"):
        pair.np_format_as(batch, VectorSpace(4, dtype=None))
    assert pair.np_format_as(batch, VectorSpace(4, dtype="float32")).dtype == np.float32


def test_sparse_conversions():
    dense = count(3, 4) % 3
    sparse = VectorSpace(4).np_format_as(dense, VectorSpace(4, sparse=True, dtype="float32"))
    assert sparse.format == "csr" and sparse.dtype == np.float32
    space = VectorSpace(4, sparse=True)
    np.testing.assert_array_equal(space.np_format_as(sparse, VectorSpace(4)), dense)
    left, right = space.np_format_as(sparse, PAIR)
    np.testing.assert_array_equal(np.hstack([left, right]), dense)
    joined = PAIR.np_format_as((left, right), space)
    np.testing.assert_array_equal(joined.toarray(), dense)
    rows = IMAGE.np_format_as(dense.reshape(3, 2, 2, 1), space)
    np.testing.assert_array_equal(rows.toarray(), dense)
    hot = IndexSpace(4, 2).np_format_as(np.array([[0, 2], [1, 1]]), space)
    assert hot.toarray().tolist() == [[1, 0, 1, 0], [0, 1, 0, 0]] and scipy.sparse.issparse(hot)


@pytest.mark.parametrize(("dtype", "found"), [("float64", "float64"), (None, "float32")])
def test_float16_becomes_sparse_by_way_of_float32(dtype, found):
    halves = (count(3, 4) % 3).astype("float16")
    space = VectorSpace(4, sparse=True, dtype=dtype)
    sparse = VectorSpace(4, dtype="float16").np_format_as(halves, space)
    assert sparse.dtype == found
    np.testing.assert_array_equal(sparse.toarray(), halves)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_sparse_tensors():
    space = VectorSpace(4, sparse=True, dtype="float32")
    batch = space.make_batch(batch_size=2)
    space.validate(batch)
    dense = torch.arange(8.0).reshape(2, 4)
    there = VectorSpace(4, dtype="float32").format_as(dense, space)
    assert there.layout == torch.sparse_csr
    assert torch.equal(space.format_as(there, VectorSpace(4, dtype="float32")), dense)
    left, right = space.format_as(there, PAIR)
    assert torch.equal(torch.cat([left, right], 1).float(), dense)
    assert torch.equal(PAIR.format_as((left, right), space).to_dense(), dense)


@unhurried
@given(st.sampled_from(AXES), st.sampled_from(AXES), st.integers(0, 3), st.data())
def test_conversions_can_be_undone_and_are_the_same_for_tensors(first, second, batch, data):
    sizes = data.draw(st.tuples(*[st.integers(1, 3)] * 3))
    a, b = (image(axes, sizes[:2], sizes[2]) for axes in (first, second))
    total = a.get_total_dimension()
    parts = CompositeSpace([VectorSpace(total - 1), CompositeSpace([VectorSpace(1)])])
    flat, rows = VectorSpace(total), count(batch, total)
    for space, others in ((a, [b, flat]), (flat, [a, b, parts]), (parts, [flat])):
        check_space(space, flat.np_format_as(rows, space), others)


def compare(found, expected):
    if isinstance(expected, tuple):
        assert isinstance(found, tuple) and len(found) == len(expected)
        for pair in zip(found, expected, strict=True):
            compare(*pair)
        return
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_null_parts_carry_nothing():
    src = CompositeSpace([VectorSpace(3), NullSpace(), VectorSpace(1)])
    joined = src.np_format_as((count(2, 3), None, count(2, 1)), VectorSpace(4))
    assert joined.tolist() == [[0, 1, 2, 0], [3, 4, 5, 1]]
    parts = VectorSpace(4).np_format_as(joined, src)
    assert parts[1] is None and parts[2].tolist() == [[0], [1]]


def test_composite_to_vector_is_depth_first_and_one_hot_where_it_fits():
    src = CompositeSpace([CompositeSpace([image(shape=(1, 2), channels=1)]), VectorSpace(1)])
    assert src.np_format_as(((count(1, 1, 2, 1),), count(1, 1) + 7), VectorSpace(3)).tolist() == [
        [0, 1, 7]
    ]


# -- cost -------------------------------------------------------------------------------------


def test_nothing_to_do_returns_the_same_object():
    for space in (VECTOR, IMAGE, SEQUENCE):
        assert space.np_format_as(BATCHES[space], space) is BATCHES[space]
    assert INDEX.np_format_as(BATCHES[INDEX], INDEX) is BATCHES[INDEX]
    parts = PAIR.np_format_as(BATCHES[PAIR], PAIR)
    assert parts is not BATCHES[PAIR] and parts[0] is BATCHES[PAIR][0]


@pytest.mark.parametrize("axes", AXES)
def test_transposes_and_splits_are_views(axes):
    x = np.zeros((2, 12))
    images = VectorSpace(12).np_format_as(x, image(axes))
    assert np.shares_memory(images, x)
    assert np.shares_memory(image(axes).np_format_as(images, image()), x)
    for part in VectorSpace(12).np_format_as(x, CompositeSpace([VectorSpace(5), VectorSpace(7)])):
        assert np.shares_memory(part, x)


def test_joining_images_and_vectors_costs_one_copy():
    src = CompositeSpace([image(("c", 0, 1, "b"), (32, 32), dtype="float64"), VectorSpace(9)])
    dst = VectorSpace(3 * 32 * 32 + 9, dtype="float32")
    batch = src.get_origin_batch(64)
    src.np_format_as(batch, dst)
    tracemalloc.start()
    try:
        result = src.np_format_as(batch, dst)
        assert tracemalloc.get_traced_memory()[1] < 1.1 * result.nbytes
    finally:
        tracemalloc.stop()


# -- torch ------------------------------------------------------------------------------------


def test_make_batch_and_its_old_names():
    space = image(("c", 0, 1, "b"), dtype="float32")
    for make in (space.make_batch, space.make_theano_batch, space.make_torch_batch):
        batch = make("x", batch_size=5)
        assert batch.shape == (3, 2, 2, 5) and batch.dtype == torch.float32
        assert batch.batch_name == "x" and not batch.requires_grad
    assert space.make_batch(device="meta").is_meta
    assert space.make_batch(dtype="float16", requires_grad=True).requires_grad
    assert space.make_shared_batch(4).shape == (3, 2, 2, 4)
    nested = CompositeSpace([VectorSpace(1), NullSpace(), CompositeSpace([IndexSpace(3, 2)])])
    x, nothing, (labels,) = nested.make_batch("x", requires_grad=True)
    assert nothing is None and x.batch_name == "x[0]" and labels.batch_name == "x[2][0]"
    assert x.requires_grad and not labels.requires_grad
    assert nested.make_batch(("a", None, ("b",)))[2][0].batch_name == "b"
    assert VectorSequenceSpace(3).make_batch().shape == (1, 3)
    for sequence in (VectorSequenceSpace(3), IndexSequenceSpace(3, 1)):
        with pytest.raises(ValueError, match="one sequence"):
            sequence.make_batch(batch_size=2)
    with pytest.raises(TypeError):
        VectorSpace(3, dtype=None).make_batch()
    with pytest.raises(TypeError):
        VectorSpace(3).make_batch(name=("a",))


@pytest.mark.parametrize(
    ("space", "batch", "error"),
    [
        (VectorSpace(3), np.zeros((1, 3)), TypeError),
        (VectorSpace(3), torch.zeros(1, 3, dtype=torch.complex64), TypeError),
        (IndexSpace(3, 1), torch.zeros(1, 1), TypeError),
        (IndexSpace(3, 1), torch.zeros(1, 1, dtype=torch.bool), TypeError),
        (VectorSpace(3), torch.zeros(3), ValueError),
        (VectorSpace(3), torch.zeros(1, 4), ValueError),
        (VectorSpace(3), torch.zeros(1, 3).to_sparse(), TypeError),
        (VectorSpace(3, sparse=True), torch.zeros(1, 3), TypeError),
        (image(), torch.zeros(1, 2, 2, 4), ValueError),
    ],
)
def test_tensors_that_do_not_lie_in_a_space(space, batch, error):
    with pytest.raises(error):
        space.validate(batch)


def test_gradients_reach_the_source_through_composites():
    src = CompositeSpace([image(("c", 0, 1, "b")), VectorSpace(2)])
    batch = src.make_batch(batch_size=3, requires_grad=True)
    src.format_as(batch, VectorSpace(14, dtype="float32")).sum().backward()
    assert all(torch.equal(part.grad, torch.ones_like(part)) for part in batch)
    x = VectorSpace(14).make_batch(batch_size=3, requires_grad=True)
    images, _ = VectorSpace(14).format_as(x, src)
    images.sum().backward()
    assert x.grad[:, :12].eq(1).all() and x.grad[:, 12:].eq(0).all()


# -- one-hot ----------------------------------------------------------------------------------


def test_one_hot_formatter():
    formatter = OneHotFormatter(4, "float32")
    labels = np.array([[0, 2], [1, 1]])
    assert formatter.format(labels).shape == (2, 2, 4)
    assert formatter.format(labels, "merge").tolist() == [[1, 0, 1, 0], [0, 1, 0, 0]]
    assert formatter.format(labels, "merge", sparse=True).toarray().max() == 1
    assert formatter.format(labels, "concatenate", sparse=True).shape == (2, 8)
    assert formatter.format(labels[:, 0]).tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]
    for arguments in ((labels[None],), (labels, "shuffle"), (labels, "stack", True)):
        with pytest.raises(ValueError):
            formatter.format(*arguments)
    with pytest.raises(TypeError):
        formatter.format(labels * 1.0)
    with pytest.raises(TypeError):
        formatter.format([1, 2])


@pytest.mark.parametrize("axes", [("b", "c", 0.0, 1), ("b", "c", None, 1), ("b", "c", 0, [1])])
def test_axes_of_the_wrong_kind(axes):
    with pytest.raises(ValueError, match="in some order"):
        Conv2DSpace((2, 2), channels=1, axes=axes)


def most_allocated(work):
    """Largest amount of memory that `work` holds beside what was there."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("first", AXES)
@pytest.mark.parametrize("dtype", ["float64", "float32", None])
def test_every_conversion_of_images_costs_one_copy_at_most(first, dtype):
    shape = {"shape": (24, 32), "num_channels": 8}
    image = Conv2DSpace(**shape, axes=first, dtype="float64")
    batch = image.get_origin_batch(32)
    targets = [Conv2DSpace(**shape, axes=axes, dtype=dtype) for axes in AXES]
    for space in [*targets, VectorSpace(24 * 32 * 8, dtype=dtype)]:
        result = image.np_format_as(batch, space)
        wanted = 0 if np.shares_memory(result, batch) else result.nbytes
        assert most_allocated(lambda space=space: image.np_format_as(batch, space)) < (
            1.05 * wanted + 50_000
        )
        back = space.np_format_as(result, image)
        wanted = 0 if np.shares_memory(back, result) else back.nbytes
        assert most_allocated(
            lambda space=space, result=result: space.np_format_as(result, image)
        ) < (1.05 * wanted + 50_000)


def test_a_space_of_its_own_needs_no_other_module(monkeypatch):
    """It is found, converted, split, joined and asked for by what it says of itself."""
    monkeypatch.setattr(Space, "_kinds", list(Space._kinds))

    class VolumeSpace(SimpleSpace):
        """Two voxels by two by two, of one channel."""

        layout = Layout("bdhwc", d=2, h=2, w=2, c=1)
        flat_layout = Layout("bf", f_order="dhwc", **layout.sizes)

        @classmethod
        def describing(cls, spec):
            return cls(spec.dtype) if spec.layout.axes == "bdhwc" else None

        def _description(self):
            return ()

        def get_total_dimension(self):
            return 8

        def get_origin(self):
            return np.zeros((2, 2, 2, 1))

    space, rows = VolumeSpace("float32"), np.arange(24, dtype=np.float32).reshape(3, 8)
    volumes = rows.reshape(3, 2, 2, 2, 1)
    np.testing.assert_array_equal(VectorSpace(8).np_format_as(rows, space), volumes)
    np.testing.assert_array_equal(space.np_format_as(volumes, VectorSpace(8)), rows)
    both = CompositeSpace([space, VectorSpace(1)])
    parts = VectorSpace(9).np_format_as(np.hstack([rows, rows[:, :1]]), both)
    np.testing.assert_array_equal(parts[0], volumes)
    joined = both.np_format_as(parts, VectorSpace(9))
    np.testing.assert_array_equal(joined, np.hstack([rows, rows[:, :1]]))
    for stored, form in ((rows, space), (volumes, VectorSpace(8)), (volumes, space)):
        layout = {} if stored is rows else {"data_layout": "NDHWC"}
        specs = form, "features"
        with ArrayDataProvider(stored, batch_size=3, data_specs=specs, **layout) as provider:
            batch = provider.next()
        np.testing.assert_array_equal(batch, volumes if form is space else rows)


@pytest.mark.parametrize("space", [VectorSpace(2), CompositeSpace([VectorSpace(2)])])
def test_the_method_for_the_other_kind_of_batch_is_named(space):
    array, tensor = np.zeros((3, 2)), torch.zeros((3, 2))
    if isinstance(space, CompositeSpace):
        array, tensor = (array,), (tensor,)
    for name, arguments in (("validate", ()), ("batch_size", ()), ("format_as", (space,))):
        with pytest.raises(TypeError, match=f"not (ndarray|tuple): use np_{name}$"):
            getattr(space, name)(array, *arguments)
        with pytest.raises(TypeError, match=f"not (Tensor|tuple): use {name}$"):
            getattr(space, f"np_{name}")(tensor, *arguments)
    with pytest.raises(TypeError, match="torch tensors, not int$"):
        space.validate(3)
