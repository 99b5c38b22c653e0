// Tests of losses and other functions made of several operations, with their gradients, against
// PyTorch's numbers in double: F.huber_loss, F.mse_loss, F.cross_entropy with weight and
// ignore_index, F.binary_cross_entropy_with_logits with pos_weight, logsumexp.
#include "op/op_case.h"

enum { SIZE = 12 };

// Two inputs and a graph of doubles. Gradients are with respect to x.
typedef struct fixture {
    op_run run;
    double x[SIZE], z[SIZE];
    int64_t labels[SIZE];
} fixture;

static bel_value *add_input(fixture *f, const char *name, bel_dtype dtype, bel_shape shape,
                            void *data)
{
    bel_tensor tensor = {dtype, shape, data};
    op_run *run = &f->run;
    tensor.data = bel_xmalloc(bel_tensor_bytes(&tensor));
    memcpy(tensor.data, data, bel_tensor_bytes(&tensor));
    run->data[run->input_count] = tensor;
    run->values[run->input_count] = bel_input_value(run->graph, name, dtype, &shape);
    return run->values[run->input_count++];
}

// Runs `values` and the gradient of `loss` with respect to input 0, and compares them.
static void check(fixture *f, bel_value *values, bel_value *loss, const double *expected,
                  const double *expected_gradient)
{
    bel_program_output outputs[2] = {{.value = values}};
    bel_gradients(f->run.graph, loss, f->run.values, 1, &outputs[1].value);
    BEL_ASSERT_OK(bel_graph_check(f->run.graph));
    op_run_compile(&f->run, outputs, 2, false);
    op_run_start(&f->run, 1);
    for (int o = 0; o < 2; o++) {
        bel_tensor got = bel_instance_output(f->run.instance, o);
        const double *want = o == 0 ? expected : expected_gradient;
        for (int64_t i = 0; i < bel_shape_elements(&got.shape); i++) {
            double g = bel_element_get(&got, i);
            if (op_is_near(g, want[i], 1e-12)) continue;
            fail_msg("output %d, element %lld: got %.15g, expected %.15g", o, (long long)i, g,
                     want[i]);
        }
    }
    op_run_destroy(&f->run);
}

static fixture make_fixture(void)
{
    return (fixture){.run = {.graph = bel_graph_create(), .context = {.seed = 1}},
                     .x = {1, -2, 0.5, 0.25, 3, -1, 2, 2, -2, -1, 0, 1},
                     .z = {0.5, 2, 1.5},
                     .labels = {2, 1, -100, 0}};
}

static bel_value *sum(fixture *f, bel_value *values)
{
    return bel_reduce_sum(f->run.graph, values, NULL, 0, false);
}

static void test_softmax_cross_entropy(void **state)
{
    (void)state;
    fixture f = make_fixture();
    bel_graph *g = f.run.graph;
    bel_value *x = add_input(&f, "x", BEL_DTYPE_F64, BEL_SHAPE(4, 3), f.x);
    bel_value *weights = add_input(&f, "w", BEL_DTYPE_F64, BEL_SHAPE(3), f.z), *used;
    bel_value *labels = add_input(&f, "labels", BEL_DTYPE_I64, BEL_SHAPE(4), f.labels);
    bel_value *losses = bel_weighted_softmax_cross_entropy(g, x, labels, weights, -100, &used);
    bel_value *mean = bel_div(g, sum(&f, losses), sum(&f, used));
    check(&f, mean, mean, (double[]){0.7171926846359536},
          (double[]){0.22640583605573467, 0.011272082838590259, -0.23767791889432494,
                     0.029534878796255118, -0.037996763246066545, 0.008461884449811405, 0, 0, 0,
                     -0.11374617835370245, 0.030591058881849705, 0.08315511947185272});
}

// Ignored numbers may be anything.
static void test_ignored_numbers(void **state)
{
    (void)state;
    fixture f = make_fixture();
    bel_graph *g = f.run.graph;
    double scores[] = {1, 1, 1, NAN, INFINITY, -INFINITY}, class_weights[] = {INFINITY, 2, 1};
    int64_t classes[] = {1, 7};
    bel_value *x = add_input(&f, "x", BEL_DTYPE_F64, BEL_SHAPE(2, 3), scores);
    bel_value *weights = add_input(&f, "w", BEL_DTYPE_F64, BEL_SHAPE(3), class_weights), *used;
    bel_value *labels = add_input(&f, "labels", BEL_DTYPE_I64, BEL_SHAPE(2), classes);
    bel_value *losses = bel_weighted_softmax_cross_entropy(g, x, labels, weights, 7, &used);
    check(&f, losses, sum(&f, losses), (double[]){2.1972245773362196, 0},
          (double[]){2.0 / 3, -4.0 / 3, 2.0 / 3, 0, 0, 0});
}

