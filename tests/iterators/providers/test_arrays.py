"""`ArrayDataProvider` and `NDArrayIter`: batches, parts and last batches of arrays in memory."""

import gc
import itertools
import multiprocessing
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iterators import ArrayDataProvider, DataBatch, NDArrayIter
from iterators.core.dtypes import array_over
from iterators.testing import same


def epoch_of(provider):
    return [
        ([a.copy() for a in b.data], [a.copy() for a in b.label], b.index.tolist(), b.pad, b.count)
        for b in provider
    ]


def valid(batches):
    return [row for batch in batches for row in batch[2][: batch[4]]]


# -- ArrayDataProvider ---------------------------------------------------------------------------


@settings(deadline=None)
@given(st.data())
def test_every_sample_once_and_the_tail_padded_with_the_constants(data):
    size = data.draw(st.integers(1, 40))
    batch_size = data.draw(st.integers(1, size))
    shuffle = data.draw(st.booleans())
    a = np.arange(size * 3, dtype=np.float32).reshape(size, 3)
    b = np.arange(size)
    with ArrayDataProvider(
        a, b, batch_size=batch_size, shuffle=shuffle, data_padding=-1.5, label_padding=-7
    ) as provider:
        assert len(provider) == -(-size // batch_size)
        assert provider.num_samples == size
        for _ in range(2):
            batches = epoch_of(provider)
            assert len(batches) == len(provider)
            assert sorted(valid(batches)) == list(range(size))
            for (x,), (y,), index, pad, count in batches:
                assert (len(x), len(y), count) == (batch_size, batch_size, batch_size - pad)
                assert np.array_equal(x[:count], a[index[:count]])
                assert np.array_equal(y[:count], b[index[:count]])
                assert (x[count:] == -1.5).all()
                assert (y[count:] == -7).all()
            assert [batch[3] for batch in batches[:-1]] == [0] * (len(batches) - 1)


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_parts_are_disjoint_and_together_the_whole(data):
    size, parts = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 7))
    shuffle, even = data.draw(st.booleans()), data.draw(st.booleans())
    a = np.arange(size)
    seen, lengths = [], []
    for part in range(parts):
        with ArrayDataProvider(
            a, batch_size=1, shuffle=shuffle, num_parts=parts, part_index=part, even=even, epoch=3
        ) as provider:
            rows = valid(epoch_of(provider))
            lengths.append(len(rows))
            assert len(rows) == provider.num_samples == len(provider)
            seen += rows
    assert set(seen) == set(range(size))
    if even:
        assert len(set(lengths)) == 1
    else:
        assert len(seen) == size
        if not shuffle:
            assert seen == sorted(seen)


