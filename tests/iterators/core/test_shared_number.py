"""A number that processes share."""

from iterators.core.shared_number import SharedNumber


def test_a_number_that_counts():
    number = SharedNumber(3)
    number.value += 1
    assert number.value == 4
