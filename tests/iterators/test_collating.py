"""iterators.torch.python_batches: batches like those of `default_collate`, threads of one core."""

import threading

import numpy as np
import pytest
import torch
from torch.utils.data import default_collate as of_torch
from torch.utils.data._utils.collate import default_collate_fn_map

from iterators.torch.python_batches import default_collate, use_one_core


class Marked(torch.Tensor):
    """A class that stays itself when it is stacked."""


class Plain(torch.Tensor):
    """A class that becomes a tensor in every operation, as the images of torchvision do."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **(kwargs or {}))


RANDOM = np.random.default_rng(5)
IMAGE = RANDOM.random((3, 4, 5), np.float32)
PAIR = torch.from_numpy(IMAGE), torch.from_numpy(IMAGE + 1)
KINDS = {
    "arrays": [IMAGE, IMAGE * 2],
    "bytes": [IMAGE.astype(np.uint8), IMAGE.astype(np.uint8)],
    "tensors": list(PAIR),
    "one": [PAIR[0]],
    "transposed": [tensor.permute(2, 0, 1) for tensor in PAIR],
    "numbers": [torch.tensor(3), torch.tensor(4)],
    "empty": [torch.zeros(0, 3), torch.zeros(0, 3)],
    "bfloat16": [tensor.bfloat16() for tensor in PAIR],
    "half": [tensor.half() for tensor in PAIR],
    "complex": [torch.complex(*PAIR), torch.complex(*PAIR).conj()],
    "conjugates": [torch.complex(*PAIR).conj()] * 2,
    "dtypes": [PAIR[0], PAIR[1].double()],
    "marked": [tensor.as_subclass(Marked) for tensor in PAIR],
    "plain": [tensor.as_subclass(Plain) for tensor in PAIR],
    "classes": [PAIR[0], PAIR[1].as_subclass(Plain)],
    "expanded": [torch.ones(1).expand(4), torch.zeros(1).expand(4)],
    "tuples": [(PAIR[0], 3, "a"), (PAIR[1], 4, "b")],
    "dicts": [{"image": IMAGE, "label": 1.5, "name": b"a"}] * 2,
}


def check_same(ours, theirs):
    """Fail unless two batches have the same types and values."""
    assert type(ours) is type(theirs)
    if isinstance(theirs, torch.Tensor):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        assert ours.is_contiguous() and theirs.is_contiguous()
        assert torch.equal(ours.resolve_conj(), theirs.resolve_conj())
    elif isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        [check_same(ours[name], theirs[name]) for name in theirs]
    elif isinstance(theirs, list | tuple) and not isinstance(theirs[0], str):
        [check_same(*pair) for pair in zip(ours, theirs, strict=True)]
    else:
        assert ours == theirs


@pytest.mark.parametrize("name", KINDS)
def test_a_batch_is_that_of_torch(name):
    check_same(default_collate(KINDS[name]), of_torch(KINDS[name]))


def test_gradients_go_through_a_batch():
    tensor = torch.ones(3, requires_grad=True)
    default_collate([tensor, tensor * 2]).sum().backward()
    assert tensor.grad.tolist() == [3, 3, 3]


@pytest.mark.parametrize(
    "samples",
    [[torch.ones(3), torch.ones(4)], [np.array(["a"])], [torch.ones(2).to_sparse()], [object()]],
)
def test_errors_are_those_of_torch(samples):
    with pytest.raises((RuntimeError, TypeError)) as theirs:
        of_torch(samples)
    with pytest.raises(theirs.type) as ours:
        default_collate(samples)
    assert str(ours.value) == str(theirs.value)


def test_what_users_put_into_the_table_of_torch_is_used(monkeypatch):
    monkeypatch.setitem(default_collate_fn_map, torch.Tensor, lambda batch, **_: len(batch))
    assert default_collate([(torch.ones(2), 1)] * 3)[0] == 3


def test_one_core_is_for_one_thread():
    before, found = torch.get_num_threads(), {}
    torch.set_num_threads(3)

    def look(name, limited):
        if limited:
            use_one_core()
        found[name] = torch.get_num_threads()

    try:
        for name, limited in [("limited", True), ("other", False)]:
            thread = threading.Thread(target=look, args=(name, limited))
            thread.start()
            thread.join()
        assert found == {"limited": 1, "other": 3} and torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
