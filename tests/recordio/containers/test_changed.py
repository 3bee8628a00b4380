"""Containers that are cut, replaced or written over while they are open."""

import itertools
import os
import shutil
import signal
import subprocess
import sys

import pytest
from labelled_containers import IMAGES, as_arrow, as_lmdb, as_mds, as_parquet, as_tar, write_tar

from iterators import ImageRecordIter
from iterators.testing import encode_jpeg, noise
from recordio import RecordIOError
from recordio.packs.open_pack import open_listed

CUT = """
import os, sys
from recordio.errors import RecordIOError
from recordio.packs.open_pack import open_listed
(pack,) = open_listed(sys.argv[1])
if sys.argv[2] == "reading":
    pack.reader.content(0)
os.truncate(sys.argv[1], os.path.getsize(sys.argv[1]) // 4096 * 4096 // 2)
try:
    for row in range(len(pack.reader)):
        pack.reader.copied_content(row)
except RecordIOError as error:
    print(f"typed: {error}")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="mapped files cannot be truncated there")
@pytest.mark.parametrize(
    ("write", "when"),
    [
        *itertools.product([as_parquet, as_arrow, as_lmdb, as_mds, as_tar], ["opened"]),
        *itertools.product(
            [as_arrow, as_lmdb, as_mds, as_tar], ["reading"]
        ),  # a group of Parquet is kept
    ],
)
def test_a_cut_file_is_an_error(write, when, tmp_path):
    images = [encode_jpeg(noise(400 + i, 400, i)) for i in range(3)]  # of several pages
    path = write(tmp_path, "label", [1, 2, 3], images=images)
    found = subprocess.run(
        [sys.executable, "-c", CUT, path, when], capture_output=True, text=True, check=False
    )
    assert found.returncode != -signal.SIGBUS, "the process was ended"
    assert "typed:" in found.stdout and os.path.basename(path) in found.stdout, found.stderr


@pytest.mark.parametrize("write", [as_parquet, as_arrow, as_lmdb, as_mds, as_tar])
def test_a_replaced_file_gives_no_image_of_another(write, tmp_path):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    path = write(tmp_path / "old", "label", [1, 2, 3])
    (pack,) = open_listed(path)
    assert len(pack) == 3
    other = write(tmp_path / "new", "label", [7, 8, 9])
    os.utime(other, ns=(1, 1))
    os.replace(other, path)
    with pytest.raises(RecordIOError, match="changed while it was open"):
        pack.reader.content(0)
    assert open_listed(path)[0].samples.labels.tolist() == [7, 8, 9]


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_tar_written_over_is_said_to_be_another(on_error, tmp_path):
    parts = [[(f"{i}.jpg", content), (f"{i}.cls", b"%d" % i)] for i, content in enumerate(IMAGES)]
    path = write_tar(tmp_path / "a.tar", *sum(parts, []))
    other = write_tar(tmp_path / "b.tar", ("text.txt", b"x" * 700), *sum(parts[::-1], []))
    shape = {"batch_size": 1, "data_shape": (3, 16, 16), "prefetch_buffer": 1}
    with ImageRecordIter(path_imgrec=path, on_error=on_error, **shape) as images:
        next(images)
        with open(other, "rb") as source, open(path, "r+b") as target:
            shutil.copyfileobj(source, target)
        with pytest.raises(RecordIOError, match="changed while it was open"):
            for _ in range(3):
                for _ in images:
                    pass
                images.reset()


def test_damage_in_lmdb_is_a_typed_error(tmp_path):
    path = as_lmdb(tmp_path, "label", [1, 2, 3])
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * (size - 8192))
    with pytest.raises(RecordIOError, match=r"a\.lmdb"):
        open_listed(path)[0].samples  # noqa: B018


def test_damage_in_parquet_is_a_typed_error(tmp_path):
    path = as_parquet(tmp_path, "label", [1, 2, 3])
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.seek(size - 60)
        file.write(b"\xff" * 40)
    with pytest.raises(RecordIOError, match=r"a\.parquet"):
        open_listed(path)
