"""Fields that are exported: files beside the images, files in a tar, features of examples."""

import json
import tarfile

import numpy as np
import pytest

import recordio
from iterators import ImageRecordIter
from iterators.fields import Boxes, Json, Mask
from iterators.testing import encode, noise, write_pack
from recordio import FieldError, IRHeader, LabelError, RecordWriter, convert, pack, unpack
from recordio.bytes.files import StoredFile
from recordio.containers.tf_example import decode_example
from recordio.packs.fields_meta import FieldMeta, format_fields
from recordio.tools import cli
from recordio.tools.convert.containers import read_frames

KEYS = [4, 2, 9]


@pytest.fixture
def path(tmp_path):
    """Three images whose red channel is their mask, and no caption of the second."""

    def write(name, records):
        with RecordWriter(tmp_path / f"{name}.rec", tmp_path / f"{name}.idx") as writer:
            for key, (label, content) in records.items():
                writer.write(pack(IRHeader(0, label, key, 0), content), key)

    images = {key: noise(10, 12, key) for key in KEYS}
    write("a", {key: (key % 2, encode(images[key])) for key in KEYS})
    write("a.mask", {key: (0, encode(images[key][..., 0])) for key in sorted(KEYS)})
    write("a.caption", {key: (0, b"caption %d" % key) for key in (9, 4)})
    write("a.meta", {key: (0, b"[%d]" % key) for key in KEYS})
    write("a.boxes", {key: ([2, 5, *[1, 0, 0, 0.1, 1] * (key % 3)], b"") for key in KEYS})
    write("a.raw", {key: (0, bytes([255, key])) for key in KEYS})
    described = {name: FieldMeta(kind=name) for name in ("mask", "boxes")}
    described |= {"caption": FieldMeta(kind="text"), "meta": FieldMeta(kind="json")}
    described |= {"raw": FieldMeta(kind="bytes")}
    (tmp_path / "a.fields.json").write_bytes(format_fields(described))
    return tmp_path / "a.rec"


def test_files_beside_the_images(path, tmp_path):
    report = convert.export(path, tmp_path / "out", to="folders")
    counts = {"boxes": 3, "caption": 2, "mask": 3, "meta": 3, "raw": 3}
    assert report.fields == counts and not report.fields_left_out
    names = sorted(file.name for file in (tmp_path / "out" / "1").iterdir())
    assert names == [
        "9.boxes.json", "9.caption.txt", "9.mask.png", "9.meta.json", "9.png", "9.raw.bin",
    ]  # fmt: skip
    out = tmp_path / "out" / "0"
    assert (out / "4.mask.png").read_bytes() == encode(noise(10, 12, 4)[..., 0])
    assert (out / "4.caption.txt").read_bytes() == b"caption 4"
    assert json.loads((out / "4.boxes.json").read_text()) == [[1, 0, 0, 0.1, 1]]
    assert json.loads((out / "2.boxes.json").read_text()) == [[1, 0, 0, 0.1, 1]] * 2
    assert not (out / "2.caption.txt").exists()
    assert json.loads((tmp_path / "out" / "1" / "9.boxes.json").read_text()) == []
    with open(tmp_path / "out" / "labels.csv") as table:
        assert len(table.readlines()) == 4


def test_chosen_fields(path, tmp_path, capsys):
    words = ["export", str(path), str(tmp_path / "out"), "--fields", "mask"]
    assert cli.main(words) == 0
    text = capsys.readouterr().err
    assert "field mask: 3 records" in text
    assert "note: fields are not written: boxes, caption, meta, raw" in text
    assert len(list((tmp_path / "out").rglob("*.*"))) == 7
    report = convert.export(path, tmp_path / "b", to="folders", fields=[])
    assert len(report.fields_left_out) == 5 and not report.fields
    with pytest.raises(FieldError, match="it has no field depth"):
        convert.export(path, tmp_path / "c", to="folders", fields="depth")
    report = convert.export(path, tmp_path / "labels.csv", to="labels")
    assert len(report.fields_left_out) == 5
    with pytest.raises(ValueError, match="drop fields"):
        convert.export(path, tmp_path / "a.tfrecord", to="tfrecord", raw=True, fields="mask")


