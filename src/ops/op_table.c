// The table of operations, from ops.def, and attribute look-up.
#include <string.h>

#include "base/check.h"
#include "ops/families.h"

static const bel_op_def table[] = {
#define OP(id, name, domain, min_inputs, max_inputs, outputs, flags, infer, gradient, prepare,     \
           doc)                                                                                    \
    [BEL_OP_##id] = {name, domain, min_inputs, max_inputs, outputs, flags, infer, prepare, doc},
#include "ops/ops.def"
#undef OP
};

const bel_op_def *bel_op_get(bel_op op)
{
    BEL_CHECK((unsigned)op < BEL_OP_COUNT);
    return &table[op];
}

static const bel_attr *find_attr(const bel_attr_list *attrs, const char *name)
{
    for (int i = 0; i < attrs->count; i++)
        if (strcmp(attrs->items[i].name, name) == 0) return &attrs->items[i];
    return NULL;
}

double bel_attr_number(const bel_attr_list *attrs, const char *name, double otherwise)
{
    const bel_attr *attr = find_attr(attrs, name);
    return attr == NULL ? otherwise : attr->number;
}

const bel_shape *bel_attr_ints(const bel_attr_list *attrs, const char *name)
{
    const bel_attr *attr = find_attr(attrs, name);
    return attr == NULL ? NULL : &attr->ints;
}

static bool same_attr(const bel_attr *a, const bel_attr *b)
{
    return strcmp(a->name, b->name) == 0 && memcmp(&a->number, &b->number, sizeof a->number) == 0 &&
           bel_shape_equal(&a->ints, &b->ints) && a->fused == b->fused;
}

bool bel_attrs_equal(const bel_attr_list *a, const bel_attr_list *b)
{
    bool equal = a->count == b->count;
    for (int i = 0; equal && i < a->count; i++)
        equal = same_attr(&a->items[i], &b->items[i]);
    return equal;
}

bool bel_op_reads(bel_op op, int input)
{
    switch (op) {
    case BEL_OP_COUNT_RATIO: return false;
    case BEL_OP_SUM_TO:
    case BEL_OP_BROADCAST_TO:
    case BEL_OP_RESHAPE_LIKE:
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

void bel_kernel_report(const bel_kernel_call *call, int64_t bad_value, int64_t limit)
{
    bel_kernel_report_range(call, bad_value, 0, limit);
}

void bel_kernel_report_range(const bel_kernel_call *call, int64_t bad_value, int64_t low,
                             int64_t limit)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&call->context->error, &none, call->index + 1)) return;
    call->context->bad_value = bad_value;
    call->context->bad_low = low;
    call->context->bad_limit = limit;
}
