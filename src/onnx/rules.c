// Table of operators, and access to a node's inputs and attributes by its row. Rows of an operator
// are in ascending order of version; the last one that is not newer than the node's opset applies.
// An attribute that the row does not list is refused, since ignoring it would change the result.
// Integers are limited to 2^53, because attributes of Belfry's operations are doubles. Only the
// rows have defaults.
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/str.h"
#include "onnx/make.h"
#include "ops/kernels/elements.h"

#define ATTR(name, kind, otherwise)                                                                \
    {                                                                                              \
        name, kind, otherwise                                                                      \
    }
#define INT(name, otherwise) ATTR(name, BEL_ONNX_INT, otherwise)
#define FLOAT(name, otherwise) ATTR(name, BEL_ONNX_FLOAT, otherwise)
#define INTS(name) ATTR(name, BEL_ONNX_INTS, 0)
#define FLOATS(name) ATTR(name, BEL_ONNX_FLOATS, 0)
#define TEXT(name) ATTR(name, BEL_ONNX_STRING, 0)
#define TEXTS(name) ATTR(name, BEL_ONNX_STRINGS, 0)
#define TENSOR(name) ATTR(name, BEL_ONNX_TENSOR, 0)
#define GRAPH(name) ATTR(name, BEL_ONNX_GRAPH, 0)
#define NONE ATTR(NULL, BEL_ONNX_INT, 0) // also the end of every list

// ops.def has the operations' numbers of inputs; -1 refers to it.
static const bel_onnx_rule rules[] = {
#define SAME(name, since, id, ...)                                                                 \
    {name, since, -1, -1, NULL, BEL_OP_##id, {__VA_ARGS__, NONE}, false},
#define MADE(name, since, min_inputs, max_inputs, function, ...)                                   \
    {name, since, min_inputs, max_inputs, bel_onnx_##function, BEL_OP_COUNT, {__VA_ARGS__, NONE},  \
     false},
#define OWN(name, id, ...) {name, 1, -1, -1, NULL, BEL_OP_##id, {__VA_ARGS__, NONE}, true},
#include "onnx/operators.def"
};

// --- Finding -------------------------------------------------------------------------------------

// Functions of a Belfry operation have a number after its name.
static bool has_name(const bel_onnx_rule *rule, const char *op)
{
    size_t length = strlen(rule->name);
    if (strncmp(rule->name, op, length) != 0) return false;
    if (op[length] == '\0') return true;
    const char *digits = op + length + 1;
    return rule->own && op[length] == '_' && digits[0] != '\0' &&
           strspn(digits, "0123456789") == strlen(digits);
}

// Finds the row that applies, and the oldest one; NULL: no such row.
static const bel_onnx_rule *look_up(const char *domain, const char *op, int version,
                                    const bel_onnx_rule **out_oldest)
{
    const bel_onnx_rule *found = NULL, *oldest = NULL;
    bool own = strcmp(domain, BEL_ONNX_OWN_DOMAIN) == 0;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && (own || domain[0] == '\0'); i++) {
        if (rules[i].own != own || !has_name(&rules[i], op)) continue;
        if (oldest == NULL) oldest = &rules[i];
        if (rules[i].since <= version) found = &rules[i];
    }
    *out_oldest = oldest;
    return found;
}

const bel_onnx_rule *bel_onnx_rule_of(const char *domain, const char *op, int version)
{
    const bel_onnx_rule *oldest;
    return look_up(domain, op, version, &oldest);
}

static bel_status *rules_find(const bel_onnx_node *node, const bel_onnx_rule **out_rule)
{
    const bel_onnx_rule *oldest;
    const bel_onnx_rule *found = look_up(node->domain, node->op, node->version, &oldest);
    if (oldest == NULL) return BEL_ERR(BEL_UNIMPLEMENTED, "Belfry has no such operator");
    if (found == NULL) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "it is of opset %d, and Belfry reads it from %d on",
                       node->version, oldest->since);
    }
    *out_rule = found;
    return NULL;
}

