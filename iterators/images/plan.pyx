# build: small
"""Parameters and limits, the same for every sample that a provider renders, and its labels.

A `RenderPlan` translates a validated recipe, a layout and an element type into what the renderers
read without the GIL, and says of which parts a renderer consists.  It renders nothing.  A
`LabelReader` copies the labels of a record into a row of a batch.
"""

from libc.math cimport floor
from libc.stddef cimport ptrdiff_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset

from recordio.formats.status cimport (
    MESSAGE_SIZE, RENDER_LABEL, RENDER_LABEL_WIDTH, RENDER_NOT_LISTED, RENDER_OK, outcome_fail,
)
from recordio.kernels.normalise cimport normalise_type

from dataclasses import replace

import numpy as np

from recordio.formats.jpeg.jpeg import DEFAULT_LIMITS

from ..core.dtypes import numpy_dtype
from .augment.changes import changes_of
from .augment.geometry import RecipeGeometry
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

    #: Class of the renderers of this plan; None for `Renderer`.
    renderer_class = None

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

    cdef Py_ssize_t set_target(self, Py_ssize_t samples, int height, int width, char* data,
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


# ---- labels ----

cdef class LabelReader:
    """Base class: finds an id in a list, and changes the class of a label."""

    def __cinit__(self, *args, **keywords):
        self.ids, self.values, self.num_listed = NULL, NULL, -1
        self.num_keys = -1

    def __init__(self, change=None):
        cdef const float[::1] keys, becomes
        if change is None or change.keeps:
            return
        self.absent, self.changes = change.absent, True
        if change.table is not None:
            self.table = keys, becomes = change.table
            self.num_keys, self.keys, self.becomes = keys.shape[0], &keys[0], &becomes[0]
        elif change.classes is not None:
            self.classes, self.shift = change.classes, change.shift

    cdef int read(self, const void* labels, uint32_t flag, float* row,
                  Outcome* outcome) noexcept nogil:
        return RENDER_OK

    cdef int change(self, float* label, Outcome* outcome) noexcept nogil:
        cdef Py_ssize_t low = 0, high = self.num_keys, middle
        if not self.changes:
            return RENDER_OK
        if self.num_keys < 0:
            if 0 <= label[0] < self.classes and label[0] == floor(label[0]):
                label[0] += self.shift
                return RENDER_OK
            snprintf(outcome.message, MESSAGE_SIZE,
                     "the label %g numbers none of the %.0f classes of the pack",
                     <double>label[0], <double>self.classes)
        else:
            while low < high:
                middle = (low + high) // 2
                if self.keys[middle] < label[0]:
                    low = middle + 1
                else:
                    high = middle
            if low < self.num_keys and self.keys[low] == label[0]:
                label[0] = self.becomes[low]
                return RENDER_OK
            snprintf(outcome.message, MESSAGE_SIZE,
                     "the label %g is not among those that `labels` of the pack names",
                     <double>label[0])
        outcome.status = RENDER_LABEL
        return RENDER_LABEL

    cdef Py_ssize_t find_listed(self, Outcome* outcome) noexcept nogil:
        cdef Py_ssize_t low = 0, high = self.num_listed, middle
        while low < high:
            middle = (low + high) // 2
            if self.ids[middle] < outcome.record_id:
                low = middle + 1
            else:
                high = middle
        if low == self.num_listed or self.ids[low] != outcome.record_id:
            outcome_fail(outcome, RENDER_NOT_LISTED, b"")
            return -1
        return low


cdef class RowLabels(LabelReader):
    """Reads as many labels as a row has, from the record or from a list of ids and rows."""

    def __init__(self, labels, Py_ssize_t width, change=None):
        LabelReader.__init__(self, change)
        cdef const uint64_t[::1] ids
        cdef const float[:, ::1] rows
        self.width = width
        if labels is None:
            return
        self.arrays = ids, rows = labels
        if not ids.shape[0] == rows.shape[0] or rows.shape[1] != width:
            raise ValueError("labels must be ids (n,) and rows (n, label_width)")
        self.num_listed = ids.shape[0]
        if self.num_listed:
            self.ids, self.values = &ids[0], &rows[0, 0]

    cdef int read(self, const void* labels, uint32_t flag, float* row,
                  Outcome* outcome) noexcept nogil:
        cdef Py_ssize_t listed, i
        if self.absent:
            for i in range(self.width):
                row[i] = -1
            return RENDER_OK
        if self.num_listed >= 0:
            listed = self.find_listed(outcome)
            if listed < 0:
                return outcome.status
            memcpy(row, self.values + listed * self.width, 4 * self.width)
            return self.change(row, outcome)
        if self.width != (<Py_ssize_t>flag if flag else 1):
            return outcome_fail(outcome, RENDER_LABEL_WIDTH, b"")
        memcpy(row, labels, 4 * self.width)
        return self.change(row, outcome)


cdef class SeveralLabels(LabelReader):
    """Reads any number of classes: padded with -1, or as a row with 1 at each of them."""

    cdef bint multi_hot

    def __init__(self, bint multi_hot, Py_ssize_t width, change=None):
        LabelReader.__init__(self, change)
        self.multi_hot, self.width = multi_hot, width

    cdef int read(self, const void* labels, uint32_t flag, float* row,
                  Outcome* outcome) noexcept nogil:
        cdef Py_ssize_t i, count = <Py_ssize_t>flag if flag else 1
        cdef float label
        for i in range(self.width):
            row[i] = 0 if self.multi_hot and not self.absent else -1
        if self.absent:
            return RENDER_OK
        if not self.multi_hot and count > self.width:
            return outcome_fail(outcome, RENDER_LABEL_WIDTH, b"")
        for i in range(count):
            memcpy(&label, <const char*>labels + 4 * i, 4)
            if self.change(&label, outcome) != RENDER_OK:
                return outcome.status
            if not self.multi_hot:
                row[i] = label
                continue
            if not (0 <= label < self.width and label == floor(label)):
                snprintf(outcome.message, MESSAGE_SIZE,
                         "the label %g numbers none of the %lld classes of multi_hot",
                         <double>label, <long long>self.width)
                outcome.status = RENDER_LABEL
                return RENDER_LABEL
            row[<Py_ssize_t>label] = 1
        return RENDER_OK
