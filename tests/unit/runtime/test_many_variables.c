// Programs with thousands of variables. Work done once per variable or output must not be done per
// pair, or these programs exceed the test's time limit. The results are known: all kernels are the
// identity and all biases 0.
#include "base/alloc.h"
#include "belfry/ops.h"
#include "graph/graph.h"
#include "runtime/program.h"
#include "support/bel_test.h"

enum { ROWS = 8, WIDTH = 8, SIZE = ROWS * WIDTH };

typedef struct chain {
    bel_graph *graph;
    bel_program_output *outputs; // the gradient of each variable, then the loss
    int variable_count;
    float *kernel, *bias, *gradients; // room for SIZE elements in each gradient
} chain;

static chain make_chain(int layers)
{
    chain c = {.graph = bel_graph_create(), .variable_count = 2 * layers};
    size_t count = (size_t)c.variable_count;
    bel_shape shape = BEL_SHAPE(BEL_DIM_BATCH, WIDTH);
    bel_value *y = bel_input_value(c.graph, "x", BEL_DTYPE_F32, &shape);
    for (int i = 0; i < layers; i++) {
        char name[24];
        snprintf(name, sizeof name, "layer_%d", i);
        y = bel_dense(c.graph, y, WIDTH, name);
    }
    bel_value *loss = bel_mean(c.graph, y);
    bel_value **variables = bel_xcalloc(count, sizeof(bel_value *));
    bel_value **gradients = bel_xcalloc(count, sizeof(bel_value *));
    for (size_t v = 0; v < count; v++)
        variables[v] = c.graph->variables[v].value;
    bel_gradients(c.graph, loss, variables, c.variable_count, gradients);
    BEL_ASSERT_OK(bel_graph_check(c.graph));
    c.outputs = bel_xcalloc(count + 1, sizeof *c.outputs);
    for (size_t v = 0; v < count; v++)
        c.outputs[v] = (bel_program_output){.value = gradients[v], .external = true};
    c.outputs[count].value = loss;
    c.kernel = bel_xcalloc(SIZE, sizeof(float));
    c.bias = bel_xcalloc(SIZE, sizeof(float));
    c.gradients = bel_xcalloc(count * SIZE, sizeof(float));
    for (int i = 0; i < WIDTH; i++)
        c.kernel[i * WIDTH + i] = 1;
    bel_free(variables);
    bel_free(gradients);
    return c;
}

static void free_chain(chain *c)
{
    bel_graph_destroy(c->graph);
    bel_free(c->outputs);
    bel_free(c->kernel);
    bel_free(c->bias);
    bel_free(c->gradients);
}

static bel_program *compile(const chain *c, const bel_program_options *options)
{
    bel_shape shape = BEL_SHAPE(ROWS, WIDTH);
    bel_program *program;
    BEL_ASSERT_OK(bel_program_compile(c->graph, &shape, c->outputs, c->variable_count + 1, options,
                                      &program));
    return program;
}

// Every layer has the input x and a gradient of 1 / SIZE in each element, whose sum over the rows
// is 1 / WIDTH.
static void check_results(const chain *c, const float *x, const bel_instance *instance)
{
    float sums[WIDTH] = {0}, all = 0;
    for (int i = 0; i < SIZE; i++) {
        sums[i % WIDTH] += x[i];
        all += x[i];
    }
    bel_tensor loss = bel_instance_output(instance, c->variable_count);
    assert_true(*(const float *)loss.data == all / SIZE);
    for (int v = 0; v < c->variable_count; v++) {
        const float *gradient = c->gradients + (size_t)v * SIZE;
        bool kernel = v % 2 == 0, right = true;
        for (int i = 0; i < (kernel ? SIZE : WIDTH); i++)
            right = right && gradient[i] == (kernel ? sums[i / WIDTH] / SIZE : 1.0f / WIDTH);
        if (!right) fail_msg("the gradient of variable %d is wrong", v);
    }
}

// Runs with all variables at one address, then with kernels, biases and gradients at others.
static void check_runs(chain *c, const bel_program *program, int threads)
{
    size_t bytes = bel_program_arena_bytes(program), room = (size_t)c->variable_count * SIZE;
    float x[SIZE], other_kernel[SIZE], other_bias[WIDTH] = {0}, *first = c->gradients;
    float *second = bel_xcalloc(room, sizeof *second);
    void *arena;
    bel_team *team;
    bel_run_context context = {.seed = 1};
    BEL_ASSERT_OK(bel_team_create(threads, &team));
    BEL_ASSERT_OK(bel_pages_create(bytes, true, "arena", &arena));
    bel_instance *instance = bel_instance_create(program, arena);
    memcpy(other_kernel, c->kernel, sizeof other_kernel);
    for (int i = 0; i < SIZE; i++)
        x[i] = (float)(i * 7 % 11 - 5);
    bel_instance_bind_input(instance, 0, x);
    for (int run = 0; run < 2; run++) {
        c->gradients = run == 0 ? first : second;
        for (int v = 0; v < c->variable_count; v++) {
            const float *kernel = run == 0 ? c->kernel : other_kernel;
            const float *bias = run == 0 ? c->bias : other_bias;
            bel_instance_bind_variable(instance, v, v % 2 == 0 ? kernel : bias);
            bel_instance_bind_output(instance, v, c->gradients + (size_t)v * SIZE);
        }
        BEL_ASSERT_OK(bel_instance_run(instance, team, &context, NULL, NULL));
        check_results(c, x, instance);
        memset(first, 0, room * sizeof *first); // the second run must not find old results
    }
    c->gradients = first;
    bel_free(second);
    bel_instance_destroy(instance);
    bel_pages_destroy(arena, bytes);
    bel_team_destroy(team);
}

static void test_chain(void **state)
{
    (void)state;
    chain c = make_chain(10000);
    bel_program *program = compile(&c, NULL);
    double live = (double)bel_program_live_bytes(program);
    assert_true((double)bel_program_arena_bytes(program) <= 1.01 * live);
    check_runs(&c, program, 1);
    bel_program_destroy(program);
    free_chain(&c);
}

// More calls than one block of the executor's sets, in one stream and in several.
static void test_asynchronous(void **state)
{
    (void)state;
    chain c = make_chain(1500);
    for (int threads = 1; threads <= 3; threads++) {
        const bel_program_options options = {.asynchronous = true, .threads = threads};
        bel_program *program = compile(&c, &options);
        check_runs(&c, program, threads);
        bel_program_destroy(program);
    }
    free_chain(&c);
}

// More steps than the number from which one value is recomputed at a time.
static void test_less_memory(void **state)
{
    (void)state;
    chain c = make_chain(600);
    bel_program *program = compile(&c, NULL);
    const bel_program_options options = {.memory_bytes = bel_program_arena_bytes(program) / 2};
    bel_program_destroy(program);
    program = compile(&c, &options);
    assert_true(bel_program_arena_bytes(program) <= options.memory_bytes);
    int again = bel_program_repeated_count(program);
    if (again < 300 || again > 330) fail_msg("%d operations are run again", again);
    check_runs(&c, program, 1);
    bel_program_destroy(program);
    free_chain(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_asynchronous),
        cmocka_unit_test(test_less_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
