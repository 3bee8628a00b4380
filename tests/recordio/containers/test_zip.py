"""Zip archives read in place."""

import contextlib
import io
import os
import random
import struct
import warnings
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterators import ImageRecordIter
from iterators.testing import assert_same, copies, encode, noise
from recordio.bytes.files import StoredFile
from recordio.containers.folder import FOLDER
from recordio.containers.names import SYSTEM
from recordio.containers.reader import ContainedRecords
from recordio.containers.samples import NO_CONTENT
from recordio.containers.zip import REPLACED, ZIP
from recordio.errors import ChecksumError, EmptyRecordFileError, RecordIOError
from recordio.tools import cli

FILES = ("top.png", "ant/b.png", "ant/deep/1.png", "ant-eater/x.png", "zebra/10.PNG", "zebra/2.png")
CONTENTS = {name: encode(noise(12, 10, seed=number)) for number, name in enumerate(FILES)}
SETTINGS = {"data_shape": (3, 8, 8), "batch_size": 4, "shuffle": True, "rand_mirror": True}


def make(path, contents=CONTENTS, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for number, (name, content) in enumerate(contents.items()):
            archive.writestr(name, content, None if method else number % 2 * zipfile.ZIP_DEFLATED)
    return path


def stored(path, contents=CONTENTS):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


def open_zip(path, verify=False):
    return ContainedRecords(StoredFile(str(path)), ZIP, verify=verify)


def contents_of(path, verify=False):
    with open_zip(path, verify) as records:
        names = records.samples.all_names()
        return {name: bytes(records.content(row)) for row, name in enumerate(names)}


@pytest.fixture(params=["stored", "deflated", "mixed", "streamed"])
def archive(request, tmp_path):
    path = tmp_path / "set.zip"
    if request.param == "stored":
        return stored(path)
    if request.param == "streamed":
        stream = Stream()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in CONTENTS.items():
                archive.writestr(name, content)
        path.write_bytes(stream.data)
        return path
    return make(path, method=zipfile.ZIP_DEFLATED if request.param == "deflated" else 0)


class Stream(io.RawIOBase):
    """What a pipe is: sizes are written behind the contents."""

    def __init__(self):
        self.data = bytearray()

    def writable(self):
        return True

    def write(self, data):
        self.data += data
        return len(data)


def test_contents_labels_and_classes_are_those_of_the_unpacked_folder(archive, tmp_path):
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(tmp_path / "unpacked")
    folder = FOLDER.scan(StoredFile(str(tmp_path / "unpacked")), None)
    with open_zip(archive) as records:
        samples = records.samples
        assert samples.all_names() == folder.all_names() == list(FILES)
        assert samples.labels.tolist() == folder.labels.tolist()
        assert samples.classes == folder.classes
    assert contents_of(archive) == contents_of(archive, verify=True) == CONTENTS


def test_batches_are_those_of_the_converted_folder(archive, tmp_path, capsys):
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(tmp_path / "unpacked")
    cli.main(["from-imagefolder", str(tmp_path / "unpacked"), str(tmp_path / "out")])
    for more in ({}, {"verify": True}, {"num_parts": 2, "part_index": 1}):
        with (
            ImageRecordIter(path_imgrec=tmp_path / "out.rec", **SETTINGS) as converted,
            ImageRecordIter(path_imgrec=archive, **SETTINGS, **more) as found,
        ):
            if "num_parts" not in more:
                assert_same(copies(found), copies(converted))
            else:
                assert found.num_samples == 3


def test_labels_follow_the_folders_and_not_the_order_of_the_archive(tmp_path):
    contents = {"z/1.png": b"1", "a/2.png": b"2", "z/0.png": b"3", "3.png": b"4"}
    with open_zip(stored(tmp_path / "a.zip", contents)) as records:
        assert records.samples.all_names() == list(contents)
        assert records.samples.labels.tolist() == [2, 1, 2, 0]
        assert records.samples.classes == {0: ".", 1: "a", 2: "z"}


def test_what_is_no_image_is_counted(tmp_path):
    path = stored(tmp_path / "a.zip", {"a/x.txt": b"", "a/1.png": b"1"})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("__MACOSX/a/._1.png", b"2")
        archive.writestr("b/", b"")
        link = zipfile.ZipInfo("a/link.png")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, b"1.png")
        archive.writestr("a/new\nline.png", b"3")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a/1.png", b"latest")
    with open_zip(path) as records:
        assert records.samples.all_names() == ["a/1.png"]
        assert records.content(0) == b"latest"
        assert records.samples.left_out == {
            ".txt": 1,
            "links": 1,
            "names that a list line cannot hold": 1,
            "replaced by a later file of the same name": 1,
        }
        assert records.samples.notes.kinds == {
            SYSTEM: (1, ["__MACOSX"]),
            REPLACED: (1, ["a/1.png"]),
            "images were left out: links": (1, ["a/link.png"]),
            "images were left out: names that a list line cannot hold": (1, ["a/new\nline.png"]),
        }


