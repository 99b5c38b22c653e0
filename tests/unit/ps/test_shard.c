// Shards and clients over inproc lanes: values against double arithmetic, frames that must be
// dropped or refused, and the same bits for every number of shards and any assignment.
#include "unit/ps/test_cluster.h"

#include <math.h>

#include "base/clock.h"
#include "optim/settings.h"
#include "ps/server/shard_inner.h"

enum { STEPS = 3 };

// Examples of replicas: equal numbers, or different sizes and a step without any.
static bool uneven;
static int64_t examples_of(int64_t step, int replica)
{
    static const int64_t sizes[STEPS][REPLICAS] = {
        {64, 64, 31, 0, 5}, {0, 0, 0, 0, 0}, {0, 3, 3, 64, 0}};
    return uneven ? sizes[step][replica] : 10;
}

static double examples_of_all(int64_t step)
{
    double examples = 0;
    for (int r = 0; r < REPLICAS; r++)
        examples += (double)examples_of(step, r);
    return examples;
}

static cluster *train(int shards, const int *replicas_of, int workers, bel_optimizer optimizer)
{
    cluster *c = cluster_create(shards, replicas_of, workers, optimizer, STEPS);
    for (int64_t step = 0; step < STEPS; step++) {
        for (int r = 0; r < REPLICAS; r++)
            c->weights[r] = (bel_weight){examples_of(step, r) > 0, examples_of(step, r)};
        for (int w = 0; w < workers; w++) { // later workers find the version published
            assert_int_equal(wait_for(c, w, step), 0);
            report_step(c, w, step);
        }
    }
    for (int w = 0; w < workers; w++)
        assert_int_equal(wait_for(c, w, STEPS), BEL_DECIDE_STOP);
    assert_int_equal(c->decided, STEPS);
    assert_true(c->examples == examples_of_all(STEPS - 1));
    for (int k = 0; k < shards; k++) {
        BEL_ASSERT_OK(bel_shard_check(c->shards[k]));
        assert_int_equal(bel_shard_count(c->shards[k]).versions, STEPS + 1);
    }
    return c;
}

// --- Against double arithmetic -------------------------------------------------------------------

typedef struct expectation {
    double *values, *gradients; // as large as the space
} expectation;

static double clip_factor(double square, double limit)
{
    return limit > 0 && sqrt(square) > limit ? limit / sqrt(square) : 1.0;
}

// Mean gradients of a step, clipped as the optimizer says.
static void expected_gradients(const bel_layout *layout, const bel_optimizer *o, int64_t step,
                               double *gradients)
{
    double all = 0;
    for (int v = 0; v < layout->variable_count; v++) {
        const bel_layout_variable *variable = &layout->variables[v];
        double square = 0, *g = gradients + variable->offset;
        for (int64_t i = 0; i < variable->elements; i++) {
            g[i] = 0;
            for (int r = 0; r < REPLICAS; r++) {
                double share = (double)examples_of(step, r) / fmax(1, examples_of_all(step));
                if (variable->kind == BEL_VARIABLE_STATE_SUM) share = examples_of(step, r) > 0;
                g[i] += share * (double)report_element(r, step, variable->offset + i);
            }
            square += g[i] * g[i];
        }
        if (variable->kind != BEL_VARIABLE_TRAINABLE) continue;
        all += square;
        for (int64_t i = 0; i < variable->elements; i++)
            g[i] *= clip_factor(square, o->clip_norm);
    }
    for (int v = 0; v < layout->variable_count; v++) {
        const bel_layout_variable *variable = &layout->variables[v];
        if (variable->kind != BEL_VARIABLE_TRAINABLE) continue;
        for (int64_t i = variable->offset; i < variable->offset + variable->elements; i++)
            gradients[i] *= clip_factor(all, o->clip_global_norm);
    }
}

static double expected_update(bel_variable_kind kind, double value, double gradient, double rate)
{
    switch (kind) {
    case BEL_VARIABLE_TRAINABLE: return value - rate * gradient;
    case BEL_VARIABLE_FROZEN: return value;
    case BEL_VARIABLE_STATE_MEAN: return gradient;
    case BEL_VARIABLE_STATE_SUM: return value + gradient;
    default: return NAN; // tests/equal/test_variables.c
    }
}

