// Tests of the two forms of attention, one operation and composed ones. Their results and gradients
// agree on random shapes, lengths and causality, also across blocks of queries and keys. Another
// test checks which form is chosen. Others compare the attention of one more token with a sum in
// double.
#include "graph/attention.h"

#include "base/rng.h"
#include "op/op_case.h"
#include "ops/kernels/attention.h"

enum { OPERANDS = 3, OUTPUTS = 1 + OPERANDS, SHAPES = 40 };

typedef struct attention_case {
    int64_t n, heads, t, s, d, e;
    bool lengths, causal;
    double scale;
} attention_case;

static bel_value *add_input(op_run *run, const char *name, bel_shape shape)
{
    int i = run->input_count++;
    const op_input input = {.kind = 'f', .shape = shape, .low = -1.5, .high = 1.6};
    run->data[i] = op_make_input(&input, i, BEL_DTYPE_F32);
    run->values[i] = bel_input_value(run->graph, name, BEL_DTYPE_F32, &shape);
    return run->values[i];
}

// Sequences of length 0, of full length, and between.
static bel_value *add_lengths(op_run *run, const attention_case *c)
{
    int i = run->input_count++;
    bel_shape shape = BEL_SHAPE(c->n);
    int64_t *lengths = bel_xmalloc((size_t)c->n * sizeof *lengths);
    for (int64_t k = 0; k < c->n; k++)
        lengths[k] = k == 1 ? 0 : c->s - k * 37 % (c->s + 1);
    run->data[i] = (bel_tensor){BEL_DTYPE_I64, shape, lengths};
    run->values[i] = bel_input_value(run->graph, "lengths", BEL_DTYPE_I64, &shape);
    return run->values[i];
}

// Outputs: the result, and the gradients of the sum of its squares.
static void create(op_run *run, const attention_case *c, bool fused)
{
    *run = (op_run){.graph = bel_graph_create(), .context = {.seed = 1}};
    bel_value *q = add_input(run, "q", BEL_SHAPE(c->n, c->heads, c->t, c->d));
    bel_value *k = add_input(run, "k", BEL_SHAPE(c->n, c->heads, c->s, c->d));
    bel_value *v = add_input(run, "v", BEL_SHAPE(c->n, c->heads, c->s, c->e)), *gradients[OPERANDS];
    bel_value *lengths = c->lengths ? add_lengths(run, c) : NULL;
    bel_value *y =
        fused ? bel_attention_fused(run->graph, q, k, v, lengths, c->causal, c->scale)
              : bel_attention_composed(run->graph, q, k, v, NULL, lengths, c->causal, c->scale);
    bel_value *loss = bel_reduce_sum_square(run->graph, y, NULL, 0, false);
    bel_gradients(run->graph, loss, run->values, OPERANDS, gradients);
    BEL_ASSERT_OK(bel_graph_check(run->graph));
    bel_program_output outputs[OUTPUTS] = {{.value = y}};
    for (int i = 0; i < OPERANDS; i++)
        outputs[1 + i].value = gradients[i];
    op_run_compile(run, outputs, OUTPUTS, false);
    op_run_start(run, 2);
}

static void compare(const attention_case *c)
{
    op_run fused, composed;
    create(&fused, c, true);
    create(&composed, c, false);
    for (int o = 0; o < OUTPUTS; o++) {
        bel_tensor got = bel_instance_output(fused.instance, o);
        bel_tensor expected = bel_instance_output(composed.instance, o);
        int64_t elements = bel_shape_elements(&expected.shape);
        double largest = 1;
        for (int64_t i = 0; i < elements; i++)
            largest = fmax(largest, fabs(bel_element_get(&expected, i)));
        for (int64_t i = 0; i < elements; i++) {
            double g = bel_element_get(&got, i), e = bel_element_get(&expected, i);
            if (fabs(g - e) <= 1e-5 * largest) continue;
            fail_msg("n %lld, heads %lld, t %lld, s %lld, d %lld, e %lld, lengths %d, causal %d: "
                     "output %d, element %lld: one operation %.9g, composed %.9g",
                     (long long)c->n, (long long)c->heads, (long long)c->t, (long long)c->s,
                     (long long)c->d, (long long)c->e, c->lengths, c->causal, o, (long long)i, g,
                     e);
        }
    }
    op_run_destroy(&fused);
    op_run_destroy(&composed);
}

