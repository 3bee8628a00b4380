/* A library that stands in for nvJPEG, nvrtc and the CUDA driver where there is no device: host memory is the
 * device's.  It decodes with libjpeg-turbo, and the kernel is the one that the C compiler made.
 *
 * Every argument is checked; `standin_fault` has the first one that is wrong.  Decoding waits until the stream
 * is synchronised, as on a device, so whoever does not wait finds nothing.
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <jpeglib.h>

#include "iterators/images/device/nvjpeg.h"

enum { MOST_OBJECTS = 4096, MOST_JOBS = 4096, MOST_WINDOWS = 1024 };
enum { HANDLE = 1, STATE, STREAM, PARAMS };

typedef struct {
    int kind, images, busy, x, y, width, height, scale, format, parsed_width, parsed_height, of_hardware;
    int progressive, components;
} object;

typedef struct {
    object* state;
    void* stream;
    const uint8_t* data;
    size_t size;
    nvjpeg_image target;
    object params;
    int format;
} job;

/* The context of the device, and that of the thread. */
static char device_context;
static __thread void* current;
static __thread int depth;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static object* objects[MOST_OBJECTS];
static job jobs[MOST_JOBS];
static int num_jobs;
static struct {
    const uint8_t *begin, *end;
} windows[MOST_WINDOWS];
static int num_windows;
static char fault[256];
static char failing[64];
static int failing_status, failing_after, engines = 2, cores = 2, refuses, version = 13003;
static int64_t calls, widest, images, scaled, cropped, launches;

static int wrong(const char* what) {
    if (!fault[0]) snprintf(fault, sizeof fault, "%s", what);
    return 2;
}

static int fails(const char* name) {
    if (strcmp(failing, name) != 0) return 0;
    if (failing_after-- > 0) return 0;
    failing[0] = 0;
    return failing_status;
}

const char* standin_fault(void) {
    return fault;
}

/* The function of that name fails once, after so many calls that do not. */
void standin_fail(const char* name, int status, int after) {
    snprintf(failing, sizeof failing, "%s", name);
    failing_status = status;
    failing_after = after;
}

/* Engines and cores of the device; images are refused by their headers if `refuse`. */
void standin_device(int number, int each, int refuse) {
    engines = number, cores = each, refuses = refuse;
}

/* Of the library: 1000 * major + minor. */
void standin_version(int number) {
    version = number;
}

void standin_reset(void) {
    version = 13003;
    calls = widest = images = scaled = cropped = launches = 0;
    num_windows = num_jobs = 0;
    fault[0] = failing[0] = 0;
    standin_device(2, 2, 0);
}

/* Memory of the device, within which everything has to be written. */
void standin_window(const void* begin, size_t size) {
    pthread_mutex_lock(&lock);
    if (num_windows < MOST_WINDOWS) {
        windows[num_windows].begin = (const uint8_t*)begin;
        windows[num_windows++].end = (const uint8_t*)begin + size;
    }
    pthread_mutex_unlock(&lock);
}

int64_t standin_count(const char* what) {
    int64_t left = 0;
    if (strcmp(what, "objects") == 0) {
        for (int i = 0; i < MOST_OBJECTS; i++)
            left += objects[i] != NULL;
        return left;
    }
    return strcmp(what, "calls") == 0     ? calls
           : strcmp(what, "widest") == 0  ? widest
           : strcmp(what, "images") == 0  ? images
           : strcmp(what, "scaled") == 0  ? scaled
           : strcmp(what, "cropped") == 0 ? cropped
           : strcmp(what, "jobs") == 0    ? num_jobs
                                          : launches;
}

static object* known(void* pointer, int kind) {
    object* found = NULL;
    if (current != &device_context) wrong("the library is called without its context");
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_OBJECTS && pointer != NULL; i++)
        if (objects[i] == pointer && objects[i]->kind == kind) found = objects[i];
    pthread_mutex_unlock(&lock);
    return found;
}

