// Tests of GRU and LSTM: data after a sequence's length has no influence; the last state is that of
// the last valid step; invalid lengths are errors.
#include "op/op_case.h"
#include "ops/kernels/recurrent.h"

enum { N = 39, T = 9, IN = 21, UNITS = 33 };

static const op_case rows[] = {
    {"gru", BEL_OP_GRU, "f[39,9,21] f[2,99,21] f[2,99,33] f[2,198] i[39]:0:10",
     "hidden_size=33 layout=1 direction=2 linear_before_reset=1", 0},
    {"gru_reset_first", BEL_OP_GRU, "f[39,9,21] f[2,99,21] f[2,99,33] f[2,198] i[39]:0:10",
     "hidden_size=33 layout=1 direction=2", 0},
    {"lstm", BEL_OP_LSTM, "f[39,9,21] f[2,132,21] f[2,132,33] f[2,264] i[39]:0:10",
     "hidden_size=33 layout=1 direction=2", 0},
    {"gru_grad", BEL_OP_GRU_GRAD,
     "f[39,9,21] f[2,99,21] f[2,99,33] f[39,9,2,33] f[39,9,2,132] i[39]:0:10 f[39,9,2,33] "
     "f[39,2,33]",
     "hidden_size=33 layout=1 direction=2 linear_before_reset=1 given=27", 0},
    {"gru_grad_reset_first", BEL_OP_GRU_GRAD,
     "f[39,9,21] f[2,99,21] f[2,99,33] f[39,9,2,33] f[39,9,2,99] i[39]:0:10 f[39,9,2,33] "
     "f[39,2,33]",
     "hidden_size=33 layout=1 direction=2 given=27", 0},
    {"lstm_grad", BEL_OP_LSTM_GRAD,
     "f[39,9,21] f[2,132,21] f[2,132,33] f[39,9,2,33] f[39,9,2,165] i[39]:0:10 f[39,9,2,33] "
     "f[39,2,33] f[39,2,33]",
     "hidden_size=33 layout=1 direction=2 given=31", 0},
};

static bool is_gradient(const op_case *row)
{
    return row->op == BEL_OP_GRU_GRAD || row->op == BEL_OP_LSTM_GRAD;
}

// Sets elements after their row's length, of x [n, t, in] or any [n, t, …], to `value`.
static void fill_behind(const bel_tensor *x, const int64_t *lengths, double value)
{
    int64_t width = bel_shape_elements(&x->shape) / (N * T);
    for (int64_t i = 0; i < N * T * width; i++)
        if (i / width % T >= lengths[i / width / T]) bel_element_set(x, i, value);
}

static bool has_times(const bel_shape *shape)
{
    return shape->rank >= 3 && shape->dims[0] == N && shape->dims[1] == T;
}

static void check_garbage(const op_case *row, bool reference, double garbage)
{
    op_run run;
    int outputs = op_run_create(&run, row, reference);
    const int64_t *lengths = run.data[is_gradient(row) ? 5 : 4].data;
    void *expected[BEL_OP_MAX_OUTPUTS];
    op_run_start(&run, 1);
    for (int o = 0; o < outputs; o++) {
        bel_tensor y = bel_instance_output(run.instance, o);
        expected[o] = bel_xmalloc(bel_tensor_bytes(&y));
        memcpy(expected[o], y.data, bel_tensor_bytes(&y));
        if (!has_times(&y.shape)) continue;
        fill_behind(&y, lengths, 0); // zeros already
        assert_memory_equal(y.data, expected[o], bel_tensor_bytes(&y));
    }
    for (int i = 0; i < run.input_count; i++)
        if (has_times(&run.data[i].shape)) fill_behind(&run.data[i], lengths, garbage);
    op_run_start(&run, 2);
    for (int o = 0; o < outputs; o++) {
        bel_tensor y = bel_instance_output(run.instance, o);
        assert_memory_equal(y.data, expected[o], bel_tensor_bytes(&y));
        bel_free(expected[o]);
    }
    op_run_destroy(&run);
}

static void test_behind_lengths(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_garbage(&rows[i], false, NAN);
        check_garbage(&rows[i], false, 1e30);
        check_garbage(&rows[i], true, NAN);
    }
}

