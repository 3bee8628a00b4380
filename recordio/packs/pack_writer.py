"""Write packs: records, indexes, fields and the files beside them, which appear together."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..bytes.files import StoredFile, open_output
from ..bytes.remote.settings import RemoteSettings
from ..bytes.storage import AtomicOutput, copy_bytes
from ..frames.companions import FIELDS, INDEX, RECORDS, set_paths, stale_files
from ..frames.writer import RecordWriter
from .field_files import check_left
from .fields_meta import FieldMeta, check_name, format_fields

#: What a file beside records gets: bytes, a copy, or what a function returns in the end, so that a
#: file without a byte is left out; None where a `part` writes it.
Content = bytes | StoredFile | Callable[[], bytes] | None


class FrameWriter(RecordWriter):
    """A `RecordWriter` that also takes whole frames, and lines of the index in any order."""

    def write_frames(self, frames: Any, lengths: Any, keys: Any = None) -> np.ndarray:
        """Write frames that lie one after the other; return where they begin in the file.

        Without `keys` they have no lines in the index; see `list_records`.
        """
        self._output.check_usable()
        with self._lock:
            self._flush()
            offsets = self._written + np.cumsum(lengths) - lengths
            self._write_out(0, frames)
        if keys is not None:
            self.list_records(keys, offsets)
        return offsets

    def list_records(self, keys: Any, offsets: Any, checksums: Any = None) -> None:
        """Add lines to the index, and the checksums of frames that were written."""
        with self._lock:
            self._lines.frombytes(np.stack([keys, offsets], 1).astype("q").tobytes())
            if checksums is not None:
                self._checked.frombytes(np.stack([offsets, checksums], 1).astype("q").tobytes())

    def go_on_with(self, keys: Any, offsets: Any, size: int) -> None:
        """Go on behind records that a killed process left in the file."""
        self._written = size
        self.list_records(keys, offsets)


class PackWriter(FrameWriter):
    """The writer of a pack; `fields` has one for each of its fields, by name.

    All files are published by `close`, as one group whose main file is the record file of the pack:
    at no moment does it stand beside fields of another version.  `describe`, called by `close`,
    returns what the fields are, for ``PREFIX.fields.json``.  `companions` are other files, by their
    names.  What is `believed`, or `kept` as well, of an older pack is removed; see `stale_files`.
    `go_on` is that of `AtomicOutput`.

    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with PackWriter(f"{folder}/a.rec", f"{folder}/a.idx", ["text"]) as writer:
    ...     _ = writer.write(b"an image", 7)
    ...     _ = writer.fields["text"].write(b"its text", 7)
    ...     os.path.exists(f"{folder}/a.text.rec")
    False
    >>> sorted(os.listdir(folder))
    ['a.idx', 'a.rec', 'a.text.idx', 'a.text.rec']
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        index: str | os.PathLike[str],
        fields: Sequence[str] = (),
        checksums: bool = False,
        describe: Callable[[], Mapping[str, FieldMeta]] | None = None,
        companions: Mapping[str, Content] | None = None,
        believed: bool = False,
        kept: bool = False,
        go_on: Callable[[str], int] | None = None,
    ) -> None:
        file = StoredFile.at(path)
        self._fields = [check_name(name) for name in fields]
        self._companions: dict[str, Content] = dict(companions or {})
        if describe is not None and fields:
            self._companions[file.beside(FIELDS.ending).name] = lambda: format_fields(describe())
        ends = {name: set_paths("", [name], checksums) for name in self._fields}
        own = {name: [file.beside(end).name for end in ends[name]] for name in ends}
        for names in own.values():
            self._companions |= dict.fromkeys(names)
        self._stale, self._go_on = {"believed": believed, "kept": kept}, go_on
        self._parts: list[_PartWriter] = []
        super().__init__(path, index, checksums=checksums)
        self.fields: dict[str, FrameWriter] = {name: self.part(own[name]) for name in own}

    def _open(self, paths: list[str], without: list[str], settings: RemoteSettings) -> Any:
        paths += self._companions
        self._numbers = {path: number for number, path in enumerate(paths)}
        if self._fields:
            file = StoredFile.at(paths[0])
            check_left(file, self._fields, file.beside(FIELDS.ending).name in paths, settings)
        without = self._void(paths, settings)
        if self._go_on is not None:
            return AtomicOutput(*paths, without=without, go_on=self._go_on)
        return open_output(*paths, without=without, settings=settings)

    def _void(self, paths: list[str], settings: RemoteSettings) -> list[str]:
        """List files of an older pack that are to be removed."""
        void_files = stale_files(paths[0], paths, settings, **self._stale)
        for name in paths[1:]:
            if name.endswith(RECORDS.ending):
                index = StoredFile(name).beside(INDEX.ending).name
                void_files += [*stale_files(name, paths, settings), *[index] * (index not in paths)]
        described = StoredFile.at(paths[0]).beside(FIELDS.ending)
        if described.name not in [*paths, *void_files] and described.exists(settings):
            void_files.append(described.name)
        return void_files

    def part(self, names: Sequence[str]) -> FrameWriter:
        """Return the writer of companions that are a record file, its index and its checksums."""
        self._companions |= dict.fromkeys(names)
        self._parts.append(_PartWriter(self._output, self._numbers[names[0]], names))
        return self._parts[-1]

    @property
    def output(self) -> Any:
        """The output, with all that was written so far."""
        for file in self._output.files:
            file.flush()
        return self._output

    def companion(self, name: str) -> Any:
        """Return the file of a companion, for those that are written bit by bit."""
        return self._output.files[self._numbers[name]]

    def finish(self) -> None:
        """Write all that is missing, once; `output` is still to be published."""
        with self._lock:
            self._finish()

    def _finish(self) -> None:
        super()._finish()
        for part in self._parts:
            part._finish()
        for name, content in self._companions.items():
            data = content() if callable(content) else content
            if isinstance(data, StoredFile):
                with data.open(0) as old:
                    copy_bytes(old, self.companion(name))
            elif data or not callable(content):
                self._write_out(self._numbers[name], data or b"")
            elif not self.companion(name).tell():
                self._output.leave_out(self._numbers[name])


class _PartWriter(FrameWriter):
    """The writer of some files of a pack, from number `first` on, which the pack publishes."""

    def __init__(self, output: Any, first: int, names: Sequence[str]) -> None:
        self._whole, self._first = output, first
        super().__init__(names[0], names[1], checksums=len(names) > 2)

    def _open(self, paths: list[str], without: list[str], settings: RemoteSettings) -> Any:
        return self._whole

    def close(self) -> None:
        """Do nothing: the pack has the files."""

    def __del__(self) -> None:
        """Leave the files to the pack."""
