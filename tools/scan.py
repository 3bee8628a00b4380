"""Find the images below a folder and number the classes, as MXNet 1.9.1's ``im2rec.py`` does.

Only names are looked at: image files are never opened, and nothing is written.  A folder at any
depth is a class of its own if it holds images; the folders of Gluon's and dp's data sets follow
the rules of those libraries, which give the same files other labels.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

from recordio.containers.folder import ANY_DEPTH, find_images, labels_by_folder
from recordio.formats.table import IMAGE_SUFFIXES
from recordio.list_files import ListEntry

from .im2rec_options import DEFAULT_EXTENSIONS
from .image_list import ImageList, Skipped

#: Images that no decoder here reads.
FOREIGN_EXTENSIONS = frozenset([".arw", ".cr2", ".dng", ".heic", ".heif", ".nef", ".psd", ".svg"])


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
    files, except hidden ones; the notes say what else somebody may miss.
    """
    accepted = frozenset(extension.lower() for extension in extensions)
    skipped: list[Skipped] = []

    def pass_over(path: str, reason: str, error: OSError | None) -> None:
        skipped.append(Skipped(path, reason))

    tree = find_images(os.fspath(root), pass_over, accepted, ANY_DEPTH if recursive else 0)
    labels, classes = labels_by_folder(tree.images)
    entries = [
        ListEntry(number, (int(label),), path)
        for number, (label, path) in enumerate(zip(labels, tree.images, strict=True))
    ]
    return ImageList(entries, list(classes.values()), skipped, tree.left_out(), tree.notes)


def describe_left_out(left_out: Counter[str], accepted: Iterable[str], separator: str = " ") -> str:
    """Name the files that a scan left out because of their suffix, and the option for them.

    `separator` stands between the values of ``--exts``.  The text is empty if nothing was left out.
    """
    readable = [suffix for suffix in left_out if suffix in IMAGE_SUFFIXES]
    foreign = [suffix for suffix in left_out if suffix in FOREIGN_EXTENSIONS]
    parts = [
        f"{left_out[suffix]} {suffix}"
        for suffix in sorted([*readable, *foreign], key=lambda suffix: (-left_out[suffix], suffix))
    ]
    if other_files := left_out.total() - sum(left_out[suffix] for suffix in [*readable, *foreign]):
        parts.append(f"{other_files} other file{'s' if other_files > 1 else ''}")
    if not parts:
        return ""
    advice = []
    if readable:
        advice.append(f"give --exts {separator.join([*accepted, *sorted(readable)])}")
    if foreign:
        advice.append(f"{', '.join(sorted(foreign))} must be converted first")
    return f"left out {', '.join(parts)}" + (f": {'; '.join(advice)}" if advice else "")
