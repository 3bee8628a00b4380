"""Every provider can be asked for forms, with data_specs= and view(batch), all in the same way."""

import gzip
import itertools

import numpy as np
import pytest
import scipy.sparse

import recordio
from iterators import (
    ArrayDataProvider,
    ClassView,
    CompositeSpace,
    Conv2DSpace,
    CSVIter,
    DataBatch,
    DataView,
    ImageDetRecordIter,
    ImageRecordIter,
    ImageView,
    IndexSpace,
    LibSVMIter,
    MNISTIter,
    MXDataProvider,
    NDArrayIter,
    NullSpace,
    PrefetchingIter,
    ResizeIter,
    SequenceView,
    VectorSequenceSpace,
    VectorSpace,
)
from iterators.core.layout import Layout
from iterators.datasets import DenseDesignMatrix
from iterators.providers.form_batches import SpecBatch
from iterators.spaces import SimpleSpace
from iterators.spaces.spec import SpecError

torch = pytest.importorskip("torch")

CLASSES = [1, 0, 2, 2, 1]
ROWS = np.arange(60.0, dtype=np.float32).reshape(5, 12)
#: Every provider over the same five rows of 12 elements and the same five labels below 3.
SPACE = CompositeSpace(
    [
        Conv2DSpace((2, 2), num_channels=3, axes=("c", 0, 1, "b"), dtype="float32"),
        VectorSpace(3, dtype="float32"),
    ]
)
SPECS = SPACE, ("features", "targets")
IMAGES = ROWS.reshape(5, 2, 2, 3)


class Old:
    """An iterator with MXNet's low-level protocol, whose descriptions are plain tuples."""

    provide_data, provide_label = [("data", (2, 12))], [("softmax_label", (2,))]

    def __init__(self):
        self.at = -2

    def reset(self):
        self.at = -2

    def iter_next(self):
        self.at += 2
        return self.at < 5

    def _rows(self, values):
        return np.resize(values[self.at : self.at + 2], (2, *values.shape[1:]))

    def getdata(self):
        return self._rows(ROWS)

    def getlabel(self):
        return [self._rows(np.array(CLASSES, np.float32))]

    def getpad(self):
        return max(self.at + 2 - 5, 0)


def csv(folder, **arguments):
    data, label = folder / "data.csv", folder / "label.csv"
    data.write_text("".join(",".join(map(str, row)) + "\n" for row in ROWS))
    label.write_text("".join(f"{label}\n" for label in CLASSES))
    return CSVIter(data_csv=data, label_csv=label, data_shape=(12,), batch_size=2, **arguments)


def libsvm(folder, **arguments):
    path = folder / "data.libsvm"
    rows = (
        " ".join([str(label), *(f"{i}:{x}" for i, x in enumerate(row))])
        for label, row in zip(CLASSES, ROWS, strict=True)
    )
    path.write_text("\n".join(rows) + "\n")
    return LibSVMIter(data_libsvm=path, data_shape=(12,), batch_size=2, **arguments)


def mnist(folder, **arguments):
    images, labels = folder / "images.gz", folder / "labels"
    with gzip.open(images, "wb") as file:
        file.write(bytes([0, 0, 8, 3, 0, 0, 0, 5, 0, 0, 0, 3, 0, 0, 0, 4]))
        file.write(ROWS.astype(np.uint8).tobytes())
    labels.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 5, *CLASSES]))
    arguments = {
        "last_batch": "pad",
        "silent": True,
        "dtype": "uint8",
        "shuffle": False,
        **arguments,
    }
    return MNISTIter(image=images, label=labels, batch_size=2, **arguments)


def arrays(folder, **arguments):
    return ArrayDataProvider(ROWS, np.array(CLASSES), batch_size=2, **arguments)


def images(folder, **arguments):
    return arrays_of(IMAGES, data_layout="NHWC", **arguments)


def arrays_of(data, **arguments):
    return ArrayDataProvider(data, np.array(CLASSES), batch_size=2, **arguments)


def sparse(folder, **arguments):
    return arrays_of(scipy.sparse.csr_matrix(ROWS), **arguments)


def mapped(folder, **arguments):
    path = folder / "rows.npy"
    if not path.exists():
        np.save(path, ROWS)  # never over a file that another provider has mapped
    return arrays_of(np.load(path, mmap_mode="r"), **arguments)


