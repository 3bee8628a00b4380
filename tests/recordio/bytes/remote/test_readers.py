"""Readers over URLs: every way to read gives what it gives for the local file."""

import os
import pickle

import numpy as np
import pytest

import recordio
from recordio import RecordReader, RecordWriter
from recordio.bytes.remote.block_table import BLOCK, HAS_LOCKS
from recordio.errors import IndexFileError, RemoteFileError, RemoteMissingError

COUNT = 120


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """A file of 4 MB of large, small, empty and escaped records; their keys are shuffled."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("pack") / "a.rec"
    keys = rng.permutation(COUNT)
    with RecordWriter(path, path.with_suffix(".idx")) as writer:
        for key in keys.tolist():
            size = int(rng.choice([0, 5, 3000, 70_000]))
            record = rng.bytes(size) + (b"\x0a\x23\xd7\xce" * 3 if key % 3 == 0 else b"")
            writer.write(record, key=key)
    return path


@pytest.fixture
def url(server, pack):
    for name in ("a.rec", "a.idx"):
        server.objects[name] = pack.with_name(name).read_bytes()
    return f"{server.url}/a.rec"


@pytest.fixture(params=["whole", pytest.param("bounded", marks=pytest.mark.skipif(
    not HAS_LOCKS, reason="mirrors are bounded on Linux only"))])  # fmt: skip
def keywords(request, settings):
    size = {} if request.param == "whole" else {"remote_cache_size": 6 * BLOCK}
    return vars(settings(**size))


def test_records_by_position_and_key(url, pack, keywords):
    index = url.replace(".rec", ".idx")
    with (
        RecordReader(url, index, **keywords) as found,
        RecordReader(pack, pack.with_suffix(".idx")) as wanted,
    ):
        assert len(found) == len(wanted) == COUNT
        assert np.array_equal(found.keys, wanted.keys)
        order = np.random.default_rng(1).permutation(COUNT).tolist()
        for i in order:
            assert bytes(found[i]) == bytes(wanted[i])
            assert bytes(found.by_key(i)) == bytes(wanted.by_key(i))
        assert found[-3:] == wanted[-3:]
        assert found.read_many(order * 5) == wanted.read_many(order * 5)
        assert found.read_many([-1, 3], copy=True) == wanted.read_many([-1, 3], copy=True)
        assert list(found) == list(wanted)
        for bad in (COUNT, -COUNT - 1):
            with pytest.raises(IndexError):
                found[bad]
            with pytest.raises(IndexError):
                found.read_many([0, bad])


def test_records_in_the_order_of_the_file(server, url, pack, keywords):
    del server.objects["a.idx"]
    with RecordReader(url, **keywords) as found, RecordReader(pack) as wanted:
        assert [bytes(record) for record in found] == list(wanted)
        record, end = found.read_at(0)
        assert (bytes(record), end) == (bytes(wanted[0]), wanted.offsets[1])
        assert found.read_at(pack.stat().st_size) == (None, pack.stat().st_size)


def test_reading_in_order_takes_few_requests(server, url, pack, settings):
    with RecordReader(url, **vars(settings())) as found:
        assert sum(map(len, found)) > 0
    assert len(server.ranges("a.rec")) <= 3


def test_the_index_beside_the_file(server, url, pack, keywords):
    with RecordReader(url, **keywords) as found, RecordReader(pack) as wanted:
        assert np.array_equal(found.offsets, wanted.offsets)
        assert bytes(found[7]) == bytes(wanted[7])


def test_no_index(server, url, settings):
    del server.objects["a.idx"]
    with RecordReader(url, **vars(settings())) as reader:
        with pytest.raises(IndexFileError, match=f"`recordio index {url}` makes it"):
            len(reader)
    # Its beginning, for it might be a file of another kind.
    assert [begin for begin, _ in server.ranges("a.rec")] == [0]


def test_indexes_that_do_not_belong(server, url, settings):
    server.objects["a.idx"] = b"0\t0\n1\t99999996\n"
    with pytest.raises(IndexFileError, match="99999996 lies outside http"):
        len(RecordReader(url, **vars(settings())))
    with pytest.raises(IndexFileError, match="99999996 lies outside http"):
        RecordReader(url, url.replace(".rec", ".idx"), **vars(settings()))
    server.objects["a.idx"] = b"0\t0\nx\n"
    for index in (url.replace(".rec", ".idx"), None):
        with pytest.raises(IndexFileError, match=r"a.idx, line 2") as caught:
            len(RecordReader(url, index, **vars(settings())))
        assert "mirrors" not in str(caught.value)


def test_missing_files(server, url, settings):
    for missing in (url.replace("a.rec", "b.rec"), f"{server.url}/deeper/a.rec"):
        with pytest.raises(RemoteMissingError, match="no such object"):
            RecordReader(missing, **vars(settings()))


@pytest.mark.skipif(not HAS_LOCKS, reason="mirrors are bounded on Linux only")
def test_a_closed_reader_makes_room_for_others(url, pack, settings):
    with RecordReader(url, **vars(settings())) as closed:
        there = bytes(closed[5])
        record = closed[5]
    for use in (lambda: closed[5], lambda: closed.read_at(0), lambda: closed.read_many([5])):
        with pytest.raises(ValueError, match="closed"):
            use()
    assert bytes(record) == there
    del record
    with RecordReader(url, **vars(settings(remote_cache_size=3 * BLOCK))) as found:
        assert not found.remote.resident
        with RecordReader(pack) as wanted:
            assert list(found) == list(wanted)
        assert found.remote.counters()["evicted"] > 0


def test_readers_are_pickled_with_their_settings(url, pack, keywords):
    with RecordReader(url, url.replace(".rec", ".idx"), **keywords) as reader:
        again = pickle.loads(pickle.dumps(reader))
        assert bytes(again[5]) == bytes(reader[5])
        assert again.remote.mirror.folder.path == os.fspath(keywords["remote_cache"])


def test_damage_is_named_by_url_and_offset(server, url, pack, settings):
    content = bytearray(server.objects["a.rec"])
    with RecordReader(pack) as wanted:
        offset = int(wanted.offsets[11])
    content[offset] ^= 1
    server.objects["a.rec"] = bytes(content)
    with RecordReader(url, **vars(settings())) as reader:
        with pytest.raises(recordio.CorruptRecordError) as caught:
            reader[11]
    assert (caught.value.path, caught.value.offset, caught.value.record) == (url, offset, 11)


def test_checksums_of_remote_files(server, url, pack, settings):
    recordio.write_checksums(pack)
    server.objects["a.crc"] = pack.with_suffix(".crc").read_bytes()
    with RecordReader(url, verify=True, **vars(settings())) as found, RecordReader(pack) as wanted:
        assert list(found) == list(wanted)
    content = bytearray(server.objects["a.rec"])
    with RecordReader(pack) as wanted:
        largest = int(np.argmax(np.diff(wanted.offsets)))
        content[int(wanted.offsets[largest]) + 100] ^= 1
    server.objects["a.rec"] = bytes(content)
    with RecordReader(url, verify=True, **vars(settings())) as reader:
        with pytest.raises(recordio.ChecksumError):
            reader[largest]


def test_urls_with_signatures_are_not_shown(server, url, settings):
    reader = RecordReader(f"{url}?sig=SECRET", f"{url}?sig=SECRET".replace(".rec", ".idx"),
                          **vars(settings()))  # fmt: skip
    assert bytes(reader[0]) is not None
    assert "SECRET" not in repr(reader) + reader.path + reader.index_path


def test_local_urls_are_paths(pack, tmp_path):
    with RecordReader(pack.as_uri()) as reader:
        assert reader.path == str(pack) and reader.remote is None and len(reader) == COUNT


def test_what_needs_all_of_a_file(server, url, pack, settings, monkeypatch):
    monkeypatch.setenv("RECORDIO_REMOTE_CACHE", str(settings().remote_cache))
    monkeypatch.setenv("XDG_CACHE_HOME", "/nowhere")
    assert recordio.verify(url).ok == recordio.verify(pack).ok


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_children_read_what_is_there_and_fetch_nothing(url, settings):
    reader = RecordReader(url, url.replace(".rec", ".idx"), **vars(settings()))
    there = bytes(reader[0])
    middle = int(np.argsort(reader.offsets)[COUNT // 2])  # opening looks at the last one
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if bytes(reader[0]) == there:
                try:
                    reader[middle]
                except RuntimeError as error:
                    status = 0 if "spawn" in str(error) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_unknown_keywords_are_refused(pack):
    said = r"^RecordReader\(\) has no parameter 'remote_cash'; did you mean 'remote_cache'"
    with pytest.raises(TypeError, match=said):
        RecordReader(pack, remote_cash="x")


def test_failures_while_reading(server, url, settings, impatient):
    reader = RecordReader(url, url.replace(".rec", ".idx"), **vars(settings()))
    server.faults.extend(["503"] * 1000)
    with impatient(0.2), pytest.raises(RemoteFileError, match="remote_timeout"):
        reader.read_many(range(COUNT))
    server.faults.clear()
    assert len(reader.read_many(range(COUNT))) == COUNT


def test_readers_of_mxnet(server, url, pack, monkeypatch, tmp_path, library):
    monkeypatch.setenv("RECORDIO_REMOTE_CACHE", str(tmp_path / "mirrors"))
    with recordio.MXRecordIO(url, "r") as found, recordio.MXRecordIO(str(pack), "r") as wanted:
        assert list(found) == list(wanted)
        assert found.read() is None
    assert len(server.ranges("a.rec")) <= 3
    for kind in (int, str):
        index = str(pack.with_suffix(".idx"))
        with (
            recordio.MXIndexedRecordIO(url.replace(".rec", ".idx"), url, "r", kind) as found,
            recordio.MXIndexedRecordIO(index, str(pack), "r", kind) as wanted,
        ):
            assert found.keys == wanted.keys
            for key in found.keys[::7]:
                assert found.read_idx(key) == wanted.read_idx(key)
                assert found.read() == wanted.read()
