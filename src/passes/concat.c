// Concat of parts that all went through the same element-wise operation, each with a constant of
// its own or without one: Concat first, then the operation once, with the constants put together.
// Each element meets the same numbers as before. A chain of operations is undone one after the
// other, since the new Concat is asked for in the same way.
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "passes/rewrite.h"

// A part with more elements costs more than its call does, and chains of large parts are better
// fused.
enum { PART_ELEMENTS = 4096 };

static bool is_constant(const bel_value *value)
{
    return value->node->op == BEL_OP_CONSTANT && value->node->constant.data != NULL;
}

// Whether every part is the first one's operation on something of its own shape at input `varying`,
// which nobody else needs.
static bool parts_agree(const bel_rewriter *r, const bel_node *concat, int varying)
{
    const bel_node *first = concat->inputs[0]->node;
    if (varying >= first->input_count) return false;
    for (int i = 0; i < concat->input_count; i++) {
        const bel_value *part = concat->inputs[i];
        const bel_node *node = part->node;
        if (node->op != first->op || node->input_count != first->input_count ||
            !bel_attrs_equal(&node->attrs, &first->attrs) || r->uses[part->id] > 1 ||
            bel_shape_elements(&part->spec.shape) > PART_ELEMENTS ||
            !bel_shape_equal(&node->inputs[varying]->spec.shape, &part->spec.shape))
            return false;
        if (node->input_count == 2 && !is_constant(node->inputs[1 - varying])) return false;
    }
    return true;
}

// The constant of every part, if it is one element with the same bits in all of them.
static bel_value *common_constant(const bel_node *concat, int varying)
{
    bel_value *common = concat->inputs[0]->node->inputs[1 - varying];
    const bel_tensor *tensor = &common->node->constant;
    if (bel_shape_elements(&tensor->shape) != 1) return NULL;
    for (int i = 1; i < concat->input_count; i++) {
        const bel_tensor *other = &concat->inputs[i]->node->inputs[1 - varying]->node->constant;
        bool same = bel_shape_elements(&other->shape) == 1 &&
                    memcmp(other->data, tensor->data, bel_dtype_size(tensor->dtype)) == 0;
        if (!same) return NULL;
    }
    return common;
}

// A row: the constants of all parts, one behind the other along the last dimension. NULL: one of
// them is no row.
static bel_value *joined_constants(bel_rewriter *r, const bel_node *concat, int varying)
{
    int64_t total = 0;
    for (int i = 0; i < concat->input_count; i++) {
        const bel_shape *part = &concat->inputs[i]->spec.shape;
        int64_t width = part->dims[part->rank - 1];
        const bel_value *value = concat->inputs[i]->node->inputs[1 - varying];
        const bel_shape *have = &value->spec.shape;
        int64_t elements = bel_shape_elements(have);
        bool row = have->rank > 0 && elements == width && have->dims[have->rank - 1] == width;
        if (elements != 1 && !row) return NULL;
        total += width;
    }
    bel_tensor joined = {.dtype = concat->inputs[0]->spec.dtype, .shape = BEL_SHAPE(total)};
    size_t size = bel_dtype_size(joined.dtype);
    char *to = joined.data = bel_xmalloc((size_t)total * size + 1);
    for (int i = 0; i < concat->input_count; i++) {
        const bel_tensor *constant = &concat->inputs[i]->node->inputs[1 - varying]->node->constant;
        const bel_shape *part = &concat->inputs[i]->spec.shape;
        bool single = bel_shape_elements(&constant->shape) == 1;
        for (int64_t k = 0; k < part->dims[part->rank - 1]; k++, to += size)
            memcpy(to, (const char *)constant->data + (single ? 0 : (size_t)k * size), size);
    }
    char *name = bel_strf("%s/constants_%d", concat->name, (int)r->to->node_count);
    bel_value *value = bel_rewrite_constant(r, name, &joined, true);
    bel_free(name);
    bel_free(joined.data);
    return value;
}

// What stands beside the joined parts, or NULL. A row must be the second of two operands, where it
// has a vector kernel; *out_swap: so the operands change places, as they may.
static bel_value *other_operand(bel_rewriter *r, const bel_node *concat, int varying,
                                bool *out_swap)
{
    *out_swap = false;
    bel_value *common = common_constant(concat, varying);
    if (common != NULL) return common;
    int32_t rank = concat->inputs[0]->spec.shape.rank;
    int64_t axis = (int64_t)bel_attr_number(&concat->attrs, "axis", 0);
    bel_op op = concat->inputs[0]->node->op;
    if (axis != rank - 1 && axis != -1) return NULL;
    *out_swap = varying == 1;
    if (*out_swap && op != BEL_OP_ADD && op != BEL_OP_MUL) return NULL;
    return joined_constants(r, concat, varying);
}

static bel_value *hoist(bel_rewriter *r, const bel_node *concat, int varying)
{
    const bel_node *first = concat->inputs[0]->node;
    bel_value *inputs[2], *parts[BEL_OP_MAX_INPUTS];
    bool swap = false;
    int other = 1 - varying;
    if (first->input_count == 2) {
        inputs[other] = other_operand(r, concat, varying, &swap);
        if (inputs[other] == NULL) return NULL;
    }
    for (int i = 0; i < concat->input_count; i++)
        parts[i] = concat->inputs[i]->node->inputs[varying];
    r->counts[BEL_PASS_CONCAT] += concat->input_count;
    inputs[varying] =
        bel_rewrite_more(r, concat, BEL_OP_CONCAT, &concat->attrs, parts, concat->input_count);
    if (swap) {
        bel_value *kept = inputs[0];
        inputs[0] = inputs[1];
        inputs[1] = kept;
    }
    return bel_rewrite_more(r, concat, first->op, &first->attrs, inputs, first->input_count);
}

bel_value *bel_hoist_concat(bel_rewriter *r, const bel_node *wanted)
{
    const bel_node *first = wanted->inputs[0]->node;
    bool elementwise = (bel_op_get(first->op)->flags & BEL_OP_ELEMENTWISE) != 0;
    if (wanted->input_count < 2 || !elementwise || first->input_count > 2) return NULL;
    for (int varying = 0; varying < 2; varying++)
        if (parts_agree(r, wanted, varying)) return hoist(r, wanted, varying);
    return NULL;
}
