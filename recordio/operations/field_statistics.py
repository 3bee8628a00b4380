"""The fields of a pack in numbers: records, objects, and pixels of each class of a mask."""

from __future__ import annotations

import collections
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import ImageDecodeError
from ..formats.decode import decode_image
from ..formats.image_header import open_image
from ..formats.table import kind_of
from ..packs.row_tables import rows_of
from ..packs.scanned_container import scan_field
from ..packs.scanned_pack import ScannedPack
from .passes import pass_over

#: Where the colour type stands in a PNG file, and the one of a palette.
COLOUR_TYPE, PALETTE = 25, 3
#: Counts that are shown.
SHOWN = 8


@dataclass(frozen=True)
class FieldStatistics:
    """Numbers about one field of a pack.

    `kind` and `classes` are those of ``PREFIX.fields.json``, and `kinds` counts what the contents
    are.  `objects` are those of boxes or key points; `counts` are pixels by their value, of a mask
    that was decoded, or boxes by their class.
    """

    records: int
    missing: int
    bytes: int
    kinds: dict[str, int]
    kind: str | None = None
    ignore: int | None = None
    classes: Mapping[int, str] = field(default_factory=dict)
    objects: int | None = None
    counts: dict[int, int] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """Return lines of text about it."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.kinds.items())
        missing = f", missing for {self.missing}" if self.missing else ""
        lines = [f"{self.kind or 'of no kind'}; {self.records} records{missing}: {kinds}"]
        what = "boxes" if self.objects is not None and self.counts else "pixels"
        if self.objects is not None:
            lines.append(f"{self.objects} objects")
        total = sum(self.counts.values())
        common = sorted(self.counts.items(), key=lambda pair: (-pair[1], pair[0]))
        for value, count in common[:SHOWN]:
            named = f" {self.classes[value]}" if value in self.classes else ""
            named = " ignored" if value == self.ignore and not named else named
            lines.append(f"{value}{named}: {count} {what}, {count / total:.2%}")
        if len(common) > SHOWN:
            lines.append(f"and {len(common) - SHOWN} more values")
        return lines


def field_statistics(
    pack: ScannedPack,
    name: str,
    decodes: bool,
    skip_errors: bool,
    threads: int | None,
    limits: Mapping[str, int | None],
) -> FieldStatistics:
    """Count what one field holds; the pixels of a mask if that `decodes`."""
    meta = pack.fields_meta.get(name)
    with scan_field(pack, name) as field_pack:
        decodes = decodes and meta is not None and meta.kind == "mask"

        def look(number: int, content: memoryview) -> tuple[str, dict[int, int]]:
            kind = kind_of(content)
            if not decodes:
                return kind, {}
            try:
                return kind, _counted(mask_values(content, **limits))
            except ImageDecodeError as error:
                if skip_errors:
                    return kind, {}
                raise ImageDecodeError(error.reason, **field_pack.location(number)) from None

        kinds: collections.Counter[str] = collections.Counter()
        counts: collections.Counter[int] = collections.Counter()
        for _, results in pass_over(field_pack, look, threads):
            kinds.update(kind for kind, _ in results)
            for _, values in results:
                counts.update(values)
        is_of_objects = field_pack.is_detection if meta is None else meta.content == "objects"
        objects = None
        if field_pack.is_detection and (meta is None or meta.kind == "boxes"):
            counts.update(_counted(field_pack.labels.values))
            objects = len(field_pack.labels.values)
        elif is_of_objects:
            objects = field_pack.count_objects()
        return FieldStatistics(
            records=len(field_pack),
            missing=int((rows_of(pack.keys, field_pack.keys) < 0).sum()),
            bytes=field_pack.bytes,
            kinds=dict(kinds.most_common()),
            kind=None if meta is None else meta.kind,
            ignore=None if meta is None else meta.ignore,
            classes={} if meta is None else meta.classes,
            objects=objects,
            counts=dict(sorted(counts.items())),
        )


def _counted(values: np.ndarray) -> dict[int, int]:
    """Count equal whole numbers."""
    distinct, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    return dict(zip(distinct.astype(int).tolist(), counts.tolist(), strict=True))


def mask_values(content: Any, **limits: Any) -> np.ndarray:
    """Decode the numbers of a mask: those of a palette, not its colours."""
    is_png = kind_of(content) == "png" and len(content) > COLOUR_TYPE
    if is_png and content[COLOUR_TYPE] == PALETTE:
        decode_image(content, channels=1, **limits)  # refuses what is too large, or damaged
        with open_image(io.BytesIO(content)) as image:
            return np.asarray(image)
    return decode_image(content, channels=1, dtype="float32", **limits)
