"""CSV files: what is accepted, what is refused and where, threads, chunks, files of MXNet."""

import gc
import gzip
import os
import pickle
import sys
import threading
import zlib

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import recordio.text.csv
import recordio.text.lines
from recordio import CSVReader, RecordIOError, TextFormatError, read_csv

DTYPES = ["float32", "float64", "int32", "int64", "uint8"]


@pytest.fixture
def write(tmp_path):
    def write(text, name="some.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("csv")


def both(path, *args, **keywords):
    """What read_csv returns, after checking that the chunks of a CSVReader are the same."""
    whole = read_csv(path, *args, **keywords)
    for chunk_bytes in (1, 7, 100, 1 << 20):
        with CSVReader(path, *args, chunk_bytes=chunk_bytes, **keywords) as reader:
            chunks = list(reader)
        assert all(len(chunk) for chunk in chunks)
        joined = np.concatenate([np.empty((0, *reader.shape), reader.dtype), *chunks])
        assert joined.dtype == whole.dtype
        assert joined.shape == whole.shape
        assert joined.tobytes() == whole.tobytes()
    return whole


def error_of(path, *args, **keywords):
    """The one error that every way of reading must raise."""
    texts = set()
    for threads in (1, 3):
        with pytest.raises(TextFormatError) as caught:
            read_csv(path, *args, threads=threads, **keywords)
        texts.add(str(caught.value))
        for chunk_bytes in (1, 50, 1 << 20):
            with pytest.raises(TextFormatError) as streamed:
                list(CSVReader(path, *args, threads=threads, chunk_bytes=chunk_bytes, **keywords))
            texts.add(str(streamed.value))
    assert len(texts) == 1, texts
    return caught.value


# ---- what is accepted


def test_golden_files_of_mxnet(golden):
    batches = np.load(golden / "text_batches.npz")
    data, labels = read_csv(golden / "data.csv", (6,)), read_csv(golden / "label.csv")
    rows = np.concatenate([batches[f"csv/0/{batch}/data"] for batch in range(3)])
    assert len(data) == len(labels) == 11
    # MXNet rounds more than once on its way to float32
    np.testing.assert_array_max_ulp(data, rows[:11], maxulp=1)
    expected = np.concatenate([batches[f"csv/0/{batch}/label"] for batch in range(3)])
    assert labels.ravel().tolist() == expected[:11].tolist()
    shaped = read_csv(golden / "data.csv", (2, 3))
    rows = np.concatenate([batches[f"csv_nolabel/0/{batch}/data"] for batch in range(3)])
    np.testing.assert_array_max_ulp(shaped, rows[:11], maxulp=1)


VALUES = {
    "float32": st.floats(width=32),
    "float64": st.floats(),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint8": st.integers(0, 255),
}


@settings(max_examples=40, deadline=None)
@given(st.data(), st.sampled_from(DTYPES), st.integers(0, 30), st.integers(1, 5))
def test_round_trip_of_all_types_with_any_decoration(folder, data, dtype, rows, columns):
    delimiter = data.draw(st.sampled_from(",;| \t:"))
    blanks = st.text({" ": "", "\t": " "}.get(delimiter, " \t") or "\t", max_size=3)
    blanks = st.just("") if delimiter == " " else blanks.filter(lambda text: delimiter not in text)
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    blank_lines = st.sampled_from(["", "", end, "\t" + end if delimiter == " " else "  " + end])
    value = VALUES[dtype]
    table = [[data.draw(value) for _ in range(columns)] for _ in range(rows)]
    text = data.draw(st.sampled_from(["", "\ufeff"]))
    for row in table:
        text += data.draw(blank_lines)
        text += delimiter.join(f"{data.draw(blanks)}{field!r}{data.draw(blanks)}" for field in row)
        text += data.draw(st.sampled_from(["", "", delimiter])) + end
    if data.draw(st.booleans()):
        text = text.removesuffix(end)
    path = folder / "round.csv"
    path.write_bytes(text.encode())
    result = both(path, (columns,), dtype, delimiter)
    expected = np.array(table, dtype).reshape(rows, columns)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("text", ["", "\n", "\r\n\r\n", "  \n\t\n", "\ufeff", "\ufeff\n", "   "])
def test_files_without_a_row_have_the_shape_that_was_asked_for(write, text):
    path = write(text)
    assert both(path, (2, 3)).shape == (0, 2, 3)
    for read in (read_csv, CSVReader):
        with pytest.raises(TextFormatError, match="pass shape"):
            read(path)


@pytest.mark.parametrize(
    "text",
    [
        "1,2\n3,4\n",
        "1,2\r\n3,4",
        "\ufeff1,2\n3,4",
        "\n\n1,2\n\n\n3,4\n\n",
        " 1 , 2 \n\t3\t,\t4\t\r\n",
        "1,2,\n3,4,\n",
        "1,2 , \r\n3,4,",
        "+1,2.\n3e0,.4e1\n",
        "  \n1,2\n   \r\n3,4",
    ],
)
def test_decorations_that_mxnet_accepts(write, text):
    path = write(text)
    assert both(path).tolist() == [[1, 2], [3, 4]]
    assert both(path, (2, 1)).tolist() == [[[1], [2]], [[3], [4]]]


def test_shape_may_be_an_integer_a_list_or_numpy_integers(write):
    path = write("1,2,3,4\n")
    assert read_csv(path, 4).shape == (1, 4)
    assert read_csv(path, [2, 2]).shape == (1, 2, 2)
    assert read_csv(path, tuple(np.array([4, 1]))).shape == (1, 4, 1)
    assert read_csv(write("5\n6\n"), ()).tolist() == [5, 6]


def test_header_lines_are_left_out_of_every_file(write, tmp_path):
    path = write("a,b\n# x\n1,2\n")
    assert both(path, skip_header=2).tolist() == [[1, 2]]
    assert error_of(path).line == 1
    path = write("\ufeffa,b\n1,x\n")
    assert error_of(path, (2,), skip_header=1).line == 2
    assert both(path, (2,), skip_header=5).shape == (0, 2)
    many = tmp_path / "many"
    many.mkdir()
    for number in range(3):
        (many / f"{number}.csv").write_text(f"a\n{number}\n{number}")
    assert both(many, skip_header=1).ravel().tolist() == [0, 0, 1, 1, 2, 2]


def test_folder_is_its_files_by_name(tmp_path):
    folder = tmp_path / "parts"
    (folder / "inner").mkdir(parents=True)
    (folder / "b.csv").write_text("3,4")
    (folder / "a.csv").write_text("\ufeff1,2")
    (folder / "c.csv").write_text("")
    (folder / "d.csv.gz").write_bytes(gzip.compress(b"5,6\n7,8"))
    assert both(folder).tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
    (folder / "b.csv").write_text("3,4\nx,4")
    error = error_of(folder)
    assert error.path == str(folder / "b.csv")
    assert (error.line, error.column) == (2, 1)
    with pytest.raises(TextFormatError, match="no file"):
        read_csv(folder / "inner")


def test_patterns_and_several_names_are_their_files(tmp_path):
    for name, text in (("b.csv", "3,4"), ("a.csv", "1,2"), ("c.txt", "5,6"), ("x[1].csv", "7,8")):
        (tmp_path / name).write_text(text)
    assert both(f"{tmp_path}/[ab].csv").tolist() == [[1, 2], [3, 4]]
    assert both(f"{tmp_path}/c.txt;{tmp_path}/a*").tolist() == [[5, 6], [1, 2]]
    assert both(tmp_path / "x[1].csv").tolist() == [[7, 8]]
    for nothing in (f"{tmp_path}/n*.csv", "", ";"):
        with pytest.raises(TextFormatError, match="no file of that name"):
            read_csv(nothing)


def test_http_servers_are_not_asked_for_a_whole_file_to_learn_whether_it_is_a_folder():
    url = "http://127.0.0.1:9/a.csv"  # where nothing answers
    with recordio.text.lines.LineChunks(url) as chunks:
        assert [file.name for file in chunks._files] == [url]


def test_urls_are_read_through_fsspec(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem("memory")
    try:
        files.pipe("/csv-test/a.csv", b"1,2\n")
        files.pipe("/csv-test/b.csv", gzip.compress(b"3,4\n"))
        assert both("memory://csv-test/b.csv").tolist() == [[3, 4]]
        for url in ("memory://csv-test", "memory://csv-test/", "memory://csv-test/*.csv"):
            assert both(url).tolist() == [[1, 2], [3, 4]]
        files.pipe("/csv-test/a.csv", b"1,2\n1,z\n")
        error = error_of("memory://csv-test/a.csv")
        assert (error.path, error.line) == ("memory://csv-test/a.csv", 2)
        assert error_of("memory://csv-test").path.endswith("csv-test/a.csv")
        (tmp_path / "c.csv").write_text("5")
        assert both(f"file://{tmp_path}/c.csv").tolist() == [[5]]
    finally:
        files.rm("/csv-test", recursive=True)


def test_urls_without_fsspec_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ImportError, match=r"pip install 'recordio-iterators\[remote\]'"):
        read_csv("s3://bucket/a.csv")


@pytest.mark.parametrize(
    ("url", "driver", "said"),
    [
        ("s3://bucket/a.csv", "s3fs", r"s3fs.*: pip install 'recordio-iterators\[remote\]'$"),
        ("gs://bucket/a.csv", "gcsfs", "gcsfs"),
    ],
)
def test_urls_without_the_driver_of_fsspec_say_what_to_install(url, driver, said, monkeypatch):
    registry = pytest.importorskip("fsspec.registry")
    monkeypatch.setitem(sys.modules, driver, None)
    for protocol in ("s3", "gs"):
        monkeypatch.delitem(registry._registry, protocol, raising=False)
    with pytest.raises(ImportError, match=said):
        read_csv(url)


def test_gzip_is_recognised_by_content(write):
    text = b"".join(b"%d,%d\n" % (i, i * i) for i in range(5000))
    packed = write(gzip.compress(text), "some.csv.gz")
    np.testing.assert_array_equal(both(packed), read_csv(write(text)))
    two = write(gzip.compress(text) + gzip.compress(text), "misnamed.csv")
    assert len(both(two)) == 10_000


@pytest.mark.parametrize("damage", ["truncated", "checksum", "body"])
def test_damaged_gzip_is_an_error(write, damage):
    packed = bytearray(gzip.compress(b"".join(b"%d\n" % (i * 7919) for i in range(3000))))
    if damage == "truncated":
        del packed[-20:]
    elif damage == "checksum":
        packed[-6] ^= 1
    else:
        packed[100:120] = bytes(20)
    path = write(bytes(packed), "bad.gz")
    with pytest.raises(TextFormatError):
        read_csv(path, (1,))
    with pytest.raises(TextFormatError):
        list(CSVReader(path, (1,)))


# ---- what is refused, and where


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("1,2,3\n1,2\n", 2, 3, "has 2 fields instead of 3"),
        ("1,2,3\n1\n", 2, 2, "has 1 fields instead of 3"),
        ("1,2,3\n1,2,\n", 2, 3, "the field is empty"),
        ("1,2,3\n1,2, \r\n", 2, 3, "the field is empty"),
        ("1,2,3\n1,2,3,4\n", 2, 4, "more than 3 fields; the next one is '4'"),
        ("1,2,3\n1,2,3,,\n", 2, 4, "more than 3 fields"),
        ("1,2,3\n1,,3\n", 2, 2, "empty"),
        ("1,2,3\n,2,3\n", 2, 1, "empty"),
        ("1,2,3\n  ,2,3\n", 2, 1, "empty"),
        ("1,2,3\n,\n", 2, 1, "empty"),
        ("1,2,3\n\n\r\n1,2x,3", 4, 2, "'2x' is not a decimal number"),
        ("1,2,3\n1,2,3x", 2, 3, "'3x'"),
        ("1,2,3\n1,2 2,3", 2, 2, "'2 2'"),
        ("1,2,3\n1,2,3 # x\n", 2, 3, "'3 # x'"),
        ("1,2,3\n# 1,2,3\n", 2, 1, "'# 1'"),
        ('1,2,3\n"1",2,3\n', 2, 1, "'\"1\"'"),
        ("1,2,3\n1;2;3\n", 2, 1, "'1;2;3'"),
        ("1,2,3\n1,\r2\r3,3\n", 2, 2, "2\\\\r3"),
        ("1,2,3\n1,0x10,3\n", 2, 2, "'0x10'"),
        ("1,2,3\n1,\xff,3\n", 2, 2, "not a decimal"),
        ("1,2,3\n1,2\0,3\n", 2, 2, "not a decimal"),
        ("1,2,3\n1," + "9" * 500 + "x,3\n", 2, 2, "'" + "9" * 40 + r"\.\.\.'"),
        ("\ufeff\ufeff1,2,3\n", 1, 1, "not a decimal"),
    ],
)
def test_place_and_text_of_errors(write, text, line, column, words):
    path = write(text)
    error = error_of(path, (3,))
    assert (error.path, error.line, error.column) == (str(path), line, column)
    assert f"{path}, line {line}, column {column}: " in str(error)
    with pytest.raises(TextFormatError, match=words):
        read_csv(path, (3,))


