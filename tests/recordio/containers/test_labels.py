"""Names of images and labels in all containers: the same lists, and never a label 0 in silence."""

import json
import pickle
import warnings

import numpy as np
import pytest
from labelled_containers import IMAGES, WRITERS, as_tar, write_tar
from tfrecords import write_tfrecord

from iterators import ImageDetRecordIter, ImageRecordDataset, ImageRecordIter, Pack
from iterators.testing import noise
from recordio import LabelError, RecordIOError, RecordReader, boxes_of, unpack
from recordio.containers.container import USUAL, Choice
from recordio.containers.labels import LABELS
from recordio.containers.names import SYSTEM_NAMES
from recordio.containers.tar_members import split_name
from recordio.packs.open_pack import open_listed, open_pack
from recordio.tools.cli import main

every = pytest.mark.parametrize("kind", WRITERS)


def labels_in(path, **chosen):
    """The labels of all samples, and the notes."""
    (pack,) = open_listed(path, choice=Choice(**chosen))
    assert not pack.samples.faults
    return pack.samples.first_labels().tolist(), " ".join(pack.notes.lines())


@every
@pytest.mark.parametrize("name", [name for name in LABELS if "/" not in name])
def test_every_usual_name_is_a_label_everywhere(kind, name, tmp_path):
    assert labels_in(WRITERS[kind](tmp_path, name, [3, 1, 2])) == ([3, 1, 2], "")


@every
def test_other_names_are_said_and_can_be_chosen(kind, tmp_path):
    path = WRITERS[kind](tmp_path, "style", [3, 1, 2])
    for _ in range(2):  # the second time from the index
        labels, notes = labels_in(path)
        assert labels == [0, 0, 0]
        assert "style" in notes and "label_field=" in notes and notes.startswith("3 samples")
        assert "width" not in notes
    chosen = {"tar": "json:style", "lmdb": "style-%09d"}.get(kind, "style")
    assert labels_in(path, label_field=chosen) == ([3, 1, 2], "")
    assert labels_in(path, has_labels=False) == ([0, 0, 0], "")
    with pytest.warns(UserWarning, match="style"):
        images = ImageRecordIter(path_imgrec=path, batch_size=3, data_shape=(3, 16, 16))
    images.close()
    for given in (
        {"path_imgrec": path, "label_field": chosen},
        {"path_imgrec": Pack(path, label_field=chosen)},
    ):
        with ImageRecordIter(batch_size=3, data_shape=(3, 16, 16), **given) as images:
            assert next(images).label[0].tolist() == [3, 1, 2]
    assert ImageRecordDataset(path, label_field=chosen)[1][1] == 1


@every
@pytest.mark.parametrize("name", ["stile", "json:stile"])
def test_a_chosen_label_that_no_sample_has_is_an_error(kind, name, tmp_path):
    path = WRITERS[kind](tmp_path, "style", [3, 1, 2])
    chosen = f"{name}-%09d" if kind == "lmdb" else name
    for _ in range(2):  # the second time from the index
        with pytest.raises(RecordIOError, match="no (column|label|sample)"):
            next(
                ImageRecordIter(
                    path_imgrec=path, batch_size=3, data_shape=(3, 16, 16), label_field=chosen
                )
            )


@every
@pytest.mark.parametrize("label", [16777217, 16777217.0])
def test_a_whole_label_that_would_be_rounded_is_an_error(kind, label, tmp_path):
    if kind == "tfrecord" and isinstance(label, float):
        pytest.skip("its lists of floats have 32 bits")
    path = WRITERS[kind](tmp_path, "label", [label, 1, 2])
    with (
        pytest.raises(RecordIOError, match="no.* 32-bit float"),
        ImageRecordIter(path_imgrec=path, batch_size=3, data_shape=(3, 16, 16)) as images,
    ):
        next(images)


@every
def test_the_image_is_chosen(kind, tmp_path):
    name = {"tar": "left.jpg", "lmdb": "image_hr"}.get(kind, "left")
    path = WRITERS[kind](tmp_path, "label", [3, 1, 2], name)
    chosen = {"lmdb": "image_hr-%09d"}.get(kind, name)
    (pack,) = open_listed(path, choice=Choice(image_field=chosen))
    assert [bytes(pack.reader.content(row)) for row in range(3)] == IMAGES
    assert pack.samples.first_labels().tolist() == [3, 1, 2]
    again = pickle.loads(pickle.dumps(pack.reader))
    assert again.container.choice == Choice(image_field=chosen)
    with pytest.raises(RecordIOError):
        pack = open_listed(path, choice=Choice(image_field="none-%09d"))[0]
        pack.reader.content(0)


