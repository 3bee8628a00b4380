"""The bytes of a record file in memory; a file of another kind is refused."""

from __future__ import annotations

from recordio.bytes.files import StoredFile
from recordio.bytes.remote.objects import redacted_url
from recordio.bytes.remote.settings import RemoteSettings
from recordio.frames.encoder import MAGIC

#: First bytes that are enough to tell a kind.
HEAD_BYTES = 512


def map_records(file: StoredFile, settings: RemoteSettings | None = None) -> memoryview:
    """Map a record file as `StoredFile.map` does; a file of another kind is a FileKindError."""
    # Read, not mapped, which would bring megabytes ahead of the first record.
    is_known = file.is_local and file.first_bytes(len(MAGIC)) == MAGIC
    view = file.map(settings)
    if not is_known:
        refuse_other_kinds(file.name, view)
    return view


def refuse_other_kinds(name: str, view: memoryview) -> None:
    """Raise FileKindError if the bytes of a file begin as those of another kind do."""
    if view[:4] != MAGIC:
        from recordio.file_kinds import refuse_other_files  # with all image formats

        refuse_other_files(redacted_url(name), bytes(view[:HEAD_BYTES]))
