"""`DataIter`, from which iterators written for MXNet derive, and providers made of a generator."""

import numpy as np
import pytest

import iterators
from iterators import (
    AbstractDataProvider,
    AbstractDataProviderState,
    ArrayDataProvider,
    CSVIter,
    DataBatch,
    DataDesc,
    DataIter,
    ImageIter,
    ImageRecordInt8Iter,
    ImageRecordIter,
    LibSVMIter,
    MixBatches,
    MNISTIter,
    MXDataProvider,
    NDArrayIter,
    PrefetchingIter,
    ResizeIter,
    SlicedNDArray,
    VectorSpace,
)
from iterators.providers.protocol import eachbatch, eltype, get, load_data


class Parts(DataIter):
    """As client classes for MXNet are written: `next` is that of the base class."""

    def __init__(self, size=3):
        super().__init__()
        self.batch_size = 2
        self.size = size
        self.cursor = -1

    @property
    def provide_data(self):
        return [("data", (self.batch_size, 3))]

    @property
    def provide_label(self):
        return [("softmax_label", (self.batch_size,))]

    def reset(self):
        self.cursor = -1

    def iter_next(self):
        self.cursor += 1
        return self.cursor < self.size

    def getdata(self):
        return [np.full((self.batch_size, 3), float(self.cursor))]

    def getlabel(self):
        return [np.full(self.batch_size, self.cursor)]

    def getpad(self):
        return int(self.cursor == self.size - 1)


class Whole(DataIter):
    """The other way: `next` alone, without a call of the base class."""

    provide_data, provide_label = DataDesc.get_list([("data", (2, 3))]), []

    def __init__(self):
        self.reset()

    def reset(self):
        self.left = 3

    def next(self):
        if not self.left:
            raise StopIteration
        self.left -= 1
        return DataBatch(data=[np.full((2, 3), 2.0 - self.left)], label=[], pad=0)


class DataOnly(DataIter):
    """`iter_next` and `getdata` and nothing else; no reset, so that there is one epoch."""

    provide_data, provide_label, at = [("data", (2,))], [], 0

    def iter_next(self):
        self.at += 1
        return self.at <= 3

    def getdata(self):
        return np.full(2, self.at - 1.0)


class Generated(AbstractDataProvider):
    """What MXNet.jl has `eachbatch` for: an epoch is one run of a generator."""

    provide_data, provide_label = [DataDesc("data", (2, 3))], []

    def __init__(self):
        self.epochs = 0

    def eachbatch(self):
        self.epochs += 1
        for number in range(3):
            yield DataBatch([np.full((2, 3), float(number))], provide_data=self.provide_data)


def firsts(loop):
    return [batch.data[0].ravel()[0] for batch in loop]


EVERY = pytest.mark.parametrize("make", [Parts, Whole, Generated])


@EVERY
def test_a_class_of_a_client_works_everywhere(make):
    provider = make()
    assert isinstance(provider, AbstractDataProvider) and provider.batch_size == 2
    for _ in range(2):
        assert firsts(provider) == [0, 1, 2]
    assert firsts(eachbatch(make())) == [0, 1, 2]
    provider.reset()
    seen = []
    while provider.iter_next():
        seen.append(provider.getdata())
    assert len(seen) == 3
    for around in (ResizeIter(make(), 5), PrefetchingIter(make()), MXDataProvider(make())):
        with around:
            wanted = [0, 1, 2, 0, 1] if isinstance(around, ResizeIter) else [0, 1, 2]
            assert firsts(around) == wanted == firsts(around)
            assert around.provide_data[0] == ("data", (2, 3)) and around.batch_size == 2
    assert [rows.shape for rows in make().iterator(data_specs=(VectorSpace(3), "data"))][0] == (
        2,
        3,
    )
    with ResizeIter(make(), 2, data_specs=(VectorSpace(3), "features")) as around:
        assert [(batch @ np.ones((3, 1))).tolist() for batch in around] == [[[0]] * 2, [[3]] * 2]
    with pytest.raises(TypeError, match="no state"):
        make().state_dict()


