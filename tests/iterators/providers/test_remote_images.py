"""Image providers and datasets over URLs: batches equal those of the local files to the byte."""

import pickle

import cv2
import numpy as np
import pytest
from range_server import RangeServer

from iterators import CSVIter, ImageDetRecordIter, ImageIter, ImageRecordIter, LibSVMIter, Pack
from iterators.datasets import ImageRecordDataset, RecordDataset, TextDataset
from iterators.mx_image import ImageDetIter
from iterators.testing import box_label, encode, write_faces, write_pack
from recordio.bytes.remote.block_table import BLOCK, HAS_LOCKS
from recordio.errors import RemoteChangedError, RemoteFileError

COUNT = 90
SHAPE = (3, 40, 40)
needs_locks = pytest.mark.skipif(not HAS_LOCKS, reason="mirrors are bounded on Linux only")


def contents(seed):
    rng = np.random.default_rng(seed)
    for _ in range(COUNT):
        side = int(rng.integers(48, 200))
        pixels = rng.integers(0, 256, (side, side + 9, 3)).astype(np.uint8)
        yield encode(pixels, ".jpg", cv2.IMWRITE_JPEG_QUALITY, 95)


@pytest.fixture(scope="module")
def packs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packs")
    return [
        write_pack(folder / "a.rec", contents(0), lambda key: key % 7),
        write_pack(folder / "b.rec", contents(1), lambda key: key % 7),
        write_faces(folder / "faces.rec", [30] * 3, contents(2)),
    ]


@pytest.fixture(params=["obstore", "fsspec"])
def library(request):
    pytest.importorskip("obstore" if request.param == "obstore" else "aiohttp")
    return request.param


@pytest.fixture
def server(packs):
    server = RangeServer()
    for path in packs:
        for file in (path, path.with_suffix(".idx")):
            server.objects[file.name] = file.read_bytes()
    yield server
    server.stop()


@pytest.fixture
def remote(tmp_path, library):
    return {
        "remote_cache": tmp_path / "mirrors",
        "remote_timeout": 20,
        "remote_options": {"library": library},
    }


def settings(**changed):
    base = {"data_shape": SHAPE, "batch_size": 8, "rand_crop": True, "rand_mirror": True}
    return {**base, "preprocess_threads": 2, "verbose": False, **changed}


def epochs(provider, count=2):
    """What a few epochs deliver."""
    return [
        [(b.data[0].tobytes(), b.label[0].tobytes(), b.index.tobytes(), b.pad) for b in provider]
        for _ in range(count)
    ]


@pytest.mark.parametrize(
    "keywords",
    [
        {"shuffle": True, "seed": 3},
        {"shuffle": False},
        {"shuffle": True, "num_parts": 3, "part_index": 1},
        {"num_parts": 3, "part_index": 2},
        {"shuffle": True, "shuffle_chunk_size": 1, "shuffle_chunk_seed": 5},
        {"weights": {k: float(k % 3) for k in range(7)}},
        {"images_per_class": 2},
        {"shuffle": True, "cache": "ram", "resize": 44},
        {"mean_img": "mean.bin"},
    ],
    ids=lambda keywords: "-".join(keywords),
)
def test_batches_are_those_of_the_local_file(server, packs, remote, keywords, tmp_path):
    if "mean_img" in keywords:
        keywords = {"mean_img": tmp_path / "mean.bin"}
    with ImageRecordIter(path_imgrec=f"{server.url}/a.rec", **settings(**keywords, **remote)) as it:
        found = epochs(it)
    if "mean_img" in keywords:
        (tmp_path / "mean.bin").unlink()
    with ImageRecordIter(path_imgrec=packs[0], **settings(**keywords)) as it:
        assert epochs(it) == found


def test_the_index_that_is_named_counts(server, packs, remote):
    keywords = settings(shuffle=False, num_parts=2, part_index=1)
    url = f"{server.url}/a.rec"
    with ImageRecordIter(
        path_imgrec=url, path_imgidx=f"{server.url}/a.idx", **keywords, **remote
    ) as it:
        found = epochs(it, 1)
    with ImageRecordIter(
        path_imgrec=packs[0], path_imgidx=packs[0].with_suffix(".idx"), **keywords
    ) as it:
        assert epochs(it, 1) == found


