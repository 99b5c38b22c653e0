// Tests of every row of cases.def, four times: the fast kernels against the reference kernels and
// against PyTorch's numbers in double (oracle.txt), the gradient against central differences in
// double, and one thread against three. The last group fails for an operation without a row.
#include "autodiff/rules.h"
#include "base/file.h"
#include "op/op_case.h"

enum {
#define CASE(name, op, inputs, attrs, tolerance) CASE_##name,
#include "op/cases.def"
#undef CASE
    CASE_COUNT
};

static op_case cases[] = {
#define CASE(name, op, inputs, attrs, tolerance) {#name, BEL_OP_##op, inputs, attrs, tolerance},
#include "op/cases.def"
#undef CASE
};

// --- Fast against reference ----------------------------------------------------------------------

static void test_reference(void **state)
{
    const op_case *row = *state;
    op_run fast, plain;
    int outputs = op_run_create(&fast, row, false);
    op_run_create(&plain, row, true);
    op_run_start(&fast, 1);
    op_run_start(&plain, 1);
    for (int o = 0; o < outputs; o++) {
        bel_tensor got = bel_instance_output(fast.instance, o);
        bel_tensor expected = bel_instance_output(plain.instance, o);
        assert_true(bel_shape_equal(&got.shape, &expected.shape));
        for (int64_t i = 0; i < bel_shape_elements(&got.shape); i++) {
            double g = bel_element_get(&got, i), e = bel_element_get(&expected, i);
            if (!op_is_near(g, e, row->tolerance)) {
                fail_msg("output %d, element %lld: fast %.9g, reference %.9g", o, (long long)i, g,
                         e);
            }
        }
    }
    op_run_destroy(&fast);
    op_run_destroy(&plain);
}

// --- Fast against stored numbers -----------------------------------------------------------------

static char *oracle;

static int read_oracle(void **state)
{
    (void)state;
    size_t size;
    BEL_ASSERT_OK(bel_file_read("tests/op/oracle.txt", &oracle, &size));
    return 0;
}

static int free_oracle(void **state)
{
    (void)state;
    bel_free(oracle);
    return 0;
}

// Returns the numbers stored for a row, or NULL.
static char *find_oracle(const char *name)
{
    size_t length = strlen(name);
    for (char *line = oracle; line != NULL && *line != '\0';) {
        if (strncmp(line, name, length) == 0 && line[length] == ' ') return line + length;
        line = strchr(line, '\n');
        if (line != NULL) line++;
    }
    return NULL;
}

static void test_oracle(void **state)
{
    const op_case *row = *state;
    char *text = find_oracle(row->name);
    if ((bel_op_get(row->op)->flags & BEL_OP_RANDOM) != 0) skip(); // test_dropout, test_random
    if (text == NULL) fail_msg("oracle.txt has no line \"%s\": run tests/op/oracle.py", row->name);
    op_run run;
    op_run_create(&run, row, false);
    op_run_start(&run, 1);
    bel_tensor got = bel_instance_output(run.instance, 0);
    int64_t elements = strtoll(text, &text, 10), step = strtoll(text, &text, 10);
    assert_int_equal(bel_shape_elements(&got.shape), elements);
    for (int64_t i = 0; i < elements; i += step) {
        char *end;
        double expected = strtod(text, &end), g = bel_element_get(&got, i);
        assert_ptr_not_equal(end, text);
        text = end;
        if (!op_is_near(g, expected, row->tolerance)) {
            fail_msg("element %lld: got %.9g, expected %.9g", (long long)i, g, expected);
        }
    }
    op_run_destroy(&run);
}

// --- Gradients ----------------------------------------------------------------------------------

// Sum of the output times fixed weights in [-1, 1].
static bel_value *weighted_loss(op_run *run)
{
    bel_shape shape = bel_value_shape(run->y);
    int64_t elements = bel_shape_elements(&shape);
    double *weights = bel_xmalloc((size_t)elements * sizeof *weights);
    for (int64_t i = 0; i < elements; i++)
        weights[i] = (double)((i * 6271 + 17) % 2003) / 1001.0 - 1.0;
    bel_tensor tensor = {BEL_DTYPE_F64, shape, weights};
    bel_value *constant = bel_constant(run->graph, &tensor);
    bel_free(weights);
    return bel_reduce_sum(run->graph, bel_mul(run->graph, run->y, constant), NULL, 0, false);
}

