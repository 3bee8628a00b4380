"""Record files and caches that become shorter while a provider reads them."""

import os
import subprocess
import sys

import numpy as np
import pytest

import recordio
from faces.cache import load, store
from iterators import ImageIter, ImageRecordIter
from iterators.datasets import ImageRecordDataset, RecordDataset, TextDataset
from iterators.images.cache.image_cache import FileImageCache
from iterators.testing import maker, write_pack
from recordio.errors import TextFormatError, TruncatedRecordError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="mapped files stay as they are")

COUNT = 40
LOST = 25
SHORTER = "the file became shorter"


def rewrite(path, kind=".jpg"):
    """Images of about three pages, so that a cut leaves whole, torn and missing ones."""
    return write_pack(path, COUNT, kind=kind, size=(72, 72))


@pytest.fixture(params=[".jpg", ".ppm", ".png"])
def pack(tmp_path, request):
    return rewrite(tmp_path / "images.rec", request.param)


def cut(path):
    """Take away all from the middle of a record on; where that record begins."""
    with recordio.RecordReader(path) as reader:
        offset, end = reader.offsets[LOST : LOST + 2].tolist()
    os.truncate(path, (offset + end) // 2)
    return offset


provider_of = maker(
    ImageRecordIter, data_shape=(3, 32, 32), batch_size=4, preprocess_threads=2,
    prefetch_buffer=1, rand_crop=True,
)  # fmt: skip


@pytest.fixture
def whole(pack):
    """What the provider gives while the file is whole: by record, its pixels."""
    with provider_of(pack) as provider:
        return {
            int(row): data.copy()
            for batch in provider
            for row, data in zip(batch.index, batch.data[0], strict=True)
        }


def test_raise_names_every_lost_record_and_the_rest_is_read(pack, whole):
    with provider_of(pack) as provider:
        got, errors, offset = {}, [], 0
        for _ in range(COUNT // 4):
            try:
                batch = next(provider)
            except TruncatedRecordError as error:
                errors.append(error)
            else:
                got.update(zip(batch.index.tolist(), batch.data[0].copy(), strict=True))
            offset = offset or cut(pack)
    assert SHORTER in str(errors[0])
    assert (errors[0].path, errors[0].offset, errors[0].record) == (str(pack), offset, LOST)
    assert [error.record for error in errors] == [25, 28, 32, 36]
    assert sorted(got) == list(range(24))  # batches without a lost record
    assert all(np.array_equal(got[i], whole[i]) for i in got)


def test_skip_counts_and_gives_the_rest(pack, whole):
    with provider_of(pack, on_error="skip") as provider:
        got = {}
        for number, batch in enumerate(provider):
            if number == 0:
                cut(pack)
            got.update(zip(batch.index.tolist(), batch.data[0].copy(), strict=True))
        skipped = list(provider.skipped)
    assert sorted(got) == list(range(LOST))
    assert all(np.array_equal(got[i], whole[i]) for i in got)
    assert len(skipped) == COUNT - LOST
    for number, (_, message) in enumerate(skipped, LOST):
        assert message.startswith(f"{pack}, offset ")
        assert f"record {number}: {SHORTER}" in message


def test_the_next_epoch_says_it_again(pack):
    with provider_of(pack, shuffle=True) as provider:
        next(provider)
        cut(pack)
        for _ in range(2):
            lost = 0
            for _ in range(COUNT // 4):
                try:
                    next(provider)
                except StopIteration:
                    break
                except TruncatedRecordError as error:
                    assert error.record >= LOST
                    lost += 1
            assert lost
            provider.reset()


def test_no_sample_of_a_shrinking_file_is_wrong(tmp_path):
    """The file is cut more and more while threads decode: each sample is right or an error."""
    path = tmp_path / "images.rec"
    rewrite(path, ".ppm")
    with recordio.RecordReader(path) as reader:
        offsets = reader.offsets.tolist()
    arguments = {"on_error": "skip", "preprocess_threads": 4, "shuffle": True}
    expected = {}
    with provider_of(path, **arguments) as provider:
        for batch in provider:
            expected.update(zip(batch.index.tolist(), batch.data[0].copy(), strict=True))
    with provider_of(path, **arguments) as provider:
        seen = 0
        try:
            for number, batch in enumerate(provider):
                for row, data in zip(batch.index.tolist(), batch.data[0], strict=True):
                    assert np.array_equal(data, expected[row])
                    seen += 1
                os.truncate(path, offsets[COUNT - 1 - 3 * number] + 5000)
        except TruncatedRecordError:
            pass
    assert seen


# -- caches -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", ["data", "table", "nothing"])
@pytest.mark.parametrize("files", [False, True])
def test_a_cache_that_becomes_shorter_is_given_up(tmp_path, caplog, size, files):
    pack, place = tmp_path / "images.rec", tmp_path / "cache"
    rewrite(pack)
    arguments = {"cache": place, "cache_size": 10 << 20}
    if files:
        lines = []
        for i, record in enumerate(recordio.RecordReader(pack)):
            (tmp_path / f"{i}.jpg").write_bytes(recordio.unpack(record)[1])
            lines.append([float(i), f"{i}.jpg"])
        arguments |= {"imglist": lines, "path_root": str(tmp_path), "preprocess_threads": 2}
        provider = ImageIter(4, (3, 32, 32), **arguments)
    else:
        provider = provider_of(pack, rand_crop=False, **arguments)

    def epoch():
        found = {}
        for batch in provider:
            found.update(zip(batch.index.tolist(), batch.data[0].copy(), strict=True))
        provider.reset()
        return [found[i] for i in range(COUNT)]

    with provider:
        expected = epoch()
        kept = {"data": place.stat().st_blocks * 256, "table": 4096, "nothing": 0}
        os.truncate(place, kept[size])
        assert np.array_equal(epoch(), expected)
        assert np.array_equal(epoch(), expected)
    assert [r.getMessage() for r in caplog.records if "no longer used" in r.getMessage()] == [
        f"{place}: the cache is no longer used, because the file became shorter or the disk failed"
    ]


@pytest.mark.parametrize("number", [0, 4, 9])
def test_images_of_a_cut_cache_are_there_or_not_but_never_wrong(tmp_path, number):
    path = str(tmp_path / "cache")
    cache = FileImageCache(path, 10, 3, 1 << 20, {})
    images = [np.full((60, 60, 3), i + 1, np.uint8) for i in range(10)]
    for i, image in enumerate(images):
        assert store(cache, i, image)
    place = os.path.getsize(path) - (1 << 20)
    os.truncate(path, place + cache.used * number // 10 + 5000)
    for i in range(10):
        found = load(cache, i)
        assert (found is not None) == (i < number)
        assert found is None or np.array_equal(found[0], images[i])
        if i < number:
            continue
        assert not store(cache, i, images[i])


# -- datasets -----------------------------------------------------------------------------------


def test_datasets_of_records(pack):
    index = pack.with_suffix(".idx")
    records, copies = RecordDataset(pack, index, copy=False), RecordDataset(pack, index)
    images = ImageRecordDataset(pack)
    assert len(records) == len(images) == COUNT
    offset = cut(pack)
    for read in (
        lambda i: records[i],
        lambda i: records.__getitems__([i])[0],
        lambda i: copies[i],
        lambda i: copies.__getitems__([i])[0],
        lambda i: images[i],
    ):
        read(LOST - 1)
        with pytest.raises(TruncatedRecordError, match=SHORTER) as caught:
            read(LOST)
        place = (caught.value.path, caught.value.offset, caught.value.record)
        assert place == (str(pack), offset, LOST)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_lines_of_text(tmp_path, encoding):
    path = tmp_path / "text"
    lines = [f"line {i}\n" for i in range(3000)]
    path.write_text("".join(lines), encoding)
    dataset = TextDataset(path, encoding)
    os.truncate(path, 5000)
    assert dataset[10] == lines[10]
    if encoding == "utf-16":
        assert dataset[2000] == lines[2000]  # decoded when it was opened
        return
    with pytest.raises(TextFormatError, match=rf"text, line 2001: {SHORTER}"):
        dataset[2000]


def test_a_file_that_is_cut_before_it_is_read_ends_no_process(tmp_path):
    """All in a child: without the handler this would be the end of the tests."""
    pack = tmp_path / "images.rec"
    rewrite(pack)
    script = """
import faulthandler, os, sys
from iterators import ImageRecordIter
from recordio.errors import RecordIOError
faulthandler.enable()
provider = ImageRecordIter(
    path_imgrec=sys.argv[1], data_shape=(3, 32, 32), batch_size=4, preprocess_threads=2)
os.truncate(sys.argv[1], 0)
found = 0
while True:
    try:
        next(provider)
    except RecordIOError as error:
        found += 1
    except StopIteration:
        break
print(found)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(pack)], capture_output=True, text=True, timeout=100
    )
    assert (done.returncode, done.stdout) == (0, f"{COUNT // 4}\n"), done.stderr
