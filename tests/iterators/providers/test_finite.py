"""provider.iterator(...): the batches of DenseDesignMatrix.iterator, from every provider."""

import gc
import os
import threading

import numpy as np
import pytest
import scipy.sparse

import recordio
from iterators import (
    ArrayDataProvider,
    CompositeSpace,
    Conv2DSpace,
    CSVIter,
    ImageRecordIter,
    LibSVMIter,
    NDArrayIter,
    NullSpace,
    PrefetchingIter,
    ResizeIter,
    VectorSpace,
)
from iterators.datasets import DenseDesignMatrix
from iterators.spaces.modes import RandomUniformSubsetIterator
from iterators.testing import encode, write_pack

ROWS = np.arange(7 * 12, dtype=np.float32).reshape(7, 12)
LABELS = np.array([1, 0, 2, 2, 1, 0, 1])
DATASET = DenseDesignMatrix(X=ROWS, y=LABELS, y_labels=3)
SPECS = (
    CompositeSpace([VectorSpace(12, dtype="float32"), VectorSpace(3)]),
    ("features", "targets"),
)
MODES = [
    ("sequential", 3, None),
    ("sequential", 3, 2),
    ("sequential", None, 3),
    ("shuffled_sequential", 3, None),
    ("batchwise_shuffled_sequential", 2, None),
    ("random_slice", 3, 4),
    ("random_uniform", 2, 5),
    ("even_sequential", 3, None),
    ("even_shuffled_sequential", 2, None),
    ("even_batchwise_shuffled_sequential", 3, 2),
]


def arrays(folder, **arguments):
    return ArrayDataProvider(ROWS, LABELS, batch_size=4, **arguments)


def ndarray(folder, **arguments):
    return NDArrayIter(ROWS, LABELS, 4, last_batch_handle="discard", **arguments)


def csv(folder, **arguments):
    data, label = folder / "data.csv", folder / "label.csv"
    data.write_text("".join(",".join(map(str, row)) + "\n" for row in ROWS))
    label.write_text("".join(f"{label}\n" for label in LABELS))
    return CSVIter(data_csv=data, label_csv=label, data_shape=(12,), batch_size=4, **arguments)


def libsvm(folder, **arguments):
    path = folder / "data.libsvm"
    rows = (
        " ".join([str(label), *(f"{i}:{x}" for i, x in enumerate(row))])
        for label, row in zip(LABELS, ROWS, strict=True)
    )
    path.write_text("\n".join(rows) + "\n")
    return LibSVMIter(data_libsvm=path, data_shape=(12,), batch_size=4, **arguments)


def records(folder, bad=(), **arguments):
    contents = [encode(row.reshape(2, 2, 3).astype(np.uint8)) for row in ROWS]
    contents = [blob[:16] if i in bad else blob for i, blob in enumerate(contents)]
    path = write_pack(folder / "images.rec", contents, LABELS)
    arguments = {"batch_size": 4, "verbose": False, **arguments}
    return ImageRecordIter(path_imgrec=path, data_shape=(3, 2, 2), **arguments)


everywhere = pytest.mark.parametrize("make", [arrays, ndarray, csv, libsvm, records])


@everywhere
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(("mode", "size", "number"), MODES)
def test_modes_give_what_a_dataset_of_the_same_rows_gives(
    make, mode, size, number, shuffle, tmp_path
):
    drawn = "sequential" not in mode or "shuffled" in mode
    arguments = mode, size, number, 3 if drawn else None, SPECS
    wanted = DATASET.iterator(*arguments)
    with make(tmp_path, shuffle=shuffle) as provider:
        found = provider.iterator(*arguments)
        for name in ("batch_size", "num_batches", "num_examples", "uneven", "stochastic"):
            assert getattr(found, name) == getattr(wanted, name), name
        for batch, expected in zip(found, wanted, strict=True):
            SPECS[0].np_validate(batch)
            for part, array in zip(batch, expected, strict=True):
                np.testing.assert_array_equal(part, array)
        assert next(found, None) is None and next(found, None) is None


