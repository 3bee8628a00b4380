"""Preprocessing of views: statistics that are fitted on one set and applied to all.

A preprocess reads a form of a view, computes on the host with NumPy in float64, and writes the
result with `replace`, so that order of axes, library and device of the base stay.  An integer base
is made floating point first.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from recordio.keywords.checks import boolean, integer, integers, real

from ..core.backend import is_sparse, is_tensor
from . import batch_rows as rows
from .data_view import DataView
from .kinds import Kind, convert, kind_of, moved
from .list_view import ListView
from .view import View


def _bar(total: int, name: str, visible: bool) -> Any:
    from tqdm import tqdm  # loading it takes longer than most of what it counts

    return tqdm(total=total, desc=name, disable=not visible)


def _numbers(view: DataView, form: str) -> np.ndarray:
    """Return the values in a form, as float64 in host memory."""
    return convert(view.forward_get(form), Kind("float64", None, "numpy"))


def _of_views(apply: Callable[[Any, Any, bool], None]) -> Callable[..., None]:
    """Make an ``apply`` for views one for data sets of Pylearn2's kind as well.

    Those offer their rows by ``feature_view()`` and take others by ``set_design_matrix(X)``.
    """

    @functools.wraps(apply)
    def wrapped(self: Any, view: Any, can_fit: bool = False) -> None:
        if not hasattr(view, "set_design_matrix"):
            apply(self, view, can_fit)
            return
        features = view.feature_view()
        apply(self, features, can_fit)
        view.set_design_matrix(features.forward_get("bf"))

    return wrapped


def _made_floating(view: Any) -> DataView:
    """Return the view, its base made floating as NumPy promotes integers together with float32."""
    if not isinstance(view, DataView):
        raise TypeError(
            f"expected a view of one array, not {type(view).__name__}; for a ListView there is "
            "ParallelPreprocess"
        )
    if view.input is None:
        raise RuntimeError("the view has no data: call forward_put first")
    if is_sparse(view.input):
        raise TypeError("preprocessing changes every element and needs dense data, not sparse")
    kind = kind_of(view.input).dtype
    if kind != "bfloat16" and np.dtype(kind).kind != "f":
        view.to(np.result_type(kind, np.float32).name)
    return view


class Preprocess(ABC):
    """Base class: changes a view in place, possibly with parameters that were fitted before."""

    @abstractmethod
    def apply(self, view: View, can_fit: bool = False) -> None:
        """Change the values of a view.

        Parameters
        ----------
        view : View, or DenseDesignMatrix
            A view is changed through `replace`: converted copies and gradients are forgotten.  A
            data set of Pylearn2's kind gets another ``X``.
        can_fit : bool
            Whether parameters may be taken from these data.

        Raises
        ------
        RuntimeError
            If there are parameters, none were fitted and `can_fit` is False.
        """


class _Rowwise(Preprocess):
    """Base of the preprocesses that treat rows one by one, in place, a block at a time."""

    form: str

    def __init__(self, batch_size: int, progress: bool) -> None:
        self.batch_size: int = integer("batch_size", batch_size, low=1)
        self.progress: bool = boolean("progress", progress)

    @_of_views
    def apply(self, view: View, can_fit: bool = False) -> None:
        """Change the values of a view in the memory of its base; there is nothing to fit."""
        target = _made_floating(view)
        if not is_tensor(target.input) and not target.input.flags.writeable:
            target.forward_put(target.view, rows.copy(target.input))
        name = type(self).__name__
        with _bar(len(target), name, self.progress) as bar:
            for _, piece in target.iter_sub(self.batch_size, share=True, reuse=True):
                piece.replace(self.form, self.transform(_numbers(piece, self.form)), inplace=True)
                bar.update(len(piece))
        target.forward_put(target.view, target.input)

    @abstractmethod
    def transform(self, x: np.ndarray) -> np.ndarray:
        """Return new values of a block in the form that this preprocess uses."""


class Standardize(Preprocess):
    """Subtract the mean and divide by the standard deviation of every feature.

    Parameters
    ----------
    global_mean, global_std : bool
        One number for all features together.
    std_eps : float
        Added to the standard deviation, whose estimate divides by n - 1.

    Examples
    --------
    >>> from iterators import DataView
    >>> view = DataView("bf", np.array([[0.0, 5.0], [2.0, 5.0]]))
    >>> Standardize(std_eps=1).apply(view, can_fit=True)
    >>> view.input.round(3).tolist()
    [[-0.414, 0.0], [0.414, 0.0]]
    """

    def __init__(
        self, global_mean: bool = False, global_std: bool = False, std_eps: float = 1e-4
    ) -> None:
        self.global_mean: bool = boolean("global_mean", global_mean)
        self.global_std: bool = boolean("global_std", global_std)
        self.std_eps: float = real("std_eps", std_eps, low=0)
        self.mean: Any = None
        self.std: Any = None

    @_of_views
    def apply(self, view: View, can_fit: bool = False) -> None:
        """See `Preprocess.apply`."""
        target = _made_floating(view)
        if not can_fit and self.mean is None:
            raise RuntimeError("Standardize was never fitted: apply it with can_fit=True first")
        x = _numbers(target, "bf")
        if can_fit:
            if not x.size:
                raise ValueError("Standardize cannot be fitted to no data")
            self.mean = x.mean() if self.global_mean else x.mean(0)
            axis, count = (None, x.size) if self.global_std else (0, len(x))
            # One number has no spread; n - 1 would divide by zero.
            self.std = x.std(axis, ddof=1 if count > 1 else 0)
        target.replace("bf", (x - self.mean) / (self.std + self.std_eps))


class GCN(_Rowwise):
    """Global contrast normalisation: every row is centred and brought to the same length.

    ``row = scale * (row - mean) / sqrt(sqrt_bias + sum((row - mean) ** 2))``

    Parameters
    ----------
    substract_mean : bool
        Centre first (dp's spelling).
    scale : float
        Factor of the result.
    sqrt_bias : float
        Added under the square root.
    use_std : bool
        Use the mean of the squares instead of their sum.
    min_divisor : float
        Rows whose divisor is below this number are not divided.
    batch_size : int
        Rows that are processed at a time.
    progress : bool
        Show a progress bar.

    Examples
    --------
    >>> from iterators import DataView
    >>> view = DataView("bf", np.array([[1.0, 3.0], [5.0, 5.0]]))
    >>> GCN(use_std=True, progress=False).apply(view)
    >>> view.input.tolist()
    [[-1.0, 1.0], [0.0, 0.0]]
    """

    form = "bf"

    def __init__(
        self,
        substract_mean: bool = True,
        scale: float = 1.0,
        sqrt_bias: float = 0.0,
        use_std: bool = False,
        min_divisor: float = 1e-8,
        batch_size: int = 256,
        progress: bool = True,
    ) -> None:
        super().__init__(batch_size, progress)
        self.substract_mean: bool = boolean("substract_mean", substract_mean)
        self.scale: float = real("scale", scale)
        self.sqrt_bias: float = real("sqrt_bias", sqrt_bias, low=0)
        self.use_std: bool = boolean("use_std", use_std)
        self.min_divisor: float = real("min_divisor", min_divisor, low=0)

    def transform(self, x: np.ndarray) -> np.ndarray:
        """Normalised rows (n, f)."""
        if self.substract_mean:
            x = x - x.mean(1, keepdims=True)
        gather: Callable[..., np.ndarray] = np.mean if self.use_std else np.sum
        divisor = np.sqrt(self.sqrt_bias + gather(x * x, axis=1, keepdims=True))
        divisor[divisor < self.min_divisor] = 1
        return x * (self.scale / divisor)


class ZCA(Preprocess):
    """Whitening that changes the data as little as possible: ``(x - mean) V D^(-1/2) V'``.

    ``V D V'`` is the covariance (which divides by n) plus `filter_bias` on the diagonal.

    Parameters
    ----------
    n_component : int, optional
        Number of directions to keep, those of the greatest variance; by default all.
    n_drop_component : int
        Number of these to drop, those of the smallest variance.
    filter_bias : float
        Added to the variances; above 0 if there are directions without variance.
    compute_undo : bool
        Compute what `undo` needs as well.
    progress : bool
        Show a progress bar while fitting.

    Examples
    --------
    >>> from iterators import DataView
    >>> view = DataView("bf", np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]]))
    >>> ZCA(filter_bias=0, progress=False).apply(view, can_fit=True)
    >>> (np.cov(view.input.T, bias=True)).round(6).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def __init__(
        self,
        n_component: int | None = None,
        n_drop_component: int = 0,
        filter_bias: float = 0.1,
        compute_undo: bool = False,
        progress: bool = True,
    ) -> None:
        self.n_component: int | None = (
            None if n_component is None else integer("n_component", n_component, low=1)
        )
        self.n_drop_component: int = integer("n_drop_component", n_drop_component or 0, low=0)
        self.filter_bias: float = real("filter_bias", filter_bias, low=0)
        self.compute_undo: bool = boolean("compute_undo", compute_undo)
        self.progress: bool = boolean("progress", progress)
        self.mean: Any = None
        self.whitening: Any = None
        self.colouring: Any = None

    def fit(self, x: np.ndarray) -> None:
        """Take mean and directions from rows (n, f).

        Raises
        ------
        ValueError
            If there are no rows, fewer features than components, or a direction without variance
            although `filter_bias` is 0.
        """
        count, features = x.shape
        keep = features if self.n_component is None else self.n_component
        if not count or keep > features or self.n_drop_component >= keep:
            raise ValueError(
                f"ZCA cannot keep {keep} - {self.n_drop_component} of {features} directions "
                f"of {count} rows"
            )
        with _bar(3, "ZCA", self.progress) as bar:
            mean = x.mean(0)
            centred = x - mean
            covariance = centred.T @ centred / count
            covariance.flat[:: features + 1] += self.filter_bias
            bar.update()
            values, vectors = np.linalg.eigh(covariance)  # ascending
            bar.update()
            kept = slice(features - keep + self.n_drop_component, features)
            values, vectors = values[kept], vectors[:, kept]
            if values[0] <= 0:
                raise ValueError(
                    "ZCA: a direction has no variance; use filter_bias or n_drop_component"
                )
            self.mean = mean
            self.whitening = (vectors / np.sqrt(values)) @ vectors.T
            self.colouring = (vectors * np.sqrt(values)) @ vectors.T if self.compute_undo else None
            bar.update()

    @_of_views
    def apply(self, view: View, can_fit: bool = False) -> None:
        """See `Preprocess.apply`."""
        target = _made_floating(view)
        if not can_fit and self.whitening is None:
            raise RuntimeError("ZCA was never fitted: apply it with can_fit=True first")
        x = _numbers(target, "bf")
        if can_fit:
            self.fit(x)
        target.replace("bf", (x - self.mean) @ self.whitening)

    def undo(self, view: DataView) -> Any:
        """Return values before whitening, as ``bf`` in the type and library of the view.

        Raises
        ------
        RuntimeError
            If the fit was made without `compute_undo`.
        """
        if self.colouring is None:
            raise RuntimeError("ZCA.undo needs a fit with compute_undo=True")
        x = _numbers(view, "bf") @ self.colouring + self.mean
        return convert(x, kind_of(view.input))


