"""WebDataset's rules: which file of a sample is its content, which one holds the label, and how."""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..boxes import LEAST_OBJECT
from ..errors import LabelError, RecordIOError
from ..formats.table import FORMATS, is_read_everywhere
from ..list_files import safe_name
from ..values import number
from .labels import LABELS, first_named
from .objects import labels_of_row_lists

#: Last parts of the endings that count as the content of a sample, where none is chosen.
CONTENTS = frozenset(
    ["npy"] + [suffix[1:] for row in FORMATS if is_read_everywhere(row) for suffix in row.suffixes]
)
#: Names of boxes in JSON, each a row of class and edges.
BOXES = ("boxes", "bboxes", "bbox", "objects")
#: How far a box may leave its image, as a fraction of it.
MARGIN = 0.01
#: Endings of files with labels in text, the most likely one first; JSON comes behind ``.cls``.
LABEL_FILES = ("cls", *(name for name in LABELS if name != "cls" and "/" not in name))
#: Files of a sample, besides its content and its labels, that are told apart.
MOST_FILES = 1000


class WebSample(NamedTuple):
    """A sample: its name in lists, its content, its labels, and files and fields left out."""

    name: str
    content: Any
    labels: list[float]
    left_out: collections.Counter[str]
    #: All contents, where samples may have several.
    images: Sequence[Any] = ()


class NoLabelError(LabelError):
    """Raised for a sample that has everything but a label."""


def add_part(
    files: dict[str, Any], ending: str, content: Any, passed_over: collections.Counter[str]
) -> None:
    """Add a file to those of a sample; its content is None if nobody wants it."""
    if ending in files:
        content = RecordIOError(f"two files end with .{ending}")
    if content is not None or len(files) < MOST_FILES:
        files[ending] = content
    else:
        passed_over[f".{ending}"] += 1


