/* Every kernel on many small and nasty inputs: a line for each, which must be the same on every
 * processor and at every level.
 *
 *   processors LEVEL                a line of name, case and hash of the bytes for each kernel
 *   processors LEVEL PIXELS RESULT  one RGB image (int32 width, height, then bytes): resized to 224 x 224
 *                                   in three ways, changed in its colours, normalised, mirrored
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iterators/core/gather.h"
#include "iterators/images/augment/linear_colour.h"
#include "recordio/formats/png/unfilter.h"
#include "recordio/kernels/colour.h"
#include "recordio/kernels/noise.h"
#include "recordio/kernels/normalise.h"
#include "recordio/kernels/operations.h"
#include "recordio/kernels/orient.h"
#include "recordio/kernels/resample.h"
#include "recordio/kernels/warp.h"
#include "recordio/bytes/crc32c.h"

enum { LONGEST = 70, GUARD = 64, BYTES = 1 << 16, KINDS = 5 };

static int level; /* the limit that is asked for */
static uint64_t state = 88172645463325252u;
static uint8_t source_memory[BYTES], target_memory[8 * BYTES];
static const int channel_counts[] = {1, 3, 4};

static uint32_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

/* Noise; black; white; black and white in turns; a ramp.  `offset` makes rows that no vector is aligned to. */
static uint8_t* pixels_of(int kind, int size, int offset) {
    uint8_t* pixels = source_memory + GUARD + offset;
    memset(source_memory, 0x5a, (size_t)size + 3 * GUARD);
    for (int i = 0; i < size; i++)
        pixels[i] = kind == 0 ? (uint8_t)draw()
                              : (uint8_t)(kind < 3   ? (kind - 1) * 255
                                          : kind < 4 ? (i & 1) * 255
                                                     : i * 7);
    return pixels;
}

static uint8_t* target_of(size_t size, int offset) {
    memset(target_memory, 0xa5, size + 3 * GUARD);
    return target_memory + GUARD + offset;
}

static uint64_t hash_of(uint64_t hash, const void* bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const uint8_t*)bytes)[i]) * 1099511628211u;
    return hash;
}

/* With what lies before and behind, where nothing may be written. */
static uint64_t hash_guarded(uint64_t hash, const uint8_t* bytes, size_t size) {
    return hash_of(hash, bytes - GUARD, size + 2 * GUARD);
}

#define START 14695981039346656037u

/* ---- resampling ---- */

static void check_rows(void) {
    static int16_t a[LONGEST + 8], b[LONGEST + 8];
    static int32_t sums[8][LONGEST + 8];
    static float shares[LONGEST + 8], row[LONGEST + 8];
    const int32_t* rows[8];
    uint64_t down = START, taps = START, cells = START;
    for (int n = 0; n <= LONGEST; n++)
        for (int turn = 0; turn < 24; turn++) {
            const int offset = turn % 4;
            /* The two weights of a row sum to 2^11, values are below 255 * 2^7. */
            const int16_t wide = (int16_t)(turn == 0 ? 0 : turn == 1 ? 2048 : draw() % 2049);
            const int16_t weight[2] = {wide, (int16_t)(2048 - wide)};
            int16_t weights[8];
            for (int i = 0; i < n + 4; i++) {
                a[i] = (int16_t)(turn < 3 ? 32640 : draw() % 32641);
                b[i] = (int16_t)(turn < 3 ? 32640 : draw() % 32641);
                row[i] = (float)(draw() % 256) * 0.37f;
                shares[i] = (float)(draw() % 4096) * 0.0625f;
                for (int k = 0; k < 8; k++)
                    sums[k][i] = (int32_t)(draw() % (1 << 19)) - (1 << 18);
            }
            for (int k = 0; k < 8; k++) {
                weights[k] = (int16_t)((int)(draw() % 1024) - 512);
                rows[k] = sums[k] + offset;
            }
            uint8_t* out = target_of(n, offset);
            resample_down_bilinear_at(level, a + offset, b + offset, weight, n, out);
            down = hash_guarded(down, out, n);
            for (int count = 4; count <= 8; count += 4) {
                out = target_of(n, offset);
                resample_down_taps_at(level, rows, weights, count, n, out);
                taps = hash_guarded(taps, out, n);
            }
            out = target_of(n, offset);
            resample_add_scaled_at(level, row + offset, 0.3f, n, shares + offset);
            resample_finish_cells_at(level, shares + offset, n, out);
            cells = hash_guarded(cells, out, n);
        }
    printf("rows down: %016llx\nrows taps: %016llx\nrows cells: %016llx\n", (unsigned long long)down,
           (unsigned long long)taps, (unsigned long long)cells);
}