class LeCunLCN(_Rowwise):
    """Local contrast normalisation of images, channel by channel (Jarrett et al., ICCV 2009).

    From every pixel the Gaussian mean of its neighbourhood is subtracted; the result is divided by
    the Gaussian root mean square of its neighbourhood, or by the mean of that over the image if
    that is greater.  Outside the image everything is 0.

    Parameters
    ----------
    kernel_size : int
        Side of the neighbourhood in pixels, odd.
    kernel_std : float
        Standard deviation of the Gaussian, in pixels.
    threshold : float
        Smallest divisor.
    divide_by_std : bool
        Divide by the standard deviation of the image plus `threshold` instead.
    batch_size : int
        Images that are processed at a time.
    channels : sequence of int
        Which channels, counted from 0; those that the images do not have are left out.
    progress : bool
        Show a progress bar.

    Examples
    --------
    >>> from iterators import ImageView
    >>> view = ImageView("bchw", np.ones((1, 1, 16, 16)))
    >>> LeCunLCN(progress=False).apply(view)
    >>> abs(view.input[0, 0, 8, 8]) < 1e-9, view.input[0, 0, 0, 0] > 1
    (np.True_, np.True_)
    """

    form = "bhwc"

    def __init__(
        self,
        kernel_size: int = 9,
        kernel_std: float = 2.0,
        threshold: float = 1e-4,
        divide_by_std: bool = False,
        batch_size: int = 256,
        channels: Sequence[int] = (0, 1, 2),
        progress: bool = True,
    ) -> None:
        super().__init__(batch_size, progress)
        self.kernel_size: int = integer("kernel_size", kernel_size, low=1)
        if self.kernel_size % 2 == 0:
            raise ValueError(f"kernel_size={kernel_size}: expected an odd number")
        self.kernel_std: float = real("kernel_std", kernel_std, low=0)
        if not self.kernel_std:
            raise ValueError("kernel_std=0: expected a number above 0")
        self.threshold: float = real("threshold", threshold, low=0)
        self.divide_by_std: bool = boolean("divide_by_std", divide_by_std)
        self.channels: tuple[int, ...] = integers("channels", channels, low=0)
        offsets = np.arange(self.kernel_size) - self.kernel_size // 2
        kernel = np.exp(-(offsets**2) / (2 * self.kernel_std**2))
        # The two-dimensional Gaussian is the product of this with itself.
        self._kernel = kernel / kernel.sum()

    def transform(self, x: np.ndarray) -> np.ndarray:
        """Normalised images (n, h, w, c)."""
        result = x.copy()
        for channel in self.channels:
            if channel < x.shape[3]:
                result[..., channel] = self._normalised(x[..., channel])
        return result

    def _normalised(self, x: np.ndarray) -> np.ndarray:
        centred = x - self._smoothed(x)
        if self.divide_by_std:
            count = centred[0].size
            spread = centred.std((1, 2), ddof=1 if count > 1 else 0, keepdims=True)
            return centred / (spread + self.threshold)
        local = np.sqrt(self._smoothed(centred * centred))
        divisor = np.maximum(local, local.mean((1, 2), keepdims=True))
        return centred / np.maximum(divisor, self.threshold)

    def _smoothed(self, x: np.ndarray) -> np.ndarray:
        """Return the gaussian mean over height and width of (n, h, w), with zeros outside."""
        for axis in (1, 2):
            size, margin = x.shape[axis], self.kernel_size // 2
            padding = [(0, 0)] * 3
            padding[axis] = (margin, margin)
            padded = np.pad(x, padding)
            x = sum(
                weight * rows.window(padded, axis, tap, tap + size)
                for tap, weight in enumerate(self._kernel)
            )
        return x


