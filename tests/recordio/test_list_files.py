"""List files: one grammar for all readers, and bad lines."""

import numpy as np
import pytest

from iterators.images.sources.record_source import read_label_list, read_label_vectors
from iterators.mx_image.det_iter import described_files
from iterators.providers.image_sources import read_image_list
from recordio import IRHeader, RecordReader, RecordWriter, filter, pack, relabel, unpack
from recordio.errors import LabelError
from recordio.list_files import (
    ListEntry,
    entries_among,
    is_list,
    parse_line,
    read_entries,
    safe_name,
)
from recordio.tools.image_list import read_list
from recordio.tools.pack_shards import cut_list

MARKED = (  # what spreadsheets and people put into a list: a mark, comments, blanks, line ends
    "\ufeff# made by hand\r\n\r\n7\t0.5\tcat/a b.jpg\r\n  # the next\n \n9 2 dog/c.jpg\n\u3000\n"
)
READERS = {
    "entries": lambda path: [(e.id, *e.labels) for _, e in read_entries(path)],
    "im2rec": lambda path: [(e.id, *e.labels) for e in read_list(path).entries],
    "im2rec --shards": lambda path: [
        (e.id, *e.labels) for span in cut_list(path, 2, 1) for e in span.listed().entries
    ],
    "records, one label": lambda path: [
        (int(key), *row) for key, row in zip(*read_label_list(path, 1), strict=True)
    ],
    "records, any labels": lambda path: [
        (int(key), value) for key, value in zip(*read_label_vectors(path)[::2], strict=True)
    ],
    "image files": lambda path: [
        (int(key), *row) for _, key, row in zip(*read_image_list(path, 1), strict=True)
    ],
    "image files with objects": lambda path: [
        (int(key), value) for key, value in zip(*described_files(None, path)[2][::2], strict=True)
    ],
}


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_has_the_same_grammar(tmp_path, reader):
    path = tmp_path / "a.lst"
    path.write_bytes(MARKED.encode())
    assert READERS[reader](str(path)) == [(7, 0.5), (9, 2)]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "line", ["x\t1\ta.jpg", "1\t1e39\ta.jpg", f"{2**64}\t1\ta.jpg", "1\ta.jpg"]
)
def test_every_reader_names_a_bad_line(tmp_path, reader, line):
    path = tmp_path / "a.lst"
    path.write_text(f"# first\n0\t1\ta.jpg\n{line}\n")
    if reader.startswith("im2rec"):  # which packs the others
        assert READERS[reader](str(path)) == [(0, 1)]
        assert read_list(path).skipped[0].path == f"{path}, line 3"
        return
    with pytest.raises(LabelError) as caught:
        READERS[reader](str(path))
    assert (caught.value.path, caught.value.line) == (str(path), 3)


def test_ids_of_all_64_bits_name_records_but_are_no_keys(tmp_path):
    source, listed, large = tmp_path / "a.rec", tmp_path / "a.lst", 2**64 - 1
    with RecordWriter(source) as writer:
        for number in (large, 5):
            writer.write(pack(IRHeader(0, 1.0, number, 0), b"content"))
        writer.write(b"no header")
    listed.write_text(f"{large} 8 x\n")
    filter(source, tmp_path / "b.rec", keys=listed)
    relabel(tmp_path / "b.rec", tmp_path / "c.rec", listed)
    headers = [unpack(record)[0] for record in RecordReader(tmp_path / "c.rec")]
    assert [(header.id, header.label) for header in headers] == [(large, 8)]
    listed.write_text(f"{2**63} 8 x\n")
    found = read_list(listed)
    assert not found.entries and "above 2**63 - 1" in found.skipped[0].reason


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "field"),
        ("1\t2", "2 field"),
        ("1 2", "2 field"),
        ("1\t2\t", "ends with a TAB"),
        ("1\t2\t3\t", "ends with a TAB"),
        ("1 2 my photo.jpg", "not a number"),
        ("x\t2\ta.jpg", "id 'x'"),
        ("1.0\t2\ta.jpg", "id '1.0'"),
        ("1\tcat\ta.jpg", "not a number"),
        ("1\t2\tx\ta.jpg", "not a number"),
        ("-1\t2\ta.jpg", "outside"),
        (f"{2**64}\t2\ta.jpg", "outside"),
        ("1\t1e39\ta.jpg", "too large"),
        ("1\t-3.4028236e38\ta.jpg", "too large"),
    ],
)
def test_bad_lines_are_explained(line, reason):
    with pytest.raises(LabelError, match=reason):
        parse_line(line)


@pytest.mark.parametrize(
    ("label", "reason"),
    [
        ("nan", "no finite number"),
        ("-inf", "no finite number"),
        ("16777217", "no exact"),
        ("1.6777217e7", "no exact"),
        ("9007199254740993", "no exact"),
        ("1_0", "not a number"),
    ],
)
def test_labels_that_records_cannot_hold_are_refused(label, reason):
    for line, width in ((f"1\t0\t{label}\ta.jpg", None), (f"1 0 {label} a.jpg", 2)):
        with pytest.raises(LabelError, match=reason):
            parse_line(line, width)
    assert parse_line("1\t16777216\t16777218\t16777217.5\ta.jpg").labels[1] == 16777218


def test_spaces_round_fields_are_dropped():
    assert parse_line("  7 \t 1.5\t my photo.jpg \r\n") == ListEntry(7, (1.5,), "my photo.jpg")


def test_a_number_of_labels_tells_them_from_the_path():
    assert parse_line("7 1 2 my photo.jpg \n", 2) == ListEntry(7, (1, 2), "my photo.jpg")
    assert parse_line("7\t1\t2", 2) == ListEntry(7, (1, 2), "")
    for line in ("", "7 1", "7 1 x.jpg"):
        with pytest.raises(LabelError, match="expected an id and 2 labels"):
            parse_line(line, 2)


def test_lines_that_cannot_be_read_are_left_out():
    lines = [b"# no", b"", b"1\t2\t\xff.jpg", b"x\t2\ta.jpg"]
    assert list(entries_among(lines)) == [ListEntry(1, (2,), "\udcff.jpg")]


def test_lists_are_told_by_their_names(tmp_path):
    assert is_list("a.lst") and is_list(tmp_path / "a.lst")
    assert not is_list("a.txt") and not is_list([1, 2]) and not is_list(np.arange(2))


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../a/./0001.jpg", "a/0001.jpg"),
        ("/data/b.jpg", "data/b.jpg"),
        ("a\tb.jpg", ""),
    ],
)
def test_safe_names_lead_nowhere_else(name, safe):
    assert safe_name(name) == safe
