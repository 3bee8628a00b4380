"""LibSVM files: MXNet's own, every rule, places of errors, threads, any bytes."""

import gzip
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordio import TextFormatError, read_csv, read_libsvm
from recordio.frames.encoder import encode

sparse = pytest.importorskip("scipy.sparse")


@pytest.fixture
def write(tmp_path):
    def write(text, name="some.libsvm"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("libsvm")


def test_golden_file_of_mxnet(golden):
    batches = np.load(golden / "text_batches.npz")
    data, labels = read_libsvm(golden / "data.libsvm", 20)
    assert data.shape == (9, 20)
    rows = np.concatenate([batches[f"libsvm/0/{batch}/data"] for batch in range(3)])[:9]
    np.testing.assert_array_max_ulp(data.toarray(), rows, maxulp=1)
    expected = np.concatenate([batches[f"libsvm/0/{batch}/label"] for batch in range(3)])[:9]
    assert labels.tolist() == expected.tolist()


def test_weights_queries_comments_and_blank_lines_are_dropped(write):
    text = (
        "\ufeff# a comment\n\n1:0.5 qid:3 0:1 2:2.5\r\n  \t\n"
        "-2\t1:-1e-1\t  # 7:7\n3#4\n+4 qid:-5\n0 2:nan 0:inf"
    )
    dropped = {}
    data, labels = read_libsvm(write(text), label_weights=True, dropped=dropped)
    assert dropped == {"weights": 1, "queries": 2, "comments": 3}
    assert isinstance(data, sparse.csr_array)
    assert labels.tolist() == [1, -2, 3, 4, 0]
    assert data.indptr.tolist() == [0, 2, 3, 3, 3, 5]
    assert data.indices.tolist() == [0, 2, 1, 0, 2]
    np.testing.assert_array_equal(data.data, np.array([1, 2.5, -0.1, np.inf, np.nan], np.float32))
    assert data.dtype == labels.dtype == np.float32
    assert data.shape == (5, 3)
    assert data.indices.dtype == np.int32


def test_shape_types_and_first_index(write):
    path = write("1 1:0.1\n2 3:0.3\n")
    data, labels = read_libsvm(path, num_features=10, dtype="float64", zero_based=False)
    assert data.shape == (2, 10)
    assert data.toarray()[0, 0] == 0.1
    assert data.toarray()[1, 2] == 0.3
    assert data.dtype == labels.dtype == np.float64
    assert read_libsvm(path)[0].shape == (2, 4)
    assert read_libsvm(path, zero_based=False)[0].shape == (2, 3)
    data, labels = read_libsvm(write(""), 5)
    assert data.shape == (0, 5)
    assert labels.shape == (0,)
    assert read_libsvm(write("# nothing"))[0].shape == (0, 0)
    data, _ = read_libsvm(write("1 5000000000:2\n"))
    assert data.shape == (1, 5_000_000_001)
    assert data.indices.tolist() == [5_000_000_000]


def test_indices_ascend_and_values_of_one_index_are_added(write):
    data, _ = read_libsvm(write("1 3:1 1:2 3:4\n"))
    assert data.indices.tolist() == [1, 3]
    assert data.has_canonical_format
    assert data.toarray().tolist() == [[0, 2, 0, 5]]


@pytest.mark.parametrize(
    ("line", "column", "words"),
    [
        ("x 1:1", 1, "label 'x'"),
        ("1x 1:1", 1, "label '1x'"),
        (":1 1:1", 1, "label"),
        ("1: 1:1", 1, "weight"),
        ("1:x 1:1", 1, "weight"),
        ("1:2:3 1:1", 1, "weight"),
        ("1,2 1:1", 1, "label '1,2'"),
        ("1 qid:x", 2, "query"),
        ("1 qid: 1:1", 2, "query"),
        ("1 1:1 3", 3, "'3' has no value"),
        ("1 1:1 3:", 3, "'3:' has no value"),
        ("1 3: 4", 2, "'3:' has no value"),
        ("1 3:#4", 2, "'3:' has no value"),
        ("1 3 :4", 2, "'3' has no value"),
        ("1 a:1", 2, "integer index"),
        ("1 1.5:1", 2, "integer index"),
        ("1 :1", 2, "integer index"),
        ("1 -1:1", 2, "below 0"),
        ("1 -99999999999999999999:1", 2, "below 0"),
        ("1 1:1 20:1", 3, "too large for num_features=20"),
        ("1 99999999999999999999:1", 2, "too large"),
        ("1 1:x", 2, "value in '1:x'"),
        ("1 1:2x", 2, "value in '1:2x'"),
        ("1 1:2:3", 2, "value in '1:2:3'"),
        ("1 1:0x10", 2, "value"),
        ("\x0b", 1, "label"),
        ("1 \x0c", 2, "integer index"),
        ("1 1:" + "1" * 100 + "x", 2, r"'1:1{38}\.\.\.'"),
    ],
)
def test_place_and_text_of_errors(write, line, column, words):
    path = write(f"1 0:1\n# comment\n\n{line}\n0 x:1\n")
    for threads in (1, 3):
        with pytest.raises(TextFormatError, match=words) as caught:
            read_libsvm(path, 20, threads=threads)
        assert (caught.value.path, caught.value.line) == (str(path), 4)
        assert caught.value.column == column


def test_index_zero_of_files_that_count_from_one(write):
    with pytest.raises(TextFormatError, match="zero_based=True"):
        read_libsvm(write("1 0:1\n"), zero_based=False)
    assert read_libsvm(write("1 20:1\n"), 20, zero_based=False)[0].shape == (1, 20)


@pytest.mark.parametrize(
    "keywords", [{"dtype": "int32"}, {"threads": 0}, {"num_features": -1}, {"dtype": "float16"}]
)
def test_impossible_parameters_are_refused(write, keywords):
    with pytest.raises(ValueError):
        read_libsvm(write("1\n"), **keywords)


def test_without_scipy_the_error_says_what_to_install(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(ImportError, match=r"pip install 'recordio-iterators\[libsvm\]'"):
        read_libsvm(write("1\n"))


FLOATS = st.floats(allow_nan=False, width=32)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(FLOATS, st.dictionaries(st.integers(0, 10**6), FLOATS, max_size=8))),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
    st.booleans(),
)
def test_round_trip(folder, rows, end, packed):
    text = "".join(
        f"{label!r} " + " ".join(f"{index}:{value!r}" for index, value in entries.items()) + end
        for label, entries in rows
    ).encode()
    path = folder / "round.libsvm"
    path.write_bytes(gzip.compress(text) if packed else text)
    data, labels = read_libsvm(path, 10**6 + 1)
    assert labels.tolist() == [label for label, _ in rows]
    assert data.indices.tolist() == [index for _, entries in rows for index in sorted(entries)]
    assert data.data.tolist() == [
        entries[index] for _, entries in rows for index in sorted(entries)
    ]
    assert np.diff(data.indptr).tolist() == [len(entries) for _, entries in rows]


