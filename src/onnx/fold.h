// Computing constants while a model is built.
#ifndef BELFRY_ONNX_FOLD_H
#define BELFRY_ONNX_FOLD_H

#include "graph/graph.h"

// Runs `graph`, which has no inputs and no variables, and puts values[count] (NULLs stay) into `to`
// as constants. *out_done is false, and nothing has changed, where that would take long (a value of
// more than BEL_ONNX_CONSTANT_ELEMENTS, of much fewer in a product) or the values are random.
// Errors as of bel_compute.
bel_status *bel_onnx_compute(const bel_graph *graph, bel_value **values, int count, bel_graph *to,
                             bool *out_done) BEL_MUST_USE;

#endif
