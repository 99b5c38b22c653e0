// Small graphs with their data, for tests that run one program in several ways.
#ifndef BELFRY_TESTS_UNIT_RUNTIME_TEST_MODELS_H
#define BELFRY_TESTS_UNIT_RUNTIME_TEST_MODELS_H

#include <stdatomic.h>

#include "base/alloc.h"
#include "belfry/ops.h"
#include "runtime/program.h"
#include "support/bel_test.h"

enum { MOST_OUTPUTS = 9, MOST_VARIABLES = 8 };

typedef struct model {
    bel_graph *graph;
    bel_program_output outputs[MOST_OUTPUTS];
    int output_count;
    float *input, *variables[MOST_VARIABLES];
} model;

typedef struct model_case {
    const char *name;
    void (*build)(model *m, bel_value *x);
    int64_t rows, columns; // shape of the input
    int joined;            // calls that join an earlier call's group
} model_case;

static bel_value *weights(model *m, const char *name, int64_t rows, int64_t columns)
{
    bel_shape shape = BEL_SHAPE(rows, columns);
    return bel_variable(m->graph, name, &shape, (bel_initializer){.kind = BEL_INIT_ZEROS},
                        BEL_VARIABLE_TRAINABLE);
}

static void put_out(model *m, bel_value *value, bool external)
{
    m->outputs[m->output_count++] = (bel_program_output){.value = value, .external = external};
}

// Adds the mean of h's squares as the loss, and the gradients of all variables.
static void put_out_gradients(model *m, bel_value *h)
{
    bel_value *loss = bel_mean(m->graph, bel_mul(m->graph, h, h));
    bel_value *wanted[MOST_VARIABLES], *gradients[MOST_VARIABLES];
    int count = (int)m->graph->variable_count;
    for (int v = 0; v < count; v++)
        wanted[v] = m->graph->variables[v].value;
    bel_gradients(m->graph, loss, wanted, count, gradients);
    put_out(m, loss, false);
    for (int v = 0; v < count; v++)
        put_out(m, gradients[v], true);
}

static void build_layers(model *m, bel_value *x, bel_value *(*activate)(bel_graph *, bel_value *))
{
    bel_value *h = activate(m->graph, bel_dense(m->graph, x, 272, "first"));
    h = activate(m->graph, bel_dense(m->graph, h, 48, "second"));
    put_out_gradients(m, bel_dense(m->graph, h, 10, "third"));
}

static void build_relu(model *m, bel_value *x)
{
    build_layers(m, x, bel_relu);
}

static void build_sigmoid(model *m, bel_value *x)
{
    build_layers(m, x, bel_sigmoid);
}

// Three calls read one value; two of them are read by one call.
static void build_branches(model *m, bel_value *x)
{
    bel_graph *g = m->graph;
    bel_value *y = bel_matmul(g, x, weights(m, "w", bel_value_shape(x).dims[1], 32));
    put_out(m, bel_add(g, bel_relu(g, y), bel_tanh(g, y)), true);
    put_out(m, bel_sigmoid(g, y), false);
}

// Each call reads the one before it.
static void build_chain(model *m, bel_value *x)
{
    bel_value *y = bel_matmul(m->graph, x, weights(m, "w", bel_value_shape(x).dims[1], 32));
    put_out(m, bel_neg(m->graph, bel_exp(m->graph, bel_tanh(m->graph, y))), false);
}

// Outputs that other calls read: in the arena, in outside memory, and through an alias.
static void build_put_out(model *m, bel_value *x)
{
    bel_graph *g = m->graph;
    bel_value *a = bel_dense(g, x, 32, "a"), *b = bel_dense(g, x, 32, "b");
    bel_value *c = bel_dense(g, x, 32, "c");
    put_out(m, bel_relu(g, a), true);
    put_out(m, a, false);
    put_out(m, bel_relu(g, b), true);
    put_out(m, b, true);
    put_out(m, bel_relu(g, c), false);
    put_out(m, bel_identity(g, c), true);
}

// An operation overwrites its neighbor's input.
static void build_in_place(model *m, bel_value *x)
{
    bel_graph *g = m->graph;
    bel_value *h = bel_abs(g, bel_neg(g, x)); // is in the arena
    bel_value *y = bel_matmul(g, h, weights(m, "w", bel_value_shape(x).dims[1], 1024));
    bel_value *over = bel_exp(g, h); // may overwrite h
    put_out(m, bel_relu(g, y), false);
    put_out(m, bel_neg(g, over), false);
}

// Two towers of layers side by side, large enough to be separate streams.
static void build_towers(model *m, bel_value *x)
{
    bel_value *a = bel_relu(m->graph, bel_dense(m->graph, x, 256, "left_0"));
    bel_value *b = bel_tanh(m->graph, bel_dense(m->graph, x, 192, "right_0"));
    a = bel_dense(m->graph, a, 64, "left_1");
    b = bel_dense(m->graph, b, 64, "right_1");
    put_out_gradients(m, bel_mul(m->graph, a, b));
}

