"""LibSVM files to packs and back."""

import io

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recordio import read_libsvm

numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
rows = st.tuples(numbers, st.lists(st.tuples(st.integers(0, 2**40), numbers), max_size=5))


def test_the_payload_is_an_array_of_pairs(tmp_path, command, contents):
    (tmp_path / "a").write_text("1 3:0.5 0:-2 qid:7  # note\n-1\n")
    assert command("from-libsvm", tmp_path / "a", tmp_path / "t") == 0
    (first, content), (second, empty) = contents(tmp_path / "t")
    assert (first.label, second.label) == (1, -1)
    array = np.load(io.BytesIO(content), allow_pickle=False)
    assert array.tolist() == [(0, -2), (3, 0.5)]
    assert array.dtype == [("index", "<i8"), ("value", "<f4")]
    assert np.load(io.BytesIO(empty)).shape == (0,)


def test_what_records_do_not_hold_is_counted(tmp_path, command, capsys):
    (tmp_path / "a").write_text("# head\n1:0.5 qid:7 0:1\n-1:2 qid:7 3:1 # note\n0 qid:8\n\n")
    assert command("from-libsvm", tmp_path / "a", tmp_path / "t", "--label-weights") == 0
    said = "note: not stored: 3 qid, 2 weights of labels, 2 comments\n"
    assert said in capsys.readouterr().err


@settings(
    max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(table=st.lists(rows, min_size=1, max_size=6), base=st.sampled_from([0, 1]))
def test_there_and_back_gives_the_same_rows(tmp_path, command, table, base):
    path, back = tmp_path / "a", tmp_path / "b"
    lines = [
        " ".join([repr(label), *(f"{index + base}:{value!r}" for index, value in entries)])
        for label, entries in table
    ]
    path.write_text("\n".join(lines))
    words = ["--force", *(["--one-based"] if base else [])]
    assert command("from-libsvm", path, tmp_path / "t", *words) == 0
    assert command("export", tmp_path / "t", back, "--to", "libsvm", *words) == 0
    (expected, labels), (found, found_labels) = (
        read_libsvm(file, dtype="float64", zero_based=not base) for file in (path, back)
    )
    np.testing.assert_array_equal(found_labels.astype(np.float32), labels.astype(np.float32))
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    with np.errstate(over="ignore"):  # values that are there twice are added before they are cut
        np.testing.assert_array_equal(
            found.data.astype(np.float32), expected.data.astype(np.float32)
        )


def test_values_of_64_bits_survive(tmp_path, command):
    (tmp_path / "a").write_text("1 0:0.1234567890123\n")
    assert command("from-libsvm", tmp_path / "a", tmp_path / "t", "--dtype", "float64") == 0
    assert command("export", tmp_path / "t", tmp_path / "b", "--to", "libsvm") == 0
    assert (tmp_path / "b").read_text() == "1 0:0.1234567890123\n"


def test_dense_rows_lose_their_zeros(tmp_path, command):
    (tmp_path / "a.csv").write_text("5,0,1.5,0,-2\n")
    assert command("from-csv", tmp_path / "a.csv", tmp_path / "t", "--label-columns", "0") == 0
    assert command("export", tmp_path / "t", tmp_path / "b", "--to", "libsvm") == 0
    assert (tmp_path / "b").read_text() == "5 1:1.5 3:-2\n"


@pytest.mark.parametrize("text", ["1 0\n", "x 0:1\n", "1 0:1\n1 -1:2\n", ""])
def test_damaged_text_writes_nothing(tmp_path, command, capsys, text):
    (tmp_path / "a").write_text(text)
    assert command("from-libsvm", tmp_path / "a", tmp_path / "t") == 1
    assert "recordio: error: " in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_sparse_rows_are_no_csv(tmp_path, command, capsys):
    (tmp_path / "a").write_text("1 0:1\n")
    assert command("from-libsvm", tmp_path / "a", tmp_path / "t") == 0
    assert command("export", tmp_path / "t", tmp_path / "b.csv", "--to", "csv") == 1
    assert "--to libsvm" in capsys.readouterr().err
