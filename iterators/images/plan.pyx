"""Parameters and limits: the same for every sample that a provider renders.

A `RenderPlan` translates a validated recipe, a layout and an element type into what the renderers
read without the GIL, and says of which parts a renderer consists.  It renders nothing.
"""

from dataclasses import replace

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint64_t
from libc.string cimport memset

import numpy as np

from recordio.kernels.normalise cimport normalise_type

from iterators.core.dtypes import numpy_dtype

from .augment.changes import changes_of
from .augment.geometry import RecipeGeometry
from recordio.formats.jpeg.jpeg import DEFAULT_LIMITS
from .label_reader import SeveralLabels, RowLabels
from .stored_bits import cuts_of


cdef class RenderPlan:
    """Describes every sample: recipe, layout, dtype, label width, limits.

    An image has the size of the recipe's `data_shape` if a batch has no other; `largest` is the
    height and width that are never exceeded.  `key` is that of all draws; `label_width` 0 reads no
    labels; `mean_image` replaces the means per channel; `labels`, ascending ids and
    their rows, replace those in the records, and "padded" or "multi_hot" says what becomes of any
    number of them; `change` is a `LabelChange`; `views` are plans of what
    else is made of an image that is decoded once; `limits` have the names of `DEFAULT_LIMITS`.
    """

    def __init__(self, recipe, *, uint64_t key=0, layout="NCHW", dtype="float32", label_width=1,
                 mean_image=None, largest=None, labels=None, change=None, views=(), **limits):
        cdef int i
        cdef const float[:, :, ::1] mean
        self.recipe = recipe
        self.dtype = numpy_dtype(dtype)
        self.layout = layout
        self.key = key
        self.label_width = label_width
        self.channels, self.height, self.width = recipe.data_shape
        self.most_height, self.most_width = largest or (self.height, self.width)
        self.scaled_decode = recipe.scaled_decode
        self.reducing_gap = recipe.reducing_gap or 0
        self.labels, self.change, self.views = labels, change, tuple(views)
        self.limits = {**DEFAULT_LIMITS, **limits}
        self.cuts = self.find_cuts()
        if self.dtype == np.uint16 and self.cuts:
            raise ValueError(
                f"dtype='uint16' keeps all bits of an image, and {', '.join(self.cuts)} would cut "
                "them: drop one of them, or use 'float32' or 'uint8'")
        self.largest = (4 if self.cuts else 16) * self.limits["max_pixels"]
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
        self.item_size = self.dtype.itemsize
        for i in range(4):
            self.axes[i] = <char>ord(layout[i])

    def find_cuts(self):
        """Name what cuts all images to 8 bits, for `cuts`."""
        return cuts_of(self.recipe, self.dtype.name) + (("views",) if self.views else ())

    def parts(self):
        """Make the parts of a renderer: labels, geometry, changes of pixels, and its own writer."""
        if isinstance(self.labels, str):
            labels = SeveralLabels(self.labels == "multi_hot", self.label_width, self.change)
        else:
            labels = RowLabels(self.labels, self.label_width, self.change)
        return labels, RecipeGeometry(self.recipe), self.changes(), None

    def changes(self):
        """Make the changes of pixels, with room for the largest image."""
        largest = self.channels, self.most_height, self.most_width
        same = largest == tuple(self.recipe.data_shape)
        return changes_of(self.recipe if same else replace(self.recipe, data_shape=largest))

    def shape(self, samples, size=None):
        """Return the shape of a batch in the plan's layout, of images of that height and width."""
        height, width = size or (self.height, self.width)
        sizes = dict(zip("NCHW", (samples, self.channels, height, width)))
        return tuple(sizes[axis] for axis in self.layout)

    cdef Py_ssize_t aim(self, Py_ssize_t samples, int height, int width, char* data,
                        Target* target) noexcept nogil:
        cdef ptrdiff_t stride = 1, sample = 0
        cdef int i
        target.data, target.height, target.width = data, height, width
        target.patch = target.length = 0
        target.coordinates, target.marks = NULL, NULL
        for i in range(3, -1, -1):
            if self.axes[i] == c"N":
                sample = stride
                stride *= samples
            elif self.axes[i] == c"C":
                target.channel_stride = stride
                stride *= self.channels
            elif self.axes[i] == c"H":
                target.row_stride = stride
                stride *= height
            else:
                target.pixel_stride = stride
                stride *= width
        return sample * self.item_size
