"""The same boxes in the spellings of other programs give the same labels in all three formats."""

import codecs
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recordio
from recordio import LabelError, RecordIOError, convert
from recordio.tools.convert.annotation_files import ImageFolder, decoded
from recordio.tools.convert.boxes import read_class_file
from recordio.tools.convert.coco_fields import id_of

CAT, DOG = (0.125, 0.25, 0.5, 0.75), (0.25, 0.0, 1.0, 0.5)
LABEL = [2, 5, 0, *CAT, 1, *DOG]


@pytest.fixture
def put(tmp_path, images):
    """Write files below the folder of the test; without content, an image of 80 x 40."""

    def write(name, content=None):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = images.jpeg(40, 80) if content is None else content
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def labels_in(prefix):
    with recordio.RecordReader(f"{prefix}.rec", f"{prefix}.idx") as reader:
        return [np.asarray(recordio.unpack(record)[0].label).tolist() for record in reader]


def coco(name="a.jpg", size=(80, 40), ids=(7, 7), category=3, crowd=0, box=(10, 10, 30, 20)):
    """One image with two boxes, each value in one of its forms."""
    image = {"id": ids[0], "file_name": name, "width": size[0], "height": size[1]}
    one = {"image_id": ids[1], "category_id": category, "bbox": list(box), "iscrowd": crowd}
    two = {"image_id": ids[1], "category_id": 18, "bbox": [20, 0, 60, 20]}
    kinds = [{"id": 18, "name": "dog"}, {"id": 3, "name": "cat"}]
    return json.dumps({"images": [image], "annotations": [one, two], "categories": kinds})


def xml(filename="a.jpg", size=(80, 40), difficult=0, box=(11, 11, 40, 30), start="", more=""):
    def element(name, *corners):
        sides = zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True)
        inside = "".join(f"<{side}>{corner}</{side}>" for side, corner in sides)
        return (
            f"<object><name>{name}</name><difficult>{difficult}</difficult>"
            f"<bndbox>{inside}</bndbox></object>"
        )

    width, height = size
    return (
        f"{start}<annotation>{more}<filename>{filename}</filename><size><width>{width}</width>"
        f"<height>{height}</height></size>{element('cat', *box)}{element('dog', 21, 1, 80, 20)}"
        "</annotation>"
    )


