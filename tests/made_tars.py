"""Tar files of WebDataset for tests, and indexes of them."""

import io
import tarfile

import numpy as np


def tar(*files):
    """The bytes of an archive."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def images(count, size, first=0):
    """An archive of samples whose images have so many bytes."""
    draw = np.random.default_rng(first)
    return tar(
        *(
            file
            for i in range(first, first + count)
            for file in (
                (f"{i:05d}.jpg", draw.bytes(size)),
                (f"{i:05d}.cls", b"%d" % i) if i % 3 else (f"{i:05d}.json", b'{"label": %d}' % i),
            )
        )
    )


def dali_index(data):
    """What ``wds2idx`` writes for an archive whose files all have endings."""
    lines, last = [], None
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for info in archive:
            key, _, ending = info.name.partition(".")
            part = f"{ending} {info.offset_data} {info.size} {info.name}"
            if key == last:
                lines[-1] += f" {part}"
            else:
                lines.append(part)
            last = key
    return "\n".join([f"v1.2 {len(lines)}", *lines, ""]).encode()


def same(one, other):
    """Compare samples, and fail where they differ."""
    assert one.offsets.tolist() == other.offsets.tolist()
    assert one.sizes.tolist() == other.sizes.tolist()
    assert one.labels.tolist() == other.labels.tolist()
    assert one.names.tobytes() == other.names.tobytes()
    assert (one.faults, one.damage) == (other.faults, other.damage)
