"""Lines of image lists: read back as written, and bad ones."""

import math
import os
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recordio import RecordIOError
from recordio.list_files import ListEntry, parse_line
from recordio.tools.image_list import (
    Skipped,
    format_line,
    read_list,
    shuffle_entries,
    split_entries,
    write_classes,
    write_list,
    write_skipped,
)

path_text = st.text(
    st.characters(exclude_characters="\t\r\n\0", exclude_categories=["Cs"]), min_size=1
).filter(
    lambda text: text == text.strip() and not set(text) & set("\v\f\x1c\x1d\x1e\x85\u2028\u2029")
)
#: Whole ones up to 2**24, which 32-bit floats hold exactly.
labels = st.integers(-(2**30), 2**30).map(lambda number: number / 2**6)
entries = st.builds(
    ListEntry,
    st.integers(0, 2**63 - 1),
    st.lists(labels, min_size=1, max_size=5).map(tuple),
    path_text,
)


def numbered(count):
    return [ListEntry(number, (0,), f"{number}.jpg") for number in range(count)]


@given(entries)
def test_a_line_is_read_back_as_it_was(entry):
    assert parse_line(format_line(entry)) == entry


@given(st.lists(entries))
def test_a_list_file_is_read_back_as_it_was(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("lists") / "a.lst"
    write_list(path, [entry for entry in content if not entry.path.startswith("\ufeff")])
    found = read_list(path)
    assert found.skipped == []
    assert found.entries == [entry for entry in content if not entry.path.startswith("\ufeff")]


@given(st.binary())
@example(b"\0 \0 ")  # UTF-16
def test_any_bytes_are_read_without_a_crash(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("lists") / "a.lst"
    path.write_bytes(data)
    try:
        entries = read_list(path).entries
    except RecordIOError as error:  # of a file of another kind
        assert "looks like" in str(error)
        return
    for entry in entries:
        assert 0 <= entry.id < 2**63
        assert entry.labels


def test_names_that_are_not_utf8_survive(tmp_path):
    path = tmp_path / "a.lst"
    entry = ListEntry(0, (1.0,), os.fsdecode(b"\xff.jpg"))
    write_list(path, [entry])
    assert path.read_bytes() == b"0\t1.000000\t\xff.jpg\n"
    assert read_list(path).entries == [entry]


def test_bad_lines_of_a_file_are_skipped_with_their_number(tmp_path):
    path = tmp_path / "a.lst"
    path.write_bytes(b"\xef\xbb\xbf# made by hand\r\n\r\n0\t1\ta.jpg\r\nbroken\r\n1\t2\tb.jpg")
    found = read_list(path)
    assert [entry.path for entry in found.entries] == ["a.jpg", "b.jpg"]
    assert [item.path for item in found.skipped] == [f"{path}, line 4"]


@pytest.mark.parametrize("count", [0, 1, 2, 10, 1000])
def test_shuffling_is_that_of_the_random_module_seeded_with_100(count):
    state = random.getstate()
    expected = numbered(count)
    random.seed(100)
    random.shuffle(expected)
    random.setstate(state)
    assert shuffle_entries(numbered(count)) == expected
    assert random.getstate() == state


def sizes(*arguments, **options):
    return {name: len(part) for name, part in split_entries("p", *arguments, **options)}


def test_splits_of_eight_images():
    eight = numbered(8)
    half = sizes(eight, train_ratio=0.5, test_ratio=0.25)
    assert half == {"p_test.lst": 2, "p_train.lst": 4, "p_val.lst": 2}
    assert sizes(eight, train_ratio=0.5, test_ratio=0.5) == {"p_test.lst": 4, "p_train.lst": 4}
    assert sizes(eight, train_ratio=0.5) == {"p_train.lst": 4, "p_val.lst": 4}
    assert sizes(eight, test_ratio=0.5) == {"p.lst": 8}
    chunks = sizes(eight, chunks=3, train_ratio=0.8)
    assert [chunks[f"p_{k}_train.lst"] for k in range(3)] == [2, 2, 2]
    assert [chunks[f"p_{k}_val.lst"] for k in range(3)] == [1, 1, 0]


def test_more_chunks_than_images_leave_empty_lists():
    assert sizes(numbered(2), chunks=3) == {"p_0.lst": 1, "p_1.lst": 1, "p_2.lst": 0}


@given(st.integers(0, 50), st.integers(1, 8), st.floats(0, 1), st.floats(0, 1))
def test_no_image_is_in_two_parts(count, chunks, train, rest):
    parts = split_entries("p", numbered(count), chunks, train, (1 - train) * rest)
    ids = [entry.id for _, part in parts for entry in part]
    assert len(ids) == len(set(ids)) <= count
    assert len({name for name, _ in parts}) == len(parts)


@pytest.mark.parametrize(
    "options",
    [
        {"chunks": 0},
        {"train_ratio": -0.1},
        {"train_ratio": 1.1},
        {"train_ratio": 0.5, "test_ratio": 0.6},
        {"test_ratio": 2},
        {"train_ratio": math.nan},
    ],
)
def test_impossible_splits_are_refused(options):
    with pytest.raises(ValueError):
        split_entries("p", numbered(4), **options)


def test_classes_are_written_in_label_order(tmp_path):
    write_classes(tmp_path / "c.txt", ["ant", "Größe/ü"])
    assert (tmp_path / "c.txt").read_text(encoding="utf-8") == "0\tant\n1\tGröße/ü\n"


def test_the_skipped_report_has_one_line_for_each_and_goes_when_nothing_was_skipped(tmp_path):
    prefix = str(tmp_path / "p")
    write_skipped(prefix, [Skipped("a\nb.jpg", "is\ta link")])
    assert (tmp_path / "p.skipped.txt").read_text() == "a b.jpg\tis a link\n"
    write_skipped(prefix, [])
    assert list(tmp_path.iterdir()) == []
    write_skipped(prefix, [])


def test_a_line_without_end_is_no_list(tmp_path):
    (tmp_path / "a.lst").write_bytes(b"0\t1\ta.jpg\n" + bytes(1 << 22))
    with pytest.raises(RecordIOError, match=r"a\.lst, line 2: .* this is no list"):
        read_list(tmp_path / "a.lst")


@settings(max_examples=50, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=12),
    chunks=st.integers(1, 3),
    test=st.sampled_from([0.0, 0.1, 0.25]),
    train=st.sampled_from([0.5, 0.6, 0.75, 1.0]),
)
def test_stratified_parts_have_the_share_of_every_class(sizes, chunks, test, train):
    labels = [label for label, size in enumerate(sizes) for _ in range(size)]
    entries = shuffle_entries([ListEntry(i, (label,), "") for i, label in enumerate(labels)])
    plain = split_entries("p", entries, chunks, train, test)
    parts = split_entries("p", entries, chunks, train, test, stratify=True)
    assert [(name, len(part)) for name, part in parts] == [
        (name, len(part)) for name, part in plain
    ]
    order = {entry.id: place for place, entry in enumerate(entries)}
    # Rounding leaves images out, as without classes and in MXNet, where no part takes the rest.
    taken = [entry.id for _, part in parts for entry in part]
    assert len(set(taken)) == len(taken) == sum(len(part) for _, part in plain)
    assert set(taken) <= set(order)
    for _, part in parts:
        assert sorted(part, key=lambda entry: order[entry.id]) == part
        for label, size in enumerate(sizes):
            found = sum(entry.labels == (label,) for entry in part)
            assert abs(found - size * len(part) / len(entries)) <= 2


def test_classes_that_divide_evenly_are_divided_evenly():
    entries = [ListEntry(i, (float(i % 3),), "") for i in range(60)]
    for _, part in split_entries("p", entries, 2, 0.5, 0.1, stratify=True):
        counts = [sum(entry.labels == (label,) for entry in part) for label in (0, 1, 2)]
        assert counts == [len(part) // 3] * 3