SIZES = [(None, None), (0, 0), (80.0, "40"), ("80", "4.0e1"), ("", ""), ("unknown", None), (-1, 9)]
FALSE = [0, 0.0, "0", "0.0", "False", "no", "", "Unspecified", None]
TRUE = [1, 1.0, "1", "True", "yes"]
PATHS = [
    "./a.jpg", "x/../a.jpg", ".//a.jpg", "C:\\photos\\a.jpg", "/home/me/set/a.jpg", "a.JPG", "a",
    "../photos/a.jpg", "JPEGImages/a.jpg", "train\\a.jpg", " a.jpg", "file:///set/a.jpg",
]  # fmt: skip
ODD = {
    **{f"size {size}": {"size": size} for size in SIZES},
    **{f"path {path}": {"name": path} for path in PATHS},
    **{f"false {value!r}": {"flag": value} for value in FALSE},
    "numbers": {"box": str},
    "floats": {"box": float},
    "savetxt": {"box": "{:.18e}".format},
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("kind", ["coco", "voc", "yolo"])
def test_odd_spellings_give_the_same_labels(put, tmp_path, kind, odd):
    change = ODD[odd]
    put("photos/a.jpg")
    put("photos/b.jpg")
    form = change.get("box", lambda value: value)
    keywords = {"size": change.get("size", (80, 40))}
    if kind == "coco":
        keywords |= {"name": change.get("name", "a.jpg"), "crowd": change.get("flag", 0)}
        keywords["box"] = list(map(form, (10, 10, 30, 20)))
        convert.from_coco(put("a.json", coco(**keywords)), tmp_path / "photos", tmp_path / "out")
    elif kind == "voc":
        keywords |= {"filename": change.get("name", "a.jpg"), "difficult": change.get("flag", 0)}
        keywords["difficult"] = "" if keywords["difficult"] is None else keywords["difficult"]
        keywords["box"] = list(map(form, (11, 11, 40, 30)))
        put("xml/1.xml", xml(**keywords))
        convert.from_voc(tmp_path / "xml", tmp_path / "photos", tmp_path / "out")
    else:
        rows = [(0, 0.3125, 0.5, 0.375, 0.5), (1, 0.625, 0.25, 0.75, 0.5)]
        put("txt/a.txt", "".join(" ".join(str(form(v)) for v in row) + "\r\n" for row in rows))
        names = put("names.txt", "cat\r\ndog\r\n".encode("utf-16"))
        convert.from_yolo(tmp_path / "txt", tmp_path / "photos", tmp_path / "out", classes=names)
    np.testing.assert_allclose(labels_in(tmp_path / "out"), [LABEL], rtol=1e-6)
    assert (tmp_path / "out.classes.txt").read_text() == "0\tcat\n1\tdog\n"
    assert "\ta.jpg\n" in (tmp_path / "out.lst").read_text()


@pytest.mark.parametrize("value", TRUE)
def test_what_is_true_marks_a_box(put, tmp_path, value):
    put("photos/a.jpg")
    convert.from_coco(put("a.json", coco(crowd=value)), tmp_path / "photos", tmp_path / "out")
    put("xml/a.xml", xml(difficult=value))
    convert.from_voc(tmp_path / "xml", tmp_path / "photos", tmp_path / "voc", difficult="mark")
    assert len(labels_in(tmp_path / "out")[0]) == 7
    assert [labels_in(tmp_path / "voc")[0][at] for at in (7, 13)] == [1, 1]


@pytest.mark.parametrize("ids", [(12.0, 12), ("000012", 12), ("12", "012"), ("a1", "a1"), (0, "0")])
@pytest.mark.parametrize("category", [3, 3.0, "3", "0003"])
def test_ids_join_by_value(put, tmp_path, ids, category):
    put("photos/a.jpg")
    path = put("a.json", coco(ids=ids, category=category).encode("utf-8-sig"))
    convert.from_coco(path, tmp_path / "photos", tmp_path / "out")
    np.testing.assert_allclose(labels_in(tmp_path / "out"), [LABEL])


@given(st.integers(-(10**15), 10**15), st.sampled_from(["{}", "{}.0", " {}", "+{}", "{:024d}"]))
def test_an_id_is_its_number_in_any_form(value, form):
    if value >= 0 or "+" not in form:
        assert id_of(value) == id_of(float(value)) == id_of(form.format(value)) == value


def test_two_ids_of_one_value_are_refused(put, tmp_path):
    found = json.loads(coco())
    found["images"].append({"id": "07", "file_name": "b.jpg"})
    path = put("a.json", json.dumps(found))
    with pytest.raises(RecordIOError, match=r"two images have the same id: 7 and '07'"):
        convert.from_coco(path, put("photos/a.jpg").parent, tmp_path / "out")


@pytest.mark.parametrize("bad_boxes", ["refuse", "drop", "clip"])
@pytest.mark.parametrize("nothing", ["[]", "null", '""'])
def test_annotations_without_a_box_are_counted(put, tmp_path, bad_boxes, nothing):
    put("photos/a.jpg")
    text = coco().replace("[10, 10, 30, 20]", nothing)
    settings = {"bad_boxes": bad_boxes}
    report = convert.from_coco(
        put("a.json", text), tmp_path / "photos", tmp_path / "out", **settings
    )
    assert report.left_out == {"annotations without a box (bbox)": 1}
    put("xml/a.xml", xml(more="<object><name>cat</name><bndbox/></object>"))
    report = convert.from_voc(tmp_path / "xml", tmp_path / "photos", tmp_path / "voc", **settings)
    assert report.left_out == {"objects without a box (bndbox)": 1}
    np.testing.assert_allclose(labels_in(tmp_path / "out"), [[2, 5, 1, *DOG]])
    np.testing.assert_allclose(labels_in(tmp_path / "voc"), [LABEL])


def test_categories_of_one_name_are_noted(put, tmp_path, command, capsys):
    put("photos/a.jpg")
    kinds = [
        {"id": 0, "name": "cat", "supercategory": "none"},
        {"id": 3, "name": "cat", "supercategory": "cat"},
        {"id": 18, "name": "dog", "supercategory": "cat"},
    ]
    path = put("a.json", json.dumps({**json.loads(coco()), "categories": kinds}))
    assert command("from-coco", path, tmp_path / "photos", tmp_path / "out") == 0
    said = capsys.readouterr().err
    assert "note: 1 category is above all others, as Roboflow writes it" in said
    assert "got their id to it: cat (id 0)" in said
    assert (tmp_path / "out.classes.txt").read_text() == "0\tcat (id 0)\n1\tcat\n2\tdog\n"
    del kinds[0], kinds[0]["supercategory"]
    kinds[1]["name"] = "cat"
    path.write_text(json.dumps({**json.loads(coco()), "categories": kinds}))
    assert command("from-coco", path, tmp_path / "photos", tmp_path / "out", "--force") == 0
    assert (tmp_path / "out.classes.txt").read_text() == "0\tcat\n1\tcat (id 18)\n"
    np.testing.assert_allclose(labels_in(tmp_path / "out"), [LABEL])


def test_an_image_has_one_annotation(put, tmp_path):
    for name in ("a", "b"):
        put(f"photos/{name}.jpg")
    put("xml/a.xml", xml("a.jpg"))
    put("xml/b.xml", xml("a.jpg"))
    put("xml/0.xml", xml("a"))
    report = convert.from_voc(tmp_path / "xml", tmp_path / "photos", tmp_path / "out")
    assert report.records == 1
    assert {one.reason for one in report.skipped} == {
        "it names the image a.jpg, as a.xml does: an image has one annotation"
    }
    found = json.loads(coco("old/a.jpg"))
    found["images"].append({"id": 8, "file_name": "a.jpg"})
    report = convert.from_coco(
        put("a.json", json.dumps(found)), tmp_path / "photos", tmp_path / "out", background=True
    )
    assert labels_in(tmp_path / "out") == [[2, 5, -1, 0, 0, 0, 0]]
    assert "it names the image a.jpg, as image 8 does" in report.skipped[0].reason


@pytest.mark.parametrize("filename", ["", "%s", "%06d.jpg", "Unspecified", "none", "unknown.jpg"])
def test_the_stem_counts_where_nothing_is_named(put, tmp_path, filename):
    put("photos/7.JPEG")
    put("xml/7.xml", xml(filename))
    convert.from_voc(tmp_path / "xml", tmp_path / "photos", tmp_path / "out")
    np.testing.assert_allclose(labels_in(tmp_path / "out"), [LABEL])


def test_path_counts_where_the_file_name_leads_nowhere(put, tmp_path, command, capsys):
    put("photos/7.jpg")
    put("photos/right.jpg")
    put("xml/7.xml", xml("gone.jpg", more="<path>D:\\set\\right.jpg</path>"))
    words = ["from-voc", tmp_path / "xml", tmp_path / "photos", tmp_path / "out"]
    assert command(*words) == 0
    assert "1 images are those of <path>: <filename> is not there: 7.xml" in capsys.readouterr().err
    assert (tmp_path / "out.lst").read_text().endswith("right.jpg\n")
    put("xml/7.xml", xml("gone.jpg", more="<path>D:\\set\\gone2.jpg</path>"))
    assert command(*words, "--force") == 1
    said = capsys.readouterr().err
    assert "no image gone.jpg in" in said and "7.jpg has the name of the annotation" in said


def test_annotations_in_folders_are_of_images_in_folders(put, tmp_path):
    for folder in ("train", "val"):
        put(f"photos/{folder}/1.jpg")
        put(f"xml/{folder}/1.XML", xml("1.jpg"))
    put("photos/1.jpg")
    report = convert.from_voc(tmp_path / "xml", tmp_path / "photos", tmp_path / "out")
    assert report.records == 2 and not report.skipped
    names = [line.split("\t")[-1] for line in (tmp_path / "out.lst").read_text().splitlines()]
    assert names == ["train/1.jpg", "val/1.jpg"]
    ids = put("ids.txt", "val/1\nval/1\n1\n")
    report = convert.from_voc(tmp_path / "xml", tmp_path / "photos", tmp_path / "out", ids=ids)
    assert report.records == 1 and report.skipped[0].path.endswith("1.xml")


def test_a_line_of_ids_may_be_a_name_with_spaces(put, tmp_path):
    for name in ("my photo", "my"):
        put(f"photos/{name}.jpg")
        put(f"xml/{name}.xml", xml(f"{name}.jpg"))
    ids = put("ids.txt", "my photo\n")
    convert.from_voc(tmp_path / "xml", tmp_path / "photos", tmp_path / "out", ids=ids)
    assert (tmp_path / "out.lst").read_text().endswith("\tmy photo.jpg\n")
    put("ids.txt", "my 1\n")
    convert.from_voc(tmp_path / "xml", tmp_path / "photos", tmp_path / "out", ids=ids)
    assert (tmp_path / "out.lst").read_text().endswith("\tmy.jpg\n")


def test_a_category_may_have_a_number_as_name(put, tmp_path):
    put("photos/a.jpg")
    content = json.loads(coco())
    for kind in content["categories"]:
        kind["name"] = kind["id"]
    path = put("a.json", json.dumps(content))
    convert.from_coco(path, tmp_path / "photos", tmp_path / "out", fields="mask")
    names = (tmp_path / "out.classes.txt").read_text().split()
    assert names[1::2] == sorted((str(kind["id"]) for kind in content["categories"]), key=int)


@pytest.mark.parametrize(
    ("encoding", "declared", "name"),
    [
        ("gb2312", "GB2312", "汽车"),
        ("gb18030", "gb2312", "𠀀"),
        ("gbk", "gbk", "汽车"),
        ("cp932", "Shift_JIS", "自動①"),
        ("big5", "Big5", "汽車"),
        ("latin-1", "ISO-8859-1", "Käfer"),
        ("utf-8", "utf8", "Käfer"),
        ("utf-8-sig", "", "Käfer"),
        ("utf-8", "utf-16", "Käfer"),
        ("utf-16", "UTF-16", "Käfer"),
        ("utf-16-le", "", "Käfer"),
        ("utf-32", "", "Käfer"),
        ("koi8-r", "KOI8-R", "жук"),
    ],
)
def test_xml_in_other_encodings(put, tmp_path, encoding, declared, name):
    start = f'<?xml version="1.0" encoding="{declared}"?>' if declared else ""
    put("photos/a.jpg")
    put("xml/a.xml", xml(start=start).replace("cat", name).encode(encoding))
    convert.from_voc(tmp_path / "xml", tmp_path / "photos", tmp_path / "out")
    assert f"\t{name}\n" in (tmp_path / "out.classes.txt").read_text("utf-8")


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        ("", "not in the encoding utf-8 ('utf-8' codec can't decode byte 0xe4"),
        ("UTF-8", "not in the encoding UTF-8 that it declares"),
        ("ascii", "not in the encoding ascii that it declares"),
        ("idna", "unknown encoding: idna"),
        ("hex", "hex is no encoding of text"),
        ("x-y", "unknown encoding: x-y"),
    ],
)
def test_text_in_no_known_encoding_names_the_encoding(
    put, tmp_path, start, reason, command, capsys
):
    put("photos/a.jpg")
    put("xml/a.xml", xml())
    declared = f'<?xml version="1.0" encoding="{start}"?>' if start else ""
    put("xml/b.xml", xml("b.jpg", start=declared).replace("cat", "Käfer").encode("latin-1"))
    assert command("from-voc", tmp_path / "xml", tmp_path / "photos", tmp_path / "out") == 1
    assert reason in (tmp_path / "out.skipped.txt").read_text()
    said = capsys.readouterr().err
    assert "note: 1 annotations cannot be read, and classes that only these have are" in said