def test_next_is_made_of_parts():
    provider = Parts()
    batch = provider.next()
    assert isinstance(batch, DataBatch) and batch["softmax_label"].tolist() == [0, 0]
    assert provider.current is batch and batch.pad == 0 and batch.index is None
    assert [batch.count for batch in provider] == [2, 2, 1]
    provider = DataOnly()
    batch = provider.next()
    assert batch.data[0].tolist() == [0, 0] and batch.label == [] and batch.pad == 0
    assert (provider.getlabel(), provider.getpad(), provider.getindex()) == (None, 0, None)
    assert firsts(provider) == [1, 2] and firsts(provider) == [], "it has no reset"
    with pytest.raises(RuntimeError, match="iter_next"):
        Whole().getlabel()


def test_what_mxnet_leaves_none_is_nothing():
    class Bare(Whole):
        provide_label = None

        def next(self):
            batch = super().next()
            return DataBatch(batch.data, None, pad=None)

    assert Bare().batch_size == 2 and Bare().next().count == 2
    assert next(Bare().iterator(data_specs=(VectorSpace(3), "data"))).shape == (2, 3)
    for around in (
        MXDataProvider(Bare()),
        PrefetchingIter(Bare()),
        ResizeIter(Bare(), 2, data_specs=(VectorSpace(3), "data")),
    ):
        with around:
            assert around.next().data[0].shape == (2, 3) and around.provide_label == []


class Undescribed(DataIter):
    """MXNet's base class asks for no descriptions."""

    at = 0

    def iter_next(self):
        self.at += 1
        return self.at <= 3

    def getdata(self):
        return [np.full((2, 3), self.at - 1.0)]

    def getlabel(self):
        return [np.zeros(2)]

    def reset(self):
        self.at = 0


def test_a_class_without_descriptions_is_looped_over():
    provider = Undescribed()
    assert firsts(provider) == [0, 1, 2] == firsts(provider)
    provider.reset()
    assert provider.next().count == 2 and provider.iter_next() and provider.getpad() == 0
    with pytest.raises(KeyError, match="no names"):
        get(provider, provider.current, "data")
    with pytest.raises(TypeError, match="size of a batch is unknown"):
        ResizeIter(Undescribed(), 2)
    for around in (lambda it: ResizeIter(it, 3), PrefetchingIter, MXDataProvider):
        with around(Undescribed(2)) as around:
            assert (firsts(around), around.batch_size) == ([0, 1, 2], 2)
            assert around.provide_data == around.provide_label == []
    with pytest.raises(ValueError, match="one array with one class"):
        MixBatches(Undescribed(2), mixup=1.0)


class Named(DataIter):
    """The names of its arrays are said by the class alone."""

    provide_data = [("h0", (4, 2)), ("h1", (4,))]
    provide_label = [("y", (4,))]
    left = 2

    def next(self):
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return DataBatch([np.ones((4, 2)), np.ones(4)], [np.zeros(4)])


class NamedByEpoch(AbstractDataProvider):
    provide_data, provide_label = Named.provide_data, Named.provide_label

    def eachbatch(self):
        yield from Named()


@pytest.mark.parametrize("make", [Named, NamedByEpoch])
def test_arrays_are_found_by_the_names_of_their_provider(make):
    for take in (make.next, lambda it: next(iter(it)), lambda it: next(iter(eachbatch(it)))):
        provider = make()
        batch = take(provider)
        assert batch["h1"] is batch.data[1] is get(provider, batch, "h1")
        assert batch["y"] is batch.label[0]
        with pytest.raises(KeyError, match="this batch has h0, h1, y"):
            get(provider, batch, "z")
    for around in (lambda it: ResizeIter(it, 3), PrefetchingIter, MXDataProvider):
        with around(make()) as around:
            assert around.next()["h1"].shape == (4,)
    unnamed = DataBatch([np.zeros((4, 2)), np.zeros(4)], [np.ones(4)])
    assert get(provider, unnamed, "y") is unnamed.label[0]
    other = DataBatch([1, 2], provide_data=[("a", ()), ("b", ())])
    assert get(provider, other, "b") == 2, "names of its own"


def test_a_short_batch_has_as_many_samples_as_its_arrays():
    batch = get_first(Announcing([np.zeros((4, 2))], [np.zeros((3, 2))]), skip=1)
    assert batch["data"].shape == (3, 2) and batch.count == 3


class Announcing(DataIter):
    provide_data, provide_label = [("data", (4, 2))], []

    def __init__(self, *batches, **more):
        super().__init__()
        self.batches, self.more = list(batches), more

    def next(self):
        if not self.batches:
            raise StopIteration
        return DataBatch(self.batches.pop(0), **self.more)


