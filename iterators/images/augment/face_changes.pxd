# Numbers drawn for one image, with which the state of a `FaceChange` begins.
cdef struct DrawnFace:
    bint crops
    int x
    int y
    int crop_width
    int crop_height
    bint lowers
    int small_width
    int small_height
    int down                # methods of `resample`
    int up
