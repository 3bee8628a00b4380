/* The markers of a JPEG file, one after another: the one walk for all that look at a file without
 * decoding it.  It never reads behind the data, whatever is in it.
 *
 * libjpeg decides about a damaged file; a walk only has to agree with it on sound ones, and to see
 * every scan that it might decode of others.
 */
#ifndef RECORDIO_JPEG_SEGMENTS_H
#define RECORDIO_JPEG_SEGMENTS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    JPEG_MARKER_SOF0 = 0xC0,
    JPEG_MARKER_SOF1 = 0xC1,
    JPEG_MARKER_SOF2 = 0xC2,
    JPEG_MARKER_DHT = 0xC4,
    JPEG_MARKER_JPG = 0xC8,
    JPEG_MARKER_DAC = 0xCC,
    JPEG_MARKER_SOF15 = 0xCF,
    JPEG_MARKER_RST0 = 0xD0,
    JPEG_MARKER_SOI = 0xD8,
    JPEG_MARKER_EOI = 0xD9,
    JPEG_MARKER_SOS = 0xDA,
    JPEG_MARKER_DQT = 0xDB,
    JPEG_MARKER_DRI = 0xDD,
    JPEG_MARKER_APP1 = 0xE1,
    JPEG_MARKER_APP2 = 0xE2
};

typedef struct {
    int marker;          /* 0: there are no more */
    const uint8_t* data; /* the byte 0xFF before the marker */
    size_t size;         /* of marker, length and payload, as far as there are data */
    int whole;           /* all of it is there, and its length can be right */
    int gap;             /* in front of it are bytes that belong to no segment, such as coded data */
} jpeg_segment;

/* The next segment from `*at` on; `*at` moves behind it.  Fill bytes are no gap. */
static inline jpeg_segment next_segment(const uint8_t* data, size_t size, size_t* at) {
    jpeg_segment segment = {0, NULL, 0, 0, 0};
    const uint8_t *const end = data + size, *cursor = data + *at, *expected = cursor;
    size_t length;
    while (end - cursor >= 2 &&
           (cursor = (const uint8_t*)memchr(cursor, 0xFF, (size_t)(end - cursor - 1))) != NULL) {
        const unsigned marker = cursor[1];
        if (marker == 0xFF) {
            expected += cursor == expected;
            cursor++;
            continue;
        }
        if (marker < JPEG_MARKER_SOF0 || (marker >= JPEG_MARKER_RST0 && marker <= JPEG_MARKER_SOI)) {
            cursor += 2; /* not followed by a length */
            continue;
        }
        length = marker == JPEG_MARKER_EOI ? 0 : end - cursor < 4 ? 1 : (size_t)cursor[2] << 8 | cursor[3];
        segment.marker = (int)marker;
        segment.data = cursor;
        segment.gap = cursor != expected;
        segment.whole = marker == JPEG_MARKER_EOI || (length >= 2 && length <= (size_t)(end - cursor - 2));
        segment.size = length + 2 < (size_t)(end - cursor) ? length + 2 : (size_t)(end - cursor);
        *at = (size_t)(cursor - data) + segment.size;
        return segment;
    }
    *at = size;
    return segment;
}

static inline unsigned read16(const uint8_t* data, int big_endian) {
    return big_endian ? (unsigned)data[0] << 8 | data[1] : (unsigned)data[1] << 8 | data[0];
}

static inline uint32_t read32(const uint8_t* data, int big_endian) {
    return big_endian ? (uint32_t)read16(data, 1) << 16 | read16(data + 2, 1)
                      : (uint32_t)read16(data + 2, 0) << 16 | read16(data, 0);
}

/* The orientation in the directory of a TIFF file, such as EXIF data are, or 0 if it says none.  As in Pillow a number
 * of any type counts, the first one of several, but no bytes. */
