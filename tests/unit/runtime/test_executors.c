// Asynchronous executor compared with the synchronous one: the same bits for several models and
// numbers of threads. Errors skip the calls that depend on them; cancellation; futures of outputs.
// label: threads, label: native
#include "unit/runtime/test_cnn.h"
#include "unit/runtime/test_models.h"

enum { RUNS = 20, MOST_THREADS = 3 };

static void check_model(const model_case *c)
{
    model *m = model_create(c);
    void *expected[MOST_OUTPUTS], *got[MOST_OUTPUTS];
    size_t sizes[MOST_OUTPUTS];
    run_model(m, c->rows, NULL, 1, 1, expected, sizes);
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        for (int team = 1; team <= MOST_THREADS; team++) {
            if (bel_test_spares(threads + team)) continue;
            const bel_program_options options = {.asynchronous = true, .threads = threads};
            run_model(m, c->rows, &options, team, RUNS, got, sizes);
            for (int o = 0; o < m->output_count; o++) {
                if (memcmp(expected[o], got[o], sizes[o]) != 0) {
                    fail_msg("%s: compiled for %d threads, run on %d: output %d differs", c->name,
                             threads, team, o);
                }
                bel_free(got[o]);
            }
        }
    }
    for (int o = 0; o < m->output_count; o++)
        bel_free(expected[o]);
    model_destroy(m);
}

static void test_models(void **state)
{
    (void)state;
    for (int i = 0; i < MODEL_CASES; i++)
        check_model(&model_cases[i]);
}

static void test_images(void **state)
{
    (void)state;
    cnn *expected = cnn_create(NULL);
    bel_team *team;
    bel_run_context context = {.seed = 1};
    BEL_ASSERT_OK(bel_team_create(1, &team));
    BEL_ASSERT_OK(bel_instance_run(expected->instance, team, &context, NULL, NULL));
    bel_team_destroy(team);
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        cnn *m = cnn_create(&(bel_program_options){.asynchronous = true, .threads = threads});
        BEL_ASSERT_OK(bel_team_create(threads, &team));
        for (int again = 0; again < RUNS; again++) {
            if (bel_test_spares(again)) continue;
            BEL_ASSERT_OK(bel_instance_run(m->instance, team, &context, NULL, NULL));
            for (int o = 0; o < m->output_count; o++) {
                bel_tensor a = bel_instance_output(expected->instance, o);
                bel_tensor b = bel_instance_output(m->instance, o);
                assert_memory_equal(a.data, b.data, bel_tensor_bytes(&a));
            }
        }
        bel_team_destroy(team);
        cnn_destroy(m);
    }
    cnn_destroy(expected);
}

// Two branches that gather rows, each followed by a sum. Only the sums are outputs.
enum { ROWS = 4, WIDTH = 3, INDICES = 5, BRANCHES = 2 };

typedef struct branches {
    bel_graph *graph;
    bel_program *program;
    bel_instance *instance;
    bel_team *team;
    void *arena;
    float rows[ROWS * WIDTH], sums[BRANCHES][WIDTH];
    int64_t indices[BRANCHES][INDICES];
    atomic_int published[BRANCHES];
} branches;

