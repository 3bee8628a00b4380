"""The parameters that functions over packs have in common."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Annotated

from ..keywords.checks import boolean, integer
from ..keywords.options import option, optional
from .output import Progress

__all__ = ["Cancelled", "Out", "Path", "Seed", "SkipErrors", "Threads", "Told", "Window"]

Path = Annotated[
    str | os.PathLike[str],
    option(
        kind="str or os.PathLike",
        text="""The record file, with or without ``.rec``, or its URL; ``PREFIX.idx`` is used if it
        is there.""",
    ),
]
Out = Annotated[
    str | os.PathLike[str],
    option(
        kind="str or os.PathLike",
        text="The record file to write, with its index; existing ones are replaced.",
    ),
]
Seed = Annotated[
    int,
    option(
        kind="int",
        text="Another choice for another seed, the same every time for the same one; at least 0.",
        check=partial(integer, low=0),
    ),
]
Window = Annotated[
    int,
    option(
        kind="int",
        text="""Bytes that are put together in memory before they are written, and read in the order
        of the source: more spare a slow disk seeks.  The order does not depend on it.""",
        check=partial(integer, low=1),
    ),
]
SkipErrors = Annotated[
    bool,
    option(
        kind="bool",
        text="Leave damaged records out and count them, instead of stopping at the first.",
        check=boolean,
    ),
]
Threads = Annotated[
    int | None,
    option(
        kind="int, optional",
        text="How many threads look at images, by default one for every processor.",
        check=optional(partial(integer, low=1)),
    ),
]
Told = Annotated[
    Progress | None,
    option(
        kind="callable, optional",
        text="``progress(done, total)``: records written so far, and in all.",
    ),
]
Cancelled = Annotated[
    Callable[[], bool],
    option(
        kind="callable, optional",
        text="""Asked now and then; when true, `KeyboardInterrupt` is raised and nothing is
        published.""",
    ),
]
