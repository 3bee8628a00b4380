"""Images of single records, augmented one at a time, for data sets.

The stage makes batches in threads of its own; here the caller's thread makes one image, or its
views, and gets the bytes that the stage would have made.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from multiprocessing import RawValue, context
from typing import Any, ClassVar

import numpy as np

from recordio.keywords.checks import choice, integer
from recordio.keywords.options import (
    Options,
    Rule,
    divided,
    option,
    refuse_ineffective,
    warn_of_ineffective,
)

from ..core.dtypes import BATCH_TYPES, quoted
from ..core.example_random import epoch_at_hand
from .augment.named_recipes import NamedRecipeOptions, expanded
from .augment.recipe import Recipe
from .augment.rules import EXPOSURE_RULE, PIXEL_RULES
from .fields.example_fields import ExampleFields
from .fields.image_fields import ImageFields
from .plan import RenderPlan
from .render import Renderer
from .stored_bits import CutBits
from .view_plans import PackPlan, augment_key, further_views, same_channels, with_keywords

LAYOUTS = ("CHW", "HWC")


@dataclass(frozen=True, kw_only=True)
class SeededRecipeOptions(NamedRecipeOptions):
    """The keywords of augmented examples beside a recipe, except their form."""

    seed: int = option(
        0,
        "int",
        "Determines what is drawn, as `seed_aug` or `seed` of ImageRecordIter.",
        partial(integer, low=-(1 << 63), high=(1 << 64) - 1),
    )


@dataclass(frozen=True, kw_only=True)
class ExampleOptions(SeededRecipeOptions):
    """The keywords of augmented examples beside a recipe."""

    rules: ClassVar[tuple[Rule, ...]] = (*PIXEL_RULES, EXPOSURE_RULE)

    layout: str = option(
        "CHW", "str", 'Order of the axes: "CHW" or "HWC".', partial(choice, allowed=LAYOUTS)
    )
    dtype: str = option(
        "float32",
        "str",
        f"{quoted()}, as of ImageRecordIter.",
        partial(choice, allowed=BATCH_TYPES),
    )


def _names(*families: type[Options]) -> frozenset[str]:
    return frozenset(item.name for family in families for item in fields(family))


#: The keywords of augmented examples, and those by which a data set is asked to augment.
EXAMPLE_KEYWORDS = _names(ExampleOptions, Recipe)
AUGMENTATION = _names(SeededRecipeOptions, Recipe)


#: In place of a number: nothing is watched yet, nothing any more, and the epoch has been set.
_NOTHING, _OVER, _SET = -1, -2, -3
#: Images that somebody looks at before the first epoch, and between two looks at one, at most.
_LOOKED_AT, _BETWEEN = 32, 8


class AugmentedExamples:
    """Makes the image of a record, or several views of it, as `ImageRecordIter` does.

    The keywords are those of `ExampleOptions` and `Recipe`, the limits those of `RenderPlan`, and
    `owner` is named in messages.  Everything that is drawn depends on seed, record and `epoch`.
    Any number of threads and processes may share it: each has a renderer of its own.

    >>> import recordio
    >>> examples = AugmentedExamples("mine", {"data_shape": (3, 4, 4), "views": [{}, {"scale": 2}]})
    >>> header, image = recordio.IRHeader(0, 3.0, 7, 0), np.full((9, 9, 3), 90, np.uint8)
    >>> record = recordio.pack_img(header, image, img_fmt=".png")
    >>> [float(view.max()) for view in examples(record, 0)]
    [90.0, 180.0]
    """

    def __init__(self, owner: str, keywords: Mapping[str, Any], **limits: int) -> None:
        own, augmentation = divided(owner, expanded(dict(keywords)), ExampleOptions, Recipe)
        options, recipe = ExampleOptions(**own), Recipe(**augmentation)
        views = [{}] if options.views is None else options.views
        if options.recipe is not None and options.recipe.tail:
            raise ValueError(
                f"recipe calls {', '.join(options.recipe.tail_names)} in Python: give a recipe "
                "without them, and call them with what comes of it"
            )
        recipes = same_channels(tuple(with_keywords("views", recipe, view) for view in views))
        for each in recipes:
            refuse_ineffective(options, each)
        warn_of_ineffective(options, recipe)
        self.recipes: tuple[Any, ...] = recipes
        self.options: ExampleOptions = options
        self.epoch: SharedNumber = SharedNumber()
        self._watched: SharedNumber = SharedNumber(_NOTHING)  # the image; see `_watch`
        self._asked: SharedNumber = SharedNumber()  # images that were asked for since
        #: The images of the data set.
        self.count: int = 2 * _LOOKED_AT
        self._owner = owner
        #: The fields of the records, which `fields_of` makes.
        self.fields: ImageFields | None = None
        self._limits: dict[str, Any] = limits
        self._cut = CutBits()
        self._own = threading.local()
        self._plan()  # a dtype that the recipe contradicts is refused at once

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch it is, to all processes that share this."""
        self.epoch.value = integer("epoch", epoch, low=0, high=(1 << 32) - 1)
        self._watched.value = _SET

    def _epoch(self) -> int:
        """Return the epoch that was set, or that of the loop."""
        at_hand = epoch_at_hand()
        return self.epoch.value if at_hand is None or self._watched.value == _SET else at_hand

    def _watch(self, number: int, make: Callable[[int], Any]) -> None:
        """Warn once if an image comes again that another epoch would draw anew.

        Loaders of other libraries do not say when an epoch begins.
        """
        watched = self._watched.value
        if watched < _NOTHING or epoch_at_hand():  # somebody counts epochs
            return
        asked = self._asked.value = self._asked.value + 1
        if watched == _NOTHING:
            if asked > min(_LOOKED_AT, self.count // 2):
                self._watched.value, self._asked.value = number, 0
            return
        if watched != number or asked <= min(_BETWEEN, self.count // 2):
            return
        now, *later = (_copied(make(epoch)) for epoch in range(4))
        if any(not np.array_equal(now, other) for other in later):
            self._watched.value = _OVER
            warnings.warn(
                f"{self._owner}: record {number} is asked for again in epoch 0, and has the same "
                "random changes: call set_epoch(epoch) in front of every epoch",
                UserWarning,
                stacklevel=2,
            )

    def _plan(self) -> RenderPlan:
        options = self.options
        keywords = {
            "key": augment_key(options.seed),
            "layout": f"N{options.layout}",
            "dtype": options.dtype,
            "label_width": 0,
            **self._limits,
        }
        views = further_views(self.recipes, options.seed)
        return PackPlan(RenderPlan, self.recipes[0], keywords, views).plan

    def plans(self) -> list[RenderPlan]:
        """Return the plan of the image, or those of its views."""
        plan = self._plan()
        return [plan, *plan.views]

    def __call__(self, record: bytes, number: int) -> np.ndarray | tuple[np.ndarray, ...]:
        """Return the image of a record, or a tuple of its views, drawn by the record's number."""
        renderer = self._renderer()
        self._watch(number, lambda epoch: renderer.sample(record, epoch, number)[0])
        data, _, _ = renderer.sample(record, self._epoch(), number)
        if renderer.num_cut():
            self._cut(renderer.plan.cuts)
        return self._views(data)

    def fields_of(self, number: int) -> list[Any]:
        """Return the fields of the record that this thread made last, by its number."""
        made: ExampleFields = self._own.fields
        return made.of(number, self._epoch())

    def of_pixels(self, pixels: np.ndarray, number: int) -> np.ndarray | tuple[np.ndarray, ...]:
        """Make them of an image that is decoded already: uint8, (height, width, 1 or 3)."""
        renderer = self._renderer()
        self._watch(number, lambda epoch: renderer.pixels(pixels, epoch, number))
        return self._views(renderer.pixels(pixels, self._epoch(), number))

    def _views(self, data: Any) -> np.ndarray | tuple[np.ndarray, ...]:
        return tuple(view[0] for view in data) if len(self.recipes) > 1 else data[0]

    def _renderer(self) -> Renderer:
        """The renderer of this thread."""
        if not hasattr(self._own, "renderer"):
            self._own.renderer = Renderer(self._plan())
            if self.fields:
                self._own.fields = ExampleFields(self.fields, self._own.renderer)
        return self._own.renderer

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_own"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._own = threading.local()


def _copied(data: Any) -> np.ndarray:
    """Return the first view of an image, which stays as it is."""
    return np.array(data[0] if isinstance(data, (list, tuple)) else data)


class SharedNumber:
    """A whole number of 64 bits in memory that forked and spawned processes share.

    Pickled for anything but the start of a process it is a number of its own.
    """

    def __init__(self, value: int = 0) -> None:
        self._memory = RawValue("q", value)

    @property
    def value(self) -> int:
        """The number now."""
        return self._memory.value

    @value.setter
    def value(self, value: int) -> None:
        self._memory.value = value

    def __getstate__(self) -> Any:
        return self._memory if context.get_spawning_popen() is not None else self.value

    def __setstate__(self, state: Any) -> None:
        self._memory = RawValue("q", state) if isinstance(state, int) else state