static bel_status *check_inputs(const bel_onnx_node *node, const bel_onnx_rule *rule)
{
    bool same = rule->make == NULL;
    int low = same ? bel_op_get(rule->op)->min_inputs : rule->min_inputs;
    int high = same ? bel_op_get(rule->op)->max_inputs : rule->max_inputs;
    if (node->input_count < low || node->input_count > high) {
        return BEL_ERR(BEL_DATA_LOSS, "it has %d inputs, expected %d to %d", node->input_count, low,
                       high);
    }
    for (int i = 0; i < low; i++)
        if (node->inputs[i] < 0) return BEL_ERR(BEL_DATA_LOSS, "its input %d is left out", i);
    return NULL;
}

static const bel_onnx_attr_rule *find_attr_rule(const bel_onnx_rule *rule, const char *name)
{
    for (const bel_onnx_attr_rule *attr = rule->attrs; attr->name != NULL; attr++)
        if (strcmp(attr->name, name) == 0) return attr;
    return NULL;
}

static bel_status *check_attr(const bel_onnx_attr *attr, const bel_onnx_rule *rule)
{
    const int64_t limit = INT64_C(1) << 53; // attributes of operations are doubles
    const bel_onnx_attr_rule *expected = find_attr_rule(rule, attr->name);
    if (expected == NULL) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "Belfry does not know this attribute in opset %d",
                       rule->since);
    }
    if (attr->kind != expected->kind) {
        return BEL_ERR(BEL_DATA_LOSS, "it has type %d, expected %d", (int)attr->kind,
                       (int)expected->kind);
    }
    bool one = attr->kind != BEL_ONNX_TENSOR || bel_shape_elements(&attr->tensor.shape) == 1;
    if (rule->own && !one) return BEL_ERR(BEL_DATA_LOSS, "expected a tensor of one element");
    if (attr->kind == BEL_ONNX_INT && (attr->integer > limit || attr->integer < -limit)) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "%lld is beyond 2^53", (long long)attr->integer);
    }
    return NULL;
}

bel_status *bel_onnx_find_rule(const bel_onnx_node *node, const bel_onnx_rule **out_rule)
{
    const bel_onnx_rule *rule = NULL;
    BEL_TRY(rules_find(node, &rule));
    BEL_TRY(check_inputs(node, rule));
    for (int i = 0; i < node->attr_count; i++)
        BEL_TRY_CTX(check_attr(&node->attrs[i], rule), "attribute \"%s\"", node->attrs[i].name);
    *out_rule = rule;
    return NULL;
}

// --- Attributes ----------------------------------------------------------------------------------

const bel_onnx_attr *bel_onnx_find_attr(const bel_onnx_call *call, const char *name)
{
    for (int i = 0; i < call->node->attr_count; i++)
        if (strcmp(call->node->attrs[i].name, name) == 0) return &call->node->attrs[i];
    return NULL;
}

// ONNX's attributes are floats, Belfry's are doubles. A float written for 1e-5 means that number.
// So this returns the shortest decimal number whose nearest float it is.
static double exact(float number)
{
    char text[BEL_F32_TEXT];
    double value = (double)number;
    return isfinite(number) && bel_parse_f64(text, bel_format_f32(number, text), &value)
               ? value
               : (double)number;
}

double bel_onnx_number(const bel_onnx_call *call, const char *name)
{
    const bel_onnx_attr *attr = bel_onnx_find_attr(call, name);
    if (attr == NULL) {
        const bel_onnx_attr_rule *rule = find_attr_rule(call->rule, name);
        return rule == NULL ? 0 : rule->otherwise;
    }
    switch (attr->kind) {
    case BEL_ONNX_INT: return (double)attr->integer;
    case BEL_ONNX_TENSOR: return bel_element_get(&attr->tensor, 0);
    default: return exact(attr->number);
    }
}