def test_first_error_of_the_file_wins_with_any_number_of_threads(write):
    lines = [f"{i},{i}" for i in range(20_000)]
    for place in (3_333, 3_334, 9_999, 19_999):
        lines[place] = "1,oops"
    path = write("\n".join(lines))
    for threads in (1, 2, 5, 16):
        for chunk_bytes in (64, 4096):
            reader = CSVReader(path, (2,), chunk_bytes=chunk_bytes, threads=threads)
            delivered = []
            with pytest.raises(TextFormatError) as caught:
                for rows in reader:
                    delivered += rows[:, 0].tolist()
            assert (caught.value.line, caught.value.column) == (3_334, 2)
            assert delivered == list(range(len(delivered)))
            assert 3_333 - chunk_bytes < len(delivered) <= 3_333
        with pytest.raises(TextFormatError) as caught:
            read_csv(path, (2,), threads=threads)
        assert caught.value.line == 3_334


def test_line_numbers_far_into_a_large_file(write):
    line = b"0.25,1.5,-3\n"
    path = write(line * 300_000 + b"\n\n1,2\n" + line * 1000)
    with pytest.raises(TextFormatError) as caught:
        read_csv(path, (3,), threads=4)
    assert (caught.value.line, caught.value.column) == (300_003, 3)