static void resize(const uint8_t* pixels, int width, int height, int channels, int method, int new_width,
                   int new_height, uint8_t* out) {
    resampler* r = resampler_new();
    const resample_axis across = {width, new_width, 0, new_width, 0, 1, width};
    const resample_axis down = {height, new_height, 0, new_height, 0, 1, height};
    int x, y, w, h;
    resampler_limit(r, level);
    if (resampler_begin(r, method, &across, &down, channels, out, (ptrdiff_t)new_width * channels) !=
        RESAMPLE_OK)
        abort();
    resampler_source(r, &x, &y, &w, &h);
    for (int row = 0; row < h; row++)
        resampler_push(r, pixels + ((ptrdiff_t)(y + row) * width + x) * channels);
    resampler_free(r);
}

static void check_resize(void) {
    static const int sides[][2] = {{1, 1}, {2, 1}, {1, 7}, {7, 70}, {70, 35}, {69, 23}, {64, 70}, {70, 13}};
    for (int method = 0; method <= 4; method++)
        for (int c = 0; c < 3; c++) {
            uint64_t hash = START;
            const int channels = channel_counts[c], pairs = sizeof sides / sizeof *sides;
            for (int kind = 0; kind < KINDS; kind++)
                for (int i = 0; i < pairs; i++)
                    for (int j = 0; j < pairs; j++) {
                        const uint8_t* pixels = pixels_of(kind, sides[i][0] * sides[j][0] * channels, i % 4);
                        uint8_t* out = target_of((size_t)sides[i][1] * sides[j][1] * channels, 0);
                        resize(pixels, sides[i][0], sides[j][0], channels, method, sides[i][1], sides[j][1],
                               out);
                        hash = hash_of(hash, out, (size_t)sides[i][1] * sides[j][1] * channels);
                    }
            /* Every length of a row. */
            for (int n = 1; n <= LONGEST; n++)
                for (int factor = 1; factor <= 3; factor++) {
                    uint8_t* out = target_of((size_t)n * 17 * channels, 0);
                    resize(pixels_of(0, n * factor * 6 * channels, n % 4), n * factor, 6, channels, method, n,
                           6 / factor, out);
                    resize(pixels_of(0, (n + 1) * 4 * channels, n % 4), n + 1, 4, channels, method, n, 5,
                           out + n * 6 * channels);
                    hash = hash_of(hash, out, (size_t)n * (6 / factor + 5 + 6) * channels);
                }
            printf("resize method %d channels %d: %016llx\n", method, channels, (unsigned long long)hash);
        }
}

/* ---- into a batch ---- */

static void check_normalise(void) {
#define SIZE(code, name, number, ...) sizeof(number),
    static const size_t sizes[] = {NORMALISE_TYPES(SIZE, SIZE)};
#undef SIZE
    static float means[4 * LONGEST];
    for (int dtype = 0; dtype < NORMALISE_TYPE_COUNT; dtype++)
        for (int c = 0; c < 3; c++)
            for (int mirror = 0; mirror < 2; mirror++)
                for (int layout = 0; layout < 3; layout++) { /* planar, interleaved, with gaps */
                    uint64_t hash = START;
                    const int channels = channel_counts[c];
                    for (int width = 0; width <= LONGEST; width++)
                        for (int turn = 0; turn < 2 * KINDS; turn++) {
                            normalise_recipe recipe = {channels, dtype, {0}, {0}, {0}, NULL, 1, width};
                            const int gap = layout == 2 ? 2 : 1;
                            const ptrdiff_t pixel = layout == 1 ? channels : gap,
                                            plane = layout == 1 ? 1 : gap * 80;
                            for (int k = 0; k < 4; k++) {
                                recipe.mean[k] = (float)((int)(draw() % 600) - 150) * 0.5f;
                                recipe.factor[k] = turn == 7 ? 1e30f : 1.f / (float)(1 + draw() % 300);
                                recipe.offset[k] = turn == 8 ? 3e-7f : (float)(draw() % 64) * 0.125f;
                            }
                            for (int k = 0; k < 4 * LONGEST; k++)
                                means[k] = (float)(draw() % 2550) * 0.1f;
                            if (turn >= KINDS && layout != 1 && dtype != NORMALISE_INT8)
                                recipe.mean_image = means;
                            const uint8_t* pixels = pixels_of(turn % KINDS, width * channels, turn % 4);
                            uint8_t* out =
                                target_of(sizes[dtype] * 4 * 80 * gap, layout == 0 && turn == 0 ? 0 : 4);
                            normalise_row_at(level, &recipe, pixels, width, 0, mirror, out, pixel, plane);
                            normalise_done();
                            hash = hash_guarded(hash, out, sizes[dtype] * 4 * 80 * gap);
                        }
                    printf("normalise dtype %d channels %d mirror %d layout %d: %016llx\n", dtype, channels,
                           mirror, layout, (unsigned long long)hash);
                }
}

