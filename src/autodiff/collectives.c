// Gradient rules of collectives. The loss of a step is the mean of the replicas' losses with the
// weights w_r of their gradients, so a replica's gradient is 1 / w_i times the derivative of sum
// w_r L_r by its value. The adjoint of a plain exchange is therefore a weighted one: values sent by
// replica r are multiplied by w_r, and values received by replica i are divided by w_i. The adjoint
// of a weighted one is plain. With equal weights both are the same.
#include "autodiff/rules.h"
#include "belfry/ops.h"

// Adds an exchange for the gradient of the one in `g`.
static bel_value *collectives_exchange(bel_gradient *g, bel_value *value, bel_op op,
                                       bel_reduce_op reduce, bool weighted)
{
    int index = bel_collective_read(op, g->attrs).index;
    const bel_collective what = {.op = op, .reduce = reduce, .weighted = weighted};
    return bel_graph_add_collective_gradient(g->graph, what, value, index);
}

static bel_value *ones_where(bel_gradient *g, bel_value *condition)
{
    return bel_cast(g->graph, condition, bel_value_dtype(g->inputs[0]));
}

static bel_value *collectives_number(bel_gradient *g, double value)
{
    return bel_scalar(g->graph, bel_value_dtype(g->inputs[0]), value);
}

// Replicas that have the element share its gradient.
static bel_value *of_extreme(bel_gradient *g, bel_value *whole)
{
    bel_value *own = ones_where(g, bel_equal(g->graph, g->inputs[0], g->outputs[0]));
    bel_value *count = collectives_exchange(g, own, BEL_OP_ALL_REDUCE, BEL_REDUCE_SUM, false);
    return bel_div(g->graph, bel_mul(g->graph, whole, own), count);
}

// The product of the others: if one element is 0 that is no quotient.
static bel_value *of_product(bel_gradient *g, bel_value *whole)
{
    bel_graph *graph = g->graph;
    bel_value *zero = collectives_number(g, 0), *one = collectives_number(g, 1);
    bel_value *is_zero = bel_equal(graph, g->inputs[0], zero);
    bel_value *own = bel_where(graph, is_zero, one, g->inputs[0]);
    bel_value *all = collectives_exchange(g, own, BEL_OP_ALL_REDUCE, BEL_REDUCE_PRODUCT, false);
    bel_value *zeros =
        collectives_exchange(g, ones_where(g, is_zero), BEL_OP_ALL_REDUCE, BEL_REDUCE_SUM, false);
    bel_value *of_zero = bel_where(graph, bel_equal(graph, zeros, one), all, zero);
    bel_value *quotient = bel_div(graph, all, own);
    bel_value *of_other = bel_where(graph, bel_equal(graph, zeros, zero), quotient, zero);
    return bel_mul(graph, whole, bel_where(graph, is_zero, of_zero, of_other));
}

void bel_grad_all_reduce(bel_gradient *g)
{
    const bel_collective c = bel_collective_read(BEL_OP_ALL_REDUCE, g->attrs);
    bool mean = c.reduce == BEL_REDUCE_MEAN;
    if ((int)c.reduce == BEL_REDUCE_MOMENTS) { // the rule of their reader covers it (norms.c)
        bel_graph_fail(g->graph, BEL_UNIMPLEMENTED, "moments of all replicas have no gradient");
        return;
    }
    bel_value *whole = collectives_exchange(g, g->output_grads[0], BEL_OP_ALL_REDUCE,
                                            mean ? BEL_REDUCE_MEAN : BEL_REDUCE_SUM, !c.weighted);
    if (c.reduce == BEL_REDUCE_PRODUCT) {
        g->input_grads[0] = of_product(g, whole);
    } else if (c.reduce == BEL_REDUCE_MIN || c.reduce == BEL_REDUCE_MAX) {
        g->input_grads[0] = of_extreme(g, whole);
    } else {
        g->input_grads[0] = whole;
    }
}

void bel_grad_all_gather(bel_gradient *g)
{
    const bel_collective c = bel_collective_read(BEL_OP_ALL_GATHER, g->attrs);
    g->input_grads[0] = collectives_exchange(g, g->output_grads[0], BEL_OP_REDUCE_SCATTER,
                                             BEL_REDUCE_SUM, !c.weighted);
}

// Only an exchange knows the number of participants.
void bel_grad_reduce_scatter(bel_gradient *g)
{
    const bel_collective c = bel_collective_read(BEL_OP_REDUCE_SCATTER, g->attrs);
    if (c.reduce != BEL_REDUCE_SUM && c.reduce != BEL_REDUCE_MEAN) {
        bel_graph_fail(g->graph, BEL_UNIMPLEMENTED,
                       "ReduceScatter has a gradient only as a sum or a mean");
        return;
    }
    bel_value *grad =
        collectives_exchange(g, g->output_grads[0], BEL_OP_ALL_GATHER, 0, !c.weighted);
    if (c.reduce == BEL_REDUCE_MEAN) {
        bel_value *count = collectives_exchange(g, collectives_number(g, 1), BEL_OP_ALL_REDUCE,
                                                BEL_REDUCE_SUM, false);
        grad = bel_div(g->graph, grad, count);
    }
    g->input_grads[0] = grad;
}

void bel_grad_broadcast_from(bel_gradient *g)
{
    const bel_collective c = bel_collective_read(BEL_OP_BROADCAST_FROM, g->attrs);
    int64_t source = c.source;
    bel_tensor tensor = {BEL_DTYPE_I64, bel_shape_scalar(), &source};
    bel_value *is_source =
        bel_equal(g->graph, bel_replica_id(g->graph), bel_constant(g->graph, &tensor));
    bel_value *whole =
        collectives_exchange(g, g->output_grads[0], BEL_OP_ALL_REDUCE, BEL_REDUCE_SUM, !c.weighted);
    g->input_grads[0] = bel_where(g->graph, is_source, whole, collectives_number(g, 0));
}
