"""`MixBatches`: MixUp and CutMix over the batches of another provider.

What is drawn for a batch follows from (seed, epoch, number of the batch) alone, so a resumed run
mixes as an uninterrupted one does.  It decodes nothing and moves nothing between devices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from recordio.errors import LabelError
from recordio.keywords.checks import choice, integer, real
from recordio.keywords.options import Options, accepts, option, optional

from ..core.backend import is_stored_sparse, is_tensor
from ..core.batch import DataBatch, DataDesc
from ..core.random import derive_key
from .abstract import AbstractDataProvider
from .form_batches import FormBatch, with_arrays
from .wrapper import Saved, Wrapper

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..core.keywords import MixKeywords

#: Keeps these draws apart from all others of a seed.
PURPOSE = 0x6D6978  # "mix"


@dataclass(frozen=True)
class Mixture:
    """Numbers that were drawn for a batch.

    `weight` is the share of a sample itself; its partner has the rest.  The `box` of CutMix has the
    centre x and y and half of the sides, as shares of width and height.
    """

    weight: float
    box: tuple[float, float, float] | None = None

    def rectangle(self, width: int, height: int) -> tuple[int, int, int, int]:
        """Return the first and last columns and rows from the partner, ends excluded."""
        if self.box is None:
            return 0, 0, 0, 0
        x, y, half = int(self.box[0] * width), int(self.box[1] * height), self.box[2]
        across, down = int(half * width), int(half * height)
        left, right = max(x - across, 0), min(x + across, width)
        return left, right, max(y - down, 0), min(y + down, height)


@dataclass(frozen=True, kw_only=True)
class MixOptions(Options):
    """The keywords of `MixBatches`."""

    positional = "provider mixup cutmix"

    provider: Any = option(
        kind="AbstractDataProvider",
        text="Provider of the batches; from now on, nothing else may use it.",
    )
    mixup: float = option(
        0.0,
        "float",
        """Parameter of the Beta distribution of MixUp, which adds a sample and its partner; 0 for
        none.""",
        partial(real, low=0, high=1e3),
    )
    cutmix: float = option(
        0.0,
        "float",
        "Parameter of CutMix, which puts a rectangle of the partner into a sample; 0 for none.",
        partial(real, low=0, high=1e3),
    )
    switch: float = option(
        0.5,
        "float",
        "Probability of CutMix where there are both, 0 to 1.",
        partial(real, low=0, high=1),
    )
    prob: float = option(
        1.0, "float", "Probability of mixing a batch at all, 0 to 1.", partial(real, low=0, high=1)
    )
    label_smoothing: float = option(
        0.0,
        "float",
        """Share of the label that is spread evenly over all classes, 0 to 1; needs `classes`.""",
        partial(real, low=0, high=1),
    )
    classes: int | None = option(
        None,
        "int",
        """Number of classes: labels become probabilities, float32 ``(batch_size, classes)``.
        Without it there are three label arrays: the label, that of the partner, and the share of
        the first, float32 ``(batch_size,)``.""",
        optional(partial(integer, low=1)),
    )
    unlabelled: str = option(
        "error",
        '{"error", "zero"}',
        """With `classes`, what becomes of a label of -1, which stands for a sample without one: an
        error, or a row of zeros.""",
        partial(choice, allowed=("error", "zero")),
    )
    seed: int = option(
        0,
        "int",
        "Determines all random numbers, together with the epoch and the batch.",
        partial(integer, low=-(1 << 63), high=(1 << 64) - 1),
    )


@accepts(MixOptions)
class MixBatches(Wrapper):
    """The batches of another provider, their samples mixed with one another.

    The partner of a sample is the one before it in the batch; that of the first is the last one
    that is not padding.  Padding is not mixed.  One number is drawn for a whole batch, as
    torchvision and timm do.

    MixUp adds further images of a sample (`iterators.fields`) that are normalised as the image is,
    and CutMix cuts them and masks as it cuts the image; other fields are refused.

    Parameters
    ----------
    {parameters}

    Raises
    ------
    ValueError
        If nothing would be mixed, if the labels are not one class for every sample, if labels lie
        beyond `classes`, and for integer pixels, which cannot be added with weights.
    TypeError
        For a provider whose batches have a form of their own.

    Examples
    --------
    >>> from iterators import ArrayDataProvider
    >>> rows, labels = np.eye(4, dtype=np.float32), np.arange(4)
    >>> inside = ArrayDataProvider(rows, labels, batch_size=4)
    >>> batch = next(iter(MixBatches(inside, mixup=0.8, classes=4)))
    >>> batch.label[0].shape, bool(np.allclose(batch.data[0], batch.label[0]))
    ((4, 4), True)
    """

    def __init__(self, *values: Any, **keywords: Unpack[MixKeywords]) -> None:
        options = MixOptions.of(type(self).__name__, keywords, values)
        super().__init__(None, 0)
        self._options = options
        self.provider: Any
        self.provider = inside = options.provider
        self._check(options)
        self._around([inside])
        data = list(inside.provide_data)
        (label,) = inside.provide_label
        size = inside.batch_size
        if options.classes is not None:
            labels = [DataDesc(label.name, (size, options.classes), np.float32, "NC")]
        else:
            labels = [
                DataDesc(label.name, (size,), label.dtype, "N"),
                DataDesc(f"{label.name}_partner", (size,), label.dtype, "N"),
                DataDesc(f"{label.name}_share", (size,), np.float32, "N"),
            ]
        self._describe(data, labels, None, size)

    def _check(self, options: MixOptions) -> None:
        inside = options.provider
        if not isinstance(inside, AbstractDataProvider):
            raise TypeError(
                f"provider={inside!r:.60}: expected a provider of batches.  An iterator of MXNet "
                "needs MXDataProvider around it, and RecordBatches goes around MixBatches"
            )
        if issubclass(inside.batch_type, FormBatch):
            raise TypeError(
                "the batches have a form of their own: mix before data_specs is applied"
            )
        if not (options.mixup or options.cutmix) or not options.prob:
            raise ValueError("nothing would be mixed: give mixup or cutmix a number above 0")
        if options.unlabelled == "zero" and options.classes is None:
            raise ValueError('unlabelled="zero" needs classes, the number of classes')
        if options.label_smoothing and options.classes is None:
            raise ValueError("label_smoothing needs classes, the number of classes")
        for name, kind in getattr(inside, "fields", {}).items():
            if reason := kind.not_mixed(bool(options.mixup)):
                raise ValueError(f"field {name!r} is not mixed, since {reason}")
        for desc in inside.provide_data:
            if options.mixup and np.issubdtype(desc.dtype, np.integer):
                raise ValueError(
                    f"mixup needs float pixels, and {desc.name!r} is {desc.dtype.name}: use a "
                    "float dtype, or cutmix alone"
                )
            layout = desc.layout or ""
            if options.cutmix and (
                not {"N", "H", "W"} <= set(layout) or len(layout) != len(desc.shape)
            ):
                raise ValueError(
                    f"cutmix needs images, and {desc.name!r} has the layout {desc.layout!r} and "
                    f"the shape {desc.shape}"
                )
        labels = inside.provide_label
        if len(labels) != 1 or math.prod(labels[0].shape) != inside.batch_size:
            raise ValueError("the labels have to be one array with one class for every sample")

    def __len__(self) -> int:
        """Number of batches of an epoch, if the provider inside knows it."""
        return len(self.provider)

    def mixture(self, epoch: int, number: int) -> Mixture | None:
        """Draw the numbers of a batch; None if it is left unchanged.

        Examples
        --------
        >>> from iterators import ArrayDataProvider
        >>> inside = ArrayDataProvider(np.zeros((4, 2)), np.arange(4), batch_size=2)
        >>> mixed = MixBatches(inside, mixup=1.0, seed=3)
        >>> mixed.mixture(0, 1) == mixed.mixture(0, 1) != mixed.mixture(1, 1)
        True
        """
        options = self._options
        key = derive_key(options.seed, PURPOSE, epoch, number)
        rng = np.random.Generator(np.random.Philox(key=key))
        unit, switch, x, y = rng.random(4).tolist()
        if unit >= options.prob:
            return None
        cuts = bool(options.cutmix) and (not options.mixup or switch < options.switch)
        alpha = options.cutmix if cuts else options.mixup
        weight = float(rng.beta(alpha, alpha))
        if not cuts:
            return Mixture(weight)
        return Mixture(weight, (x, y, 0.5 * math.sqrt(1 - weight)))

    def _advance(self) -> DataBatch:
        batch = self.provider.next()
        try:
            return self._mix(batch)
        except Exception:
            self._number += 1  # the provider inside is past that batch
            raise

    def _mix(self, batch: DataBatch) -> DataBatch:
        for name in batch.fields:
            raise ValueError(f"field {name!r} is a list, and two of its values make no mixture")
        mixture = self.mixture(self._epoch, self._number)
        count, share, data = batch.count, 1.0, list(batch.data)
        if any(is_stored_sparse(array) for array in data):
            raise TypeError("the rows are sparse, and mixtures of them are not: they are not mixed")
        if mixture is not None and count:
            share = self._share(mixture, self.provider.provide_data[0])
            data = [
                _mixed(array, desc, count, mixture)
                for array, desc in zip(batch.data, self.provider.provide_data, strict=True)
            ]
        label = batch.label[0][:, 0] if batch.label[0].ndim == 2 else batch.label[0]
        return with_arrays(
            batch,
            data,
            self._labels(label, _partners(label, count), share, count),
            pad=batch.pad,
            index=batch.index,
            provide_data=self.provide_data,
            provide_label=self.provide_label,
        )

    @staticmethod
    def _share(mixture: Mixture, desc: DataDesc) -> float:
        """Share of a sample in its mixture, after the rectangle was cut at the edges."""
        if mixture.box is None:
            return mixture.weight
        layout = desc.layout or ""
        width, height = desc.shape[layout.index("W")], desc.shape[layout.index("H")]
        left, right, top, bottom = mixture.rectangle(width, height)
        return 1 - (right - left) * (bottom - top) / (width * height)

    def _labels(self, label: Any, partner: Any, share: float, count: int) -> list[Any]:
        classes = self._options.classes
        if classes is None:
            if is_tensor(label):
                shares = label.new_ones(len(label)).float()
            else:
                shares = np.ones(len(label), np.float32)
            shares[:count] = share
            return [label, partner, shares]
        smoothing = self._options.label_smoothing
        zero = self._options.unlabelled == "zero"
        own = _one_hot(label, classes, smoothing, zero)
        other = _one_hot(partner, classes, smoothing, zero)
        return [own * share + other * (1 - share)]

    def _restart(self) -> None:
        self.provider.reset()

    def _set_inside(self, past: int) -> None:
        self.provider.set_epoch(self._inside_first[0] + past)

    def state_dict(self) -> dict[str, Any]:
        """The position of the run, that of the provider inside and the settings included."""
        settings = {name: repr(value) for name, value in self._settings().items()}
        inside = Saved.of(self.provider)
        return {**self._own_state([inside]), "settings": settings, "inside": inside.state}

    def _settings(self) -> dict[str, Any]:
        settings = self._options.values(
            "mixup", "cutmix", "switch", "prob", "label_smoothing", "classes", "seed"
        )
        if self._options.differs("unlabelled"):  # states of older releases have no such setting
            settings["unlabelled"] = self._options.unlabelled
        return settings

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state.

        Raises
        ------
        ValueError
            If the state was saved with other settings; the difference is named.
        """
        position = self._checked_own_state(state, "settings", "inside")
        for name, value in self._settings().items():
            if dict(state["settings"]).get(name) != repr(value):
                raise ValueError(
                    f"the state belongs to {name}={dict(state['settings']).get(name)}, "
                    f"here it is {value!r}"
                )
        self.provider.load_state_dict(state["inside"])
        self._resume(state, position)

    def close(self) -> None:
        """Close the provider inside."""
        self.provider.close()


