"""Annotations of COCO, VOC and YOLO become records that `ImageDetRecordIter` reads."""

import json
import os
import sys
import types

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iterators import ImageDetRecordIter
from recordio import LabelError, RecordIOError, decode_image
from recordio.formats.jpeg import jpeg
from recordio.tools.convert.boxes import Box, BoxLabels, read_class_file

CAT, DOG = (0.125, 0.25, 0.5, 0.75), (0.25, 0.0, 1.0, 0.5)
ANY_FILE = settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


class Set:
    """A folder of images 80 wide and 40 high, and annotations of the same boxes in three forms."""

    def __init__(self, folder, images):
        self.folder, self.photos = folder, folder / "images"
        for path in (self.photos, folder / "xml", folder / "txt"):
            path.mkdir()
        for name in ("a.jpg", "b.jpg"):
            (self.photos / name).write_bytes(images.jpeg(40, 80))
        self.coco = {
            "images": [
                {"id": 7, "file_name": "a.jpg", "width": 80, "height": 40},
                {"id": 9, "file_name": "b.jpg", "width": 80, "height": 40},
            ],
            "categories": [{"id": 18, "name": "dog"}, {"id": 3, "name": "cat"}],
            "annotations": [
                {"id": 1, "image_id": 7, "category_id": 3, "bbox": [10, 10, 30, 20], "iscrowd": 0},
                {"id": 2, "image_id": 9, "category_id": 18, "bbox": [20, 0, 60, 20], "iscrowd": 0},
                {"id": 3, "image_id": 7, "category_id": 18, "bbox": [20, 0, 60.0, 20.0]},
            ],
        }
        self.write_xml("a", self.object("cat", 11, 11, 40, 30), self.object("dog", 21, 1, 80, 20))
        self.write_xml("b", self.object("dog", 21, 1, 80, 20))
        self.write_txt("a", "0 0.3125 0.5 0.375 0.5", "1 0.625 0.25 0.75 0.5")
        self.write_txt("b", "1 0.625 0.25 0.75 0.5", "")
        (folder / "names.txt").write_text("cat\ndog\n")

    @staticmethod
    def object(name, *corners, more=""):
        box = "".join(
            f"<{side}>{corner}</{side}>"
            for side, corner in zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True)
        )
        return f"<object><name>{name}</name>{more}<bndbox>{box}</bndbox></object>"

    def write_xml(self, name, *objects, size=(80, 40), start=""):
        width, height = size
        (self.folder / "xml" / f"{name}.xml").write_text(
            f"{start}<annotation><filename>{name}.jpg</filename><size><width>{width}</width>"
            f"<height>{height}</height><depth>3</depth></size>{''.join(objects)}</annotation>"
        )

    def write_txt(self, name, *lines):
        (self.folder / "txt" / f"{name}.txt").write_text("\n".join(lines))

    def words(self, kind):
        """The command that packs it, without the prefix."""
        if kind == "coco":
            (self.folder / "coco.json").write_text(json.dumps(self.coco))
            return ["from-coco", self.folder / "coco.json", self.photos]
        if kind == "voc":
            return ["from-voc", self.folder / "xml", self.photos]
        return ["from-yolo", self.folder / "txt", self.photos]

    def add_box(self, kind, corners, marked=False):
        """One more box in image b, in fractions."""
        left, top, right, bottom = corners
        if kind == "coco":
            box = [left * 80, top * 40, (right - left) * 80, (bottom - top) * 40]
            entry = {"id": 4, "image_id": 9, "category_id": 3, "bbox": box, "iscrowd": int(marked)}
            self.coco["annotations"].append(entry)
        elif kind == "voc":
            more = f"<difficult>{int(marked)}</difficult>"
            objects = [
                self.object("dog", 21, 1, 80, 20),
                self.object("cat", left * 80 + 1, top * 40 + 1, right * 80, bottom * 40, more=more),
            ]
            self.write_xml("b", *objects)
        else:
            center = (left + right) / 2, (top + bottom) / 2, right - left, bottom - top
            self.write_txt("b", "1 0.625 0.25 0.75 0.5", " ".join(map(str, (0, *center))))


@pytest.fixture
def annotated(tmp_path, images):
    return Set(tmp_path, images)


every_kind = pytest.mark.parametrize("kind", ["coco", "voc", "yolo"])


def labels_in(contents, prefix):
    return [header.label.tolist() for header, _ in contents(prefix)]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in folders")
