// Parameters of normalization by channel, for norm.c and the GPU's cuda/launch_norm.c.
#ifndef BELFRY_OPS_NORM_H
#define BELFRY_OPS_NORM_H

#include "ops/window.h"

// Maximal number of parts of the batch.
enum { BEL_NORM_PARTS = 8 };

// The pixels of a part's images are numbered consecutively and divided into chains of
// `pixels_per_chain`; the last one is shorter. A part's sum is that of its chains' sums, in order;
// a chain adds one element after another. A GPU thus has many chains to process in parallel, and
// the CPU, which processes one part at a time, adds in the same order.
typedef struct bel_channel_norm {
    int64_t n, channels, rows, columns;
    int64_t parts, images_per_part, images_per_tile;
    int64_t pixels_per_chain;
    bel_image_steps u, v, y;
    bool training;
    bool by_sums; // moments are the number of elements, their sum, and that of their squares
    double epsilon, momentum;
} bel_channel_norm;

// Rows of the statistics that MomentsNorm passes to its gradient.
enum { BEL_WHOLE_COUNT, BEL_WHOLE_MEAN, BEL_WHOLE_INVERSE };

#endif
