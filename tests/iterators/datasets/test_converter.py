"""Converters: what ``device=`` is for functions of users."""

import copy
import pickle

import numpy as np
import pytest

from iterators import ConcatWithAsyncTransfer, Converter, converter
from iterators.core.device import NumpyDevice

torch = pytest.importorskip("torch")


@converter()
def seen(batch, device=None):
    """What the function got."""
    return batch, device


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        (-1, NumpyDevice()),
        ("@numpy", NumpyDevice()),
        ("cpu", torch.device("cpu")),
        (torch.device("cpu"), torch.device("cpu")),
    ],
)
def test_the_function_gets_a_device_object(given, expected):
    assert seen([1], given) == ([1], expected)
    assert seen([1], device=given) == ([1], expected)
    assert seen(batch=[1], device=given) == ([1], expected)


def test_a_converter_looks_like_its_function():
    assert isinstance(seen, Converter)
    assert seen.__name__ == "seen"
    assert seen.__doc__ == "What the function got."


def test_a_converter_can_be_pickled_by_name_unless_it_is_local(monkeypatch):
    import sys
    import types

    module = types.ModuleType("converters_of_a_user")
    module.seen = copy.copy(seen)
    module.seen.__module__ = module.__name__
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert pickle.loads(pickle.dumps(module.seen)) is module.seen

    @converter()
    def local(batch, device):
        return batch

    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(local)


def test_only_functions_can_be_decorated():
    with pytest.raises(TypeError, match="function"):
        converter()(3)


def test_the_base_class_converts_nothing():
    with pytest.raises(NotImplementedError, match="Converter"):
        Converter()([1])


@pytest.mark.parametrize("device", [None, -1, "cpu"])
def test_the_asynchronous_converter_gives_the_same_on_the_host(device):
    convert = ConcatWithAsyncTransfer()
    for _ in range(3):
        found = convert([(np.ones(2), 0), (np.zeros(1), 1)], device, padding=5)
        np.testing.assert_array_equal(found[0], [[1, 1], [0, 5]])
        assert isinstance(found[0], torch.Tensor if device == "cpu" else np.ndarray)


def test_the_device_of_the_asynchronous_converter_is_fixed_by_the_first_call():
    convert = ConcatWithAsyncTransfer()
    convert([1], -1)
    convert([1], "@numpy")
    for other in (None, "cpu"):
        with pytest.raises(ValueError, match="first call"):
            convert([1], other)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_the_asynchronous_converter_delivers_on_cuda():
    convert = ConcatWithAsyncTransfer()
    for value in range(8):
        found = convert([{"x": np.full(1 << 16, value)}] * 4, 0)
        assert found["x"].device.type == "cuda"
        assert bool((found["x"] == value).all())
