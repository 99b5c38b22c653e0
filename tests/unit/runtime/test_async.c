// Asynchronous executor over random graphs: every call runs once, after all calls that it waits
// for, on any number of threads. Errors, cancellation and continuations. label: threads
#include "base/alloc.h"
#include "base/rng.h"
#include "runtime/async.h"
#include "support/bel_test.h"

enum { CALLS = 150, MOST_EDGES = 3, MOST_PARTS = 5, MOST_THREADS = 4 };

// Graph whose calls record the values that they find.
typedef struct scene {
    bel_dag dag;
    bel_streams streams;
    int64_t parts[CALLS];
    int values[CALLS]; // not atomic: the executor must order accesses
    atomic_int parts_done[CALLS];
    bool fails[CALLS];
    int cancels; // the call that cancels the run; -1: no call
    bel_async *async;
    atomic_int mistakes;
} scene;

static uint32_t random_number(uint64_t high, uint64_t low)
{
    uint32_t words[4];
    bel_rng_block((bel_rng_key){{41, 42}}, high, low, words);
    return words[0];
}

// The value that a call computes from the calls it waits for.
static int value_of(const scene *s, int call)
{
    int value = call + 1;
    for (int e = s->dag.first_edges[call]; e < s->dag.first_edges[call + 1]; e++)
        value = (int)((value * 31LL + s->values[s->dag.edges[e].from]) % 1000003);
    return value;
}

static void run_part(void *context, int call, int64_t part)
{
    scene *s = context;
    if (part < 0 || part >= s->parts[call]) atomic_fetch_add(&s->mistakes, 1);
    if (part == 0) s->values[call] = value_of(s, call);
    if (call == s->cancels) bel_async_cancel(s->async);
    atomic_fetch_add_explicit(&s->parts_done[call], 1, memory_order_relaxed);
}

static bool finish_call(void *context, int call)
{
    scene *s = context;
    if (atomic_load(&s->parts_done[call]) != s->parts[call]) atomic_fetch_add(&s->mistakes, 1);
    return !s->fails[call];
}

static scene *scene_create(uint64_t seed, int64_t threshold)
{
    scene *s = bel_xcalloc(1, sizeof *s);
    s->cancels = -1;
    s->dag = (bel_dag){.node_count = CALLS,
                       .costs = bel_xcalloc(CALLS, sizeof *s->dag.costs),
                       .first_edges = bel_xcalloc(CALLS + 1, sizeof *s->dag.first_edges),
                       .edges = bel_xcalloc(CALLS * MOST_EDGES, sizeof *s->dag.edges)};
    for (int c = 0; c < CALLS; c++) {
        uint64_t at = 16 * (uint64_t)c;
        s->dag.costs[c] = 1 + random_number(seed, at) % 100;
        s->parts[c] = random_number(seed, at + 1) % 4 == 0 ? MOST_PARTS : 1;
        uint32_t edges = c == 0 ? 0 : random_number(seed, at + 2) % (MOST_EDGES + 1);
        s->dag.first_edges[c + 1] = s->dag.first_edges[c] + (int)edges;
        for (uint32_t e = 0; e < edges; e++) {
            uint32_t from = random_number(seed, at + 3 + e);
            s->dag.edges[s->dag.first_edges[c] + (int)e] =
                (bel_dag_edge){(int)(from % (uint32_t)c), from % 5 > 0};
        }
    }
    const bel_stream_options options = {
        .thread_count = 2, .threshold = threshold, .merge_dependent = true};
    bel_streams_pack(&s->dag, &options, &s->streams);
    const bel_async_calls calls = {
        .run = run_part, .finish = finish_call, .context = s, .part_counts = s->parts};
    s->async = bel_async_create(&s->dag, &s->streams, &calls);
    return s;
}

static void scene_destroy(scene *s)
{
    bel_async_destroy(s->async);
    bel_streams_deinit(&s->streams);
    bel_dag_deinit(&s->dag);
    bel_free(s);
}

