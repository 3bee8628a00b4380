"""What recipes do to the labels of detection images, by the same functions as the image stage."""

from iterators.images.augment.det_geometry cimport (
    LABEL_SHORT, Box, CropLimits, DetGeometryRecipe, Objects, crop_objects, draw_det_geometry,
    label_message, load_det_recipe, mirror_objects, move_objects, parse_label, project_objects,
)
from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.geometry cimport Geometry, geometry_message
from iterators.images.augment.program cimport MAX_DRAWN, Drawn
from recordio.kernels.operations cimport operation_kind

import numpy as np

from recordio.kernels.operations import NAMES


cdef class Label:
    """A copy of a raw label, and the objects in it."""

    cdef float[::1] values
    cdef Py_ssize_t header
    cdef Objects objects

    def __init__(self, label):
        cdef int status = LABEL_SHORT
        self.values = np.array(label, np.float32).ravel()
        if self.values.shape[0]:
            status = parse_label(
                &self.values[0], self.values.shape[0], &self.header, &self.objects)
        if status:
            raise ValueError((<bytes>label_message(status)).decode())

    def changed(self):
        """Return the label with the objects that are left."""
        return np.array(self.values[:self.header + self.objects.count * self.objects.width])


def transform(raw, *, bint mirror=False, pad=None, crop=None):
    """Apply a mirror, a border and a crop to a raw label.

    `pad` is (x, y, scale): the image becomes that part of an area `scale` times as large, `x` and
    `y` from its left and top, in fractions of the image.  `crop` is (x, y, width, height) in
    fractions of the image then; objects with their centre in it stay.
    """
    cdef Label label = Label(raw)
    cdef Box box
    cdef CropLimits limits
    if mirror:
        mirror_objects(&label.objects)
    if pad is not None:
        box.x, box.y, box.width, box.height = -pad[0], -pad[1], pad[2], pad[2]
        project_objects(&label.objects, &box)
    if crop is not None:
        box.x, box.y, box.width, box.height = crop
        limits.by_overlap = False
        crop_objects(&label.objects, &box, &limits)
    return label.changed()


def moved(raw, operations, int width, int height, *, bint mirror=False, overlap=None):
    """Apply operations one after the other to a raw label.

    Operations are names and values as `kernels.operations.operate` takes them, at most 64; the
    sizes are the image's in pixels, and a mirror comes afterwards.  Objects of which a larger share
    than `overlap` is left stay; without it those whose centre was never outside.
    """
    cdef Label label = Label(raw)
    cdef CropLimits limits
    cdef Drawn drawn
    if len(operations) > MAX_DRAWN:
        raise ValueError(f"{len(operations)} operations: at most {MAX_DRAWN} are possible")
    limits.by_overlap = overlap is not None
    limits.emit_overlap = overlap or 0
    drawn.count, drawn.num_parts = len(operations), 0
    for i, (name, value, *_) in enumerate(operations):
        drawn.operations[i].kind = <operation_kind><int>NAMES.index(name)
        drawn.operations[i].value = value
    move_objects(&label.objects, &drawn, width, height, mirror, &limits)
    return label.changed()


def drawn_steps(recipe, key, epoch, record, int width, int height, raw):
    """Return the steps drawn for one detection image, the mirror and its label afterwards.

    A step is a dict of crop (`x`, `y`, `width`, `height`), target size, window and border.
    """
    cdef Label label = Label(raw)
    cdef DetGeometryRecipe settings
    cdef Geometry geometry
    cdef ImageKey image
    image.key, image.epoch, image.record = key, epoch, record
    load_det_recipe(&settings, recipe)
    _, settings.height, settings.width = recipe.data_shape
    cdef int status = draw_det_geometry(
        &settings, &image, width, height, &label.objects, &geometry)
    if status:
        raise ValueError(geometry_message(status).decode())
    return ([geometry.steps[i] for i in range(geometry.count)], bool(geometry.mirror),
            label.changed())
