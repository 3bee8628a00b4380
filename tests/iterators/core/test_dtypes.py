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