def ndarray(folder, **arguments):
    return NDArrayIter(ROWS, np.array(CLASSES), batch_size=2, **arguments)


def records(folder, **arguments):
    path = folder / "images.rec"
    if not path.exists():
        with recordio.RecordWriter(path) as writer:
            for i, label in enumerate(CLASSES):
                header = recordio.IRHeader(0, float(label), i, 0)
                pixels = IMAGES[i].astype(np.uint8)[..., ::-1]
                writer.write(recordio.pack_img(header, pixels, img_fmt=".png"))
    return ImageRecordIter(
        path_imgrec=path, data_shape=(3, 2, 2), batch_size=2, verbose=False, **arguments
    )


def resized(folder, **arguments):
    return ResizeIter(arrays(folder), 3, **arguments)


def prefetching(folder, **arguments):
    return PrefetchingIter(arrays(folder), **arguments)


def wrapped(folder, **arguments):
    return MXDataProvider(Old(), **arguments)


#: Those that can be asked for any sample.
PLANNED = [csv, libsvm, arrays, images, sparse, mapped, ndarray, records]
WRAPPERS = [resized, prefetching, wrapped]


@pytest.fixture
def make(request, tmp_path):
    """A function that makes providers, which are closed in the end."""
    made = []

    def provider(**arguments):
        made.append(request.param(tmp_path, **arguments))
        return made[-1]

    yield provider
    for provider in made:
        provider.close()


everywhere = pytest.mark.parametrize("make", [*PLANNED, *WRAPPERS], indirect=True)
planned = pytest.mark.parametrize("make", PLANNED, indirect=True)
wrappers = pytest.mark.parametrize("make", WRAPPERS, indirect=True)


def expected_rows(rows):
    images = IMAGES[rows].transpose(3, 1, 2, 0)
    return images, np.eye(3)[np.array(CLASSES)[rows]]


# -- data_specs= ------------------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize("device", [None, "cpu"])
def test_images_and_one_hot_targets_of_every_provider(make, device):
    provider = make(data_specs=SPECS, device=device)
    if _is_sparse(make()):
        with pytest.raises(TypeError, match="sparse"):
            next(iter(provider))
        return
    seen = 0
    for batch in provider:
        images, targets = batch
        (SPACE.np_validate if device is None else SPACE.validate)(tuple(batch))
        count = batch.count_samples()
        want = expected_rows(list(range(seen, seen + count)))
        np.testing.assert_array_equal(np.asarray(images)[..., :count], want[0])
        np.testing.assert_array_equal(np.asarray(targets)[:count], want[1])
        assert isinstance(batch, DataBatch) and batch["features"] is batch.data[0] is images
        assert batch["targets"] is batch.label[0] is targets
        assert provider.provide_data[0] == ("features", tuple(images.shape))
        assert provider.provide_label[0] == ("targets", tuple(targets.shape))
        assert provider.provide_label[0].layout == "NK"
        seen += count
    assert seen == 5 and provider.batch_size == 2


def _is_sparse(provider):
    with provider:
        return not isinstance(next(iter(provider)).data[0], np.ndarray)


@pytest.mark.parametrize("make", [arrays, csv, libsvm, ndarray], indirect=True)
def test_vectors_indices_nesting_and_repeats(make):
    rows, sparse_rows = VectorSpace(12, dtype="float32"), VectorSpace(12, sparse=True)
    space = CompositeSpace(
        [CompositeSpace([rows, NullSpace(), sparse_rows]), IndexSpace(3, 1), VectorSpace(1), rows]
    )
    provider = make(
        data_specs=(space, (("features", "", "data"), "targets", "softmax_label", "data"))
    )
    for batch in provider:
        space.np_validate(tuple(batch))
        (dense, nothing, csr), labels, raw, again = batch
        np.testing.assert_array_equal(csr.toarray(), dense)
        np.testing.assert_array_equal(again, dense)
        assert nothing is None and labels.dtype == np.int64 and (labels == raw).all()
        assert len(batch.data) == 3 and len(batch.label) == 2
        assert [desc.layout for desc in provider.provide_label] == ["NT", "NC"]


