"""Pieces of a long list, found without keeping it in memory: bytes, and images in them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from recordio.bytes.regular_files import open_regular
from recordio.file_limits import LONGEST_LINE
from recordio.list_files import names_image

from .image_list import ImageList, listed


@dataclass(frozen=True)
class ListSpan:
    """Some lines of a list."""

    path: str
    begin: int  # in bytes
    end: int
    before: int  # lines
    images: int  # lines that are neither blank nor comments
    fields: ClassVar[tuple[str, ...]] = ()

    def read(self) -> bytes:
        """Return the bytes of the lines."""
        with open_regular(self.path) as file:
            file.seek(self.begin)
            return file.read(self.end - self.begin)

    def listed(self) -> ImageList:
        """Return the images in the lines, as `recordio.tools.image_list.read_list` does for all."""
        encoding = "utf-8" if self.begin else "utf-8-sig"
        lines = io.TextIOWrapper(io.BytesIO(self.read()), encoding, errors="surrogateescape")
        return listed(lines, self.path, self.before)

    def contents(self, root: str) -> str:
        """Return where the images are: in files below a folder."""
        return root


def cut_list(path: str, count: int | None, most: int) -> list[ListSpan]:
    """Cut a list into spans of equally many images, give or take one.

    There are `count` spans, or as many as there are images; without `count`, spans of at most
    `most` images.
    """
    images = sum(is_image for _, is_image in _lines(path))
    spans = min(-(-images // most) if count is None else count, images)
    result: list[ListSpan] = []
    begin = end = before = cut = done = 0
    for number, (size, is_image) in enumerate(_lines(path), 1):
        end += size
        done += is_image
        if is_image and done == images * (len(result) + 1) // spans:
            result.append(ListSpan(path, begin, end, before, done - cut))
            begin, before, cut = end, number, done
    if result:  # blank lines and comments at the end
        result[-1] = replace(result[-1], end=end)
    return result


def _lines(path: str) -> Iterator[tuple[int, bool]]:
    """Yield size in bytes of each line, and if it names an image; too long ones come in pieces."""
    with open_regular(path) as file:
        while line := file.readline(4 * LONGEST_LINE):
            yield len(line), names_image(line)
