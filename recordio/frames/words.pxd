"""Words and heads of record parts, for the compiled modules of this package."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef extern from "recordio/frames/words.h":
    const uint8_t* MAGIC_BYTES "recordio_magic"
    const uint8_t* ZERO_BYTES "recordio_zeros"
    uint32_t magic_word "recordio_magic_word"() noexcept nogil
    uint32_t load_word "recordio_word"(const uint8_t* at) noexcept nogil
    uint32_t flag_and_length "recordio_flag_and_length"(const uint8_t* head) noexcept nogil
    void put_head "recordio_put_head"(uint8_t* head, uint32_t flag, uint32_t length) noexcept nogil
    int64_t count_magic "recordio_count_magic"(
        const uint8_t* data, int64_t words, bint only_first
    ) noexcept nogil
    int64_t padded "recordio_padded"(int64_t length) noexcept nogil
