"""Folders of images, one for each class: ImageFolder's layout, read by the rules of im2rec.

Only names are looked at: image files are never opened here.  Files that have the stem of an image
and a further ending are fields of it, ``a.mask.png`` beside ``a.jpg``; JSON among them is read.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from ..bytes.files import StoredFile
from ..bytes.remote.settings import RemoteSettings
from ..errors import EmptyRecordFileError, FieldError, ImageFileError, RecordIOError
from ..formats.table import IMAGE_SUFFIXES
from ..notes import Notes
from .container import USUAL, Choice, Container
from .names import (
    ImageNames,
    choose_images,
    fields_of_stems,
    is_system_name,
    note_system_name,
    stem_of,
    suffix_of,
)
from .objects import MOST_ROWS, has_rows, labels_of_rows
from .samples import NO_CONTENT, ContainedSamples

ANY_DEPTH = -1
#: Gets path and reason of what is in the way of a walk, with the error of what cannot be read.
PassOver = Callable[[str, str, OSError | None], None]


def walk_images(
    root: str, accepted: Collection[str], depth: int, pass_over: PassOver, notes: Notes
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield the folders below a root from the top down, with the sorted names of images and others.

    Folders are relative, with slashes, and at most so many lie one in another.  Links are followed,
    loops are not.  Images are files with one of the `accepted` suffixes; what belongs to a system
    is neither, and noted.

    A stack instead of recursion: a path may have more parts than Python has frames.
    """
    # A folder is known by device and inode; `parents` is a linked list up to the root.
    status = os.stat(root)
    stack: list[tuple[str, int, tuple]] = [("", 0, ((status.st_dev, status.st_ino), None))]
    seen: set[str] = set()
    while stack:
        folder, level, parents = stack.pop()
        names: list[str] = []
        others: list[str] = []
        folders: list[tuple[str, int, tuple]] = []
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
                    if level == depth or note_system_name(path + "/", notes, seen):
                        continue
                    status = os.stat(item.path)
                    identity = (status.st_dev, status.st_ino)
                    if item.is_symlink() and _is_parent(identity, parents):
                        pass_over(path, "the link leads back to a folder that contains it", None)
                    else:
                        folders.append((path, level + 1, (identity, parents)))
                elif is_system_name(item.name):
                    note_system_name(path, notes, seen)
                elif suffix_of(item.name) not in accepted:
                    others.append(item.name)
                elif not item.is_file():
                    is_link = item.is_symlink()
                    reason = "the link leads to no file" if is_link else "it is no regular file"
                    pass_over(path, reason, None)
                elif fits_in_list(path):
                    names.append(item.name)
                else:
                    reason = "a list line cannot hold this name (a tab, line break or outer space)"
                    pass_over(path, f"{reason}; rename it", None)
            except OSError as error:
                pass_over(path, f"cannot be examined: {error.strerror}", error)
        yield folder, names, others
        stack.extend(reversed(folders))


def find_images(
    root: str,
    pass_over: PassOver,
    accepted: Collection[str] = IMAGE_SUFFIXES,
    depth: int = ANY_DEPTH,
) -> ImageNames:
    """Find the images below a folder, in the order of a walk; see `walk_images`."""
    images: list[str] = []
    beside: list[str] = []
    notes = Notes()
    for folder, names, others in walk_images(root, accepted, depth, pass_over, notes):
        before = f"{folder}/" if folder else ""
        images += [before + name for name in names]
        beside += [before + name for name in others]
    return choose_images(images, beside, notes)


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


def nothing_found(path: str, what: str, names: ImageNames) -> EmptyRecordFileError:
    """Make the error for a folder or an archive without images, which names what there is."""
    kinds = names.left_out().most_common(5)
    others = [f"{count} {suffix or 'others'}" for suffix, count in kinds]
    there = "; ".join([", ".join(others)] * bool(others) + names.notes.lines())
    return EmptyRecordFileError(
        f"{what} images ({' '.join(sorted(IMAGE_SUFFIXES))}), but {there or 'nothing at all'}: "
        "give the record files or archives in it by a pattern such as 'folder/*.tar'",
        path=path,
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
    odd: Counter[str] = Counter()
    image_names = _images_of(file, odd, choice)
    names = image_names.images
    if not names:
        raise nothing_found(file.name, "the folder holds no .rec file and no", image_names)
    if choice.field:
        return _field_files(file, image_names, choice.field)
    labels, classes = labels_by_folder(names)
    # Each content is a file: there are no offsets in one of all.
    sizes = np.zeros(len(names), np.int64)
    samples = ContainedSamples(np.arange(len(names)), sizes, np.array(labels, np.float32))
    samples.set_names(list(map(os.fsencode, names)))
    samples.classes, samples.left_out = classes, {**image_names.counted(), **odd}
    image_names.note_others()
    samples.notes = image_names.notes
    return samples


def accepted_by(choice: Choice) -> Collection[str]:
    """Return the endings of files that count as images."""
    return frozenset(suffix.lower() for suffix in choice.suffixes) or IMAGE_SUFFIXES


def _images_of(file: StoredFile, odd: Counter[str], choice: Choice) -> ImageNames:
    """Find the images; `odd` counts what is in the way."""
    notes = Notes()

    def pass_over(path: str, reason: str, error: OSError | None) -> None:
        if error is not None:  # without its classes, others would get their labels
            raise ImageFileError(
                f"{reason}; allow it, or move that folder away", path=os.path.join(file.name, path)
            )
        odd[reason] += 1
        notes.add(f"files or links were left out: {reason}", path)

    image_names = find_images(file.name, pass_over, accepted_by(choice))
    image_names.notes.update(notes)
    return image_names


def _field_files(file: StoredFile, images: ImageNames, field: str) -> ContainedSamples:
    """Find the files of a field; JSON among them is read, as it may have boxes or points."""
    files = fields_of_stems(images.beside, images.images).get(field, {})
    stems = list(map(stem_of, images.images))
    names = [files.get(stem, "") for stem in stems]
    sizes, labels, faults = [], [], {}
    for row, name in enumerate(names):
        row_labels = None
        try:
            if not name:
                raise FieldError(f"there is no file {stems[row]}.{field}.*")
            if has_rows(name):
                with open(os.path.join(file.name, name), "rb") as opened:
                    row_labels = labels_of_rows(opened.read(MOST_ROWS + 1)[:MOST_ROWS])
        except (RecordIOError, OSError) as error:
            faults[row] = getattr(error, "reason", str(error))
        sizes.append(NO_CONTENT if row in faults else 0)
        labels.append(row_labels or [0.0])
    return ContainedSamples.of(range(len(names)), sizes, labels, names, faults=faults)


def _fields(
    file: StoredFile, settings: RemoteSettings | None, samples: ContainedSamples, choice: Choice
) -> list[str]:
    """List the fields that files beside the images are."""
    image_names = _images_of(file, Counter(), choice)
    return sorted(fields_of_stems(image_names.beside, image_names.images))


def _is_folder_of_images(file: StoredFile) -> bool:
    """Tell a folder that holds no record files or manifests itself; it may hold nothing at all."""
    if not file.is_local or not os.path.isdir(file.name):
        return False
    with os.scandir(file.name) as entries:
        return not any(e.name.endswith(".rec") and not is_system_name(e.name) for e in entries)


FOLDER = Container(
    "a folder of images",
    _scan,
    is_it=_is_folder_of_images,
    is_folder=True,
    is_listed_each_time=True,
    fields=_fields,
    chooses=frozenset(["field", "suffixes"]),
)
