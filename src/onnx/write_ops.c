// Operations that ONNX has. Most have ONNX's name, inputs and attributes. Their attributes are
// written by the reader's row of the operator (operators.def), so both sides agree about types.
// Others have a function here: if ONNX has an input for Belfry's attribute, if defaults differ, and
// for recurrent layers with the batch first, which not all runtimes support.
#include <math.h>
#include <string.h>

#include "onnx/build.h"
#include "onnx/write_inner.h"
#include "ops/recurrent.h"

typedef void write_fn(const bel_onnx_writing *w);

// --- Pieces --------------------------------------------------------------------------------------

static const bel_spec *spec_of(const bel_onnx_writing *w, int input)
{
    return &w->node->inputs[input]->spec;
}

static void write_ops_emit(const bel_onnx_writing *w, const char *op, const char *const *inputs,
                           int input_count)
{
    Onnx__NodeProto *node =
        bel_onnx_emit(w->emitter, op, inputs, input_count, w->outputs, w->output_count);
    node->name = w->node->name;
}

// Emits the operator of this name on the node's inputs.
static void emit_same(const bel_onnx_writing *w, const char *op)
{
    write_ops_emit(w, op, w->inputs, w->node->input_count);
}

// With one more input, unless it is NULL.
static void emit_with(const bel_onnx_writing *w, const char *op, const char *more)
{
    const char *const inputs[] = {w->inputs[0], more};
    write_ops_emit(w, op, inputs, more == NULL ? 1 : 2);
}

static const char *emit_list(const bel_onnx_writing *w, const char *attr)
{
    const bel_shape *ints = bel_attr_ints(&w->node->attrs, attr);
    return ints == NULL ? NULL : bel_onnx_emit_ints(w->emitter, ints->dims, ints->rank);
}

static void put_whole(const bel_onnx_writing *w, const char *name, double otherwise)
{
    bel_onnx_put_int(w->emitter, name, (int64_t)bel_onnx_attr_of(w->node, name, otherwise));
}

static void put_list(const bel_onnx_writing *w, const char *name)
{
    const bel_shape *ints = bel_attr_ints(&w->node->attrs, name);
    if (ints != NULL) bel_onnx_put_ints(w->emitter, name, ints->dims, ints->rank);
}

static const char *name_of(const bel_onnx_writing *w)
{
    return bel_op_get(w->node->op)->name;
}

// --- As it is ------------------------------------------------------------------------------------

// Attributes that the reader's row does not list are internal to Belfry (stop of Identity).
static bel_status *write_same(const bel_onnx_writing *w, bool *out_done)
{
    const bel_onnx_rule *rule = bel_onnx_rule_of("", name_of(w), w->source->opset);
    if (rule == NULL) return NULL;
    emit_same(w, rule->name);
    for (const bel_onnx_attr_rule *attr = rule->attrs; attr->name != NULL; attr++) {
        bool there = bel_attr_ints(&w->node->attrs, attr->name) != NULL ||
                     !isnan(bel_onnx_attr_of(w->node, attr->name, NAN));
        if (!there) continue;
        if (attr->kind == BEL_ONNX_INTS) {
            put_list(w, attr->name);
        } else if (attr->kind == BEL_ONNX_INT) {
            put_whole(w, attr->name, 0);
        } else {
            bel_onnx_put_float(w->emitter, attr->name, bel_onnx_attr_of(w->node, attr->name, 0));
        }
    }
    *out_done = true;
    return NULL;
}

// --- Attributes that are inputs there ------------------------------------------------------------

static void write_clip(const bel_onnx_writing *w)
{
    double low = bel_onnx_attr_of(w->node, "min", -INFINITY);
    double high = bel_onnx_attr_of(w->node, "max", INFINITY);
    bel_dtype dtype = spec_of(w, 0)->dtype;
    const char *inputs[] = {w->inputs[0], NULL, NULL};
    if (!isinf(low)) inputs[1] = bel_onnx_emit_number(w->emitter, dtype, low);
    if (!isinf(high)) inputs[2] = bel_onnx_emit_number(w->emitter, dtype, high);
    write_ops_emit(w, "Clip", inputs, inputs[2] != NULL ? 3 : inputs[1] != NULL ? 2 : 1);
}

