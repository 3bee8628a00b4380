"""TFRecord files read in place."""

import gzip
import pickle
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tfrecords import framed, write_tfrecord

from iterators import ImageDetRecordIter, ImageRecordIter
from iterators.testing import assert_same, copies, encode_jpeg, noise
from recordio import RecordIOError
from recordio.bytes.files import StoredFile
from recordio.containers.samples import NO_CONTENT
from recordio.containers.table import container_of
from recordio.containers.tfrecord import TFRECORD, _Tables, scan
from recordio.packs.open_pack import open_listed
from recordio.tools.cli import main

BOX = "image/object/bbox/"


@pytest.fixture
def set_of_two(tmp_path):
    """Two shards of 7 images, keys of ImageNet in one and of TFDS in the other."""
    images = [encode_jpeg(noise(40 + i, 44, i)) for i in range(7)]
    write_tfrecord(
        tmp_path / "train-00000-of-00002",
        *({"image/class/label": [i], "image/encoded": [images[i]]} for i in range(4)),
    )
    write_tfrecord(
        tmp_path / "train-00001-of-00002",
        *({"x": [b"?"], "image": [images[i]], "label": [i]} for i in range(4, 7)),
    )
    return tmp_path


def batches(source, kind=ImageRecordIter, **more):
    with kind(path_imgrec=source, batch_size=3, data_shape=(3, 32, 32), **more) as images:
        return copies(images)


def samples_in(tmp_path, *examples, name="a.tfrecord"):
    return scan(StoredFile(str(write_tfrecord(tmp_path / name, *examples))))


def converted(source, prefix):
    assert main(["from-tfrecord", *map(str, source), str(prefix), "--check", "none"]) in (0, 1)
    with open_listed(f"{prefix}.rec")[0] as pack:
        return {h.id: (h.label, c) for h, c in pack_contents(pack)}


def pack_contents(pack):
    from recordio import unpack

    for record in pack.reader:
        header, content = unpack(record)
        label = header.label if isinstance(header.label, float) else header.label.tolist()
        yield header._replace(label=label), bytes(content)


@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_those_of_the_converted_pack(set_of_two, shuffle):
    shards = sorted(set_of_two.iterdir())
    converted(shards, set_of_two / "pack")
    wanted = batches(set_of_two / "pack.rec", shuffle=shuffle, rand_crop=True)
    for source in (
        f"{set_of_two}/train-{{00000..00001}}-of-00002",
        f"{set_of_two}/train-*-of-00002",
        [str(path) for path in shards],
    ):
        assert_same(batches(source, shuffle=shuffle, rand_crop=True), wanted)


def test_a_folder_of_shards_is_read(set_of_two):
    assert len(batches(set_of_two)) == 3


@pytest.mark.parametrize(
    "name",
    ["a.tfrecord", "a.tfrecords", "b/a-train.tfrecord-00000-of-00008", "train-00000-of-01024"]
    + ["val-?????-of-*", "a.tfrecord-*-of-00008"],
)
def test_files_are_known_by_their_names(name):
    assert container_of(StoredFile(name)) is TFRECORD


@pytest.mark.parametrize("name", ["a.rec", "part-00000-of-00008.rec", "tfrecord", "1-of-2/a.rec"])
def test_other_names_are_not(name):
    assert container_of(StoredFile(name)) is None


def test_spans_are_the_contents(tmp_path):
    found = samples_in(
        tmp_path, {"image": [b"abc"], "label": [3]}, {"label": [0.5, 2.0], "image": [b""]}
    )
    data = (tmp_path / "a.tfrecord").read_bytes()
    assert data[found.offsets[0] :][: found.sizes[0]] == b"abc"
    assert found.sizes.tolist() == [3, 0]
    assert [found.labels_of(i).tolist() for i in range(2)] == [[3], [0.5, 2]]