@every
def test_without_any_number_nothing_is_said(kind, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert labels_in(WRITERS[kind](tmp_path, "", None)) == ([0, 0, 0], "")


@every
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_labels_are_finite(kind, value, tmp_path):
    path = WRITERS[kind](tmp_path, "label", [1.0, value, 2.0])
    try:
        (pack,) = open_listed(path)
        assert list(pack.samples.faults) == [1] and "finite" in pack.samples.faults[1]
        assert pack.samples.labelled
    except LabelError as error:  # where one bad label is an error of all
        assert "finite" in str(error)


@every
def test_a_shard_without_labels_is_an_error(kind, tmp_path):
    paths = []
    for name, values in (("with", [1, 2, 3]), ("without", None)):
        (tmp_path / name).mkdir()
        paths.append(WRITERS[kind](tmp_path / name, "label", values))
    with pytest.raises(LabelError, match=r"without/a.*no labels.*with/a"):
        open_listed(paths)
    with pytest.raises(LabelError, match="no labels"):
        open_pack(paths).samples  # noqa: B018
    assert len(open_listed(paths, choice=Choice(has_labels=False))) == 2


@every
def test_converted_labels_are_those_in_place(kind, tmp_path):
    path = WRITERS[kind](tmp_path, "class_id", [3, 1, 2])
    assert main(["pack", path, str(tmp_path / "b")]) == 0
    with ImageRecordIter(
        path_imgrec=f"{tmp_path}/b.rec", batch_size=3, data_shape=(3, 16, 16)
    ) as images:
        assert next(images).label[0].tolist() == [3, 1, 2]


def test_choices_that_a_container_cannot_have(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.jpg").write_bytes(IMAGES[0])
    tar = as_tar(tmp_path, "label", [1, 2, 3])
    assert main(["pack", tar, str(tmp_path / "b")]) == 0
    for path, choice in (
        (str(tmp_path / "a"), {"image_field": "jpg"}),
        (tar, {"suffixes": (".jpg",)}),
        (f"{tmp_path}/b.rec", {"label_field": "cls"}),
    ):
        with pytest.raises(ValueError, match=next(iter(choice))):
            open_listed(path, choice=Choice(**choice))
        with pytest.raises(ValueError, match=next(iter(choice))):
            len(open_pack(path, choice=Choice(**choice)))
    assert not USUAL.changes


# -- tars -----------------------------------------------------------------------------------------


def test_labels_behind_all_images_are_no_zeros(tmp_path):
    parts = [(f"{i}.jpg", content) for i, content in enumerate(IMAGES)]
    parts += [(f"{i}.cls", b"%d" % (i + 1)) for i in range(3)]
    (pack,) = open_listed(write_tar(tmp_path / "a.tar", *parts))
    assert len(pack.samples.faults) == 6 and "sort=name" in " ".join(pack.notes.lines())


def test_names_with_dots_are_samples_of_their_own(tmp_path):
    parts = []
    for name, label in (("22.05", 5), ("22.10", 6), ("23.1", 7)):
        parts += [(f"d/{name}.jpg", IMAGES[0]), (f"d/{name}.cls", b"%d" % label)]
    path = write_tar(tmp_path / "a.tar", *parts)
    (pack,) = open_listed(path)
    assert pack.samples.labels.tolist() == [5, 6, 7]
    assert pack.samples.name_of(1) == "d/22.10.jpg"
    assert "dots" in " ".join(pack.notes.lines())
    assert main(["from-webdataset", path, str(tmp_path / "b")]) == 0
    with RecordReader(tmp_path / "b.rec") as reader:
        assert [unpack(bytes(record))[0].label for record in reader] == [5, 6, 7]
    bare = write_tar(tmp_path / "c.tar", *(part for part in parts if part[0].endswith("jpg")))
    assert len(open_listed(bare)[0]) == 3


def test_a_label_of_no_image_is_an_error(tmp_path):
    parts = [("1.jpg", IMAGES[0]), ("1.left.cls", b"3")]
    (pack,) = open_listed(write_tar(tmp_path / "a.tar", *parts))
    assert ".left.cls" in pack.samples.faults[0]


def test_broken_labels_are_labels(tmp_path):
    parts = [("1.jpg", IMAGES[0]), ("1.cls", b"nan"), ("2.jpg", IMAGES[1]), ("3.jpg", IMAGES[2])]
    parts += [("3.cls", b"9" * 5000), ("4.jpg", IMAGES[0]), ("4.cls", b" ")]
    (pack,) = open_listed(write_tar(tmp_path / "a.tar", *parts))
    assert sorted(pack.samples.faults) == [0, 1, 2, 3]


def test_system_files_are_no_samples(tmp_path):
    for name in SYSTEM_NAMES:
        assert split_name(f"a/{name.upper()}/1.jpg") is None
    parts = [("__MACOSX/._1.jpg", b"x"), ("._1.jpg", b"x"), (".git/2.jpg", b"x")]
    parts += [("@eaDir/1.jpg", b"x"), ("1.jpg", IMAGES[0]), ("1.cls", b"4")]
    (pack,) = open_listed(write_tar(tmp_path / "a.tar", *parts))
    assert pack.samples.labels.tolist() == [4]


# -- others ---------------------------------------------------------------------------------------


def test_boxes_go_before_a_class_for_detection(tmp_path):
    box = {f"image/object/bbox/{edge}": [value] for edge, value in
           {"xmin": 0.1, "ymin": 0.2, "xmax": 0.5, "ymax": 0.75}.items()}  # fmt: skip
    example = {"image/encoded": [IMAGES[0]], "image/class/label": [7]} | box
    example["image/object/class/label"] = [3]
    path = str(write_tfrecord(tmp_path / "a.tfrecord", example))
    tar = write_tar(
        tmp_path / "a.tar",
        ("1.jpg", IMAGES[0]),
        ("1.json", json.dumps({"label": 7, "boxes": [[3, 0.1, 0.2, 0.5, 0.75]]}).encode()),
    )
    for name in (path, tar):
        shape = {"batch_size": 1, "data_shape": (3, 16, 16)}
        with ImageDetRecordIter(path_imgrec=name, **shape) as images:
            found = boxes_of(next(images).label[0][0], in_batch=True)
            np.testing.assert_allclose(found, [[3, 0.1, 0.2, 0.5, 0.75]], atol=1e-6)
        with ImageRecordIter(path_imgrec=name, **shape) as images:
            assert next(images).label[0].tolist() == [7]


@pytest.mark.parametrize("ending", ["tfrec", "TFRECORD", "tfrecords", "tfrec-00000-of-00008"])
def test_endings_of_tfrecord(ending, tmp_path):
    path = write_tfrecord(tmp_path / f"a.{ending}", {"image": [IMAGES[0]], "target": [2]})
    assert labels_in(str(path)) == ([2], "")


def test_raw_pixels_are_said_to_be_such(tmp_path):
    pixels = noise(12, 10, 0).tobytes()
    sides = {"height": [12], "width": [10], "depth": [3]}
    path = write_tfrecord(tmp_path / "a.tfrecord", {"image": [pixels], "label": [1], **sides})
    with pytest.raises(RecordIOError, match="12 x 10 x 3.*raw pixels"):
        open_listed(str(path))
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"image": [pixels], "label": [1], "height": [12], "width": [10]})
    parquet.write_table(table.append_column("channels", [[3]]), tmp_path / "a.parquet")
    with pytest.raises(RecordIOError, match="12 x 10 x 3.*raw pixels"):
        open_listed(str(tmp_path / "a.parquet"))


def test_lists_and_small_copies_in_parquet(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.PQ"
    rows = [[{"bytes": content, "path": "x"}] for content in IMAGES]
    parquet.write_table(pa.table({"images": rows, "label": [1, 2, 3]}), path)
    with pytest.raises(RecordIOError, match="list of images.*explode"):
        open_listed(str(path))
    parquet.write_table(pa.table({"thumbnail": IMAGES, "label": [1, 2, 3]}), path)
    labels, notes = labels_in(str(path))
    assert labels == [1, 2, 3] and "thumbnail" in notes