// The factor from the patterns below.
static double expected_factor(const bel_optimizer *o, const char *name)
{
    if (o->lr_mults[0].pattern[0] == '\0') return 1;
    if (strcmp(name, "last") == 0) return 0;
    return strcmp(name, "kernel") == 0 ? 0.25 : 1;
}

static void check_values(const cluster *c, const bel_optimizer *o)
{
    const bel_layout *layout = c->layout;
    size_t size = (size_t)layout->size;
    double *values = bel_xcalloc(size, sizeof *values);
    double *gradients = bel_xcalloc(size, sizeof *gradients);
    for (size_t i = 0; i < size; i++)
        values[i] = (double)((float)(i % 101) / 50.0f - 1.0f);
    for (int64_t step = 0; step < STEPS; step++) {
        if (examples_of_all(step) == 0) continue; // nothing changes
        expected_gradients(layout, o, step, gradients);
        for (int v = 0; v < layout->variable_count; v++) {
            const bel_layout_variable *variable = &layout->variables[v];
            for (int64_t i = variable->offset; i < variable->offset + variable->elements; i++)
                values[i] = expected_update(variable->kind, values[i], gradients[i],
                                            o->learning_rate * expected_factor(o, variable->name));
        }
    }
    for (int v = 0; v < layout->variable_count; v++) {
        const bel_layout_variable *variable = &layout->variables[v];
        const float *got = bel_space_variable(c->space, v);
        for (int64_t i = 0; i < variable->elements; i++) {
            double expected = values[variable->offset + i];
            if (fabs((double)got[i] - expected) > 5e-6 * fmax(1, fabs(expected))) {
                fail_msg("%s[%lld]: got %.9g, expected %.9g", variable->name, (long long)i,
                         (double)got[i], expected);
            }
        }
    }
    bel_free(values);
    bel_free(gradients);
}

static const bel_optimizer optimizers[] = {
    {.learning_rate = 0.5},
    {.learning_rate = 0.5, .clip_norm = 2},
    {.learning_rate = 0.5, .clip_norm = 1000}, // above every norm: no change
    {.learning_rate = 0.5, .clip_global_norm = 3},
    {.learning_rate = 0.5, .lr_mults = {{"k*", 0.25}, {"l*", 3}, {"?ast", 0}}},
    {.learning_rate = 0.5, .clip_norm = 2, .lr_mults = {{"k*", 0.25}, {"l*", 3}, {"?ast", 0}}},
};
enum { OPTIMIZERS = sizeof optimizers / sizeof optimizers[0] };

// Rules that use norms and have slots. The two passes and the exchange of norms are those above.
static const bel_optimizer trusting[] = {
    {.kind = BEL_OPTIMIZER_LARS, .learning_rate = 0.5, .weight_decay = 0.1, .lars_trust = 0.5},
    {.kind = BEL_OPTIMIZER_LAMB,
     .learning_rate = 0.1,
     .weight_decay = 0.2,
     .lr_mults = {{"k*", 0.25}, {"l*", 3}, {"?ast", 0}}},
};
enum { TRUSTING = sizeof trusting / sizeof trusting[0] };

static void test_values(void **state)
{
    (void)state;
    static const int replicas_of[] = {2, 3};
    for (int o = 0; o < OPTIMIZERS; o++) {
        for (int shards = 1; shards <= MAX_SHARDS; shards++) {
            cluster *c = train(shards, replicas_of, 2, optimizers[o]);
            check_values(c, &optimizers[o]);
            cluster_destroy(c);
        }
    }
}

static double norm_of(const double *x, int64_t n)
{
    double square = 0;
    for (int64_t i = 0; i < n; i++)
        square += x[i] * x[i];
    return sqrt(square);
}

// One step of a variable; g becomes the direction.
static void trusting_step(const bel_optimizer *o, double rate, int64_t step, int64_t n, double *p,
                          double *g, double *m, double *v)
{
    bool lamb = o->kind == BEL_OPTIMIZER_LAMB;
    double t = (double)step + 1, w = o->weight_decay;
    for (int64_t i = 0; i < n && lamb; i++) {
        m[i] = o->beta1 * m[i] + (1 - o->beta1) * g[i];
        v[i] = o->beta2 * v[i] + (1 - o->beta2) * g[i] * g[i];
        g[i] = m[i] / (1 - pow(o->beta1, t)) / (sqrt(v[i] / (1 - pow(o->beta2, t))) + o->epsilon) +
               w * p[i];
    }
    double p_norm = norm_of(p, n), g_norm = norm_of(g, n);
    double trust = lamb ? p_norm / g_norm : o->lars_trust * p_norm / (g_norm + w * p_norm);
    for (int64_t i = 0; i < n; i++) {
        double move = rate * trust * (lamb ? g[i] : g[i] + w * p[i]);
        if (!lamb) move = m[i] = o->momentum * m[i] + move;
        p[i] -= move;
    }
}