@pytest.mark.parametrize(
    "keywords",
    [
        {"dtype": "int16"},
        {"dtype": "complex64"},
        {"shape": (0,)},
        {"shape": (-1,)},
        {"threads": 0},
        {"skip_header": -1},
        {"delimiter": ""},
        {"delimiter": ",,"},
        {"delimiter": "1"},
        {"delimiter": "e"},
        {"delimiter": "."},
        {"delimiter": "\n"},
        {"delimiter": "é"},
        {"shape": (1 << 40, 1 << 40)},
    ],
)
def test_impossible_parameters_are_refused(write, keywords):
    for read in (read_csv, CSVReader):
        with pytest.raises(ValueError):
            read(write("1\n"), **keywords)
    with pytest.raises(ValueError):
        CSVReader(write("1\n"), chunk_bytes=0)


def test_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_csv(tmp_path / "none.csv", (1,))
    reader = CSVReader(tmp_path / "none.csv", (1,))
    with pytest.raises(FileNotFoundError):
        list(reader)


def test_lines_without_end_stop_at_a_limit(write):
    path = write(b"1,2\n" + b"1" * (1 << 20))
    few = {"chunk_bytes": 100, "max_line_bytes": 1 << 16}
    refused = "longer than 65536 bytes; raise max_line_bytes"
    with pytest.raises(TextFormatError, match=refused) as caught:
        list(CSVReader(path, (2,), **few))
    assert caught.value.line == 2
    bomb = write(gzip.compress(bytes(1 << 24)), "bomb.gz")
    for read in (list, CSVReader.count):
        with pytest.raises(TextFormatError, match=refused):
            read(CSVReader(bomb, (2,), **few))
    with pytest.raises(TextFormatError, match=refused):
        read_csv(bomb, max_line_bytes=1 << 16)
    with pytest.raises(TextFormatError, match="longer than 67108864 bytes; raise max_line_bytes"):
        read_csv(write(gzip.compress(b"1" * (1 << 24)) * 6, "bomb.gz"))


