"""The memory of batches: arrays of one size, or of a size for every slot, and where each slot lies.

Memory is used again when nobody refers to a batch any more.
"""

from math import prod

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

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
        for view in self.plans:
            nbytes = 0 if view.patch else prod(view.shape(batch_size)) * view.item_size
            self.pools.append(BufferPool(nbytes, keep=keep, allocate=allocate))

    cdef object make(self, Py_ssize_t slots, sizes, Py_ssize_t records, Py_ssize_t length,
                     Target* targets):
        cdef RenderPlan plan = self.plans[0]
        cdef bint clear = records < slots
        cdef Py_ssize_t i, view, sample
        cdef Target first
        if sizes is not None and self.num_views > 1:
            raise ValueError("an image with several views has the sizes of its plans")
        if plan.patch:
            return self.make_patches(slots, sizes, records, length, targets)
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

    cdef object make_patches(self, Py_ssize_t slots, sizes, Py_ssize_t records, Py_ssize_t length,
                             Target* targets):
        cdef RenderPlan plan = self.plans[0]
        cdef Py_ssize_t i
        if sizes is None or len(sizes) != slots or length < 1:
            raise ValueError(f"{slots} slots of patches need as many sizes, and a length")
        shape = slots, length, plan.patch * plan.patch * plan.channels
        block = self.pools[0].take(prod(shape) * plan.item_size)
        patches = np.frombuffer(block, plan.dtype).reshape(shape)
        made = PatchArrays([patches, np.zeros((slots, length, 2), np.int64),
                            np.zeros((slots, length), bool)])
        for i in range(slots):
            if i < records:
                self.set_patches(made, i, sizes[i], &targets[i])
            else:
                patches[i] = 0
        return made

    cdef int set_patches(self, made, Py_ssize_t slot, size, Target* target) except -1:
        """Describe the patches of a slot, and clear those that it does not have."""
        cdef RenderPlan plan = self.plans[0]
        patches, positions, valid = made
        height, width = self._checked(size)
        cdef Py_ssize_t across = width // plan.patch, count = height // plan.patch * across, i
        cdef Py_ssize_t length = valid.shape[1]
        cdef size_t part = plan.patch * plan.patch * plan.channels * plan.item_size
        cdef char* data
        cdef int64_t* coordinates
        cdef uint8_t* marks
        if height % plan.patch or width % plan.patch or count > length:
            raise ValueError(
                f"an image of {height} x {width} pixels does not fit {length} patches of "
                f"{plan.patch} x {plan.patch}")
        data = <char*><size_t>patches.ctypes.data + slot * length * part
        memset(data + count * part, 0, (length - count) * part)
        coordinates = <int64_t*><size_t>positions.ctypes.data + 2 * slot * length
        marks = <uint8_t*><size_t>valid.ctypes.data + slot * length
        memset(coordinates, 0, 2 * length * sizeof(int64_t))
        memset(marks, 0, length)
        for i in range(count):
            coordinates[2 * i], coordinates[2 * i + 1], marks[i] = i // across, i % across, 1
        plan.aim(1, height, width, data, target)
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
            if size is None:
                raise ValueError("another image in patches needs a size")
            return self.set_patches(data, slot, size, targets)
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
