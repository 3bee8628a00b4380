"""Augmented manifests of SageMaker become packs."""

import gzip
import json

import numpy as np
import pytest
from range_server import RangeServer

import recordio
from recordio import LabelError, RecordIOError, convert

TYPE = "groundtruth/image-classification"


@pytest.fixture
def pack(tmp_path, images):
    """Convert lines about images of 80 x 40; returns the labels, the report and the classes."""
    photos = tmp_path / "photos"
    (photos / "train").mkdir(parents=True)
    for name in ("1.jpg", "2.jpg", "3.jpg"):
        (photos / "train" / name).write_bytes(images.jpeg(40, 80))

    def convert_lines(*lines, **options):
        path = tmp_path / "a.manifest"
        path.write_text(
            "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
        )
        report = convert.from_manifest(path, tmp_path / "out", **{"images": photos, **options})
        with recordio.RecordReader(tmp_path / "out.rec", tmp_path / "out.idx") as reader:
            labels = [np.asarray(recordio.unpack(record)[0].label).tolist() for record in reader]
        classes = tmp_path / "out.classes.txt"
        return labels, report, classes.read_text() if classes.exists() else ""

    return convert_lines


def line(number, value, about=None, name="animal"):
    found = {"source-ref": f"s3://bucket/set/train/{number}.jpg", name: value}
    return found if about is None else {**found, f"{name}-metadata": about}


@pytest.mark.parametrize("numbers", [(1, 0), ("1", "0"), (1.0, 0.0)])
def test_classes_with_their_names(pack, numbers):
    labels, report, classes = pack(
        line(
            1, numbers[0], {"class-name": "dog", "type": TYPE, "confidence": 0.9, "job-name": "j"}
        ),
        "",
        line(2, numbers[1], {"class-name": "cat", "type": TYPE, "confidence": 0}),
    )
    assert labels == [1, 0] and classes == "0\tcat\n1\tdog\n"
    assert report.left_out == {"confidences": 1} and not report.skipped


def test_numbers_without_names_and_names_without_numbers(pack):
    assert pack(line(1, "3"), line(2, 0.5))[::2] == ([3, 0.5], "")
    labels, _, classes = pack(line(1, "dog"), line(2, "cat"), line(3, "dog"))
    assert labels == [1, 0, 1] and classes == "0\tcat\n1\tdog\n"
    about = [{"label-metadata": {"class-name": name}} for name in ("dog", "cat")]
    rows = [{"source-ref": f"train/{i}.jpg", **one} for i, one in enumerate(about, 1)]
    assert pack(*rows)[0] == [1, 0]


