"""`NDArray` keeps its class and MXNet's rules through whatever data code does with it."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators.compat import mxnet as mx


def an(values, dtype="float32"):
    return mx.nd.array(values, dtype=dtype)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=4), st.integers(-4, 3))
def test_entries_and_reductions_are_arrays_of_one_entry(values, index):
    a = an(values)
    if -len(values) <= index < len(values):
        assert isinstance(a[index], mx.nd.NDArray) and a[index].shape == (1,)
        assert a[index].asscalar() == values[index]
    else:
        with pytest.raises(IndexError):
            a[index]
    for result in (a.sum(), a.max(), a.mean(), a.argmax(), a.norm(), a + 1, -a, a * a, abs(a)):
        assert isinstance(result, mx.nd.NDArray) and result.ndim == 1
    assert [x.asscalar() for x in a] == values


def test_numbers_are_made_of_an_array_of_one_entry_alone():
    one, two = an([3]), an([3, 4])
    assert float(one) == 3.0 and int(one) == 3 and bool(one) and f"{one:.1f}" == "3.0"
    assert list(range(5))[an([2], "int64")] == 2
    for make in (float, int, bool):
        with pytest.raises(ValueError):
            make(two)
    with pytest.raises(ValueError, match="not a scalar"):
        two.asscalar()
    with pytest.raises(TypeError):
        range(5)[an([1.0])]


def test_asnumpy_is_a_copy_of_numpys_own_class():
    a = an([[1, 2], [3, 4]])
    b = a.asnumpy()
    b[0, 0] = 9
    assert type(b) is np.ndarray and a[0, 0].asscalar() == 1
    assert np.shares_memory(np.asarray(a), a)


def test_pickles_and_copies_keep_the_class():
    a = an(np.arange(2000).reshape(20, 100))
    for b in (pickle.loads(pickle.dumps(a)), copy.copy(a), copy.deepcopy(a), a.copy()):
        assert isinstance(b, mx.nd.NDArray) and (b == a).all()
    buffers = []
    pickle.dumps(a, 5, buffer_callback=buffers.append)
    assert sum(buffer.raw().nbytes for buffer in buffers) == a.nbytes


def test_arrays_of_floats_are_indices():
    a = an(np.arange(5))
    assert a[mx.nd.array([3, 1])].asnumpy().tolist() == [3, 1]
    assert a[a > 2].asnumpy().tolist() == [3, 4]
    a[mx.nd.array([0])] = 7
    assert a[0].asscalar() == 7


def test_types_of_new_arrays():
    assert mx.nd.array(np.arange(3)).dtype == np.float32
    assert mx.nd.array(an([1], "uint8")).dtype == np.uint8
    assert mx.nd.zeros(3).shape == (3,) and mx.nd.ones((2, 3), dtype="int8").dtype == np.int8
    assert mx.nd.from_numpy(np.zeros(2)).dtype == np.float64
    csr = mx.nd.array([[0, 2.0]]).tostype("csr")
    assert csr.stype == "csr" and csr.asnumpy().tolist() == [[0, 2]]
    assert mx.nd.sparse.csr_matrix(np.eye(2)).tostype("default").asnumpy().tolist() == [
        [1, 0],
        [0, 1],
    ]


def test_other_shapes():
    a = an(np.arange(24).reshape(2, 3, 4))
    assert a.reshape((0, -1)).shape == (2, 12) and a.reshape(0, 0, 4, 1).shape == (2, 3, 4, 1)
    assert a.reshape(shape=(4, 6)).shape == (4, 6)
    for codes in ((-2,), (-3, 0), (-4, 1, 2, 0)):
        with pytest.raises(ValueError, match="codes"):
            a.reshape(codes)
    assert a.transpose(axes=(2, 0, 1)).shape == a.transpose((2, 0, 1)).shape == (4, 2, 3)
    assert a.flatten().shape == (2, 12) and a.expand_dims(1).shape == (2, 1, 3, 4)


def test_a_gpu_is_refused_with_what_to_do_instead():
    for call in (
        lambda: mx.nd.zeros(3, ctx=mx.gpu(1)),
        lambda: an([1]).as_in_context(mx.gpu(1)),
        lambda: an([1]).copyto(mx.gpu(1)),
        lambda: mx.gluon.utils.split_and_load(an([1, 2]), [mx.gpu(0), mx.gpu(1)]),
    ):
        with pytest.raises(mx.MXNetError, match="device='cuda:"):
            call()
    with mx.gpu(0), pytest.raises(mx.base.MXNetError):
        mx.nd.zeros(3)
    assert mx.current_context() == mx.cpu() and len({mx.cpu(), mx.cpu(0), mx.gpu()}) == 2


def test_copyto_fills_what_it_is_given():
    a, b = an([1, 2]), mx.nd.zeros(2)
    assert a.copyto(b) is b and b.asnumpy().tolist() == [1, 2]
    with pytest.raises(ValueError):
        a.copyto(mx.nd.zeros(3))


def test_seeds_are_of_this_module_alone():
    np.random.seed(1)
    before = np.random.get_state()[1].copy()
    mx.random.seed(4)
    first = mx.nd.random.uniform(shape=(2, 3)), mx.random.randint(0, 9, (4,)), mx.nd.random.randn(2)
    mx.random.seed(4)
    again = mx.nd.random.uniform(shape=(2, 3)), mx.random.randint(0, 9, (4,)), mx.nd.random.randn(2)
    for one, other in zip(first, again, strict=True):
        assert (one == other).all() and isinstance(one, mx.nd.NDArray)
    assert (np.random.get_state()[1] == before).all()


@pytest.mark.parametrize("factor", [0.0, 0.1, -0.3, 0.5, 0.77, 2.25])
def test_hues_turn_as_opencv_turns_them(factor):
    cv2 = pytest.importorskip("cv2")
    image = np.random.default_rng(0).integers(0, 256, (80, 60, 3)).astype(np.uint8)
    image[:9], image[9:12, :, 0], image[12:15, :, 1:] = image[:9, :, :1], 255, 0
    colours = cv2.cvtColor(image.astype(np.float32) / 255, cv2.COLOR_RGB2HLS)
    colours[..., 0] = (colours[..., 0] + factor * 360) % 360
    expected = cv2.cvtColor(colours, cv2.COLOR_HLS2RGB) * 255
    turned = mx.nd.image.random_hue(an(image), factor, factor).asnumpy()
    assert np.abs(turned - expected).max() < 0.01


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.3])
def test_bytes_stay_bytes(factor):
    image = an(np.random.default_rng(0).integers(0, 256, (5, 6, 3)), "uint8")
    for name in ("brightness", "contrast", "saturation", "hue"):
        changed = getattr(mx.nd.image, f"random_{name}")(image, factor, factor)
        assert changed.dtype == np.uint8 and changed.shape == image.shape
        if factor == 1:
            assert np.abs(changed.asnumpy().astype(int) - image.asnumpy()).max() <= 1
    many = mx.nd.stack(image, image)
    assert mx.nd.image.resize(many, (3, 2)).shape == (2, 2, 3, 3)
    assert mx.nd.image.to_tensor(many).shape == (2, 3, 5, 6)
    with pytest.raises(TypeError, match="to_tensor"):
        mx.nd.image.normalize(image)
    with pytest.raises(ValueError, match="does not lie inside"):
        mx.nd.image.crop(image, 4, 0, 3, 3)


@pytest.mark.parametrize(
    ("left", "right"),
    [((2, 3), (3, 4)), ((3,), (3,)), ((4, 5, 3), (3, 3)), ((4, 3), (3,)), ((2, 4, 3), (3, 2, 5))],
)
def test_products_run_over_the_last_axis_and_the_first(left, right):
    x, y = (np.arange(1, np.prod(shape) + 1).reshape(shape) for shape in (left, right))
    found = mx.nd.dot(an(x), an(y))
    assert isinstance(found, mx.nd.NDArray)
    assert (found.asnumpy() == np.atleast_1d(np.tensordot(x, y, 1))).all()


@pytest.mark.parametrize("name", ["argmax", "argmin", "max", "mean", "min", "sum"])
@pytest.mark.parametrize("keywords", [{}, {"axis": 1}, {"axis": -1, "keepdims": True}])
def test_functions_that_reduce_are_the_methods_of_arrays(name, keywords):
    a = an(np.arange(24).reshape(2, 3, 4) * 7 % 5)
    found, expected = getattr(mx.nd, name)(a, **keywords), getattr(a, name)(**keywords)
    assert isinstance(found, mx.nd.NDArray) and found.dtype == expected.dtype
    assert found.shape == expected.shape and (found == expected).all()
