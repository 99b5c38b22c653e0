// Tests of attention against plain loops in double: masks, lengths and causality, separately and
// together. Hidden positions have no influence, not even on gradients. A query that sees no key
// gets zeros. The layer of several heads is compared with the same loops.
#include "op/op_case.h"

enum { N = 3, HEADS = 2, T = 5, S = 6, D = 4, E = 3, QUERY = N * HEADS * T * D };
enum { KEY = N * HEADS * S * D, VALUE = N * HEADS * S * E, RESULT = N * HEADS * T * E };

typedef struct hiding {
    bool mask, lengths, causal;
} hiding;

static const int64_t lengths[N] = {4, 0, S};

// Query 2 of head 1 sees no key; a third of the other positions is hidden.
static bool mask_at(int64_t head, int64_t query, int64_t key)
{
    return (head != 1 || query != 2) && (head + query * 5 + key * 7) % 3 != 0;
}

static double element(int number, int64_t i)
{
    return op_input_element(&(op_input){.kind = 'f', .low = -2, .high = 2.1}, number, i);
}

// y = softmax(scale · q kᵀ) v of one sequence and head over the visible keys.
static void attend(const double *q, const double *k, const double *v, double scale,
                   const bool *seen, double *y)
{
    for (int t = 0; t < T; t++) {
        double powers[S], total = 0;
        for (int s = 0; s < S; s++) {
            double score = 0;
            for (int d = 0; d < D; d++)
                score += q[t * D + d] * k[s * D + d];
            powers[s] = seen[t * S + s] ? exp(scale * score) : 0;
            total += powers[s];
        }
        for (int e = 0; e < E; e++) {
            y[t * E + e] = 0;
            for (int s = 0; s < S && total > 0; s++)
                y[t * E + e] += powers[s] / total * v[s * E + e];
        }
    }
}

static void expected_result(hiding h, double scale, double *y)
{
    double q[QUERY], k[KEY], v[VALUE];
    for (int64_t i = 0; i < QUERY; i++)
        q[i] = element(0, i);
    for (int64_t i = 0; i < KEY; i++)
        k[i] = element(1, i);
    for (int64_t i = 0; i < VALUE; i++)
        v[i] = element(2, i);
    for (int64_t p = 0; p < N * HEADS; p++) {
        bool seen[T * S];
        for (int64_t i = 0; i < T * S; i++) {
            int64_t t = i / S, s = i % S;
            seen[i] = (!h.mask || mask_at(p % HEADS, t, s)) &&
                      (!h.lengths || s < lengths[p / HEADS]) && (!h.causal || s <= t);
        }
        attend(q + p * T * D, k + p * S * D, v + p * S * E, scale, seen, y + p * T * E);
    }
}

static bel_value *add_input(op_run *run, const char *name, bel_dtype dtype, bel_shape shape)
{
    int i = run->input_count++;
    run->data[i] = (bel_tensor){dtype, shape, NULL};
    run->data[i].data = bel_xmalloc(bel_tensor_bytes(&run->data[i]));
    for (int64_t k = 0; k < bel_shape_elements(&shape); k++)
        bel_element_set(&run->data[i], k, element(i, k));
    run->values[i] = bel_input_value(run->graph, name, dtype, &shape);
    return run->values[i];
}

