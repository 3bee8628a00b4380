"""Tables of labels are CSV files."""

from recordio.tools.convert.labels import table_line


def test_fields_with_a_comma_are_quoted():
    assert table_line(["a, b.jpg", 7], [1.0, 2.5]) == b'"a, b.jpg",7,1,2.5\n'
