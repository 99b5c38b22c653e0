// Programs in limited memory: some values are computed again, with the same bits; limits that are
// too low are refused.
#include "passes/passes.h"
#include "unit/runtime/test_models.h"

enum { ROWS = 200, COLUMNS = 96, LAYERS = 4 };

// Layers with several activations each, through an alias, with dropout between them.
static void build_deep(model *m, bel_value *x)
{
    static const char *const names[LAYERS] = {"a", "b", "c", "d"};
    bel_graph *g = m->graph;
    bel_shape turned = BEL_SHAPE(BEL_DIM_BATCH, 8, COLUMNS / 8);
    bel_shape back = BEL_SHAPE(BEL_DIM_BATCH, COLUMNS);
    for (int l = 0; l < LAYERS; l++) {
        bel_value *y = bel_tanh(g, bel_dense(g, x, COLUMNS, names[l]));
        bel_value *gate = bel_exp(g, bel_mul(g, y, y));
        y = bel_mul(g, bel_sigmoid(g, bel_reshape(g, y, &turned)), bel_reshape(g, gate, &turned));
        x = bel_dropout(g, bel_reshape(g, y, &back), 0.2);
    }
    put_out_gradients(m, x);
}

static const model_case deep = {"deep", build_deep, ROWS, COLUMNS, 0};

static bel_program *compile(const model *m, const bel_program_options *options)
{
    bel_shape shape = BEL_SHAPE(ROWS, COLUMNS);
    bel_program *program;
    BEL_ASSERT_OK(
        bel_program_compile(m->graph, &shape, m->outputs, m->output_count, options, &program));
    return program;
}

static void check_limit(const model *m, size_t limit, bool without_passes)
{
    bel_program_options options = {.memory_bytes = limit, .threads = 1};
    if (without_passes) options.passes_off = BEL_PASSES_ALL;
    bel_program *program = compile(m, &options);
    assert_true(bel_program_arena_bytes(program) <= limit);
    assert_true(bel_program_repeated_count(program) > 0);
    for (int i = 0; i < bel_program_instruction_count(program); i++) {
        bel_program_line line = bel_program_line_at(program, i);
        bool again = strstr(line.name, "/again_") != NULL;
        if (again && strcmp(line.op, "Dropout") == 0) fail_msg("random numbers are drawn again");
    }
    bel_program_destroy(program);
    void *expected[MOST_OUTPUTS], *got[MOST_OUTPUTS];
    size_t sizes[MOST_OUTPUTS];
    run_model(m, ROWS, NULL, 1, 1, expected, sizes);
    run_model(m, ROWS, &options, 2, 3, got, sizes);
    for (int o = 0; o < m->output_count; o++) {
        if (memcmp(expected[o], got[o], sizes[o]) != 0)
            fail_msg("limit %zu: output %d differs", limit, o);
        bel_free(expected[o]);
        bel_free(got[o]);
    }
}

static void test_limits(void **state)
{
    (void)state;
    model *m = model_create(&deep);
    bel_program *program = compile(m, NULL);
    size_t whole = bel_program_arena_bytes(program);
    assert_int_equal(bel_program_repeated_count(program), 0);
    bel_program_destroy(program);
    check_limit(m, whole * 9 / 10, false);
    check_limit(m, whole * 6 / 10, false);
    check_limit(m, whole * 6 / 10, true);
    bel_program_options generous = {.memory_bytes = whole};
    program = compile(m, &generous);
    assert_int_equal(bel_program_repeated_count(program), 0);
    bel_program_destroy(program);
    model_destroy(m);
}

// Residual blocks, with kernels that need workspace.
static void build_residual(model *m, bel_value *x)
{
    enum { BLOCKS = 12, KERNELS = 4, CHANNELS = 16 };
    bel_graph *g = m->graph;
    const bel_window_options same = {.size = sizeof same, .auto_pad = BEL_PAD_SAME_UPPER};
    const bel_initializer zeros = {.kind = BEL_INIT_ZEROS};
    static const char *const names[KERNELS] = {"a", "b", "c", "d"};
    bel_value *kernels[KERNELS];
    for (int k = 0; k < KERNELS; k++) {
        kernels[k] = bel_variable(g, names[k], &BEL_SHAPE(CHANNELS, CHANNELS, 3, 3), zeros,
                                  BEL_VARIABLE_TRAINABLE);
    }
    bel_value *h = bel_reshape(g, x, &BEL_SHAPE(BEL_DIM_BATCH, 1, 8, 8));
    h = bel_conv_2d(g, h, CHANNELS, 3, 1, true, "first");
    for (int b = 0; b < BLOCKS; b++) {
        bel_value *y = bel_conv(g, h, kernels[b % KERNELS], NULL, 1, &same);
        h = bel_relu(g, bel_add(g, h, y));
    }
    put_out_gradients(m, bel_flatten(g, h, 1));
}

// A program that fits into some memory also fits into more.
static void test_every_limit(void **state)
{
    (void)state;
    enum { PARTS = 150 };
    static const model_case residual = {"residual", build_residual, 32, 64, 0};
    model *m = model_create(&residual);
    bel_shape shape = BEL_SHAPE(32, 64);
    bel_program *program;
    BEL_ASSERT_OK(
        bel_program_compile(m->graph, &shape, m->outputs, m->output_count, NULL, &program));
    size_t whole = bel_program_arena_bytes(program), fits = 0;
    bel_program_destroy(program);
    for (size_t part = 1; part <= PARTS; part++) {
        bel_program_options options = {.memory_bytes = whole * part / PARTS, .threads = 1};
        bel_status *status =
            bel_program_compile(m->graph, &shape, m->outputs, m->output_count, &options, &program);
        if (status == NULL) {
            if (fits == 0) fits = part;
            bel_program_destroy(program);
        } else if (fits > 0) {
            fail_msg("%zu of %d parts fit, but of %zu: %s", fits, PARTS, part,
                     bel_status_message(status));
        }
        bel_status_destroy(status);
    }
    assert_true(fits > 0 && fits < PARTS);
    model_destroy(m);
}

static void check_refused(const bel_program_options *options, const char *part)
{
    model *m = model_create(&deep);
    bel_shape shape = BEL_SHAPE(ROWS, COLUMNS);
    bel_program *program;
    BEL_ASSERT_FAILS(
        bel_program_compile(m->graph, &shape, m->outputs, m->output_count, options, &program),
        BEL_RESOURCE_EXHAUSTED, part);
    model_destroy(m);
}

static void test_too_little(void **state)
{
    (void)state;
    check_refused(&(bel_program_options){.memory_bytes = 1 << 16},
                  "MiB, but may take only 0.1 MiB");
    check_refused(&(bel_program_options){.memory_bytes = 1 << 16, .asynchronous = true},
                  "MiB, but may take only 0.1 MiB");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_limits),
                                              cmocka_unit_test(test_every_limit),
                                              cmocka_unit_test(test_too_little)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
