"""Labels of objects have one reading: every reader, operation and command takes them alike."""

import cv2
import numpy as np
import pytest

import recordio
from iterators import ImageDetIter, ImageDetRecordIter, ImageRecordIter
from iterators.fields import Boxes
from iterators.testing import write_pack
from recordio.packs.check import check_pack
from recordio.packs.open_pack import open_pack
from tools import im2rec

GOOD = [2, 5, 3, 0.1, 0.2, 0.5, 0.6]
MARK = [-1, 0, 0, 0, 0]
IMAGE = cv2.imencode(".png", np.zeros((8, 8, 3), np.uint8))[1].tobytes()
NAN, INF = float("nan"), float("inf")
#: Labels, and the objects that readers find in them; a text is part of the reason why none may.
LABELS = {
    "a header alone": ([2, 5], 0),
    "the mark of an image without objects": ([2, 5, *MARK], 0),
    "a mark beside an object": ([2, 5, *MARK, *GOOD[2:]], 1),
    "class -1 with an area": ([2, 5, -1, 0.1, 0.2, 0.5, 0.6], 1),
    "a little outside": ([2, 5, 1, -0.1, 0, 1.3, 1], 1),
    "at the bounds": ([2, 5, 1, -1, -1, 2, 2], 1),
    "pixels": ([2, 5, 1, 10, 10, 30, 30], "not in pixels"),
    "one pixel coordinate": ([2, 5, *GOOD[2:], 1, 0, 0, 1, 2.01], "not in pixels"),
    "far to the left": ([2, 5, 1, -1.01, 0, 1, 1], "not in pixels"),
    "a coordinate that is no number": ([2, 5, 1, 0, NAN, 1, 1], "coordinate is not a finite"),
    "an infinite coordinate": ([2, 5, 1, 0, 0, INF, 1], "coordinate is not a finite"),
    "a class that is no number": ([2, 5, NAN, 0, 0, 1, 1], "class is not a finite"),
    "an infinite class": ([2, 5, -INF, 0, 0, 1, 1], "class is not a finite"),
}


def write(path, labels, content):
    write_pack(f"{path}.rec", [content] * len(labels), labels)


@pytest.fixture
def packs(tmp_path):
    """Return what writes a good record and one with a label, and a pack with these as a field."""

    def make(label):
        write(tmp_path / "a", [GOOD, label], IMAGE)
        write(tmp_path / "b", [0.0, 1.0], IMAGE)
        write(tmp_path / "b.boxes", [GOOD, label], b"")
        return tmp_path

    return make


def by_record_iter(folder, **more):
    return ImageDetRecordIter(
        path_imgrec=str(folder / "a.rec"), data_shape=(3, 8, 8), batch_size=2, verbose=False, **more
    )


def by_mx_image(folder, **more):
    return ImageDetIter(2, (3, 8, 8), path_imgrec=str(folder / "a.rec"), **more)


def by_field(folder, **more):
    return ImageRecordIter(
        path_imgrec=str(folder / "b.rec"),
        data_shape=(3, 8, 8),
        batch_size=2,
        fields={"boxes": Boxes(emit="overlap", min_overlap=0)},
        **more,
    )


def counted(batch):
    """Count the objects of the second image of a batch."""
    row = np.asarray(batch.label[0])[1]
    if not row.ndim:
        row = np.asarray(batch["boxes"])[1]
    if row.ndim == 2:
        return int((row[:, 3] > row[:, 1]).sum())
    return len(recordio.boxes_of(row, in_batch=True))


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("reader", [by_record_iter, by_mx_image, by_field])
def test_readers_of_batches(packs, reader, name):
    label, found = LABELS[name]
    folder = packs(label)
    if isinstance(found, int):
        with reader(folder) as provider:
            assert counted(next(iter(provider))) == found
        return
    with pytest.raises(recordio.LabelError, match=found) as caught, reader(folder) as provider:
        next(iter(provider))
    assert caught.value.record == 1 and caught.value.offset > 0
    assert str(caught.value.path).endswith(".rec")
    with reader(folder, on_error="skip") as provider:
        assert next(iter(provider)).index.tolist() == [0, 0]
        assert [found in reason for _, reason in provider.skipped] == [True]


@pytest.mark.parametrize("name", LABELS)
def test_readers_of_labels_and_check(packs, name):
    label, found = LABELS[name]
    folder = packs(label)
    reports = [check_pack(open_pack(folder / pack)) for pack in ("a.rec", "b.rec")]
    if isinstance(found, int):
        assert len(recordio.boxes_of(label)) == found
        assert not any(report.problems for report in reports)
        assert recordio.stats(folder / "a").objects == 1 + found
        assert recordio.stats(folder / "b").fields["boxes"].objects == 1 + found
        return
    with pytest.raises(recordio.LabelError, match=found):
        recordio.boxes_of(label)
    for report, kind in zip(reports, ("label", "field"), strict=True):
        (problem,) = report.problems
        assert problem.kind == kind and found in problem.reason
        assert problem.record == 1 and problem.key == 1 and problem.offset > 0


@pytest.mark.parametrize("name", LABELS)
def test_lists_that_im2rec_packs(tmp_path, capsys, name):
    label, found = LABELS[name]
    (tmp_path / "x.png").write_bytes(IMAGE)
    lines = ["\t".join(map(str, [key, *one, "x.png"])) for key, one in enumerate([GOOD, label])]
    (tmp_path / "a.lst").write_text("\n".join(lines) + "\n")
    words = [str(tmp_path / "a"), str(tmp_path), "--pack-label", "--encoding", ".png"]
    code = im2rec.main(words)
    if isinstance(found, int):
        assert code == 0 and len(recordio.RecordReader(tmp_path / "a.rec")) == 2
        return
    said = capsys.readouterr().err
    assert code == 1 and ("finite" in said or found in said)
    assert im2rec.main([*words, "--strict"]) == 1


def test_operations_leave_images_without_objects(tmp_path):
    other = [2, 5, 0, 0.1, 0.2, 0.5, 0.6]
    write(tmp_path / "a", [GOOD, [2, 5, *MARK], other, [2, 5]], b"content")

    def classes(name):
        with recordio.RecordReader(tmp_path / f"{name}.rec") as reader:
            labels = [recordio.unpack(bytes(record))[0].label for record in reader]
        return [recordio.boxes_of(label)[:, 0].tolist() for label in labels]

    recordio.relabel(tmp_path / "a", tmp_path / "dense", "dense")
    assert classes("dense") == [[1], [], [0], []]
    recordio.relabel(tmp_path / "a", tmp_path / "mapped", {0: 7, 3: 9})
    assert classes("mapped") == [[9], [], [7], []]
    assert recordio.filter(tmp_path / "a", tmp_path / "none", where="objects == 0").records == 2
    recordio.sort(tmp_path / "a", tmp_path / "sorted", by="label")
    assert classes("sorted") == [[0], [3], [], []]
    recordio.join([tmp_path / "a"] * 2, tmp_path / "both", labels=["keep", "append"])
    assert classes("both") == [[3], [], [0], [], [7], [], [4], []]
    found = recordio.stats(tmp_path / "a")
    assert found.objects == 2 and found.classes.classes == 2


def test_a_pack_without_any_object_is_read(tmp_path):
    write(tmp_path / "a", [[2, 5]] * 2, IMAGE)
    with by_record_iter(tmp_path) as provider:
        assert counted(next(iter(provider))) == 0
    with by_mx_image(tmp_path) as provider:
        assert provider.label_shape == (1, 5) and counted(next(iter(provider))) == 0
