/* One JPEG file rewritten without loss: read, choose, write, read again, compare. */
#include "rewrite.h"

#ifdef HAVE_LIBJPEG_TURBO

#include "restart.h"

#include <stdio.h>
#include <stdlib.h>

/* Scans of fewer bytes than this are not worth Huffman codes of their own: a decoder takes longer to
 * prepare for them than it gains by reading fewer bits. */
#define SMALL_SCAN 64000
/* A sequential file that would grow by more than one part in this many stays as it is. */
#define GROWTH_LIMIT 20

/* ---- what is there ---- */

typedef struct {
    size_t header;         /* before the first scan, and no less than is kept of that */
    size_t end;            /* behind the marker that ends the image */
    int wide_quantisation; /* some quantisation table has 16 bits a number */
} jpeg_outline_of_scans;

/* Walk over a whole file.  NULL, or why its scans cannot be replaced by one: encoders build files in
 * another way. */
static const char* read_segments(const uint8_t* data, size_t size, jpeg_outline_of_scans* outline) {
    static const char unusual[] = "its segments are in an unusual order";
    int frames = 0, scans = 0, in_scan = 0;
    size_t at = 2;
    memset(outline, 0, sizeof *outline);
    for (;;) {
        const jpeg_segment segment = next_segment(data, size, &at);
        const uint8_t* payload;
        size_t i;
        if (!segment.whole || (segment.gap && !in_scan)) return unusual;
        payload = segment.data + 4;
        in_scan = segment.marker == JPEG_MARKER_SOS;
        switch (segment.marker) {
        case JPEG_MARKER_EOI:
            outline->end = at;
            return frames == 1 && scans > 0 ? NULL : unusual;
        case JPEG_MARKER_SOS:
            if (scans++ == 0) outline->header = at;
            continue;
        case JPEG_MARKER_DHT:
        case JPEG_MARKER_DRI:
            continue;
        case JPEG_MARKER_SOF0:
        case JPEG_MARKER_SOF1:
        case JPEG_MARKER_SOF2:
            frames++;
            break;
        case JPEG_MARKER_DQT:
            for (i = 0; i + 4 < segment.size; i += payload[i] >> 4 ? 129 : 65)
                outline->wide_quantisation |= payload[i] >> 4;
            break;
        case JPEG_MARKER_APP2:
            if (segment.size >= 8 && memcmp(payload, "MPF", 4) == 0)
                return "it says where in the file further pictures lie (MPF)";
            break;
        default:
            break;
        }
        if (scans > 0) /* what follows the first scan must not move before it */
            return unusual;
    }
}

static const char unfit[] = "its coefficients do not fit into one baseline scan";

typedef struct {
    jpeg_coefficients *source, *written;
    jpeg_bytes scan;
    int restart, standard;
    jpeg_outline_of_scans outline;
    jpeg_rewritten* result;
} job;

static int fail(job* work, int status, const char* message) {
    snprintf(work->result->message, sizeof work->result->message, "%s", message);
    return status;
}

/* ---- what to write ---- */

/* Choose restart interval and codes for a scan of about so many bytes.  0 if there is nothing to gain. */
static int choose(job* work, const jpeg_rewrite_options* options, int64_t bytes) {
    const jpeg_frame* frame = jpeg_coefficients_frame(work->source);
    const int keeps = options->tables == JPEG_TABLES_AUTO && bytes < SMALL_SCAN;
    work->restart = options->restart;
    work->standard = options->tables == JPEG_TABLES_STANDARD;
    if (keeps) work->standard = !frame->sequential || jpeg_coefficients_standard_codes(work->source);
    if (work->restart == JPEG_RESTART_AUTO) {
        work->restart =
            choose_restart(frame->width, frame->height, frame->mcus_per_row, frame->mcu_rows, bytes);
        if (work->restart == 0 && keeps && frame->sequential) return 0;
    }
    return 1;
}

/* ---- writing ---- */

static uint8_t* put(uint8_t* to, const void* data, size_t size) {
    memcpy(to, data, size);
    return to + size;
}

/* Everything before the first scan except for what belongs to the way of coding. */
static uint8_t* put_header(uint8_t* to, const uint8_t* data, size_t size, int wide_quantisation) {
    size_t at = 2;
    to = put(to, data, 2);
    for (;;) {
        const jpeg_segment segment = next_segment(data, size, &at);
        if (segment.marker == JPEG_MARKER_SOS) return to;
        if (segment.marker == JPEG_MARKER_DHT || segment.marker == JPEG_MARKER_DRI) continue;
        to = put(to, segment.data, segment.size);
        if (segment.marker >= JPEG_MARKER_SOF0 && segment.marker <= JPEG_MARKER_SOF2)
            *(to - segment.size + 1) = (uint8_t)(wide_quantisation ? JPEG_MARKER_SOF1 : JPEG_MARKER_SOF0);
    }
}

