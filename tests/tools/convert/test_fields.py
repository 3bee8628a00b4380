"""Fields that converters make: masks, key points, captions, and the files of a sample."""

import io
import json
import tarfile

import cv2
import numpy as np
import pytest
from PIL import Image

from iterators.testing import encode, noise
from recordio import FieldError, RecordIOError, boxes_of, convert, unpack
from recordio.packs.fields_meta import FieldMeta
from recordio.packs.open_pack import open_pack
from recordio.tools import cli

KINDS = [
    {"id": 3, "name": "cat"},
    {"id": 8, "name": "person", "keypoints": ["nose", "hand"], "skeleton": [[1, 2]]},
]


def annotation(number, image, category, outline, box=(1, 1, 4, 4), **more):
    return {
        "id": number, "image_id": image, "category_id": category, "bbox": list(box),
        "segmentation": outline, **more,
    }  # fmt: skip


def square(x, y, side):
    return [[x, y, x + side, y, x + side, y + side, x, y + side]]


@pytest.fixture
def coco(tmp_path):
    """Two images of 12 x 10 pixels: a person before a cat before a crowd, and a cat as RLE."""
    images = [{"id": i, "file_name": f"{i}.png", "width": 12, "height": 10} for i in (5, 6)]
    for image in images:
        (tmp_path / image["file_name"]).write_bytes(encode(noise(10, 12, image["id"])))
    rle = {"size": [10, 12], "counts": [3, 4, 113]}
    entries = [
        annotation(1, 5, 8, square(2, 2, 3), keypoints=[6, 5, 2, 0, 0, 0], num_keypoints=1),
        annotation(2, 5, 3, square(1, 1, 6)),
        annotation(3, 5, 3, {"size": [10, 12], "counts": [0, 120]}, iscrowd=1),
        annotation(4, 6, 3, rle),
    ]
    found = {"images": images, "annotations": entries, "categories": KINDS}
    texts = [{"image_id": 5, "caption": "a cat\nand a man"}, {"image_id": 5, "caption": "ä"}]
    (tmp_path / "captions.json").write_text(json.dumps({"annotations": texts}))

    def write(**changed):
        path = tmp_path / "a.json"
        path.write_text(json.dumps(found | changed))
        return path

    return tmp_path, entries, write


def records(path, name):
    with open_pack(path) as main:
        field = main.field(name)
        return [unpack(field.record(row)) if field.rows[row] >= 0 else None for row in range(2)]


def test_coco_masks_key_points_and_captions(coco):
    folder, _, write = coco
    names = "mask,instances,keypoints,caption"
    report = convert.from_coco(
        write(), folder, folder / "out", fields=names, captions=folder / "captions.json"
    )
    assert report.fields == {"mask": 2, "instances": 2, "keypoints": 2, "caption": 1}
    assert report.not_stored() == "not stored: 1 crowds or difficult objects"
    with open_pack(folder / "out.rec") as main:
        assert main.fields_meta == {
            "mask": FieldMeta(
                kind="mask", dtype="uint8", ignore=255, classes={1: "cat", 2: "person"}
            ),
            "instances": FieldMeta(kind="mask", dtype="uint8", ignore=255),
            "keypoints": FieldMeta(kind="keypoints", points=["nose", "hand"], skeleton=[(0, 1)]),
            "caption": FieldMeta(kind="text"),
        }
    assert cli.main(["check", str(folder / "out.rec")]) == 1  # one image has no caption
    mask = np.full((10, 12), 255, np.uint8)
    mask[1:7, 1:7], mask[2:5, 2:5] = 1, 2
    instances = np.full((10, 12), 255, np.uint8)
    instances[1:7, 1:7], instances[2:5, 2:5] = 2, 1
    for name, expected in (("mask", mask), ("instances", instances)):
        content = records(folder / "out.rec", name)[0][1]
        assert content[:4] == b"\x89PNG"
        assert np.array_equal(cv2.imdecode(np.frombuffer(content, np.uint8), -1), expected)
    second = cv2.imdecode(np.frombuffer(records(folder / "out.rec", "mask")[1][1], np.uint8), -1)
    assert second.T.reshape(-1).tolist() == [0] * 3 + [1] * 4 + [0] * 113
    (header, content), (nobody, _) = records(folder / "out.rec", "keypoints")
    assert header.label.tolist() == [2, 6, 0.5, 0.5, 2, 0, 0, 0] and not len(content)
    assert nobody.label.tolist() == [2, 6]
    (_, text), none = records(folder / "out.rec", "caption")
    assert bytes(text).decode() == "a cat and a man\nä" and none is None
    with open_pack(folder / "out.rec") as main:  # the labels are those of boxes, as before
        assert boxes_of(unpack(main.record(0))[0].label).shape == (2, 5)


def test_shuffled_fields_stay_with_their_images(coco):
    folder, _, write = coco
    for seed in range(3):
        convert.from_coco(
            write(), folder, folder / "out", fields=["keypoints"], shuffle=True, seed=seed
        )
        with open_pack(folder / "out.rec") as main:
            field = main.field("keypoints")
            for row in range(2):
                (header, _), (about, _) = unpack(main.record(row)), unpack(field.record(row))
                assert about.id == header.id
                assert (len(about.label) > 2) == (about.id == 0)


