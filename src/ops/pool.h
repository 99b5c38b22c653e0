// Parameters of pools and their gradients, for pool.c and the GPU's cuda/launch_pool.c.
#ifndef BELFRY_OPS_POOL_H
#define BELFRY_OPS_POOL_H

#include "ops/window.h"

typedef struct bel_pool_run bel_pool_run; // channels at one window: pool.c

typedef struct bel_pool {
    bel_window window;
    bool gradient, count_include_pad;
    int64_t n, channels, images_per_tile;
    bel_image_steps x_steps, dx_steps;
    bel_image_steps y_steps, top_steps; // y or dy; y as an input of MaxPoolGrad
    void (*run)(const bel_pool_run *run);
} bel_pool;

#endif
