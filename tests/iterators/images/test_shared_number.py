"""A number that processes share."""

from iterators.images.examples import SharedNumber


def test_a_number_that_counts():
    number = SharedNumber(3)
    number.value += 1
    assert number.value == 4
