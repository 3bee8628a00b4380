"""Calls that are made when an object is dropped, and at the latest when its process ends.

`weakref.finalize` promises that, but a forked worker of multiprocessing ends without the functions
of `atexit`; multiprocessing has finalizers of its own, which nobody else runs.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any


def at_end(
    obj: Any, function: Callable[..., object], *arguments: Any
) -> weakref.finalize[..., Any]:
    """Call a function once: when an object is dropped, or when the process ends.

    The arguments must not refer to the object.  Processes that end by a signal or by ``os._exit``
    call nothing.
    """
    finalizer = weakref.finalize(obj, function, *arguments)
    # A worker of multiprocessing has imported it before anything of ours runs in it.
    if (util := sys.modules.get("multiprocessing.util")) is not None:
        util.Finalize(obj, finalizer, exitpriority=0)
    return finalizer