@everywhere
def test_without_a_mode_it_is_the_epoch_of_the_provider(make, tmp_path):
    arguments = {} if make is not ndarray else {"dtype": None}
    with make(tmp_path, shuffle=True, **arguments) as first, make(tmp_path, shuffle=True) as second:
        for _ in range(2):
            loop = [(batch, batch.count_samples()) for batch in first]
            parts = list(second.iterator())
            assert len(parts) == (2 if make is ndarray else len(loop))
            for (batch, count), (data, label) in zip(loop, parts, strict=False):
                assert len(label) == count
                np.testing.assert_array_equal(label, batch.label[0][:count])
                here, there = data, batch.data[0][:count]
                if scipy.sparse.issparse(here):
                    here, there = here.toarray(), there.toarray()
                np.testing.assert_array_equal(here, there)


def test_parts_unwrap_as_those_of_a_dataset(tmp_path):
    with arrays(tmp_path) as provider:
        form = VectorSpace(12), "features"
        assert isinstance(next(provider.iterator(data_specs=form)), np.ndarray)
        assert len(next(provider.iterator(data_specs=form, return_tuple=True))) == 1
        form = CompositeSpace([VectorSpace(12)]), ("data",)
        assert isinstance(next(provider.iterator(data_specs=form)), np.ndarray)
        form = CompositeSpace([VectorSpace(3), NullSpace()]), ("targets", "")
        targets, nothing = next(provider.iterator(data_specs=form))
        assert nothing is None and targets.tolist() == np.eye(3)[LABELS[:4]].tolist()
        form = CompositeSpace([VectorSpace(12), VectorSpace(12)]), ("data", "data")
        first, second = next(provider.iterator(data_specs=form))
        assert first is second


def test_its_own_form_is_the_default(tmp_path):
    space = Conv2DSpace((2, 2), channels=3, axes=("c", 0, 1, "b"), dtype="float32")
    with records(tmp_path, data_specs=(space, "features")) as provider:
        shapes = [batch.shape for batch in provider.iterator()]
        assert shapes == [(3, 2, 2, 4), (3, 2, 2, 3)]
    resized = ResizeIter(arrays(None, data_specs=(space, "features")), 3)
    shapes = [batch.shape for batch in resized.iterator()]
    assert shapes == [(3, 2, 2, 4), (3, 2, 2, 3), (3, 2, 2, 4)]


def test_the_generator_of_the_provider_goes_on(tmp_path):
    def order(provider):
        batches = provider.iterator("shuffled_sequential", data_specs=(VectorSpace(12), "data"))
        return np.concatenate(list(batches))[:, 0].tolist()

    with arrays(tmp_path) as provider, arrays(tmp_path) as other:
        first, second = order(provider), order(provider)
        assert first != second and sorted(first) == sorted(second) == ROWS[:, 0].tolist()
        assert order(other) == first


def test_parts_of_a_provider_have_their_own_samples(tmp_path):
    seen = []
    for index in range(2):
        with csv(tmp_path, num_parts=2, part_index=index, shuffle=True) as provider:
            for data, _ in provider.iterator("sequential", 2):
                assert np.all(np.diff(data[:, 0]) > 0)
                seen += data[:, 0].tolist()
    assert sorted(seen) == ROWS[:, 0].tolist()


@everywhere
@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"mode": "backwards"}, "expected one of"),
        ({"mode": "even_sequences", "batch_size": 2}, "sequences of different lengths"),
        ({"batch_size": 0}, "at least 1"),
        ({"mode": "sequential", "batch_size": 3, "num_batches": 4}, "there are 7 examples"),
        ({"mode": "sequential", "rng": 3}, "leave out rng"),
        ({"rng": 3}, "leave out rng"),
        ({"mode": "random_uniform", "batch_size": 3}, "both"),
        ({"data_specs": (VectorSpace(12), "pixels")}, "'pixels'"),
        ({"data_specs": (VectorSpace(11), "features")}, "does not fit"),
    ],
)
def test_wrong_requests(make, arguments, word, tmp_path):
    with make(tmp_path) as provider:
        with pytest.raises(ValueError, match=word):
            provider.iterator(**arguments)
        assert len(list(provider)) == len(provider), "nothing has begun"