static void check_trusting(const cluster *c, bel_optimizer o)
{
    BEL_ASSERT_OK(bel_optimizer_check(&o));
    size_t size = (size_t)c->layout->size;
    double *p = bel_xcalloc(size, sizeof *p), *g = bel_xcalloc(size, sizeof *g);
    double *m = bel_xcalloc(size, sizeof *m), *v = bel_xcalloc(size, sizeof *v);
    for (size_t i = 0; i < size; i++)
        p[i] = (double)((float)(i % 101) / 50.0f - 1.0f);
    for (int64_t step = 0; step < STEPS; step++) {
        if (examples_of_all(step) == 0) continue; // nothing changes
        expected_gradients(c->layout, &o, step, g);
        for (int k = 0; k < c->layout->variable_count; k++) {
            const bel_layout_variable *variable = &c->layout->variables[k];
            double rate = o.learning_rate * expected_factor(&o, variable->name);
            int64_t at = variable->offset;
            trusting_step(&o, rate, step, variable->elements, p + at, g + at, m + at, v + at);
        }
    }
    for (int k = 0; k < c->layout->variable_count; k++) {
        const bel_layout_variable *variable = &c->layout->variables[k];
        const float *got = bel_space_variable(c->space, k);
        for (int64_t i = 0; i < variable->elements && variable->kind == BEL_VARIABLE_TRAINABLE; i++)
            assert_true(fabs((double)got[i] - p[variable->offset + i]) < 1e-5);
    }
    bel_free(p);
    bel_free(g);
    bel_free(m);
    bel_free(v);
}

static void test_trusting(void **state)
{
    (void)state;
    static const int replicas_of[] = {2, 3};
    for (int o = 0; o < TRUSTING; o++) {
        for (int shards = 1; shards <= MAX_SHARDS; shards++) {
            cluster *c = train(shards, replicas_of, 2, trusting[o]);
            check_trusting(c, trusting[o]);
            cluster_destroy(c);
        }
    }
}

// Averages of trained variables begin at 0, as nothing was loaded. Other variables are copied.
static void test_averages(void **state)
{
    (void)state;
    static const int replicas_of[] = {2, 3};
    const bel_optimizer o = {.learning_rate = 0.5, .moving_average_decay = 0.75};
    for (int shards = 1; shards <= MAX_SHARDS; shards++) {
        cluster *c = cluster_create(shards, replicas_of, 2, o, STEPS);
        double *expected = bel_xcalloc((size_t)c->layout->size, sizeof *expected);
        for (int64_t step = 0; step <= STEPS; step++) {
            for (int w = 0; w < 2; w++)
                wait_for(c, w, step);
            for (int v = 0; v < c->layout->variable_count; v++) {
                const bel_layout_variable *variable = &c->layout->variables[v];
                bool averaged = variable->kind == BEL_VARIABLE_TRAINABLE;
                for (int64_t i = 0; i < variable->elements; i++) {
                    double *average = &expected[variable->offset + i];
                    double value = (double)bel_space_variable(c->space, v)[i];
                    if (step > 0 || !averaged)
                        *average = value + (averaged ? 0.75 : 0) * (*average - value);
                }
            }
            for (int w = 0; w < 2 && step < STEPS; w++)
                report_step(c, w, step);
        }
        for (int k = 0; k < shards; k++)
            BEL_ASSERT_OK(bel_shard_snapshot_now(c->shards[k]));
        for (int v = 0; v < c->layout->variable_count; v++) {
            const bel_layout_variable *variable = &c->layout->variables[v];
            for (int64_t i = variable->offset; i < variable->offset + variable->elements; i++)
                assert_true(fabs((double)c->averages[i] - expected[i]) < 5e-6);
        }
        bel_free(expected);
        cluster_destroy(c);
    }
}

