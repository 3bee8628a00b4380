/* Decimal text, nan and inf to numbers: doubles rounded as Python's float() rounds, integers with
   overflow noticed.  The locale does not matter.

   Every text must hold a line end, and at least 8 readable bytes behind it: no parser goes beyond a
   line end, but eight characters are loaded together. */
#ifndef RECORDIO_DECIMAL_H
#define RECORDIO_DECIMAL_H

#include "recordio/little_endian.h"

#include <float.h>
#include <stdint.h>
#include <string.h>

#include "powers_of_five.h"

#ifdef _MSC_VER
#include <intrin.h>
#endif

#if defined(__GNUC__) || defined(__clang__)
#define RECORDIO_NEVER_INLINE __attribute__((noinline))
#elif defined(_MSC_VER)
#define RECORDIO_NEVER_INLINE __declspec(noinline)
#else
#define RECORDIO_NEVER_INLINE
#endif

/* ---- words ---------------------------------------------------------------------------------- */

/* Eight characters, the first one in the lowest byte. */
static inline uint64_t recordio_eight(const uint8_t* text) {
    uint64_t word;
    memcpy(&word, text, 8);
    return word;
}

/* Neither is called with 0. */
static inline int recordio_trailing_zeros(uint64_t word) {
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_ctzll(word);
#elif defined(_MSC_VER) && (defined(_M_X64) || defined(_M_ARM64))
    unsigned long index;
    _BitScanForward64(&index, word);
    return (int)index;
#else
    int count = 0;
    for (; !(word & 1); word >>= 1)
        count++;
    return count;
#endif
}

static inline int recordio_leading_zeros(uint64_t word) {
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_clzll(word);
#elif defined(_MSC_VER) && (defined(_M_X64) || defined(_M_ARM64))
    unsigned long index;
    _BitScanReverse64(&index, word);
    return 63 - (int)index;
#else
    int count = 0;
    for (; !(word >> 63); word <<= 1)
        count++;
    return count;
#endif
}

static inline uint64_t recordio_multiply(uint64_t a, uint64_t b, uint64_t* high) {
#if defined(__SIZEOF_INT128__)
    const unsigned __int128 product = (unsigned __int128)a * b;
    *high = (uint64_t)(product >> 64);
    return (uint64_t)product;
#elif defined(_MSC_VER) && defined(_M_X64)
    return _umul128(a, b, high);
#else
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t low = a0 * b0, cross = a1 * b0 + (low >> 32);
    const uint64_t middle = a0 * b1 + (uint32_t)cross;
    *high = a1 * b1 + (cross >> 32) + (middle >> 32);
    return middle << 32 | (uint32_t)low;
#endif
}

/* ---- digits --------------------------------------------------------------------------------- */

static const uint64_t recordio_ten_to[] = {
    1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000,
};

static const double recordio_exact_power[] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};

static inline int recordio_is_digit(uint8_t c) {
    return (uint8_t)(c - '0') <= 9;
}

/* Number of digits with which eight characters begin.  The sum may carry out of a
   character of 0x80 and more, but only into later ones, which no longer matter then. */
static inline int recordio_digits(uint64_t word) {
    const uint64_t x = word ^ 0x3030303030303030u;
    const uint64_t others = ((x + 0x7676767676767676u) | x) & 0x8080808080808080u;
    return others ? recordio_trailing_zeros(others) >> 3 : 8;
}

/* Value of the first `count` of eight characters: zeros are shifted in before them, then two, four
   and eight digits are joined.  Two shifts, because one of 64 bits is undefined. */
static inline uint64_t recordio_digits_value(uint64_t word, int count) {
    const int half = 4 * (8 - count);
    word = (word - 0x3030303030303030u) << half << half;
    word = word * 10 + (word >> 8);
    return ((word & 0x000000FF000000FFu) * 0x000F424000000064u +
            (word >> 16 & 0x000000FF000000FFu) * 0x0000271000000001u) >>
           32;
}

/* Read all digits at `text` on top of `value`, which wraps round when they are too many. */
static inline const uint8_t* recordio_take_digits(const uint8_t* text, uint64_t* value) {
    uint64_t word = recordio_eight(text);
    int count = recordio_digits(word);
    for (; count == 8; count = recordio_digits(word)) {
        *value = *value * 100000000u + recordio_digits_value(word, 8);
        text += 8;
        word = recordio_eight(text);
    }
    *value = *value * recordio_ten_to[count] + recordio_digits_value(word, count);
    return text + count;
}

