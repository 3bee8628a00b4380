"""Work on the chunks of a source in several threads, with results in the order of the chunks.

The work must release the GIL to gain from it.  Nothing here knows what a chunk is, and no more than
a few chunks are under way at any time.
"""

from __future__ import annotations

import os
import threading

__all__ = ["OrderedWork", "default_threads"]


def default_threads() -> int:
    """One thread for every processor that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class OrderedWork:
    """Iterator over ``work(chunk)`` for every chunk that ``read`` returns.

    Parameters
    ----------
    read : callable
        ``read(buffer)`` returns the next chunk, or None at the end.  It is called by one thread at
        a time.  `buffer` is the ``chunk.buffer`` of the last chunk that the thread worked on, or
        None.
    work : callable
        ``work(chunk)`` makes the result; it is called by many threads at a time.
    threads : int
        How many.
    ahead : int
        Results that may wait for the consumer, or be under way, at a time; at least 1.

    Notes
    -----
    An exception of `read` or `work` is raised at the place of its result: everything before it is
    delivered first, and nothing comes after it.  The threads end with the last chunk, with an
    exception, or with `close`, which every user must call at last (``finally``).

    Examples
    --------
    >>> import itertools
    >>> class Chunk:
    ...     buffer = None
    >>> chunks = itertools.chain([Chunk(), Chunk()], itertools.repeat(None))
    >>> work = OrderedWork(lambda buffer: next(chunks), lambda chunk: "done", threads=2, ahead=2)
    >>> list(work)
    ['done', 'done']
    >>> work.close()
    """

    def __init__(self, read, work, *, threads, ahead):
        self._read = read
        self._work = work
        self._ahead = ahead
        self._reading = threading.Lock()
        self._changed = threading.Condition()
        self._results: dict[int, tuple[object, BaseException | None]] = {}
        self._issued = 0
        self._delivered = 0
        self._ended = False  # no further chunk will be read
        self._stopped = False
        self._owner = os.getpid()
        self._threads = [
            threading.Thread(target=self._run, name=f"recordio-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def __iter__(self):
        return self

    def __next__(self):
        if os.getpid() != self._owner:
            raise RuntimeError(
                f"this was started by process {self._owner}; a forked process must start its own"
            )
        with self._changed:
            while self._delivered not in self._results:
                if self._stopped or (self._ended and self._delivered == self._issued):
                    raise StopIteration
                self._changed.wait()
            result, error = self._results.pop(self._delivered)
            self._delivered += 1
            self._changed.notify_all()
        if error is not None:
            self.close()
            raise error
        return result

    def close(self):
        """Stop and wait for the threads; each ends what it is working on."""
        if os.getpid() != self._owner:
            return  # a forked child has none of the threads
        with self._changed:
            self._stopped = True
            self._results.clear()
            self._changed.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def _run(self):
        buffer = None
        while True:
            number, chunk, error = self._next_chunk(buffer)
            if number is None:
                return
            result = None
            if error is None:
                try:
                    result = self._work(chunk)
                    buffer = chunk.buffer
                except BaseException as raised:
                    error = raised
            with self._changed:
                self._ended = self._ended or error is not None
                self._results[number] = result, error
                self._changed.notify_all()
            del chunk, result, error  # nothing may be kept alive while waiting for the next one

    def _next_chunk(self, buffer):
        """Number of the next result and its chunk, or the error of reading it."""
        chunk = error = None
        with self._reading:
            with self._changed:
                while not self._stopped and self._issued - self._delivered >= self._ahead:
                    self._changed.wait()
                if self._stopped or self._ended:
                    return None, None, None
            try:
                chunk = self._read(buffer)
            except BaseException as raised:
                error = raised
            with self._changed:
                self._ended = self._ended or error is not None or chunk is None
                if chunk is None and error is None:
                    self._changed.notify_all()
                    return None, None, None
                number = self._issued
                self._issued += 1
        return number, chunk, error
