"""Sets, batches, sources, and views over the batches of providers."""

import numpy as np
import pytest

from iterators import (
    ClassView,
    DataBatch,
    DataDesc,
    DataView,
    ImageView,
    ListView,
    SequenceView,
)
from iterators.views import BaseSet, Batch, DataSet, DataSource, Standardize, view_batch


def numbers(n=6, targets=True, which="train"):
    x = np.arange(2.0 * n).reshape(n, 2)
    return DataSet(which, DataView("bf", x), ClassView("b", np.arange(n)) if targets else None)


def test_lists_become_list_views_and_other_things_are_refused():
    data = BaseSet("valid", [DataView("bf", np.zeros((3, 2)))], [])
    assert isinstance(data.inputs, ListView)
    assert not data.is_train
    assert data.n_sample == 3
    with pytest.raises(TypeError, match="targets must be a View"):
        BaseSet(targets=np.zeros(3))


def test_number_of_rows():
    assert BaseSet().n_sample == 0
    data = BaseSet(targets=ClassView("b", np.arange(4)))
    assert len(data) == data.n_sample == 4
    data.n_sample = 3
    assert data.n_sample == 3
    data.n_sample = None
    assert data.n_sample == 4


@pytest.mark.parametrize("targets", [True, False])
def test_batches_are_copies_of_rows(targets):
    data = numbers(targets=targets)
    first = data.batch(2)
    assert isinstance(first, Batch)
    assert first.inputs.input.tolist() == [[0, 1], [2, 3]]
    assert (first.n_sample, first.epoch_size, first.which_set) == (2, 6, "train")
    assert (first.targets is None) is not targets
    first.inputs.input[:] = -1
    assert data.inputs.input[0].tolist() == [0, 1]
    memory = first.inputs.input
    assert data.sub(3, 5, out=first) is first
    assert first.inputs.input is memory
    assert memory.tolist() == [[6, 7], [8, 9]]
    assert data.index([5, 0], out=first).inputs.input.tolist() == [[10, 11], [0, 1]]
    assert len(data.batch(100)) == 6


def test_a_batch_that_is_refilled_forgets_where_it_came_from():
    data = numbers()
    batch = data.batch(2).setup(batch_iter=2, batch_size=2, n_sample=1, indices=[0], epoch_size=9)
    assert (batch.n_sample, batch.epoch_size, batch.indices) == (1, 9, [0])
    data.sub(0, 3, out=batch)
    assert (batch.n_sample, batch.epoch_size, batch.indices) == (3, 6, None)


def test_preprocessing_is_fitted_on_train_sets_only():
    step = Standardize(std_eps=0)
    with pytest.raises(RuntimeError, match="never fitted"):
        numbers(which="test").preprocess(step)
    data = numbers()
    data.preprocess(input_preprocess=step)
    assert np.allclose(data.inputs.input.mean(0), 0)
    with pytest.raises(TypeError, match="needs"):
        data.preprocess()
    with pytest.raises(TypeError, match="no targets"):
        numbers(targets=False).preprocess(target_preprocess=step)


def test_a_source_fits_on_train_and_applies_to_all():
    train, valid, test = (numbers(which=which) for which in ("train", "valid", "test"))
    valid.inputs.input[:] += 100
    reference = train.inputs.input.copy()
    source = DataSource(train, valid, test, input_preprocess=[Standardize(std_eps=0)])
    mean, std = reference.mean(0), reference.std(0, ddof=1)
    assert np.allclose(source.get("train")[0], (reference - mean) / std)
    assert np.allclose(source.get("valid", "inputs")[0], (reference + 100 - mean) / std)
    assert np.allclose(source.get("test", "input", "bf", "float")[0], source.get("train")[0])


def test_get_and_set():
    train = numbers()
    train.targets.set_classes(list("abcdef"))
    source = DataSource(train)
    array, view, data = source.get("train", "target", "bt", "int")
    assert (array.shape, array.dtype, view, data) == ((6, 1), np.int32, train.targets, train)
    assert source.set("train", "targets", "b", np.zeros(6)) == (train.targets, train)
    assert train.targets.input.sum() == 0
    assert source.classes == list("abcdef")
    assert source.i_size() == (2,)
    assert source.i_size("f") == 2
    for wrong in (("other",), ("valid",), ("train", "colour")):
        with pytest.raises(ValueError):
            source.get(*wrong)
    with pytest.raises(ValueError, match="no targets"):
        DataSource(numbers(targets=False)).get("train", "target")