@dataclass(frozen=True)
class PartChoice:
    """Say which files of a sample are used; by default the first image or array, and its class.

    One of the ending ``.jpg`` goes before one of two endings, such as ``.depth.png``.

    >>> PartChoice().chosen(["depth.png", "jpg", "cls"]), PartChoice().chosen(["left.png"])
    ('jpg', 'left.png')
    """

    #: The ending of the content.
    content: str = ""
    #: The ending of the file with the label, and a field of it: "json:class".
    label: str = ""
    has_labels: bool = True
    #: Boxes in JSON go before a class.
    boxes: bool = False
    #: A sample may have several contents: those with numbers.
    several: bool = False

    @property
    def label_file(self) -> str:
        """The ending of the file that is chosen for labels; "" without a choice."""
        return self.label.partition(":")[0].lower().removeprefix(".")

    def is_content(self, ending: str) -> bool:
        """Tell whether a file may be the content."""
        if self.content:
            return ending == self.content.lower().removeprefix(".")
        return ending.rpartition(".")[2] in CONTENTS

    def chosen(self, endings: Iterable[str]) -> str:
        """Return the ending of the content among those of a sample; "" if none may be it."""
        contents = [ending for ending in endings if self.is_content(ending)]
        return next((one for one in contents if "." not in one), contents[0] if contents else "")

    def images(self, endings: Iterable[str]) -> list[str]:
        """Return the endings of all contents of a sample, in their order.

        Those are the content alone, unless there may be several: then its neighbours by a number.

        >>> PartChoice(several=True).images(["1.jpg", "10.jpg", "2.jpg", "depth.png", "json"])
        ['1.jpg', '2.jpg', '10.jpg']
        >>> PartChoice(several=True).images(["jpg", "2.jpg", "1.jpg"]), PartChoice().images(["jpg"])
        (['jpg', '1.jpg', '2.jpg'], ['jpg'])
        """
        endings = list(endings)
        chosen = self.chosen(endings)
        if not self.several or self.content or not chosen:
            return [chosen] if chosen else []
        numbered = {one: _number_of(one) for one in endings if self.is_content(one)}
        own_number = _number_of(chosen)
        if own_number is None and "." in chosen:
            return [chosen]
        name = "" if own_number is None else own_number[0]
        neighbours = sorted((n[1], one) for one, n in numbered.items() if n and n[0] == name)
        return [chosen] * (own_number is None) + [one for _, one in neighbours]

    def has_dots(self, endings: Iterable[str]) -> bool:
        """Tell whether the files of a sample are several samples; see `has_dotted_names`.

        Images that are numbered from 0 or 1 on are those of one, where it may have several.
        """
        endings = list(endings)
        if not has_dotted_names(endings):
            return False
        stems = [ending.rpartition(".") for ending in endings]
        labels = {stem for stem, _, last in stems if last == "cls"} - {""}
        numbers = sorted(int(s) for s, _, last in stems if last in CONTENTS and s.isdecimal())
        ordered = numbers in ([*range(len(numbers))], [*range(1, len(numbers) + 1)])
        return not (self.several and numbers and ordered and not labels)

    def purpose(self, ending: str, before: Sequence[str]) -> str:
        """Return "content" or "label" for a file that is wanted behind others; "" for the rest.

        A file that may be the content is wanted until there is one that goes before it.
        """
        if self.is_content(ending) and ending in self.images([*before, ending]):
            return "content"
        names = (self.label_file,) if self.label else (*LABEL_FILES, "json")
        return "label" if self.has_labels and ending in names else ""

    def sample(self, key: str, files: dict[str, Any]) -> WebSample:
        """Make a sample of the files with one key; those that are wanted have their content.

        An error stands for the content of a file that cannot be used.
        """
        chosen = self.chosen(files)
        if not chosen:
            own_ending = self.content.lower().removeprefix(".")
            what = f"no .{own_ending} file" if own_ending else "no image or .npy file"
            raise RecordIOError(
                f"the sample has {what}, only {', '.join(f'.{ending}' for ending in files)}; files "
                "of a sample must follow one another"
            )
        images = self.images(files)
        contents = [_taken(files, ending) for ending in images]
        content = _taken(files, chosen)
        left_out = collections.Counter(f".{ending}" for ending in files if ending not in images)
        labels: list[float] = []
        if self.has_labels:
            labels, ending, fields = self.labels(files)
            del left_out[f".{ending}"]
            left_out.update(f"{name} in .{ending}" for name in fields)
        return WebSample(safe_name(f"{key}.{chosen}"), content, labels, left_out, contents)

    def labels(self, files: dict[str, Any]) -> tuple[list[float], str, list[str]]:
        """Return the labels, the ending of the file that holds them, and other fields of it."""
        endings: Sequence[str] = (self.label_file,) if self.label else ("cls", "json", *LABEL_FILES)
        if self.boxes and not self.label and "json" in files:
            endings = ("json", *endings)
        refused = ""
        for ending in endings:
            if ending not in files:
                continue
            if not ending.endswith("json"):
                return _numbers_in(_taken(files, ending), ending), ending, []
            try:
                return self._labels_in_json(_taken(files, ending), ending)
            except NoLabelError as error:
                refused = error.reason
        if not refused:
            refused = (
                f"the sample has no label file .{endings[0]}, only"
                f" {', '.join(f'.{ending}' for ending in files)}"
            )
        foreign = [ending for ending in files if ending.endswith(".cls")]
        if foreign and not self.label:
            refused += f", and .{foreign[0]} belongs to no image"
        raise NoLabelError(f"{refused}; --no-labels makes every label 0")

    def _labels_in_json(self, text: bytes, ending: str) -> tuple[list[float], str, list[str]]:
        field = self.label.partition(":")[2]
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RecordIOError(f"its .{ending} file holds no labels: {error}") from None
        others: list[str] = []
        if isinstance(values, dict):
            boxes = first_named(values, BOXES) if self.boxes and not field else None
            rows = None if boxes is None else _rows_in(values[boxes])
            if boxes is not None and rows is not None and _are_fractions(rows):
                return rows, ending, [other for other in values if other != boxes]
            name = field if field in values else None
            if not field:
                name = first_named(values, LABELS)
            if boxes is not None and (name is None or not _is_vector(values[name])):
                raise RecordIOError(
                    f"its {boxes} in .{ending} are no rows [class, xmin, ymin, xmax, ymax] in "
                    f"fractions of the image: {values[boxes]!s:.60}"
                )
            if name is None:
                there = ", ".join(map(str, values)) or "none"
                raise NoLabelError(
                    f"its .{ending} file has no field {field or ' or '.join(LABELS[1:5])} among "
                    f"its fields {there:.200}; label_field={ending + ':NAME'!r} chooses one"
                )
            others = [other for other in values if other != name]
            values = values[name]
        rows = _rows_in(values) if values != [] else None
        if rows is not None:
            return rows, ending, others
        values = values if isinstance(values, list) else [values]
        numbers = [number(value) for value in values]
        if None in numbers or not numbers:
            raise RecordIOError(f"the labels {values!s:.60} in .{ending} are no finite numbers")
        return [value for value in numbers if value is not None], ending, others


