/* PNG rows of a rectangle: the checked file inflated at once, filters undone as rows are asked for. */
#include "decoder.h"

#include <stdlib.h>

#include "inflate.h"
#include "recordio/kernels/pixel.h"
#include "samples.h"
#include "unfilter.h"

enum {
    STRIP_ROWS = 16,      /* handed out at a time */
    MOST_KEPT = 1 << 25,  /* bytes of memory kept from image to image */
    MOST_SLACK = 1 << 16, /* bytes that may be missing from compressed data that inflate as much as can be */
};

enum png_step { STEP_NONE, STEP_OPEN, STEP_ROWS };

typedef struct {
    uint8_t* bytes;
    size_t size;
} png_memory;

/* Some of the rows and columns of the image, which follow each other in the file: all of them, unless the
 * image is interlaced. */
typedef struct {
    int x, y, step_x, step_y; /* grid in the image */
    int width, height;
    uint8_t* rows;    /* first row, behind its filter */
    ptrdiff_t stride; /* bytes from row to row */
    int done;         /* rows without their filters */
    size_t size;      /* bytes of a row that are needed */
} png_pass;

struct png_decoder {
    int vectors;
    enum png_step step;
    png_outline image;
    png_conversion conversion;
    png_memory compressed; /* of several chunks, one behind the other */
    png_memory filtered;   /* rows as they were inflated, and then without their filters */
    png_memory zeros;      /* the row above the first one */
    png_memory strip;      /* rows of pixels */
    png_pass passes[7];
    int num_passes;
    int x, y, width, end; /* what is left of the rectangle */
    png_inflater inflater;
};

/* At least that much memory, and some behind it; what was there is lost. */
static int png_reserve(png_memory* memory, uint64_t size) {
    if (size + PIXEL_SLACK <= memory->size) return 1;
    free(memory->bytes);
    memory->size = 0;
    memory->bytes = size < SIZE_MAX / 2 ? malloc((size_t)size + PIXEL_SLACK) : NULL;
    if (memory->bytes) memory->size = (size_t)size + PIXEL_SLACK;
    return memory->bytes != NULL;
}

static void png_release(png_memory* memory) {
    free(memory->bytes);
    memory->bytes = NULL;
    memory->size = 0;
}

void png_decoder_prepare(void) {
    crc32_prepare();
}

png_decoder* png_decoder_new(void) {
    png_decoder* decoder = calloc(1, sizeof *decoder);
    if (decoder) decoder->vectors = 1;
    return decoder;
}

void png_decoder_free(png_decoder* decoder) {
    if (!decoder) return;
    png_release(&decoder->compressed);
    png_release(&decoder->filtered);
    png_release(&decoder->zeros);
    png_release(&decoder->strip);
    free(decoder);
}

void png_decoder_use_vectors(png_decoder* decoder, int use) {
    decoder->vectors = use;
}

const char* png_decoder_message(const png_decoder* decoder) {
    return decoder->image.message;
}

/* The compressed data in one piece, with INFLATE_READS bytes behind: a checksum and the next chunk, or
 * memory.  NULL without memory. */
static const uint8_t* png_gather(png_decoder* decoder) {
    const uint8_t* chunk = decoder->image.first;
    size_t left = decoder->image.compressed;
    uint8_t* to;
    int i;
    if (decoder->image.count == 1 && !decoder->image.is_cut) return chunk + 8;
    if (!png_reserve(&decoder->compressed, decoder->image.compressed)) return NULL;
    to = decoder->compressed.bytes;
    for (i = 0; i < decoder->image.count; i++) {
        const size_t announced = png_number(chunk), length = announced < left ? announced : left;
        memcpy(to, chunk + 8, length);
        to += length;
        left -= length;
        chunk += length + 12;
    }
    return decoder->compressed.bytes;
}

