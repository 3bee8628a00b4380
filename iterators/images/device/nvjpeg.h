/* The part of nvJPEG that decodes batches, by its functions' addresses: nothing of it is needed to compile.
 *
 * Types and numbers are those of its C interface, of versions 11.9 to 13.
 */
#ifndef ITERATORS_NVJPEG_H
#define ITERATORS_NVJPEG_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "block.h"

enum { NVJPEG_BACKEND_GPU_HYBRID = 2, NVJPEG_BACKEND_HARDWARE = 3 };
enum { NVJPEG_OUTPUT_Y = 2, NVJPEG_OUTPUT_RGBI = 5 };

/* Chroma is interpolated, as libjpeg does it and from this version on: 1000 * major + minor. */
enum { NVJPEG_SMOOTH_CHROMA = 32, NVJPEG_SMOOTH_SINCE = 12001 };

/* Statuses that are about an image; all others are about the device or this program. */
enum { NVJPEG_BAD_JPEG = 3, NVJPEG_JPEG_NOT_SUPPORTED = 4, NVJPEG_INCOMPLETE_BITSTREAM = 10 };

typedef struct {
    uint8_t* channel[4];
    size_t pitch[4];
} nvjpeg_image;

/* Names as in the library, without its prefix. */
#define NVJPEG_FUNCTIONS(NEEDED, OPTIONAL)                                                                   \
    NEEDED(CreateEx, (int backend, void* allocator, void* pinned, unsigned flags, void** handle))            \
    NEEDED(Destroy, (void* handle))                                                                          \
    NEEDED(JpegStateCreate, (void* handle, void** state))                                                    \
    NEEDED(JpegStateDestroy, (void* state))                                                                  \
    NEEDED(JpegStreamCreate, (void* handle, void** stream))                                                  \
    NEEDED(JpegStreamDestroy, (void* stream))                                                                \
    NEEDED(JpegStreamParseHeader, (void* handle, const uint8_t* data, size_t size, void* stream))            \
    NEEDED(DecodeBatchedInitialize, (void* handle, void* state, int images, int threads, int format))        \
    NEEDED(DecodeBatched, (void* handle, void* state, const uint8_t* const* data, const size_t* sizes,       \
                           nvjpeg_image* targets, void* cuda_stream))                                        \
    OPTIONAL(DecodeBatchedEx, (void* handle, void* state, const uint8_t* const* data, const size_t* sizes,   \
                               nvjpeg_image* targets, void** params, void* cuda_stream))                     \
    OPTIONAL(DecodeBatchedSupportedEx, (void* handle, void* stream, void* params, int* unsupported))         \
    OPTIONAL(DecodeBatchedPreAllocate,                                                                       \
             (void* handle, void* state, int images, int width, int height, int subsampling, int format))    \
    OPTIONAL(DecodeParamsCreate, (void* handle, void** params))                                              \
    OPTIONAL(DecodeParamsDestroy, (void* params))                                                            \
    OPTIONAL(DecodeParamsSetOutputFormat, (void* params, int format))                                        \
    OPTIONAL(DecodeParamsSetROI, (void* params, int x, int y, int width, int height))                        \
    OPTIONAL(DecodeParamsSetScaleFactor, (void* params, int factor))                                         \
    OPTIONAL(GetHardwareDecoderInfo, (void* handle, unsigned* engines, unsigned* cores))                     \
    OPTIONAL(GetProperty, (int property, int* value))

#define NVJPEG_POINTER(name, parameters) int(*name) parameters;
typedef struct {
    NVJPEG_FUNCTIONS(NVJPEG_POINTER, NVJPEG_POINTER)
    /* Of the driver: cuStreamSynchronize, cuCtxPushCurrent and cuCtxPopCurrent. */
    int (*synchronize)(void* cuda_stream);
    int (*push)(void* context);
    int (*pop)(void** context);
} nvjpeg_functions;
#undef NVJPEG_POINTER

#define NVJPEG_NAME_NEEDED(name, parameters)   {#name, offsetof(nvjpeg_functions, name), 1},
#define NVJPEG_NAME_OPTIONAL(name, parameters) {#name, offsetof(nvjpeg_functions, name), 0},
static const struct nvjpeg_symbol {
    const char* name;
    size_t offset;
    int needed;
} nvjpeg_symbols[] = {NVJPEG_FUNCTIONS(NVJPEG_NAME_NEEDED, NVJPEG_NAME_OPTIONAL)};
enum { NVJPEG_SYMBOLS = sizeof nvjpeg_symbols / sizeof *nvjpeg_symbols };

