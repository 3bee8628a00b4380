"""Stand-ins for the parts of MXNet that compute models: they can be imported, and nothing more.

Scripts import `autograd` or `nn` at their top and use only the data part, or only that is wanted of
them; the error comes where a name of such a part is used.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

__all__ = ["REASONS", "Elsewhere", "stand_in"]

TRAINING = "it trains models, and this package delivers data: use torch or another library for it"
NUMPY = "arrays here are NumPy arrays: import numpy"

#: Parts of MXNet, and the reason why each is not here.
REASONS = {
    "attribute": TRAINING,
    "autograd": TRAINING,
    "callback": TRAINING,
    "contrib": TRAINING,
    "engine": "there is no engine: nothing is computed in the background",
    "executor": TRAINING,
    "init": TRAINING,
    "initializer": TRAINING,
    "kv": TRAINING,
    "kvstore": TRAINING,
    "library": TRAINING,
    "lr_scheduler": TRAINING,
    "metric": TRAINING,
    "mod": TRAINING,
    "model": TRAINING,
    "module": TRAINING,
    "mon": TRAINING,
    "monitor": TRAINING,
    "np": NUMPY,
    "npx": NUMPY,
    "numpy": NUMPY,
    "onnx": TRAINING,
    "operator": TRAINING,
    "optimizer": TRAINING,
    "profiler": "measure with a profiler of Python; provider.stats() has times of the data part",
    "rnn": TRAINING,
    "sym": TRAINING,
    "symbol": TRAINING,
    "visualization": TRAINING,
    "viz": TRAINING,
    "gluon.Parameter": TRAINING,
    "gluon.ParameterDict": TRAINING,
    "gluon.Trainer": TRAINING,
    "gluon.contrib": TRAINING,
    "gluon.loss": TRAINING,
    "gluon.model_zoo": TRAINING,
    "gluon.rnn": TRAINING,
}


class Elsewhere(ModuleType):
    """A module of MXNet that is not in this package; every name of it is an error."""

    __path__: list[str] = []

    def __init__(self, package: str, name: str) -> None:
        super().__init__(f"{package}.{name}", f"mx.{name} is not here: {REASONS[name]}.")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(f"{name} of {self.__doc__}")

    def __call__(self, *values: Any, **keywords: Any) -> Any:
        """Refuse a call, for a class of MXNet."""
        raise NotImplementedError(self.__doc__)


def stand_in(package: str, prefix: str = "") -> dict[str, Elsewhere]:
    """Make the stand-ins below a part of MXNet, importable from a package by their names."""
    made = {}
    for name in REASONS:
        above, _, own = name.rpartition(".")
        if above == prefix:
            made[own] = sys.modules[f"{package}.{own}"] = Elsewhere(
                package.removesuffix(f".{prefix}") if prefix else package, name
            )
    return made