# A NUL, which no annotation has, makes the mark of UTF-16 that of UTF-32.
@given(
    st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20),
    st.sampled_from(["utf-8-sig", "utf-16", "utf-32"]),
)
def test_a_byte_order_mark_tells_the_encoding(text, encoding):
    assert decoded(text.encode(encoding), "a") == text


def test_label_files_in_other_encodings(put, tmp_path):
    put("photos/a.jpg")
    line = "0 0.3125 0.5 0.375 0.5\r\n"
    for content in (codecs.BOM_UTF8 + line.encode(), line.encode("utf-16")):
        put("txt/a.txt", content)
        convert.from_yolo(tmp_path / "txt", tmp_path / "photos", tmp_path / "out")
        np.testing.assert_allclose(labels_in(tmp_path / "out"), [[2, 5, 0, *CAT]])
    put("txt/a.txt", line.encode() + b"\xe4")
    with pytest.raises(RecordIOError, match="not in the encoding utf-8"):
        convert.from_yolo(tmp_path / "txt", tmp_path / "photos", tmp_path / "out")
    with pytest.raises(RecordIOError, match=r"names\.txt: it is not in the encoding utf-8"):
        read_class_file(put("names.txt", "Käfer\n".encode("latin-1")))


POLYGON = "0 0.125 0.25 0.5 0.25 0.5 0.75 0.125 0.75"
POSE = "0 0.3125 0.5 0.375 0.5 0.2 0.4 2 0.3 0.5 1 0 0 0"


