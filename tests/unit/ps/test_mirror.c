// A shard's mirror: a second copy of its state, which makes each step from the shard's sums. It has
// the bits of the shard in every step, and a newcomer that begins with its state at any moment of a
// step ends with the bits of an undisturbed training.
#include <math.h>

#include "ps/layout/mirror_place.h"
#include "ps/server/shard_inner.h"
#include "unit/ps/test_cluster.h"

static const int replicas_of[] = {3, 2};
enum { WORKERS = 2, STEPS = 3, SHARDS = 2 };

static const bel_optimizer plain = {.kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.1};
static const bel_optimizer averaged = {.kind = BEL_OPTIMIZER_ADAM,
                                       .learning_rate = 0.1,
                                       .beta1 = 0.9,
                                       .beta2 = 0.999,
                                       .epsilon = 1e-6,
                                       .moving_average_decay = 0.9};
static const bel_optimizer clipped = {
    .kind = BEL_OPTIMIZER_MOMENTUM, .learning_rate = 0.1, .momentum = 0.9, .clip_global_norm = 1};

typedef struct mirror {
    bel_shard *shard;
    bel_space *space;
    float *averages;
    bel_lane *in, *out; // the mirror's end, the shard's
} mirror;

static mirror mirrors[SHARDS];
static bel_assignment *only_worker;
static int64_t state_step; // the step at which mirrors give their state to another cluster
static mirror given[SHARDS];
static bel_lane *ends[2];
static bool streams; // new values go past the caches, here and there

static uint32_t decide_nothing(void *context, int64_t version, const double *stats,
                               bel_steps_left left)
{
    (void)context, (void)version, (void)stats, (void)left;
    return 0;
}

static bool mirrors_work(void)
{
    bool worked = false;
    for (int k = 0; k < SHARDS; k++)
        worked = (mirrors[k].shard != NULL && bel_shard_work(mirrors[k].shard)) || worked;
    return worked;
}

// Creates a mirror of the shard, with its first values or, at another version, without a state.
static void make_mirror(cluster *c, bel_shard_config *config)
{
    mirror *m = &mirrors[config->shard];
    BEL_ASSERT_OK(bel_space_create(c->layout, 2, &m->space));
    fill_space(m->space);
    BEL_ASSERT_OK(bel_space_array(c->layout, "averages", &m->averages));
    bel_inproc_lane_create(LANE_FRAMES, c->bell, c->bell, &m->out, &m->in);
    const bel_shard_config own = {.layout = c->layout,
                                  .shard = config->shard,
                                  .assignment = only_worker,
                                  .mirrors = true,
                                  .space = m->space,
                                  .snapshot_averages = m->averages,
                                  .settings = config->settings,
                                  .generation = 1,
                                  .stream_from = streams ? 1 : 0,
                                  .worker_lanes = &m->in};
    BEL_ASSERT_OK(bel_shard_create(&own, &m->shard));
    assert_int_equal(m->shard->streams, streams);
    config->mirror_lane = &m->out;
    config->stream_from = own.stream_from;
}

static void start_mirror(cluster *c, int k)
{
    (void)c;
    const bel_shard_events events = {.decide = decide_nothing};
    bel_shard_start(mirrors[k].shard, &events);
}

// A mirror of another cluster gives its state to the shard, and this one to its mirror.
static void take_states(cluster *c, int k)
{
    bel_shard *shard = c->shards[k], *from = given[k].shard;
    bel_shard_restart(from, 1);
    BEL_ASSERT_OK(bel_shard_continue(from, state_step));
    bel_inproc_lane_create(LANE_FRAMES, c->bell, c->bell, &ends[0], &ends[1]);
    bel_shard_expect_state(shard, state_step);
    bel_control_point points[2] = {{.step = 1, .loss = 0.5}, {.step = 2, .loss = 0.25}};
    bel_shard_send_state(from, ends[0], points, 2);
    int count;
    assert_true(bel_shard_take_state(shard, ends[1]));
    assert_false(bel_shard_take_state(shard, ends[1]));
    BEL_ASSERT_OK(bel_shard_check(shard));
    const bel_control_point *taken = bel_shard_taken_points(shard, &count);
    assert_int_equal(count, 2);
    assert_true(taken[1].step == 2 && taken[1].loss == 0.25);
    bel_shard_expect_state(mirrors[k].shard, state_step);
    bel_shard_send_state(shard, ends[1], NULL, 0);
    assert_true(bel_shard_take_state(mirrors[k].shard, ends[0]));
    bel_lane_close(ends[0]);
    bel_lane_close(ends[1]);
    start_mirror(c, k);
}

