// Differentiation for the room that trains; whoever builds a graph by hand has bel_gradients
// (belfry/graph.h).
#ifndef BELFRY_AUTODIFF_AUTODIFF_H
#define BELFRY_AUTODIFF_AUTODIFF_H

#include "graph/graph.h"

// bel_gradients (belfry/graph.h) that read activations, what was computed from inputs, as rounded
// to `kept`: BF16, so that half as much is kept from the forward to the backward pass, or F32, as
// they are. The forward pass is the same, and gradients are f32.
void bel_gradients_keeping(bel_graph *graph, bel_dtype kept, bel_value *loss,
                           bel_value *const *values, int count, bel_value **out_gradients);

#endif