static double loss_with(op_run *run, int input, int64_t element, double value)
{
    double *data = run->data[input].data, kept = data[element];
    data[element] = value;
    op_run_start(run, 1);
    bel_tensor loss = bel_instance_output(run->instance, 0);
    data[element] = kept;
    return bel_element_get(&loss, 0);
}

// Compares at most SAMPLES elements of one input's gradient. Without an output it must be 0.
static void check_gradient(op_run *run, int input, int output)
{
    enum { SAMPLES = 16 };
    const double step = 1e-5, tolerance = 1e-6;
    op_run_start(run, 1);
    int64_t elements = bel_shape_elements(&run->data[input].shape);
    double *gradient = bel_xcalloc((size_t)elements, sizeof *gradient), largest = 0;
    if (output >= 0) {
        bel_tensor view = bel_instance_output(run->instance, output);
        assert_true(bel_shape_equal(&view.shape, &run->data[input].shape));
        memcpy(gradient, view.data, bel_tensor_bytes(&view)); // the next run overwrites it
    }
    for (int64_t i = 0; i < elements; i++)
        largest = fmax(largest, fabs(gradient[i]));
    for (int64_t i = 0; i < elements; i += (elements + SAMPLES - 1) / SAMPLES) {
        double x = ((double *)run->data[input].data)[i];
        double above = loss_with(run, input, i, x + step);
        double below = loss_with(run, input, i, x - step);
        double difference = (above - below) / (2 * step);
        double rounding = 1e-10 * (1 + fabs(above));
        if (fabs(gradient[i] - difference) > tolerance * largest + rounding) {
            fail_msg("input %d, element %lld: gradient %.12g, difference %.12g", input,
                     (long long)i, gradient[i], difference);
        }
    }
    bel_free(gradient);
}

static void test_gradient(void **state)
{
    const op_case *row = *state;
    op_run run;
    op_run_build(&run, row, BEL_DTYPE_F64);
    enum { LARGE = 15000 }; // elements: f64 uses the plain kernels, the same for all sizes
    bel_value *wanted[BEL_OP_MAX_INPUTS], *gradients[BEL_OP_MAX_INPUTS];
    int wanted_count = 0, inputs[BEL_OP_MAX_INPUTS];
    bel_gradient_fn *rule = bel_gradient_rule(row->op);
    bool smooth = rule != NULL && rule != bel_grad_none && bel_value_dtype(run.y) == BEL_DTYPE_F64;
    bel_shape result = bel_value_shape(run.y);
    if (bel_shape_elements(&result) > LARGE) smooth = false;
    for (int i = 0; i < run.input_count; i++) {
        if (run.inputs[i].kind == 'q') smooth = false; // ties are kinks: test_kinks
        if (bel_shape_elements(&run.inputs[i].shape) > LARGE) smooth = false;
        if (run.inputs[i].kind != 'f') continue;
        inputs[wanted_count] = i;
        wanted[wanted_count++] = run.values[i];
    }
    if (!smooth || wanted_count == 0) {
        op_run_destroy(&run);
        skip();
    }
    bel_program_output outputs[OP_RUN_MAX_OUTPUTS] = {{.value = weighted_loss(&run)}};
    bel_gradients(run.graph, outputs[0].value, wanted, wanted_count, gradients);
    BEL_ASSERT_OK(bel_graph_check(run.graph));
    int count = 1, places[BEL_OP_MAX_INPUTS];
    for (int i = 0; i < wanted_count; i++) {
        places[i] = gradients[i] == NULL ? -1 : count;
        if (gradients[i] != NULL) outputs[count++].value = gradients[i];
    }
    assert_true(count > 1);
    op_run_compile(&run, outputs, count, false);
    for (int i = 0; i < wanted_count; i++)
        check_gradient(&run, inputs[i], places[i]);
    op_run_destroy(&run);
}