/* Where the passes lie in the inflated rows; whether the filters of all rows are known. */
static int png_find_passes(png_decoder* decoder) {
    static const uint8_t whole[4] = {0, 0, 1, 1};
    const png_outline* image = &decoder->image;
    uint8_t* at = decoder->filtered.bytes;
    int i, y;
    decoder->num_passes = 0;
    for (i = 0; i < (image->interlaced ? 7 : 1); i++) {
        const uint8_t* grid = image->interlaced ? png_adam7[i] : whole;
        png_pass* pass = &decoder->passes[decoder->num_passes];
        pass->x = grid[0];
        pass->y = grid[1];
        pass->step_x = grid[2];
        pass->step_y = grid[3];
        pass->width = png_pass_size(image->width, pass->x, pass->step_x);
        pass->height = png_pass_size(image->height, pass->y, pass->step_y);
        if (!pass->width || !pass->height) continue;
        pass->stride = (ptrdiff_t)png_row_bytes(image, pass->width) + 1;
        pass->rows = at + 1;
        pass->done = 0;
        for (y = 0; y < pass->height; y++, at += pass->stride)
            if (*at >= FILTERS) return 0;
        decoder->num_passes++;
    }
    return 1;
}

int png_decoder_look(const uint8_t* data, size_t size, int outline, png_outline* image) {
    return png_read_chunks(data, size, INT64_MAX, outline, image);
}

int png_decoder_open(png_decoder* decoder, const uint8_t* data, size_t size, int channels, int deep,
                     int64_t max_pixels, png_info* info) {
    png_outline* image = &decoder->image;
    const uint8_t* compressed;
    uint64_t needed;
    int status;
    decoder->step = STEP_NONE;
    if ((status = png_read_chunks(data, size, max_pixels, 0, image)) != PNG_OK) return status;
    if (!png_convert_prepare(image, channels, deep, &decoder->conversion)) return PNG_OTHER;
    needed = png_filtered_bytes(image);
    if (needed > PNG_MOST_INFLATION * (uint64_t)image->compressed + MOST_SLACK) {
        snprintf(image->message, sizeof image->message,
                 "the PNG image is damaged (%llu compressed bytes are too few for %d x %d pixels); pack it "
                 "again from its source",
                 (unsigned long long)image->compressed, image->width, image->height);
        return PNG_DAMAGED;
    }
    if (!png_reserve(&decoder->filtered, needed + INFLATE_WRITES) || !(compressed = png_gather(decoder)))
        return PNG_NO_MEMORY;
    /* The window that the data announce may be too small for them, of which the inflater takes no notice. */
    if (image->compressed && compressed[0] >> 4 != 7 && (UINT64_C(256) << (compressed[0] >> 4)) < needed)
        return PNG_OTHER;
    if (!png_inflate(&decoder->inflater, !decoder->vectors, compressed, image->compressed,
                     decoder->filtered.bytes, (size_t)needed) ||
        !png_find_passes(decoder))
        return PNG_OTHER;
    info->width = image->width;
    info->height = image->height;
    info->orientation = image->orientation ? image->orientation : 1;
    info->pixel = decoder->conversion.pixel;
    info->cut = image->depth == 16 && !decoder->conversion.deep;
    decoder->step = STEP_OPEN;
    return PNG_OK;
}

/* The first row that has to be gone through for row `y`. */
static int png_first_row(const png_pass* pass, int y) {
    while (y > 0 && pass->rows[y * pass->stride - 1] > FILTER_SUB)
        y--;
    return y;
}

int png_decoder_start(png_decoder* decoder, int x, int y, int width, int height) {
    png_outline* image = &decoder->image;
    const size_t pixel = (size_t)((png_samples(image->colour) * image->depth + 7) / 8);
    int i;
    if (decoder->step != STEP_OPEN || x < 0 || y < 0 || width < 1 || height < 1 || width > image->width - x ||
        height > image->height - y) {
        snprintf(image->message, sizeof image->message, "the region lies outside the image");
        return PNG_BAD_ARGUMENT;
    }
    for (i = 0; i < decoder->num_passes; i++) {
        png_pass* pass = &decoder->passes[i];
        const int columns = png_pass_size(x + width, pass->x, pass->step_x);
        const int first = png_pass_size(y, pass->y, pass->step_y);
        pass->size = png_row_bytes(image, columns);
        pass->size = (pass->size + pixel - 1) / pixel * pixel;
        pass->done = first < pass->height ? png_first_row(pass, first) : pass->height;
    }
    if (!png_reserve(&decoder->zeros, png_row_bytes(image, image->width))) return PNG_NO_MEMORY;
    memset(decoder->zeros.bytes, 0, decoder->zeros.size);
    if ((!decoder->conversion.as_stored || image->interlaced) &&
        !png_reserve(&decoder->strip,
                     (uint64_t)(STRIP_ROWS + 1) * (uint64_t)width * (uint64_t)decoder->conversion.pixel))
        return PNG_NO_MEMORY;
    decoder->x = x;
    decoder->y = y;
    decoder->width = width;
    decoder->end = y + height;
    decoder->step = STEP_ROWS;
    return PNG_OK;
}

