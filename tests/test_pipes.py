"""No door to files waits for a pipe that nobody writes to: each refuses it, and names it."""

import os
import signal

import pytest

from iterators import datasets, mx_image
from iterators.images.augment.mean_image import read_mean_image
from recordio import MXRecordIO, RecordReader, build_index, read_csv, read_idx_array, repair, verify
from recordio.bytes.mapping import map_file
from recordio.bytes.regular_files import open_regular
from recordio.frames.checksums import read_checksums
from recordio.frames.index_file import read_index

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in folders")


@pytest.fixture
def pipe(tmp_path):
    """A pipe with the name of an image; who waits for it is interrupted."""

    def waited(number, frame):
        raise AssertionError("it waits for a pipe")

    (tmp_path / "class").mkdir()
    os.mkfifo(tmp_path / "class/a.png")
    before = signal.signal(signal.SIGALRM, waited)
    signal.alarm(30)
    yield tmp_path / "class/a.png"
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


DOORS = {
    "open_regular": open_regular,
    "map_file": map_file,
    "RecordReader": lambda path: RecordReader(path)[0],
    "RecordReader, index": lambda path: RecordReader(__file__, path)[0],
    "MXRecordIO": lambda path: MXRecordIO(str(path), "r").read(),
    "verify": verify,
    "repair": lambda path: repair(path, path.with_suffix(".rec")),
    "build_index": lambda path: build_index(path, path.with_suffix(".idx")),
    "read_index": read_index,
    "read_checksums": read_checksums,
    "read_csv": read_csv,
    "read_idx_array": read_idx_array,
    "imread": mx_image.imread,
    "ImageDataset": lambda path: datasets.ImageDataset([path])[0],
    "LabeledImageDataset": lambda path: datasets.LabeledImageDataset([(path, 0)])[0],
    "ZippedImageDataset": datasets.ZippedImageDataset,
    "open_pickle_dataset": datasets.open_pickle_dataset,
    "mean image": read_mean_image,
}


@pytest.mark.parametrize("name", DOORS)
def test_a_pipe_is_refused_with_its_name(pipe, name):
    with pytest.raises(OSError, match="no regular file") as caught:
        DOORS[name](pipe)
    assert os.fsdecode(caught.value.filename) == str(pipe)
