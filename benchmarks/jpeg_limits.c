/* What one thread of plain libjpeg-turbo can do with given JPEG files, as a bar for the image stage.
 *
 * As favourable to libjpeg as an application can be: one decompressor for all images, data in memory,
 * rows overwritten in a buffer that stays in the cache and is laid out as libjpeg-turbo likes it best,
 * no checks.  For trusted files only: any damage ends the process.  Built by jpeg_limits.py; not a
 * part of the packages.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#define ROWS 16
#define LARGEST_WIDTH 16384

/* Decode every image in full to RGB: accurate integer DCT, smooth upsampling.  Returns the number of
 * pixels, so that nothing can be optimised away. */
int64_t full_decode(const unsigned char *const *data, const size_t *sizes, int count)
{
    size_t row_size;
    struct jpeg_decompress_struct library;
    struct jpeg_error_mgr errors;
    unsigned char *buffer = malloc((size_t)LARGEST_WIDTH * 3 * ROWS + 128);
    unsigned char *first = buffer + (64 - (uintptr_t)buffer % 64) % 64;
    JSAMPROW rows[ROWS];
    int64_t pixels = 0;
    int i, row;

    library.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&library);
    for (i = 0; i < count; i++) {
        jpeg_mem_src(&library, (unsigned char *)data[i], (unsigned long)sizes[i]);
        jpeg_read_header(&library, TRUE);
        library.out_color_space = JCS_RGB;
        library.dct_method = JDCT_ISLOW;
        library.do_fancy_upsampling = TRUE;
        jpeg_start_decompress(&library);
        if (library.output_width > LARGEST_WIDTH)
            abort();
        /* Close together for the cache, and not aligned: into aligned rows the library writes past
         * the cache, which is much slower here. */
        row_size = ((size_t)library.output_width * 3 + 63) / 64 * 64;
        for (row = 0; row < ROWS; row++)
            rows[row] = first + 8 + row_size * (size_t)row;
        while (library.output_scanline < library.output_height)
            jpeg_read_scanlines(&library, rows, ROWS);
        pixels += (int64_t)library.output_width * library.output_height;
        jpeg_abort_decompress(&library);
    }
    jpeg_destroy_decompress(&library);
    free(buffer);
    return pixels;
}

/* Read the coefficients of every image: entropy decoding without inverse DCT, upsampling and colour,
 * which no decoder of a whole image can avoid. */
int64_t read_coefficients(const unsigned char *const *data, const size_t *sizes, int count)
{
    struct jpeg_decompress_struct library;
    struct jpeg_error_mgr errors;
    int64_t pixels = 0;
    int i;

    library.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&library);
    for (i = 0; i < count; i++) {
        jpeg_mem_src(&library, (unsigned char *)data[i], (unsigned long)sizes[i]);
        jpeg_read_header(&library, TRUE);
        jpeg_read_coefficients(&library);
        pixels += (int64_t)library.image_width * library.image_height;
        jpeg_abort_decompress(&library);
    }
    jpeg_destroy_decompress(&library);
    return pixels;
}
