"""Stand-ins for the parts of older systems that train models: importable, and nothing more.

Scripts import `autograd` or `links` at their top and use only the data part, or only that is wanted
of them; the error comes where a name of such a part is used.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

__all__ = ["TRAINING", "TrainingStub", "stand_in"]

TRAINING = "it trains models, and this package delivers data: use torch or another library for it"


class TrainingStub(ModuleType):
    """A module of an older system that is not in this package; every name of it is an error."""

    __path__: list[str] = []

    def __init__(self, name: str, spelling: str, reason: str) -> None:
        super().__init__(name, f"{spelling} is not here: {reason}.")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(f"{name} of {self.__doc__}")

    def __call__(self, *values: Any, **keywords: Any) -> Any:
        """Refuse a call, for a class of that system."""
        raise NotImplementedError(self.__doc__)


def stand_in(package: str, spelling: str, reasons: Mapping[str, str]) -> dict[str, TrainingStub]:
    """Make stand-ins of names below a package, importable there; `spelling` stands before them."""
    stubs = {}
    for name, reason in reasons.items():
        module = f"{package}.{name}"
        stubs[name] = sys.modules[module] = TrainingStub(module, f"{spelling}.{name}", reason)
    return stubs
