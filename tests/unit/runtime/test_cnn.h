// Small training graph with convolutions for the tests of src/runtime. It has batch and group
// normalization, a residual connection, a transposed convolution, both pools, a dense layer and
// cross-entropy. Outputs are the loss, the gradients of all variables and the new moving
// statistics.
#ifndef BELFRY_TESTS_UNIT_RUNTIME_TEST_CNN_H
#define BELFRY_TESTS_UNIT_RUNTIME_TEST_CNN_H

#include "base/alloc.h"
#include "belfry/ops.h"
#include "runtime/program.h"
#include "support/bel_test.h"

enum { CNN_BATCH = 11, CNN_PIXELS = 3 * 10 * 9, CNN_CLASSES = 5, CNN_MOST = 24 };

typedef struct cnn {
    bel_graph *graph;
    bel_program_output outputs[CNN_MOST]; // all but the loss are external
    int output_count;
    float *variables[CNN_MOST], *results[CNN_MOST];
    float x[CNN_BATCH * CNN_PIXELS];
    int64_t labels[CNN_BATCH];
    bel_program *program;
    bel_instance *instance;
    bel_device_memory memory;
} cnn;

// Adds x, enlarged from 17 channels to 20 at twice the size.
static bel_value *cnn_enlarge(bel_graph *g, bel_value *x)
{
    static const int64_t two[] = {2, 2};
    bel_window_options doubling = {
        .size = sizeof doubling, .strides = two, .auto_pad = BEL_PAD_SAME_UPPER};
    bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    bel_shape w_shape = BEL_SHAPE(17, 20, 3, 3), bias_shape = BEL_SHAPE(20);
    bel_value *w = bel_variable(g, "enlarge/kernel", &w_shape, zeros, BEL_VARIABLE_TRAINABLE);
    bel_value *bias = bel_variable(g, "enlarge/bias", &bias_shape, zeros, BEL_VARIABLE_TRAINABLE);
    return bel_conv_transpose(g, x, w, bias, 1, &doubling, NULL, NULL);
}

static bel_value *cnn_layers(bel_graph *g, bel_value *x)
{
    static const int64_t two[] = {2, 2};
    bel_window_options halving = {.size = sizeof halving, .strides = two};
    bel_value *h = bel_conv_2d(g, x, 17, 3, 1, false, "first");
    h = bel_relu(g, bel_batch_norm(g, h, true, "norm"));
    h = bel_relu(g, bel_add(g, h, bel_conv_2d(g, h, 17, 3, 1, false, "second")));
    h = bel_max_pool(g, h, two, &halving, false);
    h = bel_relu(g, cnn_enlarge(g, h));
    h = bel_tanh(g, bel_group_norm(g, bel_conv_2d(g, h, 32, 3, 2, true, "third"), 8, "groups"));
    h = bel_average_pool(g, h, two, NULL, false, false);
    return bel_dense(g, bel_flatten(g, h, 1), CNN_CLASSES, "top");
}

static void cnn_put_out(cnn *m, bel_value *value)
{
    bel_shape shape = bel_value_shape(value);
    m->results[m->output_count] = bel_xcalloc((size_t)bel_shape_elements(&shape), sizeof(float));
    m->outputs[m->output_count] =
        (bel_program_output){.value = value, .external = m->output_count > 0};
    m->output_count++;
}

static void cnn_put_outputs(cnn *m, bel_value *loss)
{
    bel_graph *g = m->graph;
    bel_value *wanted[CNN_MOST], *gradients[CNN_MOST];
    int wanted_count = 0;
    for (size_t v = 0; v < g->variable_count; v++)
        if (g->variables[v].assigned == NULL) wanted[wanted_count++] = g->variables[v].value;
    bel_gradients(g, loss, wanted, wanted_count, gradients);
    BEL_ASSERT_OK(bel_graph_check(g));
    cnn_put_out(m, loss);
    for (int i = 0; i < wanted_count; i++)
        cnn_put_out(m, gradients[i]);
    for (size_t v = 0; v < g->variable_count; v++)
        if (g->variables[v].assigned != NULL) cnn_put_out(m, g->variables[v].assigned);
}

static cnn *cnn_create(const bel_program_options *options)
{
    cnn *m = bel_xcalloc(1, sizeof *m);
    bel_graph *g = m->graph = bel_graph_create();
    bel_shape x_shape = BEL_SHAPE(BEL_DIM_BATCH, 3, 10, 9), label_shape = BEL_SHAPE(BEL_DIM_BATCH);
    bel_value *x = bel_input_value(g, "x", BEL_DTYPE_F32, &x_shape);
    bel_value *labels = bel_input_value(g, "labels", BEL_DTYPE_I64, &label_shape);
    bel_value *losses = bel_softmax_cross_entropy(g, cnn_layers(g, x), labels);
    cnn_put_outputs(m, bel_mean(g, losses));
    for (size_t v = 0; v < g->variable_count; v++) {
        size_t count = (size_t)bel_shape_elements(&g->variables[v].value->spec.shape);
        m->variables[v] = bel_xcalloc(count, sizeof(float));
        bool positive = strstr(g->variables[v].name, "variance") != NULL;
        for (size_t i = 0; i < count; i++)
            m->variables[v][i] =
                (float)((i * 7919 + v) % 2003) / 6000.0f - (positive ? -0.5f : 0.15f);
    }
    for (size_t i = 0; i < CNN_BATCH * CNN_PIXELS; i++)
        m->x[i] = (float)(i * 6271 % 1999) / 1000.0f - 1.0f;
    for (int i = 0; i < CNN_BATCH; i++)
        m->labels[i] = i * 7 % CNN_CLASSES;
    bel_shape shapes[] = {BEL_SHAPE(CNN_BATCH, 3, 10, 9), BEL_SHAPE(CNN_BATCH)};
    BEL_ASSERT_OK(
        bel_program_compile(g, shapes, m->outputs, m->output_count, options, &m->program));
    BEL_ASSERT_OK(bel_program_allocate(m->program, &m->memory));
    BEL_ASSERT_OK(bel_instance_create_on(m->program, &m->memory, &m->instance));
    bel_instance_bind_input(m->instance, 0, m->x);
    bel_instance_bind_input(m->instance, 1, m->labels);
    for (size_t v = 0; v < g->variable_count; v++)
        bel_instance_bind_variable(m->instance, (int)v, m->variables[v]);
    for (int o = 1; o < m->output_count; o++)
        bel_instance_bind_output(m->instance, o, m->results[o]);
    return m;
}

static void cnn_destroy(cnn *m)
{
    for (int i = 0; i < CNN_MOST; i++) {
        bel_free(m->variables[i]);
        bel_free(m->results[i]);
    }
    bel_instance_destroy(m->instance);
    bel_program_release(m->program, &m->memory);
    bel_program_destroy(m->program);
    bel_graph_destroy(m->graph);
    bel_free(m);
}

#endif
