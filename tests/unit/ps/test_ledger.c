// Steps made from some workers' reports, against double arithmetic: which reports count, the
// answers, and the leased blocks. The results are the same for every number of shards.
#include "unit/ps/test_cluster.h"

#include <math.h>

#include "base/str.h"

static const bel_optimizer sgd = {.kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.5};
static const int replicas_of[] = {2, 2, 1};
enum { WORKERS = 3, LAST = 100 };
static const bel_counting two_of_three = {.kind = BEL_COUNTING_BACKUPS, .workers = 2};
static const bel_counting as_they_come = {.kind = BEL_COUNTING_ASYNC, .workers = 1};

static cluster *create(int shards, bel_counting counting)
{
    return cluster_create_counting(shards, replicas_of, WORKERS, sgd, LAST, counting);
}

static void next_is(cluster *c, int worker, int64_t after, int64_t expected)
{
    int64_t version = after;
    uint32_t decision;
    BEL_ASSERT_OK(bel_client_wait_next(c->clients[worker], &version, &decision));
    assert_int_equal(version, expected);
    assert_int_equal(decision, expected >= c->last_version ? BEL_DECIDE_STOP : 0);
}

static void nothing_comes(cluster *c, int worker, int64_t after)
{
    uint32_t decision;
    BEL_ASSERT_FAILS(bel_client_wait_next(c->clients[worker], &after, &decision),
                     BEL_DEADLINE_EXCEEDED, "no progress");
}

static void everybody_begins(cluster *c)
{
    for (int w = 0; w < WORKERS; w++)
        next_is(c, w, -1, 0);
}

static void work(cluster *c)
{
    while (work_for_shards(c)) {
    }
}

// --- Values --------------------------------------------------------------------------------------

// A step for the expected values: the workers that count, and the version on which each of them
// computed.
typedef struct expected_step {
    int workers[WORKERS]; // -1: none
    int64_t versions[WORKERS];
} expected_step;

static double expected_value(const cluster *c, const expected_step *steps, int count, int64_t i)
{
    bel_variable_kind kind = BEL_VARIABLE_FROZEN;
    for (int v = 0; v < c->layout->variable_count; v++) {
        const bel_layout_variable *variable = &c->layout->variables[v];
        if (i >= variable->offset && i < variable->offset + variable->elements)
            kind = variable->kind;
    }
    double value = (double)((float)(i % 101) / 50.0f - 1.0f);
    for (int s = 0; s < count; s++) {
        double sum = 0, replicas = 0;
        for (int w = 0; w < WORKERS; w++) {
            if (steps[s].workers[w] < 0) continue;
            int first = c->assignment->first_replica[steps[s].workers[w]];
            int end = c->assignment->first_replica[steps[s].workers[w] + 1];
            for (int r = first; r < end; r++)
                sum += (double)report_element(r, steps[s].versions[w], i);
            replicas += end - first;
        }
        if (kind == BEL_VARIABLE_TRAINABLE) value -= 0.5 * sum / replicas;
        if (kind == BEL_VARIABLE_STATE_MEAN) value = sum / replicas;
        if (kind == BEL_VARIABLE_STATE_SUM) value += sum;
    }
    return value;
}

static void worker_has(const cluster *c, int worker, const expected_step *steps, int count)
{
    for (int v = 0; v < c->layout->variable_count; v++) {
        const bel_layout_variable *variable = &c->layout->variables[v];
        for (int64_t i = variable->offset; i < variable->offset + variable->elements; i++) {
            double difference = (double)c->outboxes[worker][i] - expected_value(c, steps, count, i);
            if (fabs(difference) > 1e-5) fail_msg("%s, element %lld", variable->name, (long long)i);
        }
    }
}

// --- Backups -------------------------------------------------------------------------------------

