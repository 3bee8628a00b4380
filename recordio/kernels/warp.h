/* Affine warps of 8-bit images with OpenCV's fixed-point arithmetic, one target row at a time.
 *
 * Rotation, shear, scale and a crop of the result are one inverse map, evaluated for the target pixels
 * that are wanted; of the source only the rectangle that they touch is needed.  The bytes are those of
 * OpenCV 4.8's warpAffine with a constant border.  It never allocates, keeps no state and gives the
 * same bytes on every machine.
 */
#ifndef RECORDIO_WARP_H
#define RECORDIO_WARP_H

#include <math.h>

#include "warp_rows.h"
#include "warp_simd.h"

/* The forward matrix of MXNet's augmenter, in its float32 steps: rotate counter-clockwise, stretch (ratio
 * is vertical to horizontal), shear x by y, and bring the image's centre to that of the canvas, whose
 * size may have a fraction. */
static SIMD_UNUSED void affine_forward(float forward[6], double angle_degrees, float shear, float scale,
                                       float ratio, int width, int height, float canvas_width,
                                       float canvas_height) {
    const double angle = angle_degrees / 180.0 * 3.14159265358979323846;
    const float a = (float)cos(angle), b = (float)sin(angle);
    const float horizontal = 2 * scale / (1 + ratio), vertical = ratio * horizontal;
    forward[0] = horizontal * a - shear * b * vertical;
    forward[1] = horizontal * b + shear * a * vertical;
    forward[3] = -b * vertical;
    forward[4] = a * vertical;
    forward[2] = (canvas_width - (forward[0] * (float)width + forward[1] * (float)height)) / 2;
    forward[5] = (canvas_height - (forward[3] * (float)width + forward[4] * (float)height)) / 2;
}

/* As warpAffine inverts a float32 matrix; a singular one becomes all zeros. */
static SIMD_UNUSED void warp_invert(const float forward[6], double inverse[6]) {
    const double m0 = forward[0], m1 = forward[1], m2 = forward[2];
    const double m3 = forward[3], m4 = forward[4], m5 = forward[5];
    double d = m0 * m4 - m1 * m3;
    d = d != 0 ? 1. / d : 0;
    inverse[0] = m4 * d;
    inverse[1] = m1 * -d;
    inverse[3] = m3 * -d;
    inverse[4] = m0 * d;
    inverse[2] = -inverse[0] * m2 - inverse[1] * m5;
    inverse[5] = -inverse[3] * m2 - inverse[4] * m5;
}

/* First pixel of one axis, and how many, that the window can touch.  Positions grow or shrink steadily
   along rows and along columns, so the corners hold the extremes. */
static int warp_bounds_axis(const warp_source* source, int axis, int image_side, int x0, int y0, int width,
                            int height, int* first) {
    const double step = source->inverse[3 * axis];
    const int taps = warp_taps(source->method);
    int low = INT32_MAX, high = INT32_MIN;
    for (int corner = 0; corner < 4; corner++) {
        int32_t position;
        const double row_part = warp_row_part(source, axis, corner & 1 ? y0 + height - 1 : y0);
        warp_locate_axis(step, row_part, corner & 2 ? x0 + width - 1 : x0, 1, &position);
        const int at = warp_first(position, 0, taps);
        low = at < low ? at : low;
        high = at + taps > high ? at + taps : high;
    }
    low = low < 0 ? 0 : low;
    high = high > image_side ? image_side : high;
    *first = high > low ? low : 0;
    return high > low ? high - low : 0;
}

/* The rectangle of the source image that the window (x0, y0, width, height) of the target can touch;
 * all zeros if it touches nothing.  Reads inverse, method, image_width and image_height. */
static SIMD_UNUSED void warp_bounds(const warp_source* source, int x0, int y0, int width, int height, int* sx,
                                    int* sy, int* sw, int* sh) {
    *sx = *sy = *sw = *sh = 0;
    if (width < 1 || height < 1) return;
    *sw = warp_bounds_axis(source, 0, source->image_width, x0, y0, width, height, sx);
    *sh = warp_bounds_axis(source, 1, source->image_height, x0, y0, width, height, sy);
    if (*sw == 0 || *sh == 0) *sx = *sy = *sw = *sh = 0;
}

/* As warp_row, with at most the given instruction set; tests compare the levels. */
static SIMD_UNUSED void warp_row_at(int limit, const warp_source* source, int x0, int count, int y,
                                    uint8_t* out) {
    const int level = simd_level(limit), taps = warp_taps(source->method);
    /* Vector loads of 3-channel pixels read up to WARP_OVERREACH pixels more than they use. */
    const int reach = taps - 1 + (source->channels == 3 && taps > 1 ? WARP_OVERREACH : 0);
    const int columns = source->width - reach, rows = source->height - (taps - 1);
    int32_t px[WARP_CHUNK], py[WARP_CHUNK];
    for (int done = 0, n; done < count; done += n) {
        int begin = 0, end;
        n = end = count - done < WARP_CHUNK ? count - done : WARP_CHUNK;
        warp_locate(source, 0, x0 + done, n, y, px);
        warp_locate(source, 1, x0 + done, n, y, py);
        /* Positions move steadily along a row: those inside are neighbours. */
#define WARP_IS_INSIDE(i)                                                                                    \
    (warp_first(px[i], source->x, taps) >= 0 && warp_first(px[i], source->x, taps) < columns &&              \
     warp_first(py[i], source->y, taps) >= 0 && warp_first(py[i], source->y, taps) < rows)
        while (begin < end && !WARP_IS_INSIDE(begin))
            begin++;
        while (end > begin && !WARP_IS_INSIDE(end - 1))
            end--;
#undef WARP_IS_INSIDE
        warp_border(source, px, py, begin, out);
        out += (ptrdiff_t)begin * source->channels;
        warp_inside_at(level, source, px + begin, py + begin, end - begin, count - done - begin, out);
        out += (ptrdiff_t)(end - begin) * source->channels;
        warp_border(source, px + end, py + end, n - end, out);
        out += (ptrdiff_t)(n - end) * source->channels;
    }
}

/* Writes target pixels [x0, x0 + count) of target row y: count * channels bytes.
 *
 * The rectangle of the source must hold what warp_bounds names for these pixels, and warp_prepare, if
 * it was called, must have covered these columns.  Sides of the source
 * and target must not exceed WARP_LARGEST_SIDE.
 */
static SIMD_UNUSED void warp_row(const warp_source* source, int x0, int count, int y, uint8_t* out) {
    warp_row_at(SIMD_LEVEL_AVX2, source, x0, count, y, out);
}

#endif
