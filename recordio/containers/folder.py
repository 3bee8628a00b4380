"""Folders of images, one for each class: ImageFolder's layout."""

from __future__ import annotations

import os

from ..bytes.files import StoredFile
from ..bytes.remote.settings import RemoteSettings
from ..formats.table import FORMATS, is_read_everywhere
from .container import Container
from .samples import Samples

__all__ = ["FOLDER"]

SUFFIXES = tuple(s for row in FORMATS if is_read_everywhere(row) for s in row.suffixes)


def scan(file: StoredFile, settings: RemoteSettings | None = None) -> Samples:
    """List the images below each folder of a class, in the order of their paths."""
    classes = sorted(entry.name for entry in os.scandir(file.name) if entry.is_dir())
    names, labels = [], []
    for label, name in enumerate(classes):
        found = sorted(_images(os.path.join(file.name, name)))
        names += [os.path.relpath(path, file.name).replace(os.sep, "/") for path in found]
        labels += [(float(label),)] * len(found)
    rows = range(len(names))
    return Samples.of(rows, [0] * len(names), labels, names, classes=dict(enumerate(classes)))


def _images(folder: str) -> list[str]:
    return [
        os.path.join(root, name)
        for root, _, files in os.walk(folder, followlinks=True)
        for name in files
        if name.lower().endswith(SUFFIXES)
    ]


def is_folder_of_classes(file: StoredFile) -> bool:
    """Tell a folder whose subfolders hold images, and that holds no record file."""
    if not file.is_local or not os.path.isdir(file.name):
        return False
    entries = list(os.scandir(file.name))
    if any(entry.name.endswith(".rec") for entry in entries):
        return False
    return any(_images(entry.path) for entry in entries if entry.is_dir())


FOLDER = Container(
    "a folder of classes",
    scan,
    is_it=is_folder_of_classes,
    is_folder=True,
    is_listed_each_time=True,
)
