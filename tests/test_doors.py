"""Every door to a container gives the same samples, labels and class names, or the same refusal.

Rows of the table are what other people's tools, file systems and habits leave; columns are the
containers that can hold it.  An image is of one grey level, by which it is known again.
"""

import io
import json
import string
import tarfile
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mds_sets import shard, write_set
from tfrecords import write_tfrecord

import recordio.convert
from iterators import ImageRecordDataset, ImageRecordIter
from iterators.testing import encode
from recordio.errors import RecordIOError

SHAPE = (3, 8, 8)


def flat(level, kind=".png"):
    """An image of one grey level."""
    return encode(np.full((8, 8, 3), level, np.uint8), kind)


def as_folder(path, files):
    for name, content in files:
        place = path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return path


def as_zip(path, files):
    path = path.with_suffix(".zip")
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files:
            archive.writestr(name, content)
    return path


def as_tar(path, files):
    path = path.with_suffix(".tar")
    with tarfile.open(path, "w") as archive:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def trained(source):
    """The samples that an epoch delivers, by grey level, and the names of classes."""
    with ImageRecordIter(
        path_imgrec=str(source), data_shape=SHAPE, batch_size=1, dtype="uint8", label_width=1
    ) as provider:
        rows = [(int(b.data[0][0].mean()), float(b.label[0].ravel()[0])) for b in provider]
        return rows, list(provider.classes)


def mapped(source):
    """The samples of the data set with random access."""
    dataset = ImageRecordDataset(str(source))
    rows = [dataset[number] for number in range(len(dataset))]
    return [(int(np.mean(image)), float(np.ravel(label)[0])) for image, label in rows], None


def packed(source, convert=recordio.convert.pack):
    """The records of the pack that is made of it."""
    prefix = source.parent / f"{source.stem}-packed"
    convert(str(source), str(prefix))
    return trained(f"{prefix}.rec")


def doors_of(source):
    """The doors that are open to a kind of container."""
    found = {"trained": trained, "mapped": mapped, "packed": packed}
    converters = {
        ".tar": recordio.convert.from_webdataset,
        ".tfrecord": recordio.convert.from_tfrecord,
        "": recordio.convert.from_imagefolder,
    }
    if source.suffix in converters and not (source / "index.json").exists():
        found["converted"] = lambda path: packed(path, converters[path.suffix])
    return found


def agreed(source):
    """What all doors say: samples in order, or None where each refuses; and all warnings."""
    answers, notes = {}, []
    for name, door in doors_of(source).items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                answers[name] = door(source)[0]
            except RecordIOError:
                answers[name] = None
        notes += [str(warning.message) for warning in caught]
    first = answers["trained"]
    assert all(answer == first for answer in answers.values()), answers
    return first, notes


CAT, DOG = flat(10), flat(20)
#: Files of folders and zips, and the samples that they are: (level, label).
TREES = {
    "hidden files": (
        [("cat/1.png", CAT), ("cat/._1.png", b"\0\5"), ("dog/2.png", DOG), ("dog/.x.png", CAT)],
        [(10, 0), (20, 1)],
    ),
    "hidden folders": (
        [(".ipynb_checkpoints/1.png", CAT), ("cat/1.png", CAT), ("dog/.git/2.png", CAT),
         ("dog/2.png", DOG)],
        [(10, 0), (20, 1)],
    ),
    "folders of systems": (
        [("@eaDir/1.png", CAT), ("__MACOSX/cat/._1.png", CAT), ("cat/1.png", CAT),
         ("cat/Thumbs.db", b"x"), ("cat/@eaDir/1.png", CAT), ("dog/2.png", DOG)],
        [(10, 0), (20, 1)],
    ),
    "names with dots": (
        [("cat/22.05.png", CAT), ("cat/22.10.png", DOG), ("cat/22.png", flat(30))],
        [(10, 0), (20, 0), (30, 0)],
    ),
    "copies beside originals": (
        [("a/IMG_1.copy.png", CAT), ("a/IMG_1.png", DOG), ("b/IMG_1.png.png", flat(30))],
        [(10, 0), (20, 0), (30, 1)],
    ),
    "numeric folders": (
        [("1/a.png", CAT), ("10/a.png", DOG), ("2/a.png", flat(30))],
        [(10, 0), (20, 1), (30, 2)],
    ),
    "names beyond ASCII": (
        [("Katze/日本.png", CAT), ("chien/é à.png", DOG), ("ねこ/1.png", flat(30))],
        [(10, 0), (20, 1), (30, 2)],
    ),
    "endings in capitals": (
        [("cat/1.PNG", CAT), ("dog/2.Jpeg", flat(20, ".jpg"))], [(10, 0), (20, 1)]
    ),
}  # fmt: skip


