"""All files of a pack appear together, whatever they are made of."""

import numpy as np
import pytest

import recordio
from recordio.bytes.files import StoredFile
from recordio.frames.encoder import encode
from recordio.packs.pack_writer import PackWriter


def test_frames_and_records_share_one_file_and_one_index(tmp_path):
    frames = [encode(b"one"), encode(b"and two")]
    with PackWriter(tmp_path / "a.rec", tmp_path / "a.idx") as writer:
        writer.write(b"zero", 7)
        lengths = [len(frame) for frame in frames]
        offsets = writer.write_frames(b"".join(frames), lengths, [9, 8])
        unlisted = writer.write_frames(encode(b"three"), [16])
        writer.list_records([4], unlisted)
        assert writer.tell() == int(unlisted[0]) + 16
    with recordio.RecordReader(tmp_path / "a.rec", tmp_path / "a.idx") as reader:
        assert reader.keys.tolist() == [7, 9, 8, 4]
        assert reader.offsets.tolist() == [0, *offsets, *unlisted]
        assert [bytes(record) for record in reader] == [b"zero", b"one", b"and two", b"three"]


def test_checksums_of_frames_are_those_that_are_given(tmp_path):
    with recordio.RecordWriter(tmp_path / "a.rec", checksums=True) as plain:
        plain.write(b"one")
    crc = recordio.frames.checksums.read_checksums(tmp_path / "a.crc").entries["crc"]
    with PackWriter(tmp_path / "b.rec", tmp_path / "b.idx", checksums=True) as writer:
        writer.list_records([0], writer.write_frames(encode(b"one"), [12]), crc)
    assert (tmp_path / "b.crc").read_bytes() == (tmp_path / "a.crc").read_bytes()


def write(folder, names=b"", fails=False):
    """Write a pack with every kind of companion over an older one."""
    beside = {
        "a.bytes": b"some",
        "a.copy": StoredFile(str(folder / "source")),
        "a.lst": lambda: b"",
        "a.classes.txt": lambda: names,
    }
    companions = {str(folder / name): content for name, content in beside.items()}
    with PackWriter(folder / "a.rec", folder / "a.idx", companions=companions) as writer:
        writer.write(b"new", 1)
        if names:
            writer.companion(str(folder / "a.lst")).write(b"1\t0\tx.jpg\n")
        if fails:
            raise KeyboardInterrupt


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "source").write_bytes(b"copied")
    for name in ("rec", "idx", "lst", "classes.txt", "bytes", "copy"):
        (tmp_path / f"a.{name}").write_bytes(b"old")
    return tmp_path


def test_files_without_a_byte_are_left_out_and_older_ones_removed(folder):
    write(folder)
    found = {path.name: path.read_bytes() for path in folder.glob("a.*")}
    assert found.keys() == {"a.rec", "a.idx", "a.bytes", "a.copy"}
    assert (found["a.bytes"], found["a.copy"]) == (b"some", b"copied")
    write(folder, b"0\tcat\n")
    assert (folder / "a.classes.txt").read_bytes() == b"0\tcat\n"
    assert (folder / "a.lst").read_bytes() == b"1\t0\tx.jpg\n"


def test_an_error_leaves_all_old_files(folder):
    with pytest.raises(KeyboardInterrupt):
        write(folder, b"0\tcat\n", fails=True)
    assert {path.read_bytes() for path in folder.glob("a.*")} == {b"old"}
    assert len(list(folder.iterdir())) == 7


def test_fields_belong_to_the_pack(tmp_path):
    with PackWriter(tmp_path / "a.rec", tmp_path / "a.idx", ["text"], True) as writer:
        writer.write(b"image", 3)
        writer.fields["text"].write_frames(encode(b"one"), np.array([12]), [3])
        writer.fields["text"].discard()
    assert not list(tmp_path.iterdir())