static cluster *create(const bel_optimizer *optimizer)
{
    const int replicas = REPLICAS;
    if (only_worker == NULL) only_worker = bel_assignment_create(&replicas, 1);
    change_config = make_mirror;
    before_start = given[0].shard != NULL ? take_states : start_mirror;
    others_work = mirrors_work;
    first_version = given[0].shard != NULL ? state_step : 0;
    cluster *c = cluster_create(SHARDS, replicas_of, WORKERS, *optimizer, STEPS);
    return c;
}

static void destroy_mirrors(mirror *list, const bel_layout *layout)
{
    for (int k = 0; k < SHARDS; k++) {
        bel_shard_destroy(list[k].shard);
        bel_lane_close(list[k].in);
        bel_lane_close(list[k].out);
        bel_space_destroy(list[k].space);
        bel_space_free_array(layout, list[k].averages);
        list[k] = (mirror){0};
    }
}

// The values and averages at the end; destroys the cluster.
static float *finish(cluster *c, int64_t from)
{
    for (int64_t step = from; step < STEPS; step++) {
        for (int w = 0; w < WORKERS; w++)
            assert_int_equal(wait_for(c, w, step), 0);
        for (int w = 0; w < WORKERS; w++)
            report_step(c, w, step);
    }
    for (int w = 0; w < WORKERS; w++)
        assert_int_equal(wait_for(c, w, STEPS), BEL_DECIDE_STOP);
    size_t size = (size_t)c->layout->size;
    memset(c->snapshot, 0, size * sizeof(float)); // the gaps between variables …
    memset(c->averages, 0, size * sizeof(float)); // … and averages that are not kept
    for (int k = 0; k < SHARDS; k++)
        BEL_ASSERT_OK(bel_shard_snapshot_now(c->shards[k]));
    float *result = bel_xcalloc(2 * size, sizeof *result);
    memcpy(result, c->snapshot, size * sizeof *result);
    memcpy(result + size, c->averages, size * sizeof *result);
    return result;
}

static void assert_equal_states(const cluster *c)
{
    for (int k = 0; k < SHARDS; k++) {
        const bel_shard *shard = c->shards[k], *other = mirrors[k].shard;
        assert_int_equal(shard->step, other->step);
        for (int i = 0; i < shard->chunk_count; i++) {
            const bel_chunk *chunk = &c->layout->chunks[shard->chunks[i].chunk];
            size_t bytes = (size_t)chunk->count * sizeof(float);
            assert_memory_equal(
                bel_space_of_chunk(c->space, shard->chunks[i].chunk) + chunk->offset,
                bel_space_of_chunk(mirrors[k].space, shard->chunks[i].chunk) + chunk->offset,
                bytes);
            for (int s = 0; s < shard->rules.slot_counts[0]; s++)
                assert_memory_equal(shard->memory.slots[0][s] + chunk->offset,
                                    other->memory.slots[0][s] + chunk->offset, bytes);
            if (shard->memory.averages != NULL && chunk->kind == BEL_VARIABLE_TRAINABLE)
                assert_memory_equal(shard->memory.averages + chunk->offset,
                                    other->memory.averages + chunk->offset, bytes);
        }
    }
}

static float *undisturbed(const bel_optimizer *optimizer, size_t *out_bytes)
{
    change_config = NULL;
    before_start = NULL;
    others_work = NULL;
    first_version = 0;
    cluster *c = cluster_create(SHARDS, replicas_of, WORKERS, *optimizer, STEPS);
    float *result = finish(c, 0);
    *out_bytes = 2 * (size_t)c->layout->size * sizeof(float);
    cluster_destroy(c);
    return result;
}

// A mirror begins with the state of another cluster's mirror, which has got the first `frames`
// frames of worker 1's report on step 1. Returns the number of chunks that had the next version.
static int moves_after(const bel_optimizer *optimizer, int frames, const float *expected,
                       size_t bytes)
{
    cluster *before = create(optimizer);
    for (int w = 0; w < WORKERS; w++)
        assert_int_equal(wait_for(before, w, 0), 0);
    for (int w = 0; w < WORKERS; w++)
        report_step(before, w, 0);
    for (int w = 0; w < WORKERS; w++)
        assert_int_equal(wait_for(before, w, 1), 0);
    report_step(before, 0, 1);
    report_part(before, 1, 1, frames);
    while (work_for_shards(before)) {
    }
    int ahead = 0;
    for (int k = 0; k < SHARDS; k++)
        for (int i = 0; i < mirrors[k].shard->chunk_count; i++)
            ahead += mirrors[k].shard->chunks[i].version > 1;
    memcpy(given, mirrors, sizeof given);
    memset(mirrors, 0, sizeof mirrors);
    state_step = 1;
    cluster *after = create(optimizer);
    float *result = finish(after, 1);
    assert_equal_states(after);
    assert_memory_equal(result, expected, bytes);
    bel_free(result);
    destroy_mirrors(mirrors, after->layout);
    cluster_destroy(after);
    destroy_mirrors(given, before->layout);
    cluster_destroy(before);
    return ahead;
}

