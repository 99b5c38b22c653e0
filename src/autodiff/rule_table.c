// Table of gradient rules of all operations, from the same rows as the operations themselves
// (ops.def), so that none can be forgotten. A row without a rule has NULL; a loss that depends on a
// variable through it is an error. The table is in this folder, as a rule builds operations and
// `ops` must not know of graphs.
#include "autodiff/rules.h"
#include "base/check.h"

static bel_gradient_fn *const rules[] = {
#define OP(id, name, domain, min_inputs, max_inputs, outputs, flags, infer, gradient, prepare,     \
           doc)                                                                                    \
    [BEL_OP_##id] = gradient,
#include "ops/ops.def"
#undef OP
};

bel_gradient_fn *bel_gradient_rule(bel_op op)
{
    BEL_CHECK((unsigned)op < BEL_OP_COUNT);
    return rules[op];
}
