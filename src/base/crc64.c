// CRC-64/NVME by tables: eight bytes at a time, each through a separate table, so that the look-ups
// do not wait for one another. One thread checks more than a network brings. The tables are made by
// the first call.
#include <pthread.h>
#include <string.h>

#include "base/hash.h"

enum { TABLES = 8, BYTES = 256 };

static uint64_t tables[TABLES][BYTES]; // table k: a byte followed by k zero bytes
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_tables(void)
{
    const uint64_t reflected = 0x9A6C9329AC4BC9B5; // the polynomial is 0xAD93D23594C93659
    for (uint64_t byte = 0; byte < BYTES; byte++) {
        uint64_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ ((crc & 1) != 0 ? reflected : 0);
        tables[0][byte] = crc;
    }
    for (int k = 1; k < TABLES; k++)
        for (int byte = 0; byte < BYTES; byte++) {
            uint64_t crc = tables[k - 1][byte];
            tables[k][byte] = crc >> 8 ^ tables[0][crc & 0xff];
        }
}

uint64_t bel_crc64_nvme(uint64_t crc, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    pthread_once(&once, fill_tables);
    crc = ~crc;
    for (; size >= TABLES; size -= TABLES, bytes += TABLES) {
        uint64_t next = 0;
        for (int k = 0; k < TABLES; k++) {
            uint64_t byte = (crc >> 8 * k ^ bytes[k]) & 0xff;
            next ^= tables[TABLES - 1 - k][byte];
        }
        crc = next;
    }
    for (; size > 0; size--, bytes++)
        crc = crc >> 8 ^ tables[0][(crc ^ *bytes) & 0xff];
    return ~crc;
}
