"""Shards of MDS for tests, written by hand."""

import json
import struct

import numpy as np

__all__ = ["COLUMNS", "shard", "write_set"]

COLUMNS = {"image": ("png", None), "label": ("int", 8), "words": ("str", None)}


def shard(samples, columns=COLUMNS):
    """The bytes that the library writes: count, offsets, description, samples."""
    description = {
        "version": 2,
        "format": "mds",
        "column_names": list(columns),
        "column_encodings": [kind for kind, _ in columns.values()],
        "column_sizes": [size for _, size in columns.values()],
    }
    words = json.dumps(description).encode()
    rows = []
    for values in samples:
        sizes = [
            len(v) for v, (_, size) in zip(values, columns.values(), strict=True) if size is None
        ]
        rows.append(struct.pack(f"<{len(sizes)}I", *sizes) + b"".join(values))
    edges = np.cumsum([4 * (len(rows) + 2) + len(words), *map(len, rows)])
    return struct.pack(f"<{len(edges) + 1}I", len(rows), *edges) + words + b"".join(rows)


def write_set(folder, *shards, **more):
    folder.mkdir(exist_ok=True)
    listed = []
    for number, content in enumerate(shards):
        name = f"shard.{number:05d}.mds"
        (folder / name).write_bytes(content)
        raw = {"basename": name, "bytes": len(content), "hashes": {}}
        listed.append({"format": "mds", "raw_data": raw, "zip_data": None, **more})
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": listed}))
    return folder
