// Private interface of image reading: the decoders' request, and functions of image.c.
#ifndef BELFRY_FEATURES_IMAGE_H
#define BELFRY_FEATURES_IMAGE_H

#include "belfry/features.h"

typedef struct bel_str bel_str; // base/str.h

enum { BEL_IMAGE_MAX_SIDE = 1 << 16, BEL_IMAGE_MAX_PIXELS = 100000000 };

// A file in memory and the wanted image, with defaults filled in.
typedef struct bel_image_request {
    const uint8_t *data;
    size_t size;
    const char *name; // for messages
    int64_t channels; // 1 or 3
    int64_t max_pixels;
    int64_t enough_height, enough_width; // both above 0, or both 0
} bel_image_request;

// Decoders, one file for each library. DATA_LOSS as features.h says.
bel_status *bel_jpeg_decode(const bel_image_request *request, bel_image *out_image) BEL_MUST_USE;
// Appends the image as a PNG file; 1, 3 or 4 channels (gray, RGB, RGBA). INTERNAL: libpng refuses
// the image.
bel_status *bel_png_encode(const bel_image *image, bel_str *out) BEL_MUST_USE;

bel_status *bel_png_decode(const bel_image_request *request, bel_image *out_image) BEL_MUST_USE;
bel_status *bel_pnm_decode(const bel_image_request *request, bel_image *out_image) BEL_MUST_USE;

// Checks a header's size. DATA_LOSS: it is not positive, or above the limit of the request.
bel_status *bel_image_check_size(const bel_image_request *request, int64_t height,
                                 int64_t width) BEL_MUST_USE;

// Makes an image with uninitialized pixels; free with bel_image_deinit.
bel_image bel_image_make(int64_t height, int64_t width, int64_t channels);

// Converts an image to 1 or 3 channels; takes ownership of it.
bel_image bel_image_with_channels(bel_image image, int64_t channels);

// INVALID_ARGUMENT unless both are in 1 … BEL_IMAGE_MAX_SIDE.
bel_status *bel_image_check_sides(int64_t height, int64_t width) BEL_MUST_USE;

// Scaling of a window of an image to height × width, of which only a part is wanted: rows from
// `part_top` on and columns from `part_left` on. Pixels outside of the window do not contribute.
typedef struct bel_image_scaling {
    int64_t top, left, window_height, window_width; // inside of the image
    int64_t height, width;
    int64_t part_top, part_left, part_height, part_width; // inside of height × width
    bel_image_filter filter;
} bel_image_scaling;

bel_image bel_image_scale(const bel_image *image, const bel_image_scaling *scaling);

#endif