@pytest.mark.timeout(60)
def test_a_pipe_with_the_name_of_an_image_is_skipped(annotated, command):
    (annotated.photos / "b.jpg").unlink()
    os.mkfifo(annotated.photos / "b.jpg")
    command(*annotated.words("coco"), annotated.folder / "out")
    report = (annotated.folder / "out.skipped.txt").read_text()
    assert report.count("\n") == 1 and "image b.jpg: it is no regular file" in report


@every_kind
def test_boxes_become_labels_that_the_iterator_reads(annotated, kind, command, contents, images):
    prefix = annotated.folder / "out"
    words = annotated.words(kind)
    if kind == "yolo":
        words += ["--classes", annotated.folder / "names.txt"]
    assert command(*words[:3], prefix, *words[3:]) == 0
    (first, content), (second, _) = contents(prefix)
    np.testing.assert_allclose(first.label, [2, 5, 0, *CAT, 1, *DOG])
    np.testing.assert_allclose(second.label, [2, 5, 1, *DOG])
    assert content == images.jpeg(40, 80)
    assert (annotated.folder / "out.classes.txt").read_text() == "0\tcat\n1\tdog\n"
    assert (annotated.folder / "out.lst").read_text().splitlines()[1].endswith("\tb.jpg")
    provider = ImageDetRecordIter(path_imgrec=f"{prefix}.rec", data_shape=(3, 40, 80), batch_size=2)
    (batch,) = provider
    rows = np.asarray(batch.label[0])
    np.testing.assert_allclose(rows[0, 4:], [2, 5, 0, *CAT, 1, *DOG])
    np.testing.assert_allclose(rows[1, 3:11], [7, 2, 5, 1, *DOG])


BAD_BOXES = {
    "empty": (0.5, 0.5, 0.5, 0.75),
    "inverted": (0.5, 0.5, 0.25, 0.75),
    "leaving": (0.5, 0.5, 1.5, 1.0),
    "outside": (1.5, 0.5, 1.75, 0.75),
}


@every_kind
@pytest.mark.parametrize("bad", BAD_BOXES)
def test_bad_boxes_are_refused_clipped_or_dropped(annotated, kind, bad, command, contents, capsys):
    annotated.add_box(kind, BAD_BOXES[bad])
    prefix = annotated.folder / "out"
    words = [*annotated.words(kind), prefix, "--force"]
    assert command(*words) == 1
    assert len(contents(prefix)) == 1
    report = (annotated.folder / "out.skipped.txt").read_text()
    place, annotation = {
        "coco": ("coco.json, b.jpg", "annotation 4: "),
        "voc": ("xml/b.xml", "object 1 (cat): "),
        "yolo": ("txt/b.txt", "line 2: "),
    }[kind]
    assert place in report and annotation in report and report.count("\n") == 1
    assert command(*words, "--strict") == 1
    said = capsys.readouterr().err
    assert place in said and annotation in said
    assert command(*words, "--bad-boxes", "drop") == 0
    assert "1 bad boxes" in capsys.readouterr().err
    np.testing.assert_allclose(labels_in(contents, prefix)[1], [2, 5, 1, *DOG])
    assert command(*words, "--bad-boxes", "clip") == 0
    said = capsys.readouterr().err
    if bad == "leaving":
        assert "1 boxes were clipped" in said
        np.testing.assert_allclose(
            labels_in(contents, prefix)[1], [2, 5, 1, *DOG, 0, 0.5, 0.5, 1.0, 1.0]
        )
    else:
        assert "1 bad boxes" in said
        np.testing.assert_allclose(labels_in(contents, prefix)[1], [2, 5, 1, *DOG])


@every_kind
def test_a_pixel_over_the_edge_is_rounding(annotated, kind, command, contents):
    annotated.add_box(kind, (-0.9 / 80, -0.9 / 40, 1 + 0.9 / 80, 1 + 0.9 / 40))
    assert command(*annotated.words(kind), annotated.folder / "out") == 0
    label = labels_in(contents, annotated.folder / "out")[1]
    np.testing.assert_allclose(label[7:], [0, 0, 0, 1, 1])