def test_face_packs(server, packs, remote):
    url = f"{server.url}/faces.rec"
    for index in ("", f"{server.url}/faces.idx"):
        with ImageRecordIter(
            path_imgrec=url, path_imgidx=index, **settings(shuffle=True), **remote
        ) as it:
            assert it.num_samples == COUNT and len(it.identities) == 3
            found = epochs(it, 1)
    with ImageRecordIter(path_imgrec=packs[2], **settings(shuffle=True)) as it:
        assert epochs(it, 1) == found


def test_several_files_and_packs(server, packs, remote):
    for there in (
        [f"{server.url}/a.rec", str(packs[1])],
        [Pack(f"{server.url}/a.rec", share=0.4), Pack(f"{server.url}/b.rec", share=0.6)],
    ):
        here = [
            Pack(packs[i], share=p.share) if isinstance(p, Pack) else packs[i]
            for i, p in enumerate(there)
        ]
        with ImageRecordIter(path_imgrec=there, **settings(shuffle=True), **remote) as it:
            found = epochs(it)
        with ImageRecordIter(path_imgrec=here, **settings(shuffle=True)) as it:
            assert epochs(it) == found


def test_runs_go_on_here_and_there(server, packs, remote):
    """A state of the local file is one of the remote file, in the middle of an epoch as well."""
    keywords = settings(shuffle=True, seed=9)
    with ImageRecordIter(path_imgrec=packs[0], **keywords) as it:
        whole = epochs(it)
    with ImageRecordIter(path_imgrec=f"{server.url}/a.rec", **keywords, **remote) as it:
        for _ in range(5):
            it.next()
        state = it.state_dict()
        it.reset()
        assert epochs(it, 1)[0] == whole[1]
    for path, more in ((packs[0], {}), (f"{server.url}/a.rec", remote)):
        with ImageRecordIter(path_imgrec=path, **keywords, **more) as it:
            it.load_state_dict(state)
            assert epochs(it) == [whole[0][5:], whole[1]]


@needs_locks
@pytest.mark.parametrize("chunks", [0, 1])
def test_packs_larger_than_the_cache(server, packs, remote, chunks):
    size = packs[0].stat().st_size // 3
    keywords = settings(shuffle=True, shuffle_chunk_size=chunks, batch_size=4)
    url = f"{server.url}/a.rec"
    if chunks:
        it = ImageRecordIter(path_imgrec=url, remote_cache_size=size, **keywords, **remote)
    else:
        with pytest.warns(UserWarning, match="shuffle_chunk_size") as caught:
            it = ImageRecordIter(path_imgrec=url, remote_cache_size=size, **keywords, **remote)
        assert "GB in all" in str(caught[0].message)
    with it:
        found = epochs(it)
        assert it.stats()["remote_evicted"] > 0
    with ImageRecordIter(path_imgrec=packs[0], **keywords) as it:
        assert epochs(it) == found


@needs_locks
def test_what_is_closed_makes_room_for_others(server, packs, remote):
    keywords = settings(shuffle=True, shuffle_chunk_size=1, batch_size=4)
    url, size = f"{server.url}/a.rec", packs[0].stat().st_size // 3
    closed = ImageRecordIter(path_imgrec=url, **keywords, **remote)
    wanted, chosen = epochs(closed), closed.iterator(mode="sequential", batch_size=4)
    next(chosen)
    closed.close()
    with ImageRecordIter(path_imgrec=url, remote_cache_size=size, **keywords, **remote) as it:
        assert epochs(it) == wanted
        assert it.stats()["remote_evicted"] > 0
    assert closed.stats()["remote_requests"] > 0 == closed.stats()["remote_evicted"]
    closed.reset()
    for provider in (closed, chosen):
        with pytest.raises(ValueError, match="the provider is closed"):
            next(provider)