static void write_cast(const bel_onnx_writing *w)
{
    emit_same(w, "Cast");
    bel_dtype to = (bel_dtype)bel_onnx_attr_of(w->node, "to", 0);
    bel_onnx_put_int(w->emitter, "to", bel_onnx_type_number(to));
}

static void write_reduce_sum(const bel_onnx_writing *w)
{
    emit_with(w, "ReduceSum", emit_list(w, "axes"));
    put_whole(w, "keepdims", 0);
}

static void write_reduce(const bel_onnx_writing *w)
{
    emit_same(w, name_of(w));
    put_list(w, "axes");
    put_whole(w, "keepdims", 0);
}

static void write_arg(const bel_onnx_writing *w)
{
    emit_same(w, name_of(w));
    put_whole(w, "axis", 0);
    put_whole(w, "keepdims", 0);
    put_whole(w, "select_last_index", 0);
}

static void write_top_k(const bel_onnx_writing *w)
{
    int64_t k = (int64_t)bel_onnx_attr_of(w->node, "k", 1);
    emit_with(w, "TopK", bel_onnx_emit_ints(w->emitter, &k, 1));
    put_whole(w, "axis", -1);
    put_whole(w, "largest", 1);
}

static void write_cum_sum(const bel_onnx_writing *w)
{
    double axis = bel_onnx_attr_of(w->node, "axis", 0);
    emit_with(w, "CumSum", bel_onnx_emit_number(w->emitter, BEL_DTYPE_I64, axis));
    put_whole(w, "exclusive", 0);
    put_whole(w, "reverse", 0);
}

// Reshape computes an open dimension (-1) and copies a 0, as Belfry's does.
static void write_reshape(const bel_onnx_writing *w)
{
    bel_shape shape = *bel_attr_ints(&w->node->attrs, "shape");
    for (int32_t d = 0; d < shape.rank; d++)
        if (shape.dims[d] < 0) shape.dims[d] = -1;
    emit_with(w, "Reshape", bel_onnx_emit_ints(w->emitter, shape.dims, shape.rank));
}

static void write_axes(const bel_onnx_writing *w)
{
    emit_with(w, name_of(w), emit_list(w, "axes"));
}

// A number -1 - k of the shape is dimension k of the second input.
static void write_expand(const bel_onnx_writing *w)
{
    const bel_shape *shape = bel_attr_ints(&w->node->attrs, "shape");
    const char *sizes[BEL_MAX_RANK];
    bel_onnx_emitter *e = w->emitter;
    if (w->node->input_count < 2) {
        emit_with(w, "Expand", emit_list(w, "shape"));
        return;
    }
    const char *like = BEL_ONNX_NEW(e, "Shape", w->inputs[1]);
    for (int32_t d = 0; d < shape->rank; d++) {
        int64_t place = -1 - shape->dims[d];
        bool open = shape->dims[d] < 0;
        sizes[d] = bel_onnx_emit_ints(e, open ? &place : &shape->dims[d], 1);
        if (open) sizes[d] = BEL_ONNX_NEW(e, "Gather", like, sizes[d]);
    }
    const char *target = bel_onnx_emit_new(e, "Concat", sizes, shape->rank);
    bel_onnx_put_int(e, "axis", 0);
    emit_with(w, "Expand", target);
}

static void write_slice(const bel_onnx_writing *w)
{
    const char *inputs[5] = {w->inputs[0]};
    static const char *const names[] = {"starts", "ends", "axes", "steps"};
    int count = 1;
    for (int i = 0; i < 4; i++)
        if ((inputs[1 + i] = emit_list(w, names[i])) != NULL) count = 2 + i;
    write_ops_emit(w, "Slice", inputs, count);
}

