"""Too few file descriptors, too little memory: typed errors, never a crash, a hang or less data.

`exhausted` is the program that is short of them.
"""

import os
import shutil
import subprocess
import sys

import cv2
import numpy as np
import pytest

from iterators.testing import write_pack

pytest.importorskip("resource")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

#: glibc keeps no memory that a first run has used.
GIVING_BACK = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_TRIM_THRESHOLD_": "65536",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, pack, photos_folder):
    """Everything that the jobs read."""
    folder = tmp_path_factory.mktemp("exhausted")
    for suffix in (".rec", ".idx"):
        shutil.copy(pack.with_suffix(suffix), folder)
    shutil.copytree(photos_folder, folder / "photos")
    for number in range(60):
        shutil.copy(photos_folder / "cat" / "00.jpg", folder / f"{number}.jpg")
    (folder / "table.csv").write_text("0,1,2,3,4,5,6,7\n" * 400_000)
    rows, columns = np.mgrid[:2000, :2000]
    image = np.stack([rows % 256, columns % 256, (rows + columns) % 256], -1).astype(np.uint8)
    large = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_PROGRESSIVE, 1])[1].tobytes()
    write_pack(folder / "large.rec", [large] * 2, [0.0] * 2, index=False)
    return folder


def run(request, folder, kind, job):
    program = request.path.parent / "exhausted.py"
    done = subprocess.run(
        [sys.executable, program, kind, job, folder],
        env=os.environ | GIVING_BACK,
        capture_output=True,
        text=True,
        timeout=115,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [int(word) for word in done.stdout.split()[-2:]]


@pytest.mark.parametrize(
    "job", ["write", "read", "epoch", "file_cached_epoch", "files", "csv", "pack_images"]
)
def test_file_descriptors(request, folder, job):
    failed, done = run(request, folder, "descriptors", job)
    assert failed > 0 and done > 0


@pytest.mark.parametrize(
    "job", ["write", "epoch", "cached_epoch", "progressive", "files", "csv", "pack_images"]
)
def test_memory(request, folder, job):
    failed, done = run(request, folder, "memory", job)
    assert failed > 0 and done > 0
