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

Check = Callable[[str, Any], Any]
Taker = TypeVar("Taker", bound=Callable[..., Any])
Family = TypeVar("Family", bound="Options")

#: Mark in a docstring for the documentation of the parameters.
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
    """Make a field of a family: one keyword.

    Without `default` it has to be given; without `kind`, the type in words, it is documented
    elsewhere.  ``text=...`` shares the description of the option before it.  ``check(name, value)``
    returns the value in its proper type, or raises.  A saved state must agree with a `saved` value;
    a `secret` one is not printed.
    """
    text = text if text is ... else " ".join(text.split())
    metadata = {"kind": kind, "text": text, "check": check, "saved": saved}
    return field(default=default, metadata=metadata, repr=not secret)


def optional(check: Check) -> Check:
    """Make a check that lets None pass."""
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
    """Return the option of another family with another description, check or default."""
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
    """A case in which keywords do nothing, or cannot do what they say.

    `names` are the keywords with blanks between them; ``when(values)``, with all keywords as
    attributes, tells whether the case is given; `text` follows name and value in the message.  If
    `refused` it is an error, else a warning, and the batches are as without the keyword.
    """

    names: str
    when: Callable[[Any], bool]
    text: str
    refused: bool = False

    def messages(self, *families: Options) -> Iterator[str]:
        """Yield the messages about the values of these families."""
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
    """Base class of the families of keywords; all values are checked when one is made."""

    #: Names of those that may be given by position, in this order, with blanks between them.
    positional: ClassVar[str] = ""
    #: Rules of keywords that do nothing beside others, in this family and those used with it.
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
        """Make a family of keywords, and values by position, that somebody passed to `owner`.

        Messages may suggest the keywords `also`, which the owner takes besides.
        """
        (mine,) = divided(owner, keywords, cls, values=values, also=also)
        return cls(**mine)

    def values(self, *names: str) -> dict[str, Any]:
        """Return some of the values by their names, to be passed on."""
        return {name: getattr(self, name) for name in names}

    def saved(self) -> dict[str, Any]:
        """Return the values that a saved state must agree with."""
        return {item.name: getattr(self, item.name) for item in _options(type(self), "saved")}

    def differs(self, name: str) -> bool:
        """Return whether a value differs from its default; False for a name that is not there."""
        # Not by `fields`, which makes a list: rules ask for hundreds of names for one provider.
        item = self.__dataclass_fields__.get(name)
        return item is not None and bool(getattr(self, name) != item.default)

    def changed(self) -> dict[str, Any]:
        """Return the values that differ from their defaults."""
        return self.values(*(item.name for item in fields(self) if self.differs(item.name)))


def by_name(
    owner: str, keywords: Mapping[str, Any], family: type[Options], values: Sequence[Any]
) -> dict[str, Any]:
    """Return the arguments that somebody passed to `owner`, with names for values by position."""
    positional = family.positional.split()
    if len(values) > len(positional):
        raise TypeError(
            f"{owner}() takes {len(positional)} arguments by position, not {len(values)}"
        )
    arguments = dict(zip(positional, values, strict=False))
    for name in arguments.keys() & keywords.keys():
        raise TypeError(f"{owner}() got two values for {name!r}")
    return arguments | dict(keywords)


def divided(
    owner: str,
    keywords: Mapping[str, Any],
    *families: type[Options],
    values: Sequence[Any] = (),
    also: Iterable[str] = (),
) -> list[dict[str, Any]]:
    """Divide the arguments of `owner` among families; values by position belong to the first.

    Messages may suggest the keywords `also` besides those of the families.
    """
    keywords = by_name(owner, keywords, families[0], values)
    items = [{item.name: item for item in fields(family)} for family in families]
    all_fields = {name: item for mine in items for name, item in mine.items()}
    for name in keywords:
        if name not in all_fields:
            raise unknown_keyword(owner, name, [*all_fields, *also])
    missing = [n for n, item in all_fields.items() if item.default is MISSING and n not in keywords]
    if missing:
        raise TypeError(f"{owner}() needs {' and '.join(missing)}")
    return [{name: value for name, value in keywords.items() if name in mine} for mine in items]


def _options(family: type[Options], flag: str) -> Iterator[Field[Any]]:
    """Yield the fields of a family whose `flag` is set, its own before those that it inherits."""
    by_name = {item.name: item for item in fields(family)}
    for kind in family.__mro__:
        for name in inspect.get_annotations(kind):
            item = by_name.pop(name, None)
            if item is not None and item.metadata.get(flag):
                yield item


def accepts(
    *families: type[Options], first: Sequence[str] = (), rest: str = ""
) -> Callable[[Taker], Taker]:
    """Give a class or function the signature and the documentation of the keywords it takes.

    Its docstring has the line ``{parameters}`` where the descriptions belong.  Without families it
    is one itself; `first` names keywords that come before the others, and `rest` a
    mapping with further keywords, which its docstring describes.
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
    """Write the entries of a section "Parameters"."""
    entries: list[tuple[list[str], str, str]] = []
    for item in items:
        kind, text = item.metadata["kind"], item.metadata["text"]
        if text is ...:
            entries[-1][0].append(item.name)
        else:
            entries.append(([item.name], kind, text))
    return "\n".join(
        f"{', '.join(names)} : {kind}\n"
        + textwrap.fill(
            text,
            WIDTH,
            initial_indent=" " * 4,
            subsequent_indent=" " * 4,
            break_on_hyphens=False,  # names of files have some
        )
        for names, kind, text in entries
    )


def refuse_ineffective(*families: Options) -> None:
    """Raise a ValueError for the first broken rule of these families that refuses."""
    for rule in _rules(families):
        for text in rule.messages(*families) if rule.refused else ():
            raise ValueError(text)


def warn_of_ineffective(*families: Options) -> None:
    """Warn of the other broken rules, once for each keyword, in the line of the caller."""
    for rule in _rules(families):
        for text in rule.messages(*families) if not rule.refused else ():
            warnings.warn(text, UserWarning, stacklevel=outside())


def _rules(families: tuple[Options, ...]) -> Iterator[Rule]:
    for family in families:
        yield from family.rules


def outside() -> int:
    """Return the `stacklevel` that `warnings.warn` in the calling function needs."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in OWN:
        level, frame = level + 1, frame.f_back
    return level
