"""``im2rec --checksums``, ``recordio check --write-checksums``, and what else touches checksums."""

import os

import pytest

from recordio import RecordReader, verify
from recordio.tools.im2rec import main as im2rec


def flip(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    path.write_bytes(data)


@pytest.fixture
def packed(photo_folder, output):
    """A pack with checksums, made by im2rec; its record file."""
    assert im2rec([str(output / "a"), str(photo_folder), "--checksums"]) == 0
    return output / "a.rec"


def test_im2rec_writes_checksums_with_the_pack(packed, output, photo_folder):
    names = ["a.classes.txt", "a.crc", "a.idx", "a.lst", "a.rec"]
    assert sorted(os.listdir(output)) == names
    assert verify(packed, output / "a.idx", output / "a.crc").checksums == 20
    before = (output / "a.crc").read_bytes()
    assert im2rec([str(output / "a"), str(photo_folder), "--checksums", "--num-thread=1"]) == 0
    assert (output / "a.crc").read_bytes() == before
    assert im2rec([str(output / "a"), str(photo_folder)]) == 0  # they would be of the old pack
    assert not (output / "a.crc").exists()


def test_a_failure_leaves_the_old_pack_with_its_checksums(packed, output, photo_folder):
    before = {name: (output / name).read_bytes() for name in os.listdir(output)}
    (photo_folder / "cat" / "00.jpg").write_bytes(b"broken")
    assert im2rec([str(output / "a"), str(photo_folder), "--checksums", "--strict"]) == 1
    assert {name: (output / name).read_bytes() for name in os.listdir(output)} == before


def test_check_names_the_damaged_record_and_repair_leaves_it_out(packed, output, command, capsys):
    assert command("check", output / "a") == 0
    assert "a.crc: 20 checksums" in capsys.readouterr().out
    with RecordReader(packed, output / "a.idx", verify=True) as reader:
        offset, key = int(reader.offsets[5]), int(reader.keys[5])
        whole = [bytes(record) for record in reader]
    flip(packed, offset + 100)
    assert command("check", packed) == 1
    assert f"offset {offset}, record 5, key {key}: the bytes of this record" in (
        capsys.readouterr().out
    )
    assert command("check", output / "a", "--repair", output / "b") == 1
    with RecordReader(output / "b.rec", output / "b.idx", verify=True) as reader:
        assert [bytes(record) for record in reader] == whole[:5] + whole[6:]
        assert key not in reader.keys
    assert command("check", output / "b") == 0


def test_checksums_are_written_for_a_pack_that_has_none(packed, output, command, capsys):
    before = (output / "a.crc").read_bytes()
    assert command("check", output / "a", "--write-checksums") == 1
    assert "--force" in capsys.readouterr().err
    (output / "a.crc").unlink()
    assert command("check", output / "a", "--write-checksums") == 0
    assert "a.crc: 20 checksums" in capsys.readouterr().err
    assert (output / "a.crc").read_bytes() == before
    flip(packed, 60)
    assert command("check", output / "a", "--write-checksums", "--force") == 1
    assert "is not replaced" in capsys.readouterr().err
    assert (output / "a.crc").read_bytes() == before


def test_a_damaged_pack_gets_none(packed, output, command, capsys):
    (output / "a.crc").unlink()
    packed.write_bytes(packed.read_bytes()[:-4])
    assert command("check", output / "a", "--write-checksums") == 1
    assert "no checksums are made of a damaged file" in capsys.readouterr().err
    assert not (output / "a.crc").exists()


@pytest.mark.parametrize("size", [0, 7, 39, 60])
def test_truncated_checksums_are_an_error_that_says_what_to_do(
    packed, output, command, capsys, size
):
    (output / "a.crc").write_bytes((output / "a.crc").read_bytes()[:size])
    assert command("check", output / "a") == 1
    error = capsys.readouterr().err
    assert "a.crc: " in error and "--write-checksums" in error


def test_repair_and_check_want_no_contradiction(packed, output, command):
    with pytest.raises(SystemExit):
        command("check", output / "a", "--repair", output / "b", "--write-checksums")


def test_tools_that_replace_a_pack_remove_its_checksums(packed, output, command, photo_folder):
    assert command("from-imagefolder", photo_folder, output / "a", "--force") == 0
    assert not (output / "a.crc").exists()
    assert command("check", output / "a", "--write-checksums") == 0
    assert command("from-imagefolder", photo_folder, output / "b") == 0
    assert command("check", output / "b", "--repair", output / "a", "--force") == 0
    assert not (output / "a.crc").exists()
