"""Folders scanned for images: labels, suffixes and names."""

import os
import sys

import pytest

from recordio.tools.scan import scan_images

needs_symlinks = pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")


def make(root, *paths):
    for path in paths:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    return root


def lines(found):
    return [(entry.id, entry.labels[0], entry.path) for entry in found.entries]


def test_flat_scan_takes_only_the_files_of_the_root_all_with_label_0(tmp_path):
    make(tmp_path, "b.jpg", "a.png", "sub/c.jpg", "note.txt")
    found = scan_images(tmp_path)
    assert lines(found) == [(0, 0, "a.png"), (1, 0, "b.jpg")]
    assert found.classes == ["."]


def test_labels_follow_the_first_image_top_down(tmp_path):
    make(
        tmp_path,
        "zebra/1.jpg",
        "root.jpg",
        "ant/sub/s.jpg",
        "ant/a.jpg",
        "empty/x.txt",
        "m/n/o.jpg",
    )
    found = scan_images(tmp_path, recursive=True)
    assert lines(found) == [
        (0, 0, "root.jpg"),
        (1, 1, "ant/a.jpg"),
        (2, 2, "ant/sub/s.jpg"),
        (3, 3, "m/n/o.jpg"),
        (4, 4, "zebra/1.jpg"),
    ]
    assert found.classes == [".", "ant", "ant/sub", "m/n", "zebra"]


def test_extensions_match_in_any_case_on_both_sides(tmp_path):
    make(tmp_path, "a.JPG", "b.jpg", "c.Png", ".jpg", "jpg", "d.jpg.txt")
    assert [e.path for e in scan_images(tmp_path, extensions=[".JPG"]).entries] == [
        "a.JPG",
        "b.jpg",
    ]


def test_names_with_spaces_and_unicode_are_kept(tmp_path):
    make(tmp_path, "Kätzchen 猫/ein bild.jpg")
    found = scan_images(tmp_path, recursive=True)
    assert [entry.path for entry in found.entries] == ["Kätzchen 猫/ein bild.jpg"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_names_that_are_not_utf8_are_kept(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff\xfe.jpg"
    with open(path, "wb"):
        pass
    (entry,) = scan_images(tmp_path).entries
    assert os.fsencode(entry.path) == b"\xff\xfe.jpg"


@pytest.mark.skipif(sys.platform == "win32", reason="such names do not exist there")
@pytest.mark.parametrize("name", ["a\tb.jpg", "a\nb.jpg", "a\rb.jpg", " a.jpg"])
def test_names_that_a_list_cannot_hold_are_skipped_and_take_no_id_or_label(tmp_path, name):
    make(tmp_path, f"a/{name}" if name[0] != " " else name, "b/good.jpg")
    found = scan_images(tmp_path, recursive=True)
    assert lines(found) == [(0, 0, "b/good.jpg")]
    assert len(found.skipped) == 1
    assert "rename it" in found.skipped[0].reason


@needs_symlinks
def test_links_to_folders_are_followed(tmp_path):
    make(tmp_path / "elsewhere", "x.jpg")
    root = make(tmp_path / "root", "a/1.jpg")
    (root / "b").symlink_to(tmp_path / "elsewhere")
    (root / "c").symlink_to(root / "a")
    found = scan_images(root, recursive=True)
    assert [entry.path for entry in found.entries] == ["a/1.jpg", "b/x.jpg", "c/1.jpg"]
    assert found.skipped == []


@needs_symlinks
def test_loops_of_links_end_and_are_reported(tmp_path):
    make(tmp_path, "a/1.jpg", "b/2.jpg")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "self").symlink_to(tmp_path / "a")
    (tmp_path / "b" / "other").symlink_to(tmp_path / "a")
    found = scan_images(tmp_path, recursive=True)
    assert [entry.path for entry in found.entries] == ["a/1.jpg", "b/2.jpg", "b/other/1.jpg"]
    assert {item.path for item in found.skipped} == {"a/up", "a/self", "b/other/up", "b/other/self"}


@needs_symlinks
def test_dangling_links_are_reported(tmp_path):
    make(tmp_path, "a.jpg")
    (tmp_path / "b.jpg").symlink_to(tmp_path / "nowhere.jpg")
    found = scan_images(tmp_path)
    assert [entry.path for entry in found.entries] == ["a.jpg"]
    assert [item.path for item in found.skipped] == ["b.jpg"]


def test_a_folder_named_like_an_image_is_walked(tmp_path):
    make(tmp_path, "x.jpg/1.jpg")
    assert [e.path for e in scan_images(tmp_path, recursive=True).entries] == ["x.jpg/1.jpg"]
    assert scan_images(tmp_path).entries == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in folders")
def test_pipes_are_no_images(tmp_path):
    os.mkfifo(tmp_path / "a.jpg")
    assert scan_images(tmp_path).entries == []


def test_deep_folders_need_no_recursion(tmp_path):
    deep = tmp_path
    for _ in range(400):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "a.jpg").touch()
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(250)
    try:
        found = scan_images(tmp_path, recursive=True)
    finally:
        sys.setrecursionlimit(limit)
    assert found.entries[0].path == "d/" * 400 + "a.jpg"


def test_an_unreadable_root_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        scan_images(tmp_path / "missing")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        scan_images(tmp_path / "file")


def test_an_unreadable_folder_is_skipped_and_reported(tmp_path, monkeypatch):
    make(tmp_path, "a/1.jpg", "b/2.jpg")
    scandir = os.scandir

    def refusing(path):
        if os.path.basename(path) == "a":
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    found = scan_images(tmp_path, recursive=True)
    assert lines(found) == [(0, 0, "b/2.jpg")]
    assert found.skipped == [("a", "the folder cannot be read: Permission denied")]