// Takes all frames on the lane; returns the number of versions announced after all their chunks.
static int take_values(const cluster *c, bel_lane *lane, int *chunks)
{
    bel_frame frame;
    int versions = 0;
    while (bel_lane_receive(lane, &frame)) {
        if (frame.kind == BEL_FRAME_PARAMS) {
            const bel_chunk *chunk = &c->layout->chunks[bel_params_frame_read(&frame).chunk];
            assert_memory_equal(frame.payload, c->snapshot + chunk->offset, frame.payload_bytes);
            ++*chunks;
            continue;
        }
        assert_int_equal(frame.kind, BEL_FRAME_VERSION);
        assert_int_equal(bel_version_frame_read(&frame).chunks, *chunks);
        *chunks = 0;
        versions++;
    }
    return versions;
}

// However few frames a lane holds, values sent on it arrive completely, one snapshot after another.
static void test_snapshots_over_a_small_lane(void **state)
{
    (void)state;
    static const int replicas_of[] = {5};
    enum { SNAPSHOTS = 12 };
    cluster *c = cluster_create(1, replicas_of, 1, optimizers[0], STEPS);
    BEL_ASSERT_OK(bel_shard_snapshot_now(c->shards[0]));
    assert_true(c->layout->chunk_count >= 3);
    for (size_t capacity = 1; capacity <= bel_layout_snapshot_frames(c->layout); capacity++) {
        bel_lane *near, *far;
        bel_inproc_lane_create(capacity, c->bell, c->bell, &near, &far);
        int versions = 0, chunks = 0;
        for (int64_t version = 0; version < SNAPSHOTS; version++) {
            int sent = 0, tries = 0;
            for (bool whole = false; !whole; tries++) {
                assert_true(tries <= c->layout->chunk_count + 1);
                BEL_ASSERT_OK(bel_shard_send_snapshot(c->shards[0], near, version, &sent, &whole));
                versions += take_values(c, far, &chunks);
            }
        }
        assert_int_equal(versions, SNAPSHOTS);
        bel_lane_close(near);
        bool whole;
        int sent = 0;
        BEL_ASSERT_FAILS(bel_shard_send_snapshot(c->shards[0], far, 0, &sent, &whole),
                         BEL_UNAVAILABLE, "cut");
        bel_lane_close(far);
    }
    cluster_destroy(c);
}

// --- The same bits everywhere --------------------------------------------------------------------

static void copy_values(const cluster *c, float *out)
{
    for (int v = 0; v < c->layout->variable_count; v++) {
        const bel_layout_variable *variable = &c->layout->variables[v];
        memcpy(out + variable->offset, bel_space_variable(c->space, v),
               (size_t)variable->elements * sizeof *out);
    }
}

// Rules with slots, averages and limits of values. test_rules checks their numbers.
static const bel_optimizer with_slots[] = {
    {.kind = BEL_OPTIMIZER_MOMENTUM, .learning_rate = 0.1, .momentum = 0.9, .clip_value = 0.2},
    {.kind = BEL_OPTIMIZER_ADAM, .learning_rate = 0.1, .moving_average_decay = 0.9},
};

// Values, then averages if there are any.
static float *copy_state(cluster *c)
{
    size_t size = (size_t)c->layout->size;
    float *state = bel_xcalloc(2 * size, sizeof *state);
    copy_values(c, state);
    if (c->shards[0]->memory.averages == NULL) return state;
    for (int k = 0; k < c->layout->shard_count; k++)
        BEL_ASSERT_OK(bel_shard_snapshot_now(c->shards[k]));
    for (int v = 0; v < c->layout->variable_count; v++) {
        const bel_layout_variable *variable = &c->layout->variables[v];
        memcpy(state + size + variable->offset, c->averages + variable->offset,
               (size_t)variable->elements * sizeof *state);
    }
    return state;
}

// Over shards, workers, and values that go through the caches or past them.
static void check_same_bits(const bel_optimizer *optimizer)
{
    static const struct {
        int workers, replicas_of[MAX_WORKERS];
    } assignments[] = {{1, {5}}, {2, {4, 1}}, {2, {2, 3}}, {4, {1, 1, 2, 1}}};
    float *expected = NULL;
    for (int at = 0; at < 2 * MAX_SHARDS * 4; at++) {
        int assignment = at / 2 / MAX_SHARDS, shards = 1 + at / 2 % MAX_SHARDS;
        change_config = at % 2 == 1 ? stream_all : NULL;
        cluster *c = train(shards, assignments[assignment].replicas_of,
                           assignments[assignment].workers, *optimizer);
        size_t size = (size_t)c->layout->size;
        assert_int_equal(c->shards[0]->streams, at % 2 == 1);
        float *got = copy_state(c);
        if (at > 0) assert_memory_equal(got, expected, 2 * size * sizeof *got);
        if (at > 0) {
            bel_free(got);
        } else {
            expected = got;
        }
        cluster_destroy(c);
    }
    change_config = NULL;
    bel_free(expected);
}

