// The table of operations, from ops.def, and which inputs an operation reads. bel_op_reads must
// say what the kernels do: passes take the elements away from an input that is not read, and
// recomputation does not count it as a reader. A kernel that reads one nevertheless meets a
// NULL; an input that is not listed here merely lives longer than it need.

#include "base/check.h"
#include "ops/families.h"

// What a small library leaves out must not be mentioned, or it is linked: what its builder has
// named (cmake/small.cmake), and where models are only run (BEL_INFERENCE) what training alone
// makes.
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
                     KEPT(bel_prepare_fn, id, flags, prepare),                                     \
                     doc},
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
