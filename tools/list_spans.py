"""Pieces of a long list, found without keeping it in memory: which bytes hold how many images."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace

from recordio.limits import LONGEST_LINE
from recordio.lists import names_image
from recordio.regular_files import open_regular

from .image_list import ImageList, listed

__all__ = ["ListSpan", "cut_list"]


@dataclass(frozen=True)
class ListSpan:
    """Some lines of a list.

    Attributes
    ----------
    path : str
        The ``.lst`` file.
    begin, end : int
        Where they begin and end in the file, in bytes.
    before : int
        Lines before them.
    images : int
        How many of them are neither blank nor comments.
    """

    path: str
    begin: int
    end: int
    before: int
    images: int

    def read(self) -> bytes:
        """The bytes of the lines."""
        with open_regular(self.path) as file:
            file.seek(self.begin)
            return file.read(self.end - self.begin)

    def listed(self) -> ImageList:
        """What the lines hold, as `recordio.tools.image_list.read_list` reads all."""
        encoding = "utf-8" if self.begin else "utf-8-sig"
        lines = io.TextIOWrapper(io.BytesIO(self.read()), encoding, errors="surrogateescape")
        return listed(lines, self.path, self.before)


def cut_list(path: str, count: int | None, most: int) -> list[ListSpan]:
    r"""Cut a list into spans of equally many images, give or take one.

    Parameters
    ----------
    path : str
        The ``.lst`` file.
    count : int, optional
        How many spans; fewer if there are fewer images.
    most : int
        Without `count`, how many images a span has at most.

    Returns
    -------
    list of ListSpan
        Empty for a list without images.

    Raises
    ------
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.lst")
    >>> _ = path.write_text("0\t1\ta.jpg\n# a comment\n1\t1\tb.jpg\n2\t0\tc.jpg\n")
    >>> [(span.before, span.images) for span in cut_list(str(path), 2, 1000)]
    [(0, 1), (1, 2)]
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
    """Size in bytes of each line, and whether it names an image; too long ones come in pieces."""
    with open_regular(path) as file:
        while line := file.readline(4 * LONGEST_LINE):
            yield len(line), names_image(line)
