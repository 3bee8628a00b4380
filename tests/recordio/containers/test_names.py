"""The same files give the same samples at every door: in place, in a zip archive, packed."""

import io
import os
import shutil
import struct
import sys
import warnings
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, features

from iterators import ImageRecordDataset, ImageRecordIter
from iterators.datasets.gluon import ImageFolderDataset
from iterators.datasets.image_files import ZippedImageDataset
from iterators.fields import Mask
from iterators.testing import encode, noise
from iterators.views import ImageClassSet
from recordio import IRHeader, RecordWriter, convert, pack
from recordio.bytes.files import StoredFile
from recordio.containers.folder import FOLDER
from recordio.containers.names import SPLITS, SYSTEM, UNUSED_METADATA, field_note, is_system_name
from recordio.containers.reader import ContainedRecords
from recordio.containers.zip import LETTERS, NAMELESS, NO_UTF_8, REPLACED, SLASHES, ZIP
from recordio.errors import FieldError, ImageDecodeError, RecordIOError
from recordio.formats.table import IMAGE_SUFFIXES
from recordio.list_files import open_list, parse_line
from recordio.packs.open_pack import open_pack
from recordio.tools import cli, im2rec
from recordio.tools.scan import scan_images

PHOTO = encode(noise(12, 10, seed=1))
#: Files that are there, those of them that are samples, and the kinds of the notes.
CASES = {
    "AppleDouble": (["a/1.jpg", "a/._1.jpg", "b/1.jpg"], ["a/1.jpg", "b/1.jpg"], [SYSTEM]),
    "checkpoints": ([".ipynb_checkpoints/1.jpg", "a/1.jpg"], ["a/1.jpg"], [SYSTEM]),
    "thumbnails": (["a/1.jpg", "a/@eaDir/1.jpg/2.jpg", "a/Thumbs.db"], ["a/1.jpg"], [SYSTEM]),
    "Finder": (["__MACOSX/a/._1.jpg", "a/.DS_Store", "a/1.jpg"], ["a/1.jpg"], [SYSTEM]),
    "no image": (["a/.DS_Store", "a/1.jpg", "a/desktop.ini", "a/words.txt"], ["a/1.jpg"], []),
    "endings": (
        ["a/1.JPG", "a/2.jfif", "a/3.webp", "a/4.avif", "a/5.jxl", "a/6.tif"],
        ["a/1.JPG", "a/2.jfif", "a/3.webp", "a/4.avif", "a/5.jxl", "a/6.tif"],
        [],
    ),
    "copies": (
        ["a/1.edited.jpg", "a/1.jpg", "a/2.jpg", "a/2.jpg.jpg", "a/3.jpg"],
        ["a/1.edited.jpg", "a/1.jpg", "a/2.jpg", "a/2.jpg.jpg", "a/3.jpg"],
        [],
    ),
    "a pair": (["1.edited.jpg", "1.jpg"], ["1.edited.jpg", "1.jpg"], []),
    "masks": (
        ["a/1.jpg", "a/1.mask.png", "b/1.jpg", "b/1.mask.png"],
        ["a/1.jpg", "b/1.jpg"],
        [field_note("mask")],
    ),
    "few masks": (
        ["a/1.jpg", "a/1.mask.png", "a/2.jpg", "b/1.jpg"],
        ["a/1.jpg", "a/1.mask.png", "a/2.jpg", "b/1.jpg"],
        ["images beside others are samples, and no field 'mask', as most of the others have none"],
    ),
    "splits": (
        ["test/a/1.jpg", "train/a/1.jpg", "train/b/1.jpg"],
        ["test/a/1.jpg", "train/a/1.jpg", "train/b/1.jpg"],
        [SPLITS],
    ),
    "a class called train": (["bus/1.jpg", "train/1.jpg"], ["bus/1.jpg", "train/1.jpg"], []),
    "hub": (["a/1.jpg", "metadata.jsonl"], ["a/1.jpg"], [UNUSED_METADATA]),
    "letters": (["\u00e9/1.jpg", "e\u0301/1.jpg", "王/1.jpg"], None, []),
}


