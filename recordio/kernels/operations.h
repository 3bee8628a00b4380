/* The operations of today's recipes on whole uint8 images: one table of names, one way to apply them.
 *
 * The arithmetic of the operations is Pillow's: see the headers below.  Nothing here draws random
 * numbers; the values are those that Pillow's functions take.
 */
#ifndef ITERATORS_OPERATIONS_H
#define ITERATORS_OPERATIONS_H

#include "affine.h"
#include "blend.h"
#include "box_blur.h"
#include "hue.h"
#include "point_tables.h"

/* The largest value of most operations: pixels, degrees, factors. */
#define OPERATION_LARGEST 32767
#define ANY_VALUE         -OPERATION_LARGEST, OPERATION_LARGEST

/* Every operation, with what its value is, and the least and greatest value. */
#define OPERATIONS(X)                                                                                        \
    X(IDENTITY, "identity", ANY_VALUE)                                                                       \
    /* Pixels to the left for every row further down, upwards for every column further right. */             \
    X(SHEAR_X, "shear_x", ANY_VALUE)                                                                         \
    X(SHEAR_Y, "shear_y", ANY_VALUE)                                                                         \
    /* Pixels to the left, upwards. */                                                                       \
    X(TRANSLATE_X, "translate_x", ANY_VALUE)                                                                 \
    X(TRANSLATE_Y, "translate_y", ANY_VALUE)                                                                 \
    /* Degrees, counter-clockwise. */                                                                        \
    X(ROTATE, "rotate", ANY_VALUE)                                                                           \
    /* Factors: 1 changes nothing. */                                                                        \
    X(BRIGHTNESS, "brightness", ANY_VALUE)                                                                   \
    X(COLOUR, "colour", ANY_VALUE)                                                                           \
    X(CONTRAST, "contrast", ANY_VALUE)                                                                       \
    X(SHARPNESS, "sharpness", ANY_VALUE)                                                                     \
    /* Bits that are kept. */                                                                                \
    X(POSTERIZE, "posterize", 0, 8)                                                                          \
    /* Values from here on are inverted. */                                                                  \
    X(SOLARIZE, "solarize", ANY_VALUE)                                                                       \
    /* Added to values below 128. */                                                                         \
    X(SOLARIZE_ADD, "solarize_add", -255, 255)                                                               \
    X(AUTOCONTRAST, "autocontrast", ANY_VALUE)                                                               \
    X(EQUALIZE, "equalize", ANY_VALUE)                                                                       \
    X(INVERT, "invert", ANY_VALUE)                                                                           \
    X(GREY, "grey", ANY_VALUE)                                                                               \
    /* Standard deviation in pixels. */                                                                      \
    X(BLUR, "blur", 0, BOX_BLUR_LARGEST)                                                                     \
    /* 256 parts of a circle. */                                                                             \
    X(HUE, "hue", -255, 255)

#define OPERATION_NUMBER(number, ...)    OPERATION_##number,
#define OPERATION_ROW(number, name, ...) {name, __VA_ARGS__},

typedef enum { OPERATIONS(OPERATION_NUMBER) OPERATION_COUNT } operation_kind;

typedef struct {
    const char* name;
    int low; /* of its value */
    int high;
} operation_row;

/* The rows of the table, by number. */
static SIMD_UNUSED const operation_row* operation_rows(void) {
    static const operation_row rows[] = {OPERATIONS(OPERATION_ROW)};
    return rows;
}

typedef struct {
    operation_kind kind;
    float value;
    int method; /* of the geometric ones: AFFINE_... */
} operation;

typedef struct {
    uint8_t* pixels; /* packed */
    int width;
    int height;
    int channels;
    uint8_t fill[4]; /* of what lies outside */
    uint8_t* room;   /* operation_room bytes */
} operation_image;

/* Bytes that the operations need besides an image, for a blur of up to this standard deviation. */
static SIMD_UNUSED size_t operation_room(int width, int height, int channels, double deviation) {
    const size_t blur = box_blur_room(width, height, channels, (int)(2 * deviation) + 2);
    const size_t sharpness = blend_sharpness_room(width, channels);
    return (blur > sharpness ? blur : sharpness) + PIXEL_SLACK;
}

