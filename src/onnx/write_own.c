// Operations that ONNX lacks: functions of domain "belfry" with a body of ONNX's operators. A body
// is for one combination of attributes, types and ranks, which is its key. The first one of an
// operation has the operation's name, others a number after it ("Gelu_2"). The call also has the
// attributes, from which Belfry's reader recreates the operation. Fractional numbers are tensors of
// one double there, since ONNX's number attributes are floats.
//
// Bodies are mathematically equivalent to the operations (ops.def), but may round sums differently.
// If a row of a softmax sees nothing, its powers are all 0 and the divisor is 1.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "onnx/build.h"
#include "onnx/write_inner.h"

// Emits the body on inputs of these names and returns the name of its result.
typedef const char *body_fn(bel_onnx_emitter *e, const bel_node *node, const char *const *in);

// --- Pieces --------------------------------------------------------------------------------------

static const bel_spec *spec_of(const bel_node *node, int input)
{
    return &node->inputs[input]->spec;
}

static const char *write_own_number(bel_onnx_emitter *e, const bel_node *node, double value)
{
    return bel_onnx_emit_number(e, spec_of(node, 0)->dtype, value);
}

static const char *ints(bel_onnx_emitter *e, int64_t first, int64_t second, int count)
{
    const int64_t values[] = {first, second};
    return bel_onnx_emit_ints(e, values, count);
}

// Swaps the last two dimensions.
static const char *turned(bel_onnx_emitter *e, const char *x, int32_t rank)
{
    int64_t perm[BEL_MAX_RANK];
    for (int32_t d = 0; d < rank; d++)
        perm[d] = d < rank - 2 ? d : 2 * rank - 3 - d;
    const char *y = BEL_ONNX_NEW(e, "Transpose", x);
    bel_onnx_put_ints(e, "perm", perm, rank);
    return y;
}

// Returns an I64 scalar: the size of dimension `axis` of x.
static const char *size_of(bel_onnx_emitter *e, const char *x, int64_t axis)
{
    const char *shape = BEL_ONNX_NEW(e, "Shape", x);
    return BEL_ONNX_NEW(e, "Gather", shape, bel_onnx_emit_number(e, BEL_DTYPE_I64, (double)axis));
}

// Returns I64 [size]: 0, 1, … below the size of dimension `axis` of x.
static const char *places(bel_onnx_emitter *e, const char *x, int64_t axis)
{
    return BEL_ONNX_NEW(e, "Range", bel_onnx_emit_number(e, BEL_DTYPE_I64, 0), size_of(e, x, axis),
                        bel_onnx_emit_number(e, BEL_DTYPE_I64, 1));
}

// --- Element-wise --------------------------------------------------------------------------------

static const char *gelu(bel_onnx_emitter *e, const bel_node *node, const char *const *in)
{
    const char *scaled = BEL_ONNX_NEW(e, "Mul", in[0], write_own_number(e, node, sqrt(0.5)));
    const char *erf = BEL_ONNX_NEW(e, "Erf", scaled);
    const char *factor = BEL_ONNX_NEW(e, "Add", erf, write_own_number(e, node, 1));
    const char *half = BEL_ONNX_NEW(e, "Mul", in[0], write_own_number(e, node, 0.5));
    return BEL_ONNX_NEW(e, "Mul", half, factor);
}

static const char *gelu_tanh(bel_onnx_emitter *e, const bel_node *node, const char *const *in)
{
    const char *square = BEL_ONNX_NEW(e, "Mul", in[0], in[0]);
    const char *cube = BEL_ONNX_NEW(e, "Mul", square, in[0]);
    const char *part = BEL_ONNX_NEW(e, "Mul", cube, write_own_number(e, node, 0.044715));
    const char *sum = BEL_ONNX_NEW(e, "Add", in[0], part);
    // sqrt(2 / pi)
    const char *inner = BEL_ONNX_NEW(e, "Mul", sum, write_own_number(e, node, 0.79788456080286536));
    const char *factor =
        BEL_ONNX_NEW(e, "Add", BEL_ONNX_NEW(e, "Tanh", inner), write_own_number(e, node, 1));
    const char *half = BEL_ONNX_NEW(e, "Mul", in[0], write_own_number(e, node, 0.5));
    return BEL_ONNX_NEW(e, "Mul", half, factor);
}

