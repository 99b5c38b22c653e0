// A separate generator makes the numbers, so that a test's results do not depend on Belfry's.
#include "support/examples.h"

void bel_test_examples_make(bel_test_examples *out)
{
    unsigned at = 1;
    for (int i = 0; i < RECORDS; i++) {
        out->labels[i] = i * 7 % CLASSES;
        for (int p = 0; p < SIZE; p++) {
            at = at * 1664525u + 1013904223u;
            out->images[i][p] = (float)(at >> 24) / 255.0F + (float)(p == out->labels[i] * 6);
        }
        for (int f = 0; f < IDS; f++)
            out->ids[i][f] = (int64_t)1000003 * f - 17 * (i * (f + 1) % 11);
        for (int l = 0; l < LISTS; l++)
            for (int m = 0; m < MOST; m++) {
                out->lists[i][l][m] = m < i % (MOST + 1) ? 500 + (i + m * 3 + l) % 13 : BEL_NO_ID;
                out->weights[i][l][m] = 0.5F + (float)m;
            }
    }
}

bel_dataset *bel_test_examples_dataset(bel_test_examples *examples, int64_t records, bool has_ids)
{
    const bel_memory_field fields[] = {
        {"x", {BEL_DTYPE_F32, BEL_SHAPE(records, SIZE), examples->images}},
        {"label", {BEL_DTYPE_I64, BEL_SHAPE(records), examples->labels}},
        {"ids", {BEL_DTYPE_I64, BEL_SHAPE(records, IDS), examples->ids}},
        {"id_lists", {BEL_DTYPE_I64, BEL_SHAPE(records, LISTS, MOST), examples->lists}},
        {"id_weights", {BEL_DTYPE_F32, BEL_SHAPE(records, LISTS, MOST), examples->weights}},
    };
    return bel_dataset_from_memory(fields, has_ids ? 5 : 2);
}
