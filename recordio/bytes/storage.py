"""Output that appears whole or not at all, for one file or for a group that belongs together.

Files are written under temporary names in the folder of their target and renamed at the end;
`bytes.files.open_output` takes URLs as well.  This module never changes the content of a file.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Protocol, Self

from recordio.bytes.temporary import REPLACED_SUFFIX, Temporary
from recordio.bytes.temporary import TEMPORARY_SUFFIX as TEMPORARY_SUFFIX  # found here as well
from recordio.errors import RecordIOError
from recordio.exit_hooks import at_end

if TYPE_CHECKING:
    from typing_extensions import Buffer  # nothing of it is installed with the package

_BUFFER = 1 << 17


class Writable(Protocol):
    """File or object to which bytes are written."""

    def write(self, data: Buffer, /) -> int:
        """Append bytes and return how many they were."""


class Output:
    """One file, or several that belong together, that appear when `commit` is called.

    `files` are written to, one for each of `paths`; it is `closed` when published or discarded.
    """

    paths: tuple[str, ...] = ()
    files: tuple[Writable, ...] = ()
    closed = False

    def __init__(self) -> None:
        self._owner = os.getpid()

    @property
    def owned(self) -> bool:
        """True in the process that opened the output, False in a forked child."""
        return os.getpid() == self._owner

    def write(self, data: Buffer) -> int:
        """Append bytes to the first file and return how many they were."""
        return self.files[0].write(data)

    def check_usable(self) -> None:
        """Raise ValueError if the output is closed, RuntimeError in a forked child."""
        if self.closed:
            raise ValueError(f"the output to {self.paths[0]} is closed")
        if not self.owned:
            raise RuntimeError(
                f"the output to {self.paths[0]} was opened by process {self._owner}; a forked"
                " process must open its own"
            )

    def commit(self) -> None:
        """Publish all files; on an error give them up."""
        raise NotImplementedError

    def discard(self) -> None:
        """Give up, and leave the targets as they are; may be called again."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.discard()
        elif not self.closed:
            self.commit()


class AtomicOutput(Output):
    """Write one file, or several that belong together, and publish them in one step.

    The first path is the main file, and the others (an index, say) describe it; existing ones are
    replaced at the end.  A symbolic link stays one: its target is replaced.  Companions of the old
    main file that the new one does not have, `without`, are removed.  `go_on` is called with the
    path of the main file that a killed process left unpublished, if there is one, and returns how
    many of its bytes are `kept`; writing goes on there.

    Promises of `commit`:

    * The files are flushed to the disk (fsync) before they are renamed, and their folders after it.
    * At every moment, also after a crash or a loss of power, the main file is completely the old
      one or completely the new one.
    * A main file never stands beside a companion of another version.  The old companions are moved
      away first, then the main file is replaced, then the new companions appear.  A crash in
      between leaves the main file without companions, which readers report as a missing file;
      `recordio.build_index` writes an index again.
    * An error leaves the old files in place.  Leaving a ``with`` block by an exception (Ctrl-C and
      a full disk included), `discard`, dropping the object, or the end of the process removes the
      temporary files.  SIGKILL or a crash can leave files named ``TARGET.XXXXXXXX.partial``, or
      ``TARGET.00000000.replaced`` for an old companion.  The next output to the same target removes
      them, with the journal of a run of `recordio.packs` that did not go on; they can be deleted at
      any time.

    Without `durable` nothing is flushed to the disk: for what its readers check, and make anew if a
    loss of power took it.

    A forked child that inherits the object neither writes, publishes nor removes anything.

    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with AtomicOutput(folder / "a.txt") as output:
    ...     output.write(b"whole")
    ...     sorted(path.name for path in folder.glob("a.txt"))
    5
    []
    >>> (folder / "a.txt").read_bytes()
    b'whole'
    """

    files: tuple[io.BufferedWriter, ...] = ()

    def __init__(
        self,
        *paths: str | os.PathLike[str],
        without: Sequence[str | os.PathLike[str]] = (),
        go_on: Callable[[str], int] | None = None,
        durable: bool = True,
    ) -> None:
        if not paths:
            raise TypeError("AtomicOutput needs at least one path")
        super().__init__()
        self.paths: tuple[str, ...] = tuple(os.path.realpath(os.fsdecode(path)) for path in paths)
        if len(set(self.paths)) != len(self.paths):
            raise RecordIOError("the same file is given twice as an output", path=self.paths[0])
        self._without = tuple(os.path.realpath(os.fsdecode(path)) for path in without)
        self.kept: int = 0
        self._durable = durable
        self._temporary: list[Temporary] = []
        self._cleanup = at_end(self, _remove, self._temporary, self._owner)
        try:
            for path in self.paths:
                self.files += (self._create(path, go_on),)
                go_on = None
        except BaseException:
            self.discard()
            raise

    def _create(self, path: str, go_on: Callable[[str], int] | None) -> io.BufferedWriter:
        mode = None
        with contextlib.suppress(FileNotFoundError):
            status = os.stat(path)
            if not stat.S_ISREG(status.st_mode):
                raise RecordIOError("cannot be replaced: it is no regular file", path=path)
            mode = stat.S_IMODE(status.st_mode)
        temporary = Temporary(path)
        self._temporary.append(temporary)
        descriptor = None if go_on is None else temporary.take_over()
        file: _OwnFile | None = None
        try:
            if descriptor is None or go_on is None:
                descriptor = temporary.make()
            else:
                self.kept = go_on(temporary.path)
                os.ftruncate(descriptor, self.kept)
                os.lseek(descriptor, self.kept, os.SEEK_SET)
            assert descriptor is not None  # it is no folder
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(descriptor, mode)
            file = _OwnFile(descriptor, "wb")
            return io.BufferedWriter(file, _BUFFER)
        except BaseException:
            if file is not None:
                file.close()
            elif descriptor is not None:
                os.close(descriptor)
            raise

    @property
    def unpublished(self) -> tuple[str, ...]:
        """Paths of the files until they are published, one for each."""
        return tuple(temporary.path for temporary in self._temporary)

    def copy_existing(self, number: int, end_with: bytes = b"") -> int:
        """Begin file `number` with the bytes of its target, and count them.

        `end_with` is appended to content that does not end with it and is not empty.
        """
        file = self.files[number]
        with open(self.paths[number], "rb", buffering=0) as old:
            size = copy_bytes(old, file)
            if end_with and size:
                old.seek(max(size - len(end_with), 0))
                if old.read(len(end_with)) != end_with:
                    size += file.write(end_with)
        return size

    def leave_out(self, number: int) -> None:
        """Publish all files but this one, of which an existing one is removed."""
        _close_unflushed(self.files[number])
        self._temporary[number].remove()

    def commit(self) -> None:
        """Publish all files; on an error publish nothing and remove the temporary files."""
        self.check_usable()
        try:
            for file in self.files:
                if file.closed:
                    continue
                file.flush()
                if self._durable:
                    os.fsync(file.fileno())
                file.close()
            self._publish()
        except BaseException:
            self.discard()
            raise
        self.closed: bool = True
        self._cleanup.detach()
        for temporary in self._temporary:
            temporary.release()

    def _publish(self) -> None:
        main = self._temporary[0].path
        status = os.stat(main)
        moved: list[tuple[str, str]] = []
        try:
            for path in self.paths[1:] + self._without:
                old = f"{path}.00000000{REPLACED_SUFFIX}"
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(old)  # what a killed process left must not be taken for ours
                moved.append((old, path))
                with contextlib.suppress(FileNotFoundError):
                    os.rename(path, old)
            if moved:
                _sync_folders(path for _, path in moved)
            os.replace(main, self.paths[0])
            if moved:
                _sync_folders(self.paths[:1])
            self._reveal_companions()
            if self._durable:
                _sync_folders(self.paths)
            _remove_all(old for old, _ in moved)
        except BaseException:
            if not _is_at(status, self.paths[0]):
                for old, path in moved:
                    with contextlib.suppress(FileNotFoundError):
                        os.rename(old, path)
                raise
            # Ctrl-C: the main file is out, its companions belong to it.
            self._reveal_companions()
            _remove_all(old for old, _ in moved)
            raise

    def _reveal_companions(self) -> None:
        for temporary, path in zip(self._temporary[1:], self.paths[1:], strict=True):
            with contextlib.suppress(FileNotFoundError):  # it was renamed before an interruption
                os.replace(temporary.path, path)

    def discard(self) -> None:
        """Remove the temporary files and leave the targets as they are; may be called again."""
        self.closed = True
        if self.owned:
            for file in self.files:
                _close_unflushed(file)
        self._cleanup()