static const char *silu(bel_onnx_emitter *e, const bel_node *node, const char *const *in)
{
    (void)node;
    return BEL_ONNX_NEW(e, "Mul", in[0], BEL_ONNX_NEW(e, "Sigmoid", in[0]));
}

// --- Products and shapes -------------------------------------------------------------------------

static const char *write_own_scaled(bel_onnx_emitter *e, const bel_node *node, const char *x,
                                    double factor)
{
    return factor == 1 ? x : BEL_ONNX_NEW(e, "Mul", x, write_own_number(e, node, factor));
}

static const char *write_own_matmul(bel_onnx_emitter *e, const bel_node *node,
                                    const char *const *in)
{
    const char *a = in[0], *b = in[1];
    if (bel_attr_flag(&node->attrs, "transA")) a = turned(e, a, spec_of(node, 0)->shape.rank);
    if (bel_attr_flag(&node->attrs, "transB")) b = turned(e, b, spec_of(node, 1)->shape.rank);
    return write_own_scaled(e, node, BEL_ONNX_NEW(e, "MatMul", a, b),
                            bel_onnx_attr_of(node, "alpha", 1));
}

static const char *reshape_like(bel_onnx_emitter *e, const bel_node *node, const char *const *in)
{
    (void)node;
    return BEL_ONNX_NEW(e, "Reshape", in[0], BEL_ONNX_NEW(e, "Shape", in[1]));
}

static const char *broadcast_to(bel_onnx_emitter *e, const bel_node *node, const char *const *in)
{
    (void)node;
    return BEL_ONNX_NEW(e, "Expand", in[0], BEL_ONNX_NEW(e, "Shape", in[1]));
}

// A group is an instance of InstanceNormalization: x is reshaped to [n, groups, rest] and back,
// followed by scale and bias by channel, [c, 1, …].
static const char *group_norm(bel_onnx_emitter *e, const bel_node *node, const char *const *in)
{
    int64_t groups = (int64_t)bel_onnx_attr_of(node, "num_groups", 1);
    int32_t rank = spec_of(node, 0)->shape.rank;
    int64_t split[] = {0, groups, -1}, channel[BEL_MAX_RANK];
    for (int32_t d = 0; d < rank - 1; d++)
        channel[d] = d == 0 ? -1 : 1;
    const char *parts = BEL_ONNX_NEW(e, "Reshape", in[0], bel_onnx_emit_ints(e, split, 3));
    const char *count = ints(e, groups, 0, 1);
    const char *ones = BEL_ONNX_NEW(e, "Expand", write_own_number(e, node, 1), count);
    const char *zeros = BEL_ONNX_NEW(e, "Expand", write_own_number(e, node, 0), count);
    const char *norm = BEL_ONNX_NEW(e, "InstanceNormalization", parts, ones, zeros);
    bel_onnx_put_float(e, "epsilon", bel_onnx_attr_of(node, "epsilon", 1e-5));
    const char *whole = BEL_ONNX_NEW(e, "Reshape", norm, BEL_ONNX_NEW(e, "Shape", in[0]));
    const char *shape = bel_onnx_emit_ints(e, channel, rank - 1);
    const char *scale = BEL_ONNX_NEW(e, "Reshape", in[1], shape);
    const char *bias = BEL_ONNX_NEW(e, "Reshape", in[2], shape);
    return BEL_ONNX_NEW(e, "Add", BEL_ONNX_NEW(e, "Mul", whole, scale), bias);
}

// --- Sequences -----------------------------------------------------------------------------------

