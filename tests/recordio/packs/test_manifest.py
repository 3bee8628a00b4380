"""Manifests of shards."""

import json
import os

import pytest

import recordio
from recordio import ManifestError
from recordio.packs.manifest import named_manifest


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda parts: (parts / "a-000001.rec").unlink(), "a-000001.rec: .* lists it"),
        (lambda parts: (parts / "a-000000.idx").unlink(), "a-000000.idx: .* lists it"),
        (lambda parts: os.truncate(parts / "a-000001.rec", 8), "it has 8 bytes"),
        (lambda parts: os.truncate(parts / "a-000001.idx", 8), "it does not list"),
        (lambda parts: flip(parts / "a-000001.rec"), "not the file whose checksum"),
        (lambda parts: edit(parts, records=7), "instead of 7"),
        (lambda parts: edit(parts, version=2), "version 2"),
        (lambda parts: edit(parts, format="else"), "no manifest of shards"),
        (lambda parts: edit(parts, shards=[]), "a field is missing"),
        (lambda parts: edit(parts, bytes="1"), "a field is missing"),
        (lambda parts: shard_of(parts, file="../a.rec"), "no names of files"),
        (lambda parts: shard_of(parts, first=1), "record 1 instead of 0"),
        (lambda parts: shard_of(parts, records=9), "it does not list"),
        (lambda parts: shard_of(parts, keys=[None, 2]), "a field is missing"),
        (lambda parts: shard_of(parts, keys=[]), "a field is missing"),
        (lambda parts: shard_of(parts, file=3), "a field is missing"),
        (lambda parts: shard_of(parts, sha256="0"), "a field is missing"),
        (lambda parts: shard_of(parts, more=1), "a field is missing"),
        (lambda parts: (parts / "a.shards.json").write_bytes(b"\xff{"), "no manifest"),
        (lambda parts: (parts / "a.shards.json").write_bytes(b"[" * 100000), "no manifest"),
        (lambda parts: (parts / "a.shards.json").write_text("[]"), "no manifest"),
    ],
)
def test_what_is_wrong_is_named(packs, parts, change, said):
    recordio.shard(packs.plain("a", range(9)), parts, 2)
    change(parts)
    with pytest.raises(ManifestError, match=said):
        recordio.check_shards(parts / "a.shards.json")


def test_a_manifest_is_read_by_its_name_with_a_look_at_its_files(packs, parts):
    path = packs.plain("a", range(9))
    recordio.shard(path, parts, 2)
    assert named_manifest(path) is None
    assert named_manifest(parts / "a.shards.json").records == 9
    os.truncate(parts / "a-000001.rec", 8)
    with pytest.raises(ManifestError, match="it has 8 bytes"):
        named_manifest(parts / "a.shards.json")


def flip(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def edit(parts, **words):
    path = parts / "a.shards.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **words}))


def shard_of(parts, **words):
    shards = json.loads((parts / "a.shards.json").read_text())["shards"]
    edit(parts, shards=[{**shards[0], **words}, *shards[1:]])


def test_contents_need_not_be_read(packs, parts):
    recordio.shard(packs.plain("a", range(9)), parts, 2)
    flip(parts / "a-000001.rec")
    seen = []
    manifest = recordio.check_shards(
        parts / "a.shards.json", contents=False, progress=lambda *words: seen.append(words)
    )
    assert manifest.records == 9 and seen[-1] == (manifest.bytes, manifest.bytes)