@dataclass(frozen=True)
class FieldChoice(PartChoice):
    """Use one field of each sample: its file ``KEY.NAME`` or ``KEY.NAME.ENDING``.

    >>> [FieldChoice("mask").is_content(ending) for ending in ("mask.png", "mask", "png")]
    [True, True, False]
    """

    has_labels: bool = False

    def is_content(self, ending: str) -> bool:
        """Tell whether a file may be the field."""
        return ending.partition(".")[0] == self.content.lower()


def has_dotted_names(endings: Iterable[str]) -> bool:
    """Tell whether the files of a sample are several samples whose names have dots.

    Those are labels that have an image of their own, or images numbered behind a dot.

    >>> has_dotted_names(["05.png", "05.cls", "06.png", "06.cls"]), has_dotted_names(["png", "cls"])
    (True, False)
    >>> has_dotted_names(["left.png", "right.png"]), has_dotted_names(["05.png", "06.png"])
    (False, True)
    """
    stems: dict[str, set[str]] = {}
    for ending in endings:
        stem, _, last = ending.rpartition(".")
        stems.setdefault(stem, set()).add(last)
    images = {stem for stem, lasts in stems.items() if lasts & CONTENTS}
    if any(stem and "cls" in stems[stem] for stem in images):
        return True
    plain = stems.get("", set())
    return (
        len(images) > 1
        and not plain & {*CONTENTS, *LABEL_FILES, "json"}
        and all(not stem.rpartition(".")[2].isidentifier() for stem in images)
    )


def _number_of(ending: str) -> tuple[str, int] | None:
    """Return the name and the number before a content's ending; None where there is no number."""
    stem = ending.rpartition(".")[0]
    match = re.fullmatch(r"(.*?)([0-9]{1,9})", stem)
    return None if match is None else (match[1], int(match[2]))


def ending_fields(left_out: Iterable[str]) -> list[str]:
    """List the names of fields among kinds of files that were left out.

    >>> ending_fields([".mask.png", ".txt", "width in .json", "others"])
    ['mask', 'txt']
    """
    names = {kind.split(".")[1] for kind in left_out if kind.startswith(".")}
    return sorted(name for name in names if name.isascii() and name.isidentifier())


def _taken(files: dict[str, Any], ending: str) -> Any:
    """Return the content of a file, or raise the reason why there is none."""
    content = files[ending]
    if isinstance(content, RecordIOError):
        raise content
    return content


def _rows_in(values: Any) -> list[float] | None:
    """Return the labels of boxes as rows; None of anything else."""
    return labels_of_row_lists(values) if isinstance(values, list) else None


def _are_fractions(labels: list[float]) -> bool:
    """Tell whether the edges of all boxes lie in the image, or hardly outside."""
    edges = np.array(labels[2:]).reshape(-1, int(labels[1]))[:, 1:5]
    return labels[1] == LEAST_OBJECT and bool(((edges >= -MARGIN) & (edges <= 1 + MARGIN)).all())


def _is_vector(values: Any) -> bool:
    """Tell the labels of a detection record, which are several."""
    return isinstance(values, list) and len(values) > 1


def _numbers_in(text: bytes, ending: str) -> list[float]:
    """Read the numbers of a file with labels in text, at least one."""
    words = text.decode("utf-8", "replace").split()
    values = [number(word) for word in words]
    for word, value in zip(words, values, strict=True):
        if value is None:
            raise RecordIOError(f"its .{ending} file holds {word:.60}, which is no finite number")
    if not values:
        raise RecordIOError(f"its .{ending} file is empty")
    return [value for value in values if value is not None]
