"""Preprocessing against formulas written out element by element."""

import numpy as np
import pytest
import scipy.ndimage
import scipy.sparse

from iterators import ClassView, DataView, ImageView, ListView
from iterators.views import (
    GCN,
    ZCA,
    Binarize,
    LeCunLCN,
    ParallelPreprocess,
    Pipeline,
    Preprocess,
    Standardize,
)

torch = pytest.importorskip("torch")


def features(n=20, f=6, seed=0):
    return np.random.default_rng(seed).normal(3, 2, (n, f))


def images(n=5, side=12, channels=3, seed=0):
    return np.random.default_rng(seed).random((n, side, side, channels))


@pytest.mark.parametrize("global_mean", [False, True])
@pytest.mark.parametrize("global_std", [False, True])
def test_standardize(global_mean, global_std):
    x, y = features(), features(seed=1)
    mean = x.mean() if global_mean else x.mean(0)
    std = x.std(ddof=1) if global_std else x.std(0, ddof=1)
    step = Standardize(global_mean, global_std, std_eps=0.1)
    train, test = DataView("bf", x.copy()), DataView("bf", y.copy())
    step.apply(train, can_fit=True)
    step.apply(test, can_fit=False)
    assert np.allclose(train.input, (x - mean) / (std + 0.1))
    assert np.allclose(test.input, (y - mean) / (std + 0.1))


def test_standardize_one_row_divides_by_the_constant_only():
    view = DataView("bf", np.array([[1.0, 2.0]]))
    Standardize().apply(view, True)
    assert view.input.tolist() == [[0, 0]]
    with pytest.raises(ValueError, match="no data"):
        Standardize().apply(DataView("bf", np.zeros((0, 2))), True)


@pytest.mark.parametrize("substract_mean", [True, False])
@pytest.mark.parametrize("use_std", [True, False])
@pytest.mark.parametrize("batch_size", [1, 7, 256])
def test_gcn(substract_mean, use_std, batch_size):
    x = features()
    x[4] = 1 if substract_mean else 0
    expected = np.empty_like(x)
    for i, row in enumerate(x):
        row = row - row.mean() if substract_mean else row
        squares = (row**2).mean() if use_std else (row**2).sum()
        divisor = np.sqrt(squares)
        expected[i] = 5 * row / (divisor if divisor >= 1e-8 else 1)
    view = DataView("bf", x)
    GCN(substract_mean, 5, 0, use_std, batch_size=batch_size, progress=False).apply(view)
    assert np.allclose(view.input, expected)
    assert view.input is x


def test_gcn_bias_and_least_divisor():
    view = DataView("bf", np.array([[3.0, 4.0], [0.3, 0.4]]))
    GCN(False, sqrt_bias=11, min_divisor=4, progress=False).apply(view)
    assert np.allclose(view.input, [[0.5, 4 / 6], [0.3, 0.4]])


def test_zca_whitens_and_undoes():
    x, y = features(200), features(50, seed=1)
    step = ZCA(filter_bias=0.1, compute_undo=True, progress=False)
    view, other = DataView("bf", x.copy()), DataView("bf", y.copy())
    step.apply(view, can_fit=True)
    values, vectors = np.linalg.eigh(np.cov(x.T, bias=True) + 0.1 * np.eye(6))
    whitening = vectors @ np.diag(values**-0.5) @ vectors.T
    assert np.allclose(view.input, (x - x.mean(0)) @ whitening)
    step.apply(other)
    assert np.allclose(other.input, (y - x.mean(0)) @ whitening)
    assert np.allclose(step.undo(other), y)
    assert not np.allclose(other.input, y)


def test_zca_keeps_the_directions_of_greatest_variance():
    x = features(500) @ np.diag([1, 2, 3, 4, 5, 6])
    values, vectors = np.linalg.eigh(np.cov(x.T, bias=True) + 0.1 * np.eye(6))
    kept = slice(3, 6)  # four greatest without the smallest of them
    whitening = vectors[:, kept] @ np.diag(values[kept] ** -0.5) @ vectors[:, kept].T
    view = DataView("bf", x.copy())
    ZCA(n_component=4, n_drop_component=1, progress=False).apply(view, True)
    assert np.allclose(view.input, (x - x.mean(0)) @ whitening)
    assert np.linalg.matrix_rank(view.input) == 3


def test_zca_refuses_what_it_cannot_do():
    for step in (
        ZCA(7, progress=False),
        ZCA(2, 2, progress=False),
        ZCA(progress=False, filter_bias=0),
    ):
        with pytest.raises(ValueError):
            step.apply(DataView("bf", np.ones((4, 6))), True)
    with pytest.raises(RuntimeError, match="compute_undo"):
        ZCA().undo(DataView("bf", np.ones((4, 6))))


