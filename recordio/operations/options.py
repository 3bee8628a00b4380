"""The parameters that functions over packs have in common."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, TypedDict

from ..formats.image_header import DEFAULT_LIMITS
from ..keywords.checks import boolean, integer
from ..keywords.options import option, optional
from ..packs.fields_meta import check_name

Progress = Callable[[int, int], object]


def field_list(name: str, value: Any) -> tuple[str, ...]:
    """Return the names of fields, given one by one or with commas between them.

    >>> field_list("fields", "mask,caption"), field_list("fields", ())
    (('mask', 'caption'), ())
    """
    names = [part for part in value.split(",") if part] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)):
        raise TypeError(f"{name}={value!r}: expected a list of names")
    return tuple(dict.fromkeys(check_name(part) for part in names))


Path = Annotated[
    str | os.PathLike[str],
    option(
        kind="str or os.PathLike",
        text="""The record file, with or without ``.rec``, or its URL; ``PREFIX.idx`` is used if it
        exists. Or a container, such as a folder of classes; braces, patterns and lists name
        several files that are one pack.""",
    ),
]
Out = Annotated[
    str | os.PathLike[str],
    option(
        kind="str or os.PathLike",
        text="The record file to write, with its index; existing files are replaced.",
    ),
]
Seed = Annotated[
    int,
    option(
        kind="int",
        text="Seed of the random choice: the same seed gives the same result; at least 0.",
        check=partial(integer, low=0),
    ),
]
Threads = Annotated[
    int | None,
    option(
        kind="int, optional",
        text="How many threads examine contents, by default one for every processor.",
        check=optional(partial(integer, low=1)),
    ),
]


Window = Annotated[
    int,
    option(
        kind="int",
        text="""Bytes of records that are read into memory in the order of the source, and then
        written: a larger number saves seeks on a slow disk. The result does not depend on it.""",
        check=partial(integer, low=1),
    ),
]
SkipErrors = Annotated[
    bool,
    option(
        False,
        "bool",
        "Leave out damaged records and count them, instead of stopping at the first.",
        boolean,
    ),
]
Told = Annotated[
    Progress | None,
    option(
        None,
        "callable, optional",
        """Called as ``progress(done, total)``, in records; a function that examines records before
        it writes some of them counts both, one after the other.""",
    ),
]
Cancelled = Annotated[
    Callable[[], bool],
    option(
        lambda: False,
        "callable, optional",
        """Called from time to time; if it returns true, `KeyboardInterrupt` is raised and nothing
        is written.""",
    ),
]


class RunOptions(TypedDict, total=False):
    """Keywords of every function that writes packs, which `write_packs` takes, too."""

    fields: Annotated[
        Sequence[str] | None,
        option(
            None,
            "sequence of str, optional",
            """Names of the fields to keep, which are stored beside the packs as
            ``PREFIX.NAME.rec``; an empty list keeps none. By default all fields are kept; they must
            be the same for all packs.""",
            optional(field_list),
        ),
    ]
    progress: Told
    cancelled: Cancelled


class Limits(TypedDict, total=False):
    """Keywords of functions that decode images."""

    max_pixels: Annotated[
        int | None,
        option(
            DEFAULT_LIMITS["max_pixels"],
            "int, optional",
            """Limits as for `recordio.unpack_img`: images that exceed one are not decoded, and
            count as damaged.""",
            optional(partial(integer, low=1)),
        ),
    ]
    max_scans: Annotated[int | None, option(DEFAULT_LIMITS["max_scans"], "int, optional", ...)]
    max_scan_pixels: Annotated[
        int | None, option(DEFAULT_LIMITS["max_scan_pixels"], "int, optional", ...)
    ]
