// Gradient rules of matrix products. Both gradients of a product are products again, with one
// factor transposed; the rules only set flags, so that nothing is transposed in memory. The
// gradient of one matrix b that all rows of a stack share is a single product over all of them
// (MatMulFlat), not a sum of a stack of products. A factor alpha is the original product's; beta
// applies only to c.
#include "autodiff/rules.h"
#include "belfry/ops.h"

// For y = alpha a' b': da' = alpha dy b'^T and db' = alpha a'^T dy, each transposed back if needed.
static void product_grad(bel_gradient *g, bool ta, bool tb, double alpha)
{
    bel_value *a = g->inputs[0], *b = g->inputs[1], *dy = g->output_grads[0];
    if (g->needed[0]) {
        g->input_grads[0] = ta ? bel_gemm(g->graph, b, dy, NULL, alpha, 0, tb, true)
                               : bel_gemm(g->graph, dy, b, NULL, alpha, 0, false, !tb);
    }
    if (g->needed[1]) {
        g->input_grads[1] = tb ? bel_gemm(g->graph, dy, a, NULL, alpha, 0, true, ta)
                               : bel_gemm(g->graph, a, dy, NULL, alpha, 0, !ta, false);
    }
}

// With the factor alpha of the original product.
static bel_value *make_product(bel_gradient *g, bel_value *a, bel_value *b, bool ta, bool tb)
{
    bel_attr_list attrs = {
        .count = 3,
        .items = {{.name = "transA", .number = ta},
                  {.name = "transB", .number = tb},
                  {.name = "alpha", .number = bel_attr_number(g->attrs, "alpha", 1)}}};
    bel_value *inputs[] = {a, b};
    return bel_graph_add(g->graph, BEL_OP_MATMUL, &attrs, inputs, 2);
}

// The same as above, matrix by matrix. A gradient of a broadcast factor is summed over the stack;
// that of one matrix b for all rows is a single product.
void bel_grad_matmul(bel_gradient *g)
{
    bool ta = bel_attr_flag(g->attrs, "transA"), tb = bel_attr_flag(g->attrs, "transB");
    bel_value *a = g->inputs[0], *b = g->inputs[1], *dy = g->output_grads[0];
    int32_t a_rank = bel_value_shape(a).rank, b_rank = bel_value_shape(b).rank;
    if (a_rank == 2 && b_rank == 2) {
        product_grad(g, ta, tb, bel_attr_number(g->attrs, "alpha", 1));
        return;
    }
    if (g->needed[0]) {
        bel_set_broadcast_grad(
            g, 0, ta ? make_product(g, b, dy, tb, true) : make_product(g, dy, b, false, !tb));
    }
    if (!g->needed[1]) return;
    if (b_rank == 2 && !ta && !tb) {
        bel_value *inputs[] = {a, dy};
        g->input_grads[1] = bel_graph_add(g->graph, BEL_OP_MATMUL_FLAT, g->attrs, inputs, 2);
        return;
    }
    bel_set_broadcast_grad(
        g, 1, tb ? make_product(g, dy, a, true, ta) : make_product(g, a, dy, !ta, false));
}

void bel_grad_gemm(bel_gradient *g)
{
    product_grad(g, bel_attr_flag(g->attrs, "transA"), bel_attr_flag(g->attrs, "transB"),
                 bel_attr_number(g->attrs, "alpha", 1));
    if (g->input_count < 3 || !g->needed[2]) return;
    double beta = bel_attr_number(g->attrs, "beta", 1);
    bel_value *dy = g->output_grads[0];
    if (beta != 1.0) {
        dy = bel_mul(g->graph, dy, bel_scalar(g->graph, bel_value_dtype(dy), beta));
    }
    bel_value *inputs[] = {dy, g->inputs[2]};
    bel_shape have = bel_value_shape(dy), want = bel_value_shape(g->inputs[2]);
    bool same = bel_shape_equal(&have, &want);
    g->input_grads[2] = same ? dy : bel_graph_add(g->graph, BEL_OP_SUM_TO, NULL, inputs, 2);
}
