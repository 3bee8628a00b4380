"""Tables: the rules of Chainer's `TabularDataset`, and laws against a table of plain lists."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from iterators.datasets import TabularDataset, tabular
from iterators.testing.strategies import slices

torch = pytest.importorskip("torch")

SLICES = slices()
MODES = [tuple, dict, None]


class Table(TabularDataset):
    """Columns in lists or arrays; remembers what was read."""

    def __init__(self, size=6, mode=tuple, arrays=False, keys=("a", "b", "c"), offset=0):
        self.size = size
        self._mode = mode
        self._keys = keys if mode is not None else keys[:1]
        columns = [[offset + 100 * k + i for i in range(size)] for k in range(len(self._keys))]
        self.columns = [np.array(column, int) if arrays else column for column in columns]
        self.read = []

    def __len__(self):
        return self.size

    @property
    def keys(self):
        return self._keys

    @property
    def mode(self):
        return self._mode

    def get_examples(self, indices, key_indices):
        self.read.append((indices, key_indices))
        assert indices is None or isinstance(indices, (slice, list))
        found = []
        for k in range(len(self._keys)) if key_indices is None else key_indices:
            column = self.columns[k]
            if indices is not None:
                fancy = isinstance(indices, list) and isinstance(column, list)
                column = [column[i] for i in indices] if fancy else column[indices]
            found.append(column)
        return tuple(found)

    def rows(self):
        return list(zip(*map(list, self.columns), strict=True))


def form(mode, keys, row):
    if mode is tuple:
        return tuple(row)
    return dict(zip(keys, row, strict=True)) if mode is dict else row[0]


def indices(length):
    """Strategy of ``(index for slice, the rows it means)``."""
    mask = st.lists(st.booleans(), min_size=length, max_size=length)
    lists = st.lists(st.integers(-length, length - 1)) if length else st.just([])
    everything = list(range(length))
    return st.one_of(
        SLICES.map(lambda index: (index, everything[index])),
        lists.map(lambda index: (index, [everything[i] for i in index])),
        lists.map(lambda index: (np.array(index, int), [everything[i] for i in index])),
        mask.filter(bool).map(lambda m: (m, [i for i in everything if m[i]])),
        mask.map(lambda m: (np.array(m, bool), [i for i in everything if m[i]])),
    )


@given(st.integers(0, 6), st.sampled_from(MODES), st.booleans(), st.data())
def test_examples_have_the_form_of_the_mode(size, mode, arrays, data):
    table = Table(size, mode, arrays)
    expected = [form(mode, table.keys, row) for row in table.rows()]
    assert list(table) == expected
    index, rows = data.draw(indices(size))
    assert table[index] == [expected[i] for i in rows]
    for i in range(-size, size):
        assert table[i] == expected[i]
    for i in (size, -size - 1):
        with pytest.raises(IndexError):
            table[i]
    fetched = table.fetch()
    if mode is not None:
        fetched = fetched if mode is tuple else tuple(fetched.values())
        assert list(zip(*map(list, fetched), strict=True)) == table.rows()


@given(st.integers(0, 6), st.sampled_from(MODES), st.booleans(), st.data())
def test_slices_of_slices_are_one_index(size, mode, arrays, data):
    table = Table(size, mode, arrays)
    rows = list(range(size))
    view = table
    for _ in range(data.draw(st.integers(1, 3))):
        index, wanted = data.draw(indices(len(rows)))
        view = view.slice[index]
        rows = [rows[i] for i in wanted]
    expected = [form(mode, table.keys, table.rows()[i]) for i in rows]
    assert len(view) == len(rows)
    assert view.keys == table.keys
    assert view.mode is mode
    assert list(view) == view[:] == expected
    assert view.dataset.dataset is table
    table.read.clear()
    view.fetch()
    assert len(table.read) == 1


def test_a_slice_of_a_slice_stays_a_slice():
    table = Table(100)
    table.slice[10:90].slice[::-2].slice[5:8].fetch()
    assert table.read == [(slice(79, 73, -2), None)]
    table.slice[:].fetch()
    assert table.read[-1] == (None, None)
    table.slice[::-1].fetch()
    assert table.read[-1] == (slice(99, None, -1), None)


@pytest.mark.parametrize("mode", MODES)
def test_keys_choose_columns_in_the_order_given(mode):
    table = Table(4, mode)
    for key in ("a", 0, -len(table.keys)):
        view = table.slice[:, key]
        assert view.mode is None
        assert view.keys == ("a",)
        assert view.fetch() == table.columns[0]
    view = table.slice[[2, 0], (0, "a", -1)]
    assert view.mode is (mode or tuple)
    assert view.keys == ("a", "a", table.keys[-1])
    columns = view.astuple().fetch()
    assert columns == ([2, 0], [2, 0], [table.columns[-1][2], table.columns[-1][0]])
    assert view.slice[:, 2].fetch() == columns[2]
    assert view.slice[:1, (2, 0)].astuple()[0] == (columns[2][0], 2)


def test_only_the_chosen_columns_are_read():
    table = Table()
    table.slice[1:3, ("c",)].slice[[0]].fetch()
    assert table.read == [([1], (2,))]


@pytest.mark.parametrize(
    ("item", "error"),
    [
        (3, TypeError),
        (np.int64(3), TypeError),
        ("a", TypeError),
        (slice(0, 1, 0), ValueError),
        ([6], IndexError),
        ([-7], IndexError),
        ([True] * 5, ValueError),
        (np.ones(7, bool), ValueError),
        ([0.5], TypeError),
        ((slice(None), "z"), KeyError),
        ((slice(None), ("a", "z")), KeyError),
        ((slice(None), 3), IndexError),
        ((slice(None), (0, -4)), IndexError),
        ((slice(None), 0.5), TypeError),
        ((slice(None), ["a"]), TypeError),
        ((0, 1, 2), TypeError),
    ],
)
def test_slices_that_mean_nothing_are_errors(item, error):
    with pytest.raises(error):
        Table().slice[item]


def test_booleans_among_integers_are_integers():
    assert Table().slice[[True, 0, 3], "a"].fetch() == [1, 0, 3]


@given(st.integers(0, 6), st.sampled_from(MODES), st.data())
def test_modes_change_the_form_and_nothing_else(size, mode, data):
    table = Table(size, mode)
    rows = table.rows()
    assert list(table.astuple()) == rows
    assert list(table.asdict()) == [form(dict, table.keys, row) for row in rows]
    assert list(table.asdict().astuple()) == rows
    index, wanted = data.draw(indices(size))
    assert list(table.asdict().slice[index]) == list(table.slice[index].asdict())
    assert table.astuple().slice[index][:] == [rows[i] for i in wanted]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.booleans(), st.data())
def test_tables_below_each_other(sizes, arrays, data):
    tables = [Table(n, dict, arrays, offset=1000 * i) for i, n in enumerate(sizes)]
    whole = tables[0].concat(*tables[1:])
    rows = sum((table.rows() for table in tables), [])
    assert len(whole) == len(rows)
    assert whole.mode is dict
    assert list(whole.astuple()) == rows
    index, wanted = data.draw(indices(len(rows)))
    part = whole.slice[index, (2, 0)].astuple()
    assert part[:] == [(rows[i][2], rows[i][0]) for i in wanted]
    for table in tables:
        table.read.clear()
    part.fetch()
    assert all(len(table.read) <= 1 for table in tables)
    if arrays:
        assert all(isinstance(column, np.ndarray) for column in whole.astuple().fetch())


def test_tables_below_each_other_need_the_same_keys():
    with pytest.raises(ValueError, match="table 2"):
        Table().concat(Table(), Table(keys=("a", "c", "b")))


@given(st.integers(0, 5), st.data())
def test_tables_beside_each_other(size, data):
    first, second = Table(size, None), Table(size, dict, keys=("x", "y"), offset=7)
    third = Table(size, tuple, keys=("z",))
    whole = first.join(second, third)
    assert whole.keys == ("a", "x", "y", "z")
    assert whole.mode is dict
    rows = [a + b + c for a, b, c in zip(first.rows(), second.rows(), third.rows(), strict=True)]
    assert list(whole.astuple()) == rows
    index, wanted = data.draw(indices(size))
    keys = data.draw(st.lists(st.integers(0, 3), min_size=1).map(tuple))
    for table in (first, second, third):
        table.read.clear()
    assert whole.slice[index, keys].astuple()[:] == [
        tuple(rows[i][k] for k in keys) for i in wanted
    ]
    for table, own in ((first, {0}), (second, {1, 2}), (third, {3})):
        assert len(table.read) == (1 if own & set(keys) and wanted else 0)


def test_tables_beside_each_other_need_equal_lengths_and_other_keys():
    with pytest.raises(ValueError, match="6 rows"):
        Table(5).join(Table(6, keys=("x",)))
    with pytest.raises(ValueError, match="'b'"):
        Table().join(Table(keys=("x", "b")))
    assert Table(mode=None).join(Table(mode=None, keys=("x",))).mode is tuple


RESULTS = {
    tuple: lambda total, first: (total, first),
    dict: lambda total, first: {"total": total, "first": first, "more": 0},
    None: lambda total, first: total,
}


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("result", MODES)
@pytest.mark.parametrize("mode", MODES)
def test_transforms_take_and_return_every_form(mode, result, batch):
    table = Table(5, mode, arrays=True)
    keys = "total" if result is None else ("total", "first")

    def transform(*columns, **named):
        assert bool(named) == (mode is dict)
        columns = columns or tuple(named.values())
        return RESULTS[result](sum(columns), columns[0])

    new = (table.transform_batch if batch else table.transform)(keys, transform)
    assert table.read == []
    assert new.mode is result
    assert len(new) == 5
    assert new.keys == (("total",) if result is None else ("total", "first"))
    expected = [RESULTS[result](sum(row), row[0]) for row in table.rows()]
    if result is dict:
        expected = [{"total": row["total"], "first": row["first"]} for row in expected]
    assert list(new) == new[:] == expected
    assert new.slice[[3, 1]][:] == [expected[3], expected[1]]
    assert new.slice[:, "total"][:] == [sum(row) for row in table.rows()]


def test_transforms_run_for_the_rows_that_are_asked_for():
    seen = []

    def double(a, b, c):
        seen.append(a)
        return a * 2, b * 2

    table = Table(6).transform(("x", "y"), double)
    assert table.slice[[4, 1], "y"].fetch() == [208, 202]
    assert seen == [4, 1]
    blocks = []

    def block(a, b, c):
        blocks.append(len(a))
        return a

    table = Table(6, arrays=True).transform_batch("x", block)
    table.slice[1:4].fetch()
    table.slice[[0, 5]].fetch()
    table.fetch()
    assert blocks == [3, 2, 6]


@pytest.mark.parametrize("batch", [False, True])
def test_transforms_may_not_change_their_form(batch):
    forms = iter([lambda x: (x,), lambda x: {"x": x}])
    table = Table(2, None)
    table = (table.transform_batch if batch else table.transform)("x", lambda a: next(forms)(a))
    with pytest.raises(ValueError, match="returned a dict, after it had returned a tuple"):
        table.slice[:1].fetch(), table.slice[1:].fetch()


@pytest.mark.parametrize(
    ("keys", "result"), [(("x", "y"), (1,)), ("x", (1, 2)), (("x", "y"), 1), ("x", {"y": 1})]
)
def test_results_must_fit_the_keys(keys, result):
    with pytest.raises(ValueError, match="the transform returned"):
        Table(2).transform(keys, lambda *_: result).fetch()


def test_blocks_must_keep_their_number_of_rows():
    table = Table(4).transform_batch("x", lambda a, b, c: a[:-1])
    for read in (table.fetch, table.slice[1:3].fetch, table.slice[[0]].fetch, lambda: table[0]):
        with pytest.raises(ValueError, match="rows of 'x'"):
            read()


def test_the_mode_of_an_empty_transform_follows_its_keys():
    assert Table(0).transform("x", lambda *_: 1).mode is None
    assert Table(0).transform(("x",), lambda *_: 1).mode is tuple
    assert Table(0).transform("x", lambda *_: 1)[:] == []


def test_columns_become_arrays():
    array, tensor = np.arange(3), torch.arange(3)
    table = Table()
    found = table.convert((array, [1, 2], tensor, [np.ones(2)] * 3))
    assert found[0] is array
    assert found[2] is tensor
    assert found[1].tolist() == [1, 2]
    assert found[3].shape == (3, 2)
    assert table.convert({"x": [1, 2]})["x"].dtype == int
    assert table.convert([[1], [2]]).shape == (2, 1)
    assert torch.equal(table.convert([torch.ones(2)] * 2), torch.ones(2, 2))


def test_converters_replace_convert_and_are_inherited_from_the_first_member():
    def converter(*columns, **named):
        return columns, named

    table = Table(3).with_converter(converter)
    for derived in (
        table,
        table.slice[:2],
        table.asdict().astuple(),
        table.concat(Table(2)),
        table.join(Table(3, keys=("x",))),
        table.transform("x", lambda a, b, c: a),
        table.transform_batch("x", lambda a, b, c: a),
        tabular.DelegateDataset(table),
    ):
        assert derived.convert(([1], [2])) == (([1], [2]), {})
        assert derived.convert({"a": [1]}) == ((), {"a": [1]})
        assert derived.convert([1]) == (([1],), {})
    assert isinstance(Table(3).concat(table).convert([1]), np.ndarray)


def test_delegates_forward_everything():
    table = Table(4, dict)
    delegate = tabular.DelegateDataset(table)
    assert len(delegate) == 4
    assert delegate.keys == table.keys
    assert delegate.mode is dict
    assert list(delegate) == list(table)
    assert delegate.dataset is table
    delegate.slice[[1], 2].fetch()
    assert table.read[-1] == ([1], (2,))


def test_a_base_class_defines_nothing():
    table = TabularDataset()
    for use in (lambda: table.keys, lambda: table.mode, lambda: table.get_examples(None, None)):
        with pytest.raises(NotImplementedError):
            use()


def test_the_loader_of_torch_reads_blocks():
    table = Table(10, arrays=True)
    batches = list(DataLoader(table, batch_size=4))
    assert torch.cat([batch[0] for batch in batches]).tolist() == list(range(10))
    assert [read[0] for read in table.read] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_tables_can_be_pickled():
    table = Table(4, dict)
    for derived in (
        table.slice[::-1, ("a", "b")],
        table.concat(table),
        table.astuple(),
        table.transform("x", max_of),
    ):
        assert pickle.loads(pickle.dumps(derived))[:] == derived[:]


def max_of(a, b, c):
    return max(a, b, c)


def test_evenly_spaced_rows_reach_get_examples_as_slices_and_arrays_stay_arrays():
    first, second = Table(arrays=True), Table(arrays=True, offset=50)
    both = first.concat(second)
    columns = both.get_examples([0, 2, 4, 7, 8], None)
    assert [table.read[-1][0] for table in (first, second)] == [slice(0, 6, 2), slice(1, 3, 1)]
    assert all(isinstance(column, np.ndarray) for column in columns)
    assert columns[0].tolist() == [0, 2, 4, 51, 52]
    mixed = first.concat(Table(offset=50)).get_examples(None, None)
    assert all(isinstance(column, list) for column in mixed)
