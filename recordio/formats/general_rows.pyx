"""The row source of everything else: `general` decodes the whole image, by a library for Python.

`CODECS` are all row sources in the order in which they are asked.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t

from recordio.counter cimport seconds_add
from recordio.formats.row_source cimport (
    SOURCE_FAILED, SOURCE_OPEN, ImageInfo, Pixels, RowDecoder, RowSource, read_pixels,
)
from recordio.formats.status cimport RENDER_IMAGE, RENDER_MEMORY, Outcome, outcome_fail
from recordio.sync cimport sync_now

from recordio.errors import RecordIOError

from . import general
from .table import FORMATS

__all__ = ["CODECS", "GeneralRows"]

cdef struct State:
    Pixels pixels           # first: what gives the rows takes the state for this
    void* owner


cdef class GeneralRows(RowDecoder):
    """A decoder of any image; see `RowDecoder`."""

    cdef State state
    cdef int channels
    cdef dict settings          # limits, and whether images are turned upright
    cdef object decoded         # alive while its pixels are read
    cdef readonly object error  # of the last image, whose outcome has no room for all of it

    def __cinit__(self, int channels, **settings):
        self.channels, self.settings = channels, settings
        self.state.owner = <void*>self
        self.state.pixels.pixel_size = channels
        read_pixels(&self.source, &self.state.pixels)
        self.source.open, self.source.finish = open_any, finish_any

    def forget(self):
        """Let the error go, whoever has raised it."""
        self.error = None


cdef int open_any(RowSource* source, const uint8_t* data, size_t size, ImageInfo* info,
                  Outcome* outcome) noexcept with gil:
    cdef State* state = <State*>source.state
    cdef GeneralRows decoder = <GeneralRows>state.owner
    cdef const uint8_t[:, :, ::1] view
    cdef double begin = sync_now()
    try:
        # A copy: the span may be a worker's scratch memory, and Python code can keep it.
        copy = PyBytes_FromStringAndSize(<const char*>data, <Py_ssize_t>size)
        decoder.error = None
        view = decoder.decoded = general.decode_other(copy, decoder.channels, **decoder.settings)
    except MemoryError as error:
        decoder.error = error.with_traceback(None)
        outcome_fail(outcome, RENDER_MEMORY, b"")
        return SOURCE_FAILED
    except Exception as error:
        decoder.error = error.with_traceback(None)
        reason = error.reason if isinstance(error, RecordIOError) else repr(error)
        outcome_fail(outcome, RENDER_IMAGE, reason.encode("utf-8", "replace"))
        return SOURCE_FAILED
    finally:
        seconds_add(&source.seconds, sync_now() - begin)
    state.pixels.first, state.pixels.stride = &view[0, 0, 0], view.shape[1] * view.shape[2]
    info.width, info.height = <int>view.shape[1], <int>view.shape[0]
    info.in_memory = True
    return SOURCE_OPEN


cdef bint finish_any(RowSource* source) noexcept with gil:
    (<GeneralRows>(<State*>source.state).owner).decoded = None
    return True


#: The first one that takes an image has it; the last one takes everything.
CODECS = (*dict.fromkeys(row.rows for row in FORMATS if row.rows is not None), GeneralRows)