@pytest.mark.parametrize(
    ("lines", "beside"),
    [
        (["0 0.3125 0.5 0.375 0.5 0.9"], {"confidences": 1}),
        ([f"{POLYGON} 0.3 0.5", POLYGON], {"polygons": 2}),
        (["0 0.125 0.25 0.5 0.25 0.5 0.75", "0.0 0.125 0.75 .5 .25 .5 .5"], {"polygons": 2}),
        ([POSE, POSE], {"lists of key points": 2}),
    ],
)
def test_other_lines_of_yolo_become_boxes(put, tmp_path, lines, beside):
    put("photos/a.jpg")
    put("txt/a.txt", "\n".join(lines))
    if len({len(line.split()) for line in lines}) == 1 and "polygons" in beside:
        put("photos/b.jpg")  # what cannot be a box with key points tells it of all
        put("txt/b.txt", "0 0.9 0.9 0.9 0.8 0.8 0.9")
    report = convert.from_yolo(tmp_path / "txt", tmp_path / "photos", tmp_path / "out")
    np.testing.assert_allclose(labels_in(tmp_path / "out")[0], [2, 5, *([0, *CAT] * len(lines))])
    beside = {key: value + (report.records == 2) for key, value in beside.items()}
    assert report.left_out == beside


def test_lines_that_are_like_polygons_and_poses_need_the_option(put, tmp_path):
    put("photos/a.jpg")
    put("txt/a.txt", "0 0.3 0.5 0.4 0.5 0.3 0.4")
    take = [tmp_path / "txt", tmp_path / "photos", tmp_path / "out"]
    with pytest.raises(RecordIOError, match=r"it has 7 columns.*x1 y1.*key points.*--long-lines"):
        convert.from_yolo(*take)
    for form, box in (("polygon", [0.3, 0.4, 0.4, 0.5]), ("pose", [0.1, 0.25, 0.5, 0.75])):
        convert.from_yolo(*take, long_lines=form)
        np.testing.assert_allclose(labels_in(tmp_path / "out"), [[2, 5, 0, *box]], rtol=1e-6)
    put("txt/a.txt", "0 0.3 0.5 0.4 0.5 0.3 0.4 0.5")
    for form in ("auto", "polygon", "pose"):
        with pytest.raises(RecordIOError, match="it has 8 columns, and is not clear"):
            convert.from_yolo(*take, long_lines=form)


