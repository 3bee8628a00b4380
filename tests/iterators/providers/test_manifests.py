"""A manifest of shards in the place of a record file: its batches are those of the pack."""

import os

import numpy as np
import pytest

import iterators
import recordio
from iterators import ImageRecordIter
from iterators.testing import assert_same, copies, write_faces, write_pack
from recordio import ManifestError

KEYWORDS = {"data_shape": (3, 8, 8), "batch_size": 4, "preprocess_threads": 1}


@pytest.fixture
def whole(tmp_path):
    """A pack of ten images, and the manifest of its three shards."""
    path = write_pack(tmp_path / "a.rec", [image(9 * number) for number in range(10)])
    return path, cut(path, 3)


def cut(path, n):
    folder = path.parent / "parts"
    folder.mkdir()
    recordio.shard(path, folder, n)
    return folder / f"{path.stem}.shards.json"


def batches(path, **keywords):
    with ImageRecordIter(path_imgrec=path, **KEYWORDS, **keywords) as provider:
        return copies(provider)


@pytest.mark.parametrize(
    "keywords",
    [{}, {"shuffle": True, "seed": 3}, {"num_parts": 3, "part_index": 1}],
    ids=["plain", "shuffled", "part"],
)
def test_batches_are_those_of_the_pack(whole, keywords):
    path, manifest = whole
    expected = batches(path, path_imgidx=path.with_suffix(".idx"), **keywords)
    assert_same(batches(manifest, **keywords), expected)
    assert_same(batches(str(manifest), **keywords), expected)


def test_a_manifest_beside_another_pack_and_in_a_pack(whole):
    path, manifest = whole
    with ImageRecordIter(path_imgrec=[manifest, path], **KEYWORDS) as provider:
        assert provider.num_samples == 20
    packs = [iterators.Pack(manifest), iterators.Pack(path)]
    with ImageRecordIter(path_imgrec=packs, **KEYWORDS) as provider:
        assert provider.num_samples == 20
    assert len(iterators.ImageRecordDataset(manifest)) == 10


def test_a_manifest_names_its_indexes(whole):
    path, manifest = whole
    with pytest.raises(ValueError, match="names the indexes of its files"):
        ImageRecordIter(path_imgrec=manifest, path_imgidx=path.with_suffix(".idx"), **KEYWORDS)


def test_files_of_another_size_are_refused(whole):
    _, manifest = whole
    file = manifest.parent / "a-000001.rec"
    os.truncate(file, file.stat().st_size - 4)
    with pytest.raises(ManifestError, match="bytes, and .* in .*a.shards.json"):
        ImageRecordIter(path_imgrec=manifest, **KEYWORDS)
    file.unlink()
    with pytest.raises(ManifestError, match="there is no such file"):
        ImageRecordIter(path_imgrec=manifest, **KEYWORDS)


def image(value):
    return np.full((8, 8, 3), value, np.uint8)


@pytest.fixture
def faces(tmp_path):
    """A face-recognition pack: images of 3, 1 and 4 people in keys 1 to 8, then the people."""
    images = [image(20 * who) for who in (0, 0, 0, 1, 2, 2, 2, 2)]
    path = write_faces(tmp_path / "faces.rec", [3, 1, 4], images)
    return path, cut(path, 3)


def test_the_identities_are_those_of_the_pack(faces):
    path, manifest = faces
    with (
        ImageRecordIter(path_imgrec=path, path_imgidx=path.with_suffix(".idx"), **KEYWORDS) as one,
        ImageRecordIter(path_imgrec=manifest, **KEYWORDS) as other,
    ):
        assert other.num_samples == one.num_samples == 8
        assert other.num_classes == one.num_classes == 3
        assert np.array_equal(other.identities, one.identities)
        assert_same(
            [(b.data[0], b.label[0]) for b in other], [(b.data[0], b.label[0]) for b in one]
        )


def test_face_packs_beside_a_manifest_need_packs_of_their_own(faces):
    path, manifest = faces
    with pytest.raises(ValueError, match="give each as a Pack"):
        ImageRecordIter(path_imgrec=[manifest, path], **KEYWORDS)
    with ImageRecordIter(
        path_imgrec=[iterators.Pack(manifest), iterators.Pack(path)], **KEYWORDS
    ) as provider:
        assert provider.num_samples == 16


def test_joining_a_manifest_gives_the_pack(whole, tmp_path):
    path, manifest = whole
    recordio.join([manifest], tmp_path / "again")
    assert (tmp_path / "again.rec").read_bytes() == path.read_bytes()
    with pytest.raises(ValueError, match="those of shards are kept"):
        recordio.join([manifest], tmp_path / "again", labels="append")


# -- on a server ----------------------------------------------------------------------------------


@pytest.fixture
def reached(bucket, s3_endpoint, tmp_path):
    """Uploads the folder of a manifest; returns its URL, and how to reach it."""

    def upload(manifest):
        for path in manifest.parent.iterdir():
            bucket.put_object(Bucket="bucket", Key=f"sets/{path.name}", Body=path.read_bytes())
        access = {
            "endpoint_url": s3_endpoint, "access_key_id": "me", "region": "us-east-1",
            "secret_access_key": "hunter2-hunter2",
        }  # fmt: skip
        keywords = {"remote_cache": tmp_path / "mirrors", "remote_options": access}
        return f"s3://bucket/sets/{manifest.name}", keywords

    return upload


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_manifest_on_a_server_names_files_beside_it(whole, reached, shuffle):
    path, manifest = whole
    url, keywords = reached(manifest)
    expected = batches(path, path_imgidx=path.with_suffix(".idx"), shuffle=shuffle)
    assert_same(batches(url, shuffle=shuffle, **keywords), expected)
    parts = [batches(url, num_parts=2, part_index=part, **keywords) for part in range(2)]
    local = [batches(manifest, num_parts=2, part_index=part) for part in range(2)]
    for one, other in zip(parts, local, strict=True):
        assert_same(one, other)


def test_the_identities_of_a_manifest_on_a_server(faces, reached):
    path, manifest = faces
    url, keywords = reached(manifest)
    with (
        ImageRecordIter(path_imgrec=path, path_imgidx=path.with_suffix(".idx"), **KEYWORDS) as one,
        ImageRecordIter(path_imgrec=url, **KEYWORDS, **keywords) as other,
    ):
        assert np.array_equal(other.identities, one.identities)
        assert other.num_samples == one.num_samples


def test_objects_of_another_size_and_missing_ones_are_refused(whole, reached, bucket):
    path, manifest = whole
    url, keywords = reached(manifest)
    bucket.put_object(Bucket="bucket", Key="sets/a-000001.rec", Body=b"1234")
    with pytest.raises(ManifestError, match="a-000001.rec: it has 4 bytes, and .* in s3://bucket"):
        ImageRecordIter(path_imgrec=url, **KEYWORDS, **keywords)
    bucket.delete_object(Bucket="bucket", Key="sets/a-000001.rec")
    with pytest.raises(recordio.errors.RemoteMissingError, match="a-000001.rec"):
        ImageRecordIter(path_imgrec=url, **KEYWORDS, **keywords)
    with pytest.raises(OSError, match="recordio fetch"):
        recordio.check_shards(url)