@pytest.mark.parametrize("write", [as_folder, as_zip])
@pytest.mark.parametrize("name", TREES)
def test_trees_of_classes(tmp_path, name, write):
    files, samples = TREES[name]
    found, _ = agreed(write(tmp_path / "photos", files))
    assert sorted(found) == samples


@pytest.mark.parametrize("write", [as_folder, as_zip])
def test_left_out_files_are_noted(tmp_path, write):
    files = [("cat/1.png", CAT), ("cat/.hidden.png", DOG), ("cat/2.psd", b"8BPS")]
    _, notes = agreed(write(tmp_path / "photos", files))
    assert any(".hidden.png" in note for note in notes)
    assert any(".psd" in note for note in notes)


@pytest.mark.parametrize("write", [as_folder, as_zip])
def test_splits_that_become_classes_are_noted(tmp_path, write):
    files = [(f"{a}/{b}/1.png", CAT) for a in ("train", "test") for b in ("cat", "dog")]
    _, notes = agreed(write(tmp_path / "photos", files))
    assert any("train" in note and "test" in note for note in notes)


#: Files of tars; the samples, or None where every door must refuse.
TARS = {
    "labels beside": ([("1.png", CAT), ("1.cls", b"3"), ("2.png", DOG), ("2.cls", b"4")],
                      [(10, 3), (20, 4)]),
    "labels elsewhere": ([("1.png", CAT), ("2.png", DOG), ("1.cls", b"3"), ("2.cls", b"4")], None),
    "a label of no image": ([("1.png", CAT), ("3.cls", b"3"), ("2.png", DOG)], None),
    "dotted stems": ([("22.05.png", CAT), ("22.05.cls", b"1"), ("22.10.png", DOG),
                      ("22.10.cls", b"2")], [(10, 1), (20, 2)]),
    "no number": ([("1.png", CAT), ("1.cls", b"nan")], None),
    "too many digits": ([("1.png", CAT), ("1.cls", b"9" * 5000)], None),
    "hidden files": ([("._1.png", b"\0\5\x16\7"), ("1.png", CAT), ("1.cls", b"3")], [(10, 3)]),
    "labels as floats": ([("1.png", CAT), ("1.cls", b"3.000e+00\n")], [(10, 3)]),
}  # fmt: skip


@pytest.mark.parametrize("name", TARS)
def test_tars(tmp_path, name):
    files, samples = TARS[name]
    found, _ = agreed(as_tar(tmp_path / "set", files))
    if name == "dotted stems":
        assert found is None or found == samples
    else:
        assert found == samples


LABEL_NAMES = ("label", "labels", "class", "class_id", "target")


def in_tfrecord(path, name):
    rows = [{"image": [flat(level)], name: [number]} for level, number in ((10, 3), (20, 4))]
    return write_tfrecord(path / "a.tfrecord", *rows)


def in_parquet(path, name):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(
        arrow.table({"image": [flat(10), flat(20)], name: [3, 4]}), path / "a.parquet"
    )
    return path / "a.parquet"


def in_mds(path, name):
    rows = [(flat(level), np.int64(number).tobytes()) for level, number in ((10, 3), (20, 4))]
    return write_set(path / "mds", shard(rows, {"image": ("png", None), name: ("int", 8)}))


def in_tar(path, name):
    files = []
    for number, (level, label) in enumerate([(10, 3), (20, 4)]):
        words = json.dumps({name: label}).encode()
        files += [(f"{number}.png", flat(level)), (f"{number}.json", words)]
    return as_tar(path / "a", files)


@pytest.mark.parametrize("write", [in_tfrecord, in_parquet, in_mds, in_tar])
@pytest.mark.parametrize("name", LABEL_NAMES)
def test_one_list_of_label_names(tmp_path, write, name):
    assert agreed(write(tmp_path, name))[0] == [(10, 3), (20, 4)]


@pytest.mark.parametrize("write", [in_tfrecord, in_parquet, in_mds, in_tar])
def test_a_label_under_an_odd_name_is_never_zero_in_silence(tmp_path, write):
    found, notes = agreed(write(tmp_path, "kind_of_thing"))
    assert found is None or any("kind_of_thing" in note for note in notes)


names = st.text(string.ascii_lowercase + ".-_ é", min_size=1, max_size=6).filter(
    lambda text: text == text.strip() and text.strip(". ") and not text.endswith(".")
)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(tree=st.dictionaries(st.tuples(names, names), st.integers(0, 250), min_size=1, max_size=5))
def test_any_tree_of_names(tmp_path_factory, tree):
    path = tmp_path_factory.mktemp("tree")
    files = [(f"{a}/{b}.png", flat(level)) for (a, b), level in sorted(tree.items())]
    folder = agreed(as_folder(path / "photos", files))[0]
    archive = agreed(as_zip(path / "photos", files))[0]
    assert sorted(folder or []) == sorted(archive or [])
