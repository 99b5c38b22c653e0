// Fuzz target for PNG, JPEG, PGM and PPM files, up to a million pixels. The first byte chooses
// between one channel and all, and between a part of the size and the full one.
#include "belfry/features.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = {data, size};
    unsigned first = (unsigned)fuzz_take(&input, 1);
    bel_image_read_options options = {
        .size = sizeof options, .channels = first & 1 ? 1 : 3, .max_pixels = 1 << 20};
    if (first & 2) options.enough_height = options.enough_width = 4;
    size_t count;
    const uint8_t *bytes = fuzz_take_bytes(&input, size, &count);
    bel_image image;
    if (!fuzz_is_good(bel_image_parse(bytes, count, "x.png", &options, &image))) return 0;
    fuzz_expect(image.channels == options.channels && image.height > 0 && image.width > 0 &&
                    image.height * image.width <= options.max_pixels,
                "an image as it was asked for");
    volatile uint8_t last = image.pixels[image.height * image.width * image.channels - 1];
    (void)last;
    bel_image_deinit(&image);
    return 0;
}
