"""Functions over examples, called when an example is asked for."""

import pytest

from iterators import TransformDataset


def test_the_function_is_called_for_every_example_that_is_asked_for():
    seen = []

    def transform(x):
        seen.append(x)
        return -x

    dataset = TransformDataset([10, 20, 30], transform)
    assert len(dataset) == 3
    assert seen == []
    assert dataset[1:] == [-20, -30]
    assert dataset[-1] == -30
    assert dataset[[0, 0]] == [-10, -10]
    assert seen == [20, 30, 30, 10, 10]
    with pytest.raises(IndexError):
        dataset[3]


def test_the_base_is_asked_once_for_a_batch():
    class Base:
        def __len__(self):
            return 4

        def __getitems__(self, indices):
            return [len(indices)] * len(indices)

    assert TransformDataset(Base(), lambda x: x + 1)[:] == [5, 5, 5, 5]
