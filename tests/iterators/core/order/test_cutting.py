"""Positions of samples cut into batches and at the ends of epochs."""

from iterators.core.order import cutting


def test_batches_of_a_number_of_positions():
    assert cutting.count_batches(10, 4) == 3
    assert cutting.count_batches(10, 4, "drop") == 2
    assert cutting.bounds(2, batch_size=4, count=10) == (8, 10)
    assert list(cutting.pieces("abcde", 2)) == ["ab", "cd", "e"]


def test_runs_are_cut_where_an_epoch_ends():
    assert list(cutting.runs(-2, 7, size=5)) == [(-1, 3, 5), (0, 0, 5), (1, 0, 2)]
