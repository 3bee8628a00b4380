"""Rules for all kinds of containers at once: states, mixing with packs, the order of the table."""

import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from made_tars import tar
from tfrecords import write_tfrecord

from iterators import ImageRecordDataset, ImageRecordIter, Pack
from iterators.testing import assert_same, check_states, copies, encode, noise, write_pack
from recordio.bytes.files import StoredFile
from recordio.containers.table import container_of

from . import test_lmdb, test_mds

IMAGES = [encode(noise(12, 10, seed=number)) for number in range(7)]
SETTINGS = {"data_shape": (3, 8, 8), "batch_size": 3, "shuffle": True, "rand_mirror": True}


def folder(path):
    for number, image in enumerate(IMAGES):
        target = path / f"set/{number}/{number}.png"
        target.parent.mkdir(parents=True)
        target.write_bytes(image)
    return path / "set"


def archive(path):
    with zipfile.ZipFile(path / "a.zip", "w") as opened:
        for number, image in enumerate(IMAGES):
            kind = number % 2 * zipfile.ZIP_DEFLATED
            opened.writestr(f"{number}/{number}.png", image, kind)
    return path / "a.zip"


def shards(path):
    parts = [
        test_mds.shard(test_mds.rows(IMAGES[:4])),
        test_mds.shard(test_mds.rows(IMAGES[4:], 4)),
    ]
    return test_mds.write_set(path / "mds", *parts)


def database(path):
    return test_lmdb.write(
        path / "lmdb", {b"%d/%d.png" % (i, i): image for i, image in enumerate(IMAGES)}
    )


def tars(path):
    files = (
        (f"{number}.{ending}", content)
        for number, image in enumerate(IMAGES)
        for ending, content in (("png", image), ("cls", b"%d" % number))
    )
    (path / "a.tar").write_bytes(tar(*files))
    return path / "a.tar"


def examples(path):
    rows = ({"image": [image], "label": [number]} for number, image in enumerate(IMAGES))
    return write_tfrecord(path / "a.tfrecord", *rows)


def table(path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = arrow.table({"image": IMAGES, "label": list(range(len(IMAGES)))})
    parquet.write_table(columns, path / "a.parquet", row_group_size=2)
    return path / "a.parquet"


@pytest.fixture(params=[folder, archive, shards, database, tars, examples, table])
def path(request, tmp_path):
    return request.param(tmp_path)


@pytest.fixture
def pack(tmp_path):
    return write_pack(tmp_path / "a.rec", IMAGES)


def test_runs_go_on_from_their_states(path):
    check_states(lambda: ImageRecordIter(path_imgrec=path, **SETTINGS))


def test_a_state_is_that_of_the_pack_with_other_threads(path, pack):
    with ImageRecordIter(path_imgrec=path, preprocess_threads=1, **SETTINGS) as first:
        wanted = copies(first)
    with ImageRecordIter(path_imgrec=path, preprocess_threads=3, **SETTINGS) as again:
        assert_same(copies(again), wanted)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_a_run_that_is_killed_after_every_batch_is_that_of_the_pack(path, pack):
    program = Path(__file__).with_name("killed_runs.py")
    words = [sys.executable, program, pack, path, "data_shape=(3,8,8)", "batch_size=3"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100)
    assert done.stdout.split() == ["6", "0"], done.stderr


def test_every_part_is_that_of_the_pack(path, pack):
    for part in range(3):
        settings = {**SETTINGS, "num_parts": 3, "part_index": part}
        for more in ({}, {"shuffle": False}):
            with (
                ImageRecordIter(
                    path_imgrec=pack, path_imgidx=pack.with_suffix(".idx"), **settings | more
                ) as plain,
                ImageRecordIter(path_imgrec=path, **settings | more) as found,
            ):
                assert_same(copies(found), copies(plain))


def test_containers_and_packs_are_mixed(path, pack):
    def make(second):
        packs = [Pack(pack, share=0.5), Pack(second, share=0.5, labels="append")]
        return ImageRecordIter(path_imgrec=packs, **SETTINGS)

    with make(pack) as plain, make(path) as found:
        assert_same(copies(found), copies(plain))
        assert found.num_classes == 14


def test_a_cache_and_weights(path, pack):
    for more in (
        {"cache": "ram", "resize": 9},
        {"weights": [1.0, 2, 3, 4, 5, 6, 7], "shuffle": False},
    ):
        with (
            ImageRecordIter(path_imgrec=pack, **SETTINGS | more) as plain,
            ImageRecordIter(path_imgrec=path, **SETTINGS | more) as found,
        ):
            assert_same(copies(found), copies(plain))


def test_blocks_are_shuffled_where_there_are_neighbours(path):
    settings = {**SETTINGS, "shuffle": False, "shuffle_chunk_size": 1}
    if path.name == "set":
        with pytest.raises(ValueError, match="need neighbours in a file: .* is a folder"):
            ImageRecordIter(path_imgrec=path, **settings)
        return
    with ImageRecordIter(path_imgrec=path, **settings) as found:
        assert sorted(i for batch in found for i in batch.index[: 3 - batch.pad]) == list(range(7))


def test_data_sets_are_pickled_once_they_were_read(path):
    images = ImageRecordDataset(path)
    wanted = [image for image, _ in images]
    sent = pickle.dumps(images)
    images.source.files[0].close()
    again = pickle.loads(sent)
    for number in (6, 0):
        image, label = again[number]
        assert label == number
        assert np.array_equal(image, wanted[number])


def test_loaders_take_containers(path):
    loader = pytest.importorskip("iterators.torch").ImageLoader
    for given in (path, [path]):
        images = loader(given, batch_size=3, transform={"data_shape": (3, 8, 8)})
        assert sorted(int(label) for _, labels in images for label in labels) == list(range(7))


def test_a_kind_is_told_by_name_or_content(path):
    kind = container_of(StoredFile(str(path)))
    assert kind is not None
    assert kind.name.split()[-1] in {"images", "archive", "shard", "database", "file"}
