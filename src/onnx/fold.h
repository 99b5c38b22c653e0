// Constant folding during the construction of a model.
#ifndef BELFRY_ONNX_FOLD_H
#define BELFRY_ONNX_FOLD_H

#include "graph/graph.h"

// Runs `graph`, which has no inputs and no variables, and adds values[count] (NULLs stay) to `to`
// as constants. *out_done is false, and nothing has changed, if that would take long or the values
// are random. (It takes long if a value exceeds BEL_ONNX_CONSTANT_ELEMENTS, or a much lower limit
// with a product.) Errors as of bel_compute.
bel_status *bel_onnx_compute(const bel_graph *graph, bel_value **values, int count, bel_graph *to,
                             bool *out_done) BEL_MUST_USE;

#endif
