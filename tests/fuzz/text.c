// Fuzz target for lines of text, and ids of their words.
#include "belfry/features.h"
#include "fuzz/read_all.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = {data, size};
    unsigned first = (unsigned)fuzz_take(&input, 1);
    size_t count;
    const uint8_t *bytes = fuzz_take_bytes(&input, size, &count);
    const char *path = fuzz_file(0, bytes, count);
    bel_dataset *dataset = bel_dataset_from_text(&path, 1);
    bel_dataset_map_words(dataset, &(bel_words_options){.size = sizeof(bel_words_options),
                                                        .ngrams = 1 + (int64_t)(first & 3),
                                                        .max_count = first & 4 ? 3 : 0,
                                                        .keep_case = (first & 8) != 0});
    fuzz_read_all(dataset, true);
    return 0;
}