static int make(void** target, int kind) {
    if (current != &device_context) wrong("the library is called without its context");
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_OBJECTS; i++)
        if (objects[i] == NULL) {
            *target = objects[i] = (object*)calloc(1, sizeof(object));
            objects[i]->kind = kind;
            objects[i]->width = objects[i]->height = -1;
            pthread_mutex_unlock(&lock);
            return 0;
        }
    pthread_mutex_unlock(&lock);
    return wrong("too many objects");
}

static int destroy(void* pointer, int kind) {
    object* one = known(pointer, kind);
    if (one == NULL) return wrong("something else is destroyed");
    if (one->busy) return wrong("a busy state is destroyed");
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_OBJECTS; i++)
        if (objects[i] == one) objects[i] = NULL;
    free(one);
    pthread_mutex_unlock(&lock);
    return 0;
}

struct errors {
    struct jpeg_error_mgr base;
    jmp_buf jump;
};

static void leave(j_common_ptr info) {
    longjmp(((struct errors*)info->err)->jump, 1);
}

static void say_nothing(j_common_ptr info) {
    (void)info;
}

/* Decode an image, or its header alone if there is no target. */
static int decode(const uint8_t* data, size_t size, object* params, int format, const nvjpeg_image* target) {
    struct jpeg_decompress_struct info;
    struct errors errors;
    uint8_t* volatile line = NULL;
    info.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = leave;
    errors.base.output_message = say_nothing;
    if (setjmp(errors.jump)) {
        jpeg_destroy_decompress(&info);
        free(line);
        return NVJPEG_BAD_JPEG;
    }
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, data, (unsigned long)size);
    jpeg_read_header(&info, TRUE);
    params->parsed_width = (int)info.image_width;
    params->parsed_height = (int)info.image_height;
    params->progressive = info.progressive_mode;
    params->components = info.num_components;
    if (target != NULL) {
        const int channels = format == NVJPEG_OUTPUT_Y ? 1 : 3;
        info.scale_num = 1;
        info.scale_denom = 1u << params->scale;
        info.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
        jpeg_start_decompress(&info);
        const int all = params->width < 0;
        const int x = all ? 0 : params->x, y = all ? 0 : params->y;
        const int width = all ? (int)info.output_width : params->width;
        const int height = all ? (int)info.output_height : params->height;
        line = (uint8_t*)malloc((size_t)info.output_width * (size_t)channels);
        while (info.output_scanline < info.output_height) {
            uint8_t* row = line;
            const int at = (int)info.output_scanline - y;
            jpeg_read_scanlines(&info, &row, 1);
            if (at >= 0 && at < height)
                memcpy(target->channel[0] + (size_t)at * target->pitch[0],
                       line + (size_t)x * (size_t)channels, (size_t)width * (size_t)channels);
        }
        free(line);
    }
    jpeg_destroy_decompress(&info);
    return 0;
}

int nvjpegCreateEx(int backend, void* allocator, void* pinned, unsigned flags, void** handle) {
    const int status = fails("CreateEx");
    if (status) return status;
    if (allocator != NULL || pinned != NULL || handle == NULL) return wrong("CreateEx");
    if (flags != (version >= 12001 ? 32 : 0)) return wrong("flags");
    if (backend == NVJPEG_BACKEND_HARDWARE && engines == 0) return 7;
    if (backend != NVJPEG_BACKEND_HARDWARE && backend != NVJPEG_BACKEND_GPU_HYBRID) return wrong("backend");
    make(handle, HANDLE);
    ((object*)*handle)->of_hardware = backend == NVJPEG_BACKEND_HARDWARE;
    return 0;
}

int nvjpegGetProperty(int property, int* value) {
    if (property < 0 || property > 1) return wrong("property");
    *value = property ? version % 1000 : version / 1000;
    return 0;
}

int nvjpegDestroy(void* handle) {
    return destroy(handle, HANDLE);
}