def _partners(array: Any, count: int, axis: int = 0) -> Any:
    """Every sample replaced by the one before it, the first by the last of `count`."""
    order = np.r_[np.roll(np.arange(count), 1), np.arange(count, array.shape[axis])]
    if not is_tensor(array):
        return np.take(array, order, axis)
    import torch

    return array.index_select(axis, torch.as_tensor(order, device=array.device))


def _mixed(array: Any, desc: DataDesc, count: int, mixture: Mixture) -> Any:
    layout = desc.layout or "N"
    axis = max(layout.find("N"), 0)
    partner = _partners(array, count, axis)
    if mixture.box is None:
        weight = mixture.weight
        if is_tensor(array):
            return partner.lerp_(array, weight)
        # NumPy's own floats are mixed in their type, those of packages in float32.
        number = array.dtype.type if array.dtype.kind == "f" else np.float32
        partner = partner.astype(number, copy=False)
        partner *= number(1 - weight)
        return (partner + array * number(weight)).astype(array.dtype, copy=False)
    width, height = desc.shape[layout.index("W")], desc.shape[layout.index("H")]
    left, right, top, bottom = mixture.rectangle(width, height)
    where: list[Any] = [slice(None)] * len(layout)
    where[layout.index("W")], where[layout.index("H")] = slice(left, right), slice(top, bottom)
    result = array.clone() if is_tensor(array) else array.copy()
    result[tuple(where)] = partner[tuple(where)]
    return result