// --- Threads -------------------------------------------------------------------------------------

static void test_threads(void **state)
{
    const op_case *row = *state;
    op_run alone, team;
    int outputs = op_run_create(&alone, row, false);
    op_run_create(&team, row, false);
    op_run_start(&alone, 1);
    op_run_start(&team, 3);
    for (int o = 0; o < outputs; o++) {
        bel_tensor expected = bel_instance_output(alone.instance, o);
        bel_tensor got = bel_instance_output(team.instance, o);
        assert_memory_equal(got.data, expected.data, bel_tensor_bytes(&expected));
    }
    op_run_destroy(&alone);
    op_run_destroy(&team);
}

// --- Tests that rows cannot express -------------------------------------------------------------

static void test_every_op_has_a_row(void **state)
{
    (void)state;
    for (int op = 0; op < BEL_OP_COUNT; op++) {
        const bel_op_def *def = bel_op_get((bel_op)op);
        bool found = (def->flags & BEL_OP_LEAF) != 0 || op == BEL_OP_FUSED; // test_passes.c
        // test_collectives.c tests those of replicas.
        found = found || bel_op_is_collective((bel_op)op) || op == BEL_OP_REPLICA_ID;
        for (int i = 0; i < CASE_COUNT; i++)
            found = found || cases[i].op == (bel_op)op;
        if (!found) fail_msg("operation %s has no row in tests/op/cases.def", def->name);
    }
}

// The gradient of sum(op(a, b)) with respect to `count` inputs of three elements.
static void kink_gradient(bel_op op, const double (*x)[3], int count, double (*out)[3])
{
    bel_shape shape = BEL_SHAPE(3);
    bel_graph *graph = bel_graph_create();
    bel_value *inputs[2], *gradients[2];
    op_run run = {.graph = graph, .input_count = count, .context = {.seed = 1}};
    for (int i = 0; i < count; i++) {
        inputs[i] = bel_input_value(graph, i == 0 ? "a" : "b", BEL_DTYPE_F64, &shape);
        run.data[i] = (bel_tensor){BEL_DTYPE_F64, shape, bel_xmalloc(sizeof x[i])};
        memcpy(run.data[i].data, x[i], sizeof x[i]);
    }
    bel_value *y = bel_graph_add(graph, op, NULL, inputs, count);
    bel_gradients(graph, bel_reduce_sum(graph, y, NULL, 0, false), inputs, count, gradients);
    BEL_ASSERT_OK(bel_graph_check(graph));
    bel_program_output outputs[2];
    for (int i = 0; i < count; i++)
        outputs[i] = (bel_program_output){.value = gradients[i]};
    op_run_compile(&run, outputs, count, false);
    op_run_start(&run, 1);
    for (int i = 0; i < count; i++) {
        bel_tensor gradient = bel_instance_output(run.instance, i);
        memcpy(out[i], gradient.data, sizeof out[i]);
    }
    op_run_destroy(&run);
}

