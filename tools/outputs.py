"""Where output goes: what may be replaced, and folders that appear whole or not at all.

Single files and groups of files are `recordio.storage`'s; nothing here looks into a file.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator, Sequence

from recordio.errors import RecordIOError
from recordio.remote.settings import is_url
from recordio.temporary import Temporary

__all__ = [
    "check_outputs",
    "local_path",
    "new_folder",
    "output_place",
    "path_or_url",
    "temporary_folder",
    "url",
    "url_refused",
]

#: What fetches a file, by the scheme of its URL.
DOWNLOADERS = {
    "s3": "aws s3 cp",
    "gs": "gcloud storage cp",
    "hdfs": "hdfs dfs -get",
    "http": "curl -O",
    "https": "curl -O",
}


def url_refused(path: str) -> str:
    """Why a command does not take a URL where it needs a file or a folder of this machine.

    Returns
    -------
    str
        Empty for a path.

    Examples
    --------
    >>> url_refused("s3://bucket/train.rec")
    'a URL, where a path of this machine is needed: download what is read (aws s3 cp, fsspec) ...
    >>> url_refused("data/train.rec")
    ''
    """
    scheme, found, _ = path.partition("://")
    if not found:
        return ""
    tool = DOWNLOADERS.get(scheme)
    return (
        "a URL, where a path of this machine is needed: download what is read "
        f"({f'{tool}, ' if tool else ''}fsspec) and upload what was written; packs that are "
        "read may be URLs, and so may the sources of recordio from-csv, from-libsvm, from-mnist, "
        "from-numpy, from-coco, from-webdataset and from-tfrecord"
    )


def local_path(text: str) -> str:
    """An argument that must be a path of this machine; for ``add_argument(type=...)``."""
    if reason := url_refused(text) or (not text and "it is empty"):
        raise argparse.ArgumentTypeError(f"{text}: {reason}" if text else reason)
    return text


def output_place(text: str) -> str:
    """An argument that is a path or a URL that can be written; for ``add_argument(type=...)``."""
    if text.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(
            f"{text}: servers of http:// and https:// are only read; give an s3://, gs:// or az:// "
            "URL, or a path of this machine"
        )
    return path_or_url(text)


def path_or_url(text: str) -> str:
    """An argument that is a path or a URL; for ``add_argument(type=...)``."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return text


def url(text: str) -> str:
    """An argument that must be a URL; for ``add_argument(type=...)``."""
    if not is_url(text):
        raise argparse.ArgumentTypeError(f"{text}: it is no URL")
    return text


def check_outputs(paths: Sequence[str], force: bool) -> None:
    """See that files can be made, before any work is done for them.

    Parameters
    ----------
    paths : sequence of str
        The files.
    force : bool
        Whether existing ones are to be replaced.

    Raises
    ------
    RecordIOError
        A file exists and `force` is false, or its folder does not exist.

    Examples
    --------
    >>> check_outputs(["no/such/folder/a.rec"], force=False)
    Traceback (most recent call last):
        ...
    recordio.errors.RecordIOError: no/such/folder: the folder for the output does not exist; ...
    """
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


@contextlib.contextmanager
def new_folder(path: str) -> Iterator[str]:
    """Fill a folder under a temporary name; it gets its own name when the block ends well.

    Parameters
    ----------
    path : str
        The folder; it must not exist, or be empty.  An existing one is kept, because it may be the
        current folder of a shell: what is made is renamed into it, one name after the other.

    Yields
    ------
    str
        The temporary folder beside it.  An exception, Ctrl-C too, removes it.  SIGKILL or a crash
        can leave it; its name ends with ``.partial``, and the next run for the same folder removes
        it.

    Raises
    ------
    RecordIOError
        There is something already, or there is no folder to put it in.
    OSError
        Something cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "new")
    >>> with new_folder(str(path)) as folder:
    ...     _ = pathlib.Path(folder, "a.txt").write_text("a")
    ...     path.exists()
    False
    >>> [file.name for file in path.iterdir()]
    ['a.txt']
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
    """A folder beside some output, which is removed with what is left in it when the block ends."""
    temporary = Temporary(os.path.abspath(prefix), folder=True)
    try:
        temporary.make()
        yield temporary.path
    finally:
        temporary.remove()
