/* CRC of 32 bits, lowest bit first, by tables of eight bytes at once, for any polynomial. */
#ifndef RECORDIO_CRC_TABLES_H
#define RECORDIO_CRC_TABLES_H

#include <stddef.h>
#include <stdint.h>

/* [k][b]: the remainder of byte b with k zero bytes behind it. */
typedef uint32_t crc_tables[8][256];

static void crc_fill_tables(crc_tables tables, uint32_t polynomial) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
        tables[0][byte] = crc;
    }
    for (int zeros = 1; zeros < 8; zeros++)
        for (int byte = 0; byte < 256; byte++) {
            const uint32_t crc = tables[zeros - 1][byte];
            tables[zeros][byte] = crc >> 8 ^ tables[0][crc & 0xFF];
        }
}

/* The remainder after more bytes: the CRC, of which all bits are inverted before and after. */
static uint32_t crc_by_tables(crc_tables tables, uint32_t crc, const uint8_t* data, size_t size) {
    for (; size >= 8; size -= 8, data += 8) {
        crc ^= (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
        crc = tables[7][crc & 0xFF] ^ tables[6][crc >> 8 & 0xFF] ^ tables[5][crc >> 16 & 0xFF] ^
              tables[4][crc >> 24] ^ tables[3][data[4]] ^ tables[2][data[5]] ^ tables[1][data[6]] ^
              tables[0][data[7]];
    }
    for (; size; size--, data++)
        crc = crc >> 8 ^ tables[0][(crc ^ *data) & 0xFF];
    return crc;
}

#endif
