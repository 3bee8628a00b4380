"""Sizes, strides, parameters and limits: the same for every sample that a provider renders.

A `RenderPlan` translates a validated recipe, a layout and an element type into what the renderers
read without the GIL, and says of which parts a renderer consists.  It renders nothing.
"""

from libc.stdint cimport uint64_t
from libc.string cimport memset

import numpy as np

from recordio.kernels.normalise cimport normalise_type

from iterators.core.dtypes import numpy_dtype

from .augment.changes import changes_of
from .augment.geometry import RecipeGeometry
from recordio.formats.jpeg.jpeg import DEFAULT_LIMITS
from .label_reader import RowLabels


cdef class RenderPlan:
    """Describes every sample: recipe, shape, layout, dtype, label width, limits.

    `key` is that of all draws; `label_width` 0 reads no labels; `batch_size` is needed where N is
    not the first axis; `mean_image` replaces the means per channel; `labels`, ascending ids and
    their rows, replace those in the records; `change` is a `LabelChange`; `views` are plans of what
    else is made of an image that is decoded once; `limits` have the names of `DEFAULT_LIMITS`.
    """

    def __init__(self, recipe, *, uint64_t key=0, layout="NCHW", dtype="float32", label_width=1,
                 batch_size=1, mean_image=None, labels=None, change=None, views=(), **limits):
        cdef int i
        cdef const float[:, :, ::1] mean
        self.recipe = recipe
        self.dtype = numpy_dtype(dtype)
        self.layout = layout
        self.key = key
        self.label_width = label_width
        self.channels, self.height, self.width = recipe.data_shape
        self.scaled_decode = recipe.scaled_decode
        self.reducing_gap = recipe.reducing_gap or 0
        self.labels, self.change, self.views = labels, change, tuple(views)
        self.limits = {**DEFAULT_LIMITS, **limits}
        self.largest = 4 * self.limits["max_pixels"]
        for i in range(4):
            self.fill[i] = recipe.fill_value if i < 3 else 0
        memset(&self.normalise, 0, sizeof(self.normalise))
        self.normalise.channels = self.channels
        self.normalise.dtype = normalise_type(self.dtype.name.encode())
        if self.normalise.dtype < 0:
            raise ValueError(f"dtype={dtype!r} is not an element type of images")
        for i in range(4):
            self.normalise.mean[i] = recipe.mean[i]
            self.normalise.factor[i] = np.float32(recipe.scale) / np.float32(recipe.std[i])
        if mean_image is not None:
            self.mean_image = mean = np.ascontiguousarray(mean_image, np.float32)
            if self.mean_image.shape != tuple(recipe.data_shape):
                raise ValueError(
                    f"the mean image has shape {self.mean_image.shape}, data_shape is "
                    f"{tuple(recipe.data_shape)}")
            self.normalise.mean_image = &mean[0, 0, 0]
            self.normalise.mean_height, self.normalise.mean_width = self.height, self.width
        strides = self._strides(batch_size)
        self.item_size = self.dtype.itemsize
        self.sample_stride, self.channel_stride = strides["N"], strides["C"]
        self.row_stride, self.pixel_stride = strides["H"], strides["W"]

    def parts(self):
        """Make the parts of a renderer: labels, geometry, changes of pixels, and its own writer."""
        return (
            RowLabels(self.labels, self.label_width, self.change), RecipeGeometry(self.recipe),
            changes_of(self.recipe), None,
        )

    def shape(self, batch_size):
        """Return the shape of a batch in the plan's layout."""
        sizes = dict(zip("NCHW", (batch_size, self.channels, self.height, self.width)))
        return tuple(sizes[axis] for axis in self.layout)

    def _strides(self, batch_size):
        stride, strides = 1, {}
        for axis, size in zip(reversed(self.layout), reversed(self.shape(batch_size))):
            strides[axis] = stride
            stride *= size
        return strides
