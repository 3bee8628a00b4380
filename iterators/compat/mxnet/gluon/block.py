"""Names of `mx.gluon.block`: base classes of transforms, which hold no parameters."""

from __future__ import annotations

from typing import Any, TypeAlias

from .. import ndarray

__all__ = ["Block", "HybridBlock", "HybridSequential", "Sequential"]


class GluonBlock:
    """Something that is called with arrays: a class of its own defines `forward`.

    Examples
    --------
    >>> class Halved(GluonBlock):
    ...     def forward(self, x):
    ...         return x / 2
    >>> Halved()(ndarray.array([3])).asscalar()
    np.float32(1.5)
    """

    def __init__(self, prefix: Any = None, params: Any = None) -> None:
        if params is not None:
            raise ValueError("params: a block of this package has no parameters")
        self.prefix = prefix

    def forward(self, *args: Any) -> Any:
        """Return what the block makes of its arguments; to be defined by the class."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward")

    def hybridize(self, active: bool = True, **keywords: Any) -> None:
        """Return at once: there is nothing to compile."""

    def __call__(self, *args: Any) -> Any:
        return self.forward(*args)


class HybridBlock(GluonBlock):
    """A block whose class defines ``hybrid_forward(F, x)``, `F` being `mx.nd`."""

    def forward(self, *args: Any) -> Any:
        """Return what `hybrid_forward` makes of the arguments."""
        return self.hybrid_forward(ndarray, *args)

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        """Return what the block makes of its arguments; to be defined by the class."""
        raise NotImplementedError(f"{type(self).__name__} does not define hybrid_forward")


class Sequential(GluonBlock):
    """Blocks, or functions, one after the other."""

    def __init__(self, prefix: Any = None, params: Any = None) -> None:
        super().__init__(prefix, params)
        self._steps: list[Any] = []

    def add(self, *blocks: Any) -> None:
        """Append blocks."""
        self._steps += blocks

    def forward(self, x: Any, *args: Any) -> Any:
        """Call one block with the result of the one before."""
        for step in self._steps:
            x = step(x, *args)
            args = ()
            if isinstance(x, tuple):
                x, *args = x  # type: ignore[assignment]
        return (x, *args) if args else x

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, index: Any) -> Any:
        return self._steps[index]

    def __iter__(self) -> Any:
        return iter(self._steps)


Block: TypeAlias = GluonBlock
HybridSequential: TypeAlias = Sequential
