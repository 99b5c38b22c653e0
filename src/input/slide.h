// The order in which a buffer that slides over a stream gives its records: tf.data's shuffle.
#ifndef BELFRY_INPUT_SLIDE_H
#define BELFRY_INPUT_SLIDE_H

#include "input/number_list.h"

typedef struct bel_slide {
    int64_t count;       // positions that go in
    int64_t buffer_size; // >= 1
    uint64_t seed;
    int order; // which of the dataset's stages of this kind, so that two of one seed differ
} bel_slide;

// The positions that go in, in the order in which they come out; a bel_epoch_order_make whose
// context is a bel_slide.
bel_status *bel_slide_make(const void *slide, int64_t epoch,
                           bel_number_list *out_positions) BEL_MUST_USE;

#endif
