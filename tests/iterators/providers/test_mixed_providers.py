"""`MixBatches` over all providers with class labels: resumed exactly, or refused with a reason."""

import json

import numpy as np
import pytest
import torch

import recordio
from iterators import (
    Conv2DSpace,
    CSVIter,
    DataBatch,
    ImageIter,
    ImageRecordIter,
    LibSVMIter,
    MixBatches,
    MNISTIter,
    MXDataProvider,
    NDArrayIter,
    PrefetchingIter,
    ResizeIter,
)
from iterators.testing import assert_same, write_pack
from iterators.torch import RecordBatches

COUNT, SHAPE = 11, (3, 16, 16)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("mixed")
    rng = np.random.default_rng(0)
    labels = np.arange(COUNT) % 4
    write_pack(path / "a.rec", COUNT, labels, size=(20, 24))
    np.savetxt(path / "x.csv", rng.random((COUNT, 3)), delimiter=",")
    np.savetxt(path / "y.csv", labels, delimiter=",")
    rows = [f"{label} 0:{i} 2:1\n" for i, label in enumerate(labels)]
    (path / "a.libsvm").write_text("".join(rows))
    recordio.write_idx_array(path / "images", rng.integers(0, 256, (COUNT, 8, 8)).astype(np.uint8))
    recordio.write_idx_array(path / "labels", labels.astype(np.uint8))
    return path


def records(folder, **more):
    keywords = {"path_imgrec": folder / "a.rec", "data_shape": SHAPE, "batch_size": 4, "seed": 2}
    return ImageRecordIter(**keywords | {"shuffle": True} | more)


def image_iter(folder, **more):
    return ImageIter(4, SHAPE, path_imgrec=folder / "a.rec", shuffle=True, **more)


def rows(folder, label, **more):
    return NDArrayIter(np.arange(33.0).reshape(11, 3), label, 4, **more)


PROVIDERS = {
    "ImageRecordIter": records,
    "a recipe": lambda f: records(f, auto_augment="randaugment", random_erasing=0.5),
    "integer labels": lambda f: records(f, label_dtype="int64", layout="NHWC", dtype="float16"),
    "views": lambda f: records(f, views=[{}, {"data_shape": (3, 8, 12)}, {"solarize_p": 1.0}]),
    "tensors": lambda f: records(f, device="cpu", label_dtype="int64"),
    "tensors of views": lambda f: records(f, device="cpu", views=[{}, {"data_shape": (3, 8, 12)}]),
    "ImageIter": lambda f: image_iter(f, auto_augment="augmix", views=[{}, {}]),
    "roll over": lambda f: image_iter(f, last_batch_handle="roll_over"),
    "CSVIter": lambda f: CSVIter(
        data_csv=f / "x.csv", data_shape=(3,), label_csv=f / "y.csv", batch_size=4
    ),
    "MNISTIter": lambda f: MNISTIter(image=f / "images", label=f / "labels", batch_size=4),
    "NDArrayIter": lambda f: rows(f, np.arange(11) % 4),
    "ResizeIter": lambda f: ResizeIter(records(f), 5),
    "PrefetchingIter": lambda f: PrefetchingIter(records(f)),
    "MXDataProvider": lambda f: MXDataProvider(records(f)),
}


def drained(provider):
    """Arrays of the rest of the epoch."""
    found = []
    while True:
        try:
            batch = provider.next()
        except StopIteration:
            return found
        found.append([np.asarray(array).copy() for array in (*batch.data, *batch.label)])


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("mixing", [{"mixup": 0.8, "classes": 4}, {"cutmix": 1.0}])
def test_mixing_resumes_exactly(folder, name, mixing):
    if "cutmix" in mixing and name in ("CSVIter", "NDArrayIter"):
        with pytest.raises(ValueError, match="cutmix needs images"):
            MixBatches(PROVIDERS[name](folder), **mixing)
        return

    def made():
        return MixBatches(PROVIDERS[name](folder), **mixing, seed=9)

    with made() as whole:
        drained(whole)
        whole.reset()
        first = whole.next()
        assert [tuple(array.shape) for array in first.data] == [d.shape for d in whole.provide_data]
        assert [tuple(a.shape) for a in first.label] == [d.shape for d in whole.provide_label]
        assert all(torch.is_tensor(array) == ("tensors" in name) for array in first.data)
        state = json.loads(json.dumps(whole.state_dict()))
        wanted = drained(whole)
    assert wanted
    with made() as second:
        second.load_state_dict(state)
        assert_same(drained(second), wanted)
    with PROVIDERS[name](folder) as plain:
        plain.next()
        assert any(not np.array_equal(plain.next().data[0], batch[0]) for batch in wanted)


