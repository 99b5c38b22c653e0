// Gradient rules of attention, masks, recurrent layers and CTC. Each is one operation that
// processes the sequence backwards with the attributes and lengths of the forward one. Recurrent
// layers pass only existing gradients; bits of attribute `given` list them, in the order of
// ops/recurrent.c. A masked softmax needs no mask in the backward pass: hidden elements have weight
// 0, and so have their gradients.
#include "autodiff/rules.h"
#include "belfry/ops.h"
#include "ops/recurrent.h"

void bel_grad_sequence_mask(bel_gradient *g)
{
    bel_value *inputs[] = {g->output_grads[0], g->inputs[1]};
    if (!g->needed[0]) return;
    g->input_grads[0] = bel_graph_add(g->graph, BEL_OP_SEQUENCE_MASK, g->attrs, inputs, 2);
}

void bel_grad_masked_softmax(bel_gradient *g)
{
    bel_gradient_from_output(g, BEL_OP_SOFTMAX_GRAD);
}

// From q, k, v, y and the logarithms of the sums of powers (output 1): weights are recomputed,
// block by block. No rule differentiates the logarithms.
void bel_grad_attention(bel_gradient *g)
{
    if (g->output_grads[1] != NULL) {
        bel_graph_fail(g->graph, BEL_UNIMPLEMENTED,
                       "attention_step has no gradient of its query, keys and values");
        return;
    }
    if (g->output_grads[0] == NULL) return;
    bel_value *inputs[7] = {g->output_grads[0], g->inputs[0],  g->inputs[1], g->inputs[2],
                            g->outputs[0],      g->outputs[1], g->inputs[3]};
    bel_value *dq = bel_graph_add(g->graph, BEL_OP_ATTENTION_GRAD, g->attrs, inputs,
                                  g->input_count > 3 ? 7 : 6);
    for (int i = 0; i < 3 && dq != NULL; i++)
        g->input_grads[i] = bel_graph_output(dq, i);
}

void bel_grad_ctc_loss(bel_gradient *g)
{
    if (g->output_grads[0] == NULL || !g->needed[0]) return;
    bel_value *inputs[] = {g->output_grads[0], g->outputs[1], g->inputs[1], g->inputs[2],
                           g->inputs[3]};
    g->input_grads[0] = bel_graph_add(g->graph, BEL_OP_CTC_LOSS_GRAD, g->attrs, inputs, 5);
}

// `saved` is the output with the activations of the gates. The outputs before it are y and the last
// states; any of these may lack a gradient.
static void recurrent_gradient(bel_gradient *g, bel_op op, int saved)
{
    if (bel_attr_number(g->attrs, "first", 0) != 0) {
        bel_graph_fail(g->graph, BEL_UNIMPLEMENTED,
                       "a recurrent layer with first states has no gradient");
        return;
    }
    bel_value *inputs[BEL_OP_MAX_INPUTS] = {g->inputs[0], g->inputs[1], g->inputs[2], g->outputs[0],
                                            g->outputs[saved]};
    int count = 5, given = g->needed[0] ? BEL_RECURRENT_DX : 0;
    if (g->input_count > 4) {
        inputs[count++] = g->inputs[4];
        given |= BEL_RECURRENT_LENGTHS;
    }
    static const int bits[] = {BEL_RECURRENT_DY, BEL_RECURRENT_DY_H, BEL_RECURRENT_DY_C};
    for (int i = 0; i < saved; i++) {
        if (g->output_grads[i] == NULL) continue;
        inputs[count++] = g->output_grads[i];
        given |= bits[i];
    }
    bel_attr_list attrs = *g->attrs;
    attrs.items[attrs.count++] = (bel_attr){.name = "given", .number = given};
    bel_value *dx = bel_graph_add(g->graph, op, &attrs, inputs, count);
    for (int i = 0; i < 4 && dx != NULL; i++)
        if (g->needed[i]) g->input_grads[i] = bel_graph_output(dx, i);
}

void bel_grad_gru(bel_gradient *g)
{
    recurrent_gradient(g, BEL_OP_GRU_GRAD, 2);
}

void bel_grad_lstm(bel_gradient *g)
{
    recurrent_gradient(g, BEL_OP_LSTM_GRAD, 3);
}