# -- batches of providers -------------------------------------------------------------------------


def batch_of(data, label=(), data_layouts=("NCHW",), label_layouts=("N",), pad=0):
    return DataBatch(
        list(data),
        list(label),
        pad=pad,
        index=np.arange(len(data[0])),
        provide_data=[
            DataDesc("d", x.shape, x.dtype, layout) for x, layout in zip(data, data_layouts)
        ],
        provide_label=[
            DataDesc("l", x.shape, x.dtype, layout) for x, layout in zip(label, label_layouts)
        ],
    )


@pytest.mark.parametrize(
    ("shape", "layout", "kind", "axes"),
    [
        ((4, 3, 8, 8), "NCHW", ImageView, "bchw"),
        ((4, 8, 8, 3), "NHWC", ImageView, "bhwc"),
        ((3, 8, 8, 4), "CHWN", ImageView, "chwb"),
        ((4, 9, 5), "NTC", SequenceView, "bwc"),
        ((4, 5, 9), "NCW", SequenceView, "bcw"),
        ((4, 5), "NC", DataView, "bf"),
        ((4, 5), None, DataView, "bf"),
        ((4, 5), "NCHW", DataView, "bf"),
        ((4,), "N", DataView, "b"),
        ((4, 2, 3, 3, 3), "NCDHW", DataView, "bcdhw"),
        ((4, 2, 3, 3, 3), None, DataView, "bxyzu"),
    ],
)
def test_layouts_of_data(shape, layout, kind, axes):
    x = np.zeros(shape)
    views = view_batch(batch_of([x], data_layouts=[layout]))
    assert type(views.inputs) is kind
    assert views.inputs.view == axes
    assert views.inputs.input is x
    assert views.targets is None


@pytest.mark.parametrize(
    ("shape", "layout", "kind", "axes"),
    [
        ((4,), "N", ClassView, "b"),
        ((4, 5), "NC", ClassView, "bt"),
        ((4, 5), None, ClassView, "bt"),
        ((4, 7, 5), "NTC", SequenceView, "bwc"),
    ],
)
def test_layouts_of_labels(shape, layout, kind, axes):
    batch = batch_of([np.zeros((4, 2))], [np.zeros(shape)], ["NC"], [layout], pad=1)
    views = view_batch(batch, "valid")
    assert type(views.targets) is kind
    assert views.targets.view == axes
    assert (views.n_sample, views.batch_size, views.which_set) == (3, 4, "valid")
    assert views.indices.tolist() == [0, 1, 2, 3]


def test_several_arrays_become_a_list():
    batch = batch_of([np.zeros((4, 2)), np.zeros((4, 3, 8, 8))], data_layouts=["NC", "NCHW"])
    assert view_batch(batch).inputs.view == ["bf", "bchw"]


def test_a_provider_gives_views_over_its_batches(tmp_path):
    from iterators import ImageRecordIter
    from iterators.testing import write_pack

    write_pack(tmp_path / "a.rec", 5, size=(8, 8))
    with ImageRecordIter(
        path_imgrec=str(tmp_path / "a.rec"), data_shape=(3, 8, 8), batch_size=4
    ) as provider:
        batches = list(provider)
        views = [provider.view(batch) for batch in batches]
    assert [v.n_sample for v in views] == [4, 1]
    for batch, view in zip(batches, views):
        assert view.inputs.input is batch.data[0]
        assert np.array_equal(view.inputs.forward_get("bhwc"), batch.data[0].transpose(0, 2, 3, 1))
        assert view.targets.forward_get("b", "long").tolist() == batch.label[0].tolist()
        assert view.indices.tolist() == batch.index.tolist()


def test_array_and_sparse_providers_give_views_too(tmp_path):
    from iterators import ArrayDataProvider, LibSVMIter

    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    arrays = ArrayDataProvider(x, np.arange(6, dtype=np.float32), batch_size=3)
    views = arrays.view(next(iter(arrays)))
    assert views.inputs.forward_get("bf", "double").shape == (3, 4)
    assert views.targets.forward_get("bt").shape == (3, 1)
    path = tmp_path / "a.libsvm"
    path.write_text("1 0:1.5 2:2\n0 1:3\n")
    with LibSVMIter(data_libsvm=str(path), data_shape=(3,), batch_size=2) as provider:
        views = provider.view(next(iter(provider)))
    assert views.inputs.forward_get("bf").toarray().tolist() == [[1.5, 0, 2], [0, 3, 0]]
    assert views.targets.forward_get("b").tolist() == [1, 0]
