"""Numbers about fields: records, kinds, objects, and pixels of each class of a mask."""

import json

import numpy as np
import pytest
from PIL import Image

import recordio
from iterators.testing import encode, write_pack
from recordio import IRHeader, RecordWriter, pack
from recordio.packs.fields_meta import FieldMeta, format_fields
from recordio.tools import cli


def write(path, records):
    with RecordWriter(path, path.with_suffix(".idx")) as writer:
        for key, (label, content) in records.items():
            writer.write(pack(IRHeader(0, label, key, 0), content), key)


@pytest.fixture
def path(tmp_path):
    """Three images; masks of 8 bits, of 16, and with a palette."""
    path = write_pack(tmp_path / "a.rec", 3)
    mask = np.zeros((10, 12), np.uint8)
    mask[:5], mask[0, 0] = 1, 255
    deep = np.full((10, 12), 700, np.uint16)
    palette = Image.fromarray(mask, "P")
    palette.putpalette(list(range(255, -1, -1)) * 3)
    palette.save(tmp_path / "p.png")
    contents = [encode(mask), encode(deep), (tmp_path / "p.png").read_bytes()]
    write(tmp_path / "a.mask.rec", {key: (0, content) for key, content in enumerate(contents)})
    write(tmp_path / "a.boxes.rec", {0: ([2, 5, *[3, 0, 0, 1, 1] * 2], b""), 2: ([2, 5], b"")})
    write(tmp_path / "a.point.rec", {0: ([2, 3, 0.5, 0.5, 2], b""), 1: ([2, 3], b"")})
    described = {
        "mask": FieldMeta(kind="mask", ignore=255, classes={1: "tree"}),
        "boxes": FieldMeta(kind="boxes", classes={3: "cat"}),
        "point": FieldMeta(kind="keypoints"),
    }
    (tmp_path / "a.fields.json").write_bytes(format_fields(described))
    return path


def test_fields_are_counted(path):
    found = recordio.stats(path).fields
    assert list(found) == ["boxes", "mask", "point"]
    assert (found["mask"].records, found["mask"].kinds) == (3, {"png": 3})
    assert not found["mask"].counts and found["mask"].missing == 0
    assert (found["boxes"].missing, found["boxes"].objects) == (1, 2)
    assert found["boxes"].counts == {3: 2}
    assert (found["point"].objects, found["point"].counts) == (1, {})


@pytest.mark.parametrize("threads", [1, 3])
def test_pixels_of_masks_are_counted(path, threads):
    found = recordio.stats(path, mean_std=True, threads=threads)
    assert found.fields["mask"].counts == {0: 120, 1: 118, 255: 2, 700: 120}
    text = str(found)
    assert "1 tree: 118 pixels, 32.78%" in text and "255 ignored: 2 pixels, 0.56%" in text
    assert "3 cat: 2 boxes, 100.00%" in text and "keypoints; 2 records, missing for 1" in text


def test_the_command_has_them(path, capsys):
    assert cli.main(["stats", str(path), "--json", "--mean-std"]) == 0
    found = json.loads(capsys.readouterr().out)["fields"]["mask"]
    assert found["counts"] == {"0": 120, "1": 118, "255": 2, "700": 120}


def test_damaged_masks(path):
    mask = path.with_suffix(".mask.rec")
    write(mask, {0: (0, b"\x89PNG\r\n\x1a\n" + bytes(40)), 1: (0, b""), 2: (0, b"x")})
    with pytest.raises(recordio.RecordIOError, match=r"a\.mask\.rec, .*record 0"):
        recordio.stats(path, mean_std=True)
    found = recordio.stats(path, mean_std=True, skip_errors=True).fields["mask"]
    assert not found.counts and found.records == 3


def test_a_pack_without_fields(tmp_path):
    assert recordio.stats(write_pack(tmp_path / "a.rec", 2)).fields == {}
