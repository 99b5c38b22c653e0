// Small training graph for the tests of src/runtime: two dense layers, dropout, cross-entropy, and
// the gradients of all variables.
#ifndef BELFRY_TESTS_UNIT_RUNTIME_TEST_MLP_H
#define BELFRY_TESTS_UNIT_RUNTIME_TEST_MLP_H

#include "base/alloc.h"
#include "belfry/ops.h"
#include "runtime/program.h"
#include "support/bel_test.h"

enum { MLP_IN = 50, MLP_HIDDEN = 33, MLP_CLASSES = 10, MLP_VARIABLES = 4, MLP_BATCH = 37 };
enum { MLP_OUTPUTS = 2 + MLP_VARIABLES }; // loss, per-example loss, gradients

typedef struct mlp {
    bel_graph *graph;
    bel_program_output outputs[MLP_OUTPUTS]; // gradients are external
    float *variables[MLP_VARIABLES];
    float *gradients[MLP_VARIABLES];
    float x[MLP_BATCH * MLP_IN];
    int64_t labels[MLP_BATCH];
} mlp;

static int64_t mlp_elements(const mlp *m, int variable)
{
    bel_shape shape = bel_value_shape(m->graph->variables[variable].value);
    return bel_shape_elements(&shape);
}

static mlp *mlp_create(void)
{
    mlp *m = bel_xcalloc(1, sizeof *m);
    bel_graph *g = m->graph = bel_graph_create();
    bel_shape x_shape = BEL_SHAPE(BEL_DIM_BATCH, MLP_IN), label_shape = BEL_SHAPE(BEL_DIM_BATCH);
    bel_value *x = bel_input_value(g, "x", BEL_DTYPE_F32, &x_shape);
    bel_value *labels = bel_input_value(g, "labels", BEL_DTYPE_I64, &label_shape);
    bel_value *hidden = bel_relu(g, bel_dense(g, x, MLP_HIDDEN, "hidden"));
    hidden = bel_dropout(g, hidden, 0.25);
    bel_value *losses =
        bel_softmax_cross_entropy(g, bel_dense(g, hidden, MLP_CLASSES, "top"), labels);
    bel_value *loss = bel_mean(g, losses);
    bel_value *wanted[MLP_VARIABLES], *gradients[MLP_VARIABLES];
    assert_int_equal(g->variable_count, MLP_VARIABLES);
    for (int v = 0; v < MLP_VARIABLES; v++)
        wanted[v] = g->variables[v].value;
    bel_gradients(g, loss, wanted, MLP_VARIABLES, gradients);
    BEL_ASSERT_OK(bel_graph_check(g));
    m->outputs[0].value = loss;
    m->outputs[1].value = losses;
    for (int v = 0; v < MLP_VARIABLES; v++) {
        m->outputs[2 + v] = (bel_program_output){.value = gradients[v], .external = true};
        size_t count = (size_t)mlp_elements(m, v);
        m->variables[v] = bel_xcalloc(count, sizeof(float));
        m->gradients[v] = bel_xcalloc(count, sizeof(float));
        for (size_t i = 0; i < count; i++)
            m->variables[v][i] = (float)((i * 7919 + (size_t)v) % 2003) / 4000.0f - 0.25f;
    }
    for (size_t i = 0; i < MLP_BATCH * MLP_IN; i++)
        m->x[i] = (float)(i * 6271 % 1999) / 1000.0f - 1.0f;
    for (int i = 0; i < MLP_BATCH; i++)
        m->labels[i] = i * 7 % MLP_CLASSES;
    return m;
}

static void mlp_destroy(mlp *m)
{
    for (int v = 0; v < MLP_VARIABLES; v++) {
        bel_free(m->variables[v]);
        bel_free(m->gradients[v]);
    }
    bel_graph_destroy(m->graph);
    bel_free(m);
}

static void mlp_shapes(int64_t batch, bel_shape out_shapes[2])
{
    out_shapes[0] = BEL_SHAPE(batch, MLP_IN);
    out_shapes[1] = BEL_SHAPE(batch);
}

static void mlp_bind(mlp *m, bel_instance *instance)
{
    bel_instance_bind_input(instance, 0, m->x);
    bel_instance_bind_input(instance, 1, m->labels);
    for (int v = 0; v < MLP_VARIABLES; v++) {
        bel_instance_bind_variable(instance, v, m->variables[v]);
        bel_instance_bind_output(instance, 2 + v, m->gradients[v]);
    }
}

#endif
