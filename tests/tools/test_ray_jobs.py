"""Jobs over the files of a manifest find what the commands find in the whole pack."""

import dataclasses
from pathlib import Path

import cv2
import numpy as np
import pytest

import recordio
from recordio import IRHeader, ManifestError, RecordWriter, pack
from recordio.tools.im2rec import main
from recordio.tools.optimize import optimize_records

pytest.importorskip("ray")
from recordio.tools import ray_jobs  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("default"),  # Ray's own
    pytest.mark.timeout(300),
]


@pytest.fixture
def packed(photo_folder, output):
    """A pack, and the manifest of shards that were made of the same list."""
    assert main([str(output / "p"), str(photo_folder)]) == 0
    assert main(["--shards", "3", str(output / "p"), str(photo_folder)]) == 0
    return output / "p.rec", output / "p.shards.json"


@pytest.mark.parametrize("mean_std", [False, True])
def test_statistics_are_those_of_the_pack(ray_cluster, packed, mean_std):
    path, manifest = packed
    told = []
    found = ray_jobs.stats(manifest, mean_std, progress=lambda *words: told.append(words))
    expected = recordio.stats(path, mean_std)
    assert found == dataclasses.replace(expected, path=str(manifest))
    assert told[-1] == (20, 20) and len(told) == 3


def test_decoding_checks_name_the_file_and_the_record(ray_cluster, packed):
    _, manifest = packed
    reports = ray_jobs.check(manifest)
    assert [report.images for report in reports] == [6, 7, 7]
    assert not any(report.problems for report in reports)
    file = manifest.parent / "p-000001.rec"
    data = bytearray(file.read_bytes())
    data[60:200] = bytes(140)
    file.write_bytes(data)
    reports = ray_jobs.check(manifest)
    assert [bool(report.problems) for report in reports] == [False, True, False]
    assert reports[1].path == str(file)


def test_optimized_files_are_those_of_the_command(ray_cluster, packed, tmp_path):
    _, manifest = packed
    found, tally = ray_jobs.optimize(manifest, tmp_path / "fast")
    recordio.check_shards(found.path)
    optimized = 0
    listed = recordio.ShardManifest.read(manifest)
    for number, (path, index) in enumerate(zip(listed.files, listed.indexes, strict=True)):
        report = optimize_records(path, str(tmp_path / "one"), index)
        optimized += report.tally.rewritten
        assert (tmp_path / "one.rec").read_bytes() == (
            tmp_path / f"fast-{number:06d}.rec"
        ).read_bytes()
    assert tally.rewritten == optimized


@pytest.fixture
def repeated(photos, tmp_path):
    """A pack with the same contents, the same pictures and other labels, and its shards."""
    random = np.random.default_rng(0)
    contents = []
    for name in ("astronaut", "chelsea", "coffee", "rocket"):
        image = np.ascontiguousarray(photos[name][:400, :400, ::-1])
        contents += [cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, q])[1].tobytes()
                     for q in (90, 60)]  # fmt: skip
    contents += [b"", b"no picture", b"another"]
    (tmp_path / "parts").mkdir()
    with RecordWriter(tmp_path / "a.rec", tmp_path / "a.idx") as writer:
        for number, choice in enumerate(random.integers(0, len(contents), 60).tolist()):
            label = [1, choice] if choice % 3 == 0 else float(random.integers(0, 2))
            writer.write(pack(IRHeader(0, label, number, 0), contents[choice]), number)
        for number in range(60, 90):
            writer.write(pack(IRHeader(0, 0, number, 0), b"own %d" % number), number)
    recordio.shard(tmp_path / "a", tmp_path / "parts", 4)
    return tmp_path / "a.rec", tmp_path / "parts" / "a.shards.json"


@pytest.mark.parametrize("near", [None, 6])
@pytest.mark.parametrize("compared", [1 << 21, 7], ids=["at once", "in buckets"])
def test_duplicates_are_those_of_the_pack(
    ray_cluster, repeated, tmp_path, monkeypatch, near, compared
):
    monkeypatch.setattr("recordio.ray.duplicates.COMPARED_RECORDS", compared)
    path, manifest = repeated
    expected = recordio.dedup(path, tmp_path / "one", near)
    told = []
    found, made = ray_jobs.dedup(
        manifest, tmp_path / "some", near, progress=lambda *words: told.append(words)
    )
    assert told[-1] == (90, 90) and len(told) == 4
    for field in dataclasses.fields(found):
        if field.name in ("path", "written", "key", "kept"):  # every shard has keys of its own
            continue
        mine, theirs = (getattr(one, field.name) for one in (found, expected))
        assert np.array_equal(mine, theirs, equal_nan=field.name.endswith("label")), field.name
    assert np.array_equal(found.number, expected.key)  # which are positions in this pack
    files = recordio.check_shards(made.path).files
    assert (
        b"".join(Path(file).read_bytes() for file in files) == (tmp_path / "one.rec").read_bytes()
    )
    assert not list(manifest.parent.glob("dedup-*")) and expected.exact > 30
    assert (expected.near > 0) == (near is not None)


def test_shards_of_duplicates_alone_are_not_written(ray_cluster, tmp_path):
    with RecordWriter(tmp_path / "a.rec") as writer:
        for number in range(9):
            writer.write(pack(IRHeader(0, 1, number, 0), b"content %d" % min(number, 3)))
    recordio.shard(tmp_path / "a", tmp_path / "parts", 3)
    found, made = ray_jobs.dedup(tmp_path / "parts.shards.json", tmp_path / "rest")
    assert (found.exact, found.groups, made.records, len(made.files)) == (5, 1, 4, 2)
    assert sorted(p.name for p in tmp_path.glob("rest*")) == [
        "rest-000000.idx", "rest-000000.rec", "rest-000001.idx", "rest-000001.rec",
        "rest.shards.json",
    ]  # fmt: skip
    with pytest.raises(recordio.RecordIOError, match="the source would be overwritten"):
        ray_jobs.dedup(tmp_path / "parts.shards.json", tmp_path / "parts")


def test_damaged_records_are_named_or_left_out(ray_cluster, repeated):
    _, manifest = repeated
    file = manifest.parent / "a-000002.rec"
    with recordio.RecordReader(file) as reader:
        offset = int(reader.offsets[3])
    data = file.read_bytes()
    file.write_bytes(data[:offset] + bytes(4) + data[offset + 4 :])
    with pytest.raises(recordio.RecordIOError, match="a-000002.rec"):
        ray_jobs.dedup(manifest)
    found, _ = ray_jobs.dedup(manifest, skip_errors=True)
    assert found.skipped == 1 and found.records == 89


def test_sources_and_what_other_manifests_list_are_not_replaced(packed, tmp_path):
    _, manifest = packed
    with pytest.raises(recordio.RecordIOError, match="the source would be overwritten"):
        ray_jobs.optimize(manifest, manifest.parent / "p")
    (tmp_path / "older").mkdir()
    recordio.shard(packed[0], tmp_path / "older" / "q", 4)
    with pytest.raises(ManifestError, match="would be left beside the new ones"):
        ray_jobs.dedup(manifest, tmp_path / "older" / "q")


def test_a_file_of_another_size_is_refused(packed):
    _, manifest = packed
    (manifest.parent / "p-000001.rec").write_bytes(b"")
    with pytest.raises(ManifestError, match="it has 0 bytes"):
        ray_jobs.stats(manifest)