static void start_branches(branches *b, int threads)
{
    *b = (branches){.graph = bel_graph_create()};
    bel_graph *g = b->graph;
    bel_shape shape = BEL_SHAPE(ROWS, WIDTH), list = BEL_SHAPE(INDICES);
    bel_value *rows = bel_input_value(g, "rows", BEL_DTYPE_F32, &shape);
    bel_program_output outputs[BRANCHES];
    for (int i = 0; i < BRANCHES; i++) {
        static const char *const names[BRANCHES] = {"left", "right"};
        bel_value *indices = bel_input_value(g, names[i], BEL_DTYPE_I64, &list);
        bel_value *gathered = bel_gather(g, rows, indices);
        bel_value *sum = bel_reduce_sum(g, gathered, (const int64_t[]){0}, 1, false);
        outputs[i] = (bel_program_output){.value = sum, .external = true};
    }
    BEL_ASSERT_OK(bel_graph_check(g));
    const bel_program_options options = {.asynchronous = true, .threads = threads};
    const bel_shape shapes[] = {shape, list, list};
    BEL_ASSERT_OK(bel_program_compile(g, shapes, outputs, BRANCHES, &options, &b->program));
    size_t bytes = bel_program_arena_bytes(b->program);
    BEL_ASSERT_OK(bel_pages_create(bytes, false, "activations", &b->arena));
    BEL_ASSERT_OK(bel_team_create(threads, &b->team));
    b->instance = bel_instance_create(b->program, b->arena);
    bel_instance_bind_input(b->instance, 0, b->rows);
    for (int i = 0; i < ROWS * WIDTH; i++)
        b->rows[i] = 1;
    for (int i = 0; i < BRANCHES; i++) {
        bel_instance_bind_input(b->instance, 1 + i, b->indices[i]);
        bel_instance_bind_output(b->instance, i, b->sums[i]);
    }
}

static void stop_branches(branches *b)
{
    bel_instance_destroy(b->instance);
    bel_team_destroy(b->team);
    bel_pages_destroy(b->arena, bel_program_arena_bytes(b->program));
    bel_program_destroy(b->program);
    bel_graph_destroy(b->graph);
}

static void note_published(void *context, int output, int64_t first, int64_t count)
{
    branches *b = context;
    assert_true(first == 0 && count == WIDTH);
    atomic_fetch_add(&b->published[output], 1);
}

static bel_status *run_branches(branches *b)
{
    bel_run_context context = {.seed = 1};
    return bel_instance_run(b->instance, b->team, &context, note_published, b);
}

static void test_errors(void **state)
{
    (void)state;
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        branches b;
        start_branches(&b, threads);
        b.indices[0][2] = 77;
        BEL_ASSERT_FAILS(run_branches(&b), BEL_OUT_OF_RANGE, "77 is out of range [0, 4)");
        assert_int_equal(bel_future_look(bel_instance_future(b.instance, 0)), BEL_FUTURE_SKIPPED);
        assert_int_equal(bel_future_look(bel_instance_future(b.instance, 1)), BEL_FUTURE_READY);
        assert_int_equal(b.published[0], 0);
        assert_int_equal(b.published[1], 1);
        assert_true(b.sums[1][0] == INDICES);
        b.indices[1][0] = -1; // both fail: the first in the program is reported
        BEL_ASSERT_FAILS(run_branches(&b), BEL_OUT_OF_RANGE, "77 is out of range [0, 4)");
        b.indices[0][2] = 0;
        BEL_ASSERT_FAILS(run_branches(&b), BEL_OUT_OF_RANGE, "-1 is out of range [0, 4)");
        assert_int_equal(b.published[0], 1);
        b.indices[1][0] = 0;
        BEL_ASSERT_OK(run_branches(&b));
        assert_true(b.sums[0][1] == INDICES && b.sums[1][1] == INDICES);
        stop_branches(&b);
    }
}

static void put_state(void *context, bel_future_state state)
{
    *(bel_future_state *)context = state;
}

static void test_cancellation(void **state)
{
    (void)state;
    branches b;
    start_branches(&b, 2);
    bel_future_state became = BEL_FUTURE_PENDING;
    bel_continuation continuation = {.run = put_state, .context = &became};
    bel_future_then(bel_instance_future(b.instance, 1), &continuation);
    bel_instance_cancel(b.instance);
    BEL_ASSERT_FAILS(run_branches(&b), BEL_CANCELLED, "cancelled");
    assert_int_equal(became, BEL_FUTURE_CANCELLED);
    assert_int_equal(b.published[0] + b.published[1], 0);
    BEL_ASSERT_OK(run_branches(&b));
    assert_int_equal(became, BEL_FUTURE_READY);
    assert_int_equal(b.published[0] + b.published[1], 2);
    stop_branches(&b);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_images),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_cancellation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