static const model_case model_cases[] = {
    {"relu, one row", build_relu, 1, 7, 6},
    {"relu, odd sizes", build_relu, 37, 131, 6},
    {"relu, several tiles", build_relu, 500, 300, 6},
    {"sigmoid", build_sigmoid, 64, 300, 6},
    {"branches", build_branches, 33, 20, 2},
    {"chain", build_chain, 33, 20, 0},
    {"put out", build_put_out, 33, 20, 5},
    {"in place", build_in_place, 256, 512, 1},
    {"towers", build_towers, 300, 200, 11},
};

enum { MODEL_CASES = sizeof model_cases / sizeof model_cases[0] };

static model *model_create(const model_case *c)
{
    model *m = bel_xcalloc(1, sizeof *m);
    m->graph = bel_graph_create();
    bel_shape shape = BEL_SHAPE(BEL_DIM_BATCH, c->columns);
    c->build(m, bel_input_value(m->graph, "x", BEL_DTYPE_F32, &shape));
    BEL_ASSERT_OK(bel_graph_check(m->graph));
    int64_t count = c->rows * c->columns;
    m->input = bel_xcalloc((size_t)count, sizeof(float));
    for (int64_t i = 0; i < count; i++)
        m->input[i] = (float)(i * 6271 % 1999) / 1000.0f - 1.0f;
    for (size_t v = 0; v < m->graph->variable_count; v++) {
        bel_shape of = bel_value_shape(m->graph->variables[v].value);
        int64_t elements = bel_shape_elements(&of);
        m->variables[v] = bel_xcalloc((size_t)elements, sizeof(float));
        for (int64_t i = 0; i < elements; i++)
            m->variables[v][i] = (float)((i * 7919 + (int64_t)v) % 2003) / 20000.0f - 0.05f;
    }
    return m;
}

static void model_destroy(model *m)
{
    for (int v = 0; v < MOST_VARIABLES; v++)
        bel_free(m->variables[v]);
    bel_free(m->input);
    bel_graph_destroy(m->graph);
    bel_free(m);
}

static void count_published(void *context, int output, int64_t first, int64_t count)
{
    (void)first;
    atomic_llong *published = context;
    atomic_fetch_add(&published[output], count);
}

// Compiles a model and runs it `runs` times; the outputs hold the results of the last run. Returns
// the number of calls that join an earlier call's group.
static int run_model(const model *m, int64_t rows, const bel_program_options *options, int threads,
                     int runs, void *out_contents[MOST_OUTPUTS], size_t out_sizes[MOST_OUTPUTS])
{
    bel_shape shape = bel_value_shape(m->graph->inputs[0].value);
    shape.dims[0] = rows;
    bel_program *program;
    void *arena;
    bel_team *team;
    BEL_ASSERT_OK(
        bel_program_compile(m->graph, &shape, m->outputs, m->output_count, options, &program));
    size_t bytes = bel_program_arena_bytes(program) + 64;
    BEL_ASSERT_OK(bel_pages_create(bytes, false, "activations", &arena));
    memset(arena, 0xff, bytes); // NaN, in case anything is read before it is written
    BEL_ASSERT_OK(bel_team_create(threads, &team));
    bel_instance *instance = bel_instance_create(program, arena);
    bel_instance_bind_input(instance, 0, m->input);
    for (size_t v = 0; v < m->graph->variable_count; v++)
        bel_instance_bind_variable(instance, (int)v, m->variables[v]);
    for (int o = 0; o < m->output_count; o++) {
        bel_tensor tensor = bel_instance_output(instance, o);
        out_sizes[o] = bel_tensor_bytes(&tensor);
        out_contents[o] = bel_xcalloc(out_sizes[o], 1);
        if (m->outputs[o].external) bel_instance_bind_output(instance, o, out_contents[o]);
    }
    bel_run_context context = {.seed = 1};
    atomic_llong published[MOST_OUTPUTS] = {0};
    for (int again = 0; again < runs; again++)
        BEL_ASSERT_OK(bel_instance_run(instance, team, &context, count_published, published));
    for (int o = 0; o < m->output_count; o++) {
        bel_tensor tensor = bel_instance_output(instance, o);
        int64_t elements = m->outputs[o].external ? bel_shape_elements(&tensor.shape) : 0;
        assert_int_equal(atomic_load(&published[o]), runs * elements);
    }
    for (int o = 0; o < m->output_count; o++)
        if (!m->outputs[o].external)
            memcpy(out_contents[o], bel_instance_output(instance, o).data, out_sizes[o]);
    int joined = bel_program_instruction_count(program) - bel_program_group_count(program);
    bel_instance_destroy(instance);
    bel_team_destroy(team);
    bel_pages_destroy(arena, bytes);
    bel_program_destroy(program);
    return joined;
}

#endif
