"""Output: files that may be replaced, and folders that appear whole or not at all.

Single files and groups of files are `recordio.bytes.storage`'s; nothing here looks into a file.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator, Sequence

from recordio.bytes.remote.settings import is_url
from recordio.bytes.temporary import Temporary
from recordio.errors import RecordIOError

#: Programs that fetch a file, by the scheme of its URL.
DOWNLOADERS = {
    "s3": "aws s3 cp",
    "gs": "gcloud storage cp",
    "hdfs": "hdfs dfs -get",
    "http": "curl -O",
    "https": "curl -O",
}


def url_refused(path: str) -> str:
    """Return why a command refuses a URL where it needs a file or a folder of this machine.

    The text is empty for a path.
    """
    scheme, separator, _ = path.partition("://")
    if not separator:
        return ""
    tool = DOWNLOADERS.get(scheme)
    return (
        "a URL, where a path of this machine is needed: download what is read "
        f"({f'{tool}, ' if tool else ''}fsspec) and upload what was written; packs that are "
        "read may be URLs, and so may the sources of recordio from-csv, from-libsvm, from-mnist, "
        "from-numpy, from-coco, from-manifest, from-webdataset and from-tfrecord"
    )


def local_path(text: str) -> str:
    """Return an argument that must be a path of this machine; for ``add_argument(type=...)``."""
    if reason := url_refused(text) or (not text and "it is empty"):
        raise argparse.ArgumentTypeError(f"{text}: {reason}" if text else reason)
    return text


def output_target(text: str) -> str:
    """Return an argument that is a path or a writable URL; for ``add_argument(type=...)``."""
    if text.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(
            f"{text}: servers of http:// and https:// are only read; give an s3://, gs:// or az:// "
            "URL, or a path of this machine"
        )
    return path_or_url(text)


def path_or_url(text: str) -> str:
    """Return an argument that is a path or a URL; for ``add_argument(type=...)``."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return text


def url(text: str) -> str:
    """Return an argument that must be a URL; for ``add_argument(type=...)``."""
    if not is_url(text):
        raise argparse.ArgumentTypeError(f"{text}: it is no URL")
    return text


def check_outputs(paths: Sequence[str], force: bool) -> None:
    """Refuse, before any work, files that exist without `force` or whose folder is missing."""
    for path in paths:
        if reason := url_refused(path):
            raise RecordIOError(reason, path=path)
        folder = os.path.dirname(path) or "."
        if not os.path.isdir(folder):
            raise RecordIOError(
                "the folder for the output does not exist; make it first", path=folder
            )
        if not force and os.path.lexists(path):
            raise RecordIOError("exists already; --force replaces it", path=path)


def replacing(paths: Sequence[str]) -> None:
    """Refuse, before any work, paths of this machine whose folder is missing."""
    check_outputs([path for path in paths if not is_url(path)], force=True)


@contextlib.contextmanager
def new_folder(path: str) -> Iterator[str]:
    """Fill a folder under a temporary name; it gets its own name when the block ends well.

    The folder must not exist, or be empty.  An existing one is kept, because it may be the current
    folder of a shell: its content is renamed into it, one name after the other.

    An exception, Ctrl-C too, removes the temporary folder.  SIGKILL or a crash can leave it; its
    name ends with ``.partial``, and the next run for the same folder removes it.
    """
    target = os.path.realpath(path)
    exists = os.path.lexists(target)
    if exists and (not os.path.isdir(target) or os.listdir(target)):
        raise RecordIOError("exists already and is no empty folder; give another one", path=path)
    parent = os.path.dirname(target)
    if not os.path.isdir(parent):
        raise RecordIOError("the folder for the output does not exist; make it first", path=parent)
    temporary = Temporary(target, folder=True)
    try:
        temporary.make()
        yield temporary.path
        if exists:
            for name in os.listdir(temporary.path):
                os.rename(os.path.join(temporary.path, name), os.path.join(target, name))
            os.rmdir(temporary.path)
        else:
            os.rename(temporary.path, target)
    except BaseException:
        temporary.remove()
        raise
    temporary.release()


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Iterator[str]:
    """Make a folder beside some output, removed with its rest when the block ends."""
    temporary = Temporary(os.path.abspath(prefix), folder=True)
    try:
        temporary.make()
        yield temporary.path
    finally:
        temporary.remove()
