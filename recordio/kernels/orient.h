/* The eight EXIF orientations: turn an image upright, and find in the stored image what a rectangle
 * of the upright one is made of.
 *
 * Orientation 1 is upright; 2 mirrored left-right; 3 turned by 180 degrees; 4 mirrored top-bottom;
 * 5 transposed; 6 needs 90 degrees clockwise; 7 transposed along the other diagonal; 8 needs 90
 * degrees counter-clockwise.  5 to 8 exchange width and height.  Nothing here allocates or fails.
 */
#ifndef ITERATORS_ORIENT_H
#define ITERATORS_ORIENT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* True if the upright image is as wide as the stored one is high. */
static inline int orient_exchanges_sides(int orientation) {
    return orientation >= 5 && orientation <= 8;
}

/* Write the upright image of `src` (width x height pixels as stored, `stride` bytes from row to row)
 * to `dst`, which must not overlap it and holds height x width pixels for orientations 5 to 8.
 * An orientation outside 1 to 8 counts as 1. */
static inline void orient_image(const uint8_t* src, ptrdiff_t stride, int width, int height, int channels,
                                int orientation, uint8_t* dst, ptrdiff_t dst_stride) {
    /* Pixel (x, y) of the result is the stored pixel at `first + x * along + y * down`. */
    const ptrdiff_t right = channels, below = stride;
    const ptrdiff_t last_column = (ptrdiff_t)(width - 1) * right;
    const ptrdiff_t last_row = (ptrdiff_t)(height - 1) * below;
    const int exchange = orient_exchanges_sides(orientation);
    const int columns = exchange ? height : width, rows = exchange ? width : height;
    ptrdiff_t first = 0, along = right, down = below;
    int x, y, channel;

    if (width < 1 || height < 1) return;
    switch (orientation) {
    case 2:
        first = last_column;
        along = -right;
        break;
    case 3:
        first = last_column + last_row;
        along = -right;
        down = -below;
        break;
    case 4:
        first = last_row;
        down = -below;
        break;
    case 5:
        along = below;
        down = right;
        break;
    case 6:
        first = last_row;
        along = -below;
        down = right;
        break;
    case 7:
        first = last_column + last_row;
        along = -below;
        down = -right;
        break;
    case 8:
        first = last_column;
        along = below;
        down = -right;
        break;
    default:
        break;
    }
    for (y = 0; y < rows; y++) {
        const uint8_t* from = src + first + y * down;
        uint8_t* to = dst + y * dst_stride;
        if (along == right) {
            memcpy(to, from, (size_t)columns * (size_t)channels);
        } else if (channels == 3) {
            for (x = 0; x < columns; x++, from += along, to += 3) {
                to[0] = from[0];
                to[1] = from[1];
                to[2] = from[2];
            }
        } else {
            for (x = 0; x < columns; x++, from += along)
                for (channel = 0; channel < channels; channel++)
                    *to++ = from[channel];
        }
    }
}

/* Map a rectangle of the upright image onto the stored image of `width` x `height` pixels.  The
 * rectangle cut there and passed to `orient_image` is the rectangle of the upright image. */
static inline void orient_rectangle(int width, int height, int orientation, int* x, int* y,
                                    int* rectangle_width, int* rectangle_height) {
    const int along = *x, down = *y, wide = *rectangle_width, high = *rectangle_height;
    switch (orientation) {
    case 2:
        *x = width - along - wide;
        break;
    case 3:
        *x = width - along - wide;
        *y = height - down - high;
        break;
    case 4:
        *y = height - down - high;
        break;
    case 5:
        *x = down;
        *y = along;
        break;
    case 6:
        *x = down;
        *y = height - along - wide;
        break;
    case 7:
        *x = width - down - high;
        *y = height - along - wide;
        break;
    case 8:
        *x = width - down - high;
        *y = along;
        break;
    default:
        break;
    }
    if (orient_exchanges_sides(orientation)) {
        *rectangle_width = high;
        *rectangle_height = wide;
    }
}

#endif