@pytest.mark.parametrize(("kind", "option"), [("coco", "--crowd"), ("voc", "--difficult")])
def test_crowds_and_difficult_objects(annotated, kind, option, command, contents, capsys):
    annotated.add_box(kind, CAT, marked=True)
    prefix = annotated.folder / "out"
    words = [*annotated.words(kind), prefix, "--force"]
    assert command(*words) == 0
    assert "not stored: 1 crowds or difficult" in capsys.readouterr().err
    assert len(labels_in(contents, prefix)[1]) == 7
    assert command(*words, option, "keep") == 0
    np.testing.assert_allclose(labels_in(contents, prefix)[1], [2, 5, 1, *DOG, 0, *CAT])
    assert command(*words, option, "mark") == 0
    np.testing.assert_allclose(labels_in(contents, prefix)[1], [2, 6, 1, *DOG, 0, 0, *CAT, 1])
    provider = ImageDetRecordIter(path_imgrec=f"{prefix}.rec", data_shape=(3, 40, 80), batch_size=2)
    (batch,) = provider
    np.testing.assert_allclose(np.asarray(batch.label[0])[1, 4:], [2, 6, 1, *DOG, 0, 0, *CAT, 1])


@every_kind
def test_images_without_boxes(annotated, kind, command, contents, capsys):
    if kind == "coco":
        del annotated.coco["annotations"][1]
    elif kind == "voc":
        annotated.write_xml("b")
    else:
        (annotated.folder / "txt" / "b.txt").unlink()
    prefix = annotated.folder / "out"
    words = [*annotated.words(kind), prefix, "--force"]
    assert command(*words) == 0
    assert "1 images without boxes (--background stores them)" in capsys.readouterr().err
    assert len(contents(prefix)) == 1
    assert command(*words, "--background") == 0
    assert labels_in(contents, prefix)[1] == [2, 5, -1, 0, 0, 0, 0]
    provider = ImageDetRecordIter(path_imgrec=f"{prefix}.rec", data_shape=(3, 40, 80), batch_size=2)
    (batch,) = provider
    assert np.asarray(batch.label[0])[1, 3:].tolist()[:3] == [2, 2, 5]


@every_kind
def test_images_that_are_missing_damaged_or_of_another_size(
    annotated, kind, command, contents, images
):
    words = [*annotated.words(kind), annotated.folder / "out", "--force"]
    report = annotated.folder / "out.skipped.txt"
    picture = annotated.photos / "b.jpg"
    picture.write_bytes(images.jpeg(40, 80)[:-20])
    assert command(*words) == 1
    reason = "is truncated" if jpeg.available() else "cannot be decoded: it is damaged, truncated"
    assert f"image b.jpg: the JPEG image {reason}" in report.read_text()
    picture.write_bytes(images.jpeg(80, 40))
    assert command(*words) == (kind != "yolo")
    if kind != "yolo":
        assert "of 80 x 40 pixels, and it has 40 x 80" in report.read_text()
    picture.write_bytes(images.jpeg(80, 40, orientation=6))  # 80 wide when it stands upright
    assert command(*words) == 0
    picture.unlink()
    assert command(*words) == (kind != "yolo")
    if kind != "yolo":
        assert "b.jpg" in report.read_text()


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("encoding", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
@every_kind
def test_boxes_are_those_of_the_upright_image_of_any_format(
    annotated, kind, encoding, orientation, command, contents, images
):
    pixels = np.zeros((40, 80, 3), np.uint8)
    pixels[10:30, 10:40] = 255  # the cat of image a
    (annotated.photos / "a.jpg").write_bytes(images.turned(pixels, encoding, orientation))
    words = [*annotated.words(kind), annotated.folder / "out", "--force"]
    assert command(*words) == 0
    header, content = contents(annotated.folder / "out")[0]
    np.testing.assert_allclose(header.label[3:7], CAT)
    assert abs(decode_image(bytes(content)).astype(int) - pixels).max() < 12
    if kind != "yolo":  # boxes of the stored pixels, if those lie on their side
        flat = images.turned(pixels.swapaxes(0, 1), encoding, orientation)
        (annotated.photos / "a.jpg").write_bytes(flat)
        assert command(*words) == 1
        report = (annotated.folder / "out.skipped.txt").read_text()
        assert "it has 40 x 80 when it stands upright" in report


def test_label_files_without_an_image_are_told_of(annotated, command, capsys):
    (annotated.photos / "b.jpg").unlink()
    assert command(*annotated.words("yolo"), annotated.folder / "out") == 0
    assert "note: 1 label files have no image: b.txt" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda found: found.pop("annotations"), "no list of objects called annotations"),
        (lambda found: found["images"].append(dict(found["images"][0])), "two images"),
        (lambda found: found["categories"].append({"id": 3, "name": "x"}), "two categories"),
        (lambda found: found["categories"].append({"id": 4}), "has the name None"),
        (lambda found: found["categories"].append({"id": [4]}), "its id is [4], no number"),
    ],
)
def test_damaged_coco_files_end_with_a_message(annotated, command, change, text, capsys):
    change(annotated.coco)
    assert command(*annotated.words("coco"), annotated.folder / "out") == 1
    said = capsys.readouterr().err
    assert "coco.json: " in said and text in said
    assert not (annotated.folder / "out.rec").exists()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda found: found["annotations"][1].update(bbox=[1, 2, 3]), "annotation 2: its bbox"),
        (lambda found: found["annotations"][1].update(bbox=[1, 2, "x", 4]), "annotation 2"),
        (lambda found: found["annotations"][1].update(bbox=[1, 2, 10**400, 4]), "too large"),
        (lambda found: found["annotations"][1].update(bbox=[1, 2, 1e400, 4]), "finite"),
        (lambda found: found["annotations"][1].update(category_id=5), "there is no category 5"),
        (lambda found: found["images"][1].update(file_name="../a.jpg"), "image 9\tit names the"),
        (lambda found: found["images"][1].update(file_name=".."), "image 9\tits file name"),
        (lambda found: found["images"][1].update(file_name=None), "image 9\tits file name"),
        (lambda found: found["images"][1].update(file_name="c.jpg"), "there is no image c.jpg"),
    ],
)
def test_bad_coco_annotations_leave_out_their_image(annotated, command, contents, change, text):
    change(annotated.coco)
    assert command(*annotated.words("coco"), annotated.folder / "out") == 1
    assert len(contents(annotated.folder / "out")) == 1
    assert text in (annotated.folder / "out.skipped.txt").read_text()


