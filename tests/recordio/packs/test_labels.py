"""Labels of packs as they are read, counted, appended and mapped."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordio.packs.labels import MOST_CLASSES, LabelChange, LabelSource, label_changes


def source(name="a.rec", found=(0, 1, 2), **said):
    asked = []

    def distinct():
        asked.append(name)
        return np.array(found, np.float32)

    made = LabelSource(name, distinct, **said)
    return made, asked


def changes_of(*sources):
    return label_changes([made for made, _ in sources])


def test_nothing_is_read_where_nothing_has_to_be_known():
    sources = [
        source(classes=9),
        source(labels="append", classes=3),
        source(labels={0: 5}),
        source(labels=None),
        source(labels=[1, 0]),
        source(identities=4, labels="append"),
    ]
    changes, num_classes = changes_of(*sources)
    assert num_classes() == 16
    assert [change.shift for change in changes] == [0, 9, 0, 0, 0, 12]
    assert not any(asked for _, asked in sources)


def test_classes_are_counted_once_and_only_when_asked_for():
    first, asked = source(found=[0, 6])
    (change,), num_classes = label_changes([first])
    assert change.keeps
    assert not asked
    assert (num_classes(), num_classes()) == (7, 7)
    assert len(asked) == 1


def test_classes_are_appended_to_those_of_all_packs_before():
    changes, num_classes = changes_of(
        source("a", [0, 4]), source("b", [0, 1, 2]), source("c", [0, 1], labels="append"),
        source("d", [0], labels="append"),
    )  # fmt: skip
    assert [change.shift for change in changes] == [0, 0, 5, 7]
    assert num_classes() == 8


@given(st.dictionaries(st.integers(-50, 50), st.integers(-5, 90), min_size=1))
def test_a_mapping_says_what_every_label_becomes(mapping):
    (change,), num_classes = changes_of(source(labels=mapping))
    wanted = np.arange(-60, 61, dtype=np.float32)
    labels, known = change.apply(wanted)
    assert known.tolist() == [int(label) in mapping for label in wanted]
    for label, old, is_known in zip(labels, wanted, known, strict=True):
        assert label == (mapping[int(old)] if is_known else old)
    assert num_classes() == max(max(mapping.values()) + 1, 0)


def test_a_function_is_called_once_with_the_different_labels():
    calls = []

    def double(labels):
        calls.append(labels.tolist())
        return labels * 2

    (change,), num_classes = changes_of(source(found=[1, 3, 7], labels=double))
    assert change.apply(np.array([7, 1, 2], np.float32))[0].tolist() == [14, 2, 2]
    assert (calls, num_classes()) == ([[1, 3, 7]], 15)


def test_no_labels_are_minus_one():
    (change,), num_classes = changes_of(source(labels=None))
    assert change.apply(np.array([3, np.nan], np.float32))[0].tolist() == [-1, -1]
    assert num_classes() == 0


def test_a_number_of_classes_is_a_promise():
    (change,), _ = changes_of(source(classes=3))
    _, known = change.apply(np.array([0, 2, 3, -1, 0.5], np.float32))
    assert known.tolist() == [True, True, False, False, False]


def test_it_can_be_pickled():
    _, num_classes = label_changes([LabelSource("a", np.ones, classes=4)])
    assert pickle.loads(pickle.dumps(num_classes))() == 4


@pytest.mark.parametrize(
    ("said", "error", "message"),
    [
        ({"labels": "apend"}, ValueError, "expected 'keep', 'append'"),
        ({"labels": 7}, TypeError, "expected 'keep', 'append'"),
        ({"labels": {0: "cat"}}, TypeError, "expected 'keep', 'append'"),
        ({"labels": {0: float("nan")}}, TypeError, "a finite number"),
        ({"labels": {}}, ValueError, "is empty"),
        ({"labels": {0: 1, 1e-60: 2}}, ValueError, "the same 32-bit float"),
        ({"labels": {0: MOST_CLASSES + 2}}, ValueError, "do not tell apart"),
        ({"labels": lambda labels: labels[:1]}, ValueError, "3 different labels and returned 1"),
        ({"labels": "append", "found": [0, 0.5]}, ValueError, "0.5 numbers no class"),
        ({"labels": "append", "found": [-1, 0]}, ValueError, "-1 numbers no class"),
    ],
)
def test_labels_that_cannot_be_used(said, error, message):
    with pytest.raises(error, match=message):
        changes_of(source("some.rec", **said))


def test_more_classes_than_labels_tell_apart():
    with pytest.raises(ValueError, match=r"b\.rec.*at most 16777216"):
        changes_of(source(classes=MOST_CLASSES), source("b.rec", labels="append", classes=1))


def test_a_change_says_whether_it_keeps_everything():
    assert LabelChange().keeps
    assert not LabelChange(classes=3).keeps
    assert not LabelChange(table=(np.zeros(1), np.zeros(1))).keeps
