"""Blocks of memory that come back when nobody refers to them."""

import gc
import sys
import weakref

import numpy as np

from iterators.core.pool import BufferPool


def array_of(pool):
    return np.frombuffer(pool.take(), np.float32)


def test_memory_comes_back_when_nobody_refers_to_it():
    pool = BufferPool(1 << 12, keep=2)
    first = array_of(pool)
    address = first.ctypes.data
    del first
    assert array_of(pool).ctypes.data == address


def test_a_slice_of_a_reshaped_view_keeps_the_memory():
    pool = BufferPool(1 << 12, keep=2)
    array = array_of(pool).reshape(32, 32)
    address = array.ctypes.data
    corner = array.T[3:, 5]
    del array
    gc.collect()
    assert array_of(pool).ctypes.data != address
    del corner
    assert address in {array.ctypes.data for array in (array_of(pool), array_of(pool))}


def test_torch_tensors_and_memoryviews_keep_the_memory():
    import torch

    pool = BufferPool(64, keep=2)
    array = array_of(pool)
    address = array.ctypes.data
    holders = [torch.from_numpy(array)[1:], memoryview(array)[2:], torch.from_dlpack(array)]
    del array
    while holders:
        assert array_of(pool).ctypes.data != address
        holders.pop()
    assert address in {array.ctypes.data for array in [array_of(pool), array_of(pool)]}


def test_no_more_free_blocks_are_kept_than_asked_for():
    allocated = []

    def allocate(size):
        allocated.append(np.zeros(size, np.uint8))
        return allocated[-1]

    pool = BufferPool(16, keep=1, allocate=allocate)
    held = [pool.take() for _ in range(4)]
    held.clear()
    held = [pool.take() for _ in range(2)]
    assert len(allocated) == 5


def test_blocks_are_writable_and_have_the_size():
    array = array_of(BufferPool(40, keep=1))
    array[:] = 7
    assert array.shape == (10,)


def test_blocks_outlive_their_pool():
    pool = BufferPool(40, keep=1)
    array = array_of(pool)
    array[:] = 3
    del pool
    gc.collect()
    assert (array == 3).all()


def test_a_pool_that_is_garbage_together_with_its_blocks(monkeypatch):
    errors = []
    monkeypatch.setattr(sys, "unraisablehook", errors.append)

    class Owner:
        def allocate(self, size):
            return np.zeros(size, np.uint8)

    pool = BufferPool(40, keep=4)  # the collector clears first what is older
    owner = Owner()
    pool.__init__(40, keep=4, allocate=owner.allocate)
    owner.blocks = [pool.take() for _ in range(4)]
    gone = weakref.ref(owner)
    del owner, pool
    gc.collect()
    assert gone() is None and not errors


def test_blocks_of_sizes_that_vary_take_the_place_of_each_other():
    allocated = []

    def allocate(size):
        allocated.append(size)
        return np.zeros(size, np.uint8)

    pool = BufferPool(0, keep=3, allocate=allocate)
    sizes = np.random.default_rng(0).integers(600, 1000, 200).tolist()
    held = []
    for size in [1000, *sizes]:
        held.append(np.frombuffer(pool.take(size), np.uint8))
        assert len(held[-1]) == size
        held = held[-3:]
    assert len(allocated) <= 4 and set(allocated) == {1000}
    # Small ones are no burden to anybody who keeps them, and there may be more of them.
    held = [pool.take(200) for _ in range(8)]
    assert allocated[4:] == [250] * 8 or allocated[4:] == [250] * len(allocated[4:])
    held.clear()
    before = len(allocated)
    held = [pool.take(240) for _ in range(8)]
    assert len(allocated) == before


def test_a_free_block_serves_for_less_than_it_has_but_not_for_a_scrap():
    pool = BufferPool(1 << 16, keep=2)
    large = np.frombuffer(pool.take(), np.uint8)
    address = large.ctypes.data
    del large
    scrap = np.frombuffer(pool.take(100), np.uint8)
    assert len(scrap) == 100 and scrap.ctypes.data != address
    part = np.frombuffer(pool.take(40_000), np.uint8)
    assert len(part) == 40_000 and part.ctypes.data == address
