"""Files, folders, parts, label lists, face-recognition packs, weights and bad records."""

import io
import re
import struct
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest

import recordio
from iterators import ImageRecordInt8Iter, ImageRecordIter, ImageRecordUInt8Iter
from iterators.providers import image_engines
from iterators.testing import encode, maker, noise, write_records
from recordio.errors import (
    CorruptRecordError,
    EmptyRecordFileError,
    ErrorBudgetError,
    ImageDecodeError,
    IndexFileError,
    LabelError,
    RecordHeaderError,
    RecordIOError,
    TruncatedRecordError,
)
from recordio.partition import part_by_bytes, part_by_count


def png(value, height=10, width=10):
    return encode(noise(height, width, seed=value))


def image_record(number, label=None, data=None):
    label = float(number) if label is None else label
    return recordio.pack(recordio.IRHeader(0, label, number, 0), data or png(number))


provider_of = maker(ImageRecordIter, data_shape=(3, 8, 8), batch_size=4, preprocess_threads=2)


def ids_of(provider):
    return [i for batch in provider for i in batch.index[: batch.count].tolist()]


# -- several files ---------------------------------------------------------------------------------


@pytest.fixture
def three(tmp_path):
    """Three files with 5, 0 and 7 records; names in another order than the ids."""
    folder = tmp_path / "packs"
    folder.mkdir()
    write_records(folder / "b.rec", [image_record(100 + i) for i in range(5)])
    write_records(folder / "c.rec", [])
    write_records(folder / "a.rec", [image_record(i) for i in range(7)])
    (folder / "notes.txt").write_text("no record file")
    return folder


@pytest.mark.parametrize("indexed", [False, True])
def test_a_folder_is_read_in_the_order_of_names_and_a_list_as_given(three, indexed):
    index = {"path_imgidx": three} if indexed else {}
    with provider_of(three, **index) as provider:
        assert provider.num_samples == 12
        assert ids_of(provider) == [*range(7), *range(100, 105)]
    names = [three / f"{name}.rec" for name in "bca"]
    index = {"path_imgidx": ";".join(str(n.with_suffix(".idx")) for n in names)} if indexed else {}
    with provider_of(";".join(map(str, names)), **index) as provider:
        assert ids_of(provider) == [*range(100, 105), *range(7)]
        assert provider.num_samples == 12
    with provider_of(";".join(map(str, names)), shuffle=True, **index) as provider:
        assert sorted(ids_of(provider)) == [*range(7), *range(100, 105)]


def test_a_semicolon_in_the_name_of_a_file_that_exists(tmp_path):
    path = write_records(tmp_path / "a;b.rec", [image_record(1)])
    with provider_of(path) as provider:
        assert ids_of(provider) == [1]


def test_the_files_behind_a_path_must_be_there(three, tmp_path):
    with pytest.raises(EmptyRecordFileError, match=r"holds no \.rec file"):
        provider_of(tmp_path)
    with pytest.raises(ValueError, match="3 record files but 1 index files"):
        provider_of(three, path_imgidx=three / "a.idx")
    with pytest.raises(FileNotFoundError, match="missing.rec"):
        provider_of(f"{three / 'a.rec'};{tmp_path / 'missing.rec'}")
    for nothing in ("", ";"):
        with pytest.raises(ValueError, match="path_imgrec="):
            provider_of(nothing)
    with pytest.raises(ValueError, match="holds no records"):
        provider_of(three / "c.rec")


def test_an_error_names_the_file_and_the_place_in_it(three):
    good = [image_record(200 + i) for i in range(6)]
    good[4] = good[4][:24] + b"no image"
    write_records(three / "b2.rec", good)
    with provider_of(three, batch_size=1) as provider:
        for _ in range(7 + 5 + 4):
            provider.next()
        with pytest.raises(
            ImageDecodeError, match=r"b2\.rec, offset \d+, record 4, id 204"
        ) as caught:
            provider.next()
        assert caught.value.path == str(three / "b2.rec")
        assert provider.next().index[0] == 205


def test_bad_records_at_the_same_place_of_two_files_are_two(three):
    for name in ("a", "b"):
        records = [image_record(i) for i in range(5)]
        records[3] = recordio.pack(recordio.IRHeader(0, 0, ord(name), 0), b"no image")
        write_records(three / f"{name}.rec", records)
    with provider_of(three, on_error="skip") as provider:
        list(provider)
        assert [number for number, _ in provider.skipped] == [ord("a"), ord("b")]
        assert all(f"{n}.rec" in s[1] for n, s in zip("ab", provider.skipped, strict=True))
    with provider_of(three, on_error="skip", error_budget=1) as provider:
        with pytest.raises(ErrorBudgetError):
            list(provider)


