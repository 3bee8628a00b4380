"""Zip archives of folders of images: stored members are spans, deflated ones are unpacked.

``zipfile`` reads the directory.  A sample is an image, and its label is the number of its folder,
as it would be if the archive were unpacked; fields are those of `folder`.
"""

from __future__ import annotations

import errno
import re
import stat
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import BinaryIO, cast

import numpy as np

from ..bytes.files import StoredFile
from ..bytes.mapping import part_of
from ..bytes.remote.objects import shown
from ..bytes.remote.settings import RemoteSettings
from ..errors import ChecksumError, CorruptRecordError, RecordIOError
from ..frames.encoder import MAX_RECORD_LENGTH
from .container import USUAL, Choice, Container
from .folder import (
    SUFFIXES,
    fields_of_stems,
    fits_in_list,
    labels_by_folder,
    nothing_found,
    stem_of,
    suffix_of,
    warn_of_others,
    without_field_images,
)
from .objects import MOST_ROWS, has_rows, labels_of_rows
from .samples import NO_CONTENT, ContainedSamples

__all__ = ["ZIP"]

#: Signature, version, flags, method, time, date, CRC-32, both sizes, lengths of name and extra.
LOCAL = struct.Struct("<4s5H3I2H")
SIGNATURE = b"PK\3\4"
STORED, DEFLATED = 0, 8
ENCRYPTED, STREAMED = 1 << 0, 1 << 3
#: The sizes are in the extra field, of 64 bits.
WIDE = 0xFFFF_FFFF
#: Deflate makes at most this many bytes of one.
MOST_RATIO = 1032
#: What Finder adds to an archive.
APPLE = "__MACOSX"


def _directory(
    file: StoredFile, settings: RemoteSettings | None
) -> tuple[list[zipfile.ZipInfo], int]:
    """Read the directory, and say where it begins."""
    path, mirror = shown(file.name), None if file.is_local else file.mirrored(settings)
    try:
        with (
            file.open() if mirror is None else cast(BinaryIO, mirror.as_file()) as opened,
            zipfile.ZipFile(opened) as archive,
        ):
            return archive.infolist(), archive.start_dir
    except RecordIOError:
        raise
    except (
        zipfile.BadZipFile,
        struct.error,
        NotImplementedError,
        EOFError,
        ValueError,
        OSError,
    ) as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise  # not of a position before the beginning
        raise RecordIOError(
            f"the archive is damaged, cut or no zip archive: {error}", path=path
        ) from None


def _scan(
    file: StoredFile, settings: RemoteSettings | None = None, choice: Choice = USUAL
) -> ContainedSamples:
    """Find the images in the directory, in the order in which they lie in the archive.

    Or the members that a field of theirs is.
    """
    path = shown(file.name)
    members, directory = _directory(file, settings)
    left_out: Counter[str] = Counter()
    found = _images(members, left_out, path)
    if not found:
        raise nothing_found(path, "the archive holds no", left_out)
    names = [name for name, _ in found]
    view = file.map() if file.is_local else None
    if choice.field:
        return _field_members(file, members, directory, view, names, choice.field)
    samples = _samples(found, members, directory, view)
    labels, samples.classes = labels_by_folder(names)
    samples.labels = np.array(labels, np.float32)
    warn_of_others(path, left_out)
    samples.left_out = dict(left_out.most_common())
    return samples


def _samples(
    found: Sequence[tuple[str, zipfile.ZipInfo | None]],
    members: Sequence[zipfile.ZipInfo],
    directory: int,
    view: memoryview | None,
) -> ContainedSamples:
    """Say where members lie, in an archive whose directory begins there; None is one missing."""
    faults: dict[int, str] = {}
    offsets: list[int] = []
    sizes: list[int] = []
    packed: list[bool] = []
    begins = np.sort([info.header_offset for info in members])
    placed = [0 if info is None else info.header_offset for _, info in found]
    ends = np.append(begins, directory)[np.searchsorted(begins, placed, "right")].tolist()
    for row, (name, info) in enumerate(found):
        if info is None:
            faults[row] = f"there is no member {name}.*"
            offsets, sizes, packed = [*offsets, 0], [*sizes, NO_CONTENT], [*packed, True]
            continue
        offset, size = info.header_offset, info.file_size
        try:
            if not 0 <= offset <= directory - LOCAL.size:
                raise RecordIOError("the directory says that it begins outside of the archive")
            is_packed = view is None or info.compress_type != STORED
            begin = _check(info, min(ends[row], directory), view)
            offset = offset if is_packed else begin
        except RecordIOError as error:
            size, is_packed, faults[row] = NO_CONTENT, True, error.reason
            offset = max(offset, 0)
        offsets.append(offset)
        sizes.append(size)
        packed.append(is_packed)
    samples = ContainedSamples.of(
        offsets, sizes, [()] * len(found), [name for name, _ in found], faults=faults
    )
    samples.packed = np.array(packed)
    samples.checks = np.array([0 if info is None else info.CRC for _, info in found], np.uint32)
    return samples


