"""Jobs over the files of a manifest find what the commands find in the whole pack."""

import dataclasses

import pytest

import recordio
from recordio import ManifestError
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


def test_a_file_of_another_size_is_refused(packed):
    _, manifest = packed
    (manifest.parent / "p-000001.rec").write_bytes(b"")
    with pytest.raises(ManifestError, match="it has 0 bytes"):
        ray_jobs.stats(manifest)
