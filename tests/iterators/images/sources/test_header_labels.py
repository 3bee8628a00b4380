"""Labels of packs on servers equal those of the local file; of large records heads are read."""

import os
from pathlib import Path

import numpy as np
import pytest
from range_server import RangeServer

import recordio
from iterators.images.sources.record_source import RecordSource
from iterators.testing import write_pack
from recordio.bytes.remote.block_table import BLOCK, HAS_LOCKS
from recordio.bytes.remote.heads import MOST_GAP
from recordio.bytes.remote.settings import RemoteSettings
from recordio.errors import RemoteFileError

COUNT = 60
MAGIC = b"\x0a\x23\xd7\xce"


def label_of(key, rng):
    """One number, none, objects, objects with nonsense, and more values than a head has."""
    if key % 5 == 0:
        return float(key)
    if key == 31:
        return [2, 5, *np.float32([1, 0.1, 0.2, 0.3, 0.4] * 80)]
    if key == 33:
        return [2, 5, *[float("nan")] * 60]
    return [2, 5, *np.float32([key % 3, 0.1, 0.2, 0.3, 0.4] * int(rng.integers(1, 9)))]


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """Records of 100 kB: some in several parts, three damaged, and the last ones tiny."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("pack") / "large.rec"
    with recordio.RecordWriter(path, path.with_suffix(".idx")) as writer:
        for key in range(COUNT):
            content = bytes(rng.integers(0, 255, 100_000 if key < COUNT - 3 else 3, np.uint8))
            if key % 29 == 3:
                content = b"\0" * (-len(content) % 4) + MAGIC * 2 + content
            writer.write(recordio.pack(recordio.IRHeader(0, label_of(key, rng), key, 0), content))
        writer.write(MAGIC * 9)  # parts that hold nothing; they announce more labels than follow
        writer.write(b"short")
    with recordio.RecordReader(path) as reader:
        offset = int(reader.offsets[20])
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)
    return path


@pytest.fixture
def server(pack):
    server = RangeServer()
    for file in (pack, pack.with_suffix(".idx")):
        server.objects[file.name] = file.read_bytes()
    yield server
    server.stop()


@pytest.fixture(params=["whole", pytest.param("bounded", marks=pytest.mark.skipif(
    not HAS_LOCKS, reason="mirrors are bounded on Linux only"))])  # fmt: skip
def there(request, server, tmp_path):
    """Opens the pack on the server."""
    size = 8 * BLOCK if request.param == "bounded" else None

    def open_source():
        settings = RemoteSettings(tmp_path / "mirrors", size, 20)
        return RecordSource.open(f"{server.url}/large.rec", remote=settings)

    return open_source


@pytest.fixture(scope="module")
def here(pack):
    return RecordSource.open(pack, pack.with_suffix(".idx"))


def asked_bytes(server):
    return sum(end - begin for begin, end in server.ranges("large.rec"))


def as_text(found):
    labels, errors = found
    return labels.tobytes(), {number: error.reason for number, error in errors.items()}


def test_first_labels(server, there, here):
    source = there()
    assert as_text(source.labels(on_error="skip")) == as_text(here.labels(on_error="skip"))
    assert asked_bytes(server) < len(server.objects["large.rec"]) / 2  # of odd records all
    assert source.fetched.counters()["bytes"] == asked_bytes(server)
    assert source.fetched.counters()["requests"] == len(server.ranges("large.rec"))


def test_heads_are_kept(server, there, here):
    source = there()
    source.labels(on_error="skip")
    del source
    before = len(server.ranges("large.rec"))
    again = there()
    assert as_text(again.labels(on_error="skip")) == as_text(here.labels(on_error="skip"))
    sizes = [end - begin for begin, end in server.ranges("large.rec")[before:]]
    assert all(size >= BLOCK // 4 for size in sizes)  # blocks of odd records, and no heads


def test_labels_of_a_list(there, here):
    ids = np.arange(0, COUNT, 2, dtype=np.uint64)
    listed = ids, np.stack([ids, ids + 1], 1).astype(np.float32)
    wanted = here.labels(listed, "skip")
    assert as_text(there().labels(listed, "skip")) == as_text(wanted)
    assert np.isnan(wanted[0]).any() and not np.isnan(wanted[0]).all()


def test_labels_of_objects(server, there, here):
    for (place, label), (_, wanted) in zip(
        there().label_vectors(), here.label_vectors(), strict=True
    ):
        assert place["path"] == f"{server.url}/large.rec"
        if isinstance(wanted, Exception):
            assert type(label) is type(wanted) and label.reason == wanted.reason
        else:
            assert type(label) is type(wanted)
            assert np.array_equal(label, wanted, equal_nan=True)
    assert asked_bytes(server) < len(server.objects["large.rec"])


@pytest.mark.parametrize("limit", [7, 12, 32, 1000, 1 << 40])
def test_the_longest_label(server, there, here, limit):
    assert there().longest_label(limit) == here.longest_label(limit)
    assert asked_bytes(server) < len(server.objects["large.rec"])


def test_a_server_that_does_not_answer_is_no_bad_record(server, tmp_path, impatient):
    settings = RemoteSettings(tmp_path / "mirrors", None, 20)
    source = RecordSource.open(f"{server.url}/large.rec", remote=settings)
    server.faults.extend(["503"] * 10_000)
    for read in (
        lambda: source.labels(on_error="skip"),
        lambda: list(source.label_vectors()),
        lambda: source.longest_label(1000),
    ):
        with impatient(0.2), pytest.raises(RemoteFileError, match="remote_timeout"):
            read()
    server.faults.clear()
    folder = Path(source.files[0].remote.mirror.path).parent
    assert not [name for name in os.listdir(folder) if name.startswith("heads")]
    assert len(source.labels(on_error="skip")[1]) == 3


def test_what_stands_close_comes_by_one_request(server, tmp_path, pack):
    """Records that are large on average, most of which are small."""
    sizes = [1_000_000 if key % 10 == 0 else MOST_GAP // 2 for key in range(40)]
    path = write_pack(tmp_path / "mixed.rec", map(bytes, sizes))
    for file in (path, path.with_suffix(".idx")):
        server.objects[file.name] = file.read_bytes()
    source = RecordSource.open(
        f"{server.url}/mixed.rec", remote=RemoteSettings(tmp_path / "mirrors", None, 20)
    )
    first = len(server.ranges("mixed.rec"))
    assert source.labels()[0].tolist() == list(range(40))
    assert len(server.ranges("mixed.rec")) - first <= 8


def test_small_records_come_with_their_blocks(server, tmp_path):
    path = write_pack(tmp_path / "small.rec", [bytes(5000)] * 500)
    for file in (path, path.with_suffix(".idx")):
        server.objects[file.name] = file.read_bytes()
    source = RecordSource.open(
        f"{server.url}/small.rec", remote=RemoteSettings(tmp_path / "mirrors", None, 20)
    )
    assert source.labels()[0].tolist() == list(range(500))
    assert len(server.ranges("small.rec")) <= 3 and source.files[0].remote.mirror.complete