def test_sparse_rows_stay_sparse_where_they_may(tmp_path):
    form = VectorSpace(12, sparse=True, dtype="float32"), "features"
    for provider in (libsvm(tmp_path, data_specs=form), sparse(tmp_path, data_specs=form)):
        rows = next(iter(provider)).array
        assert scipy.sparse.issparse(rows) and rows.toarray().tolist() == ROWS[:2].tolist()
    tensor = next(iter(libsvm(tmp_path, data_specs=form, device="cpu"))).array
    assert tensor.layout == torch.sparse_csr and tensor.to_dense().tolist() == ROWS[:2].tolist()
    one_hot = CompositeSpace([VectorSpace(12), VectorSpace(3, sparse=True)])
    batch = next(iter(libsvm(tmp_path, data_specs=(one_hot, ("features", "targets")))))
    assert isinstance(batch[0], np.ndarray) and batch[1].toarray().tolist() == [
        [0, 1, 0],
        [1, 0, 0],
    ]


@pytest.mark.parametrize("arguments", [{}, {"flat": True}, {"layout": "NHWC"}])
def test_mnist_in_any_axes(tmp_path, arguments):
    space = CompositeSpace(
        [Conv2DSpace((3, 4), channels=1, axes=(1, "b", "c", 0), dtype="uint8"), VectorSpace(3)]
    )
    with mnist(tmp_path, data_specs=(space, ("features", "targets")), **arguments) as provider:
        batches = list(provider)
    images = np.concatenate([batch[0] for batch in batches], 1)[:, :5, 0]
    np.testing.assert_array_equal(images, ROWS.reshape(5, 3, 4).transpose(2, 0, 1))
    np.testing.assert_array_equal(batches[1][1], np.eye(3)[CLASSES[2:4]])


def test_images_without_a_channel_axis_and_other_axes():
    grey = ROWS.reshape(5, 3, 4)
    form = Conv2DSpace((3, 4), channels=1, axes=("c", "b", 0, 1)), "features"
    assert next(iter(arrays_of(grey, data_specs=form))).shape == (1, 2, 3, 4)
    deep = ROWS.reshape(5, 2, 1, 3, 1, 2)
    rows = next(iter(arrays_of(deep, data_specs=(VectorSpace(12), "data"))))
    assert rows.tolist() == ROWS[:2].tolist()
    column = next(iter(arrays_of(ROWS[:, 0], data_specs=(VectorSpace(1), "data"))))
    assert column.tolist() == ROWS[:2, :1].tolist()


@pytest.mark.parametrize("space", [VectorSpace(12, dtype="float32"), VectorSpace(12, dtype=None)])
def test_what_needs_no_conversion_is_the_memory_of_the_batch(space):
    provider = ArrayDataProvider(ROWS, batch_size=5, data_specs=(space, "features"))
    rows = next(iter(provider)).array
    base = rows
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert base.nbytes == rows.nbytes and rows.dtype == np.float32


def test_forms_are_bound_once_and_not_with_every_batch(monkeypatch):
    with arrays(None, data_specs=SPECS) as provider:
        next(iter(provider))
        for kind in (Layout, VectorSpace, IndexSpace, Conv2DSpace):
            monkeypatch.setattr(kind, "__init__", lambda *_, **__: pytest.fail("made again"))
        monkeypatch.setattr(SimpleSpace, "_validate", lambda *_: pytest.fail("checked again"))
        for _ in range(2):
            assert len(list(provider)) == 3


def test_arrays_that_are_not_as_they_were_described_are_refused():
    class Changing(Old):
        def getdata(self):
            return super().getdata()[:, : 12 - max(self.at, 0)]

    with MXDataProvider(Changing(), data_specs=(VectorSpace(12), "data")) as provider:
        assert provider.next().shape == (2, 12)
        with pytest.raises(ValueError, match=r"\(2, 10\)"):
            provider.next()


def test_padding_that_is_no_label_belongs_to_no_class():
    for sparse in (False, True):
        space = CompositeSpace([VectorSpace(12), VectorSpace(3, sparse=sparse, dtype="int8")])
        provider = arrays_of(ROWS, label_padding=-1, data_specs=(space, ("features", "targets")))
        *_, last = provider
        targets = last[1].toarray() if sparse else last[1]
        assert last.pad == 1 and targets.tolist() == [[0, 1, 0], [0, 0, 0]]
    form = CompositeSpace([VectorSpace(12), IndexSpace(3, 1)]), ("features", "targets")
    *_, last = arrays_of(ROWS, label_padding=-1, data_specs=form)
    assert last[1].tolist() == [[1], [-1]]
    *_, last = arrays_of(ROWS, label_padding=-1, data_specs=SPECS, device="cpu")
    assert last[1].tolist() == [[0, 1, 0], [0, 0, 0]]


