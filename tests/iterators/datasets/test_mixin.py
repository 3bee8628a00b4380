"""Indexing of datasets by the table of Chainer's `DatasetMixin`."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from iterators import DatasetMixin
from iterators.testing.strategies import slices

SLICES = slices()


class Listed(DatasetMixin):
    """A dataset over a list, which remembers what it was asked for."""

    def __init__(self, values):
        self.values = values
        self.asked = []

    def __len__(self):
        return len(self.values)

    def get_example(self, i):
        self.asked.append(i)
        return self.values[i]


@given(st.lists(st.integers()), SLICES, st.data())
def test_slices_are_lists_of_examples(values, index, data):
    dataset = Listed(values)
    part = dataset[index]
    assert part == values[index]
    assert type(part) is list
    for k, row in enumerate(range(len(values))[index]):
        assert part[k] == dataset[row]
    rows = data.draw(
        st.lists(st.integers(-len(values), len(values) - 1)) if values else st.just([])
    )
    assert dataset[rows] == dataset[np.array(rows, int)] == [values[i] for i in rows]
    mask = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    assert dataset[mask] == [value for value, wanted in zip(values, mask, strict=True) if wanted]
    assert list(dataset) == values


def test_integers_reach_get_example_as_they_are():
    dataset = Listed(list(range(5)))
    index = np.int16(-2)
    assert dataset[index] == 3
    assert dataset.asked[-1] is index
    assert dataset[[np.int8(1), -1]] == [1, 4]
    assert dataset.asked[-2:] == [1, -1]


def test_a_mask_of_another_length_is_an_error():
    for mask in ([True, False], np.zeros(6, bool)):
        with pytest.raises(ValueError, match="mask"):
            Listed(list(range(5)))[mask]


@pytest.mark.parametrize("index", [1.0, "1", None, (0, 1), np.zeros((2, 2)), np.array(1), [1.5]])
def test_other_indices_are_type_errors_raised_by_the_mixin(index):
    dataset = Listed(list(range(5)))
    with pytest.raises(TypeError):
        dataset[index]
    assert dataset.asked == []


def test_out_of_range_is_up_to_get_example():
    with pytest.raises(IndexError):
        Listed([1])[1]
    with pytest.raises(ValueError, match="step"):
        Listed([1])[::0]


def test_a_subclass_must_define_both_methods():
    with pytest.raises(NotImplementedError, match="__len__"):
        len(DatasetMixin())
    with pytest.raises(NotImplementedError, match="get_example"):
        DatasetMixin()[0]


def test_a_subclass_that_replaces_getitem_is_asked_through_it():
    class Own(DatasetMixin):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return index * 2

    assert Own().__getitems__([0, 2]) == [0, 4]


def test_the_loader_of_torch_reads_in_batches():
    class Counting(Listed):
        calls = 0

        def __getitems__(self, indices):
            self.calls += 1
            return super().__getitems__(indices)

    dataset = Counting(list(range(10)))
    batches = [batch.tolist() for batch in DataLoader(dataset, batch_size=4)]
    assert batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert dataset.calls == 3


def test_datasets_can_be_pickled():
    assert pickle.loads(pickle.dumps(DatasetMixin())).__class__ is DatasetMixin
