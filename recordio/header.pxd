"""C layout of the header of an image record; `header.FIELDS` is the same table for Python."""

cdef enum:
    HEADER_FLAG = 0         # uint32: number of labels after the header; 0: the one inside it
    HEADER_LABEL = 4        # float32
    HEADER_ID = 8           # uint64, and another one after it
    HEADER_SIZE = 24        # bytes; labels and content follow
