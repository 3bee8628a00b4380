"""All iterators over data sets: equal batches, exact resumption, states, copies, life."""

import copy
import gc
import io
import multiprocessing
import os
import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import iterators
from iterators.loops import (
    DictionarySerializer,
    Iterator,
    MultiprocessIterator,
    MultithreadIterator,
    NpzDeserializer,
    SeededOrderSampler,
    SerialIterator,
    ShuffleOrderSampler,
    load_npz,
    save_npz,
)

#: Newer versions of Python warn when a process that has threads is forked.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

KINDS = {
    "serial": SerialIterator,
    "threads": lambda *a, **k: MultithreadIterator(*a, n_threads=3, **k),
    "processes": lambda *a, **k: MultiprocessIterator(*a, n_processes=2, n_prefetch=2, **k),
}
#: Without processes, where many are made.
CHEAP = {name: KINDS[name] for name in ("serial", "threads")}


def samplers(name):
    return {
        "seeded": lambda: SeededOrderSampler(4),
        "state": lambda: ShuffleOrderSampler(4),
        "generator": lambda: ShuffleOrderSampler(np.random.default_rng(4)),
        "reversed": lambda: lambda order, place: order[::-1],
        "none": lambda: None,
    }[name]()


def made(kind, sampler, size, batch_size, repeat=True):
    order = samplers(sampler)
    return KINDS[kind](
        range(100, 100 + size), batch_size, repeat,
        shuffle=False if order is None else None, order_sampler=order,
    )  # fmt: skip


def trace(batches, count):
    found = []
    for _ in range(count):
        try:
            batch = next(batches)
        except StopIteration:
            batch = None
        found.append((
            batch, batches.epoch, batches.current_position, batches.is_new_epoch,
            batches.epoch_detail, batches.previous_epoch_detail,
        ))  # fmt: skip
    return found


SAMPLERS = st.sampled_from(["seeded", "state", "generator", "reversed", "none"])


@pytest.mark.parametrize("kind", ["threads", "processes"])
@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(sampler=SAMPLERS, size=st.integers(1, 9), batch=st.integers(1, 12), repeat=st.booleans())
def test_all_kinds_deliver_the_same(kind, sampler, size, batch, repeat):
    wanted = trace(made("serial", sampler, size, batch, repeat), 8)
    with made(kind, sampler, size, batch, repeat) as batches:
        assert trace(batches, 8) == wanted


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(
    data=st.data(),
    sampler=SAMPLERS.filter(lambda name: name != "reversed"),
    size=st.integers(1, 9),
    batch=st.integers(1, 12),
    done=st.integers(0, 9),
)
def test_any_kind_resumes_where_any_other_was(data, sampler, size, batch, done):
    # Processes on either side now and then: they take a tenth of a second to start.
    names = st.sampled_from(["serial", "threads", "serial", "threads", "processes"])
    with made(data.draw(names), sampler, size, batch) as first:
        trace(first, done)
        state = pickle.loads(pickle.dumps(first.state_dict()))
        wanted = trace(first, 6)
        assert first.state_dict()["epoch"] == first.epoch
    with made(data.draw(names), sampler, size, batch) as second:
        trace(second, data.draw(st.integers(0, 3)))
        second.load_state_dict(state)
        assert trace(second, 6) == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_resuming_a_shuffled_run_needs_no_seed(kind):
    with KINDS[kind](range(7), 3) as first, KINDS[kind](range(7), 3) as second:
        next(first)
        state = first.state_dict()
        wanted = trace(first, 12)
        second.load_state_dict(state)
        assert trace(second, 12) == wanted


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sampler", ["seeded", "none", "state"])
def test_serializing_to_npz_and_back(kind, sampler):
    with made(kind, sampler, 7, 3) as first, made(kind, sampler, 7, 3) as second:
        trace(first, 3)
        file = io.BytesIO()
        save_npz(file, first)
        expected = trace(first, 1)
        load_npz(io.BytesIO(file.getvalue()), second)
        assert trace(second, 1) == expected


def test_serialized_keys_are_those_of_chainer():
    serializer = DictionarySerializer()
    batches = SerialIterator(range(5), 2, order_sampler=ShuffleOrderSampler(1))
    next(batches)
    batches.serialize(serializer["main"])
    keys = {"current_position", "epoch", "is_new_epoch", "order", "previous_epoch_detail"}
    assert set(serializer.target) == {f"main/{key}" for key in keys}
    plain = DictionarySerializer()
    SerialIterator(range(5), 2, shuffle=False).serialize(plain)
    assert set(plain.target) == keys - {"order"}
    assert plain.target["previous_epoch_detail"] == -1