def test_names_lead_nowhere_else(tmp_path):
    path = stored(tmp_path / "a.zip", {"../../a/1.png": b"1", "/etc/./2.png": b"2"})
    with zipfile.ZipFile(path, "a") as archive:
        info = zipfile.ZipInfo("cat\\3.png")
        info.create_system = 0
        archive.writestr(info, b"3")
    with open_zip(path) as records:
        assert records.samples.all_names() == ["a/1.png", "etc/2.png", "cat/3.png"]


def test_an_archive_without_images_says_what_it_holds(tmp_path):
    with pytest.raises(EmptyRecordFileError, match=r"a\.zip: the archive holds no .*1 \.tar"):
        open_zip(stored(tmp_path / "a.zip", {"a.tar": b""}))
    with pytest.raises(RecordIOError, match=r"\.cls files, which are read from tar"):
        open_zip(stored(tmp_path / "b.zip", {"a.png": b"", "a.cls": b"3"}))


def test_an_archive_of_more_than_65535_files_has_64_bits(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(66_000):
            archive.writestr(f"{number % 10}/{number}.png", b"%d" % number)
    with open_zip(path) as records:
        assert len(records) == 66_000
        assert bytes(records.content(65_999)) == b"65999"


def test_sizes_of_64_bits_in_the_headers(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in CONTENTS.items():
            with archive.open(name, "w", force_zip64=True) as member:
                member.write(content)
    assert contents_of(path) == CONTENTS


def test_an_archive_behind_other_bytes(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(b"#!/bin/sh\n" + stored(tmp_path / "b.zip").read_bytes())
    assert contents_of(path) == CONTENTS


# -- damage -------------------------------------------------------------------------------------


def damaged(path, change, name="a/1.png", content=b"content" * 9, method=zipfile.ZIP_DEFLATED):
    """An archive of one file, changed: the bytes, and where header and directory begin."""
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(name, content)
        directory = archive.start_dir
    data = bytearray(path.read_bytes())
    data = change(data, data.index(b"PK\1\2", directory)) or data
    path.write_bytes(data)
    return path


def put(at, form, value):
    return lambda data, directory: struct.pack_into(form, data, at(directory), value)


@pytest.mark.parametrize(
    "change, reason",
    [
        (put(lambda d: d + 8, "<H", 1), "it is encrypted: unpack the archive"),
        (put(lambda d: d + 10, "<H", 12), "it is packed by bzip2"),
        (put(lambda d: d + 10, "<H", 77), "it is packed by 77"),
        (put(lambda d: 8, "<H", 0), "disagree on how it is packed"),
        (put(lambda d: d + 10, "<H", 0), "the directory has two sizes"),
        (put(lambda d: d + 24, "<I", 2**31), "at most 536870911 are possible"),
        (put(lambda d: d + 24, "<I", 2**20), "cannot become 1048576"),
        (put(lambda d: 18, "<I", 3), "its header says 3 bytes and the directory"),
        (put(lambda d: 26, "<H", 60000), "does not end before the next one"),
        (put(lambda d: 0, "<I", 0), "no header of a file where the directory says"),
        (put(lambda d: d + 42, "<I", 2**31), "begins outside of the archive"),
        (put(lambda d: d + 24, "<I", 62), "more than the 62 bytes"),
        (put(lambda d: d + 24, "<I", 64), "63 bytes are there of 64"),
        (put(lambda d: d + 16, "<I", 0), "CRC-32"),
        (put(lambda d: 30 + 7, "<I", 0xFFFFFFFF), "cannot be unpacked|are there of|CRC-32"),
    ],
)
def test_a_member_that_cannot_be_read_says_why(tmp_path, change, reason):
    path = damaged(tmp_path / "a.zip", change)
    with open_zip(path) as records, pytest.raises(RecordIOError, match=reason) as caught:
        records.content(0)
    assert (caught.value.path, caught.value.record) == (str(path), 0)
    with (
        ImageRecordIter(path_imgrec=path, data_shape=(3, 8, 8), batch_size=1) as provider,
        pytest.raises(RecordIOError, match=reason),
    ):
        next(iter(provider))


def test_members_that_overlap_are_refused(tmp_path):
    path = make(tmp_path / "a.zip", method=zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    entries = [at for at in range(len(data)) if data[at : at + 4] == b"PK\1\2"]
    for at in entries[1:]:  # all of them begin at the first member, as in a bomb
        struct.pack_into("<I", data, at + 42, 0)
    path.write_bytes(data)
    with open_zip(path) as records:
        assert len(records) == len(FILES)
        assert list(records.samples.faults) == [1, 2, 3, 4, 5]
        assert len(set(records.offsets.tolist())) == len(FILES)
        for row in range(1, len(FILES)):
            with pytest.raises(RecordIOError, match="another member begins there|header says"):
                records.content(row)
        assert bytes(records.content(0)) == CONTENTS["top.png"]


def test_checksums_of_stored_members_are_compared_when_that_is_asked_for(tmp_path):
    path = damaged(tmp_path / "a.zip", put(lambda d: d - 4, "<I", 0), method=zipfile.ZIP_STORED)
    assert contents_of(path)
    with pytest.raises(ChecksumError, match="CRC-32"):
        contents_of(path, verify=True)
    with (
        ImageRecordIter(
            path_imgrec=path, data_shape=(3, 8, 8), batch_size=1, verify=True
        ) as provider,
        pytest.raises(ChecksumError, match="CRC-32"),
    ):
        next(iter(provider))


def test_a_bad_member_is_skipped_like_a_bad_record(tmp_path):
    path = make(tmp_path / "a.zip", method=zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.index(b"PK\1\2") + 16, 0)
    path.write_bytes(data)
    with ImageRecordIter(path_imgrec=path, **SETTINGS, on_error="skip") as provider:
        list(provider)
        ((record, reason),) = provider.skipped
    assert record == 0 and "CRC-32" in str(reason)


def test_a_bomb_takes_no_memory(tmp_path):
    path = tmp_path / "a.zip"

    def grow(data, directory):
        struct.pack_into("<I", data, directory + 24, 1000)

    damaged(path, grow, content=bytes(1 << 24))
    with open_zip(path) as records, pytest.raises(RecordIOError, match="more than the 1000 bytes"):
        records.content(0)


def test_an_archive_cut_anywhere_is_an_error(tmp_path):
    whole = make(tmp_path / "whole.zip").read_bytes()
    for size in [*range(0, len(whole), 97), len(whole) - 1]:
        path = tmp_path / "cut.zip"
        path.write_bytes(whole[:size])
        with pytest.raises(RecordIOError, match=r"cut\.zip: the archive is damaged, cut"):
            open_zip(path)


def test_a_directory_before_the_beginning_is_an_error(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(b"PK\5\6" + struct.pack("<4H2IH", 0, 0, 1, 1, 10**6, 0, 0))
    with pytest.raises(RecordIOError, match="damaged, cut or no zip"):
        open_zip(path)
    with pytest.raises(FileNotFoundError):
        open_zip(tmp_path / "missing.zip")


@given(st.randoms(use_true_random=False), st.integers(1, 8))
def test_damaged_bytes_give_contents_or_errors(tmp_path_factory, draw, count):
    folder = tmp_path_factory.getbasetemp() / "damaged"
    folder.mkdir(exist_ok=True)
    path = make(folder / f"{os.getpid()}.zip", {"a/1.png": b"one" * 30, "b/2.png": b"two" * 30})
    data = bytearray(path.read_bytes())
    for _ in range(count):
        data[draw.randrange(len(data))] = draw.randrange(256)
    path.write_bytes(data)
    read(path)


@given(st.binary(max_size=200))
def test_random_bytes_are_an_error(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "random.zip"
    path.write_bytes(data)
    with pytest.raises(RecordIOError):
        open_zip(path)
    path.write_bytes(data + b"PK\5\6" + random.Random(len(data)).randbytes(18))
    read(path)


def read(path):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a suffix that became that of another image
            samples = ZIP.scan(StoredFile(str(path)), None)
    except RecordIOError:
        return
    good = samples.sizes != NO_CONTENT
    assert (samples.offsets[good][1:] > samples.offsets[good][:-1]).all()
    rows = ZIP.rows(StoredFile(str(path)), samples)
    for row in range(len(samples)):
        if samples.packed[row] and good[row]:
            with contextlib.suppress(RecordIOError):
                assert len(rows.read(int(samples.offsets[row]))) == samples.sizes[row]


# -- on a server --------------------------------------------------------------------------------


def test_an_archive_on_a_server_is_read_by_ranges(tmp_path, bucket, s3_endpoint, archive):
    settings = dict(SETTINGS, remote_cache=tmp_path / "mirrors")
    settings["remote_options"] = {
        "endpoint_url": s3_endpoint, "access_key_id": "me", "secret_access_key": "hunter2-hunter2",
        "region": "us-east-1",
    }  # fmt: skip
    bucket.upload_file(str(archive), "bucket", "set.zip")
    with (
        ImageRecordIter(path_imgrec=archive, **SETTINGS) as local,
        ImageRecordIter(path_imgrec="s3://bucket/set.zip", **settings) as remote,
    ):
        assert_same(copies(remote), copies(local))