@pytest.mark.parametrize("label", [3, -1, 0.5, np.nan])
@pytest.mark.parametrize("target", [VectorSpace(3), IndexSpace(3, 1)])
def test_labels_that_are_none_are_refused_when_they_come(label, target):
    labels = np.array([0, 1, 2, 1, label], np.float64)
    form = CompositeSpace([VectorSpace(12), target]), ("features", "targets")
    provider = iter(ArrayDataProvider(ROWS, labels, batch_size=2, data_specs=form))
    next(provider), next(provider)
    with pytest.raises(SpecError, match=r"'targets' holds .*expected labels from 0 to 2"):
        next(provider)


def test_several_arrays_are_asked_for_by_name():
    data = {"left": ROWS, "right": ROWS[:, :2]}
    form = CompositeSpace([VectorSpace(2), VectorSpace(12)]), ("right", "left")
    batch = next(iter(NDArrayIter(data, batch_size=2, data_specs=form)))
    assert [part.shape for part in batch] == [(2, 2), (2, 12)]
    with pytest.raises(SpecError, match=r"no source 'features'.*'left', 'right'"):
        NDArrayIter(data, batch_size=2, data_specs=(VectorSpace(12), "features"))


def test_samples_that_roll_over_are_not_padding():
    provider = NDArrayIter(
        ROWS, np.array(CLASSES), 2, last_batch_handle="roll_over", data_specs=SPECS
    )
    counts = [[batch.count_samples() for batch in provider] for _ in range(2)]
    assert counts == [[2, 2], [2, 2, 2]]


@everywhere
@pytest.mark.parametrize(
    ("form", "word"),
    [
        ((VectorSpace(12), "pixels"), "'pixels'.*'features'.*'targets'|'pixels'"),
        ((VectorSpace(11), "features"), r"'features'.*does not fit into VectorSpace\(dim=11"),
        ((Conv2DSpace((2, 2), channels=4), "features"), "does not fit"),
        ((VectorSequenceSpace(12), "features"), "one sequence"),
        ((CompositeSpace([VectorSpace(12)]), "features"), "not the name 'features'"),
        ((VectorSpace(12), ("features", "targets")), "one source"),
        ((NullSpace(), "features"), "NullSpace"),
    ],
)
def test_requests_that_cannot_be_met_are_refused_at_once(make, form, word):
    with pytest.raises(SpecError, match=word):
        make(data_specs=form)
    with pytest.raises(AssertionError):
        make(data_specs=form)


@everywhere
def test_what_is_no_request_is_a_type_error(make):
    for wrong in ("features", (None, "features"), ("features", VectorSpace(12)), 5):
        with pytest.raises(TypeError):
            make(data_specs=wrong)


@pytest.mark.parametrize("make", [arrays, csv, libsvm, records], indirect=True)
def test_a_state_is_resumed_in_another_form(make):
    form = VectorSpace(12, dtype="float32"), "features"
    first, second = make(shuffle=True), make(shuffle=True, data_specs=form)
    run = iter(second)
    next(run)
    first.load_state_dict(second.state_dict())
    for plain, batch in itertools.zip_longest(first, run):
        rows = plain.data[0]
        rows = rows.toarray() if scipy.sparse.issparse(rows) else rows
        if rows.ndim == 4:
            rows = Conv2DSpace((2, 2), channels=3, axes=("b", "c", 0, 1)).np_format_as(
                rows, VectorSpace(12)
            )
        np.testing.assert_array_equal(rows, batch)


# -- the structure of what is asked for is that of what comes -----------------------------------


@everywhere
@pytest.mark.parametrize("device", [None, "cpu"])
def test_a_batch_of_labels_only(make, device):
    provider = make(data_specs=(VectorSpace(3), "targets"), device=device)
    seen = 0
    for batch in provider:
        count = batch.count
        want = np.eye(3)[CLASSES[seen : seen + count]]
        np.testing.assert_array_equal(np.asarray(batch)[:count], want)
        assert isinstance(batch, DataBatch) and batch.data == []
        assert batch.label[0] is batch["targets"] is batch.array and len(batch) == 2
        assert provider.view(batch).inputs is None and len(provider.view(batch).targets) == 2
        seen += count
    assert seen == 5 and provider.batch_size == 2 and provider.provide_data == []
    provider.reset()
    assert provider.iter_next() and provider.getdata() is None
    assert provider.getlabel().shape == (2, 3)
    labels = [np.asarray(labels) for labels in provider.iterator()]
    assert [len(part) for part in labels] == [2, 2, 1] or isinstance(provider, NDArrayIter)
    np.testing.assert_array_equal(np.concatenate(labels)[:5], np.eye(3)[CLASSES])