// Returns BOOL [n, 1, …, size, …, 1] of `rank` dimensions: true for places along `axis` before the
// lengths [n].
static const char *before_lengths(bel_onnx_emitter *e, const char *x, const char *lengths,
                                  int32_t rank, int64_t axis)
{
    int64_t of_lengths[BEL_MAX_RANK], of_places[BEL_MAX_RANK];
    for (int32_t d = 0; d < rank; d++) {
        of_lengths[d] = d == 0 ? -1 : 1;
        of_places[d] = d == axis ? -1 : 1;
    }
    const char *most = BEL_ONNX_NEW(e, "Reshape", lengths, bel_onnx_emit_ints(e, of_lengths, rank));
    const char *at =
        BEL_ONNX_NEW(e, "Reshape", places(e, x, axis), bel_onnx_emit_ints(e, of_places, rank));
    return BEL_ONNX_NEW(e, "Less", at, most);
}

static const char *sequence_mask(bel_onnx_emitter *e, const bel_node *node, const char *const *in)
{
    int32_t rank = spec_of(node, 0)->shape.rank;
    int64_t axis = (int64_t)bel_onnx_attr_of(node, "axis", 1);
    const char *kept = before_lengths(e, in[0], in[1], rank, axis < 0 ? axis + rank : axis);
    return BEL_ONNX_NEW(e, "Where", kept, in[0], write_own_number(e, node, 0));
}

static const char *both_names(bel_onnx_emitter *e, const char *a, const char *b)
{
    return a == NULL ? b : b == NULL ? a : BEL_ONNX_NEW(e, "And", a, b);
}

// Returns BOOL, broadcast to scores [n, …, queries, keys]: the visible keys; NULL: all. A causal
// query sees no later key.
static const char *seen(bel_onnx_emitter *e, const char *scores, int32_t rank, const char *mask,
                        const char *lengths, bool causal)
{
    const char *visible = mask;
    if (lengths != NULL) {
        visible = both_names(e, visible, before_lengths(e, scores, lengths, rank, rank - 1));
    }
    if (causal) {
        const char *queries =
            BEL_ONNX_NEW(e, "Reshape", places(e, scores, rank - 2), ints(e, -1, 1, 2));
        const char *keys = places(e, scores, rank - 1);
        visible = both_names(e, visible, BEL_ONNX_NEW(e, "LessOrEqual", keys, queries));
    }
    return visible;
}

// exp(visible score - largest visible score), divided by its sum.
static const char *softmax_of_seen(bel_onnx_emitter *e, const bel_node *node, const char *scores,
                                   const char *visible)
{
    static const int64_t last[] = {-1};
    if (visible == NULL) return BEL_ONNX_NEW(e, "Softmax", scores);
    const char *nothing = write_own_number(e, node, -INFINITY),
               *zero = write_own_number(e, node, 0);
    const char *shown = BEL_ONNX_NEW(e, "Where", visible, scores, nothing);
    const char *most = BEL_ONNX_NEW(e, "ReduceMax", shown);
    bel_onnx_put_ints(e, "axes", last, 1);
    const char *none = BEL_ONNX_NEW(e, "Equal", most, nothing);
    const char *shift = BEL_ONNX_NEW(e, "Where", none, zero, most);
    const char *power = BEL_ONNX_NEW(e, "Exp", BEL_ONNX_NEW(e, "Sub", shown, shift));
    const char *sum = BEL_ONNX_NEW(e, "ReduceSum", power, bel_onnx_emit_ints(e, last, 1));
    const char *some = BEL_ONNX_NEW(e, "Where", none, write_own_number(e, node, 1), sum);
    return BEL_ONNX_NEW(e, "Div", power, some);
}

// The types of the inputs after x identify them.
static const char *masked_softmax(bel_onnx_emitter *e, const bel_node *node, const char *const *in)
{
    const char *mask = NULL, *lengths = NULL;
    for (int i = 1; i < node->input_count; i++)
        *(spec_of(node, i)->dtype == BEL_DTYPE_BOOL ? &mask : &lengths) = in[i];
    const char *visible = seen(e, in[0], spec_of(node, 0)->shape.rank, mask, lengths,
                               bel_attr_flag(&node->attrs, "causal"));
    return softmax_of_seen(e, node, in[0], visible);
}

