"""What scripts for Pylearn2 do with a DenseDesignMatrix besides iterating over it."""

import numpy as np
import pytest

from iterators import IndexSpace, VectorSpace
from iterators.datasets import (
    DefaultViewConverter,
    DenseDesignMatrix,
    VectorSpacesDataset,
    from_dataset,
)
from iterators.views import GCN, ZCA, Binarize, LeCunLCN, Pipeline, Standardize

DRAW = np.random.default_rng(0)


def rows(count=20, features=5):
    return DRAW.normal(3, 2, (count, features))


# -- preprocessing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("images", [False, True])
def test_whitening_a_dataset(images):
    X = rows(60, 12)
    converter = DefaultViewConverter((2, 2, 3)) if images else None
    data, held_out = (
        DenseDesignMatrix(X=part.copy(), view_converter=converter) for part in (X[:50], X[50:])
    )
    zca = ZCA(filter_bias=0, progress=False)
    zca.apply(data, can_fit=True)
    np.testing.assert_allclose(np.cov(data.X.T, bias=True), np.eye(12), atol=1e-9)
    values, vectors = np.linalg.eigh(np.cov(X[:50].T, bias=True))
    whitening = vectors / np.sqrt(values) @ vectors.T
    np.testing.assert_allclose(data.X, (X[:50] - X[:50].mean(0)) @ whitening, atol=1e-9)
    zca.apply(held_out)
    np.testing.assert_allclose(held_out.X, (X[50:] - X[:50].mean(0)) @ whitening, atol=1e-9)
    with pytest.raises(RuntimeError, match="can_fit"):
        ZCA(progress=False).apply(data)


@pytest.mark.parametrize(
    "step",
    [
        GCN(progress=False),
        Standardize(),
        Binarize(3),
        LeCunLCN(progress=False, kernel_size=3),
        Pipeline([Standardize(), GCN(progress=False)]),
    ],
)
def test_every_preprocess_takes_a_dataset(step):
    from iterators import ImageView

    X = rows(6, 12)
    images = X.reshape(6, 3, 2, 2)
    view = ImageView("bchw", images.copy())
    step.apply(view, True)
    converter = DefaultViewConverter((2, 2, 3), ("b", "c", 0, 1))
    data = DenseDesignMatrix(X=X.copy(), view_converter=converter, y=np.arange(6))
    data.apply_preprocessor(step, can_fit=True)
    np.testing.assert_allclose(data.X, view.forward_get("bf"))
    made = DenseDesignMatrix(
        X=X.copy(), view_converter=converter, preprocessor=step, fit_preprocessor=True
    )
    np.testing.assert_array_equal(made.X, data.X)
    assert made.preprocessor is step


def test_bytes_become_numbers_and_batches_follow():
    data = DenseDesignMatrix(X=np.array([[0, 255], [255, 0]], np.uint8))
    Standardize(std_eps=0).apply(data, can_fit=True)
    assert data.X.dtype == np.float32 and data.get_data_specs()[0].dtype == "float32"
    np.testing.assert_allclose(data.iterator(batch_size=2).next(), data.X)


def test_a_preprocess_of_ones_own():
    class Half:
        def apply(self, dataset, can_fit=False):
            dataset.X = dataset.X[:, ::2]

    data = DenseDesignMatrix(X=rows(4, 5), preprocessor=Half())
    assert data.X.shape == (4, 3) and data.get_data_specs()[0] == VectorSpace(3)
    with pytest.raises(ValueError, match="fit_preprocessor"):
        DenseDesignMatrix(X=rows(), fit_preprocessor=True)


# -- what is stored --------------------------------------------------------------------------------


def test_other_rows_may_be_assigned():
    data = DenseDesignMatrix(X=rows(4, 5), y=np.arange(4), y_labels=4)
    data.X = np.zeros((4, 2), np.float32)
    assert data.get_data_specs()[0].components[0] == VectorSpace(2, dtype="float32")
    assert data.iterator(batch_size=4).next().shape == (4, 2)
    data.set_design_matrix(rows(4, 7))
    data.y = np.array([3, 2, 1, 0])
    assert data.y.tolist() == [[3], [2], [1], [0]] and data.num_examples == 4
    with pytest.raises(ValueError, match="y of shape"):
        data.X = rows(3, 7)
    with pytest.raises(ValueError, match="y_labels=4"):
        data.y = np.arange(4) + 1
    with pytest.raises(TypeError, match="numpy array"):
        data.X = [[1.0]]
    assert data.X.shape == (4, 7)
    data.y = None
    assert not data.has_targets() and data.y_labels is None
    data.X = rows(3, 7)


def test_rows_must_fit_the_view_converter():
    data = DenseDesignMatrix(topo_view=np.zeros((3, 2, 2, 1)))
    with pytest.raises(ValueError, match="images have 4"):
        data.X = rows(3, 5)
    data.view_converter = None
    data.X = rows(3, 5)
    with pytest.raises(ValueError, match="view_converter="):
        data.get_topo_batch_axis()


def test_topological_views():
    data = DenseDesignMatrix(X=rows(3, 4), y=np.arange(3))
    topo = DRAW.random((2, 4, 4, 3))
    data.set_topological_view(topo, axes=("c", 0, 1, "b"))
    assert data.get_topo_batch_axis() == 3 and data.X.shape == (3, 32)
    np.testing.assert_array_equal(data.get_topological_view(), topo)
    np.testing.assert_array_equal(data.get_weights_view(data.X), topo)
    data.set_view_converter_axes(("b", "c", 0, 1))
    assert data.get_topological_view().shape == (3, 2, 4, 4) and data.get_topo_batch_axis() == 0
    with pytest.raises(ValueError, match="4 axes"):
        data.set_topological_view(np.zeros((3, 4)))