static void test_same_bits(void **state)
{
    (void)state;
    for (int o = 0; o < OPTIMIZERS; o++)
        check_same_bits(&optimizers[o]);
    for (int o = 0; o < TRUSTING; o++)
        check_same_bits(&trusting[o]);
    for (size_t o = 0; o < sizeof with_slots / sizeof with_slots[0]; o++)
        check_same_bits(&with_slots[o]);
}

// Replicas count by their examples. Replicas without examples do not count, and a step without any
// changes nothing.
static void test_replicas_of_different_sizes(void **state)
{
    uneven = true;
    test_values(state);
    test_trusting(state);
    test_same_bits(state);
    uneven = false;
}

static void test_refused_weights(void **state)
{
    (void)state;
    static const int replicas_of[] = {5};
    const bel_weight bad[] = {
        {0, 1}, {1, 0}, {6, 60}, {-1, -1}, {5, 4}, {5, INT64_MAX}, {2, (int64_t)1 << 41}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cluster *c = cluster_create(1, replicas_of, 1, optimizers[0], STEPS);
        (void)wait_for(c, 0, 0);
        BEL_ASSERT_OK(bel_client_report(c->clients[0], 0, 0, 0, 0, bad[i], c->gradients[0]));
        while (work_for_shards(c)) {
        }
        BEL_ASSERT_FAILS(bel_shard_check(c->shards[0]), BEL_INTERNAL, "a weight that its node");
        cluster_destroy(c);
    }
}

// --- Frames that are dropped ---------------------------------------------------------------------

static void test_dropped_frames(void **state)
{
    (void)state;
    static const int replicas_of[] = {3, 2};
    cluster *c = cluster_create(1, replicas_of, 2, optimizers[0], STEPS);
    bel_client_config elsewhere = c->client_configs[0];
    elsewhere.generation++;
    bel_client *before = bel_client_create(&elsewhere);
    elsewhere = c->client_configs[0];
    elsewhere.incarnation++;
    bel_client *other = bel_client_create(&elsewhere);
    const int node = c->assignment->first_node[0];
    const float wrong[1] = {0}; // never read
    const bel_weight ten = {1, 10};
    bel_shard_counters expected = {.versions = 1};
    for (int64_t step = 0; step < STEPS; step++) {
        for (int w = 0; w < 2; w++)
            wait_for(c, w, step);
        BEL_ASSERT_OK(bel_client_report(before, step, 0, 0, node, ten, wrong));
        BEL_ASSERT_OK(bel_client_report(other, step, 0, 0, node, ten, wrong));
        expected.foreign += 2;
        if (step > 0) {
            BEL_ASSERT_OK(bel_client_report(c->clients[0], step - 1, 0, 0, node, ten, wrong));
            BEL_ASSERT_OK(
                bel_client_stats(c->clients[0], step - 1, 0, node, 0, c->stats_list[node]));
            expected.late += 2;
        }
        report_step(c, 0, step);
        BEL_ASSERT_OK(bel_client_report(c->clients[0], step, 0, 0, node, ten, wrong));
        BEL_ASSERT_OK(bel_client_stats(c->clients[0], step, 0, node, 0, c->stats_list[node]));
        expected.repeated += 2;
        report_step(c, 1, step);
        expected.versions++;
    }
    for (int w = 0; w < 2; w++)
        wait_for(c, w, STEPS);
    bel_shard_counters got = bel_shard_count(c->shards[0]);
    assert_int_equal(got.foreign, expected.foreign);
    assert_int_equal(got.late, expected.late);
    assert_int_equal(got.repeated, expected.repeated);
    assert_int_equal(got.versions, expected.versions);
    check_values(c, &optimizers[0]); // no frame had an effect
    bel_client_destroy(before);
    bel_client_destroy(other);
    cluster_destroy(c);
}

// --- Workers that are replaced -------------------------------------------------------------------

