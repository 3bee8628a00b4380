/* How jpeg_rewrite.h is done: read, choose, write, read again, compare. */
#include "rewrite.h"

#ifdef HAVE_LIBJPEG_TURBO

#include "restart.h"
#include "scan_writer.h"
#include "markers.h"

#include <stdio.h>
#include <stdlib.h>

/* Scans of fewer bytes than this are not worth Huffman codes of their own: a decoder takes longer to
 * prepare for them than it gains by reading fewer bits. */
#define SMALL_SCAN 64000
/* A sequential file that would grow by more than one part in this many stays as it is. */
#define GROWTH_LIMIT 20

typedef struct {
    jpeg_coefficients *source, *written;
    jpeg_scan scan;
    jpeg_outline_of_scans outline;
    jpeg_rewritten *result;
} job;

static int fail(job *work, int status, const char *message)
{
    snprintf(work->result->message, sizeof work->result->message, "%s", message);
    return status;
}

/* ---- what to write ---- */

/* Bytes of the scan with the chosen codes, but for what is stuffed in. */
static int64_t scan_bytes(const jpeg_scan *scan)
{
    return jpeg_scan_bits(scan) / 8;
}

/* Choose restart interval and codes.  0 if there is nothing to gain; negative: a failure. */
static int choose(job *work, const jpeg_rewrite_options *options)
{
    const jpeg_frame *frame = jpeg_coefficients_frame(work->source);
    jpeg_scan *scan = &work->scan;
    int restart = options->restart, standard = options->tables == JPEG_TABLES_STANDARD;
    jpeg_scan_codes(scan, 0);
    if (options->tables == JPEG_TABLES_AUTO && scan_bytes(scan) < SMALL_SCAN)
        standard = frame->standard_tables || !frame->sequential;
    if (restart == JPEG_RESTART_AUTO) {
        restart = choose_restart(frame->width, frame->height, scan->mcus_per_row, scan->mcu_rows,
                                 scan_bytes(scan));
        if (restart == 0 && options->tables == JPEG_TABLES_AUTO && frame->sequential &&
            scan_bytes(scan) < SMALL_SCAN)
            return 0;
    }
    if (restart > 0 && jpeg_scan_restart(scan, restart) != JPEG_SCAN_OK)
        return -1;
    jpeg_scan_codes(scan, standard);
    return 1;
}

/* ---- writing ---- */

static uint8_t *put(uint8_t *to, const void *data, size_t size)
{
    memcpy(to, data, size);
    return to + size;
}

static uint8_t *put_marker(uint8_t *to, int marker, size_t length)
{
    const uint8_t bytes[4] = {0xFF, (uint8_t)marker, (uint8_t)(length >> 8), (uint8_t)length};
    return put(to, bytes, sizeof bytes);
}

static uint8_t *put_code(uint8_t *to, const jpeg_code *code, int is_dc, int table)
{
    *to++ = (uint8_t)((is_dc ? 0x00 : 0x10) | table);
    to = put(to, code->lengths + 1, JPEG_LONGEST_CODE);
    return put(to, code->symbols, (size_t)code->count);
}

static uint8_t *put_codes(uint8_t *to, const jpeg_scan *scan)
{
    size_t length = 2;
    int i;
    for (i = 0; i < scan->classes; i++)
        length += 2 * (1 + JPEG_LONGEST_CODE) +
                  (size_t)(scan->dc_codes[i].count + scan->ac_codes[i].count);
    to = put_marker(to, JPEG_MARKER_DHT, length);
    for (i = 0; i < scan->classes; i++) {
        to = put_code(to, &scan->dc_codes[i], 1, i);
        to = put_code(to, &scan->ac_codes[i], 0, i);
    }
    return to;
}

static uint8_t *put_scan_header(uint8_t *to, const jpeg_frame *frame)
{
    int i;
    to = put_marker(to, JPEG_MARKER_SOS, 6 + 2 * (size_t)frame->components);
    *to++ = (uint8_t)frame->components;
    for (i = 0; i < frame->components; i++) {
        *to++ = (uint8_t)frame->component[i].id;
        *to++ = (uint8_t)(0x11 * jpeg_is_chroma(frame->colours, i));
    }
    *to++ = 0;
    *to++ = JPEG_BLOCK - 1;
    *to++ = 0;
    return to;
}

/* Everything before the first scan but for what belongs to the way of coding. */
static uint8_t *put_header(uint8_t *to, const uint8_t *data, size_t size, int wide_quantisation)
{
    size_t at = 2;
    to = put(to, data, 2);
    for (;;) {
        const jpeg_segment segment = next_segment(data, size, &at);
        if (segment.marker == JPEG_MARKER_SOS)
            return to;
        if (segment.marker == JPEG_MARKER_DHT || segment.marker == JPEG_MARKER_DRI)
            continue;
        to = put(to, segment.data, segment.size);
        if (segment.marker >= JPEG_MARKER_SOF0 && segment.marker <= JPEG_MARKER_SOF2)
            *(to - segment.size + 1) =
                (uint8_t)(wide_quantisation ? JPEG_MARKER_SOF1 : JPEG_MARKER_SOF0);
    }
}