@pytest.mark.parametrize("handle", ["pad", "discard", "roll_over"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_the_last_batch_is_that_of_ndarrayiter_if_asked(handle, shuffle):
    keywords = {"batch_size": 4, "shuffle": shuffle, "seed": 3, "last_batch_handle": handle}
    data, label = np.arange(22, dtype=np.float32).reshape(11, 2), np.arange(11, dtype=np.float32)
    more = {"round_batch": True} if handle == "pad" else {}
    with (
        NDArrayIter(data, label, **keywords) as wanted,
        ArrayDataProvider(data, label, **keywords, **more) as provider,
    ):
        for _ in range(4):
            assert len(provider) == len(wanted)
            assert same(epoch_of(provider), epoch_of(wanted))
        provider.reset()
        provider.hard_reset()
        wanted.reset()
        wanted.hard_reset()
        assert same(epoch_of(provider), epoch_of(wanted))


def test_what_fills_the_last_batch_is_chosen_once():
    def make(**more):
        return ArrayDataProvider(np.arange(5), **{"batch_size": 2} | more)

    for wrong, text in (
        ({"round_batch": True, "last_batch_handle": "discard"}, "round_batch=True has no effect"),
        ({"round_batch": True, "data_padding": 3}, "data_padding=3 has no effect"),
        ({"last_batch_handle": "roll_over", "label_padding": 1}, "label_padding=1 has no effect"),
        ({"last_batch_handle": "roll_over", "num_parts": 2}, "parts cannot agree"),
        ({"last_batch_handle": "wrap"}, "last_batch_handle"),
    ):
        with pytest.raises(ValueError, match=text):
            make(**wrong)
    states = {}
    for name, more in (
        ("constants", {}), ("round", {"round_batch": True}),
        ("drop", {"last_batch_handle": "discard"}), ("roll", {"last_batch_handle": "roll_over"}),
    ):  # fmt: skip
        states[name] = make(**more).state_dict()
        for other, state in states.items():
            if other == name:
                make(**more).load_state_dict(state)
            else:
                with pytest.raises(ValueError, match="the state was saved with"):
                    make(**more).load_state_dict(state)
    assert "last_batch_handle" not in states["constants"]["settings"], "as in older states"
    with make(last_batch_handle="roll_over", batch_size=0) as provider:
        assert [batch.data[0].tolist() for batch in provider] == [list(range(5))]


def test_batch_size_zero_takes_everything():
    (batch,) = ArrayDataProvider(np.arange(7.0))
    assert batch.data[0].tolist() == list(range(7))
    (batch,) = ArrayDataProvider(np.arange(7.0), num_parts=2, part_index=1)
    assert batch.data[0].tolist() == [4, 5, 6]
    assert list(ArrayDataProvider(np.arange(2), num_parts=5, part_index=4)) == []


def test_a_batch_larger_than_the_data_is_refused():
    with pytest.raises(ValueError, match="batch_size=8: there are only 7 samples"):
        ArrayDataProvider(np.arange(7), batch_size=8)


@pytest.mark.parametrize(
    ("data", "label", "names"),
    [
        (np.zeros(3), None, (["data"], [])),
        (np.zeros(3), np.zeros(3), (["data"], ["softmax_label"])),
        (("x", np.zeros(3)), ("y", np.zeros(3)), (["x"], ["y"])),
        ([("z", np.zeros(3)), ("a", np.zeros(3))], [], (["z", "a"], [])),
        ({"z": np.zeros(3), "a": np.zeros(3)}, {"k": np.zeros(3)}, (["z", "a"], ["k"])),
        ((("z", np.zeros(3)), ("a", np.zeros(3))), None, (["z", "a"], [])),
    ],
)
def test_forms_of_arrays_and_their_names(data, label, names):
    provider = ArrayDataProvider(data, label, batch_size=2)
    assert (
        [d.name for d in provider.provide_data],
        [d.name for d in provider.provide_label],
    ) == names
    batch = provider.next()
    for name in names[0] + names[1]:
        assert batch[name].shape == (2,)
    with pytest.raises(KeyError, match="no array named 'other'"):
        batch["other"]


DTYPES = ["float16", "float32", "float64", "int8", "uint8", "int32", "uint64", "bool", ">f4", ">i2"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wanted", [None, "float32", "int64"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 5), (0,)])
def test_types_and_shapes(dtype, wanted, shape):
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2 if dtype == "bool" else 100, (9, *shape)).astype(dtype)
    with ArrayDataProvider(a, batch_size=4, dtype=wanted, shuffle=True) as provider:
        desc = provider.provide_data[0]
        expected = np.dtype(wanted or dtype).newbyteorder("=")
        assert (desc.shape, desc.dtype) == ((4, *shape), expected)
        for batch in provider:
            assert batch.data[0].dtype == expected
            assert batch.data[0].shape == desc.shape
            rows = batch.index[: batch.count].astype(np.int64)
            assert np.array_equal(batch.data[0][: batch.count], a[rows].astype(expected))


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[::2],
        lambda a: a[::-1],
        lambda a: a[:, ::2],
        lambda a: a[:, 1:],
        np.asfortranarray,
        lambda a: a.transpose(1, 0, 2),
    ],
)
def test_arrays_that_are_not_contiguous(view):
    a = view(np.arange(8 * 6 * 4.0).reshape(8, 6, 4))
    with ArrayDataProvider(a, batch_size=3, shuffle=True) as provider:
        for batch in provider:
            rows = batch.index[: batch.count].astype(np.int64)
            assert np.array_equal(batch.data[0][: batch.count], a[rows])


@pytest.mark.parametrize("big", [False, True])
def test_arrays_mapped_from_a_file(tmp_path, big):
    a = np.random.default_rng(0).standard_normal((50, 40_000 if big else 5), np.float32)
    np.save(tmp_path / "a.npy", a)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    with ArrayDataProvider(mapped, batch_size=8, shuffle=True) as provider:
        for batch in provider:
            rows = batch.index[: batch.count].astype(np.int64)
            assert np.array_equal(batch.data[0][: batch.count], a[rows])
            batch.data[0][:] = 0  # a batch can be written to; the file cannot


