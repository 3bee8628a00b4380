"""Files of class names."""

from recordio.packs.classes import find_classes, format_classes, read_classes


def test_they_are_read_as_they_are_written(tmp_path):
    names = {7: "seven", -1: "none", 3: "a b\udcff"}
    (tmp_path / "a.classes.txt").write_bytes(format_classes(names))
    assert read_classes(tmp_path / "a.classes.txt") == names
    assert (
        find_classes(str(tmp_path / "a.rec"))
        == find_classes(str(tmp_path / "a_2_train.rec"))
        == names
    )
    assert find_classes(str(tmp_path / "b.rec")) == {}
