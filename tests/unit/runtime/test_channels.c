// Channels-last values in programs: the same numbers as with plain kernels, and the same bits for
// any number of threads and without groups. Also checks the choice of values.
#include "runtime/channels.h"

#include <math.h>

#include "unit/runtime/test_cnn.h"

static void run(cnn *m, int threads)
{
    bel_team *team;
    BEL_ASSERT_OK(bel_team_create(threads, &team));
    bel_run_context context = {.seed = 1};
    BEL_ASSERT_OK(bel_instance_run(m->instance, team, &context, NULL, NULL));
    bel_team_destroy(team);
    bel_tensor loss = bel_instance_output(m->instance, 0);
    m->results[0][0] = *(const float *)loss.data;
}

static int64_t elements_of(const cnn *m, int output)
{
    bel_shape shape = bel_value_shape(m->outputs[output].value);
    return bel_shape_elements(&shape);
}

static void test_plain_kernels_agree(void **state)
{
    (void)state;
    cnn *fast = cnn_create(NULL), *plain = cnn_create(&(bel_program_options){.reference = true});
    run(fast, 1);
    run(plain, 1);
    for (int o = 0; o < fast->output_count; o++) {
        double largest = 0;
        for (int64_t i = 0; i < elements_of(fast, o); i++)
            largest = fmax(largest, fabs((double)plain->results[o][i]));
        for (int64_t i = 0; i < elements_of(fast, o); i++) {
            double got = (double)fast->results[o][i], want = (double)plain->results[o][i];
            if (fabs(got - want) <= 2e-5 * largest) continue;
            fail_msg("output %d, element %lld: %.9g, plain %.9g", o, (long long)i, got, want);
        }
        assert_true(largest > 0);
    }
    cnn_destroy(fast);
    cnn_destroy(plain);
}

static void test_threads_and_groups(void **state)
{
    (void)state;
    static const bel_program_options all[] = {{0}, {.no_groups = true}, {.no_reuse = true}};
    cnn *first = cnn_create(NULL);
    run(first, 1);
    for (int i = 0; i < 3; i++) {
        cnn *other = cnn_create(&all[i]);
        run(other, 3);
        for (int o = 0; o < first->output_count; o++) {
            size_t bytes = (size_t)elements_of(first, o) * sizeof(float);
            assert_memory_equal(other->results[o], first->results[o], bytes);
        }
        cnn_destroy(other);
    }
    cnn_destroy(first);
}

// Chooses values for a graph in which all values are needed. The only output is the last value.
static void choose(const bel_graph *g, const bel_value *output, bool *out_last)
{
    bool needed[32];
    bel_spec specs[64];
    bel_shape shape = BEL_SHAPE(2, 3, 4, 4);
    memset(needed, true, sizeof needed);
    memset(out_last, 0, 64 * sizeof *out_last);
    assert_true(g->node_count < 32 && g->value_count < 64);
    BEL_ASSERT_OK(bel_graph_infer(g, &shape, specs));
    bel_program_output outputs[] = {{.value = g->values[output->id]}};
    bel_channels_last(g, needed, specs, outputs, 1, out_last);
}

static void test_choice(void **state)
{
    (void)state;
    bel_graph *g = bel_graph_create();
    bel_shape shape = BEL_SHAPE(BEL_DIM_BATCH, 3, 4, 4);
    bool last[64];
    bel_value *x = bel_input_value(g, "x", BEL_DTYPE_F32, &shape);
    bel_value *a = bel_conv_2d(g, x, 3, 3, 1, true, "a");
    bel_value *b = bel_relu(g, a), *c = bel_conv_2d(g, b, 3, 3, 1, true, "c");
    bel_value *with_x = bel_add(g, c, x); // x has the plain order, so c does too
    bel_value *d = bel_conv_2d(g, with_x, 3, 3, 1, true, "d");
    bel_value *scaled = bel_mul(g, d, bel_scalar(g, BEL_DTYPE_F32, 2));
    bel_value *e =
        bel_global_average_pool(g, bel_tanh(g, bel_conv_2d(g, scaled, 3, 3, 1, true, "e")));
    bel_value *y = bel_flatten(g, e, 1);
    choose(g, y, last);
    assert_false(last[x->id]);
    assert_true(last[a->id] && last[b->id]);
    assert_false(last[c->id] || last[with_x->id]);
    assert_false(last[d->id] || last[scaled->id]); // shapes differ in the product
    assert_true(last[e->node->inputs[0]->id]);
    assert_false(last[e->id] || last[y->id]); // a Reshape reads e
    choose(g, b, last);
    assert_false(last[b->id] || last[a->id]); // outputs have the plain order
    bel_graph_destroy(g);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_kernels_agree),
        cmocka_unit_test(test_threads_and_groups),
        cmocka_unit_test(test_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
