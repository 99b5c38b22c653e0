// Opens a dataset and reads its first blocks: the last part of the targets for input formats.
#ifndef BELFRY_TESTS_FUZZ_READ_ALL_H
#define BELFRY_TESTS_FUZZ_READ_ALL_H

#include "fuzz/fuzz.h"
#include "input/batch/input.h"

// Takes ownership of the dataset. Batches are padded if `padded`.
static inline void fuzz_read_all(bel_dataset *dataset, bool padded)
{
    enum { BATCH = 3, BLOCKS = 8 };
    if (padded) {
        bel_dataset_padded_batch(dataset, BATCH, NULL, 0);
    } else {
        bel_dataset_batch(dataset, BATCH);
    }
    bel_input *input;
    if (fuzz_is_good(bel_input_open(dataset, NULL, &input))) {
        bel_batch *batch = bel_batch_create(input);
        int64_t blocks = bel_input_block_count(input, true);
        for (int64_t b = 0; b < blocks && b < BLOCKS; b++)
            if (!fuzz_is_good(bel_input_read(input, b, batch))) break;
        bel_batch_destroy(batch);
        bel_input_destroy(input);
    }
    bel_dataset_destroy(dataset);
}

#endif
