"""The same bytes as MXNet's own tool; what it wrote is in ``tests/golden/im2rec``."""

import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest

from recordio import RecordReader, unpack
from recordio.tools.im2rec import main

GOLDEN = Path(__file__).parents[1] / "golden" / "im2rec"
PHOTOS = GOLDEN / "photos"


def run(*words):
    assert main([str(word) for word in words]) == 0


def assert_same(output, *names):
    for name in names:
        assert (output / name).read_bytes() == (GOLDEN / name).read_bytes(), name


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("flat", []),
        ("recursive", ["--recursive"]),
        ("ordered", ["--recursive", "--no-shuffle"]),
    ],
)
def test_lists_have_the_same_bytes(output, name, options):
    run("--list", *options, output / name, PHOTOS)
    assert_same(output, f"{name}.lst")


def test_chunks_and_splits_have_the_same_names_and_bytes(output, tmp_path):
    for folder in "abc":
        (tmp_path / "many" / folder).mkdir(parents=True)
        for number in range(33):
            (tmp_path / "many" / folder / f"{number}.jpg").touch()
    splits = ["--chunks", 3, "--train-ratio", 0.7, "--test-ratio", 0.2]
    run("--list", "--recursive", *splits, output / "many", tmp_path / "many")
    names = sorted(path.name for path in GOLDEN.glob("many*.lst"))
    assert sorted(path.name for path in output.glob("*.lst")) == names
    assert_same(output, *names)


def test_labels_are_printed_as_mxnet_prints_them(output, capsys):
    run("--list", "--recursive", output / "p", PHOTOS)
    assert capsys.readouterr().out == ". 0\nant 1\nant/sub 2\nzebra 3\n"


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("name", "source", "options"),
    [
        ("recursive", "recursive", []),
        ("labels", "labels", ["--pack-label"]),
        ("first", "labels", []),
    ],
)
def test_passed_through_records_have_the_same_bytes(output, name, source, options, threads):
    shutil.copy(GOLDEN / f"{source}.lst", output / f"{name}.lst")
    run("--pass-through", *options, "--num-thread", threads, output / name, PHOTOS)
    assert_same(output, f"{name}.rec", f"{name}.idx")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("resize", ["--resize", 12]),
        ("enlarge", ["--resize", 40]),
        ("crop", ["--center-crop"]),
        ("grey", ["--color", 0, "--resize", 9]),
        pytest.param(  # one has 16 bits
            "asis", ["--color", -1, "--center-crop", "--resize", 10], marks=pytest.mark.opencv
        ),
    ],
)
def test_changed_images_have_the_same_pixels_and_headers(output, name, options):
    shutil.copy(GOLDEN / "pngs.lst", output / f"png_{name}.lst")
    run("--encoding", ".png", *options, output / f"png_{name}", PHOTOS)
    with (
        RecordReader(output / f"png_{name}.rec", output / f"png_{name}.idx") as ours,
        RecordReader(GOLDEN / f"png_{name}.rec", GOLDEN / f"png_{name}.idx") as theirs,
    ):
        assert list(ours.keys) == list(theirs.keys)
        for mine, reference in zip(ours, theirs, strict=True):
            (head, content), (other_head, other_content) = unpack(mine), unpack(reference)
            assert head == other_head
            image, other = (
                cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
                for data in (content, other_content)
            )
            assert image.dtype == other.dtype
            np.testing.assert_array_equal(image, other)
