// What normalisation by channel leaves in call->params: norm.c's, and the cards' (cuda/norm.c).
#ifndef BELFRY_OPS_NORM_H
#define BELFRY_OPS_NORM_H

#include "ops/window.h"

typedef struct bel_channel_norm {
    int64_t n, channels, rows, columns;
    int64_t parts, images_per_part, images_per_tile;
    bel_image_steps u, v, y;
    bool training;
    bool by_sums; // moments are the number of elements, their sum, and that of their squares
    double epsilon, momentum;
} bel_channel_norm;

// Rows of the statistics that MomentsNorm gives to its gradient.
enum { BEL_WHOLE_COUNT, BEL_WHOLE_MEAN, BEL_WHOLE_INVERSE };

#endif
