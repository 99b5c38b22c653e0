// Look-up of attributes, and reports of invalid data from inside a kernel, for every family.
// Numbers are equal by their bits, so 0 differs from -0 and NaN equals itself; descriptions of
// Fused are equal by address. Among several invalid elements the one that wins the exchange is
// kept, and only it writes the other fields, which are read after the run. The choice may depend on
// threads: it names the mistake and is part of no result.
#include <string.h>

#include "ops/kernels/elements.h"

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

int64_t bel_attr_whole(const bel_attr_list *attrs, const char *name, int64_t otherwise)
{
    const int64_t most = INT64_C(1) << 53;
    return bel_whole_of(bel_attr_number(attrs, name, (double)otherwise), -most, most);
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
