// GRU and LSTM: Belfry's operations have ONNX's weights, layouts and directions, but always a
// bias, and states that start at zero. A bias that is left out is made of zeros; first states,
// peepholes, clip and input_forget are refused rather than passed over, and so is every
// attribute that operators.def does not list. ONNX's output of all steps has a dimension for
// directions, as Belfry's operation has.
#include "onnx/make.h"
#include "ops/recurrent.h"

enum { X, W, R, B, LENGTHS, FIRST_STATE };

static bel_status *check_plain(const bel_onnx_call *call)
{
    for (int i = FIRST_STATE; i < call->node->input_count; i++) {
        if (!bel_onnx_has(call, i)) continue;
        return BEL_ERR(BEL_UNIMPLEMENTED, "input %d (a first state, or peepholes)", i);
    }
    if (bel_onnx_number(call, "clip") != 0 || bel_onnx_int(call, "input_forget") != 0) {
        return BEL_ERR(BEL_UNIMPLEMENTED, "attribute clip or input_forget");
    }
    return NULL;
}

// The bias that the node leaves out: zeros [directions, 2 · gates · hidden].
static bel_value *bias_of(bel_onnx_call *call)
{
    if (bel_onnx_has(call, B)) return bel_onnx_in(call, B);
    bel_shape w = bel_onnx_in_shape(call, W), bias = BEL_SHAPE(1, 1);
    if (w.rank == 3 && w.dims[0] > 0 && w.dims[1] > 0) bias = BEL_SHAPE(w.dims[0], 2 * w.dims[1]);
    bel_value *zero = bel_onnx_scalar(call->graph, bel_value_dtype(bel_onnx_in(call, W)), 0);
    return bel_expand(call->graph, zero, &bias);
}

static bel_status *recurrent(bel_onnx_call *call, bel_op op, int outputs)
{
    static const char *const directions[] = {[BEL_RECURRENT_FORWARD] = "forward",
                                             [BEL_RECURRENT_REVERSE] = "reverse",
                                             [BEL_RECURRENT_BOTH] = "bidirectional"};
    int direction;
    BEL_TRY(check_plain(call));
    BEL_TRY(bel_onnx_choice(call, "direction", directions, 3, &direction));
    bel_shape r = bel_onnx_in_shape(call, R);
    double hidden = bel_onnx_number(call, "hidden_size");
    if (hidden == 0 && r.rank == 3) hidden = (double)r.dims[2];
    bel_attr_list attrs = {.count = 4,
                           .items = {{.name = "hidden_size", .number = hidden},
                                     {.name = "direction", .number = direction},
                                     {.name = "layout", .number = bel_onnx_number(call, "layout")},
                                     {.name = "linear_before_reset",
                                      .number = bel_onnx_number(call, "linear_before_reset")}}};
    bel_value *inputs[LENGTHS + 1];
    bel_onnx_ins(call, LENGTHS + 1, inputs);
    inputs[B] = bias_of(call);
    bel_value *y = bel_graph_add(call->graph, op, &attrs, inputs, inputs[LENGTHS] == NULL ? 4 : 5);
    for (int i = 0; y != NULL && i < outputs; i++)
        bel_onnx_out(call, i, bel_graph_output(y, i));
    return NULL;
}

bel_status *bel_onnx_lstm(bel_onnx_call *call)
{
    return recurrent(call, BEL_OP_LSTM, 3);
}

bel_status *bel_onnx_gru(bel_onnx_call *call)
{
    return recurrent(call, BEL_OP_GRU, 2);
}
