"""Devices for the arrays of a batch: NumPy, torch on the CPU without a copy, or a CUDA device.

A provider fills host memory and passes it through a *placement*; `to_device` and Chainer's device
objects move single arrays. Torch is imported only when a device is asked for.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from recordio.extras import need

from .backend import is_sparse, is_tensor
from .dtypes import array_over, tensor_over


class Placement:
    """Leaves arrays where they are: NumPy arrays in host memory (``device=None``)."""

    #: ``allocate(nbytes)`` for host memory that this placement likes best, or None for any.
    allocate: Callable[[int], Any] | None = None
    #: The `torch.device` that arrays are copied to, or None if none are.
    device: Any = None

    def place(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        """Return the same arrays on the device."""
        return list(arrays)

    def another(self) -> Placement:
        """Make a placement for the same device that another thread may use at the same time."""
        return self


class TorchPlacement(Placement):
    """Torch tensors that share the memory of the arrays (``device="cpu"``)."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def place(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        """Return tensors over the same memory, which stays alive as long as they do."""
        return [as_tensor(self.torch, array) for array in arrays]


class CudaPlacement(Placement):
    """Tensors on a CUDA device, copied from page-locked memory on a stream of their own.

    The copy of a batch runs while the consumer's stream computes; the tensors that are handed out
    are valid on the stream that is current at that moment.  The host memory of a batch is kept
    until its copy is done, `ring` copies at most being under way.
    """

    def __init__(self, torch: Any, device: Any, ring: int) -> None:
        self.torch = torch
        self.device = device
        self.ring = ring
        self.stream: Any = torch.cuda.Stream(device)
        self.in_flight: deque[tuple[Any, Sequence[np.ndarray]]] = deque()

    def allocate(self, nbytes: int) -> np.ndarray:  # type: ignore[override]
        """Return page-locked memory, which the device reads without the processor's help."""
        return self.torch.empty(nbytes, dtype=self.torch.uint8, pin_memory=True).numpy()

    def place(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        """Start the copy and make the current stream wait for it."""
        torch = self.torch
        while self.in_flight and (len(self.in_flight) >= self.ring or self.in_flight[0][0].query()):
            event, _ = self.in_flight.popleft()
            event.synchronize()
        current = torch.cuda.current_stream(self.device)
        with torch.cuda.stream(self.stream):
            tensors = [
                as_tensor(torch, array).to(self.device, non_blocking=True) for array in arrays
            ]
            done = self.stream.record_event()
        current.wait_event(done)
        # The memory belongs to the side stream's allocator pool; the consumer uses it elsewhere.
        keep_for(current, tensors)
        self.in_flight.append((done, arrays))
        return tensors

    def another(self) -> CudaPlacement:
        """Make a placement for the same device with a stream and copies of its own."""
        return CudaPlacement(self.torch, self.device, self.ring)


def as_tensor(torch: Any, array: Any) -> Any:
    """Return the torch tensor over an array's memory; a scipy CSR array becomes a sparse tensor.

    What is a tensor already, of an engine that makes them on the device, stays one.
    """
    if is_tensor(array):
        return array
    if not hasattr(array, "indptr"):
        return tensor_over(array)
    parts = (torch.from_numpy(part) for part in (array.indptr, array.indices, array.data))
    # The parts come from scipy, which keeps them consistent; columns may be unsorted, which
    # torch's own check refuses.
    with warnings.catch_warnings():
        # Torch calls its sparse tensors beta, once; whoever asks for a device with sparse data
        # wants them nevertheless.
        # Later releases say as well that they check nothing, which is asked for here.
        warnings.filterwarnings("ignore", "Sparse (CSR|invariant)", UserWarning)
        return torch.sparse_csr_tensor(*parts, size=array.shape, check_invariants=False)


def handing_over(arrays: Sequence[Any]) -> Callable[[], None]:
    """Note what the streams of this thread still do to CUDA tensors.

    The function that is returned is called by the thread that uses them: its streams wait for that.
    Arrays in host memory need nothing.
    """
    tensors = [array for array in arrays if is_tensor(array) and array.is_cuda]
    if not tensors:
        return lambda: None
    import torch

    current = torch.cuda.current_stream
    noted = {array.device: current(array.device).record_event() for array in tensors}

    def receive() -> None:
        for device, event in noted.items():
            current(device).wait_event(event)
        for array in tensors:
            keep_for(current(array.device), [array])

    return receive


def keep_for(stream: Any, tensors: Sequence[Any]) -> None:
    """Have the memory of CUDA tensors, once freed, wait for what a stream still does with them."""
    import torch

    for tensor in tensors:
        if tensor.layout == torch.strided:
            tensor.record_stream(stream)
        elif tensor.layout == torch.sparse_csr:
            keep_for(stream, [tensor.crow_indices(), tensor.col_indices(), tensor.values()])


class DeviceNormalisation:
    """``(x - mean) * factor`` on the device, for data that was moved there as uint8.

    A quarter of the bytes cross the bus, and the arithmetic is that of the host path, in float32.
    `mean` and `factor` have one number for every channel, the axis ``C`` of `layout`.
    """

    def __init__(self, layout: str, mean: Sequence[float], factor: Sequence[float], dtype: str):
        self.shape: list[int] = [len(mean) if axis == "C" else 1 for axis in layout]
        self.mean: np.ndarray = np.array(mean, np.float32).reshape(self.shape)
        self.factor: np.ndarray = np.array(factor, np.float32).reshape(self.shape)
        self.dtype = dtype
        self._constants: dict[Any, tuple[Any, Any]] = {}

    def __call__(self, tensor: Any) -> Any:
        """Return a new tensor of the result's dtype on the same device."""
        import torch

        if tensor.device not in self._constants:
            self._constants[tensor.device] = (
                torch.from_numpy(self.mean).to(tensor.device),
                torch.from_numpy(self.factor).to(tensor.device),
            )
        mean, factor = self._constants[tensor.device]
        result = tensor.to(torch.float32).sub_(mean).mul_(factor)
        return result.to(getattr(torch, self.dtype))


def placement(device: Any, ring: int = 4) -> Placement:
    """Make the placement for the ``device=`` of a user.

    None is NumPy, ``"cpu"`` torch without a copy; `ring` copies to a CUDA device may be under way.
    """
    if device is None:
        return Placement()
    torch = need("torch", f"device={device!r}", "or leave out device= for NumPy arrays")
    try:
        target = torch.device(device)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(f"device={device!r} is not a device that torch knows") from error
    if target.type == "cpu":
        return TorchPlacement(torch)
    if target.type != "cuda":
        raise ValueError(f'device={device!r}: only None, "cpu", "cuda" and "cuda:i" are supported')
    if not torch.cuda.is_available():
        raise ValueError(f"device={device!r}: torch finds no CUDA device on this machine")
    if target.index is not None and target.index >= torch.cuda.device_count():
        raise ValueError(f"device={device!r}: there are {torch.cuda.device_count()} CUDA devices")
    if target.index is None:  # this thread's, whatever the current device of others is
        target = torch.device("cuda", torch.cuda.current_device())
    return CudaPlacement(torch, target, ring)


class _Device:
    """Methods of Chainer's device objects."""

    def send(self, arrays: Any) -> Any:
        """Return arrays on this device; the same memory where that is possible.

        Lists, tuples and dicts of arrays (NumPy, scipy sparse or torch) keep their structure, and
        None stays None; anything else is a TypeError.
        """
        if isinstance(arrays, (list, tuple)):
            make = getattr(
                type(arrays), "_make", type(arrays)
            )  # named tuples have a constructor each
            return make(map(self.send, arrays))
        if isinstance(arrays, dict):
            return {key: self.send(value) for key, value in arrays.items()}
        if arrays is None:
            return None
        host = isinstance(arrays, (np.ndarray, np.generic)) or is_sparse(arrays)
        if not host and not is_tensor(arrays):
            raise TypeError(f"expected an array or a tensor, not {type(arrays).__name__}")
        return self._take(arrays, host)

    def _take(self, x: Any, host: bool) -> Any:
        raise NotImplementedError


class NumpyDevice(_Device):
    """Host memory, with NumPy arrays in it; all instances are equal."""

    xp = np

    def _take(self, x: Any, host: bool) -> Any:
        return x if host else array_over(x)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumpyDevice)

    def __hash__(self) -> int:
        return hash(NumpyDevice)

    def __str__(self) -> str:
        return "@numpy"

    def __repr__(self) -> str:
        return "NumpyDevice()"


