"""Files of annotations: the text in them, and the images that they are about.

Names of images come from other machines and other systems.  One function finds the image for all
formats, or says why none is: an annotation never gets another image instead.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
import unicodedata
from collections.abc import Sequence

from recordio.bytes.regular_files import open_regular
from recordio.containers.folder import ANY_DEPTH, walk_images
from recordio.containers.names import is_system_name
from recordio.errors import LabelError, RecordIOError
from recordio.formats.table import FORMATS
from recordio.list_files import safe_name
from recordio.notes import Notes

from ..image_list import Skipped

ENDINGS = frozenset(suffix for row in FORMATS for suffix in row.suffixes)
#: Byte order marks, the longer ones first.
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
#: Encodings with more characters, which programs write under the names of lesser ones.
WIDER = {"gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "big5": "cp950"}
#: Python's own codecs of text that no file is written in.
NO_ENCODINGS = frozenset(
    ["idna", "punycode", "raw_unicode_escape", "undefined", "unicode_escape", "utf_7"]
)


def read_limited(path: str, limit: int) -> bytes:
    """Return the bytes of a file that must not be large."""
    with open_regular(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise RecordIOError(
            f"it has more than {limit} bytes; raise --max-metadata-bytes to allow it", path=path
        )
    return data


def decoded(data: bytes, path: str, declared: str = "", errors: str = "strict") -> str:
    """Return the text in a file: by its byte order mark, by what it declares, or UTF-8."""
    encoding = next((name for mark, name in MARKS if data.startswith(mark)), "")
    if not encoding and 0 in data[:2] and any(data[:2]):
        encoding = "utf-16-be" if data[0] == 0 else "utf-16-le"
    encoding = encoding or declared or "utf-8"
    try:
        name = codecs.lookup(encoding).name
    except (LookupError, ValueError):
        name = ""
    if name.replace("-", "_") in ("", *NO_ENCODINGS):
        raise RecordIOError(f"it declares an unknown encoding: {encoding:.40}", path=path)
    for codec in filter(None, (name, WIDER.get(name))):
        try:
            return data.decode(codec, errors)
        except LookupError:
            raise RecordIOError(f"{encoding:.40} is no encoding of text", path=path) from None
        except UnicodeError as error:
            fault = str(error)
    raise RecordIOError(
        f"it is not in the encoding {encoding}{' that it declares' * bool(declared)} ({fault}): "
        "save it as UTF-8",
        path=path,
    )


def files_below(folder: str, suffix: str, notes: Notes) -> tuple[list[str], list[Skipped]]:
    """Return the paths of files below a folder, with slashes, and what is in the way."""
    names: list[str] = []
    skipped: list[Skipped] = []

    def pass_over(path: str, reason: str, error: OSError | None) -> None:
        skipped.append(Skipped(os.path.join(folder, path), reason))

    for inside, files, _ in walk_images(folder, (suffix,), ANY_DEPTH, pass_over, notes):
        names += [f"{inside}/{name}" if inside else name for name in files]
    return names, skipped


class ImageFolder:
    """A folder of images, some of which annotations name; each image has one annotation."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._listed: dict[str, dict[tuple[str, str], list[str]]] = {}
        self._owners: dict[str, tuple[tuple[bool, bool], str]] = {}

    def find(self, named: str, within: Sequence[str] = ("",)) -> str:
        r"""Return the path of an image below the folder, with slashes, by what others call it.

        The name may begin with folders that are not here, have backslashes or other capitals in
        its ending, or no ending.  `within` are the folders in which it may be, the likeliest first.
        """
        named = named.strip()
        if not safe_name(named):
            raise LabelError(f"its file name {named!r:.80} is none of an image")
        if "\\" in named and safe_name(named) == named and self._is_file(named):
            return named  # such a name is possible on most systems
        parts = parts_of(named)
        for first in range(len(parts)):
            for folder in within:
                if path := self._at([*filter(None, [folder]), *parts[first:]], named):
                    return path
        stem = os.path.splitext(parts[-1])[0] if parts else ""
        namesakes = [name for folder in within for name in self._images(folder).get((stem, ""), ())]
        hint = f"; {namesakes[0]} is there" if namesakes else ""
        raise LabelError(f"there is no image {named} in {self.folder}{hint}")

    def claim(self, named: str, owner: str, within: Sequence[str] = ("",), stem: str = "") -> str:
        """Find an image for an annotation; the one that names it best keeps it.

        `stem` is that of the name of the annotation, where it has a file of its own.
        """
        path = self.find(named, within)
        own = os.path.splitext(os.path.basename(path))[0]
        rank = "/".join(parts_of(named)) != path, bool(stem) and stem != own
        if path not in self._owners or rank < self._owners[path][0]:
            self._owners[path] = rank, owner
        return path

    def check_owner(self, path: str, owner: str) -> None:
        """Refuse an image that belongs to another annotation."""
        first_owner = self._owners[path][1]
        if first_owner != owner:
            raise LabelError(
                f"it names the image {path}, as {first_owner} does: an image has one annotation"
            )

    def _is_file(self, path: str) -> bool:
        """Tell whether there is something that may be opened, and is no folder."""
        try:
            return not stat.S_ISDIR(os.stat(os.path.join(self.folder, path)).st_mode)
        except (OSError, ValueError):
            return False

    def _at(self, parts: Sequence[str], named: str) -> str:
        """Return the path of an image at some folders and a name; empty if there is none."""
        path = "/".join(parts)
        if self._is_file(path):
            return path
        inside = "/".join(parts[:-1])
        names = self._images(inside).get(key_of(parts[-1]), [])
        if len(names) > 1:
            raise LabelError(f"{named} may be {' or '.join(names[:3])} in {self.folder}")
        return "/".join([*parts[:-1], *names]) if names else ""

    def _images(self, inside: str) -> dict[tuple[str, str], list[str]]:
        """List the images of a folder by stem and ending, and by stem alone."""
        if inside not in self._listed:
            listed: dict[tuple[str, str], list[str]] = {}
            try:
                with os.scandir(os.path.join(self.folder, inside)) as entries:
                    names = sorted(entry.name for entry in entries if not entry.is_dir())
            except (OSError, ValueError):
                names = []
            for name in names:
                stem, ending = key_of(name)
                if ending and not is_system_name(name):
                    listed.setdefault((stem, ending), []).append(name)
                    listed.setdefault((stem, ""), []).append(name)
            self._listed[inside] = listed
        return self._listed[inside]


def key_of(name: str) -> tuple[str, str]:
    """Return stem and ending of a name as they are compared; another ending is none.

    >>> key_of("1.JPG"), key_of("n01_18"), key_of("1.v2")
    (('1', '.jpg'), ('n01_18', ''), ('1.v2', ''))
    """
    name = unicodedata.normalize("NFC", name)  # macOS takes letters and their accents apart
    stem, ending = os.path.splitext(name)
    return (stem, ending.lower()) if ending.lower() in ENDINGS else (name, "")


def parts_of(named: str) -> list[str]:
    r"""Return folders and name of a path of any system, below what leads upwards.

    >>> parts_of("C:\\data\\1.jpg"), parts_of("../a//./1.jpg"), parts_of("s3://bucket/1.jpg")
    (['data', '1.jpg'], ['a', '1.jpg'], ['bucket', '1.jpg'])
    """
    path = re.sub(r"^(\w+://|[A-Za-z]:(?=[\\/]))", "", named.strip()).replace("\\", "/")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        del parts[: len(parts) - parts[::-1].index("..")]
    return parts
