"""The names of classes beside a pack: ``PREFIX.classes.txt``, lines of ``label TAB name``."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping

from ..bytes.files import StoredFile, open_text
from ..errors import RecordIOError
from ..file_limits import bounded_lines
from ..frames.companions import CLASSES

SUFFIX = CLASSES.ending
#: Endings of the names of parts that share one file of class names.
PART = re.compile(r"_(train|test|val|\d+)(?=\.classes\.txt)")


def read_classes(path: str | os.PathLike[str]) -> dict[int, str]:
    """Read ``label TAB folder`` lines, as im2rec writes them: the folder of each label."""
    classes: dict[int, str] = {}
    with open_text(path, errors="surrogateescape", encoding="utf-8-sig") as lines:
        for number, line in bounded_lines(lines, path):
            if not line.strip():
                continue
            label, tab, folder = line.rstrip("\r\n").partition("\t")
            if not tab or not re.fullmatch(r"-?\d{1,18}", label.strip()):
                raise RecordIOError(
                    "expected a whole number, a TAB and a name", path=path, line=number
                )
            classes[int(label)] = folder
    return classes


def classes_file(path: str | StoredFile) -> StoredFile | None:
    """Find the file with the names of the classes of a record file; None where there is none."""
    # im2rec writes one file for PREFIX_train, PREFIX_val, ... together.
    name = StoredFile.at(path).beside(SUFFIX).name
    for candidate in dict.fromkeys((name, PART.sub("", PART.sub("", name)))):
        if StoredFile(candidate).exists():
            return StoredFile(candidate)
    return None


def find_classes(path: str | StoredFile) -> dict[int, str]:
    """Read the names of the classes beside a record file; empty where there are none."""
    file = classes_file(path)
    return {} if file is None else read_classes(file.name)


def labels_of_names(names: Mapping[int, str]) -> dict[str, int]:
    """Return the label of each name, in the order of the labels; the first of several.

    >>> labels_of_names({3: "dog", 1: "cat", 4: "dog"})
    {'cat': 1, 'dog': 3}
    """
    labels: dict[str, int] = {}
    for label in sorted(names):
        labels.setdefault(names[label], label)
    return labels


def names_in_order(class_to_idx: Mapping[str, int]) -> list[str]:
    """Return names in the order of their labels; a warning where these are not 0, 1, 2 and so on.

    >>> names_in_order({"cat": 0, "dog": 1})
    ['cat', 'dog']
    """
    labels = list(class_to_idx.values())
    if labels != list(range(len(labels))):
        at = next(i for i, label in enumerate(labels) if label != i)
        warnings.warn(
            f"classes[{at}], {list(class_to_idx)[at]!r}, is the name of label {labels[at]}: "
            "class_to_idx has the labels, and num_classes their number",
            stacklevel=3,  # of whoever asks for the property `classes`
        )
    return list(class_to_idx)


def format_classes(classes: Mapping[int, str]) -> bytes:
    r"""Write the content of such a file.

    >>> format_classes({3: "dog", 1: "cat"})
    b'1\tcat\n3\tdog\n'
    """
    text = "".join(f"{label}\t{classes[label]}\n" for label in sorted(classes))
    return text.encode("utf-8", "surrogateescape")  # names of folders may be any bytes
