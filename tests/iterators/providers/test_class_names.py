"""Classes of two sources are the same by their names, whatever order their folders have."""

import numpy as np
import pytest

from iterators import ImageRecordDataset, ImageRecordIter, Pack
from iterators.testing import encode, write_pack
from recordio.errors import RecordIOError

SHAPE = {"data_shape": (3, 8, 8), "batch_size": 1, "dtype": "uint8"}


@pytest.fixture
def folders(tmp_path):
    """Folders of classes; an image has ten times the number that its class is called."""

    def make(name, *classes):
        for one in classes:
            place = tmp_path / name / one
            place.mkdir(parents=True)
            image = encode(np.full((8, 8, 3), 2 * int(one), np.uint8))
            (place / "a.png").write_bytes(image)
        return str(tmp_path / name)

    return make


def labels(path, **keywords):
    with ImageRecordIter(path_imgrec=path, **SHAPE, **keywords) as provider:
        return {int(b.data[0][0].mean()) // 2: int(b.label[0].ravel()[0]) for b in provider}


def test_numeric_folders_are_in_the_order_of_text(folders):
    assert labels(folders("a", "2", "10", "90")) == {10: 0, 2: 1, 90: 2}


@pytest.mark.parametrize("form", [list, lambda known: {n: i for i, n in enumerate(known)}])
def test_classes_of_one_source_number_those_of_another(folders, form):
    train, valid = folders("train", "2", "10", "90", "100"), folders("valid", "10", "90")
    with ImageRecordIter(path_imgrec=train, **SHAPE) as provider:
        known, numbers = provider.classes, provider.class_to_idx
    assert known == ["10", "100", "2", "90"]
    wanted = {10: numbers["10"], 90: numbers["90"]}
    assert labels(valid, classes=form(known)) == wanted
    assert labels(Pack(valid, classes=form(known))) == wanted
    dataset = ImageRecordDataset(valid, classes=form(known))
    assert [int(dataset[i][1]) for i in range(2)] == list(wanted.values())
    with ImageRecordIter(path_imgrec=valid, classes=form(known), **SHAPE) as provider:
        assert (provider.classes, provider.num_classes) == (known, 4)


def test_names_of_labels_with_gaps_are_said_to_have_them(tmp_path):
    path = write_pack(tmp_path / "a.rec", [encode(np.zeros((8, 8, 3), np.uint8))] * 2, [0, 5])
    (tmp_path / "a.classes.txt").write_text("0\tcat\n5\tdog\n")
    with ImageRecordIter(path_imgrec=path, **SHAPE) as provider:
        assert provider.class_to_idx == {"cat": 0, "dog": 5} and provider.num_classes == 6
        with pytest.warns(UserWarning, match=r"classes\[1\], 'dog', is the name of label 5"):
            assert provider.classes == ["cat", "dog"]
    both = [Pack(path), Pack(path, labels="append")]
    with (
        ImageRecordIter(path_imgrec=both, **SHAPE) as provider,
        pytest.warns(UserWarning, match="is the name of label 5"),
    ):
        assert provider.classes == ["cat", "dog"]


def test_classes_give_folders_another_order(folders):
    assert labels(folders("a", "2", "10", "90"), classes=["2", "10", "90"]) == {2: 0, 10: 1, 90: 2}


def test_a_text_is_a_name_and_a_number_is_a_label(folders):
    path = folders("a", "2", "10", "90")
    by_name, by_label = {"2": 5, "10": 6, "90": 7}, {0: 5, 1: 6, 2: 7}
    assert labels(Pack(path, labels=by_name)) == {2: 5, 10: 6, 90: 7}
    assert labels(Pack(path, labels=by_label)) == {10: 5, 2: 6, 90: 7}
    with pytest.raises(ValueError, match="11"):
        labels(Pack(path, labels={"11": 0}))


def test_sources_whose_classes_differ_are_refused_or_joined_by_name(folders):
    train, valid = folders("train", "2", "10", "90"), folders("valid", "10", "90")
    with pytest.raises(RecordIOError, match="'90' here and '2'"):
        labels([train, valid])
    both = [Pack(train), Pack(valid, labels="names")]
    assert labels(both) == {10: 0, 2: 1, 90: 2}


@pytest.mark.parametrize(
    ("classes", "words"), [(["10"], "'90' is not among"), (["10", "90", "10"], "twice")]
)
def test_names_that_cannot_be(folders, classes, words):
    with pytest.raises(ValueError, match=words):
        labels(folders("a", "10", "90"), classes=classes)


def test_a_state_belongs_to_its_classes(folders):
    path = folders("a", "10", "90")
    with (
        ImageRecordIter(path_imgrec=path, classes=["90", "10"], **SHAPE) as provider,
        ImageRecordIter(path_imgrec=path, **SHAPE) as other,
        pytest.raises(ValueError, match="packs"),
    ):
        other.load_state_dict(provider.state_dict())