def test_torch_in_and_out():
    torch = pytest.importorskip("torch")
    a = torch.arange(12.0, requires_grad=True).reshape(6, 2)
    with ArrayDataProvider(a, torch.arange(6), batch_size=4, device="cpu") as provider:
        first, last = provider
    assert isinstance(first.data[0], torch.Tensor)
    assert first.label[0].dtype == torch.int64
    assert torch.equal(last.data[0], torch.tensor([[8.0, 9], [10, 11], [0, 0], [0, 0]]))


@pytest.mark.parametrize("kind", ["csr_matrix", "csr_array", "coo_array"])
def test_sparse_matrices(kind):
    sparse = pytest.importorskip("scipy.sparse")
    dense = np.random.default_rng(0).integers(0, 2, (7, 5)).astype(np.float32)
    with ArrayDataProvider(getattr(sparse, kind)(dense), batch_size=3, shuffle=True) as provider:
        for batch in provider:
            got = batch.data[0].toarray()
            assert got.shape == (3, 5)
            assert np.array_equal(got[: batch.count], dense[batch.index[: batch.count].astype(int)])
            assert not got[batch.count :].any()


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (
            {"data": np.zeros((3, 2)), "label": np.zeros(4)},
            ValueError,
            "softmax_label has 4 samples",
        ),
        ({"data": np.zeros((0, 2))}, ValueError, "no samples"),
        ({"data": None}, ValueError, "no data array"),
        ({"data": np.float32(3)}, ValueError, "at least one axis"),
        ({"data": np.array(["a", "b"])}, TypeError, "real numbers"),
        ({"data": np.array([1j])}, TypeError, "real numbers"),
        ({"data": [[1.0, 2.0]]}, TypeError, "pairs"),
        ({"data": [(3, np.zeros(3))]}, TypeError, "must be a string"),
        ({"data": [("a", np.zeros(3)), ("a", np.zeros(3))]}, ValueError, "two arrays called 'a'"),
        ({"data": np.zeros(3), "batch_size": -1}, ValueError, "batch_size=-1"),
        ({"data": np.zeros(3), "shufle": True}, TypeError, "did you mean 'shuffle'"),
        (
            {"data": np.zeros(3, np.uint8), "data_padding": -1},
            ValueError,
            "cannot hold the padding -1",
        ),
        (
            {"data": np.zeros(3, int), "data_padding": 0.5},
            ValueError,
            "cannot hold the padding 0.5",
        ),
        ({"data": np.zeros(3), "part_index": 1}, ValueError, "part_index=1"),
        ({"data": np.zeros(3), "prefetch_buffer": 0}, ValueError, "prefetch_buffer=0"),
        ({"data": np.zeros(3), "on_error": "ignore"}, ValueError, "on_error='ignore'"),
        ({"data": np.zeros((3, 2)), "layout": "NCHW"}, ValueError, "has the axes 'NC'"),
        ({"data": np.zeros((3, 2)), "layout": "NN"}, ValueError, "has the axes 'NC'"),
        ({"data": np.zeros((3, 2, 1)), "layout": "NTC"}, ValueError, "data_layout gives them"),
        ({"data": np.zeros((3, 2)), "data_layout": "NHC"}, ValueError, "needs 2 different"),
        ({"data": np.zeros((3, 2)), "data_layout": "CN"}, ValueError, "first being N"),
        ({"data": np.zeros((3, 2)), "data_layout": "NN"}, ValueError, "different letters"),
        ({"data": np.zeros((3, 2)), "error_budget": 1}, ValueError, "needs on_error='skip'"),
        ({"data": np.zeros(3), "device": "nowhere"}, ValueError, "nowhere"),
    ],
)
def test_bad_parameters_are_refused_by_name(arguments, error, text):
    with pytest.raises(error, match=text):
        ArrayDataProvider(**arguments)


# -- states and positions ------------------------------------------------------------------------


def providers():
    a, b = np.arange(22.0).reshape(11, 2), np.arange(11)
    yield "plain", lambda **k: ArrayDataProvider(a, b, batch_size=3, **k)
    yield "shuffled", lambda **k: ArrayDataProvider(a, b, batch_size=3, shuffle=True, seed=5, **k)
    yield (
        "even",
        lambda **k: ArrayDataProvider(
            a, b, batch_size=3, num_parts=2, part_index=1, even=True, shuffle=True, **k
        ),
    )
    for handle in ("pad", "discard", "roll_over"):
        yield (
            handle,
            lambda handle=handle, **k: NDArrayIter(
                a, b, 4, shuffle=True, last_batch_handle=handle, **k
            ),
        )
    yield "roll_over_big", lambda **k: NDArrayIter(a, b, 25, last_batch_handle="roll_over", **k)


