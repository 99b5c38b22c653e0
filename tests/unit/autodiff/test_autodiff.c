// Symbolic gradients: several paths, no path, and losses and operations without a gradient.
// tests/op checks the values of gradients op by op.
#include <math.h>

#include "autodiff/autodiff.h"
#include "base/alloc.h"
#include "belfry/ops.h"
#include "runtime/program.h"
#include "support/bel_test.h"

// Value of a scalar f32 output at input "x" = `x`.
static double evaluate(bel_graph *graph, bel_value *value, float x)
{
    bel_shape shape = bel_shape_scalar();
    bel_program_output output = {.value = value};
    bel_program *program;
    void *arena;
    bel_team *team;
    BEL_ASSERT_OK(bel_program_compile(graph, &shape, &output, 1, NULL, &program));
    size_t bytes = bel_program_arena_bytes(program) + 64;
    BEL_ASSERT_OK(bel_pages_create(bytes, false, "activations", &arena));
    BEL_ASSERT_OK(bel_team_create(1, &team));
    bel_instance *instance = bel_instance_create(program, arena);
    bel_instance_bind_input(instance, 0, &x);
    bel_run_context context = {.seed = 1};
    BEL_ASSERT_OK(bel_instance_run(instance, team, &context, NULL, NULL));
    bel_tensor y = bel_instance_output(instance, 0);
    double result = (double)*(const float *)y.data;
    bel_instance_destroy(instance);
    bel_team_destroy(team);
    bel_pages_destroy(arena, bytes);
    bel_program_destroy(program);
    return result;
}

static bel_value *scalar_input(bel_graph *graph)
{
    bel_shape shape = bel_shape_scalar();
    return bel_input_value(graph, "x", BEL_DTYPE_F32, &shape);
}

// x is used three times, two of them by one operation: d(x·x + exp(x))/dx = 2x + exp(x).
static void test_several_paths(void **state)
{
    (void)state;
    bel_graph *graph = bel_graph_create();
    bel_value *x = scalar_input(graph), *gradient;
    bel_value *loss = bel_add(graph, bel_mul(graph, x, x), bel_exp(graph, x));
    bel_gradients(graph, loss, &x, 1, &gradient);
    BEL_ASSERT_OK(bel_graph_check(graph));
    BEL_ASSERT_OK(bel_graph_verify(graph));
    assert_true(evaluate(graph, gradient, 0) == 1);
    double got = evaluate(graph, gradient, 1);
    assert_true(got > 4.718281 && got < 4.718283);
    bel_graph_destroy(graph);
}

// Second derivative: d²(x³)/dx² = 6x.
static void test_twice(void **state)
{
    (void)state;
    bel_graph *graph = bel_graph_create();
    bel_value *x = scalar_input(graph), *first, *second;
    bel_value *loss = bel_mul(graph, x, bel_mul(graph, x, x));
    bel_gradients(graph, loss, &x, 1, &first);
    bel_gradients(graph, first, &x, 1, &second);
    BEL_ASSERT_OK(bel_graph_check(graph));
    assert_true(evaluate(graph, first, 2) == 12);
    assert_true(evaluate(graph, second, 2) == 12);
    assert_true(evaluate(graph, second, 3) == 18);
    bel_graph_destroy(graph);
}

// Checks that the second derivative of f has exactly one `op` node that reads a constant and
// another value.
static void check_numbers(bel_value *f(bel_graph *graph, bel_value *x), bel_op op)
{
    bel_graph *graph = bel_graph_create();
    bel_value *x = scalar_input(graph), *first, *second;
    bel_value *y = f(graph, x);
    bel_gradients(graph, y, &x, 1, &first);
    size_t before = graph->node_count;
    bel_gradients(graph, first, &x, 1, &second);
    BEL_ASSERT_OK(bel_graph_check(graph));
    int found = 0;
    for (size_t n = before; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        if (node->op != op || node->inputs[0]->node->op != BEL_OP_CONSTANT) continue;
        if (node->inputs[1]->node->index < (int)before) continue;
        found++;
        assert_true(node->inputs[0]->node->index < node->inputs[1]->node->index);
    }
    assert_int_equal(found, 1);
    bel_graph_destroy(graph);
}

