from recordio.kernels.operations cimport operation

cdef enum:
    MOST_CHANGES = 8        # one of three, four of the jitter, grey, blur, solarize


# Operations drawn for one image, with which the state of a `Photometric` begins.
cdef struct DrawnPhotometric:
    int count
    operation operations[MOST_CHANGES]