int nvjpegJpegStateCreate(void* handle, void** state) {
    const int status = fails("JpegStateCreate");
    if (status) return status;
    return known(handle, HANDLE) && state ? make(state, STATE) : wrong("JpegStateCreate");
}

int nvjpegJpegStateDestroy(void* state) {
    return destroy(state, STATE);
}

int nvjpegJpegStreamCreate(void* handle, void** stream) {
    const int status = fails("JpegStreamCreate");
    if (status) return status;
    return known(handle, HANDLE) && stream ? make(stream, STREAM) : wrong("JpegStreamCreate");
}

int nvjpegJpegStreamDestroy(void* stream) {
    return destroy(stream, STREAM);
}

int nvjpegJpegStreamParseHeader(void* handle, const uint8_t* data, size_t size, void* stream) {
    object* parsed = known(stream, STREAM);
    const int status = fails("JpegStreamParseHeader");
    if (status) return status;
    if (!known(handle, HANDLE) || parsed == NULL || data == NULL || size == 0) return wrong("ParseHeader");
    return decode(data, size, parsed, 0, NULL);
}

int nvjpegDecodeParamsCreate(void* handle, void** params) {
    const int status = fails("DecodeParamsCreate");
    if (status) return status;
    return known(handle, HANDLE) && params ? make(params, PARAMS) : wrong("DecodeParamsCreate");
}

int nvjpegDecodeParamsDestroy(void* params) {
    return destroy(params, PARAMS);
}

int nvjpegDecodeParamsSetOutputFormat(void* params, int format) {
    object* one = known(params, PARAMS);
    if (one == NULL || (format != NVJPEG_OUTPUT_Y && format != NVJPEG_OUTPUT_RGBI)) return wrong("format");
    one->format = format;
    return 0;
}

int nvjpegDecodeParamsSetROI(void* params, int x, int y, int width, int height) {
    object* one = known(params, PARAMS);
    const int status = fails("DecodeParamsSetROI");
    if (status) return status;
    if (one == NULL || x < 0 || y < 0 || width == 0 || height == 0 || width < -1 || height < -1)
        return wrong("rectangle");
    one->x = x, one->y = y, one->width = width, one->height = height;
    return 0;
}

int nvjpegDecodeParamsSetScaleFactor(void* params, int factor) {
    object* one = known(params, PARAMS);
    const int status = fails("DecodeParamsSetScaleFactor");
    if (status) return status;
    if (one == NULL || factor < 0 || factor > 3) return wrong("scale");
    one->scale = factor;
    return 0;
}

int nvjpegGetHardwareDecoderInfo(void* handle, unsigned* number, unsigned* each) {
    if (!known(handle, HANDLE) || number == NULL || each == NULL) return wrong("HardwareDecoderInfo");
    *number = (unsigned)engines, *each = (unsigned)cores;
    return 0;
}

int nvjpegDecodeBatchedSupportedEx(void* handle, void* stream, void* params, int* unsupported) {
    object *parsed = known(stream, STREAM), *one = known(params, PARAMS), *owner = known(handle, HANDLE);
    const int status = fails("DecodeBatchedSupportedEx");
    if (status) return status;
    if (owner == NULL || parsed == NULL || one == NULL || !unsupported) return wrong("SupportedEx");
    if (!owner->of_hardware) return 9;
    if (parsed->parsed_width == 0) return wrong("SupportedEx before a header was parsed");
    if (one->width > 0 &&
        (one->x + one->width > parsed->parsed_width || one->y + one->height > parsed->parsed_height))
        return wrong("a rectangle outside the image is asked about");
    *unsupported = refuses || parsed->progressive;
    return 0;
}

int nvjpegDecodeBatchedInitialize(void* handle, void* state, int count, int threads, int format) {
    object* one = known(state, STATE);
    const int status = fails("DecodeBatchedInitialize");
    if (status) return status;
    if (!known(handle, HANDLE) || one == NULL || count < 1 || threads != 1) return wrong("Initialize");
    if (one->busy) return wrong("a busy state is initialised");
    one->images = count, one->format = format;
    return 0;
}

