"""im2rec --field: masks found by their stem, and tables of texts and objects, beside the images."""

import os
import signal
import subprocess
import sys

import cv2
import numpy as np
import pytest
from PIL import Image

from iterators.testing import encode, noise
from recordio import RecordIOError, decode_image, unpack
from recordio.list_files import ListEntry
from recordio.packs.fields_meta import FieldMeta
from recordio.packs.open_pack import open_pack
from recordio.tools import im2rec
from recordio.tools.encode import EncodeOptions
from recordio.tools.pack import PackingError, pack

NAMES = ["cat/0.png", "cat/1.png", "dog/2.png"]


@pytest.fixture
def folder(tmp_path):
    """Three images of 12 x 10 pixels whose red channel is their mask."""
    for number, name in enumerate(NAMES):
        image = noise(10, 12, number)
        for top, pixels in (("images", image), ("masks", image[..., 0])):
            path = tmp_path / top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encode(pixels))
    return tmp_path


def run(folder, *words):
    return im2rec.main([str(folder / "out"), str(folder / "images"), "--no-shuffle", *words])


def found(folder, name):
    with open_pack(folder / "out.rec") as main:
        field = main.field(name)
        return [
            None if field.rows[row] < 0 else unpack(field.record(row)) for row in range(len(main))
        ]


def pixels_of(record):
    return cv2.imdecode(np.frombuffer(record[1], np.uint8), cv2.IMREAD_UNCHANGED)


def test_masks_are_stored_as_they_are(folder):
    assert run(folder, "--pass-through", f"--field=mask={folder / 'masks'}") == 0
    for number, (header, content) in enumerate(found(folder, "mask")):
        assert bytes(content) == (folder / "masks" / NAMES[number]).read_bytes()
        assert header.id == number and header.label == 0


@pytest.mark.parametrize(
    "words", [["--center-crop"], ["--resize=7"], ["--center-crop", "--resize=20"]]
)
def test_masks_follow_the_images(folder, words):
    """By nearest both are the same pixels where the image is resized by nearest, too."""
    masks = f"--field=mask={folder / 'masks'}"
    assert run(folder, masks, "--encoding=.png", "--inter-method=0", *words) == 0
    with open_pack(folder / "out.rec") as main:
        images = [pixels_of(unpack(main.record(row))) for row in range(3)]
    for number, record in enumerate(found(folder, "mask")):
        mask, stored = pixels_of(record), noise(10, 12, number)[..., 0]
        assert mask.shape == images[number].shape[:2]
        assert set(mask.ravel().tolist()) <= set(stored.ravel().tolist())
        if words == ["--center-crop"]:
            assert np.array_equal(mask, stored[:, 1:11])


def test_palettes_and_16_bits_are_kept(folder):
    numbers = np.arange(120, dtype=np.uint8).reshape(10, 12)
    image = Image.fromarray(numbers, "P")
    image.putpalette([255 - i % 256 for i in range(768)])
    image.save(folder / "masks" / NAMES[0])
    depth = numbers.astype(np.uint16) * 500
    (folder / "depth").mkdir()
    for number in range(3):
        (folder / "depth" / f"{number}.png").write_bytes(encode(depth))
    assert run(folder, f"--field=mask={folder / 'masks'}", f"--field=depth={folder / 'depth'}") == 0
    assert np.array_equal(pixels_of(found(folder, "mask")[0]), numbers)
    assert all(np.array_equal(pixels_of(record), depth) for record in found(folder, "depth"))


