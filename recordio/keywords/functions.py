"""Functions whose parameters are options, each described once, in an annotation.

An annotation is ``Annotated[type, option(kind=..., text=..., check=...)]``; the default stands in
the signature, so that type checkers see an ordinary function.  Keywords that several functions have
are a ``TypedDict`` of such annotations, with their defaults: ``**run: Unpack[RunOptions]``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import Field, fields, make_dataclass
from typing import Any, TypeVar, get_args, get_type_hints

from .options import Options, accepts, option

Function = TypeVar("Function", bound=Callable[..., Any])


def checked(function: Function) -> Function:
    """Check the arguments of a function by its annotations, and put them into its docstring.

    Its docstring has the line ``{parameters}`` where the descriptions belong.
    """
    hints, types = get_type_hints(function, include_extras=True), get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    items = []
    for p in parameters:
        if p.kind is inspect.Parameter.VAR_KEYWORD:
            (shared,) = get_args(hints[p.name])
            kinds, shared = get_type_hints(shared), get_type_hints(shared, include_extras=True)
            items += [(name, kinds[name], _option(hint)) for name, hint in shared.items()]
        else:
            items.append((p.name, types[p.name], _option(hints[p.name], p.default)))
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    family: Any = make_dataclass(
        f"{function.__name__}_options",
        items,
        bases=(Options,),
        namespace={"positional": " ".join(positional)},
        frozen=True,
        kw_only=True,
    )
    names = [name for name, _, _ in items]

    @functools.wraps(function)
    def call(*values: Any, **keywords: Any) -> Any:
        return function(**family.of(function.__name__, keywords, values).values(*names))

    described = accepts(family)(call)
    signature = inspect.signature(described).replace(return_annotation=types.get("return"))
    vars(described).update(__signature__=signature, options=family)
    return described  # type: ignore[return-value]


def _option(hint: Any, default: Any = inspect.Parameter.empty) -> Any:
    """Return the option of an annotation, with this default if there is one."""
    (item,) = (each for each in hint.__metadata__ if isinstance(each, Field))
    default = item.default if default is inspect.Parameter.empty else default
    return option(default, **item.metadata, secret=not item.repr)


def options_of(function: Callable[..., Any]) -> dict[str, Field[Any]]:
    """The options of a function that is `checked`, by their names."""
    return {item.name: item for item in fields(vars(function)["options"])}
