"""Manifests of shards: JSON that names files and says how large they are."""

from __future__ import annotations

import os

from recordio import RecordWriter, ShardManifest, check_shards

from .mutate import change_json_text
from .target import Target, scratch


def check(data: bytes) -> None:
    """What is read has the types that it should, and speaks of the files beside it only."""
    os.makedirs(scratch("shards"), exist_ok=True)
    with RecordWriter(scratch("shards/a-000000.rec"), scratch("shards/a-000000.idx")) as writer:
        writer.write(b"record")
    path = scratch("shards/a.shards.json", data)
    manifest = ShardManifest.read(path)
    numbers = [manifest.records, manifest.bytes, manifest.identities]
    for shard in manifest.shards:
        numbers += [shard.first, shard.records, shard.bytes, *shard.keys]
    assert all(type(number) is int and number >= 0 for number in numbers)
    assert {os.path.dirname(file) for file in manifest.files} == {scratch("shards")}
    assert check_shards(path).records == manifest.records


SHARDS = Target("shards", check, change_json_text)