static void first_reports_count_and_others_are_dropped(void **state)
{
    (void)state;
    for (int shards = 1; shards <= MAX_SHARDS; shards++) {
        cluster *c = create(shards, two_of_three);
        everybody_begins(c);
        report_step(c, 2, 0);
        work(c);
        report_step(c, 0, 0);
        next_is(c, 0, 0, 1);
        next_is(c, 2, 0, 1);
        const expected_step steps[] = {{{2, 0, -1}, {0, 0}}, {{0, 1, -1}, {1, 1}}};
        worker_has(c, 0, steps, 1);
        worker_has(c, 2, steps, 1);
        report_step(c, 1, 0); // too late
        next_is(c, 1, 0, 1);
        worker_has(c, 1, steps, 1);
        report_step(c, 0, 1);
        report_step(c, 1, 1);
        next_is(c, 1, 1, 2);
        worker_has(c, 1, steps, 2);
        bel_shard_staleness staleness = bel_shard_stale(c->shards[0], NULL);
        assert_int_equal(staleness.dropped, 1);
        assert_int_equal(staleness.counted[0], 4);
        assert_true(c->examples == 10 * 4); // only reports that count
        cluster_destroy(c);
    }
}

// The report arrived before the step was made, but after enough others.
static void surplus_report_is_answered_with_the_step(void **state)
{
    (void)state;
    cluster *c = create(2, two_of_three);
    everybody_begins(c);
    for (int w = 0; w < WORKERS; w++)
        report_step(c, w, 0);
    for (int w = 0; w < WORKERS; w++)
        next_is(c, w, 0, 1);
    const expected_step step = {{0, 1, -1}, {0, 0}};
    worker_has(c, 2, &step, 1);
    int64_t dropped[WORKERS];
    assert_int_equal(bel_shard_stale(c->shards[0], dropped).dropped, 1);
    assert_int_equal(dropped[2], 1);
    cluster_destroy(c);
}

// The ledger's lanes send nothing back, so they may be full for a moment.
static void full_lanes_lose_nothing(void **state)
{
    (void)state;
    inner_frames = 1;
    cluster *c = create(3, two_of_three);
    everybody_begins(c);
    for (int64_t step = 0; step < 5; step++) {
        report_step(c, 0, step);
        report_step(c, 2, step);
        next_is(c, 0, step, step + 1);
        next_is(c, 2, step, step + 1);
    }
    cluster_destroy(c);
    inner_frames = LANE_FRAMES;
}

// --- As they come --------------------------------------------------------------------------------

static void reports_are_applied_in_order_of_arrival(void **state)
{
    (void)state;
    for (int shards = 1; shards <= MAX_SHARDS; shards++) {
        cluster *c = create(shards, as_they_come);
        everybody_begins(c);
        report_step(c, 1, 0);
        next_is(c, 1, 0, 1);
        report_step(c, 2, 0); // one version late
        work(c);
        report_step(c, 1, 1);
        next_is(c, 2, 0, 2);
        next_is(c, 1, 1, 3);
        report_step(c, 0, 0); // three versions late
        next_is(c, 0, 0, 4);
        const expected_step steps[] = {
            {{1, -1, -1}, {0}}, {{2, -1, -1}, {0}}, {{1, -1, -1}, {1}}, {{0, -1, -1}, {0}}};
        worker_has(c, 0, steps, 4);
        worker_has(c, 2, steps, 2); // a separate copy: later steps did not change it
        bel_shard_staleness staleness = bel_shard_stale(c->shards[0], NULL);
        assert_int_equal(staleness.counted[0], 1);
        assert_int_equal(staleness.counted[1], 2);
        assert_int_equal(staleness.counted[3], 1);
        cluster_destroy(c);
    }
}

static void bound_holds_the_fast_back(void **state)
{
    (void)state;
    cluster *c =
        create(2, (bel_counting){.kind = BEL_COUNTING_BOUNDED, .workers = 1, .max_lead = 1});
    everybody_begins(c);
    report_step(c, 0, 0);
    next_is(c, 0, 0, 1); // one ahead of the others
    report_step(c, 0, 1);
    nothing_comes(c, 0, 1); // two ahead
    report_step(c, 1, 0);
    next_is(c, 1, 0, 3);
    nothing_comes(c, 0, 1); // worker 2 has not reported yet
    report_step(c, 2, 0);
    next_is(c, 2, 0, 4);
    next_is(c, 0, 1, 4);
    cluster_destroy(c);
}