@pytest.mark.parametrize(("name", "make"), list(providers()), ids=[name for name, _ in providers()])
def test_a_run_resumed_at_any_batch_is_the_run(name, make):
    with make() as provider:
        whole, states = [], [provider.state_dict()]
        for _ in range(5):
            for batch in provider:
                whole.append((batch.data[0].copy(), batch.index.tolist()))
                states.append(provider.state_dict())
    for done, state in enumerate(states):
        with make(prefetch_buffer=1) as provider:
            provider.load_state_dict(state)
            rest = []
            while len(rest) < len(whole) - done:
                rest += [(batch.data[0].copy(), batch.index.tolist()) for batch in provider]
        for (x, i), (y, j) in zip(rest, whole[done:], strict=False):
            assert i == j
            assert np.array_equal(x, y)


def test_a_shuffled_run_goes_on_with_another_number_of_parts():
    a = np.arange(60)

    def part(parts, index):
        return ArrayDataProvider(a, batch_size=5, shuffle=True, num_parts=parts, part_index=index)

    seen = []
    for index in range(3):
        provider = part(3, index)
        seen += provider.next().index.tolist() + provider.next().index.tolist()
        state = provider.state_dict()
    for index in range(2):
        provider = part(2, index)
        provider.load_state_dict(state)
        seen += [row for batch in provider for row in batch.index[: batch.count].tolist()]
    assert sorted(seen) == list(range(60))


def test_a_state_of_other_data_is_refused():
    state = ArrayDataProvider(np.zeros((5, 2)), batch_size=2).state_dict()
    with pytest.raises(ValueError, match="rows 0 to 5"):
        ArrayDataProvider(np.zeros((6, 2)), batch_size=2).load_state_dict(state)
    with pytest.raises(ValueError, match="batch_size"):
        ArrayDataProvider(np.zeros((5, 2)), batch_size=3).load_state_dict(state)


def test_epochs_differ_when_shuffled_and_repeat_with_the_seed():
    a = np.arange(50)
    runs = []
    for seed in (0, 0, 1):
        with ArrayDataProvider(a, batch_size=7, shuffle=True, seed=seed) as provider:
            runs.append([epoch_of(provider), epoch_of(provider)])
    assert same(runs[0][0], runs[1][0])
    assert same(runs[0][1], runs[1][1])
    assert valid(runs[0][0]) != valid(runs[0][1])
    assert valid(runs[0][0]) != valid(runs[2][0])


def test_nested_loops_are_refused():
    provider = ArrayDataProvider(np.arange(6), batch_size=2)
    outer = iter(provider)
    next(outer)
    assert len(list(provider)) == 3
    with pytest.raises(RuntimeError, match="another loop"):
        next(outer)


def test_reset_and_leaving_early():
    provider = ArrayDataProvider(np.arange(6), batch_size=2, shuffle=True)
    provider.reset()
    first = provider.next().index.tolist()
    assert provider.epoch == 0
    provider.reset()
    assert provider.epoch == 1
    assert len(epoch_of(provider)) == 3
    again = ArrayDataProvider(np.arange(6), batch_size=2, shuffle=True)
    assert next(iter(again)).index.tolist() == first
    assert len(list(again)) == 3
    assert again.epoch == 1


# -- NDArrayIter ---------------------------------------------------------------------------------


def rows_and_pads(provider, epochs):
    return [[(b.data[0].ravel().tolist(), b.pad) for b in provider] for _ in range(epochs)]


def test_pad_fills_from_the_start_as_often_as_needed():
    assert (
        rows_and_pads(NDArrayIter(np.arange(5), batch_size=3), 2)
        == [[([0, 1, 2], 0), ([3, 4, 0], 1)]] * 2
    )
    assert rows_and_pads(NDArrayIter(np.arange(3), batch_size=8), 1) == [
        [([0, 1, 2, 0, 1, 2, 0, 1], 5)]
    ]


def test_discard_drops_the_tail():
    iterator = NDArrayIter(np.arange(5), batch_size=3, last_batch_handle="discard")
    assert rows_and_pads(iterator, 2) == [[([0, 1, 2], 0)]] * 2
    with pytest.raises(ValueError, match="batch_size=8: there are only 5 samples"):
        NDArrayIter(np.arange(5), batch_size=8, last_batch_handle="discard")


