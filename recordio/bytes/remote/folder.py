"""The folder of mirrors: how each is found and opened, and the space that they may take.

A process has one mirror for each version of an object, shared by all who open it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import sys
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from recordio.bytes.remote.block_table import BLOCK, HAS_LOCKS, USE, BlockTable
from recordio.bytes.remote.mirror import Mirror
from recordio.bytes.remote.objects import RemoteObject, looked_up
from recordio.bytes.remote.settings import RemoteSettings
from recordio.errors import RemoteFileError

if TYPE_CHECKING:
    from filelock import FileLock

#: Seconds between two looks at what other mirrors take.
LOOK_SECONDS = 5.0
#: Objects that are looked up at once.
LOOKUPS = 32
#: A temporary file beside the mirrors, for a lock.
LOCK_NAME = ".lock"
#: A share of the limit, one in so many, is given up beyond what is needed.
SLACK = 64

logger: logging.Logger = logging.getLogger("recordio")


class MirrorFolder:
    """The mirrors in one folder, as this process sees them; `limit` is in bytes on the disk."""

    def __init__(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)
        self.path = path
        self.limit: int = 0
        self._mirrors: weakref.WeakSet[Mirror] = weakref.WeakSet()
        self._used: OrderedDict[tuple[int, int], None] = OrderedDict()
        self._looked, self._others = -LOOK_SECONDS, 0
        self._lock = threading.RLock()
        self._warned = False

    def set_limit(self, size: int | None) -> None:
        """Set the limit; by default what the mirrors take now and half of what is free."""
        if size is not None:
            self.limit = size
        elif not self.limit:
            taken = sum(_disk_bytes(entry.path) for entry in _mirrors_in(self.path))
            self.limit = taken + shutil.disk_usage(self.path).free // 2

    def locked(self) -> FileLock:
        """Make a lock against other processes that make or remove mirrors here."""
        from filelock import FileLock  # only files on servers need it

        return FileLock(os.path.join(self.path, LOCK_NAME))

    def directory_of(self, url: str, size: int, tag: str) -> str:
        """Make the folder of the mirror of an object; older versions of it that nobody uses go."""
        name = re.sub(r"[^\w.-]", "_", url.rpartition("/")[2])[-40:] or "object"
        family = f"{name}-{_digest(url)}-"
        # What tells no version might be anything the next time.
        version = _digest(f"{size} {tag}" if tag else f"{size} {os.urandom(16).hex()}")
        directory = os.path.join(self.path, family + version)
        for entry in _mirrors_in(self.path):
            if entry.name.startswith(family) and entry.path != directory:
                _remove_unused(entry.path)
        os.makedirs(directory, exist_ok=True)
        about = os.path.join(directory, "about.json")
        if not os.path.exists(about):
            with open(f"{about}.new", "w", encoding="utf-8") as file:
                json.dump({"url": url, "size": size, "tag": tag}, file)
            os.replace(f"{about}.new", about)
        return directory

    def add(self, mirror: Mirror) -> None:
        """Count a mirror as open in this process."""
        with self._lock:
            self._mirrors.add(mirror)

    def admit(self, mirrors: Sequence[Mirror]) -> None:
        """Decide whether mirrors that are used together stay as a whole."""
        new = {id(m): m for m in mirrors if not m.resident}
        if not new:
            return
        with self._lock:
            residents = sum(m.size for m in self._mirrors if m.resident)
            fits = residents + sum(m.size for m in new.values()) <= self.limit
        if fits:
            for mirror in new.values():
                mirror.stay()
        elif not (HAS_LOCKS and sys.platform == "linux"):
            first = next(iter(new.values()))
            raise RemoteFileError(
                f"{sum(m.size for m in new.values())} bytes are more than remote_cache_size "
                f"allows ({self.limit}), and only Linux can give up parts of a file: allow more",
                path=first.url,
            )
        self.make_room(0)

    def note_used(self, mirror: Mirror, blocks: np.ndarray) -> None:
        """Note that blocks were used, and are the last to make room."""
        if mirror.resident:
            return
        most = self.limit // BLOCK // 2
        for block in blocks.tolist():
            self._used.pop((id(mirror), block), None)
            self._used[id(mirror), block] = None
        while len(self._used) > most:
            self._used.popitem(last=False)

    def make_room(self, nbytes: int) -> None:
        """Give up what nobody needs now, until so many bytes more are within the limit."""
        with self._lock:
            mirrors = list(self._mirrors)
            excess = self._other_bytes(mirrors) + sum(m.kept_bytes for m in mirrors)
            excess += nbytes - self.limit
            if excess <= 0:
                return
            excess -= self._remove_others(mirrors, excess)
            loose = [m for m in mirrors if not m.resident]
            if excess > 0:  # somewhat more, so that it is not looked for at every request
                excess -= self._evict(loose, excess + self.limit // SLACK, True)
            if excess > 0:
                excess -= self._evict(loose, excess, False)
            if excess > BLOCK and not self._warned and not loose:
                self._warned = True
                logger.warning(
                    "%s: the mirrors take %d bytes more than remote_cache_size allows (%d), and "
                    "all of them are in use",
                    self.path,
                    excess,
                    self.limit,
                )

    def _other_bytes(self, mirrors: Sequence[Mirror]) -> int:
        """Count the bytes of mirrors that are not open in this process."""
        now = time.monotonic()
        if now - self._looked >= LOOK_SECONDS:
            mine = {os.path.dirname(m.path) for m in mirrors}
            directories = [e.path for e in _mirrors_in(self.path) if e.path not in mine]
            self._others = sum(map(_disk_bytes, directories))
            self._looked = now
        return self._others

    def _remove_others(self, mirrors: Sequence[Mirror], excess: int) -> int:
        """Remove mirrors that no process has open, those unused for longest first."""
        if not self._others:
            return 0
        mine = {os.path.dirname(m.path) for m in mirrors}
        gained = 0
        with self.locked():
            directories = [e.path for e in _mirrors_in(self.path) if e.path not in mine]
            for directory in sorted(directories, key=_last_use):
                if gained >= excess:
                    break
                taken = _disk_bytes(directory)
                if _remove_unused(directory):
                    gained += taken
        self._others = max(self._others - gained, 0)
        return gained

    def _evict(self, mirrors: Sequence[Mirror], excess: int, protects: bool) -> int:
        """Give up blocks at random, except those used lately, and count the bytes."""
        there = [mirror.table.present() for mirror in mirrors]
        owners = np.repeat(np.arange(len(mirrors)), [len(blocks) for blocks in there])
        blocks = np.concatenate([np.zeros(0, np.int64), *there])
        gained = 0
        for i in np.random.default_rng().permutation(len(blocks)):
            if gained >= excess:
                break
            mirror, block = mirrors[owners[i]], int(blocks[i])
            if protects and (id(mirror), block) in self._used:
                continue
            if mirror.evict(block):
                gained += BLOCK
        return gained


# Mirrors that are open in this process, by folder, object and version; they close when nobody uses
# them any more.
_open: weakref.WeakValueDictionary[tuple[str, ...], Mirror] = weakref.WeakValueDictionary()
_open_lock = threading.Lock()
_folders: dict[str, MirrorFolder] = {}
_folders_lock = threading.Lock()


def open_mirror(url: str, settings: RemoteSettings | None = None) -> Mirror:
    """Open the mirror of an object; see `open_mirrors`."""
    return open_mirrors([url], settings)[0]


def open_mirrors(urls: Sequence[str], settings: RemoteSettings | None = None) -> list[Mirror]:
    """Open the mirrors of objects that are used together, as they are on the server now.

    All of them stay on the disk as a whole, or none if together they exceed the limit.
    """
    settings = RemoteSettings() if settings is None else settings
    if len(urls) == 1:
        remotes = [looked_up(urls[0], settings)]
    else:
        with ThreadPoolExecutor(LOOKUPS, "remote-open") as pool:
            remotes = list(pool.map(lambda url: looked_up(url, settings), urls))
    folder = _folder_at(settings.folder, settings.remote_cache_size)
    with _open_lock:
        mirrors = [_opened(remote, folder, settings) for remote in remotes]
        folder.admit(mirrors)
    return mirrors


def _opened(remote: RemoteObject, folder: MirrorFolder, settings: RemoteSettings) -> Mirror:
    key = (folder.path, remote.url, str(remote.version.size), remote.version.tag)
    mirror = _open.get(key)
    if mirror is None or mirror.process != os.getpid():
        with folder.locked():
            directory = folder.directory_of(remote.url, *remote.version)
            mirror = Mirror(remote, folder, directory)
        folder.add(mirror)
        _open[key] = mirror
    return mirror


def _folder_at(path: str, size: int | None) -> MirrorFolder:
    """Open the folder of mirrors at a path, which is made; one object for each in a process."""
    with _folders_lock:
        path = os.path.realpath(path)
        folder = _folders.get(path)
        if folder is None:
            folder = _folders[path] = MirrorFolder(path)
        folder.set_limit(size)
        return folder


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _mirrors_in(path: str) -> list[os.DirEntry[str]]:
    with os.scandir(path) as entries:
        return [entry for entry in entries if entry.is_dir() and re.search(r"-\w{16}$", entry.name)]


def _disk_bytes(directory: str) -> int:
    """Count the bytes of a mirror on the disk."""
    try:
        status = os.stat(os.path.join(directory, "data"))
    except OSError:
        return 0
    return 512 * getattr(status, "st_blocks", -(-status.st_size // 512))


def _last_use(directory: str) -> float:
    try:
        return os.stat(os.path.join(directory, "blocks")).st_mtime
    except OSError:
        return 0.0


def _remove_unused(directory: str) -> bool:
    """Remove a mirror, and return True unless a process has it open."""
    path = os.path.join(directory, "blocks")
    try:
        size = os.stat(os.path.join(directory, "data")).st_size
        table = BlockTable(path, size)
    except OSError:
        shutil.rmtree(directory, ignore_errors=True)  # was never finished
        return True
    try:
        if not (HAS_LOCKS and table.lock(USE)):
            return False
        shutil.rmtree(directory, ignore_errors=True)
        return True
    finally:
        table.close()
