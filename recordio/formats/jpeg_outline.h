/* What the header of a JPEG file says and libjpeg does not tell: the EXIF orientation, and the kind
 * and size of frames that the library refuses.  It never reads behind the data, whatever is in it.
 */
#ifndef RECORDIO_JPEG_OUTLINE_H
#define RECORDIO_JPEG_OUTLINE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline unsigned read16(const uint8_t* data, int big_endian) {
    return big_endian ? (unsigned)data[0] << 8 | data[1] : (unsigned)data[1] << 8 | data[0];
}

static inline uint32_t read32(const uint8_t* data, int big_endian) {
    return big_endian ? (uint32_t)read16(data, 1) << 16 | read16(data + 2, 1)
                      : (uint32_t)read16(data + 2, 0) << 16 | read16(data, 0);
}

/* The orientation of a TIFF file, such as EXIF data are, or 0 if it says none. */
static inline int read_tiff_orientation(const uint8_t* data, size_t size) {
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
        if (read16(data, big_endian) == 0x0112) {
            unsigned value = read16(data + 8, big_endian);
            return value >= 1 && value <= 8 ? (int)value : 1;
        }
    }
    return 0;
}

/* The orientation in the payload of an APP1 segment, or 0 if it says none. */
static inline int exif_orientation(const uint8_t* data, size_t size) {
    static const uint8_t signature[6] = {'E', 'x', 'i', 'f', 0, 0};
    if (size < sizeof signature || memcmp(data, signature, sizeof signature) != 0) return 0;
    return read_tiff_orientation(data + sizeof signature, size - sizeof signature);
}

typedef struct {
    int frame; /* marker code of the frame header, 0 if there is none */
    int width, height, components;
    int orientation; /* EXIF 1 to 8, 0 if the file says none */
} jpeg_outline;

/* Walk over the markers before the first scan.  libjpeg is the judge of a damaged header; this only
 * has to be safe, and to agree with it on sound ones. */
static inline void read_jpeg_outline(const uint8_t* data, size_t size, jpeg_outline* found) {
    size_t at = 2;
    memset(found, 0, sizeof *found);
    while (at < size) {
        unsigned marker;
        size_t length;
        while (at < size && data[at] != 0xFF)
            at++;
        while (at < size && data[at] == 0xFF)
            at++;
        if (at >= size) return;
        marker = data[at++];
        if (marker == 0x00 || marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8))
            continue; /* these have no payload */
        if (marker == 0xD9 || marker == 0xDA || size - at < 2) return;
        length = read16(data + at, 1);
        if (length < 2 || length > size - at) return;
        if (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC &&
            length >= 8 && found->frame == 0) {
            found->frame = (int)marker;
            found->height = (int)read16(data + at + 3, 1);
            found->width = (int)read16(data + at + 5, 1);
            found->components = data[at + 7];
        } else if (marker == 0xE1 && found->orientation == 0) {
            found->orientation = exif_orientation(data + at + 2, length - 2);
        }
        at += length;
    }
}

#endif
