"""The mirrors of this process: one for each version of an object, shared by all who open it."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from recordio.remote.asking import looked_up
from recordio.remote.folder import MirrorFolder, folder_at
from recordio.remote.mirror import Mirror
from recordio.remote.objects import RemoteObject
from recordio.remote.settings import RemoteSettings

__all__ = ["open_mirror", "open_mirrors"]

#: Objects that are looked up at once.
LOOKUPS = 32

# Mirrors that are open in this process, by folder, object and version; they close when nobody uses
# them any more.
_open: weakref.WeakValueDictionary[tuple[str, ...], Mirror] = weakref.WeakValueDictionary()
_open_lock = threading.Lock()


def open_mirror(url: str, settings: RemoteSettings | None = None) -> Mirror:
    """The mirror of an object; see `open_mirrors`."""
    return open_mirrors([url], settings)[0]


def open_mirrors(urls: Sequence[str], settings: RemoteSettings | None = None) -> list[Mirror]:
    """The mirrors of objects that are used together, as they are on the server now.

    Parameters
    ----------
    urls : sequence of str
    settings : RemoteSettings, optional

    Returns
    -------
    list of Mirror
        Either all of them stay on the disk as a whole, or none: then together they are larger than
        the limit allows.

    Raises
    ------
    RemoteMissingError
        If there is no such object.
    RemoteFileError
        If one cannot be reached within `remote_timeout`.
    OSError
        If the folder of mirrors cannot be written.
    """
    settings = RemoteSettings() if settings is None else settings
    if len(urls) == 1:
        remotes = [looked_up(urls[0], settings)]
    else:
        with ThreadPoolExecutor(LOOKUPS, "remote-open") as pool:
            remotes = list(pool.map(lambda url: looked_up(url, settings), urls))
    folder = folder_at(settings.folder, settings.remote_cache_size)
    with _open_lock:
        mirrors = [_opened(remote, folder, settings) for remote in remotes]
        folder.admit(mirrors)
    return mirrors


def _opened(remote: RemoteObject, folder: MirrorFolder, settings: RemoteSettings) -> Mirror:
    key = (folder.path, remote.url, str(remote.version.size), remote.version.tag)
    mirror = _open.get(key)
    if mirror is None or mirror.process != os.getpid():
        with folder.locked():
            place = folder.place_of(remote.url, *remote.version)
            mirror = Mirror(remote, folder, place, settings.timeout)
        folder.add(mirror)
        _open[key] = mirror
    return mirror
