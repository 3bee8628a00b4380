"""Indexes of containers: made once, bound to a version, and never believed where they are wrong."""

import errno
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recordio
from recordio import RecordIOError
from recordio.bytes.crc32c import crc32c
from recordio.bytes.files import StoredFile
from recordio.bytes.storage import AtomicOutput
from recordio.containers import index
from recordio.containers.container import Container
from recordio.containers.index import index_paths, samples_of
from recordio.containers.reader import ContainedRecords
from recordio.containers.samples import ContainedSamples
from recordio.packs.open_pack import open_listed

PACKAGES = Path(recordio.__file__).parents[1]
SAMPLES = ContainedSamples.of(
    [0, 4, 9], [4, -1, 2], [[1.5], [], [2, 3]], ["a.jpg", "", "\udcffé.png"],
    classes={3: "cat"}, faults={1: "\udcff it is bad"}, left_out={".txt": 4}, damage={},
)  # fmt: skip


class Counted:
    """A container whose scans are counted."""

    def __init__(self):
        self.scans = 0
        self.container = Container("a made-up file", self.scan)

    def scan(self, file, settings, choice):
        self.scans += 1
        return SAMPLES

    def read(self, path):
        found = samples_of(StoredFile(str(path)), self.container)
        assert same(found, SAMPLES)
        return self.scans


def same(one, other):
    """Compare samples by their tables and words."""
    for name, mine in vars(one).items():
        theirs = getattr(other, name)
        if not (np.array_equal(mine, theirs) if isinstance(mine, np.ndarray) else mine == theirs):
            return False
    return True


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("RECORDIO_INDEX_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "a.tar"
    path.write_bytes(b"contents of it")
    return path


def kept(file):
    return Path(f"{file}.index")


def test_samples_are_found_once(file):
    counted = Counted()
    assert [counted.read(file) for _ in range(3)] == [1, 1, 1]
    assert sorted(os.listdir(file.parent)) == ["a.tar", "a.tar.index"]


def test_an_index_belongs_to_a_version_and_a_kind(file):
    counted, other = Counted(), Counted()
    counted.read(file)
    os.utime(file, ns=(1, 1))
    assert counted.read(file) == 2
    file.write_bytes(b"more contents of it")
    assert counted.read(file) == 3
    other.container = Container("another file", other.scan)
    assert other.read(file) == 1 and counted.read(file) == 4


def test_half_of_an_index_is_made_anew(file):
    counted = Counted()
    counted.read(file)
    data = kept(file).read_bytes()
    for size in [*range(0, len(data), 7), len(data) - 1]:
        kept(file).write_bytes(data[:size])
        counted.read(file)
        assert kept(file).read_bytes() == data
    kept(file).write_bytes(data + b"\0")
    counted.read(file)
    assert kept(file).read_bytes() == data


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.one_of(st.binary(max_size=300), st.binary(max_size=300).map(index.MAGIC.__add__)))
def test_random_bytes_are_no_index(file, data):
    kept(file).write_bytes(data)
    Counted().read(file)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1 << 32))
def test_what_leads_elsewhere_is_not_believed(file, seed):
    """Whatever words and tables say, even with a right checksum: samples that fit, or none."""
    draw = random.Random(seed)
    samples_of(StoredFile(str(file)), Counted().container)
    data = bytearray(kept(file).read_bytes()[:-4])
    for _ in range(draw.randint(1, 4)):
        data[draw.randrange(len(index.MAGIC), len(data))] = draw.choice([*b'0159[]{}",-', 0, 255])
    kept(file).write_bytes(data + crc32c(data).to_bytes(4, "little"))
    found = samples_of(StoredFile(str(file)), Counted().container)
    assert len(found.sizes) == len(found) and found.label_starts()[-1] == len(found.labels)
    for row in range(len(found)):
        assert len(found.labels_of(row)) >= 0 and isinstance(found.name_of(row), str)
    kept(file).unlink()


@pytest.mark.parametrize(
    "tables",
    [
        {"offsets": 3, "sizes": 3, "labels": 4},
        {"offsets": 3, "sizes": 2, "labels": 3},
        {"offsets": 3, "sizes": 3, "labels": 3, "other": 1},
        {"offsets": -1, "sizes": 3, "labels": 3},
        {"offsets": 1 << 60, "sizes": 3, "labels": 3},
        {"sizes": 3, "labels": 3},
        {"offsets": "3", "sizes": 3, "labels": 3},
        [3, 3],
        None,
    ],
)
def test_a_foreign_index_is_not_believed(file, tables):
    counted = Counted()
    version = [counted.container.name, *StoredFile(str(file)).version()]
    about = {"version": version, "tables": tables, **dict.fromkeys(index.WORDS, [])}
    words = json.dumps(about).encode()
    words += b" " * (-(len(index.MAGIC) + 8 + len(words)) % 8)
    data = index.MAGIC + len(words).to_bytes(8, "little") + words + bytes(64)
    kept(file).write_bytes(data + crc32c(data).to_bytes(4, "little"))
    assert counted.read(file) == 1


