// Operations on the pixels of an image, one by one. All are integer arithmetic, except
// bel_image_rotate, which is plain sums and products of doubles, and bel_image_normalize, which
// uses a precomputed table of the 256 values.
#include "features/image.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/real.h"

bel_status *bel_image_check_size(const bel_image_request *request, int64_t height, int64_t width)
{
    if (height < 1 || width < 1) {
        return BEL_ERR(BEL_DATA_LOSS, "%s: expected at least one pixel, got %lld x %lld",
                       request->name, (long long)width, (long long)height);
    }
    if (height > request->max_pixels / width) {
        return BEL_ERR(
            BEL_DATA_LOSS, "%s: expected at most %lld pixels (max_pixels), got %lld x %lld",
            request->name, (long long)request->max_pixels, (long long)width, (long long)height);
    }
    return NULL;
}

bel_image bel_image_make(int64_t height, int64_t width, int64_t channels)
{
    uint8_t *pixels = bel_xmalloc((size_t)(height * width * channels));
    return (bel_image){.pixels = pixels, .height = height, .width = width, .channels = channels};
}

void bel_image_deinit(bel_image *image)
{
    bel_free(image->pixels);
    *image = (bel_image){0};
}

bel_image bel_image_with_channels(bel_image image, int64_t channels)
{
    if (image.channels == channels) return image;
    bel_image out = bel_image_make(image.height, image.width, channels);
    const uint8_t *from = image.pixels;
    uint8_t *to = out.pixels;
    for (int64_t i = 0; i < image.height * image.width; i++) {
        if (channels == 3) {
            to[3 * i] = to[3 * i + 1] = to[3 * i + 2] = from[i];
        } else { // 0.299, 0.587 and 0.114 of 2^16
            uint32_t sum =
                from[3 * i] * 19595U + from[3 * i + 1] * 38470U + from[3 * i + 2] * 7471U;
            to[i] = (uint8_t)((sum + 32768) >> 16);
        }
    }
    bel_image_deinit(&image);
    return out;
}

bel_status *bel_image_check_sides(int64_t height, int64_t width)
{
    if (height >= 1 && height <= BEL_IMAGE_MAX_SIDE && width >= 1 && width <= BEL_IMAGE_MAX_SIDE &&
        height * width <= BEL_IMAGE_MAX_PIXELS)
        return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "image: expected a height and width in 1..%d, and at most %d pixels, got %lld x "
                   "%lld",
                   BEL_IMAGE_MAX_SIDE, BEL_IMAGE_MAX_PIXELS, (long long)height, (long long)width);
}

bel_status *bel_image_crop(const bel_image *image, int64_t top, int64_t left, int64_t height,
                           int64_t width, bel_image *out_image)
{
    BEL_TRY(bel_image_check_sides(height, width));
    if (top < -BEL_IMAGE_MAX_PIXELS || top > BEL_IMAGE_MAX_PIXELS || left < -BEL_IMAGE_MAX_PIXELS ||
        left > BEL_IMAGE_MAX_PIXELS) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "image: expected a window near the image, got one at %lld, %lld",
                       (long long)top, (long long)left);
    }
    bel_image out = bel_image_make(height, width, image->channels);
    memset(out.pixels, 0, (size_t)(height * width * image->channels));
    // columns of the window inside the image
    int64_t first = left < 0 ? -left : 0;
    int64_t end = image->width - left < width ? image->width - left : width;
    for (int64_t y = 0; y < height && first < end; y++) {
        if (top + y < 0 || top + y >= image->height) continue;
        memcpy(out.pixels + (y * width + first) * image->channels,
               image->pixels + ((top + y) * image->width + left + first) * image->channels,
               (size_t)((end - first) * image->channels));
    }
    *out_image = out;
    return NULL;
}

static inline void copy_pixel(uint8_t *to, const uint8_t *from, int64_t channels)
{
    for (int64_t c = 0; c < channels; c++)
        to[c] = from[c];
}