def test_roll_over_carries_the_tail_and_says_so_in_pad():
    iterator = NDArrayIter(np.arange(5), batch_size=3, last_batch_handle="roll_over")
    assert rows_and_pads(iterator, 4) == [
        [([0, 1, 2], 0)],
        [([3, 4, 0], 2), ([1, 2, 3], 0)],
        [([4, 0, 1], 1), ([2, 3, 4], 0)],
        [([0, 1, 2], 0)],
    ]
    iterator.reset()
    batch = iterator.next()
    assert (batch.pad, batch.count, batch.count_samples()) == (2, 3, 3)
    assert isinstance(batch, DataBatch)


@pytest.mark.parametrize(
    ("handle", "epochs"),
    [
        ("pad", [[0, 1, 2, 3, 4, 0], [0, 1, 2, 3, 4, 0]]),
        ("discard", [[0, 1, 2], [0, 1, 2]]),
        ("roll_over", [[0, 1, 2], [3, 4, 0, 1, 2, 3]]),
    ],
)
def test_sparse_rows_go_with_every_handle(handle, epochs):
    sparse = pytest.importorskip("scipy.sparse")
    rows = sparse.csr_matrix(np.eye(5))
    with NDArrayIter(rows, batch_size=3, last_batch_handle=handle) as iterator:
        for wanted in epochs:
            batches = [batch.data[0].toarray() for batch in iterator]
            np.testing.assert_array_equal(np.concatenate(batches), np.eye(5)[wanted])


def test_an_epoch_is_over_when_its_last_full_batch_has_been_delivered():
    for asked_again in (False, True):
        iterator = NDArrayIter(np.arange(5), batch_size=3, last_batch_handle="roll_over")
        iterator.next()
        assert not asked_again or not iterator.iter_next()
        iterator.reset()
        assert iterator.next().data[0].tolist() == [3, 4, 0]


def test_a_loop_after_next_is_a_new_epoch_and_a_kept_loop_goes_on():
    iterator = NDArrayIter(np.arange(6), batch_size=2)
    iterator.next()
    assert len(list(iterator)) == 3 and iterator.epoch == 1
    loop = iter(iterator)
    assert next(loop).data[0].tolist() == [0, 1]
    assert [batch.data[0].tolist() for batch in loop] == [[2, 3], [4, 5]]


def test_roll_over_of_batches_larger_than_the_data():
    iterator = NDArrayIter(np.arange(2), batch_size=5, last_batch_handle="roll_over")
    assert rows_and_pads(iterator, 6) == [
        [],
        [],
        [([0, 1, 0, 1, 0], 4)],
        [],
        [([1, 0, 1, 0, 1], 3)],
        [],
    ]
    iterator = NDArrayIter(np.arange(5), batch_size=8, last_batch_handle="roll_over")
    iterator.reset()
    assert rows_and_pads(iterator, 2) == [[], [([0, 1, 2, 3, 4, 0, 1, 2], 5)]]


def test_roll_over_forgets_the_tail_when_an_epoch_is_not_completed():
    iterator = NDArrayIter(np.arange(5), batch_size=2, last_batch_handle="roll_over")
    iterator.next()
    iterator.reset()
    assert rows_and_pads(iterator, 1) == [[([0, 1], 0), ([2, 3], 0)]]
    iterator.reset()
    iterator.reset()
    assert iterator.next().data[0].tolist() == [4, 0]
    iterator.hard_reset()
    assert iterator.next().data[0].tolist() == [0, 1]


def test_hard_reset_drops_what_was_carried():
    iterator = NDArrayIter(np.arange(5), batch_size=2, last_batch_handle="roll_over")
    list(iterator)
    iterator.hard_reset()
    assert iterator.next().data[0].tolist() == [0, 1]


def test_roll_over_shuffled_has_every_sample_of_an_epoch_once():
    iterator = NDArrayIter(np.arange(7), batch_size=3, shuffle=True, last_batch_handle="roll_over")
    stream = [row for _ in range(9) for batch in iterator for row in batch.index.tolist()]
    for start in range(0, len(stream) - 6, 7):
        assert sorted(stream[start : start + 7]) == list(range(7))


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (np.zeros(3), ["data"]),
        ([np.zeros(3)], ["data"]),
        ([np.zeros(3), np.zeros(3)], ["_0_data", "_1_data"]),
        ({"b": np.zeros(3), "a": [1, 2, 3]}, ["a", "b"]),
    ],
)
def test_names_of_ndarrayiter(data, names):
    assert [desc.name for desc in NDArrayIter(data).provide_data] == names
    assert NDArrayIter(data).provide_label == []
    assert NDArrayIter(data).next().label == []
    label = [desc.name for desc in NDArrayIter(np.zeros(3), data).provide_label]
    assert label == [name.replace("data", "softmax_label") for name in names]


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8", "bool", "float16"])
def test_everything_becomes_float32_unless_asked(dtype):
    a = np.array([0, 1, 1], dtype)
    iterator = NDArrayIter(a)
    assert iterator.provide_data[0].dtype == np.float32
    assert iterator.next().data[0].dtype == np.float32
    assert NDArrayIter(a, dtype=None).next().data[0].dtype == dtype
    assert iterator.provide_data[0].layout == "NCHW"
    assert iterator.num_data == 3