def test_where_nothing_can_be_written_beside_it_lies_in_the_cache(file, tmp_path):
    kept(file).mkdir()  # so that nobody can, not even root
    counted = Counted()
    assert [counted.read(file) for _ in range(2)] == [1, 1]
    (cached,) = (tmp_path / "cache").iterdir()
    assert str(cached) == index_paths(StoredFile(str(file)))[1]


def test_without_any_room_samples_are_found_every_time(file, tmp_path, monkeypatch):
    def full(self, *data):
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(AtomicOutput, "write", full)
    counted = Counted()
    assert [counted.read(file) for _ in range(2)] == [1, 2]
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["a.tar"]
    (tmp_path / "cache").rmdir()
    (tmp_path / "cache").write_text("a file")
    assert counted.read(file) == 3


def test_caches_have_their_place(file, monkeypatch):
    assert index_paths(StoredFile("s3://b/a.tar"))[0].startswith(os.environ["RECORDIO_INDEX_CACHE"])
    monkeypatch.delenv("RECORDIO_INDEX_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    (only,) = index_paths(StoredFile("s3://b/a.tar"))
    assert os.path.dirname(only) == os.path.join("/caches", "recordio", "indexes")


def test_two_processes_at_once(file):
    """Each finds the samples or reads what the other kept, and the index is whole."""
    from recordio.containers.tar import TAR  # found by name in the others

    code = (
        "import sys; from recordio.bytes.files import StoredFile;"
        "from recordio.containers.table import container_of;"
        "from recordio.containers.index import samples_of; f = StoredFile(sys.argv[1]);"
        "[print(len(samples_of(f, container_of(f)))) for _ in range(20)]"
    )
    import tarfile

    with tarfile.open(file, "w") as archive:
        for number in range(200):
            for ending in ("jpg", "cls"):
                archive.addfile(tarfile.TarInfo(f"{number}.{ending}"))
    words = [sys.executable, "-c", code, str(file)]
    others = [
        subprocess.Popen(words, stdout=subprocess.PIPE, cwd=PACKAGES, text=True) for _ in range(3)
    ]
    for other in others:
        assert set(other.communicate()[0].split()) == {"200"} and other.returncode == 0
    version = [f"{TAR.name}, rules {TAR.rules}", *StoredFile(str(file)).version()]
    assert len(index._read(str(kept(file)), version)) == 200
    assert len(os.listdir(file.parent)) == 2


# -- shards that are not what they were -----------------------------------------------------------


def tars(folder, count=3):
    import io
    import tarfile

    for shard in range(count):
        with tarfile.open(folder / f"s-{shard}.tar", "w") as archive:
            for number in range(4):
                for ending, content in (("jpg", b"j" * (100 * shard + 9)), ("cls", b"1")):
                    info = tarfile.TarInfo(f"{shard}{number}.{ending}")
                    info.size = len(content)
                    archive.addfile(info, io.BytesIO(content))
    return str(folder / "s-{0..2}.tar")


def test_a_missing_shard_is_named(tmp_path):
    pattern = tars(tmp_path)
    assert sum(map(len, open_listed(pattern))) == 12
    (tmp_path / "s-1.tar").unlink()
    with pytest.raises(OSError, match=r"s-1\.tar"):
        open_listed(pattern)


def test_a_shard_that_is_cut_is_named(tmp_path):
    pattern = tars(tmp_path)
    open_listed(pattern)
    os.truncate(tmp_path / "s-2.tar", 2000)
    with pytest.raises(RecordIOError, match=r"s-2\.tar.*damaged at offset"):
        open_listed(pattern)
    packs = open_listed(pattern, skip_errors=True)
    assert [len(pack) for pack in packs] == [4, 4, 2]


def test_a_replaced_shard_is_read_anew(tmp_path):
    pattern = tars(tmp_path)
    open_listed(pattern)
    os.replace(tmp_path / "s-2.tar", tmp_path / "s-0.tar")
    tars(tmp_path, 0)
    (pack,) = open_listed(str(tmp_path / "s-0.tar"))
    assert bytes(pack.reader.content(3)) == b"j" * 209


def test_a_shard_that_changes_while_it_is_opened_is_named(tmp_path):
    pack = open_listed(tars(tmp_path))[0]
    assert isinstance(pack.reader, ContainedRecords)
    os.replace(tmp_path / "s-2.tar", tmp_path / "s-0.tar")
    with pytest.raises(RecordIOError, match=r"s-0\.tar.*changed while it was open"):
        pack.record(0)


def test_a_shard_that_is_cut_while_it_is_read_is_named(tmp_path):
    pack = open_listed(tars(tmp_path))[2]
    assert len(pack.record(3)) > 200
    os.truncate(tmp_path / "s-2.tar", 512)
    with pytest.raises(RecordIOError, match=r"s-2\.tar, .*record 3.*became shorter"):
        pack.record(3)


def test_the_cache_folder_is_made_for_files_on_servers(tmp_path, monkeypatch):
    monkeypatch.setenv("RECORDIO_INDEX_CACHE", str(tmp_path / "new" / "folder"))
    paths = index_paths(StoredFile("s3://b/a.tar"))
    assert index.write_beside_or_cached(paths, [b"some ", b"bytes"]) == paths[0]
    assert Path(paths[0]).read_bytes() == b"some bytes"