static void check_linear_colour(void) {
    for (int dtype = 0; dtype < 4; dtype += 3)
        for (int mirror = 0; mirror < 2; mirror++) {
            uint64_t hash = START;
            for (int width = 0; width <= LONGEST; width++) {
                linear_colour colour;
                int64_t sums[3] = {0};
                const uint8_t* pixels = pixels_of(width % KINDS, 3 * width, width % 4);
                uint8_t* out = target_of(4 * 3 * 80, 0);
                for (int i = 0; i < 9; i++)
                    colour.matrix[i / 3][i % 3] = (float)((int)(draw() % 2000) - 500) * 0.001f;
                for (int i = 0; i < 3; i++)
                    colour.offset[i] = (float)(draw() % 100) * 0.1f;
                linear_colour_sums(pixels, width, sums);
                linear_colour_row(&colour, dtype, pixels, width, mirror, out, 1, 80);
                hash = hash_guarded(hash_of(hash, sums, sizeof sums), out, 4 * 3 * 80);
            }
            printf("linear colour dtype %d mirror %d: %016llx\n", dtype, mirror, (unsigned long long)hash);
        }
}

/* ---- colours and operations ---- */

static void check_colour(void) {
    static const float factors[] = {0.f, 0.3f, 1.f, 1.7f, -2.f, 1e9f, -1e30f, INFINITY, NAN};
    uint64_t scale = START, grey = START, saturation = START, hls = START, lighting = START;
    for (int width = 0; width <= LONGEST; width++)
        for (int turn = 0; turn < KINDS * 9; turn++) {
            const int kind = turn % KINDS, offset = turn % 4, size = 3 * width;
            const float factor = factors[turn / KINDS];
            const float delta[3] = {factor * 10.f, (float)(draw() % 100) - 50.f, factor};
            const int shifts[3] = {(int)(draw() % 400) - 200, (int)(draw() % 600) - 300,
                                   (int)(draw() % 600) - 300};
            uint8_t* row = pixels_of(kind, size, offset);
            colour_scale_at(level, row, size, factor, (float)(turn % 7) * 10.f);
            scale = hash_guarded(scale, row, size);
            row = pixels_of(kind, size, offset);
            const int64_t sum = colour_grey_sum_at(level, row, width);
            grey = hash_of(grey, &sum, sizeof sum);
            colour_saturation_at(level, row, width, factor);
            saturation = hash_guarded(saturation, row, size);
            row = pixels_of(kind, size, offset);
            colour_hls_at(level, row, width, shifts[0], shifts[1], shifts[2]);
            hls = hash_guarded(hls, row, size);
            row = pixels_of(kind, size, offset);
            colour_lighting_at(level, row, width, delta);
            lighting = hash_guarded(lighting, row, size);
        }
    printf("colour scale: %016llx\ncolour grey: %016llx\ncolour saturation: %016llx\ncolour hls: %016llx\n"
           "colour lighting: %016llx\n",
           (unsigned long long)scale, (unsigned long long)grey, (unsigned long long)saturation,
           (unsigned long long)hls, (unsigned long long)lighting);
    /* Every fifth colour. */
    hls = START;
    for (int red = 0; red < 256; red += 5)
        for (int green = 0; green < 256; green += 5) {
            uint8_t* row = target_of(3 * 52, 0);
            for (int i = 0; i < 52; i++)
                row[3 * i] = (uint8_t)red, row[3 * i + 1] = (uint8_t)green, row[3 * i + 2] = (uint8_t)(5 * i);
            colour_hls_at(level, row, 52, red - 90, green - 128, red - green);
            hls = hash_of(hls, row, 3 * 52);
        }
    printf("colour hls of every fifth colour: %016llx\n", (unsigned long long)hls);
}