@pytest.mark.parametrize(
    ("outline", "reason"),
    [
        ([[1, 2]], "annotation 4: its polygon .* at least 3 points"),
        ({"size": [1, 2], "counts": "12"}, "annotation 4: its RLE is of size"),
        ({"size": [10, 12], "counts": "\n"}, "annotation 4: the counts of its RLE"),
    ],
)
def test_an_image_with_a_bad_outline_is_skipped_and_named(coco, outline, reason):
    folder, entries, write = coco
    changed = [*entries[:3], {**entries[3], "segmentation": outline}]
    report = convert.from_coco(write(annotations=changed), folder, folder / "out", fields="mask")
    assert report.records == 1 and report.fields == {"mask": 1}
    (skipped,) = report.skipped
    assert "6.png" in skipped.path
    with pytest.raises(RecordIOError, match=reason):
        convert.from_coco(
            write(annotations=changed), folder, folder / "b", fields="mask", strict=True
        )
    assert not list(folder.glob("b.*"))
    # Without the field nobody looks at outlines.
    assert convert.from_coco(write(annotations=changed), folder, folder / "c").records == 2


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        ([1, 2], "are no numbers x, y, v"),
        ([1, 2, "x"], "are no numbers x, y, v"),
        ([1, 2, 1], "it has 1 key points, not 2"),
        ([13, 2, 1, 0, 0, 0], "leaves the image"),
        ([1, 2, 3, 0, 0, 0], "leaves the image, or its last number"),
        ("text", "are no list"),
    ],
)
def test_bad_key_points(coco, points, reason):
    folder, entries, write = coco
    changed = [{**entries[0], "keypoints": points}, *entries[1:]]
    with pytest.raises(RecordIOError, match=reason):
        convert.from_coco(
            write(annotations=changed), folder, folder / "b", fields="keypoints", strict=True
        )


def test_what_cannot_be_is_refused(coco):
    folder, _, write = coco
    with pytest.raises(ValueError, match="expected mask, instances, keypoints, caption, not depth"):
        convert.from_coco(write(), folder, folder / "b", fields="depth")
    with pytest.raises(RecordIOError, match="need each other"):
        convert.from_coco(write(), folder, folder / "b", fields="caption")
    kinds = [{"id": i, "name": f"k{i}"} for i in range(300)]
    with pytest.raises(RecordIOError, match="300 categories, and a mask holds 254"):
        convert.from_coco(write(categories=kinds), folder, folder / "b", fields="mask")
    report = convert.from_coco(write(), folder, folder / "b", fields="keypoints", max_pixels=100)
    assert report.fields["keypoints"] == report.records == 2
    with pytest.raises(RecordIOError, match="max-pixels"):
        convert.from_coco(write(), folder, folder / "d", fields="mask", max_pixels=100)


def test_fields_of_an_older_set_are_not_left_beside_a_new_one(coco):
    folder, _, write = coco
    convert.from_coco(write(), folder, folder / "b", fields="mask,keypoints")
    with pytest.raises(FieldError, match=r"b\.keypoints\.rec: it lies there"):
        convert.from_coco(write(), folder, folder / "b", fields="mask")


def test_voc_keeps_the_numbers_of_the_palette(tmp_path, images):
    for name in ("Annotations", "JPEGImages", "SegmentationClass", "SegmentationObject"):
        (tmp_path / name).mkdir()
    box = "<bndbox><xmin>2</xmin><ymin>2</ymin><xmax>5</xmax><ymax>5</ymax></bndbox>"
    numbers = np.zeros((6, 8), np.uint8)
    numbers[2:4, 3:6], numbers[0] = 15, 255
    for name in ("a", "b"):
        (tmp_path / "JPEGImages" / f"{name}.jpg").write_bytes(encode(noise(6, 8), ".jpg"))
        (tmp_path / "Annotations" / f"{name}.xml").write_text(
            f"<annotation><filename>{name}.jpg</filename><segmented>1</segmented>"
            f"<object><name>cat</name>{box}</object></annotation>"
        )
    image = Image.fromarray(numbers, "P")
    image.putpalette([i * 7 % 256 for i in range(768)])
    turned = images.turned(image, "PNG", 6)  # as the image of an upright picture may be stored, too
    (tmp_path / "SegmentationClass" / "a.png").write_bytes(turned)
    report = convert.from_voc(
        tmp_path / "Annotations", tmp_path / "JPEGImages", tmp_path / "out", fields="mask"
    )
    assert report.records == 2 and report.fields == {"mask": 1}
    first, second = records(tmp_path / "out.rec", "mask")
    assert (
        np.array_equal(cv2.imdecode(np.frombuffer(first[1], np.uint8), -1), numbers)
        and second is None
    )
    Image.fromarray(noise(6, 8)).save(tmp_path / "SegmentationClass" / "b.png")
    with pytest.raises(RecordIOError, match="colours and no palette"):
        convert.from_voc(
            tmp_path / "Annotations", tmp_path / "JPEGImages", tmp_path / "c", fields="mask",
            strict=True,
        )  # fmt: skip


