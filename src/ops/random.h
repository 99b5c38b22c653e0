// Parameters of operations that draw random numbers.
#ifndef BELFRY_OPS_RANDOM_H
#define BELFRY_OPS_RANDOM_H

#include <stdbool.h>

// Purposes of the numbers, for bel_rng_key_make.
#define BEL_PURPOSE_UNIFORM "uniform"
#define BEL_PURPOSE_NORMAL "normal"
#define BEL_PURPOSE_DROPOUT "dropout"

// RandomUniform, RandomNormal: the offset and the factor of the random number.
typedef struct bel_random_params {
    double first, factor;
} bel_random_params;

// Dropout and its gradient.
typedef struct bel_dropout_params {
    double ratio;
    bool fast; // in f32, not in double
} bel_dropout_params;

#endif