@pytest.mark.parametrize("wrong", [1, None, "x"])
def test_annotations_of_unlisted_images_are_skipped(annotated, command, contents, wrong, capsys):
    for annotation in annotated.coco["annotations"][1:]:
        annotation["image_id"] = wrong
    words = [*annotated.words("coco"), annotated.folder / "out", "--force"]
    assert command(*words) == 1
    assert "1 images without boxes" in capsys.readouterr().err
    np.testing.assert_allclose(labels_in(contents, annotated.folder / "out"), [[2, 5, 0, *CAT]])
    (line,) = (annotated.folder / "out.skipped.txt").read_text().splitlines()
    assert f"coco.json, image {wrong!r}\t2 annotations belong to it" in line
    assert line.endswith("the first is annotation 2")
    assert command(*words, "--skip-errors") == 0
    assert command(*words, "--strict") == 1
    assert f"image {wrong!r}: 2 annotations belong" in capsys.readouterr().err


def test_what_coco_records_do_not_hold_is_counted(annotated, command, capsys):
    one, two, three = annotated.coco["annotations"]
    one.update(segmentation=[[1, 2, 3, 4, 5, 6]], keypoints=[1, 2, 2], num_keypoints=1, area=600)
    two.update(segmentation={"size": [40, 80], "counts": "x"}, keypoints=[0, 0, 0], caption="")
    three.update(segmentation=[], attributes={"occluded": True})
    annotated.coco["images"][0].update(license=1, coco_url="http://x", caption="a cat")
    annotated.coco["categories"][0]["supercategory"] = "animal"
    annotated.coco.update(info={"year": 2017}, licenses=[{}], tracks=[{}, {}], videos=[])
    words = [*annotated.words("coco"), annotated.folder / "out"]
    assert command(*words) == 0
    said = capsys.readouterr().err.splitlines()[0]
    assert said == (
        "recordio: note: not stored: 2 outlines (segmentation), 2 entries of tracks, 1 caption, "
        "1 lists of key points (keypoints), 1 attributes, 1 supercategory of categories"
    )


def test_what_belongs_to_a_skipped_image_is_not_counted(annotated, command, capsys):
    for annotation in annotated.coco["annotations"]:
        annotation["segmentation"] = [[1, 2, 3, 4, 5, 6]]
    annotated.coco["annotations"][0]["bbox"] = [1]
    assert command(*annotated.words("coco"), annotated.folder / "out") == 1
    assert "not stored: 1 outlines (segmentation)" in capsys.readouterr().err


def test_a_folder_without_annotations_is_named(annotated, command, capsys):
    assert command("from-voc", annotated.photos, annotated.photos, annotated.folder / "out") == 1
    assert f"{annotated.photos}: no file in it ends with .xml\n" in capsys.readouterr().err


