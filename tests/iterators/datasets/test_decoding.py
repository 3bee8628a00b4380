"""Threads that decode for data sets: the order of results."""

from iterators.datasets.decoding import DecodingThreads


def test_results_are_in_the_order_of_the_items():
    assert DecodingThreads(2).map(abs, range(-9, 0)) == [9, 8, 7, 6, 5, 4, 3, 2, 1]
