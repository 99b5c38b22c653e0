// In-memory examples for tests that train all of Belfry's models: images, a class, ids for
// tables, and lists of ids with weights.
#ifndef BELFRY_TESTS_SUPPORT_EXAMPLES_H
#define BELFRY_TESTS_SUPPORT_EXAMPLES_H

#include "belfry/belfry.h"

enum { RECORDS = 96, SIZE = 64, CLASSES = 10, IDS = 3, LISTS = 2, MOST = 4 };

// Lists have different lengths, and one is empty. No two fields share an id.
typedef struct bel_test_examples {
    float images[RECORDS][SIZE];
    int64_t labels[RECORDS], ids[RECORDS][IDS], lists[RECORDS][LISTS][MOST];
    float weights[RECORDS][LISTS][MOST];
} bel_test_examples;

void bel_test_examples_make(bel_test_examples *out);

// The first `records` of them as fields x and label, and with `has_ids` also ids, id_lists and
// id_weights.
bel_dataset *bel_test_examples_dataset(bel_test_examples *examples, int64_t records, bool has_ids);

#endif