/* ---- rounding ------------------------------------------------------------------------------- */

static inline double recordio_double_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

/* mantissa * 10**exponent, rounded correctly, for a mantissa that is exact: the algorithm of Eisel
   and Lemire, which needs no second try (Mushtak and Lemire, 2022).  Returns the bits. */
static inline uint64_t recordio_eisel_lemire(uint64_t mantissa, int64_t exponent) {
    const uint64_t infinity = (uint64_t)0x7FF << 52;
    if (mantissa == 0 || exponent < RECORDIO_SMALLEST_POWER) return 0;
    if (exponent > RECORDIO_LARGEST_POWER) return infinity;
    const uint64_t* power = recordio_powers_of_five[exponent - RECORDIO_SMALLEST_POWER];
    const int zeros = recordio_leading_zeros(mantissa);
    uint64_t high, low, more;
    mantissa <<= zeros;
    low = recordio_multiply(mantissa, power[0], &high);
    if ((high & 0x1FF) == 0x1FF) { /* the lower half of the power may decide */
        recordio_multiply(mantissa, power[1], &more);
        low += more;
        high += low < more;
    }
    const int top = (int)(high >> 63);
    const int shift = top + 9;
    uint64_t bits = high >> shift; /* 53 bits and one to round by */
    int64_t binary = ((217706 * exponent) >> 16) + 63 + top - zeros + 1023;
    if (binary <= 0) { /* subnormal, or rounded up to the smallest normal */
        if (binary <= -63) return 0;
        bits >>= 1 - binary;
        return (bits + (bits & 1)) >> 1;
    }
    /* A tie can only be exact for these powers, and is rounded to even. */
    if (low <= 1 && exponent >= -4 && exponent <= 23 && (bits & 3) == 1 && bits << shift == high)
        bits &= ~(uint64_t)1;
    bits = (bits + (bits & 1)) >> 1;
    if (bits >> 53) {
        bits >>= 1;
        binary++;
    }
    if (binary >= 0x7FF) return infinity;
    return (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)binary << 52;
}

/* An integer of up to 4096 bits; comparing a decimal with a double takes fewer than 2,800. */
typedef struct {
    int size;
    uint32_t limbs[128];
} recordio_integer;

static inline void recordio_multiply_add(recordio_integer* x, uint32_t factor, uint32_t carry) {
    for (int i = 0; i < x->size; i++) {
        const uint64_t product = (uint64_t)x->limbs[i] * factor + carry;
        x->limbs[i] = (uint32_t)product;
        carry = (uint32_t)(product >> 32);
    }
    if (carry) x->limbs[x->size++] = carry;
}

static inline void recordio_times_power(recordio_integer* x, int fives, int twos) {
    for (; fives >= 13; fives -= 13)
        recordio_multiply_add(x, 1220703125u, 0);
    for (; fives > 0; fives--)
        recordio_multiply_add(x, 5, 0);
    for (; twos >= 31; twos -= 31)
        recordio_multiply_add(x, (uint32_t)1 << 31, 0);
    if (twos > 0) recordio_multiply_add(x, (uint32_t)1 << twos, 0);
}

static inline int recordio_compare(const recordio_integer* a, const recordio_integer* b) {
    if (a->size != b->size) return a->size < b->size ? -1 : 1;
    for (int i = a->size - 1; i >= 0; i--)
        if (a->limbs[i] != b->limbs[i]) return a->limbs[i] < b->limbs[i] ? -1 : 1;
    return 0;
}

/* Decide between a double and the next larger one, given the digits (from the first one that is not
   zero; a point may be among them) and the power of ten of that first digit.  Compares with the
   point half way between the two, in integers.  No such point has more than 767 digits: whether any
   later digit is not zero is all that matters of them. */
