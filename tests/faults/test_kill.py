"""SIGKILL at every step of making a file: the old output or the new one, and nothing in the way.

`killed` is the program that is killed.  What happens to a cache that is being filled is tested
beside the cache.
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from recordio.tools.cli import main

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")


@pytest.fixture
def steps(request):
    """``steps(scenario, words)``: how many steps there were to be killed at."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # flushing takes no time there
    with tempfile.TemporaryDirectory(dir=memory) as place:
        folder = Path(place, "output")
        folder.mkdir()

        def run(scenario, *words):
            program = request.path.parent / "killed.py"
            done = subprocess.run(
                [sys.executable, program, scenario, folder, *words],
                capture_output=True,
                text=True,
                timeout=110,
            )
            assert done.returncode == 0, done.stderr[-3000:]
            return int(done.stdout.split()[-1])

        yield run


@pytest.fixture
def photo_pack(photos_folder, tmp_path):
    assert main(["from-imagefolder", str(photos_folder), str(tmp_path / "source")]) == 0
    return tmp_path / "source"


@pytest.mark.parametrize(
    "scenario",
    [
        "writer",
        "replacing_writer",
        "continuing_writer",
        "mxnet_writer",
        "index",
        "mean_image",
        "made_once",
    ],
)
def test_files_of_the_library(steps, scenario):
    assert steps(scenario) >= 5


@pytest.mark.parametrize("scenario", ["im2rec", "replacing_im2rec"])
def test_packing(steps, scenario, photos_folder):
    assert steps(scenario, photos_folder) >= 10


@pytest.mark.parametrize("shuffle", [[], ["--shuffle"]])
def test_converting(steps, tmp_path, shuffle):
    rows = tmp_path / "a.csv"
    rows.write_text("".join(f"{number},{number / 7}\n" for number in range(300)))
    assert steps("command", "from-csv", rows, "p", *shuffle) >= 10


@pytest.mark.parametrize(
    "words",
    [
        ["join", "photos", "photos", "p", "--labels", "append"],
        ["split", "photos", "p=0.5", "q=0.5"],
        ["relabel", "photos", "p", "--dense"],
    ],
)
def test_packs_of_packs(steps, photo_pack, words):
    words = [photo_pack if word == "photos" else word for word in words]
    assert steps("material", *words) >= 20


def test_mending(steps, photo_pack):
    path = photo_pack.with_suffix(".rec")
    damaged = bytearray(path.read_bytes())
    damaged[:4] = b"xxxx"
    path.write_bytes(damaged)
    assert steps("command", "check", path, "--repair", "p") >= 10


def test_optimizing(steps, photo_pack):
    assert steps("command", "optimize", photo_pack, "p") >= 10


@pytest.mark.parametrize("words", [["folder"], ["x.tar", "--to", "webdataset"]])
def test_exporting(steps, photo_pack, words):
    assert steps("export", photo_pack, *words) >= 5


@pytest.mark.parametrize("words", [["shuffle"], ["sort"], ["dedup", "--remove"]])
def test_writing_packs_in_another_order(steps, photo_pack, words):
    assert steps("command", words[0], photo_pack, *words[1:], "p") >= 10


def test_cutting_packs(steps, photo_pack, pack):
    assert steps("shards", pack, photo_pack) >= 40
