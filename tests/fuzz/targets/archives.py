"""TFRecord files and tar files of WebDataset."""

from __future__ import annotations

import argparse
import gzip
import io
import os
import random
import struct
import tarfile

import numpy as np

from recordio import RecordIOError
from recordio.bytes.files import StoredFile
from recordio.containers.container import Choice
from recordio.containers.labels import IMAGES
from recordio.containers.samples import NO_CONTENT
from recordio.containers.tar import TAR
from recordio.containers.tf_example import decode_example
from recordio.containers.tfrecord import WANTED, content_of, labels_of, masked_crc32c, scan
from recordio.image_sets import read_cifar
from recordio.list_files import check_labels
from recordio.tools.convert.containers import read_frames
from recordio.tools.convert.format import Import, ImportSource, Item, LeftOut
from recordio.tools.convert.importing import ImportReport
from recordio.tools.convert.tf_example import encode_example
from recordio.tools.image_list import Skipped

from .mutate import EDGES, change_bytes, change_json_text, change_number, move_item, near, put
from .target import Target, drawing, scratch


def opened(kind: Import, path: str, options: list[str]) -> ImportSource:
    """A source as the command opens it."""
    parser = argparse.ArgumentParser()
    kind.add_options(parser)
    assert kind.open is not None
    return kind.open(argparse.Namespace(source=[path], **vars(parser.parse_args(options))))


def count_left_out(report: ImportReport, item: Item | Skipped | LeftOut) -> None:
    """What has no record is counted, under names of which a line of text can be made."""
    if isinstance(item, Item):
        report.count(item.left_out)
    elif isinstance(item, LeftOut):
        report.count(item.things)
    assert report.not_stored().isprintable() or len(report.not_stored().splitlines()) == 1


# ---- TFRecord


def frames_of(data: bytes) -> list[bytes]:
    """What lies between the checksums, as far as lengths lead."""
    found, at = [], 0
    while at + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        found.append(data[at + 12 : at + 12 + length])
        at += 16 + length
    return found


def framed(records: list[bytes]) -> bytes:
    """Records with their lengths and checksums."""
    file = b""
    for record in records:
        head = struct.pack("<Q", len(record))
        file += head + struct.pack("<I", masked_crc32c(head))
        file += record + struct.pack("<I", masked_crc32c(record))
    return file


def check_tfrecord(data: bytes) -> None:
    """Examples are read, and again what was read when they are written."""
    path = scratch("a.tfrecord", data)
    frames = []
    try:
        for _, record in read_frames(StoredFile(path)):
            frames.append(record)
    except RecordIOError:
        pass
    else:
        assert framed(frames) == data
    for record in frames:
        check_example(record)
    check_in_place(path, frames)


def check_in_place(path: str, records: list[bytes]) -> None:
    """The samples of the file, as it lies, are those that its examples are one by one."""
    try:
        found = scan(StoredFile(path))
    except RecordIOError:
        return
    unlabelled = 0
    for number, record in enumerate(records):
        usable = found.sizes[number] >= 0
        try:
            features = decode_example(record, WANTED)
            content = features[content_of(features, IMAGES)][0]
            wanted, _ = labels_of(features)
            check_labels(wanted)
        except RecordIOError:
            unlabelled += usable
            continue
        assert usable
        begin, size = int(found.offsets[number]), int(found.sizes[number])
        with open(path, "rb") as file:
            file.seek(begin)
            assert file.read(size) == content
        labels = np.array(wanted, np.float32)
        np.testing.assert_array_equal(found.labels_of(number), labels)
    assert unlabelled in (0, (found.sizes >= 0).sum())  # only where no example has a label


def check_example(record: bytes) -> None:
    """The wire format alone."""
    try:
        example = decode_example(record)
    except RecordIOError:
        return
    wanted = {name: repr(values) for name, values in example.items()}  # NaN is not itself
    again = decode_example(encode_example(example))
    assert {name: repr(values) for name, values in again.items()} == wanted


