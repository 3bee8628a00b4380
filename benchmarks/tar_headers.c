/* A loop over the headers of a tar file in memory: what an index of it costs at least. */

#include <stdint.h>
#include <string.h>

#define BLOCK 512
#define CHECKSUM 148

/* Octal digits, after spaces; they end at anything else. */
static int64_t octal(const uint8_t* field, int size) {
    int64_t value = 0;
    int i = 0;
    while (i < size && field[i] == ' ')
        i++;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++)
        value = value * 8 + field[i] - '0';
    return value;
}

/* Members with a right checksum, up to the end of the archive; -1 if a checksum is wrong. */
int64_t tar_headers(const uint8_t* data, int64_t size) {
    static const uint8_t end[BLOCK];
    int64_t members = 0, at = 0;
    while (at + BLOCK <= size) {
        const uint8_t* header = data + at;
        if (!header[0] && !memcmp(header, end, BLOCK)) break;
        uint32_t sum = 8 * ' '; /* the field itself counts as spaces */
        for (int i = 0; i < BLOCK; i++)
            sum += header[i];
        for (int i = CHECKSUM; i < CHECKSUM + 8; i++)
            sum -= header[i];
        if (sum != (uint32_t)octal(header + CHECKSUM, 8)) return -1;
        members++;
        at += BLOCK + (octal(header + 124, 12) + BLOCK - 1) / BLOCK * BLOCK;
    }
    return members;
}
