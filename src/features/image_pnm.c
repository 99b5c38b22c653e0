// Binary PGM and PPM: "P5" or "P6", width, height, the largest value, one white space, samples. A
// sample has one byte, or two in big-endian order if the largest value is above 255. Samples are
// scaled so that the largest becomes 255. stb_image reads such files too, but neither scales nor
// detects a truncated file.
#include <string.h>

#include "base/alloc.h"
#include "features/image.h"

typedef struct pnm_cursor {
    const uint8_t *at, *end;
} pnm_cursor;

static bool is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

// Skips spaces and comments, which end with the line.
static void skip_space(pnm_cursor *cursor)
{
    while (cursor->at < cursor->end) {
        if (*cursor->at == '#') {
            while (cursor->at < cursor->end && *cursor->at != '\n')
                cursor->at++;
        } else if (is_space(*cursor->at)) {
            cursor->at++;
        } else {
            return;
        }
    }
}

// Reads a number of at most nine digits; -1: invalid.
static int64_t read_number(pnm_cursor *cursor)
{
    skip_space(cursor);
    int64_t value = 0;
    int digits = 0;
    for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++) {
        if (++digits > 9) return -1;
        value = value * 10 + (*cursor->at - '0');
    }
    return digits > 0 ? value : -1;
}

// Scales samples to bytes. Returns the index of the first one above the largest value, or the
// count.
static int64_t scale_samples(const uint8_t *from, int64_t count, uint32_t largest, uint8_t *to)
{
    if (largest == 255) {
        memcpy(to, from, (size_t)count);
        return count;
    }
    bool wide = largest > 255;
    for (int64_t i = 0; i < count; i++) {
        uint32_t value = wide ? (uint32_t)from[2 * i] << 8 | from[2 * i + 1] : from[i];
        if (value > largest) return i;
        to[i] = (uint8_t)((value * 255 + largest / 2) / largest);
    }
    return count;
}

bel_status *bel_pnm_decode(const bel_image_request *request, bel_image *out_image)
{
    pnm_cursor cursor = {request->data + 2, request->data + request->size};
    int64_t channels = request->data[1] == '6' ? 3 : 1;
    int64_t width = read_number(&cursor), height = read_number(&cursor);
    int64_t largest = read_number(&cursor);
    if (width < 0 || height < 0 || largest < 1 || largest > 65535 || cursor.at == cursor.end ||
        !is_space(*cursor.at)) {
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: expected width, height and a largest value in 1..65535 after P%d, got "
                       "another header",
                       request->name, channels == 3 ? 6 : 5);
    }
    cursor.at++;
    BEL_TRY(bel_image_check_size(request, height, width));
    int64_t count = width * height * channels, needed = count * (largest > 255 ? 2 : 1);
    int64_t left = cursor.end - cursor.at;
    if (left < needed) {
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: expected %lld bytes of pixels, got %lld: the file is cut off",
                       request->name, (long long)needed, (long long)left);
    }
    bel_image image = bel_image_make(height, width, channels);
    int64_t good = scale_samples(cursor.at, count, (uint32_t)largest, image.pixels);
    if (good < count) {
        bel_image_deinit(&image);
        return BEL_ERR(BEL_DATA_LOSS,
                       "%s: expected samples of at most %lld, got a larger one at %lld",
                       request->name, (long long)largest, (long long)good);
    }
    *out_image = bel_image_with_channels(image, request->channels);
    return NULL;
}