// Creates a graph of attention. Outputs are the result, the sum of its squares, and that sum's
// gradients with respect to query, key and value.
static void create(op_run *run, hiding h, bel_dtype dtype, double scale)
{
    *run = (op_run){.graph = bel_graph_create(), .context = {.seed = 1}};
    bel_value *q = add_input(run, "q", dtype, BEL_SHAPE(N, HEADS, T, D));
    bel_value *k = add_input(run, "k", dtype, BEL_SHAPE(N, HEADS, S, D));
    bel_value *v = add_input(run, "v", dtype, BEL_SHAPE(N, HEADS, S, E));
    bel_value *mask = NULL, *list = NULL;
    if (h.mask) {
        mask = add_input(run, "mask", BEL_DTYPE_BOOL, BEL_SHAPE(HEADS, T, S));
        uint8_t *bits = run->data[run->input_count - 1].data;
        for (int64_t i = 0; i < HEADS * T * S; i++)
            bits[i] = mask_at(i / S / T, i / S % T, i % S);
    }
    if (h.lengths) {
        list = add_input(run, "lengths", BEL_DTYPE_I64, BEL_SHAPE(N));
        memcpy(run->data[run->input_count - 1].data, lengths, sizeof lengths);
    }
    bel_value *y = bel_attention(run->graph, q, k, v, mask, list, h.causal, scale), *gradients[3];
    bel_value *loss = bel_reduce_sum_square(run->graph, y, NULL, 0, false);
    bel_gradients(run->graph, loss, run->values, 3, gradients);
    BEL_ASSERT_OK(bel_graph_check(run->graph));
    bel_program_output outputs[5] = {{.value = y}, {.value = loss}};
    for (int i = 0; i < 3; i++)
        outputs[2 + i].value = gradients[i];
    op_run_compile(run, outputs, 5, false);
    op_run_start(run, 1);
}

static const hiding all_hidings[] = {{false, false, false}, {true, false, false},
                                     {false, true, false},  {false, false, true},
                                     {true, true, false},   {true, true, true}};
enum { HIDINGS = sizeof all_hidings / sizeof all_hidings[0] };

static void test_results(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * HIDINGS; i++) {
        hiding h = all_hidings[i / 2];
        double expected[RESULT], scale = i % 2 == 0 ? 0.5 : 0.3; // 0.5: 1 / sqrt(D)
        op_run run;
        create(&run, h, i % 2 == 0 ? BEL_DTYPE_F32 : BEL_DTYPE_F64, i % 2 == 0 ? 0 : scale);
        expected_result(h, scale, expected);
        bel_tensor y = bel_instance_output(run.instance, 0);
        for (int64_t k = 0; k < RESULT; k++) {
            double got = bel_element_get(&y, k);
            if (op_is_near(got, expected[k], i % 2 == 0 ? 2e-6 : 1e-12)) continue;
            fail_msg("hiding %d, element %lld: got %.9g, expected %.9g", i / 2, (long long)k, got,
                     expected[k]);
        }
        op_run_destroy(&run);
    }
}

static double loss_with(op_run *run, int input, int64_t at, double value)
{
    double *data = run->data[input].data, kept = data[at];
    data[at] = value;
    op_run_start(run, 1);
    bel_tensor loss = bel_instance_output(run->instance, 1);
    data[at] = kept;
    return bel_element_get(&loss, 0);
}

static void test_gradients(void **state)
{
    (void)state;
    for (int i = 0; i < HIDINGS; i++) {
        op_run run;
        create(&run, all_hidings[i], BEL_DTYPE_F64, 0);
        for (int input = 0; input < 3; input++) {
            int64_t elements = bel_shape_elements(&run.data[input].shape);
            for (int64_t k = 0; k < elements; k += 5) {
                double x = element(input, k), step = 1e-5;
                double above = loss_with(&run, input, k, x + step);
                double below = loss_with(&run, input, k, x - step);
                op_run_start(&run, 1);
                bel_tensor gradient = bel_instance_output(run.instance, 2 + input);
                double got = bel_element_get(&gradient, k), want = (above - below) / (2 * step);
                if (op_is_near(got, want, 1e-8)) continue;
                fail_msg("hiding %d, input %d, element %lld: gradient %.12g, difference %.12g", i,
                         input, (long long)k, got, want);
            }
        }
        op_run_destroy(&run);
    }
}

// Keys and values after a sequence's length are NaN, and no output changes.
static void test_behind_lengths(void **state)
{
    (void)state;
    op_run clean, dirty;
    create(&clean, (hiding){.lengths = true}, BEL_DTYPE_F32, 0);
    create(&dirty, (hiding){.lengths = true}, BEL_DTYPE_F32, 0);
    for (int input = 1; input < 3; input++) {
        int64_t width = input == 1 ? D : E;
        for (int64_t i = 0; i < N * HEADS * S * width; i++)
            if (i / width % S >= lengths[i / width / S / HEADS]) {
                bel_element_set(&dirty.data[input], i, NAN);
            }
    }
    op_run_start(&dirty, 2);
    for (int o = 0; o < 5; o++) {
        bel_tensor expected = bel_instance_output(clean.instance, o);
        bel_tensor got = bel_instance_output(dirty.instance, o);
        assert_memory_equal(got.data, expected.data, bel_tensor_bytes(&got));
    }
    op_run_destroy(&clean);
    op_run_destroy(&dirty);
}