class AnnouncingByEpoch(AbstractDataProvider):
    provide_data, provide_label = Announcing.provide_data, []

    def __init__(self, *batches, **more):
        self.inside = Announcing(*batches, **more)
        self.inside.provide_data = []

    def eachbatch(self):
        return iter(self.inside)


def get_first(provider, skip=0):
    loop = iter(provider)
    for _ in range(skip):
        next(loop)
    return next(loop)


@pytest.mark.parametrize("make", [Announcing, AnnouncingByEpoch])
@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ([np.zeros((3, 2))], r"data=\(4, 2\), and in its first batch that is \(3, 2\)"),
        ([np.zeros((4, 2, 1))], r"is \(4, 2, 1\): correct provide_data"),
        ([np.zeros((4, 2)), np.zeros(4)], r"1 arrays in provide_data \(data\), .* batch has 2"),
        ([], "first batch has 0"),
    ],
)
def test_what_is_announced_is_compared_with_the_first_batch(make, arrays, text):
    for around in (lambda it: it, PrefetchingIter, lambda it: ResizeIter(it, 2), MXDataProvider):
        with around(make(arrays)) as provider, pytest.raises(ValueError, match=text):
            provider.next()
    whole = [np.zeros((4, 2))]
    assert len(list(make(whole, arrays or whole))) == 2, "the first one alone"
    assert get_first(make(arrays or [np.zeros(1)], bucket_key=3)).bucket_key == 3


def test_labels_and_foreign_objects_are_compared_too():
    provider = Announcing([np.zeros((4, 2))])
    provider.provide_label = [("y", (4,))]
    with pytest.raises(ValueError, match=r"1 arrays in provide_label \(y\), .* has 0"):
        provider.next()
    provider = Announcing([np.zeros((4, 2))])
    provider.provide_data = [("data", (0, 2))]
    assert provider.next().count == 4, "a length that is not known"

    class Foreign:
        provide_data, provide_label = [("data", (4, 2))], []

        def reset(self):
            pass

        def next(self):
            return DataBatch([np.zeros((4, 3))])

    with pytest.raises(ValueError, match="Foreign announces data="):
        MXDataProvider(Foreign()).next()

    class Changing(Announcing):
        """What is compared is what comes out of the class, not what it inherits."""

        def next(self):
            batch = super().next()
            return DataBatch([batch.data[0].reshape(4, 2)])

    assert Changing([np.zeros((2, 4))]).next()["data"].shape == (4, 2)


def test_the_batch_size_of_a_client_can_be_set():
    provider = Parts()
    provider.batch_size = 5
    assert provider.next().data[0].shape == (5, 3) and DataIter(batch_size=7).batch_size == 7
    assert Whole().batch_size == 2, "what the description says"
    for wrong in (-1, 1.5, "x"):
        with pytest.raises((TypeError, ValueError), match="batch_size"):
            provider.batch_size = wrong


class Counting(DataIter):
    """As MXNet's example of SSD: attributes whose names a base class might use."""

    provide_data, provide_label = [("data", (4, 1))], []

    def __init__(self, name="_current"):
        super().__init__()
        self.batch_size = 4
        self.name, self._size = name, 10
        self.reset()

    def reset(self):
        setattr(self, self.name, 0)

    def iter_next(self):
        return getattr(self, self.name) < self._size

    def next(self):
        if not self.iter_next():
            raise StopIteration
        setattr(self, self.name, getattr(self, self.name) + self.batch_size)
        pad = max(0, getattr(self, self.name) - self._size)
        return DataBatch([np.zeros((4, 1))], [], pad=pad)


@pytest.mark.parametrize(
    "name",
    ["_current", "current", "_loop", "_epoch_batches", "_delivered", "_begin", "_shown", "epoch"],
)
def test_attributes_of_a_client_are_its_own(name):
    for around in (lambda it: it, lambda it: ResizeIter(it, 3), PrefetchingIter):
        it = Counting(name)
        with around(it) as provider:
            for _ in range(2):
                assert [batch.pad for batch in provider] == [0, 0, 2]
        assert (it.batch_size, it._size, getattr(it, name)) == (4, 10, 12)
        assert repr(it) == "<Counting: data=(4, 1)>" and next(it.iterator()).shape == (4, 1)