static const char *attention(bel_onnx_emitter *e, const bel_node *node, const char *const *in)
{
    double otherwise = 1 / sqrt((double)spec_of(node, 0)->shape.dims[3]);
    const char *product = BEL_ONNX_NEW(e, "MatMul", in[0], turned(e, in[1], 4));
    const char *scores =
        write_own_scaled(e, node, product, bel_onnx_attr_of(node, "scale", otherwise));
    const char *lengths = node->input_count > 3 ? in[3] : NULL, *values = in[2];
    const char *visible = seen(e, scores, 4, NULL, lengths, bel_attr_flag(&node->attrs, "causal"));
    if (lengths != NULL) { // hidden elements may be NaN, and 0 times NaN is NaN
        const char *kept = before_lengths(e, values, lengths, 4, 2);
        values = BEL_ONNX_NEW(e, "Where", kept, values, write_own_number(e, node, 0));
    }
    return BEL_ONNX_NEW(e, "MatMul", softmax_of_seen(e, node, scores, visible), values);
}

static const struct {
    bel_op op;
    body_fn *body;
} bodies[] = {{BEL_OP_GELU, gelu},
              {BEL_OP_GELU_TANH, gelu_tanh},
              {BEL_OP_SILU, silu},
              {BEL_OP_MATMUL, write_own_matmul},
              {BEL_OP_RESHAPE_LIKE, reshape_like},
              {BEL_OP_BROADCAST_TO, broadcast_to},
              {BEL_OP_GROUP_NORM, group_norm},
              {BEL_OP_SEQUENCE_MASK, sequence_mask},
              {BEL_OP_MASKED_SOFTMAX, masked_softmax},
              {BEL_OP_ATTENTION, attention}};

// --- Functions -----------------------------------------------------------------------------------

// Everything that a body depends on.
static char *key_of(const bel_node *node)
{
    bel_str key = {0};
    bel_str_printf(&key, "%s", bel_op_get(node->op)->name);
    for (int i = 0; i < node->attrs.count; i++) {
        const bel_attr *attr = &node->attrs.items[i];
        bel_str_printf(&key, " %s=%.17g", attr->name, attr->number);
        for (int32_t d = 0; d < attr->ints.rank; d++)
            bel_str_printf(&key, ",%lld", (long long)attr->ints.dims[d]);
    }
    for (int i = 0; i < node->input_count; i++) {
        const bel_spec *spec = spec_of(node, i);
        bel_str_printf(&key, " %d:%d", (int)spec->dtype, (int)spec->shape.rank);
        if (node->op == BEL_OP_ATTENTION) // its scale
            bel_str_printf(&key, ":%lld", (long long)spec->shape.dims[3]);
    }
    return key.text;
}

// Counts the functions of this operation.
static int count_of(const bel_onnx_functions *functions, const char *op)
{
    int count = 0;
    size_t length = strlen(op);
    for (size_t i = 0; i < functions->count; i++) {
        const char *key = functions->keys[i];
        if (strncmp(key, op, length) == 0 && (key[length] == ' ' || key[length] == '\0')) count++;
    }
    return count;
}