/* Undo the filters of the rows of a pass before `end`. */
static void png_advance(png_decoder* decoder, png_pass* pass, int end) {
    const size_t pixel = (size_t)((png_samples(decoder->image.colour) * decoder->image.depth + 7) / 8);
    uint8_t* row = pass->rows + pass->done * pass->stride;
    if (pass->done >= end || !pass->size) return;
    png_unfilter(decoder->vectors, row, pass->done ? row - pass->stride : decoder->zeros.bytes, pass->stride,
                 end - pass->done, pass->size, pixel);
    pass->done = end;
}

/* One row of the rectangle, its pixels gathered from the passes that have some of them. */
static void png_deinterlace(png_decoder* decoder, int y, uint8_t* out) {
    const int bytes = decoder->conversion.pixel, end = decoder->x + decoder->width;
    uint8_t* pixels = decoder->strip.bytes + (size_t)(STRIP_ROWS * bytes) * (size_t)decoder->width;
    int i, k, column;
    for (i = 0; i < decoder->num_passes; i++) {
        png_pass* pass = &decoder->passes[i];
        const int first = png_pass_size(decoder->x, pass->x, pass->step_x);
        const int last = png_pass_size(end, pass->x, pass->step_x);
        const int row = (y - pass->y) / pass->step_y;
        const uint8_t* from = pixels;
        if (y < pass->y || (y - pass->y) % pass->step_y || first == last) continue;
        png_advance(decoder, pass, row + 1);
        png_convert(&decoder->image, &decoder->conversion, pass->rows + row * pass->stride, first,
                    last - first, pixels);
        for (column = first; column < last; column++, from += bytes) {
            uint8_t* to = out + (pass->x + column * pass->step_x - decoder->x) * bytes;
            for (k = 0; k < bytes; k++)
                to[k] = from[k];
        }
    }
}

int png_decoder_rows(png_decoder* decoder, const uint8_t** row, ptrdiff_t* stride, int* count) {
    const int bytes = decoder->conversion.pixel, y = decoder->y;
    png_pass* pass = &decoder->passes[0];
    int i;
    if (decoder->step != STEP_ROWS) return PNG_BAD_ARGUMENT;
    *count = decoder->end - y < STRIP_ROWS ? decoder->end - y : STRIP_ROWS;
    *row = decoder->strip.bytes;
    *stride = (ptrdiff_t)decoder->width * bytes;
    decoder->y += *count;
    if (decoder->image.interlaced) {
        for (i = 0; i < *count; i++)
            png_deinterlace(decoder, y + i, decoder->strip.bytes + i * *stride);
        return PNG_OK;
    }
    png_advance(decoder, pass, y + *count);
    if (decoder->conversion.as_stored) {
        *row = pass->rows + y * pass->stride + (ptrdiff_t)decoder->x * bytes;
        *stride = pass->stride;
        return PNG_OK;
    }
    for (i = 0; i < *count; i++)
        png_convert(&decoder->image, &decoder->conversion, pass->rows + (y + i) * pass->stride, decoder->x,
                    decoder->width, decoder->strip.bytes + i * *stride);
    return PNG_OK;
}

void png_decoder_finish(png_decoder* decoder) {
    decoder->step = STEP_NONE;
    if (decoder->filtered.size > MOST_KEPT) png_release(&decoder->filtered);
    if (decoder->compressed.size > MOST_KEPT) png_release(&decoder->compressed);
    if (decoder->strip.size > MOST_KEPT) png_release(&decoder->strip);
}