class Binarize(Preprocess):
    """1 where a value is at least `threshold`, 0 below; the element type stays.

    Parameters
    ----------
    threshold : float

    Examples
    --------
    >>> from iterators import DataView
    >>> view = DataView("bf", np.array([[0, 128, 255]], np.uint8))
    >>> Binarize(128).apply(view)
    >>> view.input.tolist()
    [[0, 1, 1]]
    """

    def __init__(self, threshold: float) -> None:
        self.threshold: float = real("threshold", threshold)

    @_of_views
    def apply(self, view: View, can_fit: bool = False) -> None:
        """See `Preprocess.apply`; there is nothing to fit."""
        if not isinstance(view, DataView):
            raise TypeError(f"expected a view of one array, not {type(view).__name__}")
        kind = kind_of(view.forward_get())
        x = moved(view.input, kind._replace(device=None, library="numpy"))
        view.replace(view.view, np.where(x < self.threshold, 0, 1).astype(x.dtype))


class _OfSteps(Preprocess):
    """Base of the preprocesses that are made of others."""

    def __init__(self, steps: Iterable[Any]) -> None:
        self.steps: tuple[Any, ...] = tuple(steps)
        for number, step in enumerate(self.steps):
            if not callable(getattr(step, "apply", None)):
                raise TypeError(f"step {number} is a {type(step).__name__}, which has no apply()")