// Gradients where a function has no derivative, as belfry/ops.h defines them.
static void test_kinks(void **state)
{
    (void)state;
    static const struct {
        bel_op op;
        int inputs;
        double x[2][3], expected[2][3];
    } rows[] = {
        {BEL_OP_MAX, 2, {{1, 2, 3}, {1, 5, 0}}, {{1, 0, 1}, {0, 1, 0}}},
        {BEL_OP_MIN, 2, {{1, 2, 3}, {1, 5, 0}}, {{1, 1, 0}, {0, 0, 1}}},
        {BEL_OP_ABS, 1, {{-2, 0, 3}}, {{-1, 0, 1}}},
        {BEL_OP_RELU, 1, {{-2, 0, 3}}, {{0, 0, 1}}},
        {BEL_OP_LEAKY_RELU, 1, {{-2, 0, 3}}, {{0.01, 0.01, 1}}},
        {BEL_OP_ELU, 1, {{0, 0, 3}}, {{1, 1, 1}}},
        {BEL_OP_HARD_SIGMOID, 1, {{-2.5, 0, 2.5}}, {{0, 0.2, 0}}},
        {BEL_OP_POW, 2, {{0, -2, 1}, {0, 2, 3}}, {{0, -4, 3}, {0, 0, 0}}},
        {BEL_OP_REDUCE_MIN, 1, {{1, 3, 1}}, {{0.5, 0, 0.5}}},
        {BEL_OP_REDUCE_PROD, 1, {{0, 3, 2}}, {{6, 0, 0}}},
        {BEL_OP_REDUCE_PROD, 1, {{0, 3, 0}}, {{0, 0, 0}}},
        {BEL_OP_REDUCE_L2, 1, {{0, 0, 0}}, {{0, 0, 0}}},
        {BEL_OP_REDUCE_MAX, 1, {{3, 1, 3}}, {{0.5, 0, 0.5}}},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        double got[2][3];
        kink_gradient(rows[r].op, rows[r].x, rows[r].inputs, got);
        for (int i = 0; i < rows[r].inputs; i++)
            for (int j = 0; j < 3; j++)
                assert_true(got[i][j] == rows[r].expected[i][j]);
    }
}

// Indices of TopK name the values. Equal values come in the order of their indices.
static void test_top_k_indices(void **state)
{
    (void)state;
    op_run run;
    op_run_create(&run, &cases[CASE_top_k_ties], false);
    op_run_start(&run, 1);
    bel_tensor values = bel_instance_output(run.instance, 0);
    bel_tensor indices = bel_instance_output(run.instance, 1);
    const float *y = values.data, *x = run.data[0].data;
    const int64_t *at = indices.data, k = 4;
    for (int64_t i = 0; i < bel_shape_elements(&values.shape); i++) {
        assert_true(at[i] >= 0 && at[i] < 10);
        assert_true(y[i] == x[i / k * 10 + at[i]]);
        if (i % k > 0) assert_true(y[i] < y[i - 1] || at[i] > at[i - 1]);
    }
    op_run_destroy(&run);
}

// Copies the elements that dropout keeps at a step.
static void run_dropout(op_run *run, int64_t step, uint8_t *out_kept, float *out_y)
{
    run->context.step = step;
    op_run_start(run, 1);
    bel_tensor y = bel_instance_output(run->instance, 0);
    bel_tensor kept = bel_instance_output(run->instance, 1);
    memcpy(out_y, y.data, bel_tensor_bytes(&y));
    memcpy(out_kept, kept.data, bel_tensor_bytes(&kept));
}

static void test_dropout(void **state)
{
    (void)state;
    enum { COUNT = 9000 };
    static const op_case row = {"dropout", BEL_OP_DROPOUT, "f[9,1000]", "ratio=0.25", 0};
    static uint8_t kept[COUNT], again[COUNT];
    static float y[COUNT];
    op_run run;
    op_run_create(&run, &row, false);
    run_dropout(&run, 3, kept, y);
    const float *x = run.data[0].data;
    int kept_count = 0;
    for (int i = 0; i < COUNT; i++) {
        assert_true(kept[i] <= 1);
        kept_count += kept[i];
        assert_true(y[i] == (kept[i] ? x[i] * (float)(1 / 0.75) : 0.0f));
    }
    double deviation = sqrt(COUNT * 0.75 * 0.25);
    assert_true(fabs(kept_count - COUNT * 0.75) < 5 * deviation);
    run_dropout(&run, 4, again, y); // another step drops others
    assert_memory_not_equal(kept, again, COUNT);
    run_dropout(&run, 3, again, y); // the same step drops the same
    assert_memory_equal(kept, again, COUNT);
    run.context.replica++;
    run_dropout(&run, 3, again, y);
    assert_memory_not_equal(kept, again, COUNT);
    op_run_destroy(&run);
}

