"""C declarations of the streaming resampler; the code is header-only (`resample.h`)."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint8_t


cdef extern from "recordio/kernels/resample.h" nogil:
    enum:
        RESAMPLE_NEAREST
        RESAMPLE_BILINEAR
        RESAMPLE_CUBIC
        RESAMPLE_AREA
        RESAMPLE_LANCZOS4
        FILTER_NEAREST
        FILTER_LANCZOS
        RESAMPLE_OK
        RESAMPLE_NO_MEMORY
        RESAMPLE_BAD_ARGUMENT

    ctypedef struct resample_axis:
        int source
        int target
        int begin
        int count
        int origin
        int denominator
        int stored
        float low
        float high

    ctypedef struct resampler:
        pass

    resampler* resampler_new()
    void resampler_free(resampler* r)
    void resampler_limit(resampler* r, int level)
    int resample_denominator(int method, int source_w, int target_w, int source_h, int target_h)
    int resample_draft(
        double gap, int source_w, int target_w, int source_h, int target_h)
    int resampler_begin(
        resampler* r, int method, const resample_axis* x, const resample_axis* y, int channels,
        uint8_t* out, ptrdiff_t out_stride)
    void resampler_source(const resampler* r, int* x, int* y, int* width, int* height)
    int resampler_push(resampler* r, const uint8_t* row)


cdef extern from "recordio/kernels/simd.h" nogil:
    enum:
        SIMD_X86
        SIMD_NEON
        SIMD_LEVEL_PLAIN
        SIMD_LEVEL_SSE41
        SIMD_LEVEL_AVX2
        SIMD_LEVEL_NEON
        SIMD_LEVEL_AVX512
    int simd_level(int limit)
