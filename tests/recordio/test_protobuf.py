"""SageMaker's recordio-protobuf: written to the byte as its SDK does, and any encoding is read."""

import json
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import recordio
from recordio import ProtobufRecordError, read_protobuf, write_protobuf

#: Files of sagemaker 2.257.7, as its `serializer_utils` wrote them, and their arrays.
GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "sagemaker.json").read_text())
FLOATS = np.float32([1, 2, 3])


def varint(value):
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def entry(number, tensor, name=b"values"):
    return field(1, name) + field(2, field(number, tensor))


def record(tensor=field(1, FLOATS.tobytes()), number=2, label=None, name=b"values"):
    features = field(1, entry(number, tensor, name))
    return features if label is None else features + field(2, entry(2, label))


def file_of(path, *records):
    with recordio.RecordWriter(path) as writer:
        for item in records:
            writer.write(item)
    return path


@pytest.mark.parametrize("name", GOLDEN)
def test_files_of_the_sdk_are_read_and_written_again_to_the_byte(name, tmp_path):
    case = GOLDEN[name]
    raw, path = bytes.fromhex(case["file"]), tmp_path / "a.pbr"
    path.write_bytes(raw)
    features, labels = read_protobuf(path)
    dtype = case["dtype"].replace("int64", "int32")
    assert features.dtype == dtype
    if "shape" in case:
        assert features.shape == tuple(case["shape"])
        for part in ("data", "indices", "indptr"):
            assert getattr(features, part).tolist() == case[part]
    elif name == "magic":
        assert features.view("<i4").tolist() == case["features"]
        assert raw.count(b"\x0a\x23\xd7\xce") == 8  # two frames, and six in their records
    else:
        assert features.tolist() == case["features"]
    assert (None if labels is None else labels.tolist()) == case["labels"]
    write_protobuf(tmp_path / "b.pbr", features, labels)
    assert (tmp_path / "b.pbr").read_bytes() == raw


@given(
    data=st.data(),
    dtype=st.sampled_from(["float32", "float64", "int32"]),
    rows=st.integers(1, 5),
    width=st.integers(1, 4),
    labelled=st.sampled_from([None, 1, 3]),
    sparse=st.booleans(),
)
def test_what_is_written_is_read(tmp_path_factory, data, dtype, rows, width, labelled, sparse):
    from scipy.sparse import csr_array

    path = tmp_path_factory.mktemp("a") / "a.pbr"
    values = data.draw(arrays.arrays(dtype, (rows, width)))
    labels = None if labelled is None else data.draw(arrays.arrays(dtype, (rows, labelled)))
    write_protobuf(path, csr_array(values) if sparse else values, labels)
    features, found = read_protobuf(path, threads=2)
    dense = features if isinstance(features, np.ndarray) else features.toarray()
    assert dense.dtype == dtype
    np.testing.assert_array_equal(dense, values)
    if labels is None:
        assert found is None
    else:
        np.testing.assert_array_equal(found, labels[:, 0] if labelled == 1 else labels)


def test_numbers_may_stand_alone_and_fields_in_any_order(tmp_path):
    alone = b"".join(b"\x0d" + struct.pack("<f", x) for x in FLOATS)
    halves = field(1, FLOATS[:1].tobytes()) + field(1, FLOATS[1:].tobytes())
    unknown = field(9, b"abc") + b"\x78\x05" + b"\x7b\x08\x01\x7c"
    for tensor in (alone, halves, unknown + halves + unknown):
        other = field(1, entry(2, field(1, b"\0" * 4), b"another"))
        item = unknown + other + record(tensor) + field(3, b"uid")
        features, labels = read_protobuf(file_of(tmp_path / "a.rec", item, record(alone)))
        assert features.tolist() == [[1, 2, 3]] * 2 and labels is None
    backwards = field(1, field(2, field(2, halves)) + field(1, b"values"))
    assert read_protobuf(file_of(tmp_path / "a.rec", backwards))[0].tolist() == [[1, 2, 3]]


def test_integers_and_keys_may_stand_alone(tmp_path):
    tensor = b"\x08\x05" + b"\x08" + varint((1 << 64) - 7) + b"\x10\x01\x10\x03" + b"\x18\x09"
    features, _ = read_protobuf(file_of(tmp_path / "a.rec", record(tensor, 7)))
    assert features.shape == (1, 9) and features.toarray()[0].tolist() == [0, 5, 0, -7] + [0] * 5
    unshaped = b"\x08\x05\x10\x04"
    features, _ = read_protobuf(file_of(tmp_path / "a.rec", record(unshaped, 7)))
    assert features.shape == (1, 5)


