// GRU, LSTM and RNN. Belfry's operations have ONNX's weights, layouts and directions, but always a
// bias: an omitted bias becomes zeros. Initial states of zeros, however the model makes them, are
// omitted, which keeps the gradient. Peepholes, clip, input_forget and other activations are
// refused rather than ignored, and so is every attribute that operators.def does not list. An RNN
// is a GRU with constant gates: a bias of -1000 makes the update gate exactly 0, and one of 1000
// makes the reset gate exactly 1. ONNX's output of all steps has a dimension for directions, as
// Belfry's operation has.
#include <string.h>

#include "onnx/make.h"
#include "ops/kernels/elements.h"
#include "ops/recurrent.h"

enum { X, W, R, B, LENGTHS, FIRST_STATE, PEEPHOLES = 7 };

// Activations of one direction; all directions must have the same ones.
static bel_status *check_activations(const bel_onnx_call *call, const char *const *usual,
                                     size_t count)
{
    const bel_onnx_attr *attr = bel_onnx_find_attr(call, "activations");
    for (size_t i = 0; attr != NULL && i < attr->list_count; i++) {
        const char *given = attr->texts[i], *expected = usual[i % count];
        bool same = strcmp(given, expected) == 0;
        if (same) continue;
        return BEL_ERR(BEL_UNIMPLEMENTED, "activation %zu is \"%.40s\", expected %s", i, given,
                       expected);
    }
    return NULL;
}

static bel_status *check_plain(const bel_onnx_call *call)
{
    if (bel_onnx_has(call, PEEPHOLES)) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "input %d (peepholes)", PEEPHOLES);
    }
    if (bel_onnx_number(call, "clip") != 0 || bel_onnx_int(call, "input_forget") != 0) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "attribute clip or input_forget");
    }
    return NULL;
}

// Makes an omitted bias: zeros [directions, 2 · gates · hidden].
static bel_value *bias_of(bel_onnx_call *call)
{
    if (bel_onnx_has(call, B)) return bel_onnx_in(call, B);
    bel_shape w = bel_onnx_in_shape(call, W), bias = BEL_SHAPE(1, 1);
    if (w.rank == 3 && w.dims[0] > 0 && w.dims[1] > 0) bias = BEL_SHAPE(w.dims[0], 2 * w.dims[1]);
    bel_value *zero = bel_onnx_scalar(call->graph, bel_value_dtype(bel_onnx_in(call, W)), 0);
    return bel_expand(call->graph, zero, &bias);
}

static bool are_zeros(const bel_tensor *tensor)
{
    for (int64_t i = 0; i < bel_shape_elements(&tensor->shape); i++)
        if (bel_element_get(tensor, i) != 0) return false;
    return true;
}

// True if a value consists only of zeros: a constant, possibly repeated, sliced, transposed or
// cast.
static bool is_zero(const bel_value *value)
{
    for (;;) {
        const bel_node *node = value->node;
        switch (node->op) {
        case BEL_OP_CONSTANT: return are_zeros(&node->constant);
        case BEL_OP_EXPAND:
        case BEL_OP_RESHAPE:
        case BEL_OP_SQUEEZE:
        case BEL_OP_UNSQUEEZE:
        case BEL_OP_TRANSPOSE:
        case BEL_OP_SLICE:
        case BEL_OP_IDENTITY:
        case BEL_OP_CAST: value = node->inputs[0]; break;
        default: return false;
        }
    }
}