static void test_last_states(void **state)
{
    (void)state;
    for (int r = 0; r < 3; r++) {
        op_run run;
        op_run_create(&run, &rows[r], false);
        op_run_start(&run, 1);
        bel_tensor y = bel_instance_output(run.instance, 0);
        bel_tensor last = bel_instance_output(run.instance, 1);
        for (int64_t i = 0; i < N * 2 * UNITS; i++) {
            int64_t row = i / UNITS / 2, d = i / UNITS % 2;
            int64_t length = ((const int64_t *)run.data[4].data)[row];
            int64_t time = d == 0 ? length - 1 : 0; // the second direction ends at the first step
            int64_t at = ((row * T + time) * 2 + d) * UNITS + i % UNITS;
            double want = length == 0 ? 0 : bel_element_get(&y, at);
            assert_true(bel_element_get(&last, i) == want);
        }
        op_run_destroy(&run);
    }
}

// The gradient of only the last state, by central differences in double.
static void test_gradient_of_last_state(void **state)
{
    (void)state;
    static const op_case small[] = {
        {"gru", BEL_OP_GRU, "f[5,4,3] f[1,12,3] f[1,12,4] f[1,24] i[5]:0:5",
         "hidden_size=4 layout=1 linear_before_reset=1", 0},
        {"lstm", BEL_OP_LSTM, "f[5,4,3] f[1,16,3] f[1,16,4] f[1,32] i[5]:0:5",
         "hidden_size=4 layout=1", 0}};
    for (int c = 0; c < 2; c++) {
        op_run run;
        op_run_build(&run, &small[c], BEL_DTYPE_F64);
        bel_value *loss = NULL, *gradient;
        for (int o = 1; o <= 1 + c; o++) {
            bel_value *part =
                bel_reduce_sum_square(run.graph, run.y->node->outputs[o], NULL, 0, false);
            loss = loss == NULL ? part : bel_add(run.graph, loss, part);
        }
        bel_gradients(run.graph, loss, &run.values[2], 1, &gradient); // R
        const bel_program_output outputs[] = {{.value = loss}, {.value = gradient}};
        BEL_ASSERT_OK(bel_graph_check(run.graph));
        op_run_compile(&run, outputs, 2, false);
        double *weights = run.data[2].data;
        for (int i = 0; i < 48; i++) {
            double kept = weights[i], sums[2];
            for (int side = 0; side < 2; side++) {
                weights[i] = kept + (side == 0 ? 1e-5 : -1e-5);
                op_run_start(&run, 1);
                bel_tensor sum = bel_instance_output(run.instance, 0);
                sums[side] = bel_element_get(&sum, 0);
            }
            weights[i] = kept;
            op_run_start(&run, 1);
            bel_tensor got = bel_instance_output(run.instance, 1);
            assert_true(fabs(bel_element_get(&got, i) - (sums[0] - sums[1]) / 2e-5) < 1e-7);
        }
        op_run_destroy(&run);
    }
}

static void test_impossible_lengths(void **state)
{
    (void)state;
    static const int64_t bad[] = {-1, T + 1, INT64_MAX};
    for (int b = 0; b < 3; b++) {
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
            op_run run;
            op_run_create(&run, &rows[r], false);
            ((int64_t *)run.data[is_gradient(&rows[r]) ? 5 : 4].data)[7] = bad[b];
            bel_team *team;
            BEL_ASSERT_OK(bel_team_create(1, &team));
            BEL_ASSERT_FAILS(bel_instance_run(run.instance, team, &run.context, NULL, NULL),
                             BEL_OUT_OF_RANGE, "out of range [0, 10)");
            bel_team_destroy(team);
            op_run_destroy(&run);
        }
    }
}