def test_same_matrix_with_any_number_of_threads(write):
    random = np.random.default_rng(1)
    matrix = sparse.random_array((40_000, 300), density=0.03, rng=random, format="csr")
    lines = [
        f"{row % 7} "
        + " ".join(
            f"{index}:{value!r}"
            for index, value in zip(
                matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]].tolist(),
                matrix.data[matrix.indptr[row] : matrix.indptr[row + 1]].tolist(),
                strict=True,
            )
        )
        for row in range(matrix.shape[0])
    ]
    path = write("\n".join(lines))
    for threads in (1, 2, 5):
        data, labels = read_libsvm(path, 300, "float64", threads=threads)
        assert data.indptr.tolist() == matrix.indptr.tolist()
        assert data.indices.tolist() == matrix.indices.tolist()
        assert data.data.tobytes() == matrix.data.tobytes()
        np.testing.assert_array_equal(labels, np.arange(40_000) % 7)


def test_bad_rows_are_noted_and_empty(write):
    path = write("1 0:1 # c\n\n2 1:1 2\n#\nx\n3 7:1 9:1\n4 1:5\n")
    for threads in (1, 3):
        bad_rows = {}
        data, labels = read_libsvm(path, 8, threads=threads, bad_rows=bad_rows)
        assert labels.tolist() == [1, 0, 0, 0, 4]
        assert data.indptr.tolist() == [0, 1, 1, 1, 1, 2]
        assert data.indices.tolist() == [0, 1]
        places = {row: (e.line, e.column, e.record) for row, e in bad_rows.items()}
        assert places == {1: (3, 3, 1), 2: (5, 1, 2), 3: (6, 3, 3)}
    assert read_libsvm(write("1 900:x\n1 3:1"), bad_rows={})[0].shape == (2, 4)


PIECES = st.sampled_from(
    [
        b"1",
        b"0",
        b"-",
        b":",
        b" ",
        b"\n",
        b"#",
        b"qid:",
        b"\r",
        b"x",
        b"\0",
        b"99999999",
        b".5",
        b"nan",
        b"\xff",
        b"\t",
        b"\x0b",
        b"\x0c",
        b"1:2 ",
    ]
)


@settings(max_examples=250, deadline=None)
@given(st.binary(max_size=200) | st.lists(PIECES, max_size=60).map(b"".join))
def test_any_bytes_give_a_valid_matrix_or_a_typed_error(folder, content):
    path = folder / "any.libsvm"
    path.write_bytes(content)
    try:
        data, labels = read_libsvm(path, threads=1)
    except TextFormatError as error:
        assert error.line <= content.count(b"\n") + 1
    else:
        data.check_format(full_check=True)
        assert data.shape[0] == len(labels)


@pytest.mark.parametrize("read", [read_libsvm, read_csv])
def test_a_record_file_is_no_text(tmp_path, read):
    path = tmp_path / "a.txt"
    path.write_bytes(encode(b"1 2:3"))
    with pytest.raises(TextFormatError, match="looks like a record file"):
        read(path)


def test_limits_on_lines_and_memory(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"1" * (1 << 24)) * 6)
    with pytest.raises(TextFormatError, match="longer than 67108864 bytes; raise max_line_bytes"):
        read_libsvm(path)
    path.write_bytes(gzip.compress(b"1 1:1\n" * (1 << 20)) * 16)
    with pytest.raises(TextFormatError, match=r"bytes of the file become .* raise max_array_bytes"):
        read_libsvm(path)
    path.write_bytes(gzip.compress(b"1 1:1\n" * 1000))
    with pytest.raises(TextFormatError, match="raise max_array_bytes"):
        read_libsvm(path, max_array_bytes=23_999)
    data, labels = read_libsvm(path, max_array_bytes=24_000)
    assert data.nnz == len(labels) == 1000


def test_lines_that_are_no_rows_take_no_memory(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"\n# ::::::\n" * (1 << 20) + b"1 0:2\n"))
    data, labels = read_libsvm(path, max_array_bytes=100)
    assert (data.toarray().tolist(), labels.tolist()) == ([[2.0]], [1.0])


def test_errors_of_bad_rows_count_as_memory(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x\n" * 1000)
    with pytest.raises(TextFormatError, match="raise max_array_bytes"):
        read_libsvm(path, bad_rows={}, max_array_bytes=100_000)
