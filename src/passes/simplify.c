// Removal of operations that have no effect or undo each other. Every rule keeps the bits, the sign
// of a zero included; only a NaN may become another NaN. So x + 0 stays where x is a float: -0 + 0
// is 0. A rule returns a value of the new graph with the type and the shape of the result, or NULL.
// A Reshape to no elements stays, since a 0 in its attribute means "copied".
#include <string.h>

#include "ops/kernels/elements.h"
#include "passes/rewrite.h"

// --- Numbers -------------------------------------------------------------------------------------

// True when `value` is a constant single element of this number, with the same sign of a zero.
static bool is_number(const bel_value *value, double number)
{
    const bel_tensor *tensor = &value->node->constant;
    if (value->node->op != BEL_OP_CONSTANT || tensor->data == NULL) return false;
    if (tensor->dtype == BEL_DTYPE_STRING || bel_shape_elements(&tensor->shape) != 1) return false;
    double have = bel_element_get(tensor, 0);
    return memcmp(&have, &number, sizeof have) == 0;
}

// Neutral second operand of `op`. For a sum of floats that is -0, as -0 + 0 is 0.
static bool is_neutral(bel_op op, const bel_value *second)
{
    bool whole = bel_element_is_whole(second->spec.dtype);
    switch (op) {
    case BEL_OP_MUL:
    case BEL_OP_DIV: return is_number(second, 1);
    case BEL_OP_SUB: return is_number(second, 0);
    case BEL_OP_ADD: return is_number(second, whole ? 0 : -0.0);
    default: return false;
    }
}

// x · 1, 1 · x, x / 1, x - 0, x + -0; x + 0 only for integers.
static bel_value *simplify_neutral(const bel_node *wanted, const bel_spec *result)
{
    bool commutes = wanted->op == BEL_OP_MUL || wanted->op == BEL_OP_ADD;
    for (int i = 0; i < (commutes ? 2 : 1); i++) {
        bel_value *x = wanted->inputs[i];
        if (is_neutral(wanted->op, wanted->inputs[1 - i]) &&
            bel_shape_equal(&x->spec.shape, &result->shape))
            return x;
    }
    return NULL;
}

// Removes the repetition of one element beside an operand of the result's shape: the operation
// repeats it anyway.
static bel_value *unrepeated(bel_rewriter *r, const bel_node *wanted, const bel_spec *result)
{
    for (int i = 0; i < 2; i++) {
        const bel_node *node = wanted->inputs[i]->node;
        bel_value *inputs[] = {wanted->inputs[0], wanted->inputs[1]};
        if (node->op != BEL_OP_BROADCAST_TO && node->op != BEL_OP_EXPAND) continue;
        if (bel_shape_elements(&node->inputs[0]->spec.shape) != 1) continue;
        if (node->inputs[0]->spec.shape.rank > result->shape.rank) continue;
        if (!bel_shape_equal(&inputs[1 - i]->spec.shape, &result->shape)) continue;
        inputs[i] = node->inputs[0];
        return bel_rewrite_more(r, wanted, wanted->op, &wanted->attrs, inputs, 2);
    }
    return NULL;
}

static bel_value *arithmetic(bel_rewriter *r, const bel_node *wanted, const bel_spec *result)
{
    bel_value *x = simplify_neutral(wanted, result);
    return x != NULL ? x : unrepeated(r, wanted, result);
}

// --- Shapes --------------------------------------------------------------------------------------

// A chain of Reshapes becomes one.
static bel_value *simplify_reshape(bel_rewriter *r, const bel_node *wanted, const bel_spec *result)
{
    bel_value *x = wanted->inputs[0];
    while (x->node->op == BEL_OP_RESHAPE)
        x = x->node->inputs[0];
    if (bel_shape_equal(&x->spec.shape, &result->shape)) return x;
    bool simple = wanted->op == BEL_OP_RESHAPE && x == wanted->inputs[0];
    if (simple || bel_shape_elements(&result->shape) == 0)
        return NULL; // 0 has another meaning there
    bel_attr_list attrs = {.count = 1, .items = {{.name = "shape", .ints = result->shape}}};
    return bel_rewrite_more(r, wanted, BEL_OP_RESHAPE, &attrs, &x, 1);
}

// Two of them become one: dimension d of the result is dimension perm[d] of x, which is dimension
// first[perm[d]] of the input of x.
static bel_value *simplify_transpose(bel_rewriter *r, const bel_node *wanted)
{
    bel_value *x = wanted->inputs[0];
    bel_shape permutation = *bel_attr_ints(&wanted->attrs, "perm");
    bool twice = x->node->op == BEL_OP_TRANSPOSE, moves = false;
    if (twice) {
        const bel_shape *first = bel_attr_ints(&x->node->attrs, "perm");
        for (int32_t d = 0; d < permutation.rank; d++)
            permutation.dims[d] = first->dims[permutation.dims[d]];
        x = x->node->inputs[0];
    }
    for (int32_t d = 0; d < permutation.rank; d++)
        moves = moves || permutation.dims[d] != d;
    if (!moves) return x;
    if (!twice) return NULL;
    bel_attr_list attrs = {.count = 1, .items = {{.name = "perm", .ints = permutation}}};
    return bel_rewrite_more(r, wanted, BEL_OP_TRANSPOSE, &attrs, &x, 1);
}

static bool goes_forward(const bel_node *slice)
{
    const bel_shape *steps = bel_attr_ints(&slice->attrs, "steps");
    for (int32_t i = 0; steps != NULL && i < steps->rank; i++)
        if (steps->dims[i] < 0) return false;
    return true;
}

static bool is_zero(const bel_shape *list)
{
    for (int32_t i = 0; list != NULL && i < list->rank; i++)
        if (list->dims[i] != 0) return false;
    return true;
}

// True when the result is input 0, given that both have the same shape.
static bool is_same(const bel_node *wanted)
{
    switch (wanted->op) {
    case BEL_OP_IDENTITY:
    case BEL_OP_EXPAND:
    case BEL_OP_BROADCAST_TO:
    case BEL_OP_CAST: return true;
    case BEL_OP_CONCAT: return wanted->input_count == 1;
    case BEL_OP_SLICE: return goes_forward(wanted);
    case BEL_OP_PAD:
        return is_zero(bel_attr_ints(&wanted->attrs, "pads_before")) &&
               is_zero(bel_attr_ints(&wanted->attrs, "pads_behind"));
    default: return false;
    }
}

bel_value *bel_simplify(bel_rewriter *r, const bel_node *wanted, const bel_spec *result)
{
    if (wanted->input_count == 0) return NULL; // an operation without inputs: the step number
    bel_value *x = wanted->inputs[0];
    bool same_spec =
        x->spec.dtype == result->dtype && bel_shape_equal(&x->spec.shape, &result->shape);
    if (same_spec && is_same(wanted)) return x;
    switch (wanted->op) {
    case BEL_OP_ADD:
    case BEL_OP_SUB:
    case BEL_OP_MUL:
    case BEL_OP_DIV: return arithmetic(r, wanted, result);
    case BEL_OP_NEG: return x->node->op == BEL_OP_NEG ? x->node->inputs[0] : NULL;
    case BEL_OP_TRANSPOSE: return simplify_transpose(r, wanted);
    case BEL_OP_RESHAPE:
    case BEL_OP_RESHAPE_LIKE:
    case BEL_OP_FLATTEN:
    case BEL_OP_SQUEEZE:
    case BEL_OP_UNSQUEEZE: return simplify_reshape(r, wanted, result);
    default: return NULL;
    }
}
