// Order of the records from a shuffle buffer that slides over a stream, as in tf.data's shuffle.
#ifndef BELFRY_INPUT_ORDER_SLIDE_H
#define BELFRY_INPUT_ORDER_SLIDE_H

#include "input/files/number_list.h"

typedef struct bel_slide {
    int64_t count;       // input positions
    int64_t buffer_size; // >= 1
    uint64_t seed;
    int order; // index of this stage among its kind, so that two with one seed differ
} bel_slide;

// Lists the input positions in output order. It is a bel_epoch_order_make whose context is a
// bel_slide.
bel_status *bel_slide_make(const void *slide, int64_t epoch,
                           bel_number_list *out_positions) BEL_MUST_USE;

#endif