static RECORDIO_NEVER_INLINE uint64_t recordio_round_exactly(const uint8_t* text, const uint8_t* end,
                                                             int64_t first_power, uint64_t lower) {
    recordio_integer decimal = {0, {0}}, half = {0, {0}};
    int digits = 0, more = 0;
    for (; text < end && !more; text++) {
        if (*text == '.') continue;
        if (digits < 770) {
            recordio_multiply_add(&decimal, 10, (uint32_t)(*text - '0'));
            digits++;
        } else {
            more = *text != '0';
        }
    }
    if (more) {
        recordio_multiply_add(&decimal, 10, 1);
        digits++;
    }
    const int ten = (int)(first_power - digits + 1);
    const int biased = (int)(lower >> 52);
    uint64_t middle = lower & (((uint64_t)1 << 52) - 1);
    if (biased) middle |= (uint64_t)1 << 52;
    middle = 2 * middle + 1;
    const int two = (biased ? biased : 1) - 1076;
    half.size = middle >> 32 ? 2 : 1;
    half.limbs[0] = (uint32_t)middle;
    half.limbs[1] = (uint32_t)(middle >> 32);
    recordio_times_power(&decimal, ten > 0 ? ten : 0, ten > two ? ten - two : 0);
    recordio_times_power(&half, ten < 0 ? -ten : 0, two > ten ? two - ten : 0);
    const int order = recordio_compare(&decimal, &half);
    return lower + (order > 0 || (order == 0 && (lower & 1)));
}

/* The same for more than 19 significant digits: mostly the first 19 settle it. */
static RECORDIO_NEVER_INLINE uint64_t recordio_long_decimal(const uint8_t* text, const uint8_t* end,
                                                            int64_t first_power) {
    uint64_t mantissa = 0;
    const uint8_t* at = text;
    for (int digits = 0; digits < 19; at++) {
        if (*at == '.') continue;
        mantissa = mantissa * 10 + (uint64_t)(*at - '0');
        digits++;
    }
    const uint64_t lower = recordio_eisel_lemire(mantissa, first_power - 18);
    if (lower == recordio_eisel_lemire(mantissa + 1, first_power - 18)) return lower;
    return recordio_round_exactly(text, end, first_power, lower);
}

/* ---- numbers -------------------------------------------------------------------------------- */

/* `word` in lower case at `text`, in any case there. */
static inline int recordio_matches(const uint8_t* text, const char* word) {
    for (; *word; word++, text++)
        if ((*text | 0x20) != (uint8_t)*word) return 0;
    return 1;
}

static inline const uint8_t* recordio_infinity_or_nan(const uint8_t* text, uint64_t sign, double* value) {
    uint64_t bits = (uint64_t)0x7FF << 52;
    if (recordio_matches(text, "inf")) {
        text += recordio_matches(text + 3, "inity") ? 8 : 3;
    } else if (recordio_matches(text, "nan")) {
        bits |= (uint64_t)1 << 51;
        text += 3;
    } else {
        return NULL;
    }
    *value = recordio_double_of(bits | sign);
    return text;
}

/* A double in any notation that Python's float() knows, without its underscores.  Returns the end
   of the longest number at `text`, or NULL where there is none. */
static RECORDIO_NEVER_INLINE const uint8_t* recordio_parse_double(const uint8_t* text, double* value) {
    const uint64_t sign = (uint64_t)(*text == '-') << 63;
    if (*text == '-' || *text == '+') text++;
    const uint8_t* first = text;
    uint64_t mantissa = 0;
    text = recordio_take_digits(text, &mantissa);
    int64_t digits = text - first, exponent = 0;
    if (*text == '.') {
        const uint8_t* fraction = text + 1;
        text = recordio_take_digits(fraction, &mantissa);
        exponent = fraction - text;
        digits -= exponent;
    }
    if (digits == 0) return recordio_infinity_or_nan(first, sign, value);
    const uint8_t* end = text;
    if ((*text | 0x20) == 'e') {
        const uint8_t* at = text + 1;
        const int negative = *at == '-';
        if (*at == '-' || *at == '+') at++;
        if (recordio_is_digit(*at)) {
            int64_t explicit_exponent = 0;
            for (; recordio_is_digit(*at); at++) /* enough for any text that fits into memory */
                if (explicit_exponent < (int64_t)1 << 56)
                    explicit_exponent = explicit_exponent * 10 + (*at - '0');
            exponent += negative ? -explicit_exponent : explicit_exponent;
            text = at;
        }
    }
    uint64_t bits;
    if (digits > 19) {
        for (; first < end && (*first == '0' || *first == '.'); first++)
            digits -= *first == '0';
    }
    if (digits > 19) {
        const int64_t first_power = exponent + digits - 1;
        if (first_power > 310)
            bits = (uint64_t)0x7FF << 52;
        else if (first_power < -330)
            bits = 0;
        else
            bits = recordio_long_decimal(first, end, first_power);
#if FLT_EVAL_METHOD == 0
    } else if (mantissa >> 53 == 0 && exponent >= -22 && exponent <= 22) {
        double product = (double)mantissa; /* both are exact, so one rounding is right */
        if (exponent < 0)
            product /= recordio_exact_power[-exponent];
        else
            product *= recordio_exact_power[exponent];
        memcpy(&bits, &product, 8);
#endif
    } else {
        bits = recordio_eisel_lemire(mantissa, exponent);
    }
    *value = recordio_double_of(bits | sign);
    return text;
}