int nvjpegDecodeBatchedPreAllocate(void* handle, void* state, int count, int width, int height,
                                   int subsampling, int format) {
    object* one = known(state, STATE);
    if (!known(handle, HANDLE) || one == NULL || count < 1 || width < 1 || height < 1 ||
        one->format != format || subsampling != 0)
        return wrong("PreAllocate");
    return fails("DecodeBatchedPreAllocate");
}

static int is_within(const nvjpeg_image* target, int width, int height, int channels) {
    const uint8_t *begin = target->channel[0], *end = begin + target->pitch[0] * (size_t)height;
    if (target->pitch[0] < (size_t)width * (size_t)channels || target->channel[1] || target->channel[2])
        return 0;
    for (int i = 0; i < num_windows; i++)
        if (windows[i].begin <= begin && end <= windows[i].end) return 1;
    return 0;
}

static int decode_batch(void* handle, void* state, const uint8_t* const* data, const size_t* sizes,
                        nvjpeg_image* targets, void** params, void* stream) {
    object *one = known(state, STATE), *owner = known(handle, HANDLE), whole;
    const int before = num_jobs;
    memset(&whole, 0, sizeof whole);
    whole.width = whole.height = -1;
    if (owner == NULL || one == NULL || !data || !sizes || !targets || stream == NULL)
        return wrong("Batched");
    if (one->images == 0) return wrong("a state that was not initialised decodes");
    if (one->busy) return wrong("a busy state decodes");
    calls++;
    widest = one->images > widest ? one->images : widest;
    for (int i = 0; i < one->images; i++) {
        object header, *asked = params ? known(params[i], PARAMS) : &whole;
        if (asked == NULL || data[i] == NULL || sizes[i] < 4) return wrong("an image of a batch");
        if (params && asked->format != one->format) return wrong("another format");
        if (decode(data[i], sizes[i], &header, 0, NULL)) {
            num_jobs = before;
            return NVJPEG_BAD_JPEG;
        }
        const int d = 1 << asked->scale;
        int width = (header.parsed_width + d - 1) / d, height = (header.parsed_height + d - 1) / d;
        if (asked->width > 0) {
            if (asked->scale) return wrong("a rectangle and a scale");
            if (asked->x + asked->width > width || asked->y + asked->height > height)
                return wrong("a rectangle outside the image");
            width = asked->width, height = asked->height;
            cropped++;
        }
        scaled += asked->scale > 0;
        if (!is_within(&targets[i], width, height, one->format == NVJPEG_OUTPUT_Y ? 1 : 3))
            return wrong("a target outside the memory of the device");
        pthread_mutex_lock(&lock);
        jobs[num_jobs++] = (job){one, stream, data[i], sizes[i], targets[i], *asked, one->format};
        pthread_mutex_unlock(&lock);
        images++;
    }
    one->busy = 1;
    return 0;
}

int nvjpegDecodeBatchedEx(void* handle, void* state, const uint8_t* const* data, const size_t* sizes,
                          nvjpeg_image* targets, void** params, void* stream) {
    const int status = fails("DecodeBatchedEx");
    object* owner = known(handle, HANDLE);
    if (status) return status;
    if (owner == NULL || params == NULL) return wrong("BatchedEx");
    return owner->of_hardware ? decode_batch(handle, state, data, sizes, targets, params, stream) : 9;
}

int nvjpegDecodeBatched(void* handle, void* state, const uint8_t* const* data, const size_t* sizes,
                        nvjpeg_image* targets, void* stream) {
    const int status = fails("DecodeBatched");
    return status ? status : decode_batch(handle, state, data, sizes, targets, NULL, stream);
}

