"""Indexes of DALI beside tar files: used where they fit, else as if they were not there."""

import os
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_tars import dali_index, images, same, tar

from recordio.bytes.files import StoredFile
from recordio.containers import tar as tar_files
from recordio.containers.tar import scan
from recordio.containers.tar_members import TarScan


@pytest.fixture
def archive(tmp_path):
    """An archive, and the samples of it."""
    path = tmp_path / "a.tar"
    path.write_bytes(images(40, 700))
    return path, scan(StoredFile(str(path)))


@pytest.fixture
def headers_read(monkeypatch):
    """Whether the headers of a file had to be read."""
    read = []

    class Watched(TarScan):
        def run(self, view, end):
            read.append(end)
            return super().run(view, end)

    monkeypatch.setattr(tar_files, "TarScan", Watched)
    return read


def write(path, text, seconds=5):
    index = path.with_suffix(".idx")
    index.write_bytes(text)
    later = os.stat(path).st_mtime + seconds
    os.utime(index, (later, later))
    return index


def test_an_index_that_fits_is_used(archive, headers_read, caplog):
    path, wanted = archive
    write(path, dali_index(path.read_bytes()))
    same(scan(StoredFile(str(path))), wanted)
    assert not headers_read and not caplog.records


def test_folders_and_long_names_between_the_files(tmp_path, headers_read):
    path = tmp_path / "a.tar"
    name = "n" * 150
    path.write_bytes(tar((f"{name}.jpg", b"x"), (f"{name}.cls", b"4"), ("b.jpg", b"y" * 999)))
    write(path, dali_index(path.read_bytes()))
    found = scan(StoredFile(str(path)))
    assert found.name_of(0) == f"{name}.jpg" and found.labels[0] == 4 and 1 in found.faults
    assert not headers_read


def test_an_older_index_is_not_looked_at(archive, headers_read, caplog):
    path, wanted = archive
    write(path, dali_index(path.read_bytes()), seconds=-5)
    same(scan(StoredFile(str(path))), wanted)
    assert headers_read and not caplog.records


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-1],
        lambda text: text[: len(text) // 2],
        lambda text: text.replace(b"v1.2 40", b"v1.2 41"),
        lambda text: text.replace(b" 0000", b" 0001"),
        lambda text: text.replace(b" 700 ", b" 699 "),
        lambda text: text.replace(b"00000.jpg", b"00009.jpg"),
        lambda text: text.replace(b"jpg 512 ", b"jpg 1024 "),
        lambda text: text.replace(b"jpg 512 ", b"jpg 511 "),
        lambda text: text.replace(b"jpg 512 ", b"png 512 "),
        lambda text: text + text[8:],
        lambda text: b"v1.2 0\n",
        lambda text: b"v1.2 x\n" + text[8:],
        lambda text: dali_index(images(40, 900)),
        lambda text: dali_index(images(39, 700)),
    ],
)
def test_an_index_that_does_not_fit_is_not_used(archive, headers_read, caplog, change):
    path, wanted = archive
    text = dali_index(path.read_bytes())
    if len(changed := change(text)) == 0 or changed == text:
        pytest.fail("nothing was changed")
    write(path, changed)
    same(scan(StoredFile(str(path))), wanted)
    assert headers_read and "a.idx: is not used" in caplog.text


@pytest.mark.parametrize("text", [b"", b"0\t0\n1\t512\n", b"v1.1 40\njpg 512 700\n", b"\xff" * 99])
def test_other_files_of_that_name_are_no_index(archive, headers_read, caplog, text):
    path, wanted = archive
    write(path, text)
    same(scan(StoredFile(str(path))), wanted)
    assert headers_read and not caplog.records
    path.with_suffix(".idx").unlink()
    path.with_suffix(".idx").mkdir()
    same(scan(StoredFile(str(path))), wanted)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1 << 32))
def test_damage_gives_samples_within_the_file(archive, seed):
    path, _ = archive
    draw, text = random.Random(seed), bytearray(dali_index(path.read_bytes()))
    for _ in range(draw.randint(1, 5)):
        text[draw.randrange(len(text))] = draw.choice(b"0159 \n.jx\\\xff")
    write(path, bytes(text))
    found = scan(StoredFile(str(path)))
    good = found.sizes >= 0
    assert (found.offsets[good] + found.sizes[good] <= path.stat().st_size).all()
