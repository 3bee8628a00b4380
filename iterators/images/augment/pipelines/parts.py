"""Transforms of a pipeline as they are found: their positions and attributes, and their errors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class PipelineError(ValueError):
    """A transform of a pipeline has no counterpart among the keywords.

    Parameters
    ----------
    reason : str
        What is wrong and what to do about it.
    transform : str
        The name of its class.
    position : tuple of int
        Where it is in the pipeline, from 0; one number for each level of nesting.

    Examples
    --------
    >>> raise PipelineError("has no counterpart: drop it", "ElasticTransform", (2, 0))
    Traceback (most recent call last):
        ...
    iterators.images.augment.pipelines.parts.PipelineError: transform [2][0], ElasticTransform: \
has no counterpart: drop it
    """

    def __init__(self, reason: str, transform: str, position: tuple[int, ...] = ()) -> None:
        self.reason: str = reason
        self.transform: str = transform
        self.position: tuple[int, ...] = position
        where = "".join(f"[{index}]" for index in position)
        super().__init__(f"{f'transform {where}, ' if where else ''}{transform}: {reason}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it with what it was made of."""
        return type(self), (self.reason, self.transform, self.position)


@dataclass(frozen=True)
class Part:
    """A transform and where it is in its pipeline."""

    transform: Any
    position: tuple[int, ...]

    @property
    def name(self) -> str:
        """The name of its class."""
        return type(self.transform).__name__

    @property
    def library(self) -> str:
        """The library that its class is of."""
        return type(self.transform).__module__.partition(".")[0]

    def error(self, reason: str) -> PipelineError:
        """Make the error that names this transform."""
        return PipelineError(reason, self.name, self.position)

    def __str__(self) -> str:
        return f"{self.name} {''.join(f'[{index}]' for index in self.position)}"


class Given(NamedTuple):
    """Images that a pipeline is given: 1 or 3 channels, and one size, if it is known."""

    channels: int = 3
    size: tuple[int, int] | None = None


class Known(NamedTuple):
    """Meaning of a class of transforms, and every parameter of its constructor.

    A parameter that is on none of the lists, because the class is newer, must have its default.
    """

    translate: Callable[[Any, Part], None]
    #: Names that the function reads, which refuses the values that it has nothing for.
    used: str = ""
    #: Names that change no pixel.
    idle: str = ""
    #: The only value that a parameter may have.
    only: Mapping[str, Any] = {}

    @property
    def listed(self) -> set[str]:
        """Names of all parameters that are known."""
        return {*self.used.split(), *self.idle.split(), *self.only}

    def check(self, part: Part) -> None:
        """Refuse a transform with a value that has no counterpart."""
        for name, value in self.only.items():
            setting = getattr(part.transform, name, value)
            if setting is not value and setting != value:
                raise part.error(
                    f"has {name}={setting!r}, and only {value!r} has a counterpart: drop {name}"
                )
        listed = self.listed
        kind: Any = type(part.transform)
        for name, default in _parameters(kind):
            setting = getattr(part.transform, name, default)
            if name not in listed and setting is not default and setting != default:
                raise part.error(
                    f"has {name}={setting!r}, which is not known here: drop {name}, or give the "
                    "keywords instead"
                )


@functools.cache
def _parameters(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Return names and defaults of what the constructor of a class takes."""
    try:
        parameters = inspect.signature(kind).parameters.values()
    except ValueError:  # of no function in Python
        return ()
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple((one.name, one.default) for one in parameters if one.kind in named)


@dataclass(frozen=True)
class Translated:
    """Keywords made of a pipeline, and the transforms that are left."""

    keywords: dict[str, Any]
    mixing: dict[str, Any] = field(default_factory=dict)
    #: What differs from the library's pixels.
    notes: tuple[str, ...] = ()
    #: Transforms that stay in Python, the first the one that made it necessary.
    tail: tuple[Any, ...] = ()
    #: What they get: a "tensor" or an "image" of Pillow.
    tail_of: str = "tensor"


def flat(transform: Any, containers: Sequence[str], position: tuple[int, ...] = ()) -> list[Part]:
    """List the transforms of a pipeline, those of sequences in it one after the other."""
    inside = None
    if isinstance(transform, (list, tuple)):
        inside = transform
    elif type(transform).__name__ in containers:
        inside = getattr(transform, "transforms", transform)
    if inside is None:
        return [Part(transform, position or (0,))]
    if getattr(transform, "p", 1) != 1:
        raise Part(transform, position).error(f"is done with p={transform.p}: only 1 is supported")
    return [
        part
        for index, item in enumerate(inside)
        for part in flat(item, containers, (*position, index))
    ]


def read(part: Part, name: str) -> Any:
    """Return an attribute; an error that names the transform if it has none."""
    try:
        return getattr(part.transform, name)
    except AttributeError:
        raise part.error(
            f"has no attribute {name!r}, so that its release is not known here: give the keywords "
            "instead"
        ) from None


def number(value: Any) -> float:
    """Return a number as it was written, also where it was stored as float32."""
    if hasattr(value, "item"):
        single = str(getattr(value, "dtype", "")).endswith("float32")
        value = value.item()
        return float(f"{value:.7g}") if single else float(value)
    return float(value)


def pair(part: Part, value: Any) -> tuple[int, int]:
    """Return (height, width) of a size, which may be one number."""
    sizes = value if isinstance(value, (list, tuple)) else (value,)
    if len(sizes) not in (1, 2) or None in sizes:
        raise part.error(f"has the size {value!r}: expected a number, or height and width")
    return int(sizes[0]), int(sizes[-1])
