// Gradient rules of softmax, cross-entropy and normalizations. Each is one operation that reads
// saved results of the forward pass (probabilities, or mean and inverse deviation), so nothing is
// reduced twice. If replicas exchanged moments, the rule of their reader includes the moments, so
// there is one exchange in the backward pass. Batch normalization in evaluation has its statistics
// as inputs; only then do mean and variance have gradients, which follow from those of bias and
// scale.
#include "autodiff/rules.h"
#include "belfry/ops.h"

void bel_grad_softmax(bel_gradient *g)
{
    bel_gradient_from_output(g, BEL_OP_SOFTMAX_GRAD);
}

void bel_grad_log_softmax(bel_gradient *g)
{
    bel_gradient_from_output(g, BEL_OP_LOG_SOFTMAX_GRAD);
}

// The second output is log softmax, from which the gradient follows; it has a separate gradient
// only for gradients of gradients.
void bel_grad_cross_entropy(bel_gradient *g)
{
    if (!g->needed[0]) return;
    bel_value *loss = g->output_grads[0], *logs = g->output_grads[1], *sum = NULL;
    if (loss != NULL) {
        bel_value *inputs[] = {loss, g->outputs[1], g->inputs[1]};
        sum = bel_graph_add(g->graph, BEL_OP_CROSS_ENTROPY_GRAD, NULL, inputs, 3);
    }
    if (logs != NULL) {
        bel_value *inputs[] = {logs, g->outputs[1]};
        bel_value *more = bel_graph_add(g->graph, BEL_OP_LOG_SOFTMAX_GRAD, NULL, inputs, 2);
        sum = sum == NULL ? more : bel_add(g->graph, sum, more);
    }
    g->input_grads[0] = sum;
}

// Outputs 3 and 4 are the mean and inverse deviation used for normalization. With fixed statistics
// y = (x - mean) · inverse · scale + bias: dmean = -dbias · scale · inverse, and dvariance =
// -dscale · scale · inverse² / 2.
void bel_grad_batch_norm(bel_gradient *g)
{
    if (g->output_grads[0] == NULL) return;
    bel_value *inputs[] = {g->output_grads[0], g->inputs[0], g->inputs[1], g->outputs[3],
                           g->outputs[4]};
    bel_value *dx = bel_graph_add(g->graph, BEL_OP_BATCH_NORM_GRAD, g->attrs, inputs, 5);
    if (dx == NULL) return;
    for (int i = 0; i < 3; i++)
        g->input_grads[i] = bel_graph_output(dx, i);
    bool training = bel_attr_number(g->attrs, "training_mode", 0) != 0; // y does not depend on
                                                                        // outputs 3 and 4
    if (training || (!g->needed[3] && !g->needed[4])) return;
    bel_value *inverse = g->outputs[4], *factor = bel_mul(g->graph, g->inputs[1], inverse);
    bel_value *half = bel_scalar(g->graph, bel_value_dtype(inverse), -0.5);
    g->input_grads[3] = bel_neg(g->graph, bel_mul(g->graph, g->input_grads[2], factor));
    bel_value *slope = bel_mul(g->graph, bel_mul(g->graph, factor, inverse), half);
    g->input_grads[4] = bel_mul(g->graph, g->input_grads[1], slope);
}

// dx needs the sums of all replicas, by which moments enter all losses, so they are weighted
// (collectives.c). dscale and dbias are this replica's part, like any gradient of a variable.
// Without the attribute "exchange" the moments are those of this x only.
void bel_grad_moments_norm(bel_gradient *g)
{
    if (g->output_grads[0] == NULL) return;
    bel_value *inputs[] = {g->output_grads[0], g->inputs[0], g->outputs[1], g->inputs[1], NULL};
    bel_value *sums = bel_graph_add(g->graph, BEL_OP_MOMENTS_NORM_SUMS, NULL, inputs, 3);
    if (sums == NULL) return;
    g->input_grads[1] = bel_graph_output(sums, 1);
    g->input_grads[2] = bel_graph_output(sums, 2);
    if (!g->needed[0]) return;
    int exchange = (int)bel_attr_number(g->attrs, "exchange", -1);
    const bel_collective what = {
        .op = BEL_OP_ALL_REDUCE, .reduce = BEL_REDUCE_SUM, .weighted = true};
    if (exchange >= 0) sums = bel_graph_add_collective_gradient(g->graph, what, sums, exchange);
    inputs[4] = sums;
    g->input_grads[0] = bel_graph_add(g->graph, BEL_OP_MOMENTS_NORM_GRAD, NULL, inputs, 5);
}

// Outputs 1 and 2 are mean and inverse deviation of the rows; results are dx, dscale and, if there
// is a bias, dbias.
static void gradient(bel_gradient *g, bel_op op)
{
    if (g->output_grads[0] == NULL) return;
    bel_value *inputs[] = {g->output_grads[0], g->inputs[0], g->inputs[1], g->outputs[1],
                           g->outputs[2]};
    bel_value *dx = bel_graph_add(g->graph, op, g->attrs, inputs, 5);
    for (int i = 0; i < g->input_count && dx != NULL; i++)
        g->input_grads[i] = bel_graph_output(dx, i);
}

void bel_grad_layer_norm(bel_gradient *g)
{
    gradient(g, BEL_OP_LAYER_NORM_GRAD);
}

void bel_grad_group_norm(bel_gradient *g)
{
    gradient(g, BEL_OP_GROUP_NORM_GRAD);
}