# -- parts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_parts", [1, 2, 3, 5, 12, 17])
@pytest.mark.parametrize("indexed", [False, True])
def test_parts_are_those_of_the_two_rules(three, num_parts, indexed):
    names = [three / f"{name}.rec" for name in "abc"]
    everything = [*range(7), *range(100, 105)]
    offsets = [recordio.RecordReader(name).offsets for name in names]
    found = []
    for part in range(num_parts):
        if indexed:
            wanted = [everything[i] for i in part_by_count(12, num_parts, part)]
        else:
            sizes = [name.stat().st_size for name in names]
            ranges = part_by_bytes(sizes, offsets, num_parts, part)
            starts = (0, 7, 12)
            wanted = [everything[s + i] for s, r in zip(starts, ranges, strict=True) for i in r]
        index = {"path_imgidx": three} if indexed else {}
        with provider_of(three, num_parts=num_parts, part_index=part, **index) as provider:
            assert provider.num_samples == len(wanted)
            assert ids_of(provider) == wanted
        found += wanted
    assert found == everything


@pytest.mark.parametrize(("num_parts", "part"), [(3, 3), (1, 1), (0, 0), (2, -1)])
def test_parts_that_do_not_exist(three, num_parts, part):
    with pytest.raises(ValueError, match="part_index=|num_parts="):
        provider_of(three, num_parts=num_parts, part_index=part)


# -- label lists -----------------------------------------------------------------------------------


@pytest.fixture
def ten(tmp_path):
    return write_records(tmp_path / "ten.rec", [image_record(i) for i in range(10)])


def listed(tmp_path, *lines, ending="\n"):
    path = tmp_path / "labels.lst"
    path.write_bytes("".join(line + ending for line in lines).encode("utf-8", "surrogateescape"))
    return path


def labels_of(provider):
    return np.concatenate([b.label[0][: b.count] for b in provider])


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\n\n"])
def test_labels_of_a_list_replace_those_of_the_records(ten, tmp_path, ending):
    order = np.random.default_rng(0).permutation(12)  # more lines than records, in any order
    path = listed(tmp_path, *(f"{i}\t{-i}.5\tfolder/a b {i}.jpg" for i in order), ending=ending)
    with provider_of(ten, path_imglist=path, shuffle=True) as provider:
        for batch in provider:
            assert batch.label[0].tolist() == [float(f"{-int(i)}.5") for i in batch.index]


def test_lists_can_hold_vectors_whatever_the_records_hold(tmp_path):
    records = [recordio.pack(recordio.IRHeader(0, [1, 2, 3, 4], i, 0), png(i)) for i in range(4)]
    path = write_records(tmp_path / "four.rec", records)
    labels = listed(tmp_path, *(f"{i} {i} {i + 1} name {i}.png" for i in range(4)))
    with provider_of(path, path_imglist=labels, label_width=2) as provider:
        assert provider.next().label[0].tolist() == [[i, i + 1] for i in range(4)]
    with pytest.raises(LabelError, match=r"labels\.lst, line 1: expected an id and 3 labels"):
        provider_of(path, path_imglist=labels, label_width=3)


def test_of_two_lines_with_one_id_the_last_counts(ten, tmp_path):
    path = listed(tmp_path, *(f"{i} 1 x" for i in range(10)), "3 7 x", "3 8 x")
    with provider_of(ten, path_imglist=path) as provider:
        assert labels_of(provider).tolist() == [1, 1, 1, 8, 1, 1, 1, 1, 1, 1]


def test_a_record_without_a_line(ten, tmp_path):
    path = listed(tmp_path, *(f"{i} 1 x" for i in range(10) if i != 6))
    lacking = r"ten\.rec: 1 records have no line in .*labels\.lst: id 6$"
    with pytest.raises(RecordIOError, match=lacking):
        provider_of(ten, path_imglist=path, strict=True)
    with pytest.warns(UserWarning, match=lacking):
        provider = provider_of(ten, path_imglist=path)
    with provider:
        provider.next()
        with pytest.raises(LabelError, match="record 6, id 6: the list of labels has no line"):
            provider.next()
    with pytest.warns(UserWarning, match=lacking):
        provider = provider_of(ten, path_imglist=path, on_error="skip")
    with provider:
        assert sorted(ids_of(provider)) == [0, 1, 2, 3, 4, 5, 7, 7, 8, 9]


def test_records_without_a_line_are_counted(tmp_path):
    records = [image_record(i) for i in range(10)]
    path = write_records(tmp_path / "a.rec", records)
    three = listed(tmp_path, *(f"{i} 1 x" for i in range(3)))
    for index in ("", str(path)[:-3] + "idx"):
        with pytest.warns(UserWarning, match="7 records have no .*: id 3, id 4, id 5, ...$"):
            provider_of(path, path_imglist=three, path_imgidx=index).close()
    path = write_records(tmp_path / "b.rec", records, keys=range(100, 110))
    every = listed(tmp_path, *(f"{i} 1 x" for i in range(12)))
    provider_of(path, path_imglist=every, path_imgidx=str(path)[:-3] + "idx").close()


@pytest.mark.parametrize("line", ["4", "x 1 y", "4 one y", "-1 2 y", f"{1 << 64} 2 y", "1.5 2 y"])
def test_a_bad_line_is_named(ten, tmp_path, line):
    path = listed(tmp_path, "0 1 x", "", "1 1 x", line)
    with pytest.raises(LabelError) as caught:
        provider_of(ten, path_imglist=path)
    assert (caught.value.path, caught.value.line) == (str(path), 4)


def test_the_largest_id_can_be_listed(tmp_path):
    path = write_records(tmp_path / "one.rec", [image_record((1 << 64) - 1, label=1.0)])
    with provider_of(path, path_imglist=listed(tmp_path, f"{(1 << 64) - 1} 5 x")) as provider:
        assert provider.next().label[0][0] == 5


