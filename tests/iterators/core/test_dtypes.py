"""Names of data types and devices."""

import sys

import numpy as np
import pytest

from iterators.core import dtypes


def test_one_name_for_every_spelling_of_a_type():
    found = [dtypes.dtype_name(spec) for spec in (np.float32, "<i8", "floatX")]
    assert found == ["float32", "int64", "float64"]
    with pytest.raises(TypeError):
        dtypes.dtype_name("nothing")


def test_floatx_can_be_chosen():
    try:
        dtypes.set_floatx("float32")
        assert dtypes.floatx() == dtypes.dtype_name("floatX") == "float32"
    finally:
        dtypes.set_floatx("float64")
    with pytest.raises(ValueError):
        dtypes.set_floatx("int8")


def test_type_and_device_in_one_text():
    assert dtypes.parse_type("float16@cuda:1") == ("float16", "cuda:1")
    assert dtypes.parse_type("Double") == ("float64", None)
    assert dtypes.parse_type("cuda") == ("float32", "cuda")


def test_types_of_torch_by_name():
    torch = pytest.importorskip("torch")
    assert dtypes.torch_dtype("float32") is torch.float32


def test_types_of_batches_as_a_sentence():
    found = dtypes.quoted(["float16", "float32", "uint8"])
    assert found == '"float16", "float32" or "uint8" (pixels as they are)'


def test_a_type_that_numpy_has_from_a_package():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    wanted = np.dtype(ml_dtypes.bfloat16)
    for spec in ("bfloat16", "torch.bfloat16", wanted, ml_dtypes.bfloat16):
        assert dtypes.numpy_dtype(spec) == wanted
        assert dtypes.dtype_name(spec) == "bfloat16"
    assert dtypes.is_number(wanted) and dtypes.is_float(wanted)
    assert not dtypes.is_number(np.dtype("V2")) and not dtypes.is_float(np.dtype("int16"))


def test_without_its_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    assert dtypes.dtype_name("bfloat16") == "bfloat16"
    with pytest.raises(
        ImportError, match=r"bfloat16: pip install 'recordio-iterators\[bfloat16\]'"
    ):
        dtypes.numpy_dtype("bfloat16")


@pytest.mark.parametrize("name", ["bfloat16", "float16", "int32"])
def test_arrays_and_tensors_share_their_memory(name):
    torch = pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")
    array = np.arange(12).reshape(3, 4).astype(dtypes.numpy_dtype(name))[:, ::2]
    tensor = dtypes.tensor_over(array)
    assert tensor.dtype is getattr(torch, name) and tensor.tolist() == array.tolist()
    tensor[1, 1] = 77
    back = dtypes.array_over(tensor)
    assert array[1, 1] == back[1, 1] == 77 and back.dtype == array.dtype
    assert back.ctypes.data == array.ctypes.data
    assert dtypes.array_over(tensor.float().requires_grad_()).tolist() == array.tolist()