static inline int read_tiff_orientation(const uint8_t* data, size_t size) {
    enum {
        TAG = 0x0112,
        SHORT = 3,
        LONG = 4,
        SIGNED_BYTE = 6,
        SIGNED_SHORT = 8,
        SIGNED_LONG = 9,
        FLOAT = 11,
        IFD = 13
    };
    int big_endian;
    uint32_t offset;
    unsigned count, i;
    if (size < 8) return 0;
    if (data[0] == 'M' && data[1] == 'M')
        big_endian = 1;
    else if (data[0] == 'I' && data[1] == 'I')
        big_endian = 0;
    else
        return 0;
    if (read16(data + 2, big_endian) != 42) return 0;
    offset = read32(data + 4, big_endian);
    if (offset > size || size - offset < 2) return 0;
    count = read16(data + offset, big_endian);
    data += offset + 2;
    size -= offset + 2;
    for (i = 0; i < count && size >= 12; i++, data += 12, size -= 12) {
        const unsigned type = read16(data + 2, big_endian);
        const uint32_t numbers = read32(data + 4, big_endian);
        uint32_t value = 0;
        float real = 0;
        if (read16(data, big_endian) != TAG) continue;
        if ((type == SHORT || type == SIGNED_SHORT) && numbers <= 2)
            value = read16(data + 8, big_endian);
        else if (type == SIGNED_BYTE && numbers <= 4)
            value = data[8];
        else if (numbers == 1 && (type == LONG || type == SIGNED_LONG || type == IFD || type == FLOAT))
            value = read32(data + 8, big_endian);
        if (type == FLOAT) memcpy(&real, &value, 4);
        if (type == FLOAT) value = real >= 1 && real <= 8 && real == (float)(int)real ? (uint32_t)real : 0;
        return value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 0;
}

/* The orientation in EXIF data, with their signature, without it or, as some tools write them, behind two. */
static inline int read_exif_orientation(const uint8_t* data, size_t size) {
    static const uint8_t signature[6] = {'E', 'x', 'i', 'f', 0, 0};
    int i;
    for (i = 0; i < 2 && size >= sizeof signature && memcmp(data, signature, sizeof signature) == 0; i++) {
        data += sizeof signature;
        size -= sizeof signature;
    }
    return read_tiff_orientation(data, size);
}

/* The orientation in the payload of an APP1 segment, or 0 if it says none. */
static inline int app1_orientation(const uint8_t* data, size_t size) {
    return size >= 6 && memcmp(data, "Exif\0\0", 6) == 0 ? read_exif_orientation(data, size) : 0;
}

typedef struct {
    int frame; /* marker code of the frame header, 0 if there is none */
    int width, height, components;
    int bits;        /* of a sample */
    int orientation; /* EXIF 1 to 8, 0 if the file says none */
} jpeg_outline;

static inline int is_frame_marker(int marker) {
    return marker >= JPEG_MARKER_SOF0 && marker <= JPEG_MARKER_SOF15 && marker != JPEG_MARKER_DHT &&
           marker != JPEG_MARKER_JPG && marker != JPEG_MARKER_DAC;
}

/* What stands before the first scan and libjpeg does not tell: the EXIF orientation, and the kind and
 * size of frames that the library refuses.  Returns 1 if the scan or the end of the image was reached,
 * so that what follows the data would change nothing. */
static inline int read_jpeg_outline(const uint8_t* data, size_t size, jpeg_outline* outline) {
    size_t at = 2;
    memset(outline, 0, sizeof *outline);
    for (;;) {
        const jpeg_segment segment = next_segment(data, size, &at);
        const uint8_t* payload;
        if (segment.marker == JPEG_MARKER_EOI || segment.marker == JPEG_MARKER_SOS) return 1;
        if (!segment.whole) return 0;
        payload = segment.data + 4;
        if (is_frame_marker(segment.marker) && segment.size >= 10 && outline->frame == 0) {
            outline->frame = segment.marker;
            outline->bits = payload[0];
            outline->height = (int)read16(payload + 1, 1);
            outline->width = (int)read16(payload + 3, 1);
            outline->components = payload[5];
        } else if (segment.marker == JPEG_MARKER_APP1 && outline->orientation == 0) {
            outline->orientation = app1_orientation(payload, segment.size - 4);
        }
    }
}

#endif
