"""The protocol of MXNet's iterators, as MXNet.jl uses it, and batches that fill its arrays."""

import gc
import weakref

import numpy as np
import pytest

from iterators import (
    AbstractDataProvider,
    ArrayDataProvider,
    DataBatch,
    DataDesc,
    NDArrayIter,
    ResizeIter,
)
from iterators.providers.protocol import (
    count_samples,
    eachbatch,
    get,
    get_batch_size,
    get_data,
    get_label,
    load_data,
    load_label,
    provide_data,
    provide_label,
)


@pytest.fixture
def provider():
    return ArrayDataProvider(
        [("x", np.arange(12.0).reshape(6, 2)), ("z", np.arange(6))],
        ("y", np.arange(6) * 10),
        batch_size=4,
    )


def test_the_functions_of_mxnet_jl(provider):
    assert get_batch_size(provider) == 4
    assert provide_data(provider) == [("x", (4, 2)), ("z", (4,))]
    assert provide_label(provider) == [("y", (4,))]
    counts = []
    for batch in eachbatch(provider):
        assert get_data(provider, batch) == batch.data
        assert get_label(provider, batch) == batch.label
        assert get(provider, batch, "y") is batch.label[0]
        with pytest.raises(KeyError, match="x, z, y"):
            get(provider, batch, "w")
        counts.append(count_samples(provider, batch))
    assert counts == [4, 2]


def test_data_goes_first_when_a_label_has_the_same_name():
    provider = ArrayDataProvider(("a", np.zeros(2)), ("a", np.ones(2)))
    batch = provider.next()
    assert get(provider, batch, "a") is batch.data[0]


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("device", [None, "cpu"])
def test_slices_go_to_their_destinations(kind, device):
    torch = pytest.importorskip("torch")
    provider = NDArrayIter(
        np.arange(12.0).reshape(6, 2), np.arange(6), batch_size=6, device=device, dtype=None
    )
    batch = provider.next()
    make = np.zeros if kind == "numpy" else lambda shape: torch.zeros(shape, dtype=torch.float64)
    parts = [make((3, 2)), make((2, 2)), make((1, 2)), make((3, 2))]
    load_data(
        provider,
        batch,
        [
            [
                (slice(0, 3), parts[0]),
                (range(3, 5), parts[1]),
                (slice(5, None), parts[2]),
                (range(1, 6, 2), parts[3]),
            ]
        ],
    )
    assert [np.asarray(part)[:, 0].tolist() for part in parts] == [
        [0, 2, 4],
        [6, 8],
        [10],
        [2, 6, 10],
    ]
    whole = make(6)
    load_label(provider, batch, [whole])
    assert whole.tolist() == list(range(6))  # int64 into float64


def test_there_is_a_target_for_every_array(provider):
    """Otherwise the targets without an array would keep the last batch, and nobody would notice."""
    batch = provider.next()
    x, y, surplus = np.full((4, 2), -1.0), np.full(4, -1), np.full(4, 7)
    with pytest.raises(ValueError, match=r"1 targets for 2 data arrays \(x, z\): .*\[\] for"):
        load_data(provider, batch, [x])
    with pytest.raises(ValueError, match=r"2 targets for 1 label arrays \(y\)"):
        load_label(provider, batch, [y, surplus])
    assert (x == -1).all() and (y == -1).all() and (surplus == 7).all()
    load_data(provider, batch, [x, []])
    assert x[3].tolist() == [6, 7]
    load_data(provider, batch, [[], [(slice(0, 0), np.zeros(0))]])


def test_a_batch_without_the_described_labels_fills_no_target(provider):
    y = np.full(4, -1)
    with pytest.raises(ValueError, match="the batch has 0 label arrays, provide_label describes 1"):
        load_label(provider, DataBatch([np.zeros((4, 2)), np.zeros(4)]), [y])
    assert (y == -1).all()


class Generated(AbstractDataProvider):
    provide_data, provide_label = [DataDesc("data", (2,))], []

    def eachbatch(self):
        for number in range(3):
            yield DataBatch([np.full(2, number)], provide_data=self.provide_data)


@pytest.mark.parametrize(
    "make",
    [
        Generated,
        lambda: NDArrayIter(np.repeat(np.arange(3), 2), batch_size=2),
        lambda: ResizeIter(Generated(), 3),
    ],
)
def test_every_loop_over_eachbatch_is_an_epoch(make):
    batches = eachbatch(make())
    for _ in range(3):
        assert [batch.data[0][0] for batch in batches] == [0, 1, 2]


@pytest.mark.parametrize(
    ("target", "error", "text"),
    [
        (np.zeros(2), ValueError, r"x: \(4, 2\) does not fit a destination of shape \(2,\)"),
        ([(slice(0, 9), np.zeros((9, 2)))], ValueError, "x: "),
        ([(slice(0, 1), np.zeros(2))], ValueError, "x: "),
        ([(range(-1, 1), np.zeros((2, 2)))], ValueError, "count upwards"),
        ([(range(3, 0, -1), np.zeros((3, 2)))], ValueError, "count upwards"),
        ([(2, np.zeros((1, 2)))], TypeError, "neither a slice nor a range"),
        ([np.zeros((4, 2))], TypeError, "pairs"),
        (3, TypeError, "int is not an array"),
    ],
)
def test_targets_that_do_not_fit(provider, target, error, text):
    with pytest.raises(error, match=text):
        load_data(provider, provider.next(), [target, []])


def test_layouts_whose_batch_axis_is_not_the_first():
    provider = NDArrayIter(np.zeros((4, 3)), batch_size=2)
    batch = provider.next()
    batch.data = [np.arange(6).reshape(3, 2)]
    provider.provide_data[0].layout = "CN"
    part = np.zeros((3, 1))
    load_data(provider, batch, [[(slice(1, 2), part)]])
    assert part.ravel().tolist() == [1, 3, 5]


def test_sparse_batches_fill_dense_destinations():
    sparse = pytest.importorskip("scipy.sparse")
    provider = ArrayDataProvider(sparse.csr_matrix(np.eye(3)), batch_size=3)
    target = np.zeros((2, 3))
    load_data(provider, provider.next(), [[(slice(1, 3), target)]])
    assert target.tolist() == [[0, 1, 0], [0, 0, 1]]


@pytest.mark.cuda
def test_destinations_on_a_device(provider):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    batch = provider.next()
    here, there = np.zeros((2, 2)), torch.zeros((2, 2), device="cuda")
    load_data(provider, batch, [[(slice(0, 2), here), (slice(2, 4), there)], []])
    assert there.cpu().tolist() == [[4, 5], [6, 7]]


@pytest.mark.parametrize("whole", [True, False])
def test_a_provider_is_freed_as_soon_as_it_is_dropped(whole):
    """Memory and threads shall not wait for the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        provider = ArrayDataProvider(np.arange(6), batch_size=2)
        for _ in provider:
            if not whole:
                break
        alive = weakref.ref(provider)
        del provider
        assert alive() is None
    finally:
        gc.enable()


def test_no_batch_is_current_after_a_failure(provider, monkeypatch):
    def fail():
        raise OSError("the disk is gone")

    assert provider.iter_next()
    monkeypatch.setattr(provider._engine, "collect", fail)
    with pytest.raises(OSError, match="disk"):
        provider.next()
    with pytest.raises(RuntimeError, match="no current batch"):
        provider.current  # noqa: B018
