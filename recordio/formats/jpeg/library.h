/* Errors and data sources of libjpeg for images in memory, shared by all that use it.
 * Include it after jpeglib.h. */
#ifndef ITERATORS_JPEG_LIBRARY_H
#define ITERATORS_JPEG_LIBRARY_H

#include <setjmp.h>
#include <stddef.h>

/* Where setjmp saves the signal mask (BSD, macOS) it costs a system call per use. */
#if defined(__APPLE__) || defined(__FreeBSD__) || defined(__OpenBSD__) || defined(__NetBSD__)
#define SET_JUMP  _setjmp
#define LONG_JUMP _longjmp
#else
#define SET_JUMP  setjmp
#define LONG_JUMP longjmp
#endif

static inline void ignore_output(j_common_ptr library) {
    (void)library;
}

static inline void ignore_source(j_decompress_ptr library) {
    (void)library;
}

/* Bytes in memory are passed over; what would lie behind them is the source's to decide. */
static inline void skip_input(j_decompress_ptr library, long count) {
    struct jpeg_source_mgr* source = library->src;
    if (count <= 0) return;
    if ((size_t)count > source->bytes_in_buffer) {
        source->fill_input_buffer(library);
        return;
    }
    source->next_input_byte += count;
    source->bytes_in_buffer -= (size_t)count;
}

#endif
