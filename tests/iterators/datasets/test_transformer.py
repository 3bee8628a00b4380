"""Features that are transformed on the way, as Pylearn2's TransformerDataset does it."""

import numpy as np
import pytest

from iterators import CompositeSpace, Conv2DSpace, VectorSpace
from iterators.datasets import DefaultViewConverter, DenseDesignMatrix, TransformerDataset


class Halves:
    """A block of Pylearn2: rows in, shorter rows out."""

    def perform(self, X):
        return X[:, :2] / 2

    def get_input_space(self):
        return VectorSpace(4)

    def get_output_space(self):
        return VectorSpace(2)


def raw():
    converter = DefaultViewConverter((2, 2, 1))
    X = np.arange(20.0).reshape(5, 4)
    return DenseDesignMatrix(X=X, y=np.arange(5), view_converter=converter)


def test_features_are_transformed_and_targets_are_not():
    data = TransformerDataset(raw(), Halves())
    specs = (CompositeSpace([VectorSpace(1), VectorSpace(2)]), ("targets", "features"))
    iterator = data.iterator("shuffled_sequential", batch_size=2, rng=3, data_specs=specs)
    assert (iterator.batch_size, iterator.num_batches, iterator.num_examples) == (2, 3, 5)
    assert iterator.stochastic and iterator.uneven and iterator is iter(iterator)
    for classes, features in iterator:
        np.testing.assert_array_equal(features, raw().X[classes[:, 0].astype(int), :2] / 2)
    assert data.get_data_specs()[0].components[0] == VectorSpace(2)
    assert len(data) == 5 and data.has_targets() and data.get_targets().shape == (5, 1)


def test_without_data_specs_the_features_are_what_the_transformer_gives():
    data = TransformerDataset(raw(), lambda X: X.sum(1, keepdims=True))
    first = data.iterator(batch_size=3).next()
    assert first.tolist() == [[6], [22], [38]]
    (again,) = next(data.iterator(batch_size=3, return_tuple=True))
    assert again.tolist() == first.tolist()
    twice = TransformerDataset(TransformerDataset(raw(), Halves()), lambda X: X + 1)
    assert twice.iterator(batch_size=5).next()[0].tolist() == [1, 1.5]


def test_a_transformer_that_preserves_the_space_gets_images_as_images():
    seen = []

    def negative(images):
        seen.append(images.shape)
        return -images

    data = TransformerDataset(raw(), negative, space_preserving=True)
    space = Conv2DSpace((2, 2), num_channels=1, axes=("c", 0, 1, "b"))
    batch = data.iterator(batch_size=5, data_specs=(space, "features")).next()
    assert seen == [(1, 2, 2, 5)] and batch[0, 1, 1].tolist() == [-3, -7, -11, -15, -19]
    assert data.get_topological_view(raw().X).shape == (5, 2, 2, 1)
    assert data.get_data_specs() == raw().get_data_specs()
    assert np.abs(data.adjust_for_viewer(raw().X)).max() == 1


def test_what_does_not_fit_is_an_error():
    data = TransformerDataset(raw(), Halves())
    with pytest.raises(ValueError, match="2"):
        data.iterator(batch_size=2, data_specs=(VectorSpace(3), "features")).next()
    with pytest.raises(ValueError, match="weights"):
        data.iterator(batch_size=2, data_specs=(VectorSpace(3), "weights"))
    with pytest.raises(NotImplementedError, match="space_preserving"):
        data.get_topological_view(raw().X)
    with pytest.raises(NotImplementedError, match="no get_output_space"):
        TransformerDataset(raw(), abs).get_data_specs()
    with pytest.raises(TypeError, match="perform"):
        TransformerDataset(raw(), 3)
    wrong = TransformerDataset(raw(), lambda X: X[:, :1], space_preserving=True)
    with pytest.raises(ValueError, match="1"):
        wrong.iterator(batch_size=2, data_specs=(VectorSpace(4), "features")).next()
    with pytest.raises(AttributeError, match="colour"):
        data.iterator(batch_size=2).colour  # noqa: B018


def test_random_batches():
    X, y = TransformerDataset(raw(), Halves()).get_batch_design(2, include_labels=True)
    np.testing.assert_array_equal(X, raw().X[y[:, 0], :2] / 2)
    assert TransformerDataset(raw(), Halves()).get_batch_design(4).shape == (4, 2)
