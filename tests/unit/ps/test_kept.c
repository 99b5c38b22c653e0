// A shard's state in memory that outlives its process. A child process trains in memory that it
// shares with this one, and is killed at every piece in turn; this process continues. Values,
// slots and averages are those of an undisturbed training.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/linux_shared.h"
#include "base/number.h"
#include "ps/server/shard_inner.h"
#include "unit/ps/test_cluster.h"

static const int replicas_of[] = {3, 2};
enum { WORKERS = 2, STEPS = 3 };

static const bel_optimizer plain = {.kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.1};
static const bel_optimizer averaged = {.kind = BEL_OPTIMIZER_ADAM,
                                       .learning_rate = 0.1,
                                       .beta1 = 0.9,
                                       .beta2 = 0.999,
                                       .epsilon = 1e-6,
                                       .moving_average_decay = 0.9};
static const bel_optimizer clipped = {
    .kind = BEL_OPTIMIZER_MOMENTUM, .learning_rate = 0.1, .momentum = 0.9, .clip_global_norm = 1};
static const bel_optimizer lamb = {.kind = BEL_OPTIMIZER_LAMB,
                                   .learning_rate = 0.1,
                                   .beta1 = 0.9,
                                   .beta2 = 0.999,
                                   .epsilon = 1e-6};

static bel_shard_settings settings_with(bel_optimizers *optimizers, const bel_optimizer *main)
{
    *optimizers = (bel_optimizers){.main = *main};
    BEL_ASSERT_OK(bel_optimizer_check(&optimizers->main));
    return (bel_shard_settings){.optimizers = optimizers, .function_count = 1};
}

static size_t bytes_for(const bel_optimizer *optimizer)
{
    bel_optimizers optimizers;
    const bel_shard_settings settings = settings_with(&optimizers, optimizer);
    bel_layout *layout = make_layout(1);
    assert_null(bel_kept_why_not(layout, &settings));
    size_t bytes = bel_kept_bytes(layout, 0, &settings);
    bel_layout_destroy(layout);
    return bytes;
}

static void *make_memory(size_t bytes)
{
    void *memory = NULL;
    int reading = -1;
    BEL_ASSERT_OK(bel_linux_shared_keep(bel_linux_shared_open("test"), bytes, &reading, &memory));
    close(reading);
    return memory;
}

// Trains from version `from` to the end.
static void train(cluster *c, int64_t from)
{
    for (int64_t step = from; step < STEPS; step++) {
        for (int w = 0; w < WORKERS; w++)
            assert_int_equal(wait_for(c, w, step), 0);
        for (int w = 0; w < WORKERS; w++)
            report_step(c, w, step);
    }
    for (int w = 0; w < WORKERS; w++)
        assert_int_equal(wait_for(c, w, STEPS), BEL_DECIDE_STOP);
}

// Values and averages at the end. A wrong slot of an earlier step shows in them.
static float *finish(cluster *c, int64_t from)
{
    train(c, from);
    size_t size = (size_t)c->layout->size;
    memset(c->snapshot, 0, size * sizeof(float)); // the gaps between variables …
    memset(c->averages, 0, size * sizeof(float)); // … and averages that are not kept
    BEL_ASSERT_OK(bel_shard_snapshot_now(c->shards[0]));
    float *result = bel_xcalloc(2 * size, sizeof *result);
    memcpy(result, c->snapshot, size * sizeof *result);
    memcpy(result + size, c->averages, size * sizeof *result);
    cluster_destroy(c);
    return result;
}

// Trains in a child, which is killed at piece number `kill`. Returns true if it was killed.
static bool is_killed_at(const bel_optimizer *optimizer, int kill)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char fault[64];
        bel_snprintf(fault, sizeof fault, "crash:shard_kept_piece#%d", kill);
        bel_fault_enable();
        bel_fault_set(fault);
        kept_from = -1;
        cluster *c = cluster_create(1, replicas_of, WORKERS, *optimizer, STEPS);
        train(c, 0);
        _exit(0);
    }
    int status;
    assert_true(waitpid(child, &status, 0) == child);
    assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

