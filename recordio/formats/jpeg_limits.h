/* How large a JPEG image and how many its scans may be; found out before anything is decoded.
 *
 * A limit has a line in each of three tables here and a check; everybody else only hands it on.
 * Each scan of a file that has several takes a pass over the whole picture for each of its components,
 * even if it is but a few bytes.  So their number is limited and, as a measure of the work, the
 * passes times the pixels.
 */
#ifndef RECORDIO_JPEG_LIMITS_H
#define RECORDIO_JPEG_LIMITS_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "recordio/formats/jpeg_segments.h"

enum jpeg_limit { JPEG_MAX_PIXELS, JPEG_MAX_SCANS, JPEG_MAX_SCAN_PIXELS, JPEG_NUM_LIMITS };

typedef struct {
    int64_t most[JPEG_NUM_LIMITS];
} jpeg_limits;

static const char* const jpeg_limit_names[JPEG_NUM_LIMITS] = {
    [JPEG_MAX_PIXELS] = "max_pixels",
    [JPEG_MAX_SCANS] = "max_scans",
    [JPEG_MAX_SCAN_PIXELS] = "max_scan_pixels",
};

static const jpeg_limits jpeg_default_limits = {{
    /* Every 35 mm camera fits, and the coefficients of a progressive image, which must be held whole at
     * up to 6 bytes a pixel and 3 bits that say which are not zero, stay below 0.45 GB per decoder. */
    [JPEG_MAX_PIXELS] = (int64_t)1 << 26,
    /* Encoders write about 10 scans; files with thousands exist only to keep a decoder busy. */
    [JPEG_MAX_SCANS] = 256,
    /* Pixels that several scans pass over, each component by itself: 32 times the largest image.
     * Encoders pass 14 times, 24 for CMYK. */
    [JPEG_MAX_SCAN_PIXELS] = (int64_t)1 << 31,
}};

enum jpeg_work { JPEG_WORK_OK, JPEG_WORK_SCANS, JPEG_WORK_PASSES };

/* The passes that an image of this size may take: always enough for one scan of each component. */
static inline int allowed_passes(const jpeg_limits* limits, int width, int height) {
    const int64_t pixels = (int64_t)width * height;
    const int64_t most = limits->most[JPEG_MAX_SCAN_PIXELS] / (pixels > 0 ? pixels : 1);
    return most < 4 ? 4 : most > INT_MAX / 8 ? INT_MAX / 8 : (int)most;
}

/* Which limit the scans of an image exceed, if one.  Markers are read as libjpeg reads them: where it
 * would make something else of damaged ones it gives up, or `check_scan` finds out. */
static inline enum jpeg_work count_scans(const uint8_t* data, size_t size, const jpeg_limits* limits,
                                         int width, int height) {
    const int most_passes = allowed_passes(limits, width, height);
    int scans = 0, passes = 0;
    size_t at = 0;
    for (;;) {
        const jpeg_segment segment = next_segment(data, size, &at);
        if (segment.marker == 0 || segment.marker == JPEG_MARKER_EOI) return JPEG_WORK_OK;
        if (segment.marker != JPEG_MARKER_SOS || (size_t)(data + size - segment.data) < 5) continue;
        passes += segment.data[4] <= 4 ? segment.data[4] : 4;
        if (++scans > limits->most[JPEG_MAX_SCANS]) return JPEG_WORK_SCANS;
        if (passes > most_passes) return JPEG_WORK_PASSES;
    }
}

/* The same for a scan that is being decoded, by its number. */
static inline enum jpeg_work check_scan(int number, const jpeg_limits* limits, int width, int height) {
    return number > limits->most[JPEG_MAX_SCANS]            ? JPEG_WORK_SCANS
           : number > allowed_passes(limits, width, height) ? JPEG_WORK_PASSES
                                                            : JPEG_WORK_OK;
}

static inline void explain_work(enum jpeg_work work, const jpeg_limits* limits, int width, int height,
                                char* message, size_t size) {
    if (work == JPEG_WORK_SCANS)
        snprintf(message, size,
                 "more than %lld scans; raise max_scans to allow them, or write it again with fewer",
                 (long long)limits->most[JPEG_MAX_SCANS]);
    else
        snprintf(message, size,
                 "its scans pass %d x %d pixels more than %d times, the limit of %lld in all; "
                 "raise max_scan_pixels to allow them, or write it again with fewer scans",
                 width, height, allowed_passes(limits, width, height),
                 (long long)limits->most[JPEG_MAX_SCAN_PIXELS]);
}

/* Say that an image has more pixels than the limit. */
static inline void explain_pixels(const jpeg_limits* limits, int width, int height, char* message,
                                  size_t size) {
    snprintf(message, size, "%d x %d pixels are more than the limit of %lld; raise max_pixels to allow them",
             width, height, (long long)limits->most[JPEG_MAX_PIXELS]);
}

#endif