def test_label_files_of_other_folders_are_an_error(put, tmp_path):
    put("photos/a.jpg")
    put("txt/train/a.txt", "0 0.5 0.5 0.2 0.2")
    with pytest.raises(RecordIOError, match=r"not one of 1 label files has an image.*train/a.txt"):
        convert.from_yolo(tmp_path / "txt", tmp_path / "photos", tmp_path / "out", background=True)
    put("txt/a.TXT", "0 0.5 0.5 0.2 0.2")
    put("txt/classes.txt", "cat\n")
    assert convert.from_yolo(tmp_path / "txt", tmp_path / "photos", tmp_path / "out").records == 1


NAMES = ["1.jpg", "2.JPEG", "3.jpg", "3.png", "a.v1.png", "a\u0308.jpg", "train/1.jpg", "notes.txt"]
FOUND = {
    "1.jpg": "1.jpg",
    "1.JPG": "1.jpg",
    "1.jpg/": "1.jpg",
    "1": "1.jpg",
    "2.jpeg": "2.JPEG",
    "a.v1": "a.v1.png",
    "ä.jpg": "a\u0308.jpg",
    "train/1": "train/1.jpg",
    "x\\train\\1.jpg": "train/1.jpg",
    "val/1.jpg": "1.jpg",
    "s3://bucket/train/1.jpg": "train/1.jpg",
}
MISSING = {
    "2.jpg": "there is no image 2.jpg in .*; 2.JPEG is there",
    "3": "3 may be 3.jpg or 3.png",
    "a": "there is no image a in",
    "notes": "there is no image notes",
    "..": "names? '..' is none",
    "a\nb": "is none of an image",
    "x" * 5000: "is none of an image",
}