def test_idx_is_the_order_of_the_running_epoch():
    iterator = NDArrayIter(np.arange(7), batch_size=2, shuffle=True, last_batch_handle="pad")
    for _ in range(2):
        order = iterator.idx
        taken = np.concatenate([batch.index[: batch.count] for batch in iterator])
        assert order.tolist() == taken.tolist()
        assert iterator.idx.tolist() == order.tolist()
        iterator.reset()


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"last_batch_handle": "rollover"}, ValueError, "last_batch_handle='rollover'"),
        ({"batch_size": 0}, ValueError, "batch_size=0"),
        ({"label": np.zeros(4)}, ValueError, "softmax_label has 4 samples"),
        ({"last_batch": "pad"}, TypeError, "did you mean 'last_batch_handle'"),
        ({"last_batch_handle": "roll_over", "num_parts": 2}, ValueError, "num_parts"),
    ],
)
def test_bad_parameters_of_ndarrayiter(arguments, error, text):
    with pytest.raises(error, match=text):
        NDArrayIter(np.zeros(3), **arguments)


# -- processes, threads, ends --------------------------------------------------------------------

BIG = np.zeros((40, 50_000), np.float32)  # batches that are worth threads


def test_no_batch_that_is_held_is_overwritten():
    a = np.random.default_rng(0).standard_normal((40, 5_000), np.float32)
    for array in (a, np.tile(a, 12)):
        with ArrayDataProvider(array, batch_size=7, shuffle=True, prefetch_buffer=2) as provider:
            held = [(batch, batch.data[0].copy()) for _ in range(4) for batch in provider]
        assert all(np.array_equal(batch.data[0], copy) for batch, copy in held)
        assert len({batch.data[0].ctypes.data for batch, _ in held}) == len(held)


def test_memory_is_used_again_when_batches_are_dropped():
    with ArrayDataProvider(BIG, batch_size=4, prefetch_buffer=2) as provider:
        addresses = {batch.data[0].ctypes.data for _ in range(5) for batch in provider}
    assert len(addresses) <= 8


def test_dropping_a_provider_ends_its_threads(new_threads):
    dropped = [ArrayDataProvider(BIG, batch_size=8) for _ in range(5)]
    for provider in dropped:
        provider.next()
    assert len(new_threads()) == 10
    del provider
    dropped.clear()
    gc.collect()
    assert not new_threads()


def test_a_closed_provider_says_so():
    provider = ArrayDataProvider(BIG, batch_size=8)
    batch = provider.next()
    provider.close()
    provider.close()
    with pytest.raises(ValueError, match="closed"):
        provider.next()
    assert batch.data[0].shape == (8, 50_000)


def use_in_child(provider, results):
    try:
        provider.next()
    except RuntimeError as error:
        results.put(str(error))
    provider.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_is_told_and_the_parent_goes_on():
    with ArrayDataProvider(BIG, batch_size=8) as provider:
        provider.next()
        context = multiprocessing.get_context("fork")
        results = context.Queue()
        child = context.Process(target=use_in_child, args=(provider, results))
        child.start()
        assert "process that created it" in results.get(timeout=30)
        child.join(30)
        assert child.exitcode == 0
        assert provider.next().index[0] == 8


def test_stats_count_what_was_delivered():
    with ArrayDataProvider(np.zeros(10), batch_size=4) as provider:
        list(provider)
        stats = provider.stats()
    assert stats["samples"] == 10
    assert stats["batches"] >= 3


