"""Packs made of lists of images: records, threads, and reports of bad images."""

import os
import sys

import cv2
import pytest

from recordio import RecordReader, RecordWriter, unpack
from recordio.list_files import ListEntry
from recordio.tools import pack as pack_module
from recordio.tools.encode import EncodeOptions
from recordio.tools.image_list import ImageList, Skipped, shuffle_entries, write_list
from recordio.tools.pack import PackingError, pack, pack_together
from recordio.tools.scan import scan_images


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_records_keys_and_headers_follow_the_list(photo_folder, output):
    entries = shuffle_entries(scan_images(photo_folder, recursive=True).entries)
    report = pack(entries, photo_folder, output / "p", EncodeOptions(pass_through=True))
    assert (report.packed, report.skipped) == (20, [])
    with RecordReader(output / "p.rec", output / "p.idx") as reader:
        assert list(reader.keys) == [entry.id for entry in entries]
        for entry, record in zip(entries, reader, strict=True):
            header, content = unpack(record)
            assert (header.id, header.label) == (entry.id, entry.labels[0])
            assert bytes(content) == (photo_folder / entry.path).read_bytes()
    assert report.bytes_written == sum(24 + (photo_folder / e.path).stat().st_size for e in entries)


@pytest.mark.parametrize("options", [{"pass_through": True}, {"resize": 16}, {"encoding": ".png"}])
def test_the_bytes_do_not_depend_on_the_number_of_threads(photo_folder, output, options):
    entries = scan_images(photo_folder, recursive=True).entries * 5
    (photo_folder / "cat" / "03.jpg").write_bytes(b"damaged")
    contents = set()
    for threads in (1, 2, 8):
        pack(entries, photo_folder, output / "p", EncodeOptions(**options), threads=threads)
        contents.add(
            tuple((output / f"p.{end}").read_bytes() for end in ("rec", "idx", "skipped.txt"))
        )
    assert len(contents) == 1


def test_a_list_file_its_content_and_its_entries_give_the_same(photo_folder, output):
    found = scan_images(photo_folder, recursive=True)
    write_list(output / "a.lst", found.entries)
    for name, source in (("a", output / "a.lst"), ("b", found), ("c", found.entries)):
        pack(source, photo_folder, output / name)
    records = {(output / f"{name}.rec").read_bytes() for name in "abc"}
    assert len(records) == 1


def bad_images(root, images):
    """Files that cannot be packed, and a part of the reason to expect."""
    (root / "empty.jpg").write_bytes(b"")
    (root / "text.jpg").write_bytes(b"this is no image")
    (root / "cut.jpg").write_bytes(images.jpeg(60, 60)[:-40])
    (root / "cut.png").write_bytes(images.png(60, 60)[:-40])
    (root / "folder.jpg").mkdir()
    expected = {
        "empty.jpg": "empty",
        "text.jpg": "not an image",
        "cut.jpg": "truncated",
        "cut.png": "truncated",
        "folder.jpg": "directory",
        "missing.jpg": "No such file",
    }
    if sys.platform != "win32":
        (root / "dangling.jpg").symlink_to(root / "nowhere")
        os.mkfifo(root / "pipe.jpg")
        expected |= {"dangling.jpg": "No such file", "pipe.jpg": "regular"}
    return expected


@pytest.mark.parametrize("pass_through", [False, True])
@pytest.mark.parametrize("threads", [1, 4])
def test_bad_images_are_reported_and_never_stall_the_rest(
    tmp_path, output, images, pass_through, threads
):
    expected = bad_images(tmp_path, images)
    (tmp_path / "good.jpg").write_bytes(images.jpeg())
    paths = [path for bad in expected for path in (bad, "good.jpg")]
    entries = [ListEntry(number, (0,), path) for number, path in enumerate(paths)]
    report = pack(
        entries, tmp_path, output / "p", EncodeOptions(pass_through=pass_through), threads=threads
    )
    assert report.packed == len(expected)
    assert [item.path for item in report.skipped] == list(expected)
    for path, reason in report.skipped:
        assert expected[path] in reason
    lines = (output / "p.skipped.txt").read_text().splitlines()
    assert lines == [f"{path}\t{reason}" for path, reason in report.skipped]
    with RecordReader(output / "p.rec", output / "p.idx") as reader:
        assert list(reader.keys) == list(range(1, len(paths), 2))