/* The new scan and what it needs; its codes, which the library writes one by one, in one segment. */
static uint8_t* put_scan(uint8_t* to, const jpeg_bytes* scan) {
    uint8_t* codes = NULL;
    size_t at = 2, length = 2;
    for (;;) {
        const jpeg_segment segment = next_segment(scan->data, scan->size, &at);
        if (segment.marker == JPEG_MARKER_DHT) {
            codes = codes == NULL ? to : codes;
            to = codes == to ? put(to, segment.data, 4) : to;
            to = put(to, segment.data + 4, segment.size - 4);
            length += segment.size - 4;
            codes[2] = (uint8_t)(length >> 8);
            codes[3] = (uint8_t)length;
        } else if (segment.marker == JPEG_MARKER_DRI) {
            to = put(to, segment.data, segment.size);
        } else if (segment.marker == JPEG_MARKER_SOS) {
            at -= segment.size;
            return put(to, scan->data + at, scan->size - at);
        }
    }
}

/* The whole file.  A jpeg_status. */
static int write_file(job* work, const uint8_t* data, size_t size) {
    const size_t tail = size - work->outline.end;
    uint8_t* to;
    int status;
    work->scan.size = size + size / 8 + 2048;
    status = jpeg_coefficients_write(work->source, work->restart, work->standard, &work->scan);
    if (status == JPEG_NO_MEMORY) return fail(work, status, jpeg_coefficients_message(work->source));
    if (status != JPEG_OK) return fail(work, JPEG_UNSUPPORTED, unfit);
    to = work->result->data = malloc(work->outline.header + work->scan.size + tail);
    if (to == NULL) return fail(work, JPEG_NO_MEMORY, "not enough memory");
    to = put_header(to, data, size, work->outline.wide_quantisation);
    to = put_scan(to, &work->scan);
    to = put(to, data + work->outline.end, tail);
    work->result->size = (size_t)(to - work->result->data);
    return JPEG_OK;
}

/* ---- proving ---- */

static int same_blocks(job* work, int component) {
    const jpeg_component* of = &jpeg_coefficients_frame(work->source)->component[component];
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

/* Whether the result, read back, is the source except for the way of coding. */
static int check(job* work, const jpeg_limits* limits) {
    const jpeg_frame *before = jpeg_coefficients_frame(work->source), *after;
    int i, status;
    work->written = jpeg_coefficients_new();
    if (work->written == NULL) return fail(work, JPEG_NO_MEMORY, "not enough memory");
    status = jpeg_coefficients_read(work->written, work->result->data, work->result->size, limits);
    if (status == JPEG_NO_MEMORY) return fail(work, status, jpeg_coefficients_message(work->written));
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

static int run(job* work, const uint8_t* data, size_t size, const jpeg_rewrite_options* options) {
    const int automatic = options->restart == JPEG_RESTART_AUTO && options->tables == JPEG_TABLES_AUTO;
    const char* obstacle;
    int64_t bytes;
    int status;
    work->source = jpeg_coefficients_new();
    if (work->source == NULL) return fail(work, JPEG_NO_MEMORY, "not enough memory");
    status = jpeg_coefficients_read(work->source, data, size, &options->limits);
    if (status != JPEG_OK) return fail(work, status, jpeg_coefficients_message(work->source));
    obstacle = read_segments(data, size, &work->outline);
    if (obstacle != NULL) return fail(work, JPEG_UNSUPPORTED, obstacle);
    bytes = jpeg_coefficients_scan_bytes(work->source);
    if (bytes < 0) return fail(work, JPEG_UNSUPPORTED, unfit);
    if (!choose(work, options, bytes)) return JPEG_OK;
    status = write_file(work, data, size);
    if (status != JPEG_OK) return status;
    if ((work->result->size == size && memcmp(work->result->data, data, size) == 0) ||
        (automatic && jpeg_coefficients_frame(work->source)->sequential &&
         work->result->size > size + size / GROWTH_LIMIT)) {
        jpeg_rewrite_free(work->result);
        return JPEG_OK;
    }
    return check(work, &options->limits);
}

int jpeg_rewrite(const uint8_t* data, size_t size, const jpeg_rewrite_options* options,
                 jpeg_rewritten* result) {
    job* work = calloc(1, sizeof *work);
    int status;
    memset(result, 0, sizeof *result);
    if (work == NULL) return JPEG_NO_MEMORY;
    work->result = result;
    status = run(work, data, size, options);
    if (status != JPEG_OK) jpeg_rewrite_free(result);
    jpeg_coefficients_free(work->source);
    jpeg_coefficients_free(work->written);
    free(work->scan.data);
    free(work);
    return status;
}

void jpeg_rewrite_free(jpeg_rewritten* result) {
    free(result->data);
    result->data = NULL;
    result->size = 0;
}

#endif /* HAVE_LIBJPEG_TURBO; otherwise rewrite_unavailable.c stands in */
