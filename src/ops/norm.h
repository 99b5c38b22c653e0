// What normalisation by channel leaves in call->params: norm.c's, and the cards' (cuda/norm.c).
#ifndef BELFRY_OPS_NORM_H
#define BELFRY_OPS_NORM_H

#include "ops/window.h"

// Of the batch, at most.
enum { BEL_NORM_PARTS = 8 };

// The pixels of a part's images, counted through, are cut into chains of `pixels_per_chain`, the
// last one shorter. A sum over a part is that of its chains' sums, in order, and each of those one
// addition after another: so a card has many chains to work on at a time, and the CPU, which takes
// a part at a time, adds in the same order.
typedef struct bel_channel_norm {
    int64_t n, channels, rows, columns;
    int64_t parts, images_per_part, images_per_tile;
    int64_t pixels_per_chain;
    bel_image_steps u, v, y;
    bool training;
    bool by_sums; // moments are the number of elements, their sum, and that of their squares
    double epsilon, momentum;
} bel_channel_norm;

// Rows of the statistics that MomentsNorm gives to its gradient.
enum { BEL_WHOLE_COUNT, BEL_WHOLE_MEAN, BEL_WHOLE_INVERSE };

#endif
