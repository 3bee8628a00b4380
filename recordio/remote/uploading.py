"""Writing objects: in parts where they are large, and whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from recordio.errors import RemoteFileError
from recordio.remote.objects import fsspec_at, library_for, obstore_at, redacted, shown
from recordio.remote.settings import RemoteSettings

__all__ = ["upload"]

#: Bytes of a part.
PART = 1 << 23


def upload(
    content: bytes | str | os.PathLike[str], url: str, settings: RemoteSettings | None = None
) -> None:
    """Write an object, which appears when all of it has arrived; one that is there is replaced.

    Parameters
    ----------
    content : bytes or path
        The bytes, or the file that has them.
    url : str
    settings : RemoteSettings, optional

    Raises
    ------
    RemoteFileError
        If it cannot be written; what is there stays as it was.
    """
    settings = RemoteSettings() if settings is None else settings
    try:
        if library_for(url, settings) == "obstore":
            import obstore

            store, path = obstore_at(url, settings, write=True)
            source = content if isinstance(content, bytes) else Path(content)
            obstore.put(store, path, source, chunk_size=PART)
            return
        files, path = fsspec_at(url, settings)
        if isinstance(content, bytes):
            files.pipe_file(path, content)
        else:
            files.put_file(os.fspath(content), path)
    except (ImportError, RemoteFileError):
        raise
    except Exception as error:
        raise RemoteFileError(
            f"it cannot be written: {redacted(error, settings.options)}", path=shown(url)
        ) from None