@pytest.mark.parametrize("mode", [None, "shuffled_sequential"])
def test_nested_requests_give_nested_tuples(mode):
    """What the constructor accepts, `iterator` accepts as well."""
    x, y = np.arange(12.0).reshape(6, 2), np.arange(6.0)
    f, t = VectorSpace(2), VectorSpace(1)
    specs = (CompositeSpace([CompositeSpace([f, f, f]), t]), (("features",) * 3, "targets"))
    plain = ArrayDataProvider(x, y, batch_size=4)
    asked = ArrayDataProvider(x, y, batch_size=4, data_specs=specs)
    for found in (plain.iterator(mode, 4, data_specs=specs), asked.iterator(mode, 4)):
        for rows, labels in found:
            assert len(rows) == 3
            assert all((part[:, 0] == 2 * labels[:, 0]).all() for part in rows)
    for rows, labels in ResizeIter(plain, 1).iterator(data_specs=specs):
        assert [len(part) for part in (*rows, labels)] == [4] * 4


def test_a_class_of_its_own_as_mode(tmp_path):
    class Twice(RandomUniformSubsetIterator):
        def _epoch(self):
            yield np.array([5, 5])

    with records(tmp_path) as provider:
        (labels,) = provider.iterator(Twice, 2, 1, data_specs=(VectorSpace(1), "targets"))
        assert labels.tolist() == [[0], [0]]


# -- beside the loop of the provider ----------------------------------------------------------


@everywhere
@pytest.mark.parametrize("mode", [None, "sequential", "random_uniform"])
def test_batches_of_any_size(make, mode, tmp_path):
    """A provider's batch_size of 4 is no limit, above or below."""
    drawn = mode == "random_uniform"
    with make(tmp_path) as provider:
        for size, number, lengths in ((7, None, [7]), (5, None, [5, 2]), (100, None, [7])):
            if drawn:
                number, lengths = 2, [size, size]
            found = provider.iterator(mode, size, number, data_specs=SPECS)
            seen = [labels.argmax(1) for _, labels in found]
            assert [len(labels) for labels in seen] == lengths
            assert drawn or np.concatenate(seen).tolist() == LABELS.tolist()
        if not drawn:
            (batch,) = provider.iterator(mode, num_batches=1, data_specs=SPECS)
            np.testing.assert_array_equal(batch[0], ROWS)
            sizes = [len(labels) for _, labels in provider.iterator(mode, num_batches=2)]
            assert sizes == [4, 3]


@everywhere
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_monitor_does_not_touch_the_loop_that_is_under_way(make, shuffle, tmp_path):
    """Training with monitors of other sizes at every batch is training without them."""

    def train(provider, monitor):
        seen = []
        for _ in range(3):
            for batch in provider:
                seen.append((batch.label[0].tolist(), provider.state_dict()))
                monitor(provider)
        return seen

    def watch(provider):
        (labels,) = provider.iterator("sequential", 7, data_specs=(VectorSpace(1), "targets"))
        assert labels.ravel().tolist() == LABELS.tolist()
        watch.left = provider.iterator("shuffled_sequential", 2)
        next(watch.left)

    with make(tmp_path, shuffle=shuffle) as alone, make(tmp_path, shuffle=shuffle) as watched:
        assert train(watched, watch) == train(alone, lambda provider: None)


@everywhere
def test_iterators_run_beside_each_other(make, tmp_path):
    with make(tmp_path, prefetch_buffer=2) as provider:
        wide, narrow = provider.iterator("sequential", 5), provider.iterator("sequential", 2)
        loop = iter(provider)
        assert next(loop).label[0].tolist() == LABELS[:4].tolist()
        assert next(narrow)[1].tolist() == LABELS[:2].tolist()
        assert next(wide)[1].tolist() == LABELS[:5].tolist()
        assert next(narrow)[1].tolist() == LABELS[2:4].tolist()
        provider.reset()
        assert next(wide)[1].tolist() == LABELS[5:].tolist()
        assert [part[1].tolist() for part in narrow] == [LABELS[4:6].tolist(), LABELS[6:].tolist()]
        assert next(wide, None) is None and next(wide, None) is None