def make(root, names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(PHOTO)
    return root


def samples_of(path):
    return (ZIP if str(path).endswith(".zip") else FOLDER).scan(StoredFile(str(path)), None)


def labelled(samples):
    return dict(zip(samples.all_names(), samples.labels.tolist(), strict=True))


def listed(path):
    with open_list(path) as lines:
        return {entry.path: entry.labels[0] for entry in map(parse_line, lines)}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("root_is_hidden", [False, True])
def test_every_door_finds_the_same(tmp_path, capsys, case, root_is_hidden):
    files, wanted, kinds = CASES[case]
    root = make(tmp_path / (".set" if root_is_hidden else "set"), files)
    archive = shutil.make_archive(tmp_path / "a", "zip", root)
    found = samples_of(root)
    if wanted is not None:
        assert found.all_names() == wanted
    assert len(found) == len(wanted or files)
    zipped = samples_of(archive)
    assert labelled(zipped) == labelled(found)
    assert zipped.classes == found.classes
    assert list(found.notes.kinds) == list(zipped.notes.kinds) == kinds
    assert [n for n, _ in found.notes.kinds.values()] == [n for n, _ in zipped.notes.kinds.values()]
    report = convert.from_imagefolder(root, tmp_path / "b", check="none")
    assert report.records == len(found)
    assert listed(tmp_path / "b.lst") == labelled(found)
    assert open_pack(tmp_path / "b.rec").classes == found.classes
    exts = [suffix for suffix in IMAGE_SUFFIXES if any(f.lower().endswith(suffix) for f in files)]
    capsys.readouterr()
    made = [str(tmp_path / "c"), str(root), "--list", "--recursive", "--no-shuffle", "--exts"]
    assert im2rec.main([*made, *exts]) == 0
    assert listed(tmp_path / "c.lst") == labelled(found)
    said = capsys.readouterr().err
    assert all(line in said for line in found.notes.lines())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        images = ImageRecordDataset(root)
    assert [str(one.message) for one in caught] == [
        f"{root}: {line}" for line in found.notes.lines()
    ]
    assert {one.filename for one in caught} <= {__file__}
    assert len(images) == len(found)


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
def test_a_field_that_is_asked_for_is_neither_sample_nor_note(tmp_path, suffix):
    root = make(tmp_path / "set", [f"a/{n}{end}" for n in "123" for end in (suffix, ".mask.png")])
    for source in (str(root), shutil.make_archive(tmp_path / "a", "zip", root)):
        settings = {"path_imgrec": source, "data_shape": (3, 8, 8), "batch_size": 1}
        with ImageRecordIter(**settings, fields={"mask": Mask()}, strict=True) as provider:
            assert provider.num_samples == 3
        with pytest.raises(RecordIOError, match="3 images beside others are their field 'mask'"):
            ImageRecordIter(**settings, strict=True)


def test_a_field_that_few_images_have_is_not_taken_for_one(tmp_path):
    root = make(tmp_path / "set", ["1.jpg", "2.jpg", "3.jpg", "1.mask.png"])
    with (
        pytest.warns(UserWarning, match=r"no field 'mask', as most .*: 1\.mask\.png"),
        pytest.raises(FieldError, match="no sample has a field mask; its fields: none"),
    ):
        ImageRecordDataset(root, fields={"mask": Mask()})


def test_from_yolo_takes_no_hidden_image_for_a_background(tmp_path, capsys):
    root = make(tmp_path / "images", ["1.jpg", "2.webp", "._1.jpg", ".cache/3.jpg"])
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "1.txt").write_text("0 0.5 0.5 0.2 0.4")
    report = convert.from_yolo(tmp_path / "labels", root, tmp_path / "a", background=True)
    assert report.records == 2
    made = ["from-yolo", str(tmp_path / "labels"), str(root), str(tmp_path / "b"), "--background"]
    assert cli.main(made) == 0
    assert "note: 2 hidden or system files and folders were left out" in capsys.readouterr().err