def test_faults_say_what_is_wrong_with_an_example(tmp_path):
    found = samples_in(
        tmp_path,
        {"image": [b"a"], "label": [1]},
        {"label": [1]},
        {"image": [b"a", b"b"], "label": [1]},
        {"image": [1.5], "label": [1]},
        {"image": [b"a"], "label": [b"cat"]},
        {"image": [b"a"], "label": [2**24 + 1]},
        {"image": [b"a"]},
        b"no example",
    )
    assert found.sizes.tolist() == [1] + [NO_CONTENT] * 7
    wrong = ["no feature image/encoded or image", "one string of bytes", "one string of bytes"]
    wrong += ["holds no number", "no exact 32-bit float", "no feature image/class/label", "no tf"]
    for number, text in enumerate(wrong, 1):
        assert text in found.faults[number]


def test_without_any_label_all_are_zero(tmp_path):
    found = samples_in(tmp_path, {"image": [b"a"]}, {"image": [b"b"], "text": [b"a cat"]})
    assert found.sizes.tolist() == [1, 1]
    assert found.labels.tolist() == [0, 0]
    assert not found.faults


def boxes(classes, *columns):
    names = ("xmin", "ymin", "xmax", "ymax")
    example = dict(zip((BOX + name for name in names), map(list, columns), strict=True))
    return {"image/encoded": [encode_jpeg(noise(40, 44))], "image/object/class/label": classes,
            **example}  # fmt: skip


def test_boxes_become_labels_of_detection_records(tmp_path):
    path = write_tfrecord(
        tmp_path / "a.tfrecord",
        boxes([3, 4], [0.25, 0.0], [0.5, -0.005], [0.75, 1.0], [1.0, 1.001]),
        boxes([], [], [], [], []),
        boxes([1], [0.0], [0.0], [1.5], [1.0]),
        boxes([1, 2], [0.0], [0.0], [1.0], [1.0]),
        boxes([1], [0.5], [0.0], [0.25], [1.0]),
        boxes([1], [float("nan")], [0.0], [0.25], [1.0]),
        boxes([1], [b"x"], [0.0], [0.25], [1.0]),
    )
    found = scan(StoredFile(str(path)))
    assert found.labels_of(0).tolist() == [2, 5, 3, 0.25, 0.5, 0.75, 1, 4, 0, 0, 1, 1]
    assert found.labels_of(1).tolist() == [2, 5, -1, 0, 0, 0, 0]
    assert sorted(found.faults) == [2, 3, 4, 5, 6]
    pack = converted([path], tmp_path / "pack")
    assert {i: label for i, (label, _) in pack.items()} == {
        i: found.labels_of(i).tolist() for i in (0, 1)
    }
    write_tfrecord(path, boxes([3, 4], [0.25, 0.0], [0.5, 0.0], [0.75, 1.0], [1.0, 1.0]))
    converted([path], tmp_path / "again")
    wanted = batches(tmp_path / "again.rec", ImageDetRecordIter)
    assert_same(batches(path, ImageDetRecordIter), wanted)


def test_a_label_of_the_image_comes_before_those_of_boxes(tmp_path):
    example = {**boxes([3], [0.0], [0.0], [1.0], [1.0]), "image/class/label": [7]}
    assert samples_in(tmp_path, example).labels.tolist() == [7]


@pytest.mark.parametrize(
    ("pack", "text"),
    [(gzip.compress, "recordio from-tfrecord"), (zlib.compress, "pigz -dz")],
)
def test_compressed_files_are_an_error_that_says_what_to_do(tmp_path, pack, text):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(pack(framed(b"x" * 99)))
    with pytest.raises(RecordIOError, match=text) as error:
        batches(path)
    assert error.value.path == str(path)