static void write_pad(const bel_onnx_writing *w)
{
    static const char *const modes[] = {
        [BEL_PAD_CONSTANT] = "constant", [BEL_PAD_EDGE] = "edge", [BEL_PAD_REFLECT] = "reflect"};
    const bel_shape *before = bel_attr_ints(&w->node->attrs, "pads_before");
    const bel_shape *behind = bel_attr_ints(&w->node->attrs, "pads_behind");
    int64_t pads[2 * BEL_MAX_RANK] = {0};
    const bel_spec *x = spec_of(w, 0);
    for (int32_t d = 0; d < x->shape.rank; d++) {
        if (before != NULL) pads[d] = before->dims[d];
        if (behind != NULL) pads[x->shape.rank + d] = behind->dims[d];
    }
    const char *const inputs[] = {
        w->inputs[0], bel_onnx_emit_ints(w->emitter, pads, 2 * x->shape.rank),
        bel_onnx_emit_number(w->emitter, x->dtype, bel_onnx_attr_of(w->node, "value", 0))};
    write_ops_emit(w, "Pad", inputs, 3);
    bel_onnx_put_text(w->emitter, "mode", modes[(int)bel_onnx_attr_of(w->node, "mode", 0)]);
}

// Belfry gives a row of zeros for an index below 0, but ONNX counts it from the end. So it is
// replaced by an index that is too large.
static void write_one_hot(const bel_onnx_writing *w)
{
    bel_onnx_emitter *e = w->emitter;
    static const int64_t first[] = {0};
    const char *off = bel_onnx_emit_number(e, BEL_DTYPE_F32, 0);
    const char *on = bel_onnx_emit_number(e, BEL_DTYPE_F32, 1),
               *axis = bel_onnx_emit_ints(e, first, 1);
    const char *values[2] = {BEL_ONNX_NEW(e, "Unsqueeze", off, axis),
                             BEL_ONNX_NEW(e, "Unsqueeze", on, axis)};
    const char *both = BEL_ONNX_NEW(e, "Concat", values[0], values[1]);
    bel_onnx_put_int(e, "axis", 0);
    const char *zero = bel_onnx_emit_number(e, BEL_DTYPE_I64, 0);
    const char *depth =
        bel_onnx_emit_number(e, BEL_DTYPE_I64, bel_onnx_attr_of(w->node, "depth", 1));
    const char *below = BEL_ONNX_NEW(e, "Less", w->inputs[0], zero);
    const char *index = BEL_ONNX_NEW(e, "Where", below, depth, w->inputs[0]);
    const char *const inputs[] = {index, depth, both};
    write_ops_emit(w, "OneHot", inputs, 3);
}

static void write_remainder(const bel_onnx_writing *w)
{
    emit_same(w, "Mod");
    bel_onnx_put_int(w->emitter, "fmod", 1);
}

// A single number in an exported model.
static void write_step(const bel_onnx_writing *w)
{
    double value = w->node->op == BEL_OP_GLOBAL_STEP ? (double)w->source->step : 0;
    bel_dtype dtype = w->node->outputs[0]->spec.dtype;
    const char *const inputs[] = {bel_onnx_emit_number(w->emitter, dtype, value)};
    write_ops_emit(w, "Identity", inputs, 1);
}

// --- Windows -------------------------------------------------------------------------------------

static void write_window(const bel_onnx_writing *w)
{
    static const char *const pads[] = {[BEL_PAD_EXPLICIT] = "NOTSET",
                                       [BEL_PAD_SAME_UPPER] = "SAME_UPPER",
                                       [BEL_PAD_SAME_LOWER] = "SAME_LOWER",
                                       [BEL_PAD_VALID] = "VALID"};
    static const char *const lists[] = {"kernel_shape", "strides", "dilations", "output_padding",
                                        "output_shape"};
    static const char *const numbers[] = {"group", "ceil_mode", "count_include_pad"};
    int auto_pad = (int)bel_onnx_attr_of(w->node, "auto_pad", BEL_PAD_EXPLICIT);
    emit_same(w, name_of(w));
    bool average = w->node->op == BEL_OP_AVERAGE_POOL; // its ONNX equivalent has no dilations
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (!average || strcmp(lists[i], "dilations") != 0) put_list(w, lists[i]);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!isnan(bel_onnx_attr_of(w->node, numbers[i], NAN))) put_whole(w, numbers[i], 0);
    if (auto_pad == BEL_PAD_EXPLICIT) {
        put_list(w, "pads");
    } else {
        bel_onnx_put_text(w->emitter, "auto_pad", pads[auto_pad]);
    }
}