# -- face-recognition packs ------------------------------------------------------------------------

IMAGES, IDENTITIES = 12, 4  # three images of each identity


def face_records():
    first = IMAGES + 1
    records = [recordio.pack(recordio.IRHeader(2, [first, first + IDENTITIES], 0, 0), b"")]
    for i in range(1, first):
        records.append(image_record(i, label=float((i - 1) // 3)))
    for i in range(IDENTITIES):
        labels = [1 + 3 * i, 4 + 3 * i]
        records.append(recordio.pack(recordio.IRHeader(2, labels, first + i, 0), b""))
    return records


def face_pack(path, order=None, index_order=None, records=None):
    """As InsightFace writes it, with the records and the index lines in the given orders."""
    records = records or face_records()
    keys = list(range(len(records))) if order is None else order
    write_records(path, [records[k] for k in keys], keys=keys)
    if index_order is not None:
        index = path.with_suffix(".idx")
        lines = index.read_text().splitlines()
        index.write_text("".join(lines[i] + "\n" for i in index_order))
    return path


@pytest.mark.parametrize("kind", ["scanned", "indexed", "shuffled index", "shuffled file"])
def test_a_face_pack_has_only_its_images(tmp_path, kind):
    total = 1 + IMAGES + IDENTITIES
    shuffled = np.random.default_rng(1).permutation(total).tolist()
    path = face_pack(
        tmp_path / "faces.rec",
        order=shuffled if kind == "shuffled file" else None,
        index_order=shuffled if kind == "shuffled index" else None,
    )
    index = {} if kind == "scanned" else {"path_imgidx": path.with_suffix(".idx")}
    for arguments in ({}, {"shuffle": True}, {"num_parts": 1, "weights": np.ones(IMAGES)}):
        with provider_of(path, **index, **arguments) as provider:
            assert provider.num_samples == IMAGES
            assert provider.identities.dtype == np.int64
            assert provider.identities.tolist() == [[1, 4], [4, 7], [7, 10], [10, 13]]
            for epoch in range(3):
                batches = list(provider)
                ids = np.concatenate([b.index[: b.count] for b in batches])
                labels = np.concatenate([b.label[0][: b.count] for b in batches])
                assert np.array_equal(labels, (ids.astype(int) - 1) // 3)
                if "weights" in arguments:
                    assert set(ids) <= set(range(1, IMAGES + 1))
                else:
                    assert sorted(ids) == list(range(1, IMAGES + 1))
            assert provider.skipped == []
    parts = []
    for part in range(5):
        with provider_of(path, num_parts=5, part_index=part, shuffle=True, **index) as provider:
            parts += ids_of(provider)
    assert sorted(parts) == list(range(1, IMAGES + 1))


def near_misses():
    def changed(place, record):
        records = face_records()
        records[place] = record
        return records

    two = recordio.IRHeader(2, [13, 17], 0, 0)
    yield "record 0 is an image", changed(0, recordio.pack(two, png(0)))
    yield (
        "an identity is an image",
        changed(15, recordio.pack(recordio.IRHeader(2, [7, 10], 15, 0), png(15))),
    )
    yield "three labels", changed(0, recordio.pack(recordio.IRHeader(3, [13, 17, 0], 0, 0), b""))
    yield "fractions", changed(0, recordio.pack(recordio.IRHeader(2, [13.5, 17], 0, 0), b""))
    yield (
        "not a number",
        changed(0, recordio.pack(recordio.IRHeader(2, [np.nan, np.inf], 0, 0), b"")),
    )
    yield (
        "end behind the file",
        changed(0, recordio.pack(recordio.IRHeader(2, [13, 18], 0, 0), b"")),
    )
    yield "no images", changed(0, recordio.pack(recordio.IRHeader(2, [1, 17], 0, 0), b""))
    yield "backwards", changed(0, recordio.pack(recordio.IRHeader(2, [17, 13], 0, 0), b""))
    yield "negative", changed(0, recordio.pack(recordio.IRHeader(2, [-3, 4], 0, 0), b""))
    yield (
        "an identity of later images",
        changed(14, recordio.pack(recordio.IRHeader(2, [12, 15], 14, 0), b"")),
    )
    yield "a scalar identity", changed(14, recordio.pack(recordio.IRHeader(0, 4, 14, 0), b""))
    # An ordinary set with two labels per image, which happen to look like ranges.
    pairs = [[2, 3], [1, 1], [1, 2], [2, 2]]
    yield (
        "ordinary label pairs",
        [recordio.pack(recordio.IRHeader(2, pair, i, 0), png(i)) for i, pair in enumerate(pairs)],
    )


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(
    ("name", "records"), list(near_misses()), ids=[n for n, _ in near_misses()]
)
def test_what_only_resembles_a_face_pack_is_read_as_it_is(tmp_path, name, records, indexed):
    path = face_pack(tmp_path / "miss.rec", records=records)
    index = {"path_imgidx": path.with_suffix(".idx")} if indexed else {}
    with provider_of(path, on_error="skip", **index) as provider:
        assert provider.identities is None
        assert provider.num_samples == len(records)


def test_keys_with_gaps_and_damage_are_no_face_pack_and_no_early_error(tmp_path):
    records = face_records()
    path = write_records(
        tmp_path / "gaps.rec", records, keys=[k if k != 14 else 99 for k in range(17)]
    )
    with provider_of(path, path_imgidx=path.with_suffix(".idx")) as provider:
        assert provider.identities is None
    path = write_records(tmp_path / "damaged.rec", records)
    offsets = recordio.RecordReader(path).offsets
    for place in (0, 14):
        content = bytearray(path.read_bytes())
        content[offsets[place]] ^= 1
        damaged = tmp_path / f"damaged{place}.rec"
        damaged.write_bytes(content)
        with provider_of(
            damaged, path_imgidx=path.with_suffix(".idx"), on_error="skip"
        ) as provider:
            assert provider.identities is None
            assert set(ids_of(provider)) == set(range(1, IMAGES + 1))
            assert place in dict(provider.skipped)


# -- weights and blocks ----------------------------------------------------------------------------


def drawn(provider, epochs):
    return Counter(i for _ in range(epochs) for i in ids_of(provider))


def test_records_come_as_often_as_their_weights_say(ten):
    weights = np.array([0, 1, 2, 3, 4, 0, 1, 1, 0, 8.0])
    with provider_of(ten, weights=weights, batch_size=10) as provider:
        counts = np.array([drawn(provider, 400)[i] for i in range(10)])
    expected = 4000 * weights / weights.sum()
    assert not counts[weights == 0].any()
    used = weights > 0
    assert ((counts - expected)[used] ** 2 / expected[used]).sum() < 27  # 6 degrees, p = 1e-4


@pytest.mark.parametrize("by_list", [False, True])
def test_weights_by_label_follow_the_labels_that_are_delivered(ten, tmp_path, by_list):
    labels = {}
    weights = {float(i): float(i % 2) for i in range(10)}
    if by_list:
        labels = {"path_imglist": listed(tmp_path, *(f"{i} {i // 5} x" for i in range(10)))}
        weights = {0: 0, 1: 1}
    with provider_of(ten, weights=weights, batch_size=10, **labels) as provider:
        counts = drawn(provider, 40)
    assert set(counts) == ({5, 6, 7, 8, 9} if by_list else {1, 3, 5, 7, 9})


def occurrences(path, **arguments):
    """Contents of every occurrence of every record in three epochs."""
    found = {}
    arguments = {"weights": [1] * 9 + [40], "batch_size": 5, "rand_crop": True} | arguments
    with provider_of(path, data_shape=(3, 6, 6), brightness=0.5, **arguments) as provider:
        for epoch in range(3):
            for batch in provider:
                for image, number in zip(batch.data[0], batch.index.tolist(), strict=True):
                    found.setdefault((epoch, number), []).append(image.tobytes())
    return found


def test_a_record_that_comes_again_in_an_epoch_looks_different(ten):
    found = occurrences(ten)
    assert max(map(len, found.values())) >= 5
    for images in found.values():
        assert len(set(images)) == len(images)


def test_occurrences_depend_on_neither_threads_nor_parts(ten):
    whole = occurrences(ten, preprocess_threads=1, prefetch_buffer=1)
    assert occurrences(ten, preprocess_threads=7, prefetch_buffer=3) == whole
    parts = {}
    for part in range(5):
        some = occurrences(ten, num_parts=5, part_index=part, batch_size=1)
        for key, images in some.items():
            parts.setdefault(key, []).extend(images)
    assert {key: sorted(images) for key, images in parts.items()} == {
        key: sorted(images) for key, images in whole.items()
    }


def test_a_record_that_takes_the_place_of_a_bad_one_looks_different_from_itself(tmp_path):
    bad, good = image_record(0, data=b"no image"), image_record(1, data=png(1, 40, 40))
    path = write_records(tmp_path / "two.rec", [bad, good] + 10 * [bad])
    found = occurrences(path, weights=[1, 1] + 10 * [0], on_error="skip", batch_size=4)
    assert set(found) == {(epoch, 1) for epoch in range(3)}
    for images in found.values():
        assert len(images) == 12 == len(set(images))


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"weights": [1, 2]}, ValueError, r"weights has shape \(2,\)"),
        ({"weights": {0: 1}}, ValueError, r"no entry for the labels \[1\.0, 2\.0"),
        ({"weights": [-1] + [1] * 9}, ValueError, "weights must be finite"),
        ({"weights": [np.nan] * 10}, ValueError, "weights must be finite"),
        ({"weights": [0] * 10}, ValueError, "at least one weight"),
        ({"weights": [1e308] * 10}, ValueError, "weights must have a finite sum"),
        ({"weights": "even"}, ValueError, "weights='even'"),
        ({"weights": {float(i): "one" for i in range(10)}}, ValueError, "weights="),
        ({"path_imglist": 3}, TypeError, "path_imglist=3: expected a path"),
        ({"mean_img": 3}, TypeError, "mean_img=3: expected a path"),
        ({"path_imgidx": b"a.idx"}, TypeError, "path_imgidx=b'a.idx': expected a path"),
        ({"dtype": np.zeros(2)}, ValueError, "dtype="),
        ({"data_name": 3}, TypeError, "data_name=3: expected a name"),
        ({"label_name": ["a"]}, TypeError, r"label_name=\['a'\]: expected a name"),
        ({"aug_seq": ""}, ValueError, "aug_seq=''"),
        ({"batch_size": 1 << 70}, ValueError, "batch_size="),
        ({"label_width": 1 << 70}, ValueError, "label_width="),
        ({"weights": [1] * 10, "shuffle": True}, ValueError, "drop shuffle"),
        ({"weights": [1] * 10, "shuffle_chunk_size": 1}, ValueError, "drop shuffle"),
        ({"error_budget": 3}, ValueError, "error_budget=3 needs on_error='skip'"),
        ({"error_budget": -1, "on_error": "skip"}, ValueError, "error_budget=-1"),
        ({"error_budget": -0.5, "on_error": "skip"}, ValueError, "error_budget=-0.5"),
        ({"on_error": "ignore"}, ValueError, "on_error='ignore'"),
        ({"epoch": -1}, ValueError, "epoch=-1"),
        ({"epoch": 1 << 32}, ValueError, "epoch=4294967296: .* from 0 to 4294967295"),
        ({"seed": 1 << 64}, ValueError, "seed=18446744073709551616"),
        ({"preprocess_threads": 1 << 40}, ValueError, "preprocess_threads="),
        ({"prefetch_buffer": 1 << 40}, ValueError, "prefetch_buffer="),
        ({"shuffle_chunk_size": 1 << 60}, ValueError, "shuffle_chunk_size="),
        ({"data_shape": (3, 1 << 40, 1)}, ValueError, "data_shape="),
        ({"resize": 1 << 40}, ValueError, "resize=.*at most"),
        ({"crop_x_start": 1 << 33}, ValueError, "crop_x_start="),
        ({"max_crop_size": 1 << 33, "min_crop_size": 1}, ValueError, "max_crop_size="),
        ({"scale": 10**400}, ValueError, "scale="),
        ({"rotate_list": 2.5}, TypeError, "rotate_list="),
        ({"rotate_list": "1,x"}, ValueError, "rotate_list="),
        ({"aug_seq": "det_aug_default"}, ValueError, "aug_seq="),
        ({"ctx": "tpu"}, ValueError, "ctx="),
    ],
)  # fmt: skip
def test_bad_values_are_refused_by_name(ten, arguments, error, text):
    with pytest.raises(error, match=text):
        provider_of(ten, **arguments)


