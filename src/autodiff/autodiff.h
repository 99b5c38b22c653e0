// Differentiation for training; code that builds a graph by hand has bel_gradients
// (belfry/graph.h).
#ifndef BELFRY_AUTODIFF_AUTODIFF_H
#define BELFRY_AUTODIFF_AUTODIFF_H

#include "graph/graph.h"

// bel_gradients (belfry/graph.h) whose rules read activations, values computed from inputs, as
// rounded to `kept`. BF16 needs half the memory from the forward to the backward pass; F32 keeps
// them unchanged. The forward pass is the same, and gradients are f32.
void bel_gradients_keeping(bel_graph *graph, bel_dtype kept, bel_value *loss,
                           bel_value *const *values, int count, bel_value **out_gradients);

#endif
