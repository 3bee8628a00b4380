"""The machinery of keyword arguments that are described once: name, type, default, check, text.

A family of keywords is a frozen dataclass below `Options` whose fields `option` makes; one that
adds to another inherits from it.  `Options.of` checks what somebody passed to a class, and
`accepts` writes the signature and the parameters' documentation of that class from the same fields.
A `Rule` beside the fields says when keywords do nothing beside others; one that has its default is
never spoken of.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, TypeVar

from .checks import unknown_keyword

__all__ = [
    "Options",
    "Rule",
    "accepts",
    "by_name",
    "described",
    "divided",
    "option",
    "optional",
    "refuse_ineffective",
    "warn_of_ineffective",
]

Check = Callable[[str, Any], Any]
Taker = TypeVar("Taker", bound=Callable[..., Any])
Family = TypeVar("Family", bound="Options")

#: Where the documentation of the parameters goes in a docstring.
PLACE = "{parameters}"
WIDTH = 96
#: A warning points at the first line outside of these packages.
OWN = ("iterators", "recordio")


def option(
    default: Any = MISSING,
    kind: str = "",
    text: Any = "",
    check: Check | None = None,
    *,
    saved: bool = False,
    secret: bool = False,
) -> Any:
    """A field of a family: one keyword.

    Parameters
    ----------
    default : object
        Without one the keyword has to be given.
    kind : str
        What documentation calls its type; without it the keyword is described elsewhere.
    text : str or ...
        What it means, as sentences; line breaks and indentation do not matter.  ``...`` shares the
        description of the option before it.
    check : callable, optional
        ``check(name, value)`` returns the value in its proper type, or raises.
    saved : bool
        Whether a saved state must agree with it to be loaded.
    secret : bool
        Whether it is left out where a family is printed.
    """
    text = text if text is ... else " ".join(text.split())
    metadata = {"kind": kind, "text": text, "check": check, "saved": saved}
    return field(default=default, metadata=metadata, repr=not secret)


def optional(check: Check) -> Check:
    """A check that lets None pass.

    Examples
    --------
    >>> from recordio.keywords.checks import integer
    >>> optional(integer)("threads", None), optional(integer)("threads", "2")
    (None, 2)
    """
    return lambda name, value: None if value is None else check(name, value)


def described(
    base: type[Options],
    name: str,
    text: str = "",
    kind: str = "",
    check: Check | None = None,
    *,
    default: Any = MISSING,
) -> Any:
    """The option of another family with another description, check or default."""
    (old,) = (item for item in fields(base) if item.name == name)
    return option(
        old.default if default is MISSING else default,
        kind or old.metadata["kind"],
        text or old.metadata["text"],
        check or old.metadata["check"],
        saved=old.metadata["saved"],
        secret=not old.repr,
    )


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


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base class of the families of keywords; all values are checked when one is made.

    Examples
    --------
    >>> from functools import partial
    >>> from recordio.keywords.checks import integer
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Sizes(Options):
    ...     batch_size: int = option(1, "int", "Samples in a batch.", partial(integer, low=1))
    >>> Sizes.of("Reader", {"batch_size": "3"})
    Sizes(batch_size=3)
    >>> Sizes.of("Reader", {"batchsize": 3})
    Traceback (most recent call last):
        ...
    TypeError: Reader() has no parameter 'batchsize'; did you mean 'batch_size'?
    """

    #: Names of those that may be given by position, in this order, with blanks between them.
    positional: ClassVar[str] = ""
    #: Which of them do nothing beside others, of this family and of those used together with it.
    rules: ClassVar[tuple[Rule, ...]] = ()

    def __post_init__(self) -> None:
        for item in fields(self):
            check = item.metadata.get("check")
            if check is not None:
                object.__setattr__(self, item.name, check(item.name, getattr(self, item.name)))

    @classmethod
    def of(
        cls: type[Family],
        owner: str,
        keywords: Mapping[str, Any],
        values: Sequence[Any] = (),
        *,
        also: Iterable[str] = (),
    ) -> Family:
        """What somebody passed to `owner`: keywords, and values by position.

        Parameters
        ----------
        owner : str
            As messages call it.
        keywords : mapping
        values : sequence
            Of those that may be given by position.
        also : iterable of str
            Other keywords of the owner, which messages may suggest.

        Raises
        ------
        TypeError
            For a keyword that does not exist, the closest one being suggested; for one that is
            missing; for too many values and for one that is given twice.
        """
        (mine,) = divided(owner, keywords, cls, values=values, also=also)
        return cls(**mine)

    def values(self, *names: str) -> dict[str, Any]:
        """Some of the values by their names, to be passed on."""
        return {name: getattr(self, name) for name in names}

    def saved(self) -> dict[str, Any]:
        """The values that a saved state must agree with."""
        return {item.name: getattr(self, item.name) for item in _options(type(self), "saved")}

    def differs(self, name: str) -> bool:
        """Whether a value differs from its default; False for a name that is not among them."""
        return any(getattr(self, name) != i.default for i in fields(self) if i.name == name)

    def changed(self) -> dict[str, Any]:
        """The values that differ from their defaults."""
        names = [item.name for item in fields(self)]
        return self.values(*(name for name in names if self.differs(name)))