// --- Recurrent layers ----------------------------------------------------------------------------

static const int64_t swap_batch[] = {1, 0, 2};

static const char *swapped(const bel_onnx_writing *w, const char *x)
{
    const char *y = BEL_ONNX_NEW(w->emitter, "Transpose", x);
    bel_onnx_put_ints(w->emitter, "perm", swap_batch, 3);
    return y;
}

enum { SLOT_LENGTHS = 4, SLOT_H, SLOT_C, SLOTS };

// Puts inputs in ONNX's places, and returns their count. After B, Belfry's operation has lengths,
// first h and first c, each optional.
static int recurrent_inputs(const bel_onnx_writing *w, bool batch_first, const char *out[SLOTS])
{
    int first = (int)bel_onnx_attr_of(w->node, "first", 0), at = SLOT_LENGTHS, end = SLOT_LENGTHS;
    bool h = (first & BEL_RECURRENT_FIRST_H) != 0, c = (first & BEL_RECURRENT_FIRST_C) != 0;
    const bool there[SLOTS] = {
        [SLOT_LENGTHS] = w->node->input_count > SLOT_LENGTHS + h + c, [SLOT_H] = h, [SLOT_C] = c};
    for (int i = 0; i < SLOT_LENGTHS; i++)
        out[i] = w->inputs[i];
    if (batch_first) out[0] = swapped(w, out[0]);
    for (int slot = SLOT_LENGTHS; slot < SLOTS; slot++) {
        out[slot] = NULL;
        if (!there[slot]) continue;
        const char *input = w->inputs[at++];
        end = slot + 1;
        if (slot == SLOT_LENGTHS) {
            out[slot] = BEL_ONNX_NEW(w->emitter, "Cast", input);
            bel_onnx_put_int(w->emitter, "to", bel_onnx_type_number(BEL_DTYPE_I32));
        } else {
            out[slot] = batch_first ? swapped(w, input) : input;
        }
    }
    return end;
}

// With the batch first Belfry has x [n, t, in], y [n, t, directions, h] and states [n, directions,
// h]. ONNX's usual order is x [t, n, in], y [t, directions, n, h] and states [directions, n, h].
static void write_recurrent(const bel_onnx_writing *w)
{
    static const int64_t batch_to_front[] = {2, 0, 1, 3};
    static const char *const directions[] = {[BEL_RECURRENT_FORWARD] = "forward",
                                             [BEL_RECURRENT_REVERSE] = "reverse",
                                             [BEL_RECURRENT_BOTH] = "bidirectional"};
    bel_onnx_emitter *e = w->emitter;
    bool batch_first = bel_onnx_attr_of(w->node, "layout", 0) != 0;
    const char *inputs[SLOTS], *outputs[3] = {NULL};
    int count = recurrent_inputs(w, batch_first, inputs);
    for (int i = 0; i < w->output_count; i++) {
        if (w->outputs[i] == NULL) continue;
        outputs[i] = batch_first ? bel_onnx_new_name(e, name_of(w)) : w->outputs[i];
    }
    bel_onnx_emit(e, name_of(w), inputs, count, outputs, w->output_count)->name = w->node->name;
    put_whole(w, "hidden_size", 0);
    bel_onnx_put_text(e, "direction", directions[(int)bel_onnx_attr_of(w->node, "direction", 0)]);
    if (w->node->op == BEL_OP_GRU) put_whole(w, "linear_before_reset", 0);
    for (int i = 0; batch_first && i < w->output_count; i++) {
        if (w->outputs[i] == NULL) continue;
        bel_onnx_emit(e, "Transpose", &outputs[i], 1, &w->outputs[i], 1);
        bel_onnx_put_ints(e, "perm", i == 0 ? batch_to_front : swap_batch, i == 0 ? 4 : 3);
    }
}

