/* Copy a matrix into its transpose, tile by tile.
 *
 * A tile is read along the rows of the source into a buffer that fits the first-level cache, and
 * written along the rows of the target, so that every cache line of either side is touched while
 * it is there, whatever the distance of the rows. */
#ifndef ITERATORS_TRANSPOSE_H
#define ITERATORS_TRANSPOSE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TILE_BYTES 256 /* of a row: four cache lines, which the hardware fetches ahead */
#define TILE_ROWS  64

/* target[i * target_stride + j] = source[j * source_stride + i]; strides in bytes. */
#define DEFINE_TRANSPOSE(NAME, TYPE)                                                                         \
    static void NAME(char* target, const char* source, ptrdiff_t target_stride, ptrdiff_t source_stride,     \
                     ptrdiff_t columns, ptrdiff_t rows) {                                                    \
        enum { WIDTH = TILE_BYTES / sizeof(TYPE) };                                                          \
        TYPE tile[WIDTH][TILE_ROWS];                                                                         \
        for (ptrdiff_t i0 = 0; i0 < columns; i0 += WIDTH) {                                                  \
            const ptrdiff_t width = columns - i0 < WIDTH ? columns - i0 : WIDTH;                             \
            for (ptrdiff_t j0 = 0; j0 < rows; j0 += TILE_ROWS) {                                             \
                const ptrdiff_t height = rows - j0 < TILE_ROWS ? rows - j0 : TILE_ROWS;                      \
                const char* from = source + j0 * source_stride + i0 * (ptrdiff_t)sizeof(TYPE);               \
                for (ptrdiff_t j = 0; j < height; j++, from += source_stride) {                              \
                    const TYPE* row = (const TYPE*)from;                                                     \
                    for (ptrdiff_t i = 0; i < width; i++)                                                    \
                        tile[i][j] = row[i];                                                                 \
                }                                                                                            \
                char* to = target + i0 * target_stride + j0 * (ptrdiff_t)sizeof(TYPE);                       \
                for (ptrdiff_t i = 0; i < width; i++, to += target_stride)                                   \
                    memcpy(to, tile[i], (size_t)height * sizeof(TYPE));                                      \
            }                                                                                                \
        }                                                                                                    \
    }

DEFINE_TRANSPOSE(transpose_1, uint8_t)
DEFINE_TRANSPOSE(transpose_2, uint16_t)
DEFINE_TRANSPOSE(transpose_4, uint32_t)
DEFINE_TRANSPOSE(transpose_8, uint64_t)

#endif
