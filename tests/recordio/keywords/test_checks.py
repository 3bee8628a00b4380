"""Checks of keyword arguments: truths, numbers, tuples and their errors."""

import math

import pytest

from recordio.keywords import checks


@pytest.mark.parametrize("value", [True, 1, "True", "true", "1", " TRUE "])
def test_true_in_all_its_spellings(value):
    assert checks.boolean("shuffle", value) is True


@pytest.mark.parametrize("value", ["yes", 2, None, 0.5, "", [1]])
def test_other_things_are_no_booleans(value):
    with pytest.raises((ValueError, TypeError), match="shuffle=.*expected True or False"):
        checks.boolean("shuffle", value)


@pytest.mark.parametrize(
    ("value", "kind"), [(1.5, TypeError), ("x", ValueError), (None, TypeError), (0, ValueError)]
)
def test_integer_errors_name_parameter_value_and_range(value, kind):
    with pytest.raises(kind, match=r"batch_size=.*expected an integer of at least 1"):
        checks.integer("batch_size", value, low=1)


@pytest.mark.parametrize("value", [math.nan, math.inf, "one", 1.01, -0.1])
def test_real_errors_name_the_range(value):
    with pytest.raises(ValueError, match="area=.*a number from 0 to 1"):
        checks.real("area", value, 0, 1)


@pytest.mark.parametrize("value", [(3, 4), "3,4", "(3, 4)", [3, 4]])
def test_tuples_in_all_their_spellings(value):
    assert checks.integers("shape", value, length=2) == (3, 4)


@pytest.mark.parametrize("value", [3, (3,), (3, 4, 5), (3, 0), (3, 1.5), "3;4"])
def test_tuple_errors_say_what_is_expected(value):
    with pytest.raises(ValueError, match="shape=.*a tuple of 2 integers of at least 1"):
        checks.integers("shape", value, length=2)


def test_an_unknown_keyword_without_a_close_one_suggests_nothing():
    text = str(checks.unknown_keyword("F", "zzz", ["shuffle"]))
    assert text == "F() has no parameter 'zzz'"


def test_an_unknown_keyword_with_a_close_one_suggests_it():
    text = str(checks.unknown_keyword("ImageRecordIter", "shuffel", ["shuffle", "seed"]))
    assert text == "ImageRecordIter() has no parameter 'shuffel'; did you mean 'shuffle'?"


def test_paths_and_choices():
    assert checks.path("path_imgidx", "train.idx") == "train.idx"
    assert checks.path("path_imgidx", None) == ""
    assert checks.paths("path_imgrec", "a.rec;b.rec") == "a.rec;b.rec"
    assert checks.paths("path_imgrec", ["a.rec", "b.rec"]) == ("a.rec", "b.rec")
    with pytest.raises(ValueError, match="inter_method=7: expected one of 0, 1, 2"):
        checks.choice("inter_method", 7, (0, 1, 2))


def test_entries_of_a_state():
    with pytest.raises(ValueError, match="the state is incomplete: it has no number"):
        checks.checked_state({"epoch": 3}, "epoch", "number")