static void survives_every_piece(const bel_optimizer *optimizer)
{
    size_t bytes = bytes_for(optimizer), size;
    cluster *alone = cluster_create(1, replicas_of, WORKERS, *optimizer, STEPS);
    size = 2 * (size_t)alone->layout->size * sizeof(float);
    float *expected = finish(alone, 0);
    int kill = 1, mixed = 0;
    for (bool killed = true; killed; kill++) {
        if (bel_test_spares(kill)) continue;
        change_config = kill % 2 == 0 ? stream_all : NULL;
        kept_memory = make_memory(bytes);
        killed = is_killed_at(optimizer, kill);
        bel_kept_state state = bel_kept_look(kept_memory, bytes);
        assert_int_equal(state.generation, 1);
        assert_int_equal(state.step, killed ? state.step : STEPS);
        kept_from = killed ? state.step : STEPS - 1;
        cluster *c = cluster_create(1, replicas_of, WORKERS, *optimizer, STEPS);
        assert_int_equal(c->shards[0]->streams, kill % 2 == 0);
        for (int local = 0; local < c->layout->chunk_count; local++)
            mixed += bel_kept_version(c->kept, local) > state.step;
        float *result = finish(c, kept_from);
        assert_memory_equal(result, expected, size);
        bel_free(result);
        bel_linux_shared_unmap(kept_memory, bytes);
        kept_memory = NULL;
    }
    change_config = NULL;
    assert_true(kill > 2 * STEPS); // a chunk has several pieces …
    assert_true(mixed > 0);        // … and some chunks were already at the next version
    bel_free(expected);
}

static void plain_steps_survive(void **state)
{
    (void)state;
    survives_every_piece(&plain);
}

static void slots_and_averages_survive(void **state)
{
    (void)state;
    survives_every_piece(&averaged);
}

static void two_passes_survive(void **state)
{
    (void)state;
    survives_every_piece(&clipped);
}

// A shard whose memory is not kept goes back as well, when another one was lost. It has the next
// version's values already, over which the first of two passes must not write.
static void own_next_values_stay(void **state)
{
    (void)state;
    cluster *c = cluster_create(1, replicas_of, WORKERS, clipped, STEPS);
    train(c, 0);
    bel_shard *shard = c->shards[0];
    assert_null(shard->memory.sums); // until then they are in the buffer of the next version
    bel_shard_restart(shard, 2);
    BEL_ASSERT_OK(bel_shard_continue(shard, STEPS - 1));
    assert_non_null(shard->memory.sums);
    for (int i = 0; i < 2; i++)
        assert_ptr_not_equal(shard->memory.sums, c->space->buffers[i]);
    cluster_destroy(c);
}

// Going back to the version of the step in progress: nothing that its pass has recorded counts.
static void going_back_forgets_passes(void **state)
{
    (void)state;
    size_t bytes = bytes_for(&plain);
    cluster *alone = cluster_create(1, replicas_of, WORKERS, plain, STEPS);
    size_t size = 2 * (size_t)alone->layout->size * sizeof(float);
    float *expected = finish(alone, 0);
    int kill = 1;
    for (bool killed = true; killed; kill++) {
        if (bel_test_spares(kill)) continue;
        kept_memory = make_memory(bytes);
        killed = is_killed_at(&plain, kill);
        kept_from = -1; // the state is loaded anew, at version 0
        float *result = finish(cluster_create(1, replicas_of, WORKERS, plain, STEPS), 0);
        assert_memory_equal(result, expected, size);
        bel_free(result);
        bel_linux_shared_unmap(kept_memory, bytes);
        kept_memory = NULL;
    }
    bel_free(expected);
}

// More points than the ring holds, of which the newest is dropped.
static void dropped_points_do_not_return(void **state)
{
    (void)state;
    size_t bytes = bytes_for(&plain);
    bel_optimizers optimizers;
    const bel_shard_settings settings = settings_with(&optimizers, &plain);
    bel_layout *layout = make_layout(1);
    void *memory = make_memory(bytes);
    bel_kept *kept = bel_kept_over(memory, layout, 0, &settings);
    enum { LAST = BEL_KEPT_POINTS + 500 };
    for (int64_t step = 1; step <= LAST; step++)
        bel_kept_add_point(kept, &(bel_control_point){.step = step, .loss = (double)step});
    const bel_control_config config = {.shard_count = 1,
                                       .first_step = LAST - 1,
                                       .last_step = LAST + 1,
                                       .worker_count = 1,
                                       .continues = true,
                                       .kept = kept};
    bel_control *control = bel_control_create(&config);
    static bel_control_point points[BEL_KEPT_POINTS];
    int count = bel_control_take_points(control, points, BEL_KEPT_POINTS);
    assert_int_equal(count, BEL_KEPT_POINTS - 1);
    for (int i = 0; i < count; i++)
        assert_true(points[i].step == LAST - count + i);
    bel_control_destroy(control);
    bel_kept_destroy(kept);
    bel_layout_destroy(layout);
    bel_linux_shared_unmap(memory, bytes);
}