// The slowest worker has reported, and its report waits for a second one: the slowest holds no
// worker back.
static void report_that_waits_holds_nobody_back(void **state)
{
    (void)state;
    const bel_counting two = {.kind = BEL_COUNTING_BOUNDED, .workers = 2, .max_lead = 1};
    for (int shards = 1; shards <= 2; shards++) {
        cluster *c = create(shards, two);
        everybody_begins(c);
        report_step(c, 0, 0);
        report_step(c, 1, 0);
        next_is(c, 0, 0, 1);
        next_is(c, 1, 0, 1);
        report_step(c, 0, 1);
        report_step(c, 1, 1);
        nothing_comes(c, 0, 1);
        nothing_comes(c, 1, 1);
        report_step(c, 2, 0);
        next_is(c, 0, 1, 2);
        next_is(c, 1, 1, 2);
        report_step(c, 0, 2);
        next_is(c, 2, 0, 3);
        const expected_step steps[] = {
            {{0, 1, -1}, {0, 0}}, {{0, 1, -1}, {1, 1}}, {{2, 0, -1}, {0, 2}}};
        worker_has(c, 2, steps, 3);
        cluster_destroy(c);
    }
}

static void end_is_told_to_those_who_compute(void **state)
{
    (void)state;
    cluster *c = create(2, as_they_come);
    c->last_version = 2;
    everybody_begins(c);
    report_step(c, 0, 0);
    next_is(c, 0, 0, 1);
    report_step(c, 1, 0);
    for (int w = 0; w < WORKERS; w++)
        next_is(c, w, w == 0 ? 1 : 0, 2);
    cluster_destroy(c);
}

// --- Leases --------------------------------------------------------------------------------------

// Each worker has leases for two steps, in order of requests, with one block per replica. Each
// answer adds a step.
static void blocks_are_leased_once(void **state)
{
    (void)state;
    cluster *c = create(1, as_they_come);
    everybody_begins(c);
    const int64_t first[WORKERS] = {0, 4, 8}, second[WORKERS] = {2, 6, 9};
    for (int w = 0; w < WORKERS; w++) {
        assert_int_equal(bel_client_lease(c->clients[w], 0), first[w]);
        assert_int_equal(bel_client_lease(c->clients[w], 1), second[w]);
    }
    report_step(c, 2, 0);
    next_is(c, 2, 0, 1);
    assert_int_equal(bel_client_lease(c->clients[2], 2), 10);
    BEL_ASSERT_OK(bel_shard_snapshot_now(c->shards[0]));
    assert_int_equal(bel_shard_leased(c->shards[0]), 11);
    bel_client_end_leases(c->clients[2]);
    assert_int_equal(bel_client_lease(c->clients[2], 3), -1);
    cluster_destroy(c);
}

// --- Workers that are replaced -------------------------------------------------------------------

// Replaces a worker; the successor has sent nothing yet.
static int64_t replace_silently(cluster *c, int worker)
{
    int64_t lowest = INT64_MAX, step;
    for (int k = 0; k < c->layout->shard_count; k++) {
        bel_lane_close(c->worker_ends[worker][k]);
        bel_lane *end;
        bel_inproc_lane_create(LANE_FRAMES, c->bell, c->bell, &c->worker_ends[worker][k], &end);
        bel_lane_close(bel_shard_admit(c->shards[k], worker, 1, end, &step));
        if (step < lowest) lowest = step;
    }
    bel_client_destroy(c->clients[worker]);
    c->client_configs[worker].incarnation = 1;
    c->clients[worker] = bel_client_create(&c->client_configs[worker]);
    return lowest;
}

static int64_t replace(cluster *c, int worker)
{
    int64_t step = replace_silently(c, worker);
    BEL_ASSERT_OK(bel_client_pull(c->clients[worker], step));
    return step;
}

static void replaced_worker_gets_blocks_back(void **state)
{
    (void)state;
    cluster *c = create(2, as_they_come);
    everybody_begins(c);
    report_part(c, 0, 0, 3); // dies in the middle of its report
    report_step(c, 1, 0);
    next_is(c, 1, 0, 1);
    assert_int_equal(replace(c, 0), 1);
    assert_int_equal(bel_shard_counted_step(c->shards[0], 0), -1); // nothing is lost
    next_is(c, 0, -1, 1);
    assert_int_equal(bel_client_lease(c->clients[0], 0), 0);
    assert_int_equal(bel_client_lease(c->clients[0], 1), 2);
    report_step(c, 0, 1);
    next_is(c, 0, 1, 2);
    const expected_step steps[] = {{{1, -1, -1}, {0}}, {{0, -1, -1}, {1}}};
    worker_has(c, 0, steps, 2);
    cluster_destroy(c);
}

