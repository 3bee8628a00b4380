"""Record files written to a server: whole or not at all, in parts, with and without faults."""

import threading

import pytest

import recordio
from recordio.bytes.remote import output
from recordio.bytes.remote.output import RemoteOutput
from recordio.bytes.remote.settings import RemoteSettings
from recordio.errors import RecordIOError, RemoteFileError

SECRET = "hunter2-hunter2"
URL, INDEX = "s3://bucket/sets/a.rec", "s3://bucket/sets/a.idx"
PACK, PACK_INDEX = "bucket/sets/a.rec", "bucket/sets/a.idx"
PART = 1 << 19


@pytest.fixture
def library(request):
    pytest.importorskip("obstore" if request.param == "obstore" else "s3fs")
    return request.param


both = pytest.mark.parametrize("library", ["obstore", "fsspec"], indirect=True)


@pytest.fixture
def access(server, library, monkeypatch):
    """How to reach the server of the test, with parts that are small."""
    monkeypatch.setattr(output, "PART", PART)
    options = {
        "endpoint_url": server.url, "access_key_id": "me", "secret_access_key": SECRET,
        "region": "us-east-1", "library": library,
    }  # fmt: skip
    return {"remote_timeout": 10, "remote_options": options}


def fill(writer, count=30, size=100_000):
    for i in range(count):
        writer.write(bytes([i]) * size, key=2 * i)


def local_files(tmp_path, **given):
    path = tmp_path / "a.rec"
    with recordio.RecordWriter(path, path.with_suffix(".idx"), **given) as writer:
        fill(writer)
    return path


@both
@pytest.mark.parametrize("count", [0, 1, 30])
def test_bytes_are_those_of_the_local_writer(server, access, tmp_path, count):
    path = tmp_path / "a.rec"
    for target, index, given in ((path, path.with_suffix(".idx"), {}), (URL, INDEX, access)):
        with recordio.RecordWriter(target, index, **given) as writer:
            fill(writer, count)
            assert PACK not in server.objects and PACK_INDEX not in server.objects
    assert server.objects[PACK] == path.read_bytes()
    assert server.objects[PACK_INDEX] == path.with_suffix(".idx").read_bytes()
    assert server.written("part", PACK) == (6 if count == 30 else 0) and not server.uploads


@both
def test_records_larger_than_a_part(server, access, tmp_path):
    with recordio.RecordWriter(URL, **access) as writer:
        writer.write(b"x" * (5 * PART + 3))
        writer.write(b"y")
    with recordio.RecordReader(URL, **access, remote_cache=tmp_path) as reader:
        assert [len(record) for record in reader] == [5 * PART + 3, 1]


@both
def test_checksums(server, access, tmp_path):
    path = local_files(tmp_path, checksums=True)
    with recordio.RecordWriter(URL, INDEX, checksums=True, **access) as writer:
        fill(writer)
    assert server.objects["bucket/sets/a.crc"] == path.with_suffix(".crc").read_bytes()
    with recordio.RecordWriter(URL, INDEX, **access) as writer:
        fill(writer)
    assert sorted(server.objects) == [PACK_INDEX, PACK]  # those of the old pack would be wrong


@both
def test_what_is_no_checksums_stays(server, access):
    server.objects["bucket/sets/a.crc"] = b"something else"
    with recordio.RecordWriter(URL, INDEX, **access) as writer:
        fill(writer)
    assert server.objects["bucket/sets/a.crc"] == b"something else"


@both
@pytest.mark.parametrize("leave", ["error", "discard", "drop", "interrupt"])
def test_what_is_given_up_leaves_nothing(server, access, leave):
    server.objects.update({PACK: b"old pack", PACK_INDEX: b"old index"})
    if leave in ("error", "interrupt"):
        kind = KeyboardInterrupt if leave == "interrupt" else RuntimeError
        with pytest.raises(kind), recordio.RecordWriter(URL, INDEX, **access) as writer:
            fill(writer)
            raise kind
    else:
        writer = recordio.RecordWriter(URL, INDEX, **access)
        fill(writer)
        if leave == "discard":
            writer.discard()
        else:
            with pytest.warns(ResourceWarning, match="nothing was written"):
                del writer
    assert server.objects == {PACK: b"old pack", PACK_INDEX: b"old index"}
    assert not server.uploads and server.written("abort") >= server.written("begin")


@both
def test_requests_that_fail_are_made_again(server, access, tmp_path):
    path, failed = local_files(tmp_path), set()

    def fails(kind, path, part):
        if (kind, path, part) in failed:
            return None
        failed.add((kind, path, part))
        return 503

    server.fails = fails
    with recordio.RecordWriter(URL, INDEX, **access) as writer:
        fill(writer)
    assert server.objects[PACK] == path.read_bytes()
    assert server.objects[PACK_INDEX] == path.with_suffix(".idx").read_bytes()
    assert len(failed) >= 7 and not server.uploads


