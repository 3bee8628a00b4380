/* Colours of RGBA pixels multiplied by their alpha and divided by it again, as Pillow's modes RGBA and RGBa.
 *
 * Pillow mixes neighbours of RGBA images between the two, so that what cannot be seen has no part in it.
 */
#ifndef RECORDIO_PREMULTIPLY_H
#define RECORDIO_PREMULTIPLY_H

#include <stddef.h>
#include <stdint.h>

#include "simd.h"

/* RGBA to RGBa; `out` may be the row itself. */
static SIMD_UNUSED void premultiply(const uint8_t* row, ptrdiff_t count, uint8_t* out) {
    for (ptrdiff_t i = 0; i < count; i++, row += 4, out += 4) {
        const unsigned alpha = row[3];
        for (int c = 0; c < 3; c++) {
            const unsigned product = row[c] * alpha + 128;
            out[c] = (uint8_t)((product + (product >> 8)) >> 8);
        }
        out[3] = (uint8_t)alpha;
    }
}

/* RGBa to RGBA; `out` may be the row itself.  Where alpha is 0 the colours stay. */
static SIMD_UNUSED void unpremultiply(const uint8_t* row, ptrdiff_t count, uint8_t* out) {
    for (ptrdiff_t i = 0; i < count; i++, row += 4, out += 4) {
        const unsigned alpha = row[3];
        for (int c = 0; c < 3; c++) {
            const unsigned value = alpha == 0 || alpha == 255 ? row[c] : 255u * row[c] / alpha;
            out[c] = (uint8_t)(value < 255 ? value : 255);
        }
        out[3] = (uint8_t)alpha;
    }
}

#endif