def test_tensors_are_mixed_as_arrays_are(folder):
    mixing = {"mixup": 0.8, "cutmix": 1.0, "classes": 4, "label_smoothing": 0.1}
    with (
        MixBatches(records(folder), **mixing) as arrays,
        MixBatches(records(folder, device="cpu"), **mixing) as tensors,
    ):
        for _ in range(3):
            for one, other in zip(drained(arrays), drained(tensors), strict=True):
                for mine, theirs in zip(one, other, strict=True):
                    np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-4)
            arrays.reset()
            tensors.reset()


class Foreign:
    """What looks like a provider."""

    provide_data, provide_label, batch_size = [("data", (4, 3))], [("label", (4,))], 4

    def next(self):
        return DataBatch([np.zeros((4, 3))], [np.zeros(4)])


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda f: records(f, label_width=2), ValueError, "one class for every sample"),
        (lambda f: records(f, label_name=None), ValueError, "one class for every sample"),
        (
            lambda f: records(f, data_specs=(Conv2DSpace((16, 16), 3), "features")),
            TypeError,
            "before data_specs",
        ),
        (lambda f: MixBatches(records(f), mixup=1.0, classes=4), ValueError, "one class for every"),
        (lambda f: records(f, dtype="uint8"), ValueError, "mixup needs float pixels"),
        (lambda f: RecordBatches(records(f)), TypeError, "RecordBatches goes around MixBatches"),
        (lambda f: torch.utils.data.DataLoader([1]), TypeError, "expected a provider of batches"),
        (lambda f: Foreign(), TypeError, "needs MXDataProvider around it"),
        (lambda f: [1, 2], TypeError, "expected a provider of batches"),
    ],
)
def test_what_cannot_be_mixed_is_refused_at_once(folder, make, error, text):
    with pytest.raises(error, match=text):
        MixBatches(make(folder), mixup=0.5)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (
            lambda f: LibSVMIter(data_libsvm=f / "a.libsvm", data_shape=(3,), batch_size=4),
            TypeError,
            "the rows are sparse",
        ),
        (lambda f: rows(f, np.arange(11) / 2), ValueError, "not whole numbers"),
        (lambda f: rows(f, np.full(11, np.nan)), ValueError, "not whole numbers"),
        (lambda f: rows(f, np.arange(11) - 1), ValueError, "there is a label -1"),
        (lambda f: rows(f, np.arange(11) + 4), ValueError, "classes=4"),
    ],
)
def test_labels_and_rows_are_looked_at(folder, make, error, text):
    with MixBatches(make(folder), mixup=0.5, classes=4) as mixed, pytest.raises(error, match=text):
        mixed.next()


def test_a_batch_that_cannot_be_mixed_counts(folder):
    labels = np.arange(11) % 4
    wrong = np.where(np.arange(11) == 5, 9, labels)
    mixing = {"mixup": 0.5, "classes": 4}
    with (
        MixBatches(rows(folder, labels), **mixing) as good,
        MixBatches(rows(folder, wrong), **mixing) as bad,
    ):
        wanted = drained(good)
        first = bad.next()
        np.testing.assert_array_equal(first.data[0], wanted[0][0])
        with pytest.raises(ValueError, match="there is a label 9"):
            bad.next()
        assert_same(drained(bad), wanted[2:])


def test_pairs_need_no_whole_numbers(folder):
    with MixBatches(rows(folder, np.arange(11) / 2), mixup=0.5) as mixed:
        label, partner, share = mixed.next().label
    np.testing.assert_array_equal(np.roll(label, 1), partner)
    assert len(set(share.tolist())) == 1
