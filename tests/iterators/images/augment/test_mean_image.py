"""Files of mean images: those of MXNet, and damaged ones."""

import struct

import numpy as np
import pytest

from iterators.images.augment.mean_image import read_mean_image, write_mean_image
from iterators.images.augment.recipe import Recipe
from iterators.images.plan import RenderPlan
from recordio.errors import RecordIOError

IMAGE = (np.arange(60, dtype=np.float32).reshape(3, 4, 5) / np.float32(7)).astype(np.float32)


@pytest.fixture
def written(golden):
    """A file that MXNet 1.9.1 wrote with ``mx.nd.save``."""
    return golden / "mean_mxnet.bin"


def test_a_file_of_mxnet_is_read(written):
    image = read_mean_image(written)
    assert image.dtype == np.float32
    assert np.array_equal(image, IMAGE)


def test_our_file_is_that_of_mxnet(written, tmp_path):
    write_mean_image(tmp_path / "ours.bin", IMAGE)
    assert (tmp_path / "ours.bin").read_bytes() == written.read_bytes()


def test_a_file_that_ends_anywhere_is_an_error_with_its_place(written, tmp_path):
    content, path = written.read_bytes(), tmp_path / "short.bin"
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(RecordIOError, match="short.bin, offset .*the file ends inside"):
            read_mean_image(path)


def test_damage_at_any_byte_of_the_head_is_an_error_or_an_image(written, tmp_path):
    content, path = written.read_bytes(), tmp_path / "damaged.bin"
    for place in range(72):
        for value in (0, 1, 0x7F, 0xFF):
            path.write_bytes(content[:place] + bytes([value]) + content[place + 1 :])
            try:
                image = read_mean_image(path)
            except RecordIOError:
                continue
            assert image.ndim == 3


@pytest.mark.parametrize(
    ("head", "text"),
    [
        (struct.pack("<QQQ", 0x113, 0, 1), "not a file of arrays"),
        (struct.pack("<QQQ", 0x112, 0, 2), "holds 2 arrays"),
        (struct.pack("<QQQIi", 0x112, 0, 1, 0xF993FAC9, 1), "sparse"),
        (struct.pack("<QQQIiI", 0x112, 0, 1, 0xF993FAC9, 0, 2), "2 axes"),
        (
            struct.pack("<QQQIiI3qiii", 0x112, 0, 1, 0xF993FAC9, 0, 3, 3, 0, 5, 1, 0, 0),
            "empty shape",
        ),
        (
            struct.pack("<QQQIiI3qiii", 0x112, 0, 1, 0xF993FAC9, 0, 3, 3, 1, 5, 1, 0, 9),
            "element type",
        ),
        (
            struct.pack("<QQQIiI3qiii", 0x112, 0, 1, 0xF993FAC9, 0, 3, 3, 1 << 62, 5, 1, 0, 0),
            "ends",
        ),
    ],
)
def test_other_files_are_refused_with_the_reason(tmp_path, head, text):
    path = tmp_path / "other.bin"
    path.write_bytes(head)
    with pytest.raises(RecordIOError, match=text):
        read_mean_image(path)


@pytest.mark.parametrize(
    "code", [(0, "<f4"), (1, "<f8"), (2, "<f2"), (3, "u1"), (4, "<i4"), (6, "<i8")]
)
@pytest.mark.parametrize("age", ["v3", "v1", "oldest"])
def test_older_files_and_other_element_types(tmp_path, code, age):
    image = np.arange(24).reshape(2, 3, 4).astype(code[1])
    magic = {
        "v3": struct.pack("<Ii", 0xF993FACA, 0),
        "v1": struct.pack("<I", 0xF993FAC8),
        "oldest": b"",
    }
    shape = struct.pack("<I3I" if age == "oldest" else "<I3q", 3, 2, 3, 4)
    content = struct.pack("<QQQ", 0x112, 0, 1) + magic[age] + shape
    content += struct.pack("<iii", 1, 0, code[0]) + image.tobytes() + struct.pack("<Q", 0)
    (tmp_path / "old.bin").write_bytes(content)
    assert np.array_equal(read_mean_image(tmp_path / "old.bin"), image.astype(np.float32))


def test_a_mean_image_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"shape \(3, 4, 5\), data_shape is \(3, 5, 4\)"):
        RenderPlan(Recipe(data_shape=(3, 5, 4)), mean_image=IMAGE)
    with pytest.raises(ValueError, match="3 axes"):
        write_mean_image("never.bin", IMAGE[0])
