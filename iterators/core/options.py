"""Keyword arguments, each described once: name, type, default, check, documentation.

A family of keywords is a frozen dataclass below `Options` whose fields `option` makes; one that
adds to another inherits from it.  `Options.of` checks what somebody passed to a class, and
`accepts` writes the signature and the parameters' documentation of that class from the same fields.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from .parameters import unknown_keyword

__all__ = ["Options", "accepts", "described", "option", "optional", "split_keywords"]

Check = Callable[[str, Any], Any]
Class = TypeVar("Class", bound=type)
Family = TypeVar("Family", bound="Options")

#: Where the documentation of the parameters goes in a docstring.
PLACE = "{parameters}"
WIDTH = 100


def option(
    default: Any = MISSING,
    kind: str = "",
    text: str = "",
    check: Check | None = None,
    *,
    saved: bool = False,
) -> Any:
    """A field of a family: one keyword.

    Parameters
    ----------
    default : object
        Without one the keyword has to be given.
    kind : str
        What documentation calls its type; without it the keyword is described elsewhere.
    text : str
        What it means, as sentences; line breaks and indentation do not matter.
    check : callable, optional
        ``check(name, value)`` returns the value in its proper type, or raises.
    saved : bool
        Whether a saved state must agree with it to be loaded.
    """
    metadata = {"kind": kind, "text": " ".join(text.split()), "check": check, "saved": saved}
    return field(default=default, metadata=metadata)


def optional(check: Check) -> Check:
    """A check that lets None pass.

    Examples
    --------
    >>> from iterators.core.parameters import integer
    >>> optional(integer)("threads", None), optional(integer)("threads", "2")
    (None, 2)
    """
    return lambda name, value: None if value is None else check(name, value)


def described(base: type[Options], name: str, text: str, kind: str = "") -> Any:
    """The option of a base class with another meaning."""
    (old,) = (item for item in fields(base) if item.name == name)
    return option(
        old.default,
        kind or old.metadata["kind"],
        text,
        old.metadata["check"],
        saved=old.metadata["saved"],
    )


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base class of the families of keywords; all values are checked when one is made.

    Examples
    --------
    >>> from functools import partial
    >>> from iterators.core.parameters import integer
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

    #: Keywords that may be given by position, in this order.
    positional: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for item in fields(self):
            check = item.metadata.get("check")
            if check is not None:
                object.__setattr__(self, item.name, check(item.name, getattr(self, item.name)))

    @classmethod
    def of(
        cls: type[Family], owner: str, keywords: Mapping[str, Any], values: Sequence[Any] = ()
    ) -> Family:
        """What somebody passed to `owner`: keywords, and values by position.

        Raises
        ------
        TypeError
            For a keyword that does not exist, the closest one being suggested; for one that is
            missing; for too many values and for one that is given twice.
        """
        if len(values) > len(cls.positional):
            raise TypeError(
                f"{owner}() takes {len(cls.positional)} arguments by position, not {len(values)}"
            )
        given = dict(zip(cls.positional, values, strict=False))
        for name in given.keys() & keywords.keys():
            raise TypeError(f"{owner}() got two values for {name!r}")
        given |= keywords
        known = {item.name: item for item in fields(cls)}
        for name in given:
            if name not in known:
                raise unknown_keyword(owner, name, known)
        missing = [n for n, item in known.items() if item.default is MISSING and n not in given]
        if missing:
            raise TypeError(f"{owner}() needs {' and '.join(missing)}")
        return cls(**given)

    def values(self, *names: str) -> dict[str, Any]:
        """Some of the values by their names, to be passed on."""
        return {name: getattr(self, name) for name in names}

    def saved(self) -> dict[str, Any]:
        """The values that a saved state must agree with."""
        return {item.name: getattr(self, item.name) for item in _options(type(self), "saved")}

    def changed(self) -> dict[str, Any]:
        """The values that differ from their defaults."""
        return {
            item.name: getattr(self, item.name)
            for item in fields(self)
            if getattr(self, item.name) != item.default
        }


def _options(family: type[Options], wanted: str) -> Iterator[Field[Any]]:
    """The fields of a family of which `wanted` is set, its own before those that it inherits."""
    by_name = {item.name: item for item in fields(family)}
    for kind in family.__mro__:
        for name in vars(kind).get("__annotations__", {}):
            item = by_name.pop(name, None)
            if item is not None and item.metadata.get(wanted):
                yield item


def accepts(*families: type[Options]) -> Callable[[Class], Class]:
    """Give a class the signature and the documentation of the keywords that it takes.

    Its docstring has the line ``{parameters}`` where the descriptions belong.
    """
    items = list(
        {item.name: item for family in families for item in _options(family, "kind")}.values()
    )
    positional = [name for family in families for name in family.positional]
    by_name = {item.name: item for item in items}

    def parameter(name: str, kind: Any) -> inspect.Parameter:
        item = by_name[name]
        default = inspect.Parameter.empty if item.default is MISSING else item.default
        return inspect.Parameter(name, kind, default=default, annotation=item.type)

    signature = inspect.Signature(
        [parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in positional]
        + [
            parameter(item.name, inspect.Parameter.KEYWORD_ONLY)
            for item in items
            if item.name not in positional
        ]
    )

    def decorate(cls: Class) -> Class:
        cls.__signature__ = signature  # type: ignore[attr-defined]
        if cls.__doc__:  # not with python -OO
            cls.__doc__ = cls.__doc__.replace(f"    {PLACE}", _document(items))
        return cls

    return decorate


def _document(items: Sequence[Field[Any]]) -> str:
    """The entries of a section "Parameters"; neighbours with the same text share one."""
    entries: list[tuple[list[str], str, str]] = []
    for item in items:
        kind, text = item.metadata["kind"], item.metadata["text"]
        if entries and entries[-1][1:] == (kind, text):
            entries[-1][0].append(item.name)
        else:
            entries.append(([item.name], kind, text))
    return "\n".join(
        f"    {', '.join(names)} : {kind}\n"
        + textwrap.fill(text, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)
        for names, kind, text in entries
    )


def split_keywords(
    keywords: Mapping[str, Any], first: type[Options]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keywords that belong to a family, and the others."""
    names = {item.name for item in fields(first)}
    mine = {name: value for name, value in keywords.items() if name in names}
    return mine, {name: value for name, value in keywords.items() if name not in names}