@pytest.mark.skipif(not features.check("avif"), reason="this Pillow writes no AVIF")
def test_images_that_an_export_wrote_come_back(tmp_path):
    content = io.BytesIO()
    Image.fromarray(noise(16, 16)).save(content, "AVIF")
    with RecordWriter(tmp_path / "a.rec") as writer:
        for label, image in enumerate((content.getvalue(), PHOTO)):
            writer.write(pack(IRHeader(0, label, label, 0), image))
    convert.export(tmp_path / "a.rec", tmp_path / "set", to="folders")
    found = samples_of(tmp_path / "set")
    assert [os.path.splitext(name)[1] for name in found.all_names()] == [".avif", ".png"]
    assert found.labels.tolist() == [0, 1]
    assert not found.notes


def test_content_decides_whatever_the_ending_is(tmp_path):
    root = make(tmp_path / "set", ["a/1.jpg"])
    (root / "a" / "2.jpg").write_text("no image")
    images = ImageRecordDataset(root)
    assert np.array_equal(images[0][0], noise(12, 10, seed=1))
    with pytest.raises(ImageDecodeError, match=r"2\.jpg"):
        images[1]


def test_other_data_sets_leave_hidden_files_out(tmp_path):
    root = make(tmp_path / "set", ["a/1.png", "a/._1.png", ".git/1.png", "b/c/2.png"])
    with pytest.warns(UserWarning, match="2 hidden or system"):
        images = ImageFolderDataset(root)
    assert (images.synsets, images.items) == (["a", "b"], [(str(root / "a/1.png"), 0)])
    with pytest.warns(UserWarning, match="2 hidden or system"):
        classes = ImageClassSet(root, (3, 8, 8))
    assert classes.paths == [str(root / "a/1.png"), str(root / "b/c/2.png")]
    assert classes.labels.tolist() == [0, 1]
    archive = shutil.make_archive(tmp_path / "a", "zip", root)
    with pytest.warns(UserWarning, match="2 hidden or system"):
        zipped = ZippedImageDataset(archive)
    assert len(zipped) == 2
    assert zipped["b/c/2.png"].shape == zipped[0].shape == (3, 12, 10)


PARTS = st.sampled_from(
    [
        "a",
        "b",
        ".c",
        "._1",
        "@eaDir",
        "__MACOSX",
        "train",
        "test",
        "val",
        "1",
        "x.mask",
        "x",
        "\xe9",
    ]
)
SUFFIXES = st.sampled_from(["", ".jpg", ".PNG", ".webp", ".txt", ".heic", ".jpg.png", ".mask.jpg"])


@given(st.lists(st.tuples(st.lists(PARTS, max_size=2), PARTS, SUFFIXES), min_size=1, max_size=12))
def test_trees_of_any_such_names(tmp_path_factory, files):
    root = tmp_path_factory.mktemp("tree")
    for parts, stem, suffix in files:
        folder = root.joinpath("set", *parts)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{stem}{suffix}").write_bytes(PHOTO)
        except OSError:  # a folder of that name
            continue
    archive = shutil.make_archive(root / "a", "zip", root / "set")
    found = scan_images(root / "set", True, IMAGE_SUFFIXES)
    assert not any(is_system_name(entry.path) for entry in found.entries)
    try:
        one = samples_of(root / "set")
    except RecordIOError:
        assert not found.entries
        return
    other = samples_of(archive)
    assert labelled(one) == labelled(other) == {e.path: e.labels[0] for e in found.entries}
    assert list(one.classes.values()) == list(other.classes.values()) == found.classes
    counts = [{k: n for k, (n, _) in s.notes.kinds.items()} for s in (one, other)]
    assert counts[0] == counts[1]
    assert {k: n for k, (n, _) in found.notes.kinds.items()}.items() <= counts[0].items()
    images = sum(
        suffix.lower() in IMAGE_SUFFIXES and not is_system_name(os.path.relpath(path, root / "set"))
        for path in (root / "set").rglob("*")
        if path.is_file() and (suffix := os.path.splitext(path.name)[1])
    )
    fields = sum(n for kind, n in counts[0].items() if "are their field" in kind)
    assert len(one) + fields == images  # no image is lost without a note


