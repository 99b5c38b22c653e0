// Concat of parts that all went through the same element-wise operation, each with its constant or
// without one: Concat first, then the operation once, with the constants concatenated. Each element
// meets the same numbers as before. A chain of operations is undone one by one, since the new
// Concat goes through the same rule.
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "ops/kernels/elements.h"
#include "passes/rewrite.h"

// Largest part. A larger one costs more than its call does, and chains of large parts are better
// fused.
enum { PART_ELEMENTS = 4096 };

static bool is_constant(const bel_value *value)
{
    return value->node->op == BEL_OP_CONSTANT && value->node->constant.data != NULL;
}

// Planned rewriting: the operation to put after the Concat (`model`), the input of it that varies,
// and the part and the constant for each input of the Concat. A NULL constant is the neutral
// number.
typedef struct plan {
    const bel_node *concat, *model;
    int varying;
    bel_value *parts[BEL_OP_MAX_INPUTS];
    const bel_tensor *constants[BEL_OP_MAX_INPUTS];
} plan;

// The number that leaves all bits of the operation's other input; false: no such number.
static bool neutral_number(const plan *p, double *out_number)
{
    switch (p->model->op) {
    case BEL_OP_MUL: *out_number = 1; return true;
    case BEL_OP_DIV: *out_number = 1; return p->varying == 0;
    case BEL_OP_ADD: *out_number = -0.0; return true;
    case BEL_OP_SUB: *out_number = 0; return p->varying == 0;
    default: return false;
    }
}

// Whether a part is the result of the operation with a constant, and the Concat is its only reader.
static bool has_operation(const bel_rewriter *r, const plan *p, const bel_value *part)
{
    const bel_node *node = part->node;
    if (node->op != p->model->op || node->input_count != p->model->input_count ||
        p->varying >= node->input_count || !bel_attrs_equal(&node->attrs, &p->model->attrs) ||
        r->uses[part->id] > 1 ||
        node->inputs[p->varying]->spec.dtype != p->model->inputs[p->varying]->spec.dtype ||
        !bel_shape_equal(&node->inputs[p->varying]->spec.shape, &part->spec.shape))
        return false;
    return node->input_count == 1 || is_constant(node->inputs[1 - p->varying]);
}

// Fills parts and constants. At least two parts, and at least half of them, must have the
// operation.
static bool find_parts(const bel_rewriter *r, plan *p)
{
    int count = p->concat->input_count, having = 0;
    double number;
    for (int i = 0; i < count; i++) {
        bel_value *part = p->concat->inputs[i];
        if (bel_shape_elements(&part->spec.shape) > PART_ELEMENTS) return false;
        bool has = has_operation(r, p, part);
        if (!has && !neutral_number(p, &number)) return false;
        bool constant = has && p->model->input_count == 2;
        having += has;
        p->parts[i] = has ? part->node->inputs[p->varying] : part;
        p->constants[i] = constant ? &part->node->inputs[1 - p->varying]->node->constant : NULL;
    }
    return having >= 2 && 2 * having >= count;
}

// The constant of every part, if it is one element with the same bits in all of them; else NULL.
static bel_value *common_constant(const plan *p)
{
    bel_value *common = p->model->inputs[1 - p->varying];
    const bel_tensor *tensor = &common->node->constant;
    if (bel_shape_elements(&tensor->shape) != 1) return NULL;
    for (int i = 0; i < p->concat->input_count; i++) {
        const bel_tensor *other = p->constants[i];
        bool same = other != NULL && bel_shape_elements(&other->shape) == 1 &&
                    memcmp(other->data, tensor->data, bel_dtype_size(tensor->dtype)) == 0;
        if (!same) return NULL;
    }
    return common;
}

static int64_t width_of(const bel_value *part)
{
    return part->spec.shape.dims[part->spec.shape.rank - 1];
}

