// Tests of bags of rows and their gradients, in double, against the formulas written out. They
// cover each combiner, with and without weights, places without an id, a bag without ids, weights
// that add up to 0, the same gathered from a matrix, and refusals.
#include <math.h>

#include "op/op_case.h"

enum { BAGS = 4, MOST = 3, WIDTH = 2, ROWS = 5 };

static const int64_t ids[BAGS * MOST] = {0, 4, 2, -1, 3, -1, -1, -1, -1, 1, 1, -1};
static const double rows_data[BAGS * MOST * WIDTH] = {1, 2, -3, 0.5, 4, 7, 0, 0, 2, -1, 0,   0,
                                                      0, 0, 0,  0,   0, 0, 3, 1, 3, 1,  0.5, 9};
static const double matrix_data[ROWS * WIDTH] = {1, 2, 3, 1, 4, 7, 2, -1, -3, 0.5};
// Weights of places without an id are ignored.
static const double weights_data[BAGS * MOST] = {0.5, 2,   -1.5, NAN, 3,  INFINITY,
                                                 7,   NAN, 1,    1,   -1, NAN};

static bel_value *add_input(op_run *run, const char *name, bel_dtype dtype, bel_shape shape,
                            const void *data)
{
    bel_tensor tensor = {.dtype = dtype, .shape = shape};
    tensor.data = bel_xmalloc(bel_tensor_bytes(&tensor));
    memcpy(tensor.data, data, bel_tensor_bytes(&tensor));
    run->data[run->input_count] = tensor;
    run->values[run->input_count] = bel_input_value(run->graph, name, dtype, &shape);
    return run->values[run->input_count++];
}

// Expected bags, and the gradients of the sum of (bag · slope) by each place's row and weight.
typedef struct expected {
    double bags[BAGS * WIDTH];
    double rows[BAGS * MOST * WIDTH];
    double weights[BAGS * MOST];
} expected;

static double slope(int bag, int column)
{
    return 1 + 0.5 * bag - column;
}

static void compute_bag(expected *e, int bag, const double *rows, bool weighted,
                        bel_combiner combiner)
{
    double sum = 0, squares = 0, total[WIDTH] = {0}, along = 0;
    for (int i = bag * MOST; i < (bag + 1) * MOST; i++) {
        if (ids[i] == BEL_NO_ID) continue;
        double w = weighted ? weights_data[i] : 1;
        sum += w;
        squares += w * w;
        for (int j = 0; j < WIDTH; j++)
            total[j] += w * rows[i * WIDTH + j];
    }
    double by = combiner == BEL_COMBINE_SUM    ? 1
                : combiner == BEL_COMBINE_MEAN ? sum
                                               : sqrt(squares);
    bool fixed = by == 0 || combiner == BEL_COMBINE_SUM; // the divisor has no slope
    if (by == 0) by = 1;
    for (int j = 0; j < WIDTH; j++) {
        e->bags[bag * WIDTH + j] = total[j] / by;
        along += slope(bag, j) * total[j];
    }
    for (int i = bag * MOST; i < (bag + 1) * MOST; i++) {
        if (ids[i] == BEL_NO_ID) continue;
        double w = weighted ? weights_data[i] : 1;
        for (int j = 0; j < WIDTH; j++) {
            e->rows[i * WIDTH + j] = slope(bag, j) * w / by;
            e->weights[i] += slope(bag, j) * rows[i * WIDTH + j] / by;
        }
        double of_divisor = combiner == BEL_COMBINE_MEAN ? 1 : w / by;
        if (!fixed) e->weights[i] -= along / (by * by) * of_divisor;
    }
}

static expected compute(const double *rows, bool weighted, bel_combiner combiner)
{
    expected e = {0};
    for (int bag = 0; bag < BAGS; bag++)
        compute_bag(&e, bag, rows, weighted, combiner);
    return e;
}

static void assert_near(const bel_tensor *got, const double *want, int count, const char *what)
{
    assert_int_equal(bel_shape_elements(&got->shape), count);
    for (int i = 0; i < count; i++) {
        double g = bel_element_get(got, i);
        if (!op_is_near(g, want[i], 1e-12))
            fail_msg("%s, element %d: got %.15g, expected %.15g", what, i, g, want[i]);
    }
}