static void test_forms_agree(void **state)
{
    (void)state;
    bel_rng_key key = bel_rng_key_make(1, "attention", 0);
    for (uint64_t i = 0; i < SHAPES; i++) {
        uint32_t a[4], b[4];
        bel_rng_block(key, i, 0, a);
        bel_rng_block(key, i, 1, b);
        int64_t most = i % 4 == 0 ? 300 : 60; // some with several blocks
        attention_case c = {.n = 1 + a[0] % 4,
                            .heads = 1 + a[1] % 3,
                            .t = 1 + a[2] % most,
                            .s = 1 + a[3] % most,
                            .d = 1 + b[0] % 40,
                            .e = 1 + b[1] % 40,
                            .lengths = b[2] % 2 == 0,
                            .causal = b[3] % 2 == 0,
                            .scale = i % 5 == 0 ? 0.2 : 0};
        compare(&c);
    }
}

// The operation that bel_attention uses for these shapes.
static bel_op chosen(int64_t keys, int64_t width, bool masked, bool with_lengths, bool causal)
{
    bel_graph *g = bel_graph_create();
    bel_shape shape = BEL_SHAPE(BEL_DIM_BATCH, 2, keys, width), list = BEL_SHAPE(BEL_DIM_BATCH);
    bel_shape seen = BEL_SHAPE(keys);
    bel_value *x = bel_input_value(g, "x", BEL_DTYPE_F32, &shape);
    bel_value *mask = masked ? bel_input_value(g, "mask", BEL_DTYPE_BOOL, &seen) : NULL;
    bel_value *lengths = with_lengths ? bel_input_value(g, "lengths", BEL_DTYPE_I64, &list) : NULL;
    bel_value *y = bel_attention(g, x, x, x, mask, lengths, causal, 0);
    BEL_ASSERT_OK(bel_graph_check(g));
    bel_op op = y->node->op;
    bel_graph_destroy(g);
    return op;
}

static void test_choice(void **state)
{
    (void)state;
    enum { WIDEST = BEL_ATTENTION_MOST_WIDTH };
    assert_int_equal(chosen(256, 8, false, false, false), BEL_OP_ATTENTION);
    assert_int_equal(chosen(255, 8, false, false, false), BEL_OP_MATMUL);
    assert_int_equal(chosen(64, 8, false, false, true), BEL_OP_ATTENTION);
    assert_int_equal(chosen(63, 8, false, false, true), BEL_OP_MATMUL);
    assert_int_equal(chosen(5, 8, false, true, false), BEL_OP_ATTENTION);
    assert_int_equal(chosen(BEL_DIM_TIME, 8, false, false, false), BEL_OP_ATTENTION);
    assert_int_equal(chosen(256, 8, true, true, true), BEL_OP_MATMUL);
    assert_int_equal(chosen(256, WIDEST, false, true, true), BEL_OP_ATTENTION);
    assert_int_equal(chosen(256, WIDEST + 1, false, true, true), BEL_OP_MATMUL);
}

// --- One more token ------------------------------------------------------------------------------

// Row (n, head) of an input [n, heads, rows, width].
static const float *matrix(const bel_tensor *input, int64_t n, int64_t head)
{
    const int64_t *dims = input->shape.dims;
    return (const float *)input->data + (n * dims[1] + head) * dims[2] * dims[3];
}

