"""Zip archives of folders of images: stored members are spans, deflated ones are unpacked.

``zipfile`` reads the directory.  A sample is an image, and its label is the number of its folder,
as it would be if the archive were unpacked; fields are those of `folder`.
"""

from __future__ import annotations

import contextlib
import errno
import re
import stat
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Sequence
from typing import BinaryIO, cast

import numpy as np

from ..bytes.files import StoredFile
from ..bytes.mapping import part_of
from ..bytes.remote.objects import redacted_url
from ..bytes.remote.settings import RemoteSettings
from ..errors import ChecksumError, CorruptRecordError, RecordIOError
from ..formats.table import IMAGE_SUFFIXES
from ..frames.encoder import MAX_RECORD_LENGTH
from ..notes import Notes
from .container import USUAL, Choice, Container
from .folder import accepted_by, fits_in_list, labels_by_folder, nothing_found
from .names import ImageNames, choose_images, fields_of_stems, note_system_name, stem_of, suffix_of
from .objects import MOST_ROWS, has_rows, labels_of_rows
from .samples import NO_CONTENT, ContainedSamples

#: Signature, version, flags, method, time, date, CRC-32, both sizes, lengths of name and extra.
LOCAL = struct.Struct("<4s5H3I2H")
SIGNATURE = b"PK\3\4"
STORED, DEFLATED = 0, 8
ENCRYPTED, STREAMED = 1 << 0, 1 << 3
#: The sizes are in the extra field, of 64 bits.
WIDE = 0xFFFF_FFFF
#: Deflate makes at most this many bytes of one.
MOST_RATIO = 1032
#: The flag of a name in UTF-8, and the extra field with such a name and the CRC-32 of the other.
UTF_8, UNICODE_PATH = 1 << 11, 0x7075
#: Makers of archives for whom a backslash is a letter: Unix and macOS.
UNIX = (3, 19)
NO_UTF_8 = "names are no UTF-8 and were read as code page 437, with which classes may look odd"
SLASHES = "names have backslashes, which were read as slashes between folders"
LETTERS = "names have backslashes, which were read as letters and not as slashes between folders"
NAMELESS = "members without a name were left out"
REPLACED = "members were left out, since a later one has the same name"


def _directory(
    file: StoredFile, settings: RemoteSettings | None
) -> tuple[list[zipfile.ZipInfo], int]:
    """Read the directory, and say where it begins."""
    path, mirror = redacted_url(file.name), None if file.is_local else file.mirrored(settings)
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
        ArithmeticError,
        LookupError,
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
    path = redacted_url(file.name)
    members, directory = _directory(file, settings)
    odd: Counter[str] = Counter()
    image_names, by_name = _images(members, path, odd, accepted_by(choice))
    if not image_names.images:
        raise nothing_found(path, "the archive holds no", image_names)
    view = file.map() if file.is_local else None
    if choice.field:
        return _field_members(file, members, directory, view, image_names, by_name, choice.field)
    names = image_names.images
    samples = _samples([(name, by_name[name]) for name in names], members, directory, view)
    labels, samples.classes = labels_by_folder(names)
    samples.labels = np.array(labels, np.float32)
    samples.left_out = {**image_names.counted(), **odd}
    image_names.note_others()
    samples.notes = image_names.notes
    return samples


def _samples(
    entries: Sequence[tuple[str, zipfile.ZipInfo | None]],
    members: Sequence[zipfile.ZipInfo],
    directory: int,
    view: memoryview | None,
) -> ContainedSamples:
    """Say where members lie, in an archive whose directory begins there; None is one missing.

    No two have the same offset, by which they are read; one that cannot be read has any.
    """
    faults: dict[int, str] = {}
    offsets, sizes = [0] * len(entries), [NO_CONTENT] * len(entries)
    packed = [True] * len(entries)
    # Damage says offsets of 64 bits without a sign.
    begins = np.unique([min(info.header_offset, directory) for info in members])
    placed = [
        directory if info is None else min(info.header_offset, directory) for _, info in entries
    ]
    ends = np.append(begins, directory)[np.searchsorted(begins, placed, "right")].tolist()
    last = -1
    for row in sorted(range(len(entries)), key=placed.__getitem__):
        name, info = entries[row]
        offset = placed[row]
        try:
            if info is None:
                raise RecordIOError(f"there is no member {name}.*")
            if not 0 <= info.header_offset <= directory - LOCAL.size:
                raise RecordIOError("the directory says that it begins outside of the archive")
            if offset <= last:
                raise RecordIOError("the directory says that another member begins there")
            begin = _check(info, min(ends[row], directory), view)
            if view is not None and info.compress_type == STORED and info.file_size:
                offset, packed[row] = begin, False
            sizes[row] = info.file_size
        except RecordIOError as error:
            faults[row] = error.reason
            offset = max(offset, last + 1)
        offsets[row] = last = offset
    samples = ContainedSamples.of(
        offsets, sizes, [()] * len(entries), [name for name, _ in entries], faults=faults
    )
    samples.packed = np.array(packed)
    samples.checks = np.array([0 if info is None else info.CRC for _, info in entries], np.uint32)
    return samples