# -- interrupts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("handle", ["pad", "discard", "roll_over"])
@pytest.mark.parametrize("name", ["submit", "collect"])
@pytest.mark.parametrize("when", ["before", "behind"])
@pytest.mark.parametrize("turn", [1, 2, 5])
def test_an_interrupt_at_any_step_costs_no_batch(monkeypatch, handle, name, when, turn):
    def run(interrupts, prepare):
        found = []
        with NDArrayIter(
            np.arange(11), batch_size=4, shuffle=True, last_batch_handle=handle, prefetch_buffer=2
        ) as provider:
            prepare(provider, interrupts)
            while len(found) < 20:
                try:
                    found.append(provider.next().data[0].tolist())
                except StopIteration:
                    provider.reset()
                except KeyboardInterrupt:
                    interrupts.append(len(found))
        return found

    def interrupting(provider, interrupts):
        step, calls = getattr(provider._engine, name), []

        def interrupted(*arguments):
            calls.append(1)
            if len(calls) == turn and when == "before":
                raise KeyboardInterrupt
            result = step(*arguments)
            if len(calls) == turn:
                raise KeyboardInterrupt
            return result

        monkeypatch.setattr(provider._engine, name, interrupted)

    interrupts = []
    wanted = run([], lambda provider, _: None)
    assert run(interrupts, interrupting) == wanted
    assert len(interrupts) == 1


def test_rolled_over_samples_survive_a_state_at_every_batch():
    def provider():
        return NDArrayIter(np.arange(7), batch_size=5, last_batch_handle="roll_over", shuffle=True)

    def batches(source, count):
        found = []
        while len(found) < count:
            try:
                found.append(source.next().data[0].tolist())
            except StopIteration:
                source.reset()
        return found

    with provider() as whole:
        wanted = batches(whole, 12)
    for taken in range(12):
        with provider() as first, provider() as second:
            assert batches(first, taken) == wanted[:taken]
            second.load_state_dict(first.state_dict())
            assert batches(second, 12 - taken) == wanted[taken:]


def transposed(batch, own, wanted):
    return batch.transpose([own.index(axis) for axis in wanted])


@pytest.mark.parametrize("dtype", [None, "uint8", "float64"])
@pytest.mark.parametrize(
    ("own", "wanted", "named"),
    [
        ("NCHW", "NHWC", False),
        ("NCHW", "CHWN", False),
        ("NHWC", "NCHW", True),
        ("NHWC", "NHWC", True),
        ("NTC", "TNC", True),
        ("NC", "CN", False),
        ("N", "N", False),
    ],
)
def test_batches_have_the_layout_that_was_asked_for(own, wanted, named, dtype):
    shape = (11, 2, 3, 4)[: len(own)]
    data = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    names = {"data_layout": own} if named else {}
    provider = ArrayDataProvider(
        data,
        np.arange(11),
        batch_size=4,
        layout=wanted,
        dtype=dtype,
        data_padding=7,
        shuffle=True,
        **names,
    )
    with provider:
        (desc,) = provider.provide_data
        assert desc.layout == wanted
        assert (provider.batch_size, len(provider)) == (4, 3)
        for batch in provider:
            want = np.full((4, *shape[1:]), 7, desc.dtype)
            want[: batch.count] = data[batch.index.astype(int)[: batch.count]]
            assert np.array_equal(batch.data[0], transposed(want, own, wanted))
            assert batch.data[0].shape == desc.shape
            assert batch.data[0].flags.c_contiguous
            assert batch.label[0].shape == (4,)


def test_layout_of_ndarray_iter_is_a_description_unless_data_layout_says_what_there_is():
    data = np.arange(48, dtype=np.float32).reshape(2, 2, 3, 4)
    (batch,) = NDArrayIter(data, batch_size=2, layout="NHWC")
    assert np.array_equal(batch.data[0], data)
    (batch,) = NDArrayIter(data, batch_size=2, data_layout="NHWC")
    assert np.array_equal(batch.data[0], transposed(data, "NHWC", "NCHW"))


def test_sparse_batches_have_one_layout():
    matrix = pytest.importorskip("scipy.sparse").csr_array(np.eye(3))
    assert len(list(ArrayDataProvider(matrix, batch_size=2, layout="NC"))) == 2
    with pytest.raises(ValueError, match="sparse"):
        ArrayDataProvider(matrix, batch_size=2, layout="CN")