@pytest.mark.parametrize("make", [arrays, records])
def test_iterators_count_epochs_of_their_own(make, tmp_path):
    def order(found):
        return np.concatenate([label for _, label in found]).tolist()

    with make(tmp_path, shuffle=True) as provider, make(tmp_path, shuffle=True) as plain:
        epochs = [[x for b in plain for x in b.label[0][: b.count].tolist()] for _ in range(4)]
        assert [order(provider.iterator()) for _ in range(3)] == epochs[:3]
        assert provider.epoch == 0
        provider.set_epoch(1)
        assert [order(provider.iterator()) for _ in range(2)] == epochs[1:3]
        provider.load_state_dict(plain.state_dict())
        assert provider.epoch == 4
        provider.set_epoch(3)
        assert order(provider.iterator()) == epochs[3]


def test_an_iterator_gives_its_threads_back(tmp_path):
    gc.collect()
    before = set(threading.enumerate())

    def started():
        return len(set(threading.enumerate()) - before)

    with records(tmp_path, preprocess_threads=2) as provider:
        provider.next()
        assert started() == 2
        list(provider.iterator())
        assert started() == 2, "when it is through"
        left = provider.iterator()
        next(left)
        assert started() == 4
        del left
        gc.collect()
        assert started() == 2, "when it is dropped"
        left = provider.iterator("random_uniform", 2, 9)
        next(left)
    assert started() == 0, "when the provider is closed"
    for use in (left.__next__, provider.iterator):
        with pytest.raises(ValueError, match="closed"):
            use()


@pytest.mark.parametrize("make", [arrays, records])
def test_a_forked_child_is_told_to_make_a_provider(make, tmp_path):
    with make(tmp_path) as provider:
        child = os.fork()
        if child == 0:
            try:
                provider.iterator()
            except RuntimeError as error:
                os._exit(0 if "after the fork" in str(error) else 2)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert len(list(provider.iterator())) == 2


def test_a_monitor_in_another_thread(tmp_path):
    with records(tmp_path, batch_size=1) as provider:
        seen = []

        def monitor():
            for _ in range(20):
                seen.append([labels.tolist() for _, labels in provider.iterator("sequential", 5)])

        thread = threading.Thread(target=monitor)
        thread.start()
        trained = [[int(b.label[0][0]) for b in provider] for _ in range(20)]
        thread.join()
        assert trained == [LABELS.tolist()] * 20
        assert seen == [[LABELS[:5].tolist(), LABELS[5:].tolist()]] * 20


def test_an_iterator_over_a_cache_uses_and_fills_it(tmp_path):
    with records(tmp_path, cache="ram") as provider:
        for _ in range(2):
            labels = [labels.tolist() for _, labels in provider.iterator("sequential", 7)]
            assert labels == [LABELS.tolist()]
        assert provider.cache_info().hits >= 7
        assert len(list(provider)) == 2


@everywhere
def test_batches_are_not_written_over(make, tmp_path):
    with make(tmp_path, prefetch_buffer=1) as provider:
        for _ in range(3):
            batches = list(provider.iterator("sequential", 1, data_specs=SPECS))
            rows = np.concatenate([features for features, _ in batches])
            np.testing.assert_array_equal(rows, ROWS)


def test_bad_records_are_replaced_or_named(tmp_path):
    with records(tmp_path, bad=(1, 6)) as provider:
        found = provider.iterator("sequential", 3)
        with pytest.raises(recordio.RecordIOError) as caught:
            next(found)
        assert caught.value.record == 1
        assert next(found)[1].tolist() == LABELS[3:6].tolist(), "goes on behind the batch"
    with records(tmp_path, bad=(1, 6), on_error="skip") as provider:
        labels = [label.tolist() for _, label in provider.iterator("sequential", 3)]
        assert labels == [[1, 2, 2], [2, 1, 0], [1]] and len(provider.skipped) == 2