// Points and the time of the last save outlive a control without kept memory, too.
static void a_control_continues_without_memory(void **state)
{
    (void)state;
    static const double stats[BEL_STATS_COUNT + 2] = {[BEL_STATS_EXAMPLES] = 1};
    enum { STEPS_BEFORE = 1500, ROOM = 1000 };
    bel_control_config config = {.shard_count = 1,
                                 .last_step = 1 << 20,
                                 .save_secs = 1000,
                                 .series_steps = 1,
                                 .worker_count = 1};
    bel_control *control = bel_control_create(&config);
    for (int64_t step = 1; step <= STEPS_BEFORE; step++)
        assert_int_equal(bel_control_decide(control, step, stats, BEL_STEPS_FOLLOW), 0);
    static bel_control_point points[ROOM], again[ROOM];
    assert_int_equal(bel_control_newest_points(control, points, ROOM), ROOM); // none is taken yet
    for (int i = 0; i < ROOM; i++)
        assert_true(points[i].step == STEPS_BEFORE - ROOM + 1 + i);
    bel_control_destroy(control);
    config.first_step = STEPS_BEFORE - 1;
    config.continues = true;
    config.saved_secs = 999;
    control = bel_control_create(&config);
    bel_control_add_points(control, points, ROOM);
    bel_control_add_points(control, points, ROOM); // nothing new
    assert_int_equal(bel_control_take_points(control, again, ROOM), ROOM - 1);
    assert_true(again[ROOM - 2].step == STEPS_BEFORE - 1);
    assert_int_equal(bel_control_decide(control, STEPS_BEFORE - 1, NULL, BEL_STEPS_FOLLOW), 0);
    bel_control_destroy(control);
    config.saved_secs = 1001; // it is due with the first step
    control = bel_control_create(&config);
    assert_int_equal(bel_control_decide(control, STEPS_BEFORE - 1, NULL, BEL_STEPS_FOLLOW),
                     BEL_DECIDE_SAVE);
    bel_control_destroy(control);
}

// A snapshot that was not released is shown again, and the next one waits for its release. A
// checkpoint that was left out is made at once.
static void an_unreleased_snapshot_continues(void **state)
{
    (void)state;
    static const double stats[BEL_STATS_COUNT] = {[BEL_STATS_EXAMPLES] = 1};
    bel_control_config config = {.shard_count = 1,
                                 .first_step = 6,
                                 .last_step = 20,
                                 .save_steps = 4,
                                 .worker_count = 1,
                                 .continues = true,
                                 .snapshot = 4,
                                 .snapshot_save = true};
    bel_control *control = bel_control_create(&config);
    bel_control_state now;
    bel_control_wait(control, 0, &now);
    assert_true(now.has_snapshot && now.snapshot == 4 && now.save && !now.eval);
    assert_int_equal(bel_control_decide(control, 6, NULL, BEL_STEPS_FOLLOW), 0);
    assert_int_equal(bel_control_decide(control, 7, stats, BEL_STEPS_FOLLOW), BEL_DECIDE_LATER);
    bel_control_release_snapshot(control);
    assert_int_equal(bel_control_decide(control, 7, stats, BEL_STEPS_FOLLOW),
                     BEL_DECIDE_RELEASED | BEL_DECIDE_SAVE);
    bel_control_destroy(control);
    config.snapshot = 0;
    config.save_at = 7;
    control = bel_control_create(&config);
    assert_int_equal(bel_control_decide(control, 6, NULL, BEL_STEPS_FOLLOW), BEL_DECIDE_SAVE);
    bel_control_destroy(control);
}

// The snapshot of a killed shard is there, with its version.
static void a_snapshot_outlives_its_process(void **state)
{
    (void)state;
    size_t bytes = bytes_for(&averaged);
    bel_optimizers optimizers;
    const bel_shard_settings settings = settings_with(&optimizers, &averaged);
    bel_layout *layout = make_layout(1);
    void *memory = make_memory(bytes);
    bel_kept *kept = bel_kept_over(memory, layout, 0, &settings);
    bel_kept_begin(kept, 3, 0, 5);
    bel_kept_set_snapshot(kept, 4);
    bel_kept_snapshot_values(kept)[0] = 1;
    bel_kept_snapshot_slots(kept, 1)[0] = 2;
    bel_kept_snapshot_averages(kept)[0] = 3;
    bel_kept_averages(kept)[0] = bel_kept_slots(kept, 1)[0] = bel_kept_buffer(kept, 1)[0] = 9;
    bel_kept_destroy(kept);
    bel_kept_state found = bel_kept_look(memory, bytes);
    assert_true(found.generation == 3 && found.step == 5 && found.snapshot == 4);
    kept = bel_kept_over(memory, layout, 0, &settings);
    assert_true(bel_kept_snapshot_values(kept)[0] == 1 && bel_kept_snapshot_slots(kept, 1)[0] == 2);
    assert_true(bel_kept_snapshot_averages(kept)[0] == 3);
    bel_kept_clear(kept); // a load voids it
    assert_int_equal(bel_kept_snapshot(kept), 0);
    bel_kept_destroy(kept);
    bel_layout_destroy(layout);
    bel_linux_shared_unmap(memory, bytes);
}

