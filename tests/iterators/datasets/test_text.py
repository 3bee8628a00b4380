"""Lines of text files, judged by `open`."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iterators import TextDataset
from iterators.datasets import text

NEWLINES = [None, "", "\n", "\r", "\r\n"]
TEXTS = st.text(st.sampled_from("ab\n\r\u00e9\u20ac "), max_size=30)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("text") / "lines.txt"


@settings(max_examples=200)
@given(
    TEXTS,
    st.sampled_from(NEWLINES),
    st.sampled_from(["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le", "utf-7", "gb18030"]),
    st.integers(1, 7),
)
def test_lines_are_those_that_open_gives(path, content, newline, encoding, chunk):
    path.write_bytes(content.encode(encoding))
    with open(path, encoding=encoding, newline=newline) as file:
        expected = list(file)
    whole, text.CHUNK = text.CHUNK, chunk
    try:
        data = TextDataset(path, encoding=encoding, newline=newline)
    finally:
        text.CHUNK = whole
    assert list(data) == expected
    assert len(data) == len(expected)
    assert data[::-1] == expected[::-1]


@given(st.binary(max_size=40), st.sampled_from(NEWLINES), st.sampled_from(["replace", "ignore"]))
def test_bytes_that_are_no_text_are_handled_as_open_does(path, content, newline, errors):
    path.write_bytes(content)
    with open(path, encoding="utf-8", errors=errors, newline=newline) as file:
        expected = list(file)
    assert list(TextDataset(path, encoding="utf-8", errors=errors, newline=newline)) == expected


def test_undecodable_lines_are_errors_when_they_are_read(path):
    path.write_bytes(b"fine\n\xff\xfe\nfine again\n")
    data = TextDataset(path, encoding="utf-8")
    assert data[2] == "fine again\n"
    with pytest.raises(UnicodeDecodeError):
        data[1]


def test_several_files_give_tuples(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_bytes("ä\nb\n".encode("latin-1"))
    second.write_bytes(b"1\r\n2\r\n")
    data = TextDataset([first, second], encoding=["latin-1", "ascii"], newline=[None, ""])
    assert data[:] == [("ä\n", "1\r\n"), ("b\n", "2\r\n")]
    kept = TextDataset(
        [first, second], encoding="latin-1", filter_func=lambda a, b: b.startswith("2")
    )
    assert kept[:] == [("b\n", "2\n")]


def test_filtered_lines_are_numbered_through(path):
    path.write_text("1\n2\n3\n4\n5\n")
    data = TextDataset(str(path), filter_func=lambda line: int(line) % 2)
    assert [data[i] for i in range(len(data))] == ["1\n", "3\n", "5\n"]
    assert data[[2, 0]] == ["5\n", "1\n"]


@pytest.mark.parametrize(
    "arguments",
    [
        ([],),
        (["{}"], ["utf-8", "utf-8"]),
        (["{}", "{}"], None, ["strict"]),
        (["{}"], None, None, ["\n", "\n"]),
        ("{}", None, None, "x"),
    ],
)
def test_arguments_are_checked(path, arguments):
    path.write_text("a\n")
    paths, *options = arguments
    paths = paths.format(path) if isinstance(paths, str) else [p.format(path) for p in paths]
    with pytest.raises(ValueError):
        TextDataset(paths, *options)


def test_unknown_names_are_lookup_errors(path):
    path.write_text("a\n")
    for options in ({"encoding": "no-such"}, {"errors": "no-such"}):
        with pytest.raises(LookupError):
            TextDataset(path, **options)


def test_files_must_have_equally_many_lines(tmp_path):
    (tmp_path / "a").write_text("1\n2\n")
    (tmp_path / "b").write_text("1\n")
    with pytest.raises(ValueError, match="number of lines"):
        TextDataset([tmp_path / "a", tmp_path / "b"])


def test_indices_below_zero_are_out_of_range(path):
    path.write_text("1\n2\n")
    for i in (-1, 2):
        with pytest.raises(IndexError):
            TextDataset(path)[i]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_closed_dataset_is_a_value_error(path, encoding):
    path.write_text("1\n2\n", encoding=encoding)
    data = TextDataset(path, encoding=encoding)
    data.close()
    data.close()
    for dataset in (data, pickle.loads(pickle.dumps(data))):
        with pytest.raises(ValueError, match="closed"):
            dataset[0]


def test_datasets_go_into_other_processes_and_threads(path, read_in_a_new_process, read_in_forks):
    lines = [f"line {i}\n" for i in range(500)]
    path.write_text("".join(lines))
    data = TextDataset(path)
    assert read_in_a_new_process(data, slice(3, 6)) == lines[3:6]
    assert read_in_forks(data, range(500)) == [lines] * 3
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(data.get_example, range(500))) == lines