def test_another_file_is_an_error(tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(b"something else" * 9)
    with pytest.raises(RecordIOError, match="no TFRecord file"):
        batches(tmp_path / "a.tfrecord")


def test_every_truncation_leaves_whole_records_and_a_fault(tmp_path):
    whole = framed(*(b"\x0a" + bytes([len(e) - 2]) + e[2:] for e in examples(3)))
    path = tmp_path / "a.tfrecord"
    ends = [len(whole) // 3 * i for i in range(4)]
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        found = scan(StoredFile(str(path)))
        full = sum(end <= size for end in ends) - 1
        assert len(found) == full + (size not in ends)
        assert found.sizes[:full].tolist() == [3] * full
        if size not in ends:
            assert "ends within this record" in found.faults[full]
            assert found.sizes[full] == NO_CONTENT


def examples(count):
    from recordio.tools.convert.tf_example import encode_example

    return [encode_example({"image": [b"abc"], "label": [i]}) for i in range(count)]


def test_every_changed_byte_of_a_head_is_a_fault(tmp_path):
    whole = framed(*examples(3))
    path, second = tmp_path / "a.tfrecord", len(whole) // 3
    for at in range(second, second + 12):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        found = scan(StoredFile(str(path)))
        assert found.sizes.tolist() == [3, NO_CONTENT]
        assert f"{2 * second} bytes cannot be read" in found.faults[1]


def test_a_reader_can_be_pickled(set_of_two):
    _, opened = open_listed(f"{set_of_two}/train-*-of-00002")
    again = pickle.loads(pickle.dumps(opened.reader))
    assert again.ids.tolist() == [4, 5, 6]
    assert again[1] == opened.reader[1]


def test_checksums_that_are_asked_for_are_refused_rather_than_passed_over(set_of_two):
    with pytest.raises(ValueError, match="verify"):
        batches(set_of_two, verify=True)


def test_a_damaged_file_is_skipped_as_far_as_that_is_wished(tmp_path, set_of_two):
    shard = set_of_two / "train-00001-of-00002"
    shard.write_bytes(shard.read_bytes()[:-5])
    source = f"{set_of_two}/train-*-of-00002"
    with pytest.raises(RecordIOError, match="ends within this record") as error:
        batches(source)
    assert error.value.path == str(shard)
    assert error.value.record == 2
    found = batches(source, on_error="skip")
    rows = {int(i) for b in found for i in b.index[: len(b.index) - b.pad]}
    assert rows == set(range(6))


@given(st.lists(st.binary(max_size=60), max_size=5), st.binary(max_size=30))
def test_any_bytes_give_samples_or_faults(tmp_path_factory, records, rest):
    path = tmp_path_factory.mktemp("any") / "a.tfrecord"
    path.write_bytes(framed(*records) + rest)
    try:
        found = scan(StoredFile(str(path)))
    except RecordIOError:
        return
    assert len(found) == len(records) + bool(rest)
    assert sorted(found.faults) == np.flatnonzero(found.sizes == NO_CONTENT).tolist()


values = (
    st.lists(st.binary(max_size=4), max_size=2)
    | st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), max_size=2)
    | st.lists(st.floats(width=32), max_size=2)
)
keys = st.sampled_from(["image", "image/encoded", "label", "image/class/label", "x"])


@given(st.lists(st.dictionaries(keys, values, max_size=5), min_size=1, max_size=6))
def test_samples_are_the_items_of_the_converter(tmp_path_factory, examples):
    folder = tmp_path_factory.mktemp("same")
    usable = {"image": [b"!"], "label": [1]}  # so that missing labels are faults
    path = write_tfrecord(folder / "a.tfrecord", *examples, usable)
    pack = converted([path], folder / "pack")
    found, data = scan(StoredFile(str(path))), path.read_bytes()
    usable_ones = np.flatnonzero(found.sizes != NO_CONTENT).tolist()
    assert usable_ones == sorted(pack)
    for number in usable_ones:
        label, content = pack[number]
        begin, size = int(found.offsets[number]), int(found.sizes[number])
        assert data[begin : begin + size] == content
        np.testing.assert_array_equal(np.atleast_1d(label), found.labels_of(number))


def test_more_records_than_are_looked_at_together(tmp_path, monkeypatch):
    monkeypatch.setattr("recordio.containers.tfrecord.AT_ONCE", 4)
    examples = [{"image": [b"abc"], "label": [i] if i % 3 else [i, i]} for i in range(19)]
    found = samples_in(tmp_path, *examples)
    for i in range(19):
        assert set(found.labels_of(i).tolist()) == {i}
    assert isinstance(_Tables().samples().offsets, np.ndarray)
