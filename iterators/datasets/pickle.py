"""Pickled objects, one after the other in a file.  Never used unless a script asks for it by name.

**Security**: unpickling runs whatever code the file says.  Open only files that you or somebody you
trust wrote, or give an `unpickler` that allows what you expect and nothing else.  Record files
(`recordio`) hold data only and are the better choice for everything that is bytes or arrays.
"""

from __future__ import annotations

import os
import pickle
import pickletools
import threading
import weakref
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from recordio.bytes.regular_files import open_regular

from .dataset_base import DatasetMixin

#: Datasets that a forked child has to open again.
_datasets: weakref.WeakSet[PickleDataset] = weakref.WeakSet()


def _reopen_after_fork() -> None:
    for dataset in list(_datasets):
        dataset._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reopen_after_fork)


class PickleDatasetWriter:
    """Append objects to a file of pickles.

    Parameters
    ----------
    writer : binary file
        Closed by `close`.
    protocol : int
        Protocol of pickle.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> writer = PickleDatasetWriter(file)
    >>> writer.write((1, "one"))
    >>> PickleDataset(io.BytesIO(file.getvalue()))[0]
    (1, 'one')
    """

    def __init__(self, writer: BinaryIO, protocol: int = pickle.HIGHEST_PROTOCOL) -> None:
        self._writer = writer
        self._protocol = protocol

    def write(self, x: Any) -> None:
        """Append one object."""
        pickle.dump(x, self._writer, protocol=self._protocol)

    def flush(self) -> None:
        """Hand everything to the file."""
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()

    def __enter__(self) -> PickleDatasetWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class PickleDataset(DatasetMixin):
    """The objects in a file of pickles.

    Parameters
    ----------
    reader : binary file
        Must be seekable.  If it has a method ``after_fork``, that is called in every forked child.
        The dataset can be pickled if the reader can.
    unpickler : callable, optional
        ``unpickler(file).load()`` reads one object; `pickle.Unpickler` by default, a subclass with
        a strict ``find_class`` for files that are not trusted.

    Raises
    ------
    ValueError
        If `reader` is not seekable.
    pickle.UnpicklingError
        If the file is damaged, or ends inside a pickle.

    Warnings
    --------
    Reading an example runs the code that the file names.  Counting the examples does not.

    Notes
    -----
    Threads may share a dataset: reads are locked.  Negative integers count from the end.

    Examples
    --------
    >>> import io
    >>> data = PickleDataset(io.BytesIO(pickle.dumps("a") + pickle.dumps([1, 2])))
    >>> len(data), data[-1]
    (2, [1, 2])
    """

    def __init__(
        self, reader: BinaryIO, *, unpickler: Callable[[BinaryIO], Any] = pickle.Unpickler
    ) -> None:
        if not reader.seekable():
            raise ValueError("the reader of a PickleDataset must be seekable")
        self._reader = reader
        self._unpickler = unpickler
        self._positions = _scan(reader)
        self._join_process()

    def _join_process(self) -> None:
        self._lock = threading.Lock()
        _datasets.add(self)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        getattr(self._reader, "after_fork", lambda: None)()

    def __len__(self) -> int:
        return len(self._positions)

    def get_example(self, i: Any) -> Any:
        """Return the object at a position, unpickled again."""
        position = int(self._positions[i])
        with self._lock:
            self._reader.seek(position)
            return self._unpickler(self._reader).load()

    def close(self) -> None:
        """Close the reader."""
        self._reader.close()

    def __enter__(self) -> PickleDataset:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in ("_reader", "_unpickler", "_positions")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._join_process()


class _FileReader:
    """A binary file that is known by its path: it can be pickled and opened again after a fork."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.after_fork()

    def after_fork(self) -> None:
        """Open the file again: a file that was opened before a fork has a shared position."""
        self._file = open_regular(self._path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __reduce__(self) -> Any:
        return _FileReader, (self._path,)


def open_pickle_dataset(
    path: str | os.PathLike[str], *, unpickler: Callable[[BinaryIO], Any] = pickle.Unpickler
) -> PickleDataset:
    """Open a file of pickles as a dataset that can be pickled and used after a fork.

    Parameters
    ----------
    path : path
    unpickler : callable, optional
        As for `PickleDataset`, whose warning holds here as well.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.pkl")
    >>> with open_pickle_dataset_writer(path) as writer:
    ...     writer.write(7)
    >>> with open_pickle_dataset(path) as data:
    ...     data[0]
    7
    """
    reader: Any = _FileReader(os.path.abspath(path))
    return PickleDataset(reader, unpickler=unpickler)


def open_pickle_dataset_writer(
    path: str | os.PathLike[str], protocol: int = pickle.HIGHEST_PROTOCOL
) -> PickleDatasetWriter:
    """Make a file of pickles; an existing one is replaced.

    Parameters
    ----------
    path : path
    protocol : int
        Protocol of pickle.
    """
    return PickleDatasetWriter(open(path, "wb"), protocol)


def _scan(reader: BinaryIO) -> np.ndarray:
    """Find where the pickles begin, running nothing of them."""
    end = reader.seek(0, os.SEEK_END)
    position = reader.seek(0)
    positions = []
    while position < end:
        positions.append(position)
        try:
            for _ in pickletools.genops(reader):
                pass
        except ValueError as error:
            raise pickle.UnpicklingError(
                f"the pickle at offset {position} is damaged or truncated ({error})"
            ) from None
        position = reader.tell()
    return np.array(positions, np.int64)
