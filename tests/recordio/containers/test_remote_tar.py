"""Tar files on servers: samples are found in ranges, and contents come through the mirror."""

import numpy as np
import pytest
from made_tars import dali_index, images, same, tar
from range_server import RangeServer

from iterators import ImageRecordIter
from iterators.testing import encode_jpeg, noise
from recordio.bytes.files import StoredFile
from recordio.bytes.remote.block_table import BLOCK
from recordio.bytes.remote.settings import RemoteSettings
from recordio.containers.tar import scan
from recordio.errors import RecordIOError, RemoteFileError
from recordio.packs.open_pack import open_listed


@pytest.fixture(params=["obstore", "fsspec"])
def library(request):
    pytest.importorskip("obstore" if request.param == "obstore" else "aiohttp")
    return request.param


@pytest.fixture(autouse=True)
def no_older_indexes(tmp_path, monkeypatch):
    monkeypatch.setenv("RECORDIO_INDEX_CACHE", str(tmp_path / "indexes"))


@pytest.fixture
def server():
    server = RangeServer()
    yield server
    server.stop()


@pytest.fixture
def keywords(tmp_path, library):
    return {
        "remote_cache": tmp_path / "mirrors",
        "remote_timeout": 20,
        "remote_options": {"library": library},
    }


def local(tmp_path, data):
    path = tmp_path / "local.tar"
    path.write_bytes(data)
    return scan(StoredFile(str(path)))


@pytest.mark.parametrize("size", [100, 40_000, 300_000])
def test_samples_of_small_files_come_in_large_ranges(server, keywords, tmp_path, size):
    data = server.objects["a.tar"] = images(12_000_000 // (size + 2000), size)
    found = scan(StoredFile(f"{server.url}/a.tar"), RemoteSettings(**keywords))
    same(found, local(tmp_path, data))
    assert len(server.requests) < len(data) / BLOCK


def test_of_large_files_only_the_ranges_of_headers_come(server, keywords, tmp_path):
    data = server.objects["a.tar"] = images(16, 1_500_000)
    found = scan(StoredFile(f"{server.url}/a.tar"), RemoteSettings(**keywords))
    same(found, local(tmp_path, data))
    assert sum(end - begin for _, begin, end in server.requests) < len(data) * 0.45


def test_damage_on_a_server_is_that_of_the_file(server, keywords, tmp_path):
    data = bytearray(images(60, 20_000))
    data[data.index(b"00050.cls")] ^= 1
    server.objects["a.tar"] = bytes(data)
    server.objects["b.tar"] = bytes(data[:700_000])
    for name in ("a.tar", "b.tar"):
        found = scan(StoredFile(f"{server.url}/{name}"), RemoteSettings(**keywords))
        same(found, local(tmp_path, server.objects[name]))
        assert found.damage
        with pytest.raises(RecordIOError, match=rf"{name}.*damaged at offset"):
            open_listed(f"{server.url}/{name}", settings=RemoteSettings(**keywords))


def shards(count):
    rng = np.random.default_rng(0)
    found = {}
    for shard in range(count):
        files = []
        for i in range(20):
            side = int(rng.integers(40, 120))
            files.append(
                (f"{shard}/{i:03d}.jpg", encode_jpeg(noise(side, side + 7, 99 * shard + i)))
            )
            files.append((f"{shard}/{i:03d}.cls", b"%d" % (i % 5)))
        found[f"set-{shard:02d}.tar"] = tar(*files)
    return found


def epochs(path, **keywords):
    with ImageRecordIter(
        path_imgrec=path, data_shape=(3, 24, 24), batch_size=7, shuffle=True, rand_crop=True,
        seed=4, verbose=False, preprocess_threads=2, **keywords,
    ) as it:  # fmt: skip
        return [
            (b.data[0].tobytes(), b.label[0].tobytes(), b.index.tolist(), b.pad)
            for _ in range(2)
            for b in it
        ]


@pytest.mark.parametrize("more", [{}, {"remote_cache_size": 64 * BLOCK}, {"cache": "ram"}])
def test_batches_are_those_of_the_local_files(server, keywords, tmp_path, more):
    server.objects.update(shards(4))
    for name, data in server.objects.items():
        (tmp_path / name).write_bytes(data)
    wanted = epochs(str(tmp_path / "set-{00..03}.tar"))
    pattern = f"{server.url}/set-{{00..03}}.tar"
    assert epochs(pattern, **keywords, **more) == wanted
    del server.requests[:]
    assert epochs(pattern, **keywords, **more) == wanted  # by the kept indexes


def test_an_object_that_changed_is_named(server, keywords, tmp_path):
    server.objects["a.tar"] = images(30, 3000)
    settings = RemoteSettings(**keywords)
    (pack,) = open_listed(f"{server.url}/a.tar", settings=settings)
    assert len(pack) == 30
    pack.close()
    server.objects["a.tar"] = images(31, 3000, first=7)
    (pack,) = open_listed(
        f"{server.url}/a.tar",
        settings=RemoteSettings(**{**keywords, "remote_cache": tmp_path / "others"}),
    )
    assert len(pack) == 31 and pack.samples.labels[0] == 7


def test_a_missing_object_is_named(server, keywords):
    server.objects.update(shards(2))
    del server.objects["set-01.tar"]
    with pytest.raises(RemoteFileError, match=r"set-01\.tar"):
        open_listed(f"{server.url}/set-{{00..01}}.tar", settings=RemoteSettings(**keywords))


# -- indexes of DALI ----------------------------------------------------------------------------


def test_an_index_of_dali_saves_the_headers(server, keywords, tmp_path, caplog):
    data = server.objects["a.tar"] = images(16, 1_500_000)
    server.objects["a.idx"] = dali_index(data)
    found = scan(StoredFile(f"{server.url}/a.tar"), RemoteSettings(**keywords))
    same(found, local(tmp_path, data))
    assert not caplog.records
    server.objects["a.idx"] = dali_index(images(16, 1_400_000))
    other = RemoteSettings(**{**keywords, "remote_cache": tmp_path / "others"})
    same(scan(StoredFile(f"{server.url}/a.tar"), other), found)
    assert "a.idx: is not used" in caplog.text