// Mean and deviation of a random operation's result at a step and a replica.
static void run_random(op_run *run, int64_t step, int64_t replica, float *out_y, double *out_mean,
                       double *out_deviation)
{
    run->context.step = step;
    run->context.replica = replica;
    op_run_start(run, 1);
    bel_tensor y = bel_instance_output(run->instance, 0);
    int64_t count = bel_shape_elements(&y.shape);
    double sum = 0, squares = 0;
    memcpy(out_y, y.data, bel_tensor_bytes(&y));
    for (int64_t i = 0; i < count; i++)
        sum += (double)out_y[i];
    *out_mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++)
        squares += ((double)out_y[i] - *out_mean) * ((double)out_y[i] - *out_mean);
    *out_deviation = sqrt(squares / (double)count);
}

static void test_random(void **state)
{
    (void)state;
    enum { COUNT = 33001 };
    static const op_case rows[] = {
        {"uniform", BEL_OP_RANDOM_UNIFORM, "f[33001]", "low=-2 high=4", 0},
        {"normal", BEL_OP_RANDOM_NORMAL, "f[33001]", "mean=1 scale=1.7320508", 0}};
    static float y[COUNT], again[COUNT];
    for (int r = 0; r < 2; r++) { // both have the mean 1 and the deviation sqrt(3)
        op_run run;
        double mean, deviation;
        op_run_create(&run, &rows[r], false);
        run_random(&run, 3, 1, y, &mean, &deviation);
        assert_true(fabs(mean - 1) < 0.04 && fabs(deviation - sqrt(3)) < 0.03);
        for (int i = 0; i < COUNT && r == 0; i++)
            assert_true(y[i] >= -2 && y[i] <= 4);
        run_random(&run, 4, 1, again, &mean, &deviation);
        assert_memory_not_equal(y, again, sizeof y);
        run_random(&run, 3, 2, again, &mean, &deviation);
        assert_memory_not_equal(y, again, sizeof y);
        run_random(&run, 3, 1, again, &mean, &deviation);
        assert_memory_equal(y, again, sizeof y);
        op_run_destroy(&run);
    }
}

static void test_global_step(void **state)
{
    (void)state;
    static const op_case row = {"global_step", BEL_OP_GLOBAL_STEP, "", "", 0};
    op_run run;
    op_run_create(&run, &row, false);
    for (int64_t step = 0; step < 3; step++) {
        run.context.step = step << 40;
        op_run_start(&run, 1);
        bel_tensor y = bel_instance_output(run.instance, 0);
        assert_true(*(const int64_t *)y.data == step << 40);
    }
    op_run_destroy(&run);
}

#define ROW(check, row)                                                                            \
    {.name = #check "/" #row, .test_func = test_##check, .initial_state = &cases[CASE_##row]},

int main(void)
{
    static const struct CMUnitTest reference[] = {
#define CASE(name, op, inputs, attrs, tolerance) ROW(reference, name)
#include "op/cases.def"
#undef CASE
    };
    static const struct CMUnitTest stored[] = {
#define CASE(name, op, inputs, attrs, tolerance) ROW(oracle, name)
#include "op/cases.def"
#undef CASE
    };
    static const struct CMUnitTest gradient[] = {
#define CASE(name, op, inputs, attrs, tolerance) ROW(gradient, name)
#include "op/cases.def"
#undef CASE
    };
    static const struct CMUnitTest threads[] = {
#define CASE(name, op, inputs, attrs, tolerance) ROW(threads, name)
#include "op/cases.def"
#undef CASE
    };
    static const struct CMUnitTest others[] = {
        cmocka_unit_test(test_every_op_has_a_row),
        cmocka_unit_test(test_kinks),
        cmocka_unit_test(test_top_k_indices),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_global_step),
    };
    int failed = cmocka_run_group_tests(reference, NULL, NULL);
    failed += cmocka_run_group_tests(stored, read_oracle, free_oracle);
    failed += cmocka_run_group_tests(gradient, NULL, NULL);
    failed += cmocka_run_group_tests(threads, NULL, NULL);
    failed += cmocka_run_group_tests(others, NULL, NULL);
    return failed != 0;
}
