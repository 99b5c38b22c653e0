// Fuzz target for event files, as resuming, evaluating and the report read them. It corrects
// checksums first, so that the data after them is reached.
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "fuzz/fuzz.h"
#include "report/event_file.h"

static void each(void *context, const bel_event *event)
{
    double *sum = context;
    if (event->tag != NULL) *sum += (double)strlen(event->tag);
    for (int i = 0; event->numbers != NULL && i < event->rows * event->columns; i++)
        *sum += event->numbers[i];
}

// TensorFlow's masked CRC-32C.
static void put_crc(uint8_t *to, const uint8_t *bytes, size_t count)
{
    uint32_t crc = bel_crc32c(0, bytes, count);
    uint32_t masked = (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(masked >> (8 * i));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { HEAD = 12, TAIL = 4 };
    double sum = 0;
    bel_event_file_parse((const char *)data, size, each, &sum);
    uint8_t *copy = malloc(size > 0 ? size : 1);
    fuzz_expect(copy != NULL, "memory");
    if (size > 0) memcpy(copy, data, size);
    for (size_t at = 0; size - at >= HEAD + TAIL;) {
        uint64_t length = copy[at] | (uint64_t)copy[at + 1] << 8;
        memset(copy + at + 2, 0, 6);
        put_crc(copy + at + 8, copy + at, 8);
        if (length > size - at - HEAD - TAIL) break;
        put_crc(copy + at + HEAD + length, copy + at + HEAD, (size_t)length);
        at += HEAD + (size_t)length + TAIL;
    }
    bel_event_file_parse((const char *)copy, size, each, &sum);
    free(copy);
    return 0;
}
