"""Families of keywords that are checked together."""

from dataclasses import dataclass
from functools import partial

import pytest

from recordio.keywords.checks import integer
from recordio.keywords.options import Options, option, optional


@dataclass(frozen=True, kw_only=True)
class Sizes(Options):
    batch_size: int = option(1, "int", "Samples in a batch.", partial(integer, low=1))


def test_keywords_are_checked_and_unknown_ones_refused():
    assert Sizes.of("Reader", {"batch_size": "3"}) == Sizes(batch_size=3)
    message = r"Reader\(\) has no parameter 'batchsize'; did you mean 'batch_size'\?"
    with pytest.raises(TypeError, match=message):
        Sizes.of("Reader", {"batchsize": 3})


def test_an_optional_check_lets_none_pass():
    check = optional(integer)
    assert (check("threads", None), check("threads", "2")) == (None, 2)
