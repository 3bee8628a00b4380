/* Where the marker segments of a JPEG file lie: what has to be copied when its scans are written again.
 *
 * The file was read by libjpeg without a warning before; this only has to be safe, and to give up where
 * the file is built in another way than encoders do it.  It never reads behind the data.
 */
#ifndef ITERATORS_JPEG_SEGMENTS_H
#define ITERATORS_JPEG_SEGMENTS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    JPEG_MARKER_SOF0 = 0xC0,
    JPEG_MARKER_SOF1 = 0xC1,
    JPEG_MARKER_SOF2 = 0xC2,
    JPEG_MARKER_DHT = 0xC4,
    JPEG_MARKER_RST0 = 0xD0,
    JPEG_MARKER_RST7 = 0xD7,
    JPEG_MARKER_EOI = 0xD9,
    JPEG_MARKER_SOS = 0xDA,
    JPEG_MARKER_DQT = 0xDB,
    JPEG_MARKER_DRI = 0xDD,
    JPEG_MARKER_APP2 = 0xE2
};

typedef struct {
    int marker;          /* 0: there is none where one should be */
    const uint8_t* data; /* the byte 0xFF before the marker */
    size_t size;         /* of marker, length and payload */
} jpeg_segment;

/* The segment at `*at`, without fill bytes; `*at` moves behind it. */
static inline jpeg_segment next_segment(const uint8_t* data, size_t size, size_t* at) {
    jpeg_segment found = {0, NULL, 2};
    size_t place = *at, length;
    if (place >= size || data[place] != 0xFF) return found;
    while (size - place >= 2 && data[place + 1] == 0xFF)
        place++;
    if (size - place < 2) return found;
    found.data = data + place;
    if (data[place + 1] != JPEG_MARKER_EOI) {
        if (size - place < 4) return found;
        length = (size_t)data[place + 2] << 8 | data[place + 3];
        if (length < 2 || length > size - place - 2) return found;
        found.size = length + 2;
    }
    found.marker = data[place + 1];
    *at = place + found.size;
    return found;
}

/* Move `*at` from the first byte of entropy-coded data to the marker that ends it. */
static inline void pass_scan(const uint8_t* data, size_t size, size_t* at) {
    while (size - *at >= 2) {
        const uint8_t* found = memchr(data + *at, 0xFF, size - *at - 1);
        if (found == NULL) break;
        *at = (size_t)(found - data);
        if (found[1] != 0 && found[1] != 0xFF && (found[1] < JPEG_MARKER_RST0 || found[1] > JPEG_MARKER_RST7))
            return;
        *at += found[1] == 0xFF ? 1 : 2;
    }
    *at = size;
}

typedef struct {
    size_t header;         /* before the first scan, and no less than is kept of that */
    size_t end;            /* behind the marker that ends the image */
    int wide_quantisation; /* some quantisation table has 16 bits a number */
} jpeg_outline_of_scans;

/* Walk over a whole file.  NULL, or why its scans cannot be replaced by one. */
static inline const char* read_segments(const uint8_t* data, size_t size, jpeg_outline_of_scans* found) {
    static const char unusual[] = "its segments are in an unusual order";
    int frames = 0, scans = 0;
    size_t at = 2;
    memset(found, 0, sizeof *found);
    for (;;) {
        const jpeg_segment segment = next_segment(data, size, &at);
        const uint8_t* payload = segment.data + 4;
        size_t i;
        switch (segment.marker) {
        case 0:
            return unusual;
        case JPEG_MARKER_EOI:
            found->end = at;
            return frames == 1 && scans > 0 ? NULL : unusual;
        case JPEG_MARKER_SOS:
            if (scans++ == 0) found->header = at;
            pass_scan(data, size, &at);
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
                found->wide_quantisation |= payload[i] >> 4;
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

#endif
