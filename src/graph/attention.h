// The two forms of bel_attention (belfry/ops.h), which chooses between them. Query, key and value
// are stacks of rank 4; scale 0: 1 / sqrt(d).
#ifndef BELFRY_GRAPH_ATTENTION_H
#define BELFRY_GRAPH_ATTENTION_H

#include "belfry/ops.h"

// Products of stacks of matrices and MaskedSoftmax: keeps all scores for the gradient.
bel_value *bel_attention_composed(bel_graph *graph, bel_value *query, bel_value *key,
                                  bel_value *value, bel_value *mask, bel_value *lengths,
                                  bool causal, double scale);

// One operation, which keeps a number for each query. Does not support a mask.
bel_value *bel_attention_fused(bel_graph *graph, bel_value *query, bel_value *key, bel_value *value,
                               bel_value *lengths, bool causal, double scale);

#endif