static inline void nvjpeg_set(nvjpeg_functions* functions, int number, size_t address) {
    memcpy((uint8_t*)functions + nvjpeg_symbols[number].offset, &address, sizeof address);
}

/* A decoder of its own, with a stream of its own, for calls of the same width. */
typedef struct {
    void* state;
    void* cuda_stream;
    int busy;          /* something may be under way on the stream */
    int ready;         /* images that the state is initialised for; 0: not at all */
    int width, height; /* of the largest image that memory was taken for */
    int count;         /* images of the call that is being made up */
    /* Of the images of that call. */
    void** params;
    const uint8_t** data;
    size_t* sizes;
    nvjpeg_image* targets;
    device_row** rows;
} nvjpeg_lane;

typedef struct {
    nvjpeg_functions functions;
    void* context; /* which is current wherever the library is called, in any thread */
    void* handle;
    int hardware; /* rectangles and scales are possible */
    int scales;
    int smooth; /* chroma is interpolated */
    int channels;
    int width; /* images of one call */
    int lanes;
    nvjpeg_lane* lane;
    const char* failed; /* the function that failed, and its status */
    int status;
} nvjpeg_decoder;

/* Whether the context could be made current; `nvjpeg_leave` brings back that of the thread. */
static int nvjpeg_enter(const nvjpeg_decoder* d) {
    return d->functions.push(d->context);
}

static void nvjpeg_leave(const nvjpeg_decoder* d) {
    void* context = NULL;
    d->functions.pop(&context);
}

static inline int nvjpeg_format(const nvjpeg_decoder* d) {
    return d->channels == 1 ? NVJPEG_OUTPUT_Y : NVJPEG_OUTPUT_RGBI;
}

static int nvjpeg_note(nvjpeg_decoder* d, const char* function, int status) {
    d->failed = function;
    d->status = status;
    return status;
}

