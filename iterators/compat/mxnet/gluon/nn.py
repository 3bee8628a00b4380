"""Names of `mx.gluon.nn` that transforms use; layers of networks are not here."""

from typing import Any

from .block import Block as Block
from .block import HybridBlock as HybridBlock
from .block import HybridSequential as HybridSequential
from .block import Sequential as Sequential


def __getattr__(name: str) -> Any:
    """Refuse a layer."""
    if not name[0].isupper():
        raise AttributeError(name)
    raise NotImplementedError(
        f"{name} of mx.gluon.nn is not here: this package delivers data, use torch for networks"
    )
