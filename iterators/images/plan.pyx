"""What is the same for every sample that a provider renders: sizes, strides, parameters, limits.

A `RenderPlan` translates a validated recipe, a layout and an element type into what the renderers
read without the GIL.  It renders nothing.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

import numpy as np

from iterators.images.augment.geometry cimport load_recipe
from iterators.images.augment.jitter cimport load_jitter
from iterators.images.codecs.jpeg.jpeg cimport (
    JPEG_DEFAULT_MAX_PIXELS, JPEG_DEFAULT_MAX_SCANS, JPEG_DEFAULT_MAX_SCAN_PIXELS, jpeg_limits,
)

DTYPES = ("float32", "uint8", "int8", "float16")


cdef class RenderPlan:
    """What is the same for every sample: recipe, shape, layout, dtype, label width, limits.

    Parameters
    ----------
    recipe : Recipe
    key : int
        Key of all augmentation draws, 64 bits.
    layout : str
        Some order of the letters N, C, H and W.
    dtype : {"float32", "uint8", "int8", "float16"}
    label_width : int
        Labels of a sample; 0 to read none, whatever the records have.
    batch_size : int
        Needed for the strides when N is not the first axis.
    mean_image : array_like of float32, optional
        Of the recipe's `data_shape`; subtracted instead of the means per channel.
    labels : tuple of numpy.ndarray, optional
        Ids, uint64, ascending, and their labels, float32 ``(n, label_width)``, which replace those
        in the records.
    max_pixels, max_scans, max_scan_pixels : int
        Images with more pixels, and JPEG images with more scans, or more pixels in all of them,
        are refused.
    """

    def __init__(self, recipe, *, uint64_t key=0, layout="NCHW", dtype="float32", label_width=1,
                 batch_size=1, mean_image=None, labels=None,
                 int64_t max_pixels=JPEG_DEFAULT_MAX_PIXELS, int max_scans=JPEG_DEFAULT_MAX_SCANS,
                 int64_t max_scan_pixels=JPEG_DEFAULT_MAX_SCAN_PIXELS):
        cdef int i
        cdef const float[:, :, ::1] mean
        self.recipe = recipe
        self.dtype = np.dtype(dtype)
        self.layout = layout
        self.key = key
        self.label_width = label_width
        self.channels, self.height, self.width = recipe.data_shape
        self.scaled_decode = recipe.scaled_decode
        self._load(recipe)
        for i in range(4):
            self.fill[i] = recipe.fill_value if i < 3 else 0
        self.limits = jpeg_limits(
            max_pixels=max_pixels, max_scans=max_scans, max_scan_pixels=max_scan_pixels
        )
        memset(&self.normalise, 0, sizeof(self.normalise))
        self.normalise.channels = self.channels
        self.normalise.dtype = DTYPES.index(self.dtype.name)
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
        self.num_listed = -1
        if labels is not None:
            self._load_labels(labels)
        strides = self._strides(batch_size)
        self.item_size = self.dtype.itemsize
        self.sample_stride, self.channel_stride = strides["N"], strides["C"]
        self.row_stride, self.pixel_stride = strides["H"], strides["W"]

    def _load(self, recipe):
        """Copy what the drawing of an image needs."""
        load_recipe(&self.geometry, recipe)
        load_jitter(&self.jitter, recipe)

    def _load_labels(self, labels):
        cdef const uint64_t[::1] ids
        cdef const float[:, ::1] rows
        self.label_arrays = ids, rows = labels
        if not ids.shape[0] == rows.shape[0] or rows.shape[1] != self.label_width:
            raise ValueError("labels must be ids (n,) and rows (n, label_width)")
        self.num_listed = ids.shape[0]
        if self.num_listed:
            self.label_ids, self.label_table = &ids[0], &rows[0, 0]

    def renderer(self):
        """A renderer of the kind that this plan needs."""
        from .render import Renderer  # which knows plans; plans need not know it before

        return Renderer(self)

    def shape(self, batch_size):
        """Shape of a batch in the plan's layout."""
        sizes = dict(zip("NCHW", (batch_size, self.channels, self.height, self.width)))
        return tuple(sizes[axis] for axis in self.layout)

    def _strides(self, batch_size):
        stride, strides = 1, {}
        for axis, size in zip(reversed(self.layout), reversed(self.shape(batch_size))):
            strides[axis] = stride
            stride *= size
        return strides