def test_tables_of_texts_and_objects(folder):
    (folder / "a.tsv").write_text("cat/0.png\ta cat\ncat/0.png\tone, asleep\ndog/2\tä dog\n")
    (folder / "b.csv").write_text('cat/0.png,"a ""cat"", asleep"\n')
    (folder / "c.jsonl").write_text(
        '{"image": "0.png", "value": [[1, 0, 0, 0.5, 1]]}\n'
        '{"image": "cat/1.png", "value": [[0.5, 0.5, 2, 0, 0, 0], [1, 1, 1, 0, 0, 0]]}\n'
        '{"image": "dog/2.png", "width": 3, "ok": true}\n'
    )
    fields = [f"--field={name}={folder / file}" for name, file in
              (("caption", "a.tsv"), ("note", "b.csv"), ("meta", "c.jsonl"))]  # fmt: skip
    assert run(folder, *fields) == 0
    texts = [record and bytes(record[1]).decode() for record in found(folder, "caption")]
    assert texts == ["a cat\none, asleep", None, "ä dog"]
    assert bytes(found(folder, "note")[0][1]) == b'a "cat", asleep'
    boxes, points, meta = found(folder, "meta")
    assert boxes[0].label.tolist() == [2, 5, 1, 0, 0, 0.5, 1] and not len(boxes[1])
    assert points[0].label.tolist() == [2, 6, 0.5, 0.5, 2, 0, 0, 0, 1, 1, 1, 0, 0, 0]
    assert bytes(meta[1]) == b'{"width": 3, "ok": true}'


def test_missing_ones_are_counted_and_named(folder, capsys):
    (folder / "masks" / NAMES[1]).unlink()
    assert run(folder, f"--field=mask={folder / 'masks'}") == 0
    assert "out.mask.rec: 2 records; 1 images have none: cat/1.png" in capsys.readouterr().err
    assert found(folder, "mask")[1] is None


def test_a_mask_that_does_not_fit_leaves_the_image_out(folder, capsys):
    (folder / "masks" / NAMES[1]).write_bytes(encode(noise(12, 10)[..., 0]))
    (folder / "masks" / NAMES[2]).write_bytes(b"nothing")
    assert run(folder, f"--field=mask={folder / 'masks'}") == 1
    text = (folder / "out.skipped.txt").read_text()
    assert "its mask: " in text and "10 x 12 pixels, and the image 12 x 10" in text
    assert len(found(folder, "mask")) == 1
    entries = [ListEntry(i, (0.0,), name) for i, name in enumerate(NAMES)]
    options = EncodeOptions(field={"mask": folder / "masks"}.items())
    with pytest.raises(PackingError):
        pack(entries, folder / "images", folder / "b", options, strict=True)
    assert not list(folder.glob("b.*"))


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("a.tsv", "cat/0.png a cat\n", "line 1: expected image TAB text"),
        ("a.csv", "a,b\n1,2,3\n", "line 2: expected 2 columns"),
        ("a.jsonl", "[1]\n", "line 1: expected an object"),
        ("a.jsonl", '{"image": 3}\n', "line 1: expected an object"),
        ("a.jsonl", '{"image": "a", "value": [[1, 2]]}\n', "line 1: an object of 2 numbers"),
        ("a.jsonl", "{\n", "line 1: no JSON"),
        ("a.jsonl", "[" * 100000 + "\n", "line 1: "),
    ],
)
def test_bad_tables_are_refused_before_any_work(folder, file, text, reason, capsys):
    (folder / file).write_text(text)
    assert run(folder, f"--field=x={folder / file}") == 1
    assert reason in capsys.readouterr().err
    assert not list(folder.glob("out.*rec"))


@pytest.mark.parametrize("value", ["mask", "=a", "a.b=c", "mask="])
def test_bad_words(value):
    with pytest.raises(ValueError, match=r"NAME=PATH|names no field"):
        EncodeOptions(field=[value])
    with pytest.raises(ValueError, match="named twice"):
        EncodeOptions(field=["a=b", "a=c"])