def test_lines_up_to_the_limit_are_read(write):
    path = write(b"1," * 40_000 + b"1\n")
    for limit in (80_002, 1 << 20):
        reader = CSVReader(path, chunk_bytes=100, max_line_bytes=limit)
        assert [len(rows) for rows in reader] == [1]
    with pytest.raises(TextFormatError, match="raise max_line_bytes"):
        list(CSVReader(path, 40_001, chunk_bytes=100, max_line_bytes=40_000))


def test_what_gzip_hides_is_refused_until_asked_for(write):
    one = gzip.compress(b"1\n" * (1 << 22))
    path = write(one * 20, "bomb.gz")
    assert path.stat().st_size < 1 << 20
    with pytest.raises(TextFormatError, match=r"bytes of the file become .* raise max_array_bytes"):
        read_csv(path, 1)
    small = write(one, "small.gz")
    assert read_csv(small, 1).shape == (1 << 22, 1)
    with pytest.raises(TextFormatError, match="raise max_array_bytes"):
        read_csv(small, 1, max_array_bytes=(1 << 24) - 1)
    assert len(read_csv(small, 1, max_array_bytes=1 << 24)) == 1 << 22
    plain = write(b"1\n" * 1000)
    with pytest.raises(TextFormatError, match="raise max_array_bytes"):
        read_csv(plain, 1, max_array_bytes=3999)