def test_what_voc_records_do_not_hold_is_counted(annotated, command, capsys):
    said = "<pose>Left</pose><truncated>1</truncated><part><name>head</name></part>"
    unsaid = "<pose>Unspecified</pose><truncated>0</truncated><difficult>0</difficult>"
    annotated.write_xml(
        "a",
        "<folder>f</folder><source><database>d</database></source><segmented>1</segmented>",
        annotated.object("cat", 11, 11, 40, 30, more=said),
        annotated.object("dog", 21, 1, 80, 20, more=said + unsaid),
    )
    annotated.write_xml("b", annotated.object("dog", 21, 1, 80, 20, more=unsaid))
    assert command(*annotated.words("voc"), annotated.folder / "out") == 0
    assert capsys.readouterr().err.splitlines()[0] == (
        "recordio: note: not stored: 2 pose, 2 truncated, 2 part, 1 segmentation masks (segmented)"
    )


@every_kind
def test_images_without_boxes_alone_are_explained(annotated, kind, command, capsys):
    annotated.coco["annotations"].clear()
    for name in "ab":
        annotated.write_xml(name)
        annotated.write_txt(name)
    assert command(*annotated.words(kind), annotated.folder / "out") == 1
    assert (
        "nothing to convert: not stored: 2 images without boxes (--back" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("xml", "text"),
    [
        ("<annotation>", "it is no XML"),
        ('<!DOCTYPE a [<!ENTITY x "y">]><annotation>&x;</annotation>', "DOCTYPE"),
        ('<?xml version="1.0" encoding="nonsense"?><annotation/>', "unknown encoding"),
        ("<a><filename>../a.jpg</filename></a>", "it names the image a.jpg, as a.xml does"),
        ("<a><filename>..</filename></a>", "its file name '..' is none"),
        ("<a><filename>c.jpg</filename></a>", "no image c.jpg in"),
        ("<a><filename>c.jpg</filename></a>", "; b.jpg has the name of the annotation"),
        ("<annotation><filename>c.jpg</filename>", "it is no XML"),
        (f"<a>{Set.object('cat', 1, 2, 3, 'x')}</a>", "object 0 (cat): its bndbox"),
        (f"<a>{Set.object('emu', 1, 2, 3, 4)}</a>", "object 0 (emu): this class is none"),
        (" " * (1 << 13) + "<annotation/>", "more than 4096 bytes"),
    ],
)
def test_bad_voc_files_are_reported(annotated, command, contents, xml, text):
    (annotated.folder / "xml" / "b.xml").write_text(xml)
    words = [*annotated.words("voc"), annotated.folder / "out", "--max-metadata-bytes", "4096"]
    assert command(*words, "--classes", annotated.folder / "names.txt") == 1
    assert len(contents(annotated.folder / "out")) == 1
    assert text in (annotated.folder / "out.skipped.txt").read_text()


def test_voc_options(annotated, command, contents):
    (annotated.folder / "ids.txt").write_text("b  1\n\n")
    (annotated.folder / "order.txt").write_text("dog\ncat\n")
    annotated.write_xml("b", annotated.object("dog", 20, 0, 80, 20), size=(0, 0))
    words = [*annotated.words("voc"), annotated.folder / "out", "--zero-based"]
    words += ["--ids", annotated.folder / "ids.txt", "--classes", annotated.folder / "order.txt"]
    assert command(*words) == 0
    np.testing.assert_allclose(labels_in(contents, annotated.folder / "out"), [[2, 5, 0, *DOG]])
    assert (annotated.folder / "out.classes.txt").read_text() == "0\tdog\n1\tcat\n"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("1 0.5 0.5 0.5", "line 1: expected 5 or more finite numbers"),
        ("1 0.1 0.1 0.2 0.2 9", "line 1: it has 6 columns, and is not clear"),
        ("1 0.3 0.3 0.2 0.2 0.3 0.3", "line 1: it has 7 columns, and is not clear"),
        ("1 0.3 0.3 0.2 0.2 0.3 0.3 0.9 7", "--long-lines polygon or pose"),
        ("x 0.5 0.5 0.5 0.5", "line 1: expected 5 or more finite numbers"),
        ("1.5 0.5 0.5 0.5 0.5", "line 1: expected 5 or more finite numbers"),
        ("2 0.5 0.5 0.5 0.5", "line 1: there is no class 2"),
        ("-1 0.5 0.5 0.5 0.5", "line 1: there is no class -1"),
        ("1 nan 0.5 0.5 0.5", "line 1: expected 5 or more finite numbers"),
    ],
)
def test_bad_yolo_lines_are_reported(annotated, command, contents, line, text):
    annotated.write_txt("b", line)
    words = [*annotated.words("yolo"), annotated.folder / "out"]
    assert command(*words, "--classes", annotated.folder / "names.txt") == 1
    assert len(contents(annotated.folder / "out")) == 1
    assert text in (annotated.folder / "out.skipped.txt").read_text()