static SIMD_UNUSED int operation_is_geometric(operation_kind kind) {
    return kind >= OPERATION_SHEAR_X && kind <= OPERATION_ROTATE;
}

/* Position of a pixel of the result in the image. */
static SIMD_UNUSED void operation_matrix(const operation* done, int width, int height, double matrix[6]) {
    static const double same[6] = {1, 0, 0, 0, 1, 0};
    memcpy(matrix, same, sizeof(same));
    if (done->kind == OPERATION_SHEAR_X)
        matrix[1] = done->value;
    else if (done->kind == OPERATION_SHEAR_Y)
        matrix[3] = done->value;
    else if (done->kind == OPERATION_TRANSLATE_X)
        matrix[2] = done->value;
    else if (done->kind == OPERATION_TRANSLATE_Y)
        matrix[5] = done->value;
    else if (done->kind == OPERATION_ROTATE)
        affine_rotation(done->value, width, height, matrix);
}

static SIMD_UNUSED void operation_move(int level, const operation* done, operation_image* image) {
    const affine_image from = {image->room, image->width, image->height, image->channels};
    affine_map map;
    map.method = done->method;
    memcpy(map.fill, image->fill, 4);
    operation_matrix(done, image->width, image->height, map.matrix);
    memcpy(image->room, image->pixels, (size_t)image->width * image->height * image->channels);
    affine_transform(level, &map, &from, image->pixels);
}

/* Fills the table of an operation that is one; 0 for all others. */
static SIMD_UNUSED int operation_table(int level, const operation* done, const operation_image* image,
                                       point_tables* point) {
    const ptrdiff_t count = (ptrdiff_t)image->width * image->height;
    switch (done->kind) {
    case OPERATION_BRIGHTNESS:
        point_blend(point, 0, done->value);
        return 1;
    case OPERATION_CONTRAST: {
        const int64_t sum = blend_luma_sum(level, image->pixels, count, image->channels);
        point_blend(point, (int)((double)sum / (double)count + 0.5), done->value);
        return 1;
    }
    case OPERATION_POSTERIZE:
        point_posterize(point, (int)done->value);
        return 1;
    case OPERATION_SOLARIZE:
        point_solarize(point, done->value);
        return 1;
    case OPERATION_SOLARIZE_ADD:
        point_solarize_add(point, (int)done->value);
        return 1;
    case OPERATION_AUTOCONTRAST:
        point_autocontrast(point, image->pixels, count, image->channels);
        return 1;
    case OPERATION_EQUALIZE:
        point_equalize(point, image->pixels, count, image->channels);
        return 1;
    case OPERATION_INVERT:
        point_solarize(point, 0);
        return 1;
    default:
        return 0;
    }
}

/* Applies an operation to an image in place. */
static SIMD_UNUSED void operation_apply_at(int level, const operation* done, operation_image* image) {
    const int width = image->width, height = image->height, channels = image->channels;
    const ptrdiff_t count = (ptrdiff_t)width * height;
    point_tables point;
    box_blur box;
    if (operation_is_geometric(done->kind)) {
        operation_move(level, done, image);
    } else if (operation_table(level, done, image, &point)) {
        point_apply(level, &point, image->pixels, count, channels);
    } else if (done->kind == OPERATION_COLOUR || done->kind == OPERATION_GREY) {
        const float factor = done->kind == OPERATION_GREY ? 0.f : done->value;
        blend_colour(level, image->pixels, count, channels, factor);
    } else if (done->kind == OPERATION_SHARPNESS) {
        blend_sharpness(level, image->pixels, width, height, channels, done->value, image->room);
    } else if (done->kind == OPERATION_BLUR) {
        box = box_blur_of(done->value);
        box_blur_image(level, &box, image->pixels, width, height, channels, image->room);
    } else if (done->kind == OPERATION_HUE && channels != 1) {
        hue_turn(level, image->pixels, count, channels, (int)done->value & 255);
    }
}

static SIMD_UNUSED void operation_apply(const operation* done, operation_image* image) {
    operation_apply_at(simd_level(SIMD_LEVEL_AVX512), done, image);
}

#endif
