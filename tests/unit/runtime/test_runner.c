// Runner: it compiles a program for each new shape, keeps the 64 most recently used ones, and uses
// one arena for all.
#include "runtime/runner.h"

#include "runtime/device.h"
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
    get(runner, 1);  // now 2 is the least recently used
    get(runner, 65); // removes it
    check_counts(runner, 65, 65);
    get(runner, 1);
    get(runner, 3);
    get(runner, 64);
    check_counts(runner, 68, 65);
    get(runner, 2); // compiles it again and removes 4
    check_counts(runner, 68, 66);
    get(runner, 4);
    check_counts(runner, 68, 67);
    bel_runner_destroy(runner);
    mlp_destroy(m);
}

// Returns the loss of the first `batch` examples.
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

// A larger batch moves the arena; smaller programs then use the new one.
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

// --- Beside guests -------------------------------------------------------------------------------

// Like the CPU, but its memory is full at first.
static bel_device full;
static int attempts, fails; // `fails`: number of failed attempts

static bel_status *allocate(bel_device *device, size_t bytes, const char *what,
                            bel_device_memory *out_memory)
{
    (void)device;
    *out_memory = (bel_device_memory){0};
    if (++attempts > fails)
        return bel_device_cpu.ops->allocate(&bel_device_cpu, bytes, what, out_memory);
    if (attempts == fails) atomic_store(&full.guests, 0); // left before this refusal
    return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "full");
}

static void test_waits_for_guests(void **state)
{
    (void)state;
    static const struct {
        int guests, fails;
        long long patience_ns;
        int attempts; // including the successful one
        bel_code code;
    } rows[] = {{1, 3, 0, 4, BEL_OK},
                {0, 1, 0, 1, BEL_RESOURCE_EXHAUSTED},
                {1, 9, 1, 1, BEL_RESOURCE_EXHAUSTED}};
    mlp *m = mlp_create();
    bel_device_ops ops = *bel_device_cpu.ops;
    ops.allocate = allocate;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        full = (bel_device){.ops = &ops, .name = "full:0", .in_place = true};
        atomic_store(&full.guests, rows[i].guests);
        atomic_store(&full.patience_ns, rows[i].patience_ns);
        attempts = 0;
        fails = rows[i].fails;
        bel_program_options options = {.threads = 1, .device = &full};
        bel_runner *runner = bel_runner_create(m->graph, m->outputs, MLP_OUTPUTS, &options, 1);
        bel_shape shapes[2];
        bel_instance *instance;
        mlp_shapes(4, shapes);
        bel_status *status = bel_runner_get_beside_guests(runner, 0, shapes, &instance);
        assert_int_equal(bel_status_code(status), rows[i].code);
        assert_int_equal(attempts, rows[i].attempts);
        bel_status_destroy(status);
        bel_runner_destroy(runner);
    }
    mlp_destroy(m);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_growing_arena),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_waits_for_guests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
