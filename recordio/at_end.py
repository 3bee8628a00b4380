"""What has to be done when an object is dropped, and at the latest when its process ends.

`weakref.finalize` promises that, but a forked worker of multiprocessing ends without the functions
of `atexit`; multiprocessing has finalizers of its own, which nobody else runs.
"""

from __future__ import annotations

import sys
import weakref

__all__ = ["at_end"]


def at_end(obj, function, *arguments) -> weakref.finalize:
    """Call a function once: when an object is dropped, or when the process ends.

    Parameters
    ----------
    obj : object
        Must not be referred to by the other arguments.
    function : callable
    *arguments
        Of the function.

    Returns
    -------
    weakref.finalize
        May be called earlier, or detached.

    Notes
    -----
    Nothing is called in processes that end by a signal or by ``os._exit``, of which no program is
    told.

    Examples
    --------
    >>> class File:
    ...     pass
    >>> file = File()
    >>> _ = at_end(file, print, "closed")
    >>> del file
    closed
    """
    finalizer = weakref.finalize(obj, function, *arguments)
    # A worker of multiprocessing has imported it before anything of ours runs in it.
    if (util := sys.modules.get("multiprocessing.util")) is not None:
        util.Finalize(obj, finalizer, exitpriority=0)
    return finalizer