// Worker 1 ends after each number of frames of step 1 in turn, before or after worker 0 reports.
static void check_replaced(int frames, bool last, const bel_optimizer *optimizer)
{
    static const int replicas_of[] = {3, 2};
    cluster *c = cluster_create(2, replicas_of, 2, *optimizer, STEPS);
    uint32_t incarnation = 0;
    for (int64_t step = 0; step < STEPS; step++) {
        wait_for(c, 0, step);
        wait_for(c, 1, step);
        if (last) report_step(c, 0, step);
        if (step == 1) {
            report_part(c, 1, step, frames);
            while (work_for_shards(c)) {
            }
            int64_t again = replace_worker(c, 1, ++incarnation);
            assert_true(again == step || again == step + 1);
            wait_for(c, 1, again);
            if (again > step) continue;
        }
        report_step(c, 1, step);
        if (!last) report_step(c, 0, step);
    }
    wait_for(c, 0, STEPS);
    wait_for(c, 1, STEPS);
    check_values(c, optimizer);
    cluster_destroy(c);
}

static void test_replaced_workers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof optimizers / sizeof optimizers[0]; i++) {
        for (int frames = 0; frames < 24; frames++) {
            check_replaced(frames, false, &optimizers[i]);
            check_replaced(frames, true, &optimizers[i]);
        }
    }
}

// Worker 1 ends after it sent its complete report, but only one shard received it. This one is a
// version ahead. It gives the successor the step that it repeats, and the result. At the last step
// the result is the end.
static void test_replaced_between_shards(void **state)
{
    (void)state;
    static const int replicas_of[] = {3, 2};
    for (int64_t at = 0; at < STEPS; at++) {
        for (int ahead = 0; ahead < 2; ahead++) {
            cluster *c = cluster_create(2, replicas_of, 2, optimizers[0], STEPS);
            for (int64_t step = 0; step < STEPS; step++) {
                wait_for(c, 0, step);
                wait_for(c, 1, step);
                while (work_for_shards(c)) { // finishes work that needs no report
                }
                report_step(c, 0, step);
                report_step(c, 1, step);
                if (step != at) continue;
                while (bel_shard_work(c->shards[ahead])) {
                }
                assert_int_equal(replace_worker(c, 1, 1), step); // the other shard's version
                wait_for(c, 1, step);
                report_step(c, 1, step);
            }
            for (int w = 0; w < 2; w++)
                assert_int_equal(wait_for(c, w, STEPS), BEL_DECIDE_STOP);
            check_values(c, &optimizers[0]);
            cluster_destroy(c);
        }
    }
}

// --- Frames that are refused ---------------------------------------------------------------------

static void check_refused(bel_frame frame, const char *part)
{
    static const int replicas_of[] = {5};
    cluster *c = cluster_create(1, replicas_of, 1, optimizers[0], STEPS);
    uint32_t decision;
    frame.generation = 1;
    wait_for(c, 0, 0);
    BEL_ASSERT_OK(bel_lane_send(c->worker_ends[0][0], &frame));
    work_for_shards(c);
    BEL_ASSERT_FAILS(bel_shard_check(c->shards[0]), BEL_INTERNAL, part);
    report_step(c, 0, 0); // a stopped shard publishes no more
    BEL_ASSERT_FAILS(bel_client_wait(c->clients[0], 1, &decision), BEL_DEADLINE_EXCEEDED,
                     "worker 0 waits for version 1 of shard 0");
    cluster_destroy(c);
}

static void test_refused_frames(void **state)
{
    (void)state;
    static const float data[4] = {0};
    bel_report_frame report = {0};
    check_refused(bel_report_frame_write(report, data, sizeof data),
                  "shard 0: malformed frame from 0: a report of the wrong size (report, version 0, "
                  "decision 0, chunk 0, node 0, replicas 0, examples 0, bytes 16; while step 0");
    report.chunk = 1000;
    check_refused(bel_report_frame_write(report, data, sizeof data), "no such chunk");
    report.chunk = -1;
    check_refused(bel_report_frame_write(report, data, sizeof data), "no such chunk");
    report = (bel_report_frame){.node = 1};
    check_refused(bel_report_frame_write(report, data, sizeof data), "no such node");
    check_refused(bel_stats_frame_write((bel_stats_frame){0}, data, sizeof data),
                  "step statistics of the wrong size");
    check_refused(bel_version_frame_write((bel_version_frame){0}, NULL, 0),
                  "a kind that workers do not send");
    check_refused(bel_norms_frame_write((bel_norms_frame){0}, data, sizeof data),
                  "a kind that workers do not send");
    check_refused(bel_factors_frame_write((bel_factors_frame){0}, data, sizeof data),
                  "a kind that workers do not send");
}

