"""Iterators around others: `ResizeIter`, `PrefetchingIter` and `MXDataProvider`."""

import gc
import time

import numpy as np
import pytest

from iterators import (
    AbstractDataProvider,
    ArrayDataProvider,
    DataBatch,
    DataDesc,
    DataIter,
    MXDataProvider,
    NDArrayIter,
    PrefetchingIter,
    ResizeIter,
)


def arrays(size=10, batch_size=4, **arguments):
    return ArrayDataProvider(
        np.arange(size), np.arange(size) * 10, batch_size=batch_size, **arguments
    )


def rows(provider):
    return [batch.index[: batch.count].tolist() for batch in provider]


class Old:
    """What MXNet's iterators look like: one memory for all batches, and a reset by hand."""

    def __init__(self, batches=3, with_next=True):
        self.batches, self.at, self.resets = batches, 0, 0
        self.memory = np.zeros((2, 3), np.float32)
        if with_next:
            self.next = self._next

    provide_data = [DataDesc("data", (2, 3))]
    provide_label = [("softmax_label", (2,))]

    def reset(self):
        self.at = 0
        self.resets += 1

    def iter_next(self):
        self.at += 1
        self.memory[:] = self.at
        return self.at <= self.batches

    def getdata(self):
        return self.memory

    def getlabel(self):
        return [np.full(2, -self.at)]

    def getpad(self):
        return int(self.at == self.batches)

    def getindex(self):
        return [self.at, self.at + 1]

    def _next(self):
        if not self.iter_next():
            raise StopIteration
        return DataBatch([self.memory], self.getlabel(), self.getpad(), None)


# -- ResizeIter ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_every_epoch_has_so_many_batches(size):
    inside = rows(arrays())
    with ResizeIter(arrays(), size) as provider:
        assert len(provider) == size
        for epoch in range(3):
            assert rows(provider) == [inside[i % 3] for i in range(size)]
            assert provider.epoch == epoch
    with ResizeIter(arrays(), size, reset_internal=False) as provider:
        got = rows(provider) + rows(provider) + rows(provider)
        assert got == [inside[i % 3] for i in range(3 * size)]


def test_resizing_nothing_is_an_error():
    empty = NDArrayIter(np.zeros(1), num_parts=2, part_index=1)
    with pytest.raises(ValueError, match="no batch at all"):
        next(iter(ResizeIter(empty, 3)))
    with pytest.raises(ValueError, match="size=0"):
        ResizeIter(arrays(), 0)


def test_resizing_a_foreign_iterator():
    old = Old(batches=2)
    with ResizeIter(old, 5) as provider:
        values = [batch.data[0][0, 0] for batch in provider]
    assert values == [1, 2, 1, 2, 1]
    assert provider.provide_data == Old.provide_data


# -- PrefetchingIter -----------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 3])
def test_several_iterators_are_joined(depth):
    provider = PrefetchingIter(
        [arrays(), NDArrayIter(np.ones((10, 2)), batch_size=4)],
        rename_data=[{}, {"data": "ones"}],
        rename_label=[{"softmax_label": "tens"}, {}],
        prefetch_buffer=depth,
    )
    with provider:
        assert [d.name for d in provider.provide_data] == ["data", "ones"]
        assert provider.provide_data[1] == ("ones", (4, 2))
        assert provider.batch_size == 4
        for epoch in range(3):
            batches = list(provider)
            assert provider.epoch == epoch
            assert [batch.pad for batch in batches] == [0, 0, 2]
            assert batches[1]["tens"].tolist() == [40, 50, 60, 70]
            assert batches[1]["ones"].shape == (4, 2)
        assert provider.stats()["batches"] >= 18


def test_one_iterator_needs_no_list_and_shuffling_goes_on():
    with arrays(shuffle=True) as plain, PrefetchingIter(arrays(shuffle=True)) as provider:
        for _ in range(3):
            assert rows(provider) == rows(plain)
        provider.reset()
        provider.next()
        plain.reset()
        plain.next()
        provider.reset()
        plain.reset()
        assert rows(provider) == rows(plain)


@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("pause", [0, 0.1])
def test_a_reset_comes_after_the_last_delivered_batch_at_any_pace_of_the_thread(pause, batches):
    def rolling():
        return NDArrayIter(np.arange(11), batch_size=4, shuffle=True, last_batch_handle="roll_over")

    with rolling() as plain, PrefetchingIter(rolling(), prefetch_buffer=3) as provider:
        for _ in range(4):
            for _ in range(batches):
                assert (provider.next().data[0] == plain.next().data[0]).all()
            time.sleep(pause)  # the thread comes to the end of the epoch, where samples roll over
            provider.reset()
            plain.reset()


