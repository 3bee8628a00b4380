"""CSV files to packs and back."""

import gzip
import io

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from recordio import read_csv


def load(content):
    return np.load(io.BytesIO(content), allow_pickle=False)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("1,0.5,2\n0,1e-3,-4\n3,nan,7\n")
    return path


def test_a_row_is_a_header_with_labels_and_an_array(table, tmp_path, command, contents):
    assert command("from-csv", table, tmp_path / "t", "--label-columns", "0,2") == 0
    (first, content), _, (last, _) = contents(tmp_path / "t")
    assert (first.flag, first.label.tolist(), first.id) == (2, [1, 2], 0)
    assert last.id == 2
    assert load(content).tolist() == [0.5]
    assert load(content).dtype == np.float32


def test_labels_come_in_the_order_in_which_their_columns_are_named(
    table, tmp_path, command, contents
):
    assert command("from-csv", table, tmp_path / "t", "--label-columns=-1,0") == 0
    assert contents(tmp_path / "t")[1][0].label.tolist() == [-4, 0]


def test_without_label_columns_every_label_is_0(table, tmp_path, command, contents):
    assert command("from-csv", table, tmp_path / "t") == 0
    assert [header.label for header, _ in contents(tmp_path / "t")] == [0, 0, 0]


def test_shape_delimiter_header_and_type(tmp_path, command, contents):
    path = tmp_path / "table.txt.gz"
    path.write_bytes(gzip.compress(b"label\tpixels\n7\t1\t2\t3\t4\n"))
    words = ["--label-columns=0", "--shape", "2,2", "--delimiter", r"\t"]
    assert (
        command("from-csv", path, tmp_path / "t", *words, "--skip-header=1", "--dtype=uint8") == 0
    )
    ((header, content),) = contents(tmp_path / "t")
    assert header.label == 7
    assert load(content).tolist() == [[1, 2], [3, 4]]
    assert load(content).dtype == np.uint8
    back = tmp_path / "back.txt"
    assert command("export", tmp_path / "t", back, "--to", "csv", "--delimiter", r"\t") == 0
    assert back.read_text() == "7\t1\t2\t3\t4\n"


@settings(
    max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(
    data=st.data(),
    dtype=st.sampled_from(["float32", "float64", "int32", "int64", "uint8"]),
    shape=hnp.array_shapes(min_dims=2, max_dims=2, max_side=5),
)
def test_there_and_back_gives_the_same_numbers(tmp_path, command, data, dtype, shape):
    rows = data.draw(hnp.arrays(dtype, shape))
    path, back = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text("\n".join(",".join(map(str, row.tolist())) for row in rows))
    common = ["--force", "--dtype", dtype]
    assert command("from-csv", path, tmp_path / "t", *common) == 0
    words = ["--to", "csv", "--no-labels", "--force"]
    assert command("export", tmp_path / "t", back, *words) == 0
    np.testing.assert_array_equal(read_csv(back, dtype=dtype), rows)


@pytest.mark.parametrize("columns", ["0", "1", "2", "-1", "0,2", "2,0", "1,-1"])
def test_labels_go_back_to_their_columns(table, tmp_path, command, columns):
    option = f"--label-columns={columns}"
    assert command("from-csv", table, tmp_path / "t", option) == 0
    back = tmp_path / "back.csv"
    assert command("export", tmp_path / "t", back, "--to", "csv", option) == 0
    np.testing.assert_array_equal(read_csv(back), read_csv(table))


def test_shuffled_records_keep_their_row_numbers(tmp_path, command, contents):
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{row}\n" for row in range(50)))
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert command("from-csv", path, tmp_path / name, "--shuffle", "--seed", seed) == 0
    records = contents(tmp_path / "a")
    ids = [header.id for header, _ in records]
    assert sorted(ids) == list(range(50)) != ids
    assert all(load(content).tolist() == [header.id] for header, content in records)
    assert (tmp_path / "a.rec").read_bytes() == (tmp_path / "b.rec").read_bytes()
    assert (tmp_path / "a.rec").read_bytes() != (tmp_path / "c.rec").read_bytes()
    assert not list(tmp_path.glob("*.partial"))


def test_integer_labels_that_a_header_cannot_hold_are_reported(tmp_path, command, contents):
    path = tmp_path / "a.csv"
    path.write_text("16777216,1\n16777217,2\n3,4\n")
    words = ["from-csv", path, tmp_path / "t", "--label-columns=0", "--dtype=int64"]
    assert command(*words) == 1
    assert [header.id for header, _ in contents(tmp_path / "t")] == [0, 2]
    assert "16777217" in (tmp_path / "t.skipped.txt").read_text()
    assert command(*words, "--force", "--skip-errors") == 0
    assert command(*words, "--force", "--strict") == 1
    assert (tmp_path / "t.skipped.txt").exists()


@pytest.mark.parametrize("text", ["1,2\n3\n", "1,2\n3,x\n", "", "\n\n", "1,2\n3,4,5\n"])
def test_damaged_text_writes_nothing(tmp_path, command, capsys, text):
    path = tmp_path / "a.csv"
    path.write_text(text)
    assert command("from-csv", path, tmp_path / "t") == 1
    assert "a.csv" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize(
    "option", ["--label-columns=3", "--label-columns=-4", "--label-columns=0,0", "--shape=2,2"]
)
def test_columns_that_do_not_exist_are_named(table, tmp_path, command, capsys, option):
    assert command("from-csv", table, tmp_path / "t", option) == 1
    reason = capsys.readouterr().err
    assert "table.csv" in reason
    assert "column" in reason or "--shape" in reason
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]


@pytest.mark.parametrize(
    "option", ["--delimiter=ab", "--shape=0", "--label-columns=x", "--dtype=f"]
)
def test_senseless_options_are_refused(table, tmp_path, command, option):
    with pytest.raises(SystemExit) as ended:
        command("from-csv", table, tmp_path / "t", option)
    assert ended.value.code == 2


def test_rows_of_different_lengths_are_no_table(tmp_path, command, capsys):
    for name, shape in (("a", (2, 3)), ("b", (2, 4))):
        np.save(tmp_path / f"{name}.npy", np.zeros(shape))
        assert command("from-numpy", tmp_path / f"{name}.npy", tmp_path / name) == 0
    from recordio import RecordReader, RecordWriter

    with RecordWriter(tmp_path / "c.rec") as writer:
        for name in "ab":
            for record in RecordReader(tmp_path / f"{name}.rec"):
                writer.write(record)
    assert command("export", tmp_path / "c", tmp_path / "c.csv", "--to", "csv") == 1
    assert "record 2" in capsys.readouterr().err
    assert not list(tmp_path.glob("c.csv*"))