static double dot(const float *a, const float *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

// Expected attention of query (n, head): over the kept keys before the length, and the own one.
static void expect_step(const op_run *run, const attention_case *c, int64_t n, int64_t head,
                        int64_t shared, int64_t length, double *out)
{
    const float *q = matrix(&run->data[0], n, head), *k = matrix(&run->data[1], n, shared),
                *v = matrix(&run->data[2], n, shared), *own_k = matrix(&run->data[3], n, shared),
                *own_v = matrix(&run->data[4], n, shared);
    double scale = c->scale > 0 ? c->scale : 1 / sqrt((double)c->d), total = 0;
    memset(out, 0, (size_t)c->e * sizeof *out);
    for (int64_t i = 0; i <= length; i++) {
        double power = exp(scale * dot(q, i < length ? k + i * c->d : own_k, c->d));
        for (int64_t e = 0; e < c->e; e++)
            out[e] += power * (double)(i < length ? v + i * c->e : own_v)[e];
        total += power;
    }
    for (int64_t e = 0; e < c->e; e++)
        out[e] /= total;
}

static void hide_rest(const bel_tensor *input, int64_t n, const int64_t *lengths)
{
    const int64_t *dims = input->shape.dims;
    for (int64_t head = 0; head < dims[1]; head++) {
        float *rows = (float *)input->data + (n * dims[1] + head) * dims[2] * dims[3];
        for (int64_t i = lengths[n] * dims[3]; i < dims[2] * dims[3]; i++)
            rows[i] = NAN;
    }
}

static void check_step(const attention_case *c, int64_t kv_heads)
{
    op_run run = {.graph = bel_graph_create(), .context = {.seed = 1}};
    bel_value *q = add_input(&run, "q", BEL_SHAPE(c->n, c->heads, 1, c->d));
    bel_value *k = add_input(&run, "k", BEL_SHAPE(c->n, kv_heads, c->s, c->d));
    bel_value *v = add_input(&run, "v", BEL_SHAPE(c->n, kv_heads, c->s, c->e));
    bel_value *own_k = add_input(&run, "own_k", BEL_SHAPE(c->n, kv_heads, 1, c->d));
    bel_value *own_v = add_input(&run, "own_v", BEL_SHAPE(c->n, kv_heads, 1, c->e));
    bel_value *lengths = add_lengths(&run, c);
    bel_value *y = bel_attention_step(run.graph, q, k, v, lengths, own_k, own_v, c->scale);
    BEL_ASSERT_OK(bel_graph_check(run.graph));
    const int64_t *counts = run.data[5].data;
    for (int64_t n = 0; n < c->n; n++)
        for (int i = 1; i < 3; i++)
            hide_rest(&run.data[i], n, counts);
    const bel_program_output output = {.value = y};
    op_run_compile(&run, &output, 1, false);
    op_run_start(&run, 2);
    bel_tensor got = bel_instance_output(run.instance, 0);
    const bel_shape shape = BEL_SHAPE(c->n, c->heads, 1, c->e);
    assert_true(bel_shape_equal(&got.shape, &shape));
    double expected[64];
    for (int64_t n = 0; n < c->n; n++)
        for (int64_t head = 0; head < c->heads; head++) {
            int64_t shared = head / (c->heads / kv_heads);
            expect_step(&run, c, n, head, shared, counts[n], expected);
            for (int64_t e = 0; e < c->e; e++)
                assert_true(fabs((double)matrix(&got, n, head)[e] - expected[e]) < 1e-5);
        }
    op_run_destroy(&run);
}

static void test_step(void **state)
{
    (void)state;
    check_step(&(attention_case){.n = 3, .heads = 4, .s = 9, .d = 6, .e = 5}, 2);
    check_step(&(attention_case){.n = 4, .heads = 3, .s = 300, .d = 16, .e = 16, .scale = 0.3}, 3);
    check_step(&(attention_case){.n = 2, .heads = 6, .s = 130, .d = 40, .e = 33}, 1);
}

static void test_step_of_other_heads(void **state)
{
    (void)state;
    bel_graph *g = bel_graph_create();
    bel_shape query = BEL_SHAPE(2, 3, 1, 4), kept = BEL_SHAPE(2, 2, 5, 4),
              own = BEL_SHAPE(2, 2, 1, 4);
    bel_shape list = BEL_SHAPE(2);
    bel_value *q = bel_input_value(g, "q", BEL_DTYPE_F32, &query);
    bel_value *k = bel_input_value(g, "k", BEL_DTYPE_F32, &kept);
    bel_value *o = bel_input_value(g, "o", BEL_DTYPE_F32, &own);
    bel_value *lengths = bel_input_value(g, "lengths", BEL_DTYPE_I64, &list);
    assert_null(bel_attention_step(g, q, k, k, lengths, o, o, 0));
    BEL_ASSERT_FAILS(bel_graph_check(g), BEL_INVALID_ARGUMENT,
                     "where kv_heads divides heads, got [2, 3, 1, 4]");
    bel_graph_destroy(g);
}

// With one shared head, a key of each head, and a key of two tokens, would broadcast.
static void test_step_of_wrong_own(void **state)
{
    (void)state;
    const struct {
        bel_shape key, value;
        const char *message;
    } cases[] = {
        {BEL_SHAPE(2, 3, 1, 4), BEL_SHAPE(2, 1, 1, 6), "own_key [n, kv_heads, 1, width]"},
        {BEL_SHAPE(2, 1, 2, 4), BEL_SHAPE(2, 1, 1, 6), "of shape [2, 1, 1, 4], got [2, 1, 2, 4]"},
        {BEL_SHAPE(1, 1, 1, 4), BEL_SHAPE(2, 1, 1, 6), "of shape [2, 1, 1, 4], got [1, 1, 1, 4]"},
        {BEL_SHAPE(2, 1, 4), BEL_SHAPE(2, 1, 1, 6), "of shape [2, 1, 1, 4], got [2, 1, 4]"},
        {BEL_SHAPE(2, 1, 1, 4), BEL_SHAPE(2, 1, 1, 1), "own_value [n, kv_heads, 1, width]"},
    };
    const bel_shape query = BEL_SHAPE(2, 3, 1, 4), keys = BEL_SHAPE(2, 1, 5, 4),
                    values = BEL_SHAPE(2, 1, 5, 6), list = BEL_SHAPE(2);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        bel_graph *g = bel_graph_create();
        bel_value *q = bel_input_value(g, "q", BEL_DTYPE_F32, &query);
        bel_value *k = bel_input_value(g, "k", BEL_DTYPE_F32, &keys);
        bel_value *v = bel_input_value(g, "v", BEL_DTYPE_F32, &values);
        bel_value *own_k = bel_input_value(g, "own_k", BEL_DTYPE_F32, &cases[c].key);
        bel_value *own_v = bel_input_value(g, "own_v", BEL_DTYPE_F32, &cases[c].value);
        bel_value *lengths = bel_input_value(g, "lengths", BEL_DTYPE_I64, &list);
        assert_null(bel_attention_step(g, q, k, v, lengths, own_k, own_v, 0));
        BEL_ASSERT_FAILS(bel_graph_check(g), BEL_INVALID_ARGUMENT, cases[c].message);
        bel_graph_destroy(g);
    }
}

