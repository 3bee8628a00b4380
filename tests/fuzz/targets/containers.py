"""Containers: tar files where they lie, and the indexes beside them."""

from __future__ import annotations

import contextlib
import os
import tarfile

import numpy as np

from recordio import RecordIOError
from recordio.bytes.crc32c import crc32c
from recordio.bytes.files import StoredFile
from recordio.containers.index import MAGIC, samples_of
from recordio.containers.samples import NO_CONTENT, ContainedSamples
from recordio.containers.tar import TAR, scan
from recordio.packs.open_pack import OpenPack

from .archives import TAR_TEXTS, archive, change_webdataset
from .mutate import change_json_text, change_line
from .target import Target, scratch

FILES = [(f"{i}.{e}", c) for i in range(5) for e, c in (("jpg", b"x" * 99 * i), ("cls", b"%d" % i))]


def check_samples(samples: ContainedSamples, size: int) -> None:
    """Every content lies in the file, every other sample has a reason, and all have labels."""
    count, good = len(samples), samples.sizes != NO_CONTENT
    assert len(samples.sizes) == count and (samples.sizes >= NO_CONTENT).all()
    assert (samples.offsets >= 0).all()
    assert (samples.offsets[good] + samples.sizes[good] <= size).all()
    assert sorted(samples.faults) == np.flatnonzero(~good).tolist()
    for row in range(count):
        assert len(samples.labels_of(row)) >= 1
        samples.name_of(row).encode("utf-8", "surrogateescape")


def check_tar(data: bytes) -> None:
    """Samples lie within the file, and where the standard library finds files."""
    path = scratch("a.tar", data)
    samples = scan(StoredFile(path))
    check_samples(samples, len(data))
    assert (np.diff(samples.offsets) > 0).all()
    with OpenPack(path, skip_errors=True) as pack:
        for row in range(len(pack)):
            with contextlib.suppress(RecordIOError):
                pack.record(row)
    try:
        with tarfile.open(path) as tar:
            members = {(info.offset_data, info.size) for info in tar}
    except (tarfile.TarError, ValueError, OverflowError, EOFError, RecursionError):
        return
    if not samples.damage:
        spans = zip(samples.offsets.tolist(), samples.sizes.tolist(), strict=True)
        assert {span for span in spans if span[1] != NO_CONTENT} <= members


TAR_FILES = Target(
    "tar", check_tar, change_webdataset, words=(b"ustar", b"\x80", bytes(512), *TAR_TEXTS)
)


def check_listed(data: bytes) -> None:
    """An index of DALI gives samples within the file, or those of the headers."""
    path = scratch("b.tar", archive(*FILES))
    os.utime(path, (1, 1))
    scratch("b.idx", data)
    check_samples(scan(StoredFile(path)), os.path.getsize(path))


DALI_INDEX = Target(
    "dali_index",
    check_listed,
    lambda data, draw: change_line(
        data, draw, [b"", b"512", b"-1", b"1.jpg", b"9" * 30, b"v1.2 5"]
    ),
    words=(b" ", b"\n", b"512", b"jpg", b"cls", b"v1.2 "),
)


def with_sum(data: bytes) -> bytes:
    """An index with a right checksum, which has the version that will be asked for."""
    return data[:-4] + crc32c(data[:-4]).to_bytes(4, "little")


def check_index(data: bytes) -> None:
    """Samples of an index fit together, or it is made anew."""
    path = scratch("c.tar", archive(*FILES))
    os.utime(path, (1, 1))
    scratch("c.tar.index", data)
    samples = samples_of(StoredFile(path), TAR)
    assert len(samples.sizes) == len(samples)
    for row in range(len(samples)):
        assert len(samples.labels_of(row)) >= 0
        samples.name_of(row)


def change_index(data: bytes, draw) -> bytes:
    """Something in the words."""
    begin = len(MAGIC) + 8
    end = begin + int.from_bytes(data[begin - 8 : begin], "little")
    if not begin < end <= len(data):
        return data
    words = change_json_text(data[begin:end].rstrip(b" "), draw)
    words += b" " * (-(begin + len(words)) % 8)
    return data[: begin - 8] + len(words).to_bytes(8, "little") + words + data[end:]


CONTAINER_INDEX = Target(
    "container_index",
    check_index,
    change_index,
    mend=with_sum,
    words=(MAGIC, bytes(8), b"\xff" * 8),
)


def sound() -> dict[str, dict[str, bytes]]:
    """The sound files of the three corpora."""
    tar = archive(*FILES)
    path = scratch("c.tar", tar)
    os.utime(path, (1, 1))
    with contextlib.suppress(FileNotFoundError):
        os.remove(f"{path}.index")
    samples_of(StoredFile(path), TAR)
    lines, at = [], 0
    for key in range(5):
        parts = []
        for name, content in FILES[2 * key : 2 * key + 2]:
            parts.append(f"{name[2:]} {at + 512} {len(content)} {name}")
            at += 512 + -(-len(content) // 512) * 512
        lines.append(" ".join(parts))
    with open(f"{path}.index", "rb") as file:
        return {
            "dali_index": {"five": "\n".join(["v1.2 5", *lines, ""]).encode()},
            "container_index": {"five": file.read()},
        }