static void test_log_sum_exp(void **state)
{
    (void)state;
    static const int64_t axes[] = {-1};
    fixture f = make_fixture();
    bel_value *x = add_input(&f, "x", BEL_DTYPE_F64, BEL_SHAPE(4, 3), f.x);
    bel_value *y = bel_reduce_log_sum_exp(f.run.graph, x, axes, 1, false);
    bel_shape shape = bel_value_shape(y), expected = BEL_SHAPE(4);
    assert_true(bel_shape_equal(&shape, &expected));
    check(&f, y, sum(&f, y),
          (double[]){1.5045969023422834, 3.0790362014040995, 2.702263321439095, 1.4076059644443804},
          (double[]){0.6037488961486258, 0.030058887569574023, 0.3661922162818002,
                     0.05906975759251023, 0.9240064735078669, 0.016923768899622816,
                     0.4954626425778431, 0.4954626425778431, 0.009074714844313747,
                     0.09003057317038045, 0.2447284710547976, 0.6652409557748218});
}

// In F32 and F64. A row of -infinity has gradient 0; other rows keep theirs.
static void test_log_sum_exp_of_infinities(void **state)
{
    (void)state;
    static const int64_t axes[] = {-1};
    double numbers[] = {-INFINITY, -INFINITY, -INFINITY, 2, INFINITY, 1, NAN, 1};
    float narrow[] = {-INFINITY, -INFINITY, -INFINITY, 2, INFINITY, 1, NAN, 1};
    for (int wide = 0; wide < 2; wide++) {
        fixture f = make_fixture();
        bel_value *x = add_input(&f, "x", wide == 1 ? BEL_DTYPE_F64 : BEL_DTYPE_F32,
                                 BEL_SHAPE(4, 2), wide == 1 ? (void *)numbers : (void *)narrow);
        bel_value *y = bel_reduce_log_sum_exp(f.run.graph, x, axes, 1, false);
        bel_program_output outputs[2] = {{.value = y}};
        bel_gradients(f.run.graph, sum(&f, y), &x, 1, &outputs[1].value);
        op_run_compile(&f.run, outputs, 2, false);
        op_run_start(&f.run, 1);
        bel_tensor got = bel_instance_output(f.run.instance, 0);
        bel_tensor slopes = bel_instance_output(f.run.instance, 1);
        assert_true(bel_element_get(&got, 0) == -INFINITY && bel_element_get(&got, 1) == 2);
        assert_true(bel_element_get(&got, 2) == INFINITY && isnan(bel_element_get(&got, 3)));
        for (int i = 0; i < 4; i++)
            assert_true(bel_element_get(&slopes, i) == (i == 3 ? 1 : 0));
        op_run_destroy(&f.run);
    }
}

static void test_regression(void **state)
{
    (void)state;
    double p[] = {0.3, -2, 1, 4}, t[] = {0, -1.5, 3, -1};
    for (int huber = 0; huber < 2; huber++) {
        fixture f = make_fixture();
        bel_value *x = add_input(&f, "x", BEL_DTYPE_F64, BEL_SHAPE(4), p);
        bel_value *z = add_input(&f, "z", BEL_DTYPE_F64, BEL_SHAPE(4), t);
        if (huber == 1) {
            bel_value *y = bel_huber_loss(f.run.graph, x, z, 1.25);
            check(&f, y, sum(&f, y), (double[]){0.045, 0.125, 1.71875, 5.46875},
                  (double[]){0.3, -0.5, -1.25, 1.25});
        } else {
            bel_value *y = bel_squared_error(f.run.graph, x, z);
            check(&f, y, sum(&f, y), (double[]){0.09, 0.25, 4, 25}, (double[]){0.6, -1, -4, 10});
        }
    }
}