// Callers pass a constant `channels`, so that a pixel is no call of memcpy.
static inline void flip_rows(bel_image *image, int64_t channels)
{
    for (int64_t y = 0; y < image->height; y++) {
        uint8_t *left = image->pixels + y * image->width * channels;
        uint8_t *right = left + (image->width - 1) * channels;
        for (; left < right; left += channels, right -= channels) {
            for (int64_t c = 0; c < channels; c++) {
                uint8_t kept = left[c];
                left[c] = right[c];
                right[c] = kept;
            }
        }
    }
}

void bel_image_flip(bel_image *image)
{
    if (image->channels == 3) {
        flip_rows(image, 3);
    } else {
        flip_rows(image, 1);
    }
}

bel_status *bel_image_turn(const bel_image *image, int64_t quarters, bel_image *out_image)
{
    int64_t turns = (quarters % 4 + 4) % 4, height = image->height, width = image->width;
    bool sideways = turns % 2 == 1;
    bel_image out =
        bel_image_make(sideways ? width : height, sideways ? height : width, image->channels);
    uint8_t *to = out.pixels;
    for (int64_t y = 0; y < out.height; y++) {
        for (int64_t x = 0; x < out.width; x++, to += image->channels) {
            int64_t row = y, column = x; // this pixel's place before
            if (turns == 1) row = x, column = width - 1 - y;
            if (turns == 2) row = height - 1 - y, column = width - 1 - x;
            if (turns == 3) row = height - 1 - x, column = y;
            copy_pixel(to, image->pixels + (row * width + column) * image->channels,
                       image->channels);
        }
    }
    *out_image = out;
    return NULL;
}

// A channel of a pixel; black outside the image.
static double value_at(const bel_image *image, int64_t y, int64_t x, int64_t c)
{
    if (y < 0 || y >= image->height || x < 0 || x >= image->width) return 0;
    return image->pixels[(y * image->width + x) * image->channels + c];
}

bel_status *bel_image_rotate(const bel_image *image, double degrees, bel_image *out_image)
{
    if (!isfinite(degrees)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "image: expected a finite angle, got %g", degrees);
    }
    double angle = fmod(degrees, 360) * (3.14159265358979323846 / 180);
    double cosine = bel_real_cos(angle), sine = bel_real_sin(angle);
    double middle_x = (double)(image->width - 1) / 2, middle_y = (double)(image->height - 1) / 2;
    bel_image out = bel_image_make(image->height, image->width, image->channels);
    uint8_t *to = out.pixels;
    for (int64_t y = 0; y < out.height; y++) {
        for (int64_t x = 0; x < out.width; x++) {
            // Source of the pixel, with y downwards: its offset turned back.
            double dx = (double)x - middle_x, dy = (double)y - middle_y;
            double from_x = middle_x + (cosine * dx - sine * dy);
            double from_y = middle_y + (sine * dx + cosine * dy);
            double left = floor(from_x), top = floor(from_y);
            double across = from_x - left, down = from_y - top;
            int64_t column = (int64_t)left, row = (int64_t)top;
            for (int64_t c = 0; c < image->channels; c++) {
                double above = value_at(image, row, column, c) * (1 - across) +
                               value_at(image, row, column + 1, c) * across;
                double below = value_at(image, row + 1, column, c) * (1 - across) +
                               value_at(image, row + 1, column + 1, c) * across;
                *to++ = (uint8_t)(above * (1 - down) + below * down + 0.5);
            }
        }
    }
    *out_image = out;
    return NULL;
}

void bel_image_normalize(const bel_image *image, double scale, const double mean[3],
                         const double deviation[3], bool channels_last, float *out)
{
    int64_t channels = image->channels, count = image->height * image->width;
    float table[3][256];
    for (int64_t c = 0; c < channels; c++) {
        double divisor = deviation[c] == 0 ? 1 : deviation[c];
        for (int value = 0; value < 256; value++) {
            double scaled = scale == 0 ? value / 255.0 : value * scale;
            table[c][value] = (float)((scaled - mean[c]) / divisor);
        }
    }
    for (int64_t c = 0; c < channels; c++) {
        const float *row = table[c];
        const uint8_t *pixels = image->pixels + c;
        float *to = channels_last ? out + c : out + c * count;
        int64_t step = channels_last ? channels : 1;
        for (int64_t i = 0; i < count; i++)
            to[i * step] = row[pixels[i * channels]];
    }
}