static bel_future_state scene_run(scene *s, bel_team *team)
{
    memset(s->values, 0, sizeof s->values);
    for (int c = 0; c < CALLS; c++)
        atomic_store(&s->parts_done[c], 0);
    bel_future_state end = bel_async_run(s->async, team);
    assert_int_equal(atomic_load(&s->mistakes), 0);
    return end;
}

// Checks the values against a sequential run.
static void expect_values(const scene *s)
{
    scene serial = {.dag = s->dag};
    for (int c = 0; c < CALLS; c++) {
        serial.values[c] = value_of(&serial, c);
        assert_int_equal(s->values[c], serial.values[c]);
    }
}

static void test_order(void **state)
{
    (void)state;
    static const int64_t thresholds[] = {0, 1, 60, 1 << 20};
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        bel_team *team;
        BEL_ASSERT_OK(bel_team_create(threads, &team));
        for (uint64_t seed = 0; seed < 12; seed++) {
            scene *s = scene_create(seed, thresholds[seed % 4]);
            for (int again = 0; again < 20; again++) {
                assert_int_equal(scene_run(s, team), BEL_FUTURE_READY);
                expect_values(s);
            }
            for (int c = 0; c < CALLS; c++)
                assert_int_equal(bel_future_look(bel_async_future(s->async, c)), BEL_FUTURE_READY);
            scene_destroy(s);
        }
        bel_team_destroy(team);
    }
}

// Returns the expected end of each call when the calls in `fails` fail.
static void expect_states(const scene *s, bel_future_state *out_states)
{
    for (int c = 0; c < CALLS; c++) {
        out_states[c] = s->fails[c] ? BEL_FUTURE_FAILED : BEL_FUTURE_READY;
        for (int e = s->dag.first_edges[c]; e < s->dag.first_edges[c + 1]; e++) {
            const bel_dag_edge *edge = &s->dag.edges[e];
            if (edge->data && out_states[edge->from] != BEL_FUTURE_READY) {
                out_states[c] = BEL_FUTURE_SKIPPED;
            }
        }
    }
}

static void test_errors(void **state)
{
    (void)state;
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        bel_team *team;
        BEL_ASSERT_OK(bel_team_create(threads, &team));
        for (uint64_t seed = 0; seed < 12; seed++) {
            scene *s = scene_create(seed, seed % 2 == 0 ? 1 : 80);
            bel_future_state expected[CALLS];
            int skipped = 0, ran = 0;
            for (int c = 0; c < CALLS; c++)
                s->fails[c] = random_number(77, seed * CALLS + (uint64_t)c) % 16 == 0;
            expect_states(s, expected);
            assert_int_equal(scene_run(s, team), BEL_FUTURE_FAILED);
            for (int c = 0; c < CALLS; c++) {
                assert_int_equal(bel_future_look(bel_async_future(s->async, c)), expected[c]);
                bool skip = expected[c] == BEL_FUTURE_SKIPPED;
                assert_int_equal(atomic_load(&s->parts_done[c]), skip ? 0 : s->parts[c]);
                skipped += skip;
                ran += expected[c] == BEL_FUTURE_READY;
            }
            assert_true(skipped > 0 && ran > 0);
            memset(s->fails, 0, sizeof s->fails); // the next run is unaffected
            assert_int_equal(scene_run(s, team), BEL_FUTURE_READY);
            expect_values(s);
            scene_destroy(s);
        }
        bel_team_destroy(team);
    }
}