/* The same for what most numbers look like: at most 7 digits, a point, at most 8 digits.  Returns
   NULL for all others.  Signs and lengths are taken without a branch, since nobody can guess them. */
static inline const uint8_t* recordio_short_double(const uint8_t* text, double* value) {
    const uint64_t negative = *text == '-';
    text += negative; /* one load less would be slower: GCC makes a branch of its shift */
    uint64_t word = recordio_eight(text);
    int count = recordio_digits(word);
    if ((unsigned)(count - 1) > 6) return NULL;
    uint64_t mantissa = recordio_digits_value(word, count);
    text += count;
    double number;
    if (*text == '.') {
#if FLT_EVAL_METHOD == 0
        word = recordio_eight(++text);
        count = recordio_digits(word);
        text += count;
        if (count == 8 && recordio_is_digit(*text)) return NULL;
        mantissa = mantissa * recordio_ten_to[count] + recordio_digits_value(word, count);
        number = (double)(int64_t)mantissa / recordio_exact_power[count];
#else
        return NULL;
#endif
    } else {
        number = (double)(int64_t)mantissa;
    }
    uint64_t bits;
    memcpy(&bits, &number, 8);
    *value = recordio_double_of(bits | negative << 63);
    return text;
}

/* Two integers without signs, at most 6 digits together, each with `delimiter` behind it: taking both
   out of one word halves the time, which goes into finding where the next number begins.  Returns
   what follows them, or NULL for all others. */
static inline const uint8_t* recordio_short_pair(const uint8_t* text, uint8_t delimiter, int64_t pair[2]) {
    const uint64_t word = recordio_eight(text);
    const uint64_t x = word ^ 0x3030303030303030u;
    const uint64_t others = ((x + 0x7676767676767676u) | x) & 0x8080808080808080u;
    const uint64_t behind = others & (others - 1);
    if (!behind) return NULL;
    const int first = recordio_trailing_zeros(others) >> 3;
    const int second = recordio_trailing_zeros(behind) >> 3;
    if ((first == 0) | (second == first + 1) | ((uint8_t)(word >> 8 * first) != delimiter) |
        ((uint8_t)(word >> 8 * second) != delimiter))
        return NULL;
    pair[0] = (int64_t)recordio_digits_value(word, first);
    pair[1] = (int64_t)recordio_digits_value(word >> 8 * (first + 1), second - first - 1);
    return text + second + 1;
}

/* An integer of any length.  Returns its end, or NULL where there is none; `overflow` says that the
   value does not fit into 64 bits and is not to be used. */
static RECORDIO_NEVER_INLINE const uint8_t* recordio_parse_integer(const uint8_t* text, int64_t* value,
                                                                   int* overflow) {
    const int negative = *text == '-';
    if (*text == '-' || *text == '+') text++;
    const uint8_t* first = text;
    uint64_t number = 0;
    while (*text == '0')
        text++;
    const uint8_t* significant = text;
    text = recordio_take_digits(text, &number);
    if (text == first) return NULL;
    /* 19 digits always fit into 64 bits without a sign, 20 never into 63. */
    *overflow = text - significant > 19 || number > (uint64_t)INT64_MAX + (uint64_t)negative;
    *value = (int64_t)(negative ? 0 - number : number);
    return text;
}

/* The same for at most 7 digits and no plus sign; NULL for all others. */
static inline const uint8_t* recordio_short_integer(const uint8_t* text, int64_t* value) {
    const int64_t negative = *text == '-';
    text += negative;
    const uint64_t word = recordio_eight(text);
    const int count = recordio_digits(word);
    if ((unsigned)(count - 1) > 6) return NULL;
    *value = ((int64_t)recordio_digits_value(word, count) ^ -negative) + negative;
    return text + count;
}

#endif
