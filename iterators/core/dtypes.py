"""Names of element types: one spelling for NumPy's, torch's and the older systems' names.

Everything in the project that compares element types compares the names that `dtype_name` gives.
Torch and NumPy share memory here, also where NumPy has a type from a package.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from recordio.extras import need


class BatchType(NamedTuple):
    """An element type in which images are made."""

    #: In NumPy, in torch, and in NORMALISE_TYPES of ``recordio/kernels/normalise_rows.h``.
    name: str
    #: Whether pixels are normalised; else they are whole numbers.
    is_float: bool = True
    #: For readers of the keywords: the numbers that it holds.
    meaning: str = ""


#: The element types of batches of images by their names, the usual one first.
BATCH_TYPES = {
    kind.name: kind
    for kind in (
        BatchType("float32"),
        BatchType("float16"),
        BatchType("bfloat16"),
        BatchType("uint8", False, "pixels as they are"),
        BatchType("uint16", False, "stored values, up to 65535"),
        BatchType("int8", False, "pixels minus the rounded mean"),
    )
}
FLOAT_TYPES = tuple(kind.name for kind in BATCH_TYPES.values() if kind.is_float)

#: Words of Torch 7, which win over NumPy's reading of the same word.
ALIASES = {
    "byte": "uint8",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "half": "float16",
    "float": "float32",
    "double": "float64",
}
#: Tensor types by their words: element type, and the device if they name one.
TENSORS: dict[str, tuple[str, str | None]] = {"torch.CudaTensor": ("float32", "cuda")}
for _word, _type in {**ALIASES, "bool": "bool", "BFloat16": "bfloat16"}.items():
    _word = _word[0].upper() + _word[1:]
    TENSORS[f"torch.{_word}Tensor"] = (_type, None)
    TENSORS[f"torch.cuda.{_word}Tensor"] = (_type, "cuda")  # PyTorch's
    TENSORS[f"torch.Cuda{_word}Tensor"] = (_type, "cuda")  # Torch 7's
CUDA_WORDS = {"cuda", "Cuda"}
#: Types of floats that NumPy has from a package, and that package.
PACKAGED = {"bfloat16": "ml_dtypes"}

_floatx = "float64"


def quoted(names: Iterable[str] = BATCH_TYPES) -> str:
    """List element types of batches for people, each with its meaning."""
    kinds = (BATCH_TYPES[name] for name in names)
    words = [f'"{kind.name}"' + f" ({kind.meaning})" * bool(kind.meaning) for kind in kinds]
    return " or ".join([", ".join(words[:-1]), words[-1]])


def floatx() -> str:
    """Return the type that ``"floatX"`` stands for, "float64" until `set_floatx` changes it."""
    return _floatx


def set_floatx(name: str) -> None:
    """Choose the type that ``"floatX"`` stands for: "float16", "float32" or "float64"."""
    global _floatx
    if name not in ("float16", "float32", "float64"):
        raise ValueError(f"floatX={name!r}: expected 'float16', 'float32' or 'float64'")
    _floatx = name


def dtype_name(spec: Any) -> str:
    """Return the canonical name of an element type of NumPy or torch, or of ``"floatX"``."""
    if isinstance(spec, str):
        spec = spec.removeprefix("torch.")
        if spec == "floatX":
            return _floatx
        if spec in PACKAGED:
            return spec
    elif (torch := sys.modules.get("torch")) is not None and isinstance(spec, torch.dtype):
        return str(spec).removeprefix("torch.")
    try:
        dtype = np.dtype(spec)
    except TypeError:
        raise TypeError(f"{spec!r} is not the name of an element type") from None
    if spec is None or not is_number(dtype):
        raise TypeError(f"{spec!r} is not the name of a number type")
    return _name(dtype)


@functools.lru_cache(maxsize=64)
def _name(dtype: Any) -> str:
    """``dtype.name``, which NumPy makes up again each time."""
    return dtype.name


def is_number(dtype: np.dtype) -> bool:
    """Return whether elements of a NumPy type are numbers or truth values."""
    return dtype.kind in "biufc" or _name(dtype) in PACKAGED


def is_float(dtype: np.dtype) -> bool:
    """Return whether elements of a NumPy type are real numbers with a fraction."""
    return dtype.kind == "f" or _name(dtype) in PACKAGED


def numpy_dtype(spec: Any) -> np.dtype:
    """Return the `numpy.dtype` that is meant, importing the package that brings it."""
    if isinstance(spec, np.dtype):
        return spec
    name = str(spec).removeprefix("torch.")
    if name not in PACKAGED:
        return np.dtype(spec)
    return np.dtype(getattr(need(PACKAGED[name], f"NumPy arrays of {name}"), name))


def plain_bits(array: np.ndarray) -> np.ndarray:
    """Return the same memory as integers if NumPy has the type of an array from a package."""
    packaged = _name(array.dtype) in PACKAGED
    return array.view(f"i{array.itemsize}") if packaged else array


def tensor_over(array: np.ndarray) -> Any:
    """Return the torch tensor over the memory of an array; torch knows no types of packages."""
    import torch

    tensor = torch.from_numpy(plain_bits(array))
    name = _name(array.dtype)
    return tensor.view(getattr(torch, name)) if name in PACKAGED else tensor


def array_over(tensor: Any) -> np.ndarray:
    """Return the array over the memory of a tensor on the CPU, or a copy from a device."""
    name = dtype_name(tensor.dtype)
    if name not in PACKAGED:
        return tensor.numpy(force=True)
    dtype = numpy_dtype(name)
    bits = torch_dtype(f"int{8 * dtype.itemsize}")
    return tensor.detach().cpu().view(bits).numpy().view(dtype)


def torch_dtype(spec: Any) -> Any:
    """Return the `torch.dtype` with that name; a TypeError if torch has no such type."""
    name = dtype_name(spec)
    torch = need("torch", f"its element type {name}")
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise TypeError(f"torch has no element type {name!r}")
    return dtype


def parse_type(text: Any) -> tuple[str, str | None]:
    """Return element type and device of a text such as ``"float16@cuda:1"``.

    Besides names of dtypes it knows the words of Torch 7 (``"float"`` is float32, ``"int"`` is
    int32, ``"long"`` is int64, ``"cuda"`` is float32 on a CUDA device) and tensor types:
    ``torch.FloatTensor``, ``torch.cuda.HalfTensor``, Torch 7's ``torch.CudaLongTensor`` and their
    siblings.  The classes of these names may be given as well; a class that does not name CUDA is
    one on the CPU.
    """
    if not isinstance(text, str):
        if type(text).__name__ == "tensortype":  # torch.FloatTensor itself
            word = f"{text.__module__}.{text.__name__}"
            if word not in TENSORS:
                raise ValueError(f"{word} is not a type of dense tensors on the CPU or on CUDA")
            element_type, where = TENSORS[word]
            return element_type, where or "cpu"
        return dtype_name(text), None
    word, at, device = text.partition("@")
    if at and not device:
        raise ValueError(f"{text!r}: a device is missing after the @")
    if word in CUDA_WORDS:
        return "float32", device or "cuda"
    if word in TENSORS:
        element_type, where = TENSORS[word]
        return element_type, device or where
    name = ALIASES.get(word[:1].lower() + word[1:])
    if name is None:
        try:
            name = dtype_name(word)
        except TypeError:
            raise ValueError(f"{text!r} is not a type such as 'float32' or 'uint8@cuda'") from None
    return name, device or None
