"""`sample`: numbers and fractions of records, and of classes."""

import collections

import pytest

from recordio import EmptyRecordFileError, sample


def drawn(packs, **options):
    sample(packs.path("a"), packs.path("b"), **options)
    return [(row[1], row[0][0]) for row in packs.read(packs.path("b")).values()]


def test_numbers_and_fractions(packs):
    packs.plain("a", [number % 3 for number in range(31)])
    some = drawn(packs, n=10, seed=1)
    assert len(set(some)) == 10 and some == sorted(some) == drawn(packs, n=10, seed=1)
    assert some != drawn(packs, n=10, seed=2)
    assert len(drawn(packs, fraction=0.5)) == 16 and len(drawn(packs, fraction=1)) == 31


def test_per_class(packs):
    packs.plain("a", [0] * 20 + [5] * 10 + [7])
    for options, expected in (({"n": 3}, [3, 3, 1]), ({"fraction": 0.2}, [4, 2, 1])):
        labels = collections.Counter(label for _, label in drawn(packs, per_class=True, **options))
        assert [labels[label] for label in (0, 5, 7)] == expected
    packs.detection("a", [[1, 2], [], [1], [3]])
    sample(packs.path("a"), packs.path("b"), n=1, per_class=True)
    assert len(packs.labels(packs.path("b"))) == 3


def test_identities_stay(packs):
    packs.faces("a", [4, 4, 4])
    drawn(packs, n=1, per_class=True)
    assert packs.identities(packs.path("b")) == [[0], [1], [2]]


def test_refused(packs):
    packs.plain("a", [0, 0])
    for options in (
        {},
        {"n": 1, "fraction": 0.5},
        {"n": 0},
        {"n": 3},
        {"fraction": 0},
        {"fraction": 1.5},
    ):
        with pytest.raises(ValueError, match=r"n=|fraction"):
            drawn(packs, **options)
    with pytest.raises(EmptyRecordFileError, match="drawn"):
        drawn(packs, fraction=0.1)
    packs.raw("a", [])
    with pytest.raises(EmptyRecordFileError, match="drawn"):
        drawn(packs, n=1, per_class=True)
