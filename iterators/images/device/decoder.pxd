"""C declarations of the decoder of batches; `nvjpeg.h` and `block.h` say more."""

from libc.stdint cimport int32_t, int64_t, uint8_t


cdef extern from "iterators/images/device/block.h" nogil:
    enum:
        KERNEL_STEPS
        KERNEL_COPY
        ROW_PIXELS
        ROW_JPEG
        ROW_REFUSED
        ROW_NO_ROOM

    ctypedef struct kernel_step:
        int64_t source
        int64_t target
        int64_t tables
        int32_t in_tail
        int32_t mode
        int32_t stride
        int32_t columns
        int32_t lines
        int32_t width
        int32_t height

    ctypedef struct device_row:
        kernel_step steps[3]
        int32_t count
        int32_t mirror
        int32_t flip
        int32_t slot
        int32_t kind
        int32_t denominator
        int32_t frame_width
        int32_t frame_height
        int32_t x
        int32_t y
        int32_t window_width
        int32_t window_height
        int64_t content
        int64_t size
        int64_t to_block

    ctypedef struct kernel_batch:
        int64_t slot
        int64_t row
        int64_t pixel
        int64_t channel
        int32_t channels
        int32_t width
        int32_t height
        int32_t type
        float mean[4]
        float factor[4]

    ctypedef struct device_block:
        int64_t capacity
        int64_t used
        int64_t slots

    ctypedef struct block_layout:
        int64_t tail
        int64_t tail_size
        int64_t rows
        int64_t pixels
        int64_t most[3]
        int32_t jpegs
        int32_t made
        int32_t cramped

    device_row* block_rows(device_block* block)
    int64_t block_size(int64_t capacity, int64_t slots)
    void block_begin(device_block* block, int64_t capacity, int64_t slots)
    int64_t block_front(const device_block* block)
    int64_t block_back(const device_block* block)
    int block_take(device_block* block, int64_t front, int64_t back, int64_t* front_at,
                   int64_t* back_at)
    void block_grow(const device_block* old, device_block* grown, int64_t capacity)
    void block_lay_out(device_block* block, int channels, int crops, block_layout* layout)
    void kernel_pixel(const device_row* row, const uint8_t* tail, uint8_t* pixels, void* out,
                      const kernel_batch* batch, int number, int at)


cdef extern from "iterators/images/device/nvjpeg.h" nogil:
    enum:
        NVJPEG_SYMBOLS

    cdef struct nvjpeg_symbol:
        const char* name
        int needed

    nvjpeg_symbol* nvjpeg_symbols

    ctypedef struct nvjpeg_functions:
        int (*synchronize)(void* stream)
        int (*push)(void* context)
        int (*pop)(void** context)

    ctypedef struct nvjpeg_decoder:
        nvjpeg_functions functions
        void* context
        void* handle
        bint hardware
        bint scales
        bint smooth
        int channels
        int width
        const char* failed
        int status

    void nvjpeg_set(nvjpeg_functions* functions, int number, size_t address)
    int nvjpeg_open(nvjpeg_decoder* d, int channels, int width, int lanes, void** streams)
    int nvjpeg_decode(nvjpeg_decoder* d, device_block* block, uint8_t* pixels)
    bint nvjpeg_supports(const nvjpeg_decoder* d, void* stream, void* params, const uint8_t* data,
                         size_t size, const device_row* row)
    int nvjpeg_open_test(nvjpeg_decoder* d, void** stream, void** params, const char** failed)
    void nvjpeg_close_test(nvjpeg_decoder* d, void* stream, void* params)
    void nvjpeg_close(nvjpeg_decoder* d)


# Decodes the images of one block after the other; its header test serves any thread.
cdef class BatchDecoder:
    cdef nvjpeg_decoder decoder
    cdef long owner                 # the process
    cdef list tests                 # of headers, which are closed with it


# What one thread needs to look at headers.
cdef class HeaderTest:
    cdef BatchDecoder of
    cdef void* stream
    cdef void* params
    # Whether the device decodes an image as its row says.
    cdef bint supports(self, const uint8_t* data, size_t size, const device_row* row) noexcept nogil
