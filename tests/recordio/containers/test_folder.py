"""Folders of images read in place."""

import contextlib
import os
import shutil
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators import ImageRecordDataset, ImageRecordIter
from iterators.testing import assert_same, copies, encode, noise
from recordio.bytes.files import StoredFile
from recordio.containers.folder import FOLDER, fits_in_list
from recordio.containers.names import suffix_of
from recordio.containers.table import container_of
from recordio.containers.zip import ZIP
from recordio.errors import EmptyRecordFileError, ImageFileError, RecordIOError
from recordio.formats.table import IMAGE_SUFFIXES
from recordio.packs.open_pack import open_listed
from recordio.tools import cli
from recordio.tools.scan import scan_images

needs_symlinks = pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
FILES = ("zebra/2.png", "zebra/10.PNG", "ant/deep/1.png", "ant/b.png", "ant-eater/x.png", "top.png")


def make(root, *names):
    for number, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode(noise(12, 10, seed=number)))
    return root


def scan(root):
    return FOLDER.scan(StoredFile(str(root)), None)


@pytest.fixture
def folder(tmp_path):
    root = make(tmp_path / "set", *FILES)
    (root / "ant" / "note.txt").touch()
    (root / "ant" / ".hidden").touch()
    (root / "empty").mkdir()
    return root


def test_batches_are_those_of_the_converted_folder(folder, tmp_path, capsys):
    assert cli.main(["from-imagefolder", str(folder), str(tmp_path / "out")]) == 0
    settings = {"data_shape": (3, 8, 8), "batch_size": 4, "shuffle": True, "rand_mirror": True}
    with (
        ImageRecordIter(path_imgrec=tmp_path / "out.rec", **settings) as converted,
        ImageRecordIter(path_imgrec=folder, **settings) as found,
    ):
        assert found.num_samples == len(FILES)
        for _ in range(2):
            assert_same(copies(found), copies(converted))
        assert found.classes == converted.classes


def test_examples_and_entries_have_the_names_and_labels_of_the_files(folder):
    (pack,) = open_listed(str(folder))
    assert [(e.id, e.labels, e.path) for e in pack.entries.values()] == [
        (e.id, tuple(map(float, e.labels)), e.path) for e in scan_images(folder, True).entries
    ]
    images = ImageRecordDataset(folder)
    assert [label for _, label in images] == [0, 1, 2, 3, 4, 4]
    assert np.array_equal(images[0][0], noise(12, 10, seed=5))


def test_what_is_no_image_is_counted(folder):
    assert scan(folder).left_out == {".txt": 1}


def test_files_that_may_be_images_of_other_formats_are_noted(folder, tmp_path):
    for name in ("a.webp", "b.AVIF", "c.heic", "d.HEIC", "without", "b.npy", "words.csv"):
        (folder / "ant" / name).touch()
    archive = shutil.make_archive(tmp_path / "a", "zip", folder)
    for samples in (scan(folder), ZIP.scan(StoredFile(archive), None)):
        assert len(samples) == len(FILES) + 2
        lines = samples.notes.lines()
        assert len(lines) == 2
        assert lines[0].startswith("2 files that end in .heic were left out")
        assert lines[0].endswith(": ant/c.heic, ant/d.HEIC")
        assert lines[1].startswith("1 files without an ending were left out")
        assert samples.left_out == {".txt": 1, ".csv": 1, ".heic": 2, ".npy": 1, "": 1}
    with pytest.warns(UserWarning) as said:
        ImageRecordDataset(folder)
    assert [str(one.message).partition("set: ")[2] for one in said] == lines
    with pytest.raises(RecordIOError, match=r"2 files that end in \.heic"):
        ImageRecordIter(path_imgrec=archive, data_shape=(3, 8, 8), batch_size=1, strict=True)


def test_a_folder_of_packs_stays_what_it_is(folder):
    assert container_of(StoredFile(str(folder))) is FOLDER
    (folder / "a.rec").touch()
    assert container_of(StoredFile(str(folder))) is None


def test_a_folder_without_images_says_what_it_holds(tmp_path):
    with pytest.raises(EmptyRecordFileError, match="but nothing at all"):
        scan(tmp_path)
    (tmp_path / "a.heic").touch()
    (tmp_path / "._1.jpg").touch()
    with pytest.raises(EmptyRecordFileError, match=r"but 1 \.heic; 1 hidden .*: \._1\.jpg"):
        ImageRecordIter(path_imgrec=tmp_path, data_shape=(3, 8, 8), batch_size=1)


@needs_symlinks
def test_links_are_followed_and_loops_are_not(tmp_path):
    root = make(tmp_path / "set", "a/1.png", "b/c/2.png")
    os.symlink("../../a", root / "b/c/again")
    os.symlink("..", root / "b/c/loop")
    os.symlink("../a/1.png", root / "b/file.png")
    os.symlink("gone", root / "b/lost.png")
    samples = scan(root)
    assert samples.all_names() == ["a/1.png", "b/file.png", "b/c/2.png", "b/c/again/1.png"]
    assert sum(samples.left_out.values()) == 2


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="everything can be read")
def test_a_folder_that_cannot_be_read_is_an_error(folder):
    os.chmod(folder / "empty", 0)
    with pytest.raises(ImageFileError, match=r"empty: the folder cannot be read"):
        scan(folder)


def test_a_folder_that_fails_while_it_is_listed_is_an_error(folder, monkeypatch):
    real = os.scandir

    def failing(path):
        if str(path).endswith("empty"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", failing)
    with pytest.raises(ImageFileError, match=r"empty: the folder cannot be read: Permission"):
        scan(folder)


def test_a_file_that_went_away_is_named(folder):
    with ImageRecordIter(path_imgrec=folder, data_shape=(3, 8, 8), batch_size=6) as provider:
        (folder / "ant/b.png").unlink()
        with pytest.raises(ImageFileError, match=r"ant/b\.png"):
            next(iter(provider))


@pytest.mark.skipif(sys.platform != "linux", reason="names are text elsewhere")
@given(st.lists(st.binary(min_size=1, max_size=8), max_size=6))
def test_names_of_any_bytes(tmp_path_factory, parts):
    root = os.fsencode(tmp_path_factory.mktemp("bytes"))
    for part in [b"a", *parts]:
        with contextlib.suppress(OSError, ValueError):
            folder = os.path.join(root, part.replace(b"/", b"_"))
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, b"1" + part.replace(b"/", b"\n") + b".png"), "wb"):
                pass
    samples = FOLDER.scan(StoredFile(os.fsdecode(root)), None)
    wanted = scan_images(os.fsdecode(root), True)
    assert samples.all_names() == [entry.path for entry in wanted.entries]
    assert list(samples.classes.values()) == wanted.classes
    assert sum(samples.left_out.values()) == len(wanted.skipped) + wanted.left_out.total()


@given(st.text(st.sampled_from("ab. \t\r\n/J"), max_size=9))
def test_quick_rules_for_names_are_the_plain_ones(name):
    base = name.rpartition("/")[2]
    assert suffix_of(base) == os.path.splitext(base)[1].lower()
    assert fits_in_list(name) == (name == name.strip() and not set(name) & set("\t\r\n"))
    assert all(suffix_of("x" + suffix) == suffix for suffix in IMAGE_SUFFIXES)
