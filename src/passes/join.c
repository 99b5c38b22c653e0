// Relu after a product or a convolution becomes a part of it, if it is the only reader. The
// elements are then still in the first-level cache, or in registers. The kernels read it from an
// attribute, and the bits are those of the two operations.
#include "ops/families.h"
#include "passes/rewrite.h"

bel_value *bel_join(bel_rewriter *r, const bel_node *wanted)
{
    if (wanted->op != BEL_OP_RELU || r->reference) return NULL;
    const bel_value *x = wanted->inputs[0];
    const bel_node *node = x->node;
    bool joins = node->op == BEL_OP_GEMM || node->op == BEL_OP_MATMUL || node->op == BEL_OP_CONV;
    if (!joins || x->spec.dtype != BEL_DTYPE_F32 || r->uses[x->id] != 1) return NULL;
    if (node->attrs.count == BEL_OP_MAX_ATTRS || bel_attr_flag(&node->attrs, BEL_ATTR_RELU))
        return NULL;
    bel_attr_list attrs = node->attrs;
    attrs.items[attrs.count++] = (bel_attr){.name = BEL_ATTR_RELU, .number = 1};
    return bel_rewrite_more(r, node, node->op, &attrs, node->inputs, node->input_count);
}
