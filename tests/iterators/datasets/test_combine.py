"""Datasets made of datasets: tuples, dicts and one after the other."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators import (
    ConcatenatedDataset,
    DatasetMixin,
    DictDataset,
    NDArrayIter,
    SerialIterator,
    SubDataset,
    TransformDataset,
    TupleDataset,
    split_dataset,
)
from iterators.datasets.gluon import ArrayDataset as GluonArrayDataset
from iterators.datasets.gluon import SimpleDataset
from iterators.datasets.tabular import from_data
from iterators.testing.strategies import slices
from iterators.torch import MapDataset

SLICES = slices()
VALUES = st.lists(st.integers(), max_size=6)


class Batched(DatasetMixin):
    """A dataset that counts how often it is asked."""

    def __init__(self, values):
        self.values = values
        self.calls = 0

    def __len__(self):
        return len(self.values)

    def get_example(self, i):
        raise AssertionError("asked for a single example")

    def __getitems__(self, indices):
        self.calls += 1
        return [self.values[i] for i in indices]


@given(VALUES, SLICES, st.data())
def test_tuples_and_dicts_of_examples(values, index, data):
    other = [str(value) for value in values]
    pairs = TupleDataset(values, other)
    named = DictDataset(x=values, y=other)
    assert len(pairs) == len(named) == len(values)
    rows = list(zip(values, other, strict=True))
    assert pairs[index] == rows[index]
    assert named[index] == [{"x": x, "y": y} for x, y in rows[index]]
    assert list(pairs) == rows
    places = data.draw(
        st.lists(st.integers(-len(values), len(values) - 1)) if values else st.just([])
    )
    assert pairs.__getitems__(places) == [rows[i] for i in places]
    assert named.__getitems__(places) == [named[i] for i in places]


def test_other_indices_are_passed_on_to_the_members():
    pairs = TupleDataset(np.arange(5), np.arange(5) * 10)
    first, second = pairs[[3, 0]]
    assert first.tolist() == [3, 0]
    assert second.tolist() == [30, 0]
    assert pairs[np.int64(-1)] == (4, 40)
    assert DictDataset(x=np.arange(5))[[4, 1]]["x"].tolist() == [4, 1]
    with pytest.raises(IndexError):
        pairs[5]
    with pytest.raises(TypeError):
        TupleDataset([1, 2])[[0]]


def test_slices_of_arrays_are_not_copied():
    array = np.arange(6).reshape(3, 2)
    assert all(np.shares_memory(row, array) for (row,) in TupleDataset(array)[:])
    assert np.shares_memory(TupleDataset(array)[1][0], array)


def test_members_must_have_equal_lengths():
    for build in (TupleDataset, DictDataset):
        with pytest.raises(ValueError, match="at least one"):
            build()
    with pytest.raises(ValueError, match="dataset 2 has 1 examples"):
        TupleDataset([1, 2], [3, 4], [5])
    with pytest.raises(ValueError, match="'b' has 1 examples"):
        DictDataset(a=[1, 2], b=[3])


@given(st.lists(VALUES, max_size=4), SLICES, st.data())
def test_one_behind_the_other_is_the_sum_of_the_lists(parts, index, data):
    whole = sum(parts, [])
    dataset = ConcatenatedDataset(*parts)
    assert len(dataset) == len(whole)
    assert list(dataset) == whole
    assert dataset[index] == whole[index]
    places = data.draw(st.lists(st.integers(0, len(whole) - 1)) if whole else st.just([]))
    assert dataset[places] == [whole[i] for i in places]


@pytest.mark.parametrize("index", [-1, 5, np.int64(-1), [0, -1], [5]])
def test_one_behind_the_other_has_no_negative_indices(index):
    with pytest.raises(IndexError, match="out of range"):
        ConcatenatedDataset([1, 2], [3, 4, 5])[index]


def test_every_member_is_asked_once_for_a_batch():
    members = [Batched([0, 1, 2]), Batched([3, 4]), Batched([5])]
    dataset = ConcatenatedDataset(*members)
    assert dataset[[4, 0, 3, 1, 0]] == [4, 0, 3, 1, 0]
    assert [member.calls for member in members] == [1, 1, 0]
    pairs = TupleDataset(members[0], members[0])
    assert pairs.__getitems__([2, 1]) == [(2, 2), (1, 1)]


def test_combined_datasets_can_be_pickled():
    for dataset in (
        TupleDataset([1, 2], "ab"),
        DictDataset(x=[1, 2]),
        ConcatenatedDataset([1], [2]),
    ):
        assert pickle.loads(pickle.dumps(dataset))[:] == dataset[:]


class Labelled:
    """Like a pandas Series after a random split: `[i]` goes by its own index, `iloc` does not."""

    def __init__(self, values):
        self.values, self.iloc = values, values

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return self.values[::-1][index]

    def to_numpy(self):
        return np.array(self.values)

    def __array__(self, *_, **__):
        return self.to_numpy()


def series():
    """One of pandas as well, where it is installed."""
    found = [Labelled([10, 11, 12, 13, 14, 15])]
    try:
        import pandas as pd
    except ImportError:
        return found
    return [*found, pd.Series(found[0].values, index=[5, 4, 3, 2, 1, 0])]


@pytest.mark.parametrize("labels", series())
def test_rows_of_series_are_found_by_position(labels):
    numbers, right = np.arange(6), [10, 11, 12, 13, 14, 15]
    pairs = list(zip(range(6), right, strict=True))
    for data, expected in (
        (TupleDataset(numbers, labels), pairs),
        (DictDataset(x=labels), [{"x": value} for value in right]),
        (ConcatenatedDataset(labels), right),
        (TransformDataset(labels, int), right),
        (SubDataset(labels, 0, 6), right),
        (SubDataset(right, 0, 6, order=Labelled([0, 1, 2, 3, 4, 5])), right),
        (GluonArrayDataset(numbers, labels), pairs),
        (SimpleDataset(labels), right),
    ):
        assert [data[i] for i in range(6)] == data[:] == expected
        assert data.__getitems__([4, 1]) == [expected[4], expected[1]]
    table = from_data({"x": labels})
    assert [row["x"] for row in (table[i] for i in range(6))] == right
    loop = SerialIterator(labels, 6, repeat=False, shuffle=False)
    assert loop.next() == right
    with NDArrayIter(numbers, labels, batch_size=6) as provider:
        assert provider.next().label[0].tolist() == right


def test_what_gives_no_examples_has_no_parts():
    with pytest.raises(TypeError, match="a set gives no example by its number"):
        split_dataset({1, 2, 3}, 2)


@pytest.mark.parametrize("method", ["get_example", "__getitem__"])
@pytest.mark.parametrize(
    ("kind", "make"),
    [
        (TupleDataset, lambda kind: kind(range(4))),
        (DictDataset, lambda kind: kind(x=range(4))),
        (ConcatenatedDataset, lambda kind: kind(range(2), range(2, 4))),
        (TransformDataset, lambda kind: kind(range(4), float)),
        (SubDataset, lambda kind: kind(range(8), 2, 6)),
        (MapDataset, lambda kind: kind(range(4))),
    ],
)
def test_an_example_of_a_subclass_is_read_in_batches_as_well(kind, make, method):
    if not hasattr(kind, method):
        pytest.skip("it has no such method")

    def changed(self, i):
        return "changed", getattr(kind, method)(self, i)

    # Also where the method comes from another base, and below a class that has changed it.
    other = type("Other", (), {method: changed})
    for own in (type("Own", (kind,), {method: changed}), type("Both", (other, kind), {})):
        below = type("Below", (own,), {})
        for data in (make(own), make(below)):
            assert data.__getitems__([3, 1]) == [data[3], data[1]]
            assert data[3] == ("changed", make(kind)[3])
            assert SerialIterator(data, 2, shuffle=False).next() == [data[0], data[1]]
    many = type("Many", (kind,), {method: changed, "__getitems__": lambda self, indices: "many"})
    assert make(many).__getitems__([1]) == "many"
    assert make(type("Same", (kind,), {})).__getitems__.__func__ is kind.__getitems__


def test_a_slice_is_changed_once_by_a_method_that_goes_on_to_the_base():
    class Own(SubDataset):
        def __getitem__(self, index):
            examples = super().__getitem__(index)
            if isinstance(index, slice):
                return [example + 100 for example in examples]
            return examples + 100

    data = Own(range(8), 2, 6)
    assert data[1:3] == data.__getitems__([1, 2]) == [data[1], data[2]] == [103, 104]


def test_an_example_cannot_be_one_of_the_many_that_it_makes():
    with pytest.raises(TypeError, match="Own.get_example calls __getitems__ of the object"):

        class Own(SubDataset):
            def get_example(self, i):
                return self.__getitems__([i])[0]

    class Other(SubDataset):
        def get_example(self, i):
            return super().__getitems__([i])[0] + 100

    assert Other(range(8), 2, 6)[:2] == [102, 103]
