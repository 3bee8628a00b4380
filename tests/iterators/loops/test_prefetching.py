"""Shares of a batch among workers: runs of nearly equal length."""

from iterators.loops.iterator import shares


def test_indices_in_runs_of_nearly_equal_length():
    assert shares([5, 6, 7], 2) == [[5], [6, 7]]