class _OwnFile(io.FileIO):
    """A file that only the process that opened it can write to.

    A forked child inherits the buffer above this file and would write it a second time when it
    ends.
    """

    def __init__(self, descriptor: int, mode: str) -> None:
        super().__init__(descriptor, mode)
        self._owner = os.getpid()

    def write(self, data: Buffer) -> int:  # type: ignore[override]
        return super().write(data) if os.getpid() == self._owner else memoryview(data).nbytes


@contextlib.contextmanager
def naming_output(path: str) -> Iterator[None]:
    """Name the file in errors of the system, which does not when a write fails."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = path
        raise


def copy_bytes(source: BinaryIO, target: io.BufferedWriter) -> int:
    """Copy all bytes, letting the file system share blocks where it can."""
    copied = 0
    if hasattr(os, "copy_file_range"):
        with contextlib.suppress(OSError):  # not on this file system: copy what is left by hand
            while count := os.copy_file_range(source.fileno(), target.fileno(), 1 << 30):
                copied += count
            return copied
    while data := source.read(_BUFFER):
        copied += target.write(data)
    return copied


def _close_unflushed(file: io.BufferedWriter) -> None:
    """Close a buffered file without letting a full disk stop what is being cleaned up."""
    raw = file.raw
    with contextlib.suppress(OSError, ValueError):
        raw.close()
    with contextlib.suppress(OSError, ValueError):
        file.close()


def _is_at(status: os.stat_result, path: str) -> bool:
    """Tell whether the file with this status has this path now."""
    try:
        return os.path.samestat(status, os.stat(path))
    except OSError:
        return False


def _remove_all(paths: Iterable[str]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _remove(temporary: list[Temporary], owner: int) -> None:
    if os.getpid() == owner:
        for file in temporary:
            file.remove()


def _sync_folders(paths: Iterable[str]) -> None:
    """Make renames durable, where the system can do this for folders."""
    if os.name == "nt":
        return
    for folder in {os.path.dirname(path) for path in paths}:
        descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            os.fsync(descriptor)
        except OSError:  # some network file systems refuse it; the rename itself is done
            pass
        finally:
            os.close(descriptor)