@pytest.mark.parametrize("kernel_size", [1, 5, 9, 15])
@pytest.mark.parametrize("divide_by_std", [True, False])
@pytest.mark.parametrize("batch_size", [2, 256])
def test_local_contrast(kernel_size, divide_by_std, batch_size):
    x = images()
    radius = np.arange(kernel_size) - kernel_size // 2
    kernel = np.exp(-(radius[:, None] ** 2 + radius**2) / (2 * 1.5**2))
    kernel /= kernel.sum()
    expected = x.copy()
    for i in range(len(x)):
        for channel in (0, 2):
            plane = x[i, :, :, channel]
            smooth = scipy.ndimage.convolve(plane, kernel, mode="constant")
            centred = plane - smooth
            if divide_by_std:
                divisor = centred.std(ddof=1) + 0.01
            else:
                local = np.sqrt(scipy.ndimage.convolve(centred**2, kernel, mode="constant"))
                divisor = np.maximum(np.maximum(local, local.mean()), 0.01)
            expected[i, :, :, channel] = centred / divisor
    step = LeCunLCN(kernel_size, 1.5, 0.01, divide_by_std, batch_size, (0, 2, 7), progress=False)
    view = ImageView("bchw", np.ascontiguousarray(x.transpose(0, 3, 1, 2)))
    step.apply(view)
    assert np.allclose(view.input.transpose(0, 2, 3, 1), expected)
    assert view.view == "bchw"


def test_binarize_keeps_the_type_and_works_below_zero():
    view = DataView("bf", np.array([[-2.0, -1.0, 0.0]], np.float32))
    view.forward_get("bf", "double")
    Binarize(-1).apply(view)
    assert view.input.tolist() == [[0, 1, 1]]
    assert view.input.dtype == np.float32
    assert view.forward_get("bf", "double").tolist() == [[0, 1, 1]]


STEPS = [
    Standardize(),
    GCN(progress=False),
    ZCA(progress=False),
    LeCunLCN(kernel_size=3, progress=False),
    Binarize(0.5),
    Pipeline([GCN(progress=False), Standardize(), Binarize(0)]),
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
@pytest.mark.parametrize("base", ["bhwc", "bchw", "chwb"])
def test_tensors_give_what_arrays_give(step, base):
    x = images(side=4).transpose(["bhwc".index(axis) for axis in base]).astype(np.float32)
    array, tensor = ImageView(base, x.copy()), ImageView(base, torch.from_numpy(x.copy()))
    for view in (array, tensor):
        view.forward_get("bf")
        step.apply(view, can_fit=True)
    assert isinstance(tensor.input, torch.Tensor)
    assert tensor.input.dtype == torch.float32
    assert array.input.dtype == np.float32
    assert np.allclose(array.input, tensor.input.numpy(), atol=1e-4)
    assert np.array_equal(tensor.forward_get("bf"), array.forward_get("bf"))


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
def test_bytes_become_floating_point_and_stay_untouched(step):
    x = np.random.default_rng(0).integers(0, 255, (3, 4, 4, 3), np.uint8)
    before = x.copy()
    view = ImageView("bhwc", x)
    step.apply(view, can_fit=True)
    assert view.input.dtype == (np.uint8 if isinstance(step, Binarize) else np.float32)
    assert np.array_equal(x, before)


def test_read_only_data_are_copied():
    x = features()
    x.flags.writeable = False
    view = DataView("bf", x)
    GCN(progress=False).apply(view)
    assert not np.array_equal(view.input, x)


def test_unfitted_steps_and_wrong_views_are_refused():
    view = DataView("bf", features())
    for step in (Standardize(), ZCA()):
        with pytest.raises(RuntimeError, match="can_fit=True"):
            step.apply(view)
        with pytest.raises(RuntimeError, match="forward_put"):
            step.apply(DataView(), True)
    for step in STEPS:
        with pytest.raises(TypeError, match="one array"):
            step.apply(ListView([view]), True)
    with pytest.raises(TypeError, match="dense"):
        GCN().apply(DataView("bf", scipy.sparse.eye(3, format="csr")))
    with pytest.raises(TypeError, match="abstract"):
        Preprocess()


def test_one_step_for_every_component():
    both = ListView([DataView("bf", features()), ClassView("b", np.arange(20))])
    ParallelPreprocess([Standardize(), Binarize(10)]).apply(both, True)
    assert np.allclose(both.input[0].mean(0), 0)
    assert both.input[1].tolist() == [0] * 10 + [1] * 10
    with pytest.raises(ValueError, match="1 preprocesses for 2"):
        ParallelPreprocess([Standardize()]).apply(both, True)
    with pytest.raises(TypeError, match="ListView"):
        ParallelPreprocess([Standardize()]).apply(both.components[0], True)
    with pytest.raises(TypeError, match="step 1"):
        Pipeline([Standardize(), 5])


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (GCN, {"batch_size": 0}),
        (GCN, {"sqrt_bias": -1}),
        (Standardize, {"std_eps": -1}),
        (ZCA, {"n_component": 0}),
        (LeCunLCN, {"kernel_size": 8}),
        (LeCunLCN, {"kernel_std": 0}),
        (LeCunLCN, {"channels": (-1,)}),
    ],
)
def test_parameters_out_of_range(kind, wrong):
    with pytest.raises(ValueError):
        kind(**wrong)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
def test_converted_copies_from_before_are_forgotten(step):
    view = ImageView("bchw", images(side=4).transpose(0, 3, 1, 2).astype(np.float32))
    view.forward_get("bf", "double")
    step.apply(view, can_fit=True)
    assert np.array_equal(view.forward_get("bf", "double"), view.input.reshape(len(view), -1))