@pytest.mark.parametrize("seed", [-1, -(1 << 63), (1 << 64) - 1, "7", np.int32(-5)])
def test_every_seed_is_a_seed(ten, seed):
    with provider_of(ten, seed=seed, shuffle=True, seed_aug=seed) as provider:
        assert sorted(ids_of(provider)) == list(range(10))


@pytest.mark.parametrize("shuffle", [False, True])
def test_blocks_of_neighbours_come_in_random_order(tmp_path, shuffle):
    """24 records of 0.25 MiB in blocks of 1 MiB."""
    bmp = cv2.imencode(".bmp", np.zeros((292, 300, 3), np.uint8))[1].tobytes()
    path = write_records(tmp_path / "blocks.rec", [image_record(i, data=bmp) for i in range(24)])
    with provider_of(path, shuffle_chunk_size=1, shuffle=shuffle, batch_size=24) as provider:
        epochs = [ids_of(provider) for _ in range(6)]
    offsets = recordio.RecordReader(path).offsets
    block_of = (offsets >> 20).tolist()
    assert len(set(map(tuple, epochs))) == 6
    for order in epochs:
        assert sorted(order) == list(range(24))
        blocks = [block_of[i] for i in order]
        changes = sum(a != b for a, b in zip(blocks, blocks[1:], strict=False))
        assert changes == len(set(block_of)) - 1  # every block is visited once
        inside = [order[i + 1] > order[i] for i in range(23) if blocks[i] == blocks[i + 1]]
        assert all(inside) is not shuffle


