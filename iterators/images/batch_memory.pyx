"""The memory of batches: arrays of one size, or of a size for every slot, and where each slot lies.

Memory is used again when nobody refers to a batch any more.
"""

from math import prod

from libc.stdint cimport int64_t, uint8_t

import numpy as np

from iterators.images.plan cimport RenderPlan
from iterators.images.render cimport MAX_VIEWS

from ..core.pool import BufferPool

__all__ = ["BatchMemory", "PatchArrays", "SeparateArrays"]


class SeparateArrays(list):
    """The images of a batch where every slot has a size of its own.

    They lie one behind the other in an array of one axis, `values`, unless one was replaced.
    """

    values = None

    @property
    def shape(self):
        """The number of images alone."""
        return (len(self),)

    @property
    def dtype(self):
        """That of every array."""
        return self[0].dtype

    def joined(self):
        """Return all values in one array of one axis."""
        if self.values is None:
            return np.concatenate([array.reshape(-1) for array in self])
        return self.values


class PatchArrays(list):
    """The patches of a batch, the row and column of each in its image, and which of them there are.

    They have the shapes (slots, patches, values), (slots, patches, 2), int64, and (slots, patches).
    """


cdef class BatchMemory:
    """Makes the arrays of batches of a plan and of its views.

    Memory is allocated by ``allocate(nbytes)``, and `keep` free pieces of it are kept.
    """

    def __init__(self, RenderPlan plan not None, Py_ssize_t batch_size, Py_ssize_t keep, allocate):
        cdef RenderPlan view
        self.plans, self.pools = [plan, *plan.views], []
        self.num_views = len(self.plans)
        if self.num_views > MAX_VIEWS:
            raise ValueError(f"{self.num_views} views: at most {MAX_VIEWS} are possible")
        self.num_arrays = 3 if plan.patch else self.num_views
        for view in self.plans:
            nbytes = 0 if view.patch else prod(view.shape(batch_size)) * view.item_size
            self.pools.append(BufferPool(nbytes, keep=keep, allocate=allocate))

    def own_arrays(self, list data):
        """Return what `make` made of a batch that has fields behind it."""
        if (<RenderPlan>self.plans[0]).patch:
            return PatchArrays(data[:self.num_arrays])
        return data[:self.num_views] if self.num_views > 1 else data[0]

    cdef object make(self, Py_ssize_t slots, sizes, Py_ssize_t records, Py_ssize_t length,
                     Target* targets):
        cdef RenderPlan plan = self.plans[0]
        cdef bint clear = records < slots
        cdef Py_ssize_t i, view, sample
        cdef Target first
        if sizes is not None and self.num_views > 1:
            raise ValueError("an image with several views has the sizes of its plans")
        if plan.patch:
            return self.make_patches(slots, records, length, targets)
        if np.ndim(sizes) == 2:
            return self.make_separate(slots, sizes, clear, targets)
        made = []
        for view in range(self.num_views):
            plan = self.plans[view]
            height, width = self._checked(sizes) if sizes else (plan.height, plan.width)
            shape = plan.shape(slots, (height, width))
            block = self.pools[view].take(prod(shape) * plan.item_size)
            array = np.frombuffer(block, plan.dtype).reshape(shape)
            if clear:
                array.fill(0)
            sample = plan.aim(slots, height, width, <char*><size_t>array.ctypes.data, &first)
            for i in range(slots):
                targets[i * self.num_views + view] = first
                first.data = <char*>first.data + sample
            made.append(array)
        return made if len(made) > 1 else made[0]

    cdef object make_separate(self, Py_ssize_t slots, sizes, bint clear, Target* targets):
        cdef RenderPlan plan = self.plans[0]
        cdef Py_ssize_t i
        if len(sizes) != slots:
            raise ValueError(f"{len(sizes)} sizes for {slots} slots")
        found = [self._checked(size) for size in np.asarray(sizes).tolist()]
        lengths = [height * width * plan.channels for height, width in found]
        block = self.pools[0].take(max(sum(lengths), 1) * plan.item_size)
        values = np.frombuffer(block, plan.dtype)
        if clear:
            values.fill(0)
        made, end = SeparateArrays(), 0
        made.values = values[:sum(lengths)]
        for i in range(slots):
            begin, end = end, end + lengths[i]
            array = values[begin:end].reshape(self._shape_of_one(found[i]))
            plan.aim(1, found[i][0], found[i][1], <char*><size_t>array.ctypes.data, &targets[i])
            made.append(array)
        return made

    cdef object make_patches(self, Py_ssize_t slots, Py_ssize_t records, Py_ssize_t length,
                             Target* targets):
        cdef RenderPlan plan = self.plans[0]
        if length < 1:
            raise ValueError("a batch of patches needs a length")
        shape = slots, length, plan.patch * plan.patch * plan.channels
        block = self.pools[0].take(prod(shape) * plan.item_size)
        made = PatchArrays([np.frombuffer(block, plan.dtype).reshape(shape),
                            np.empty((slots, length, 2), np.int64),
                            np.empty((slots, length), bool)])
        for array in made:
            array[records:] = 0
        self.aim_patches(made, 0, records, targets)
        return made

    cdef int aim_patches(self, made, Py_ssize_t first, Py_ssize_t count,
                         Target* targets) except -1:
        """Say where the patches of some slots lie; the renderer finds the sizes of the images."""
        cdef RenderPlan plan = self.plans[0]
        cdef Py_ssize_t i, length = made[0].shape[1]
        cdef Py_ssize_t part = length * plan.patch * plan.patch * plan.channels * plan.item_size
        cdef char* patches = <char*><size_t>made[0].ctypes.data
        cdef int64_t* coordinates = <int64_t*><size_t>made[1].ctypes.data
        cdef uint8_t* marks = <uint8_t*><size_t>made[2].ctypes.data
        for i in range(count):
            plan.aim(1, 0, 0, patches + (first + i) * part, &targets[i])
            targets[i].patch, targets[i].length = plan.patch, <int>length
            targets[i].coordinates = coordinates + 2 * (first + i) * length
            targets[i].marks = marks + (first + i) * length
        return 0

    def _checked(self, size):
        """Return height and width of an image, which the renderers have room for."""
        cdef RenderPlan plan = self.plans[0]
        height, width = [int(side) for side in size]
        if not (0 < height <= plan.most_height and 0 < width <= plan.most_width):
            raise ValueError(
                f"images of {height} x {width} pixels: the stage was made for at most "
                f"{plan.most_height} x {plan.most_width}")
        return height, width

    def _shape_of_one(self, size):
        """Return the shape of an image alone."""
        plan = self.plans[0]
        shape = plan.shape(1, size)
        return tuple(n for axis, n in zip(plan.layout, shape) if axis != "N")

    cdef int find(self, data, Py_ssize_t slot, size, Target* targets) except -1:
        cdef RenderPlan plan = self.plans[0]
        cdef Py_ssize_t i, sample
        if isinstance(data, PatchArrays):
            self.aim_patches(data, slot, 1, targets)
            return 0
        if isinstance(data, SeparateArrays):
            shape = data[slot].shape if size is None else self._shape_of_one(self._checked(size))
            if shape != data[slot].shape:
                data[slot] = np.empty(shape, plan.dtype)
                data.values = None
            lengths = dict(zip(plan.layout.replace("N", ""), data[slot].shape))
            plan.aim(1, lengths["H"], lengths["W"], <char*><size_t>data[slot].ctypes.data, targets)
            return 0
        for i, array in enumerate(data if isinstance(data, list) else [data]):
            plan = self.plans[i]
            lengths = dict(zip(plan.layout, array.shape))
            sample = plan.aim(lengths["N"], lengths["H"], lengths["W"],
                              <char*><size_t>array.ctypes.data, &targets[i])
            targets[i].data = <char*>targets[i].data + slot * sample
        return 0