def test_the_private_names_of_the_base_class_are_told_by_their_beginning():
    private = [name for name in dir(DataIter()) if name[0] == "_" and name[:2] != "__"]
    assert private and all(name.startswith("_provider_") for name in private)


def test_current_is_the_batch_where_no_client_keeps_something_there():
    provider = ArrayDataProvider(np.arange(4.0), batch_size=2)
    with pytest.raises(RuntimeError, match="no current batch"):
        _ = provider.current
    assert provider.iter_next() and provider.current.data[0] is provider.getdata()
    provider.current = "mine"
    assert provider.iter_next() and provider.current == "mine"
    assert provider.getdata().tolist() == [2, 3]
    assert "iter_next" in type(provider).current.__doc__


def test_a_reset_that_needs_a_batch_before_it_is_not_called_before_one():
    class OneOf(DataIter):
        """As insightface's list of iterators: reset() needs a batch before it."""

        provide_data, provide_label, chosen = [("data", (2, 3))], [], None

        def __init__(self, *inside):
            super().__init__()
            self.inside = inside

        def reset(self):
            self.chosen.reset()

        def next(self):
            self.chosen = self.inside[0]
            return self.chosen.next()

    for provider in (OneOf(Whole()), PrefetchingIter(OneOf(Whole()))):
        with provider:
            assert firsts(provider) == [0, 1, 2] == firsts(provider)
    with pytest.raises(AttributeError, match="reset"):
        OneOf(Whole()).reset()


class Mixin:
    """Methods that a class does not define itself are noted, too."""

    def reset(self):
        self.resets = getattr(self, "resets", 0) + 1
        super().reset()


class Shuffled(Mixin, Whole):
    pass


class Resumable(Whole):
    def state_dict(self):
        return {"left": self.left}

    def load_state_dict(self, state):
        self.left = state["left"]


class Endless(Whole):
    def next(self):
        if not self.left:
            self.reset()
        return super().next()


def test_a_loop_resets_what_was_used_and_only_that():
    provider = Shuffled()  # resets itself
    assert firsts(provider) == [0, 1, 2] and provider.resets == 1
    assert firsts(provider) == [0, 1, 2] and provider.resets == 2
    provider.reset()
    assert firsts(provider) == [0, 1, 2] and provider.resets == 3, "as many as in MXNet"
    for use in (Whole.next, Shuffled.next, next, DataIter.iter_next):
        for number in range(1, 4):
            provider = Shuffled()
            for _ in range(number):
                use(provider)
            assert firsts(provider) == [0, 1, 2] and provider.resets == 2
    provider = Resumable()
    provider.next()
    state = provider.state_dict()
    provider.next()
    provider.load_state_dict(state)
    assert firsts(provider) == [1, 2] and firsts(provider) == [0, 1, 2]
    endless = Endless()
    for _ in range(4):
        endless.next()
    assert next(iter(endless)).data[0][0, 0] == 0, "a reset inside of next() is not one of the loop"
    provider = Parts()
    provider.iter_next()
    assert firsts(provider) == [0, 1, 2]
    loops = iter(provider), iter(provider)
    assert firsts(loops[1]) == [0, 1, 2]
    with pytest.raises(RuntimeError, match="another loop"):
        next(loops[0])


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (type("Nothing", (DataIter,), {"provide_data": [("data", (2,))]}), "neither next"),
        (type("Nothing", (AbstractDataProvider,), {}), "neither next"),
    ],
)
def test_a_class_that_makes_no_batches_says_so(make, word):
    with pytest.raises(TypeError, match=word):
        make().next()


def test_what_is_half_a_class_is_refused():
    class Half(AbstractDataProvider):
        provide_data, provide_label = [DataDesc("data", (2,))], []

        def next(self):
            raise StopIteration

        def eachbatch(self):
            yield from ()

    with pytest.raises(TypeError, match="neither reset"):
        iter(Half())


def test_a_loop_over_a_generator_that_is_left_is_followed_by_a_new_epoch():
    provider = Generated()
    for _ in provider:
        break
    assert firsts(provider) == [0, 1, 2] and provider.epochs == 2
    first = iter(provider)
    next(first)
    assert firsts(provider) == [0, 1, 2]
    with pytest.raises(RuntimeError, match="another loop"):
        next(first)
    provider.reset()
    assert provider.next().data[0].max() == 0
    state = MXDataProvider(Generated()).state_dict()
    assert "inside" not in state
    resumed = MXDataProvider(Generated())
    resumed.load_state_dict(state | {"number": 2})
    assert firsts(resumed) == [2]


