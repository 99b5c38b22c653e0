// Cross entropy of a wide product by chunks of rows; only for passes.c.
//
//   before  logits = x · w' [n, classes], losses and log softmax of all rows, gradient of the
//           logits, and of x and w from it
//   after   the same for some rows, then for the next ones; the gradient of w continues from chunk
//           to chunk
//
// A value of all logits thus never exists. Bits stay: a row's numbers depend only on the row, and
// the chains of the gradient of w continue in order of rows. So the size of a chunk has no effect
// on them. The factor dy of the gradient must not depend on losses, only on their shape, as that of
// a mean does.
#ifndef BELFRY_PASSES_CHUNK_H
#define BELFRY_PASSES_CHUNK_H

#include "passes/rewrite.h"

// Nodes of the old graph that become chunks. Those of the gradient are NULL in an evaluation.
typedef struct bel_chunk_match {
    const bel_node *product, *entropy;
    const bel_node *gradient, *x_gradient, *w_gradient;
} bel_chunk_match;

// Finds the nodes around `entropy`. `uses` counts readers by value. `marked`: a flag for each node,
// false at first, and the same array for all of a graph's cross entropies, in order.
bool bel_chunk_find(const bel_graph *graph, const bool *needed, const int *uses,
                    const bel_node *entropy, bool *marked, bel_chunk_match *out_match);

// Returns true if the logits of these operands, in the new graph, are worth chunks.
bool bel_chunk_pays(const bel_value *x, const bel_value *w);

// Sets the value of the losses to a constant without elements, for operations that read its shape.
void bel_chunk_shape(bel_rewriter *r, const bel_chunk_match *match, bel_value **values);

// Builds the chunks, and sets the values of the losses and gradients. `values` has those of the new
// graph by id of the old one, among them all operands.
void bel_chunk_build(bel_rewriter *r, const bel_chunk_match *match, bel_value **values);

#endif
