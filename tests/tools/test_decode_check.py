"""`recordio check --decode`: what is damaged inside of images."""

import io

import numpy as np
import pytest
from PIL import Image

from recordio import IRHeader, RecordWriter, pack, verify
from recordio.formats.jpeg import jpeg
from recordio.tools.decode_check import check_contents

needs_libjpeg = pytest.mark.skipif(
    not jpeg.available(), reason="without libjpeg-turbo its warnings are not known"
)


def write(path, *contents, first=None):
    with RecordWriter(f"{path}.rec", f"{path}.idx") as writer:
        if first is not None:
            writer.write(first, 0)
        for number, content in enumerate(contents, first is not None):
            writer.write(pack(IRHeader(0, 1.0, number, 0), content), number)


def damaged(data, count=400):
    """A JPEG file with other bytes in the middle of its coded data."""
    data = bytearray(data)
    middle = (data.index(b"\xff\xda") + len(data)) // 2
    data[middle : middle + count] = bytes(np.random.default_rng(0).integers(1, 255, count, "u1"))
    return bytes(data)


@needs_libjpeg
def test_damaged_bytes_inside_of_a_jpeg_are_a_problem(tmp_path, command, images, capsys):
    good = images.jpeg(200, 300, quality=95)
    write(tmp_path / "a", good, damaged(good), good)
    assert command("check", tmp_path / "a") == 0
    assert "no problems" in capsys.readouterr().out
    assert command("check", tmp_path / "a", "--decode") == 1
    printed = capsys.readouterr().out
    assert "2 images decoded without a warning" in printed
    assert "record 1, key 1: the JPEG image is damaged" in printed


@needs_libjpeg
def test_every_kind_of_damage_is_named_with_its_record(tmp_path, images, contents):
    good = images.jpeg(200, 300, quality=95)
    png = bytearray(images.png())
    png[len(png) // 2] ^= 1
    write(tmp_path / "a", good[:-300], bytes(png), b"\0" * 9, b"", images.bomb(), good)
    report = verify(tmp_path / "a.rec", tmp_path / "a.idx")
    check_contents(report, threads=2)
    assert [problem.record for problem in report.problems] == [0, 1, 2, 3, 4]
    assert [problem.key for problem in report.problems] == [0, 1, 2, 3, 4]
    reasons = [problem.reason for problem in report.problems]
    texts = ["truncated", "checksum", "is other, no image", "is empty", "too large"]
    assert all(text in reason for text, reason in zip(texts, reasons, strict=True))
    assert report.images == 1 and not report.ok


@pytest.mark.parametrize("kind", ["WEBP", "GIF", "BMP", "TIFF", "PPM"])
def test_other_formats_are_decoded(tmp_path, images, kind):
    file = io.BytesIO()
    Image.fromarray(images.gradient(24, 36)).save(file, kind)
    write(tmp_path / "a", file.getvalue(), file.getvalue()[: len(file.getvalue()) // 3])
    report = verify(tmp_path / "a.rec")
    check_contents(report, threads=1)
    assert report.images == 1
    assert [problem.record for problem in report.problems] == [1]


def test_arrays_and_records_of_identities_are_no_problem(tmp_path, command, images, capsys):
    np.save(tmp_path / "a.npy", np.zeros((3, 4)))
    assert command("from-numpy", tmp_path / "a.npy", tmp_path / "arrays") == 0
    assert command("check", tmp_path / "arrays", "--decode") == 0
    assert "0 images decoded" in capsys.readouterr().out
    head = pack(IRHeader(0, [3.0, 4.0], 0, 0), b"")
    write(tmp_path / "faces", images.jpeg(), images.jpeg(), first=head)
    assert command("check", tmp_path / "faces", "--decode") == 0
    assert "2 images decoded" in capsys.readouterr().out


def test_whole_records_of_a_damaged_file_are_decoded(tmp_path, images):
    write(tmp_path / "a", images.jpeg(), images.jpeg(), images.png())
    data = bytearray((tmp_path / "a.rec").read_bytes())
    data[:4] = b"oops"
    (tmp_path / "a.rec").write_bytes(data)
    report = verify(tmp_path / "a.rec", tmp_path / "a.idx")
    before = len(report.problems)
    check_contents(report, threads=2)
    assert report.images == 2
    assert len(report.problems) == before > 0


def test_the_limit_and_the_threads_need_decode(tmp_path, command, images, capsys):
    write(tmp_path / "a", images.jpeg())
    assert command("check", tmp_path / "a", "--decode", "--max-pixels", "10") == 1
    assert "raise --max-pixels" in capsys.readouterr().out
    for words in (["--threads", "2"], ["--max-pixels", "9"], ["--decode", "--repair", "b"]):
        with pytest.raises(SystemExit):
            command("check", tmp_path / "a", *words)


def test_without_libjpeg_it_is_said_that_warnings_go_unnoticed(
    tmp_path, command, images, capsys, monkeypatch
):
    write(tmp_path / "a", images.jpeg())
    monkeypatch.setattr(jpeg, "available", lambda: False)
    assert command("check", tmp_path / "a", "--decode") == 0
    assert "go unnoticed" in capsys.readouterr().err


@needs_libjpeg
def test_sound_images_of_which_libjpeg_warns_are_no_problem(tmp_path, images):
    good = images.jpeg(200, 300)
    write(
        tmp_path / "a",
        good.replace(b"JFIF\0\1\1", b"JFIF\0\0\0"),
        good[:-2],
        good[:-2] + bytes(99) + good[-2:],
        good + b"behind it",
        damaged(good),
    )
    report = verify(tmp_path / "a.rec", tmp_path / "a.idx")
    check_contents(report, threads=1)
    assert report.images == 4
    (problem,) = report.problems
    assert problem.record == 4 and 'libjpeg reports "Corrupt JPEG data: ' in problem.reason


def test_values_of_floating_point_are_no_problem(tmp_path):
    write(tmp_path / "a", b"Pf\n4 2\n-1.0\n" + np.ones(8, "<f4").tobytes())
    report = verify(tmp_path / "a.rec", tmp_path / "a.idx")
    check_contents(report, threads=1)
    assert (report.images, report.problems) == (1, [])