// Writes the constants of part `i` from element `at` of the row on. False: they are no row.
static bool write_constants(const plan *p, int i, bel_tensor *row, int64_t at)
{
    const bel_tensor *from = p->constants[i];
    double neutral = 0;
    int64_t width = width_of(p->parts[i]), elements = 0;
    if (from == NULL) {
        neutral_number(p, &neutral);
    } else {
        const bel_shape *shape = &from->shape;
        elements = bel_shape_elements(shape);
        bool is_row = shape->rank > 0 && elements == shape->dims[shape->rank - 1];
        if (elements != 1 && !(is_row && elements == width)) return false;
    }
    size_t size = bel_dtype_size(row->dtype);
    for (int64_t k = 0; k < width; k++) {
        if (from == NULL) {
            bel_element_set(row, at + k, neutral);
        } else {
            memcpy((char *)row->data + (size_t)(at + k) * size,
                   (const char *)from->data + (elements == 1 ? 0 : (size_t)k * size), size);
        }
    }
    return true;
}

// A row of the constants of all parts, one after the other along the last dimension. NULL: some are
// no row.
static bel_value *joined_constants(bel_rewriter *r, const plan *p)
{
    int64_t total = 0, at = 0;
    for (int i = 0; i < p->concat->input_count; i++)
        total += width_of(p->parts[i]);
    bel_tensor row = {.dtype = p->parts[0]->spec.dtype, .shape = BEL_SHAPE(total)};
    row.data = bel_xmalloc(bel_tensor_bytes(&row) + 1);
    bool fits = true;
    for (int i = 0; i < p->concat->input_count && fits; i++) {
        fits = write_constants(p, i, &row, at);
        at += width_of(p->parts[i]);
    }
    bel_value *value = NULL;
    if (fits) {
        char *name = bel_strf("%s/constants_%d", p->concat->name, (int)r->to->node_count);
        value = bel_rewrite_constant(r, name, &row, true);
        bel_free(name);
    }
    bel_free(row.data);
    return value;
}

// The other operand of the joined operation, or NULL. A row must be the second of two operands,
// where it has a vector kernel. *out_swap: the operands change places, which they may.
static bel_value *other_operand(bel_rewriter *r, const plan *p, bool *out_swap)
{
    *out_swap = false;
    bel_value *common = common_constant(p);
    if (common != NULL) return common;
    int64_t axis = bel_attr_whole(&p->concat->attrs, "axis", 0);
    if (axis != p->parts[0]->spec.shape.rank - 1 && axis != -1) return NULL;
    *out_swap = p->varying == 1;
    if (*out_swap && p->model->op != BEL_OP_ADD && p->model->op != BEL_OP_MUL) return NULL;
    return joined_constants(r, p);
}

// Builds the Concat and the operation. The operands are in the model's order, unless a row must
// change places. All nodes go through bel_rewrite_more, so the rules see the new Concat in turn.
static bel_value *hoist(bel_rewriter *r, const plan *p)
{
    bel_value *inputs[2];
    bool swap = false;
    int count = p->concat->input_count;
    if (p->model->input_count == 2) {
        inputs[1 - p->varying] = other_operand(r, p, &swap);
        if (inputs[1 - p->varying] == NULL) return NULL;
    }
    r->counts[BEL_PASS_CONCAT] += count;
    inputs[p->varying] =
        bel_rewrite_more(r, p->concat, BEL_OP_CONCAT, &p->concat->attrs, p->parts, count);
    if (swap) {
        bel_value *first = inputs[0];
        inputs[0] = inputs[1];
        inputs[1] = first;
    }
    return bel_rewrite_more(r, p->concat, p->model->op, &p->model->attrs, inputs,
                            p->model->input_count);
}

bel_value *bel_hoist_concat(bel_rewriter *r, const bel_node *wanted)
{
    if (wanted->input_count < 2) return NULL;
    for (int i = 0; i < 2; i++) { // the first part may lack the operation
        plan p = {.concat = wanted, .model = wanted->inputs[i]->node};
        bool elementwise = (bel_op_get(p.model->op)->flags & BEL_OP_ELEMENTWISE) != 0;
        if (!elementwise || p.model->input_count > 2) continue;
        for (p.varying = 0; p.varying < p.model->input_count; p.varying++)
            if (find_parts(r, &p)) return hoist(r, &p);
    }
    return NULL;
}