class Failing(AbstractDataProvider):
    provide_data, provide_label = [DataDesc("data", (2,))], []

    def __init__(self, fail_at):
        self.fail_at, self.at = fail_at, 0

    def reset(self):
        self.at = 0

    def next(self):
        self.at += 1
        if self.at == self.fail_at:
            raise OSError("the disk is gone")
        if self.at > 4:
            raise StopIteration
        return DataBatch([np.full(2, self.at)], provide_data=self.provide_data)


@pytest.mark.parametrize("fail_at", [1, 2, 4])
def test_an_exception_in_a_thread_reaches_the_consumer(fail_at):
    with PrefetchingIter(Failing(fail_at)) as provider:
        got = []
        with pytest.raises(OSError, match="the disk is gone"):
            for batch in provider:
                got.append(int(batch.data[0][0]))
        assert got == list(range(1, fail_at))
        rest = []
        while provider.iter_next():
            rest.append(int(provider.getdata()[0]))
        assert rest == list(range(fail_at + 1, 5))
        provider.reset()
        if fail_at > 1:
            assert provider.next().data[0][0] == 1


class Resumable(Failing):
    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


def test_a_state_behind_a_batch_that_failed_is_behind_it():
    for wrap in (lambda it: it, MXDataProvider, lambda it: ResizeIter(it, 4), PrefetchingIter):
        with wrap(Resumable(2)) as provider, wrap(Resumable(2)) as again:
            provider.next()
            with pytest.raises(OSError, match="the disk is gone"):
                provider.next()
            again.load_state_dict(provider.state_dict())
            assert [int(it.next().data[0][0]) for it in (provider, again)] == [3, 3]


RENAMED = [{}, {"data": "more"}], [{}, {"softmax_label": "more_label"}]


class Unknown(AbstractDataProvider):
    """Batches whose number is not known before."""

    provide_data, provide_label = [DataDesc("b", (4,))], []

    def __init__(self, *batches):
        self.batches = batches

    def eachbatch(self):
        for rows, pad in self.batches:
            yield DataBatch([np.zeros(4)], [], pad=pad, index=np.array(rows, np.uint64))


def test_iterators_must_end_together_and_be_padded_alike():
    four = [0, 1, 2, 3]
    eight = [4, 5, 6, 7]
    with PrefetchingIter([arrays(12), Unknown((four, 0), (eight, 0))]) as it:
        it.next()
        it.next()
        with pytest.raises(ValueError, match="iterator 1 of 2 ended after 2 batches, before the"):
            it.next()
    with PrefetchingIter([arrays(8), Unknown((four, 0), (four, 1))]) as it:
        it.next()
        with pytest.raises(ValueError, match="padded differently"):
            it.next()


@pytest.mark.parametrize(
    ("size", "keywords"),
    [(12, {}), (7, {}), (10, {"num_parts": 2}), (4, {})],
)
def test_lengths_that_are_known_are_compared_when_it_is_made(size, keywords):
    with pytest.raises(ValueError, match=r"together: iterator 0 \(Arr.*: data\).* 8 samples, .*1"):
        PrefetchingIter([arrays(8), arrays(size, **keywords)], *RENAMED)
    with pytest.raises(ValueError, match=r"iterator 1 .* has 3 batches: give"):
        PrefetchingIter([arrays(8), ResizeIter(arrays(8), 3)], *RENAMED)
    for fine in (arrays(8), arrays(11, last_batch_handle="discard"), ResizeIter(arrays(4), 2)):
        PrefetchingIter([arrays(8), fine], *RENAMED).close()


@pytest.mark.parametrize(
    "batches",
    [
        [([0, 1, 2, 3], 0), ([4, 5, 6, 8], 0), ([9, 10, 11, 0], 0)],  # skipped later
        [([0, 1, 3, 4], 0), ([5, 6, 7, 8], 0), ([9, 10, 11, 0], 0)],  # in the first batch
        [([1, 2, 3, 4], 0), ([5, 6, 7, 8], 0), ([9, 10, 11, 0], 0)],  # the first sample
    ],
)
def test_samples_that_drift_apart_are_noticed(batches):
    with PrefetchingIter([arrays(12), Unknown(*batches)]) as it:
        with pytest.warns(UserWarning, match=r"same ids, and from batch \d on .*same seed") as told:
            assert len(list(it)) == 3
            assert len(list(it)) == 3
    assert len(told) == 1


