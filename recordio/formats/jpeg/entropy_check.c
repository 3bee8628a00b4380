/* A trial of our entropy decoders with the libjpeg-turbo that is found at run time.
 *
 * They are handed to the library by a member that is no interface, and the library may be another than
 * the one this was compiled for.  So before they are used, built-in images are decoded with them and
 * without, sound and damaged, whole and in part: status, warnings and pixels must be the same, and ours
 * must really have been called.  They must also have passed over what a part has no need of.
 */
#include "decoder.h"

#ifdef HAVE_LIBJPEG_TURBO

#include "entropy_samples.h"

#include <stdlib.h>
#include <string.h>

#define LARGEST_SAMPLE                                                                                       \
    (sizeof sequential_sample > sizeof progressive_sample ? sizeof sequential_sample                         \
                                                          : sizeof progressive_sample)

typedef struct {
    int channels, denominator, x, y, width, height;
} request;

/* A part right of and below columns and rows that are passed over, among them the first four segments
 * as a whole; everything; grey; scaled; and where AC coefficients make no difference. */
static const request requests[] = {
    {3, 1, 44, 45, 12, 9},
    {3, 1, 0, 0, SAMPLE_WIDTH, SAMPLE_HEIGHT},
    {1, 1, 0, 0, SAMPLE_WIDTH, SAMPLE_HEIGHT},
    {3, 2, 0, 0, SAMPLE_WIDTH / 2, SAMPLE_HEIGHT / 2},
    {3, 8, 0, 0, SAMPLE_WIDTH / 8, SAMPLE_HEIGHT / 8},
    {1, 8, 0, 0, SAMPLE_WIDTH / 8, SAMPLE_HEIGHT / 8},
};
enum { PART, WHOLE, GREY, HALF, EIGHTH, GREY_EIGHTH, ALL_REQUESTS };

typedef struct {
    int status, warnings, chosen;
    uint8_t pixels[SAMPLE_WIDTH * SAMPLE_HEIGHT * 3];
} outcome;

static void decode(jpeg_decoder* decoder, const uint8_t* data, size_t size, const request* part,
                   outcome* result) {
    const size_t row_size = (size_t)part->width * (size_t)part->channels;
    const uint8_t* row;
    ptrdiff_t stride;
    jpeg_info info;
    int count = 1, i, y = 0;
    memset(result, 0, sizeof *result);
    result->status = jpeg_decoder_open(decoder, data, size, NULL, &info);
    if (result->status == JPEG_OK)
        result->status = jpeg_decoder_start(decoder, part->channels, part->denominator, part->x, part->y,
                                            part->width, part->height);
    while (result->status == JPEG_OK && count != 0) {
        result->status = jpeg_decoder_rows(decoder, &row, &stride, &count);
        for (i = 0; result->status == JPEG_OK && i < count; i++, y++)
            memcpy(result->pixels + row_size * (size_t)y, row + stride * i, row_size);
    }
    result->warnings = jpeg_decoder_warnings(decoder);
    result->chosen = jpeg_decoder_chosen(decoder);
    jpeg_decoder_finish(decoder);
}

/* `chosen`: what must have become of our decoder in the end, for each of the first `count` requests. */
static int agree(jpeg_decoder* plain, jpeg_decoder* own, const uint8_t* data, size_t size, int chosen,
                 int count, outcome* pair) {
    int i;
    for (i = 0; i < count; i++) {
        decode(plain, data, size, &requests[i], &pair[0]);
        decode(own, data, size, &requests[i], &pair[1]);
        if (pair[0].chosen != 0 || pair[1].chosen != chosen || pair[0].status != pair[1].status ||
            pair[0].warnings != pair[1].warnings ||
            memcmp(pair[0].pixels, pair[1].pixels, sizeof pair[0].pixels) != 0)
            return 0;
    }
    return 1;
}

/* Whether damage that a part has no need of goes unseen and changes nothing. */
static int passes_over(jpeg_decoder* own, const uint8_t* data, const uint8_t* damaged, size_t size, int part,
                       outcome* pair) {
    decode(own, data, size, &requests[part], &pair[0]);
    decode(own, damaged, size, &requests[part], &pair[1]);
    return memcmp(&pair[0], &pair[1], sizeof pair[0]) == 0;
}

/* A copy in which eight bytes at `offset` are zeros, or the one there is another number. */
static const uint8_t* damage(uint8_t* copy, const uint8_t* data, size_t size, size_t offset, int number) {
    memcpy(copy, data, size);
    if (number)
        copy[offset] ^= 4;
    else
        memset(copy + offset, 0, 8);
    return copy;
}

static int check_sequential(jpeg_decoder* plain, jpeg_decoder* own, uint8_t* copy, outcome* pair) {
    const uint8_t* data = sequential_sample;
    const size_t size = sizeof sequential_sample;
    return agree(plain, own, data, size, 1, ALL_REQUESTS, pair) &&
           passes_over(own, data, damage(copy, data, size, EARLY, 0), size, PART, pair) &&
           agree(plain, own, data, MIDDLE, 2, ALL_REQUESTS, pair) &&
           agree(plain, own, damage(copy, data, size, MIDDLE, 0), size, 2, ALL_REQUESTS, pair) &&
           agree(plain, own, damage(copy, data, size, SECOND_MARKER, 1), size, 2, ALL_REQUESTS, pair);
}

static int check_progressive(jpeg_decoder* plain, jpeg_decoder* own, uint8_t* copy, outcome* pair) {
    const uint8_t* data = progressive_sample;
    const size_t size = sizeof progressive_sample;
    return agree(plain, own, data, size, 1, ALL_REQUESTS, pair) &&
           passes_over(own, data, damage(copy, data, size, FIRST_BAND, 0), size, GREY_EIGHTH, pair) &&
           agree(plain, own, copy, size, 2, HALF + 1, pair) &&
           agree(plain, own, data, LAST_REFINING, 2, HALF + 1, pair) &&
           agree(plain, own, damage(copy, data, size, FIRST_REFINING, 0), size, 2, HALF + 1, pair) &&
           agree(plain, own, damage(copy, data, size, LAST_REFINING, 0), size, 2, HALF + 1, pair) &&
           agree(plain, own, damage(copy, data, size, REFINING_MARKER, 1), size, 2, HALF + 1, pair);
}

int jpeg_decoder_check(void) {
    jpeg_decoder *plain = jpeg_decoder_new(), *own = jpeg_decoder_new();
    outcome* pair = malloc(2 * sizeof *pair);
    uint8_t copy[LARGEST_SAMPLE];
    const int good = plain != NULL && own != NULL && pair != NULL &&
                     jpeg_decoder_choose(own, JPEG_ENTROPY_ON_PROBATION) == JPEG_OK &&
                     check_sequential(plain, own, copy, pair) && check_progressive(plain, own, copy, pair);
    free(pair);
    jpeg_decoder_free(own);
    jpeg_decoder_free(plain);
    return good;
}

#endif /* HAVE_LIBJPEG_TURBO */