# -- on_error="skip" -------------------------------------------------------------------------------


def many_scans():
    from PIL import Image

    file = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    Image.fromarray(pixels).save(file, "jpeg", progressive=True)
    data = file.getvalue()
    scan = data.rindex(b"\xff\xda")
    end = data.rindex(b"\xff\xd9")
    return data[:scan] + data[scan:end] * 300 + data[end:]


def absurd_png():
    data = bytearray(png(0))
    data[16:24] = struct.pack(">II", 1 << 20, 1 << 20)
    import zlib

    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    return bytes(data)


def absurd_jpeg():
    data = bytearray(cv2.imencode(".jpg", np.zeros((16, 16, 3), np.uint8))[1].tobytes())
    place = data.index(b"\xff\xc0")
    data[place + 5 : place + 9] = struct.pack(">HH", 65000, 65000)
    return bytes(data)


def header(number, flag=0):
    return struct.pack("<IfQQ", flag, float(number), number, 0)


# number of the record -> (its content, error, words of the message)
BAD = {
    2: (header(2) + b"this is no image", ImageDecodeError, "known format"),
    5: (header(5)[:20], RecordHeaderError, "shorter than the 24 bytes"),
    9: (header(9, 3) + struct.pack("<3f", 1, 2, 3) + png(9), LabelError, "3 labels"),
    11: (header(11, 4) + struct.pack("<f", 1), RecordHeaderError, "announces 4 labels"),
    14: (header(14) + absurd_png(), ImageDecodeError, "too large"),
    15: (header(15) + absurd_jpeg(), ImageDecodeError, "large|pixels"),
    16: (header(16) + many_scans(), ImageDecodeError, "scans"),
    17: (header(17) + png(17)[:60], ImageDecodeError, "truncated"),
    21: (header(21), ImageDecodeError, "no image data"),
}
LAST = 29  # truncated by the end of the file; 25 has a corrupt frame


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    path = tmp_path_factory.mktemp("bad") / "bad.rec"
    records = [BAD[i][0] if i in BAD else image_record(i) for i in range(LAST + 1)]
    write_records(path, records)
    offsets = recordio.RecordReader(path).offsets
    content = bytearray(path.read_bytes())
    content[offsets[25] + 2] ^= 0x10
    path.write_bytes(content[: offsets[LAST] + 60])
    return path