// Node numbers do not depend on the compiler that built the program.
static void test_numbers_of_nodes(void **state)
{
    (void)state;
    check_numbers(bel_sigmoid, BEL_OP_SUB);
    check_numbers(bel_silu, BEL_OP_ADD);
}

// A gradient penalty (Gulrajani et al. 2017) trains a network. For the net v tanh(w x) the gradient
// by x is g = v w (1 - t²). The gradient of g² by w is then 2 g v (1 - t²) (1 - 2 w x t).
static void test_penalty(void **state)
{
    (void)state;
    bel_graph *graph = bel_graph_create();
    bel_value *x = scalar_input(graph), *w = bel_scalar(graph, BEL_DTYPE_F32, 0.75);
    bel_value *v = bel_scalar(graph, BEL_DTYPE_F32, 1.5), *slope, *gradient;
    bel_value *y = bel_mul(graph, v, bel_tanh(graph, bel_mul(graph, w, x)));
    bel_gradients(graph, y, &x, 1, &slope);
    bel_gradients(graph, bel_mul(graph, slope, slope), &w, 1, &gradient);
    BEL_ASSERT_OK(bel_graph_check(graph));
    double t = tanh(0.75 * 0.5), flat = 1 - t * t, g = 1.5 * 0.75 * flat;
    double expected = 2 * g * 1.5 * flat * (1 - 2 * 0.75 * 0.5 * t);
    double got = evaluate(graph, gradient, 0.5F);
    if (!(fabs(got - expected) < 1e-6)) fail_msg("got %.9g, expected %.9g", got, expected);
    bel_graph_destroy(graph);
}

// Derivatives of the cross-entropy of logits c x by x, with c constant. The first is the mean of c
// under the softmax minus the label's c, the second the variance of c, the third its third central
// moment.
static void test_cross_entropy_twice(void **state)
{
    (void)state;
    static float factors[] = {-1, 0.5F, 2};
    static int64_t label[] = {1};
    const bel_tensor c = {BEL_DTYPE_F32, BEL_SHAPE(1, 3), factors};
    const bel_tensor y = {BEL_DTYPE_I64, BEL_SHAPE(1), label};
    bel_graph *graph = bel_graph_create();
    bel_value *x = scalar_input(graph), *gradients[3];
    bel_value *logits = bel_mul(graph, x, bel_constant(graph, &c));
    bel_value *value =
        bel_mean(graph, bel_softmax_cross_entropy(graph, logits, bel_constant(graph, &y)));
    for (int i = 0; i < 3; i++) {
        bel_gradients(graph, value, &x, 1, &gradients[i]);
        value = gradients[i];
    }
    BEL_ASSERT_OK(bel_graph_check(graph));
    double p[3], total = 0, mean = 0, moments[3] = {0};
    for (int i = 0; i < 3; i++)
        total += p[i] = exp(0.7 * (double)factors[i]);
    for (int i = 0; i < 3; i++)
        mean += p[i] / total * (double)factors[i];
    for (int i = 0; i < 3; i++)
        for (int k = 1; k < 3; k++)
            moments[k] += p[i] / total * pow((double)factors[i] - mean, k + 1);
    moments[0] = mean - (double)factors[1];
    for (int k = 0; k < 3; k++) {
        double got = evaluate(graph, gradients[k], 0.7F);
        if (!(fabs(got - moments[k]) < 2e-6))
            fail_msg("derivative %d: got %.9g, expected %.9g", k + 1, got, moments[k]);
    }
    bel_graph_destroy(graph);
}

// bel_stop_gradient blocks only the path through it: d(x · stop(x²))/dx = x².
static void test_stop(void **state)
{
    (void)state;
    bel_graph *graph = bel_graph_create();
    bel_value *x = scalar_input(graph), *gradient;
    bel_value *square = bel_stop_gradient(graph, bel_mul(graph, x, x));
    bel_gradients(graph, bel_mul(graph, x, square), &x, 1, &gradient);
    BEL_ASSERT_OK(bel_graph_check(graph));
    assert_true(evaluate(graph, gradient, 3) == 9);
    bel_gradients(graph, square, &x, 1, &gradient);
    BEL_ASSERT_OK(bel_graph_check(graph));
    assert_null(gradient);
    bel_graph_destroy(graph);
}