def by_name(
    owner: str, keywords: Mapping[str, Any], family: type[Options], values: Sequence[Any]
) -> dict[str, Any]:
    """What somebody passed to `owner`, values by position under their names.

    Raises
    ------
    TypeError
        For too many values, and for one that is given twice.
    """
    positional = family.positional.split()
    if len(values) > len(positional):
        raise TypeError(
            f"{owner}() takes {len(positional)} arguments by position, not {len(values)}"
        )
    given = dict(zip(positional, values, strict=False))
    for name in given.keys() & keywords.keys():
        raise TypeError(f"{owner}() got two values for {name!r}")
    return given | dict(keywords)


def divided(
    owner: str,
    keywords: Mapping[str, Any],
    *families: type[Options],
    values: Sequence[Any] = (),
    also: Iterable[str] = (),
) -> list[dict[str, Any]]:
    """What somebody passed to `owner`, for each family apart; values by position for the first.

    Messages may suggest the keywords `also` besides those of the families.

    Raises
    ------
    TypeError
        As `Options.of`.
    """
    keywords = by_name(owner, keywords, families[0], values)
    items = [{item.name: item for item in fields(family)} for family in families]
    known = {name: item for mine in items for name, item in mine.items()}
    for name in keywords:
        if name not in known:
            raise unknown_keyword(owner, name, [*known, *also])
    missing = [n for n, item in known.items() if item.default is MISSING and n not in keywords]
    if missing:
        raise TypeError(f"{owner}() needs {' and '.join(missing)}")
    return [{name: value for name, value in keywords.items() if name in mine} for mine in items]


def _options(family: type[Options], wanted: str) -> Iterator[Field[Any]]:
    """The fields of a family of which `wanted` is set, its own before those that it inherits."""
    by_name = {item.name: item for item in fields(family)}
    for kind in family.__mro__:
        for name in vars(kind).get("__annotations__", {}):
            item = by_name.pop(name, None)
            if item is not None and item.metadata.get(wanted):
                yield item


def accepts(
    *families: type[Options], first: Sequence[str] = (), rest: str = ""
) -> Callable[[Taker], Taker]:
    """Give a class or function the signature and the documentation of the keywords it takes.

    Its docstring has the line ``{parameters}`` where the descriptions belong.

    Parameters
    ----------
    *families
        Those of `Options` that it passes its keywords to; by default it is one itself.
    first : sequence of str
        Keywords to be named before the others.
    rest : str
        The name of a mapping with further keywords, which its docstring describes.
    """

    def decorate(taker: Taker) -> Taker:
        taken: Any = families or (taker,)
        items = _described(taken, first)
        taker.__signature__ = _signature(taken, items, rest)  # type: ignore[attr-defined]
        if taker.__doc__:  # not with python -OO
            # Since Python 3.13 it comes without its indentation.
            taker.__doc__ = inspect.cleandoc(taker.__doc__).replace(PLACE, _document(items))
        return taker

    return decorate


def _described(families: Sequence[type[Options]], first: Sequence[str]) -> list[Field[Any]]:
    by_name: dict[str, Field[Any]] = {}
    for family in families:
        for item in _options(family, "kind"):
            by_name.setdefault(item.name, item)
    return [by_name.pop(name) for name in first] + list(by_name.values())


def _signature(
    families: Sequence[type[Options]], items: Sequence[Field[Any]], rest: str
) -> inspect.Signature:
    positional = families[0].positional.split()
    by_name = {item.name: item for item in items}

    def parameter(name: str, kind: Any) -> inspect.Parameter:
        item = by_name[name]
        default = inspect.Parameter.empty if item.default is MISSING else item.default
        return inspect.Parameter(name, kind, default=default, annotation=item.type)

    return inspect.Signature(
        [parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in positional]
        + [
            parameter(item.name, inspect.Parameter.KEYWORD_ONLY)
            for item in items
            if item.name not in positional
        ]
        + ([inspect.Parameter(rest, inspect.Parameter.VAR_KEYWORD)] if rest else [])
    )


def _document(items: Sequence[Field[Any]]) -> str:
    """The entries of a section "Parameters"."""
    entries: list[tuple[list[str], str, str]] = []
    for item in items:
        kind, text = item.metadata["kind"], item.metadata["text"]
        if text is ...:
            entries[-1][0].append(item.name)
        else:
            entries.append(([item.name], kind, text))
    return "\n".join(
        f"{', '.join(names)} : {kind}\n"
        + textwrap.fill(text, WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 4)
        for names, kind, text in entries
    )


def refuse_ineffective(*families: Options) -> None:
    """Raise a ValueError for the first rule of these families that is broken and refuses.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from typing import ClassVar
    >>> from recordio.keywords.options import Options, Rule, option
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
