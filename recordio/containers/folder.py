"""Folders of images, one for each class: ImageFolder's layout, read by the rules of im2rec.

Only names are looked at: image files are never opened here.  Files that have the stem of an image
and a further ending are fields of it, ``a.mask.png`` beside ``a.jpg``; JSON among them is read.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np

from ..bytes.files import StoredFile
from ..bytes.remote.settings import RemoteSettings
from ..errors import EmptyRecordFileError, FieldError, ImageFileError, RecordIOError
from ..formats.table import FORMATS, is_read_everywhere
from .container import USUAL, Choice, Container
from .objects import MOST_ROWS, has_rows, labels_of_rows
from .samples import NO_CONTENT, ContainedSamples

__all__ = [
    "FOLDER",
    "SUFFIXES",
    "fields_of_stems",
    "fits_in_list",
    "labels_by_folder",
    "nothing_found",
    "stem_of",
    "suffix_of",
    "walk_images",
    "warn_of_others",
    "without_field_images",
]

#: The endings that the converters take where no others are chosen.
SUFFIXES = (".jpeg", ".jpg", ".png")
READABLE = {suffix for row in FORMATS if is_read_everywhere(row) for suffix in row.suffixes}


def walk_images(
    root: str,
    accepted: Collection[str],
    recursive: bool,
    pass_over: Callable[[str, str, OSError | None], None],
    left_out: Counter[str],
) -> Iterator[tuple[str, list[str]]]:
    """Yield the folders below a root from the top down, each with the sorted names of its images.

    Folders are relative, with slashes.  Links are followed, loops are not.  `pass_over` gets path
    and reason of what is in the way, with the error of what cannot be read; `left_out` counts
    other files by suffix, except hidden ones.

    A stack instead of recursion: a path may have more parts than Python has frames.
    """
    # A folder is known by device and inode; `parents` is a linked list up to the root.
    status = os.stat(root)
    stack: list[tuple[str, tuple]] = [("", ((status.st_dev, status.st_ino), None))]
    while stack:
        folder, parents = stack.pop()
        names: list[str] = []
        folders: list[tuple[str, tuple]] = []
        try:
            with os.scandir(os.path.join(root, folder)) as scan:
                items = sorted(scan, key=lambda item: item.name)
        except OSError as error:
            if not folder:
                raise
            pass_over(folder, f"the folder cannot be read: {error.strerror}", error)
            continue
        for item in items:
            path = f"{folder}/{item.name}" if folder else item.name
            try:
                if item.is_dir():
                    if not recursive:
                        continue
                    status = os.stat(item.path)
                    identity = (status.st_dev, status.st_ino)
                    if item.is_symlink() and _is_parent(identity, parents):
                        pass_over(path, "the link leads back to a folder that contains it", None)
                    else:
                        folders.append((path, (identity, parents)))
                    continue
                suffix = suffix_of(item.name)
                if suffix not in accepted:
                    if not item.name.startswith("."):
                        left_out[suffix] += 1
                elif item.is_file():
                    if fits_in_list(path):
                        names.append(item.name)
                    else:
                        reason = (
                            "a list line cannot hold this name (a tab, line break or outer space)"
                        )
                        pass_over(path, f"{reason}; rename it", None)
                elif item.is_symlink() and not os.path.exists(item.path):
                    pass_over(path, "the link leads to no file", None)
            except OSError as error:
                pass_over(path, f"cannot be examined: {error.strerror}", error)
        yield folder, names
        stack.extend(reversed(folders))


def suffix_of(name: str) -> str:
    """Return the suffix of the name of a file, in lower case."""
    if name.startswith("."):  # the only case in which the last dot may begin none
        return os.path.splitext(name)[1].lower()
    return name[name.rfind(".") :].lower() if "." in name else ""


def stem_of(name: str) -> str:
    """Return the path of a file without its suffix.

    >>> stem_of("a.d/1.left.jpg")
    'a.d/1.left'
    """
    return name[: len(name) - len(suffix_of(name.rpartition("/")[2]))]


def _field_of(name: str, stems: Collection[str]) -> tuple[str, str] | None:
    """Return stem and field of a file, ``STEM.FIELD`` or ``STEM.FIELD.SUFFIX``; None of others.

    >>> _field_of("a/1.mask.png", {"a/1"}), _field_of("a/1.txt", {"a/1"}), _field_of("1.jpg", {"1"})
    (('a/1', 'mask'), ('a/1', 'txt'), None)
    """
    folder, slash, base = name.rpartition("/")
    parts = base.split(".")
    counts = (2,) if suffix_of(base) in READABLE else (2, 1)  # an image is none by one ending
    for count in counts:
        field, stem = parts[-count] if len(parts) > count else "", ".".join(parts[:-count])
        if field.isascii() and field.isidentifier() and f"{folder}{slash}{stem}" in stems:
            return f"{folder}{slash}{stem}", field
    return None


def without_field_images(names: Sequence[str], left_out: Counter[str]) -> list[str]:
    """Leave out images that are fields of others, ``a.depth.png`` beside ``a.jpg``, and count them.

    >>> without_field_images(["a.depth.png", "a.jpg", "b.left.png"], Counter())
    ['a.jpg', 'b.left.png']
    """
    stems: set[str] = set()
    fields = {}
    for name in sorted(
        names, key=lambda name: name.count(".")
    ):  # what it is a field of comes first
        found = _field_of(name, stems)
        if found is None:
            stems.add(stem_of(name))
        else:
            fields[name] = found[1]
            left_out[f".{found[1]}{suffix_of(name)}"] += 1
    return [name for name in names if name not in fields]


def fields_of_stems(names: Iterable[str], images: Iterable[str]) -> dict[str, dict[str, str]]:
    """Find the fields of images among files: field -> stem -> the first such file."""
    stems = set(map(stem_of, images))
    found: dict[str, dict[str, str]] = {}
    for name in names:
        field = _field_of(name, stems)
        if field is not None:
            found.setdefault(field[1], {}).setdefault(field[0], name)
    return found


def labels_by_folder(names: Sequence[str]) -> tuple[list[float], dict[int, str]]:
    """Number the folders of files in the order of a walk; return the labels and the classes.

    >>> labels_by_folder(["b/1.jpg", "a/2.jpg", "a/c/3.jpg", "4.jpg"])
    ([3.0, 1.0, 2.0, 0.0], {0: '.', 1: 'a', 2: 'a/c', 3: 'b'})
    """
    folders = [name.rpartition("/")[0] for name in names]
    ordered = sorted(set(folders), key=lambda folder: folder.split("/") if folder else [])
    numbers = {folder: float(number) for number, folder in enumerate(ordered)}
    classes = {number: folder or "." for number, folder in enumerate(ordered)}
    return [numbers[folder] for folder in folders], classes


def fits_in_list(path: str) -> bool:
    """Tell whether a line of a list can hold a path."""
    return path == path.strip() and not ("\t" in path or "\n" in path or "\r" in path)


def nothing_found(path: str, what: str, left_out: Counter[str]) -> EmptyRecordFileError:
    """Make the error for a folder or an archive without images, which names what there is."""
    others = ", ".join(f"{count} {suffix or 'others'}" for suffix, count in left_out.most_common(5))
    advice = "give the record files or archives in it by a pattern such as 'folder/*.tar'"
    if READABLE & left_out.keys():
        advice = "`im2rec` and `recordio from-imagefolder` read more endings with --exts"
    return EmptyRecordFileError(
        f"{what} images ({' '.join(SUFFIXES)}), but {others or 'nothing at all'}: {advice}",
        path=path,
    )


def warn_of_others(path: str, left_out: Counter[str]) -> None:
    """Warn of images that only the converters take, since users may believe that they are used."""
    others = {suffix: count for suffix, count in left_out.items() if suffix in READABLE}
    if others:
        named = ", ".join(f"{count} {suffix}" for suffix, count in sorted(others.items()))
        warnings.warn(
            f"{path}: left out {named}: images are {' '.join(SUFFIXES)} here; `im2rec` and "
            "`recordio from-imagefolder` take others with --exts",
            stacklevel=2,
        )


def _is_parent(identity: tuple[int, int], parents: tuple | None) -> bool:
    while parents is not None:
        if parents[0] == identity:
            return True
        parents = parents[1]
    return False


def _scan(
    file: StoredFile, settings: RemoteSettings | None = None, choice: Choice = USUAL
) -> ContainedSamples:
    """List the images; every folder that holds some is a class, in the order of its path.

    Or the files of a field of them.
    """
    samples = _images_of(file)
    return _field_files(file, samples, choice.field) if choice.field else samples


def _images_of(file: StoredFile) -> ContainedSamples:
    names: list[bytes] = []
    classes: list[str] = []
    counts: list[int] = []
    left_out: Counter[str] = Counter()
    odd: Counter[str] = Counter()

    def pass_over(path: str, reason: str, error: OSError | None) -> None:
        if error is not None:  # without its classes, others would get their labels
            raise ImageFileError(
                f"{reason}; allow it, or move that folder away", path=os.path.join(file.name, path)
            )
        odd[reason] += 1

    for folder, found in walk_images(file.name, SUFFIXES, True, pass_over, left_out):
        found = without_field_images(found, left_out)
        if found:
            classes.append(folder or ".")
            counts.append(len(found))
            before = f"{folder}/" if folder else ""
            names += [os.fsencode(before + name) for name in found]
    if not names:
        raise nothing_found(file.name, "the folder holds no .rec file and no", left_out)
    warn_of_others(file.name, left_out)
    # Each content is a file: there are no offsets in one of all.
    sizes, labels = np.zeros(len(names), np.int64), np.repeat(np.arange(len(classes)), counts)
    samples = ContainedSamples(np.arange(len(names)), sizes, labels.astype(np.float32))
    samples.set_names(names)
    samples.classes = dict(enumerate(classes))
    samples.left_out = dict((left_out + odd).most_common())
    return samples


def _beside(file: StoredFile, samples: ContainedSamples) -> dict[str, dict[str, str]]:
    """Find the files of all fields, in the folders of the images."""
    images = samples.all_names()
    folders = dict.fromkeys(name.rpartition("/")[0] for name in images)
    names: list[str] = []
    for folder in folders:
        before = f"{folder}/" if folder else ""
        with os.scandir(os.path.join(file.name, folder)) as entries:
            names += sorted(before + entry.name for entry in entries if entry.is_file())
    return fields_of_stems(names, images)


def _field_files(file: StoredFile, samples: ContainedSamples, field: str) -> ContainedSamples:
    """Find the files of a field; JSON among them is read, as it may have boxes or points."""
    files = _beside(file, samples).get(field, {})
    names = [files.get(stem_of(name), "") for name in samples.all_names()]
    sizes, labels, faults = [], [], {}
    for row, name in enumerate(names):
        found = None
        try:
            if not name:
                raise FieldError(f"there is no file {stem_of(samples.name_of(row))}.{field}.*")
            if has_rows(name):
                with open(os.path.join(file.name, name), "rb") as opened:
                    found = labels_of_rows(opened.read(MOST_ROWS + 1)[:MOST_ROWS])
        except (RecordIOError, OSError) as error:
            faults[row] = getattr(error, "reason", str(error))
        sizes.append(NO_CONTENT if row in faults else 0)
        labels.append(found or [0.0])
    return ContainedSamples.of(range(len(names)), sizes, labels, names, faults=faults)


def _fields(
    file: StoredFile, settings: RemoteSettings | None, samples: ContainedSamples, choice: Choice
) -> list[str]:
    """List the fields that files beside the images are."""
    return sorted(_beside(file, samples))


def _is_folder_of_images(file: StoredFile) -> bool:
    """Tell a folder that holds no record files or manifests itself; it may hold nothing at all."""
    if not file.is_local or not os.path.isdir(file.name):
        return False
    with os.scandir(file.name) as entries:
        return not any(entry.name.endswith(".rec") for entry in entries)


FOLDER = Container(
    "a folder of images",
    _scan,
    is_it=_is_folder_of_images,
    is_folder=True,
    is_listed_each_time=True,
    fields=_fields,
)