def test_records_that_mxnet_would_write_in_parts_are_read_too(tmp_path):
    values = np.frombuffer(b"\x0a\x23\xd7\xce" * 2, "<f4")
    path = file_of(tmp_path / "a.rec", *[record(field(1, values.tobytes()))] * 3)
    write_protobuf(tmp_path / "b.rec", np.stack([values] * 3))
    assert path.stat().st_size != (tmp_path / "b.rec").stat().st_size
    for name in ("a.rec", "b.rec"):
        assert read_protobuf(tmp_path / name)[0].tobytes() == values.tobytes() * 3


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"\x0a\xff", "does not end"),
        (record(b"\x0a\x03abc"), "longer than its message"),
        (b"", "no entry"),
        (record(b"a", 9), "holds bytes"),
        (record(name=b"other"), "no entry"),
        (record(b"\x08\x01"), "another type than their tensor"),
        (field(1, field(1, b"values") + field(2, field(2, b"") * 2)), "two tensors"),
        (record(field(1, FLOATS[:2].tobytes())), r"2 numbers as features, those before it 3"),
        (record(field(1, np.zeros(3).tobytes()), 3), "float64.*float32"),
        (record(label=field(1, FLOATS.tobytes())), "labels are float32"),
        (record(field(1, FLOATS.tobytes()) + b"\x18\x04"), "3 numbers and 0 keys"),
        (record(b"\x18" + varint((1 << 64) - 1)), r"2\*\*63"),
        (record(b"\x12\x01\x05"), "0 keys|0 numbers"),
    ],
)
def test_a_record_that_cannot_be_used_is_named(bad, reason, tmp_path):
    path = file_of(tmp_path / "a.rec", record(), record(), bad)
    with pytest.raises(ProtobufRecordError, match=reason) as raised:
        read_protobuf(path)
    assert str(path) in str(raised.value) and raised.value.record in (0, 2)


def test_keys_outside_of_the_shape_are_refused(tmp_path):
    sound = record(b"\x08\x05\x10\x01\x18\x09", 7)
    bad = record(b"\x08\x05\x10\x0a\x18\x09", 7)
    with pytest.raises(ProtobufRecordError, match="key 10") as raised:
        read_protobuf(file_of(tmp_path / "a.rec", sound, sound, bad, sound))
    assert raised.value.record == 2
    with pytest.raises(ProtobufRecordError, match="shape has 8 entries, that of others 9"):
        read_protobuf(file_of(tmp_path / "a.rec", sound, record(b"\x08\x05\x10\x01\x18\x08", 7)))


def test_several_files_and_chunks_are_one(tmp_path):
    values = np.arange(5000, dtype=np.float32)[:, None]
    write_protobuf(tmp_path / "part-0", values[:2000], values[:2000, 0])
    write_protobuf(tmp_path / "part-1", values[2000:], values[2000:, 0])
    for path in (tmp_path, tmp_path / "part-*", f"{tmp_path}/part-0;{tmp_path}/part-1"):
        for threads in (1, 3):
            features, labels = read_protobuf(path, threads=threads)
            assert (features == values).all() and (labels == values[:, 0]).all()
    write_protobuf(tmp_path / "part-2", np.zeros((1500, 1)))
    with pytest.raises(ProtobufRecordError, match="part-2.*record 0|record 0.*part-2"):
        read_protobuf(tmp_path)


def test_damage_of_the_file_and_limits(tmp_path):
    path = tmp_path / "a.pbr"
    write_protobuf(path, np.ones((100, 50), np.float32))
    with pytest.raises(ProtobufRecordError, match="max_array_bytes"):
        read_protobuf(path, max_array_bytes=1000)
    whole = path.read_bytes()
    for size in range(0, len(whole), 997):
        path.write_bytes(whole[:size])
        with pytest.raises(recordio.RecordIOError):
            read_protobuf(path)
    with pytest.raises(ValueError, match="threads"):
        read_protobuf(path, threads=0)
    with pytest.raises(FileNotFoundError):
        read_protobuf(tmp_path / "none")


@given(st.binary(max_size=60))
def test_random_bytes_are_an_error_or_an_array(tmp_path_factory, content):
    path = file_of(tmp_path_factory.mktemp("a") / "a.rec", content)
    tracemalloc.start()
    try:
        features, _ = read_protobuf(path, threads=1)
        assert features.shape[0] == 1
    except recordio.RecordIOError:
        pass
    finally:
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("features", "labels", "error", "word"),
    [
        (np.zeros(3), None, ValueError, "width"),
        (np.zeros((2, 2)), np.zeros(3), ValueError, "labels of shape"),
        (np.zeros((2, 2), bool), None, TypeError, "bool"),
        (np.array([[1 << 40]]), None, ValueError, "32 bits"),
    ],
)
def test_what_cannot_be_written(features, labels, error, word, tmp_path):
    with pytest.raises(error, match=word):
        write_protobuf(tmp_path / "a", features, labels)
    assert not list(tmp_path.iterdir())
