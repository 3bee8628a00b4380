"""Loading what was saved: nothing is lost on the way (Chainer's rule of safe casts)."""

import io

import numpy as np
import pytest
import torch

from iterators.loops import NpzDeserializer, load_npz, save_npz, serialize


def loaded(saved, value):
    return NpzDeserializer({"key": np.asarray(saved)})("key", value)


@pytest.mark.parametrize(
    ("saved", "value"),
    [
        (2**40, np.int32(0)),
        (2.7, 0),
        (2.0, 0),
        (1, True),
        (2**40, np.float32(0)),
        (1.5, np.float32(0)),
        (1 + 2j, 0.0),
        (np.uint64(1), np.int64(0)),
    ],
)
def test_a_type_that_cannot_hold_what_was_saved_is_refused(saved, value):
    with pytest.raises(TypeError, match="key: .* cannot hold"):
        loaded(saved, value)


@pytest.mark.parametrize(
    ("saved", "value"),
    [
        (2**40, 0),
        (np.uint64(2**64 - 1), 0),
        (np.int32(7), np.int64(0)),
        (7, 0.0),
        (np.float32(1.5), 0.0),
        (True, 0),
        (True, False),
        ("text", ""),
    ],
)
def test_what_fits_is_loaded_in_the_type_of_the_value(saved, value):
    found = loaded(saved, value)
    assert found == saved and type(found) is type(value)


@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_arrays_and_tensors_are_filled_without_loss(make):
    target = make([0, 0])
    assert loaded(np.array([1, 2], np.int16), target) is target and target.tolist() == [1, 2]
    shorter = make([0.0, 0.0])
    assert loaded(np.array([0.5, 1.5]), shorter).tolist() == [0.5, 1.5]
    with pytest.raises(TypeError, match="key: float64"):
        loaded(np.array([0.5, 1.5]), target)
    with pytest.raises(ValueError, match="shape"):
        loaded(np.array(1), target)
    narrow = make([3, 3]).astype(np.int32) if make is np.array else make([3, 3]).int()
    with pytest.raises(ValueError, match="too large"):
        loaded(np.array([1, 2**40]), narrow)
    assert narrow.tolist() == [3, 3] and target.tolist() == [1, 2]


def test_a_parameter_that_wants_gradients_is_filled():
    weight = torch.zeros(2, requires_grad=True)
    assert loaded(np.array([1.0, 2.0]), weight).tolist() == [1, 2] and weight.requires_grad


def test_dictionaries_are_saved_as_they_are():
    class Model:
        step = 3

        def serialize(self, serializer):
            self.step = serializer("step", self.step)

    first, second, file = Model(), Model(), io.BytesIO()
    save_npz(file, serialize(first))
    second.step = 0
    load_npz(io.BytesIO(file.getvalue()), second)
    assert second.step == 3
