// The runner: programs are compiled on first sight, the 64 most recently used are kept, and one
// arena serves them all.
#include "runtime/runner.h"

#include "unit/runtime/test_mlp.h"

static bel_instance *get(bel_runner *runner, int64_t batch)
{
    bel_shape shapes[2];
    bel_instance *instance;
    mlp_shapes(batch, shapes);
    BEL_ASSERT_OK(bel_runner_get(runner, 0, shapes, &instance));
    return instance;
}

static void check_counts(const bel_runner *runner, int64_t hits, int64_t compiles)
{
    bel_runner_counters counters = bel_runner_count(runner);
    assert_int_equal(counters.hits, hits);
    assert_int_equal(counters.compiles, compiles);
}

static bel_runner *make_runner(const mlp *m)
{
    bel_program_options options = {.threads = 1};
    return bel_runner_create(m->graph, m->outputs, MLP_OUTPUTS, &options, 1);
}

static void test_cache(void **state)
{
    (void)state;
    mlp *m = mlp_create();
    bel_runner *runner = make_runner(m);
    for (int64_t batch = 1; batch <= BEL_RUNNER_PROGRAMS; batch++)
        get(runner, batch);
    check_counts(runner, 0, 64);
    for (int64_t batch = 1; batch <= BEL_RUNNER_PROGRAMS; batch++)
        get(runner, batch);
    check_counts(runner, 64, 64);
    get(runner, 1);  // 2 is now the one that was not used for the longest time
    get(runner, 65); // and goes
    check_counts(runner, 65, 65);
    get(runner, 1);
    get(runner, 3);
    get(runner, 64);
    check_counts(runner, 68, 65);
    get(runner, 2); // compiled again; 4 goes
    check_counts(runner, 68, 66);
    get(runner, 4);
    check_counts(runner, 68, 67);
    bel_runner_destroy(runner);
    mlp_destroy(m);
}

// The loss of the first `batch` examples.
static float run(bel_runner *runner, mlp *m, bel_team *team, int64_t batch)
{
    bel_instance *instance = get(runner, batch);
    mlp_bind(m, instance);
    bel_run_context context = {.seed = 1};
    BEL_ASSERT_OK(bel_instance_run(instance, team, &context, NULL, NULL));
    bel_tensor losses = bel_instance_output(instance, 1);
    assert_int_equal(losses.shape.dims[0], batch);
    return *(const float *)bel_instance_output(instance, 0).data;
}

// A larger batch moves the arena; smaller programs go on with the new one.
static void test_growing_arena(void **state)
{
    (void)state;
    mlp *m = mlp_create();
    bel_runner *runner = make_runner(m);
    bel_team *team;
    BEL_ASSERT_OK(bel_team_create(1, &team));
    float losses[MLP_BATCH + 1];
    for (int64_t batch = 1; batch <= MLP_BATCH; batch++)
        losses[batch] = run(runner, m, team, batch);
    for (int64_t batch = 1; batch <= MLP_BATCH; batch++)
        assert_true(run(runner, m, team, batch) == losses[batch]);
    check_counts(runner, MLP_BATCH, MLP_BATCH);
    bel_team_destroy(team);
    bel_runner_destroy(runner);
    mlp_destroy(m);
}

static void test_errors(void **state)
{
    (void)state;
    mlp *m = mlp_create();
    bel_runner *runner = make_runner(m);
    bel_shape shapes[2] = {BEL_SHAPE(4, MLP_IN), BEL_SHAPE(5)};
    bel_instance *instance = NULL;
    BEL_ASSERT_FAILS(bel_runner_get(runner, 0, shapes, &instance), BEL_INVALID_ARGUMENT, "labels");
    assert_null(instance);
    check_counts(runner, 0, 0);
    get(runner, 4); // the runner still works
    bel_runner_destroy(runner);
    mlp_destroy(m);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_growing_arena),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
