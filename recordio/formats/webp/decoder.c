/* WebP rows of a rectangle, by libwebp: it decodes down to the end of the rectangle into memory of ours. */
#include "decoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recordio/formats/jpeg_segments.h"
#include "recordio/kernels/pixel.h"

enum { MOST_KEPT = 1 << 25 }; /* bytes of memory kept from image to image */

enum webp_step { STEP_NONE, STEP_OPEN, STEP_ROWS };

struct webp_decoder {
    enum webp_step step;
    const uint8_t* data;
    size_t size;
    int width, height, channels, samples; /* samples: bytes of a pixel that libwebp writes */
    uint8_t* pixels;
    size_t room;
    ptrdiff_t stride, first; /* first: where the rectangle begins in `pixels` */
    int rows;                /* left to deliver */
    char message[160];
};

static int fail(webp_decoder* decoder, int status, const char* message) {
    snprintf(decoder->message, sizeof decoder->message, "%s", message);
    return status;
}

webp_decoder* webp_decoder_new(void) {
    return calloc(1, sizeof(webp_decoder));
}

void webp_decoder_free(webp_decoder* decoder) {
    if (decoder == NULL) return;
    free(decoder->pixels);
    free(decoder);
}

const char* webp_decoder_message(const webp_decoder* decoder) {
    return decoder->message;
}

void webp_decoder_finish(webp_decoder* decoder) {
    decoder->step = STEP_NONE;
    if (decoder->room > MOST_KEPT) {
        free(decoder->pixels);
        decoder->pixels = NULL;
        decoder->room = 0;
    }
}

int webp_decoder_rows(webp_decoder* decoder, const uint8_t** row, ptrdiff_t* stride, int* count) {
    *row = NULL;
    *stride = 0;
    *count = 0;
    if (decoder->step != STEP_ROWS) return fail(decoder, WEBP_BAD_ARGUMENT, "no image is started");
    *row = decoder->pixels + decoder->first;
    *stride = decoder->stride;
    *count = decoder->rows;
    decoder->rows = 0;
    return WEBP_OK;
}

#ifdef HAVE_LIBWEBP

#include <webp/decode.h>

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

int webp_decoder_available(void) {
    return 1;
}

const char* webp_decoder_library(void) {
#ifdef LIBWEBP_VERSION /* of the static library that is inside */
    return "libwebp " TEXT(LIBWEBP_VERSION);
#else
    return "libwebp";
#endif
}

int webp_decoder_version(void) {
    return WebPGetDecoderVersion();
}

/* The orientation of the EXIF chunk of a file that announces one, or 1. */
static int webp_orientation(const uint8_t* data, size_t size) {
    enum { CHUNKS = 12, FLAGS = 20, HAS_EXIF = 8 };
    size_t at = CHUNKS;
    if (size <= FLAGS || memcmp(data + CHUNKS, "VP8X", 4) != 0 || !(data[FLAGS] & HAS_EXIF)) return 1;
    while (size - at >= 8) {
        const size_t length = read32(data + at + 4, 0), left = size - at - 8;
        if (memcmp(data + at, "EXIF", 4) == 0) {
            const int orientation = read_exif_orientation(data + at + 8, length < left ? length : left);
            return orientation ? orientation : 1;
        }
        if (length >= left) break;
        at += 8 + length + (length & 1);
    }
    return 1;
}

/* Newer versions of libwebp name a lack of memory for some damage, too: whether there is as much as an image of
 * this size takes at most. */
static int has_memory(const webp_decoder* decoder) {
    enum { BYTES_OF_PIXEL = 16, TABLES = 1 << 22 };
    void* tried = malloc((size_t)decoder->width * (size_t)decoder->height * BYTES_OF_PIXEL + TABLES);
    free(tried);
    return tried != NULL;
}

static int refuse(webp_decoder* decoder, VP8StatusCode status) {
    if (status == VP8_STATUS_OUT_OF_MEMORY && !has_memory(decoder))
        return fail(decoder, WEBP_NO_MEMORY, "no memory");
    return fail(decoder, WEBP_REFUSED,
                status == VP8_STATUS_NOT_ENOUGH_DATA
                    ? "the WebP image is truncated; pack it again from its source"
                    : "the WebP image is damaged; pack it again from its source");
}