def change_tfrecord(data: bytes, draw: random.Random) -> bytes:
    """A record gone, twice or elsewhere, or something in one; checksums are right again."""
    if data[:2] == b"\x1f\x8b":
        return data
    records = frames_of(data)
    kind = draw.randrange(4)
    if kind == 0 or not records:
        return framed(move_item(records, draw))
    if kind == 1:
        at = draw.choice([0, 8])
        changed = change_number(data, draw, at, 8 - at // 2)
        head = changed[:8]
        return put(changed, 8, struct.pack("<I", masked_crc32c(head)))
    if kind == 2 and draw.random() < 0.2:
        return gzip.compress(data, 1)
    number = draw.randrange(len(records))
    records[number] = change_bytes(records[number], draw, EXAMPLE_WORDS)
    return framed(records)


def varint(number: int) -> bytes:
    """A number in groups of seven bits."""
    groups = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([group | 0x80 for group in groups[:-1]] + groups[-1:])


EXAMPLE_WORDS = (b"image/encoded", b"label", *(varint(number) for number in EDGES))
EXAMPLE_WORDS += (b"\x0a", b"\x12", b"\x1a", b"\x08", b"\x0d", b"\x09", b"\x0b", b"\x80" * 11)

TFRECORD = Target("tfrecord", check_tfrecord, change_tfrecord, words=EXAMPLE_WORDS)


# ---- tar


def check_webdataset(data: bytes) -> None:
    """Every member becomes part of a sample, or is said to be left out."""
    file, draw = StoredFile(scratch("a.tar", data)), drawing(data)
    choice = Choice(
        image_field=draw.choice(["", "", "jpg", ".left.PNG"]),
        label_field=draw.choice(["", "", "cls", "json:label"]),
        has_labels=draw.random() < 0.7,
    )
    samples = TAR.chosen(choice).scan(file, None, choice)
    report = ImportReport("")
    report.count(samples.left_out)
    assert len(report.not_stored().splitlines()) <= 1
    for row in range(len(samples)):
        if samples.sizes[row] != NO_CONTENT:
            assert 0 <= samples.offsets[row] <= samples.offsets[row] + samples.sizes[row]
            assert len(samples.labels_of(row)) and np.isfinite(samples.labels_of(row)).all()
        else:
            assert samples.faults[row]


def blocks_of(data: bytes) -> list[bytes]:
    """The members of an archive, each with its header, as far as sizes lead."""
    found, at = [], 0
    while at + 512 <= len(data):
        try:
            size = int(data[at + 124 : at + 135].strip(b" \0") or b"0", 8)
        except ValueError:
            size = 0
        end = at + 512 + (min(size, len(data)) + 511) // 512 * 512
        found.append(data[at:end])
        at = end
    return found


#: Fields of a header: place and width.
TAR_FIELDS = [(0, 100), (100, 8), (124, 12), (124, 12), (136, 12), (156, 1), (157, 100), (257, 8)]
TAR_FIELDS += [(345, 155), (386, 12), (482, 1), (483, 12)]
TAR_TEXTS = [
    b"0000000001\0",
    b"77777777777",
    b"\x80" + b"\xff" * 11,
    b"\x80" + bytes(7) + b"\1\0\0\0",
]
TAR_TEXTS += [
    b"-1",
    b" 12 ",
    b"",
    b"x",
    b"a.jpg",
    b"../../a.jpg",
    b"a.b.c",
    b"./.jpg",
    b"\xff\xfe.jpg",
]
PAX = [
    b"size=9999999999",
    b"size=-1",
    b"size=x",
    b"path=b.jpg",
    b"path=../c.png",
    b"x=" + b"y" * 900,
]
PAX += [
    b"GNU.sparse.major=1",
    b"GNU.sparse.map=0,1,9,4",
    b"GNU.sparse.size=99999999999",
    b"mtime=nan",
]


def change_webdataset(data: bytes, draw: random.Random) -> bytes:
    """A member gone, twice or elsewhere, a field of a header, a header of another kind, JSON."""
    members = blocks_of(data)
    if not members or data[:2] in (b"\x1f\x8b", b"BZ", b"\xfd7"):
        return change_bytes(data, draw)
    kind = draw.randrange(6)
    if kind == 0:
        return b"".join(move_item(members, draw))
    number = draw.randrange(len(members))
    member = members[number]
    if kind == 1:
        members.insert(number, extended_header(draw))
    elif kind == 2 and b".json" in member[:100]:
        members[number] = member[:512] + change_json_text(member[512:].rstrip(b"\0"), draw).ljust(
            max(len(member) - 512, 0), b"\0"
        )
    elif kind == 3:
        size = member[124:135].strip(b" \0")
        number_of = int(size, 8) if size.isdigit() and not size.strip(b"01234567") else 0
        text = b"%011o" % (abs(near(number_of, draw)) % 8**11)
        members[number] = with_checksum(put(member, 124, text))
    else:
        at, width = draw.choice(TAR_FIELDS)
        text = (
            draw.choice(TAR_TEXTS) if width > 1 else draw.choice([*b"01256789xgLKSND\0"]).to_bytes()
        )
        members[number] = with_checksum(put(member, at, text[:width].ljust(width, b"\0")))
    return b"".join(members)


def extended_header(draw: random.Random) -> bytes:
    """A pax header with odd records in it."""
    records = b""
    for text in draw.sample(PAX, draw.randint(1, 2)):
        length = len(text) + 5
        records += b"%d " % draw.choice([length, length, length + 1, 3, 10**9]) + text + b"\n"
    info = tarfile.TarInfo("pax")
    info.type = draw.choice([tarfile.XHDTYPE, tarfile.XHDTYPE, tarfile.XGLTYPE])
    info.size = len(records)
    return info.tobuf(tarfile.USTAR_FORMAT) + records.ljust(
        (len(records) + 511) // 512 * 512, b"\0"
    )


def with_checksum(member: bytes) -> bytes:
    """A member whose header has the right sum."""
    if len(member) < 512:
        return member
    total = sum(member[:148]) + sum(member[156:512]) + 8 * 32
    return member[:148] + b"%06o\0 " % total + member[156:]


def mend_tar(data: bytes) -> bytes:
    """Right sums in all headers; archives that are packed stay as they are."""
    if data[:2] in (b"\x1f\x8b", b"BZ", b"\xfd7"):
        return data
    members = [with_checksum(member) if any(member[:512]) else member for member in blocks_of(data)]
    return b"".join(members) + data[sum(map(len, members)) :]


def archive(*files: tuple[str, bytes], mode: str = "w") -> bytes:
    """An archive of these files, for the corpus."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode=mode) as tar:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return target.getvalue()


WEBDATASET = Target(
    "webdataset", check_webdataset, change_webdataset, mend_tar, words=(bytes(512), b"ustar\x0000")
)


# ---- CIFAR


def check_cifar(data: bytes) -> None:
    """A pickle of which nothing is run."""
    images, labels = read_cifar(os.path.dirname(scratch("train", data)), 100)
    assert images.shape == (len(labels), 3, 32, 32) and images.dtype == labels.dtype == np.uint8


CIFAR = Target("cifar", check_cifar, words=(b"cnumpy\ndtype\n", b"\x80\x02", b"R", b"b", b"tb"))
