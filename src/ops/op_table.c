// Table of operations, from ops.def, and the inputs that an operation reads. bel_op_reads must
// match the kernels: passes remove the elements of an unread input, and recomputation does not
// count it as a reader. A kernel that reads one anyway finds NULL. An unread input that is not
// listed here only lives longer than necessary.

#include "base/check.h"
#include "ops/families.h"

// A small library links everything that it mentions, so it must not mention operations that its
// builder did not name (cmake/small.cmake) or, if it only runs models (BEL_INFERENCE), operations
// of training.
#if defined(BEL_SMALL)
#include "ops_kept.h"
#if defined(BEL_INFERENCE)
#define LEFT_OUT BEL_OP_TRAINING
#else
#define LEFT_OUT 0
#endif
#define KEPT(type, id, flags, function)                                                            \
    (((flags)&LEFT_OUT) != 0 || !BEL_KEPT_##id ? (type *)NULL : (function))
#else
#define KEPT(type, id, flags, function) (function)
#endif

static const bel_op_def table[] = {
#define OP(id, name, domain, min_inputs, max_inputs, outputs, flags, infer, gradient, prepare,     \
           doc)                                                                                    \
    [BEL_OP_##id] = {name,                                                                         \
                     domain,                                                                       \
                     min_inputs,                                                                   \
                     max_inputs,                                                                   \
                     outputs,                                                                      \
                     flags,                                                                        \
                     KEPT(bel_infer_fn, id, flags, infer),                                         \
                     KEPT(bel_prepare_fn, id, flags, prepare)},
#include "ops/ops.def"
#undef OP
};

const bel_op_def *bel_op_get(bel_op op)
{
    BEL_CHECK((unsigned)op < BEL_OP_COUNT);
    return &table[op];
}

bool bel_op_reads(bel_op op, int input)
{
    switch (op) {
    case BEL_OP_RANDOM_UNIFORM:
    case BEL_OP_RANDOM_NORMAL:
    case BEL_OP_COUNT_RATIO: return false;
    case BEL_OP_SUM_TO:
    case BEL_OP_BROADCAST_TO:
    case BEL_OP_RESHAPE_LIKE:
    case BEL_OP_EXPAND:
    case BEL_OP_SLICE_GRAD:
    case BEL_OP_PAD_GRAD:
    case BEL_OP_AVERAGE_POOL_GRAD: return input != 1;
    case BEL_OP_GATHER_GRAD:
    case BEL_OP_GATHER_ELEMENTS_GRAD:
    case BEL_OP_CONV_GRAD_INPUT:
    case BEL_OP_CONV_GRAD_WEIGHTS: return input != 2;
    default: return true;
    }
}

int bel_op_overwrites(bel_op op, const bel_attr_list *attrs, int output)
{
    if (op == BEL_OP_SOFTMAX_CROSS_ENTROPY) return output == 1 ? 0 : -1; // logits, log softmax
    if (output != 0) return -1;
    if (op == BEL_OP_CROSS_ENTROPY_GRAD) return 1;
    if (op == BEL_OP_GEMM && bel_attr_flag(attrs, BEL_ATTR_CONTINUES)) return 2;
    return (bel_op_get(op)->flags & BEL_OP_INPLACE) != 0 ? 0 : -1;
}
