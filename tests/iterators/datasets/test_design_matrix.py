"""Datasets in memory, asked for batches in the forms and modes of Pylearn2."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from iterators import (
    CompositeSpace,
    Conv2DSpace,
    IndexSpace,
    NullSpace,
    VectorSpace,
    concat_examples,
    get_cross_validation_datasets,
    split_dataset_random,
)
from iterators.core.layout import Layout
from iterators.datasets import (
    DefaultViewConverter,
    DenseDesignMatrix,
    TransformerDataset,
    VectorSpacesDataset,
)
from iterators.spaces.spec import FieldSpec

torch = pytest.importorskip("torch")

BC01 = ("b", "c", 0, 1)


def dataset(count=10, **arguments):
    X = np.arange(count * 12.0).reshape(count, 12)
    arguments.setdefault("view_converter", DefaultViewConverter((2, 2, 3)))
    return DenseDesignMatrix(X=X, y=np.arange(count) % 4, y_labels=4, **arguments)


def test_the_default_is_the_features():
    batches = list(dataset().iterator(batch_size=4))
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert np.shares_memory(batches[0], dataset().X) is False
    data = dataset()
    assert np.shares_memory(next(data.iterator(batch_size=4)), data.X)


def test_rows_hold_channel_after_channel():
    data = dataset()
    space = Conv2DSpace((2, 2), num_channels=3, axes=BC01)
    images = next(data.iterator(batch_size=1, data_specs=(space, "features")))
    np.testing.assert_array_equal(images[0], np.arange(12).reshape(3, 2, 2))
    vectors = next(data.iterator(batch_size=1, data_specs=(VectorSpace(12), "features")))
    np.testing.assert_array_equal(vectors[0], np.arange(12))
    without = dataset(view_converter=None)
    other = next(without.iterator(batch_size=1, data_specs=(space, "features")))
    np.testing.assert_array_equal(other[0, 0], [[0, 3], [6, 9]])


@given(st.permutations(["b", "c", 0, 1]), st.permutations(["b", "c", 0, 1]))
def test_images_in_are_images_out(first, second):
    space = Conv2DSpace((2, 5), num_channels=3, axes=first)
    shape = space.get_origin_batch(7).shape
    topo = np.random.default_rng(0).random(shape)
    data = DenseDesignMatrix(topo_view=topo, axes=first)
    np.testing.assert_array_equal(data.get_topological_view(), topo)
    wanted = Conv2DSpace((2, 5), num_channels=3, axes=second)
    batch = next(data.iterator(batch_size=7, data_specs=(wanted, "features")))
    np.testing.assert_array_equal(batch, space.np_format_as(topo, wanted))


def test_several_sources_and_repeats():
    space = Conv2DSpace((2, 2), num_channels=3, axes=("c", 0, 1, "b"))
    parts = CompositeSpace([space, VectorSpace(4), VectorSpace(12), NullSpace(), IndexSpace(4, 1)])
    sources = ("features", "targets", "features", "", "targets")
    images, hot, rows, nothing, labels = next(
        dataset().iterator(batch_size=3, data_specs=(parts, sources))
    )
    assert images.shape == (3, 2, 2, 3) and nothing is None
    np.testing.assert_array_equal(hot, np.eye(4)[:3])
    np.testing.assert_array_equal(rows, dataset().X[:3])
    assert labels.tolist() == [[0], [1], [2]]


def test_nested_requests_give_nested_tuples():
    rows, hot = VectorSpace(12), VectorSpace(4)
    specs = (
        CompositeSpace([CompositeSpace([rows, hot]), NullSpace(), CompositeSpace([rows])]),
        (("features", "targets"), "", ("features",)),
    )
    for data in (dataset(), TransformerDataset(dataset(), lambda x: x)):
        (x, y), nothing, (again,) = next(data.iterator(batch_size=3, data_specs=specs))
        np.testing.assert_array_equal(x, dataset().X[:3])
        np.testing.assert_array_equal(y, np.eye(4)[:3])
        np.testing.assert_array_equal(again, x)
        assert nothing is None


def test_return_tuple():
    one = (CompositeSpace([VectorSpace(12)]), ("features",))
    assert isinstance(next(dataset().iterator(batch_size=3, data_specs=one)), np.ndarray)
    for specs in (one, None):
        (x,) = next(dataset().iterator(batch_size=3, data_specs=specs, return_tuple=True))
        assert x.shape == (3, 12)


def test_wrong_requests():
    with pytest.raises(ValueError, match="'weights'"):
        dataset().iterator(batch_size=3, data_specs=(VectorSpace(12), "weights"))
    with pytest.raises(ValueError, match="mode"):
        dataset().iterator("alphabetical", batch_size=3)
    with pytest.raises(ValueError, match="rng"):
        dataset().iterator("sequential", batch_size=3, rng=1)
    with pytest.raises(ValueError, match=r"'features' does not fit into .*dim=10.*12 elements"):
        dataset().iterator(batch_size=3, data_specs=(VectorSpace(10), "features"))
    with pytest.raises(ValueError, match="'weights'"):
        dataset().get(("weights",), slice(0, 1))


def test_the_datasets_generator_goes_on():
    def epochs(data, rng=None):
        return [
            np.concatenate(list(data.iterator("shuffled_sequential", 4, rng=rng)))[:, 0].tolist()
            for _ in range(2)
        ]

    first, second = epochs(dataset())
    assert first != second and epochs(dataset()) == [first, second]
    first, second = epochs(dataset(), rng=5)
    assert first == second
    assert epochs(dataset(rng=5))[0] == first


def test_attributes_of_the_iterator():
    iterator = dataset().iterator("sequential", batch_size=4)
    assert (iterator.batch_size, iterator.num_batches, iterator.num_examples) == (4, 3, 10)
    assert iterator.uneven and not iterator.stochastic
    assert dataset().iterator("random_uniform", 4, 2).stochastic


def test_iteration_scheme():
    data = dataset()
    data.set_iteration_scheme("even_sequential", batch_size=4)
    assert [len(batch) for batch in data] == [4, 4] and len(data) == 10


def test_data_specs_of_a_design_matrix():
    features, targets = VectorSpace(12), IndexSpace(4, 1)
    assert dataset().get_data_specs() == (
        CompositeSpace([features, targets]),
        ("features", "targets"),
    )
    assert DenseDesignMatrix(X=np.zeros((3, 12))).get_data_specs() == (features, "features")
    labels = DenseDesignMatrix(X=np.zeros((3, 2), int), X_labels=9)
    assert labels.get_data_specs() == (IndexSpace(9, 2), "features")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, ValueError),
        ({"X": np.zeros((2, 4)), "topo_view": np.zeros((2, 2, 2, 1))}, ValueError),
        ({"X": np.zeros(4)}, ValueError),
        ({"topo_view": np.zeros((2, 4))}, ValueError),
        ({"X": np.zeros((2, 4)), "y": np.zeros(3)}, ValueError),
        ({"X": np.zeros((2, 4)), "y_labels": 3}, ValueError),
        ({"X": np.zeros((2, 4)), "y": np.array([0, 3]), "y_labels": 3}, ValueError),
        ({"X": np.zeros((2, 4)), "y": np.array([0, -1]), "y_labels": 3}, ValueError),
        ({"X": np.zeros((2, 4)), "y": np.zeros(2), "y_labels": 3}, TypeError),
        ({"X": np.zeros((2, 4)), "view_converter": DefaultViewConverter((2, 2, 3))}, ValueError),
    ],
)
def test_wrong_data(arguments, error):
    with pytest.raises(error):
        DenseDesignMatrix(**arguments)


def test_vector_spaces_dataset():
    image = Conv2DSpace((2, 2), num_channels=1, axes=("c", 0, 1, "b"))
    space = CompositeSpace([image, VectorSpace(3, sparse=True)])
    x, y = np.arange(20.0).reshape(1, 2, 2, 5), scipy.sparse.csr_matrix(np.eye(5, 3))
    data = VectorSpacesDataset((x, y), (space, ("features", "targets")))
    assert data.get_num_examples() == 5 and data.get_data_specs()[0] is space
    batches = list(data.iterator("shuffled_sequential", batch_size=2))
    assert [batch[0].shape for batch in batches] == [(1, 2, 2, 2)] * 2 + [(1, 2, 2, 1)]
    joined = np.concatenate([batch[0] for batch in batches], axis=-1)
    np.testing.assert_array_equal(np.sort(joined[0, 0, 0]), x[0, 0, 0])
    dense = next(data.iterator(batch_size=2, data_specs=(VectorSpace(3), "targets")))
    np.testing.assert_array_equal(dense, np.eye(2, 3))


@pytest.mark.parametrize(
    ("data", "specs", "error"),
    [
        (np.zeros((2, 4)), (VectorSpace(3), "features"), ValueError),
        (
            (np.zeros((2, 3)), np.zeros((3, 3))),
            (CompositeSpace([VectorSpace(3)] * 2), ("a", "b")),
            AssertionError,
        ),
        (
            (np.zeros((2, 3)), np.zeros((2, 3))),
            (CompositeSpace([VectorSpace(3)] * 2), ("a", "a")),
            AssertionError,
        ),
        (
            ((np.zeros((2, 3)),),),
            (CompositeSpace([CompositeSpace([VectorSpace(3)])]), (("a",),)),
            AssertionError,
        ),
    ],
)
def test_wrong_data_of_a_vector_spaces_dataset(data, specs, error):
    with pytest.raises(error):
        VectorSpacesDataset(data, specs)


def test_even_sequences_of_a_dataset():
    data = VectorSpacesDataset(np.zeros((4, 3)), (VectorSpace(3), "features"))
    assert [len(batch) for batch in data.iterator("even_sequences", batch_size=3)] == [3, 1]


@pytest.mark.parametrize("wrong", [scipy.sparse.eye(3, format="csr"), torch.eye(3), [[1.0]]])
def test_a_dense_design_matrix_holds_dense_arrays(wrong):
    with pytest.raises(TypeError):
        DenseDesignMatrix(X=wrong)
    with pytest.raises(TypeError):
        DenseDesignMatrix(X=np.zeros((3, 3)), y=wrong)


def test_nothing_may_be_stored_more_than_once():
    specs = CompositeSpace([NullSpace(), VectorSpace(2), NullSpace()]), ("", "features", "")
    data = VectorSpacesDataset((None, np.zeros((3, 2)), None), specs)
    first, features, last = next(data.iterator(batch_size=2))
    assert first is last is None and features.shape == (2, 2)
    with pytest.raises(ValueError, match="holds the sequences"):
        data.iterator("even_sequences", 2, data_specs=(NullSpace(), ""))


@pytest.mark.parametrize("axes", [("b", "c", 0, 1), ("c", 0, 1, "b")])
def test_stored_images_of_other_axes_and_stored_tensors_convert_alike(axes):
    """`convert_stored` for rows, images that lack their only channel, and any other axes."""
    image = Conv2DSpace((2, 3), channels=1, axes=axes)
    x = np.arange(24.0).reshape(4, 2, 3)
    for make in (np.array, torch.tensor):
        grey = image.convert_stored(make(x), FieldSpec(Layout("bhw", h=2, w=3), "float64"))
        assert image.np_format_as(np.asarray(grey), VectorSpace(6)).tolist() == (
            x.reshape(4, 6).tolist()
        )
        rows = FieldSpec(Layout("bf", f_order="whc", h=2, w=3, c=1), "float64")
        stored = make(x.transpose(0, 2, 1).reshape(4, 6))
        np.testing.assert_array_equal(image.convert_stored(stored, rows), np.asarray(grey))
        deep = FieldSpec(Layout("dbf", d=2, f=3), "float64")
        found = VectorSpace(6).convert_stored(make(x.transpose(1, 0, 2)), deep)
        np.testing.assert_array_equal(found, x.reshape(4, 6))
        with pytest.raises(ValueError):
            VectorSpace(5).convert_stored(make(x), FieldSpec(Layout("bhw", h=2, w=3), "float64"))
    with pytest.raises(ValueError):
        Conv2DSpace((3, 2), channels=1).convert_stored(
            x, FieldSpec(Layout("bhw", h=2, w=3), "float64")
        )


@pytest.mark.parametrize("path", ["iterators.datasets", "iterators.datasets.design_matrix"])
def test_a_dataset_alone_knows_the_spaces(path):
    program = (
        f"from {path} import DenseDesignMatrix\n"
        "import numpy\n"
        "data = DenseDesignMatrix(X=numpy.zeros((4, 3)))\n"
        "print([batch.shape for batch in data.iterator(batch_size=3)])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[(3, 3), (1, 3)]\n", done.stderr


def test_examples_and_parts():
    X, y = np.arange(30.0).reshape(10, 3), np.arange(10)[:, None]
    data = DenseDesignMatrix(X=X, y=y, y_labels=10)
    features, target = data[-1]
    assert features.tolist() == X[9].tolist() and target.tolist() == [9]
    assert [int(target) for _, (target,) in data[2:4]] == [2, 3]
    assert DenseDesignMatrix(X=X)[4].tolist() == X[4].tolist()
    with pytest.raises(IndexError, match="index 10 is out of range for 10"):
        data[10]
    train, test = split_dataset_random(data, 7, seed=1)
    assert sorted(int(target) for part in (train, test) for _, (target,) in part) == [*range(10)]
    x, targets = concat_examples(test[:])
    assert x.tolist() == X[targets[:, 0]].tolist()
    for train, test in get_cross_validation_datasets(data, 3):
        tested = [int(target) for _, (target,) in test]
        assert sorted([*tested, *(int(target) for _, (target,) in train)]) == [*range(10)]
    with pytest.raises(TypeError, match="TransformerDataset gives no example by its number"):
        split_dataset_random(TransformerDataset(data, abs), 7)


def test_examples_of_several_spaces():
    columns = np.arange(20.0).reshape(2, 10)  # of which the second axis is that of the examples
    space = CompositeSpace((VectorSpace(3), Conv2DSpace((1, 1), channels=2, axes=("c", 0, 1, "b"))))
    data = VectorSpacesDataset(
        (np.arange(30.0).reshape(10, 3), columns.reshape(2, 1, 1, 10)), (space, ("a", "b"))
    )
    one, two = data[3]
    assert one.tolist() == [9, 10, 11] and two.ravel().tolist() == [3, 13]
    train, test = get_cross_validation_datasets(data, 5)[0]
    assert (len(train), len(test)) == (8, 2) and test[1][0].tolist() == [27, 28, 29]