def test_a_tar_is_read_with_its_fields(path, tmp_path):
    convert.export(path, tmp_path / "a.tar", to="webdataset", fields="mask,meta,caption")
    with tarfile.open(tmp_path / "a.tar") as archive:
        names = archive.getnames()
    assert names[:5] == ["4.png", "4.cls", "4.mask.png", "4.meta.json", "4.caption.txt"]
    fields = {"mask": Mask()}
    keywords = {"data_shape": (3, 10, 12), "batch_size": 3, "fields": fields, "dtype": "uint8"}
    for source in (path, tmp_path / "a.tar"):
        with ImageRecordIter(path_imgrec=source, **keywords) as provider:
            batch = provider.next()
            np.testing.assert_array_equal(batch["mask"], batch["data"][:, 0])
    report = convert.from_webdataset(tmp_path / "a.tar", tmp_path / "b", fields="all")
    assert report.fields == {"mask": 3, "meta": 3, "caption": 2}
    kinds = {
        n: m.kind for n, m in recordio.packs.open_pack.open_pack(tmp_path / "b").fields_meta.items()
    }
    assert kinds == {"mask": "mask", "meta": "json", "caption": "text"}


def test_features_of_examples(path, tmp_path):
    convert.export(path, tmp_path / "a.tfrecord", to="tfrecord")
    frames = [data for _, data in read_frames(StoredFile(str(tmp_path / "a.tfrecord")))]
    found = decode_example(frames[0], {"mask", "caption", "boxes"})
    assert bytes(found["mask"][0]) == encode(noise(10, 12, 4)[..., 0])
    assert bytes(found["caption"][0]) == b"caption 4"
    assert json.loads(bytes(found["boxes"][0])) == [[1, 0, 0, 0.1, 1]]
    assert "caption" not in decode_example(frames[1], {"caption"})
    with pytest.raises(recordio.RecordIOError, match="field mask and the image or label"):
        convert.export(path, tmp_path / "b.tfrecord", to="tfrecord", content="mask")


def test_shards_have_the_fields_of_their_records(path, tmp_path):
    convert.export(path, tmp_path / "s.tar", to="webdataset", shard_records=1, fields="caption")
    names = []
    for file in sorted(tmp_path.glob("s-*.tar")):
        with tarfile.open(file) as archive:
            names.append(archive.getnames())
    assert [len(one) for one in names] == [3, 2, 3]


def test_a_container_and_a_face_pack(path, tmp_path):
    convert.export(path, tmp_path / "a.tar", to="webdataset", fields="caption")
    report = convert.export(tmp_path / "a.tar", tmp_path / "out", to="folders", fields="caption")
    assert report.fields == {"caption": 2}
    assert sorted(file.name for file in (tmp_path / "out").rglob("*.txt")) == [
        "4.caption.txt", "9.caption.txt",
    ]  # fmt: skip


def test_boxes_that_are_none(path, tmp_path):
    count = len(KEYS)
    write_pack(tmp_path / "a.boxes.rec", [b""] * count, [[2, 0, 1]] * count, ids=KEYS, keys=KEYS)
    with pytest.raises(LabelError, match=r"a\.boxes\.rec.*field boxes has no label of objects"):
        convert.export(path, tmp_path / "out", to="folders", fields="boxes")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("to", ["folders", "webdataset", "tfrecord"])
def test_exports_are_read_as_they_lie(path, tmp_path, to):
    target = tmp_path / {"folders": "out", "webdataset": "b.tar", "tfrecord": "b.tfrecord"}[to]
    convert.export(path, target, to=to, fields="mask,boxes,meta")
    fields = {"mask": Mask(), "boxes": Boxes(), "meta": Json()}
    keywords = {"data_shape": (3, 10, 12), "batch_size": 3, "fields": fields, "dtype": "uint8"}
    order = [0, 1, 2] if to != "folders" else [1, 0, 2]  # by their names
    with ImageRecordIter(path_imgrec=path, **keywords) as provider:
        batch = provider.next()
    with ImageRecordIter(path_imgrec=target, **keywords) as provider:
        found = provider.next()
    for name in ("data", "mask", "boxes"):
        np.testing.assert_array_equal(found[name], batch[name][order])
    assert found["meta"] == [batch["meta"][row] for row in order]


def test_labels_of_a_tar_change_with_its_boxes(path, tmp_path):
    convert.export(path, tmp_path / "b.tar", to="webdataset", fields="boxes")
    recordio.relabel(tmp_path / "b.tar", tmp_path / "c.rec", {0: 5, 1: 7})
    with recordio.packs.open_pack.open_pack(tmp_path / "c.rec") as main:
        field = main.field("boxes")
        classes = [recordio.boxes_of(unpack(field.record(r))[0].label)[:, 0] for r in range(3)]
    assert [one.tolist() for one in classes] == [[7], [7, 7], []]