// Frames between shards, for an optimizer without a norm of the whole model.
static void test_refused_norms(void **state)
{
    (void)state;
    static const int replicas_of[] = {5};
    static const bel_frame_kind kinds[] = {BEL_FRAME_NORMS, BEL_FRAME_FACTORS};
    for (int i = 0; i < 2; i++) {
        cluster *c = cluster_create(2, replicas_of, 1, optimizers[0], STEPS);
        bel_frame frame = {.kind = kinds[i], .generation = 1, .sender = 1 - i};
        BEL_ASSERT_OK(bel_lane_send(c->inner_ends[1 - i][i], &frame));
        work_for_shards(c);
        BEL_ASSERT_FAILS(bel_shard_check(c->shards[i]), BEL_INTERNAL, "unexpected norms");
        cluster_destroy(c);
    }
}

// --- Waiting -------------------------------------------------------------------------------------

static bool is_cancelled(void *context)
{
    (void)context;
    return true;
}

static void test_waiting(void **state)
{
    (void)state;
    static const int replicas_of[] = {5};
    cluster *c = cluster_create(2, replicas_of, 1, optimizers[0], STEPS);
    uint32_t decision = 77;
    wait_for(c, 0, 0);
    BEL_ASSERT_FAILS(bel_client_wait(c->clients[0], 1, &decision), BEL_DEADLINE_EXCEEDED,
                     "version 1 of shard 0, 1: no progress");
    bel_client_config config = c->client_configs[0];
    config.cancelled = is_cancelled;
    bel_client *client = bel_client_create(&config);
    BEL_ASSERT_FAILS(bel_client_wait(client, 1, &decision), BEL_CANCELLED, "training is ending");
    bel_client_destroy(client);
    bel_lane_close(c->shard_ends[1][0]);
    c->shard_ends[1][0] = NULL; // the shard skips it
    BEL_ASSERT_FAILS(bel_client_wait(c->clients[0], 1, &decision), BEL_UNAVAILABLE, "is cut");
    assert_int_equal(decision, 77); // set only on success
    cluster_destroy(c);
}

static const int64_t pause_ns = 3000000;

static void pause(void)
{
    for (int64_t end = bel_clock_ns() + pause_ns; bel_clock_ns() < end;) {
    }
}

static void pause_and_publish(cluster *c, int64_t version)
{
    (void)c, (void)version;
    pause();
}

// One of two reports waits for the other. The version is late by the time of its decision.
static void test_times(void **state)
{
    (void)state;
    static const int replicas_of[] = {3, 2};
    cluster *c = cluster_create(1, replicas_of, 2, optimizers[0], STEPS);
    c->while_publishing = pause_and_publish;
    int64_t begun = bel_clock_ns();
    for (int64_t step = 0; step < 2; step++) {
        wait_for(c, 0, step);
        wait_for(c, 1, step);
        report_step(c, 0, step);
        while (work_for_shards(c)) {
        }
        pause();
        report_step(c, 1, step);
    }
    wait_for(c, 0, 2);
    int64_t passed = bel_clock_ns() - begun;
    bel_shard_counters got = bel_shard_count(c->shards[0]);
    assert_true(2 * got.gather_ns >= 2 * pause_ns); // the mean over two workers
    assert_true(got.apply_ns >= 2 * pause_ns);
    assert_true(2 * got.gather_ns + got.apply_ns <= passed);
    bel_shard_restart(c->shards[0], 2);
    got = bel_shard_count(c->shards[0]);
    assert_true(got.versions == 0 && got.gather_ns == 0 && got.apply_ns == 0);
    cluster_destroy(c);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),           cmocka_unit_test(test_averages),
        cmocka_unit_test(test_trusting),         cmocka_unit_test(test_snapshots_over_a_small_lane),
        cmocka_unit_test(test_same_bits),        cmocka_unit_test(test_replicas_of_different_sizes),
        cmocka_unit_test(test_refused_weights),  cmocka_unit_test(test_dropped_frames),
        cmocka_unit_test(test_refused_frames),   cmocka_unit_test(test_refused_norms),
        cmocka_unit_test(test_replaced_workers), cmocka_unit_test(test_replaced_between_shards),
        cmocka_unit_test(test_waiting),          cmocka_unit_test(test_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