@everywhere
def test_a_batch_of_nothing(make):
    provider = make(data_specs=(NullSpace(), ""))
    batches = list(provider)
    assert [batch.count_samples() for batch in batches] == [2, 2, 1]
    for batch in batches:
        assert isinstance(batch, DataBatch) and batch.data == batch.label == []
        assert batch.asked is None and provider.view(batch).n_sample == batch.count
    assert provider.provide_data == provider.provide_label == [] and provider.batch_size == 2
    assert list(provider.iterator()) == [None] * 3
    provider = make(data_specs=(CompositeSpace([]), ()))
    batch = next(iter(provider))
    assert batch == () and batch.count == 2 and next(provider.iterator()) == ()


@everywhere
def test_every_door_gives_the_structure_of_the_request(make):
    vector, labels = VectorSpace(12, dtype="float32"), VectorSpace(3)
    for form, shape in (
        ((vector, "features"), (2, 12)),
        ((labels, "targets"), (2, 3)),
        ((CompositeSpace([labels, NullSpace(), vector]), ("targets", "", "data")), None),
        ((CompositeSpace([vector]), ("features",)), None),
        ((NullSpace(), ""), None),
    ):
        provider = make(data_specs=form)
        batch = next(iter(provider))
        form[0].np_validate(batch.asked)
        dataset = DenseDesignMatrix(X=ROWS, y=np.array(CLASSES), y_labels=3)
        sources = tuple(name.replace("data", "features") for name in form[1])
        sources = sources if isinstance(form[1], tuple) else form[1]
        for door, specs in ((make(), form), (dataset, (form[0], sources))):
            other = next(door.iterator("sequential", 2, data_specs=specs, return_tuple=True))
            asked = batch.asked if isinstance(batch.asked, tuple) else (batch.asked,)
            for part, expected in zip(other, asked, strict=True):
                assert (part is None) == (expected is None)
                if part is not None:
                    np.testing.assert_array_equal(part, expected)
        assert shape is None or batch.shape == shape
        with ResizeIter(make(data_specs=form), 3) as around:
            assert type(next(iter(around))) is type(batch)
            assert around.batch_type is around.eltype() is type(batch)


@everywhere
def test_one_space_is_used_as_its_array(make):
    weights = np.arange(24.0).reshape(12, 2)
    for batch in make(data_specs=(VectorSpace(12, dtype="float32"), "features")):
        assert isinstance(batch, DataBatch) and not isinstance(batch, tuple)
        np.testing.assert_array_equal(batch @ weights, batch.data[0] @ weights)
        np.testing.assert_array_equal(weights.T @ batch.T, (batch.data[0] @ weights).T)
        assert batch["features"] is batch.data[0] and batch.pad in (0, 1)


# -- wrappers around batches that have a form already -----------------------------------------


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("wrap", [lambda it, **a: ResizeIter(it, 3, **a), PrefetchingIter])
def test_wrappers_pass_forms_on(wrap, device):
    space = CompositeSpace([SPACE, NullSpace(), SPACE.components[0]])
    inside = arrays_of(IMAGES, data_layout="NHWC", data_specs=(space, (SPECS[1], "", "features")))
    with wrap(inside, device=device) as provider:
        (images, targets), nothing, again = batch = next(iter(provider))
        assert isinstance(batch, SpecBatch) and images is again is batch.data[0]
        assert nothing is None and targets is batch.label[0]
        assert torch.is_tensor(images) == (device is not None)
        np.testing.assert_array_equal(np.asarray(images), expected_rows([0, 1])[0])


@pytest.mark.parametrize("wrap", [lambda it, **a: ResizeIter(it, 3, **a), PrefetchingIter])
def test_wrappers_convert_forms_once_more(wrap):
    with wrap(arrays(None, data_specs=SPECS), data_specs=(VectorSpace(12), "features")) as provider:
        rows = next(iter(provider))
        np.testing.assert_array_equal(rows, ROWS[:2])