static void test_sigmoid_cross_entropy(void **state)
{
    (void)state;
    double p[] = {0.3, -2, 1, 4}, t[] = {0, 1, 0.25, 1};
    fixture f = make_fixture();
    bel_value *x = add_input(&f, "x", BEL_DTYPE_F64, BEL_SHAPE(4), p);
    bel_value *z = add_input(&f, "z", BEL_DTYPE_F64, BEL_SHAPE(4), t);
    bel_value *y = bel_weighted_sigmoid_cross_entropy(f.run.graph, x, z, 3);
    check(
        &f, y, sum(&f, y),
        (double[]){0.854355244468527, 6.3807840331289185, 1.2198925312773343, 0.054449783753429334},
        (double[]){0.574442516811659, -2.6423912339336475, 0.3465878679450074,
                   -0.05395862988627442});
}

// By hand: (1·3 + 2·1) / (3 + 1); 0 if all weights are 0.
static void test_weighted_mean(void **state)
{
    (void)state;
    for (int nothing = 0; nothing < 2; nothing++) {
        double v[] = {1, 2, NAN}, w[] = {3, 1, 0}, none[] = {0, 0, 0};
        fixture f = make_fixture();
        bel_value *x = add_input(&f, "x", BEL_DTYPE_F64, BEL_SHAPE(3), v);
        bel_value *z = add_input(&f, "z", BEL_DTYPE_F64, BEL_SHAPE(3), nothing ? none : w);
        bel_value *y = bel_weighted_mean(f.run.graph, x, z);
        check(&f, y, y, nothing ? none : (double[]){1.25},
              nothing ? none : (double[]){0.75, 0.25, 0});
    }
}

static void test_refused(void **state)
{
    (void)state;
    fixture f = make_fixture();
    bel_value *x = add_input(&f, "x", BEL_DTYPE_F64, BEL_SHAPE(3), f.x);
    assert_null(bel_huber_loss(f.run.graph, x, x, 0));
    BEL_ASSERT_FAILS(bel_graph_check(f.run.graph), BEL_INVALID_ARGUMENT,
                     "Huber: delta must be above 0, got 0");
    op_run_destroy(&f.run);
}

// By hand: losses 1, -2, (infinite), 3 with weights 2, 1, 0, 1 are 2, -2, -, 3: their sum is 3.
static void test_reductions(void **state)
{
    (void)state;
    static const struct {
        bel_reduction reduction;
        double over; // divisor of the sum
    } rows[] = {{BEL_REDUCTION_WEIGHTED_MEAN, 4},
                {BEL_REDUCTION_MEAN, 4},
                {BEL_REDUCTION_NONZERO_MEAN, 3},
                {BEL_REDUCTION_SUM, 1}};
    double weights[] = {2, 1, 0, 1};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fixture f = make_fixture();
        double losses[] = {1, -2, INFINITY, 3}, plain[] = {1, -2, 0, 3};
        bel_value *x = add_input(&f, "x", BEL_DTYPE_F64, BEL_SHAPE(4), losses);
        bel_value *w = add_input(&f, "w", BEL_DTYPE_F64, BEL_SHAPE(4), weights);
        bel_value *y = bel_reduce_loss(f.run.graph, x, w, rows[i].reduction);
        double over = rows[i].over, expected = 3 / over;
        check(&f, y, y, &expected, (double[]){2 / over, 1 / over, 0, 1 / over});
        fixture g = make_fixture(); // without weights
        bel_value *z = add_input(&g, "x", BEL_DTYPE_F64, BEL_SHAPE(4), plain);
        y = bel_reduce_loss(g.run.graph, z, NULL, rows[i].reduction);
        over = rows[i].reduction == BEL_REDUCTION_SUM ? 1 : 4;
        expected = 2 / over;
        check(&g, y, y, &expected, (double[]){1 / over, 1 / over, 1 / over, 1 / over});
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) { // all weights are 0
        fixture f = make_fixture();
        double none[] = {0, 0, 0, 0}, losses[] = {1, -2, NAN, 3}, expected = 0;
        bel_value *x = add_input(&f, "x", BEL_DTYPE_F64, BEL_SHAPE(4), losses);
        bel_value *w = add_input(&f, "w", BEL_DTYPE_F64, BEL_SHAPE(4), none);
        bel_value *y = bel_reduce_loss(f.run.graph, x, w, rows[i].reduction);
        check(&f, y, y, &expected, (double[]){0, 0, 0, 0});
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_softmax_cross_entropy),
        cmocka_unit_test(test_ignored_numbers),
        cmocka_unit_test(test_log_sum_exp),
        cmocka_unit_test(test_log_sum_exp_of_infinities),
        cmocka_unit_test(test_regression),
        cmocka_unit_test(test_sigmoid_cross_entropy),
        cmocka_unit_test(test_weighted_mean),
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