static void test_cancellation(void **state)
{
    (void)state;
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        bel_team *team;
        BEL_ASSERT_OK(bel_team_create(threads, &team));
        scene *s = scene_create(5, 1);
        bel_async_cancel(s->async); // cancels the next run
        assert_int_equal(scene_run(s, team), BEL_FUTURE_CANCELLED);
        for (int c = 0; c < CALLS; c++) {
            assert_int_equal(atomic_load(&s->parts_done[c]), 0);
            assert_int_equal(bel_future_look(bel_async_future(s->async, c)), BEL_FUTURE_CANCELLED);
        }
        for (s->cancels = 0; s->cancels < CALLS; s->cancels += 7) {
            bel_future_state end = scene_run(s, team);
            bool all = true;
            for (int c = 0; c < CALLS; c++) {
                bel_future_state became = bel_future_look(bel_async_future(s->async, c));
                bool ran = became == BEL_FUTURE_READY;
                assert_true(ran || became == BEL_FUTURE_CANCELLED);
                assert_int_equal(atomic_load(&s->parts_done[c]), ran ? s->parts[c] : 0);
                all = all && ran;
            }
            assert_int_equal(bel_future_look(bel_async_future(s->async, s->cancels)),
                             BEL_FUTURE_READY); // a call that has begun ends
            assert_int_equal(end, all ? BEL_FUTURE_READY : BEL_FUTURE_CANCELLED);
            assert_true(!all || s->cancels > 0);
        }
        s->cancels = -1;
        assert_int_equal(scene_run(s, team), BEL_FUTURE_READY);
        expect_values(s);
        scene_destroy(s);
        bel_team_destroy(team);
    }
}

typedef struct note {
    bel_continuation continuation;
    scene *scene;
    int call, value;
    bel_future_state state;
    atomic_int count;
} note;

static void take_note(void *context, bel_future_state state)
{
    note *n = context;
    n->value = n->scene->values[n->call];
    n->state = state;
    atomic_fetch_add(&n->count, 1);
}

static void test_continuations(void **state)
{
    (void)state;
    static note notes[CALLS];
    bel_team *team;
    BEL_ASSERT_OK(bel_team_create(3, &team));
    scene *s = scene_create(9, 1);
    for (int c = 0; c < CALLS; c++) {
        notes[c].scene = s;
        notes[c].call = c;
        notes[c].continuation = (bel_continuation){.run = take_note, .context = &notes[c]};
        bel_future_then(bel_async_future(s->async, c), &notes[c].continuation);
        assert_int_equal(bel_future_look(bel_async_future(s->async, c)), BEL_FUTURE_PENDING);
    }
    for (int again = 1; again <= 10; again++) {
        assert_int_equal(scene_run(s, team), BEL_FUTURE_READY);
        for (int c = 0; c < CALLS; c++) {
            assert_int_equal(atomic_load(&notes[c].count), again);
            assert_int_equal(notes[c].value, s->values[c]);
            assert_int_equal(notes[c].state, BEL_FUTURE_READY);
        }
    }
    s->fails[CALLS / 2] = true;
    assert_int_equal(scene_run(s, team), BEL_FUTURE_FAILED);
    assert_int_equal(notes[CALLS / 2].state, BEL_FUTURE_FAILED);
    scene_destroy(s);
    bel_team_destroy(team);
}

static void test_nothing_to_do(void **state)
{
    (void)state;
    int first_edges[1] = {0};
    bel_dag dag = {.first_edges = first_edges};
    bel_streams streams;
    bel_streams_pack(&dag, &(bel_stream_options){.thread_count = 2}, &streams);
    const bel_async_calls calls = {.run = run_part, .finish = finish_call};
    bel_async *async = bel_async_create(&dag, &streams, &calls);
    bel_team *team;
    BEL_ASSERT_OK(bel_team_create(2, &team));
    assert_int_equal(bel_async_run(async, team), BEL_FUTURE_READY);
    bel_team_destroy(team);
    bel_async_destroy(async);
    bel_streams_deinit(&streams);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),         cmocka_unit_test(test_errors),
        cmocka_unit_test(test_cancellation),  cmocka_unit_test(test_continuations),
        cmocka_unit_test(test_nothing_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