static void test_wanted_values(void **state)
{
    (void)state;
    bel_graph *graph = bel_graph_create();
    bel_shape shape = BEL_SHAPE(BEL_DIM_BATCH, 3);
    bel_value *x = bel_input_value(graph, "x", BEL_DTYPE_F32, &shape);
    bel_value *unused = bel_input_value(graph, "unused", BEL_DTYPE_F32, &shape);
    bel_value *hidden = bel_tanh(graph, x);
    bel_value *loss = bel_mean(graph, hidden);
    bel_value *after = bel_neg(graph, loss); // reads the loss, does not feed it
    bel_value *wanted[] = {x, unused, hidden, loss, after, NULL}, *gradients[6];
    bel_gradients(graph, loss, wanted, 6, gradients);
    BEL_ASSERT_OK(bel_graph_check(graph));
    for (int i = 0; i < 6; i++) {
        bool expected = i == 0 || i == 2 || i == 3;
        assert_int_equal(gradients[i] != NULL, expected);
        if (!expected) continue;
        bel_shape want = bel_value_shape(wanted[i]), have = bel_value_shape(gradients[i]);
        assert_true(bel_shape_equal(&want, &have));
    }
    bel_graph_destroy(graph);
}

static void check_loss(int what, bel_code code, const char *part)
{
    bel_graph *graph = bel_graph_create();
    bel_shape shape = BEL_SHAPE(2, 3);
    bel_value *x = bel_input_value(graph, "x", BEL_DTYPE_F32, &shape), *loss = x, *gradient = x;
    bel_value *other = bel_reduce_sum(graph, x, NULL, 0, false);
    if (what == 1) loss = bel_cast(graph, other, BEL_DTYPE_I64);
    if (what == 2) loss = NULL;
    if (what == 3) { // a comparison on the path
        bel_value *above = bel_cast(graph, bel_greater(graph, x, other), BEL_DTYPE_F32);
        loss = bel_reduce_sum(graph, above, NULL, 0, false);
    }
    if (what == 4) { // the same, but no wanted value comes before it
        loss = bel_reduce_sum(graph, bel_cast(graph, bel_less(graph, x, x), BEL_DTYPE_F32), NULL, 0,
                              false);
        x = bel_scalar(graph, BEL_DTYPE_F32, 1);
    }
    bel_gradients(graph, loss, &x, 1, &gradient);
    assert_null(gradient);
    if (code == BEL_OK) {
        BEL_ASSERT_OK(bel_graph_check(graph));
    } else {
        BEL_ASSERT_FAILS(bel_graph_check(graph), code, part);
    }
    bel_graph_destroy(graph);
}

static void test_losses(void **state)
{
    (void)state;
    check_loss(0, BEL_INVALID_ARGUMENT, "must be a scalar of floats, got [2, 3]");
    check_loss(1, BEL_INVALID_ARGUMENT, "must be a scalar of floats");
    check_loss(2, BEL_INVALID_ARGUMENT, "must be a scalar of floats, got nothing");
    check_loss(4, BEL_OK, "");
}

// bel_greater cuts the gradient: a cast from BOOL passes no gradient back.
static void test_no_gradient(void **state)
{
    (void)state;
    check_loss(3, BEL_OK, "");
    bel_graph *graph = bel_graph_create();
    bel_value *x = scalar_input(graph), *gradient = x;
    bel_value *inputs[] = {x, x};
    bel_value *loss = bel_graph_add(graph, BEL_OP_REDUCE_PROD_GRAD, NULL, inputs, 2);
    bel_gradients(graph, loss, &x, 1, &gradient);
    assert_null(gradient);
    BEL_ASSERT_FAILS(bel_graph_check(graph), BEL_UNIMPLEMENTED,
                     "ReduceProdGrad_1: operation ReduceProdGrad has no gradient");
    bel_graph_destroy(graph);
}