def test_the_second_epoch_asks_for_nothing(server, remote):
    with ImageRecordIter(
        path_imgrec=f"{server.url}/a.rec", **settings(shuffle=True), **remote
    ) as it:
        epochs(it, 1)
        stats = it.stats()
        size = len(server.objects["a.rec"])
        assert stats["remote_bytes"] <= size < stats["remote_bytes"] + 3 * BLOCK
        assert 0 < stats["remote_requests"] <= len(server.ranges("a.rec"))
        asked = len(server.requests)
        epochs(it, 1)
        assert len(server.requests) == asked
        assert it.stats()["remote_misses"] == stats["remote_misses"]


@pytest.mark.parametrize(
    "keywords", [{"weights": {k: k + 1.0 for k in range(5)}}, {"images_per_class": 2}]
)
def test_labels_of_large_records_are_read_without_the_images(server, tmp_path, remote, keywords):
    jpeg = encode(np.zeros((50, 50, 3), np.uint8), ".jpg")
    contents = [jpeg.ljust(100_000, b"\0")] * 40  # what follows a JPEG image does not count
    path = write_pack(tmp_path / "large.rec", contents, lambda key: key % 5)
    for name in ("large.rec", "large.idx"):
        server.objects[name] = path.with_name(name).read_bytes()
    keywords = {**settings(preprocess_threads=1, prefetch_buffer=1), **keywords}
    with ImageRecordIter(path_imgrec=f"{server.url}/large.rec", **keywords, **remote) as it:
        sizes = [end - begin for begin, end in server.ranges("large.rec")]
        assert sum(size < 100 for size in sizes) > 20  # heads that no block had yet
        assert sum(sizes) < 4 * BLOCK
        found = epochs(it)
        stats = it.stats()
    assert stats["remote_bytes"] == sum(e - b for b, e in server.ranges("large.rec"))
    with ImageRecordIter(path_imgrec=path, **keywords) as it:
        assert epochs(it) == found


def test_local_files_have_no_counters_of_servers(packs):
    with ImageRecordIter(path_imgrec=packs[0], **settings()) as it:
        assert not [name for name in it.stats() if name.startswith("remote")]


def test_faults_do_not_change_batches(server, packs, remote):
    server.faults.extend(["503", "reset", "ok", "short", "403"] * 3)
    keywords = settings(shuffle=True)
    with ImageRecordIter(path_imgrec=f"{server.url}/a.rec", **keywords, **remote) as it:
        found = epochs(it)
        assert it.stats()["remote_retries"] > 0
    with ImageRecordIter(path_imgrec=packs[0], **keywords) as it:
        assert epochs(it) == found