def test_the_same_samples_in_other_orders_are_noticed():
    sides = [arrays(400, shuffle=True, seed=seed) for seed in (1, 2)]
    with PrefetchingIter(sides, *RENAMED) as it:
        with pytest.warns(UserWarning, match="same ids in different orders"):
            list(it)
        list(it)  # once


def test_iterators_of_different_samples_are_no_news():
    others = [([100 + row for row in range(first, first + 4)], 0) for first in (0, 4, 8)]
    with PrefetchingIter([arrays(12), Unknown(*others)]) as it:
        assert len(list(it)) == len(list(it)) == 3
    with PrefetchingIter([arrays(12, shuffle=True), arrays(12, shuffle=True)], *RENAMED) as it:
        assert len(list(it)) == len(list(it)) == 3


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"iters": []}, "empty"),
        ({"iters": [arrays(), arrays()]}, "two arrays are called 'data'"),
        ({"iters": [arrays()], "rename_data": [{}, {}]}, "2 entries for 1 iterators"),
        ({"iters": [arrays()], "rename_data": [{"dat": "x"}]}, "no array 'dat'"),
        ({"iters": [arrays()], "prefetch_buffer": 0}, "prefetch_buffer=0"),
        (
            {"iters": [arrays(), NDArrayIter(np.zeros(4))], "rename_data": [{}, {"data": "b"}]},
            "different batch sizes",
        ),
    ],
)
def test_bad_parameters_of_prefetchingiter(arguments, text):
    with pytest.raises(ValueError, match=text):
        PrefetchingIter(**arguments)


def test_dropping_a_prefetchingiter_ends_its_threads(new_threads):
    provider = PrefetchingIter([arrays()])
    provider.next()
    assert len(new_threads()) == 1
    del provider
    gc.collect()
    assert not new_threads()


def test_a_closed_prefetchingiter_says_so():
    provider = PrefetchingIter([arrays()])
    provider.close()
    provider.close()
    with pytest.raises(ValueError, match="closed"):
        provider.next()


# -- MXDataProvider ------------------------------------------------------------------------------


@pytest.mark.parametrize("with_next", [True, False])
def test_a_foreign_iterator_is_a_provider(with_next):
    old = Old(with_next=with_next)
    provider = MXDataProvider(old, data_name="x", label_name="y")
    for epoch in range(3):
        assert (provider.epoch, old.resets) == (max(epoch - 1, 0), max(epoch - 1, 0))
        batches = list(provider)
        assert [batch["x"][0, 0] for batch in batches] == [1, 2, 3]
        assert [batch["y"].tolist() for batch in batches] == [[-1, -1], [-2, -2], [-3, -3]]
        assert [batch.count for batch in batches] == [2, 2, 1]
        if not with_next:
            assert batches[0].index.tolist() == [1, 2]
    assert provider.batch_size == 2
    assert MXDataProvider(Old(), label_name=None).next().label == []


def test_the_low_level_protocol_and_nested_loops():
    provider = MXDataProvider(Old())
    with pytest.raises(RuntimeError, match="iter_next"):
        provider.getdata()
    count = 0
    while provider.iter_next():
        count += 1
        assert provider.getdata()[0, 0] == count
        assert provider.getlabel().tolist() == [-count, -count]
    assert count == 3
    outer = iter(provider)
    next(outer)
    assert len(list(provider)) == 3
    with pytest.raises(RuntimeError, match="another loop"):
        next(outer)


@pytest.mark.parametrize("missing", ["reset", "provide_data", "both"])
def test_objects_that_are_no_iterators(missing):
    attributes = {"reset": lambda self: None, "provide_data": [], "provide_label": []}
    attributes.pop(missing, None)
    if missing != "both":
        attributes["next"] = lambda self: None
    with pytest.raises(TypeError, match="neither" if missing == "both" else missing):
        MXDataProvider(type("Thing", (), attributes)())
    with pytest.raises(TypeError, match="did you mean 'data_name'"):
        MXDataProvider(Old(), data_nam="x")


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    for provider in (
        MXDataProvider(Old(), device="cpu"),
        ResizeIter(arrays(), 2, device="cpu"),
        PrefetchingIter(arrays(), device="cpu"),
    ):
        with provider:
            batch = provider.next()
            assert isinstance(batch.data[0], torch.Tensor)
            assert isinstance(batch.label[0], torch.Tensor)