def is_integer(array: Any) -> bool:
    """Return whether an array or tensor has whole numbers by its type."""
    if is_tensor(array):
        return not array.is_floating_point()
    return bool(np.issubdtype(array.dtype, np.integer))


def _one_hot(label: Any, classes: int, smoothing: float, zero: bool) -> Any:
    """Rows of probabilities, float32; of zeros for -1, if that is wanted."""
    off = smoothing / classes
    whole = label if is_integer(label) else label.round()
    if bool((label != whole).any()):
        raise ValueError("the labels are not whole numbers, so they are not classes: drop classes")
    low, high = (int(label.min()), int(label.max())) if len(label) else (0, 0)
    if low < -zero or high >= classes:
        wrong = high if high >= classes else low
        advice = '; unlabelled="zero" gives a sample without a label, -1, a row of zeros'
        raise LabelError(
            f"there is a label {wrong}, and classes={classes}{advice if wrong == -1 else ''}"
        )
    if low < 0:
        rows = _one_hot(label.clip(0), classes, smoothing, zero)
        rows[label < 0] = 0
        return rows
    if is_tensor(label):
        rows = label.float().new_full((len(label), classes), off)
        return rows.scatter_(1, label.long()[:, None], 1 - smoothing + off)
    rows = np.full((len(label), classes), off, np.float32)
    rows[np.arange(len(label)), label.astype(np.int64)] = 1 - smoothing + off
    return rows