// --- The layer -----------------------------------------------------------------------------------

enum { WIDTH = HEADS * D, VARIABLES = 8, INPUT = N * T * WIDTH };

typedef struct layer {
    op_run run;
    float *variables[VARIABLES];
} layer;

// Self-attention over x [N, T, WIDTH] with lengths. Outputs are the result and the gradients of the
// sum of its squares with respect to x and the variables.
static void create_layer(layer *l, bool causal)
{
    *l = (layer){.run = {.graph = bel_graph_create(), .context = {.seed = 1}}};
    op_run *run = &l->run;
    bel_value *x = add_input(run, "x", BEL_DTYPE_F32, BEL_SHAPE(N, T, WIDTH));
    bel_value *list = add_input(run, "lengths", BEL_DTYPE_I64, BEL_SHAPE(N));
    memcpy(run->data[1].data, (int64_t[]){4, 0, T}, N * sizeof(int64_t));
    bel_value *y = bel_multi_head_attention(run->graph, x, NULL, list, HEADS, causal, "self");
    bel_value *wanted[1 + VARIABLES] = {x};
    bel_program_output outputs[2 + VARIABLES] = {{.value = y}};
    bel_value *loss = bel_reduce_sum_square(run->graph, y, NULL, 0, false);
    for (int v = 0; v < VARIABLES; v++)
        wanted[1 + v] = run->graph->variables[v].value;
    bel_value *gradients[1 + VARIABLES];
    bel_gradients(run->graph, loss, wanted, 1 + VARIABLES, gradients);
    BEL_ASSERT_OK(bel_graph_check(run->graph));
    for (int i = 0; i < 1 + VARIABLES; i++)
        outputs[1 + i].value = gradients[i];
    op_run_compile(run, outputs, 2 + VARIABLES, false);
    for (int v = 0; v < VARIABLES; v++) {
        bel_shape shape = bel_value_shape(wanted[1 + v]);
        int64_t count = bel_shape_elements(&shape);
        l->variables[v] = bel_xmalloc((size_t)count * sizeof(float));
        for (int64_t i = 0; i < count; i++)
            l->variables[v][i] = (float)(element(3 + v, i) / 4);
        bel_instance_bind_variable(run->instance, v, l->variables[v]);
    }
    op_run_start(run, 1);
}

static void destroy_layer(layer *l)
{
    for (int v = 0; v < VARIABLES; v++)
        bel_free(l->variables[v]);
    op_run_destroy(&l->run);
}

// Column `column` of x [WIDTH] · kernel + bias.
static double project(const layer *l, int part, const double *x, int64_t column)
{
    double sum = (double)l->variables[2 * part + 1][column];
    for (int64_t i = 0; i < WIDTH; i++)
        sum += x[i] * (double)l->variables[2 * part][i * WIDTH + column];
    return sum;
}

// Computes one position of one sequence.
static void expected_position(const layer *l, int64_t n, int64_t t, int64_t length, bool causal,
                              double *y)
{
    double x[T][WIDTH], joined[WIDTH];
    for (int64_t i = 0; i < T * WIDTH; i++)
        x[i / WIDTH][i % WIDTH] = element(0, n * T * WIDTH + i);
    for (int64_t column = 0; column < WIDTH; column++) {
        double total = 0, sum = 0;
        int64_t head = column / D;
        for (int64_t s = 0; s < length && (!causal || s <= t); s++) {
            double score = 0;
            for (int64_t d = head * D; d < (head + 1) * D; d++)
                score += project(l, 0, x[t], d) * project(l, 1, x[s], d);
            total += exp(score / 2); // sqrt(D)
            sum += exp(score / 2) * project(l, 2, x[s], column);
        }
        joined[column] = sum / total;
    }
    for (int64_t column = 0; column < WIDTH; column++)
        y[column] = t < length ? project(l, 3, joined, column) : 0;
}

