"""WebDataset archives to packs and back."""

import bz2
import gzip
import io
import lzma
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import numpy as np
import pytest

import recordio
from iterators.testing import write_pack

#: Where the package is that is tested: other processes begin there.
PACKAGES = Path(recordio.__file__).parents[1]


def archive(path, *files):
    with tarfile.open(path, "w") as target:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            target.addfile(info, io.BytesIO(content))
    return path


def listed(path):
    with tarfile.open(path) as source:
        return [(info.name, source.extractfile(info).read()) for info in source]


@pytest.fixture
def shard(tmp_path, images):
    return archive(
        tmp_path / "a.tar",
        ("set/0001.jpg", images.jpeg(20)),
        ("set/0001.cls", b"3"),
        ("set/0002.left.png", images.png(21)),
        ("set/0002.cls", b"12\n"),
        ("set/0003.jpg", images.jpeg(22)),
        ("set/0003.json", b'{"label": [1, 2.5]}'),
    )


def test_files_of_one_base_name_become_a_record(shard, tmp_path, command, contents, images):
    assert command("from-webdataset", shard, tmp_path / "t") == 0
    (one, first), (two, second), (three, _) = contents(tmp_path / "t")
    assert (one.label, two.label, three.label.tolist()) == (3, 12, [1, 2.5])
    assert (first, second) == (images.jpeg(20), images.png(21))
    assert "set/0002.left.png" in (tmp_path / "t.lst").read_text()


def test_there_and_back_gives_the_same_samples(shard, tmp_path, command):
    assert command("from-webdataset", shard, tmp_path / "t") == 0
    assert command("export", tmp_path / "t", tmp_path / "b.tar", "--to", "webdataset") == 0
    expected = listed(shard)
    expected[3] = ("set/0002.cls", b"12")
    expected[5] = ("set/0003.json", b'{"labels": [1.0, 2.5]}')
    assert listed(tmp_path / "b.tar") == expected
    assert command("from-webdataset", tmp_path / "b.tar", tmp_path / "u") == 0
    assert (tmp_path / "u.rec").read_bytes() == (tmp_path / "t.rec").read_bytes()
    assert (tmp_path / "u.lst").read_bytes() == (tmp_path / "t.lst").read_bytes()