def test_adjusting_for_a_viewer():
    data = DenseDesignMatrix(X=rows())
    X = np.array([[1.0, -4.0], [2.0, 0.0]])
    assert data.adjust_for_viewer(X).tolist() == [[0.25, -1], [0.5, 0]]
    assert data.adjust_to_be_viewed_with(X, X / 2).tolist() == [[0.5, -1], [1, 0]]
    assert data.adjust_to_be_viewed_with(X, X, per_example=True).tolist() == [[0.25, -1], [1, 0]]
    assert data.adjust_for_viewer(np.zeros((2, 2))).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("labels", [None, 5])
def test_one_hot_targets(labels):
    data = DenseDesignMatrix(X=rows(3), y=np.array([1, 3, 1]), y_labels=labels)
    data.convert_to_one_hot(min_class=1)
    count = 3 if labels is None else 4
    np.testing.assert_array_equal(data.y, np.eye(count)[[0, 2, 0]])
    assert data.get_data_specs()[0].components[1] == VectorSpace(count)
    with pytest.raises(ValueError, match="integers, one a row"):
        data.convert_to_one_hot()


@pytest.mark.parametrize("y", [None, np.zeros(3), np.zeros((3, 2), int), np.array([-1, 0, 1])])
def test_targets_that_are_no_classes(y):
    with pytest.raises(ValueError, match="class"):
        DenseDesignMatrix(X=rows(3), y=y).convert_to_one_hot()


# -- batches and parts -----------------------------------------------------------------------------


def test_topo_and_targets():
    topo, y = DRAW.random((5, 2, 2, 3)), np.arange(5)
    data = DenseDesignMatrix(topo_view=topo, y=y, y_labels=5)
    images, classes = data.iterator("sequential", batch_size=2, topo=True, targets=True).next()
    np.testing.assert_array_equal(images, topo[:2])
    assert classes.tolist() == [[0], [1]]
    assert data.iterator(batch_size=5, topo=False, targets=False).next().shape == (5, 12)
    data.set_iteration_scheme("sequential", batch_size=5, topo=True)
    (batch,) = data
    np.testing.assert_array_equal(batch, topo)
    with pytest.raises(ValueError, match="data_specs says all"):
        data.iterator(batch_size=2, data_specs=data.get_data_specs(), topo=True)
    bare = DenseDesignMatrix(X=rows())
    for wrong in ({"topo": True}, {"targets": True}):
        with pytest.raises(ValueError, match="this dataset"):
            bare.iterator(batch_size=2, **wrong)
    with pytest.raises(TypeError):
        fields = VectorSpacesDataset(rows(), (VectorSpace(5), "features"))
        fields.iterator(batch_size=2, topo=True)


@pytest.mark.parametrize(
    ("arguments", "train"),
    [
        ({"train_size": 7}, 7),
        ({"train_size": 2}, 2),
        ({"train_size": 10}, 10),
        ({"train_prop": 0.5}, 5),
        ({"train_prop": 0.25}, 2),
        ({"train_prop": 1}, 10),
    ],
)
def test_holding_out(arguments, train):
    data = DenseDesignMatrix(X=rows(10), y=np.arange(10))
    first, second = data.split_dataset_holdout(**arguments)
    np.testing.assert_array_equal(first, data.X[:train])
    np.testing.assert_array_equal(second, data.X[train:])


@pytest.mark.parametrize(
    "arguments",
    [{}, {"train_size": 3, "train_prop": 0.5}, {"train_size": 11}, {"train_prop": 1.5}],
)
def test_what_cannot_be_held_out(arguments):
    with pytest.raises(ValueError, match="train_"):
        DenseDesignMatrix(X=rows(10)).split_dataset_holdout(**arguments)


def test_folds():
    data = DenseDesignMatrix(X=rows(10), y=np.arange(10))
    data.set_iteration_scheme("shuffled_sequential", batch_size=3, targets=True)
    folds = data.split_dataset_nfolds(5)
    assert [len(fold) for fold in folds] == [2] * 5
    np.testing.assert_array_equal(np.concatenate(folds), data.X)
    for count in (7, 11):
        with pytest.raises(ValueError, match="nfolds"):
            data.split_dataset_nfolds(count)


@pytest.mark.parametrize("images", [False, True])
@pytest.mark.parametrize("y", [None, np.arange(12)])
def test_a_dataset_of_some_rows(images, y):
    topo = DRAW.random((12, 2, 3, 3))
    labels = None if y is None else 12
    whole = DenseDesignMatrix(
        topo_view=topo if images else None,
        X=None if images else topo.reshape(12, 18),
        y=y,
        y_labels=labels,
    )
    part = from_dataset(whole, 5)
    assert len(part) == 5 and part.get_data_specs() == whole.get_data_specs()
    start = np.flatnonzero((part.X[0] == whole.X).all(1))[0]
    np.testing.assert_array_equal(part.X, whole.X[start : start + 5])
    if y is not None:
        assert part.y[:, 0].tolist() == list(range(start, start + 5))
        assert part.get_data_specs()[0].components[1] == IndexSpace(12, 1)
    if images:
        assert part.get_topological_view().shape == (5, 2, 3, 3)
        assert whole.get_batch_topo(2).shape == (2, 2, 3, 3)
        assert len(whole.get_batch_topo(2, include_labels=True)) == 2
    part.X[:] = 0
    assert whole.X.any(axis=1).all()
    with pytest.raises(ValueError, match="13"):
        from_dataset(whole, 13)