// A sequence in two parts, the second beginning with the last states of the first, gives the bits
// of the complete one. There is no gradient.
static void check_first_states(const op_case *row, bel_dtype dtype, bool reference)
{
    op_run run;
    op_run_build(&run, row, dtype);
    bel_node *whole = run.y->node;
    bel_value *halves[2], *inputs[BEL_OP_MAX_INPUTS];
    const int64_t sizes[] = {4, 5};
    bel_split(run.graph, run.values[0], 1, sizes, 2, halves);
    for (int i = 0; i < 4; i++)
        inputs[i] = run.values[i];
    inputs[0] = halves[0];
    bel_attr_list attrs = whole->attrs;
    bel_value *first = bel_graph_add(run.graph, row->op, &attrs, inputs, 4);
    bool lstm = row->op == BEL_OP_LSTM;
    int count = 4;
    inputs[0] = halves[1];
    for (int i = 0; i < 1 + lstm; i++)
        inputs[count++] = bel_graph_output(first, 1 + i);
    attrs.items[attrs.count++] = (bel_attr){.name = "first", .number = lstm ? 3 : 1};
    bel_value *second = bel_graph_add(run.graph, row->op, &attrs, inputs, count), *gradient;
    bel_value *both[] = {first, second};
    bel_value *joined = bel_concat(run.graph, both, 2, 1);
    const bel_program_output outputs[] = {{.value = run.y},
                                          {.value = joined},
                                          {.value = whole->outputs[1]},
                                          {.value = bel_graph_output(second, 1)}};
    BEL_ASSERT_OK(bel_graph_check(run.graph));
    op_run_compile(&run, outputs, 4, reference);
    op_run_start(&run, 1);
    for (int o = 0; o < 4; o += 2) {
        bel_tensor want = bel_instance_output(run.instance, o);
        bel_tensor got = bel_instance_output(run.instance, o + 1);
        assert_true(bel_shape_equal(&want.shape, &got.shape));
        assert_memory_equal(got.data, want.data, bel_tensor_bytes(&want));
    }
    bel_value *loss = bel_reduce_sum(run.graph, second, NULL, 0, false);
    bel_gradients(run.graph, loss, &run.values[2], 1, &gradient);
    BEL_ASSERT_FAILS(bel_graph_check(run.graph), BEL_UNIMPLEMENTED, "first states");
    op_run_destroy(&run);
}

static void test_first_states(void **state)
{
    (void)state;
    static const op_case cut[] = {
        {"gru", BEL_OP_GRU, "f[39,9,21] f[1,99,21] f[1,99,33] f[1,198]",
         "hidden_size=33 layout=1 linear_before_reset=1", 0},
        {"gru_reset_first", BEL_OP_GRU, "f[39,9,21] f[1,99,21] f[1,99,33] f[1,198]",
         "hidden_size=33 layout=1", 0},
        {"lstm", BEL_OP_LSTM, "f[39,9,21] f[1,132,21] f[1,132,33] f[1,264]",
         "hidden_size=33 layout=1", 0}};
    for (int i = 0; i < 3; i++) {
        check_first_states(&cut[i], BEL_DTYPE_F32, false);
        check_first_states(&cut[i], BEL_DTYPE_F64, true); // f32 states are rounded between steps
    }
}

static void test_layers(void **state)
{
    (void)state;
    bel_graph *g = bel_graph_create();
    bel_shape shape = BEL_SHAPE(BEL_DIM_BATCH, BEL_DIM_TIME, 5), lengths = BEL_SHAPE(BEL_DIM_BATCH);
    bel_value *x = bel_input_value(g, "x", BEL_DTYPE_F32, &shape), *last;
    bel_value *n = bel_input_value(g, "length", BEL_DTYPE_I64, &lengths);
    bel_value *y = bel_lstm(g, bel_gru(g, x, n, 7, "first", NULL), NULL, 6, "second", &last);
    BEL_ASSERT_OK(bel_graph_check(g));
    bel_shape want = BEL_SHAPE(BEL_DIM_BATCH, BEL_DIM_TIME, 6), have = bel_value_shape(y);
    assert_true(bel_shape_equal(&have, &want));
    want = BEL_SHAPE(BEL_DIM_BATCH, 6);
    have = bel_value_shape(last);
    assert_true(bel_shape_equal(&have, &want));
    bel_gru(g, last, n, 7, "third", NULL);
    BEL_ASSERT_FAILS(bel_graph_check(g), BEL_INVALID_ARGUMENT, "third");
    bel_graph_destroy(g);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_behind_lengths),         cmocka_unit_test(test_last_states),
        cmocka_unit_test(test_gradient_of_last_state), cmocka_unit_test(test_impossible_lengths),
        cmocka_unit_test(test_first_states),           cmocka_unit_test(test_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