static void mirrors_are_equal(const bel_optimizer *optimizer)
{
    size_t bytes;
    float *expected = undisturbed(optimizer, &bytes);
    cluster *c = create(optimizer);
    float *result = finish(c, 0);
    assert_memory_equal(result, expected, bytes);
    assert_equal_states(c);
    destroy_mirrors(mirrors, c->layout);
    cluster_destroy(c);
    bel_free(result);
    int mixed = 0;
    for (int frames = 0; frames < 24; frames++) {
        streams = frames % 2 == 0;
        mixed += moves_after(optimizer, frames, expected, bytes);
    }
    streams = false;
    assert_true(mixed > 0);
    bel_free(expected);
}

static void plain_steps(void **state)
{
    (void)state;
    mirrors_are_equal(&plain);
}

static void slots_and_averages(void **state)
{
    (void)state;
    mirrors_are_equal(&averaged);
}

static void two_passes(void **state)
{
    (void)state;
    mirrors_are_equal(&clipped);
}

// A version is not published before its mirror has made it.
static void a_version_waits_for_the_mirror(void **state)
{
    (void)state;
    cluster *c = create(&plain);
    for (int w = 0; w < WORKERS; w++)
        assert_int_equal(wait_for(c, w, 0), 0);
    others_work = NULL;
    for (int w = 0; w < WORKERS; w++)
        report_step(c, w, 0);
    while (work_for_shards(c)) {
    }
    bel_str words = {0};
    assert_int_equal(bel_shard_doing(c->shards[1], &words), 0);
    assert_string_equal(words.text, "waits for its mirror");
    bel_str_deinit(&words);
    int64_t step;
    others_work = mirrors_work;
    while (work_for_shards(c)) {
    }
    step = bel_shard_doing(c->shards[1], &words);
    assert_int_equal(step, 1);
    bel_str_deinit(&words);
    destroy_mirrors(mirrors, c->layout);
    cluster_destroy(c);
}