def _field_members(
    file: StoredFile,
    members: Sequence[zipfile.ZipInfo],
    directory: int,
    view: memoryview | None,
    images: Sequence[str],
    field: str,
) -> ContainedSamples:
    """Find the members of a field; JSON among them is read, as it may have boxes or points."""
    by_name = _files(members)
    files = fields_of_stems(by_name, images).get(field, {})
    stems = [stem_of(name) for name in images]
    found = [
        (files[stem], by_name[files[stem]]) if stem in files else (f"{stem}.{field}", None)
        for stem in stems
    ]
    samples = _samples(found, members, directory, view)
    rows, labels = ZipRows(file, samples), [[0.0] for _ in found]
    for row, (name, _) in enumerate(found):
        if has_rows(name) and 0 <= samples.sizes[row] <= MOST_ROWS:
            try:
                content = rows.read(int(samples.offsets[row]))
                labels[row] = labels_of_rows(content) or labels[row]
            except RecordIOError as error:
                samples.sizes[row], samples.faults[row] = NO_CONTENT, error.reason
    rows.close()
    whole = ContainedSamples.of(samples.offsets, samples.sizes, labels)
    samples.labels, samples.starts = whole.labels, whole.starts
    return samples


def _fields(
    file: StoredFile, settings: RemoteSettings | None, samples: ContainedSamples, choice: Choice
) -> list[str]:
    """List the fields that members beside the images are."""
    names = _files(_directory(file, settings)[0])
    return sorted(fields_of_stems(names, samples.all_names()))