def test_reading_what_other_versions_wrote():
    saved = {"current_position": 2, "epoch": 1, "is_new_epoch": False, "_order": [3, 1, 4, 0, 2]}
    batches = SerialIterator(range(5), 2, order_sampler=ShuffleOrderSampler(1))
    batches.serialize(NpzDeserializer(saved))
    assert batches.previous_epoch_detail == 1.0
    assert next(batches) == [4, 0]
    batches.load_state_dict(saved)
    assert next(batches) == [4, 0]
    for place, epoch, wanted in ((1, 0, 0.0), (3, 0, 0.2), (0, 0, None), (1, 2, 1.8)):
        batches.serialize(NpzDeserializer({**saved, "current_position": place, "epoch": epoch}))
        assert batches.previous_epoch_detail == wanted
    with pytest.raises(KeyError):
        batches.serialize(NpzDeserializer({k: v for k, v in saved.items() if k != "_order"}))
    plain = SerialIterator(range(5), 2, shuffle=False)
    plain.serialize(NpzDeserializer(saved))  # takes no order
    assert next(plain) == [2, 3]


def test_states_without_an_order_keep_the_present_one():
    batches = SerialIterator(range(5), 2, order_sampler=ShuffleOrderSampler(1))
    order = batches.state_dict()["order"].tolist()
    batches.load_state_dict({"current_position": 3, "epoch": 2})
    assert next(batches)[:2] == order[3:]