// A newcomer waits for the reports in work, not for later ones, which never stop.
static void newcomer_does_not_wait_for_the_busy(void **state)
{
    (void)state;
    cluster *c = create(1, as_they_come);
    everybody_begins(c);
    report_step(c, 1, 0);
    (void)bel_shard_work(c->shards[0]); // the first of its chunks
    report_step(c, 2, 0);
    assert_int_equal(replace_silently(c, 0), 1);
    next_is(c, 2, 0, 2); // its turn still comes
    cluster_destroy(c);
}

// Shard 0 counted worker 0's report, which shard 1 has not received: shard 1 cannot finish that
// step.
static void worker_lost_in_the_middle_is_known(void **state)
{
    (void)state;
    cluster *c = create(2, as_they_come);
    everybody_begins(c);
    report_step(c, 0, 0);
    while (bel_shard_work(c->shards[0])) {
    }
    assert_int_equal(replace(c, 0), 0); // shard 1's version
    assert_int_equal(bel_shard_counted_step(c->shards[0], 0), 0);
    cluster_destroy(c);
}

// --- Copies and publications ---------------------------------------------------------------------

static void worker_2_pulls(cluster *c, int64_t version)
{
    if (version != 1) return;
    BEL_ASSERT_OK(bel_client_pull(c->clients[2], 0));
    (void)bel_shard_work(c->shards[0]);
    assert_int_equal(bel_shard_count(c->shards[0]).queue, 0); // no copy is made for it now
}

// A worker that asks during the publication of a version receives that version afterwards.
static void answer_waits_for_a_publication(void **state)
{
    (void)state;
    cluster *c = create(1, as_they_come);
    everybody_begins(c);
    assert_int_equal(replace_silently(c, 2), 0);
    c->while_publishing = worker_2_pulls;
    report_step(c, 0, 0);
    next_is(c, 0, 0, 1);
    next_is(c, 2, -1, 1);
    const expected_step steps[] = {{{0, -1, -1}, {0}}};
    worker_has(c, 2, steps, 1);
    cluster_destroy(c);
}

// Worker 0 asks before worker 1 reports. Its copy is made last, and has version 0.
static void publication_waits_for_copies(void **state)
{
    (void)state;
    cluster *c = create(1, as_they_come);
    everybody_begins(c);
    assert_int_equal(replace(c, 0), 0);
    report_step(c, 1, 0);
    while (c->decided < 1)
        assert_true(bel_shard_work(c->shards[0]));
    bel_frame frame;
    bool answered = false;
    while (bel_lane_receive(c->worker_ends[0][0], &frame))
        answered = answered ||
                   (frame.kind == BEL_FRAME_VERSION && bel_version_frame_read(&frame).version == 0);
    assert_true(answered);
    worker_has(c, 0, NULL, 0);
    cluster_destroy(c);
}

// --- Frames --------------------------------------------------------------------------------------

static void send_from(cluster *c, int worker, int shard, bel_frame frame)
{
    frame.generation = 1;
    frame.sender = worker;
    BEL_ASSERT_OK(bel_lane_send(c->worker_ends[worker][shard], &frame));
    work(c);
}

static void repeated_and_late_frames_do_nothing(void **state)
{
    (void)state;
    cluster *c = create(1, two_of_three);
    everybody_begins(c);
    send_from(c, 0, 0, bel_pull_frame_write((bel_pull_frame){0}, NULL, 0));
    report_step(c, 0, 0);
    report_step(c, 0, 0);
    work(c);
    assert_true(bel_shard_count(c->shards[0]).repeated > 1);
    report_step(c, 0, 7); // a version that does not exist yet
    work(c);
    assert_true(bel_shard_count(c->shards[0]).late > 0);
    BEL_ASSERT_OK(bel_shard_check(c->shards[0]));
    report_step(c, 1, 0);
    next_is(c, 0, 0, 1);
    cluster_destroy(c);
}