int cuStreamSynchronize(void* stream) {
    const int status = fails("cuStreamSynchronize");
    int kept = 0;
    if (stream == NULL) return wrong("the stream of everybody is waited for");
    pthread_mutex_lock(&lock);
    for (int i = 0; i < num_jobs; i++) {
        job* one = &jobs[i];
        if (one->stream != stream) {
            jobs[kept++] = *one;
            continue;
        }
        if (!status) decode(one->data, one->size, &one->params, one->format, &one->target);
        one->state->busy = 0;
    }
    num_jobs = kept;
    pthread_mutex_unlock(&lock);
    return status;
}

/* ---- the driver, and the compiler of kernels ---- */

int cuCtxGetCurrent(void** context) {
    *context = current = &device_context; /* as by torch, in the thread that makes the decoder */
    return 0;
}

/* Bring back what the thread had. */
void standin_leave(void) {
    current = NULL;
}

int cuCtxPushCurrent_v2(void* context) {
    const int status = fails("cuCtxPushCurrent");
    if (status) return status;
    if (context != &device_context) return wrong("another context");
    depth++;
    current = context;
    return 0;
}

int cuCtxPopCurrent_v2(void** context) {
    if (depth < 1) return wrong("more contexts are left than were entered");
    *context = current;
    if (--depth == 0) current = NULL;
    return 0;
}

int cuModuleLoadData(void** module, const void* binary) {
    const int status = fails("cuModuleLoadData");
    *module = (void*)1;
    return status ? status : memcmp(binary, "kernel", 6) ? wrong("a binary that was not compiled") : 0;
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
    *function = (void*)2;
    return module != (void*)1 || strcmp(name, "resample_kernel") ? wrong("cuModuleGetFunction") : 0;
}

int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned block, unsigned block_y,
                   unsigned block_z, unsigned shared, void* stream, void** arguments, void** extra) {
    const int status = fails("cuLaunchKernel");
    if (status) return status;
    if (function != (void*)2 || !x || !y || z != 1 || block != KERNEL_BLOCK || block_y != 1 || block_z != 1 ||
        shared || stream == NULL || extra != NULL)
        return wrong("cuLaunchKernel");
    launches++;
    for (unsigned slot = 0; slot < y; slot++)
        for (unsigned at = 0; at < x * block; at++)
            kernel_pixel(*(const device_row**)arguments[0] + slot, *(const uint8_t**)arguments[1],
                         *(uint8_t**)arguments[2], *(void**)arguments[3], (const kernel_batch*)arguments[4],
                         *(int*)arguments[5], (int)at);
    return 0;
}

int nvrtcCreateProgram(void** program, const char* source, const char* name, int count,
                       const char* const* headers, const char* const* names) {
    *program = (void*)3;
    return strstr(source, "resample_kernel") && !strcmp(name, "resample_kernel.h") && count == 1 &&
                   strstr(headers[0], "normalise_half") && !strcmp(names[0], "recordio/kernels/half.h")
               ? 0
               : wrong("nvrtcCreateProgram");
}

int nvrtcCompileProgram(void* program, int count, const char* const* options) {
    int exact = 0, place = 0, device = 0;
    for (int i = 0; i < count; i++) {
        exact += !strcmp(options[i], "--fmad=false");
        place += !strcmp(options[i], "--device-as-default-execution-space");
        device += !strncmp(options[i], "--gpu-architecture=sm_", 22);
    }
    if (program != (void*)3 || exact != 1 || place != 1 || device != 1 || count != 3)
        return wrong("nvrtcCompileProgram");
    return fails("nvrtcCompileProgram");
}

int nvrtcGetProgramLogSize(void* program, size_t* size) {
    *size = 9;
    return program != (void*)3;
}

int nvrtcGetProgramLog(void* program, char* log) {
    memcpy(log, "no reason", 9);
    return program != (void*)3;
}

int nvrtcGetCUBINSize(void* program, size_t* size) {
    *size = 6;
    return program != (void*)3;
}

int nvrtcGetCUBIN(void* program, char* binary) {
    memcpy(binary, "kernel", 6);
    return program != (void*)3;
}

int nvrtcDestroyProgram(void** program) {
    return *program != (void*)3;
}