int webp_decoder_open(webp_decoder* decoder, const uint8_t* data, size_t size, int channels,
                      int64_t max_pixels, webp_info* info) {
    WebPBitstreamFeatures features;
    VP8StatusCode status;
    webp_decoder_finish(decoder);
    decoder->message[0] = 0;
    decoder->width = decoder->height = 0;
    memset(info, 0, sizeof *info);
    if (size < 12 || memcmp(data, "RIFF", 4) != 0 || memcmp(data + 8, "WEBP", 4) != 0) return WEBP_OTHER;
    status = WebPGetFeatures(data, size, &features);
    if (status != VP8_STATUS_OK) return refuse(decoder, status);
    if ((int64_t)features.width * features.height > max_pixels) {
        snprintf(decoder->message, sizeof decoder->message,
                 "the image is too large (%d x %d pixels are more than the limit of %lld); "
                 "raise max_pixels to allow it",
                 features.width, features.height, (long long)max_pixels);
        return WEBP_REFUSED;
    }
    if (features.has_animation || (channels == 4 && !features.has_alpha)) return WEBP_OTHER;
    info->width = decoder->width = features.width;
    info->height = decoder->height = features.height;
    info->orientation = webp_orientation(data, size);
    decoder->data = data;
    decoder->size = size;
    decoder->channels = channels;
    decoder->samples = channels == 1 ? 3 : channels;
    decoder->step = STEP_OPEN;
    return WEBP_OK;
}

/* RGB to grey in place: OpenCV's bytes, which it makes of the same colours. */
static void make_grey(uint8_t* row, int width) {
    int x;
    for (x = 0; x < width; x++)
        row[x] =
            (uint8_t)((9798 * row[3 * x] + 19235 * row[3 * x + 1] + 3735 * row[3 * x + 2] + 16384) >> 15);
}

int webp_decoder_start(webp_decoder* decoder, int x, int y, int width, int height) {
    WebPDecoderConfig config;
    VP8StatusCode status;
    size_t needed;
    int left, top, right, bottom, i;
    if (decoder->step != STEP_OPEN) return fail(decoder, WEBP_BAD_ARGUMENT, "no image is open");
    if (x < 0 || y < 0 || width < 1 || height < 1 || width > decoder->width - x ||
        height > decoder->height - y)
        return fail(decoder, WEBP_BAD_ARGUMENT, "the rectangle lies outside the image");
    if (!WebPInitDecoderConfig(&config))
        return fail(decoder, WEBP_REFUSED, "libwebp is not the one for which this was built");
    /* At the edge of what it crops to, libwebp has no chroma of the neighbours to mix in; and it crops at
     * even positions. */
    left = x > 0 ? (x - 1) & ~1 : 0;
    /* The filter of transparency goes from row to row, of which libwebp takes no notice in cropping. */
    top = y > 0 && decoder->samples != 4 ? (y - 1) & ~1 : 0;
    right = x + width < decoder->width ? x + width + 1 : decoder->width;
    bottom = y + height < decoder->height ? y + height + 1 : decoder->height;
    decoder->stride = (ptrdiff_t)(right - left) * decoder->samples;
    needed = (size_t)decoder->stride * (size_t)(bottom - top);
    if (needed + PIXEL_SLACK > decoder->room) {
        free(decoder->pixels);
        decoder->pixels = malloc(needed + PIXEL_SLACK);
        decoder->room = decoder->pixels ? needed + PIXEL_SLACK : 0;
        if (decoder->pixels == NULL) return fail(decoder, WEBP_NO_MEMORY, "no memory");
    }
    if (left > 0 || top > 0 || right < decoder->width || bottom < decoder->height) {
        config.options.use_cropping = 1;
        config.options.crop_left = left;
        config.options.crop_top = top;
        config.options.crop_width = right - left;
        config.options.crop_height = bottom - top;
    }
    config.output.colorspace = decoder->samples == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = decoder->pixels;
    config.output.u.RGBA.stride = (int)decoder->stride;
    config.output.u.RGBA.size = needed;
    status = WebPDecode(decoder->data, decoder->size, &config);
    WebPFreeDecBuffer(&config.output);
    if (status != VP8_STATUS_OK) return refuse(decoder, status);
    if (decoder->channels == 1)
        for (i = 0; i < bottom - top; i++)
            make_grey(decoder->pixels + i * decoder->stride, right - left);
    decoder->first = (y - top) * decoder->stride + (ptrdiff_t)(x - left) * decoder->channels;
    decoder->rows = height;
    decoder->step = STEP_ROWS;
    return WEBP_OK;
}

#else

int webp_decoder_available(void) {
    return 0;
}

const char* webp_decoder_library(void) {
    return "none";
}

int webp_decoder_version(void) {
    return 0;
}

int webp_decoder_open(webp_decoder* decoder, const uint8_t* data, size_t size, int channels,
                      int64_t max_pixels, webp_info* info) {
    (void)decoder, (void)data, (void)size, (void)channels, (void)max_pixels;
    memset(info, 0, sizeof *info);
    return WEBP_OTHER;
}

int webp_decoder_start(webp_decoder* decoder, int x, int y, int width, int height) {
    (void)x, (void)y, (void)width, (void)height;
    return fail(decoder, WEBP_BAD_ARGUMENT, "no image is open");
}

#endif