static void tell_shard_1(cluster *c, bel_frame frame)
{
    frame.generation = 1;
    BEL_ASSERT_OK(bel_lane_send(c->inner_ends[0][1], &frame));
    work(c);
}

// Answers are given in order, once, and only to their addressees.
static void answers_of_others_do_nothing(void **state)
{
    (void)state;
    cluster *c = create(2, two_of_three);
    everybody_begins(c);
    const bel_answer_frame answers[] = {
        {.worker = 0, .number = 2}, // already given
        {.version = 1, .worker = 2, .number = 4, .worker_incarnation = 7},
        {.version = 1, .worker = 2, .number = 4, .worker_incarnation = 7}, // repeated
        {.version = 1, .worker = 2, .number = 3, .worker_incarnation = 7}, // before the last one
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        tell_shard_1(c, bel_answer_frame_write(answers[i], NULL, 0));
    assert_int_equal(bel_shard_count(c->shards[1]).repeated, 2);
    bel_frame frame;
    assert_false(bel_lane_receive(c->worker_ends[2][1], &frame));
    BEL_ASSERT_OK(bel_shard_check(c->shards[1]));
    cluster_destroy(c);
}

// A step is not made before all answers with the earlier version are given. If a lane delivers the
// ledger's message first, no worker computes on another version.
static void steps_wait_for_answers(void **state)
{
    (void)state;
    cluster *c = create(2, as_they_come);
    everybody_begins(c);
    report_step(c, 0, 0);
    while (bel_shard_work(c->shards[0])) { // shard 1 has received nothing
    }
    bel_frame frames[4];
    int count = 0;
    while (bel_lane_receive(c->inner_ends[1][0], &frames[count]))
        count++;
    assert_int_equal(count, 2); // the counts of step 0, and worker 0's answer with version 1
    report_step(c, 1, 0);
    while (bel_shard_work(c->shards[0])) {
    }
    while (bel_lane_receive(c->inner_ends[1][0], &frames[count]))
        count++;
    assert_int_equal(count, 4); // the same for step 1 and worker 1
    assert_int_equal(frames[2].kind, BEL_FRAME_COUNTS);
    tell_shard_1(c, frames[0]);
    tell_shard_1(c, frames[2]); // overtakes the answer with version 1
    bel_str words = {0};
    assert_int_equal(bel_shard_doing(c->shards[1], &words), 1);
    bel_str_deinit(&words);
    tell_shard_1(c, frames[3]);
    tell_shard_1(c, frames[1]);
    next_is(c, 0, 0, 1);
    const expected_step steps[] = {{{0, -1, -1}, {0}}, {{1, -1, -1}, {0}}};
    worker_has(c, 0, steps, 1); // on both shards
    next_is(c, 1, 0, 2);
    worker_has(c, 1, steps, 2);
    cluster_destroy(c);
}

static void malformed_frames_are_refused(void **state)
{
    (void)state;
    const bel_frame bad[] = {
        bel_stats_frame_write((bel_stats_frame){.node = 2}, NULL, 0),   // another worker's node
        bel_stats_frame_write((bel_stats_frame){.node = 0}, NULL, 0),   // without step statistics
        bel_report_frame_write((bel_report_frame){.node = 0}, NULL, 0), // without a report
        bel_counts_frame_write((bel_counts_frame){.needed = 2}, NULL, 0),
        bel_lease_frame_write((bel_lease_frame){0}, NULL, 0),
        bel_version_frame_write((bel_version_frame){0}, NULL, 0),
        {.kind = 0},
        {.kind = BEL_FRAME_LAST_KIND},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cluster *c = create(1, two_of_three);
        everybody_begins(c);
        send_from(c, 0, 0, bad[i]);
        BEL_ASSERT_FAILS(bel_shard_check(c->shards[0]), BEL_INTERNAL, "malformed frame");
        cluster_destroy(c);
    }
    const bel_frame pages[] = {
        bel_counts_frame_write((bel_counts_frame){.needed = 2, .worker = WORKERS}, NULL, 0),
        bel_counts_frame_write((bel_counts_frame){.needed = 2, .worker = -1}, NULL, 0),
        bel_counts_frame_write((bel_counts_frame){.needed = 3}, NULL, 0),
        bel_counts_frame_write((bel_counts_frame){.needed = 0}, NULL, 0),
        bel_counts_frame_write((bel_counts_frame){.needed = 2, .step = 1000}, NULL, 0),
        bel_counts_frame_write(
            (bel_counts_frame){.needed = 2, .decision = 255 * BEL_DECIDE_FUNCTION}, NULL, 0),
        bel_answer_frame_write((bel_answer_frame){.worker = WORKERS, .number = 9}, NULL, 0),
        bel_answer_frame_write((bel_answer_frame){.worker = -1, .number = 9}, NULL, 0),
        bel_answer_frame_write((bel_answer_frame){.version = -1, .number = 9}, NULL, 0),
    };
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        cluster *c = create(2, two_of_three);
        bel_frame frame = pages[i];
        frame.generation = 1;
        BEL_ASSERT_OK(bel_lane_send(c->inner_ends[0][1], &frame));
        work(c);
        BEL_ASSERT_FAILS(bel_shard_check(c->shards[1]), BEL_INTERNAL, "no such");
        cluster_destroy(c);
    }
}