// A save that was ordered, but not used, is due again for a successor.
static void an_unused_save_is_due_again(void **state)
{
    (void)state;
    size_t bytes = bytes_for(&plain);
    bel_optimizers optimizers;
    const bel_shard_settings settings = settings_with(&optimizers, &plain);
    bel_layout *layout = make_layout(1);
    void *memory = make_memory(bytes);
    bel_kept *kept = bel_kept_over(memory, layout, 0, &settings);
    const bel_control_config config = {.shard_count = 1,
                                       .last_step = 10,
                                       .save_secs = 1e-9,
                                       .worker_count = 1,
                                       .continues = true,
                                       .kept = kept};
    bel_control *control = bel_control_create(&config);
    int64_t before = bel_kept_saved(kept);
    while (bel_control_decide(control, 0, NULL, BEL_STEPS_FOLLOW) != BEL_DECIDE_SAVE) {
    }
    assert_true(before > 0 && bel_kept_saved(kept) == before);
    bel_control_release_snapshot(control);
    assert_true(bel_kept_saved(kept) > before);
    bel_control_destroy(control);
    bel_kept_destroy(kept);
    bel_layout_destroy(layout);
    bel_linux_shared_unmap(memory, bytes);
}

// A version that is neither that of a chunk nor the one before.
static void a_wrong_version_is_refused(void **state)
{
    (void)state;
    kept_memory = make_memory(bytes_for(&plain));
    kept_from = -1;
    cluster *c = cluster_create(1, replicas_of, WORKERS, plain, STEPS);
    train(c, 0);
    BEL_ASSERT_FAILS(bel_shard_continue(c->shards[0], STEPS - 2), BEL_INTERNAL,
                     "holds version 3 of chunk 0, expected 1");
    BEL_ASSERT_FAILS(bel_shard_continue(c->shards[0], STEPS + 1), BEL_INTERNAL, "expected 4");
    cluster_destroy(c);
    kept_memory = NULL;
}

static void other_memory_has_no_state(void **state)
{
    (void)state;
    size_t bytes = bytes_for(&plain);
    char *memory = make_memory(bytes);
    assert_int_equal(bel_kept_look(memory, bytes).generation, 0); // zeros
    memset(memory, 0x5a, bytes);
    assert_int_equal(bel_kept_look(memory, bytes).generation, 0);
    assert_int_equal(bel_kept_look(memory, bytes - 1).generation, 0);
    assert_int_equal(bel_kept_look(memory, 0).generation, 0);
}

static void some_jobs_keep_no_state(void **state)
{
    (void)state;
    bel_optimizers optimizers;
    bel_shard_settings settings = settings_with(&optimizers, &lamb);
    bel_layout *layout = make_layout(1);
    assert_string_equal(bel_kept_why_not(layout, &settings), "the optimizer has trust ratios");
    settings = settings_with(&optimizers, &plain);
    assert_null(bel_kept_why_not(layout, &settings));
    settings.counting = (bel_counting){.kind = BEL_COUNTING_ASYNC, .workers = 1};
    assert_non_null(bel_kept_why_not(layout, &settings));
    settings.counting = (bel_counting){.local_steps = 2};
    assert_non_null(bel_kept_why_not(layout, &settings));
    settings.counting = (bel_counting){.kind = BEL_COUNTING_ALL};
    layout->exchanges = true;
    assert_non_null(bel_kept_why_not(layout, &settings));
    bel_layout_destroy(layout);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_steps_survive),
        cmocka_unit_test(slots_and_averages_survive),
        cmocka_unit_test(going_back_forgets_passes),
        cmocka_unit_test(dropped_points_do_not_return),
        cmocka_unit_test(a_control_continues_without_memory),
        cmocka_unit_test(an_unused_save_is_due_again),
        cmocka_unit_test(an_unreleased_snapshot_continues),
        cmocka_unit_test(a_snapshot_outlives_its_process),
        cmocka_unit_test(own_next_values_stay),
        cmocka_unit_test(two_passes_survive),
        cmocka_unit_test(a_wrong_version_is_refused),
        cmocka_unit_test(other_memory_has_no_state),
        cmocka_unit_test(some_jobs_keep_no_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