static void test_layer(void **state)
{
    (void)state;
    static const char *const names[VARIABLES] = {
        "self/query_kernel", "self/query_bias", "self/key_kernel",    "self/key_bias",
        "self/value_kernel", "self/value_bias", "self/output_kernel", "self/output_bias"};
    for (int causal = 0; causal < 2; causal++) {
        layer l;
        create_layer(&l, causal == 1);
        for (int v = 0; v < VARIABLES; v++)
            assert_string_equal(l.run.graph->variables[v].name, names[v]);
        bel_tensor y = bel_instance_output(l.run.instance, 0);
        for (int64_t p = 0; p < N * T; p++) {
            double want[WIDTH];
            expected_position(&l, p / T, p % T, ((int64_t *)l.run.data[1].data)[p / T], causal == 1,
                              want);
            for (int64_t i = 0; i < WIDTH; i++)
                assert_true(op_is_near(bel_element_get(&y, p * WIDTH + i), want[i], 1e-5));
        }
        destroy_layer(&l);
    }
}

static void test_layer_behind_lengths(void **state)
{
    (void)state;
    layer clean, dirty;
    create_layer(&clean, false);
    create_layer(&dirty, false);
    for (int64_t i = 0; i < INPUT; i++)
        if (i / WIDTH % T >= ((int64_t *)dirty.run.data[1].data)[i / WIDTH / T]) {
            bel_element_set(&dirty.run.data[0], i, NAN);
        }
    op_run_start(&dirty.run, 3);
    for (int o = 0; o < 2 + VARIABLES; o++) {
        bel_tensor expected = bel_instance_output(clean.run.instance, o);
        bel_tensor got = bel_instance_output(dirty.run.instance, o);
        assert_memory_equal(got.data, expected.data, bel_tensor_bytes(&got));
    }
    destroy_layer(&clean);
    destroy_layer(&dirty);
}

// Tests a context of another width, open dimensions, and refusals.
static void test_shapes(void **state)
{
    (void)state;
    bel_graph *g = bel_graph_create();
    bel_shape query_shape = BEL_SHAPE(BEL_DIM_BATCH, 7, 8);
    bel_shape context_shape = BEL_SHAPE(BEL_DIM_BATCH, BEL_DIM_TIME, 5);
    bel_shape list_shape = BEL_SHAPE(BEL_DIM_BATCH);
    bel_value *query = bel_input_value(g, "query", BEL_DTYPE_F32, &query_shape);
    bel_value *context = bel_input_value(g, "context", BEL_DTYPE_F32, &context_shape);
    bel_value *list = bel_input_value(g, "lengths", BEL_DTYPE_I64, &list_shape);
    bel_value *y = bel_multi_head_attention(g, query, context, list, 4, false, "cross");
    BEL_ASSERT_OK(bel_graph_check(g));
    bel_shape shape = bel_value_shape(y);
    assert_true(bel_shape_equal(&shape, &query_shape));
    assert_null(bel_multi_head_attention(g, query, NULL, NULL, 3, false, "odd"));
    BEL_ASSERT_FAILS(bel_graph_check(g), BEL_INVALID_ARGUMENT,
                     "\"odd\" needs inputs [n, t, width] and a number of heads that divides the "
                     "width, got [?, 7, 8], [?, 7, 8] and 3 heads");
    bel_graph_destroy(g);
    g = bel_graph_create();
    query = bel_input_value(g, "query", BEL_DTYPE_F32, &query_shape);
    assert_null(bel_attention(g, query, query, query, NULL, NULL, false, 0));
    BEL_ASSERT_FAILS(bel_graph_check(g), BEL_INVALID_ARGUMENT,
                     "expected query, key and value [n, heads, t, d], got ranks 3, 3 and 3");
    bel_graph_destroy(g);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_behind_lengths),
        cmocka_unit_test(test_layer),
        cmocka_unit_test(test_layer_behind_lengths),
        cmocka_unit_test(test_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
