"""Arrays in idx files: MXNet's MNIST files, round trips, and every way to be damaged."""

import gzip
import os
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from recordio import (
    ArrayFileError,
    RecordIOError,
    TruncatedArrayError,
    read_idx_array,
    write_idx_array,
)

DTYPES = ["uint8", "int8", "int16", "int32", "float32", "float64"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("idx")


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_golden_files_of_mxnet(golden, suffix):
    batches = np.load(golden / "text_batches.npz")
    images = read_idx_array(golden / f"images-idx3-ubyte{suffix}")
    labels = read_idx_array(golden / f"labels-idx1-ubyte{suffix}")
    assert images.dtype == labels.dtype == np.uint8
    assert images.shape == (23, 9, 7)
    count = 20  # MXNet drops the rest
    rows = np.concatenate([batches[f"mnist/0/{batch}/data"] for batch in range(4)])
    np.testing.assert_array_equal(images[:count, None] / np.float32(256), rows)
    flat = np.concatenate([batches[f"mnist_flat/0/{batch}/data"] for batch in range(4)])
    np.testing.assert_array_equal(images[:count].reshape(count, -1) / np.float32(256), flat)
    expected = np.concatenate([batches[f"mnist/0/{batch}/label"] for batch in range(4)])
    assert labels[:count].tolist() == expected.tolist()


def test_bytes_of_a_file(tmp_path):
    path = tmp_path / "a.idx"
    write_idx_array(path, np.array([[1, -2, 3]], np.int16))
    assert path.read_bytes() == bytes.fromhex("00000b02 00000001 00000003 0001 fffe 0003")
    write_idx_array(path, np.float32(1.5))
    assert path.read_bytes() == bytes.fromhex("00000d00 3fc00000")
    assert read_idx_array(path).shape == ()


@settings(max_examples=150, deadline=None)
@given(
    st_numpy.arrays(
        st.sampled_from([np.dtype(order + name) for name in ("u1", "i1", "i2", "i4", "f4", "f8")
                         for order in "<>"]),
        st_numpy.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=5),
    ),
    st.sampled_from(["a.idx", "a.idx.gz"]),
    st.booleans(),
)  # fmt: skip
def test_round_trip_of_all_types_and_shapes(folder, array, name, turned):
    if turned:
        array = array.T
    write_idx_array(folder / name, array)
    result = read_idx_array(folder / name)
    assert result.dtype == array.dtype.newbyteorder("=")
    assert result.dtype.isnative
    assert result.shape == array.shape
    assert result.tobytes() == array.astype(result.dtype).tobytes()
    assert result.flags.writeable
    assert result.flags.c_contiguous
    result[...] = 0


def test_arrays_larger_than_the_pieces_they_are_written_in(tmp_path):
    array = np.random.default_rng(0).integers(-100, 100, (7, 1_000_003), np.int16)
    for name in ("a.idx", "a.idx.gz"):
        write_idx_array(tmp_path / name, array)
        np.testing.assert_array_equal(read_idx_array(tmp_path / name), array)


def test_gzip_is_the_same_every_time_and_recognised_by_content(tmp_path):
    write_idx_array(tmp_path / "a.gz", np.arange(9, dtype=np.uint8))
    write_idx_array(tmp_path / "b.gz", np.arange(9, dtype=np.uint8))
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    (tmp_path / "a.gz").rename(tmp_path / "c.idx")
    assert read_idx_array(tmp_path / "c.idx").tolist() == list(range(9))


@pytest.mark.parametrize("dtype", ["int64", "uint16", "bool", "float16", "complex64", "U3", "O"])
def test_other_types_are_not_converted_silently(tmp_path, dtype):
    path = tmp_path / "a.idx"
    path.write_bytes(b"old")
    with pytest.raises(TypeError, match="converted"):
        write_idx_array(path, np.zeros(3, dtype))
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.idx"]


def test_lengths_beyond_32_bits_are_refused(tmp_path):
    with pytest.raises(ValueError, match="32 bits"):
        write_idx_array(tmp_path / "a", np.lib.stride_tricks.as_strided(
            np.zeros(1, np.uint8), (1 << 32,), (0,)))  # fmt: skip
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("packed", [False, True])
def test_truncation_at_every_byte_and_bytes_that_follow(tmp_path, packed):
    content = bytes.fromhex("00000c02 00000002 00000003") + struct.pack(">6i", *range(6))
    path = tmp_path / "a.idx"

    def read(content):
        path.write_bytes(gzip.compress(content) if packed else content)
        return read_idx_array(path)

    assert read(content).tolist() == [[0, 1, 2], [3, 4, 5]]
    for length in range(len(content)):
        with pytest.raises(TruncatedArrayError) as caught:
            read(content[:length])
        assert caught.value.path == str(path)
        assert isinstance(caught.value, EOFError)
    for extra in (b"\0", bytes(100)):
        with pytest.raises(ArrayFileError, match="follow") as caught:
            read(content + extra)
        assert caught.value.offset == len(content)


def test_damaged_gzip_at_every_length(tmp_path):
    path = tmp_path / "a.gz"
    write_idx_array(path, np.arange(200, dtype=np.int32))
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(ArrayFileError):
            read_idx_array(path)


@pytest.mark.parametrize(
    "head", ["01000801", "00010801", "00000001", "00000a01", "00000f01", "00000841", "000008ff"]
)
def test_heads_that_are_none(tmp_path, head):
    path = tmp_path / "a.idx"
    path.write_bytes(bytes.fromhex(head) + bytes(2000))
    with pytest.raises(ArrayFileError, match="begins with|dimensions"):
        read_idx_array(path)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dimensions", [1, 3, 64])
def test_promises_of_a_head_take_no_memory(tmp_path, packed, dimensions):
    content = bytes([0, 0, 14, dimensions]) + b"\xff" * 4 * dimensions + bytes(1000)
    path = tmp_path / "a.idx"
    path.write_bytes(gzip.compress(content) if packed else content)
    tracemalloc.start()
    try:
        with pytest.raises(TruncatedArrayError):
            read_idx_array(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()


def test_empty_arrays_with_impossible_other_lengths(tmp_path):
    path = tmp_path / "a.idx"
    path.write_bytes(bytes([0, 0, 8, 4]) + bytes(4) + b"\xff" * 12)
    with pytest.raises(ArrayFileError, match="too large"):
        read_idx_array(path)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40), st.binary(max_size=4), st.booleans())
def test_any_bytes_give_an_array_or_a_typed_error(folder, content, head, packed):
    path = folder / "any.idx"
    content = (bytes([0, 0, *head]) if head else b"") + content
    path.write_bytes(gzip.compress(content) if packed else content)
    try:
        assert read_idx_array(path).nbytes <= len(content)
    except RecordIOError as error:
        assert error.path == str(path)


def test_what_gzip_hides_is_refused_until_asked_for(tmp_path):
    path = tmp_path / "a.gz"
    header = bytes([0, 0, 8, 2]) + np.array([2, 1 << 28], ">u4").tobytes()
    path.write_bytes(gzip.compress(header) + gzip.compress(bytes(1 << 26)) * 8)
    with pytest.raises(ArrayFileError, match=r"bytes of the file become .* raise max_array_bytes"):
        read_idx_array(path)
    write_idx_array(tmp_path / "b", np.zeros(1000, np.uint8))
    with pytest.raises(ArrayFileError, match="raise max_array_bytes"):
        read_idx_array(tmp_path / "b", max_array_bytes=999)
    assert len(read_idx_array(tmp_path / "b", max_array_bytes=1000)) == 1000