# -- iterators that were used before -----------------------------------------------------------


class Shelf(AbstractDataProvider):
    """A provider of one's own: one cannot tell whether it was used."""

    provide_data, provide_label, at = [DataDesc("data", (1,))], [], 0

    def reset(self):
        self.at = 0

    def next(self):
        if self.at == 3:
            raise StopIteration
        self.at += 1
        return DataBatch([np.full(1, self.at - 1)], provide_data=self.provide_data)


class OldShelf(Shelf, DataIter):
    """The same, as it was written for MXNet."""


def singles(provider):
    return [int(batch.data[0].flat[0]) for batch in provider]


AROUND = {
    "resize": lambda it: ResizeIter(it, 3),
    "prefetching": PrefetchingIter,
    "foreign": MXDataProvider,
    "nested": lambda it: ResizeIter(PrefetchingIter(MXDataProvider(it)), 3),
}


@pytest.mark.parametrize("used", [0, 1, 3, 4])
@pytest.mark.parametrize("inside", ["arrays", "own", "client", "not ours"])
@pytest.mark.parametrize("name", AROUND)
def test_an_epoch_around_a_used_iterator_is_whole(name, inside, used):
    makers = {"arrays": lambda: arrays(3, 1), "own": Shelf, "client": OldShelf}
    it = makers.get(inside, lambda: Old(batches=3))()
    for _ in range(used):
        it.iter_next()
    with AROUND[name](it) as provider:
        if inside == "not ours":
            provider.reset()  # the only way to know that it is not used
        epochs = [singles(provider) for _ in range(2)]
        first = int(inside == "not ours")
        assert epochs == [[first, first + 1, first + 2]] * 2
        assert provider.epoch == 1
        provider.reset()
        provider.reset()
        assert provider.epoch == 2


@pytest.mark.parametrize("name", AROUND)
def test_an_iterator_that_was_resumed_is_not_used(name):
    whole = arrays(3, 1)
    whole.next()
    it = arrays(3, 1)
    it.load_state_dict(whole.state_dict())
    with AROUND[name](it) as provider:
        provider.reset()
        assert singles(provider)[:2] == [1, 2]


def test_a_state_of_a_wrapper_is_loaded_beside_iterators_that_were_used():
    state = {"version": 1, "epoch": 4, "number": 1}
    for make in (Shelf, lambda: arrays(3, 1)):
        it = make()
        it.next()
        it.next()
        provider = MXDataProvider(it)
        inside = {} if make is Shelf else {"inside": resumed_after_one(make)}
        provider.load_state_dict(state | inside)
        assert (singles(provider), provider.epoch) == ([1, 2], 4)
        assert (singles(provider), provider.epoch) == ([0, 1, 2], 5)


def resumed_after_one(make):
    with make() as provider:
        provider.next()
        return provider.state_dict()


@pytest.mark.parametrize("make", [lambda it: ResizeIter(it, 3), PrefetchingIter])
def test_epochs_count_from_the_first_one_around_a_used_iterator(make):
    def used():
        it = arrays(10, shuffle=True)
        it.next()
        return make(it)

    with used() as whole, used() as jumping:
        epochs = [rows(whole) for _ in range(3)]
        jumping.reset()
        for i in (2, 0, 1):
            jumping.set_epoch(i)
            assert (jumping.epoch, rows(jumping)) == (i, epochs[i])


def test_resizing_without_resets_goes_on_where_the_iterator_was():
    it = arrays(3, 1)
    it.next()
    with ResizeIter(it, 2, reset_internal=False) as provider:
        provider.reset()
        assert [singles(provider) for _ in range(2)] == [[1, 2], [0, 1]]


# -- states --------------------------------------------------------------------------------------