def test_after_the_last_epoch_comes_the_first():
    last = (1 << 32) - 1
    numbers = np.arange(10.0)
    with ArrayDataProvider(numbers, batch_size=4, shuffle=True, epoch=last) as provider:
        epochs = []
        for _ in range(2):
            batches = [batch.data[0][: 4 - batch.pad] for batch in provider]
            epochs.append(provider.epoch)
            assert sorted(np.concatenate(batches)) == numbers.tolist()
    assert epochs == [last, 0]


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("stored", ["float32", "bfloat16"])
def test_batches_of_bfloat16(stored, device):
    torch = pytest.importorskip("torch")
    kind = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    data = np.linspace(-3, 3, 7 * 4, dtype="f4").reshape(7, 4)
    wanted = data.astype(kind)
    given = data if stored == "float32" else wanted
    keywords = {"batch_size": 3, "device": device}
    with ArrayDataProvider(given, dtype=torch.bfloat16, data_padding=2, **keywords) as provider:
        assert provider.provide_data[0].dtype == kind
        batches = [batch.data[0] for batch in provider]
        state = provider.state_dict()
        provider.load_state_dict(state)
    if device:
        assert all(batch.dtype is torch.bfloat16 for batch in batches)
        batches = [array_over(batch) for batch in batches]
    found = np.concatenate(batches)
    assert found[:7].tobytes() == wanted.tobytes() and (found[7:] == 2).all()
    tensor = torch.from_numpy(data).bfloat16()
    with ArrayDataProvider(tensor, batch_size=7) as provider:
        assert provider.next().data[0].tobytes() == wanted.tobytes()


class OnDisk:
    """What h5py.Dataset and zarr.Array have in common: slices, and ascending lists of rows."""

    def __init__(self, rows):
        self._rows, self.asked, self.most = rows, [], 0
        self.shape, self.dtype = rows.shape, rows.dtype

    def __len__(self):
        return len(self._rows)

    def __getitem__(self, rows):
        if isinstance(rows, list):
            assert all(a < b for a, b in itertools.pairwise(rows)), "ascending, and none twice"
        self.asked.append(rows)
        found = self._rows[rows]
        self.most = max(self.most, len(found))
        return found

    def __array__(self, *_, **__):
        raise AssertionError("read as a whole")


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("size", [8, 7, 203])
@pytest.mark.parametrize("kind", [NDArrayIter, ArrayDataProvider])
def test_an_array_on_disk_is_read_batch_by_batch(kind, size, shuffle):
    rows = np.arange(200 * 6, dtype=np.int32).reshape(200, 2, 3)
    stored = OnDisk(rows)
    keywords = {"shuffle": shuffle, "seed": 4, "batch_size": min(size, 200), "dtype": "float32"}
    expected = kind(rows, np.arange(200), **keywords)
    with kind(stored, OnDisk(np.arange(200)), **keywords) as provider:
        assert not stored.asked
        assert repr(provider) == repr(expected)
        for _ in range(2):
            for found, batch in zip(provider, expected, strict=True):
                assert found.pad == batch.pad and found.data[0].dtype == np.float32
                assert np.array_equal(found.data[0], batch.data[0])
                assert np.array_equal(found.label[0], batch.label[0])
    # Rows that lie close together are read with those between them.
    assert stored.most <= 4 * keywords["batch_size"]
    if size != 7:  # whose last batch goes on with the first rows
        assert any(isinstance(rows, list) for rows in stored.asked) == (shuffle and size < 200)


def test_rows_of_zarr_are_asked_for_by_its_own_name():
    stored = OnDisk(np.arange(100.0))
    stored.oindex = OnDisk(np.arange(100.0))
    with NDArrayIter(stored, batch_size=5, shuffle=True) as provider:
        assert np.array_equal(np.sort(np.concatenate([b.data[0] for b in provider])), range(100))
    assert stored.oindex.asked and not any(isinstance(rows, list) for rows in stored.asked)


def test_an_array_on_disk_that_gives_other_rows_is_refused():
    stored = OnDisk(np.zeros((9, 2)))
    stored.shape = 9, 3
    with NDArrayIter(stored, batch_size=3) as provider:
        with pytest.raises(ValueError, match=r"3 rows of OnDisk of shape \(9, 3\) have the shape"):
            provider.next()
    for wrong, error in ((np.array(["a"]), TypeError), (np.zeros(()), ValueError)):
        with pytest.raises(error):
            NDArrayIter(_stored(wrong))


def _stored(rows):
    stored = OnDisk(np.zeros(1))
    stored.shape, stored.dtype = rows.shape, rows.dtype
    return stored


def test_files_of_h5py(tmp_path):
    h5py = pytest.importorskip("h5py")
    rows = np.arange(600).reshape(200, 3)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = rows
        with NDArrayIter(file["x"], np.arange(200), batch_size=16, shuffle=True) as provider:
            for batch in provider:
                assert np.array_equal(batch.data[0], rows[batch.label[0].astype(int)])