# -- names in zip archives ----------------------------------------------------------------------


def archive_of(path, names, system=3, extra=lambda name: b"", flags=0):
    """Write an archive of stored members, with the names as bytes."""
    out = directory = b""
    for number, name in enumerate(names):
        data, more = PHOTO + bytes([number]), extra(name)
        facts = struct.pack(
            "<5H3I2H", 20, flags, 0, 0, 0x21, zlib.crc32(data), len(data), len(data), len(name),
            len(more),
        )  # fmt: skip
        directory += b"PK\1\2" + bytes([20, system]) + facts
        directory += struct.pack("<3H2I", 0, 0, 0, 0, len(out)) + name + more
        out += b"PK\3\4" + facts + name + more + data
    end = struct.pack("<4H2IH", 0, 0, len(names), len(names), len(directory), len(out), 0)
    path.write_bytes(out + directory + b"PK\5\6" + end)
    return path


@pytest.mark.parametrize("flags", [0, 1 << 11])
def test_names_are_utf_8_with_and_without_the_flag(tmp_path, flags):
    names = ["王/1.jpg", "cat/1.jpg", "e\u0301/1.jpg"]
    path = archive_of(tmp_path / "a.zip", [name.encode() for name in names], flags=flags)
    samples = samples_of(path)
    assert samples.all_names() == names
    assert list(samples.classes.values()) == ["cat", "e\u0301", "王"]
    assert not samples.notes


def test_the_name_of_the_extra_field_counts_if_it_belongs_to_the_other(tmp_path):
    def extra(name):
        check = zlib.crc32(name) ^ (name == b"b.jpg")
        data = b"\1" + struct.pack("<I", check) + f"é/{name.decode()}".encode()
        return b"\x55\x54\1\0\0" + struct.pack("<2H", 0x7075, len(data)) + data

    path = archive_of(tmp_path / "a.zip", [b"a.jpg", b"b.jpg"], extra=extra)
    assert samples_of(path).all_names() == ["é/a.jpg", "b.jpg"]


@pytest.mark.parametrize(
    "names, encoding, system, labels, kinds",
    [
        (["cat\\1.jpg", "dog\\1.jpg"], "ascii", 0, [0, 1], []),
        (["p/cat\\1.jpg", "p\\dog/1.jpg"], "ascii", 10, [0, 1], []),
        (["cat\\1.jpg", "dog\\1.jpg"], "ascii", 3, [0, 1], [SLASHES]),
        (["a/cat\\1.jpg", "a/dog.jpg"], "ascii", 3, [0, 0], [LETTERS]),
        (["王\\1.jpg", "cat\\2.jpg"], "utf-8", 0, [1, 0], []),
        (["陰謀.jpg", "b.jpg"], "gbk", 0, [0, 0], [NO_UTF_8, LETTERS]),
        (["表示.jpg", "裏.jpg"], "shift_jis", 0, [0, 0], [NO_UTF_8, LETTERS]),
        (["表/示.jpg", "裏/1.jpg"], "shift_jis", 0, [0, 1], [NO_UTF_8, LETTERS]),
        (["数据\\1.jpg", "b.jpg"], "gbk", 0, [1, 0], [NO_UTF_8, SLASHES]),
        (["Bücher/1.jpg", "b.jpg"], "cp437", 0, [1, 0], [NO_UTF_8]),
    ],
)
def test_backslashes_are_slashes_where_they_can_be(
    tmp_path, names, encoding, system, labels, kinds
):
    path = archive_of(tmp_path / "a.zip", [n.encode(encoding) for n in names], system)
    samples = samples_of(path)
    assert samples.labels.tolist() == labels
    assert list(samples.notes.kinds) == kinds
    with ContainedRecords(StoredFile(str(path)), ZIP) as records:
        assert [bytes(records.content(row))[-1] for row in range(2)] == [0, 1]