def test_descriptions_from_lists():
    found = DataDesc.get_list([("a", (2, 3)), ("b", (2,))], [("b", "int64"), ("a", np.uint8)])
    assert found == [("a", (2, 3)), ("b", (2,))]
    assert [desc.dtype for desc in found] == [np.uint8, np.int64]
    assert DataDesc.get_list([("a", (2,))])[0].dtype == np.float32
    with pytest.raises(ValueError, match="no type for 'b', only for a"):
        DataDesc.get_list([("b", (2,))], [("a", "int8")])


# -- what iter(provider) gives ------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [lambda: ArrayDataProvider(np.arange(6.0), batch_size=2), Parts, Whole, Generated]
)
def test_a_loop_has_the_methods_of_an_iterator_of_mxnet(make):
    provider = make()
    loop = iter(provider)
    assert isinstance(loop, AbstractDataProviderState) and iter(loop) is loop
    first = loop.next()
    assert provider.current is first and next(loop) is provider.current
    assert loop.provider is provider
    loop.reset()
    assert len(list(loop)) == 3 and list(loop) == []
    loop.reset()
    assert len(list(loop)) == 3
    assert next(iter(provider)) is provider.current
    assert next(loop, None) is None, "it was over before the other began"
    second, third = iter(provider), iter(provider)
    third.next()
    with pytest.raises(RuntimeError, match="another loop"):
        second.next()
    second.reset()
    second.next()
    with pytest.raises(RuntimeError, match="another loop"):
        third.next()


def test_a_loop_goes_on_past_a_batch_that_failed():
    class Failing(Parts):
        def getdata(self):
            if self.cursor == 1:
                raise OSError("the disk is gone")
            return super().getdata()

    loop = iter(Failing())
    loop.next()
    with pytest.raises(OSError, match="gone"):
        loop.next()
    assert firsts(loop) == [2]


def test_a_call_of_reset_reaches_a_class_that_needs_it():
    class Lazy(Whole):
        resets = 0

        def __init__(self):
            """Nothing: `reset` begins."""

        def reset(self):
            self.resets += 1
            super().reset()

    for around in (lambda it: it, lambda it: ResizeIter(it, 3), PrefetchingIter, MXDataProvider):
        inside = Lazy()
        with around(inside) as provider:
            provider.reset()
            provider.reset()
            assert firsts(provider) == [0, 1, 2] and inside.resets == (
                2 if provider is inside else 1
            )
            assert firsts(provider) == [0, 1, 2]


# -- names --------------------------------------------------------------------------------------


def test_the_native_iterators_are_data_providers_of_mxnet(tmp_path):
    for kind in (CSVIter, LibSVMIter, MNISTIter, ImageRecordIter, ImageRecordInt8Iter, ImageIter):
        assert issubclass(kind, MXDataProvider), kind
    assert issubclass(iterators.ImageDetRecordIter, MXDataProvider)
    path = tmp_path / "a.csv"
    path.write_text("1\n2\n")
    with CSVIter(data_csv=path, data_shape=(1,), batch_size=2) as provider:
        assert isinstance(provider, MXDataProvider)
    for kind in (NDArrayIter, ArrayDataProvider, ResizeIter, Parts):
        assert not issubclass(kind, MXDataProvider), kind


def test_the_type_of_batches():
    def asked():
        specs = VectorSpace(2), "data"
        return ArrayDataProvider(np.zeros((4, 2)), batch_size=2, data_specs=specs)

    plain = ArrayDataProvider(np.arange(6.0), batch_size=2)
    for provider in (plain, asked(), ResizeIter(asked(), 2), MXDataProvider(asked()), Parts()):
        assert eltype(provider) is provider.eltype() is type(provider.next())


def test_sliced_arrays_are_destinations():
    provider = ArrayDataProvider(np.arange(8.0).reshape(4, 2), batch_size=4)
    first, second = np.empty((3, 2)), np.empty((1, 2))
    sliced = [SlicedNDArray(slice(0, 3), first), SlicedNDArray(range(3, 4), second)]
    load_data(provider, provider.next(), [sliced])
    assert first.tolist() == [[0, 1], [2, 3], [4, 5]] and second.tolist() == [[6, 7]]