@pytest.mark.parametrize("damage", ["shorter", "gone", "noise"])
def test_a_mirror_that_is_damaged_between_runs_costs_no_records(
    server, packs, remote, tmp_path, damage
):
    keywords = settings(shuffle=True, on_error="skip")
    with ImageRecordIter(path_imgrec=f"{server.url}/a.rec", **keywords, **remote) as it:
        found = epochs(it)
    (data,) = (tmp_path / "mirrors").glob("a.rec-*/data")
    content = data.read_bytes()
    del it
    if damage == "gone":
        data.unlink()
    elif damage == "shorter":
        data.write_bytes(content[: len(content) // 2])
    else:
        noise = np.random.default_rng(0).bytes(len(content) // 2)
        data.write_bytes(content[: len(content) - len(noise)] + noise)
    with ImageRecordIter(path_imgrec=f"{server.url}/a.rec", **keywords, **remote) as it:
        assert epochs(it) == found


def test_an_epoch_goes_on_at_the_batch_that_could_not_be_fetched(server, packs, remote, impatient):
    keywords = settings(shuffle=True, on_error="skip")
    with ImageRecordIter(path_imgrec=packs[0], **keywords) as it:
        (wanted,) = epochs(it, 1)
    with ImageRecordIter(
        path_imgrec=f"{server.url}/a.rec", **keywords, **{**remote, "remote_timeout": 3}
    ) as it:
        server.faults.extend(["503"] * 10_000)
        for _ in range(2):
            with (
                impatient(0.2),
                pytest.raises(RemoteFileError, match=r"a.rec, offset \d+: bytes \d+ to \d+"),
            ):
                while True:
                    it.next()
        done = it.state_dict()["done"] // 8
        server.faults.clear()
        rest = [b.data[0].tobytes() for b in it]
    assert not it.skipped
    assert rest == [batch[0] for batch in wanted[done:]]


def test_a_changed_pack_is_an_error(server, packs, remote):
    with ImageRecordIter(path_imgrec=f"{server.url}/a.rec", **settings(), **remote) as it:
        server.objects["a.rec"] = server.objects["b.rec"]
        with pytest.raises(RemoteChangedError):
            for _ in range(3):
                epochs(it, 1)


def test_interrupts_end_a_wait(server, remote, interrupt_after):
    with ImageRecordIter(
        path_imgrec=f"{server.url}/a.rec", **settings(shuffle=True), **remote
    ) as it:
        server.latency = 60
        interrupt_after(0.1)
        with pytest.raises(KeyboardInterrupt):
            epochs(it)


def test_chosen_samples(server, packs, remote):
    keywords = settings(data_specs=None)
    with (
        ImageRecordIter(path_imgrec=packs[0], **keywords) as here,
        ImageRecordIter(path_imgrec=f"{server.url}/a.rec", **keywords, **remote) as there,
    ):
        wanted, found = (
            list(it.iterator(mode="shuffled_sequential", batch_size=5, rng=3))
            for it in (here, there)
        )
    assert len(found) == len(wanted) > 10
    for one, other in zip(found, wanted, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_functions_in_python(server, packs, remote):
    keywords = {"batch_size": 4, "data_shape": SHAPE, "shuffle": True, "verbose": False}
    keywords["aug_list"] = [lambda image: cv2.resize(image, (40, 40)).astype(np.float32)]
    with ImageIter(path_imgrec=f"{server.url}/a.rec", **keywords, **remote) as it:
        found = epochs(it, 1)
    with ImageIter(path_imgrec=packs[0], **keywords) as it:
        assert epochs(it, 1) == found


def test_detection(server, tmp_path, remote):
    labels = [box_label(*[(key % 3, 0.1, 0.2, 0.6, 0.7)] * (1 + key % 4)) for key in range(20)]
    path = write_pack(tmp_path / "det.rec", 20, labels, size=(60, 70))
    for name in ("det.rec", "det.idx"):
        server.objects[name] = path.with_name(name).read_bytes()
    keywords = {"batch_size": 4, "data_shape": SHAPE, "shuffle": True, "verbose": False}
    with ImageDetRecordIter(path_imgrec=f"{server.url}/det.rec", **keywords, **remote) as it:
        found = epochs(it)
    with ImageDetRecordIter(path_imgrec=path, **keywords) as it:
        assert epochs(it) == found


def test_datasets(server, packs, remote):
    here, there = ImageRecordDataset(packs[0]), ImageRecordDataset(f"{server.url}/a.rec", **remote)
    assert len(here) == len(there) == COUNT
    for i in (3, 80, -1):
        assert np.array_equal(here[i][0], there[i][0]) and here[i][1] == there[i][1]
    rows = list(range(0, COUNT, 7))
    for (a, _), (b, _) in zip(here.__getitems__(rows), there.__getitems__(rows), strict=True):
        assert np.array_equal(a, b)
    assert RecordDataset(packs[0])[5] == RecordDataset(f"{server.url}/a.rec", **remote)[5]


def test_signatures_are_not_shown(server, remote):
    with ImageRecordIter(
        path_imgrec=f"{server.url}/a.rec?sig=SECRET", **settings(), **remote
    ) as it:
        text = f"{it!r} {it.path_imgrec} {it.state_dict()} {it.packs}"
        assert "SECRET" not in text


@pytest.mark.parametrize("kind", [ImageRecordIter, ImageRecordDataset])
def test_lists_of_labels_come_from_the_same_server(server, packs, remote, tmp_path, kind):
    server.objects["a.lst"] = b"".join(b"%d\t%d\tx.jpg\n" % (i, 100 + i) for i in range(COUNT))
    urls = {"path": f"{server.url}/a.rec", "path_imglist": f"{server.url}/a.lst"}
    if kind is ImageRecordDataset:
        pack = Pack(urls["path"], path_imglist=urls["path_imglist"])
        assert kind([pack], **remote)[5][1] == 105
    else:
        given = {"path_imgrec": urls["path"], "path_imglist": urls["path_imglist"], **remote}
        with kind(data_shape=SHAPE, batch_size=8, **given) as provider:
            assert next(iter(provider)).label[0].tolist() == list(range(100, 108))
    assert list((tmp_path / "mirrors").glob("a.lst-*"))


@pytest.mark.parametrize("with_pack", [True, False])
@pytest.mark.parametrize("kind", [ImageIter, ImageDetIter])
def test_lists_of_images_come_from_the_same_server(server, remote, tmp_path, kind, with_pack):
    objects = "2\t5\t" if kind is ImageDetIter else ""
    label = "1\t0.1\t0.1\t0.9\t0.9\t" if objects else "7\t"
    jpegs = [encode(np.full((50, 50, 3), 60 * i, np.uint8), ".jpg") for i in range(4)]
    for i, jpeg in enumerate(jpegs):
        (tmp_path / f"{i}.jpg").write_bytes(jpeg)
    path = write_pack(tmp_path / "a.rec", jpegs, [0] * 4)
    lines = "".join(f"{i}\t{objects}{label}{i}.jpg\n" for i in range(4))
    server.objects["l/a.lst"] = lines.encode()
    given = {"path_imgrec": path} if with_pack else {"path_root": str(tmp_path)}
    given["path_imglist"] = f"{server.url}/l/a.lst"
    if kind is ImageIter and with_pack:
        given["path_imgidx"] = path.with_suffix(".idx")
    with kind(data_shape=SHAPE, batch_size=4, **given, **remote) as provider:
        labels = provider.next().label[0]
    wanted = [1.0, 0.1, 0.1, 0.9, 0.9] if objects else 7.0
    assert np.allclose(labels.reshape(4, -1), wanted)
    assert list((tmp_path / "mirrors").glob("a.lst-*"))


@pytest.mark.parametrize("library", ["obstore", "fsspec"])
@pytest.mark.parametrize("kind", [CSVIter, LibSVMIter, TextDataset])
def test_text_comes_from_the_server_that_is_named(bucket, s3_endpoint, tmp_path, kind, library):
    """Nothing in the environment says where it is."""
    pytest.importorskip("obstore" if library == "obstore" else "s3fs")
    access = {
        "endpoint_url": s3_endpoint, "access_key_id": "me", "library": library,
        "secret_access_key": "hunter2-hunter2", "region": "us-east-1",
    }  # fmt: skip
    url = f"s3://bucket/{kind.__name__}.txt"
    text = "1 0:5\n2 1:6\n" if kind is LibSVMIter else "1,2\n3,4\n"
    bucket.put_object(Bucket="bucket", Key=f"{kind.__name__}.txt", Body=text.encode())
    if kind is TextDataset:
        lines = TextDataset(url, remote_cache=tmp_path / "mirrors", remote_options=access)
        assert lines[:] == pickle.loads(pickle.dumps(lines))[:] == ["1,2\n", "3,4\n"]
        return
    name = "data_libsvm" if kind is LibSVMIter else "data_csv"
    found = []
    for part in range(2):
        given = {name: url, "data_shape": (2,), "batch_size": 1, "num_parts": 2}
        with kind(**given, part_index=part, remote_options=access) as provider:
            for batch in provider:
                row = batch.data[0]
                found += (row.toarray() if kind is LibSVMIter else row).tolist()
            assert "hunter2" not in repr(provider) + str(provider.state_dict())
    assert found == ([[5, 0], [0, 6]] if kind is LibSVMIter else [[1, 2], [3, 4]])
