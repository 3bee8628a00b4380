"""NumPy files: an array's first axis becomes records, and records become one array again.

Files are mapped, not read, so that they may be larger than the memory.  Pickled objects are never
read.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

from recordio import RecordIOError
from recordio.bytes.files import open_bytes
from recordio.bytes.storage import AtomicOutput
from recordio.file_limits import check_array_bytes
from recordio.formats.table import IMAGE_KINDS
from recordio.keywords.checks import choice
from recordio.keywords.checks import path as a_path
from recordio.keywords.options import option, optional

from ..image_list import Skipped
from ..images import decode_content, encode_image, swap_red_and_blue
from ..npy import HEADER_ERRORS, decode_npy, npy_header
from ..record_pack import Record, RecordPack
from .format import (
    ArrayLimit,
    Export,
    Import,
    ImportSource,
    Item,
    Items,
    LeftOut,
    PixelLimit,
    unreadable,
)

#: Errors of ``zipfile``; RuntimeError for methods of compression that it does not know.
ARCHIVE_ERRORS = (EOFError, zlib.error, zipfile.BadZipFile, RuntimeError)
PIECE = 1 << 22
ZIP_START = b"PK\3\4"
SUFFIX, LABELS_SUFFIX = ".npy", ".labels.npy"


@dataclass(frozen=True, kw_only=True)
class NumpyOptions(ArrayLimit):
    """Options of from-numpy."""

    labels: str | None = option(
        None,
        "path, optional",
        """.npy file with a label, or a row of labels, for each record (default: every label is
        0).""",
        optional(a_path),
    )
    data_name: str | None = option(
        None, "str, optional", "Name of the array with the data in a .npz file."
    )
    label_name: str | None = option(
        None, "str, optional", "Name of the array with the labels in the same .npz file."
    )
    encoding: str = option(
        ".npy",
        "str",
        """.npy: store arrays unchanged; .png (lossless), .jpg: store images, from arrays of shape
        (height, width) or (height, width, 1, 3 or 4), RGB (default: .npy).""",
        partial(choice, allowed=(".npy", ".png", ".jpg")),
    )


def open_arrays(settings: argparse.Namespace) -> ImportSource:
    """Open the data and the labels."""
    data, labels, other_names = load_pair(settings)
    if data.ndim < 1:
        raise RecordIOError("an array without axes has no rows", path=settings.source)
    if data.dtype.hasobject:
        raise RecordIOError("the array holds Python objects", path=settings.source)
    if labels is not None:
        where = settings.labels or settings.source
        if labels.ndim not in (1, 2) or len(labels) != len(data):
            raise RecordIOError(
                f"expected a label for each of {len(data)} rows, found shape {labels.shape}",
                path=where,
            )
        if labels.dtype.kind not in "biuf":
            raise RecordIOError(f"labels are numbers, not {labels.dtype}", path=where)

    def items() -> Items:
        yield from read_items(data, labels, settings.encoding, settings.source)
        yield LeftOut({f"array {name}": 1 for name in other_names})

    return ImportSource(items(), len(data))


def load_pair(
    settings: argparse.Namespace,
) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
    """Return the arrays that the arguments name, and the names of the others in the archive."""
    path, labels, limit = settings.source, None, settings.max_array_bytes
    other_names: list[str] = []
    if is_archive(path):
        # NumPy would not close a file that it fails to read.
        with open_bytes(path)[0] as file, naming_damage(path):
            size = file.seek(0, os.SEEK_END)
            with zipfile.ZipFile(file) as archive:
                name = member(archive, settings.data_name, path, "--data-name", settings.label_name)
                other_names = [stored for stored in archive.namelist() if stored != name]
                with archive.open(name) as packed:
                    data = bounded_array(packed, size, limit, path)
                if settings.label_name:
                    name = member(archive, settings.label_name, path, "--label-name")
                    other_names = [stored for stored in other_names if stored != name]
                    with archive.open(name) as packed:
                        labels = bounded_array(packed, size, limit, path)
    else:
        if settings.data_name or settings.label_name:
            raise RecordIOError("--data-name and --label-name are for .npz files", path=path)
        data = load(path, limit)
    if settings.labels:
        if labels is not None:
            raise RecordIOError("--labels and --label-name both name labels", path=settings.labels)
        if is_archive(settings.labels):
            raise RecordIOError("labels must be a .npy file", path=settings.labels)
        labels = load(settings.labels, limit)
    return data, labels, [name.removesuffix(SUFFIX) for name in other_names]


@contextlib.contextmanager
def naming_damage(path: str) -> Iterator[None]:
    """Name the file in what NumPy and ``zipfile`` raise."""
    try:
        yield
    except RecordIOError:
        raise
    except (*HEADER_ERRORS, *ARCHIVE_ERRORS) as error:
        raise unreadable(path, error) from None


def is_archive(path: str) -> bool:
    """Return True if a file is ``.npz``, not ``.npy``."""
    with open_bytes(path)[0] as file:
        start = file.read(len(npy_format.MAGIC_PREFIX))
    if start != npy_format.MAGIC_PREFIX and start[:4] != ZIP_START:
        raise RecordIOError("it is no .npy or .npz file", path=path)
    return start != npy_format.MAGIC_PREFIX


def load(path: str, limit: int | None) -> np.ndarray:
    """Return the array in a ``.npy`` file, mapped where that is possible."""
    with naming_damage(path):
        if "://" not in path:
            return np.load(path, mmap_mode="r", allow_pickle=False)
        with open_bytes(path)[0] as file:
            return bounded_array(file, None, limit, path)


def bounded_array(file: Any, stored: int | None, limit: int | None, path: str) -> np.ndarray:
    """Read an array piece by piece: its header may promise anything.

    `stored` is the size of the file that it is packed in; without one it is not packed.
    """
    content = bytearray()
    while piece := file.read(PIECE):
        content += piece
        of = len(content) if stored is None else stored
        check_array_bytes(len(content), of, limit, RecordIOError, path)
    return decode_npy(content, path=path)


def member(
    archive: zipfile.ZipFile, name: str | None, path: str, option: str, other: str | None = None
) -> str:
    """Return the name of an array of a ``.npz`` file, by default the only one besides `other`."""
    names = [stored.removesuffix(SUFFIX) for stored in archive.namelist()]
    if name is None and len(names) == 2 and other in names:
        name = next(candidate for candidate in names if candidate != other)
    if name is None:
        if len(names) != 1:
            raise RecordIOError(f"choose one of {', '.join(names)} with {option}", path=path)
        name = names[0]
    if name not in names:
        raise RecordIOError(f"there is no array {name!r}, only {', '.join(names)}", path=path)
    return name if name in archive.namelist() else f"{name}{SUFFIX}"


def read_items(data: np.ndarray, labels: np.ndarray | None, encoding: str, path: str) -> Items:
    """Yield an item for each row."""
    head = npy_header(data.dtype, data.shape[1:])
    rows = None if labels is None else labels.reshape(len(labels), -1)
    for number in range(len(data)):
        row = data[number, ...]  # an array also where it is a single number
        values = [] if rows is None else rows[number].tolist()
        if encoding == ".npy":
            yield Item(values, head + row.tobytes())
            continue
        try:
            yield Item(values, as_image(row, encoding))
        except RecordIOError as error:
            yield Skipped(f"{path}, row {number}", error.reason)


def as_image(row: np.ndarray, encoding: str) -> bytes:
    """Encode an array of grey or RGB pixels."""
    if row.ndim == 3 and row.shape[2] == 1:
        row = row[..., 0]
    fits = row.ndim == 2 or (row.ndim == 3 and row.shape[2] in (3, 4))
    if not fits or row.dtype not in ((np.uint8, np.uint16) if encoding == ".png" else (np.uint8,)):
        raise RecordIOError(f"an array of {row.dtype} {row.shape} is no image for {encoding}")
    return encode_image(swap_red_and_blue(np.asarray(row)), encoding)


def outputs(target: str) -> list[str]:
    """Return the files that a target stands for."""
    prefix = target.removesuffix(SUFFIX)
    return [f"{prefix}{SUFFIX}", f"{prefix}{LABELS_SUFFIX}"]


def write_npy(pack: RecordPack, paths: Sequence[str], settings: argparse.Namespace) -> int:
    """Write all arrays, or decoded images, as one array; and the labels as another."""
    first: np.ndarray | None = None
    width = 0

    def row(record: Record) -> np.ndarray:
        nonlocal first, width
        array = array_of(pack, record, settings.max_pixels)
        if first is None:
            first, width = array, len(record.labels)
        if (array.dtype, array.shape) != (first.dtype, first.shape):
            raise RecordIOError(
                f"an array of {array.dtype} {array.shape}, and those before are of"
                f" {first.dtype} {first.shape}",
                **pack.location(record),
            )
        if len(record.labels) != width:
            raise RecordIOError(
                f"it has {len(record.labels)} labels, and those before have {width}",
                **pack.location(record),
            )
        return array

    pack = pack.usable(row)  # the file begins with their number
    with AtomicOutput(*paths) as output:
        data, labels = output.files
        for number, (record, array) in enumerate(pack.made(row)):
            if number == 0:
                data.write(npy_header(array.dtype, (len(pack), *array.shape)))
                shape = (len(pack), width) if width > 1 else (len(pack),)
                labels.write(npy_header(np.dtype("<f4"), shape))
            data.write(array.tobytes())
            labels.write(np.array(record.labels, "<f4").tobytes())
    return len(pack)


def array_of(pack: RecordPack, record: Record, max_pixels: int) -> np.ndarray:
    """Return the array in a record, or its image as grey, RGB or RGBA, upright."""
    if record.kind == "npy":
        return decode_npy(record.content, **pack.location(record))
    if record.kind in IMAGE_KINDS:
        image = decode_content(record.content, max_pixels=max_pixels, **pack.location(record))
        return swap_red_and_blue(image)
    raise RecordIOError(
        f"it holds neither an array nor an image, but {record.kind}", **pack.location(record)
    )


FROM_NUMPY = Import(
    "numpy",
    "arrays (.npy, .npz)",
    [("source", "the .npy or .npz file", False)],
    open_arrays,
    NumpyOptions,
    "Each entry along the first axis becomes a record, stored as a .npy array or an image.",
    example=""">>> import numpy as np
>>> np.save(folder / "a.npy", np.zeros((3, 4, 4), np.uint8))
>>> recordio.convert.from_numpy(folder / "a.npy", folder / "a", encoding=".png").records
3""",
)
TO_NPY = Export(
    "npy",
    f"one array of all, TARGET{SUFFIX}, and one of the labels, TARGET{LABELS_SUFFIX}",
    outputs,
    write_npy,
    PixelLimit,
)
