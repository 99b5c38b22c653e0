// Hidden tokens, which a model learns to guess (Devlin et al. 2018, section 3.1).
#ifndef BELFRY_MODELS_MASKS_H
#define BELFRY_MODELS_MASKS_H

#include "belfry/ops.h"

// Choice in contexts of t tokens: 15 % of them, at least one, to the nearest.
typedef struct bel_masks {
    int64_t count;     // chosen tokens of a context
    bel_value *tokens; // I64 [n, t]: the chosen ones are hidden
    bel_value *labels; // I64 [n, count]: what was there
    bel_value *at;     // F32 [n, count, t]: 1 at the place of a chosen one, 0 elsewhere
} bel_masks;

// Hides tokens [n, t] (I64, below `vocabulary`): of the chosen ones 80 % become `mask`, 10 % any
// token, and 10 % stay. With `random` all is drawn anew in each step; otherwise places, and what
// becomes of them, are the same in all contexts.
void bel_masks_make(bel_graph *graph, bel_value *tokens, int64_t mask, int64_t vocabulary,
                    bool random, bel_masks *out_masks);

#endif
