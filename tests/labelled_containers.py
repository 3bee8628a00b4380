"""The same samples with labels in all containers that have names for what is in a sample."""

import io
import json
import struct
import tarfile

import numpy as np
import pytest
from tfrecords import write_tfrecord

from iterators.testing import encode_jpeg, noise

__all__ = [
    "IMAGES",
    "WRITERS",
    "as_arrow",
    "as_lmdb",
    "as_mds",
    "as_parquet",
    "as_tar",
    "write_tar",
]

IMAGES = [encode_jpeg(noise(20 + i, 24, i)) for i in range(3)]


def write_tar(path, *names_and_contents):
    with tarfile.open(path, "w") as archive:
        for name, content in names_and_contents:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return str(path)


def as_tar(folder, name, values, image="jpg", images=IMAGES):
    """Samples whose JSON has the label under a name."""
    parts = []
    for i, content in enumerate(images):
        parts.append((f"{i}.{image}", content))
        if values is not None:
            parts.append((f"{i}.json", json.dumps({"width": 24, name: values[i]}).encode()))
    return write_tar(folder / "a.tar", *parts)


def as_tfrecord(folder, name, values, image="image/encoded", images=IMAGES):
    examples = [{image: [content], "width": [24]} for content in images]
    for example, value in zip(examples, values or (), strict=False):
        example[name] = [value]
    return str(write_tfrecord(folder / "a.tfrecord", *examples))


def as_parquet(folder, name, values, image="image", images=IMAGES):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {image: list(images), "width": [24] * len(images)}
    if values is not None:
        columns[name] = values
    parquet.write_table(pa.table(columns), folder / "a.parquet")
    return str(folder / "a.parquet")


def as_arrow(folder, name, values, image="image", images=IMAGES):
    pa = pytest.importorskip("pyarrow")
    columns = {image: list(images), "width": [24] * len(images)}
    if values is not None:
        columns[name] = values
    table = pa.table(columns)
    with pa.ipc.new_stream(str(folder / "a.arrow"), table.schema) as writer:
        writer.write_table(table)
    return str(folder / "a.arrow")


def as_mds(folder, name, values, image="image", images=IMAGES):
    names, kinds, sizes = [image, "width"], ["jpeg", "int"], [None, 8]
    if values is not None:
        kind = "float64" if any(isinstance(value, float) for value in values) else "int"
        names, kinds, sizes = [*names, name], [*kinds, kind], [*sizes, 8]
    samples = []
    for i, content in enumerate(images):
        tail = struct.pack("<q", 24)
        if values is not None:
            tail += struct.pack("<d" if kinds[-1] == "float64" else "<q", values[i])
        samples.append(struct.pack("<I", len(content)) + content + tail)
    head = json.dumps(
        {"column_names": names, "column_encodings": kinds, "column_sizes": sizes}
    ).encode()
    starts = np.cumsum([4 * (len(samples) + 2) + len(head), *map(len, samples)]).astype("<u4")
    data = struct.pack("<I", len(samples)) + starts.tobytes() + head + b"".join(samples)
    (folder / "a.mds").write_bytes(data)
    return str(folder / "a.mds")


def as_lmdb(folder, name, values, image="image", images=IMAGES):
    lmdb = pytest.importorskip("lmdb")
    with lmdb.open(str(folder / "a.lmdb"), subdir=False) as opened, opened.begin(write=True) as to:
        for i, content in enumerate(images):
            to.put(b"%s-%09d" % (image.encode(), i), content)
            if values is not None:
                to.put(b"%s-%09d" % (name.encode(), i), str(values[i]).encode())
    return str(folder / "a.lmdb")


WRITERS = {
    "tar": as_tar,
    "tfrecord": as_tfrecord,
    "parquet": as_parquet,
    "arrow": as_arrow,
    "mds": as_mds,
    "lmdb": as_lmdb,
}