class Pipeline(_OfSteps):
    """Several preprocesses one after another.

    Parameters
    ----------
    steps : iterable of preprocess

    Examples
    --------
    >>> from iterators import DataView
    >>> view = DataView("bf", np.array([[1.0], [3.0]]))
    >>> Pipeline([Standardize(), Binarize(0)]).apply(view, can_fit=True)
    >>> view.input.tolist()
    [[0.0], [1.0]]
    """

    def apply(self, view: View, can_fit: bool = False) -> None:
        """Apply every step; later ones are fitted to what earlier ones made."""
        for step in self.steps:
            step.apply(view, can_fit)


class ParallelPreprocess(_OfSteps):
    """One preprocess for every component of a `ListView`.

    Parameters
    ----------
    steps : iterable of preprocess
    """

    def apply(self, view: View, can_fit: bool = False) -> None:
        """Apply every step to its component.

        Raises
        ------
        TypeError
            If `view` is not a ListView.
        ValueError
            If it has another number of components.
        """
        if not isinstance(view, ListView):
            raise TypeError(f"expected a ListView, not {type(view).__name__}")
        if view.size() != len(self.steps):
            raise ValueError(f"{len(self.steps)} preprocesses for {view.size()} components")
        for step, component in zip(self.steps, view, strict=True):
            step.apply(component, can_fit)
