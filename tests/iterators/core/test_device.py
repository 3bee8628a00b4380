import sys

import numpy as np
import pytest
import torch

from iterators.core.device import placement


def test_numpy_stays_numpy():
    array = np.zeros(3)
    assert placement(None).place([array])[0] is array


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu")])
def test_cpu_tensors_share_the_memory(device):
    array = np.zeros(3, np.float32)
    (tensor,) = placement(device).place([array])
    tensor[1] = 5
    assert array.tolist() == [0, 5, 0]


def test_without_torch_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="pip install torch"):
        placement("cpu")


@pytest.mark.parametrize("device", ["gpu", "nonsense:1", 3.5, "meta"])
def test_unknown_devices_are_refused_by_name(device):
    with pytest.raises(ValueError, match="device="):
        placement(device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_missing_cuda_device_is_said_to_be_missing():
    with pytest.raises(ValueError, match="no CUDA device"):
        placement("cuda")


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_tensors_are_valid_on_the_current_stream():
    place = placement("cuda", ring=2)
    for value in range(20):
        memory = place.allocate(1 << 20).view(np.float32)
        memory[:] = value
        (tensor,) = place.place([memory])
        assert float(tensor.sum()) == value * (1 << 18)
