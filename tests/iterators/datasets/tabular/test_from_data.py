"""`from_data`: tables of lists, arrays and functions."""

import pickle

import numpy as np
import pytest

from iterators.datasets import tabular


@pytest.mark.parametrize("column", [[5, 6, 7], np.array([5, 6, 7])])
def test_one_column(column):
    for data, key in ((column, None), (("a", column), "a")):
        table = tabular.from_data(data)
        assert len(table) == 3
        assert table.mode is None
        assert key is None or table.keys == (key,)
        assert type(table.fetch()) is type(column)
        assert list(table.fetch()) == [5, 6, 7]
        assert list(table.slice[[2, 0]].fetch()) == [7, 5]
        assert list(table.slice[::-1].fetch()) == [7, 6, 5]
        assert table[1] == 6


def test_arrays_are_not_copied():
    column = np.arange(4)
    assert tabular.from_data(column).fetch() is column
    assert np.shares_memory(tabular.from_data(column).slice[1:3].fetch(), column)


def test_functions_take_the_number_of_a_row():
    table = tabular.from_data(("a", lambda i: i * i), size=10)
    assert table.keys == ("a",)
    assert table.mode is None
    assert table.slice[[3, 1]].fetch() == [9, 1]
    table = tabular.from_data((("a", "b"), lambda i: (i, i * i)), size=10)
    assert table.keys == ("a", "b")
    assert table.mode is tuple
    assert table.slice[[3, 1]].fetch() == ([3, 1], [9, 1])
    table = tabular.from_data((("a", "b"), lambda i: {"b": i * i, "a": i}), size=10)
    assert table.mode is dict
    assert table[3] == {"a": 3, "b": 9}


def test_tuples_of_columns():
    table = tabular.from_data(
        (
            [1, 2, 3],
            ("b", np.array([4, 5, 6])),
            ("c", lambda i: -i),
            (("d", "e"), lambda i: {"d": i, "e": str(i)}),
        )
    )
    assert table.mode is tuple
    assert table.keys[1:] == ("b", "c", "d", "e")
    assert table[2] == (3, 6, -2, 2, "2")


def test_dicts_of_columns():
    table = tabular.from_data({"a": [1, 2], "b": lambda i: i + 10, ("c", "d"): lambda i: (i, -i)})
    assert table.mode is dict
    assert table.keys == ("a", "b", "c", "d")
    assert table[1] == {"a": 2, "b": 11, "c": 1, "d": -1}


def test_functions_run_for_the_rows_and_columns_that_are_read():
    calls = []

    def function(name, result):
        return lambda i: calls.append((name, i)) or result

    table = tabular.from_data(
        {"a": [0] * 5, "b": function("b", 1), ("c", "d"): function("cd", (2, 3))}
    )
    assert table.slice[[4, 2], ("d",)].fetch() == {"d": [3, 3]}
    assert calls == [("cd", 4), ("cd", 2)]
    calls.clear()
    table.slice[1:3, ("a", "d", "c")].astuple().fetch()
    assert calls == [("cd", 1), ("cd", 2)]
    calls.clear()
    table.slice[:, "a"].fetch()
    assert calls == []


def test_generated_keys_do_not_collide():
    table = tabular.from_data(([1], ("column_0", [2]), [3], ("column_2", [4])))
    assert len(set(table.keys)) == 4
    assert table[0] == (1, 2, 3, 4)


def test_a_pair_of_lists_is_a_table_of_two_columns():
    assert tabular.from_data(([1, 2], [3, 4]))[1] == (2, 4)


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (lambda i: i, 3),
        ([1, 2], 3),
        (("a", lambda i: i), None),
        ({"a": lambda i: i}, None),
        (([1, 2], [3]), None),
        ({"a": [1, 2], "b": [3]}, None),
        (([1, 2], lambda i: i), None),
        (({"a": [1]}.get, [1]), None),
        ({("a", "b"): [1, 2]}, None),
        ((("a", [1]), ("a", [2])), None),
        ((), None),
        ({}, None),
    ],
)
def test_data_that_contradicts_itself_is_a_value_error(data, size):
    with pytest.raises(ValueError):
        tabular.from_data(data, size=size)


@pytest.mark.parametrize("data", [3, None, ("a", 3), {"a": 3}, ([1], 3), ("a", "bc")])
def test_other_things_are_type_errors(data):
    with pytest.raises(TypeError):
        tabular.from_data(data)


def test_tables_without_names_can_be_joined_and_stacked():
    first, second = tabular.from_data(np.arange(3)), tabular.from_data(np.arange(3) * 10)
    joined = first.join(second, tabular.from_data({"_": [7, 8, 9]}))
    assert joined[1] == {key: value for key, value in zip(joined.keys, (1, 10, 8), strict=True)}
    assert joined.astuple()[2] == (2, 20, 9)
    assert joined.slice[:, second.keys[0]].fetch().tolist() == [0, 10, 20]
    assert first.concat(second).fetch().tolist() == [0, 1, 2, 0, 10, 20]
    assert pickle.loads(pickle.dumps(first)).concat(second).keys == first.keys
    with pytest.raises(ValueError, match="keys"):
        first.concat(tabular.from_data(("named", [1])))
