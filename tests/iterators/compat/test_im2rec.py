"""``python -m iterators.compat.mxnet.tools.im2rec`` takes the command line of MXNet's tool."""

import shutil
import subprocess
import sys
from pathlib import Path

import recordio

PHOTOS = Path(__file__).parents[2] / "golden" / "im2rec" / "photos"
COMMAND = [sys.executable, "-m", "iterators.compat.mxnet.tools.im2rec"]


def test_a_list_and_a_pack_are_made_with_mxnets_options(tmp_path):
    shutil.copytree(PHOTOS, tmp_path / "photos")
    listing = "--list --recursive --train-ratio 0.5 --exts .jpg .jpeg .png --no-shuffle --chunks 1"
    packing = (
        "--resize 20 --center-crop --quality 90 --num-thread 2 --color 1 --encoding .jpg "
        "--pack-label"
    )
    for options in (listing, packing):
        subprocess.run([*COMMAND, "set", "photos", *options.split()], cwd=tmp_path, check=True)
    packs = sorted(path.name for path in tmp_path.glob("*.rec"))
    assert packs == ["set_train.rec", "set_val.rec"]
    reader = recordio.RecordReader(tmp_path / "set_train.rec", tmp_path / "set_train.idx")
    for record in reader:
        _, image = recordio.unpack_img(record)
        assert image.shape == (20, 20, 3)