def test_images_are_found_by_the_names_of_others(put, tmp_path):
    for name in NAMES:
        put(f"photos/{name}")
    folder = ImageFolder(str(tmp_path / "photos"))
    assert {named: folder.find(named) for named in FOUND} == FOUND
    for named, reason in MISSING.items():
        with pytest.raises(LabelError, match=reason):
            folder.find(named)


@given(
    st.text(max_size=30)
    | st.lists(st.sampled_from(["..", "/", "\\", "1.jpg", ".", "C:"])).map("".join)
)
def test_no_name_leads_out_of_the_folder(tmp_path_factory, named):
    root = tmp_path_factory.getbasetemp() / "walled"
    (root / "photos").mkdir(parents=True, exist_ok=True)
    (root / "1.jpg").touch()
    with pytest.raises(LabelError):
        ImageFolder(str(root / "photos")).find(named)


def test_hidden_and_system_files_are_no_annotations(put, tmp_path):
    put("photos/a.jpg")
    put("photos/._a.jpg", b"\0")
    put("photos/.ipynb_checkpoints/a.jpg")
    line = "0 0.3125 0.5 0.375 0.5"
    for name in ("a", "._a", ".ipynb_checkpoints/a", "__MACOSX/a"):
        put(f"txt/{name}.txt", line if name == "a" else "\0")
        put(f"xml/{name}.xml", xml("a.jpg") if name == "a" else "\0")
    take = [tmp_path / "photos", tmp_path / "out"]
    report = convert.from_yolo(tmp_path / "txt", *take, background=True)
    assert report.records == 1 and not report.skipped
    report = convert.from_voc(tmp_path / "xml", *take)
    assert report.records == 1 and not report.skipped
