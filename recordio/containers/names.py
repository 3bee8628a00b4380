"""Names of files in folders and archives: images, fields of images, files of operating systems.

Only names are looked at here; the rules are the same for folders, zip archives, im2rec and the
converters.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from ..formats.table import IMAGE_SUFFIXES
from ..notes import Notes

#: Files and folders of Windows, macOS, Linux, and of Synology's and QNAP's stores, in lower case.
SYSTEM_NAMES = frozenset(
    {
        "#recycle",
        "$recycle.bin",
        "@eadir",
        "@recycle",
        "__macosx",
        "desktop.ini",
        "lost+found",
        "system volume information",
        "thumbs.db",
    }
)
#: Endings of files that nobody takes for images; no note names them.
TEXTS = re.compile(
    r"\.(cfg|cls|csv|html|idx|index|ini|ipynb|json|jsonl|log|lst|md|ndjson|py|rst|sizes|toml|tsv|txt"
    r"|xml|yaml|yml)"
)
METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
SPLIT = re.compile(r"(train|training|trainval|val|valid|validation|test|testing|dev|eval)[-_]?\d*")

SYSTEM = "hidden or system files and folders were left out"
UNUSED_METADATA = (
    "metadata files of the hub's layout were not read, and labels are those of folders"
)
SPLITS = "top-level folders have the names of splits and were read together: give one of them"


def is_system_name(path: str) -> bool:
    """Tell whether a path with slashes belongs to a system and not to the data, at any depth.

    These are hidden files, all that is in hidden folders, and well-known names.  The path begins
    below the root, which may be hidden itself.

    >>> [is_system_name(path) for path in ("a/._1.jpg", ".git/1.jpg", "__MACOSX/1.jpg", "./1.jpg")]
    [True, True, True, False]
    """
    return bool(_system_part(path))


def _system_part(path: str) -> str:
    """Return a path up to the first name of a system; "" without one."""
    parts = path.split("/")
    for number, part in enumerate(parts, 1):
        if (part.startswith(".") and part not in (".", "..")) or part.lower() in SYSTEM_NAMES:
            return "/".join(parts[:number])
    return ""


def note_system_name(path: str, notes: Notes, seen: set[str]) -> bool:
    """Tell whether a path belongs to a system, and note it unless it is a file that is no image.

    A folder is noted once, whatever is in it: `seen` has those that were.
    """
    part = _system_part(path)
    if part and part not in seen and (part != path or suffix_of(path) in IMAGE_SUFFIXES):
        seen.add(part)
        notes.add(SYSTEM, part)
    return bool(part)


def suffix_of(path: str) -> str:
    """Return the suffix of the name of a file, in lower case.

    >>> suffix_of("a.d/1.left.JPG"), suffix_of("a.d/1"), suffix_of(".hidden")
    ('.jpg', '', '')
    """
    name = path.rpartition("/")[2]
    return name[name.rfind(".") :].lower() if "." in name.lstrip(".") else ""


def stem_of(path: str) -> str:
    """Return the path of a file without its suffix.

    >>> stem_of("a.d/1.left.jpg")
    'a.d/1.left'
    """
    return path[: len(path) - len(suffix_of(path))]


def _field_of(name: str, stems: Collection[str]) -> tuple[str, str] | None:
    """Return stem and field of a file, ``STEM.FIELD`` or ``STEM.FIELD.SUFFIX``; None of others.

    >>> _field_of("a/1.mask.png", {"a/1"}), _field_of("a/1.txt", {"a/1"}), _field_of("1.jpg", {"1"})
    (('a/1', 'mask'), ('a/1', 'txt'), None)
    """
    folder, slash, base = name.rpartition("/")
    parts = base.split(".")
    counts = (2,) if suffix_of(base) in IMAGE_SUFFIXES else (2, 1)  # an image is none by one ending
    for count in counts:
        field_name, stem = parts[-count] if len(parts) > count else "", ".".join(parts[:-count])
        if field_name.isascii() and field_name.isidentifier() and f"{folder}{slash}{stem}" in stems:
            return f"{folder}{slash}{stem}", field_name
    return None


def fields_of_stems(names: Iterable[str], images: Iterable[str]) -> dict[str, dict[str, str]]:
    """Find the fields of images among other files: field -> stem -> the first such file."""
    stems = set(map(stem_of, images))
    fields: dict[str, dict[str, str]] = {}
    for name in names:
        one = _field_of(name, stems)
        if one is not None:
            fields.setdefault(one[1], {}).setdefault(one[0], name)
    return fields


def field_note(name: str) -> str:
    """Return the kind of note on images that are a field of others."""
    return f"images beside others are their field {name!r}, as most of the others have one"


@dataclass
class ImageNames:
    """Names of images in their order, those of their fields that are images, and other files."""

    images: list[str]
    others: list[str]
    fields: list[str] = field(default_factory=list)
    notes: Notes = field(default_factory=Notes)

    @property
    def beside(self) -> list[str]:
        """All that may be a field."""
        return sorted(self.fields + self.others)

    def left_out(self) -> Counter[str]:
        """Count the other files by suffix."""
        return Counter(map(suffix_of, self.others))

    def counted(self) -> dict[str, int]:
        """Count what is no sample by its ending."""
        counts = self.left_out()
        endings = ((name, name.rpartition("/")[2].split(".")[-2:]) for name in self.fields)
        counts.update(Counter(f".{one}{suffix_of(name)}" for name, (one, _) in endings))
        return dict(counts.most_common())

    def note_others(self) -> None:
        """Note other files that somebody may miss: all but texts and fields."""
        unclear = sorted(name for name in self.others if not TEXTS.fullmatch(suffix_of(name)))
        stems = set(map(stem_of, self.images)) if unclear else set()
        for name in unclear:
            if _field_of(name, stems) is None:
                ending = suffix_of(name)
                called = f"that end in {ending}" if ending else "without an ending"
                why = "as no image that is decoded here does"
                if ending in IMAGE_SUFFIXES:
                    why = "as others were chosen"
                self.notes.add(f"files {called} were left out, {why}", name)


def choose_images(names: Sequence[str], others: Sequence[str], notes: Notes) -> ImageNames:
    """Tell images from images that are fields of others, and note what else is odd.

    ``X.NAME.png`` beside ``X.jpg`` is a field where more than half of the images have one of that
    name, and an image otherwise.  A single ``X.NAME.jpg`` beside ``X.jpg`` is an image.

    >>> names = ["a.jpg", "a.copy.jpg", "a.mask.png", "b.jpg", "b.mask.png", "c.left.png"]
    >>> chosen = choose_images(names, [], Notes())
    >>> chosen.images, chosen.fields
    (['a.jpg', 'a.copy.jpg', 'b.jpg', 'c.left.png'], ['a.mask.png', 'b.mask.png'])
    """
    chosen = ImageNames(list(names), list(others), notes=notes)
    dotted = [name for name in names if name.rpartition("/")[2].count(".") > 1]
    if dotted:
        _find_fields(chosen, dotted)
    for name in others:
        if name.rpartition("/")[2].lower() in METADATA:
            notes.add(UNUSED_METADATA, name)
    tops = {name.partition("/")[0]: None for name in chosen.images if "/" in name}
    if len(tops) > 1 and all(SPLIT.fullmatch(top.lower()) for top in tops):
        for top in tops:
            notes.add(SPLITS, top)
    return chosen


def _find_fields(chosen: ImageNames, dotted: Sequence[str]) -> None:
    """Take the images out that are fields of others, among those that may be."""
    suffixes = {stem_of(name): suffix_of(name) for name in chosen.images}
    candidates: dict[str, dict[str, str]] = {}
    for name in dotted:
        one = _field_of(name, suffixes)
        if one is not None:
            candidates.setdefault(one[1], {})[name] = one[0]
    count = len(chosen.images) - sum(map(len, candidates.values()))
    for called, stems in candidates.items():
        having = set(stems.values())
        alike = all(suffix_of(name) == suffixes[stem] for name, stem in stems.items())
        if 2 * len(having) > count and not (alike and len(having) == 1):
            chosen.fields += stems
            for name in stems:
                chosen.notes.add(field_note(called), name)
            continue
        for name, stem in stems.items():
            if suffix_of(name) != suffixes[stem]:
                chosen.notes.add(
                    f"images beside others are samples, and no field {called!r}, as most of the "
                    "others have none",
                    name,
                )
    fields = set(chosen.fields)
    chosen.images = [name for name in chosen.images if name not in fields]