// Frames of a state that do not fit have no place.
static void a_state_is_checked(void **state)
{
    (void)state;
    cluster *c = create(&plain);
    bel_shard *shard = c->shards[0];
    bel_shard_restart(shard, 2);
    int chunk = shard->chunks[0].chunk;
    size_t bytes = (size_t)c->layout->chunks[chunk].count * sizeof(float);
    bel_state_frame good = {.version = 5, .chunk = chunk};
    bel_frame frame = bel_state_frame_write(good, NULL, bytes);
    assert_null(bel_shard_place_state(shard, &frame)); // none is expected
    bel_shard_expect_state(shard, 5);
    assert_non_null(bel_shard_place_state(shard, &frame));
    const bel_state_frame bad[] = {{.version = 4, .chunk = chunk},
                                   {.version = 7, .chunk = chunk},
                                   {.version = 5, .chunk = -1},
                                   {.version = 5, .chunk = 1 << 20},
                                   {.version = 5, .chunk = chunk, .array = 2}, // SGD has no slots
                                   {.version = 5, .chunk = chunk, .array = -1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        frame = bel_state_frame_write(bad[i], NULL, bytes);
        assert_null(bel_shard_place_state(shard, &frame));
    }
    frame = bel_state_frame_write(good, NULL, bytes - 4);
    assert_null(bel_shard_place_state(shard, &frame));
    frame = bel_points_frame_write((bel_points_frame){.count = BEL_KEPT_POINTS + 1}, NULL, 0);
    assert_null(bel_shard_place_state(shard, &frame));
    // The end of a state that lacks all parts.
    bel_inproc_lane_create(LANE_FRAMES, c->bell, c->bell, &ends[0], &ends[1]);
    frame = bel_points_frame_write((bel_points_frame){.count = 0}, NULL, 0);
    frame.generation = 2;
    BEL_ASSERT_OK(bel_lane_send(ends[0], &frame));
    assert_false(bel_shard_take_state(shard, ends[1]));
    BEL_ASSERT_FAILS(bel_shard_check(shard), BEL_INTERNAL, "a state that lacks a part");
    bel_lane_close(ends[0]);
    bel_lane_close(ends[1]);
    destroy_mirrors(mirrors, c->layout);
    cluster_destroy(c);
}

// Sends a part, as a peer that is wrong might, and then an end with these steps; returns the error.
static bel_status *take(cluster *c, const bel_state_frame *parts, int count, const double *steps)
{
    bel_shard *shard = c->shards[0];
    static float values[1 << 20];
    double points[2 * 4] = {steps[0], 0, 0, 0, steps[1]};
    bel_shard_restart(shard, 2);
    bel_shard_expect_state(shard, 5);
    bel_inproc_lane_create(LANE_FRAMES, c->bell, c->bell, &ends[0], &ends[1]);
    for (int i = 0; i <= count; i++) {
        bel_frame frame =
            bel_points_frame_write((bel_points_frame){.count = 2}, points, sizeof points);
        if (i < count) {
            int64_t elements = c->layout->chunks[parts[i].chunk].count;
            assert_true(elements <= (int64_t)(sizeof values / sizeof values[0]));
            frame = bel_state_frame_write(parts[i], values, (size_t)elements * sizeof(float));
        }
        frame.generation = 2;
        BEL_ASSERT_OK(bel_lane_send(ends[0], &frame));
    }
    bool whole = bel_shard_take_state(shard, ends[1]);
    bel_lane_close(ends[0]);
    bel_lane_close(ends[1]);
    bel_status *status = bel_shard_check(shard);
    assert_true(whole == (status == NULL));
    return status;
}

// One part twice is not two parts, parts of a chunk have one version, and points have steps.
static void each_part_comes_once(void **state)
{
    (void)state;
    enum { MOST = 64 };
    cluster *c = create(&plain);
    const bel_shard *shard = c->shards[0];
    bel_state_frame parts[MOST];
    int count = 0;
    for (int i = 0; i < shard->chunk_count; i++) {
        assert_true(count + 2 < MOST);
        parts[count++] = (bel_state_frame){.version = 5, .chunk = shard->chunks[i].chunk};
    }
    const double good[] = {1, 2}, same[] = {2, 2}, none[] = {1, NAN}, huge[] = {1, 1e300};
    BEL_ASSERT_OK(take(c, parts, count, good));
    BEL_ASSERT_FAILS(take(c, parts, count, same), BEL_INTERNAL, "points without rising steps");
    BEL_ASSERT_FAILS(take(c, parts, count, none), BEL_INTERNAL, "points without rising steps");
    BEL_ASSERT_FAILS(take(c, parts, count, huge), BEL_INTERNAL, "points without rising steps");
    parts[count] = parts[0];
    BEL_ASSERT_FAILS(take(c, parts, count + 1, good), BEL_INTERNAL, "a part that its chunk has");
    parts[count].array = 1; // the next version's values, for a chunk that has the first version
    BEL_ASSERT_FAILS(take(c, parts, count + 1, good), BEL_INTERNAL, "or that does not fit it");
    parts[0].version = 6; // its next values are missing, or have another version
    BEL_ASSERT_FAILS(take(c, parts, count, good), BEL_INTERNAL, "a state that lacks a part");
    BEL_ASSERT_FAILS(take(c, parts, count + 1, good), BEL_INTERNAL, "or that does not fit it");
    destroy_mirrors(mirrors, c->layout);
    cluster_destroy(c);
}

static void no_mirror_is_on_its_shards_host(void **state)
{
    (void)state;
    for (int shards = 2; shards <= 40; shards++) {
        for (int hosts = 0; hosts <= shards; hosts++) {
            int distance = bel_mirror_distance(shards, hosts);
            assert_true(distance >= 1 && distance < shards);
            bool impossible = hosts == 2 && shards % 2 == 1;
            assert_true((bel_mirror_together(shards, hosts, distance) >= 0) == impossible);
        }
    }
    assert_int_equal(bel_mirror_distance(4, 3), 2);
    assert_int_equal(bel_mirror_together(4, 3, 1), 3);
}

static int forget(void **state)
{
    (void)state;
    bel_assignment_destroy(only_worker);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_steps),
        cmocka_unit_test(slots_and_averages),
        cmocka_unit_test(two_passes),
        cmocka_unit_test(a_version_waits_for_the_mirror),
        cmocka_unit_test(a_state_is_checked),
        cmocka_unit_test(each_part_comes_once),
        cmocka_unit_test(no_mirror_is_on_its_shards_host),
    };
    return cmocka_run_group_tests(tests, NULL, forget);
}