#define NVJPEG_CALL(d, name, ...)                                                                            \
    do {                                                                                                     \
        const int called = (d)->functions.name(__VA_ARGS__);                                                 \
        if (called) return nvjpeg_note(d, "nvjpeg" #name, called);                                           \
    } while (0)

/* Set what is decoded of an image; `params` belong to one thread. */
static int nvjpeg_set_params(const nvjpeg_decoder* d, void* params, const device_row* row) {
    int x, y, width, height, factor = 0, status;
    row_window(row, 1, &x, &y, &width, &height);
    if (row->denominator > 1 || (width == row->frame_width && height == row->frame_height))
        x = y = 0, width = height = -1; /* all of it */
    while (1 << factor < row->denominator)
        factor++;
    status = d->functions.DecodeParamsSetROI(params, x, y, width, height);
    return status || !d->scales ? status : d->functions.DecodeParamsSetScaleFactor(params, factor);
}

static int nvjpeg_is_of_image(int status) {
    return status == NVJPEG_BAD_JPEG || status == NVJPEG_JPEG_NOT_SUPPORTED ||
           status == NVJPEG_INCOMPLETE_BITSTREAM;
}

/* Decode the images of a lane.  Nothing is used of the state before its last call is through. */
static int nvjpeg_call(nvjpeg_decoder* d, nvjpeg_lane* lane) {
    const int count = lane->count, format = nvjpeg_format(d);
    int status, width = 0, height = 0;
    lane->count = 0;
    if (count == 0) return 0;
    if (lane->busy && (status = d->functions.synchronize(lane->cuda_stream)) != 0)
        return nvjpeg_note(d, "cuStreamSynchronize", status);
    lane->busy = 0;
    for (int i = 0; i < count; i++) {
        const device_row* row = lane->rows[i];
        width = row->frame_width > width ? row->frame_width : width;
        height = row->frame_height > height ? row->frame_height : height;
        if (d->hardware && (status = nvjpeg_set_params(d, lane->params[i], row)) != 0)
            return nvjpeg_note(d, "nvjpegDecodeParamsSetROI or -ScaleFactor", status);
    }
    if (lane->ready != count) {
        lane->ready = 0;
        NVJPEG_CALL(d, DecodeBatchedInitialize, d->handle, lane->state, count, 1, format);
        lane->ready = count;
    }
    if (d->hardware && d->functions.DecodeBatchedPreAllocate != NULL &&
        (width > lane->width || height > lane->height)) {
        lane->width = width > lane->width ? width : lane->width;
        lane->height = height > lane->height ? height : lane->height;
        /* It only spares the library to take memory later, so nothing depends on what it says.  0: 4:4:4. */
        d->functions.DecodeBatchedPreAllocate(d->handle, lane->state, d->width, lane->width, lane->height, 0,
                                              format);
    }
    lane->busy = 1;
    if (d->hardware)
        status = d->functions.DecodeBatchedEx(d->handle, lane->state, lane->data, lane->sizes, lane->targets,
                                              lane->params, lane->cuda_stream);
    else
        status = d->functions.DecodeBatched(d->handle, lane->state, lane->data, lane->sizes, lane->targets,
                                            lane->cuda_stream);
    if (status == 0) return 0;
    lane->ready = 0; /* initialised again, as the library asks for after a failure */
    if (!nvjpeg_is_of_image(status))
        return nvjpeg_note(d, d->hardware ? "nvjpegDecodeBatchedEx" : "nvjpegDecodeBatched", status);
    for (int i = 0; i < count; i++) /* it does not say which */
        lane->rows[i]->kind = ROW_REFUSED;
    return 0;
}

/* Wait for all lanes; the first error. */
static int nvjpeg_wait(nvjpeg_decoder* d) {
    int first = 0;
    for (int i = 0; i < d->lanes; i++) {
        nvjpeg_lane* lane = &d->lane[i];
        const int status = lane->busy ? d->functions.synchronize(lane->cuda_stream) : 0;
        lane->busy = lane->count = 0;
        if (status && !first) first = status;
    }
    return first ? nvjpeg_note(d, "cuStreamSynchronize", first) : 0;
}

/* Decode all images of a block that is laid out; images that the library refuses are marked.  After a failure
 * nothing is under way. */
static int nvjpeg_decode(nvjpeg_decoder* d, device_block* block, uint8_t* pixels) {
    device_row* rows = block_rows(block);
    int at = 0, status = nvjpeg_enter(d);
    if (status) return nvjpeg_note(d, "cuCtxPushCurrent", status);
    for (int64_t i = 0; i < block->slots && !status; i++) {
        device_row* row = &rows[i];
        nvjpeg_lane* lane = &d->lane[at];
        int x, y, width, height;
        if (row->kind != ROW_JPEG) continue;
        row_window(row, d->hardware, &x, &y, &width, &height);
        memset(&lane->targets[lane->count], 0, sizeof *lane->targets);
        lane->targets[lane->count].channel[0] = pixels + row->pixels;
        lane->targets[lane->count].pitch[0] = (size_t)width * (size_t)d->channels;
        lane->data[lane->count] = (const uint8_t*)block + row->content;
        lane->sizes[lane->count] = (size_t)row->size;
        lane->rows[lane->count++] = row;
        if (lane->count == d->width) {
            status = nvjpeg_call(d, lane);
            at = (at + 1) % d->lanes;
        }
    }
    if (!status) status = nvjpeg_call(d, &d->lane[at]);
    if (status) {
        const char* failed = d->failed;
        nvjpeg_wait(d);
        nvjpeg_note(d, failed, status);
    }
    nvjpeg_leave(d);
    return status;
}

/* Whether the device decodes an image, by its header; `stream` and `params` belong to the calling thread. */
static int nvjpeg_supports(const nvjpeg_decoder* d, void* stream, void* params, const uint8_t* data,
                           size_t size, const device_row* row) {
    int unsupported = 1;
    if (nvjpeg_enter(d)) return 0;
    if (d->functions.JpegStreamParseHeader(d->handle, data, size, stream) == 0) {
        if (!d->hardware)
            unsupported = 0;
        else if (nvjpeg_set_params(d, params, row) ||
                 d->functions.DecodeBatchedSupportedEx(d->handle, stream, params, &unsupported))
            unsupported = 1;
    }
    nvjpeg_leave(d);
    return unsupported == 0;
}

/* What a thread needs to look at headers. */
static int nvjpeg_open_test(nvjpeg_decoder* d, void** stream, void** params, const char** failed) {
    int status = nvjpeg_enter(d);
    *failed = "cuCtxPushCurrent";
    if (status) return status;
    *failed = "nvjpegJpegStreamCreate";
    status = d->functions.JpegStreamCreate(d->handle, stream);
    if (!status && d->hardware) {
        *failed = "nvjpegDecodeParamsCreate";
        status = d->functions.DecodeParamsCreate(d->handle, params);
    }
    nvjpeg_leave(d);
    return status;
}

static void nvjpeg_close_test(nvjpeg_decoder* d, void* stream, void* params) {
    if (nvjpeg_enter(d)) return; /* the device was given up, at the end of the process */
    if (stream != NULL) d->functions.JpegStreamDestroy(stream);
    if (params != NULL) d->functions.DecodeParamsDestroy(params);
    nvjpeg_leave(d);
}

static void nvjpeg_close(nvjpeg_decoder* d) {
    const int entered = nvjpeg_enter(d) == 0; /* else the device was given up */
    for (int i = 0; d->lane != NULL && i < d->lanes; i++) {
        nvjpeg_lane* lane = &d->lane[i];
        if (entered && lane->busy) d->functions.synchronize(lane->cuda_stream);
        for (int k = 0; entered && lane->params != NULL && k < d->width; k++)
            if (lane->params[k] != NULL) d->functions.DecodeParamsDestroy(lane->params[k]);
        if (entered && lane->state != NULL) d->functions.JpegStateDestroy(lane->state);
        free(lane->params);
        free(lane->data);
        free(lane->sizes);
        free(lane->targets);
        free(lane->rows);
    }
    free(d->lane);
    d->lane = NULL;
    if (entered && d->handle != NULL) d->functions.Destroy(d->handle);
    d->handle = NULL;
    if (entered) nvjpeg_leave(d);
}

static int nvjpeg_version(const nvjpeg_functions* f) {
    int major = 0, minor = 0;
    if (f->GetProperty == NULL || f->GetProperty(0, &major) || f->GetProperty(1, &minor)) return 0;
    return 1000 * major + minor;
}

/* Find the engines of the device, or the other decoder where it has none.  `width` images in a call, or 0 for
 * as many as there are cores in the engines.  The context is current. */
static int nvjpeg_open(nvjpeg_decoder* d, int channels, int width, int lanes, void** streams) {
    const nvjpeg_functions* f = &d->functions;
    unsigned engines = 1, cores = 5; /* of devices whose library cannot say */
    const int complete = f->DecodeBatchedEx != NULL && f->DecodeBatchedSupportedEx != NULL &&
                         f->DecodeParamsCreate != NULL && f->DecodeParamsDestroy != NULL &&
                         f->DecodeParamsSetOutputFormat != NULL && f->DecodeParamsSetROI != NULL;
    const unsigned flags = nvjpeg_version(f) >= NVJPEG_SMOOTH_SINCE ? NVJPEG_SMOOTH_CHROMA : 0;
    d->smooth = flags != 0;
    d->channels = channels;
    d->hardware = complete && f->CreateEx(NVJPEG_BACKEND_HARDWARE, NULL, NULL, flags, &d->handle) == 0;
    if (d->hardware && f->GetHardwareDecoderInfo != NULL &&
        (f->GetHardwareDecoderInfo(d->handle, &engines, &cores) || engines * cores == 0)) {
        f->Destroy(d->handle);
        d->hardware = 0;
    }
    if (!d->hardware) {
        d->handle = NULL;
        NVJPEG_CALL(d, CreateEx, NVJPEG_BACKEND_GPU_HYBRID, NULL, NULL, flags, &d->handle);
    }
    d->scales = d->hardware && f->DecodeParamsSetScaleFactor != NULL;
    /* The hybrid decodes Huffman codes on the device in calls of more than 50 images. */
    d->width = width > 0 ? width : d->hardware ? (int)(engines * cores) : 64;
    d->lane = (nvjpeg_lane*)calloc((size_t)lanes, sizeof *d->lane);
    if (d->lane == NULL) return nvjpeg_note(d, "", -1);
    d->lanes = lanes;
    for (int i = 0; i < lanes; i++) {
        nvjpeg_lane* lane = &d->lane[i];
        const size_t n = (size_t)d->width;
        lane->cuda_stream = streams[i];
        lane->params = (void**)calloc(n, sizeof *lane->params);
        lane->data = (const uint8_t**)calloc(n, sizeof *lane->data);
        lane->sizes = (size_t*)calloc(n, sizeof *lane->sizes);
        lane->targets = (nvjpeg_image*)calloc(n, sizeof *lane->targets);
        lane->rows = (device_row**)calloc(n, sizeof *lane->rows);
        if (!lane->params || !lane->data || !lane->sizes || !lane->targets || !lane->rows)
            return nvjpeg_note(d, "", -1);
        NVJPEG_CALL(d, JpegStateCreate, d->handle, &lane->state);
        for (int k = 0; d->hardware && k < d->width; k++) {
            NVJPEG_CALL(d, DecodeParamsCreate, d->handle, &lane->params[k]);
            NVJPEG_CALL(d, DecodeParamsSetOutputFormat, lane->params[k], nvjpeg_format(d));
        }
    }
    return 0;
}

#endif