def _files(members: Sequence[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    """Return the files of an archive that may be fields, by their names; the last one counts."""
    found = {}
    for info in members:
        name = _name(info)
        is_link = stat.S_ISLNK(info.external_attr >> 16)
        if name and not (info.is_dir() or is_link or name.startswith(f"{APPLE}/")):
            found[name] = info
    return found


def _images(
    members: Sequence[zipfile.ZipInfo], left_out: Counter[str], path: str
) -> list[tuple[str, zipfile.ZipInfo]]:
    """Choose the members that are images, with their names, by offset."""
    found: dict[str, zipfile.ZipInfo] = {}
    for info in members:
        name = _name(info)
        suffix = suffix_of(name.rpartition("/")[2])
        if info.is_dir() or not name:
            continue
        if name.startswith(f"{APPLE}/"):
            left_out[f"in {APPLE}"] += 1
        elif suffix == ".cls":
            raise RecordIOError(
                "it has labels in .cls files, which are read from tar files only: pack it as a tar",
                path=path,
            )
        elif suffix not in SUFFIXES:
            left_out[suffix] += 1
        elif stat.S_ISLNK(info.external_attr >> 16):
            left_out["links"] += 1
        elif not fits_in_list(name):
            left_out["names that a list line cannot hold"] += 1
        else:
            left_out["replaced by a later file of the same name"] += name in found
            found[name] = info  # unpacking would write it again, too
    left_out += Counter()  # without zeros
    names = without_field_images(list(found), left_out)
    return sorted(((n, found[n]) for n in names), key=lambda item: item[1].header_offset)


def _name(info: zipfile.ZipInfo) -> str:
    """Return the path that unpacking would write, which leads nowhere else."""
    name = info.filename
    if info.create_system == 0 and "/" not in name:  # old tools of Windows
        name = name.replace("\\", "/")
    if name.startswith(("/", ".")) or "//" in name or "/." in name:
        name = "/".join(part for part in name.split("/") if part not in ("", ".", ".."))
    return name


def _check(info: zipfile.ZipInfo, end: int, view: memoryview | None) -> int:
    """Refuse a member that cannot be read; return where its bytes begin, if that is known."""
    if info.flag_bits & ENCRYPTED:
        raise RecordIOError("it is encrypted: unpack the archive")
    if info.compress_type not in (STORED, DEFLATED):
        kind = zipfile.compressor_names.get(info.compress_type, str(info.compress_type))  # type: ignore[attr-defined]
        raise RecordIOError(f"it is packed by {kind}: pack it stored or deflated")
    if info.file_size > MAX_RECORD_LENGTH:
        raise RecordIOError(
            f"it has {info.file_size} bytes: at most {MAX_RECORD_LENGTH} are possible"
        )
    if info.compress_type == STORED and info.file_size != info.compress_size:
        raise RecordIOError("the directory has two sizes for it")
    if info.file_size > MOST_RATIO * (info.compress_size + 1):
        raise RecordIOError(
            f"{info.compress_size} bytes cannot become {info.file_size}: the directory is damaged"
        )
    if view is None:
        return info.header_offset
    begin, local_size, flags, method = _local(view, info.header_offset)
    if method != info.compress_type:
        raise RecordIOError("its header and the directory disagree on how it is packed")
    if not flags & STREAMED and local_size not in (info.compress_size, WIDE):
        raise RecordIOError(
            f"its header says {local_size} bytes and the directory {info.compress_size}"
        )
    if begin + info.compress_size > end:
        raise RecordIOError("it does not end before the next one begins")
    return begin


def _local(view: memoryview, offset: int) -> tuple[int, int, int, int]:
    """Read the header before a member: where its bytes begin, how many, flags and method."""
    if offset + LOCAL.size > len(view):
        raise CorruptRecordError("the archive ends within its header")
    signature, _, flags, method, _, _, _, size, _, name, extra = LOCAL.unpack_from(view, offset)
    if signature != SIGNATURE:
        raise CorruptRecordError("there is no header of a file where the directory says")
    return offset + LOCAL.size + name + extra, size, flags, method


class ZipRows:
    """The contents of members that are packed, and of all where their checksums are compared.

    Any thread may read: there is no position in the file.
    """

    def __init__(self, file: StoredFile, samples: ContainedSamples, choice: Choice = USUAL) -> None:
        self._view = file.map() if file.is_local else file.mirrored().view
        self._samples = samples
        #: Members of a field may lie in another order than the images.
        self._order = np.argsort(samples.offsets, kind="stable")
        self._sorted = samples.offsets[self._order]

    def read(self, number: int) -> bytes:
        """Read a content by its number in `ContainedSamples.offsets`, and compare its checksum."""
        samples = self._samples
        assert samples.packed is not None
        assert samples.checks is not None
        at = int(np.searchsorted(self._sorted, number, "right")) - 1
        row = int(self._order[at])
        begin, size = number, int(samples.sizes[row])
        method, limit = STORED, size
        if samples.packed[row]:
            begin, limit, flags, method = _local(self._view, number)
            if flags & STREAMED or limit == WIDE:
                following = self._sorted[at + 1 : at + 2].tolist()
                limit = (following[0] if following else len(self._view)) - begin
        if method == STORED:
            content = bytes(part_of(self._view, begin, begin + size))
        elif method == DEFLATED:
            content = _inflate(part_of(self._view, begin, begin + limit), size)
        else:
            raise CorruptRecordError(f"its header says method {method}, the directory another")
        if len(content) != size:
            raise CorruptRecordError(f"{len(content)} bytes are there of {size}")
        if zlib.crc32(content) != samples.checks[row]:
            raise ChecksumError("its CRC-32 is not that in the directory: the archive is damaged")
        return content

    def close(self) -> None:
        """Let the file go."""
        self._view = memoryview(b"")


def _inflate(data: memoryview, size: int) -> bytes:
    """Unpack one member; no more is unpacked than the directory says there is."""
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = unpacker.decompress(data, size + 1)
    except zlib.error as error:
        raise CorruptRecordError(f"it cannot be unpacked: {error}") from None
    if len(content) > size:
        raise CorruptRecordError(f"it has more than the {size} bytes that the directory says")
    return content


ZIP = Container(
    "a zip archive",
    _scan,
    pattern=re.compile(r"\.zip$", re.IGNORECASE),
    rows=ZipRows,
    has_checksums=True,
    rules=2,
    fields=_fields,
)
