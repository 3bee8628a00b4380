"""C declarations of raw images; `pnm.h` says what each function does."""

from libc.stdint cimport int64_t, uint8_t, uint64_t


cdef extern from "recordio/formats/pnm.h" nogil:
    enum:
        PNM_OK
        PNM_OTHER
        PNM_TOO_LARGE
        PNM_TRUNCATED

    ctypedef struct pnm_header:
        int64_t width
        int64_t height
        int channels
        size_t start
        uint64_t needed
        uint64_t rest

    int pnm_parse(const uint8_t* data, size_t size, int64_t max_pixels, pnm_header* header) noexcept
    void pnm_explain(int status, const pnm_header* header, int64_t max_pixels, char* message,
                     size_t size) noexcept
    void pnm_convert_row(const uint8_t* row, int width, int channels, uint8_t* out) noexcept