/* The whole file.  JPEG_OK or JPEG_NO_MEMORY. */
static int write_file(job *work, const uint8_t *data, size_t size)
{
    static const uint8_t end_of_image[2] = {0xFF, JPEG_MARKER_EOI};
    const jpeg_frame *frame = jpeg_coefficients_frame(work->source);
    jpeg_scan *scan = &work->scan;
    /* The header is not longer than the file, the new segments are shorter than 2 KiB. */
    const uint64_t room = (uint64_t)size + 2048 + (uint64_t)jpeg_scan_room(scan);
    uint8_t *to;
    if (room > SIZE_MAX / 2)
        return fail(work, JPEG_NO_MEMORY, "not enough memory");
    to = work->result->data = malloc((size_t)room);
    if (to == NULL)
        return fail(work, JPEG_NO_MEMORY, "not enough memory");
    to = put_header(to, data, size, work->outline.wide_quantisation);
    to = put_codes(to, scan);
    if (scan->restart > 0) {
        to = put_marker(to, JPEG_MARKER_DRI, 4);
        *to++ = (uint8_t)(scan->restart >> 8);
        *to++ = (uint8_t)scan->restart;
    }
    to = put_scan_header(to, frame);
    if (jpeg_scan_write(scan, &to) != JPEG_SCAN_OK)
        return fail(work, JPEG_NO_MEMORY, "the coefficients cannot be had");
    to = put(to, end_of_image, sizeof end_of_image);
    to = put(to, data + work->outline.end, size - work->outline.end);
    work->result->size = (size_t)(to - work->result->data);
    return JPEG_OK;
}

/* ---- proving ---- */

static int same_blocks(job *work, int component)
{
    const jpeg_component *of = &jpeg_coefficients_frame(work->source)->component[component];
    const size_t row_size = (size_t)of->width * JPEG_BLOCK * sizeof(int16_t);
    int row;
    for (row = 0; row < of->height; row++) {
        const int16_t *before, *after;
        if (!jpeg_coefficients_rows(work->source, component, row, 1, &before) ||
            !jpeg_coefficients_rows(work->written, component, row, 1, &after) ||
            memcmp(before, after, row_size) != 0)
            return 0;
    }
    return 1;
}

/* Whether the result, read back, is the source but for the way of coding. */
static int check(job *work, const jpeg_limits *limits)
{
    const jpeg_frame *before = jpeg_coefficients_frame(work->source), *after;
    int i, status;
    work->written = jpeg_coefficients_new();
    if (work->written == NULL)
        return fail(work, JPEG_NO_MEMORY, "not enough memory");
    status = jpeg_coefficients_read(work->written, work->result->data, work->result->size, limits);
    if (status == JPEG_NO_MEMORY)
        return fail(work, status, jpeg_coefficients_message(work->written));
    after = jpeg_coefficients_frame(work->written);
    if (status != JPEG_OK || !after->sequential || before->width != after->width ||
        before->height != after->height || before->components != after->components ||
        before->colours != after->colours)
        return fail(work, JPEG_UNSUPPORTED, "its coefficients do not survive");
    for (i = 0; i < before->components; i++)
        if (memcmp(&before->component[i], &after->component[i], sizeof(jpeg_component)) != 0 ||
            !same_blocks(work, i))
            return fail(work, JPEG_UNSUPPORTED, "its coefficients do not survive");
    return JPEG_OK;
}

/* ---- all of it ---- */

static int run(job *work, const uint8_t *data, size_t size, const jpeg_rewrite_options *options)
{
    const int automatic =
        options->restart == JPEG_RESTART_AUTO && options->tables == JPEG_TABLES_AUTO;
    const char *obstacle;
    int status, chosen;
    work->source = jpeg_coefficients_new();
    if (work->source == NULL)
        return fail(work, JPEG_NO_MEMORY, "not enough memory");
    status = jpeg_coefficients_read(work->source, data, size, &options->limits);
    if (status != JPEG_OK)
        return fail(work, status, jpeg_coefficients_message(work->source));
    obstacle = read_segments(data, size, &work->outline);
    if (obstacle != NULL)
        return fail(work, JPEG_UNSUPPORTED, obstacle);
    status = jpeg_scan_begin(&work->scan, work->source);
    if (status != JPEG_SCAN_OK)
        return fail(work, JPEG_UNSUPPORTED, "its coefficients do not fit into one baseline scan");
    chosen = choose(work, options);
    if (chosen < 0)
        return fail(work, JPEG_UNSUPPORTED, "its coefficients do not fit into one baseline scan");
    if (chosen == 0)
        return JPEG_OK;
    status = write_file(work, data, size);
    if (status != JPEG_OK)
        return status;
    if ((work->result->size == size && memcmp(work->result->data, data, size) == 0) ||
        (automatic && jpeg_coefficients_frame(work->source)->sequential &&
         work->result->size > size + size / GROWTH_LIMIT)) {
        jpeg_rewrite_free(work->result);
        return JPEG_OK;
    }
    return check(work, &options->limits);
}

int jpeg_rewrite(const uint8_t *data, size_t size, const jpeg_rewrite_options *options,
                   jpeg_rewritten *result)
{
    job *work = calloc(1, sizeof *work);
    int status;
    memset(result, 0, sizeof *result);
    if (work == NULL)
        return JPEG_NO_MEMORY;
    work->result = result;
    status = run(work, data, size, options);
    if (status != JPEG_OK)
        jpeg_rewrite_free(result);
    jpeg_coefficients_free(work->source);
    jpeg_coefficients_free(work->written);
    free(work);
    return status;
}

void jpeg_rewrite_free(jpeg_rewritten *result)
{
    free(result->data);
    result->data = NULL;
    result->size = 0;
}

#endif /* HAVE_LIBJPEG_TURBO; otherwise jpeg_rewrite_unavailable.c stands in */
