"""Devices that batches are put on: NumPy, tensors of the CPU and of CUDA."""

import copy
import pickle
import sys

import numpy as np
import pytest
import scipy.sparse

from iterators.core.device import (
    DeviceNormalisation,
    NumpyDevice,
    TorchDevice,
    as_tensor,
    get_device,
    keep_for,
    placement,
    to_device,
)

torch = pytest.importorskip("torch")

TORCH = r"torch is needed for device=.*: pip install 'recordio-iterators\[torch\]' \("


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
    with pytest.raises(ImportError, match=TORCH):
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


def test_the_device_that_is_current_is_meant_whoever_asks_later(monkeypatch):
    """A number is found where the placement is made: other threads have other current devices."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: device)
    place = placement("cuda")
    assert place.device == place.stream == place.another().stream == torch.device("cuda:3")


def test_all_parts_of_a_sparse_tensor_are_kept_for_a_stream(monkeypatch):
    noted = []
    monkeypatch.setattr(
        torch.Tensor, "record_stream", lambda one, stream: noted.append((one.data_ptr(), stream))
    )
    dense, sparse = torch.ones(3), as_tensor(torch, scipy.sparse.csr_array(np.eye(4)))
    keep_for("consumer's", [dense, sparse])
    parts = dense, sparse.crow_indices(), sparse.col_indices(), sparse.values()
    assert noted == [(part.data_ptr(), "consumer's") for part in parts]


def test_another_placement_has_copies_of_its_own():
    for device in (None, "cpu"):
        place = placement(device)
        assert type(place.another()) is type(place)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_another_placement_has_a_stream_of_its_own():
    place = placement("cuda:0", ring=2)
    other = place.another()
    assert (other.device, other.ring) == (place.device, place.ring)
    assert other.stream != place.stream and other.in_flight is not place.in_flight


def test_devices_by_number_and_name():
    assert get_device(-1) == get_device("@numpy") == NumpyDevice()
    assert hash(get_device(-1)) == hash(NumpyDevice())
    assert get_device(NumpyDevice()) == NumpyDevice()
    assert get_device(-2) == get_device(np.int64(-7)) == NumpyDevice()
    assert get_device("cpu") == torch.device("cpu")
    for spec, error in [
        ("gpu", ValueError),
        (1.5, TypeError),
        (b"cpu", TypeError),
    ]:
        with pytest.raises(error, match="device="):
            get_device(spec)


@pytest.mark.parametrize(
    "spec", [10_000, np.int64(10_000), "cuda:10000", "@cupy:10000", "@intel64"]
)
def test_a_device_that_cannot_be_reached_is_a_runtime_error(spec):
    with pytest.raises(RuntimeError, match="device="):
        to_device(spec, np.zeros(3))


def test_torch_missing_is_a_runtime_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(RuntimeError, match=TORCH):
        get_device("cpu")
    assert get_device(-1) == NumpyDevice()


def test_to_device_shares_memory_on_the_host():
    array = np.arange(4, dtype=np.float32)
    tensor = to_device("cpu", array)
    array[0] = 9
    assert tensor[0] == 9
    assert np.shares_memory(to_device(-1, tensor), array)
    assert to_device(-1, array) is array
    assert to_device(torch.device("cpu"), tensor) is tensor
    assert to_device(-1, torch.ones(2, requires_grad=True)).tolist() == [1, 1]


def test_to_device_without_a_device_looks_at_nothing():
    thing = object()
    assert to_device(None, thing) is thing
    for device in (-1, "cpu"):
        with pytest.raises(TypeError, match="array"):
            to_device(device, [1, 2])


def test_to_device_copies_what_torch_cannot_share():
    frozen = np.arange(3)
    frozen.flags.writeable = False
    assert to_device("cpu", frozen).tolist() == [0, 1, 2]
    assert to_device("cpu", np.arange(3)[::-1]).tolist() == [2, 1, 0]
    assert to_device("cpu", np.float32(3)).item() == 3


def test_to_device_knows_sparse_matrices():
    matrix = scipy.sparse.coo_array(np.eye(3))
    assert to_device(-1, matrix) is matrix
    assert torch.equal(to_device("cpu", matrix).to_dense(), torch.eye(3).double())


def test_structures_are_sent_as_they_are():
    array, tensor = np.ones(2), torch.zeros(1)
    for device in (-1, -5, "@numpy"):
        found = to_device(device, [array, (tensor, None), {"x": tensor}])
        assert found[0] is array and type(found[1]) is tuple and found[1][1] is None
        assert isinstance(found[1][0], np.ndarray) and isinstance(found[2]["x"], np.ndarray)
    (moved,) = to_device("cpu", [array])
    assert torch.equal(moved, torch.ones(2).double())
    with pytest.raises(TypeError, match="str"):
        to_device(-1, [array, "text"])


def test_device_objects_have_what_converters_of_chainer_use():
    assert get_device(-1).xp is np
    device = get_device("cpu")
    assert device.xp is torch and device.type == "cpu"
    assert device.xp.stack(device.send([np.ones(2)] * 3)).shape == (3, 2)
    assert get_device(device) is device


def test_a_torch_device_is_taken_by_torch_and_equal_to_its_own():
    device, theirs = get_device("cpu"), torch.device("cpu")
    assert torch.device(device) == theirs
    assert torch.zeros(2, device=device).to(device).device == theirs
    assert device == theirs and theirs == device and (device != theirs) is False
    assert hash(device) == hash(theirs) and device != "cpu" and device != NumpyDevice()
    assert pickle.loads(pickle.dumps(device)) == device == copy.copy(device)
    assert (str(device), repr(device)) == ("cpu", "TorchDevice('cpu')")
    assert isinstance(device, TorchDevice)


def test_normalisation_on_a_device():
    normalise = DeviceNormalisation("NC", [1.0, 2.0], [0.5, 1.0], "float32")
    assert normalise(torch.tensor([[3, 4]], dtype=torch.uint8)).tolist() == [[1.0, 2.0]]


def test_bfloat16_goes_to_torch_and_back():
    wanted = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    array = np.arange(3).astype(wanted)
    (tensor,) = placement("cpu").place([array])
    assert tensor.dtype is torch.bfloat16 and tensor.tolist() == [0, 1, 2]
    back = get_device(-1).send(tensor)
    assert back.dtype == wanted and back.ctypes.data == array.ctypes.data
    array.flags.writeable = False
    assert get_device("cpu").send(array).tolist() == [0, 1, 2]
