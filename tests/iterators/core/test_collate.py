"""Examples to batches: the rules and values of Chainer, and torch beside NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from iterators import concat_examples

torch = pytest.importorskip("torch")


def same(found, expected):
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.asarray(expected).dtype


@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.int8, np.uint16, np.bool_, np.complex64]),
        hnp.array_shapes(min_dims=1, max_dims=4, max_side=4),
    )
)
def test_stacking_undoes_taking_apart(array):
    same(concat_examples(list(array)), array)
    first, second = concat_examples([(row, i) for i, row in enumerate(array)])
    same(first, array)
    same(second, np.arange(len(array)))
    same(concat_examples([{"x": row} for row in array])["x"], array)


@given(st.lists(hnp.arrays(np.int16, hnp.array_shapes(min_dims=2, max_dims=2)), min_size=1))
def test_padding_leaves_every_example_in_its_corner(arrays):
    found = concat_examples(arrays, padding=-7)
    assert found.shape == (len(arrays), *np.max([array.shape for array in arrays], axis=0))
    for place, array in zip(found, arrays, strict=True):
        rows, columns = array.shape
        np.testing.assert_array_equal(place[:rows, :columns], array)
        assert (place[rows:] == -7).all()
        assert (place[:, columns:] == -7).all()
    tensors = concat_examples([torch.from_numpy(array) for array in arrays], padding=-7)
    np.testing.assert_array_equal(tensors.numpy(), found)


RAGGED = [(np.array([1, 2]), 0), (np.array([3]), 1), (np.array([], int), 2)]


def test_padding_of_tuples_as_documented_by_chainer():
    for padding in (100, (100, None)):
        data, label = concat_examples(RAGGED, padding=padding)
        same(data, [[1, 2], [3, 100], [100, 100]])
        same(label, [0, 1, 2])
    with pytest.raises(IndexError):
        concat_examples(RAGGED, padding=(100,))


def test_padding_of_dicts():
    batch = [{"x": x, "y": y} for x, y in RAGGED]
    for padding in (100, {"x": 100, "y": None}):
        found = concat_examples(batch, padding=padding)
        same(found["x"], [[1, 2], [3, 100], [100, 100]])
        same(found["y"], [0, 1, 2])
    with pytest.raises(KeyError):
        concat_examples(batch, padding={"x": 100})


def test_padding_keeps_the_first_element_type():
    same(
        concat_examples([np.array([1], np.int32), np.array([2.9, 3.9])], padding=0),
        np.array([[1, 0], [2, 3]], np.int32),
    )


def test_without_padding_element_types_are_promoted():
    assert concat_examples([np.array([1], np.int32), np.array([2.5])]).dtype == np.float64
    assert concat_examples([np.float32(1), np.float32(2)]).dtype == np.float32


def test_arrays_without_axes_become_one_axis():
    arrays = [np.array(1, np.int32), np.array(2, np.int32)]
    same(concat_examples(arrays), np.array([1, 2], np.int32))
    same(concat_examples(arrays, padding=0), np.array([1, 2], np.int32))


def test_an_array_as_batch_is_copied():
    batch = np.arange(6).reshape(3, 2)
    found = concat_examples(batch)
    same(found, batch)
    assert not np.shares_memory(found, batch)


@pytest.mark.parametrize("batch", [[1, 2], [[1, 2], [3, 4]], [1.5, 2.5], [True, False], ["a", "b"]])
def test_built_in_types_become_what_numpy_makes_of_the_list(batch):
    same(concat_examples(batch), np.asarray(batch))
    same(concat_examples(batch, padding=0), np.asarray(batch))


def test_tuples_inside_an_entry_become_one_array():
    first, second = concat_examples([((1, 2), 3), ((4, 5), 6)])
    same(first, [[1, 2], [4, 5]])
    same(second, [3, 6])


def test_the_first_example_says_how_many_entries_there_are():
    found = concat_examples([(1, 2), (3, 4, 5)])
    assert len(found) == 2
    same(found[1], [2, 4])
    with pytest.raises(IndexError):
        concat_examples([(1, 2), (3,)])
    found = concat_examples([{"x": 1}, {"x": 2, "y": 3}])
    assert list(found) == ["x"]
    with pytest.raises(KeyError):
        concat_examples([{"x": 1}, {"y": 2}])


@pytest.mark.parametrize("batch", [[], (), np.zeros((0, 3))])
def test_an_empty_batch_is_an_error(batch):
    with pytest.raises(ValueError, match="empty"):
        concat_examples(batch)


@pytest.mark.parametrize("library", [np, torch], ids=["numpy", "torch"])
@pytest.mark.parametrize("other", [(3,), (2, 1), (1, 2), (1, 1, 1)])
def test_shapes_must_agree(library, other):
    batch = [library.zeros((2,)), library.zeros(other)]
    with pytest.raises(ValueError, match="differ in shape"):
        concat_examples(batch)


@pytest.mark.parametrize("library", [np, torch], ids=["numpy", "torch"])
def test_padding_needs_equal_numbers_of_axes(library):
    with pytest.raises(ValueError, match="axes"):
        concat_examples([library.zeros((2,)), library.zeros((2, 2))], padding=0)


@pytest.mark.parametrize("padding", [None, 0])
def test_ragged_lists_are_an_error(padding):
    with pytest.raises(ValueError, match="different lengths"):
        concat_examples([[1, 2], [3]], padding=padding)


def test_tensors_stay_tensors():
    found = concat_examples([(torch.ones(2), 1), (torch.zeros(2), 2)])
    assert torch.equal(found[0], torch.tensor([[1.0, 1.0], [0.0, 0.0]]))
    same(found[1], [1, 2])


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu")])
def test_a_torch_device_gives_tensors(device):
    data, label = concat_examples(RAGGED, device, padding=100)
    assert torch.equal(data, torch.tensor([[1, 2], [3, 100], [100, 100]]))
    assert torch.equal(label, torch.tensor([0, 1, 2]))
    assert torch.equal(concat_examples([{"x": 1.5}], device)["x"], torch.tensor([1.5]).double())


@pytest.mark.parametrize("device", [-1, "@numpy"])
def test_the_host_gives_numpy(device):
    same(concat_examples([torch.ones(2)], device), np.ones((1, 2), np.float32))


def test_text_cannot_become_a_tensor():
    with pytest.raises(TypeError):
        concat_examples(["a"], "cpu")


@pytest.mark.parametrize("library", [np, torch], ids=["numpy", "torch"])
def test_the_example_with_other_axes_is_named(library):
    images = [library.zeros((4, 4, 3)), library.zeros((6, 5, 3)), library.zeros((4, 4))]
    pattern = (
        r"entry 0 of example 2 has the shape \(4, 4\), entry 0 of example 0 .*\(4, 4, 3\): pad"
    )
    with pytest.raises(ValueError, match=pattern):
        concat_examples([(image, 0) for image in images], padding=0)
    pattern = r"'x' of example 1 has the shape \(6, 5, 3\), .* \(4, 4, 3\): give padding"
    with pytest.raises(ValueError, match=pattern):
        concat_examples([{"x": image} for image in images])


def test_a_number_beside_vectors_is_named():
    numbers = [np.float32(4), np.zeros(3, np.float32)]
    for column, number in ((numbers, "0"), (numbers[::-1], "1")):
        with pytest.raises(ValueError, match=f"example {number} has a single number") as caught:
            concat_examples(column, padding=-1)
        assert "give padding" not in str(caught.value)
    with pytest.raises(ValueError, match="make arrays of them$"):
        concat_examples([[1], [1, 2]], padding=0)


@pytest.mark.parametrize("axis", [0, 2])
@pytest.mark.parametrize("library", [np, torch], ids=["numpy", "torch"])
def test_padding_of_channels_is_said(library, axis):
    shapes = [[9, 9], [9, 9], [8, 9]]
    for shape, channels in zip(shapes, (3, 3, 1), strict=True):
        shape.insert(axis, channels)
    examples = [library.zeros(tuple(shape)) for shape in shapes]
    with pytest.warns(UserWarning, match="example 2 has 1 channels, example 0 has 3"):
        assert concat_examples(examples, padding=-1)[2].min() == -1
    concat_examples(examples[:2], padding=-1)