int64_t bel_onnx_int(const bel_onnx_call *call, const char *name)
{
    return (int64_t)bel_onnx_number(call, name);
}

const char *bel_onnx_text(const bel_onnx_call *call, const char *name, const char *otherwise)
{
    const bel_onnx_attr *attr = bel_onnx_find_attr(call, name);
    return attr == NULL ? otherwise : attr->text;
}

bel_status *bel_onnx_ints(const bel_onnx_call *call, const char *name, bel_shape *out_ints)
{
    const bel_onnx_attr *attr = bel_onnx_find_attr(call, name);
    bel_shape ints = {.rank = 0};
    if (attr != NULL && attr->list_count > BEL_MAX_RANK) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "attribute \"%s\" has %zu numbers, at most %d are read",
                       name, attr->list_count, BEL_MAX_RANK);
    }
    for (size_t i = 0; attr != NULL && i < attr->list_count; i++)
        ints.dims[ints.rank++] = attr->integers[i];
    *out_ints = ints;
    return NULL;
}

bel_status *bel_onnx_choice(const bel_onnx_call *call, const char *name, const char *const *names,
                            int count, int *out_choice)
{
    const char *text = bel_onnx_text(call, name, names[0]);
    for (int i = 0; i < count; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *out_choice = i;
        return NULL;
    }
    return BEL_ERR(BEL_UNIMPLEMENTED, "attribute \"%s\" is \"%.40s\", which Belfry lacks", name,
                   text);
}

// --- Known inputs --------------------------------------------------------------------------------

bel_status *bel_onnx_known_ints(bel_onnx_call *call, int input, bel_shape *out_ints)
{
    bel_tensor tensor;
    BEL_TRY(bel_onnx_known(call, input, &tensor));
    int64_t count = bel_shape_elements(&tensor.shape);
    bool whole = tensor.dtype == BEL_DTYPE_I64 || tensor.dtype == BEL_DTYPE_I32;
    if (!whole || tensor.shape.rank > 1 || count > BEL_MAX_RANK) {
        char text[BEL_SHAPE_TEXT];
        return BEL_ERR(
            BEL_INVALID_ARGUMENT, "input %d must be at most %d integers, got %s of shape %s", input,
            BEL_MAX_RANK, bel_dtype_name(tensor.dtype), bel_shape_text(&tensor.shape, text));
    }
    bel_shape ints = {.rank = (int32_t)count};
    for (int32_t i = 0; i < ints.rank; i++)
        ints.dims[i] = bel_element_get_whole(&tensor, i);
    *out_ints = ints;
    return NULL;
}

bel_status *bel_onnx_known_int(bel_onnx_call *call, int input, int64_t *out_int)
{
    const int64_t limit = INT64_C(1) << 53;
    bel_shape ints = {.rank = 0};
    BEL_TRY(bel_onnx_known_ints(call, input, &ints));
    if (ints.rank != 1 || ints.dims[0] > limit || ints.dims[0] < -limit) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "input %d must be one number within 2^53", input);
    }
    *out_int = ints.dims[0];
    return NULL;
}

bel_status *bel_onnx_known_number(bel_onnx_call *call, int input, double *out)
{
    bel_tensor tensor;
    BEL_TRY(bel_onnx_known(call, input, &tensor));
    if (bel_shape_elements(&tensor.shape) != 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "input %d must be one number", input);
    }
    *out = bel_element_get(&tensor, 0);
    return NULL;
}

bel_status *bel_onnx_known_i64(bel_onnx_call *call, int input, bel_tensor *out_elements)
{
    BEL_TRY(bel_onnx_known(call, input, out_elements));
    if (out_elements->dtype == BEL_DTYPE_I64) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "input %d must be int64, got %s", input,
                   bel_dtype_name(out_elements->dtype));
}