static float operation_value(operation_kind kind, int turn) {
    switch (kind) {
    case OPERATION_SHEAR_X:
    case OPERATION_SHEAR_Y:
        return (float)turn * 0.07f - 0.3f;
    case OPERATION_POSTERIZE:
        return (float)(turn % 9);
    case OPERATION_SOLARIZE:
    case OPERATION_HUE:
        return (float)(turn * 25);
    case OPERATION_BLUR:
        return 0.1f + (float)turn * 0.9f;
    case OPERATION_TRANSLATE_X:
    case OPERATION_TRANSLATE_Y:
    case OPERATION_SOLARIZE_ADD:
    case OPERATION_ROTATE:
        return (float)(turn * 11) - 40.5f;
    default:
        return (float)turn * 0.31f;
    }
}

static void check_operations(void) {
    for (int kind = 0; kind < OPERATION_COUNT; kind++)
        for (int c = 0; c < 3; c++) {
            uint64_t hash = START;
            for (int width = 1; width <= LONGEST; width += width < 20 ? 1 : 7)
                for (int turn = 0; turn < 10; turn++) {
                    const int channels = channel_counts[c], height = 1 + width % 9;
                    const operation done = {(operation_kind)kind, operation_value((operation_kind)kind, turn),
                                            turn % 3};
                    operation_image image = {pixels_of(turn % KINDS, width * height * channels, turn % 4),
                                             width,
                                             height,
                                             channels,
                                             {9, 200, 0, 255},
                                             NULL};
                    image.room = (uint8_t*)calloc(1, operation_room(width, height, channels, 10));
                    operation_apply_at(simd_level(level), &done, &image);
                    hash = hash_guarded(hash, image.pixels, (size_t)width * height * channels);
                    free(image.room);
                }
            printf("operation %d channels %d: %016llx\n", kind, channel_counts[c], (unsigned long long)hash);
        }
}

static void check_warp(void) {
    static int16_t weights[32 * 32 * 64];
    static int32_t steps[2 * 96];
    for (int method = 0; method <= 4; method++)
        for (int c = 0; c < 3; c++) {
            uint64_t hash = START;
            if (method == RESAMPLE_CUBIC || method == RESAMPLE_LANCZOS4) warp_fill_weights(method, weights);
            for (int turn = 0; turn < 60; turn++) {
                const int channels = channel_counts[c], width = 30 + turn, height = 25;
                const double turned = turn * 0.11, size = 0.5 + turn * 0.02;
                warp_source source = {pixels_of(turn % KINDS, width * height * channels, turn % 4),
                                      (ptrdiff_t)width * channels,
                                      0,
                                      0,
                                      width,
                                      height,
                                      width,
                                      height,
                                      channels,
                                      {size * cos(turned), -sin(turned), turn % 9, sin(turned),
                                       size * cos(turned), -(turn % 5)},
                                      method,
                                      weights,
                                      {1, 100, 200, 255},
                                      {NULL, NULL},
                                      0};
                /* The functions of other C libraries may differ in the last bit. */
                for (int i = 0; i < 6; i++)
                    source.inverse[i] = floor(source.inverse[i] * 1024 + 0.5) / 1024;
                if (turn % 2) warp_prepare(&source, 0, turn + 11, steps);
                for (int y = 0; y < 8; y++) {
                    uint8_t* out = target_of((size_t)(turn + 11) * channels, 0);
                    warp_row_at(level, &source, 0, turn + 11, 3 * y, out);
                    hash = hash_guarded(hash, out, (size_t)(turn + 11) * channels);
                }
            }
            printf("warp method %d channels %d: %016llx\n", method, channel_counts[c],
                   (unsigned long long)hash);
        }
}

/* ---- the rest ---- */

static void check_unfilter(void) {
    static const int sizes[] = {1, 2, 3, 4, 6, 8};
    for (int i = 0; i < 6; i++) {
        uint64_t hash = START;
        for (int width = 1; width <= LONGEST; width++)
            for (int kind = 0; kind < KINDS; kind++) {
                const int size = width * sizes[i], stride = size + 1, rows = 7;
                uint8_t above[8 * LONGEST + 8] = {0};
                uint8_t* row = pixels_of(kind, rows * stride, kind % 4);
                for (int y = 0; y < rows; y++)
                    row[y * stride] = (uint8_t)(draw() % FILTERS);
                png_unfilter(level > 0, row + 1, above, stride, rows, (size_t)size, (size_t)sizes[i]);
                hash = hash_guarded(hash, row, (size_t)rows * stride);
            }
        printf("unfilter pixel %d: %016llx\n", sizes[i], (unsigned long long)hash);
    }
}