def test_states_may_have_been_saved_by_numpy():
    first, second = made("serial", "seeded", 7, 3), made("serial", "seeded", 7, 3)
    trace(first, 4)
    file = io.BytesIO()
    state = first.state_dict()
    np.savez(file, **{**state, "rng": state["rng"]["sweep"]})
    with np.load(io.BytesIO(file.getvalue())) as saved:
        second.load_state_dict({**saved, "rng": {"sweep": saved["rng"]}})
    assert trace(second, 9) == trace(first, 9)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, "no current_position and no epoch"),
        ({"current_position": 0, "epoch": -1}, "epoch"),
        ({"current_position": 5, "epoch": 0}, "current_position=5"),
        ({"current_position": 0, "epoch": 0, "order": np.arange(6)}, "order of 6 examples"),
        ({"current_position": 0, "epoch": 0, "rng": {"kind": "?"}}, "saved state"),
    ],
)
def test_wrong_states_are_refused(state, message):
    batches = SerialIterator(range(5), 2, order_sampler=ShuffleOrderSampler(1))
    with pytest.raises(ValueError, match=message):
        batches.load_state_dict(state)
    with pytest.raises(ValueError, match="has no load_state_dict"):
        SerialIterator(range(5), 2, order_sampler=lambda order, _: order).load_state_dict(
            {"current_position": 0, "epoch": 0, "rng": {"kind": "RandomState"}}
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", [copy.copy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("sampler", ["seeded", "state", "none"])
def test_copies_go_on_by_themselves_and_leave_the_original_alone(kind, how, sampler):
    wanted = trace(made("serial", sampler, 7, 3), 12)
    with made(kind, sampler, 7, 3) as first:
        assert trace(first, 2) == wanted[:2]
        second = how(first)
        assert trace(second, 5) == wanted[2:7]
        assert trace(first, 10) == wanted[2:]
        assert trace(second, 5) == wanted[7:]
        second.finalize()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sampler", ["seeded", "state"])
def test_reset_draws_what_a_serial_iterator_would_draw(kind, sampler):
    plain = made("serial", sampler, 5, 2)
    with made(kind, sampler, 5, 2) as batches:
        for count in (2, 3, 0, 7):
            assert trace(batches, count) == trace(plain, count)
            batches.reset()
            plain.reset()
            assert (batches.epoch, batches.current_position) == (0, 0)
            assert batches.previous_epoch_detail is None
        assert trace(batches, 4) == trace(plain, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_finalize_may_be_called_again_and_again(kind):
    batches = made(kind, "none", 5, 2)
    next(batches)
    for _ in range(3):
        batches.finalize()
        batches.close()
    if kind == "processes":
        with pytest.raises(ValueError, match="finalized"):
            next(batches)
        with pytest.raises(NotImplementedError, match="after finalize"):
            batches.reset()
    else:
        batches.reset()
        assert next(batches) == [100, 101]
        batches.finalize()


class Fussy:
    """Raises for some examples; counts nothing, keeps nothing."""

    def __init__(self, wrong, error=KeyError):
        self.wrong, self.error = wrong, error

    def __len__(self):
        return 10

    def __getitem__(self, i):
        if i in self.wrong:
            raise self.error(f"example {i}")
        return i


@pytest.mark.parametrize("kind", KINDS)
def test_an_exception_comes_out_once_and_the_next_call_goes_on(kind):
    with KINDS[kind](Fussy({2, 3, 7}), 2, shuffle=False) as batches:
        assert next(batches) == [0, 1]
        with pytest.raises(KeyError, match="example [23]"):
            next(batches)
        assert batches.current_position == 4
        assert next(batches) == [4, 5]
        with pytest.raises(KeyError, match="example 7"):
            next(batches)
        assert [next(batches), next(batches)] == [[8, 9], [0, 1]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_data_set_that_raises_stop_iteration_does_not_end_the_loop_in_silence(kind):
    with KINDS[kind](Fussy({1}, StopIteration), 2, shuffle=False) as batches:
        with pytest.raises(RuntimeError, match="raised StopIteration"):
            next(batches)


class Many:
    """Fetches in batches."""

    def __len__(self):
        return 6

    def __getitem__(self, i):
        raise AssertionError("one by one")

    def __getitems__(self, indices):
        assert all(type(i) is int for i in indices)
        return [i * i for i in indices]


@pytest.mark.parametrize("kind", KINDS)
def test_examples_are_fetched_in_batches_where_that_is_possible(kind):
    with KINDS[kind](Many(), 4, shuffle=False) as batches:
        assert [next(batches), next(batches)] == [[0, 1, 4, 9], [16, 25, 0, 1]]


def test_too_few_examples_are_noticed():
    class Few(Many):
        def __getitems__(self, indices):
            return [0]

    with pytest.raises(ValueError, match="1 examples for 4 indices"):
        next(SerialIterator(Few(), 4))


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_arguments(kind):
    with pytest.raises(ValueError, match="batch_size"):
        KINDS[kind]([1], 0)
    with pytest.raises(ValueError, match="not both"):
        KINDS[kind]([1], 1, shuffle=True, order_sampler=ShuffleOrderSampler())
    with pytest.raises(TypeError, match="cannot be called"):
        KINDS[kind]([1], 1, order_sampler=3)


class Interrupted:
    """A data set in which Ctrl-C is pressed once."""

    def __init__(self, at):
        self.at = at

    def __len__(self):
        return 10

    def __getitem__(self, i):
        if i == self.at:
            self.at = None
            raise KeyboardInterrupt
        return i


@pytest.mark.parametrize("kind", CHEAP)
@pytest.mark.parametrize("at", range(10))
def test_an_interrupt_costs_no_batch(kind, at):
    with KINDS[kind](Interrupted(at), 3, order_sampler=SeededOrderSampler(1)) as batches:
        found = []
        while len(found) < 8:
            try:
                found.append(next(batches))
            except KeyboardInterrupt:
                state = batches.state_dict()
                assert state["current_position"] == len(found) * 3 % 10
    with made("serial", "none", 1, 1):
        plain = SerialIterator(range(10), 3, order_sampler=SeededOrderSampler(1))
    assert found == [next(plain) for _ in range(8)]


def test_threads_end_with_their_iterator(new_threads):
    batches = made("threads", "none", 5, 2)
    next(batches)
    assert len(new_threads()) == 3
    del batches
    gc.collect()
    assert not new_threads()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_goes_on_with_threads_of_its_own():
    wanted = trace(made("serial", "state", 7, 3), 6)
    with made("threads", "state", 7, 3) as batches:
        found = trace(batches, 2)
        reader, writer = multiprocessing.Pipe()

        def child():
            writer.send(trace(batches, 4))
            batches.finalize()

        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        there = reader.recv()
        process.join()
        assert process.exitcode == 0
        assert found + trace(batches, 4) == wanted
        assert there == wanted[2:]


def test_the_base_class_says_what_is_missing():
    with pytest.raises(TypeError, match="__next__"):
        Iterator().next()
    assert iter(it := Iterator()) is it
    assert issubclass(iterators.MultiprocessIterator, iterators.Iterator)


def test_a_sampler_that_avoids_repeats_in_a_wrapped_batch():
    """Chainer's example of a sampler: the examples of the batch that wraps come last."""

    def sampler(order, place):
        return np.concatenate([order[:place], order[place:]])

    batches = SerialIterator(range(10), 3, order_sampler=sampler)
    for _ in range(12):
        assert len(set(next(batches))) == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"rng": 3},
        {"rng": {"kind": "RandomState"}},
        {"rng": {"kind": "RandomState", "state": {"bit_generator": "MT19937", "state": {}}}},
        {"order": [0, 1, 99]},
        {"epoch": 7, "previous_epoch_detail": "x"},
    ],
)
def test_a_state_that_is_refused_changes_nothing(wrong):
    iterator = SerialIterator([0, 1, 2], 2, order_sampler=ShuffleOrderSampler(0))
    iterator.next()
    before = str(iterator.state_dict())
    with pytest.raises((TypeError, ValueError)):
        iterator.load_state_dict(iterator.state_dict() | wrong)
    assert str(iterator.state_dict()) == before


@pytest.mark.parametrize("place", [-1, 625, 10**6])
def test_a_generator_is_not_sent_behind_its_numbers(place):
    sampler = ShuffleOrderSampler(0)
    state = sampler.state_dict()
    state["state"]["state"]["pos"] = place
    with pytest.raises(ValueError, match="damaged"):
        sampler.load_state_dict(state)