// The gradient of (x + 1/512)² reads x + 1/512 rounded to 8 bits; the loss reads it exactly. An
// alias of an activation shares its bf16 copy.
static void test_rounded(void **state)
{
    (void)state;
    bel_graph *graph = bel_graph_create();
    bel_shape one = BEL_SHAPE(1), matrix = BEL_SHAPE(1, 1);
    bel_value *x = scalar_input(graph), *gradient;
    bel_value *y =
        bel_add(graph, bel_reshape(graph, x, &one), bel_scalar(graph, BEL_DTYPE_F32, 0x1p-9));
    y = bel_reshape(graph, y, &matrix);
    bel_value *loss = bel_reduce_sum(graph, bel_mul(graph, y, y), NULL, 0, false);
    bel_gradients_keeping(graph, BEL_DTYPE_BF16, loss, &x, 1, &gradient);
    BEL_ASSERT_OK(bel_graph_check(graph));
    assert_true(evaluate(graph, loss, 1) == (1 + 0x1p-9) * (1 + 0x1p-9));
    assert_true(evaluate(graph, gradient, 1) == 2);
    assert_true(evaluate(graph, gradient, 3.5f) == 7);
    bel_graph_destroy(graph);
}

// Normalization statistics and values that losses save for their gradients are not rounded.
static void test_exact(void **state)
{
    (void)state;
    bel_graph *graph = bel_graph_create();
    bel_shape shape = BEL_SHAPE(BEL_DIM_BATCH, 4), labels = BEL_SHAPE(BEL_DIM_BATCH);
    bel_value *x = bel_input_value(graph, "x", BEL_DTYPE_F32, &shape), *gradient;
    bel_value *y = bel_layer_norm(graph, bel_abs(graph, x), "norm");
    bel_value *label = bel_input_value(graph, "label", BEL_DTYPE_I64, &labels);
    bel_value *loss = bel_softmax_cross_entropy(graph, y, label);
    loss = bel_mean(graph, loss);
    bel_gradients_keeping(graph, BEL_DTYPE_BF16, loss, &x, 1, &gradient);
    BEL_ASSERT_OK(bel_graph_check(graph));
    int rounded = 0;
    for (size_t n = 0; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        bool narrows = node->op == BEL_OP_CAST && node->outputs[0]->spec.dtype == BEL_DTYPE_BF16;
        if (!narrows) continue;
        rounded++;
        assert_int_equal(node->inputs[0]->output, 0);
    }
    assert_true(rounded > 0);
    bel_graph_destroy(graph);
}

static const bel_node *find_node(const bel_graph *graph, bel_op op)
{
    for (size_t n = 0; n < graph->node_count; n++)
        if (graph->nodes[n]->op == op) return graph->nodes[n];
    fail_msg("no such operation");
    return NULL;
}

// The gradient of attention reads the unrounded queries and keys: the saved logarithms were
// computed from them.
static void test_exact_inputs(void **state)
{
    (void)state;
    bel_graph *graph = bel_graph_create();
    bel_shape shape = BEL_SHAPE(BEL_DIM_BATCH, 2, 300, 4);
    bel_value *x = bel_input_value(graph, "x", BEL_DTYPE_F32, &shape), *gradient;
    bel_value *h = bel_abs(graph, x);
    bel_value *y = bel_attention(graph, h, h, h, NULL, NULL, true, 0);
    bel_value *loss = bel_mean(graph, bel_mul(graph, y, y));
    bel_gradients_keeping(graph, BEL_DTYPE_BF16, loss, &x, 1, &gradient);
    BEL_ASSERT_OK(bel_graph_check(graph));
    const bel_node *attention = find_node(graph, BEL_OP_ATTENTION);
    const bel_node *slope = find_node(graph, BEL_OP_ATTENTION_GRAD);
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(slope->inputs[1 + i], attention->inputs[i]);
    assert_ptr_equal(slope->inputs[4], attention->outputs[0]);
    (void)find_node(graph, BEL_OP_CAST); // for the square
    bel_graph_destroy(graph);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_several_paths),
        cmocka_unit_test(test_twice),
        cmocka_unit_test(test_numbers_of_nodes),
        cmocka_unit_test(test_penalty),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_cross_entropy_twice),
        cmocka_unit_test(test_wanted_values),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_no_gradient),
        cmocka_unit_test(test_rounded),
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_exact_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