def test_blank_lines_take_no_memory_however_wide_rows_are(write):
    path = write(gzip.compress(b"\n" * (1 << 22)) + gzip.compress(b"1," * 99_999 + b"1\n"), "b.gz")
    limit = 100_000 * 4
    for bad in (None, {}):
        assert read_csv(path, 100_000, bad_rows=bad, max_array_bytes=limit).shape == (1, 100_000)
        with CSVReader(path, 100_000, max_array_bytes=limit) as reader:
            assert [len(rows) for rows in reader.rows(0, bad)] in ([1], [0, 0, 0, 1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_blank_lines_after_the_last_row_are_written_nowhere(write, dtype):
    # The row fills its block of memory to the last byte, so that one more byte is the allocator's.
    columns = 48_008 // np.dtype(dtype).itemsize
    path = write(b"1," * (columns - 1) + b"1\n" + b"\n" * 2_000)
    for bad in [None, {}] * 20:
        with CSVReader(path, columns, dtype, threads=1) as reader:
            arrays = [*reader.rows(0, bad), np.zeros(columns, dtype)]
        assert [rows.shape for rows in arrays] == [(1, columns), (columns,)]
        assert (arrays[0] == 1).all()


def test_wide_rows_that_cannot_be_read_are_bounded(write):
    path = write(gzip.compress(b"1\n" * (1 << 20)), "short.gz")
    with pytest.raises(TextFormatError, match="raise max_array_bytes"):
        read_csv(path, 100_000, bad_rows={})
    with (
        CSVReader(path, 100_000) as reader,
        pytest.raises(TextFormatError, match="raise max_array_bytes"),
    ):
        list(reader.rows(0, {}))


def test_errors_of_bad_rows_count_as_memory(write):
    path = write((b"x" * 70 + b"\n") * 1000)
    with pytest.raises(TextFormatError, match="raise max_array_bytes"):
        read_csv(path, 1, bad_rows={}, max_array_bytes=100_000)
    bad = {}
    read_csv(path, 1, bad_rows=bad, max_array_bytes=1_100_000)
    assert len(bad) == 1000


def test_a_reader_can_be_pickled(write):
    with CSVReader(write("1,2\n3,4\n"), dtype="int32", chunk_bytes=4) as reader:
        reader.count()
        half = iter(reader)
        next(half)
        copy = pickle.loads(pickle.dumps(reader))
    assert [rows.tolist() for rows in copy] == [[[1, 2]], [[3, 4]]]
    with pytest.raises(ValueError, match="closed"):
        pickle.dumps(reader)


# ---- threads and chunks


@pytest.mark.parametrize("delimiter", [" ", "\t"])
def test_delimiters_alone_are_empty_fields_and_no_blank_line(write, delimiter):
    path = write(f"1{delimiter}2\n{delimiter}\n")
    assert error_of(path, (2,), delimiter=delimiter).line == 2
    with pytest.raises(TextFormatError, match="empty"):
        read_csv(write(f"{delimiter * 2}\n1{delimiter}2\n"), delimiter=delimiter)


@pytest.mark.parametrize("dtype", DTYPES)
def test_same_bytes_with_any_number_of_threads(write, dtype):
    numbers = np.random.default_rng(3).integers(0, 256, (60_000, 13))
    blank = "\n" * 50
    path = write(
        "".join(
            ",".join(map(str, row)) + "\n" + blank * (i % 997 == 0)
            for i, row in enumerate(numbers.tolist())
        )
    )
    for threads in (1, 2, 3, 8):
        np.testing.assert_array_equal(read_csv(path, (13,), dtype, threads=threads), numbers)
    with CSVReader(path, (13,), dtype, chunk_bytes=10_000, threads=4) as reader:
        for _ in range(2):  # every iteration starts at the first row
            np.testing.assert_array_equal(np.concatenate(list(reader)), numbers)


def test_rows_that_get_shorter_than_the_first_ones_promise(write):
    lines = ["1.0000000000000000000000000000000000000000"] * 30_000 + ["2"] * 900_000
    result = read_csv(write("\n".join(lines)), dtype="float32")
    assert result.shape == (930_000, 1)
    assert (result[:30_000] == 1).all()
    assert (result[30_000:] == 2).all()
    result[-1] = 3  # the caller's own memory
    assert result.flags.owndata or result.base.flags.owndata


def test_lines_longer_than_a_chunk(write):
    wide = np.arange(3 * 5000, dtype=np.int64).reshape(3, 5000) * 10**12
    path = write("\n\n".join(",".join(map(str, row)) for row in wide.tolist()))
    for chunk_bytes in (1, 20, 1000, 40_000):
        with CSVReader(path, dtype="int64", chunk_bytes=chunk_bytes, threads=2) as reader:
            np.testing.assert_array_equal(np.concatenate(list(reader)), wide)


def recordio_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("recordio-")]


def test_threads_end_with_the_iteration_an_early_close_or_the_last_reference(write):
    path = write("1,2\n" * 10_000)
    reader = CSVReader(path, chunk_bytes=100, threads=3)
    assert not recordio_threads()
    iterator = iter(reader)
    next(iterator)
    assert recordio_threads()
    reader.close()
    assert not recordio_threads()
    with pytest.raises(ValueError, match="closed"):
        list(iterator)
    with pytest.raises(ValueError, match="closed"):
        iter(reader)

    reader = CSVReader(path, chunk_bytes=100, threads=3)
    for _ in reader:
        break
    del _
    gc.collect()
    assert not recordio_threads()

    iterator = iter(reader)
    next(iterator)
    del iterator, reader
    gc.collect()
    assert not recordio_threads()
    with CSVReader(path, chunk_bytes=100, threads=3) as reader:
        assert sum(map(len, reader)) == 10_000
        assert not recordio_threads()


def test_two_iterations_of_one_reader_do_not_disturb_each_other(write):
    with CSVReader(write("".join(f"{i}\n" for i in range(1000))), chunk_bytes=50) as reader:
        for one, other in zip(reader, reader, strict=True):
            np.testing.assert_array_equal(one, other)


def test_chunks_in_memory_are_bounded(write, monkeypatch):
    """Nobody reads on while nobody takes: the position in the file stays near the consumer."""
    path = write("1\n" * 500_000)
    read = []

    class Counting(recordio.text.lines.LineChunks):
        def read(self, buffer=None):
            read.append(None)
            return super().read(buffer)

    monkeypatch.setattr(recordio.text.csv, "LineChunks", Counting)
    with CSVReader(path, (1,), chunk_bytes=1000, threads=2) as reader:
        for number, _ in enumerate(reader):
            assert len(read) <= number + 1 + 2 * 2 + 2
            if number == 100:
                break


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_is_told_to_start_its_own(write):
    with CSVReader(write("1\n" * 10_000), (1,), chunk_bytes=100, threads=2) as reader:
        iterator = iter(reader)
        next(iterator)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                next(iterator)
            except RuntimeError as error:
                code = 0 if "forked process" in str(error) else 2
            os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert len(next(iterator))


# ---- bad rows, and rows from any one on


def test_bad_rows_are_noted_with_their_places_and_zero(write):
    path = write("1,2\n\n3,x\n4\n 5,6\n,\n")
    expected = [[1, 2], [0, 0], [0, 0], [5, 6], [0, 0]]
    lines = {1: (3, 2), 2: (4, 2), 4: (6, 1)}
    noted = {}
    assert read_csv(path, bad_rows=noted).tolist() == expected
    for chunk_bytes in (1, 9, 1 << 20):
        for start in range(7):
            bad_rows = {}
            with CSVReader(path, chunk_bytes=chunk_bytes) as reader:
                assert reader.count() == 5
                got = [row for rows in reader.rows(start, bad_rows) for row in rows.tolist()]
            assert got == expected[start:]
            places = {row: (error.line, error.column) for row, error in bad_rows.items()}
            assert places == {row: place for row, place in lines.items() if row >= start}
            assert all(error.record == row for row, error in bad_rows.items())
            assert all(str(error) == str(noted[row]) for row, error in bad_rows.items())


def test_rows_before_the_first_one_may_be_bad(write):
    path = write("x\n1\ny\n2\n")
    with CSVReader(path, 1) as reader:
        assert [rows.tolist() for rows in reader.rows(3)] == [[[2]]]
        with pytest.raises(TextFormatError) as caught:
            list(reader.rows(1))
        assert caught.value.line == 3
        with pytest.raises(ValueError, match="start must be at least 0"):
            reader.rows(-1)


@pytest.mark.parametrize("packed", [False, True])
def test_rows_of_a_folder_from_any_one_on(tmp_path, packed):
    mark = b"\xef\xbb\xbf"
    texts = [mark + b"a\n1\n2\n\n3", b"", b"a\n\n", mark + b"a\r\n4\r\n5\r\n", b"a\n6\n"]
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.csv").write_bytes(gzip.compress(text) if packed else text)
    for chunk_bytes in (1, 4, 1 << 20):
        with CSVReader(tmp_path, 1, skip_header=1, chunk_bytes=chunk_bytes) as reader:
            for start in range(8):
                got = [row for rows in reader.rows(start) for row in rows[:, 0].tolist()]
                assert got == [1, 2, 3, 4, 5, 6][start:]


def test_going_to_a_row_of_a_changed_file_is_an_error(write):
    path = write("".join(f"{i}\n" for i in range(1000)))
    with CSVReader(path, 1, chunk_bytes=100) as reader:
        assert reader.count() == 1000
        for text, message in (("x" * 9000, "no line begins"), ("1\n", "no line begins")):
            path.write_text(text)
            with pytest.raises(TextFormatError, match=message):
                list(reader.rows(900))


@pytest.mark.parametrize("bad", [None, 0])
def test_more_bad_rows_in_a_chunk_than_fit_are_an_error(write, bad):
    path = write("x\n" * (recordio.text.lines.MAX_BAD_ROWS + 1))
    with pytest.raises(TextFormatError, match="another kind of file" if bad == 0 else "'x'"):
        read_csv(path, 1, bad_rows=None if bad is None else {})


@pytest.mark.parametrize("tail", ["", " ", "\n", "\n\n", "7"])
def test_a_short_row_is_described_by_itself_alone(write, tail):
    error = error_of(write(f"1,2\n{tail}"), 3)
    assert "2 fields instead of 3; it ends with '2'" in str(error)
    assert error.column == 3


# ---- any bytes

ALPHABET = st.sampled_from(
    [
        b"1",
        b"0",
        b"9",
        b",",
        b"\n",
        b"\r",
        b" ",
        b".",
        b"-",
        b"e",
        b"x",
        b"\0",
        b"\xef\xbb\xbf",
        b"inf",
        b"nan",
        b"\xff",
        b"12345678",
        b"\t",
    ]
)


@settings(max_examples=150, deadline=None)
@given(
    st.binary(max_size=200) | st.lists(ALPHABET, max_size=60).map(b"".join),
    st.sampled_from(DTYPES),
    st.none() | st.integers(1, 3),
    st.integers(1, 40),
)
@example(b"\0 \1\n\1", "float32", None, 1)
def test_any_bytes_give_rows_or_a_typed_error(folder, content, dtype, columns, chunk_bytes):
    path = folder / "any.csv"
    path.write_bytes(content)
    outcomes = set()
    for threads in (1, 2):
        try:
            whole = read_csv(path, columns, dtype, threads=threads)
            outcomes.add((whole.shape, whole.tobytes()))
        except TextFormatError as error:
            outcomes.add(str(error))
    try:
        reader = CSVReader(path, columns, dtype, chunk_bytes=chunk_bytes, threads=1)
        chunks = np.concatenate([np.empty((0, *reader.shape), dtype), *reader])
        outcomes.add((chunks.shape, chunks.tobytes()))
    except TextFormatError as error:
        outcomes.add(str(error))
    if any("looks like UTF-16" in str(found) for found in outcomes):
        # The first chunk tells: of a few bytes the reader may say first what is wrong with them.
        assert all(isinstance(found, str) for found in outcomes)
        return
    assert len(outcomes) == 1


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=100))
def test_any_bytes_after_a_gzip_head(folder, content):
    path = folder / "any.gz"
    path.write_bytes(gzip.compress(b"1\n")[:10] + content)
    try:
        read_csv(path, (1,), threads=1)
    except RecordIOError as error:
        assert not isinstance(error, zlib.error)