// --- Choice of the operator ---------------------------------------------------------------------

static write_fn *function_of(bel_op op)
{
    switch (op) {
    case BEL_OP_CLIP: return write_clip;
    case BEL_OP_CAST: return write_cast;
    case BEL_OP_REDUCE_SUM: return write_reduce_sum;
    case BEL_OP_REDUCE_MEAN:
    case BEL_OP_REDUCE_MAX:
    case BEL_OP_REDUCE_MIN:
    case BEL_OP_REDUCE_PROD:
    case BEL_OP_REDUCE_SUM_SQUARE:
    case BEL_OP_REDUCE_L1:
    case BEL_OP_REDUCE_L2: return write_reduce;
    case BEL_OP_ARG_MAX:
    case BEL_OP_ARG_MIN: return write_arg;
    case BEL_OP_TOP_K: return write_top_k;
    case BEL_OP_CUM_SUM: return write_cum_sum;
    case BEL_OP_RESHAPE: return write_reshape;
    case BEL_OP_SQUEEZE:
    case BEL_OP_UNSQUEEZE: return write_axes;
    case BEL_OP_EXPAND: return write_expand;
    case BEL_OP_SLICE: return write_slice;
    case BEL_OP_PAD: return write_pad;
    case BEL_OP_ONE_HOT: return write_one_hot;
    case BEL_OP_REMAINDER: return write_remainder;
    case BEL_OP_GLOBAL_STEP:
    case BEL_OP_REPLICA_ID: return write_step;
    case BEL_OP_CONV:
    case BEL_OP_CONV_TRANSPOSE:
    case BEL_OP_MAX_POOL:
    case BEL_OP_AVERAGE_POOL: return write_window;
    case BEL_OP_GRU:
    case BEL_OP_LSTM: return write_recurrent;
    default: return NULL;
    }
}

static bool is_dilated(const bel_node *node)
{
    const bel_shape *dilations = bel_attr_ints(&node->attrs, "dilations");
    bool dilated = false;
    for (int32_t d = 0; dilations != NULL && d < dilations->rank; d++)
        dilated = dilated || dilations->dims[d] != 1;
    return dilated;
}

// True for operations with ONNX's name that do more than ONNX's operator, draw random numbers, or
// have a used output that exists only for gradients.
static bool is_other(const bel_onnx_writing *w)
{
    const bel_node *node = w->node;
    switch (node->op) {
    case BEL_OP_MATMUL: return node->attrs.count > 0;
    case BEL_OP_BATCH_NORM:
        return w->output_count > 1 || bel_onnx_attr_of(node, "training_mode", 0) != 0;
    case BEL_OP_SOFTMAX_CROSS_ENTROPY: return true;
    case BEL_OP_LAYER_NORM:
    case BEL_OP_INSTANCE_NORM: return w->output_count > 1;
    case BEL_OP_AVERAGE_POOL: return is_dilated(node);
    case BEL_OP_GRU: return w->output_count > 2;
    case BEL_OP_LSTM: return w->output_count > 3;
    default:
        return (bel_op_get(node->op)->flags & BEL_OP_RANDOM) != 0 && function_of(node->op) == NULL;
    }
}

bel_status *bel_onnx_write_plain(const bel_onnx_writing *w, bool *out_done)
{
    *out_done = false;
    write_fn *function = function_of(w->node->op);
    if (is_other(w)) return NULL;
    if (function == NULL && bel_op_get(w->node->op)->domain[0] != '\0') return NULL;
    if (function == NULL) return write_same(w, out_done);
    function(w);
    *out_done = true;
    return NULL;
}