ALL_BAD = {*BAD, 25, LAST}


def skipping(path, **arguments):
    index = {"path_imgidx": path.with_suffix(".idx"), "on_error": "skip", "rand_mirror": True}
    return provider_of(path, **(index | arguments))


def contents(provider, epochs=1):
    return [
        (b.data[0].tobytes(), b.label[0].tolist(), b.index.tolist(), b.pad)
        for _ in range(epochs)
        for b in provider
    ]


@pytest.mark.parametrize("number", sorted(ALL_BAD))
def test_every_kind_of_bad_record_is_an_error_with_its_place(bad, number):
    kind, text = {
        25: (CorruptRecordError, "record 25"),
        LAST: (TruncatedRecordError, "record 29"),
    }.get(number, BAD.get(number, (0, 0, 0))[1:])
    with skipping(bad, on_error="raise", batch_size=1) as provider:
        for i in range(number):
            if i in ALL_BAD:
                with pytest.raises(RecordIOError):
                    provider.next()
            else:
                assert provider.next().index[0] == i
        with pytest.raises(kind, match=text) as caught:
            provider.next()
    assert caught.value.record == number
    assert caught.value.path == str(bad)


@pytest.mark.parametrize("labels", [(), (5.0,), (5.0, 1.0)])
def test_headers_of_32_bytes_are_named(tmp_path, labels):
    wide = struct.pack(f"IdQQ{len(labels)}d", len(labels), 0.0, 7, 0, *labels)
    path = write_records(tmp_path / "wide.rec", [wide + png(7)] * 2)
    width = max(len(labels), 1)
    with provider_of(path, label_width=width) as provider:
        with pytest.raises(ImageDecodeError, match=r"header of 32 bytes .* `recordio narrow`"):
            provider.next()


def test_skipped_records_are_replaced_by_the_next_good_ones_and_listed_once(bad):
    with skipping(bad, batch_size=10, round_batch=False) as provider:
        for _ in range(2):
            wanted = []
            for i in range(LAST + 1):
                while i % (LAST + 1) in ALL_BAD:
                    i += 1
                wanted.append(i % (LAST + 1))
            assert ids_of(provider) == wanted
        numbers = [number for number, _ in provider.skipped]
        assert numbers == sorted(ALL_BAD)
        for number, reason in provider.skipped:
            assert f"record {number}" in reason
            assert str(bad) in reason
        stats = provider.stats()
    assert stats["samples"] == 60


