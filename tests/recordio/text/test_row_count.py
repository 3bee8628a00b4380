"""Rows are counted and found without being parsed."""

from recordio.text.row_count import RowPositions, count_rows, row_starts


def test_rows_are_lines_with_anything_in_them(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n\n3,4")
    assert count_rows(path, skip_header=1) == 2


def test_the_position_before_a_row(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1,2\n\n3,4\n5,6\n")
    positions = RowPositions(path, chunk_bytes=5)
    assert (positions.count, positions.before(1)) == (3, (1, 0, 5, 3))


def test_comments_are_no_rows(tmp_path):
    path = tmp_path / "a.libsvm"
    path.write_text("1 1:2\n# no\n0 2:3")
    sizes, starts = row_starts(path)
    assert (sizes, starts.tolist()) == ([16], [0, 11])