def test_several_archives_make_one_file(shard, tmp_path, command, contents, images):
    second = archive(tmp_path / "b.tar", ("x.jpg", images.jpeg(9)), ("x.cls", b"9"))
    assert command("from-webdataset", shard, second, tmp_path / "t") == 0
    assert [header.id for header, _ in contents(tmp_path / "t")] == [0, 1, 2, 3]


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_archives_are_read(shard, tmp_path, command, contents, compress):
    packed = tmp_path / "packed"
    packed.write_bytes(compress(shard.read_bytes()))
    assert command("from-webdataset", packed, tmp_path / "t") == 0
    assert len(contents(tmp_path / "t")) == 3
    packed.write_bytes(packed.read_bytes()[: packed.stat().st_size // 2])
    assert command("from-webdataset", packed, tmp_path / "u") == 1
    assert not (tmp_path / "u.rec").exists()


def test_remote_archives_are_read(shard, tmp_path, command, contents):
    import fsspec

    with fsspec.open("memory://recordio/a.tar", "wb") as file:
        file.write(shard.read_bytes())
    assert command("from-webdataset", "memory://recordio/a.tar", tmp_path / "t") == 0
    assert len(contents(tmp_path / "t")) == 3


def test_content_and_label_are_chosen(tmp_path, command, contents, images, capsys):
    path = archive(
        tmp_path / "a.tar",
        ("./k.a.jpg", images.jpeg(20)),
        ("./k.b.jpg", images.jpeg(21)),
        ("./k.json", b'{"width": 5, "deep": {}, "name": "x"}'),
        ("./k.txt", b"words"),
        ("k/", b""),
        ("README", b"no sample"),
        ("dir/.hidden", b"no sample"),
    )
    words = ["from-webdataset", path, tmp_path / "t", "--force"]
    assert command(*words, "--content", "b.jpg", "--label", "json:width") == 0
    ((header, content),) = contents(tmp_path / "t")
    assert (header.label, content) == (5, images.jpeg(21))
    assert capsys.readouterr().err.splitlines()[0] == (
        "recordio: note: not stored: 3 files without an ending, 1 .a.jpg, 1 .txt, 1 deep in .json, "
        "1 name in .json"
    )
    assert command(*words, "--no-labels") == 0
    assert "1 .b.jpg, 1 .json, 1 .txt\n" in capsys.readouterr().err
    assert contents(tmp_path / "t")[0][0].label == 0
    for wrong in ("json:deep", "json:none", "txt", "cls"):
        assert command(*words, "--label", wrong) == 1
    assert command(*words, "--content", "webp") == 1


def test_links_and_too_many_files_are_counted(tmp_path, command, images, capsys):
    files = [("k.jpg", images.jpeg()), ("k.cls", b"1")]
    path = archive(tmp_path / "a.tar", *files, *((f"k.{i}", b"") for i in range(1000)))
    with tarfile.open(path, "a") as tar:
        link = tarfile.TarInfo("l.jpg")
        link.type, link.linkname = tarfile.SYMTYPE, "k.jpg"
        tar.addfile(link)
    assert command("from-webdataset", path, tmp_path / "t") == 0
    links, said = capsys.readouterr().err.splitlines()[:2]
    assert "1 links or devices in the archive are left out; `tar --dereference" in links
    assert said.endswith(", 981 of 981 other kinds") and "1 .0, 1 .1, " in said


def test_bad_samples_are_reported_and_the_rest_is_stored(tmp_path, command, contents, images):
    path = archive(
        tmp_path / "a.tar",
        ("good.jpg", images.jpeg()),
        ("good.cls", b"1"),
        ("cut.jpg", images.jpeg()[:-9]),
        ("cut.cls", b"1"),
        ("text.jpg", b"<html>"),
        ("text.cls", b"1"),
        ("twice.cls", b"1"),
        ("twice.cls", b"1"),
        ("twice.jpg", images.jpeg()),
        ("word.jpg", images.jpeg()),
        ("word.cls", b"cat"),
        ("alone.jpg", images.jpeg()),
        ("lonely.cls", b"7"),
        ("nan.jpg", images.jpeg()),
        ("nan.json", b'{"label": "x"}'),
        ("deep.jpg", images.jpeg()),
        ("deep.json", b"[" * 100_000),
        ("last.jpg", images.jpeg()),
        ("last.cls", b"2"),
    )
    assert command("from-webdataset", path, tmp_path / "t") == 1
    assert [header.id for header, _ in contents(tmp_path / "t")] == [0, 9]
    report = (tmp_path / "t.skipped.txt").read_text().splitlines()
    names = [line.partition("\t")[0].partition(".tar, ")[2] for line in report]
    assert [name.partition(", offset")[0] for name in names] == [
        "cut.jpg", "text.jpg", *(f"record {number}" for number in range(3, 9)),
    ]  # fmt: skip
    assert command("from-webdataset", path, tmp_path / "u", "--strict") == 1
    assert not list(tmp_path.glob("u*"))


def test_arrays_travel_as_well(tmp_path, command):
    np.save(tmp_path / "a.npy", np.arange(12.0).reshape(3, 4))
    assert command("from-numpy", tmp_path / "a.npy", tmp_path / "t") == 0
    assert command("export", tmp_path / "t", tmp_path / "b.tar", "--to", "webdataset") == 0
    assert [name for name, _ in listed(tmp_path / "b.tar")][:2] == ["0.npy", "0.cls"]
    assert command("from-webdataset", tmp_path / "b.tar", tmp_path / "u") == 0
    assert (tmp_path / "u.rec").read_bytes() == (tmp_path / "t.rec").read_bytes()


def test_records_of_one_name_stay_apart(tmp_path, command, images):
    keys = [5, 5, 6]
    write_pack(tmp_path / "t.rec", [images.jpeg()] * 3, [1, 1, 1], ids=keys, keys=keys)
    (tmp_path / "t.lst").write_text("6\t1\t5-1.jpg\n")
    assert command("export", tmp_path / "t", tmp_path / "b.tar", "--to", "webdataset") == 0
    names = [name for name, _ in listed(tmp_path / "b.tar")]
    assert names == ["5.jpg", "5.cls", "5-1.jpg", "5-1.cls", "5-1-2.jpg", "5-1-2.cls"]


def packed_archive(path, *members):
    """An archive packed by gzip, of headers and contents; a number is that many zero bytes."""
    zeros = gzip.compress(bytes(1 << 25))
    with open(path, "wb") as file:
        for header, content in members:
            file.write(gzip.compress(header.tobuf(tarfile.PAX_FORMAT)))
            if isinstance(content, int):
                file.write(zeros * (content >> 25))
            else:
                file.write(gzip.compress(content + bytes(-len(content) % 512)))
        file.write(gzip.compress(bytes(1024)))
    return path


def member(name, size, kind=tarfile.REGTYPE):
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info


def bounded(*words):
    """Run the command in a process that may take little memory; its exit code and messages.

    Files that are mapped take none: theirs is the system's to keep or to drop.
    """
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("the allocator of an interpreter without the GIL takes a gigabyte at once")
    code = (
        "import resource, sys; from recordio.tools.cli import main;"
        "resource.setrlimit(resource.RLIMIT_DATA, (3 << 27, 3 << 27)); sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, cwd=PACKAGES
    )
    return done.returncode, done.stderr


@pytest.mark.address_space
def test_files_that_are_not_wanted_take_no_memory(tmp_path, images, contents):
    jpeg, many = images.jpeg(), 2
    path = packed_archive(
        tmp_path / "bomb.tar.gz",
        (member("a.jpg", len(jpeg)), jpeg),
        (member("a.cls", 1), b"3"),
        *((member(f"a.{number}.bin", 1 << 28), 1 << 28) for number in range(many)),
        (member("a.png", 1 << 28), 1 << 28),
        (member("b.jpg", len(jpeg)), jpeg),
        (member("b.cls", 1), b"4"),
    )
    assert path.stat().st_size < 1 << 20
    code, said = bounded("from-webdataset", path, tmp_path / "t")
    assert code == 0, said
    assert not list(tmp_path.glob("*.partial"))
    assert [header.label for header, _ in contents(tmp_path / "t")] == [3, 4]
    assert f"1 .{many - 1}.bin" in said


@pytest.mark.address_space
@pytest.mark.parametrize(
    ("kind", "name"),
    [(tarfile.XHDTYPE, "x"), (tarfile.GNUTYPE_LONGNAME, "././@LongLink")],
)
def test_huge_headers_are_refused(tmp_path, images, kind, name):
    jpeg = images.jpeg()
    path = packed_archive(
        tmp_path / "bomb.tar.gz",
        (member("a.jpg", len(jpeg)), jpeg),
        (member("a.cls", 1), b"3"),
        (member(name, 1 << 29, kind), 1 << 29),
    )
    code, said = bounded("from-webdataset", path, tmp_path / "t")
    assert (code, "in a header" in said or "headers" in said) == (1, True), said


def test_large_files_are_refused_until_asked_for(tmp_path, images, command, capsys):
    files = {"a.jpg": images.jpeg(), "a.cls": b"5", "b.jpg": b"", "b.cls": b"1"}
    path = archive(tmp_path / "a.tar", *files.items())
    words = ["from-webdataset", path, tmp_path / "t", "--force", "--check=none"]
    size = len(files["a.jpg"])
    assert command(*words, "--max-content-bytes", size - 1) == 1
    assert "--max-content-bytes to allow it" in (tmp_path / "t.skipped.txt").read_text()
    assert command(*words, "--max-content-bytes", size) == 0
    with pytest.raises(SystemExit):
        command(*words, "--max-content-bytes", 1 << 29)


@pytest.mark.address_space
def test_sparse_files_of_tar_are_bounded(tmp_path, images):
    """Their holes take no place in the archive, and their maps may be endless."""
    endless = member("a.jpg", 0, tarfile.GNUTYPE_SPARSE).tobuf(tarfile.GNU_FORMAT)
    block = bytearray(endless[:512])
    block[482] = 1  # the map goes on
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    part = bytearray((b"00000000001\0" + b"00000000001\0") * 21 + b"\1" + bytes(7))
    path = tmp_path / "bomb.tar.gz"
    path.write_bytes(gzip.compress(bytes(block) + bytes(part) * 12_000))
    code, said = bounded("from-webdataset", path, tmp_path / "t")
    assert (code, "the headers of a file are too long" in said) == (1, True), said


def test_names_in_the_list_lead_nowhere_else(tmp_path, command, images):
    names = ["../../x.jpg", "/etc/y.jpg", "a/../../z.jpg", "tab\there.jpg", "line\nhere.jpg"]
    path = archive(tmp_path / "a.tar", *((name, images.jpeg()) for name in names))
    for words in ([], ["--shuffle"]):
        words = ["from-webdataset", path, tmp_path / "t", "--no-labels", "--force", *words]
        assert command(*words) == 0
        lines = sorted((tmp_path / "t.lst").read_text().splitlines())
        assert [line.split("\t")[-1] for line in lines] == ["x.jpg", "etc/y.jpg", "a/z.jpg"]
