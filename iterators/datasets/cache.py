"""The folder in which downloaded and prepared data is kept, and files that are made once."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from recordio.bytes.temporary import Temporary

__all__ = [
    "cache_or_load_file",
    "get_dataset_directory",
    "get_dataset_root",
    "set_dataset_root",
]

#: Looked at in this order, once, when this module is imported.
VARIABLES = ("ITERATORS_DATASET_ROOT", "CHAINER_DATASET_ROOT")

_root = next(
    (os.environ[name] for name in VARIABLES if os.environ.get(name)),
    os.path.join(os.path.expanduser("~"), ".chainer", "dataset"),
)


def get_dataset_root() -> str:
    """Return the folder in which datasets are kept.

    What `set_dataset_root` said last, else the environment variable ``ITERATORS_DATASET_ROOT``,
    else ``CHAINER_DATASET_ROOT``, else ``~/.chainer/dataset``, where data that Chainer downloaded
    is found.  The variables are read once, when datasets are first used.

    Returns
    -------
    str

    Examples
    --------
    >>> isinstance(get_dataset_root(), str)
    True
    """
    return _root


def set_dataset_root(path: str | os.PathLike[str]) -> None:
    """Choose the folder in which datasets are kept, for this process.

    Parameters
    ----------
    path : path
        Made when it is needed.

    Examples
    --------
    >>> before = get_dataset_root()
    >>> set_dataset_root("/data/sets")
    >>> get_dataset_root()
    '/data/sets'
    >>> set_dataset_root(before)
    """
    global _root
    _root = os.fspath(path)


def get_dataset_directory(dataset_name: str, create_directory: bool = True) -> str:
    """Return the folder of one dataset below the root.

    Parameters
    ----------
    dataset_name : str
        May contain slashes.
    create_directory : bool
        Make the folder if it does not exist.

    Returns
    -------
    str

    Raises
    ------
    OSError
        If the folder cannot be made, or something else has its name.

    Examples
    --------
    >>> get_dataset_directory("me/digits", create_directory=False).endswith("digits")
    True
    """
    path = os.path.join(get_dataset_root(), dataset_name)
    if create_directory:
        os.makedirs(path, exist_ok=True)
    return path


def cache_or_load_file(
    path: str | os.PathLike[str],
    creator: Callable[[str], Any],
    loader: Callable[[str], Any],
) -> Any:
    """Load a file if it exists, else make it.

    Parameters
    ----------
    path : path
        The file; its folder is made if there is none.
    creator : callable
        ``creator(temporary_path)`` writes the file and returns its content.  The path does not
        exist yet, lies in a new folder beside `path`, and has the same name.
    loader : callable
        ``loader(path)`` returns the content of an existing file.

    Returns
    -------
    object
        What `creator` or `loader` returned.

    Raises
    ------
    RuntimeError
        If the root folder of the datasets cannot be made.
    FileNotFoundError
        If `creator` wrote no file.
    OSError
        If the file cannot be put in place.

    Notes
    -----
    The file appears whole or not at all, by a rename on one file system.  Several processes may
    call this at once for one path: more than one may then run its `creator`, the first that is done
    provides the file, and the others keep what they made to themselves.  An exception, Ctrl-C
    included, leaves nothing behind.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> before = get_dataset_root()
    >>> set_dataset_root(tempfile.mkdtemp())
    >>> path = pathlib.Path(get_dataset_directory("numbers"), "squares.npy")
    >>> def make(temporary):
    ...     squares = np.arange(4) ** 2
    ...     np.save(temporary, squares)
    ...     return squares
    >>> cache_or_load_file(path, make, np.load), cache_or_load_file(path, make, np.load)
    (array([0, 1, 4, 9]), array([0, 1, 4, 9]))
    >>> set_dataset_root(before)
    """
    path = os.path.abspath(path)
    if os.path.exists(path):
        return loader(path)
    root = get_dataset_root()
    try:
        os.makedirs(root, exist_ok=True)
    except OSError as error:
        raise RuntimeError(f"cannot make the root folder of the datasets, {root}") from error
    folder, name = os.path.split(path)
    os.makedirs(folder, exist_ok=True)
    temporary = Temporary(path, folder=True)
    try:
        temporary.make()
        made = os.path.join(temporary.path, name)
        content = creator(made)
        if not os.path.exists(made):
            raise FileNotFoundError(f"the creator wrote no file {made}, which was to become {path}")
        with lock(os.path.join(root, "_create_lock")):
            if not os.path.exists(path):
                os.replace(made, path)
    finally:
        temporary.remove()
    return content


def lock(path: str) -> Any:
    """Return a lock between processes and threads, for a ``with``; freed by the system at worst.

    Waiting can be interrupted with Ctrl-C.
    """
    import filelock

    return filelock.FileLock(path, thread_local=False)
