# A rectangle, in fractions of the image.
cdef struct Box:
    float x
    float y
    float width
    float height


# The objects of a label: `width` values each, which begin with id, xmin, ymin, xmax, ymax.
cdef struct Objects:
    float* values
    int width
    Py_ssize_t count


# Limits that at least one object must meet, and those for the objects that a crop keeps.
cdef struct CropLimits:
    float min_overlap
    float max_overlap
    float min_sample_coverage
    float max_sample_coverage
    float min_object_coverage
    float max_object_coverage
    bint by_overlap         # else by centre
    float emit_overlap


cdef enum LabelStatus:
    LABEL_OK = 0
    LABEL_SHORT             # fewer values than the two widths
    LABEL_HEADER            # a header width that is impossible
    LABEL_OBJECT            # an object width that is impossible
    LABEL_RAGGED            # the objects do not fill the label
    LABEL_CLASS             # a class that is no number
    LABEL_NOT_FINITE        # a coordinate that is no number
    LABEL_PIXELS            # a coordinate too far from the image for a fraction of it


# Check one object, of at least five values, which need not be aligned.
cdef int check_object(const void* values) noexcept nogil


# Check a raw label, which need not be aligned.  `header` becomes the number of values before its
# objects; `objects` gets their width and number, and its values are NULL.
cdef int check_label(const void* label, Py_ssize_t count, Py_ssize_t* header,
                     Objects* objects) noexcept nogil
# Check a raw label, refer to its objects and drop those without area.
cdef int parse_label(float* values, Py_ssize_t count, Py_ssize_t* header,
                     Objects* objects) noexcept nogil
cdef void mirror_objects(Objects* objects) noexcept nogil
# Express the boxes in fractions of `view` and clip them to it.
cdef void project_objects(Objects* objects, const Box* view) noexcept nogil
# True if a crop is acceptable.
cdef bint crop_accepted(const Objects* objects, const Box* crop,
                        const CropLimits* limits) noexcept nogil
# Keep the objects that an accepted crop keeps, in fractions of it.
cdef void crop_objects(Objects* objects, const Box* crop, const CropLimits* limits) noexcept nogil
# The inverse of `project_objects`: boxes in fractions of `part` become fractions of the whole.
cdef void place_objects(Objects* objects, const Box* part) noexcept nogil
# Meaning of a status, for error messages; NULL terminated.
cdef const char* label_message(int status) noexcept nogil
