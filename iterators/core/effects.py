"""Keywords that do nothing beside others: one rule for all, from tables beside the options.

Each family of `Options` has a table `rules`.  A keyword that has its default is never spoken of.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .options import Options

__all__ = ["Rule", "refuse_ineffective", "warn_of_ineffective"]

#: A warning points at the first line outside of these packages.
OWN = ("iterators", "recordio")


class Rule(NamedTuple):
    """When keywords do nothing, or cannot do what they say.

    Attributes
    ----------
    names : str
        The keywords, with blanks between them.
    when : callable
        Whether it is so; gets an object with the values of all keywords as attributes.
    text : str
        What a message says after the name and value of a keyword.
    refused : bool
        Whether it is an error.  Otherwise it is a warning, and the batches are as if the keyword
        had not been given.
    """

    names: str
    when: Callable[[Any], bool]
    text: str
    refused: bool = False

    def found(self, *families: Options) -> Iterator[str]:
        """What to say about the values of these families."""
        values = _Values(families)
        for name in self.names.split():
            if any(family.differs(name) for family in families) and self.when(values):
                yield f"{name}={getattr(values, name)!r} {self.text}"


class _Values:
    """The values and properties of several families, as those of one."""

    def __init__(self, families: tuple[Options, ...]) -> None:
        self._families = families

    def __getattr__(self, name: str) -> Any:
        for family in self._families:
            if hasattr(family, name):
                return getattr(family, name)
        raise AttributeError(name)


def refuse_ineffective(*families: Options) -> None:
    """Raise a ValueError for the first rule of these families that is broken and refuses.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from typing import ClassVar
    >>> from iterators.core.options import Options, option
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Turns(Options):
    ...     turn: int = option(0)
    ...     most: int = option(0)
    ...     rules: ClassVar = (Rule("most", lambda v: v.turn, "has no effect beside turn", True),)
    >>> refuse_ineffective(Turns(turn=3))
    >>> refuse_ineffective(Turns(turn=3, most=9))
    Traceback (most recent call last):
        ...
    ValueError: most=9 has no effect beside turn
    """
    for rule in _rules(families):
        for text in rule.found(*families) if rule.refused else ():
            raise ValueError(text)


def warn_of_ineffective(*families: Options) -> None:
    """Warn of what the other rules of these families find, in the caller's own line.

    Warns
    -----
    UserWarning
        One for each keyword.
    """
    for rule in _rules(families):
        for text in rule.found(*families) if not rule.refused else ():
            warnings.warn(text, UserWarning, stacklevel=_outside())


def _rules(families: tuple[Options, ...]) -> Iterator[Rule]:
    for family in families:
        yield from family.rules


def _outside() -> int:
    """The `stacklevel` that `warnings.warn` in the calling function needs."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in OWN:
        level, frame = level + 1, frame.f_back
    return level