def test_forms_side_by_side_are_arrays_by_name():
    left, right = (arrays(None, data_specs=SPECS) for _ in range(2))
    with PrefetchingIter([left, right], [{}, {"features": "right"}], [{}, {"targets": "r"}]) as it:
        batch = next(iter(it))
        assert type(batch) is DataBatch and batch["right"].shape == (3, 2, 2, 2)
    form = CompositeSpace([VectorSpace(12), VectorSpace(3)]), ("right", "targets")
    both = [arrays(None, data_specs=SPECS) for _ in range(2)]
    with PrefetchingIter(
        both, [{}, {"features": "right"}], [{}, {"targets": "r"}], data_specs=form
    ) as it:
        assert [part.shape for part in next(iter(it))] == [(2, 12), (2, 3)]


# -- view(batch) ------------------------------------------------------------------------------


@everywhere
def test_every_batch_can_be_viewed(make):
    provider = make()
    seen = 0
    for batch in provider:
        views = provider.view(batch)
        assert views.n_sample == batch.count_samples() and len(views.inputs) == 2
        assert views.inputs.input is batch.data[0]
        assert isinstance(views.targets, ClassView)
        count = batch.count_samples()
        labels = views.targets.forward_get("b", "long")[:count].tolist()
        assert labels == CLASSES[seen : seen + count]
        assert isinstance(views.inputs, ImageView if batch.data[0].ndim == 4 else DataView)
        if not isinstance(views.inputs, ImageView):
            assert views.inputs.forward_get("bf").shape == (2, 12)
        seen += count


@everywhere
def test_batches_in_a_form_can_be_viewed(make):
    if _is_sparse(make()):
        form = CompositeSpace([VectorSpace(12), VectorSpace(3)]), SPECS[1]
        kind = DataView
    else:
        form, kind = SPECS, ImageView
    for batch in (provider := make(data_specs=form)):
        views = provider.view(batch)
        assert type(views.inputs) is kind and type(views.targets) is DataView
        assert views.targets.forward_get("bf") is batch["targets"], "one-hot rows are no classes"
        assert views.inputs.forward_get("bf").shape == (2, 12)


def test_views_of_other_labels_and_axes(tmp_path):
    form = CompositeSpace([VectorSpace(12), IndexSpace(3, 1)]), SPECS[1]
    provider = arrays(tmp_path, data_specs=form)
    targets = provider.view(next(iter(provider))).targets
    assert isinstance(targets, ClassView) and targets.forward_get("b").tolist() == [1, 0]
    labels = scipy.sparse.csr_matrix(np.eye(5, 4))
    provider = ArrayDataProvider(ROWS, labels, batch_size=2)
    assert type(provider.view(next(iter(provider))).targets) is DataView
    provider = ArrayDataProvider(ROWS.reshape(5, 3, 4), batch_size=2, data_layout="NTC")
    assert isinstance(provider.view(next(iter(provider))).inputs, SequenceView)
    provider = ArrayDataProvider(ROWS.reshape(5, 3, 2, 2, 1), batch_size=2)
    views = provider.view(next(iter(provider)))
    assert views.targets is None and views.inputs.forward_get("bf").shape == (2, 12)


def test_boxes_can_be_asked_for_and_viewed(tmp_path):
    path = tmp_path / "boxes.rec"
    with recordio.RecordWriter(path) as writer:
        for i in range(2):
            header = recordio.IRHeader(0, [2, 5, i, 0.25, 0.25, 0.5, 1.0], i, 0)
            writer.write(recordio.pack_img(header, IMAGES[i].astype(np.uint8), img_fmt=".png"))
    form = CompositeSpace([SPACE.components[0], VectorSpace(11, dtype="float32")]), SPECS[1]
    arguments = {"path_imgrec": path, "data_shape": (3, 2, 2), "batch_size": 2, "verbose": False}
    with (
        ImageDetRecordIter(**arguments) as plain,
        ImageDetRecordIter(**arguments, data_specs=form) as asked,
    ):
        (expected,), (batch,) = plain, asked
        np.testing.assert_array_equal(batch[1], expected.label[0])
        assert asked.view(batch).inputs.view == "chwb"
        ((_, targets),) = asked.iterator("random_uniform", 2, 1, rng=0)
        assert targets.shape == (2, 11)