def test_several_classes_are_ones_in_their_places(pack):
    kind = f"{TYPE}-multilabel"
    labels, report, classes = pack(
        line(1, [0, 2], {"class-map": {"0": "cat", "2": "dog"}, "type": kind}),
        line(2, "[1]", {"class-map": {"1": "cow"}, "confidence-map": {"1": 0.5}, "type": kind}),
        line(3, [], {"class-map": {}, "type": kind}),
    )
    assert labels == [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
    assert classes == "0\tcat\n1\tcow\n2\tdog\n" and report.left_out == {"confidences": 1}


def test_an_image_of_several_classes_has_no_folder_and_no_first_class(pack, tmp_path, command):
    kind = f"{TYPE}-multilabel"
    names = {"0": "cat", "1": "dog"}
    pack(
        line(1, [0, 1], {"class-map": names, "type": kind}),
        line(2, [1], {"class-map": names, "type": kind}),
    )
    assert command("export", tmp_path / "out", tmp_path / "x") == 0
    assert sorted(path.name for path in (tmp_path / "x").iterdir()) == [
        "1.jpg", "2.jpg", "labels.csv",
    ]  # fmt: skip
    with pytest.raises(LabelError, match="rows of 0 and 1 for 2 classes"):
        recordio.filter(tmp_path / "out", tmp_path / "cats", "class == 'cat'")
    assert recordio.filter(tmp_path / "out", tmp_path / "cats", "label == 1").records == 1
    words = ["--classes", tmp_path / "out.classes.txt"]
    assert command("export", tmp_path / "out", tmp_path / "y", *words) == 0
    assert (tmp_path / "y" / "dog" / "1.jpg").exists()


def test_lists_without_metadata_are_labels_as_they_are(pack):
    assert pack(line(1, "[1, 0, 0]"), line(2, [0, 1, 1]))[0] == [[1, 0, 0], [0, 1, 1]]
    with pytest.raises(RecordIOError, match="lists of numbers have 1 to 2 values"):
        pack(line(1, [1, 0]), line(2, [1]))


def boxes(number, *found, size=(80, 40), names=None):
    listed = [
        dict(zip(("class_id", "left", "top", "width", "height"), one, strict=True)) for one in found
    ]
    value = {"annotations": listed, "image_size": [{"width": size[0], "height": size[1]}]}
    return line(number, value, {"class-map": names or {"0": "cat", "1": "dog"}})


@pytest.mark.parametrize("size", [(80, 40), (0, 0), ("80", "40.0"), (None, None)])
def test_boxes(pack, size):
    labels, report, classes = pack(
        boxes(1, (1, 10, 10, 30, 20), ("0", "20", 0.0, 60, 20), size=size),
        boxes(2, size=size),
    )
    np.testing.assert_allclose(labels, [[2, 5, 1, 0.125, 0.25, 0.5, 0.75, 0, 0.25, 0, 1, 0.5]])
    assert classes == "0\tcat\n1\tdog\n"
    assert report.left_out == {"images without boxes (--background stores them)": 1}


def test_bad_boxes_leave_out_their_image(pack):
    bad = [(-1, 1, 1, 5, 5), (0, 1, 1, None, 5), (0, 1, 1, 0, 5), (0, 1, 1, 1e300, 5)]
    for one in bad:
        labels, report, _ = pack(boxes(1, (0, 1, 1, 5, 5)), boxes(2, one))
        assert len(labels) == 1 and "annotation 0: " in report.skipped[0].reason
    assert len(pack(boxes(1, (0, 1, 1, 0, 5), (0, 1, 1, 5, 5)), bad_boxes="drop")[0][0]) == 7


def test_classes_of_one_name_or_of_none_are_noted(pack, tmp_path, command, capsys):
    labels, _, classes = pack(boxes(1, (2, 1, 1, 5, 5), names={"0": "hat", "2": "hat"}))
    assert labels[0][2] == 2 and classes == "0\that\n1\t1\n2\that (id 2)\n"
    words = ["from-manifest", tmp_path / "a.manifest", tmp_path / "b", "--images"]
    assert command(*words, tmp_path / "photos") == 0
    said = capsys.readouterr().err
    assert "note: 1 classes have no name, and are called by their numbers: 1" in said
    assert "note: 1 classes have the name of another, and got their id to it: hat (id 2)" in said


def test_given_classes_number_the_names(pack, tmp_path):
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    lines = [line(i, 0, {"class-name": name}) for i, name in enumerate(("dog", "cat", "emu"), 1)]
    with pytest.raises(RecordIOError, match=r"line 2: class 0 is called 'dog' and 'cat'"):
        pack(*lines)
    labels, report, classes = pack(*lines, classes=tmp_path / "names.txt")
    assert labels == [1, 0] and classes == "0\tcat\n1\tdog\n"
    assert report.skipped[0].reason == "there is no class 'emu': 2 are known"


def test_one_of_several_attributes_is_chosen(pack):
    row = {**line(1, 0, {"class-name": "cat"}), **line(1, 5, {"class-name": "big"}, "size")}
    with pytest.raises(RecordIOError, match="--label NAME, among animal, size"):
        pack(row)
    labels, report, _ = pack(row, label="size", classes=None)
    assert labels == [5] and report.left_out == {"animal": 1}
    assert pack({**line(1, 3, {}), "workerId": "x"})[0] == [3]


def test_each_image_is_stored_once(pack):
    labels, report, _ = pack(line(1, 0), line(2, 1), line(1, 2), line(7, 3))
    assert labels == [0, 1]
    assert "it names the image train/1.jpg, as line 1 does" in report.skipped[0].reason
    assert "there is no image s3://bucket/set/train/7.jpg" in report.skipped[1].reason


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"source": "a text", "animal": 0}, "source-ref None names no image"),
        (line(2, None, {"failure-reason": "no workers"}), "no class: no workers"),
        (line(2, True), "its label True is no number"),
        (line(2, "[1"), "its label '[1' is no number"),
        (line(2, {"annotations": []}), "it has boxes, where most lines have a class"),
    ],
)
def test_lines_without_image_or_label_are_skipped(pack, row, reason):
    labels, report, _ = pack(line(1, 0), line(3, 0), row)
    assert labels == [0, 0] and reason in report.skipped[0].reason
    assert report.skipped[0].path.endswith("a.manifest, line 3")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "line 1: it is no JSON"),
        ("[1]", "line 1: it is no JSON object with source-ref"),
        ('[{"prefix": "s3://b/"}, "1.jpg"]', "line 1: it is no JSON object with source-ref"),
        ('{"source-ref": "1.jpg"}', "no line has labels beside source-ref"),
        (json.dumps(line(1, [9**9], {"class-map": {}})), "too high a number"),
        (json.dumps(line(1, 9**9, {"class-name": "a"})), "too high a number"),
    ],
)
def test_what_is_no_manifest_is_refused(pack, text, reason):
    with pytest.raises(RecordIOError, match=reason):
        pack(text)


def test_images_beside_the_manifest_and_on_a_server(tmp_path, images):
    pytest.importorskip("aiohttp")
    server = RangeServer()
    try:
        server.objects["set/1.jpg"] = images.jpeg(40, 80)
        (tmp_path / "2.jpg").write_bytes(images.jpeg(40, 80))
        sources = (f"{server.url}/set/1.jpg", "2.jpg", f"{server.url}/set/3.jpg")
        rows = [{"source-ref": source, "class": i} for i, source in enumerate(sources)]
        data = "".join(json.dumps(row) + "\r\n" for row in rows).encode("utf-8-sig")
        (tmp_path / "a.manifest").write_bytes(gzip.compress(data))
        report = convert.from_manifest(tmp_path / "a.manifest", tmp_path / "out")
        assert report.records == 2
        assert "3.jpg" in report.skipped[0].reason
        names = [text.split("\t")[-1] for text in (tmp_path / "out.lst").read_text().splitlines()]
        assert names[0].endswith("set/1.jpg") and names[1] == "2.jpg"
    finally:
        server.stop()


def test_pack_takes_manifests_as_they_are(tmp_path, images):
    (tmp_path / "1.jpg").write_bytes(images.jpeg(40, 80))
    path = tmp_path / "a.manifest"
    path.write_text(json.dumps({"source-ref": "1.jpg", "class": 7}))
    report = convert.pack(str(path), tmp_path / "out")
    assert (report.records, report.paths) == (1, [f"{tmp_path}/out.rec"])
    with recordio.RecordReader(tmp_path / "out.rec") as reader:
        assert recordio.unpack(bytes(reader[0]))[0].label == 7
    with pytest.raises(RecordIOError, match="drop resize"):
        convert.pack(str(path), tmp_path / "out", resize=10)
