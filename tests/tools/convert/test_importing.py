"""What all conversions have in common: ids, and the numbers of what is not stored."""

import pytest

from recordio import RecordIOError, RecordReader, unpack
from recordio.tools.convert.format import ImportSource, Item, LeftOut
from recordio.tools.convert.importing import ImportReport, import_records
from recordio.tools.image_list import Skipped


@pytest.mark.parametrize("shuffle", [None, 1])
def test_what_has_no_record_has_no_id(tmp_path, shuffle):
    items = [
        Item([1], b"a", left_out={"words": 2}),
        LeftOut({"pictures": 1}),
        Skipped("b", "it is bad"),
        Item([1e300], b"too large a label", left_out={"words": 5}),
        LeftOut({"pictures": 3, "words": 1}),
        Item([2], b"c", left_out={"sounds": 1}),
    ]
    report = import_records(ImportSource(iter(items)), str(tmp_path / "t"), shuffle=shuffle)
    assert (report.records, len(report.skipped)) == (2, 2)
    assert report.not_stored() == "not stored: 4 pictures, 3 words, 1 sounds"
    with RecordReader(tmp_path / "t.rec", tmp_path / "t.idx") as reader:
        assert sorted(reader.keys) == [0, 3]
        assert sorted(unpack(record)[0].id for record in reader) == [0, 3]


def test_sources_without_any_record_say_what_they_hold(tmp_path):
    for items, said in [
        ([], "the source is empty"),
        ([LeftOut({"pictures": 1})], "nothing to convert: not stored: 1 pictures"),
        ([LeftOut({"words": 1}), Skipped("b", "bad")], "first, b: bad; not stored: 1 words"),
    ]:
        with pytest.raises(RecordIOError, match=said):
            import_records(ImportSource(iter(items)), str(tmp_path / "t"))
    assert not list(tmp_path.iterdir())


def test_names_that_a_source_makes_up_fill_neither_memory_nor_screen():
    report = ImportReport("a.rec")
    report.count({"x" * 10_000: 1, "two\nlines": 3})
    for number in range(5000):
        report.count({f"kind {number}": 1})
    assert len(report.left_out) <= 1001 and report.left_out.total() == 5004
    said = report.not_stored()
    assert "\n" not in said and "two?lines" in said and len(said) < 2000
    assert "other kinds" in said


def test_a_name_is_kept_in_the_list(tmp_path):
    items = iter([Item([1.0], b"one"), Item([2.0, 3.0], b"two", "b.txt")])
    assert import_records(ImportSource(items), str(tmp_path / "a")).records == 2
    assert (tmp_path / "a.lst").read_text() == "1\t2.000000\t3.000000\tb.txt\n"