def test_a_later_run_without_bad_images_removes_the_report(photo_folder, output):
    entries = scan_images(photo_folder, recursive=True).entries
    good = (photo_folder / "cat" / "00.jpg").read_bytes()
    (photo_folder / "cat" / "00.jpg").write_bytes(b"")
    pack(entries, photo_folder, output / "p")
    assert "p.skipped.txt" in names(output)
    (photo_folder / "cat" / "00.jpg").write_bytes(good)
    pack(entries, photo_folder, output / "p")
    assert names(output) == ["p.idx", "p.rec"]


def test_strict_stops_at_the_first_bad_image_and_leaves_the_old_files(photo_folder, output):
    entries = scan_images(photo_folder, recursive=True).entries
    pack(entries, photo_folder, output / "p")
    before = (output / "p.rec").read_bytes()
    (photo_folder / "dog" / "02.png").write_bytes(b"")
    with pytest.raises(PackingError, match=r"dog.02.png: the file is empty"):
        pack(entries, photo_folder, output / "p", strict=True)
    assert names(output) == ["p.idx", "p.rec"]
    assert (output / "p.rec").read_bytes() == before


def test_strict_refuses_bad_list_lines_too(photo_folder, output):
    source = ImageList(
        [ListEntry(0, (0,), "cat/00.jpg")], skipped=[Skipped("a.lst, line 1", "bad")]
    )
    with pytest.raises(PackingError, match="line 1: bad"):
        pack(source, photo_folder, output / "p", strict=True)
    assert names(output) == []


def test_without_one_good_image_nothing_is_published_but_the_report(photo_folder, output):
    entries = scan_images(photo_folder, recursive=True).entries
    pack(entries, photo_folder, output / "p")
    before = (output / "p.rec").read_bytes()
    with pytest.raises(PackingError, match="not one of its 20 images") as caught:
        pack(entries, photo_folder / "cat", output / "p")
    assert len(caught.value.skipped) == 20
    assert (output / "p.rec").read_bytes() == before
    assert names(output) == ["p.idx", "p.rec", "p.skipped.txt"]


def test_an_empty_list_gives_an_empty_record_file(output):
    assert pack([], output, output / "p").packed == 0
    assert names(output) == ["p.idx", "p.rec"]
    assert (output / "p.rec").read_bytes() == b""


def test_several_lists_appear_together_or_not_at_all(photo_folder, output):
    entries = scan_images(photo_folder, recursive=True).entries
    jobs = [(entries[:5], output / "a"), (entries[5:], output / "b")]
    reports = pack_together(jobs, photo_folder, strict=True)
    assert [report.packed for report in reports] == [5, 15]
    for path in output.iterdir():
        path.unlink()
    (photo_folder / "dog" / "07.png").unlink()
    with pytest.raises(PackingError, match="07.png"):
        pack_together(jobs, photo_folder, strict=True)
    assert names(output) == []


def test_a_cancelled_run_leaves_nothing(photo_folder, output):
    entries = scan_images(photo_folder, recursive=True).entries * 50
    asked = []

    def cancelled():
        asked.append(None)
        return len(asked) == 4

    with pytest.raises(KeyboardInterrupt):
        pack(entries, photo_folder, output / "p", cancelled=cancelled)
    assert names(output) == []


def test_a_programming_error_in_a_thread_is_raised_and_leaves_nothing(
    photo_folder, output, monkeypatch
):
    def broken(entry, root, options, tally):
        raise AssertionError("bug")

    monkeypatch.setattr(pack_module, "encode_record", broken)
    with pytest.raises(AssertionError, match="bug"):
        pack(scan_images(photo_folder, recursive=True), photo_folder, output / "p")
    assert names(output) == []


def test_a_failing_disk_leaves_nothing(photo_folder, output, monkeypatch):
    def full(self, buf, key=None):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RecordWriter, "write", full)
    with pytest.raises(OSError, match="No space"):
        pack(scan_images(photo_folder, recursive=True), photo_folder, output / "p")
    assert names(output) == []


def test_opencvs_own_threads_are_as_before_afterwards(photo_folder, output):
    before = cv2.getNumThreads()
    pack(scan_images(photo_folder, recursive=True), photo_folder, output / "p")
    assert cv2.getNumThreads() == before


def test_less_than_one_thread_is_refused(output):
    with pytest.raises(ValueError, match="threads"):
        pack([], output, output / "p", threads=0)


def test_ids_may_repeat(photo_folder, output):
    entries = [ListEntry(0, (0,), "cat/00.jpg"), ListEntry(0, (0,), "cat/01.jpg")]
    assert pack(entries, photo_folder, output / "p").packed == 2
    assert (output / "p.idx").read_text().splitlines()[1].startswith("0\t")