static Onnx__FunctionProto *make_function(const bel_onnx_writing *w, body_fn *body, int number)
{
    bel_arena *arena = w->emitter->arena;
    const char *op = bel_op_get(w->node->op)->name;
    char *name = number == 1 ? bel_xstrdup(op) : bel_strf("%s_%d", op, number);
    Onnx__FunctionProto *f = bel_arena_alloc(arena, sizeof *f);
    onnx__function_proto__init(f);
    f->name = bel_arena_strdup(arena, name);
    f->domain = bel_arena_strdup(arena, BEL_ONNX_OWN_DOMAIN);
    bel_free(name);

    bel_onnx_emitter e;
    bel_onnx_emitter_init(&e, arena);
    f->n_input = (size_t)w->node->input_count;
    f->input = bel_arena_alloc(arena, f->n_input * sizeof *f->input);
    const char *inputs[BEL_OP_MAX_INPUTS];
    for (size_t i = 0; i < f->n_input; i++) {
        char formal[16];
        bel_snprintf(formal, sizeof formal, "x%zu", i);
        inputs[i] = bel_onnx_new_name(&e, formal);
        f->input[i] = bel_arena_strdup(arena, inputs[i]);
    }
    f->output = bel_arena_alloc(arena, sizeof *f->output);
    f->output[f->n_output++] = bel_arena_strdup(arena, body(&e, w->node, inputs));
    f->n_node = e.node_count;
    f->node = bel_arena_copy(arena, e.nodes, e.node_count * sizeof(Onnx__NodeProto *));
    bel_onnx_emitter_deinit(&e);

    Onnx__OperatorSetIdProto *opset = bel_arena_alloc(arena, sizeof *opset);
    onnx__operator_set_id_proto__init(opset);
    opset->domain = bel_arena_strdup(arena, "");
    opset->has_version = true;
    opset->version = w->source->opset;
    f->opset_import = bel_arena_alloc(arena, sizeof(Onnx__OperatorSetIdProto *));
    f->opset_import[f->n_opset_import++] = opset;
    return f;
}

// Writes attributes according to the reader's row; the function lists their names.
static void put_attributes(const bel_onnx_writing *w, const bel_onnx_rule *rule,
                           Onnx__FunctionProto *function)
{
    bel_arena *arena = w->emitter->arena;
    bool first = function->attribute == NULL;
    if (first) function->attribute = bel_arena_alloc(arena, BEL_ONNX_ATTRS * sizeof(char *));
    for (const bel_onnx_attr_rule *attr = rule->attrs; attr->name != NULL; attr++) {
        double value = bel_onnx_attr_of(w->node, attr->name, NAN);
        if (isnan(value)) continue;
        if (attr->kind == BEL_ONNX_INT) {
            bel_onnx_put_int(w->emitter, attr->name, (int64_t)value);
        } else {
            bel_onnx_put_f64(w->emitter, attr->name, value);
        }
        if (first)
            function->attribute[function->n_attribute++] = bel_arena_strdup(arena, attr->name);
    }
}

static Onnx__FunctionProto *function_for(const bel_onnx_writing *w, body_fn *body,
                                         bel_onnx_functions *functions)
{
    char *key = key_of(w->node);
    for (size_t i = 0; i < functions->count; i++) {
        if (strcmp(functions->keys[i], key) != 0) continue;
        bel_free(key);
        return functions->items[i];
    }
    size_t count = functions->count + 1;
    int number = 1 + count_of(functions, bel_op_get(w->node->op)->name);
    functions->items =
        bel_xgrow(functions->items, &functions->capacity, count, sizeof(Onnx__FunctionProto *));
    functions->keys = bel_xgrow(functions->keys, &functions->key_capacity, count, sizeof(char *));
    functions->keys[functions->count] = key;
    return functions->items[functions->count++] = make_function(w, body, number);
}

bel_status *bel_onnx_write_own(const bel_onnx_writing *w, bel_onnx_functions *functions,
                               bool *out_done)
{
    *out_done = false;
    body_fn *body = NULL;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        if (bodies[i].op == w->node->op) body = bodies[i].body;
    const bel_onnx_rule *rule =
        bel_onnx_rule_of(BEL_ONNX_OWN_DOMAIN, bel_op_get(w->node->op)->name, 1);
    if (body == NULL || rule == NULL || w->output_count > 1) return NULL;
    Onnx__FunctionProto *function = function_for(w, body, functions);
    Onnx__NodeProto *node =
        bel_onnx_emit(w->emitter, function->name, w->inputs, w->node->input_count, w->outputs, 1);
    node->domain = function->domain;
    node->name = w->node->name;
    put_attributes(w, rule, function);
    *out_done = true;
    return NULL;
}

void bel_onnx_functions_deinit(bel_onnx_functions *functions)
{
    for (size_t i = 0; i < functions->count; i++)
        bel_free(functions->keys[i]);
    bel_free(functions->keys);
    bel_free(functions->items);
}
