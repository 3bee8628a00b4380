"""Checks of single keyword arguments, and the one wording of their errors, unknown names included.

Every function returns the value in its proper type or raises an error that names the parameter, the
value and what is allowed.  Strings such as ``"True"`` or ``"3"`` are accepted where MXNet accepts
them, because scripts pass values read from configuration files.
"""

from __future__ import annotations

import difflib
import math
import operator
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from .synonyms import elsewhere, synonym


def _refuse(name: str, value: Any, expected: str, kind: type[Exception] = ValueError) -> Exception:
    return kind(f"{name}={value!r}: expected {expected}")


def _range(low: float, high: float) -> str:
    def text(limit: float) -> str:
        return str(limit) if isinstance(limit, int) else f"{limit:g}"

    if high == math.inf:
        return "" if low == -math.inf else f" of at least {text(low)}"
    return f" of at most {text(high)}" if low == -math.inf else f" from {text(low)} to {text(high)}"


def integer(name: str, value: Any, low: float = -math.inf, high: float = math.inf) -> int:
    """Return an integer in ``[low, high]``."""
    expected = "an integer" + _range(low, high)
    try:
        number = int(value) if isinstance(value, str) else operator.index(value)
    except TypeError:
        raise _refuse(name, value, expected, TypeError) from None
    except ValueError:
        raise _refuse(name, value, expected) from None
    if not low <= number <= high:
        raise _refuse(name, value, expected)
    return number


def checked_state(state: Any, *names: str) -> Mapping[str, Any]:
    """Return a saved state that has these entries at least."""
    if not isinstance(state, Mapping):
        raise ValueError(f"a saved state is a dictionary, not {state!r:.60}")
    missing = [name for name in names if name not in state]
    if missing:
        raise ValueError(f"the state is incomplete: it has no {' and no '.join(missing)}")
    return state


def real(name: str, value: Any, low: float = -math.inf, high: float = math.inf) -> float:
    """Return a finite number in ``[low, high]``."""
    expected = "a number" + _range(low, high)
    try:
        number = float(value)
    except TypeError:
        raise _refuse(name, value, expected, TypeError) from None
    except (ValueError, OverflowError):
        raise _refuse(name, value, expected) from None
    if not (math.isfinite(number) and low <= number <= high):
        raise _refuse(name, value, expected)
    return number


def boolean(name: str, value: Any) -> bool:
    """Return True or False, also for 1, 0, "True" and "false"."""
    if isinstance(value, str):
        value = {"true": 1, "false": 0, "1": 1, "0": 0}.get(value.strip().lower(), value)
    try:
        number = int(value) if isinstance(value, np.bool_) else operator.index(value)
    except TypeError:
        raise _refuse(name, value, "True or False", TypeError) from None
    if number not in (0, 1):
        raise _refuse(name, value, "True or False")
    return bool(number)


def choice(name: str, value: Any, allowed: Iterable[Any]) -> Any:
    """Return one of `allowed`."""
    allowed = tuple(allowed)
    try:
        return allowed[allowed.index(value)]
    except ValueError:  # also from the comparison with an array
        raise _refuse(name, value, f"one of {', '.join(map(repr, allowed))}") from None


def text(name: str, value: Any) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise _refuse(name, value, "a text", TypeError)
    return value


def path(name: str, value: Any) -> str:
    """Return a path as text; empty for None.

    Numbers are refused: the functions of the system take them for open files.
    """
    if value is None:
        return ""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str):
        raise _refuse(name, value, "a path", TypeError)
    return text


def paths(name: str, value: Any) -> str | tuple[str, ...]:
    """Return a path as text, or several as a tuple."""
    if isinstance(value, (list, tuple)):
        return tuple(path(name, item) for item in value)
    return path(name, value)


def integers(
    name: str, value: Any, length: int | None = None, low: float = 1, high: float = math.inf
) -> tuple[int, ...]:
    """Return a tuple of integers in ``[low, high]``, of a fixed length if one is given."""
    count = "a tuple of" if length is None else f"a tuple of {length}"
    expected = f"{count} integers{_range(low, high)}"
    if isinstance(value, str):
        value = [item for item in value.strip("()[] ").split(",") if item.strip()]
    try:
        items = tuple(integer(name, item, low, high) for item in value)
    except (TypeError, ValueError):
        raise _refuse(name, value, expected) from None
    if length is not None and len(items) != length:
        raise _refuse(name, value, expected)
    return items


def colour(name: str, value: Any) -> tuple[int, int, int]:
    """Return R, G and B of a colour, or of a grey level.

    >>> colour("background", 255), colour("background", "0,128,255")
    ((255, 255, 255), (0, 128, 255))
    """
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        value = (value,) * 3
    try:
        red, green, blue = integers(name, value, 3, 0, 255)
    except ValueError:
        raise ValueError(
            f"{name}={value!r}: expected three numbers from 0 to 255, R, G and B, or one"
        ) from None
    return red, green, blue


def unknown_keyword(function: str, name: str, names: Iterable[str]) -> TypeError:
    """Make the error for a keyword that does not exist, with the one that is meant.

    That is the one that does what another library calls by the unknown name, or the closest one.
    """
    text = f"{function}() has no parameter {name!r}"
    names = list(names)
    hint = synonym(name, names) or elsewhere(name) or did_you_mean(name, names)
    return TypeError(f"{text}; {hint}" if hint else text)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return the closest of the existing names as a question; empty if none is close."""
    close = difflib.get_close_matches(name, list(names), n=1)
    return f"did you mean {close[0]!r}?" if close else ""