def _field_members(
    file: StoredFile,
    members: Sequence[zipfile.ZipInfo],
    directory: int,
    view: memoryview | None,
    images: ImageNames,
    by_name: dict[str, zipfile.ZipInfo],
    field: str,
) -> ContainedSamples:
    """Find the members of a field; JSON among them is read, as it may have boxes or points."""
    files = fields_of_stems(images.beside, images.images).get(field, {})
    stems = list(map(stem_of, images.images))
    entries = [
        (files[stem], by_name[files[stem]]) if stem in files else (f"{stem}.{field}", None)
        for stem in stems
    ]
    samples = _samples(entries, members, directory, view)
    rows, labels = ZipRows(file, samples), [[0.0] for _ in entries]
    for row, (name, _) in enumerate(entries):
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
    members = _directory(file, settings)[0]
    image_names, _ = _images(members, redacted_url(file.name), Counter(), accepted_by(choice))
    return sorted(fields_of_stems(image_names.beside, image_names.images))


def _images(
    members: Sequence[zipfile.ZipInfo], path: str, odd: Counter[str], accepted: Collection[str]
) -> tuple[ImageNames, dict[str, zipfile.ZipInfo]]:
    """Tell the members that are images, by offset, from others; and return all by their names.

    `odd` counts those that are left out for another reason than their ending.
    """
    notes = Notes()
    seen: set[str] = set()
    by_name: dict[str, zipfile.ZipInfo] = {}
    for name, info in named_members(members, notes):
        suffix = suffix_of(name)
        if note_system_name(name, notes, seen) or name.endswith("/"):
            continue
        if suffix == ".cls":
            raise RecordIOError(
                "it has labels in .cls files, which are read from tar files only: pack it as a tar",
                path=path,
            )
        if stat.S_ISLNK(info.external_attr >> 16):
            reason = "links"
        elif suffix in accepted and not fits_in_list(name):
            reason = "names that a list line cannot hold"
        else:
            if name in by_name:
                notes.add(REPLACED, name)
                odd["replaced by a later file of the same name"] += 1
            by_name[name] = info  # unpacking would write it again, too
            continue
        odd[reason] += 1
        if suffix in accepted:
            notes.add(f"images were left out: {reason}", name)
    images: list[str] = []
    others: list[str] = []
    for name in sorted(by_name, key=lambda name: by_name[name].header_offset):
        (images if suffix_of(name) in accepted else others).append(name)
    return choose_images(images, others, notes), by_name


def named_members(
    members: Sequence[zipfile.ZipInfo], notes: Notes
) -> list[tuple[str, zipfile.ZipInfo]]:
    """Return members with the paths that unpacking would write, which lead nowhere else.

    All whose name may be meant in another way are noted, and those that have none.
    """
    stored = [_stored_name(info) for info in members]
    with_slashes = any(b"/" in data.rstrip(b"/") for data, _ in stored)
    named = []
    for info, (data, encoding) in zip(members, stored, strict=True):
        name = data.decode(encoding)
        if encoding == "cp437" and suffix_of(name) in IMAGE_SUFFIXES:
            notes.add(NO_UTF_8, name)
        if b"\\" in data:
            is_letter = info.create_system in UNIX and with_slashes
            slashes = None if is_letter else _slashes(data, encoding)
            if slashes is not None:
                name = slashes.decode(encoding)
            if slashes is None or info.create_system in UNIX or encoding == "cp437":
                notes.add(LETTERS if slashes is None else SLASHES, name)
        if name.startswith(("/", ".")) or "//" in name or "/." in name:
            end = "/" * name.endswith("/")
            name = "/".join(part for part in name.split("/") if part not in ("", ".", "..")) + end
        if name.strip("/"):
            named.append((name, info))
        elif not name:
            notes.add(NAMELESS)
    return named


def _stored_name(info: zipfile.ZipInfo) -> tuple[bytes, str]:
    """Return the name in the directory, and its encoding: UTF-8 wherever it may be.

    Many write UTF-8 without saying so, macOS among them.
    """
    if not info.extra and info.orig_filename.isascii():  # as nearly all are
        return info.orig_filename.encode().partition(b"\0")[0], "utf-8"
    encoding = "utf-8" if info.flag_bits & UTF_8 else "cp437"
    data = info.orig_filename.encode(encoding, "surrogatepass")
    if encoding == "cp437":
        data = _unicode_path(info.extra, data) or data
        with contextlib.suppress(UnicodeDecodeError):
            data.decode()
            encoding = "utf-8"
    return data.partition(b"\0")[0], encoding


def _unicode_path(extra: bytes, name: bytes) -> bytes:
    """Return the name of an extra field of Info-ZIP if it belongs to a name; else nothing."""
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<2H", extra)
        data, extra = extra[4 : 4 + size], extra[4 + size :]
        if kind == UNICODE_PATH and data[:1] == b"\1" and len(data) > 5:
            (check,) = struct.unpack_from("<I", data, 1)
            with contextlib.suppress(UnicodeDecodeError):
                if check == zlib.crc32(name) and data[5:].decode():
                    return data[5:]
    return b""


def _slashes(data: bytes, encoding: str) -> bytes | None:
    r"""Turn the backslashes of a name into slashes; None where one may be half of a letter.

    In GBK, Big5 and Shift-JIS the second byte of a letter may be that of a backslash.

    >>> _slashes(b"cat\\1.jpg", "utf-8"), _slashes("表.jpg".encode("shift_jis"), "cp437")
    (b'cat/1.jpg', None)
    """
    if encoding == "cp437":
        pairs = re.findall(rb"(?s)[\x81-\xfe][\x40-\xfe]|.", data)
        single = re.findall(rb"(?s)[\x81-\x9f\xe0-\xfc][\x40-\xfc]|.", data)
        if not pairs.count(b"\\") == single.count(b"\\") == data.count(b"\\"):
            return None
    return data.replace(b"\\", b"/")


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
        #: Rows by offset: members of a field may lie in another order than the images.
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
    rules=3,
    fields=_fields,
    chooses=frozenset(["field", "suffixes"]),
)
