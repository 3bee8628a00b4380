"""Notes on things that were left out or read unexpectedly, each reported once.

Commands print the lines on standard error; a provider gives one warning for each.  With
``strict=True`` a note is an error.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

from .errors import RecordIOError

#: Names that are kept of each kind, and characters of one.
MOST_NAMES, LONGEST_NAME = 3, 80
#: Kinds that are told apart.
MOST_KINDS = 100
OTHERS = "other oddities"


@dataclass
class Notes:
    """Counts of odd things by kind, with the first names of each.

    A kind is the end of a sentence that begins with its count.

    >>> notes = Notes()
    >>> for name in ("a/._1.jpg", "a/._2.jpg", "b/._1.jpg", "b/._2.jpg"):
    ...     notes.add("hidden files were left out", name)
    >>> notes.lines()
    ['4 hidden files were left out: a/._1.jpg, a/._2.jpg, b/._1.jpg, ...']
    """

    kinds: dict[str, tuple[int, list[str]]] = field(default_factory=dict)

    @classmethod
    def of(cls, kinds: Any) -> Notes:
        """Make notes of what JSON gives back of `kinds`; anything else is a ValueError."""
        notes = {str(kind): (count, names) for kind, (count, names) in kinds.items()}
        for count, names in notes.values():
            if type(count) is not int or not all(isinstance(name, str) for name in names):
                raise ValueError("no notes")
        return cls(notes)

    def __bool__(self) -> bool:
        return bool(self.kinds)

    def add(self, kind: str, name: str = "", count: int = 1) -> None:
        """Count things of a kind, and keep the name of one if it is among the first."""
        self._add(kind, count, [name] if name else [])

    def update(self, other: Notes) -> None:
        """Add the notes on another part of the same source."""
        for kind, (count, names) in other.kinds.items():
            self._add(kind, count, names)

    def _add(self, kind: str, count: int, names: list[str]) -> None:
        if kind not in self.kinds and len(self.kinds) >= MOST_KINDS:
            kind = OTHERS
        before, kept = self.kinds.get(kind, (0, []))
        kept = [*kept, *(name[:LONGEST_NAME] for name in names)][:MOST_NAMES]
        self.kinds[kind] = before + count, kept

    def lines(self) -> list[str]:
        """Return one line for each kind: its count, the kind, and the first names."""
        lines = []
        for kind, (count, names) in self.kinds.items():
            more = ", ..." if count > len(names) else ""
            lines.append(f"{count} {kind}" + (f": {', '.join(names)}{more}" if names else ""))
        return lines

    def say(self, path: str, *, strict: bool = False, stacklevel: int = 2) -> None:
        """Warn once for each kind; with `strict` raise RecordIOError instead."""
        if strict and self:
            raise RecordIOError("; ".join(self.lines()), path=path)
        for line in self.lines():
            warnings.warn(f"{path}: {line}", stacklevel=stacklevel + 1)