static void check_others(void) {
    static float quantiles[NOISE_STEPS + 1];
    uint64_t gather = START, noise = START, upright = START, crc = START;
    crc32c_prepare();
    for (int i = 0; i <= NOISE_STEPS; i++)
        quantiles[i] = (float)(i - NOISE_STEPS / 2) * 0.001f;
    for (int n = 0; n <= LONGEST; n++) {
        const int64_t picked[5] = {3, 0, 1, 2, 3};
        const uint8_t* pixels = pixels_of(0, 4 * 12 * LONGEST, n % 4);
        uint8_t* out = target_of((size_t)n * 5 * 4, 0);
        float normal[NOISE_AT_ONCE];
        gather_scale(pixels, n, (size_t)n, picked, 5, 1.f / 255.f, (float*)out, level > 0);
        gather = hash_guarded(gather, out, (size_t)n * 5 * 4);
        noise_block(quantiles, draw(), (uint32_t)n, normal);
        noise = hash_of(noise, normal, sizeof normal);
        for (int k = 0; k < 3 && n; k++) {
            out = target_of((size_t)n * 9 * 4, 0);
            orient_image(pixels, (ptrdiff_t)n * channel_counts[k], n, 9, channel_counts[k], 1 + n % 8, out,
                         (ptrdiff_t)(n % 8 >= 4 ? 9 : n) * channel_counts[k]);
            upright = hash_guarded(upright, out, (size_t)n * 9 * channel_counts[k]);
        }
        const uint32_t found =
            level > 0 ? crc32c_bytes(7, pixels, (size_t)n) : crc32c_plain(7, pixels, (size_t)n);
        crc = hash_of(crc, &found, sizeof found);
    }
    printf("gather: %016llx\nnoise: %016llx\norient: %016llx\ncrc32c: %016llx\n", (unsigned long long)gather,
           (unsigned long long)noise, (unsigned long long)upright, (unsigned long long)crc);
}

/* ---- one image ---- */

static int run_image(const char* from, const char* to) {
    enum { SIDE = 224 };
    static uint8_t resized[SIDE * SIDE * 3 + PIXEL_SLACK];
    static float planes[3 * SIDE * SIDE];
    int32_t size[2];
    FILE* file = fopen(from, "rb");
    if (file == NULL || fread(size, 4, 2, file) != 2) return 1;
    const size_t bytes = (size_t)size[0] * size[1] * 3;
    uint8_t* pixels = (uint8_t*)malloc(bytes + PIXEL_SLACK);
    if (pixels == NULL || fread(pixels, 1, bytes, file) != bytes) return 1;
    fclose(file);
    file = fopen(to, "wb");
    if (file == NULL) return 1;
    for (int method = 1; method <= 3; method++) {
        const float delta[3] = {3.7f, -5.1f, 0.25f};
        const normalise_recipe recipe = {
            3, NORMALISE_FLOAT32, {123, 117, 104, 0}, {0.0171f, 0.0175f, 0.0174f, 0}, {0}, NULL, 0, 0};
        resize(pixels, size[0], size[1], 3, method, SIDE, SIDE, resized);
        fwrite(resized, 1, SIDE * SIDE * 3, file);
        for (int y = 0; y < SIDE; y++) {
            uint8_t* row = resized + y * SIDE * 3;
            colour_scale_at(level, row, 3 * SIDE, 1.2f, 0.f);
            colour_saturation_at(level, row, SIDE, 0.8f);
            colour_hls_at(level, row, SIDE, 7, -11, 13);
            colour_lighting_at(level, row, SIDE, delta);
            normalise_row_at(level, &recipe, row, SIDE, y, 1, planes + y * SIDE, 1, SIDE * SIDE);
        }
        normalise_done();
        fwrite(resized, 1, SIDE * SIDE * 3, file);
        fwrite(planes, sizeof *planes, 3 * SIDE * SIDE, file);
    }
    free(pixels);
    return fclose(file) != 0;
}

int main(int count, char** arguments) {
    if (count < 2) return 2;
    level = atoi(arguments[1]);
    if (count == 4) return run_image(arguments[2], arguments[3]);
    printf("level %d\n", simd_level(level));
    check_rows();
    check_resize();
    check_normalise();
    check_linear_colour();
    check_colour();
    check_operations();
    check_warp();
    check_unfilter();
    check_others();
    return 0;
}