@everywhere
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_between_two_steps_loses_nothing(make, when, tmp_path, monkeypatch):
    with make(tmp_path, prefetch_buffer=2) as provider:
        make_engine, times = provider._make_engine, []

        class Interrupted:
            """The engine, interrupted once while a batch is collected."""

            def __init__(self, *sizes):
                self.engine = make_engine(*sizes)

            def __getattr__(self, name):
                return getattr(self.engine, name)

            def collect(self):
                times.append(0)
                if len(times) == 2:
                    if when == "after":
                        self.engine.collect()
                    raise KeyboardInterrupt
                return self.engine.collect()

        monkeypatch.setattr(provider, "_make_engine", Interrupted)
        found = provider.iterator("sequential", 2)
        labels = [next(found)[1].tolist()]
        with pytest.raises(KeyboardInterrupt):
            next(found)
        labels += [label.tolist() for _, label in found]
        assert sum(labels, []) == LABELS.tolist()
        monkeypatch.undo()


def test_threads_share_an_iterator(tmp_path):
    with records(tmp_path) as provider:
        found, seen = provider.iterator("sequential", 1), []

        def work():
            seen.extend(int(label[0]) for _, label in found)

        threads = [threading.Thread(target=work) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert sorted(seen) == sorted(LABELS.tolist())


def test_an_iterator_keeps_its_provider_alive_and_dies_with_it(tmp_path):
    found = records(tmp_path).iterator("sequential", 2)
    gc.collect()
    assert len(list(found)) == 4
    with records(tmp_path) as provider:
        found = provider.iterator("sequential", 2)
    with pytest.raises(ValueError, match="closed"):
        next(found)


def test_an_empty_part_has_no_batches(tmp_path):
    with csv(tmp_path, num_parts=9, part_index=8) as provider:
        found = provider.iterator("sequential", 2)
        assert list(found) == [] and found.num_batches == 0


# -- providers with an order of their own -----------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda it: ResizeIter(it, 2), PrefetchingIter])
def test_wrappers_have_their_own_order(wrap):
    with wrap(arrays(None)) as provider:
        for mode in (None, "sequential"):
            sizes = [len(features) for features, _ in provider.iterator(mode, 4, data_specs=SPECS)]
            assert sizes == [4, 3]
        found = provider.iterator("even_sequential", data_specs=SPECS)
        assert [len(features) for features, _ in found] == [4] and not found.uneven
        found = provider.iterator(num_batches=1)
        assert found.num_batches == 1 and found.batch_size == 4 and not found.stochastic
        assert [part.shape for part in next(found)] == [(4, 12), (4,)]
        assert next(found, None) is None
        for arguments, word in (
            ({"mode": "shuffled_sequential"}, "'sequential' or 'even_sequential'"),
            ({"batch_size": 3}, "have 4 samples"),
            ({"rng": 1}, "leave out rng"),
            ({"num_batches": 0}, "at least 1"),
        ):
            with pytest.raises(ValueError, match=word):
                provider.iterator(**arguments)


@pytest.mark.parametrize("device", [None, "cpu"])
def test_short_batches_of_sparse_rows(device, tmp_path):
    wanted = [[4, 12], [3, 12], [4, 12]]
    for form in (None, (VectorSpace(12, sparse=True), "features"), (VectorSpace(12), "features")):
        provider = libsvm(tmp_path, device=device)
        found = list(ResizeIter(provider, 3).iterator(data_specs=form))
        batches = [batch[0] if form is None else batch for batch in found]
        assert [list(batch.shape) for batch in batches] == wanted
        dense = batches[1]
        dense = dense.to_dense() if hasattr(dense, "to_dense") else dense
        dense = dense.toarray() if scipy.sparse.issparse(dense) else dense
        np.testing.assert_array_equal(np.asarray(dense), ROWS[4:])
        sizes = [list(parts[0].shape) for parts in provider.iterator("sequential", 3)]
        assert sizes == [[3, 12], [3, 12], [1, 12]]