static void test_step_has_no_gradient_of_kept_ones(void **state)
{
    (void)state;
    static const char *const names[] = {"q", "k", "v", "own_k", "own_v"};
    const bel_shape one = BEL_SHAPE(2, 1, 1, 4), kept = BEL_SHAPE(2, 1, 5, 4), list = BEL_SHAPE(2);
    for (int trained = 0; trained < 5; trained++) {
        bel_graph *g = bel_graph_create();
        bel_value *x[5];
        for (int i = 0; i < 5; i++) {
            const bel_shape *shape = i == 1 || i == 2 ? &kept : &one;
            x[i] = bel_input_value(g, names[i], BEL_DTYPE_F32, shape);
        }
        bel_value *lengths = bel_input_value(g, "lengths", BEL_DTYPE_I64, &list);
        bel_value *y = bel_attention_step(g, x[0], x[1], x[2], lengths, x[3], x[4], 0);
        bel_value *loss = bel_reduce_sum(g, y, NULL, 0, false), *gradient = NULL;
        bel_gradients(g, loss, &x[trained], 1, &gradient);
        if (trained >= 3) {
            BEL_ASSERT_OK(bel_graph_check(g));
            assert_non_null(gradient);
        } else {
            BEL_ASSERT_FAILS(bel_graph_check(g), BEL_UNIMPLEMENTED,
                             "attention_step has no gradient of its query, keys and values");
        }
        bel_graph_destroy(g);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms_agree),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_step_of_other_heads),
        cmocka_unit_test(test_step_of_wrong_own),
        cmocka_unit_test(test_step_has_no_gradient_of_kept_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