@both
@pytest.mark.parametrize("what", ["part", "complete"])
@pytest.mark.parametrize("status", [503, 403])
def test_uploads_that_fail_leave_nothing(server, access, what, status):
    server.objects.update({PACK: b"old pack", PACK_INDEX: b"old index"})
    server.fails = lambda kind, path, part: status if kind == what and part in (0, 2) else None
    access["remote_timeout"] = 3
    with pytest.raises(RemoteFileError, match="cannot be written") as caught:
        with recordio.RecordWriter(URL, INDEX, **access) as writer:
            fill(writer)
    assert str(caught.value).startswith(f"{URL}: ") and SECRET not in str(caught.value)
    assert server.objects == {PACK: b"old pack", PACK_INDEX: b"old index"} and not server.uploads


@both
def test_an_index_never_stands_beside_another_pack(server, access):
    server.objects.update({PACK: b"old pack", PACK_INDEX: b"old index"})
    seen = []

    def note(kind, path, part):
        seen.append((server.objects.get(PACK), server.objects.get(PACK_INDEX)))

    server.fails = note
    with recordio.RecordWriter(URL, INDEX, **access) as writer:
        fill(writer)
    new = server.objects[PACK], server.objects[PACK_INDEX]
    seen.append(new)
    assert {pair for pair in seen if None not in pair} == {(b"old pack", b"old index"), new}
    assert all(pack is not None for pack, _ in seen)
    assert sorted(server.objects) == [PACK_INDEX, PACK]


@both
def test_an_index_that_cannot_be_written_is_said(server, access):
    server.fails = lambda kind, path, part: 403 if path == PACK_INDEX and kind == "put" else None
    with pytest.raises(RemoteFileError, match="a.idx"):
        with recordio.RecordWriter(URL, INDEX, **access) as writer:
            fill(writer)
    assert list(server.objects) == [PACK]


@both
def test_giving_up_does_not_wait_for_a_server_that_hangs(server, access):
    arrived = threading.Event()

    def fails(kind, path, part):
        if kind == "part":
            arrived.set()
            return "hang"
        return None

    server.fails = fails
    output = RemoteOutput(URL, INDEX, settings=RemoteSettings(**access))
    output.write(b"x" * (2 * PART))
    assert arrived.wait(60)
    output.discard()
    assert server.written("abort") and not server.objects and not server.uploads
    server.released.set()


def test_the_memory_of_an_upload_is_bounded(monkeypatch):
    monkeypatch.setattr(output, "PART", PART)
    let_go, begun, held = threading.Event(), threading.Event(), []

    class Slow:
        def write(self, part):
            held.append(len(part))
            begun.set()
            let_go.wait(60)

        def finish(self, rest):
            held.append(len(rest))

        def interrupt(self):
            let_go.set()

        def abort(self):
            pass

    monkeypatch.setattr(output, "part_writer", lambda url, settings: Slow())
    upload = output.Upload("s3://bucket/a", RemoteSettings())
    taken = []

    def produce():
        for _ in range(100):
            taken.append(upload.write(b"x" * PART))

    producer = threading.Thread(target=produce, daemon=True)
    producer.start()
    assert begun.wait(60)
    producer.join(0.2)
    assert len(taken) <= 2 and held == [PART]  # one under way, one waits, one is being handed over
    let_go.set()
    producer.join()
    upload.publish()
    assert held == [PART] * 100 + [0]


def test_objects_have_so_many_parts_at_most(monkeypatch):
    pytest.importorskip("fsspec")
    monkeypatch.setattr(output, "PART", 10)
    monkeypatch.setattr(output, "MOST_PARTS", 3)
    upload = output.Upload("memory://packs/large", RemoteSettings())
    with pytest.raises(RemoteFileError, match="recordio shard"):
        upload.write(b"x" * 50)
    upload.discard()


def test_other_libraries_write_as_well():
    files = pytest.importorskip("fsspec").filesystem("memory")
    with recordio.RecordWriter("memory://new/a.rec", "memory://new/a.idx") as writer:
        fill(writer)
        assert not files.exists("/new/a.rec")
    assert files.cat("/new/a.idx").startswith(b"0\t0\n2\t")
    with pytest.raises(RuntimeError), recordio.RecordWriter("memory://new/a.rec") as writer:
        writer.write(b"a")
        raise RuntimeError
    assert files.size("/new/a.rec") > 300_000


def test_what_is_refused(server, tmp_path):
    with pytest.raises(RemoteFileError, match="cannot be appended.*write another"):
        recordio.RecordWriter(URL, append=True)
    with pytest.raises(RemoteFileError, match="only read"):
        recordio.RecordWriter(f"{server.url}/a.rec", remote_timeout=0.5)
    with pytest.raises(RecordIOError, match="give URLs for both"):
        recordio.RecordWriter("memory://a/a.rec", tmp_path / "a.idx")
    with pytest.raises(RecordIOError, match="given twice"):
        RemoteOutput("memory://a/a.rec", "memory://a/a.rec")
    with pytest.raises(RemoteFileError, match="no library for it"):
        recordio.RecordWriter("nope://a/a.rec")
    assert not list(tmp_path.iterdir())


def test_a_forked_child_neither_writes_nor_aborts(monkeypatch):
    pytest.importorskip("fsspec")
    writer = recordio.RecordWriter("memory://fork/a.rec")
    monkeypatch.setattr(writer._output, "_owner", -1)
    with pytest.raises(RuntimeError, match="forked process must open its own"):
        writer.write(b"a")
    monkeypatch.undo()
    writer.discard()
