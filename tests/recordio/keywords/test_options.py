"""Keywords that do nothing beside others: what is refused, what warns, and when nobody is told."""

import warnings
from dataclasses import dataclass
from typing import ClassVar

import pytest

from recordio.keywords.options import Options, Rule, option, refuse_ineffective, warn_of_ineffective


@dataclass(frozen=True, kw_only=True)
class Places(Options):
    left: int = option(0)
    right: int = option(0)
    rules: ClassVar = (
        Rule("left", lambda v: v.centre, "contradicts centre", refused=True),
        Rule("right", lambda v: v.twice == 4, "does nothing"),
    )


@dataclass(frozen=True, kw_only=True)
class Centres(Options):
    centre: int = option(0)

    @property
    def twice(self):
        return 2 * self.centre


def told(*families):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warn_of_ineffective(*families)
    return found


def test_rules_see_the_values_and_properties_of_all_families():
    with pytest.raises(ValueError, match="^left=1 contradicts centre$"):
        refuse_ineffective(Places(left=1), Centres(centre=1))
    (warning,) = told(Places(right=7), Centres(centre=2))
    assert str(warning.message) == "right=7 does nothing"
    assert warning.category is UserWarning
    assert not told(Places(right=7), Centres(centre=3))


def test_what_has_its_default_is_never_spoken_of():
    families = Places(left=0, right=0), Centres(centre=2)
    refuse_ineffective(*families)
    assert not told(*families)


def test_a_warning_names_the_line_of_the_caller():
    (warning,) = told(Places(right=7), Centres(centre=2))
    assert warning.filename == __file__