// W, R and bias from the node, or as converted for an RNN; then lengths and initial states, if
// given.
static bel_status *recurrent(bel_onnx_call *call, bel_op op, bel_value *const weights[3],
                             double reset_last)
{
    static const char *const directions[] = {[BEL_RECURRENT_FORWARD] = "forward",
                                             [BEL_RECURRENT_REVERSE] = "reverse",
                                             [BEL_RECURRENT_BOTH] = "bidirectional"};
    int direction, states = op == BEL_OP_LSTM ? 2 : 1, count = 4, first = 0;
    BEL_TRY(bel_onnx_choice(call, "direction", directions, 3, &direction));
    bel_shape r = bel_onnx_in_shape(call, R);
    double hidden = bel_onnx_number(call, "hidden_size");
    if (hidden == 0 && r.rank == 3) hidden = (double)r.dims[2];
    bel_value *inputs[BEL_OP_MAX_INPUTS] = {bel_onnx_in(call, X), weights[0], weights[1],
                                            weights[2]};
    if (bel_onnx_has(call, LENGTHS)) inputs[count++] = bel_onnx_in(call, LENGTHS);
    for (int i = 0; i < states; i++) {
        bel_value *state = bel_onnx_in(call, FIRST_STATE + i);
        if (state == NULL || is_zero(state)) continue;
        inputs[count++] = state;
        first |= i == 0 ? BEL_RECURRENT_FIRST_H : BEL_RECURRENT_FIRST_C;
    }
    bel_attr_list attrs = {.count = 4,
                           .items = {{.name = "hidden_size", .number = hidden},
                                     {.name = "direction", .number = direction},
                                     {.name = "layout", .number = bel_onnx_number(call, "layout")},
                                     {.name = "linear_before_reset", .number = reset_last}}};
    if (first != 0) attrs.items[attrs.count++] = (bel_attr){.name = "first", .number = first};
    bel_value *y = bel_graph_add(call->graph, op, &attrs, inputs, count);
    for (int i = 0; y != NULL && i < 1 + states; i++)
        bel_onnx_out(call, i, bel_graph_output(y, i));
    return NULL;
}

static bel_status *gated(bel_onnx_call *call, bel_op op, const char *const *usual, size_t count)
{
    BEL_TRY(check_plain(call));
    BEL_TRY(check_activations(call, usual, count));
    bel_value *weights[3];
    for (int i = 0; i < 2; i++)
        weights[i] = bel_onnx_in(call, W + i);
    weights[2] = bias_of(call);
    return recurrent(call, op, weights, bel_onnx_number(call, "linear_before_reset"));
}

bel_status *bel_onnx_lstm(bel_onnx_call *call)
{
    static const char *const usual[] = {"Sigmoid", "Tanh", "Tanh"};
    return gated(call, BEL_OP_LSTM, usual, 3);
}

bel_status *bel_onnx_gru(bel_onnx_call *call)
{
    static const char *const usual[] = {"Sigmoid", "Tanh"};
    return gated(call, BEL_OP_GRU, usual, 2);
}

// Returns `x` [directions, hidden, …] after zeros for the gates z and r.
static bel_value *behind_gates(bel_graph *graph, bel_value *x)
{
    bel_shape shape = bel_value_shape(x);
    if (shape.rank < 2) return x; // the operation reports the error
    bel_shape gates = shape;
    gates.dims[1] = shape.dims[1] > 0 ? 2 * shape.dims[1] : 0;
    bel_value *zeros = bel_expand(graph, bel_onnx_scalar(graph, bel_value_dtype(x), 0), &gates);
    bel_value *parts[] = {zeros, x};
    return bel_concat(graph, parts, 2, 1);
}

// Converts biases of an RNN [directions, 2 · hidden] to those of a GRU: [z, r, n] of W, then of R.
static bel_value *bias_behind_gates(bel_graph *graph, bel_value *bias)
{
    enum { LARGE = 1000 };
    bel_shape shape = bel_value_shape(bias);
    if (shape.rank != 2 || shape.dims[1] < 2) return bias;
    bel_dtype dtype = bel_value_dtype(bias);
    bel_shape gate = BEL_SHAPE(shape.dims[0], shape.dims[1] / 2);
    bel_value *halves[2], *still[3];
    bel_split(graph, bias, 1, NULL, 2, halves);
    const double values[] = {-LARGE, LARGE, 0};
    for (int i = 0; i < 3; i++)
        still[i] = bel_expand(graph, bel_onnx_scalar(graph, dtype, values[i]), &gate);
    bel_value *parts[] = {still[0], still[1], halves[0], still[2], still[2], halves[1]};
    return bel_concat(graph, parts, 6, 1);
}

bel_status *bel_onnx_rnn(bel_onnx_call *call)
{
    static const char *const usual[] = {"Tanh"};
    BEL_TRY(check_plain(call));
    BEL_TRY(check_activations(call, usual, 1));
    bel_value *weights[3];
    for (int i = 0; i < 2; i++)
        weights[i] = behind_gates(call->graph, bel_onnx_in(call, W + i));
    weights[2] = bias_behind_gates(call->graph, bias_of(call));
    return recurrent(call, BEL_OP_GRU, weights, 1);
}
