// Tests of CTCLoss that rows of cases.def cannot express: labels that do not fit, data after
// lengths, bad labels and lengths, and the gradient of paths of minimal probability.
#include "op/op_case.h"

enum { N = 5, T = 6, CLASSES = 4, LABELS = 3 };
enum { LOGITS, LABEL, FRAME_LENGTH, LABEL_LENGTH };

static const op_case loss_row = {"ctc", BEL_OP_CTC_LOSS, "f[5,6,4] i[5,3]:1:4 i[5] i[5]", "", 0};

// Repeats and lengths by hand: 1 1 2 fits in 4 frames, not in 3. No frames fit only no labels.
static const int64_t labels[N * LABELS] = {1, 1, 2, 1, 1, 2, 3, 2, 1, 2, 2, 2, 1, 2, 3};
static const int64_t frame_lengths[N] = {4, 3, 6, 0, 0}, label_lengths[N] = {3, 3, 3, 0, 1};
static const bool fits[N] = {true, false, true, true, false};

// Outputs: losses, and the gradient of their weighted sum with respect to the logits.
static void create(op_run *run, bool reference)
{
    op_run_build(run, &loss_row, BEL_DTYPE_F32);
    memcpy(run->data[LABEL].data, labels, sizeof labels);
    memcpy(run->data[FRAME_LENGTH].data, frame_lengths, sizeof frame_lengths);
    memcpy(run->data[LABEL_LENGTH].data, label_lengths, sizeof label_lengths);
    float weights[N] = {1, 2, 3, 4, 5};
    bel_tensor tensor = {BEL_DTYPE_F32, BEL_SHAPE(N), weights};
    bel_value *weighted = bel_mul(run->graph, run->y, bel_constant(run->graph, &tensor)), *gradient;
    bel_value *sum = bel_reduce_sum(run->graph, weighted, NULL, 0, false);
    bel_gradients(run->graph, sum, run->values, 1, &gradient);
    BEL_ASSERT_OK(bel_graph_check(run->graph));
    const bel_program_output outputs[] = {{.value = run->y}, {.value = gradient}};
    op_run_compile(run, outputs, 2, reference);
}

static void test_labels_that_do_not_fit(void **state)
{
    (void)state;
    for (int reference = 0; reference < 2; reference++) {
        op_run run;
        create(&run, reference == 1);
        op_run_start(&run, 1);
        bel_tensor losses = bel_instance_output(run.instance, 0);
        bel_tensor dx = bel_instance_output(run.instance, 1);
        for (int i = 0; i < N; i++) {
            float loss = ((const float *)losses.data)[i];
            assert_true(fits[i] ? isfinite(loss) : loss == INFINITY);
            bool any = false;
            for (int k = 0; k < T * CLASSES; k++)
                any = any || ((const float *)dx.data)[i * T * CLASSES + k] != 0;
            assert_true(any == (fits[i] && frame_lengths[i] > 0));
        }
        assert_true(((const float *)losses.data)[3] == 0); // no labels, no frames
        op_run_destroy(&run);
    }
}

static void test_behind_lengths(void **state)
{
    (void)state;
    op_run clean, dirty;
    create(&clean, false);
    create(&dirty, false);
    for (int64_t i = 0; i < N * T * CLASSES; i++)
        if (i / CLASSES % T >= frame_lengths[i / CLASSES / T]) {
            bel_element_set(&dirty.data[LOGITS], i, NAN);
        }
    for (int64_t i = 0; i < N * LABELS; i++)
        if (i % LABELS >= label_lengths[i / LABELS]) bel_element_set(&dirty.data[LABEL], i, -77);
    op_run_start(&clean, 1);
    op_run_start(&dirty, 3);
    for (int o = 0; o < 2; o++) {
        bel_tensor expected = bel_instance_output(clean.instance, o);
        bel_tensor got = bel_instance_output(dirty.instance, o);
        assert_memory_equal(got.data, expected.data, bel_tensor_bytes(&got));
    }
    op_run_destroy(&clean);
    op_run_destroy(&dirty);
}

static void test_bad_data(void **state)
{
    (void)state;
    static const struct {
        int input;
        int64_t value;
        const char *part;
    } bad[] = {{LABEL, 0, "CTCLoss_4: index, label or length 0 is out of range [1, 4)"},
               {LABEL, CLASSES, "4 is out of range [1, 4)"},
               {LABEL, -1, "-1 is out of range [1, 4)"},
               {FRAME_LENGTH, T + 1, "7 is out of range [0, 7)"},
               {FRAME_LENGTH, -1, "-1 is out of range [0, 7)"},
               {LABEL_LENGTH, LABELS + 1, "4 is out of range [0, 4)"}};
    for (size_t i = 0; i < 2 * sizeof bad / sizeof bad[0]; i++) {
        op_run run;
        create(&run, i % 2 == 1);
        ((int64_t *)run.data[bad[i / 2].input].data)[0] = bad[i / 2].value;
        bel_team *team;
        BEL_ASSERT_OK(bel_team_create(2, &team));
        BEL_ASSERT_FAILS(bel_instance_run(run.instance, team, &run.context, NULL, NULL),
                         BEL_OUT_OF_RANGE, bad[i / 2].part);
        bel_team_destroy(team);
        op_run_destroy(&run);
    }
}

// One frame for each label, each of minimal probability. The loss is the sum of distances, and the
// gradient is p - 1 at the labels, although the probability is e^-4800.
static void test_tiny_probabilities(void **state)
{
    (void)state;
    enum { LONG = 60 };
    static const op_case row = {"ctc", BEL_OP_CTC_LOSS, "f[1,60,4] i[1,60]:1:4 i[1] i[1]", "", 0};
    op_run run;
    op_run_build(&run, &row, BEL_DTYPE_F32);
    float *logits = run.data[LOGITS].data;
    int64_t *list = run.data[LABEL].data;
    for (int t = 0; t < LONG; t++) {
        list[t] = t % 3 + 1;
        for (int k = 0; k < CLASSES; k++)
            logits[t * CLASSES + k] = k == 0 ? 80 : k == list[t] ? 0 : -20;
    }
    *(int64_t *)run.data[FRAME_LENGTH].data = LONG;
    *(int64_t *)run.data[LABEL_LENGTH].data = LONG;
    bel_value *sum = bel_reduce_sum(run.graph, run.y, NULL, 0, false), *gradient;
    bel_gradients(run.graph, sum, run.values, 1, &gradient);
    BEL_ASSERT_OK(bel_graph_check(run.graph));
    const bel_program_output outputs[] = {{.value = run.y}, {.value = gradient}};
    op_run_compile(&run, outputs, 2, false);
    op_run_start(&run, 1);
    bel_tensor loss = bel_instance_output(run.instance, 0);
    bel_tensor dx = bel_instance_output(run.instance, 1);
    assert_true(op_is_near(bel_element_get(&loss, 0), 80.0 * LONG, 1e-6));
    for (int i = 0; i < LONG * CLASSES; i++) {
        int k = i % CLASSES;
        double want = k == 0 ? 1 : k == list[i / CLASSES] ? -1 : 0;
        assert_true(op_is_near(bel_element_get(&dx, i), want, 1e-6));
    }
    op_run_destroy(&run);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels_that_do_not_fit),
        cmocka_unit_test(test_behind_lengths),
        cmocka_unit_test(test_bad_data),
        cmocka_unit_test(test_tiny_probabilities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
