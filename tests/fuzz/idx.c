// Fuzz target for IDX files, only images or with labels. The first two bytes are the images'
// length.
#include "fuzz/read_all.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = {data, size};
    size_t wanted = (size_t)fuzz_take(&input, 2), images, labels;
    const uint8_t *image_bytes = fuzz_take_bytes(&input, wanted, &images);
    const uint8_t *label_bytes = fuzz_take_bytes(&input, size, &labels);
    const char *image_path = fuzz_file(0, image_bytes, images);
    const char *label_path = labels > 0 ? fuzz_file(1, label_bytes, labels) : NULL;
    fuzz_read_all(bel_dataset_from_idx(image_path, label_path, 0, 10), false);
    return 0;
}