MAKERS = {
    "resize": lambda: ResizeIter(arrays(shuffle=True), 4),
    "resize_on": lambda: ResizeIter(arrays(shuffle=True), 4, reset_internal=False),
    "prefetching": lambda: PrefetchingIter(arrays(shuffle=True), prefetch_buffer=2),
    "foreign": lambda: MXDataProvider(Old()),
    "nested": lambda: ResizeIter(PrefetchingIter(MXDataProvider(arrays(shuffle=True))), 5),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_run_resumed_at_any_batch_is_the_run(name):
    with MAKERS[name]() as provider:
        whole, states = [], [provider.state_dict()]
        for _ in range(3):
            for batch in provider:
                whole.append(batch.data[0].tolist())
                states.append(provider.state_dict())
    for done, state in enumerate(states[:-1]):
        with MAKERS[name]() as provider:
            provider.load_state_dict(state)
            rest = [batch.data[0].tolist() for _ in range(4) for batch in provider]
        assert rest[: len(whole) - done] == whole[done:]


def test_states_that_do_not_fit_are_refused():
    with PrefetchingIter(Failing(9)) as provider:
        provider.next()
        with pytest.raises(TypeError, match="Failing has no state"):
            provider.state_dict()
    state = ResizeIter(arrays(), 2).state_dict()
    with pytest.raises(ValueError, match="does not belong"):
        MXDataProvider(Old()).load_state_dict(state)
    with pytest.raises(ValueError, match="version"):
        ResizeIter(arrays(), 2).load_state_dict({"version": 99})


def test_an_abstract_provider_says_what_is_missing():
    provider = AbstractDataProvider()
    for use in (provider.next, provider.reset, provider.state_dict):
        with pytest.raises(TypeError, match="AbstractDataProvider"):
            use()
    with pytest.raises(TypeError):
        provider.load_state_dict({})
    provider.close()


def test_a_state_that_is_refused_changes_nothing():
    def arrays():
        return ArrayDataProvider(np.arange(8.0), batch_size=2)

    for wrapper in (ResizeIter(arrays(), 3), PrefetchingIter([arrays()])):
        with wrapper:
            wrapper.next()
            before, good = wrapper.state_dict(), wrapper.state_dict()
            for wrong in (
                3,
                {"version": good["version"]},
                good | {"inside": 0.5},
                good | {"epoch": 4, "inside": {}},
                good | {"epoch": 4, "inside": [{}]},
                good | {"number": -1},
                {name: value for name, value in good.items() if name != "inside"},
            ):
                with pytest.raises((TypeError, ValueError)):
                    wrapper.load_state_dict(wrong)
                assert wrapper.state_dict() == before
            assert wrapper.next().data[0].tolist() == [2, 3]


@pytest.mark.filterwarnings("ignore:PrefetchingIter")
@pytest.mark.parametrize("size", [2, 3, 4, 7])
@pytest.mark.parametrize("first", [0, 5])
def test_an_epoch_that_is_set_is_that_of_an_uninterrupted_run(size, first):
    def inside(k=0):
        return arrays(shuffle=True, seed=k, epoch=first + k)

    for make in (
        inside,
        lambda: ResizeIter(inside(), size, epoch=first),
        lambda: PrefetchingIter(inside(), epoch=first),
        lambda: PrefetchingIter([inside(1), ResizeIter(inside(2), 3)], *RENAMED, epoch=first),
    ):
        with make() as whole, make() as jumping:
            epochs = [rows(whole) for _ in range(4)]
            for i in (2, 1, 1, 3, 0):
                jumping.set_epoch(first + i)
                assert (jumping.epoch, rows(jumping)) == (first + i, epochs[i])
                next(iter(jumping))  # the next one is left in the middle
            jumping.reset()
            assert jumping.epoch == first + 2


def test_epochs_that_cannot_be_set():
    going_on = ResizeIter(arrays(), 2, reset_internal=False)
    half = PrefetchingIter([arrays(8), going_on], *RENAMED)
    for provider in (AbstractDataProvider(), MXDataProvider(Old()), going_on, half):
        with pytest.raises(TypeError, match=r"epoch"):
            provider.set_epoch(1)
    assert rows(half) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    for provider in (arrays(), ResizeIter(arrays(), 2)):
        for wrong in (-1, 1.5, "x"):
            with pytest.raises((TypeError, ValueError), match="epoch"):
                provider.set_epoch(wrong)
    half.close()


def test_an_epoch_that_is_set_has_nothing_left_over():
    with NDArrayIter(np.arange(5.0), batch_size=3, last_batch_handle="roll_over") as provider:
        assert rows(provider) == [[0, 1, 2]]
        provider.set_epoch(1)
        assert rows(provider) == [[0, 1, 2]]
        assert len(provider) == 1
        assert len(rows(provider)) == len(provider) == 2