// --- Workers ahead of a shard --------------------------------------------------------------------

typedef struct slow_shard {
    bel_lane *end;
    int naps, taken; // calls of nap; it takes a frame from the second call on
    bool gives_up;
} slow_shard;

// The worker asks before each pause whether it is cancelled.
static bool nap(void *context)
{
    slow_shard *shard = context;
    bel_frame frame;
    if (++shard->naps > 1) shard->taken += bel_lane_receive(shard->end, &frame);
    return shard->gives_up;
}

static void worker_waits_for_room_in_a_lane(void **state)
{
    (void)state;
    cluster *c = create(1, two_of_three);
    bel_doorbell *bell = bel_doorbell_create();
    slow_shard shard = {.naps = 0};
    bel_lane *lane;
    bel_inproc_lane_create(1, bell, bell, &lane, &shard.end);
    bel_client_config config = c->client_configs[0];
    config.lanes = &lane;
    config.cancelled = nap;
    config.cancelled_context = &shard;
    bel_client *client = bel_client_create(&config);
    BEL_ASSERT_OK(bel_client_pull(client, 0));
    assert_int_equal(shard.naps, 0);
    BEL_ASSERT_OK(bel_client_pull(client, 0)); // the lane is full until the second pause
    assert_int_equal(shard.naps, 2);
    assert_int_equal(shard.taken, 1);
    shard = (slow_shard){.end = shard.end, .gives_up = true};
    BEL_ASSERT_FAILS(bel_client_pull(client, 0), BEL_RESOURCE_EXHAUSTED, "shard 0");
    bel_client_destroy(client);
    bel_lane_close(shard.end);
    bel_lane_close(lane);
    bel_doorbell_destroy(bell);
    cluster_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_reports_count_and_others_are_dropped),
        cmocka_unit_test(surplus_report_is_answered_with_the_step),
        cmocka_unit_test(full_lanes_lose_nothing),
        cmocka_unit_test(worker_waits_for_room_in_a_lane),
        cmocka_unit_test(reports_are_applied_in_order_of_arrival),
        cmocka_unit_test(bound_holds_the_fast_back),
        cmocka_unit_test(report_that_waits_holds_nobody_back),
        cmocka_unit_test(end_is_told_to_those_who_compute),
        cmocka_unit_test(blocks_are_leased_once),
        cmocka_unit_test(replaced_worker_gets_blocks_back),
        cmocka_unit_test(newcomer_does_not_wait_for_the_busy),
        cmocka_unit_test(worker_lost_in_the_middle_is_known),
        cmocka_unit_test(answer_waits_for_a_publication),
        cmocka_unit_test(publication_waits_for_copies),
        cmocka_unit_test(repeated_and_late_frames_do_nothing),
        cmocka_unit_test(answers_of_others_do_nothing),
        cmocka_unit_test(steps_wait_for_answers),
        cmocka_unit_test(malformed_frames_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
