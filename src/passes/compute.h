// Execution of one operation on its inputs, for constants.
#ifndef BELFRY_PASSES_COMPUTE_H
#define BELFRY_PASSES_COMPUTE_H

#include "graph/graph.h"

// Runs `node` on one thread with the kernels that a program would use. Inputs that it does not read
// (bel_op_reads) may lack elements; outputs have room for theirs. The node has a kernel: it is no
// leaf and no alias. Errors: OUT_OF_RANGE: an index; RESOURCE_EXHAUSTED: no workspace.
bel_status *bel_compute(const bel_node *node, const bel_tensor *inputs, bool reference,
                        bel_tensor *outputs) BEL_MUST_USE;

// True for work that grows faster than its operands: products, windows, steps.
bool bel_compute_is_heavy(bel_op op);

#endif