def test_webdataset_with_everything_in_a_sample(tmp_path):
    image = encode(noise(6, 8))
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for number in range(2):
            files = {"png": image, "cls": b"1", "mask.png": b"mask %d" % number, "txt": b"t"}
            files |= {"json": b"{}"} if number else {}
            for ending, content in files.items():
                info = tarfile.TarInfo(f"{number}.{ending}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    report = convert.from_webdataset(tmp_path / "a.tar", tmp_path / "b", label="cls", fields="all")
    assert report.fields == {"mask": 2, "txt": 2, "json": 1} and not report.not_stored()
    assert [bytes(found[1]) for found in records(tmp_path / "b.rec", "mask")] == [
        b"mask 0", b"mask 1",
    ]  # fmt: skip
    assert records(tmp_path / "b.rec", "json")[0] is None
    report = convert.from_webdataset(tmp_path / "a.tar", tmp_path / "c", label="cls", fields="txt")
    assert report.fields == {"txt": 2} and "2 .mask.png" in report.not_stored()


def test_the_command_takes_several_names(coco, capsys):
    folder, _, write = coco
    words = [str(write()), str(folder), str(folder / "out"), "--fields", "mask,keypoints"]
    assert cli.main(["from-coco", *words]) == 0
    assert "out.keypoints.rec: 2 records" in capsys.readouterr().err
    assert records(folder / "out.rec", "mask")[0] is not None


def test_one_key_point_is_an_object_of_three_values(coco):
    folder, entries, write = coco
    kinds = [KINDS[0], {"id": 8, "name": "person", "keypoints": ["nose"]}]
    changed = [{**entries[0], "keypoints": [6, 5, 2]}, *entries[1:]]
    path = write(categories=kinds, annotations=changed)
    convert.from_coco(path, folder, folder / "out", fields="keypoints")
    (header, _), (nobody, _) = records(folder / "out.rec", "keypoints")
    assert header.label.tolist() == [2, 3, 0.5, 0.5, 2] and nobody.label.tolist() == [2, 3]
    assert cli.main(["check", str(folder / "out.rec")]) == 0


@pytest.mark.parametrize(
    "points",
    [
        {"keypoints": "nose"},
        {"keypoints": [1, 2]},
        {"keypoints": ["a", "b"], "skeleton": [[1, 3]]},
        {"keypoints": ["a", "b"], "skeleton": [1]},
        {"keypoints": ["a", "b"], "skeleton": 5},
    ],
)
def test_categories_whose_points_are_none_are_refused(coco, points):
    folder, _, write = coco
    path = write(categories=[KINDS[0], {"id": 8, "name": "person", **points}])
    with pytest.raises(RecordIOError, match="its categories have names, keypoints or a skeleton"):
        convert.from_coco(path, folder, folder / "out", fields="keypoints")
    assert not list(folder.glob("out*"))


def test_categories_that_differ_say_nothing_of_their_points(coco):
    folder, _, write = coco
    other = {"id": 9, "name": "dog", "keypoints": ["nose", "tail"]}
    path = write(categories=[*KINDS, other])
    convert.from_coco(path, folder, folder / "out", fields="keypoints")
    assert open_pack(folder / "out.rec").fields_meta == {"keypoints": FieldMeta(kind="keypoints")}


@pytest.mark.parametrize("names", [["aeroplane", "dog"], ["disc"]])
def test_voc_knows_the_names_of_its_classes(tmp_path, names):
    for folder in ("Annotations", "JPEGImages", "SegmentationClass", "SegmentationObject"):
        (tmp_path / folder).mkdir()
    box = "<xmin>1</xmin><ymin>1</ymin><xmax>3</xmax><ymax>3</ymax>"
    objects = "".join(f"<object><name>{n}</name><bndbox>{box}</bndbox></object>" for n in names)
    (tmp_path / "Annotations" / "a.xml").write_text(f"<annotation>{objects}</annotation>")
    (tmp_path / "JPEGImages" / "a.png").write_bytes(encode(noise(10, 12)))
    for folder in ("SegmentationClass", "SegmentationObject"):
        (tmp_path / folder / "a.png").write_bytes(encode(np.full((10, 12), 12, np.uint8)))
    convert.from_voc(
        tmp_path / "Annotations", tmp_path / "JPEGImages", tmp_path / "out", fields="mask,instances"
    )
    found = open_pack(tmp_path / "out").fields_meta
    assert found["mask"].ignore == 255 and not found["instances"].classes
    if names == ["disc"]:
        assert not found["mask"].classes
    else:
        classes = found["mask"].classes
        assert (len(classes), classes[0], classes[1], classes[12], classes[20]) == (
            21, "background", "aeroplane", "dog", "tvmonitor",
        )  # fmt: skip
    assert cli.main(["check", str(tmp_path / "out")]) == 0