// Runs a bag and the gradients of `from` (rows or a matrix) and of the weights.
static void check(bool gathered, bool weighted, bel_combiner combiner)
{
    op_run run = {.graph = bel_graph_create(), .context = {.seed = 1}};
    bel_graph *g = run.graph;
    double slopes[BAGS * WIDTH], of_matrix[ROWS * WIDTH] = {0}, rows[BAGS * MOST * WIDTH];
    for (int i = 0; i < BAGS * WIDTH; i++)
        slopes[i] = slope(i / WIDTH, i % WIDTH);
    for (int i = 0; i < BAGS * MOST * WIDTH; i++) {
        int64_t id = ids[i / WIDTH];
        rows[i] = !gathered || id < 0 ? rows_data[i] : matrix_data[id * WIDTH + i % WIDTH];
    }
    bel_value *from =
        gathered ? add_input(&run, "matrix", BEL_DTYPE_F64, BEL_SHAPE(ROWS, WIDTH), matrix_data)
                 : add_input(&run, "rows", BEL_DTYPE_F64, BEL_SHAPE(BAGS, MOST, WIDTH), rows_data);
    bel_value *at = add_input(&run, "ids", BEL_DTYPE_I64, BEL_SHAPE(BAGS, MOST), ids);
    bel_value *by = add_input(&run, "slopes", BEL_DTYPE_F64, BEL_SHAPE(BAGS, WIDTH), slopes);
    bel_value *w =
        weighted ? add_input(&run, "weights", BEL_DTYPE_F64, BEL_SHAPE(BAGS, MOST), weights_data)
                 : NULL;
    bel_value *bags = gathered ? bel_gather_bag(g, from, at, w, combiner)
                               : bel_combine_rows(g, from, at, w, combiner);
    bel_value *loss = bel_reduce_sum(g, bel_mul(g, bags, by), NULL, 0, false);
    bel_value *wanted[] = {from, w}, *gradients[2];
    bel_gradients(g, loss, wanted, weighted ? 2 : 1, gradients);
    BEL_ASSERT_OK(bel_graph_check(g));
    bel_program_output outputs[] = {{.value = bags}, {.value = gradients[0]}, {.value = NULL}};
    if (weighted) outputs[2].value = gradients[1];
    op_run_compile(&run, outputs, weighted ? 3 : 2, false);
    op_run_start(&run, 1);
    expected e = compute(rows, weighted, combiner);
    for (int i = 0; i < BAGS * MOST * WIDTH; i++)
        if (gathered && ids[i / WIDTH] >= 0)
            of_matrix[ids[i / WIDTH] * WIDTH + i % WIDTH] += e.rows[i];
    bel_tensor got = bel_instance_output(run.instance, 0);
    assert_near(&got, e.bags, BAGS * WIDTH, "bags");
    got = bel_instance_output(run.instance, 1);
    if (gathered) {
        assert_near(&got, of_matrix, ROWS * WIDTH, "gradient of the matrix");
    } else {
        assert_near(&got, e.rows, BAGS * MOST * WIDTH, "gradient of the rows");
    }
    if (weighted) {
        got = bel_instance_output(run.instance, 2);
        assert_near(&got, e.weights, BAGS * MOST, "gradient of the weights");
    }
    op_run_destroy(&run);
}

static void test_combiners(void **state)
{
    (void)state;
    for (int c = BEL_COMBINE_SUM; c <= BEL_COMBINE_SQRTN; c++)
        for (int kind = 0; kind < 4; kind++)
            check(kind % 2 == 1, kind / 2 == 1, (bel_combiner)c);
}

static void assert_refused(bel_shape of_ids, bel_shape of_rows, const bel_shape *of_weights,
                           int combiner, const char *part)
{
    bel_graph *g = bel_graph_create();
    bel_value *at = bel_input_value(g, "ids", BEL_DTYPE_I64, &of_ids);
    bel_value *rows = bel_input_value(g, "rows", BEL_DTYPE_F32, &of_rows), *w = NULL;
    if (of_weights != NULL) w = bel_input_value(g, "weights", BEL_DTYPE_F32, of_weights);
    assert_null(bel_combine_rows(g, rows, at, w, (bel_combiner)combiner));
    BEL_ASSERT_FAILS(bel_graph_check(g), BEL_INVALID_ARGUMENT, part);
    bel_graph_destroy(g);
}

static void test_refused(void **state)
{
    (void)state;
    bel_shape other = BEL_SHAPE(4, 2);
    assert_refused(BEL_SHAPE(4), BEL_SHAPE(4, 2), NULL, 0, "got ids [4], rows [4, 2]");
    assert_refused(BEL_SHAPE(4, 3), BEL_SHAPE(4, 3), NULL, 0, "rows [4, 3]");
    assert_refused(BEL_SHAPE(4, 3), BEL_SHAPE(4, 3, 2), &other, 0, "weights [4, 2]");
    assert_refused(BEL_SHAPE(4, 3), BEL_SHAPE(4, 3, 2), NULL, 3, "and 3");
    assert_refused(BEL_SHAPE(4, 3), BEL_SHAPE(4, 5, 2), NULL, 0, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_combiners),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
