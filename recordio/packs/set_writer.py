"""Write the packs of a set: a record file and those of its fields, which appear together."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..bytes.files import StoredFile, open_output
from ..bytes.remote.settings import RemoteSettings
from ..errors import FieldError
from ..frames.checksums import checksums_path
from ..frames.companions import INDEX, stale_files
from ..frames.writer import RecordWriter
from .field_files import field_file, left_fields
from .fields_meta import FieldMeta, check_name, fields_file, format_fields

__all__ = ["SetWriter"]


class SetWriter(RecordWriter):
    """A `RecordWriter` of a pack; `fields` has one for each of its fields, by name.

    All files are published by `close`, as one group whose main file is the record file of the pack:
    at no moment does it stand beside fields of another version.  `describe`, called by `close`,
    returns what the fields are, for ``PREFIX.fields.json``.

    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with SetWriter(f"{folder}/a.rec", f"{folder}/a.idx", ["text"]) as writer:
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
    ) -> None:
        self._names = [check_name(name) for name in fields]
        self._describe = describe if self._names else None
        self._field_files = [field_file(StoredFile.at(path), name).name for name in fields]
        super().__init__(path, index, checksums=checksums)
        self.fields: dict[str, RecordWriter] = {}
        count = 3 if checksums else 2
        for number, name in enumerate(self._names, start=1):
            path = self._field_files[number - 1]
            self.fields[name] = _FieldWriter(self._output, number * count, path, checksums)

    def _open(self, paths: list[str], without: list[str], settings: RemoteSettings) -> Any:
        beside = fields_file(StoredFile.at(paths[0]))
        if self._describe is None and beside.exists(settings):
            without = [*without, beside.name]
        described = self._describe is not None
        others = left_fields(StoredFile.at(paths[0]), described, settings) if self._names else []
        for name in others:
            if name not in self._names:
                raise FieldError(
                    "it lies there, a field of another pack or of an older one: remove it, or give "
                    "another output",
                    path=field_file(StoredFile.at(paths[0]), name).name,
                )
        for file in self._field_files:
            own = [file, StoredFile(file).beside(INDEX.ending).name]
            own += [checksums_path(file)] * self._has_checksums
            paths += own
            without = [*without, *stale_files(file, own, settings)]
        if self._describe is not None:
            paths.append(beside.name)
        return open_output(*paths, without=without, settings=settings)

    def close(self) -> None:
        """Publish all files; does nothing if the writer is closed already."""
        if not self._output.closed:
            self._output.check_usable()
            for writer in self.fields.values():
                writer.close()
            if self._describe is not None:
                self._write_out(-1, format_fields(self._describe()))
        super().close()


class _Part:
    """Some files of an output, as an output of their own that the whole publishes."""

    def __init__(self, whole: Any, files: Sequence[Any]) -> None:
        self._whole, self.files, self._done = whole, files, False

    @property
    def closed(self) -> bool:
        return self._done or self._whole.closed

    @property
    def owned(self) -> bool:
        return self._whole.owned

    def check_usable(self) -> None:
        self._whole.check_usable()

    def commit(self) -> None:
        self._done = True

    def discard(self) -> None:
        self._whole.discard()


class _FieldWriter(RecordWriter):
    """The writer of a field; its files are those of the output from number `first` on."""

    def __init__(self, whole: Any, first: int, path: str, checksums: bool) -> None:
        self._whole, self._first = whole, first
        super().__init__(path, StoredFile(path).beside(".idx").name, checksums=checksums)

    def _open(self, paths: list[str], without: list[str], settings: RemoteSettings) -> Any:
        return _Part(self._whole, self._whole.files[self._first : self._first + len(paths)])