def test_two_members_that_become_one_are_noted(tmp_path):
    path = archive_of(tmp_path / "a.zip", [b"a/1.jpg", b"./a//1.jpg", b"", b"/", b"\0a.jpg"])
    assert samples_of(path).all_names() == ["a/1.jpg"]
    assert samples_of(path).notes.kinds == {NAMELESS: (2, []), REPLACED: (1, ["a/1.jpg"])}


def hidden(name):
    """Whether the image of a name is hidden, where its backslashes are slashes."""
    path = (name + b"x.jpg").partition(b"\0")[0].replace(b"\\", b"/").decode("latin-1")
    return is_system_name(path)


@given(st.lists(st.binary(max_size=6), min_size=1, max_size=6), st.sampled_from([0, 3, 10]))
def test_no_image_is_lost_by_its_name(tmp_path_factory, names, system):
    path = tmp_path_factory.getbasetemp() / "names.zip"
    archive_of(path, [name + b"x.jpg" for name in names], system)
    try:
        samples = samples_of(path)
    except RecordIOError as error:
        assert "nothing at all" not in str(error)
        return
    # A hidden name is noted once, however often it comes.
    seen = [name for name in names if not hidden(name)]
    noted = sum(count for kind, (count, _) in samples.notes.kinds.items() if kind != SYSTEM)
    assert len(seen) - noted <= len(samples) <= len(names)


# -- archives that are attacked, or change ------------------------------------------------------


def test_a_field_that_is_missing_does_not_take_the_place_of_another(tmp_path):
    names = ["1.jpg", "1.mask.png", "2.jpg", "2.mask.png", "3.jpg"]
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("3.mask.txt", b"text")
        for name in ["1.mask.png", *(name for name in names if name != "1.mask.png")]:
            archive.writestr(name, encode(noise(12, 10)[..., :1]) if "mask" in name else PHOTO)
    with ImageRecordIter(
        path_imgrec=path, data_shape=(3, 8, 8), batch_size=1, fields={"mask": Mask()},
        on_error="skip",
    ) as provider:  # fmt: skip
        assert len(list(provider)) == 3  # another takes the place
        assert [record for record, _ in provider.skipped] == [2]


def test_offsets_of_64_bits_are_an_error_with_the_name(tmp_path):
    def extra(name):
        return struct.pack("<2HQ", 1, 8, 1 << 63) if name == b"2.jpg" else b""

    path = archive_of(tmp_path / "a.zip", [b"1.jpg", b"2.jpg"], extra=extra)
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\1\2", data.index(b"PK\1\2") + 4)
    struct.pack_into("<I", data, at + 42, 0xFFFFFFFF)
    path.write_bytes(data)
    with ContainedRecords(StoredFile(str(path)), ZIP) as records:
        assert bytes(records.content(0)) == PHOTO + b"\0"
        with pytest.raises(RecordIOError, match="begins outside of the archive"):
            records.content(1)


def test_an_archive_that_changes_while_it_is_open_says_so(tmp_path):
    path = tmp_path / "a.zip"
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("1.jpg", PHOTO)
        with ContainedRecords(StoredFile(str(path)), ZIP, verify=True) as records:
            path.write_bytes(bytes(len(path.read_bytes()) + 1))
            with pytest.raises(RecordIOError, match="changed while it was open") as caught:
                records.content(0)
            assert caught.value.path == str(path)


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is Linux's")
def test_a_member_unpacks_no_more_than_it_says(tmp_path):
    import resource

    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("1.png", bytes(1 << 28))
        directory = archive.start_dir
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.index(b"PK\1\2", directory) + 24, 1000)
    path.write_bytes(data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises((ImageDecodeError, zipfile.BadZipFile)):
        ZippedImageDataset(path)[0]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 16
