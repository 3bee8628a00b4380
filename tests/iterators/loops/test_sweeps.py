"""The rule of positions, judged by a plain model that takes one example at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iterators.loops import OrderSampler, SeededOrderSampler, SerialIterator, ShuffleOrderSampler
from iterators.loops.sweeps import Sweep, advance


def model(size, batch_size, repeat, batches):
    """Yield (indices, epoch, position, new) one example at a time; None for StopIteration."""
    place, epoch = 0, 0
    for _ in range(batches):
        if not repeat and epoch:
            yield None
            continue
        taken, new = [], False
        while len(taken) < batch_size:
            taken.append(place)
            place += 1
            if place == size:
                place, epoch, new = 0, epoch + 1, True
                if not repeat:
                    break
        yield taken, epoch, place, new


@given(st.integers(1, 12), st.integers(1, 30), st.booleans())
def test_positions_equal_a_model_that_takes_one_example_at_a_time(size, batch_size, repeat):
    sweep = Sweep()
    for wanted in model(size, batch_size, repeat, 12):
        step = advance(sweep, size, batch_size, repeat, None)
        if wanted is None:
            assert step is None
            continue
        before = sweep.detail(size)
        indices, sweep = step
        epoch, place = sweep.position
        assert (indices, epoch, place, sweep.is_new_epoch) == wanted
        assert sweep.previous_epoch_detail == before
        assert sweep.detail(size) == epoch + place / size


def test_the_documented_trace():
    batches = SerialIterator([1, 2, 3, 4, 5], 2, shuffle=False)
    assert (batches.epoch_detail, batches.previous_epoch_detail) == (0.0, None)
    trace = []
    for batch in batches:
        trace.append((
            batch, batches.epoch, batches.current_position, batches.is_new_epoch,
            round(batches.epoch_detail, 3), round(batches.previous_epoch_detail, 3),
        ))  # fmt: skip
        if len(trace) == 5:
            break
    assert trace == [
        ([1, 2], 0, 2, False, 0.4, 0.0),
        ([3, 4], 0, 4, False, 0.8, 0.4),
        ([5, 1], 1, 1, True, 1.2, 0.8),
        ([2, 3], 1, 3, False, 1.6, 1.2),
        ([4, 5], 2, 0, True, 2.0, 1.6),
    ]


def test_the_documented_trace_without_repetition():
    batches = SerialIterator([1, 2, 3, 4, 5], 2, repeat=False, shuffle=False)
    assert list(batches) == [[1, 2], [3, 4], [5]]
    found = (batches.epoch, batches.current_position, batches.is_new_epoch, batches.epoch_detail)
    assert found == (1, 0, True, 1.0)
    assert batches.previous_epoch_detail == 1.0  # asking once more moves it
    with pytest.raises(StopIteration):
        batches.next()
    fresh = SerialIterator([1, 2, 3, 4, 5], 2, repeat=False, shuffle=False)
    for _ in range(3):
        next(fresh)
    assert fresh.previous_epoch_detail == 0.8


def test_a_batch_larger_than_the_data_set_crosses_sweeps():
    batches = SerialIterator([1, 2, 3], 7, shuffle=False)
    assert next(batches) == [1, 2, 3, 1, 2, 3, 1]
    assert (batches.epoch, batches.current_position, batches.epoch_detail) == (2, 1, 7 / 3)


def test_nothing_to_repeat_is_an_error_and_nothing_to_deliver_is_not():
    for shuffle in (True, False):
        with pytest.raises(ValueError, match="empty"):
            next(SerialIterator([], 2, shuffle=shuffle))
        empty = SerialIterator([], 2, repeat=False, shuffle=shuffle)
        assert list(empty) == []
        assert empty.epoch_detail == 0


class Recorder(OrderSampler):
    """Reversed orders; remembers what it was called with."""

    def __init__(self):
        self.calls = []

    def __call__(self, current_order, current_position):
        self.calls.append((current_order.tolist(), current_position))
        current_order[:] = current_order[::-1].copy()  # in place, as some do
        return current_order


def test_what_a_sampler_is_called_with():
    sampler = Recorder()
    batches = SerialIterator("abcde", 2, order_sampler=sampler)
    assert sampler.calls == [([0, 1, 2, 3, 4], 0)]
    assert [next(batches) for _ in range(3)] == [["e", "d"], ["c", "b"], ["a", "a"]]
    assert sampler.calls[1] == ([4, 3, 2, 1, 0], 4)


def test_the_first_order_defines_the_size_of_a_sweep():
    batches = SerialIterator("abc", 2, order_sampler=lambda order, place: [2, 2, 0, 1])
    assert [next(batches), next(batches)] == [["c", "c"], ["a", "b"]]
    assert batches.epoch_detail == 1.0


def test_orders_that_are_none():
    sizes = iter([3, 4])
    changing = SerialIterator("abc", 2, order_sampler=lambda *_: np.arange(next(sizes)))
    next(changing)
    with pytest.raises(ValueError, match="4 positions after an order of 3"):
        next(changing)
    for order in (np.zeros((2, 2), int), [0.5, 1.0], ["a"]):
        with pytest.raises(TypeError, match="one-dimensional array of integers"):
            SerialIterator("abc", 2, order_sampler=lambda *_, order=order: order)
    with pytest.raises(TypeError, match="__call__"):
        SerialIterator("abc", 2, order_sampler=OrderSampler())


def test_shuffled_orders_are_those_of_the_global_generator():
    np.random.seed(7)
    batches = SerialIterator(range(10), 5)
    found = [next(batches) for _ in range(4)]
    np.random.seed(7)
    wanted = [np.random.permutation(10) for _ in range(2)]
    assert found[0] + found[1] == wanted[0].tolist()
    assert found[2] + found[3] == wanted[1].tolist()


@pytest.mark.parametrize("random", [3, np.random.RandomState(3)])
def test_shuffled_orders_are_those_of_the_seed(random):
    sampler = ShuffleOrderSampler(random)
    wanted = np.random.RandomState(3)
    for _ in range(3):
        assert sampler(np.arange(9), 0).tolist() == wanted.permutation(9).tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda: ShuffleOrderSampler(5),
        lambda: ShuffleOrderSampler(np.random.default_rng(5)),
        lambda: ShuffleOrderSampler(),
        lambda: SeededOrderSampler(5),
    ],
)
@settings(deadline=None)
@given(draws=st.integers(0, 5))
def test_samplers_go_on_from_their_state(make, draws):
    first = make()
    for _ in range(draws):
        first(np.arange(6), 0)
    second = make()
    second.load_state_dict(first.state_dict())
    for _ in range(3):
        assert first(np.arange(6), 0).tolist() == second(np.arange(6), 0).tolist()


def test_a_loaded_sampler_leaves_the_global_generator_alone():
    sampler = ShuffleOrderSampler()
    state = sampler.state_dict()
    np.random.random(3)
    before = np.random.get_state(legacy=False)["state"]["pos"]
    sampler.load_state_dict(state)
    sampler(np.arange(5), 0)
    assert np.random.get_state(legacy=False)["state"]["pos"] == before
    assert not sampler.uses_global_generator


def test_states_of_other_generators_are_refused():
    with pytest.raises(ValueError, match="Generator"):
        ShuffleOrderSampler(np.random.default_rng(1)).load_state_dict(
            ShuffleOrderSampler(1).state_dict()
        )
    for wrong in (-1, 1.5, "x"):
        with pytest.raises((ValueError, TypeError), match="random_state"):
            ShuffleOrderSampler(wrong)


@pytest.mark.parametrize(
    "options", [{"shuffle": False}, {"order_sampler": lambda: SeededOrderSampler(3)}]
)
def test_a_sweep_that_is_set_is_that_of_an_uninterrupted_run(options):
    def make(**more):
        made = {name: value() if callable(value) else value for name, value in options.items()}
        return SerialIterator("abcdef", 2, **made, **more)

    whole = make()
    sweeps = [[next(whole) for _ in range(3)] for _ in range(4)]
    going_on, single = make(), make(repeat=False)
    for sweep in (2, 0, 3):
        going_on.set_epoch(sweep)
        assert going_on.epoch == sweep
        assert [next(going_on) for _ in range(3)] == sweeps[sweep]
        single.set_epoch(sweep)
        assert list(single) == sweeps[sweep]


def test_sweeps_that_cannot_be_set():
    batches = SerialIterator("abc", 2, order_sampler=ShuffleOrderSampler(1))
    before = next(batches), batches.current_position
    with pytest.raises(TypeError, match="SeededOrderSampler"):
        batches.set_epoch(1)
    assert before[1] == batches.current_position
    with pytest.raises(ValueError, match="epoch"):
        SerialIterator("abc", 2, shuffle=False).set_epoch(-1)