def test_names_of_classes(tmp_path, monkeypatch):
    path = tmp_path / "names.txt"
    path.write_text("cat\n\ndog\n")
    with pytest.raises(RecordIOError, match="class 1 has the name ''"):
        read_class_file(str(path))
    path.write_text("cat\ncat\n")
    with pytest.raises(RecordIOError, match="two classes have the name cat"):
        read_class_file(str(path))
    path = tmp_path / "data.yaml"
    path.write_text("names: {0: cat, 1: dog}\n")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ImportError, match="pip install pyyaml"):
        read_class_file(str(path))


def test_names_of_classes_in_yaml(tmp_path, monkeypatch):
    """What PyYAML gives, without PyYAML."""
    found = {}

    def safe_load(file):
        if found["value"] is None:
            raise ValueError("no YAML")
        return found["value"]

    fake = types.SimpleNamespace(safe_load=safe_load, YAMLError=ValueError)
    monkeypatch.setitem(sys.modules, "yaml", fake)
    path = tmp_path / "data.yaml"
    path.touch()
    for names in ({1: "dog", 0: "cat"}, ["cat", "dog"]):
        found["value"] = {"nc": 2, "names": names}
        assert read_class_file(str(path)) == ["cat", "dog"]
    for value in ({"names": {0: "cat", 2: "dog"}}, None, {"names": 5}, ["a"]):
        found["value"] = value
        with pytest.raises(RecordIOError, match="data.yaml"):
            read_class_file(str(path))


corner = st.floats(-2, 3) | st.sampled_from([0.0, 1.0, float("nan"), float("inf"), 1e-30])


@given(
    st.lists(st.tuples(corner, corner, corner, corner), max_size=4),
    st.sampled_from(["refuse", "clip", "drop"]),
    st.booleans(),
)
def test_labels_hold_whole_boxes_inside_of_the_image(boxes, bad_boxes, background):
    labels = BoxLabels(bad_boxes, "keep", background)
    try:
        found, _ = labels.of([Box("box", 1, corners) for corners in boxes], (80, 40))
    except LabelError:
        return
    if found is None or found[2] == -1:
        assert (found is None) != background
        return
    objects = np.array(found[2:], np.float32).reshape(-1, 5)
    assert ((objects[:, 1:] >= 0) & (objects[:, 1:] <= 1)).all()
    assert (objects[:, 3:] > objects[:, 1:3]).all()


@ANY_FILE
@given(data=st.binary(max_size=200), kind=st.sampled_from(["coco", "voc", "yolo"]))
def test_any_bytes_end_with_a_message(annotated, command, kind, data):
    words = [*annotated.words(kind), annotated.folder / "any", "--force"]
    name = {"coco": "coco.json", "voc": "xml/b.xml", "yolo": "txt/b.txt"}[kind]
    path = annotated.folder / name
    whole = path.read_bytes()
    try:
        for content in (data, whole[: len(data)], whole[:40] + data + whole[40 + len(data) :]):
            path.write_bytes(content)
            assert command(*words) in (0, 1)
    finally:
        path.write_bytes(whole)


@every_kind
def test_folders_that_are_none_are_named(annotated, kind, command, capsys):
    first, source, _ = annotated.words(kind)
    for folder, text in (
        (annotated.folder / "missing", "missing: there is no such folder"),
        (annotated.folder / "names.txt", "names.txt: is a file, not a folder"),
        ("s3://bucket/images", "s3://bucket/images: a URL, where a path of this machine"),
    ):
        assert command(first, source, folder, annotated.folder / "out") == 1
        assert text in capsys.readouterr().err


def test_a_box_becomes_six_numbers_behind_the_header():
    labels = BoxLabels("refuse", "drop", False)
    box = Box("box 0", 3, (0.25, 0, 0.5, 1))
    assert labels.of([box], (100, 100))[0] == [2.0, 5.0, 3.0, 0.25, 0.0, 0.5, 1.0]
    with pytest.raises(LabelError, match=r"^box 0: its width .* not above 0 \(50, 0, 50, 100\)"):
        labels.of([box._replace(corners=(0.5, 0, 0.5, 1))], (100, 100))