class TorchDevice(_Device, str):
    """A device of torch and its name, so that torch takes it wherever it takes a device.

    Equal to the `torch.device` of that name.
    """

    __slots__ = ()

    @property
    def xp(self) -> Any:
        """The module torch; ``stack``, ``asarray``, ``zeros`` and others have NumPy's names."""
        import torch

        return torch

    @property
    def device(self) -> Any:
        """The `torch.device`."""
        return self.xp.device(str(self))

    @property
    def type(self) -> str:
        """Kind of the device: ``"cpu"`` or ``"cuda"``."""
        return self.device.type

    def _take(self, x: Any, host: bool) -> Any:
        if host and is_sparse(x):
            x = as_tensor(self.xp, x.tocsr())
        elif host:
            x = np.asarray(x)
            if not x.flags.writeable or any(stride < 0 for stride in x.strides):
                x = x.copy()  # torch has neither read-only tensors nor negative strides
            x = as_tensor(self.xp, x)
        return x.to(self.device)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TorchDevice):
            return str(self) == str(other)
        return isinstance(other, self.xp.device) and self.device == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.device)

    def __str__(self) -> str:
        return str.__str__(self)

    def __repr__(self) -> str:
        return f"TorchDevice({str(self)!r})"


def get_device(spec: Any) -> NumpyDevice | TorchDevice:
    """Return the device that a user names.

    Parameters
    ----------
    spec : int, str, NumpyDevice, TorchDevice or torch.device
        Negative numbers and ``"@numpy"`` are NumPy's host memory.  0 and more, and Chainer's
        ``"@cupy:0"``, are the CUDA device with that number.  Other strings are torch's: ``"cpu"``,
        ``"cuda:1"``.

    Returns
    -------
    NumpyDevice or TorchDevice
        Both have ``send(arrays)`` and ``xp``, as Chainer's devices.

    Raises
    ------
    RuntimeError
        If torch is not installed, or it cannot reach the device.
    ValueError
        If there is no such device.
    TypeError
        If it is not the name of a device at all.

    Examples
    --------
    >>> get_device(-1)
    NumpyDevice()
    >>> get_device("cpu")
    TorchDevice('cpu')
    """
    if isinstance(spec, (NumpyDevice, TorchDevice)):
        return spec
    name = spec
    if isinstance(spec, (int, np.integer)):
        name = "@numpy" if spec < 0 else f"cuda:{spec}"
    if isinstance(name, str) and name.startswith("@"):
        if name == "@numpy":
            return NumpyDevice()
        backend, _, number = name.partition(":")
        if backend != "@cupy" or not number.isdecimal():
            raise RuntimeError(f"device={spec!r}: there is no such backend; torch has the others")
        name = f"cuda:{number}"
    try:
        torch = need("torch", f"device={spec!r}", "or use -1 for NumPy arrays")
    except ImportError as error:
        raise RuntimeError(str(error)) from error
    if not isinstance(name, (str, torch.device)):
        raise TypeError(f"device={spec!r}: expected an integer, a string or a torch.device")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"device={spec!r} is not a device that torch knows") from error
    if device.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (device.index or 0) >= count:
            raise RuntimeError(f"device={spec!r}: torch finds {count} CUDA devices")
    return TorchDevice(device)


def to_device(device: Any, x: Any) -> Any:
    """Return an array on a device, or several; the same memory where that is possible.

    Parameters
    ----------
    device : None, int, str, NumpyDevice, TorchDevice or torch.device
        As for `get_device`; None leaves `x` as it is, whatever it is.
    x : array, or list, tuple or dict of arrays
        An array is a numpy.ndarray, scipy sparse or torch.Tensor.

    Returns
    -------
    numpy.ndarray or torch.Tensor, in the structure of `x`

    Raises
    ------
    TypeError
        If `x` has anything that is no array, or torch has no such element type.
    RuntimeError, ValueError
        As `get_device`.

    Examples
    --------
    >>> to_device("cpu", np.arange(3))
    tensor([0, 1, 2])
    >>> to_device(-2, [to_device("cpu", np.arange(3)), np.ones(1)])
    [array([0, 1, 2]), array([1.])]
    """
    return x if device is None else get_device(device).send(x)