@pytest.mark.parametrize("order", [{}, {"shuffle": True}, {"weights": np.ones(LAST + 1)}])
def test_replacements_do_not_depend_on_threads_and_can_be_resumed(bad, order):
    results = []
    for threads, prefetch in ((1, 1), (2, 4), (8, 2)):
        with skipping(
            bad, preprocess_threads=threads, prefetch_buffer=prefetch, batch_size=7, **order
        ) as provider:
            results.append((contents(provider, 3), provider.skipped))
    assert results[0] == results[1] == results[2]
    assert len(results[0][1]) == len(ALL_BAD) or "weights" in order
    for place in range(0, 15, 2):
        with skipping(bad, batch_size=7, **order) as provider:
            for _ in range(place // 5):
                list(provider)
            if place % 5:
                loop = iter(provider)
                for _ in range(place % 5):
                    next(loop)
            state = provider.state_dict()
        with skipping(bad, batch_size=7, **order) as provider:
            provider.load_state_dict(state)
            assert contents(provider, 3 - place // 5) == results[0][0][place:]


@pytest.mark.parametrize("by_list", [False, True])
def test_weights_by_label_leave_damaged_records_out(bad, tmp_path, by_list):
    """Those without a label have no weight; those with a label and no image are met as always."""
    unknown = {5, 11, 25, LAST}
    labels = {}
    if by_list:
        unknown |= {28}
        lines = [f"{i}\t{i}\tx" for i in range(LAST) if i != 28]
        labels = {"path_imglist": listed(tmp_path, *lines)}
    weights = dict.fromkeys(map(float, range(LAST + 1)), 1.0)
    with pytest.raises(RecordIOError, match="record 5"):
        provider_of(bad, path_imgidx=bad.with_suffix(".idx"), weights=weights, **labels)
    with skipping(bad, weights=weights, **labels) as provider:
        numbers = [re.search(r"record (\d+)", reason)[1] for _, reason in provider.skipped]
        assert sorted(map(int, numbers)) == sorted(unknown)
        found = drawn(provider, 20)
        # A list says the labels of records that hold another number of them, too.
        usable = set(range(LAST + 1)) - ALL_BAD - unknown | ({9} if by_list else set())
        assert set(found) == usable
        state = provider.state_dict()
    with skipping(bad, weights=weights, **labels) as provider:
        provider.load_state_dict(state)


def test_damaged_labels_count_for_the_budget_at_once(bad):
    weights = dict.fromkeys(map(float, range(LAST + 1)), 1.0)
    with pytest.raises(ErrorBudgetError, match="3 records could not be used"):
        skipping(bad, weights=weights, error_budget=2)


def test_weights_by_label_of_a_file_without_a_label_are_refused(tmp_path):
    path = write_records(tmp_path / "bad.rec", [b"short"] * 3)
    with pytest.raises(ValueError, match="at least one weight"):
        provider_of(path, weights={0: 1}, on_error="skip")


@pytest.mark.parametrize(
    ("budget", "enough"),
    [
        (len(ALL_BAD), True), (len(ALL_BAD) - 1, False), (0, False), (0.37, True), (0.3, False),
        (0.0, False),
    ],
)  # fmt: skip
def test_the_error_budget(bad, budget, enough):
    with skipping(bad, error_budget=budget) as provider:
        if enough:
            for _ in range(3):
                list(provider)
        else:
            with pytest.raises(ErrorBudgetError, match="error_budget") as caught:
                list(provider)
            assert str(bad) in str(caught.value)
            assert isinstance(caught.value.__cause__, RecordIOError)


def test_a_file_of_bad_records_ends_loudly(tmp_path):
    path = write_records(tmp_path / "allbad.rec", [header(i) + b"x" for i in range(30)])
    for order in ({}, {"shuffle": True}, {"weights": np.ones(30)}):
        with skipping(path, **order) as provider:
            with pytest.raises(ImageDecodeError):
                provider.next()
            assert len(provider.skipped) <= 30
    path = write_records(
        tmp_path / "onegood.rec", [header(i) + b"x" for i in range(9)] + [image_record(9)]
    )
    with skipping(path, shuffle=True) as provider:
        assert ids_of(provider) == [9] * 10
        assert len(provider.skipped) == 9


def test_a_mean_image_is_made_of_the_good_records(tmp_path):
    records = [
        image_record(
            i, data=cv2.imencode(".png", np.full((8, 8, 3), 10 * i, np.uint8))[1].tobytes()
        )
        for i in range(4)
    ]
    records[2] = header(2) + b"x"
    path = write_records(tmp_path / "mean.rec", records)
    with pytest.raises(ImageDecodeError):
        provider_of(path, mean_img=tmp_path / "mean.bin")
    assert not (tmp_path / "mean.bin").exists()
    with provider_of(path, mean_img=tmp_path / "mean.bin", on_error="skip") as provider:
        batch = provider.next()
    mean = (0 + 10 + 30) / 3
    assert np.allclose(batch.data[0][1], 10 - mean, atol=1e-4)


@pytest.mark.parametrize("keywords", [{}, {"shuffle": True}, {"weights": {0: 9, 1: 9}}])
def test_the_mean_image_is_that_of_all_parts(tmp_path, keywords):
    values = [10, 20, 30, 200, 220, 240, 250]  # of which parts have other means
    path = write_records(
        tmp_path / "a.rec",
        [
            image_record(i, float(i % 2), encode(np.full((8, 8, 3), value, np.uint8)))
            for i, value in enumerate(values)
        ],
    )
    means = []
    for part in range(3):
        with provider_of(
            path,
            batch_size=1,
            num_parts=3,
            part_index=part,
            mean_img=tmp_path / f"{part}.bin",
            **keywords,
        ) as provider:
            batch = provider.next()
        means.append((tmp_path / f"{part}.bin").read_bytes())
        plain = values[int(batch.index[0])]
        assert np.allclose(batch.data[0], plain - np.mean(values), atol=1e-3)
    assert means[0] == means[1] == means[2]


def test_ranks_that_start_together_make_the_mean_image_once(tmp_path, monkeypatch):
    path = write_records(tmp_path / "a.rec", [image_record(i) for i in range(6)])
    made = []
    average = image_engines._average

    def counted(*arguments):
        made.append(1)
        time.sleep(0.2)
        return average(*arguments)

    monkeypatch.setattr(image_engines, "_average", counted)

    def start(part):
        keywords = {"num_parts": 3, "part_index": part, "batch_size": 1}
        provider_of(path, mean_img=str(tmp_path / "mean.bin"), **keywords).close()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(start, range(3)))
    assert made == [1] and {file.suffix for file in tmp_path.iterdir()} == {".rec", ".idx", ".bin"}


# -- counters and parameters -----------------------------------------------------------------------


def test_counters_count(ten):
    with provider_of(ten, batch_size=4, prefetch_buffer=1) as provider:
        for _ in range(2):
            list(provider)
        stats = provider.stats()
    assert stats["samples"] == 20
    assert 24 <= stats["images"] <= 28  # padding is rendered, and one batch ahead
    sizes = [len(record) - 24 for record in recordio.RecordReader(ten)]
    assert 2 * sum(sizes) <= stats["bytes"] <= 3 * sum(sizes)
    for name in ("wait_seconds", "busy_seconds", "decode_seconds", "transform_seconds"):
        assert 0 <= stats[name] < 100


DEFAULTS = {
    "path_imgidx": "", "path_imglist": "", "label_width": 1, "num_parts": 1, "part_index": 0,
    "shuffle": False, "seed": 0, "shuffle_chunk_size": 0, "shuffle_chunk_seed": 0, "verbose": True,
    "round_batch": True, "prefetch_buffer": 4, "preprocess_threads": 4, "ctx": "gpu", "dtype": None,
    "device_id": 0, "aug_seq": "aug_default", "seed_aug": None, "resize": -1, "rand_crop": False,
    "random_resized_crop": False, "max_rotate_angle": 0, "rotate": -1, "rotate_list": "",
    "max_shear_ratio": 0, "max_aspect_ratio": 0, "min_aspect_ratio": None, "max_random_scale": 1,
    "min_random_scale": 1, "max_img_size": 1e10, "min_img_size": 0, "max_crop_size": -1,
    "min_crop_size": -1, "max_random_area": 1, "min_random_area": 1, "pad": 0, "fill_value": 255,
    "inter_method": 1, "brightness": 0, "contrast": 0, "saturation": 0, "random_h": 0,
    "random_s": 0, "random_l": 0, "pca_noise": 0, "mirror": False, "rand_mirror": False,
    "mean_img": "", "mean_r": 0, "mean_g": 0, "mean_b": 0, "mean_a": 0, "std_r": 1, "std_g": 1,
    "std_b": 1, "std_a": 1, "scale": 1, "max_random_contrast": 0, "max_random_illumination": 0,
    "crop_x_start": -1, "crop_y_start": -1,
}  # fmt: skip


@pytest.mark.parametrize("kind", [ImageRecordIter, ImageRecordUInt8Iter, ImageRecordInt8Iter])
@pytest.mark.parametrize("as_text", [False, True])
def test_every_default_of_mxnet_can_be_written_out(ten, kind, as_text):
    arguments = DEFAULTS
    if as_text:
        arguments = {k: v if v is None else str(v) for k, v in DEFAULTS.items()}
    needed = {"path_imgrec": ten, "data_shape": (3, 8, 8), "batch_size": 4}
    if as_text:
        needed |= {"path_imgrec": str(ten), "data_shape": "(3, 8, 8)", "batch_size": "4"}
    with kind(**needed, **arguments) as written, kind(**needed) as plain:
        assert contents(written) == contents(plain)
        assert written.state_dict() == plain.state_dict()


def test_integer_iterators_have_one_dtype(ten):
    for kind, name in ((ImageRecordUInt8Iter, "uint8"), (ImageRecordInt8Iter, "int8")):
        arguments = {"path_imgrec": ten, "data_shape": (3, 8, 8), "batch_size": 4}
        with kind(dtype=name, **arguments) as provider:
            assert provider.next().data[0].dtype == name
        with pytest.raises(ValueError, match="dtype='float32'"):
            kind(dtype="float32", **arguments)


def test_a_line_is_logged_at_the_end_of_every_epoch_when_verbose(ten, caplog):
    caplog.set_level("INFO", logger="iterators")
    with provider_of(ten, verbose=True) as provider:
        lines = [record.getMessage() for record in caplog.records]
        assert lines == [f"{ten}: 10 of 10 records, 2 threads"]
        for epoch in range(2):
            for number, _ in enumerate(provider):
                assert len(caplog.records) == 1 + epoch + (number == 2)
            line = caplog.records[-1].getMessage()
            assert line.startswith(f"epoch {epoch}: {10 * (epoch + 1)} samples so far, waited ")
            assert line.endswith("0 records skipped")
    caplog.clear()
    with provider_of(ten, verbose=False) as provider:
        list(provider)
    assert not caplog.records


def test_an_index_that_ends_early_is_an_error_or_said(tmp_path):
    path = write_records(tmp_path / "a.rec", [image_record(i) for i in range(10)])
    index = path.with_suffix(".idx")
    lines = index.read_text().splitlines(True)
    for kept, more in ((lines[:5], ""), (lines, "10\t0\n")):
        index.write_text("".join(kept) + more)
        remedy = r"`recordio index .*a\.rec --force`"
        with pytest.raises(IndexFileError, match=rf"a\.idx.*a\.rec.*{remedy}|again; {remedy}"):
            provider_of(path, path_imgidx=str(index))
        with pytest.warns(UserWarning, match=rf"not list every record of .*a\.rec once: {remedy}"):
            provider = provider_of(path, path_imgidx=str(index), on_error="skip")
        with provider:
            assert provider.num_samples == len(kept) + bool(more)
        with pytest.raises(RecordIOError, match="do not list every record"):
            provider_of(path, path_imgidx=str(index), on_error="skip", strict=True)