def test_a_killed_run_leaves_the_old_set(folder):
    masks = f"--field=mask={folder / 'masks'}"
    assert run(folder, masks) == 0
    before = {path.name: path.read_bytes() for path in folder.glob("out*")}
    program = (
        "import os, signal, sys\n"
        "from recordio.packs.pack_writer import PackWriter\n"
        "PackWriter.close = lambda self: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from recordio.tools import im2rec\n"
        f"im2rec.main([{str(folder / 'out')!r}, {str(folder / 'images')!r}, {masks!r}])\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], env=dict(os.environ))
    assert killed.returncode == -signal.SIGKILL
    assert {name: (folder / name).read_bytes() for name in before} == before
    assert run(folder, masks) == 0 and not list(folder.glob("*.partial"))


def test_shards_have_their_fields(folder):
    assert run(folder, f"--field=mask={folder / 'masks'}", "--shards=2") == 0
    names = sorted(path.name for path in folder.glob("out-*.rec"))
    assert names == [f"out-00000{i}{end}" for i in (0, 1) for end in (".mask.rec", ".rec")]


def test_a_table_that_is_not_there(folder):
    with pytest.raises((RecordIOError, OSError)):
        pack([ListEntry(0, (0.0,), NAMES[0])], folder / "images", folder / "b",
             EncodeOptions(field=["x=nowhere.tsv"]))  # fmt: skip


def test_kinds_are_found_by_the_contents(folder):
    (folder / "depth").mkdir()
    for number in range(3):
        deep = noise(10, 12, number)[..., 0].astype(np.uint16) * 256
        (folder / "depth" / f"{number}.png").write_bytes(encode(deep))
        (folder / f"{number}.png").write_bytes(encode(noise(10, 12, number)))
    (folder / "a.tsv").write_text("0\ta cat\n1\t[a]\n")
    (folder / "b.jsonl").write_text(
        '{"image": "0", "value": [[1, 0, 0, 0.5, 1]]}\n{"image": "1", "value": []}\n'
    )
    (folder / "p.jsonl").write_text('{"image": "2", "value": [[0.5, 0.5, 2]]}\n')
    (folder / "m.jsonl").write_text('{"image": "2", "ok": true}\n{"image": "1", "value": "x"}\n')
    (folder / "j.jsonl").write_text('{"image": "2", "value": {"a": []}}\n')
    sources = {
        "mask": "masks", "depth": "depth", "after": "", "caption": "a.tsv", "boxes": "b.jsonl",
        "points": "p.jsonl", "mixed": "m.jsonl", "meta": "j.jsonl",
    }  # fmt: skip
    assert run(folder, *(f"--field={name}={folder / path}" for name, path in sources.items())) == 0
    assert open_pack(folder / "out.rec").fields_meta == {
        "mask": FieldMeta(kind="mask", dtype="uint8"),
        "depth": FieldMeta(kind="image", dtype="uint16"),
        "after": FieldMeta(kind="image"),
        "caption": FieldMeta(kind="text"),
        "boxes": FieldMeta(kind="boxes", format="xyxy"),
        "points": FieldMeta(kind="keypoints"),
        "mixed": FieldMeta(kind="text"),
        "meta": FieldMeta(kind="json"),
    }
    boxes = found(folder, "boxes")
    assert boxes[0][0].label.tolist() == [2, 5, 1, 0, 0, 0.5, 1]
    assert boxes[1][0].label.tolist() == [2, 5] and boxes[2] is None


def test_what_is_of_several_kinds_is_bytes(folder):
    (folder / "masks" / NAMES[0]).unlink()
    (folder / "a.jsonl").write_text(
        '{"image": "0", "value": [[1, 0, 0, 0.5, 1]]}\n{"image": "1", "value": "a text"}\n'
    )
    (folder / "masks" / "2.png").write_bytes(encode(noise(10, 12)))
    (folder / "masks" / NAMES[2]).unlink()
    fields = [f"--field=a={folder / 'a.jsonl'}", f"--field=b={folder / 'masks'}"]
    assert run(folder, *fields) == 0
    found = open_pack(folder / "out.rec").fields_meta
    assert {name: meta.kind for name, meta in found.items()} == {"a": "bytes", "b": "image"}


def test_manifests_of_shards_list_fields(folder):
    import recordio

    words = [f"--field=mask={folder / 'masks'}", "--shards=2"]
    assert run(folder, *words) == 0
    manifest = recordio.check_shards(folder / "out.shards.json")
    assert [shard.fields[0].file for shard in manifest.shards] == [
        "out-000000.mask.rec", "out-000001.mask.rec",
    ]  # fmt: skip
    mask = folder / "out-000001.mask.rec"
    before = mask.read_bytes()
    mask.write_bytes(before[:-4])  # a shard whose field is not whole is made again
    assert run(folder, *words) == 0 and mask.read_bytes() == before
    assert open_pack(folder / "out-000001.rec").fields_meta["mask"].kind == "mask"
    with open_pack(folder / "out-000000.rec") as main:
        assert main.field("mask").check_complete() is None


@pytest.mark.parametrize("suffix", ["png", "tiff", "webp"])
@pytest.mark.parametrize("words", [[], ["--center-crop"], ["--resize=20"]])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_fields_with_an_orientation_fit_their_images(tmp_path, images, suffix, words, orientation):
    """Image and mask are turned in different ways, and show the same where both stand upright."""
    corner = np.zeros((40, 60), np.uint8)
    corner[:20, :30] = 200
    kinds = {"png": "PNG", "tiff": "TIFF", "webp": "WEBP"}
    colours = np.stack([corner] * 3, -1)
    for folder, content in (
        ("images/0.png", images.turned(colours, "PNG", 9 - orientation)),
        (f"masks/0.{suffix}", images.turned(colours if suffix == "webp" else corner, kinds[suffix],
                                            orientation)),
    ):  # fmt: skip
        (tmp_path / folder).parent.mkdir()
        (tmp_path / folder).write_bytes(content)
    assert run(tmp_path, f"--field=mask={tmp_path / 'masks'}", "--encoding=.png", *words) == 0
    with open_pack(tmp_path / "out.rec") as main:
        image = decode_image(unpack(main.record(0))[1], channels=1)
        mask = decode_image(unpack(main.field("mask").record(0))[1], channels=1)
    assert mask.shape == image.shape
    assert ((image > 100) != (mask > 100)).mean() < 0.1


@pytest.mark.parametrize("words", [[], ["--resize=20"]])
def test_a_palette_with_an_orientation_is_stored_upright(tmp_path, images, words):
    numbers = np.zeros((40, 60), np.uint8)
    numbers[:20, :30] = 7
    mask = Image.fromarray(numbers, "P")
    mask.putpalette([255 - i % 256 for i in range(768)])
    for folder, content in (
        ("images/0.png", images.turned(np.stack([numbers] * 3, -1), "PNG", 1)),
        ("masks/0.png", images.turned(mask, "PNG", 8)),
    ):
        (tmp_path / folder).parent.mkdir()
        (tmp_path / folder).write_bytes(content)
    assert run(tmp_path, f"--field=mask={tmp_path / 'masks'}", *words) == 0
    stored = pixels_of(found(tmp_path, "mask")[0])
    step = 40 // stored.shape[0]
    assert np.array_equal(stored, numbers[step // 2 :: step, step // 2 :: step])


def test_sizes_of_masks_are_compared_upright(tmp_path, images, capsys):
    pixels = noise(10, 12)
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "0.png").write_bytes(images.turned(pixels, "PNG", 6))
    (tmp_path / "masks").mkdir()
    (tmp_path / "masks" / "0.png").write_bytes(images.turned(pixels[..., 0].T.copy(), "PNG", 1))
    assert run(tmp_path, f"--field=mask={tmp_path / 'masks'}") == 1
    assert "10 x 12 pixels, and the image 12 x 10 when it stands" in capsys.readouterr().err
