"""``verify=True``: images whose record is not as its checksum says are errors, or skipped."""

import numpy as np
import pytest

import recordio
from iterators import ImageDetRecordIter, ImageIter, ImageRecordIter
from iterators.testing import encode, noise, write_images, write_pack
from recordio.errors import ChecksumError, ChecksumFileError, CorruptRecordError
from recordio.frames.encoder import MAGIC

COUNT = 12


def write(path, label=None, first=0):
    """A pack with index and checksums; what stands behind the image of record 2 comes in parts."""
    numbers = range(first, first + COUNT)
    contents = [encode(noise(16, 20, seed=number)) for number in numbers]
    if not first:
        contents[2] += bytes(-len(contents[2]) % 4) + MAGIC
    labels = numbers if label is None else map(label, numbers)
    return write_pack(path, contents, labels, ids=numbers, keys=numbers, checksums=True)


@pytest.fixture
def pack(tmp_path):
    return write(tmp_path / "a.rec")


def provider_of(path, kind=ImageRecordIter, **arguments):
    defaults = {"data_shape": (3, 16, 20), "batch_size": 4, "preprocess_threads": 2}
    return kind(path_imgrec=str(path), **(defaults | {"verify": True} | arguments))


def flip(path, number, place):
    """Change a byte of a record: a place from its head on, or from its end if negative."""
    checksums = recordio.RecordReader(path, verify=True).checksums
    offset, length, _ = checksums.entries[number].tolist()
    data = bytearray(path.read_bytes())
    data[offset + place % length] ^= 1
    path.write_bytes(data)
    return offset


def epoch_of(provider):
    with provider:
        return [
            (b.data[0].copy(), b.label[0].copy(), b.index[: b.count].tolist()) for b in provider
        ]


def test_a_sound_pack_gives_the_same_batches(pack):
    arguments = {"shuffle": True, "seed": 3, "rand_mirror": True}
    checked = epoch_of(provider_of(pack, **arguments))
    plain = epoch_of(provider_of(pack, verify=False, **arguments))
    for a, b in zip(checked, plain, strict=True):
        assert np.array_equal(a[0], b[0]) and np.array_equal(a[1], b[1]) and a[2] == b[2]


# in the head, the label, the pixels and the pad bytes, and in each part of a record
PLACES = [(5, 0), (5, 5), (5, 12), (5, 200), (5, -1), (2, 3), (2, 100), (2, -6), (0, 20), (11, -9)]


@pytest.mark.parametrize(("number", "place"), PLACES)
@pytest.mark.parametrize("indexed", [False, True])
def test_a_changed_byte_is_an_error_or_one_skipped_record(pack, number, place, indexed):
    offset = flip(pack, number, place)
    more = {"path_imgidx": str(pack.with_suffix(".idx"))} if indexed else {}
    with provider_of(pack, batch_size=COUNT, **more) as provider:
        with pytest.raises(CorruptRecordError) as caught:
            provider.next()
    assert caught.value.path == str(pack) and caught.value.record == number
    if place > 8 or place == -1:
        assert isinstance(caught.value, ChecksumError) and caught.value.offset == offset
        assert "a.crc" in str(caught.value) and "recordio check" in str(caught.value)
    provider = provider_of(pack, on_error="skip", **more)
    indices = [i for _, _, batch in epoch_of(provider) for i in batch]
    assert set(indices) == set(range(COUNT)) - {number} and len(indices) == COUNT
    assert len(provider.skipped) == 1


def test_damage_that_no_decoder_notices_is_noticed(pack):
    flip(pack, 7, 12)  # the label
    with provider_of(pack, verify=False) as provider:
        assert len(list(provider)) == 3
    with provider_of(pack) as provider, pytest.raises(ChecksumError, match="record 7"):
        list(provider)


def test_parts(pack):
    flip(pack, 7, 200)
    seen = []
    for part in range(3):
        provider = provider_of(
            pack, num_parts=3, part_index=part, batch_size=1, shuffle=True, on_error="skip"
        )
        seen += [i for _, _, batch in epoch_of(provider) for i in batch]
    assert set(seen) <= set(range(COUNT)) - {7} and len(seen) == COUNT


def test_several_files_each_with_its_own(pack, tmp_path):
    second = write(tmp_path / "b.rec", first=COUNT)
    flip(second, 4, 300)
    with provider_of(f"{pack};{second}", batch_size=2 * COUNT) as provider:
        with pytest.raises(ChecksumError, match="b.rec, offset [0-9]+, record 4"):
            provider.next()
    second.with_suffix(".crc").unlink()
    with pytest.raises(ChecksumFileError, match="b.crc: there is no such file"):
        provider_of(f"{pack};{second}")


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_checksums_that_do_not_belong_are_refused_at_once(pack, on_error):
    with open(pack, "ab") as file:
        file.write(recordio.frames.encoder.encode(b"more"))
    with pytest.raises(ChecksumFileError, match="describes a record file of"):
        provider_of(pack, on_error=on_error)


def test_an_image_is_checked_before_it_is_cached_and_not_again(pack):
    whole = pack.read_bytes()
    flip(pack, 3, 200)
    with provider_of(pack, cache="ram", on_error="skip", batch_size=COUNT) as provider:
        first = [b.index.tolist() for b in provider]
        assert provider.cache_info().images == COUNT - 1
        assert first == [b.index.tolist() for b in provider]
    assert 3 not in first[0]
    pack.write_bytes(whole)
    with provider_of(pack, cache="ram", batch_size=COUNT) as provider:
        assert len(list(provider)) == 1
        assert provider.cache_info().images == COUNT


def test_boxes(tmp_path):
    path = write(tmp_path / "boxes.rec", lambda number: [2, 5, number, 0, 0, 0.5, 1])
    flip(path, 9, 50)  # a coordinate
    provider = provider_of(path, ImageDetRecordIter, on_error="skip")
    indices = [i for _, _, batch in epoch_of(provider) for i in batch]
    assert 9 not in indices and len(provider.skipped) == 1


def test_image_iter(pack, tmp_path):
    flip(pack, 1, 200)
    with provider_of(pack, ImageIter) as provider, pytest.raises(ChecksumError, match="record 1"):
        provider.next()
    write_images(tmp_path, 1, size=(16, 20))
    with pytest.raises(ValueError, match="verify needs path_imgrec"):
        ImageIter(1, (3, 8, 8), imglist=[[0, "0.png"]], path_root=str(tmp_path), verify=True)


def test_a_mean_image_is_not_made_of_damage(pack, tmp_path):
    flip(pack, 1, 200)
    with pytest.raises(ChecksumError):
        provider_of(pack, mean_img=str(tmp_path / "mean.bin"))
