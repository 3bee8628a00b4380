"""Find the images below a folder and number the classes, as MXNet 1.9.1's ``im2rec.py`` does.

Only names are looked at: image files are never opened, and nothing is written.  A folder at any
depth is a class of its own if it holds images; the folders of Gluon's and dp's data sets follow
the rules of those libraries, which give the same files other labels.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

from recordio.containers.folder import walk_images
from recordio.formats.table import FORMATS, is_read_everywhere
from recordio.lists import ListEntry

from .im2rec_options import DEFAULT_EXTENSIONS
from .image_list import ImageList, Skipped

__all__ = ["READABLE_EXTENSIONS", "describe_left_out", "scan_images"]

#: Suffixes that can be packed when they are asked for.
READABLE_EXTENSIONS = frozenset(
    suffix for row in FORMATS if is_read_everywhere(row) for suffix in row.suffixes
)
#: Images that no decoder here is sure to read.
FOREIGN_EXTENSIONS = frozenset([".arw", ".cr2", ".dng", ".heic", ".heif", ".nef", ".psd", ".svg"])
FOREIGN_EXTENSIONS |= {suffix for row in FORMATS for suffix in row.suffixes} - READABLE_EXTENSIONS


def scan_images(
    root: str | os.PathLike[str],
    recursive: bool = False,
    extensions: Iterable[str] = DEFAULT_EXTENSIONS,
) -> ImageList:
    """Find the images below a folder and label them by folder.

    Without `recursive` these are the files directly in `root`, sorted by name, all with label 0.
    With it sub-folders are walked (links are followed, loops are not), names sorted at each level;
    a folder gets the next label when its first image is met.  Ids are positions in scan order.

    Skipped are folders that cannot be read, links that lead nowhere or back into one of their own
    parents, and names that a list line cannot hold.  Left out, and counted by suffix, are other
    files, except hidden ones.
    """
    accepted = frozenset(extension.lower() for extension in extensions)
    found = ImageList()

    def pass_over(path: str, reason: str, error: OSError | None) -> None:
        found.skipped.append(Skipped(path, reason))

    walk = walk_images(os.fspath(root), accepted, recursive, pass_over, found.left_out)
    for folder, names in walk:
        if names:
            found.classes.append(folder or ".")
        for name in names:
            path = f"{folder}/{name}" if folder else name
            found.entries.append(ListEntry(len(found.entries), (len(found.classes) - 1,), path))
    return found


def describe_left_out(left_out: Counter[str], accepted: Iterable[str], separator: str = " ") -> str:
    """Name the files that a scan left out because of their suffix, and the option for them.

    `separator` stands between the values of ``--exts``.  The text is empty if nothing was left out.
    """
    readable = [suffix for suffix in left_out if suffix in READABLE_EXTENSIONS]
    foreign = [suffix for suffix in left_out if suffix in FOREIGN_EXTENSIONS]
    parts = [
        f"{left_out[suffix]} {suffix}"
        for suffix in sorted([*readable, *foreign], key=lambda suffix: (-left_out[suffix], suffix))
    ]
    if others := left_out.total() - sum(left_out[suffix] for suffix in [*readable, *foreign]):
        parts.append(f"{others} other file{'s' if others > 1 else ''}")
    if not parts:
        return ""
    advice = []
    if readable:
        advice.append(f"give --exts {separator.join([*accepted, *sorted(readable)])}")
    if foreign:
        advice.append(f"{', '.join(sorted(foreign))} must be converted first")
    return f"left out {', '.join(parts)}" + (f": {'; '.join(advice)}" if advice else "")
